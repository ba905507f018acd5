"""The table of subjects is the published one, and every name finds its subject."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.ceval import CEVAL
from keju.benchmarks.ceval.metadata import (
    CATEGORIES,
    HARD,
    SUBJECTS,
    check_mapping,
    subjects_in,
)
from keju.benchmarks.kit import choose_subsets
from keju.errors import ConfigError, DataError


def chosen(names: list[str] | None) -> list[str]:
    return choose_subsets("ceval", names, CEVAL.subset_names, CEVAL.subset_aliases)


def test_the_table_has_the_published_sizes() -> None:
    assert len(SUBJECTS) == 52
    assert Counter(s.category for s in SUBJECTS.values()) == {
        "STEM": 20,
        "Social Science": 10,
        "Humanities": 11,
        "Other": 11,
    }
    rows = {c: sum(SUBJECTS[name].val for name in subjects_in(c)) for c in CATEGORIES}
    assert rows == {"STEM": 430, "Social Science": 275, "Humanities": 257, "Other": 384}
    assert sum(s.rows("val") for s in SUBJECTS.values()) == 1346
    assert sum(s.rows("test") for s in SUBJECTS.values()) == 12342
    assert sum(s.rows("dev") for s in SUBJECTS.values()) == 260
    assert sum(SUBJECTS[name].val for name in HARD) == 152
    assert sum(SUBJECTS[name].test for name in HARD) == 1405


def test_the_table_agrees_with_the_mapping_of_the_data(data_dir: Path) -> None:
    document = json.loads((data_dir / "ceval" / "subject_mapping.json").read_text("utf-8"))
    published = {
        name: (facts["english"], facts["chinese"], facts["category"], facts["hard"], facts["rows"])
        for name, facts in document["subjects"].items()
    }
    assert published == {
        s.name: (s.english, s.chinese, s.category, s.hard, {"dev": 5, "test": s.test, "val": s.val})
        for s in SUBJECTS.values()
    }
    assert list(document["subjects"]) == list(SUBJECTS)


@pytest.mark.parametrize(
    "name",
    ["computer_network", "Computer_Network", "计算机网络", "Computer Network", "COMPUTER-network"],
)
def test_a_subject_is_found_by_any_of_its_names(name: str) -> None:
    assert CEVAL.subset_name(name) == "computer_network"


def test_an_unknown_subject_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'college_physics'"):
        chosen(["colege_physics"])


def test_a_selection_is_in_published_order_without_repeats() -> None:
    assert chosen(["法学", "logic", "Logic"]) == ["logic", "law"]
    assert len(chosen(None)) == 52
    with pytest.raises(ConfigError, match="empty"):
        chosen([])


@pytest.mark.parametrize(
    ("document", "blamed"),
    [
        ({"subjects": {"logic": {"chinese": "逻辑"}}}, "chinese of 'logic'"),
        ({"logic": ["Logic", "逻辑学", "STEM"]}, "category of 'logic'"),
        ({"logik": ["Logic", "逻辑学", "Humanities"]}, "unknown subject 'logik'"),
        ([1, 2], "not a mapping"),
    ],
)
def test_a_mapping_that_disagrees_is_refused(document: Any, blamed: str) -> None:
    with pytest.raises(DataError, match=blamed):
        check_mapping(document, "mapping.json")


def test_both_shapes_of_the_mapping_are_understood() -> None:
    check_mapping({"logic": ["Logic", "逻辑学", "Humanities"]}, "mapping.json")
    check_mapping({"subjects": {"logic": {"chinese": "逻辑学", "hard": False}}}, "mapping.json")
