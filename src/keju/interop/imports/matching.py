"""Finds the question that a row of a log answers, by the strongest available key.

The keys, in order: the question's own id; the position inside its subset; the exact text of the
question; its text inside the prompt. Ids and positions count only if the text agrees.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from keju.benchmarks.base import Exam, Subset
from keju.benchmarks.choices import restore_order
from keju.benchmarks.samples import DigestTable, text_digest
from keju.interop.imports.log import LogRow
from keju.types import LABELS, Sample

SEPARATORS = (") ", ". ", ": ", "、", "．", " ")
"""Separators between a label and its option. An opening bracket may come before the label."""


def collapse_whitespace(text: str) -> str:
    """Return `text` with every run of white space as one space."""
    return " ".join(text.split())


def find_order(row: LogRow, sample: Sample) -> tuple[int, ...] | None:
    """Return the permutation of the options in `row`, relative to the data.

    The format is that of `Sample.order`; it is empty if nothing was permuted. Return None if the
    options are not those of `sample`.
    """
    # If the question contains its options, as in "(A) first", their order is fixed.
    if not sample.choices or f"({LABELS[0]}) {sample.choices[0]}" in sample.text:
        return sample.order
    choices = [collapse_whitespace(choice) for choice in sample.choices]
    if row.choices:
        places = _find_permutation([collapse_whitespace(choice) for choice in row.choices], choices)
    else:
        places = _find_displayed_order(row.prompt, collapse_whitespace(sample.text), choices)
    if places is None:
        return None
    sample_order = sample.order or tuple(range(len(choices)))
    order = tuple(sample_order[i] for i in places)
    return order if order != tuple(range(len(order))) else sample.order and order


def _find_permutation(
    displayed_options: Sequence[str], choices: Sequence[str]
) -> tuple[int, ...] | None:
    """Return the index in `choices` of each displayed option. Equal options keep their order."""
    if sorted(displayed_options) != sorted(choices):
        return None
    remaining_indices = list(range(len(choices)))
    return tuple(
        remaining_indices.pop([choices[i] for i in remaining_indices].index(option))
        for option in displayed_options
    )


def _find_displayed_order(
    prompt: str, question: str, choices: Sequence[str]
) -> tuple[int, ...] | None:
    """Return the order of the labelled options after the question; the data's if none are shown."""
    tail = collapse_whitespace(prompt)
    tail = f" {tail[tail.rfind(question) + len(question) :]} " if question in tail else f" {tail} "
    displayed_options = []
    for label in LABELS[: len(choices)]:
        matching_choices = [
            choice
            for choice in choices
            for separator in SEPARATORS
            for opening in (" ", " (")
            if f"{opening}{label}{separator}{choice} " in tail
        ]
        if matching_choices:  # take the longest, because one option may begin like another
            displayed_options.append(max(matching_choices, key=len))
    return (
        _find_permutation(displayed_options, choices)
        if displayed_options
        else tuple(range(len(choices)))
    )


OPTIONS = "\nOptions:"
"""The start of the options in a question that contains them: ``Which?\\nOptions:\\n(A) one``."""
HEAD = 24
"""The number of characters that are used to find a question inside a prompt."""
FILTER = 1 << 24
"""The number of bits of a filter that rejects texts that are not a head."""


class RowMatch(NamedTuple):
    """A row with its question, or the reason why there is none."""

    row: LogRow
    place: int | None
    """The position of the sample in the exam."""
    order: tuple[int, ...] = ()
    """The permutation with which the options were shown."""
    reason: str = ""
    """A code of the catalogues."""
    number: int = -1
    """The number of the question in its epoch, in the order in which they were first matched."""


