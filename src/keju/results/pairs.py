"""Pair the questions that two scored exams share, and list those with different scores."""

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
from keju.results.schema import ChangedQuestion
from keju.results.scored_exam import ScoredExam, StoredAnswer
from keju.types import Reply


class PairedScores(Sequence[tuple[float, float]]):
    """The scores of the arm and of the base on the same questions; sixteen bytes per pair."""

    def __init__(self, arm: array[float] | None = None, base: array[float] | None = None) -> None:
        self.arm = array("d") if arm is None else arm
        """The scores of the arm."""
        self.base = array("d") if base is None else base
        """The scores of the base."""

    def append(self, arm_score: float, base_score: float) -> None:
        """Add a question."""
        self.arm.append(arm_score)
        self.base.append(base_score)

    def __len__(self) -> int:
        return len(self.arm)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return zip(self.arm, self.base, strict=True)

    @overload
    def __getitem__(self, place: int) -> tuple[float, float]: ...
    @overload
    def __getitem__(self, place: slice) -> PairedScores: ...
    def __getitem__(self, place: int | slice) -> tuple[float, float] | PairedScores:
        if isinstance(place, slice):
            return PairedScores(self.arm[place], self.base[place])
        return self.arm[place], self.base[place]


class SharedQuestions(NamedTuple):
    """The questions that two scored exams share, by their numbers in each."""

    base: array[int]
    arm: array[int]
    scores: PairedScores
    clusters: list[str] | None
    left_out: Counter[str]
    only_in_base: int
    only_in_arm: int
    bounds: tuple[float, float] | None
    """The difference if everything that lacks a grade went against the arm, and if it went for
    it."""
    other_gold: int
    """The number of questions for which the two have different gold answers."""


class QuestionPositions:
    """The positions of questions in another scored exam, which are mostly the same."""

    def __init__(self, scored_exam: ScoredExam) -> None:
        self._samples = scored_exam.exam.samples
        self._table: DigestTable | None = None

    def find(self, id: str, likely_place: int) -> int:
        """Return the position of a question; -1 if it is not asked."""
        if likely_place < len(self._samples) and self._samples[likely_place].id == id:
            return likely_place
        if self._table is None:
            digests = (text_digest(sample.id) for sample in self._samples)
            self._table = DigestTable(digests, size=len(self._samples))
        return self._table.find(text_digest(id))


def pairs_of(base: ScoredExam, arm: ScoredExam) -> SharedQuestions:
    """Return the questions that both have a record of, matched by id, in the order of the base."""
    places = QuestionPositions(arm)
    base_numbers, arm_numbers = array("I"), array("I")
    scores = PairedScores()
    clustered = base.exam.clustered or arm.exam.clustered
    clusters: list[str] = []
    names: dict[str, str] = {}
    """One string per cluster, shared by all its questions."""
    left_out: Counter[str] = Counter()
    only_in_base = shared = gradable = other_gold = 0
    worst = best = 0.0
    for number, base_question in enumerate(base):
        place = places.find(base_question.id, number)
        arm_question = arm.question(place) if place >= 0 else None
        if base_question.outcome is None or arm_question is None or arm_question.outcome is None:
            only_in_base += base_question.outcome is not None
            continue
        shared += 1
        other_gold += base_question.target != arm_question.target
        if base_question.score is not None and arm_question.score is not None:
            base_numbers.append(number)
            arm_numbers.append(place)
            scores.append(arm_question.score, base_question.score)
            if clustered:
                name = base_question.cluster or arm_question.cluster or base_question.id
                clusters.append(names.setdefault(name, name))
        else:
            outcome = base_question.outcome if base_question.score is None else arm_question.outcome
            left_out[outcome] += 1
            if "unlabelled" in (base_question.outcome, arm_question.outcome):
                continue  # This question never gets a grade.
            worst += arm_question.worst - base_question.best
            best += arm_question.best - base_question.worst
        gradable += 1
    bounds = None
    if gradable > len(scores):
        total_difference = math.fsum(arm_score - base_score for arm_score, base_score in scores)
        bounds = ((total_difference + worst) / gradable, (total_difference + best) / gradable)
    return SharedQuestions(
        base_numbers,
        arm_numbers,
        scores,
        clusters if clustered else None,
        left_out,
        only_in_base,
        arm.recorded - shared,
        bounds,
        other_gold,
    )


