"""Several difficulties in one run: every command knows them, and the curve is in the results."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from keju.errors import ConfigError
from keju.reporting.curves import sections
from keju.reporting.format import Labels
from keju.reporting.live import arm_rows
from keju.results.schema import from_document
from keju.runs.run import open_run
from keju.viewer.run_index import RunExams
from tests.benchmarks.fresh.evaluation import ARGS, SUBSETS, evaluate
from tests.cli.conftest import Keju, keju  # noqa: F401

pytestmark = pytest.mark.slow

LEVELS = [0.5, 1.0, 2.0]
ARMS = ["difficulty-0.5", "difficulty-1", "difficulty-2"]


@pytest.fixture
def run(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> Keju:  # noqa: F811
    """A finished run called ``one``, and the commands beside it."""
    finished = evaluate(monkeypatch, "one", args={"difficulty": LEVELS})
    assert finished.exit_code == 0
    return keju


def test_each_difficulty_is_an_arm_with_questions_of_its_own(run: Keju) -> None:
    results = json.loads(Path("runs/one/results.json").read_text())
    entries = results["benchmarks"]
    assert [entry["arm"] for entry in entries] == ARMS
    assert [entry["difficulty"] for entry in entries] == LEVELS
    assert [entry["n"] for entry in entries] == [40, 40, 40]
    lines = Path("runs/one/records.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert len({record["id"] for record in records}) == 120
    assert "comparisons" not in results
    stored = json.loads(Path("runs/one/manifest.json").read_text())["benchmarks"]
    assert len(stored) == 1
    assert stored[0]["settings"]["difficulty"] == LEVELS
    assert (stored[0]["samples"], stored[0]["samples_of"]) == (120, dict.fromkeys(ARMS, 40))
    assert len(stored[0]["data"]["files"]) == 6


def test_the_results_have_the_curve(run: Keju) -> None:
    document = json.loads(Path("runs/one/results.json").read_text())
    (curve,) = document["curves"]
    assert [point["difficulty"] for point in curve["points"]] == LEVELS
    assert [p["accuracy"] for p in curve["points"]] == [
        e["metrics"]["accuracy"]["value"] for e in document["benchmarks"]
    ]
    assert curve["points"][0]["chance"] == pytest.approx(0.125)  # word_sorting has none
    assert curve["slope"] < -0.2
    assert curve["p"] < 1e-6
    assert curve["half"]["reached"] == "reached"
    low, high = curve["half"]["ci95"]
    assert 1 < low < curve["half"]["difficulty"] < (high or 2.1)
    assert {subset_curve["subset"] for subset_curve in curve["subsets"]} == set(SUBSETS)
    assert all(subset_curve["p_adjusted"] >= subset_curve["p"] for subset_curve in curve["subsets"])
    reloaded = from_document(document)
    assert reloaded.curves[0].conclusions[0].code == "curve_falls"


def test_scoring_gives_the_same_curve(run: Keju) -> None:
    stored = json.loads(Path("runs/one/results.json").read_text())
    scored = run("score", "one", "--json").json
    assert scored["curves"] == stored["curves"]
    rescored = run("score", "one", "--reader", "robust,paper", "--json").json
    assert [curve["reader"] for curve in rescored["curves"]] == ["robust", "paper"]


def test_the_curve_in_words_and_in_both_languages(
    run: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = run("score", "one")
    assert "accuracy falls with difficulty" in ran.out
    assert "halfway to chance at difficulty" in ran.out
    assert "half of its lead over guessing at difficulty" in ran.out
    assert "●" in ran.out
    assert "tool calls" not in ran.out
    monkeypatch.setenv("KEJU_LANGUAGE", "zh")
    assert "准确率随难度下降" in run("score", "one").out
    page = Path("runs/one/report.html").read_text()
    assert "accuracy falls with difficulty" in page
    assert "准确率随难度下降" in page
    assert page.count('class="curve small"') == 2
    assert 'id="arms"' not in page, "difficulties are no arms to be set side by side"


def test_a_chart_is_as_high_as_its_numbers_need(
    keju: Keju,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One scale for the exam and its subsets, from 0 to where all intervals end."""
    args = {"difficulty": LEVELS, "n": 60, "subset_list": ["word_sorting", "object_counting"]}
    finished = evaluate(monkeypatch, "low", lambda *_: 0.05, args=args)
    (curve,) = finished.results.curves
    ends = [
        p.ci95[1] for part_curve in (curve, *curve.subsets) for p in part_curve.points if p.ci95
    ]
    assert max(ends) < 0.2
    (section,) = sections(finished.results, Labels("en"))
    charts = [section.exam_chart, *section.subsets]
    assert [chart.drawing.top for chart in charts] == [20, 20, 20]
    first_point = curve.points[0]
    spot = section.exam_chart.drawing.spots[0]
    assert spot.y == pytest.approx(1 - (first_point.accuracy or 0) / 0.2)
    assert keju("plot", "low", "--kind", "curve", "-o", "curve.svg").code == 0
    svg = Path("curve.svg").read_text()
    assert ">word_sorting<" in svg
    assert ">20 %<" in svg
    assert ">100 %<" not in svg


