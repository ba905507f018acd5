"""Checks over the questions of own exams and plug-ins: faults that cost a model points.

Published exams have lists of their known errors instead (`Exam.errata`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from zlib import crc32

from keju.benchmarks.samples import DigestTable, text_digest
from keju.errors import Notice
from keju.types import Sample

MOST_CHECKED = 200_000
"""Questions of a generated exam that are looked at, so that memory stays flat."""

Find = Callable[[int], tuple[Sample, str]]
"""Gives an earlier question by its number, and its place."""


class QuestionFault(NamedTuple):
    """The first question with a fault, and how many have it."""

    n: int
    where: str
    other: str = ""
    """The place of the question that it contradicts, or the labels of its equal options."""

    def again(self) -> QuestionFault:
        """Return the same fault, seen once more."""
        return self._replace(n=self.n + 1)


def content_of(text: str, choices: Sequence[str], fields: Mapping[str, Any]) -> bytes:
    """Return a digest of what is asked: the text, its options, and what templates can name."""
    named = (f"{name}={fields[name]}" for name in sorted(fields))
    return text_digest("\1".join((text, *choices, *named)))


def equal_options(sample: Sample) -> str:
    """Return the labels of options that are the same text as the right one; empty if none is."""
    label = sample.target.strip("()")
    if len(label) != 1 or label not in sample.labels or not sample.choices:
        return ""
    texts = [choice.strip() for choice in sample.choices]
    right = texts[sample.labels.index(label)]
    if texts.count(right) < 2:
        return ""
    labels = zip(sample.labels, texts, strict=True)
    return ", ".join(label for label, text in labels if text == right)


def right_answers(sample: Sample, accepted: str) -> frozenset[str]:
    """Return the right answers of a sample; `accepted` is the key of the metadata for several."""
    answers = sample.metadata.get(accepted) or (sample.target,)
    return frozenset(plain for each in answers if (plain := str(each).strip().casefold()))


class QuestionChecks:
    """What is wrong with the questions of an exam, counted while they are read."""

    def __init__(self, exam: str, accepted: str = "") -> None:
        """`accepted` is the key of the metadata that lists the right answers, if several are."""
        self._exam = exam
        self._accepted = accepted
        self._answers = array("I")
        """A checksum of the right answers of each question."""
        self._faults: dict[str, QuestionFault] = {}

    def see(self, sample: Sample, where: str, first: int, find: Find) -> bool:
        """Look at the next question; return whether it contradicts the first that asks the same.

        `first` is the number of the first question that asks the same, perhaps its own; `find`
        gives the question of a number and its place.
        """
        answers = right_answers(sample, self._accepted)
        checksum = crc32("\0".join(sorted(answers)).encode("utf-8", "replace"))
        number, is_contrary = len(self._answers), False
        self._answers.append(checksum)
        if first != number and answers and self._answers[first] != checksum:
            earlier, other = find(first)
            right = right_answers(earlier, self._accepted)
            if right and right.isdisjoint(answers):
                self._count("two_right_answers", where, other)
                is_contrary = True
        if labels := equal_options(sample):
            self._count("right_option_twice", where, labels)
        return is_contrary

    def see_shots(self, shots: Iterable[Sample], samples: Iterable[Sample]) -> None:
        """Count the questions that are also worked examples."""
        shown: dict[tuple[str, tuple[str, ...]], list[Sample]] = {}
        for shot in shots:
            shown.setdefault((shot.text.strip(), shot.choices), []).append(shot)
        for sample in samples if shown else ():
            alike = shown.get((sample.text.strip(), sample.choices), ())
            if any(_has_same_fields(sample.metadata, shot.metadata) for shot in alike):
                self._count("shots_are_questions", sample.id)

    def _count(self, code: str, where: str, other: str = "") -> None:
        fault = self._faults.get(code)
        self._faults[code] = fault.again() if fault is not None else QuestionFault(1, where, other)

    def notices(self) -> Iterator[Notice]:
        """Yield one notice for each kind of fault."""
        for code, fault in self._faults.items():
            yield Notice(code, {"exam": self._exam, **fault._asdict()})


def _has_same_fields(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two samples agree in all metadata that both have, such as a passage to read."""
    for name in first.keys() & second.keys():
        left, right = first[name], second[name]
        are_both = isinstance(left, Mapping) and isinstance(right, Mapping)
        if not (_has_same_fields(left, right) if are_both else left == right):
            return False
    return True


def sample_notices(
    exam: str, samples: Sequence[Sample], shots: Iterable[Sample] = ()
) -> list[Notice]:
    """Return what is wrong with the questions of an exam that a plug-in makes."""
    checks, contents = QuestionChecks(exam), DigestTable()

    def find(number: int) -> tuple[Sample, str]:
        return samples[number], samples[number].id

    for number, sample in enumerate(islice(samples, MOST_CHECKED)):
        first = contents.add(content_of(sample.text, sample.choices, sample.metadata))
        if first != number:
            contents.add(text_digest(f"\0{number}"))  # so that its numbers are the samples'
        checks.see(sample, sample.id, first, find)
    checks.see_shots(shots, islice(samples, MOST_CHECKED))
    return [*checks.notices()]
