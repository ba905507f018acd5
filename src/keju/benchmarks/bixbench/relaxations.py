"""The ways in which published BixBench results relax the grading rules of version 1.5.

Each relaxation is a switch with a name, so that its effect on a score can be measured. Relaxations
only accept answers: they never reject one that the strict rules accept. They are published by

- Future-House/BixBench, graders.py: ``part_of_key``;
- omicverse/OmicOS-BixBench, docs/grading-deviations.md: ``one_percent``, ``last_digit``,
  ``three_percent``, ``hundredfold``, ``last_number``, ``any_number``, ``key_in_answer``;
- mims-harvard/ToolUniverse, pull request 510: ``nearest_option``;
- marin-community/marin, issue 9258: ``rounding``; and several of them: ``percent``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Literal, get_args

from keju.answers.numbers import (
    ParsedNumber,
    find_numbers,
    normalise_for_comparison,
    parse_number,
    parse_range,
    plain_numerals,
)
from keju.answers.segments import unwrap_latex
from keju.benchmarks.bixbench.stated_numbers import find_stated_number
from keju.types import Sample

EVAL_MODE = "eval_mode"
"""Key of `Sample.metadata` that tells how a question's answers are graded."""
RANGE, TEXT, JUDGED = "range_verifier", "str_verifier", "llm_verifier"

Relaxation = Literal[
    "rounding", "percent", "hundredfold", "one_percent", "last_digit", "three_percent",
    "last_number", "any_number", "key_in_answer", "part_of_key", "nearest_option",
]  # fmt: skip
RELAXATIONS: tuple[str, ...] = get_args(Relaxation)
"""The names of all switches; ``bixbench.relaxation_NAME`` of the messages describes each."""
DEFAULT_RELAXATIONS = ("rounding", "percent")
"""The switches of the reader ``tolerant`` unless the settings name others."""

_PRECISE = Context(prec=200)
_HUNDRED, _ONE = Decimal(100), Decimal(1)
_ONE_PERCENT, _THREE_PERCENT = Decimal("0.01"), Decimal("0.03")
_UNITS = 2
"""How far a whole number may be from a whole key with ``last_digit``."""


class RelaxedRules:
    """The rules of version 1.5 with some relaxations switched on."""

    def __init__(
        self, switches: Collection[str], distractors: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """`distractors` are the wrong options of each question, by sample id."""
        self._switches = frozenset(switches)
        self._distractors = distractors or {}

    def accepts(self, value: str, sample: Sample) -> bool:
        """Whether a relaxation makes an answer right; the strict rules are not asked."""
        if sample.metadata.get(EVAL_MODE) == RANGE:
            return self._is_in_range(value, sample)
        if sample.metadata.get(EVAL_MODE) == TEXT and self._repeats_key(value, sample.target):
            return True
        key = parse_number(sample.target)
        if key is None:
            return False
        numbers = self._list_numbers(value)
        if self._is_nearest(numbers, sample):
            return True
        mode = sample.metadata.get(EVAL_MODE, JUDGED)
        return any(
            self._is_near(candidate, key, mode)
            for number in numbers
            for candidate in self._list_values(number, key)
        )

    def _is_in_range(self, value: str, sample: Sample) -> bool:
        """Whether a number of an answer is inside the bounds, or nearer to them than to others."""
        bounds = parse_range(sample.target)
        if bounds is None:
            return False
        stated = find_stated_number(value)
        numbers = [] if stated is None else [stated]
        if "any_number" in self._switches:
            numbers += _find_all_numbers(value)
        candidates = [number.value for number in numbers] if "any_number" in self._switches else []
        if "percent" in self._switches:
            candidates += [number.value / _HUNDRED for number in numbers if number.percent]
        return any(map(bounds.holds, candidates)) or self._is_nearest(numbers, sample)

    def _list_numbers(self, value: str) -> list[ParsedNumber]:
        """Return the numbers that may be the answer: the whole text, or its last number."""
        whole = parse_number(value)
        if whole is not None:
            return [whole]
        return _find_all_numbers(value)[-1:] if "last_number" in self._switches else []

    def _list_values(self, number: ParsedNumber, key: ParsedNumber) -> Iterator[Decimal]:
        """Yield the values that an answer may have: as written, and in the unit of the key."""
        if number.percent == key.percent or self._switches & {
            "percent", "one_percent", "last_digit", "three_percent",
        }:  # fmt: skip
            yield number.value
        if "percent" in self._switches and number.percent != key.percent:
            yield number.value / _HUNDRED if number.percent else number.value * _HUNDRED
        if "hundredfold" in self._switches and 0 < abs(key.value) <= _ONE:
            yield number.value / _HUNDRED

    def _is_near(self, value: Decimal, key: ParsedNumber, mode: str) -> bool:
        """Whether a value equals the key, or is as near to it as a switch allows."""
        distance = abs(value - key.value)
        if not distance:
            return True
        allowed = Decimal(0)
        if "one_percent" in self._switches and mode == TEXT:
            allowed = abs(key.value) * _ONE_PERCENT
        if "three_percent" in self._switches and mode == JUDGED:
            allowed = max(allowed, abs(key.value) * _THREE_PERCENT)
        if "last_digit" in self._switches:
            is_whole = mode == TEXT and key.quantum >= _ONE
            allowed = max(allowed, key.quantum * (_UNITS if is_whole else 1))
        return distance <= allowed or ("rounding" in self._switches and rounds_to(value, key))

    def _repeats_key(self, value: str, target: str) -> bool:
        """Whether an answer contains the key, or is a part of it, where a switch allows that."""
        if "key_in_answer" in self._switches:
            key = re.escape(normalise_for_comparison(target))
            # `cdkn1a` in `the gene is cdkn1a.`; not `5:1` in `15:1`, `35` in `35.2`.
            within = re.compile(rf"(?<![\w.:/-]){key}(?!\w|[.:/-]\w)")
            if within.search(normalise_for_comparison(value)):
                return True
        letters = _keep_letters(value)
        return bool(
            "part_of_key" in self._switches and letters and letters in _keep_letters(target)
        )

    def _is_nearest(self, numbers: Sequence[ParsedNumber], sample: Sample) -> bool:
        """Whether a number is nearer to the key than to every other option of its question."""
        if "nearest_option" not in self._switches or not numbers:
            return False
        value = numbers[-1].value
        key_distance = _find_distance(value, sample.target)
        distances = [
            distance
            for distractor in self._distractors.get(sample.id, ())
            if (distance := _find_distance(value, distractor)) is not None
        ]
        return key_distance is not None and bool(distances) and key_distance < min(distances)


def rounds_to(value: Decimal, key: ParsedNumber) -> bool:
    """Whether `value` equals the key when rounded to the key's digits."""
    if value.adjusted() > key.value.adjusted() + 2:
        return False
    rounded = value.quantize(key.quantum, rounding=ROUND_HALF_UP, context=_PRECISE)
    return rounded == key.value


def _find_all_numbers(text: str) -> list[ParsedNumber]:
    """Return every number of a text whose value is known."""
    numbers = find_numbers(unwrap_latex(plain_numerals(text)))
    return [number for number in numbers if number.clear or number.value]


def _find_distance(value: Decimal, option: str) -> Decimal | None:
    """Return the distance of a value from an option; None if the option is no number or range."""
    if (bounds := parse_range(option)) is not None:
        return max(bounds.low - value, value - bounds.high, Decimal(0))
    number = parse_number(option)
    return None if number is None else abs(number.value - value)


def _keep_letters(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return re.sub(r"[^a-zA-Z0-9]", "", text).lower()
