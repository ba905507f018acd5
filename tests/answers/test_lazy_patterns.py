"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import pickle
import re

import pytest

from keju.answers.lazy_patterns import lazy_pattern


def test_a_broken_pattern_is_noticed_only_when_it_is_used() -> None:
    pattern = lazy_pattern("(")
    with pytest.raises(re.error):
        pattern.search("x")


def test_a_lazy_pattern_matches_like_a_compiled_one_and_can_be_sent_to_another_process() -> None:
    pattern = lazy_pattern(lambda: "answer is ([A-D])", re.IGNORECASE)
    for copy in (pattern, pickle.loads(pickle.dumps(pattern))):
        match = copy.search("The ANSWER is b.")
        assert match is not None
        assert match[1] == "b"
        assert copy.flags & re.IGNORECASE
    assert not hasattr(pattern, "unknown")