def test_what_is_not_reached_is_said(
    keju: Keju,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, share, code in (("high", 0.95, "curve_half_beyond"), ("low", 0.1, "curve_at_chance")):
        finished = evaluate(
            monkeypatch, name, lambda *_, share=share: share, args={"difficulty": LEVELS}
        )
        (curve,) = finished.results.curves
        assert [notice.code for notice in curve.conclusions] == ["curve_flat", code]
        assert "no fall with difficulty is visible" in keju("score", name).out


def test_the_run_grows_by_a_difficulty(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    evaluate(monkeypatch, "one", args={"difficulty": [1, 0.5]})
    grown = evaluate(monkeypatch, "one", args={"difficulty": [0.5, 1, 2]})
    assert grown.exit_code == 0
    sessions = json.loads(Path("runs/one/manifest.json").read_text())["sessions"]
    assert [session["requests"] for session in sessions] == [80, 40]
    with pytest.raises(Exception, match="difficulty"):
        evaluate(monkeypatch, "one", args={"difficulty": [0.5, 1]})


def test_exports_audits_and_single_questions_know_the_arm(run: Keju) -> None:
    assert run("export", "one", "-o", "rows.csv").code == 0
    with Path("rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    assert {row["arm"] for row in rows} == set(ARMS)
    assert "missing" not in run("export", "one", "--format", "markdown").err
    audit = run("audit", "one", "--json").json
    assert [exam["arm"] for exam in audit["exams"]] == ARMS
    sample = "fresh_bbh_word_sorting_s7_d2_3"
    ran = run("show", "one", "--sample", sample, "--arm", "difficulty-2")
    assert ran.code == 0, ran.err
    assert run("show", "one", "--sample", sample, "--arm", "difficulty-9").code == 2
    assert run("list", "runs").code == 0
    assert run("report", "one", "-o", "page.html").code == 0


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_difficulty_has_one_name_wherever_it_is_seen(run: Keju, language: str) -> None:
    sample = "fresh_bbh_word_sorting_s7_d2_3"
    show_output = run("show", "one", "--sample", sample, "--language", language).out
    score_output = run("score", "one", "--language", language).out
    assert run("report", "one", "-o", "page.html", "--language", language).code == 0
    page = Path("page.html").read_text("utf-8")
    for arm in ARMS:
        assert f"fresh_bbh · {arm} · " in score_output
        assert f" · {arm}</a></h2>" in page
    assert "difficulty-2" in show_output
    for text in (show_output, score_output, page):
        assert not re.search(r"(arm|实验组) difficulty-|· (difficulty|难度) \d", text)


def test_a_mean_over_a_part_of_the_subsets_says_so_in_words(run: Keju) -> None:
    score_output = " ".join(run("score", "one").out.split())
    assert re.search(r"mean of the subsets, of which \d+ of 20 were asked", score_output)


@pytest.mark.parametrize("kind", ["curve", "forest", "outcomes", "latency"])
def test_figures(run: Keju, kind: str) -> None:
    assert run("plot", "one", "--kind", kind, "-o", f"{kind}.svg").code == 0
    if kind == "curve":
        svg = Path("curve.svg").read_text()
        assert svg.count("<circle") == 9
        assert "halfway to chance" in svg


def test_two_runs_are_compared_at_each_difficulty(
    run: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(monkeypatch, "two", lambda *_: 0.9, args={"difficulty": LEVELS})
    compared = run("compare", "one", "two", "--json").json
    assert compared["comparable"]
    pairs = compared["comparisons"]
    assert [pair["n"] for pair in pairs] == [40, 40, 40]
    assert [pair["base"].rpartition(" · ")[2] for pair in pairs] == ARMS
    alone = run("compare", "one")
    assert alone.code == 2
    assert "the difficulties have different questions" in alone.err
    assert run("plot", "one", "two", "--kind", "curve", "-o", "both.svg").code == 0
    assert run("gate", "two", "--baseline", "one", "--margin", "0.4", "--json").code == 0


def test_failed_questions_of_some_difficulties_are_asked_again(
    run: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = evaluate(
        monkeypatch, "again", lambda *_: 1.0, args={"difficulty": LEVELS}, failed_of="one"
    )
    assert finished.exit_code == 0
    stored = json.loads(Path("runs/again/manifest.json").read_text())["benchmarks"][0]
    assert stored["samples"] == sum(stored["samples_of"].values()) < 120


def test_the_viewer_finds_every_question(run: Keju) -> None:
    stored = open_run("one")
    questions = RunExams(stored, None)
    for _, record in stored.answers():
        question = questions.find_question(record)
        assert question is not None
        assert question.as_recorded
        assert question.sample.id == record.id


def test_without_curves_there_is_no_figure(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    finished = evaluate(monkeypatch, "one", args={"difficulty": 2})
    assert finished.results.curves == ()
    assert finished.results.benchmarks[0].arm == ""
    ran = keju("plot", "one", "--kind", "curve", "-o", "curve.svg")
    assert ran.code == 2
    assert "several difficulties" in ran.err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"args": {"difficulty": []}}, "must be a number"),
        ({"args": {"difficulty": [1, 5]}}, "must be a number"),
        ({"args": {"difficulty": [1, 1.0]}}, "twice"),
        ({"args": {"difficulty": [1, 2]}, "arms": [{"name": "plain"}]}, "define arms"),
        ({"args": {"difficulty": [1, 2]}, "until_ci": 0.1}, "leave out the arms"),
    ],
)
def test_what_cannot_be_is_refused(
    settings: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        evaluate(monkeypatch, "one", work_dir=str(tmp_path), **settings)


def test_a_look_at_one_question_needs_one_difficulty(keju: Keju) -> None:  # noqa: F811
    args = json.dumps({"fresh_bbh": ARGS | {"difficulty": [1, 2]}})
    ran = keju("show", "fresh_bbh", "--dataset-args", args)
    assert ran.code == 2
    assert "name one of them" in ran.err


def test_the_live_view_has_no_columns_of_tools() -> None:
    from keju.progress.display import ArmStatus, ExamStatus, Progress

    arm = ArmStatus("fresh_bbh/difficulty-1", 2, 4, 0, 0, 0, None)
    rows = arm_rows(Progress(done=2, total=4, exams=(ExamStatus("fresh_bbh", 1.0, 2, 1, arm),)))
    assert rows == [
        ["arm", "done", "right", "errors"],
        ["fresh_bbh/difficulty-1", "2/4", "50.0 %", "0"],
    ]


def test_the_same_questions_in_two_languages_are_compared_in_pairs(
    keju: Keju,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    args = {"subset_list": ["boolean_expressions", "object_counting"]}
    evaluate(monkeypatch, "english", lambda *_: 0.9, args=args)
    evaluate(monkeypatch, "chinese", lambda *_: 0.5, args=args | {"lang": "zh"})
    ran = keju("compare", "english", "chinese", "--json")
    assert ran.code == 0, ran.err
    (pair,) = ran.json["comparisons"]
    assert (pair["n"], pair["verdict"]) == (40, "below")
    assert {"lang", "prompt_template"} <= {mismatch["field"] for mismatch in pair["unlike"]}
    assert not any("gold" in warning for warning in pair["warnings"])
    reseeded = evaluate(monkeypatch, "other", args=args | {"lang": "zh", "seed": 8})
    assert reseeded.exit_code == 0
    assert keju("compare", "english", "other").code == 3
