"""Patterns of the user's own that could hang a run are refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from keju.config import DatasetArgs
from keju.config.text import check_pattern
from keju.errors import ConfigError


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a*?)*", "(?:a|b+)*", "(?:(?:x+)y){2,}", "(?=(a+)+)", "(x)(?(1)(a+)+|b)"],
)
def test_a_repeat_inside_a_repeat_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="a repeat inside a repeat"):
        check_pattern(pattern)
    given: dict[str, Any] = {"filters": {"regex": pattern}}
    with pytest.raises(ConfigError, match=r"filters.regex: a repeat inside a repeat") as told:
        DatasetArgs(**given)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "pattern",
    ["(a++)+", "(?>a+)+", "(a{1,3})+", "(?:a+)?", "-?\\d+(?:,\\d{3})*(?:\\.\\d+)?", "<a>(.*?)</a>"],
)
def test_what_cannot_hang_is_taken(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(", "a{99999999999}"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        check_pattern(pattern)
