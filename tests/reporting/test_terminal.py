from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len

from keju.reporting.compare import render_compared
from keju.reporting.table import render_table
from keju.reporting.terminal import render_results
from keju.results.compare import Compared
from keju.results.schema import from_document
from tests.reporting.documents import SUBSETS, document, entry, outcomes, results
from tests.results.fake_exam import entry_of, make_exam, make_tally
from tests.support.terminals import Terminal


def render(document: dict[str, Any], width: int | None = None) -> str:
    stream = io.StringIO()
    render_results(from_document(document), file=stream, width=width)
    return stream.getvalue()


def test_the_heading_says_what_was_run() -> None:
    heading = render(document()).splitlines()[0]
    for word in ("bbh", "evalscope@7", "reader paper", "some-model", "n 60"):
        assert word in heading


def test_the_headline_comes_first_with_its_interval_and_kind_of_mean() -> None:
    lines = render(document()).splitlines()
    assert "mean of 27 subsets (macro_accuracy): 51.20 % (95 % interval 38.00–64.00)" in lines[1]
    assert "9 clusters, design effect 1.50" in lines[1]
    assert "partial" in lines[1]
    assert "mean over questions (micro): 50.00 %" in lines[2]


def test_no_method_is_told_of_an_interval_that_is_not_there() -> None:
    metrics = {"accuracy": {"value": 0.5, "ci95": None, "n": 4, "method": "wilson"}}
    assert "Wilson" not in render(document(entry(metrics=metrics)))


def test_the_chance_level_of_a_part_says_that_it_is_of_a_part() -> None:
    metrics = {
        "accuracy": {"value": 0.5, "ci95": [0.4, 0.6], "n": 60},
        "chance": {"value": 0.25, "ci95": None, "n": 60},
    }
    text = render(document(entry(metrics=metrics, reference=[])))
    assert "chance level 25.00 %" in text
    missing = [{"code": "replies_missing", "values": {"part": 60, "whole": 120}}]
    part = render(document(entry(metrics=metrics, reference=[], notices=missing)))
    assert "chance level of the questions asked 25.00 %" in part


def test_published_means_are_named_in_words_where_the_run_has_them_whole() -> None:
    mean = {"value": 0.5, "ci95": [0.4, 0.6], "n": 60}
    metrics = {"accuracy": mean, "chance": {"value": 0.5, "ci95": None, "n": 60}}
    reference = [{"name": "random guessing", "overall": {"macro_23": 0.257}, "subsets": {}}]

    def rendered(**means: Any) -> str:
        return render(document(entry(metrics=metrics | means, reference=reference)))

    full_text = rendered(macro_23=mean)
    assert "mean of 23 tasks\n" in full_text
    assert "chance level of the questions asked 50.00 %" in full_text
    assert "random guessing, whole exam" in full_text
    for part in (rendered(), rendered(macro_23=mean | {"partial": True, "tasks": 2})):
        assert "whole exam" not in part, "nothing in the run compares with it"
        assert "chance level of the questions asked 50.00 %" in part


def test_chance_stays_where_counts_have_no_room() -> None:
    """The counts of right and wrong ones go before it: accuracy and n tell them."""
    lines = render(document(entry(reference=[])), width=92).splitlines()
    assert any(line.startswith("subset") and "chance" in line for line in lines)
    assert "(no room here for: correct, incorrect)" in lines


def test_long_names_are_broken_between_their_parts() -> None:
    stream = io.StringIO()
    rows = [["tracking_shuffled_objects_seven_objects", *["100.00 %"] * 3]]
    render_table(["subset", "accuracy", "interval", "chance"], rows, stream, width=60)
    first_line, second_line = [
        line.split()[0] for line in stream.getvalue().splitlines() if "objects" in line
    ][:2]
    assert first_line.endswith("_")
    assert first_line + second_line == rows[0][0]


def test_a_metric_without_a_value_is_a_dash() -> None:
    line = next(line for line in render(document()).splitlines() if "pass@5" in line)
    assert "–" in line
    assert "0.00" not in line


def test_outcomes_in_words_with_both_bounds() -> None:
    text = render(document())
    assert "27 correct · 24 incorrect · 3 unparsed" in text
    assert "truncated" not in text
    assert "45.00 % to 55.00 %" in text
    assert "chance level of the questions asked 31.01 %" in text


def test_no_bounds_where_nothing_is_left_out() -> None:
    metrics = {"accuracy": {"value": 0.5, "ci95": [0.4, 0.6], "n": 60}}
    clean = entry(metrics=metrics, outcomes=outcomes(correct=30, incorrect=30))
    assert "left out" not in render(document(clean)).lower()


def test_subsets_keep_their_order_and_show_chance_and_references() -> None:
    lines = render(document()).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("subset"))
    assert " ".join(lines[start].split()) == (
        "subset n accuracy 95 % interval chance human average correct incorrect unparsed error"
    )
    rows = lines[start + 2 : start + 5]
    assert [row.split()[0] for row in rows] == list(SUBSETS)
    assert "50.00 %     29.93–70.07   50.00 %         76.70 %" in rows[0]
    assert rows[2].split()[1:4] == ["20", "–", "–"]


