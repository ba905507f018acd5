"""Questions that two sittings share: their pairs, and those that score otherwise."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import NamedTuple, overload

from msgspec.structs import replace

from keju.benchmarks.choices import restore_order
from keju.benchmarks.samples import DigestTable, text_digest
from keju.results.schema import Flip
from keju.results.sittings import Said, Sitting
from keju.types import Reply


class PairedScores(Sequence[tuple[float, float]]):
    """Scores of the arm and of the base on the same questions: sixteen bytes a pair."""

    def __init__(self, own: array[float] | None = None, other: array[float] | None = None) -> None:
        self.own = array("d") if own is None else own
        """Those of the arm."""
        self.other = array("d") if other is None else other
        """Those of the base."""

    def append(self, own: float, other: float) -> None:
        """Add a question."""
        self.own.append(own)
        self.other.append(other)

    def __len__(self) -> int:
        return len(self.own)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return zip(self.own, self.other, strict=True)

    @overload
    def __getitem__(self, place: int) -> tuple[float, float]: ...
    @overload
    def __getitem__(self, place: slice) -> PairedScores: ...
    def __getitem__(self, place: int | slice) -> tuple[float, float] | PairedScores:
        if isinstance(place, slice):
            return PairedScores(self.own[place], self.other[place])
        return self.own[place], self.other[place]


class Pairs(NamedTuple):
    """The questions that two sittings share, by their numbers in each, and what is not shared."""

    base: array[int]
    arm: array[int]
    scores: PairedScores
    clusters: list[str] | None
    left_out: Counter[str]
    only_in_base: int
    only_in_arm: int
    bounds: tuple[float, float] | None
    """The difference if all that lacks a grade went against the arm, and for it."""
    other_gold: int
    """Questions that the two were graded on by different gold answers."""


class Places:
    """Where the questions of a sitting stand in another: mostly at the same place."""

    def __init__(self, sitting: Sitting) -> None:
        self._samples = sitting.exam.samples
        self._table: DigestTable | None = None

    def find(self, id: str, likely: int) -> int:
        """The place of a question; -1 where it is not asked."""
        if likely < len(self._samples) and self._samples[likely].id == id:
            return likely
        if self._table is None:
            digests = (text_digest(sample.id) for sample in self._samples)
            self._table = DigestTable(digests, size=len(self._samples))
        return self._table.find(text_digest(id))


def pairs_of(base: Sitting, arm: Sitting) -> Pairs:
    """The questions that both have a record of, matched by id, in the order of the base."""
    places = Places(arm)
    numbers, others = array("I"), array("I")
    scores = PairedScores()
    clustered = base.exam.clustered or arm.exam.clustered
    clusters: list[str] = []
    names: dict[str, str] = {}
    """Each cluster's name once, for all its questions."""
    left_out: Counter[str] = Counter()
    alone = shared = gradable = other_gold = 0
    worst = best = 0.0
    for number, item in enumerate(base):
        place = places.find(item.id, number)
        other = arm.item(place) if place >= 0 else None
        if item.outcome is None or other is None or other.outcome is None:
            alone += item.outcome is not None
            continue
        shared += 1
        other_gold += item.target != other.target
        if item.score is not None and other.score is not None:
            numbers.append(number)
            others.append(place)
            scores.append(other.score, item.score)
            if clustered:
                name = item.cluster or other.cluster or item.id
                clusters.append(names.setdefault(name, name))
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
    return Pairs(
        numbers,
        others,
        scores,
        clusters if clustered else None,
        left_out,
        alone,
        arm.recorded - shared,
        bounds,
        other_gold,
    )


def unanswered(base: Sitting, arm: Sitting) -> int:
    """Questions of both that one has no record of, since it was interrupted; they are no lot."""
    if not (base.job.missing or arm.job.missing):
        return 0
    places = Places(arm)
    found = ((item, places.find(item.id, number)) for number, item in enumerate(base))
    return sum(
        (item.outcome is None and base.job.missing > 0)
        or (arm.item(place).outcome is None and arm.job.missing > 0)
        for item, place in found
        if place >= 0
    )


class Flips(Sequence[Flip]):
    """The questions that score otherwise, in the order of the base; made when they are looked at.

    `texts` has those of them that come with their question and both replies, by id.
    """

    def __init__(self, base: Sitting, arm: Sitting, pairs: Pairs) -> None:
        self._base, self._arm, self._pairs = base, arm, pairs
        scores = enumerate(pairs.scores)
        self._places = array("I", (place for place, (own, other) in scores if own != other))
        self.texts: Mapping[str, Flip] = {}

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Flip: ...
    @overload
    def __getitem__(self, index: slice) -> list[Flip]: ...
    def __getitem__(self, index: int | slice) -> Flip | list[Flip]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        place = self._places[index]
        own, other = self._pairs.scores[place]
        first = self._base.item(self._pairs.base[place])
        second = self._arm.item(self._pairs.arm[place])
        assert first.outcome is not None
        assert second.outcome is not None
        flip = Flip(
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
        return self.texts.get(flip.id, flip)


def told(base: Sitting, arm: Sitting, flips: Sequence[Flip], most: int) -> dict[str, Flip]:
    """`most` flips each way, of all subsets, with the question and both replies, by id."""
    up, down = (_spread(flips, most, sign) for sign in (1, -1))
    wanted = {flip.id: flip for own in (up, down) for flip in own}
    numbers = {id: n for n, id in enumerate(_ids(base)) if id in wanted}
    places = {id: n for n, id in enumerate(_ids(arm)) if id in wanted}
    first, second = base.said(set(numbers.values())), arm.said(set(places.values()))
    nothing = Said(Reply())

    def with_texts(flip: Flip) -> Flip:
        number, place = numbers[flip.id], places[flip.id]
        own, other = first.get(number, nothing), second.get(place, nothing)
        sample = restore_order(base.exam.samples[number], own.order)
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

    return {id: with_texts(flip) for id, flip in wanted.items()}


def _ids(sitting: Sitting) -> Iterator[str]:
    return (sample.id for sample in sitting.exam.samples)


def _spread(flips: Iterable[Flip], most: int, sign: int) -> Iterator[Flip]:
    """The first of each subset, then the second of each, and so on, `most` of one direction."""
    subsets: dict[str, list[Flip]] = {}
    for flip in flips:
        if sign * (flip.arm - flip.base) > 0:
            own = subsets.setdefault(flip.subset, [])
            if len(own) < most:
                own.append(flip)
    rounds = chain.from_iterable(zip_longest(*subsets.values()))
    return islice((flip for flip in rounds if flip is not None), most)
