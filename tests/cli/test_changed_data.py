"""Runs whose data was edited after they were sat: what is said of them, and what stays whole."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.cli.conftest import Keju

ROWS = """\
question,answer
Capital of France?,Paris
Capital of Spain?,Madrid
Capital of Chile?,Santiago
"""


@pytest.fixture
def edited(keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs ``one`` and ``two`` of an exam, of which a question was then put otherwise."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "cap" / "q.csv"
    file.parent.mkdir()
    file.write_text(ROWS)
    for run in ("one", "two"):
        ran = keju("eval", "-m", "scripted", "--datasets", "./cap", "-q", "--run-id", run)
        assert ran.code == 0, ran.err
    file.write_text(ROWS.replace("Capital of France", "The French capital"))


TOLD = (
    "the data has changed since 'one' was made (q.csv): the numbers here are of {} that still fit"
)


@pytest.mark.usefixtures("edited")
def test_numbers_of_what_still_fits_are_said_to_be_that(keju: Keju) -> None:
    compared = keju("compare", "one", "two", "--json").json["comparisons"][0]
    codes = [notice["code"] for notice in compared["notices"]]
    assert codes.count("compare_data_changed") == 2
    assert "compare_unfinished" not in codes
    assert compared["n"] == 2
    told = TOLD.format("2 replies")
    assert any(warning.startswith(told) for warning in compared["warnings"])
    gated = keju("gate", "one", "--at-least", "0.5")
    assert told in gated.out
    assert "--resume" not in gated.out + gated.err


@pytest.mark.usefixtures("edited")
def test_it_is_said_also_where_runs_are_not_comparable(keju: Keju) -> None:
    ran = keju("eval", "-m", "scripted", "--datasets", "./cap", "-q", "--run-id", "later")
    assert ran.code == 0
    compared = keju("compare", "one", "later", "--json")
    assert compared.code == 3
    notices = compared.json["comparisons"][0]["notices"]
    assert "compare_data_changed" in [notice["code"] for notice in notices]


@pytest.mark.usefixtures("edited")
@pytest.mark.parametrize("answer", ["Lyon", "Paris"])
def test_every_stored_reply_is_exported_and_shown_as_it_was_graded(keju: Keju, answer: str) -> None:
    if answer != "Paris":  # the question as it was, and another answer
        Path("cap/q.csv").write_text(ROWS.replace("Paris", answer))
        assert TOLD.format("3 replies") in keju("gate", "one", "--at-least", "0.5").out
    ran = keju("export", "one", "-o", "one.csv")
    assert ran.code == 0
    assert "the data has changed since the run (q.csv)" in ran.err
    with Path("one.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == ["cap_all_0", "cap_all_1", "cap_all_2"]
    assert {row["subset"] for row in rows} == {""}
    assert rows[0]["target"] == "Paris"
    reported = keju("report", "one")
    assert reported.code == 0
    assert "the data has changed since the run (q.csv)" in reported.err
