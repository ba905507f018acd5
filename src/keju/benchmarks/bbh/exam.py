"""BBH as a benchmark: questions from the official JSON files or a hub's tables, and its exam."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from keju import messages
from keju.benchmarks.base import Benchmark, Exam
from keju.benchmarks.bbh.metadata import (
    CHOICE_SUBSETS,
    ERRATA_VERSION,
    GOLDEN,
    LAYOUT,
    MEANS,
    REFERENCES,
    SUBSETS,
    TOOL_TASKS,
    TWO_VALUED,
    Kind,
    fault_of,
)
from keju.benchmarks.bbh.protocols import PROTOCOLS, BBHArgs, BBHProtocol
from keju.benchmarks.bbh.readers import READERS
from keju.benchmarks.kit import Questions, Setup, arrange
from keju.benchmarks.wording import Wording
from keju.errors import ConfigError, DataError, TranslatableText
from keju.files import explain_shape
from keju.sources.folder import DataFolder
from keju.types import LABELS, Notice, Sample

FRESH_MANIFEST = "fresh.json"
"""Written by ``keju fresh`` next to its questions, in their folder or the parent folder."""
# A line `(B) a text` of a question.
_OPTION = re.compile(r"^\(([A-Z])\) ?(.*)$", re.MULTILINE)
# The form of targets of each kind: `True`; `Yes`; `invalid`; `-48`; `] ) >`; `apple pear`.
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


class _TaskRow(msgspec.Struct):
    input: str
    target: str | None = None


class FreshManifest(msgspec.Struct, kw_only=True):
    """The origin of fresh questions in BBH's layout."""

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
    """SHA-256 of each file, by relative path."""


def read_fresh_manifest(folder: DataFolder) -> FreshManifest | None:
    """Read what ``keju fresh`` wrote about the questions in a folder; None for other folders."""
    name = folder.first_of([FRESH_MANIFEST, f"../{FRESH_MANIFEST}"])
    if name is None:
        return None
    try:
        return msgspec.json.decode(folder.bytes(name), type=FreshManifest)
    except msgspec.DecodeError as error:
        raise DataError("bbh.no_file", where=folder.path / name, problem=error) from None


def load_questions(
    folder: DataFolder, names: Sequence[str], *, unlabelled: bool = False
) -> Iterator[Sample]:
    """Yield the questions of the subsets `names`; DataError names a missing or broken file or row.

    With `unlabelled` a row may lack a target.
    """
    for name in names:
        if not folder.has(name):
            raise DataError("bbh.no_questions", name=name, path=folder.path)
        where = folder.name_of(name)
        try:
            rows = msgspec.convert(list(folder.rows(name)), type=list[_TaskRow])
        except msgspec.ValidationError as error:
            raise DataError("bbh.no_file", where=where, problem=explain_shape(error)) from None
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
                validate_row(sample, f"{where}, row {index + 1}")
            yield sample


def validate_row(sample: Sample, where: str) -> None:
    """Raise DataError for a row that cannot be asked; published rows with known faults pass."""
    if not sample.text.strip():
        raise DataError("bbh.empty_input", where=where)
    if not sample.target.strip():
        raise DataError("bbh.empty_target", where=where)
    kind = SUBSETS[sample.subset].kind
    if kind == "choice":
        labels = [f"({label})" for label in sample.labels]
        if sample.target not in labels and not fault_of(sample):
            options = labels or TranslatableText("no_names")
            raise DataError(
                "bbh.target_not_option", where=where, target=sample.target, options=options
            )
    elif not _TARGETS[kind].fullmatch(sample.target.strip()):
        raise DataError(
            "bbh.target_no_answer", where=where, target=sample.target, subset=sample.subset
        )


def parse_options(text: str) -> tuple[str, ...]:
    """Return the options in a question's lines ``(A) text``, lettered from A."""
    options: list[str] = []
    for letter, option in _OPTION.findall(text):
        if len(options) < len(LABELS) and letter == LABELS[len(options)]:
            options.append(option)
    return tuple(options)


class BBHExam(Exam):
    """The selected subsets under one protocol."""

    def chance(self, sample: Sample) -> float | None:
        """Return one divided by the number of options, or one half for two possible answers.

        None for a question that lost its options.
        """
        if SUBSETS[sample.subset].kind in TWO_VALUED:
            return 0.5
        return super().chance(sample) if len(sample.choices) > 1 else None

    def describe(self, sample: Sample) -> dict[str, Any]:
        """Describe the sample like EvalScope, without `choices`: the question contains them."""
        document = super().describe(sample)
        document.pop("choices", None)
        assert isinstance(self.protocol, BBHProtocol)
        return document | {"target": self.protocol.shown_target(sample)}


