"""Loading BBH: the official JSON files or a hub's tables, read directly from a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import msgspec

from keju.benchmarks.base import Subset
from keju.benchmarks.bbh.facts import CHOICE_SUBSETS, SUBSETS, Kind, fault_of
from keju.benchmarks.published import Count
from keju.errors import DataError
from keju.sources.folder import DataFolder
from keju.types import LABELS, Sample

EXAMPLE_FOLDERS = ("cot-prompts", "cot_prompts", "../cot-prompts", "../cot_prompts")
ANSWER_ONLY_FILES = ("answer_only_prompts.json", "../golden/bbh/answer_only_prompts.json")
DASHES = "-----"
"""The line of a chain-of-thought file that ends the canary; neither enters a prompt."""

_OPTION = re.compile(r"^\(([A-Z])\) ?(.*)$", re.MULTILINE)
_TARGETS: dict[Kind, re.Pattern[str]] = {
    "bool": re.compile(r"True|False"),
    "yes_no": re.compile(r"yes|no", re.IGNORECASE),
    "valid": re.compile(r"valid|invalid"),
    "integer": re.compile(r"[-+]?\d+"),
    "brackets": re.compile(r"[()\[\]{}<> ]+"),
    "words": re.compile(r".+", re.DOTALL),
}
_MULTIPLE_CHOICE = {"task_type": "multiple_choice"}
_FREE_FORM = {"task_type": "free_form"}


class _Row(msgspec.Struct):
    input: str
    target: str


class Questions(msgspec.Struct):
    """The questions of the chosen subsets, and what is odd about their files."""

    samples: list[Sample]
    subsets: list[Subset]
    counts: list[Count]

    @property
    def notes(self) -> list[str]:
        """A line for each subset whose number of rows is not the published one."""
        return [
            f"{count.name}: {count.rows} rows, published are {count.published}"
            for count in self.counts
            if count.differs
        ]


def load_questions(folder: DataFolder, names: Sequence[str]) -> Questions:
    """Read the subsets `names`; a missing or broken file or row is a DataError that names it.

    A number of rows that is not the published one is noted: edited data may be what is wanted.
    """
    loaded = Questions([], [], [])
    for name in names:
        rows = _read_rows(folder, name)
        start = len(loaded.samples)
        where = folder.name_of(name)
        for sample in _samples(name, rows):
            _check_row(sample, f"{where}, row {sample.index + 1}")
            loaded.samples.append(sample)
        loaded.subsets.append(Subset(name, start, len(loaded.samples)))
        loaded.counts.append(Count(name, len(rows), SUBSETS[name].rows))
    return loaded


def _check_row(sample: Sample, where: str) -> None:
    """Refuse a row that cannot be examined; the published rows that are faulty may stay."""
    if not sample.text.strip():
        raise DataError(f"{where}: the input is empty")
    if not sample.target.strip():
        raise DataError(f"{where}: the target is empty")
    kind = SUBSETS[sample.subset].kind
    if kind == "choice":
        if sample.target not in [f"({label})" for label in sample.labels] and not fault_of(sample):
            shown = ", ".join(f"({label})" for label in sample.labels) or "none"
            raise DataError(
                f"{where}: the target '{sample.target}' is not one of its options ({shown})"
            )
    elif not _TARGETS[kind].fullmatch(sample.target.strip()):
        raise DataError(f"{where}: the target '{sample.target}' is no answer of {sample.subset}")


def _read_rows(folder: DataFolder, name: str) -> list[_Row]:
    if not folder.has(name):
        raise DataError(
            f"bbh: no questions for '{name}': {folder.path} has neither bbh/{name}.json nor"
            f" {name}.json (keju data pull bbh, or point --data-dir at the right folder)"
        )
    where = folder.name_of(name)
    try:
        rows = msgspec.convert(list(folder.rows(name)), type=list[_Row])
    except msgspec.ValidationError as error:
        raise DataError(f"{where} is not a BBH file: {error}") from None
    if not rows:
        raise DataError(f"{where} holds no examples")
    return rows


def _samples(name: str, rows: list[_Row]) -> Iterator[Sample]:
    choice = name in CHOICE_SUBSETS
    metadata = _MULTIPLE_CHOICE if choice else _FREE_FORM
    for index, row in enumerate(rows):
        yield Sample(
            id=f"bbh_{name}_{index}",
            subset=name,
            index=index,
            text=row.input,
            target=row.target,
            choices=parse_options(row.input) if choice else (),
            metadata=metadata,
        )


def parse_options(text: str) -> tuple[str, ...]:
    """The options that stand in a question as lines ``(A) text``, lettered from A on."""
    options: list[str] = []
    for letter, option in _OPTION.findall(text):
        if len(options) < len(LABELS) and letter == LABELS[len(options)]:
            options.append(option)
    return tuple(options)


def load_worked_examples(folder: DataFolder, name: str) -> str:
    """The task sentence and the three worked examples of a subset, without canary and dashes."""
    path = _find(folder, [_join(place, f"{name}.txt") for place in EXAMPLE_FOLDERS])
    if path is None:
        raise DataError(
            f"bbh: no worked examples for '{name}': {folder.path} has no cot-prompts/{name}.txt"
            " (few_shot_num 0 does without)"
        )
    head, dashes, body = folder.text(path).replace("\r\n", "\n").partition(f"{DASHES}\n")
    if not dashes or (head and not head.endswith("\n")):
        raise DataError(f"{folder.path / path}: no line '{DASHES}' after the canary")
    if not body.strip():
        raise DataError(
            f"{folder.path / path}: nothing after '{DASHES}', so there are no worked examples"
            " (few_shot_num 0 does without)"
        )
    return body.strip()


def load_answer_only(folder: DataFolder, names: Sequence[str]) -> dict[str, str]:
    """The published answer-only prompts of the subsets `names`."""
    path = _find(folder, ANSWER_ONLY_FILES)
    if path is None:
        raise DataError(
            "bbh: protocol answer-only needs answer_only_prompts.json, a JSON object of subset to"
            f" prompt text, in {folder.path}"
        )
    try:
        texts = msgspec.json.decode(folder.bytes(path), type=dict[str, str])
    except msgspec.DecodeError as error:
        raise DataError(f"{folder.path / path} is no object of texts: {error}") from None
    missing = [name for name in names if name not in texts]
    if missing:
        raise DataError(f"{folder.path / path} has no prompt for '{missing[0]}'")
    empty = [name for name in names if not texts[name].strip()]
    if empty:
        raise DataError(f"{folder.path / path}: the prompt for '{empty[0]}' is empty")
    return {name: texts[name].strip() for name in names}


def _join(place: str, name: str) -> str:
    return str(PurePosixPath(place) / name)


def _find(folder: DataFolder, candidates: Sequence[str]) -> str | None:
    return next((name for name in candidates if folder.exists(name)), None)
