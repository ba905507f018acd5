"""MMLU as a benchmark: its tables, its protocols and its means.

Keju reads one table per subject and split, with the columns of the hub (``question``, ``choices``,
``answer``) or ``question, A, B, C, D, answer``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import msgspec

from keju import messages
from keju.answers.kinds import Choice
from keju.answers.reader import EvalScopeChoiceReader, LabelReader, SimpleEvalsChoiceReader
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_COLON
from keju.benchmarks.base import Benchmark, Mean, Protocol, ToolTask, by_name
from keju.benchmarks.metadata import read_facts
from keju.benchmarks.subject_tables import (
    STRIPPED,
    label_wording,
    make_questions,
    read_questions,
    table_names,
)
from keju.benchmarks.wording import Wording, words
from keju.sources.folder import HubRepo, Layout

Category = Literal["stem", "social_sciences", "humanities", "other"]
CATEGORY_TITLES: dict[str, str] = {
    "stem": "STEM",
    "social_sciences": "Social sciences",
    "humanities": "Humanities",
    "other": "Other",
}
MAX_SHOTS = 5


class MMLUSubject(msgspec.Struct, frozen=True):
    """One subject: its name, its category and the rows of its test split."""

    name: str
    category: Category
    rows: int


class MMLUFacts(msgspec.Struct):
    """The content of ``facts.json``."""

    subjects: list[MMLUSubject]


SUBJECTS = {subject.name: subject for subject in read_facts(__file__, MMLUFacts).subjects}


TITLES = {name: name.replace("_", " ") for name in SUBJECTS}
"""The subjects as prompts name them: ``us foreign policy``."""


def _mean(name: str, title: str, subjects: list[str], *, group: bool = False) -> Mean:
    return Mean(name, title, tuple((subject,) for subject in subjects), group)


def _subjects_in(category: Category) -> list[str]:
    return [subject.name for subject in SUBJECTS.values() if subject.category == category]


AVERAGES = (
    _mean("macro_accuracy", "mean over subjects", list(SUBJECTS)),
    *(
        _mean(name, CATEGORY_TITLES[name], _subjects_in(name), group=True)
        for name in get_args(Category)
    ),
)

LM_EVAL = label_wording(
    "{question}\n{choices}\nAnswer:",
    head="The following are multiple choice questions (with answers) about {subject}.\n\n",
    space=" ",
    question_words=STRIPPED,
)
SIMPLE_EVALS = Wording(
    question="Answer the following multiple choice question. The last line of your response should "
    "be of the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. "
    "Think step by step before answering.\n\n{question}\n\n{choices}",
    words=words("A) text"),
)

messages.add_folder(Path(__file__).parent / "texts")

MMLU = Benchmark(
    name="mmlu",
    title="MMLU",
    about=messages.text_of("about_exam_mmlu", {}),
    layout=Layout(
        tables=table_names(("test", "dev"), SUBJECTS),
        stems=("{split}/{subject}", "{subject}/{split}", "{split}/{subject}_{split}"),
        hubs={
            "huggingface": HubRepo("cais/mmlu", "main"),
            "modelscope": HubRepo("cais/mmlu", "master"),
        },
        rows={f"test/{s.name}": s.rows for s in SUBJECTS.values()}
        | {f"dev/{name}": MAX_SHOTS for name in SUBJECTS},
    ),
    rows={subject.name: subject.rows for subject in SUBJECTS.values()},
    subset_names=tuple(SUBJECTS),
    subset_aliases={title: name for name, title in TITLES.items()},
    subset_about={
        s.name: f"{TITLES[s.name]} ({CATEGORY_TITLES[s.category]})" for s in SUBJECTS.values()
    },
    averages=AVERAGES,
    questions=lambda setup: make_questions(setup, TITLES),
    examples=lambda setup: read_questions(setup, "dev"),
    readers=by_name(
        LabelReader("lm-eval"),
        SimpleEvalsChoiceReader(multilingual=True),
        EvalScopeChoiceReader(),
        RobustReader(Choice(), strict=ANSWER_COLON),
    ),
    tool_tasks=(ToolTask(tool="lm-eval", name=r"mmlu_(.+)", protocol="lm-eval", shots=MAX_SHOTS),),
    protocols=by_name(
        Protocol(
            name="lm-eval",
            version="1.0",
            reader="lm-eval",
            about="lm-eval 0.4.13 mmlu: 5 worked examples, likeliest label, micro average",
            decode="labels",
            form="completion",
            label=" ",
            wording=LM_EVAL,
            shots=MAX_SHOTS,
            shot_choices=range(MAX_SHOTS + 1),
            templates=False,
        ),
        Protocol(
            name="simple-evals",
            version="1",
            reader="simple-evals",
            about="simple-evals: zero-shot chain of thought; 'Answer: X'",
            wording=SIMPLE_EVALS,
            shot_choices=(0,),
        ),
    ),
)
"""MMLU: 14,042 test questions of 57 subjects, MIT licence."""
