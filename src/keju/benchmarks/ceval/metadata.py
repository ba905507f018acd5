"""Facts about C-Eval: 52 subjects, files, scores, recorded letters (Huang et al. 2023).

They come from hkust-nlp/ceval (subject_mapping.json and the released files). The code repeats them
because a user's data folder may lack the mapping. If the folder has one, it must agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keju.benchmarks.base import Mean, Reference, ToolTask
from keju.benchmarks.metadata import (
    Golden,
    GoldenCheck,
    GradedRecording,
    RecordedFigure,
    RecordedScores,
    RecordingSetup,
    ThinkingModes,
)
from keju.errors import DataError, did_you_mean
from keju.sources.folder import HubRepo, Layout

Category = Literal["STEM", "Social Science", "Humanities", "Other"]
Split = Literal["dev", "val", "test"]

OPTIONS = "ABCD"
DEV_ROWS = 5
"""Worked examples of each subject."""


class Subject(NamedTuple):
    """The published facts about one subject."""

    name: str
    """The file name, also the subset's name and the key of a submission."""
    english: str
    chinese: str
    """The name used in the prompts."""
    category: Category
    hard: bool
    """Whether it is part of C-Eval Hard."""
    val: int
    test: int

    def rows(self, split: Split) -> int:
        """Return the number of rows in the published `split`."""
        return {"dev": DEV_ROWS, "val": self.val, "test": self.test}[split]


_TABLE: dict[Category, str] = {
    "STEM": """
        computer_network 计算机网络 19 171
        operating_system 操作系统 19 179
        computer_architecture 计算机组成 21 193
        college_programming 大学编程 37 342
        college_physics 大学物理 19 176
        college_chemistry 大学化学 24 224
        advanced_mathematics 高等数学 19 173
        probability_and_statistics 概率统计 18 166
        discrete_mathematics 离散数学 16 153
        electrical_engineer 注册电气工程师 37 339
        metrology_engineer 注册计量师 24 219
        high_school_mathematics 高中数学 18 166
        high_school_physics 高中物理 19 175
        high_school_chemistry 高中化学 19 172
        high_school_biology 高中生物 19 175
        middle_school_mathematics 初中数学 19 177
        middle_school_biology 初中生物 21 192
        middle_school_physics 初中物理 19 178
        middle_school_chemistry 初中化学 20 185
        veterinary_medicine 兽医学 23 210
    """,
    "Social Science": """
        college_economics 大学经济学 55 497
        business_administration 工商管理 33 301
        marxism 马克思主义基本原理 19 179
        mao_zedong_thought 毛泽东思想和中国特色社会主义理论体系概论 24 219
        education_science 教育学 29 270
        teacher_qualification 教师资格 44 399
        high_school_politics 高中政治 19 176
        high_school_geography 高中地理 19 178
        middle_school_politics 初中政治 21 193
        middle_school_geography 初中地理 12 108
    """,
    "Humanities": """
        modern_chinese_history 近代史纲要 23 212
        ideological_and_moral_cultivation 思想道德修养与法律基础 19 172
        logic 逻辑学 22 204
        law 法学 24 221
        chinese_language_and_literature 中国语言文学 23 209
        art_studies 艺术学 33 298
        professional_tour_guide 导游资格 29 266
        legal_professional 法律职业资格 23 215
        high_school_chinese 高中语文 19 178
        high_school_history 高中历史 20 182
        middle_school_history 初中历史 22 207
    """,
    "Other": """
        civil_servant 公务员 47 429
        sports_science 体育学 19 180
        plant_protection 植物保护 22 199
        basic_medicine 基础医学 19 175
        clinical_medicine 临床医学 22 200
        urban_and_rural_planner 注册城乡规划师 46 418
        accountant 注册会计师 49 443
        fire_engineer 注册消防工程师 31 282
        environmental_impact_assessment_engineer 环境影响评价工程师 31 281
        tax_accountant 税务师 49 443
        physician 医师资格 49 443
    """,
}
"""By category, each line: file name, Chinese name, rows of val and of test."""

HARD = frozenset(
    (
        "advanced_mathematics",
        "discrete_mathematics",
        "probability_and_statistics",
        "college_chemistry",
        "college_physics",
        "high_school_mathematics",
        "high_school_chemistry",
        "high_school_physics",
    )
)
"""The subjects of C-Eval Hard."""


SUBJECTS: Mapping[str, Subject] = {
    name: Subject(
        name,
        name.replace("_", " ").title().replace(" And ", " and "),
        chinese,
        category,
        name in HARD,
        int(val),
        int(test),
    )
    for category, table in _TABLE.items()
    for name, chinese, val, test in map(str.split, table.strip().splitlines())
}

CATEGORIES: tuple[Category, ...] = tuple(_TABLE)


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

_PUBLISHED: Mapping[Split, Mapping[tuple[str, int], tuple[float, float | None]]] = {
    "test": {
        ("GPT-4", 0): (0.664, 0.533),
        ("GPT-4", 5): (0.687, 0.549),
        ("ChatGPT", 0): (0.510, 0.367),
        ("ChatGPT", 5): (0.544, 0.414),
        ("LLaMA-65B", 0): (0.347, None),
        ("LLaMA-65B", 5): (0.388, None),
        ("ChatGLM-6B", 0): (0.389, None),
        ("ChatGLM-6B", 5): (0.345, None),
    },
    "val": {
        ("GPT-4", 0): (0.667, None),
        ("GPT-4", 5): (0.699, None),
        ("ChatGPT", 0): (0.508, None),
        ("ChatGPT", 5): (0.535, None),
    },
}
"""Answer-only: average and Hard, by model and number of worked examples."""


def find_references(split: Split, shots: int) -> tuple[Reference, ...]:
    """Return published answer-only figures for the same split and number of worked examples."""
    return tuple(
        Reference(
            f"{model}, {count}-shot answer-only, {split}",
            {AVERAGE: average} | ({} if hard is None else {HARD_MEAN: hard}),
        )
        for (model, count), (average, hard) in _PUBLISHED[split].items()
        if count == shots
    )


TOOL_TASKS = (
    ToolTask(
        tool="evalscope", name="ceval(?:_(.+))?", protocol="evalscope", shots=5, settings=("split",)
    ),
    ToolTask(
        tool="lm-eval", name="ceval-valid_(.+)", protocol="lm-eval", args={"split": "val"}, shots=5
    ),
    ToolTask(tool="inspect", name="ceval", protocol="evalscope", args={"few_shot_num": 0}),
    ToolTask(
        tool="opencompass",
        name="ceval-test-(.+)",
        protocol="opencompass",
        args={"split": "test"},
        rules={"": "capital"},
    ),
    ToolTask(
        tool="opencompass", name="ceval[-_](.+)", protocol="opencompass", rules={"": "capital"}
    ),
    ToolTask(tool="verifiers", name="ceval", shots=5, settings=("split", "mode", "form", "decode")),
)
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
