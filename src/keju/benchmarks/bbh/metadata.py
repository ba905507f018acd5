"""Facts about BBH: subsets, tasks, baselines, faulty rows, files, recorded outputs.

Origin: Suzgun et al. 2022, "Challenging BIG-Bench Tasks and Whether Chain-of-Thought Can Solve
Them" (arXiv 2210.09261), and the files of suzgunmirac/BIG-Bench-Hard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from keju.benchmarks.base import Mean, Reference, ToolTask
from keju.benchmarks.kit import Erratum, make_fault_finder
from keju.benchmarks.metadata import (
    Golden,
    GoldenCheck,
    GradedRecording,
    RecordedFigure,
    RecordedScores,
    RecordingSetup,
    read_facts,
)
from keju.errors import DataError, did_you_mean
from keju.sources.folder import CompanionFiles, HubRepo, Layout

Kind = Literal["choice", "bool", "yes_no", "valid", "integer", "brackets", "words"]
"""The form of a subset's answers; each kind has its own normal form."""

Field = Literal["NLP", "algorithmic"]


class SubsetMetadata(msgspec.Struct, frozen=True):
    """The published facts about one subset."""

    kind: Kind
    field: Field
    about: str
    """The content of its questions."""
    rows: int
    task: str
    """Name of the task in the paper, which averages some subsets into one."""


Baseline = tuple[float, float, float]
"""Random guessing, average and best human rater, in percent."""


class BBHFacts(msgspec.Struct):
    """The content of ``facts.json``."""

    subsets: dict[str, SubsetMetadata]
    baselines: dict[str, Baseline]
    baseline_means: dict[str, Baseline]
    tool_tasks: list[ToolTask]
    errata: dict[str, dict[str, str]]
    """By fault: the `fingerprint` of each faulty row, by sample id."""


_FACTS = read_facts(__file__, BBHFacts)

SUBSETS = _FACTS.subsets
"""The 27 subsets, in EvalScope's order."""

CHOICE_SUBSETS = frozenset(name for name, facts in SUBSETS.items() if facts.kind == "choice")
TWO_VALUED: frozenset[Kind] = frozenset({"bool", "yes_no", "valid"})
"""Kinds with two possible answers, so that a random guess is right half of the time."""


def _group_tasks(field: Field | None = None) -> tuple[tuple[str, ...], ...]:
    tasks: dict[str, list[str]] = {}
    for name, facts in SUBSETS.items():
        if field is None or facts.field == field:
            tasks.setdefault(facts.task, []).append(name)
    return tuple(tuple(subsets) for subsets in tasks.values())


MEANS = (
    Mean("macro_accuracy", "mean of 27 subsets", tuple((name,) for name in SUBSETS)),
    Mean("macro_23", "mean of 23 tasks", _group_tasks()),
    Mean("nlp_12", "NLP, mean of 12 tasks", _group_tasks("NLP"), group=True),
    Mean(
        "algorithmic_11", "algorithmic, mean of 11 tasks", _group_tasks("algorithmic"), group=True
    ),
)

BASELINES = _FACTS.baselines
"""The figures of single subsets, as printed in the paper's main table.

For three subsets with two tasks each, the table has one row (logical_deduction: 22.5, 40.3, 88.9;
tracking_shuffled_objects: 22.5, 64.7, 100.0), which gives no figures for single subsets.
"""

BASELINE_MEANS = _FACTS.baseline_means
"""The printed averages of the table; some are not the mean of the printed rows."""


def _make_reference(name: str, column: int) -> Reference:
    return Reference(
        name,
        overall={metric: row[column] / 100 for metric, row in BASELINE_MEANS.items()},
        subsets={subset: row[column] / 100 for subset, row in BASELINES.items()},
    )


REFERENCES = (
    _make_reference("human average", 1),
    _make_reference("human maximum", 2),
    _make_reference("random guessing", 0),
)

ERRATA_VERSION = 2
"""Increase it when `ERRATA` changes; the manifest stores it with the data."""

