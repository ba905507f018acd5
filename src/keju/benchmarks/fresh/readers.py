"""Readers for Chinese questions: BBH's readers with the Chinese marker and Chinese verdicts.

The worked examples end with ``所以答案是 (B)。``. BBH's readers read replies to English questions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from keju.answers.kinds import AnswerKind, Number, Verdict
from keju.answers.reader import Reader
from keju.answers.robust import RobustReader
from keju.answers.segments import AnswerStatement
from keju.benchmarks.base import by_name
from keju.benchmarks.bbh.kinds import KIND_OF, BracketSequence
from keju.benchmarks.bbh.readers import (
    AnswerOnlyReader,
    EvalScopeReader,
    McpbrReader,
    PaperReader,
)
from keju.benchmarks.fresh.worked import MARKS
from keju.types import Sample

MARKER = MARKS["zh"].conclusion
FULL_STOPS = ("。", ".")


class ChinesePaperReader(PaperReader):
    """Reads the text after ``所以答案是`` on its line, compared exactly."""

    marker, full_stops = MARKER, FULL_STOPS


class ChineseEvalScopeReader(EvalScopeReader):
    """Reads the line after the last ``所以答案是``, or the first line of a reply without one."""

    marker, full_stops = MARKER, FULL_STOPS


class ChineseVerdict(Verdict):
    """A verdict in Chinese characters, which have no word boundaries.

    ``是的，因为…`` begins with the verdict ``是的``, but ``是因为…`` does not: the text after a
    verdict must end the word.
    """

    def __init__(self, values: Mapping[str, str], phrases: Mapping[str, str] | None = None) -> None:
        super().__init__(values, phrases=phrases)
        words = "|".join(sorted(map(re.escape, values), key=len, reverse=True))
        word = rf"({words})(?![\w\u4e00-\u9fff-])"
        self._pattern = re.compile(word, re.IGNORECASE)
        self._alternative = re.compile(rf"(?:否则|不然|或者?)(?:就?[是为])?\s*{word}")


TRUE = {"真": "真", "假": "假", "为真": "真", "为假": "假", "true": "真", "false": "假"}
YES = {
    "是": "是", "是的": "是", "会": "是", "对": "是", "肯定": "是", "肯定的": "是", "yes": "是",
    "否": "否", "不是": "否", "不会": "否", "不对": "否", "否定": "否", "否定的": "否", "no": "否",
}  # fmt: skip
# `该表达式的值为假`, `结果等于真`.
_VALUES = {rf"(?:值|结果|表达式)(?:最终)?(?:是|为|等于)\s*{word}": word for word in ("真", "假")}
_PHRASES = {
    # whether the path returns to the starting point
    r"(?:没有?|不能?|未能?|无法|回不)(?:再|会|能)?(?:回到|在|到)[^,，。]{0,4}(?:起点|原点|出发点"
    r"|原处)": "否",
    r"(?:距离?|离)[^,，。]{0,4}(?:起点|原点|出发点|原处)(?:还?有)?\s*[1-9]": "否",
    r"(?<![没不未能])(?:回到了?|在|正好在)[^,，。不]{0,3}(?:起点|原点|出发点|原处)": "是",
    # whether a person tells the truth
    r"说谎|撒谎|说的?是?假话|没有?说真话|不(?:是)?说真话": "否",
    r"(?<![没不有])(?:说|讲)的?(?:是)?(?:真话|实话)": "是",
}
# `五`, `十二个`: a number below a hundred in Chinese characters, perhaps with its measure word.
_NUMERAL = re.compile(r"([一二两三四五六七八九]?十)?([零一二两三四五六七八九])?[个只件种]?")
_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"两": 2}


class ChineseCount(Number):
    """A number, also in Chinese characters: ``十二`` is 12."""

    def read(self, segment: str, sample: Sample) -> AnswerStatement:
        return super().read(_to_digits(segment), sample)

    def whole(self, text: str, sample: Sample) -> str | None:
        return super().whole(_to_digits(text), sample)


def _to_digits(text: str) -> str:
    """Return `text` in digits if it is only a number in Chinese characters."""
    numeral = _NUMERAL.fullmatch(text.strip().rstrip("。.")) if text else None
    if numeral is None or not (numeral[1] or numeral[2]):
        return text
    tens = _DIGITS.get(numeral[1][:-1], 1) if numeral[1] else 0
    return str(10 * tens + _DIGITS.get(numeral[2] or "零", 0))


# `输入：< [ (`: the brackets of a question, at its end.
_LAST_INPUT = re.compile(r"(?:输入|Input)\s?[:：]\s?([^\n]*)\Z")


def opening_brackets(sample: Sample) -> str:
    """Return the brackets of a question, at its end after ``输入：``."""
    match = _LAST_INPUT.search(sample.text.strip())
    return match[1].strip() if match else ""


KINDS: Mapping[str, AnswerKind] = KIND_OF | {
    "boolean_expressions": ChineseVerdict(TRUE, _VALUES),
    "navigate": ChineseVerdict(YES, _PHRASES),
    "web_of_lies": ChineseVerdict(YES, _PHRASES),
    "dyck_languages": BracketSequence(opening_brackets),
    "object_counting": ChineseCount(),
}
"""By subset: the kind of answer that the robust reader reads for Chinese questions."""

CHINESE_READERS: dict[str, Reader] = by_name(
    ChineseEvalScopeReader(),
    ChinesePaperReader(),
    AnswerOnlyReader(),
    McpbrReader(),
    RobustReader(lambda sample: KINDS[sample.subset], strict=MARKER, explains=True),
)
