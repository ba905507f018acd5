"""Facts about C-Eval: 52 subjects, files, scores, recorded letters (Huang et al. 2023).

They come from hkust-nlp/ceval (subject_mapping.json and the released files). The code repeats them
because a user's data folder may lack the mapping. If the folder has one, it must agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from keju.benchmarks.base import Mean, Reference, ToolTask
from keju.benchmarks.metadata import (
    Golden,
    GoldenCheck,
    GradedRecording,
    RecordedFigure,
    RecordedScores,
    RecordingSetup,
    ThinkingModes,
    read_facts,
)
from keju.errors import DataError, did_you_mean
from keju.sources.folder import HubRepo, Layout

Category = Literal["STEM", "Social Science", "Humanities", "Other"]
Split = Literal["dev", "val", "test"]

OPTIONS = "ABCD"
DEV_ROWS = 5
"""Worked examples of each subject."""


class Subject(msgspec.Struct, frozen=True):
    """The published facts about one subject."""

    name: str
    """The file name, also the subset's name and the key of a submission."""
    english: str
    chinese: str
    """The name used in the prompts."""
    category: Category
    val: int
    test: int
    hard: bool = False
    """Whether it is part of C-Eval Hard."""

    def rows(self, split: Split) -> int:
        """Return the number of rows in the published `split`."""
        return {"dev": DEV_ROWS, "val": self.val, "test": self.test}[split]


class PublishedScore(msgspec.Struct):
    """The answer-only scores of a model."""

    model: str
    split: Split
    shots: int
    average: float
    hard: float | None = None


class CEvalFacts(msgspec.Struct):
    """The content of ``facts.json``."""

    subjects: list[Subject]
    published: list[PublishedScore]
    tool_tasks: list[ToolTask]


_FACTS = read_facts(__file__, CEvalFacts)

SUBJECTS: Mapping[str, Subject] = {subject.name: subject for subject in _FACTS.subjects}
HARD = frozenset(name for name, subject in SUBJECTS.items() if subject.hard)
"""The subjects of C-Eval Hard."""

CATEGORIES = get_args(Category)


def subjects_in(category: Category) -> tuple[str, ...]:
    """Return the subjects of `category`, in published order."""
    return tuple(s.name for s in SUBJECTS.values() if s.category == category)


def check_mapping(document: Any, origin: str) -> None:
    """Raise DataError for a subject_mapping.json that differs from the published one."""
    subjects = document.get("subjects", document) if isinstance(document, dict) else None
    if not isinstance(subjects, dict):
        raise DataError("ceval.no_mapping", origin=origin)
    for name, facts in subjects.items():
        subject = SUBJECTS.get(name)
        if subject is None:
            hint = did_you_mean(name, SUBJECTS)
            raise DataError("ceval.unknown_subject", origin=origin, name=name, hint=hint)
        if isinstance(facts, list):  # as in the official file
            facts = dict(zip(("english", "chinese", "category"), facts, strict=False))
        for field in ("chinese", "category", "hard"):
            published = getattr(subject, field)
            value = facts.get(field, published) if isinstance(facts, dict) else published
            if value != published:
                raise DataError(
                    "ceval.subject_differs",
                    origin=origin,
                    field=field,
                    name=name,
                    value=repr(value),
                    published=repr(published),
                )


SPLITS: tuple[Split, ...] = ("dev", "val", "test")

LAYOUT = Layout(
    tables=tuple(f"{split}/{name}" for split in SPLITS for name in sorted(SUBJECTS)),
    stems=("{split}/{subject}_{split}", "{subject}/{split}", "data/{subject}/{split}"),
    archives=("ceval-exam.zip", "ceval.zip"),
    folders=("ceval-exam", "c-eval"),
    hubs={
        "huggingface": HubRepo("ceval/ceval-exam", "main"),
        "modelscope": HubRepo("evalscope/ceval", "master"),
    },
    rows={f"{split}/{name}": s.rows(split) for split in SPLITS for name, s in SUBJECTS.items()},
    checksums=Path(__file__).with_name("checksums.txt"),
)
"""The released files."""

SUBJECT_ALIASES = {
    alias: subject.name
    for subject in SUBJECTS.values()
    for alias in (subject.english, subject.chinese)
}
"""English and Chinese names of the subjects."""