ERRATA: dict[str, Erratum] = {
    sample_id: Erratum(row, fault)
    for fault, rows in _FACTS.errata.items()
    for sample_id, row in rows.items()
}
"""Fault by sample id. Faulty rows are asked and scored as published, and listed in results."""

fault_of = make_fault_finder(ERRATA)
"""Returns the known error of a row, if the row is the published one."""

TABLES = tuple(sorted(SUBSETS))
PROMPT_FILES = tuple(f"cot-prompts/{subset}.txt" for subset in TABLES)

LAYOUT = Layout(
    tables=TABLES,
    stems=("bbh/{table}", "{table}", "{table}/test", "data/{table}", "data/{table}/test"),
    texts=PROMPT_FILES,
    folders=("BIG-Bench-Hard", "bigbench-hard"),
    hubs={
        "huggingface": HubRepo("lukaemon/bbh", "main"),
        "modelscope": HubRepo("evalscope/bbh", "master"),
    },
    companions=CompanionFiles(
        repo="suzgunmirac/BIG-Bench-Hard",
        commit="9ee07bd481feebf959a6b59d61ea57bdcf30964d",
        names=PROMPT_FILES,
        needed_for="prompts with worked examples",
    ),
    rows={name: facts.rows for name, facts in SUBSETS.items()},
    checksums=Path(__file__).with_name("checksums.txt"),
)
"""The files of commit 9ee07bd."""

TOOL_TASKS = _FACTS.tool_tasks
"""BBH's names in the logs of other tools."""

# --- recorded outputs: counts by subset and the published means ---------------------------------

GOLDEN_READERS = {"cot": "paper", "answer_only": "answer-only"}
"""The reader that a recording's rule describes, by the recording's setting."""

GOLDEN_MEANS = {
    "macro_27_subsets": "macro_accuracy",
    "macro_23_tasks": "macro_23",
    "nlp_12_tasks": "nlp_12",
    "algorithmic_11_tasks": "algorithmic_11",
}
"""Metric by its name in the golden file."""

PERCENT_TOLERANCE = 1e-9
"""The golden file has all digits, in percent."""


def golden_settings(golden: Golden, _: Sequence[Mapping[str, Any]]) -> RecordingSetup:
    """Return the settings of a recording; its setting names the reader."""
    setting = golden["setting"]
    if setting not in GOLDEN_READERS:
        raise DataError(
            "bbh.unknown_setting", setting=setting, hint=did_you_mean(setting, GOLDEN_READERS)
        )
    return RecordingSetup({}, "paper", [GOLDEN_READERS[setting]])


def golden_figures(golden: Golden, recorded: GradedRecording) -> Iterator[RecordedFigure]:
    """Yield the rows, right answers and means of the full set, then the counts of each subset."""
    summary, overall = golden["summary"], recorded.overall
    yield RecordedFigure("rows", summary["n_total"], overall.n)
    yield RecordedFigure("correct", summary["correct_total"], overall.outcomes["correct"])
    means = {"micro accuracy": ("micro_6511_rows", "accuracy")}
    means |= {metric: (name, metric) for name, metric in GOLDEN_MEANS.items()}
    for label, (name, metric) in means.items():
        value = recorded.metrics.get(metric)
        yield RecordedFigure(
            label, summary[name], None if value is None else 100 * value, PERCENT_TOLERANCE
        )
    for name, facts in golden["subsets"].items():
        outcomes = recorded.subsets.get(name, RecordedScores()).outcomes
        yield RecordedFigure(
            f"{name}, correct", facts["correct"], outcomes.get("correct"), is_of_subset=True
        )
        if (unmarked_count := facts["no_answer_marker"]) is not None:
            yield RecordedFigure(
                f"{name}, without marker",
                unmarked_count,
                outcomes.get("unparsed"),
                is_of_subset=True,
            )


GOLDEN = GoldenCheck(settings=golden_settings, figures=golden_figures, recorded_gold=False)