class QuestionMatcher:
    """Finds the questions of one exam. It stores only digests of them.

    Each index is built when it is first needed, because many logs have an id in every row.
    """

    def __init__(self, exam: Exam) -> None:
        self._exam = exam
        self._subsets: dict[str, list[Subset]] = defaultdict(list)
        for subset in exam.subsets:
            if len(subset):
                self._subsets[normalize_subset(subset.name)].append(subset)
        self._answered = DigestTable(size=len(exam.samples))

    @cached_property
    def _ids(self) -> DigestTable:
        samples = self._exam.samples
        return DigestTable((text_digest(sample.id) for sample in samples), size=len(samples))

    @cached_property
    def _texts(self) -> QuestionTexts:
        return QuestionTexts(self._exam.samples)

    @cached_property
    def _places(self) -> dict[Subset, array[int]]:
        """The positions of the questions in each subset, as far as they were needed."""
        return {}

    def match(self, row: LogRow) -> RowMatch:
        """Return the question of `row`, and the order in which its options were shown.

        If several questions have the same text, the first without an answer is used.
        """
        candidates = self._find_candidates(row)
        matches = [
            RowMatch(row, index, order)
            for index in candidates
            if (order := find_order(row, self._exam.samples[index])) is not None
        ]
        if matches:
            if len(matches) > 1:
                matches.sort(key=self._rank)
            return matches[0]._replace(number=self._answered.add(_question_key(matches[0])))
        if candidates:
            return RowMatch(row, None, reason="import_other_options")
        has_key = row.keys or row.question or row.prompt
        return RowMatch(
            row, None, reason="import_no_question" if has_key else "import_nameless_row"
        )

    def _find_candidates(self, row: LogRow) -> list[int]:
        """Return the question of the row's key, else those with its text, else those in it."""
        name = normalize_subset(row.subset)
        subset = name if name in self._subsets else ""
        place = self._find_by_key(row, subset)
        if place is not None:
            return [place]
        same_text = self._texts.find_exact(collapse_whitespace(row.question))
        return self._filter_by_subset(same_text, subset) or self._find_in_text(
            collapse_whitespace(row.question or row.prompt), subset
        )

    def _rank(self, match: RowMatch) -> tuple[bool, bool]:
        """Return a smaller key for a question with the log's gold answer, and for an unanswered
        one."""
        sample = restore_order(self._exam.samples[match.place or 0], match.order)
        has_other_gold = bool(match.row.target) and normalize_gold(
            match.row.target
        ) != normalize_gold(sample.target)
        return has_other_gold, self._answered.find(_question_key(match)) >= 0

    def _find_by_key(self, row: LogRow, subset: str) -> int | None:
        """Return the question by its id or position, if the text agrees."""
        index = None
        if row.keys:
            with suppress(KeyError):
                index = self._ids.find(text_digest(self._exam.locate(row.keys)))
        if index is not None and index >= 0 and self._agrees(row, index):
            return index
        if not subset and len(self._subsets) == 1:
            (subset,) = self._subsets
        if row.index is not None and subset in self._subsets:
            index = self._find_by_position(subset, row.index)
            if index is not None:
                return index if self._agrees(row, index, needs_text=True) else None
        return None

    def _find_by_position(self, name: str, position: int) -> int | None:
        """Return the question with this position in a subset."""
        samples = self._exam.samples
        for subset in self._subsets[name]:
            index = subset.start + position
            if 0 <= position < len(subset) and samples[index].index == position:
                return index  # nothing is left out before it
            if subset not in self._places:
                rows = range(subset.start, subset.stop)
                self._places[subset] = array("q", (samples[row].index for row in rows))
            with suppress(ValueError, OverflowError):
                return subset.start + _index(self._places[subset], position)
        return None

    def _agrees(self, row: LogRow, index: int, *, needs_text: bool = False) -> bool:
        """Whether the row has the question's text. With `needs_text`, a row without text does not
        agree."""
        if not row.question and not row.prompt:
            return not needs_text
        row_text = collapse_whitespace(row.question or row.prompt)
        return any(form in row_text for form in question_texts(self._exam.samples[index]))

    def _filter_by_subset(self, indices: Iterable[int], subset: str) -> list[int]:
        return [
            i
            for i in indices
            if not subset or normalize_subset(self._exam.samples[i].subset) == subset
        ]

    def _find_in_text(self, row_text: str, subset: str) -> list[int]:
        """Return the questions that end last in `row_text`, after all worked examples."""
        end_positions: dict[int, int] = {}
        for index in self._filter_by_subset(sorted(self._texts.find_contained(row_text)), subset):
            for form in question_texts(self._exam.samples[index]):  # the whole text counts more
                if form and (start := row_text.rfind(form)) >= 0:
                    end_positions[index] = start + len(form)
        last_end = max(end_positions.values(), default=0)
        return (
            [index for index, end in end_positions.items() if end == last_end] if last_end else []
        )


