"""Runs whose data was edited later: the notices about them, and what stays the same."""

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


TOLD = "the data has changed since 'one' was made (q.csv): the numbers here cover the {} that still fit"


@pytest.mark.usefixtures("edited")
def test_numbers_of_what_still_fits_are_said_to_be_that(keju: Keju) -> None:
    compared = keju("compare", "one", "two", "--json").json["comparisons"][0]
    codes = [notice["code"] for notice in compared["notices"]]
    assert codes.count("compare_data_changed") == 2
    assert "compare_unfinished" not in codes
    assert compared["n"] == 2
    changed_warning = TOLD.format("2 replies")
    assert any(warning.startswith(changed_warning) for warning in compared["warnings"])
    gated = keju("gate", "one", "--at-least", "0.5")
    assert changed_warning in gated.out
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


@pytest.mark.usefixtures("edited")
def test_a_score_of_what_still_fits_does_not_call_a_complete_run_incomplete(keju: Keju) -> None:
    ran = keju("score", "one", "--json")
    assert (ran.code, ran.json["complete"]) == (0, True)
    assert "data_changed" in [notice["code"] for notice in ran.json["benchmarks"][0]["notices"]]
    assert "not complete" not in keju("score", "one").out


@pytest.mark.parametrize("change", ["added", "renamed"])
def test_a_file_that_was_added_or_renamed_is_a_change(
    keju: Keju, tmp_path: Path, change: str
) -> None:
    folder = tmp_path / "cap"
    folder.mkdir()
    (folder / "q.csv").write_text(ROWS)
    command = ("eval", "-m", "scripted", "--datasets", "./cap", "-q", "--run-id", "one")
    assert keju(*command).code == 0
    if change == "added":
        (folder / "rivers.csv").write_text("question,answer\nRiver of Paris?,Seine\n")
    else:
        (folder / "q.csv").rename(folder / "capitals.csv")
        (folder / "more.csv").write_text("question,answer\nRiver of Paris?,Seine\n")
    resumed = keju(*command, "--resume")
    assert resumed.code == 2
    assert "cap data" in resumed.err
    scored = keju("score", "one")
    assert "the data has changed" in scored.out + scored.err


def test_an_exam_at_a_relative_path_is_found_in_the_data_folder(keju: Keju, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere" / "cap"
    folder.mkdir(parents=True)
    (folder / "q.csv").write_text(ROWS)
    exam = ("--datasets", "custom:cap", "--data-dir", "elsewhere")
    ran = keju("eval", "-m", "scripted", *exam, "-q", "--run-id", "one", "--json")
    assert (ran.code, ran.json["benchmarks"][0]["n"]) == (0, 3)
    stats = keju("stats", "custom:cap", "--data-dir", "elsewhere", "--json")
    assert stats.json["total"]["n"] == 3
    Path("p.jsonl").write_text('{"subset": "all", "index": 0, "output": "ANSWER: Paris"}\n')
    assert keju("score", *exam, "--predictions", "p.jsonl").code == 0
    assert keju("eval", "-m", "scripted", "--datasets", "custom:cap").code == 2


@pytest.mark.parametrize("file", ["page.pdf", "page.PNG", "page.json"])
@pytest.mark.usefixtures("edited")
def test_a_page_is_not_written_under_the_name_of_another_format(keju: Keju, file: str) -> None:
    for words in (("compare", "one", "two"), ("report", "one"), ("report", "one", "two")):
        ran = keju(*words, "-o", file)
        assert (ran.code, ran.err.count("\n"), Path(file).exists()) == (2, 1, False)
        assert ".html" in ran.err
