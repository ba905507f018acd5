"""Which question a row of a log answers, by the strongest key it has.

In this order: the question's own id; the position inside its subset; the question's exact text;
its text inside the prompt. Ids and positions are believed only where the text agrees.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keju.benchmarks.base import Exam
from keju.benchmarks.choices import as_shown
from keju.interop.imports.log import LogRow
from keju.types import LABELS, Sample

SEPARATORS = (") ", ". ", ": ", "、", "．", " ")
"""What stands between a label and its option; before the label an opening bracket may stand."""


def squeezed(text: str) -> str:
    """`text` with every run of white space as one blank."""
    return " ".join(text.split())


def order_of(row: LogRow, sample: Sample) -> tuple[int, ...] | None:
    """The permutation behind the options as `row` shows them, in terms of the data.

    As in `Sample.order`; empty where nothing was permuted. None where the options shown are not
    those of `sample`.
    """
    # Where the options stand in the question, "(A) first", no order of them is free.
    if not sample.choices or f"({LABELS[0]}) {sample.choices[0]}" in sample.text:
        return sample.order
    choices = [squeezed(choice) for choice in sample.choices]
    if row.choices:
        places = _places_of([squeezed(choice) for choice in row.choices], choices)
    else:
        places = _shown_places(row.prompt, squeezed(sample.text), choices)
    if places is None:
        return None
    before = sample.order or tuple(range(len(choices)))
    order = tuple(before[i] for i in places)
    return order if order != tuple(range(len(order))) else sample.order and order


def _places_of(shown: Sequence[str], choices: Sequence[str]) -> tuple[int, ...] | None:
    """For each option shown its place among `choices`; equal options keep their order."""
    if sorted(shown) != sorted(choices):
        return None
    left = list(range(len(choices)))
    return tuple(left.pop([choices[i] for i in left].index(option)) for option in shown)


def _shown_places(prompt: str, question: str, choices: Sequence[str]) -> tuple[int, ...] | None:
    """The order of the labelled options after the question; that of the data if none is shown."""
    tail = squeezed(prompt)
    tail = f" {tail[tail.rfind(question) + len(question) :]} " if question in tail else f" {tail} "
    shown = []
    for label in LABELS[: len(choices)]:
        fitting = [
            choice
            for choice in choices
            for separator in SEPARATORS
            for opening in (" ", " (")
            if f"{opening}{label}{separator}{choice} " in tail
        ]
        if fitting:  # the longest, since one option may begin like another
            shown.append(max(fitting, key=len))
    return _places_of(shown, choices) if shown else tuple(range(len(choices)))


OPTIONS = "\nOptions:"
"""Where the options begin in a question that holds them: ``Which?\\nOptions:\\n(A) one``."""
HEAD = 24
"""Characters by which a question is first looked for inside a prompt."""


class Match(NamedTuple):
    """A row with its question, or why there is none."""

    row: LogRow
    place: int | None
    """The position of the sample in the exam."""
    order: tuple[int, ...] = ()
    """The permutation under which the options were shown."""
    reason: str = ""


class Matcher:
    """Finds the questions of one exam."""

    def __init__(self, exam: Exam) -> None:
        self._exam = exam
        self._ids: dict[str, int] = {}
        self._places: dict[tuple[str, int], int] = {}
        self._texts: list[str] = []
        self._stems: list[str] = []
        self._by_text: dict[str, list[int]] = defaultdict(list)
        self._subsets: dict[str, list[int]] = defaultdict(list)
        self._heads: dict[str, list[int]] = defaultdict(list)
        self._taken: set[tuple[int, int]] = set()
        for index, sample in enumerate(exam.samples):
            self._ids[sample.id] = index
            self._places[plain(sample.subset), sample.index] = index
            self._subsets[plain(sample.subset)].append(index)
            text = squeezed(sample.text)
            stem = squeezed(sample.text.partition(OPTIONS)[0])
            self._texts.append(text)
            self._stems.append(stem)
            for form in {text, stem}:
                self._by_text[form].append(index)
            self._heads[stem[:HEAD]].append(index)
        self._lengths = sorted({len(head) for head in self._heads})

    def match(self, row: LogRow) -> Match:
        """The question of `row`, and the order in which its options were shown.

        Of several questions with the same text the first that no row has answered is taken.
        """
        subset = plain(row.subset) if plain(row.subset) in self._subsets else ""
        place = self._by_place(row, subset)
        likely = [place] if place is not None else []
        if not likely:  # the questions of the row's very text; else the one that ends last in it
            likely = self._within(self._by_text.get(squeezed(row.question), ()), subset)
        if not likely:
            likely = self._inside(squeezed(row.question or row.prompt), subset)
        fitting = [
            Match(row, index, order)
            for index in likely
            if (order := order_of(row, self._exam.samples[index])) is not None
        ]
        if fitting:
            fitting.sort(key=self._rank)
            self._taken.add((fitting[0].place or 0, row.epoch))
            return fitting[0]
        if likely:
            return Match(row, None, reason="its options are not those of the question")
        clue = row.keys or row.question or row.prompt
        return Match(row, None, reason="no such question" if clue else "it has no id and no text")

    def _rank(self, match: Match) -> tuple[bool, bool]:
        """Smaller for a question that is still free, and for one with the log's gold answer."""
        sample = as_shown(self._exam.samples[match.place or 0], match.order)
        other = bool(match.row.target) and gold(match.row.target) != gold(sample.target)
        return other, (match.place or 0, match.row.epoch) in self._taken

    def _by_place(self, row: LogRow, subset: str) -> int | None:
        """The question by its id or position, where the text agrees."""
        try:
            index = self._ids.get(self._exam.locate(row.keys)) if row.keys else None
        except KeyError:
            index = None
        if index is not None and self._agrees(row, index):
            return index
        if not subset and len(self._subsets) == 1:
            (subset,) = self._subsets
        if row.index is not None and (subset, row.index) in self._places:
            index = self._places[subset, row.index]
            return index if self._agrees(row, index, certain=True) else None
        return None

    def _agrees(self, row: LogRow, index: int, *, certain: bool = False) -> bool:
        """Whether the row's text is that of the question; with `certain` it must have one."""
        if not row.question and not row.prompt:
            return not certain
        asked = squeezed(row.question or row.prompt)
        return self._texts[index] in asked or self._stems[index] in asked

    def _within(self, indices: Iterable[int], subset: str) -> list[int]:
        return [i for i in indices if not subset or plain(self._exam.samples[i].subset) == subset]

    def _inside(self, asked: str, subset: str) -> list[int]:
        """The questions that end last in `asked`, after all worked examples."""
        begun = {
            index
            for length in self._lengths
            for start in range(len(asked) - length + 1)
            for index in self._heads.get(asked[start : start + length], ())
        }
        ends: dict[int, int] = {}
        for index in self._within(sorted(begun), subset):
            for form in (self._stems[index], self._texts[index]):  # the whole text counts more
                if form and (at := asked.rfind(form)) >= 0:
                    ends[index] = at + len(form)
        last = max(ends.values(), default=0)
        return [index for index, end in ends.items() if end == last] if last else []


def plain(subset: str) -> str:
    """A subset's name in one spelling."""
    return subset.casefold().replace("_", " ").replace("-", " ").strip()


def gold(target: str) -> str:
    """A gold answer in one spelling, to see whether two data sets agree."""
    return target.strip().strip("()").casefold()
