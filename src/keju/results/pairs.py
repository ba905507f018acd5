"""Questions that two sittings share: their pairs, and those that score otherwise."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from msgspec.structs import replace

from keju.benchmarks.choices import as_shown
from keju.benchmarks.samples import DigestTable, text_digest
from keju.results.schema import Flip
from keju.results.sittings import Said, Sitting
from keju.types import Reply

TAKEN = ("tokens", "cost", "seconds")


class Pairs(NamedTuple):
    """The questions that two sittings share, by their numbers in each, and what is not shared."""

    base: array[int]
    arm: array[int]
    scores: list[tuple[float, float]]
    """Of the arm and of the base."""
    clusters: list[str] | None
    left_out: Counter[str]
    only_in_base: int
    only_in_arm: int
    bounds: tuple[float, float] | None
    """The difference if all that lacks a grade went against the arm, and for it."""
    other_gold: int
    """Questions that the two were graded on by different gold answers."""
    taken: dict[str, tuple[array[float], array[float]]]
    """Tokens, money and time of each question: of the arm and of the base."""


def pairs_of(base: Sitting, arm: Sitting) -> Pairs:
    """The questions that both have a record of, matched by id, in the order of the base."""
    places = DigestTable(text_digest(sample.id) for sample in arm.exam.samples)
    numbers, others = array("I"), array("I")
    scores: list[tuple[float, float]] = []
    clusters: list[str] = []
    left_out: Counter[str] = Counter()
    alone = shared = gradable = other_gold = 0
    worst = best = 0.0
    taken = {name: (array("d"), array("d")) for name in TAKEN}
    for number, item in enumerate(base):
        place = places.find(text_digest(item.id))
        other = arm.item(place) if place >= 0 else None
        if item.outcome is None or other is None or other.outcome is None:
            alone += item.outcome is not None
            continue
        shared += 1
        other_gold += item.target != other.target
        if item.score is not None and other.score is not None:
            numbers.append(number)
            others.append(place)
            scores.append((other.score, item.score))
            clusters.append(item.cluster or other.cluster or item.id)
            for name, columns in taken.items():
                for column, each in zip(columns, (other, item), strict=True):
                    column.append(getattr(each, name) or 0.0)
        else:
            why = item.outcome if item.score is None else other.outcome
            left_out[why] += 1
            if "unlabelled" in (item.outcome, other.outcome):
                continue  # no grade is to come
            worst += other.least - item.most
            best += other.most - item.least
        gradable += 1
    bounds = None
    if gradable > len(scores):
        seen = math.fsum(own - other for own, other in scores)
        bounds = ((seen + worst) / gradable, (seen + best) / gradable)
    clustered = base.exam.clustered or arm.exam.clustered
    recorded = sum(item.outcome is not None for item in arm)
    return Pairs(
        numbers,
        others,
        scores,
        clusters if clustered else None,
        left_out,
        alone,
        recorded - shared,
        bounds,
        other_gold,
        taken,
    )


def unanswered(base: Sitting, arm: Sitting) -> int:
    """Questions of both that one has no record of, since it was interrupted; they are no lot."""
    if not (base.job.missing or arm.job.missing):
        return 0
    places = DigestTable(text_digest(sample.id) for sample in arm.exam.samples)
    found = ((item, places.find(text_digest(item.id))) for item in base)
    return sum(
        (item.outcome is None and base.job.missing > 0)
        or (arm.item(place).outcome is None and arm.job.missing > 0)
        for item, place in found
        if place >= 0
    )


def flips_of(base: Sitting, arm: Sitting, pairs: Pairs) -> Iterator[Flip]:
    """The questions that score otherwise, in the order of the base."""
    for number, place, (own, other) in zip(pairs.base, pairs.arm, pairs.scores, strict=True):
        if own == other:
            continue
        first, second = base.item(number), arm.item(place)
        assert first.outcome is not None
        assert second.outcome is not None
        yield Flip(
            id=first.id,
            subset=first.subset,
            target=first.target,
            base=other,
            arm=own,
            base_answer=first.answer,
            arm_answer=second.answer,
            base_outcome=first.outcome,
            arm_outcome=second.outcome,
        )


def with_texts(base: Sitting, arm: Sitting, flips: Sequence[Flip], most: int) -> tuple[Flip, ...]:
    """The same flips; `most` each way, of all subsets, with the question and both replies."""
    up, down = ([f for f in flips if sign * (f.arm - f.base) > 0] for sign in (1, -1))
    wanted = {flip.id for own in (up, down) for flip in islice(_spread(own), most)}
    numbers = {id: n for n, id in enumerate(_ids(base)) if id in wanted}
    places = {id: n for n, id in enumerate(_ids(arm)) if id in wanted}
    first, second = base.said(set(numbers.values())), arm.said(set(places.values()))
    nothing = Said(Reply())

    def told(flip: Flip) -> Flip:
        number, place = numbers[flip.id], places[flip.id]
        own, other = first.get(number, nothing), second.get(place, nothing)
        sample = as_shown(base.exam.samples[number], own.order)
        shown = () if any(not text for text in sample.choices) else sample.choices
        if own.order != other.order or all(text in sample.text for text in shown):
            shown = ()  # each was shown another order, or the question holds them
        return replace(
            flip,
            question=sample.text,
            choices=shown,
            base_reply=own.reply.text,
            arm_reply=other.reply.text,
        )

    return tuple(told(flip) if flip.id in wanted else flip for flip in flips)


def _ids(sitting: Sitting) -> Iterator[str]:
    return (sample.id for sample in sitting.exam.samples)


def _spread(flips: Sequence[Flip]) -> Iterator[Flip]:
    """The first of each subset, then the second of each, and so on."""
    subsets: dict[str, list[Flip]] = {}
    for flip in flips:
        subsets.setdefault(flip.subset, []).append(flip)
    rounds = chain.from_iterable(zip_longest(*subsets.values()))
    return (flip for flip in rounds if flip is not None)
