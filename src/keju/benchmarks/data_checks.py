"""Check the questions of users' exams and plug-ins for faults that cost a model points.

Published exams have lists of known errors instead (`Exam.errata`).
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
"""Maximum number of questions checked, so that generated exams do not use much memory."""

Find = Callable[[int], tuple[Sample, str]]
"""Returns an earlier question by its number, and its place in the data."""


class QuestionFault(NamedTuple):
    """The first question with a fault, and the number of questions with it."""

    n: int
    where: str
    other: str = ""
    """The place of the contradicting question, or the labels of the equal options."""

    def count_again(self) -> QuestionFault:
        """Return the same fault with one more occurrence."""
        return self._replace(n=self.n + 1)


def digest_content(text: str, choices: Sequence[str], fields: Mapping[str, Any]) -> bytes:
    """Return a digest of a question's text, its options, and the fields templates can use."""
    field_texts = (f"{name}={fields[name]}" for name in sorted(fields))
    return text_digest("\1".join((text, *choices, *field_texts)))


def find_equal_options(sample: Sample) -> str:
    """Return the labels of the options with the text of the right one; empty if only that one has
    it."""
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
    """Return the right answers of a sample; `accepted` is the metadata key of several answers."""
    answers = sample.metadata.get(accepted) or (sample.target,)
    return frozenset(plain for answer in answers if (plain := str(answer).strip().casefold()))


class QuestionChecks:
    """Counts the faults of an exam's questions while they are read."""

    def __init__(self, exam: str, accepted: str = "") -> None:
        """`accepted` is the metadata key that lists the right answers, if there are several."""
        self._exam = exam
        self._accepted = accepted
        self._answers = array("I")
        """A checksum of the right answers of each question."""
        self._faults: dict[str, QuestionFault] = {}

    def check(self, sample: Sample, where: str, first_number: int, find: Find) -> bool:
        """Check the next question; return whether it contradicts the first one with the same
        content.

        `first_number` is the number of the first question with this content, possibly this one.
        `find` returns a question by its number, and its place.
        """
        answers = right_answers(sample, self._accepted)
        checksum = crc32("\0".join(sorted(answers)).encode("utf-8", "replace"))
        number, is_contrary = len(self._answers), False
        self._answers.append(checksum)
        if first_number != number and answers and self._answers[first_number] != checksum:
            earlier, earlier_place = find(first_number)
            right = right_answers(earlier, self._accepted)
            if right and right.isdisjoint(answers):
                self._count("two_right_answers", where, earlier_place)
                is_contrary = True
        if labels := find_equal_options(sample):
            self._count("right_option_twice", where, labels)
        return is_contrary

    def check_shots(self, shots: Iterable[Sample], samples: Iterable[Sample]) -> None:
        """Count the questions that are also worked examples."""
        shots_by_content: dict[tuple[str, tuple[str, ...]], list[Sample]] = {}
        for shot in shots:
            shots_by_content.setdefault((shot.text.strip(), shot.choices), []).append(shot)
        for sample in samples if shots_by_content else ():
            equal_shots = shots_by_content.get((sample.text.strip(), sample.choices), ())
            if any(_has_same_fields(sample.metadata, shot.metadata) for shot in equal_shots):
                self._count("shots_are_questions", sample.id)

    def _count(self, code: str, where: str, detail: str = "") -> None:
        fault = self._faults.get(code)
        self._faults[code] = (
            fault.count_again() if fault is not None else QuestionFault(1, where, detail)
        )

    def notices(self) -> Iterator[Notice]:
        """Yield one notice for each kind of fault."""
        for code, fault in self._faults.items():
            yield Notice(code, {"exam": self._exam, **fault._asdict()})


def _has_same_fields(left_fields: Mapping[str, Any], right_fields: Mapping[str, Any]) -> bool:
    """Whether two samples agree in all metadata that both have, such as a passage to read."""
    for name in left_fields.keys() & right_fields.keys():
        left_value, right_value = left_fields[name], right_fields[name]
        are_both = isinstance(left_value, Mapping) and isinstance(right_value, Mapping)
        if not (
            _has_same_fields(left_value, right_value) if are_both else left_value == right_value
        ):
            return False
    return True


def check_samples(
    exam: str, samples: Sequence[Sample], shots: Iterable[Sample] = ()
) -> list[Notice]:
    """Return notices about the questions of an exam that a plug-in makes."""
    checks, contents = QuestionChecks(exam), DigestTable()

    def find(number: int) -> tuple[Sample, str]:
        return samples[number], samples[number].id

    for number, sample in enumerate(islice(samples, MOST_CHECKED)):
        first_number = contents.add(digest_content(sample.text, sample.choices, sample.metadata))
        if first_number != number:
            # The table must number its rows like the samples.
            contents.add(text_digest(f"\0{number}"))
        checks.check(sample, sample.id, first_number, find)
    checks.check_shots(shots, islice(samples, MOST_CHECKED))
    return [*checks.notices()]
