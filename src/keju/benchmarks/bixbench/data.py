"""Facts about BixBench (Mitchener et al. 2025), and reading its data versions.

Versions 1.0 and 1.5 have different schemas; Keju distinguishes them by their fields and never mixes
them. Version 1.0 has one row per capsule with its questions, version 1.5 one row per question.
BixBench-Verified-50 has rows of version 1.5 in a separate file: fewer questions, some keys revised.
All become the same typed rows. The canary of a row is never copied.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from keju.answers.numbers import parse_range
from keju.benchmarks.base import Reference, ToolTask
from keju.benchmarks.bixbench.capsules import HUB_PATTERN
from keju.benchmarks.kit import Erratum, RowCount
from keju.benchmarks.metadata import (
    Golden,
    GoldenCheck,
    GradedRecording,
    RecordedFigure,
    RecordingSetup,
    read_facts,
)
from keju.errors import DataError, Notice, TranslatableText, did_you_mean
from keju.sources.folder import HubRepo, Layout

if TYPE_CHECKING:
    from keju.sources.folder import DataFolder


VERSIONS = ("1.5", "1.0")
VERIFIED = "verified-50"
"""The version of BixBench-Verified-50 (phylobio). Its keys always come from the file."""
HYPOTHESIS = "hypothesis"
"""The subset for questions about the truth of each capsule's hypothesis."""

EVAL_MODES = ("str_verifier", "range_verifier", "llm_verifier")

ROWS: Mapping[str, int] = {"1.5": 205, "1.0": 53, VERIFIED: 50}
"""Rows in each version's file: questions in 1.5 and in Verified-50, capsules in 1.0."""


class BixBenchFacts(msgspec.Struct):
    """The content of ``facts.json``."""

    errata: dict[str, dict[str, Erratum]]
    question_numbers: dict[str, list[int]]
    """The questions of version 1.5: their numbers by short id of the capsule."""
    verified_numbers: dict[str, list[int]]
    """The questions of BixBench-Verified-50, as far as others have published their ids."""
    tool_tasks: list[ToolTask]


_FACTS = read_facts(__file__, BixBenchFacts)
ERRATA = _FACTS.errata | {VERIFIED: _FACTS.errata["1.5"]}
"""Known error of a question by its id, for each data version. An erratum of version 1.5 also
applies to Verified-50 where that has kept the row."""


