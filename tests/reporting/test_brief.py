"""Short answers: lines that fit, names that people know, warnings in the order of their cost."""

from __future__ import annotations

import io

import pytest

from keju.errors import Notice
from keju.messages import labels as texts_of
from keju.messages.wrapping import cells
from keju.reporting.brief import (
    BriefColumn,
    BriefScreen,
    LabelledCommand,
    fit_text,
    known_names,
    short_subsets,
)
from keju.reporting.format import Labels
from keju.reporting.warning_lines import points_at_stake, print_warnings, warning_line
from tests.support.terminals import Terminal


def printed(screen: BriefScreen) -> list[str]:
    screen.flush()
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue().splitlines()


def test_facts_that_do_not_fit_are_left_out_and_a_first_one_is_shortened() -> None:
    screen = BriefScreen(io.StringIO(), width=40)
    screen.facts(["one fact", "another fact", "a third fact"], "BBH  ")
    screen.facts(["a fact that is much longer than the width of this screen"])
    assert printed(screen) == [
        " BBH  one fact · another fact",
        " a fact that is much longer than the…",
    ]


@pytest.mark.parametrize("width", [60, 80, 130, 200])
def test_a_hint_is_shown_where_it_fits(width: int) -> None:
    screen = BriefScreen(Terminal(), width=width)
    screen.hinted("! 126 replies were cut off by the server (1.9 %).", "keju audit bf16")
    (line,) = printed(screen)
    assert ("keju audit" in line) == (width >= 80)
    assert cells(line) <= min(width, 130)


def test_columns_are_dropped_by_their_number_and_texts_shrink() -> None:
    columns = [BriefColumn("left", shrinks=True), BriefColumn(), BriefColumn(spare=2)]
    rows = [["environmental_impact_assessment_engineer", "12.3 %", "a long remark about this row"]]
    screen = BriefScreen(io.StringIO(), width=50)
    screen.rows(columns, rows)
    (line,) = printed(screen)
    assert "12.3 %" in line
    assert "remark" not in line
    assert len(line) < 50


def test_commands_share_lines_and_stay_whole() -> None:
    screen = BriefScreen(io.StringIO(), width=60)
    steps = [LabelledCommand("look", f"keju view {name}") for name in ("a", "b", "c", "d")]
    screen.next_steps(steps)
    lines = printed(screen)
    assert len(lines) == 2
    assert lines[0] == " look  keju view a     look  keju view b"


def test_models_name_runs_where_they_differ() -> None:
    assert known_names(["org/tiny-7b-bf16", "org/tiny-7b-int4"], ["a", "b"]) == ["bf16", "int4"]
    assert known_names(["tiny", "tiny"], ["first", "runs/second"]) == ["first", "second"]
    assert known_names(["", "other"], ["first", "second"]) == ["first", "second"]
    assert known_names(["llama-8b", "llama-70b"], ["a", "b"]) == ["llama-8b", "llama-70b"]


def test_subsets_keep_what_distinguishes_them() -> None:
    names = ["snarks", "salient_translation_error_detection"]
    names += [f"logical_deduction_{n}_objects" for n in ("three", "five")]
    assert list(short_subsets(names).values()) == [
        "snarks",
        "salient_translation",
        "logical_deduction_three",
        "logical_deduction_five",
    ]


def test_warnings_come_in_the_order_of_their_points() -> None:
    notices = [
        Notice("refused_replies", {"part": 3, "whole": 100, "share": 0.03}),
        Notice("repeats_at_temperature_0"),
        Notice("readers_apart", {"reader": "a", "other": "b", "points": -5.0, "whole": 9}),
        Notice("same_reply", {"part": 9, "whole": 10, "text": "A"}),
        Notice("unread_replies", {"part": 1, "whole": 100, "share": 0.01}),
    ]
    screen = BriefScreen(io.StringIO(), width=120)
    labels = Labels("en")
    lines = [warning_line(notice, "keju audit r", labels) for notice in notices]
    print_warnings(screen, lines, "keju show r")
    blank, *texts = printed(screen)
    assert blank == ""
    assert [text[:12] for text in texts] == [
        " ! 9 of 10 q",
        " ! The score",
        " ! 3 replies",
        "   and 2 mor",
    ]
    assert texts[1].endswith("keju audit r")
    assert points_at_stake(notices[0]) == pytest.approx(3.0)


VALUES = {
    "part": 12_032, "whole": 12_032, "share": 0.123, "most": 16_384, "short": 100, "points": -12.3,
    "reader": "evalscope", "other": "robust", "replies": 12_032, "tokens": 16_384,
    "url": "http://127.0.0.1:8000/v1", "reported": "a-model-of-7b", "run": "acme-7b-bf16",
    "baseline": "acme-7b-int4", "setting": "n", "judge": "judge-model", "file": "test.jsonl",
    "name": "acme-7b-bf16", "base": "bf16", "arm": "int4", "exam": "mmlu_pro", "fields": "x",
    "pilot": "acme-7b", "kappa": 0.1, "robust": 1.2,
}  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_warning_fits_a_terminal_of_80_columns(language: str) -> None:
    labels = Labels(language)  # type: ignore[arg-type]
    too_long = []
    for name in texts_of(labels.language):
        code = name.removeprefix("brief.")
        is_warning = name.startswith("brief.") and "." not in code and "_" in code
        if is_warning and not code.startswith(("arm_", "on_exam", "of_", "more_")):
            values = dict.fromkeys(_names_in(labels(name)), 7) | VALUES
            text = warning_line(Notice(code, values), "", labels).text
            if cells(text) > 76:
                too_long.append((code, cells(text), text))
    assert too_long == []


def _names_in(template: str) -> list[str]:
    import string

    return [name for _, name, _, _ in string.Formatter().parse(template) if name]


def test_a_long_line_ends_at_a_word() -> None:
    assert fit_text("cut off before an answer", 16) == "cut off before…"
