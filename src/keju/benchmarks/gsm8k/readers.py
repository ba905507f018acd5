"""The readers of GSM8K: two of lm-eval, ZeroEval's, and Keju's.

lm-eval compares texts. It removes commas, dollar signs, all text up to ``#### `` and a final full
stop from the answer and from the gold answer, and ignores case. ZeroEval compares the first number
of each.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

import msgspec

from keju.answers.kinds import SOLVED, Number
from keju.answers.reader import Reader
from keju.answers.robust import RobustReader
from keju.types import Answer, Sample, Tier

# `#### 1,234`, in the form of the worked examples of the training split.
_SOLVED_NUMBER = re.compile(r"#### (-?[0-9.,]+)")
# `The answer is 1,234.`; one character of any kind must follow the number.
_ANNOUNCED_NUMBER = re.compile(r"The answer is (-?[0-9.,]+).")
# `$1,234.50`, `-18`, `7`; also `...`, which is no number: published results contain this.
_ANY_NUMBER = re.compile(r"-?[$0-9.,]{2,}|-?[0-9]+")

ANNOUNCED = "The answer is"


def normalise(text: str) -> str:
    """Return a text as lm-eval compares it: ``$1,234.`` becomes ``1234``."""
    text = text.replace(",", "").replace("$", "")
    text = text[text.rfind("#### ") + 5 :] if "#### " in text else text
    text = text[:-1] if text.endswith(".") else text
    return text.removesuffix(".\n").lower() if text.endswith(".\n") else text.lower()


class StrictMatchReader(Reader):
    """lm-eval: the first number after the marker of the worked examples."""

    name = "strict-match"
    about = "gsm8k.about_reader_strict_match"

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def read(self, text: str, sample: Sample) -> Answer:
        match = self._pattern.search(text)
        return Answer(match[1].strip(), "strict") if match else Answer(reason="no_marker")

    def matches(self, value: str, sample: Sample) -> bool:
        return normalise(value) == normalise(sample.target)


class FlexibleExtractReader(StrictMatchReader):
    """lm-eval: the last number anywhere in the reply."""

    name = "flexible-extract"
    about = "gsm8k.about_reader_flexible_extract"
    marked = False

    def __init__(self) -> None:
        super().__init__(_ANY_NUMBER)

    def read(self, text: str, sample: Sample) -> Answer:
        value = ""
        for match in self._pattern.finditer(text):
            value = match[0]
        return Answer(value.strip(), "fallback") if value else Answer(reason="no_number")


# `"answer": "18"`, with an escaped quote at the latest at the next quote.
_QUOTED_FIELD = re.compile(r'"answer"\s*+:\s*+"([^"]*+)"')
# `"answer": 18`: the value ends before a comma or white space.
_BARE_FIELD = re.compile(r'"answer"\s*+:\s*+([^,\s]*+)')
# `answer: 18`, without quotes.
_BARE_NAME = re.compile(r"answer\s*+:\s*+([^,\s]*+)")
# `\boxed{36}`, a box around one word.
_BOX = re.compile(r"\\boxed\{(\w+)\}")
_NEAR_END = 30
"""The characters at the end of a reply in which a box must begin."""
# `-18`, `3.5`; not `.5`.
_FIRST_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# `3/4`, a fraction of two plain numbers.
_FRACTION = re.compile(r"\s*(-?\d{1,15}(?:\.\d{1,15})?)\s*/\s*(-?\d{1,15}(?:\.\d{1,15})?)\s*", re.A)


def find_json_object(text: str) -> str | None:
    """Return the first balanced ``{…}`` of a text, quotes aside."""
    depth, start = 0, -1
    for match in re.finditer(r"[{}]", text):  # `{` or `}`
        if match[0] == "{":
            start = match.start() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                return text[start : match.end()]
    return None


def find_answer_field(text: str) -> str | None:
    """Return the field ``answer`` of the first JSON object, or of a broken one by patterns.

    A reply without the field may end with a box; then its first box counts. The published code
    looks for boxes only in replies of Llama 3.1. In all 44 published sets of replies with an
    accuracy, looking for them in all replies gives the same verdicts.
    """
    if found_object := find_json_object(text):
        try:
            content = json.loads(found_object.replace("\n", ""))  # also `NaN`, as published
        except (ValueError, RecursionError):
            content = None
        if isinstance(content, Mapping) and "answer" in content:
            return str(content["answer"])
    for pattern in (_QUOTED_FIELD, _BARE_FIELD, _BARE_NAME):
        if match := pattern.search(text):
            return match[1]
    box = _BOX.search(text) if "boxed" in text[-_NEAR_END:] else None
    return box[1] if box else None


def first_number(text: str) -> float | None:
    """Return the first number of an answer; arithmetic with a slash is calculated first."""
    text = text.replace("$", "").strip().replace(",", "")
    if "/" in text and (value := calculate(text)) is not None:
        text = str(value)
    match = _FIRST_NUMBER.search(text)
    return float(match[0]) if match else None


_OPERATIONS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_LONGEST_ARITHMETIC = 200


def calculate(text: str) -> float | None:
    """Return the value of Python arithmetic such as ``3/4`` or ``(5 + 3)/2``; else None."""
    if len(text) > _LONGEST_ARITHMETIC:
        return None
    try:
        return float(_calculate_node(ast.parse(text, mode="eval").body))
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _calculate_node(node: ast.expr) -> float:
    """Return the value of a part; ValueError if it is not arithmetic."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]  # a number: the line above
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _calculate_node(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        calculation = _OPERATIONS[type(node.op)]
        return calculation(_calculate_node(node.left), _calculate_node(node.right))
    raise ValueError("not arithmetic")


def divide_out(fraction: str) -> str:
    """Return a plain fraction as a whole number if it is one: ``2468/2`` is 1234."""
    numerator, denominator = (Fraction(part.strip()) for part in fraction.split("/"))
    quotient = numerator / denominator if denominator else None
    return str(quotient) if quotient is not None and quotient.denominator == 1 else fraction.strip()


class ZeroEvalReader(Reader):
    """ZeroEval: the field ``answer`` of the JSON object in the reply."""

    name = "zeroeval"
    version = 3
    about = "gsm8k.about_reader_zeroeval"

    def read(self, text: str, sample: Sample) -> Answer:
        value = find_answer_field(text)
        return Answer(reason="no_marker") if value is None else Answer(value, "strict")

    def matches(self, value: str, sample: Sample) -> bool:
        number, target = first_number(value), first_number(sample.target)
        return number is not None and number == target


# `"answer": "`, the key of a JSON object with the opening quote of its value.
_FIELD = re.compile(r'"answer"\s*+:\s*+"?')
# `"`, `}` or a line break: the end of the value of a field.
_FIELD_END = re.compile(r'["}\n]')
# `2:00 pm`, `2 p.m.`, `2 o'clock`: a time of day on the hour.
_HOUR = re.compile(r"\s*+(\d{1,2})(?::00)?\s*+(?:[ap]\.?m\b\.?|o['’]clock)?\s*+", re.I)
_LONGEST_FIELD = 400


class NumberReader(RobustReader):
    """Keju's rule for numbers. A JSON field ``answer`` counts before the reasoning around it."""

    version = 100 + RobustReader.version

    def read(self, text: str, sample: Sample) -> Answer:
        end = 0
        for match in _FIELD.finditer(text):
            end = match.end()
        if not end:
            return super().read(text, sample)
        stop = _FIELD_END.search(text, end, end + _LONGEST_FIELD)
        value = text[end : stop.start() if stop else end + _LONGEST_FIELD]
        if hour := _HOUR.fullmatch(value):
            value = hour[1]
        elif _FRACTION.fullmatch(value):
            return Answer(divide_out(value), "strict", rule="marker", passage=value)
        answer = super().read(f"{ANNOUNCED} {value}", sample)
        if answer.value is None:
            return answer if value.strip() else super().read(text, sample)
        tier: Tier = "strict" if stop else "tolerant"
        return msgspec.structs.replace(answer, tier=tier, rule="marker", passage=value.strip())


def make_readers(protocol: str) -> dict[str, Reader]:
    """Return all readers, with the marker of the worked examples of `protocol`."""
    is_solved = protocol == "lm-eval"
    marker = re.compile(ANNOUNCED) if protocol.startswith("lm-eval-") else SOLVED
    readers: tuple[Reader, ...] = (
        StrictMatchReader(_SOLVED_NUMBER if is_solved else _ANNOUNCED_NUMBER),
        FlexibleExtractReader(),
        ZeroEvalReader(),
        NumberReader(Number(anywhere=True), strict=marker),
    )
    return {reader.name: reader for reader in readers}