def _list_ids(numbers: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    return tuple(f"{short_id}-q{n}" for short_id in numbers for n in numbers[short_id])


QUESTION_IDS = _list_ids(_FACTS.question_numbers)
"""The ids of the questions of version 1.5."""
VERIFIED_IDS = _list_ids(_FACTS.verified_numbers)
"""The ids of BixBench-Verified-50."""

REFERENCES: Mapping[str, tuple[Reference, ...]] = {
    "1.5": (Reference("gpt-4o, official zero-shot run without refusal", {"accuracy": 74 / 205}),),
    "1.0": (Reference("gpt-4o, official zero-shot run without refusal", {"accuracy": 95 / 296}),),
}
"""Recorded in Future-House/BixBench."""

LAYOUT = Layout(
    tables=("v1.5", "v1.0"),
    stems=(),
    own_stems={
        "v1.5": ("BixBench_v1.5", "BixBench"),
        "v1.0": ("BixBench_v1.0_rebuilt", "BixBench_v1.0"),
    },
    optional=frozenset({"v1.0"}),
    capsules=HUB_PATTERN,
    folders=("BixBench",),
    hubs={
        "huggingface": HubRepo("futurehouse/BixBench", "f8cc3bdcc6357c88b8c3648306522b9c422dc95a")
    },
    rows={f"v{version}": ROWS[version] for version in VERSIONS},
    checksums=Path(__file__).with_name("checksums.txt"),
)
"""Version 1.5 at revision f8cc3bd."""

VERIFIED_LAYOUT = Layout(
    tables=(VERIFIED,),
    stems=(),
    own_stems={VERIFIED: ("BixBench-Verified-50", VERIFIED, f"data/{VERIFIED}")},
    capsules=HUB_PATTERN,
    folders=("BixBench", "BixBench-Verified-50", VERIFIED),
    hubs={"huggingface": HubRepo("phylobio/BixBench-Verified-50", "main")},
    rows={VERIFIED: ROWS[VERIFIED]},
    cached_as="bixbench_verified_50",
)
"""BixBench-Verified-50, which has a data set of its own on the hub."""

TOOL_TASKS = _FACTS.tool_tasks
"""BixBench's names in the logs of other tools."""

# --- official zero-shot runs, from raw outputs or, if none were kept, from letters
# -----------------

GOLDEN_READER = "official"
SHARE_TOLERANCE = 1e-12
"""The golden files have all digits of a share."""


def golden_settings(golden: Golden, rows: Sequence[Mapping[str, Any]]) -> RecordingSetup:
    """Return the settings of an official run: its version, and whether a refusal was offered."""
    version = golden["version"].removeprefix("v")
    args = {
        "data_version": version,
        "with_refusal": any(row.get("unsure") for row in rows),
    } | ({"all_questions": True} if version == "1.0" else {})
    return RecordingSetup(args, readers=[GOLDEN_READER])


def golden_figures(golden: Golden, recorded: GradedRecording) -> Iterator[RecordedFigure]:
    """Yield counts, accuracy, precision and coverage."""
    counts, n = recorded.overall.outcomes, len(recorded.rows)
    correct, answered_count = counts["correct"], n - counts["refused"]
    precision = correct / answered_count if answered_count else None
    yield RecordedFigure("rows", golden["n"], n)
    yield RecordedFigure("correct", golden["recomputed_correct"], correct)
    yield RecordedFigure("refused", golden["refused"], counts["refused"])
    yield RecordedFigure("without a letter", golden["predicted_not_a_letter"], counts["unparsed"])
    yield RecordedFigure("accuracy", golden["recomputed_accuracy"], correct / n, SHARE_TOLERANCE)
    yield RecordedFigure("precision", golden["recomputed_precision"], precision, SHARE_TOLERANCE)
    yield RecordedFigure(
        "coverage", golden["recomputed_coverage"], answered_count / n, SHARE_TOLERANCE
    )
    if "predicted_equals_parsed_output" in golden:
        equal_count = sum(
            graded_row.readings[GOLDEN_READER].answer.value == graded_row.row["predicted"]
            for graded_row in recorded.rows
        )
        yield RecordedFigure(
            "letters as recorded", golden["predicted_equals_parsed_output"], equal_count
        )


GOLDEN = GoldenCheck(settings=golden_settings, figures=golden_figures, letter="predicted")


DISTRACTORS = ("distractor_1", "distractor_2", "distractor_3")


class Capsule(NamedTuple):
    """A study: a hypothesis and the data to test it."""

    uuid: str
    short_id: str
    hypothesis: str
    answer: bool | None
    """Whether the hypothesis is supported; None if unknown."""
    categories: tuple[str, ...]


class BixBenchQuestion(NamedTuple):
    """One question about a capsule."""

    id: str
    """Lower case, e.g. ``bix-1-q1``."""
    text: str
    ideal: str
    distractors: tuple[str, ...]
    eval_mode: str
    capsule: Capsule
    is_first: bool
    """Whether it is the first question in its row."""


class QuestionTable(NamedTuple):
    """All rows of one version."""

    version: str
    questions: list[BixBenchQuestion]
    capsules: list[Capsule]
    """Each capsule once, in the order of the file."""
    notes: list[str]
    rows: RowCount
    warnings: tuple[Notice, ...] = ()


def read_table(folder: DataFolder, version: str | None) -> QuestionTable:
    """Return the questions of `version`, or of the newest in the folder; DataError if there are
    none."""
    if version == VERIFIED:
        return _read_verified(folder)
    version_order = VERSIONS if version is None else sorted(VERSIONS, key=lambda v: v != version)
    tables = [f"v{name}" for name in version_order if folder.has(f"v{name}")]
    version_hint: str = ""
    for table in tables:
        where = folder.name_of(table)
        rows = list(folder.rows(table))
        present = detect_version(rows, where)
        if version in (None, present):
            return make_table(rows, present, where)
        version_hint = TranslatableText("bixbench.is_version", where=where, version=present)
    if not tables:
        folder.table("v1.5")
    raise DataError("bixbench.no_version", path=folder.path, version=version, other=version_hint)


def subset_name(version: str) -> str:
    """Return the name of the subset that holds the questions of a version."""
    return version if version == VERIFIED else f"v{version}"


def _read_verified(folder: DataFolder) -> QuestionTable:
    """Return the questions of BixBench-Verified-50 with the keys of the user's file.

    Its ids must be ids of version 1.5. A warning names those that differ from the published 50.
    """
    where = folder.name_of(VERIFIED)
    rows = list(folder.rows(VERIFIED))
    if detect_version(rows, where) != "1.5":
        raise DataError("bixbench.verified_rows", where=where)
    table = make_table(rows, VERIFIED, where)
    ids = {question.id for question in table.questions}
    if unknown_ids := sorted(ids - set(QUESTION_IDS)):
        raise DataError("bixbench.verified_ids", where=where, names=unknown_ids)
    missing_ids = [name for name in VERIFIED_IDS if name not in ids]
    if not missing_ids:
        return table
    values = {"missing": len(missing_ids), "other": len(ids - set(VERIFIED_IDS))}
    folder.note(f"questions of BixBench-Verified-50 that are missing: {', '.join(missing_ids)}")
    return table._replace(warnings=(Notice("bixbench.verified_other", values),))


def detect_version(rows: Sequence[Mapping[str, Any]], where: str) -> str:
    """Return the version that the rows' fields belong to; DataError if it is not exactly one."""
    first_version = ""
    for number, row in enumerate(rows, 1):
        nested, flat = "questions" in row, "question" in row and "ideal" in row
        if nested == flat:
            missing_fields = "neither 'questions' nor 'question' with 'ideal'"
            fields = "both 'questions' and 'question'" if nested else missing_fields
            raise DataError("bixbench.no_row", where=where, number=number, fields=fields)
        version = "1.0" if nested else "1.5"
        first_version = first_version or version
        if version != first_version:
            raise DataError(
                "bixbench.two_versions",
                where=where,
                number=number,
                version=version,
                first=first_version,
            )
    if not first_version:
        raise DataError("bixbench.no_rows", where=where)
    return first_version


def make_table(rows: Sequence[Mapping[str, Any]], version: str, where: str) -> QuestionTable:
    """Return the typed rows; each capsule has the fields of its first row."""
    read_row = parse_nested_row if version == "1.0" else parse_flat_row
    questions: dict[str, BixBenchQuestion] = {}
    for number, row in enumerate(rows, 1):
        for question in read_row(row, f"{where}, row {number}"):
            if question.id in questions:
                raise DataError(
                    "bixbench.question_twice", where=where, number=number, id=question.id
                )
            questions[question.id] = question
    capsules: dict[str, Capsule] = {}
    notes: dict[str, None] = {}
    for question in questions.values():
        capsule = question.capsule
        first_capsule = capsules.setdefault(capsule.uuid, capsule)
        if first_capsule.answer != capsule.answer:
            raise DataError("bixbench.contradicts", where=where, id=question.id)
        if first_capsule.hypothesis != capsule.hypothesis:
            notes[
                f"{capsule.short_id}: rows word the hypothesis differently; the first is asked"
            ] = None
    count = RowCount(subset_name(version), len(rows), ROWS[version])
    return QuestionTable(version, [*questions.values()], [*capsules.values()], [*notes], count)


def parse_flat_row(row: Mapping[str, Any], where: str) -> list[BixBenchQuestion]:
    """Return the one question of a row of version 1.5."""
    question_id = _text_field(row, "question_id", where).lower()
    row = {"short_id": question_id.rpartition("-")[0]} | dict(row)
    distractors = _parse_list(row.get("distractors"), "distractors", where)
    if not distractors:
        raise DataError("bixbench.no_distractors", where=where)
    mode = _text_field(row, "eval_mode", where)
    if mode not in EVAL_MODES:
        raise DataError(
            "bixbench.eval_mode", where=where, mode=mode, hint=did_you_mean(mode, EVAL_MODES)
        )
    ideal = _text_field(row, "ideal", where)
    if mode == "range_verifier" and parse_range(ideal) is None:
        raise DataError("bixbench.range", where=where, ideal=ideal)
    return [
        BixBenchQuestion(
            id=question_id,
            text=_text_field(row, "question", where),
            ideal=ideal,
            distractors=tuple(
                _as_text(distractor, "distractors", where) for distractor in distractors
            ),
            eval_mode=mode,
            capsule=_make_capsule(row, _text_field(row, "capsule_uuid", where), where),
            is_first=True,
        )
    ]


def parse_nested_row(row: Mapping[str, Any], where: str) -> list[BixBenchQuestion]:
    """Return the questions of a row of version 1.0, which is a capsule."""
    capsule = _make_capsule(row, _text_field(row, "uuid", where), where)
    questions = []
    for index, raw_question in enumerate(_parse_list(row["questions"], "questions", where)):
        question_place = f"{where}, question {index + 1}"
        if not isinstance(raw_question, Mapping):
            raise DataError("bixbench.no_mapping", inside=question_place)
        name = _text_field(raw_question, "id", question_place).lower()
        question_id = name if name.startswith(capsule.short_id) else f"{capsule.short_id}-{name}"
        questions.append(
            BixBenchQuestion(
                id=question_id,
                text=_text_field(raw_question, "question", question_place),
                ideal=_text_field(raw_question, "ideal_answer", question_place),
                distractors=tuple(
                    _text_field(raw_question, key, question_place) for key in DISTRACTORS
                ),
                eval_mode="llm_verifier",
                capsule=capsule,
                is_first=index == 0,
            )
        )
    if not questions:
        raise DataError("bixbench.no_capsule_questions", where=where)
    return questions


def _make_capsule(row: Mapping[str, Any], uuid: str, where: str) -> Capsule:
    hypothesis = row.get("hypothesis")
    return Capsule(
        uuid=uuid.lower(),
        short_id=_text_field(row, "short_id", where).lower(),
        hypothesis=hypothesis if isinstance(hypothesis, str) else "",
        answer=parse_truth(row.get("answer"), where),
        categories=parse_categories(row.get("categories"), where),
    )


def parse_truth(value: Any, where: str) -> bool | None:
    """Return a truth value, which may be text; None if it is unknown."""
    if value is None or isinstance(value, bool):
        return value
    word = str(value).strip().casefold()
    if word in ("true", "false"):
        return word == "true"
    if word in ("", "none", "null"):
        return None
    raise DataError("bixbench.truth", where=where, value=value)


def parse_categories(value: Any, where: str) -> tuple[str, ...]:
    """Return the categories of a row, written with commas or as a list."""
    if value is None:
        return ()
    if isinstance(value, str) and not value.lstrip().startswith("["):
        names: Sequence[Any] = value.split(",")
    else:
        names = _parse_list(value, "categories", where)
    return tuple(
        dict.fromkeys(name for name_or_value in names if (name := str(name_or_value).strip()))
    )


def _parse_list(value: Any, field: str, where: str) -> list[Any]:
    """Return a list, which may be text in JSON or Python; its numbers keep their text."""
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        try:
            parsed = json.loads(value, parse_int=str, parse_float=str, parse_constant=str)
        except (ValueError, RecursionError):
            parsed = None
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                parsed = ast.literal_eval(value.strip())
        if isinstance(parsed, list):
            return parsed
    code = "bixbench.list_missing" if value is None else "bixbench.no_list"
    raise DataError(code, where=where, name=field)


def _text_field(fields: Mapping[str, Any], name: str, where: str) -> str:
    return _as_text(fields.get(name), name, where)


def _as_text(value: Any, name: str, where: str) -> str:
    """Return a field as text; numbers are converted, and a missing field is a DataError."""
    if isinstance(value, bool | int | float):
        value = "NaN" if value != value else str(value)
    if not isinstance(value, str) or not value.strip():
        code = "bixbench.text_missing" if value is None else "bixbench.no_text"
        raise DataError(code, where=where, name=name)
    return value