AVERAGE = "average"
HARD_MEAN = "hard"


def _single_tasks(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple((name,) for name in names)


AVERAGES = (
    Mean(AVERAGE, "Average over subjects", _single_tasks(tuple(SUBJECTS))),
    *(Mean(name, name, _single_tasks(subjects_in(name)), group=True) for name in CATEGORIES),
    Mean(HARD_MEAN, "C-Eval Hard", _single_tasks(sorted(HARD)), group=True),
)
"""The official Average and its parts: each is an unweighted mean over subjects."""


def find_references(split: Split, shots: int) -> tuple[Reference, ...]:
    """Return published answer-only figures for the same split and number of worked examples."""
    return tuple(
        Reference(
            f"{score.model}, {score.shots}-shot answer-only, {split}",
            {AVERAGE: score.average} | ({} if score.hard is None else {HARD_MEAN: score.hard}),
        )
        for score in _FACTS.published
        if (score.split, score.shots) == (split, shots)
    )


TOOL_TASKS = _FACTS.tool_tasks
"""C-Eval's names in the logs of other tools."""

# The id `ceval_high_school_physics_val_12`.
_SAMPLE_ID = re.compile(r"ceval_(?P<subject>.+)_(?:val|test)_\d+")


def subject_of(sample_id: str) -> str | None:
    """Return the subject of a sample's id."""
    match = _SAMPLE_ID.fullmatch(sample_id)
    return match["subject"] if match is not None else None


MODES = ThinkingModes(
    direct="answer-only",
    reasoned="cot",
    subjects={name: subject.chinese for name, subject in SUBJECTS.items()},
    subject_of=subject_of,
    groups={name: subjects_in(name) for name in CATEGORIES} | {"hard": tuple(sorted(HARD))},
    titles={"hard": "C-Eval Hard"},
)
"""Compares knowledge and reasoning, the tutorial's question, in two runs of the same model."""

# --- recorded letters: no text to read here ------------------------------------------------------

PERCENT_TOLERANCE = 6e-7
"""The golden file has six digits, in percent."""


def golden_settings(golden: Golden, _: Sequence[Mapping[str, Any]]) -> RecordingSetup:
    """Return the settings with which the letters were recorded."""
    return RecordingSetup(
        {"split": golden["split"], "few_shot_num": 0, "decode": "labels"}, "tutorial"
    )


def _percent_figure(
    label: str, expected: float, share: float | None, *, is_of_subset: bool = False
) -> RecordedFigure:
    return RecordedFigure(
        label, expected, None if share is None else 100 * share, PERCENT_TOLERANCE, is_of_subset
    )


def golden_figures(golden: Golden, recorded: GradedRecording) -> Iterator[RecordedFigure]:
    """Yield all aggregates: of the full set, of the categories and Hard, of each subject."""
    summary, overall = golden["summary"], recorded.overall
    yield RecordedFigure("rows", summary["n"], overall.n)
    yield RecordedFigure("correct", summary["correct"], overall.outcomes["correct"])
    yield _percent_figure("micro accuracy", summary["micro"], recorded.metrics["accuracy"])
    yield _percent_figure("average", summary["macro_52_subjects"], recorded.metrics["average"])
    for name, facts in (summary["categories"] | {"hard": summary["hard"]}).items():
        group = recorded.groups.get(name, RecordedScores())
        yield RecordedFigure(f"{name}, rows", facts["n"], group.n)
        yield RecordedFigure(f"{name}, correct", facts["correct"], group.outcomes.get("correct"))
        yield _percent_figure(f"{name}, average", facts["macro"], group.accuracy)
        yield _percent_figure(f"{name}, micro", facts["micro"], group.micro_accuracy)
    for name, facts in golden["subjects"].items():
        subset = recorded.subsets.get(name, RecordedScores())
        right = subset.outcomes.get("correct")
        yield RecordedFigure(f"{name}, correct", facts["correct"], right, is_of_subset=True)
        yield _percent_figure(
            f"{name}, accuracy", facts["accuracy"], subset.accuracy, is_of_subset=True
        )


GOLDEN = GoldenCheck(settings=golden_settings, figures=golden_figures, letter="pred")
