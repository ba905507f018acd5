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
ANSWER_ONLY_FILES = (
    "answer_only_prompts.json",
    "../answer_only_prompts.json",
    "../golden/bbh/answer_only_prompts.json",
)
FRESH_MANIFEST = "fresh.json"
"""What ``keju fresh`` writes beside its questions, in the folder itself or the one above."""
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
MULTIPLE_CHOICE = {"task_type": "multiple_choice"}
FREE_FORM = {"task_type": "free_form"}


class _Row(msgspec.Struct):
    input: str
    target: str | None = None


class FreshFacts(msgspec.Struct, kw_only=True):
    """What fresh questions in BBH's layout were made of."""

    keju: str = ""
    generator: int = 0
    seed: int = 0
    n: int = 0
    difficulty: float = 1.0
    lang: str = ""
    subsets: list[str] = []
    sha256: str = ""
    """Of all questions and targets."""
    files: dict[str, str] = {}
    """Relative path to SHA-256 of each file."""


def fresh_facts(folder: DataFolder) -> FreshFacts | None:
    """What ``keju fresh`` says of the questions in a folder; None where it did not write them."""
    name = _find(folder, [FRESH_MANIFEST, f"../{FRESH_MANIFEST}"])
    if name is None:
        return None
    try:
        return msgspec.json.decode(folder.bytes(name), type=FreshFacts)
    except msgspec.DecodeError as error:
        raise DataError("bbh.no_file", where=folder.path / name, problem=error) from None


def load_questions(
    folder: DataFolder, names: Sequence[str], *, unlabelled: bool = False
) -> Iterator[Sample]:
    """Read the subsets `names`; a missing or broken file or row is a DataError that names it.

    With `unlabelled` a row may be without a target.
    """
    for name in names:
        if not folder.has(name):
            raise DataError("bbh.no_questions", name=name, path=folder.path)
        where = folder.name_of(name)
        try:
            rows = msgspec.convert(list(folder.rows(name)), type=list[_Row])
        except msgspec.ValidationError as error:
            raise DataError("bbh.no_file", where=where, problem=error) from None
        if not rows:
            raise DataError("bbh.no_examples", where=where)
        choice = name in CHOICE_SUBSETS
        for index, row in enumerate(rows):
            sample = Sample(
                id=f"bbh_{name}_{index}",
                subset=name,
                index=index,
                text=row.input,
                target=row.target or "",
                choices=parse_options(row.input) if choice else (),
                metadata=MULTIPLE_CHOICE if choice else FREE_FORM,
            )
            if not unlabelled or sample.target.strip():
                check_row(sample, f"{where}, row {index + 1}")
            yield sample


def check_row(sample: Sample, where: str) -> None:
    """Refuse a row that cannot be examined; the published rows that are faulty may stay."""
    if not sample.text.strip():
        raise DataError("bbh.empty_input", where=where)
    if not sample.target.strip():
        raise DataError("bbh.empty_target", where=where)
    kind = SUBSETS[sample.subset].kind
    if kind == "choice":
        labels = [f"({label})" for label in sample.labels]
        if sample.target not in labels and not fault_of(sample):
            options = ", ".join(labels) or "none"
            raise DataError(
                "bbh.target_not_option", where=where, target=sample.target, options=options
            )
    elif not _TARGETS[kind].fullmatch(sample.target.strip()):
        raise DataError(
            "bbh.target_no_answer", where=where, target=sample.target, subset=sample.subset
        )


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
            raise DataError("bbh.no_shots", name=name, path=folder.path)
        head, dashes, body = folder.text(path).replace("\r\n", "\n").partition(f"{DASHES}\n")
        if not dashes or (head and not head.endswith("\n")):
            raise DataError("bbh.no_dashes", path=folder.path / path, dashes=DASHES)
        if not body.strip():
            raise DataError("bbh.nothing_after_dashes", path=folder.path / path, dashes=DASHES)
        texts[name] = body.strip()
    return texts


def load_answer_only(folder: DataFolder, names: Sequence[str]) -> dict[str, str]:
    """The published answer-only prompts of the subsets `names`."""
    path = _find(folder, ANSWER_ONLY_FILES)
    if path is None:
        raise DataError("bbh.no_answer_only", path=folder.path)
    try:
        texts = msgspec.convert(folder.json(path), type=dict[str, str])
    except msgspec.ValidationError as error:
        raise DataError("bbh.prompts_no_texts", path=folder.path / path, problem=error) from None
    for name in names:
        if name not in texts:
            raise DataError("bbh.no_prompt", path=folder.path / path, name=name)
    for name in names:
        if not texts[name].strip():
            raise DataError("bbh.empty_prompt", path=folder.path / path, name=name)
    return {name: texts[name].strip() for name in names}


def _find(folder: DataFolder, candidates: Sequence[str]) -> str | None:
    return next((name for name in candidates if folder.exists(name)), None)