def count_unanswered(base: ScoredExam, arm: ScoredExam) -> int:
    """Return how many questions of both exams lack a record in one that was interrupted.

    These questions are not a random sample.
    """
    if not (base.job.missing or arm.job.missing):
        return 0
    places = QuestionPositions(arm)
    matched_questions = (
        (question, places.find(question.id, number)) for number, question in enumerate(base)
    )
    return sum(
        (question.outcome is None and base.job.missing > 0)
        or (arm.question(place).outcome is None and arm.job.missing > 0)
        for question, place in matched_questions
        if place >= 0
    )


class ChangedQuestions(Sequence[ChangedQuestion]):
    """The questions with different scores, in the order of the base; built on access.

    `texts` has those of them that include the question and both replies, by id.
    """

    def __init__(self, base: ScoredExam, arm: ScoredExam, pairs: SharedQuestions) -> None:
        self._base, self._arm, self._pairs = base, arm, pairs
        scores = enumerate(pairs.scores)
        self._places = array(
            "I", (place for place, (arm_score, base_score) in scores if arm_score != base_score)
        )
        self.texts: Mapping[str, ChangedQuestion] = {}

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> ChangedQuestion: ...
    @overload
    def __getitem__(self, index: slice) -> list[ChangedQuestion]: ...
    def __getitem__(self, index: int | slice) -> ChangedQuestion | list[ChangedQuestion]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        place = self._places[index]
        arm_score, base_score = self._pairs.scores[place]
        base_question = self._base.question(self._pairs.base[place])
        arm_question = self._arm.question(self._pairs.arm[place])
        assert base_question.outcome is not None
        assert arm_question.outcome is not None
        flip = ChangedQuestion(
            id=base_question.id,
            subset=base_question.subset,
            target=base_question.target,
            base=base_score,
            arm=arm_score,
            base_answer=base_question.answer,
            arm_answer=arm_question.answer,
            base_outcome=base_question.outcome,
            arm_outcome=arm_question.outcome,
        )
        return self.texts.get(flip.id, flip)


def load_flip_texts(
    base: ScoredExam, arm: ScoredExam, flips: Sequence[ChangedQuestion], limit: int
) -> dict[str, ChangedQuestion]:
    """Return up to `limit` flips in each direction, over all subsets, with their texts, by id."""
    gained_flips, lost_flips = (_spread_over_subsets(flips, limit, sign) for sign in (1, -1))
    flips_by_id = {
        flip.id: flip for direction_flips in (gained_flips, lost_flips) for flip in direction_flips
    }
    numbers = {id: n for n, id in enumerate(_sample_ids(base)) if id in flips_by_id}
    places = {id: n for n, id in enumerate(_sample_ids(arm)) if id in flips_by_id}
    base_answers = base.read_answers(set(numbers.values()))
    arm_answers = arm.read_answers(set(places.values()))
    empty_answer = StoredAnswer(Reply())

    def with_texts(flip: ChangedQuestion) -> ChangedQuestion:
        number, place = numbers[flip.id], places[flip.id]
        base_answer = base_answers.get(number, empty_answer)
        arm_answer = arm_answers.get(place, empty_answer)
        sample = restore_order(base.exam.samples[number], base_answer.order)
        choices = () if any(not text for text in sample.choices) else sample.choices
        if base_answer.order != arm_answer.order or all(text in sample.text for text in choices):
            # The two runs showed different orders, or the question includes the options.
            choices = ()
        return replace(
            flip,
            question=sample.text,
            choices=choices,
            base_reply=base_answer.reply.text,
            arm_reply=arm_answer.reply.text,
        )

    return {id: with_texts(flip) for id, flip in flips_by_id.items()}


def _sample_ids(scored_exam: ScoredExam) -> Iterator[str]:
    return (sample.id for sample in scored_exam.exam.samples)


def _spread_over_subsets(
    flips: Iterable[ChangedQuestion], limit: int, sign: int
) -> Iterator[ChangedQuestion]:
    """Yield up to `limit` flips of one direction: first one of each subset, then a second."""
    subsets: dict[str, list[ChangedQuestion]] = {}
    for flip in flips:
        if sign * (flip.arm - flip.base) > 0:
            subset_flips = subsets.setdefault(flip.subset, [])
            if len(subset_flips) < limit:
                subset_flips.append(flip)
    rounds = chain.from_iterable(zip_longest(*subsets.values()))
    return islice((flip for flip in rounds if flip is not None), limit)
