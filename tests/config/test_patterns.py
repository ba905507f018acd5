"""Patterns of the user's own mean what they mean in Python, and none can hang a run."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.config import DatasetArgs
from keju.config.patterns import MOST_WORK, SafePattern
from keju.errors import ConfigError

SLOW = {
    "(a|aa)+$": "a" * 5000 + "b",
    "(?:a?){45}a{45}$": "a" * 44 + "b",
    "(a+)+$": "a" * 5000 + "b",
    "(?:(?:x+)y){2,}": "x" * 5000,
    "(.*)*(.*)*(.*)*=": "a" * 5000,
}


@pytest.mark.parametrize(("pattern", "text"), SLOW.items())
def test_what_takes_python_for_ever_is_read_at_once(pattern: str, text: str) -> None:
    assert SafePattern(pattern).first_match(text) == ""
    assert DatasetArgs(**{"filters": {"regex": pattern}}).filters.regex == pattern  # type: ignore[arg-type]


REFUSED = {
    "(?=a)": "a lookahead or lookbehind",
    "x(?!a)": "a lookahead or lookbehind",
    "(?<=a)b": "a lookahead or lookbehind",
    "(a)\\1": "a backreference",
    "(?P<n>a)(?P=n)": "a backreference",
    "(x)(?(1)a|b)": "a conditional group",
    "(?>a+)b": "an atomic group",
    "a++b": "a possessive repeat",
}


@pytest.mark.parametrize(("pattern", "construct"), REFUSED.items())
def test_what_needs_more_than_one_pass_is_refused_by_name(pattern: str, construct: str) -> None:
    settings: dict[str, Any] = {"filters": {"regex": f"answer {pattern}"}}
    with pytest.raises(ConfigError, match=f"cannot hold {construct}") as error:
        DatasetArgs(**settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("pattern", ["(", "a{99999999999}", "a{5000}", "(?:\\w{900}){900}"])
def test_what_is_no_pattern_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="not a regular expression") as error:
        SafePattern(pattern)
    assert "\n" not in str(error.value)


def expected(pattern: str, text: str) -> list[str]:
    compiled = re.compile(pattern)
    return [match[1 if compiled.groups else 0] or "" for match in compiled.finditer(text)]


PIECES = st.sampled_from(
    ["a", "B", "1", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", ".", "[ab]", "[^a]", "[^\\W_]",
     "[\\d答]", "[^\\s,]", "答", "案", "\\.", "\\n", "(?:ab|b)", "(a|)", "(?i:b)", "(?s:.)", "[a-c]",
     "٣", "（", "\\Z", "(?-i:a)"]
)  # fmt: skip
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?", "??", "{0,3}?"])
FLAGS = st.sampled_from(["", "", "(?i)", "(?s)", "(?m)", "(?x)", "(?a)", "(?im)"])
PATTERNS = st.builds(
    lambda flags, parts, start, end: f"{flags}{start}{''.join(map(''.join, parts))}{end}",
    FLAGS,
    st.lists(st.tuples(PIECES, REPEATS), min_size=1, max_size=4),
    st.sampled_from(["", "", "^"]),
    st.sampled_from(["", "", "\\Z"]),
)
TEXTS = st.text("aAbBc1_ .,\n答案是（）٣é\u3000\x1c", max_size=12)


@given(PATTERNS, TEXTS)
def test_a_pattern_reads_what_python_reads(pattern: str, text: str) -> None:
    """Engines go on after an empty match in ways of their own: there the first one counts."""
    try:
        matches = expected(pattern, text)
    except re.error:  # a repeat of nothing
        return
    safe = SafePattern(pattern)
    assert safe.first_match(text) == (matches[0] if matches else "")
    if all(match[0] for match in re.finditer(pattern, text)):
        assert safe.all_matches(text) == matches


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^b$", "a\nb\nc"),
        ("(?m)^b$", "a\nb\nc"),
        ("答案[:：]\\s*(\\w+)$", "答案：\u3000甲乙\n"),
        ("<a>(.*?)</a>", "<a>1</a><a>2</a>"),
        ("-?\\d+(?:,\\d{3})*(?:\\.\\d+)?", "1,234.5 and -7"),
        ("(?i)ANSWER: ([a-d])", "Answer: C"),
        ("\\b([A-D])\\b", "A or (B)"),
    ],
)
def test_usual_patterns(pattern: str, text: str) -> None:
    assert SafePattern(pattern).all_matches(text) == expected(pattern, text)


def test_too_many_matches_for_a_long_text_are_looked_for_at_its_end() -> None:
    """Each of them looks at all that follows, in vain."""
    text = "a" * 200_000 + "the end"
    assert len(text) ** 2 > MOST_WORK
    assert SafePattern("a.*z|a|end").all_matches(text)[-1] == "end"
