"""The protocols of fresh questions: BBH's own prompts, and their Chinese versions.

An English protocol has the version of BBH's protocol, since prompts and readers are the same. A
Chinese one adds its own version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from keju.benchmarks.base import by_name
from keju.benchmarks.bbh.protocols import ANSWER_ONLY_QUESTION as PUBLISHED_QUESTION
from keju.benchmarks.bbh.protocols import NEXT_QUESTION as ENGLISH_STOP
from keju.benchmarks.bbh.protocols import PROTOCOLS as PUBLISHED
from keju.benchmarks.bbh.protocols import (
    QUESTION,
    BBHProtocol,
    ProblemWording,
    make_question_wording,
)
from keju.benchmarks.fresh.readers import CHINESE_READERS
from keju.benchmarks.fresh.task import Language
from keju.benchmarks.fresh.worked import load_answer_only, load_worked
from keju.benchmarks.wording import Wording

CHINESE_VERSION = "zh1"
NEXT_QUESTION = "\n\n问："
MOST_SHOTS = 16
EVALSCOPE_QUESTION = (
    "问：{question}\n"
    "答：让我们一步一步地思考。请按“所以答案是 [ANSWER]”的格式写出最终答案（不加引号和 "
    "markdown），其中 [ANSWER] 是本题的答案。\n"
)
PAPER_QUESTION = "问：{question}\n答：让我们一步一步地思考。"
ANSWER_ONLY_QUESTION = "问：{question}\n答："
MCPBR_PROBLEM = (
    "请完成下面的推理任务（{subset}）：\n\n{question}\n\n请一步一步地思考，并给出最终答案。"
)
MCPBR_PROMPT = (
    "请解答下面的推理难题：\n\n{problem_statement}\n\n"
    "重要说明：\n"
    "- 一步一步仔细思考\n"
    "- 写出推理过程\n"
    "- 给出明确、唯一的最终答案"
)
FINAL_LINE = "\n- 最后一行只写答案本身，写法与题目一致，例如选项写作 (B)"


@dataclass(frozen=True, kw_only=True)
class FreshProtocol(BBHProtocol):
    """A protocol that only fresh questions have."""

    drawn: bool = False
    """Whether the worked examples are generated like the questions, at their difficulty."""


Load = Callable[[Sequence[str], Language], Mapping[str, str]]
"""Loads the worked examples of subsets."""


def _english_protocol(name: str, load: Load, **changes: Any) -> BBHProtocol:
    """Return a protocol of BBH with the worked examples of fresh questions."""
    return replace(PUBLISHED[name], examples=lambda _, subsets: load(subsets, "en"), **changes)


def _chinese_protocol(name: str, load: Load, wording: Wording) -> BBHProtocol:
    """Return the Chinese version of a protocol."""
    english = PROTOCOLS[name]
    return replace(
        english,
        version=f"{english.version}-{CHINESE_VERSION}",
        examples=lambda _, subsets: load(subsets, "zh"),
        wording=wording,
        stop=tuple(NEXT_QUESTION if stop == ENGLISH_STOP else stop for stop in english.stop),
        readers=CHINESE_READERS,
    )


_MEAN = {"headline": "macro_accuracy"}
PROTOCOLS: dict[str, BBHProtocol] = by_name(
    _english_protocol("evalscope", load_worked),
    _english_protocol(
        "paper",
        load_worked,
        about="Suzgun et al. 2022: 3-shot chain of thought, exact match, mean of the subsets",
        **_MEAN,
    ),
    _english_protocol(
        "answer-only",
        load_answer_only,
        about="Suzgun et al. 2022: 3-shot without reasoning, exact match, mean of the subsets",
        **_MEAN,
    ),
    _english_protocol("mcpbr", load_worked),
    FreshProtocol(
        name="short",
        version="1",
        reader="answer-only",
        about="5-shot without reasoning, examples as hard as the question; for small models",
        headline="macro_accuracy",
        form="completion",
        stop=("\n",),
        max_tokens=128,
        shots=5,
        shot_choices=range(MOST_SHOTS + 1),
        wording=make_question_wording(PUBLISHED_QUESTION),
        drawn=True,
    ),
)
CHINESE_PROTOCOLS: dict[str, BBHProtocol] = by_name(
    _chinese_protocol("evalscope", load_worked, make_question_wording(EVALSCOPE_QUESTION)),
    _chinese_protocol("paper", load_worked, make_question_wording(PAPER_QUESTION)),
    _chinese_protocol("answer-only", load_answer_only, make_question_wording(ANSWER_ONLY_QUESTION)),
    _chinese_protocol("short", load_answer_only, make_question_wording(ANSWER_ONLY_QUESTION)),
    _chinese_protocol(
        "mcpbr",
        load_worked,
        ProblemWording(
            question=MCPBR_PROMPT,
            words={"problem_statement": QUESTION["question"]},
            problem=MCPBR_PROBLEM,
            final_line=FINAL_LINE,
        ),
    ),
)
