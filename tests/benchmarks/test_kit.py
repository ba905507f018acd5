"""The kit: subsets, questions, readers out of functions, rows that are counted and recognised."""

from __future__ import annotations

import pytest

from keju.benchmarks.base import Reader
from keju.benchmarks.grading import grade
from keju.benchmarks.kit import (
    MOST_SHOWN,
    Question,
    RowCount,
    arrange,
    choose_subsets,
    fingerprint,
    grader,
    make_count_warnings,
    pattern_reader,
)
from keju.errors import ConfigError, DataError
from keju.types import Reply, Sample, Score


def test_differing_counts_make_one_warning() -> None:
    assert make_count_warnings([RowCount("a", 3, 3)]) == ()
    (warning,) = make_count_warnings([RowCount("a", 3, 3), RowCount("b", 1, 2)])
    assert warning.text().endswith(": b has 1 of 2")
    row_counts = [RowCount(f"s{i}", 1, 2) for i in range(MOST_SHOWN + 3)]
    assert make_count_warnings(row_counts)[0].text().endswith("s4 has 1 of 2 and 3 more")


def test_a_fingerprint_depends_on_text_and_target() -> None:
    assert len({fingerprint("a", "b"), fingerprint("a", "c"), fingerprint("ab", "")}) == 3


def test_subsets_are_chosen_in_published_order_by_any_spelling() -> None:
    names, aliases = ["word_sorting", "snarks"], {"Irony": "snarks"}
    assert choose_subsets("x", ["irony", "Word-Sorting"], names, aliases) == names
    with pytest.raises(ConfigError, match=r"x has no subset 'snark' .did you mean 'snarks'"):
        choose_subsets("x", ["snark"], names, aliases)
    with pytest.raises(ConfigError, match="subset_list is empty"):
        choose_subsets("x", [], names)


def test_questions_are_numbered_inside_their_subset() -> None:
    rows = [Question("a", subset="p"), Question("b", subset="q"), Question("c", subset="p")]
    arranged = arrange("x", rows)
    assert [sample.id for sample in arranged.samples] == ["x_p_0", "x_p_1", "x_q_0"]
    assert [(subset.name, len(subset)) for subset in arranged.subsets] == [("p", 2), ("q", 1)]
    with pytest.raises(DataError, match="the id 'same' occurs twice"):
        arrange("x", [Question("a", id="same"), Question("b", id="same")])
    with pytest.raises(DataError, match="question 1 of 'all': the answer 'C' is none"):
        arrange("x", [Question("a", "C", ["one", "two"])])


def graded(reader: Reader, text: str) -> Score:
    sample = Sample(id="x", subset="all", index=0, text="?", target="7")
    return grade(Reply(text=text, finish="stop"), sample, reader).score


def test_a_function_is_a_reader() -> None:
    last_number = pattern_reader("last", r"#(\d+)")
    assert graded(last_number, "#5, no: #7").outcome == "correct"
    assert graded(last_number, "#5").outcome == "incorrect"
    assert graded(last_number, "5").outcome == "unparsed"


def test_a_function_grades_in_several_numbers() -> None:
    @grader
    def marks(text: str, _: Sample) -> dict[str, float] | None:
        return {"first": float(text), "second": 1} if text != "?" else None

    assert graded(marks, "0.5") == Score(0.5, "correct", parts={"first": 0.5, "second": 1.0})
    assert graded(marks, "0.25").outcome == "incorrect"
    assert graded(marks, "?") == Score(0.0, "ungraded", "undecided")
    with pytest.raises(ValueError, match=r"not in \[0, 1\]"):
        graded(marks, "1.5")