def _index(numbers: array[int], number: int) -> int:
    """Return the index of a number; ValueError if it is missing. Numbers ascend unless shuffled."""
    place = bisect_left(numbers, number)
    if place < len(numbers) and numbers[place] == number:
        return place
    return numbers.index(number)


def _question_key(match: RowMatch) -> bytes:
    """Return a key that is different for questions of different epochs."""
    return text_digest(f"{match.place} {match.row.epoch}")


def question_texts(sample: Sample) -> tuple[str, str]:
    """Return a question's texts in logs: without the options that it contains, and complete."""
    return collapse_whitespace(sample.text.partition(OPTIONS)[0]), collapse_whitespace(sample.text)


class QuestionTexts:
    """The questions of an exam by their texts, with about fifty bytes each."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples
        self._table = DigestTable(size=len(samples))
        self._last_entries = array("I")
        """By text: its last entry, plus 1."""
        self._entries = array("I")
        """By entry: the question."""
        self._previous_entries = array("I")
        """By entry: the previous entry with the same text, plus 1; 0 for the first."""
        for index, sample in enumerate(samples):
            for form in dict.fromkeys(question_texts(sample)):
                number = self._table.add(text_digest(form))
                if number == len(self._last_entries):
                    self._last_entries.append(0)
                self._previous_entries.append(self._last_entries[number])
                self._entries.append(index)
                self._last_entries[number] = len(self._entries)

    def find_exact(self, text: str) -> list[int]:
        """Return the questions with exactly this text, in their order."""
        number, indices = self._table.find(text_digest(text)), []
        entry = self._last_entries[number] if number >= 0 else 0
        while entry:
            indices.append(self._entries[entry - 1])
            entry = self._previous_entries[entry - 1]
        return indices[::-1]

    def find_contained(self, text: str) -> set[int]:
        """Return the questions whose text is contained in `text`.

        They are found by their heads, then by their lengths. For example, ``What is 2 plus 2?`` and
        ``What is 2 plus 33?`` have the same head. Where this head occurs, texts of both lengths, 17
        and 18, are looked up.
        """
        indices: set[int] = set()
        heads = self._heads
        for size in heads.sizes:
            for start in range(len(text) - size + 1):
                for length in heads.lengths_behind(text[start : start + size]):
                    if start + length <= len(text):
                        indices.update(self.find_exact(text[start : start + length]))
        return indices

    @cached_property
    def _heads(self) -> QuestionOpenings:
        return QuestionOpenings(self._samples)


class QuestionOpenings:
    """The beginnings of questions, and the lengths of the questions with each beginning."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._filter = bytearray(FILTER // 8)
        """A bit for the hash of each head. It rejects nearly all texts that are not a head."""
        self._table = DigestTable(size=len(samples))
        self._masks = array("Q")
        """By head: a bit for each length of its texts, modulo 64."""
        lengths: set[int] = set()
        sizes: set[int] = set()
        for sample in samples:
            texts = question_texts(sample)
            head = texts[0][:HEAD]
            place = hash(head) % FILTER
            self._filter[place >> 3] |= 1 << (place & 7)
            number = self._table.add(text_digest(head))
            if number == len(self._masks):
                self._masks.append(0)
            sizes.add(len(head))
            for form in texts:
                lengths.add(len(form))
                self._masks[number] |= 1 << len(form) % 64
        self.sizes = sorted(sizes)
        """The lengths of heads: `HEAD`, or less for shorter questions."""
        self._lengths = [sorted(n for n in lengths if n % 64 == bit) for bit in range(64)]

    def lengths_behind(self, head: str) -> Iterator[int]:
        """Yield the possible lengths of texts with this head."""
        place = hash(head) % FILTER
        if not self._filter[place >> 3] >> (place & 7) & 1:
            return
        number = self._table.find(text_digest(head))
        mask = self._masks[number] if number >= 0 else 0
        for bit, lengths in enumerate(self._lengths):
            if mask >> bit & 1:
                yield from lengths


def normalize_subset(subset: str) -> str:
    """Return a subset's name in one spelling."""
    return subset.casefold().replace("_", " ").replace("-", " ").strip()


def normalize_gold(target: str) -> str:
    """Return a gold answer in one spelling, to compare two data sets."""
    return target.strip().strip("()").casefold()