def check_final_line(setup: Setup) -> None:
    """Raise ConfigError if ``final_line`` is set but has no effect."""
    assert isinstance(setup.protocol, BBHProtocol)
    if getattr(setup.args, "final_line", False) and not setup.protocol.final_line:
        names = {"benchmark": setup.benchmark.name, "protocol": setup.protocol.name}
        raise ConfigError("bbh.final_line", **names)


def make_questions(setup: Setup) -> Questions:
    """Return the questions of the selected subsets."""
    check_final_line(setup)
    assert isinstance(setup.protocol, BBHProtocol)
    lenient = setup.protocol.lenient
    names: list[str] = []
    samples: list[Sample] = []
    notices: list[Notice] = []
    for name in select_subsets(setup):
        try:
            samples += load_questions(setup.folder, [name], unlabelled=lenient)
            names.append(name)
        except DataError as error:
            if not lenient or len(notices) + 1 == len(select_subsets(setup)):
                raise
            notices.append(Notice("bbh_subset_left_out", {"subset": name, "problem": str(error)}))
    arranged = arrange("bbh", samples, names)
    arranged.version = f"BIG-Bench-Hard, errata {ERRATA_VERSION}"
    if fresh := read_fresh_manifest(setup.folder):
        arranged.version = f"fresh questions, generator {fresh.generator}, sha256 {fresh.sha256}"
        values = {"seed": fresh.seed, "difficulty": fresh.difficulty}
        notices.insert(0, Notice("bbh_fresh", values))
    arranged.warnings = notices
    return arranged


def select_subsets(setup: Setup) -> Sequence[str]:
    """Return the selected subsets; for fresh questions, by default those in the folder."""
    fresh = read_fresh_manifest(setup.folder)
    if fresh is None:
        return setup.subsets
    if fresh.lang != "en":
        raise ConfigError("bbh.fresh_language", path=setup.folder.path, lang=fresh.lang)
    if setup.args.subset_list is not None:
        return setup.subsets
    return [name for name in setup.subsets if name in fresh.subsets]


def load_examples(setup: Setup) -> Mapping[str, str]:
    """Return the worked examples in the form that the protocol publishes."""
    assert isinstance(setup.protocol, BBHProtocol)
    return setup.protocol.examples(setup.folder, select_subsets(setup))


def manifest_settings(setup: Setup, wording: Wording) -> dict[str, Any]:
    """Return the settings that shaped the prompts, for the manifest."""
    template = wording.template(bool(setup.shots))
    optional_settings = {
        name: getattr(setup.args, name, None) for name in ("system_prompt", "final_line")
    }
    default_settings = {"few_shot_num": setup.shots, "prompt_template": template}
    if fresh := read_fresh_manifest(setup.folder):
        # Distinguishes them from the published questions.
        optional_settings["fresh"] = {
            name: getattr(fresh, name) for name in ("seed", "difficulty", "generator", "sha256")
        }
    return default_settings | {name: value for name, value in optional_settings.items() if value}


messages.add_folder(Path(__file__).parent / "texts")

BBH = Benchmark(
    name="bbh",
    title="BBH",
    about=messages.text_of("about_exam_bbh", {}),
    aliases=("bigbench-hard",),
    alias_protocols={"bigbench-hard": "mcpbr"},
    subset_about={name: facts.about for name, facts in SUBSETS.items()},
    layout=LAYOUT,
    tool_tasks=TOOL_TASKS,
    protocols=PROTOCOLS,
    readers=READERS,
    subset_names=tuple(SUBSETS),
    rows={name: facts.rows for name, facts in SUBSETS.items()},
    count_note="{name}: {rows} rows, published are {published}",
    averages=MEANS,
    references=REFERENCES,
    faults=fault_of,
    Args=BBHArgs,
    golden=GOLDEN,
    exam=BBHExam,
    questions=make_questions,
    examples=load_examples,
    refused={
        "few_shot_random": "the worked examples are fixed",
        "shuffle_choices": "options are part of the question's text",
    },
    settings=manifest_settings,
)
