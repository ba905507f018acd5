"""Loading BBH: the official JSON files or a hub's tables, read directly from a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from keju.benchmarks.bbh.facts import CHOICE_SUBSETS, SUBSETS, Kind, fault_of
from keju.errors import DataError
from keju.sources.folder import DataFolder
from keju.types import LABELS, Sample

EXAMPLE_FOLDERS = ("cot-prompts", "cot_prompts", "../cot-prompts", "../cot_prompts")
ANSWER_ONLY_FILES = ("answer_only_prompts.json", "../golden/bbh/answer_only_prompts.json")
DASHES = "-----"
"""The line of a chain-of-thought file that ends the canary; neither enters a prompt."""

# A line `(B) a text` of a question.
_OPTION = re.compile(r"^\(([A-Z])\) ?(.*)$", re.MULTILINE)
# What a target of each kind looks like: `True`; `Yes`; `invalid`; `-48`; `] ) >`; `apple pear`.
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
    target: str | None = None


def load_questions(
    folder: DataFolder, names: Sequence[str], *, unlabelled: bool = False
) -> Iterator[Sample]:
    """Read the subsets `names`; a missing or broken file or row is a DataError that names it.

    With `unlabelled` a row may be without a target.
    """
    for name in names:
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
        choice = name in CHOICE_SUBSETS
        for index, row in enumerate(rows):
            sample = Sample(
                id=f"bbh_{name}_{index}",
                subset=name,
                index=index,
                text=row.input,
                target=row.target or "",
                choices=parse_options(row.input) if choice else (),
                metadata=_MULTIPLE_CHOICE if choice else _FREE_FORM,
            )
            if not unlabelled or sample.target.strip():
                check_row(sample, f"{where}, row {index + 1}")
            yield sample


def check_row(sample: Sample, where: str) -> None:
    """Refuse a row that cannot be examined; the published rows that are faulty may stay."""
    if not sample.text.strip():
        raise DataError(f"{where}: the input is empty")
    if not sample.target.strip():
        raise DataError(f"{where}: the target is empty")
    kind = SUBSETS[sample.subset].kind
    if kind == "choice":
        labels = [f"({label})" for label in sample.labels]
        if sample.target not in labels and not fault_of(sample):
            options = ", ".join(labels) or "none"
            raise DataError(
                f"{where}: the target '{sample.target}' is not one of its options ({options})"
            )
    elif not _TARGETS[kind].fullmatch(sample.target.strip()):
        raise DataError(f"{where}: the target '{sample.target}' is no answer of {sample.subset}")


def parse_options(text: str) -> tuple[str, ...]:
    """The options that stand in a question as lines ``(A) text``, lettered from A on."""
    options: list[str] = []
    for letter, option in _OPTION.findall(text):
        if len(options) < len(LABELS) and letter == LABELS[len(options)]:
            options.append(option)
    return tuple(options)


def load_worked_examples(folder: DataFolder, names: Sequence[str]) -> dict[str, str]:
    """The task sentence and the three worked examples of subsets, without canary and dashes."""
    texts = {}
    for name in names:
        path = _find(folder, [f"{place}/{name}.txt" for place in EXAMPLE_FOLDERS])
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
        texts[name] = body.strip()
    return texts


def load_answer_only(folder: DataFolder, names: Sequence[str]) -> dict[str, str]:
    """The published answer-only prompts of the subsets `names`."""
    path = _find(folder, ANSWER_ONLY_FILES)
    if path is None:
        raise DataError(
            "bbh: protocol answer-only needs answer_only_prompts.json, a JSON object of subset to"
            f" prompt text, in {folder.path}"
        )
    try:
        texts = msgspec.convert(folder.json(path), type=dict[str, str])
    except msgspec.ValidationError as error:
        raise DataError(f"{folder.path / path} is no object of texts: {error}") from None
    for name in names:
        if name not in texts:
            raise DataError(f"{folder.path / path} has no prompt for '{name}'")
    for name in names:
        if not texts[name].strip():
            raise DataError(f"{folder.path / path}: the prompt for '{name}' is empty")
    return {name: texts[name].strip() for name in names}


def _find(folder: DataFolder, candidates: Sequence[str]) -> str | None:
    return next((name for name in candidates if folder.exists(name)), None)
