"""``docs/reference-causes.md``: every cause that ``keju audit`` reports, by name and code."""

from __future__ import annotations

from itertools import pairwise

from keju.messages import Language, labels, store
from keju.results.causes import CODES
from tools.docs.markdown import code, opening, table

NAME = "reference-causes"
TITLE = {"en": "Causes", "zh": "原因一览"}
INTRODUCTION = {
    "en": "The causes that `keju audit` reports, in order: a reply is listed under the first one "
    "that applies. [Why is it low?](why-low.md) says how they are found.",
    "zh": "`keju audit` 报告的全部原因，按顺序排列：每条回复列在第一个符合的原因之下。"
    "[得分为什么低？](why-low.zh-CN.md)说明如何查找。",
}
COLUMNS = {"en": ("cause", "code", "what it means"), "zh": ("原因", "代码", "含义")}
GROUPS = (
    ("broken_by_server", "What came back", "收到了什么"),
    ("reader_failed", "The right answer, the grade, the labels", "标准答案、评分、标签"),
    ("refuses", "What the reply says", "回复说了什么"),
    ("as_json", "The form of the answer", "答案的格式"),
    ("letter_of_word", "How it was read", "如何读取"),
    ("one_reader_only", "Without an explanation", "没有解释"),
)
"""The first code of each group, and its title in English and in Chinese."""


def page(language: Language) -> str:
    """The page in a language."""
    names, texts = labels(language), store.texts(language, "messages")
    lines = [*opening(NAME, TITLE[language], language), INTRODUCTION[language], ""]
    starts = [CODES.index(first) for first, _, _ in GROUPS]
    for (_, english, chinese), (start, end) in zip(
        GROUPS, pairwise([*starts, len(CODES)]), strict=True
    ):
        rows = [
            (names[f"cause.{each}"], code(each), texts[f"cause_{each}"])
            for each in CODES[start:end]
        ]
        lines += [f"## {english if language == 'en' else chinese}", ""]
        lines += table(COLUMNS[language], rows)
    return "\n".join(lines).rstrip() + "\n"