def test_warnings_and_an_early_stop_are_said() -> None:
    text = render(document(complete=False, stopped="the budget of 1 USD is used up"))
    assert "warning: 3 of 60 replies" in text
    assert "stopped early: the budget of 1 USD is used up" in text


@pytest.mark.parametrize("width", [60, 120])
def test_every_line_fits_the_width(width: int) -> None:
    text = render(document(), width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "incorrect" in text


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" not in render(document())
    stream = Terminal()
    render_results(results(), file=stream, width=100)
    assert "\x1b[" in stream.getvalue()


def test_several_readers_stand_side_by_side_after_their_disagreements() -> None:
    robust_entry = entry("robust")
    robust_entry["subsets"][0] = robust_entry["subsets"][0] | {"accuracy": 0.75}
    rows = [
        {
            "id": f"bbh_snarks_{number}",
            "subset": "snarks",
            "answers": {"paper": None, "robust": "(A)"},
            "outcomes": {"paper": "unparsed", "robust": "correct"},
            "scores": {"paper": 0.0, "robust": float(number < 30)},
            "target": "(A)",
        }
        for number in range(33)
    ]
    paper_entry = entry("paper")
    del paper_entry["metrics"]["macro_accuracy"]["partial"]
    text = render(document(paper_entry, robust_entry, disagreements=rows))
    opening = "The readers disagree on 33 replies; here the 30 whose score depends on that"
    assert text.startswith(opening)
    assert "bbh_snarks_29 " in text
    assert "bbh_snarks_30" not in text
    assert "(A): correct" in text
    table = text[text.index("side by side") :].splitlines()
    assert table[1].split() == ["subset", "n", "paper", "robust"]
    snarks = next(line for line in table if line.startswith("snarks"))
    assert snarks.split() == ["snarks", "20", "50.00", "%", "75.00", "%"]
    assert text.count("human average") == 1


def disagreement(number: int, score: float) -> dict[str, object]:
    return {
        "id": f"bbh_snarks_{number}",
        "subset": "snarks",
        "answers": {"paper": None, "robust": "(B)"},
        "outcomes": {"paper": "unparsed", "robust": "incorrect"},
        "scores": {"paper": 0.0, "robust": score},
        "target": "(A)",
    }


def test_disagreements_without_effect_have_no_empty_table() -> None:
    text = render(document(entry("paper"), entry("robust"), disagreements=[disagreement(1, 0.0)]))
    assert "here the 0 whose score depends on that" in text.splitlines()[0]
    assert text.splitlines()[1] == ""


def test_each_disagreement_stays_in_one_piece_on_a_narrow_screen() -> None:
    rows = [disagreement(number, 0.5) for number in (1, 2)]
    text = render(document(entry("paper"), entry("robust"), disagreements=rows), 40)
    start = text.index("bbh_snarks_1\n")
    assert text[start:].splitlines()[:6] == [
        "bbh_snarks_1",
        "  target: (A)",
        "  paper: unparsed",
        "  robust: (B): incorrect",
        "bbh_snarks_2",
        "  target: (A)",
    ]


def test_kinds_of_errors_are_named_the_commonest_first() -> None:
    errors = {"kinds": {"timeout": 1, "server": 1200}, "example": "HTTP 500:\nboom"}
    text = render(document(entry(errors=errors)))
    assert "  errors: 1,200 server (HTTP 500: boom), 1 timeout\n" in text
    assert "errors:" not in render(document())


def test_metrics_of_kinds_of_questions_are_a_table() -> None:
    by_kind = {
        f"accuracy[{kind}={name}]": {"value": 0.25, "ci95": [0.1, 0.4], "n": 8, "title": "long"}
        for kind, name in (("category", "RNA-seq"), ("category", "WGS [x=y]"), ("eval_mode", "str"))
    }
    metrics = {"accuracy": {"value": 0.5, "ci95": None, "n": 60}} | by_kind
    text = render(document(entry(metrics=metrics, headline="accuracy")))
    assert "accuracy[" not in text
    assert "long" not in text
    lines = [" ".join(line.split()) for line in text.splitlines()]
    start = lines.index("category n accuracy 95 % interval")
    assert lines[start + 2 : start + 4] == [
        "RNA-seq 8 25.00 % 10.00–40.00",
        "WGS [x=y] 8 25.00 % 10.00–40.00",
    ]
    assert lines.index("eval mode n accuracy 95 % interval") > start


def test_names_stay_whole_at_80_columns() -> None:
    rows = [line for line in render(document(), 80).splitlines() if "_objects" in line]
    assert rows
    assert all(row.startswith("logical_deduction_seven_objects ") for row in rows)


def test_nothing_at_all_is_said_to_be_nothing() -> None:
    assert render({"schema": 1, "run": "", "model": "", "benchmarks": []}) == "No results.\n"


def test_an_exam_without_gold_answers_shows_no_bounds() -> None:
    exam = make_exam({"a": 2})
    exam.submitted = True
    exam.samples = [msgspec.structs.replace(sample, target="") for sample in exam.samples]
    text = render(document(entry_of(exam, make_tally("nn"))))
    assert "no score: no labels" in text
    assert "Left out" not in text
    assert "all wrong or all right" not in text


def test_an_exact_match_with_many_errors_is_a_range_like_any_other() -> None:
    benchmark = entry_of(make_exam({"a": 4}, grader="exact"), make_tally("10ee"))
    assert "25.00–75.00 %" in render(document(benchmark)).splitlines()[1]
    assert "exact match" not in render(document(benchmark))


@pytest.mark.parametrize(
    ("ends", "chance", "remark", "colour"),
    [
        ([0.06, 0.24], 0.31, "below chance (31.00 %): look at the answers with keju audit ", "33"),
        ([0.06, 0.34], 0.31, "does not differ from chance (31.00 %)", ""),
        ([0.06, 0.24], 0.02, "", "32"),
        ([0.06, 0.24], 0.0, "", "32"),
        ([0.06, 0.24], None, "", "32"),
        (None, 0.31, "", "32"),
    ],
)
def test_a_score_that_is_no_more_than_guessing_is_not_praised(
    ends: list[float] | None, chance: float | None, remark: str, colour: str
) -> None:
    metrics: dict[str, Any] = {"accuracy": {"value": 0.13, "ci95": ends, "n": 54}}
    if chance is not None:
        metrics["chance"] = {"value": chance, "ci95": None, "n": 54}
    guessing = document(entry(metrics=metrics))
    line = render(guessing).splitlines()[1]
    assert (remark in line) if remark else ("than chance" not in line and "below" not in line)
    stream = Terminal()
    render_results(from_document(guessing), file=stream, width=300)
    coloured = stream.getvalue().splitlines()[1]
    assert f"\x1b[1;{colour}m" in coloured if colour else "\x1b[1m" in coloured


def test_a_score_whose_missing_grades_reach_above_chance_is_not_called_below_it() -> None:
    accuracy = {"value": 0.13, "ci95": [0.06, 0.24], "n": 54, "bounds": [0.1, 0.5]}
    metrics = {"accuracy": accuracy, "chance": {"value": 0.31, "ci95": None, "n": 54}}
    assert "does not differ from chance" in render(document(entry(metrics=metrics)))


@pytest.mark.parametrize(
    ("ends", "p", "p_holm", "expected", "helps"),
    [
        ((0.01, 0.53), 0.07, None, "the 95 % interval excludes 0, but p is 0.07: ", False),
        ((-0.01, 0.53), 0.04, None, "p is 0.04, but the 95 % interval includes 0: ", False),
        ((0.01, 0.53), 0.02, 0.06, "but p, adjusted for all pairs, is 0.06: ", False),
        ((0.01, 0.53), 0.02, None, "", True),
        ((-0.1, 0.53), 0.2, None, "", False),
    ],
)
def test_arms_whose_interval_and_p_disagree_are_told_as_compare_tells_it(
    ends: tuple[float, float], p: float, p_holm: float | None, expected: str, helps: bool
) -> None:
    pair = {
        "exam": "bbh", "reader": "paper", "base": "baseline", "arm": "calc", "n": 20,
        "left_out": 0, "base_rate": 0.35, "arm_rate": 0.65, "difference": 0.3, "ci95": ends,
        "p": p, "p_holm": p_holm, "both": 6, "arm_only": 7, "base_only": 1, "neither": 6,
        "needed": 36,
    }  # fmt: skip
    arms = [entry(arm=name) for name in ("baseline", "calc")]
    text = render(document(*arms, comparisons=[pair]))
    assert ("calc helps: +30.0 points" in text) is helps
    assert ("no difference is shown: calc is +30.0 points" in text) is not helps
    stream = io.StringIO()
    pairs = from_document(document(*arms, comparisons=[pair])).comparisons
    render_compared(Compared(comparisons=tuple(pairs)), file=stream)
    sentences = {line for line in stream.getvalue().splitlines() if "since Keju reports" in line}
    assert all(expected in sentence for sentence in sentences)
    assert len(sentences) == bool(expected)
    assert sentences <= set(text.splitlines())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_questions_known_to_be_faulty_are_named(
    monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setenv("KEJU_LANGUAGE", language)
    ids = [f"bbh_snarks_{number}" for number in range(9)]

    def errata_line(n: int, listed_ids: list[str]) -> str:
        lines = render(document(entry(errata={"n": n, "ids": listed_ids}))).splitlines()
        (line,) = [line for line in lines if "known errors" in line or "已知有误、仍" in line]
        return line

    assert all(name in errata_line(6, ids[:6]) for name in ids[:6])
    assert "keju audit" not in errata_line(6, ids[:6])
    nine_errata = errata_line(9, ids)
    assert [name for name in ids if name in nine_errata] == ids[:5]
    assert "keju audit tuesday" in nine_errata
    assert ("and 4 more" if language == "en" else "还有 4 题") in nine_errata
    assert "keju audit" in errata_line(4, []), "a file that names none"
