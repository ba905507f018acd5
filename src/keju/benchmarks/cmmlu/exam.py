"""CMMLU as a benchmark: its tables, its protocols and the means of its paper."""

from __future__ import annotations

from pathlib import Path

import msgspec

from keju import messages
from keju.answers.chinese_reader import ChineseReader
from keju.answers.reader import CHINESE as EVALSCOPE_CHINESE
from keju.answers.reader import EvalScopeChoiceReader, LabelReader
from keju.benchmarks.base import Benchmark, Mean, Protocol, ToolTask, by_name
from keju.benchmarks.cmmlu.readers import CMMLUOfficialReader
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

MAX_SHOTS = 5
AVERAGE = "average"


class CMMLUSubject(msgspec.Struct, frozen=True):
    """One subject: its file name, its Chinese name, its categories and the rows of its test."""

    name: str
    chinese: str
    categories: tuple[str, ...]
    """A subject of ``China specific`` also belongs to another category."""
    rows: int


class CMMLUFacts(msgspec.Struct):
    """The content of ``facts.json``."""

    subjects: list[CMMLUSubject]


SUBJECTS = {subject.name: subject for subject in read_facts(__file__, CMMLUFacts).subjects}
TITLES = {subject.name: subject.chinese for subject in SUBJECTS.values()}
CATEGORIES = ("STEM", "Humanities", "Social Science", "Other", "China specific")


def _mean(name: str, title: str, subjects: list[str], *, group: bool = False) -> Mean:
    return Mean(name, title, tuple((subject,) for subject in subjects), group)


AVERAGES = (
    _mean(AVERAGE, "Average over subjects", list(SUBJECTS)),
    *(
        _mean(name, name, [s.name for s in SUBJECTS.values() if name in s.categories], group=True)
        for name in CATEGORIES
    ),
)

HEAD = "以下是关于{subject}的单项选择题，请直接给出正确答案的选项。\n\n"
OFFICIAL = label_wording("题目：{question}\n{choices}\n答案是：", head=HEAD)
LM_EVAL = label_wording(
    "{question}\n{choices}\n答案：", head=HEAD, space=" ", question_words=STRIPPED
)
EVALSCOPE = Wording(
    question="回答下面的单项选择题，请选出其中的正确答案。你的回答的最后一行应该是这样的格式："
    '"答案：[LETTER]"（不带引号），其中 [LETTER] 是 {letters} 中的一个。请在回答前进行一步步思考。'
    "\n\n问题：{question}\n选项：\n{choices}\n",
    head="以下是一些示例问题：\n\n{examples}\n\n",
    shot="{question}\n{choices}\nANSWER: {answer}",
    words=words("A) text"),
)

messages.add_folder(Path(__file__).parent / "texts")

CMMLU = Benchmark(
    name="cmmlu",
    title="CMMLU",
    about=messages.text_of("about_exam_cmmlu", {}),
    aliases=("c-mmlu",),
    layout=Layout(
        tables=table_names(("test", "dev"), SUBJECTS),
        stems=("{split}/{subject}", "{subject}/{split}"),
        archives=("cmmlu_v1_0_1.zip",),
        hubs={
            "huggingface": HubRepo("haonan-li/cmmlu", "main"),
            "modelscope": HubRepo("opencompass/cmmlu", "master"),
        },
        rows={f"test/{s.name}": s.rows for s in SUBJECTS.values()}
        | {f"dev/{name}": MAX_SHOTS for name in SUBJECTS},
        checksums=Path(__file__).with_name("checksums.txt"),
    ),
    rows={subject.name: subject.rows for subject in SUBJECTS.values()},
    subset_names=tuple(SUBJECTS),
    subset_aliases={chinese: name for name, chinese in TITLES.items()},
    subset_about={s.name: f"{s.chinese} ({', '.join(s.categories)})" for s in SUBJECTS.values()},
    averages=AVERAGES,
    questions=lambda setup: make_questions(setup, TITLES),
    examples=lambda setup: read_questions(setup, "dev"),
    readers=by_name(
        CMMLUOfficialReader(),
        LabelReader("lm-eval"),
        EvalScopeChoiceReader(EVALSCOPE_CHINESE),
        ChineseReader(continues=True, base=True),
    ),
    tool_tasks=(
        ToolTask(tool="lm-eval", name=r"cmmlu_(.+)", protocol="lm-eval", shots=MAX_SHOTS),
        ToolTask(tool="evalscope", name="cmmlu", protocol="evalscope", shots=MAX_SHOTS),
    ),
    protocols=by_name(
        Protocol(
            name="official",
            version="1",
            reader="official",
            headline=AVERAGE,
            about="The authors' scripts: 5 worked examples, likeliest label, mean over subjects",
            decode="labels",
            form="completion",
            wording=OFFICIAL,
            shots=MAX_SHOTS,
            shot_choices=range(MAX_SHOTS + 1),
            templates=False,
        ),
        Protocol(
            name="lm-eval",
            version="1.0",
            reader="lm-eval",
            about="lm-eval 0.4.13 cmmlu: zero-shot, likeliest label, micro average",
            decode="labels",
            form="completion",
            label=" ",
            wording=LM_EVAL,
            shot_choices=range(MAX_SHOTS + 1),
            templates=False,
        ),
        Protocol(
            name="evalscope",
            version="1",
            reader="evalscope",
            about="EvalScope: zero-shot chain of thought in one message; asks for 答案：X",
            wording=EVALSCOPE,
            shot_choices=range(MAX_SHOTS + 1),
            readers=by_name(
                EvalScopeChoiceReader(EVALSCOPE_CHINESE),
                CMMLUOfficialReader(),
                LabelReader("lm-eval"),
                ChineseReader(),
            ),
        ),
    ),
)
"""CMMLU: 11,582 test questions of 67 subjects, CC BY-NC-SA 4.0."""
