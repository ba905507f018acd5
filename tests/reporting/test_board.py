"""Several runs at once: on a terminal, in a log, and as words."""

from __future__ import annotations

import io
import re

import pytest

from keju.messages.wrapping import cells
from keju.reporting.board import RunLine, cells_of, describe_all, make_board, select_visible
from tests.support.terminals import Terminal


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEJU_LANGUAGE", "en")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")


RUNNING = RunLine(
    *("p--a--x", "a", "x", "running"),
    done=30, total=120, score=0.5, ends=(0.33, 0.67), in_flight=8, speed=3.0, left=30.0, cost=0.25,
)  # fmt: skip
WAITING = RunLine("p--a--y", "a", "y", "waiting")


def test_a_terminal_shows_every_run_and_the_whole_in_place() -> None:
    stream = Terminal()
    board = make_board(stream)
    board.start("plan p", [RUNNING, WAITING])
    board.update([RUNNING, WAITING], 10.0)
    board.note("p--a--x: something to know")
    finished = RUNNING._replace(state="complete", done=120)
    board.update([finished, WAITING._replace(state="running", pause="down")], 20.0)
    board.finish([finished, WAITING._replace(state="failed", why="the key was refused")], 30.0)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    for words in (
        "p--a--x   running   30/120   50.0 % (33.0–67.0)   3/s",
        "0 of 2 runs over, 30 of at least 120 answers, 3 answers/s, cost 0.2500, elapsed 10 s",
        "p--a--x: something to know",
        "p--a--x: complete, 120/120, accuracy 50.0 % (33.0–67.0)",
        "endpoint down",
        "p--a--y: failed, –; the key was refused",
        "2 of 2 runs over",
    ):
        assert words in re.sub(r" {4,}", "   ", text), words


def test_a_log_has_few_lines_and_no_control_codes() -> None:
    stream = io.StringIO()
    board = make_board(stream)
    board.start("plan p", [RUNNING, WAITING])
    for elapsed in range(100):
        board.update([RUNNING, WAITING], float(elapsed))
    unchanged_run = WAITING._replace(state="complete", was_complete=True)
    board.finish([RUNNING._replace(state="complete"), unchanged_run], 100.0)
    lines = stream.getvalue().splitlines()
    assert 5 < len(lines) < 15
    assert "\x1b" not in stream.getvalue()
    assert not any("p--a--y" in line for line in lines), "what was complete before is no news"


def test_how_much_is_left_is_said_only_where_it_is_known() -> None:
    assert "left" not in describe_all([RUNNING, WAITING], 1.0), "nobody knows how large y is"
    words = describe_all([RUNNING, WAITING._replace(exam="x")], 1.0)
    assert "30/240 answers" in words
    assert words.endswith("left 1 min 10 s"), "a waiting run of the same exam is as large"


def test_a_board_in_chinese_has_its_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEJU_LANGUAGE", "zh")
    cells = cells_of(RUNNING._replace(oldest=130.0))
    assert cells[1].endswith("2 分钟 10 秒）")
    assert ("3/秒" in cells, "30 秒" in cells) == (True, True)
    assert describe_all([RUNNING], 3700.0).endswith("已用时间 1 小时 1 分钟，剩余 30 秒")


def test_what_goes_on_comes_first_where_there_is_no_room() -> None:
    lines = [RUNNING._replace(run=f"r{n}", state="complete") for n in range(50)]
    lines += [RUNNING, WAITING]
    assert select_visible(lines, 2) == [RUNNING, WAITING]
    assert len(select_visible(lines, 10)) == 10
    assert select_visible(lines, 100) == lines


def test_quiet_says_nothing_and_nothing_is_known_of_nothing() -> None:
    stream = io.StringIO()
    make_board(stream, quiet=True).start("plan p", [RUNNING])
    assert stream.getvalue() == ""
    assert describe_all([], None) == "0 of 0 runs over, 0/0 answers"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_narrow_terminal_shows_records_and_cuts_nothing(
    monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setenv("KEJU_LANGUAGE", language)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "24")
    cell_texts = {"en": ("50.0 % (33.0–67.0)", "3/s"), "zh": ("50.0 %（33.0–67.0）", "3/秒")}
    names = [f"weekly--a-model-with-a-long-name--exam-{number}" for number in range(12)]
    lines = [RUNNING._replace(run=name) for name in names]
    stream = Terminal()
    board = make_board(stream)
    board.start("plan p", lines)
    board.finish(lines, 10.0)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    drawn = [line.rstrip() for line in text.rpartition("plan p")[2].splitlines()]
    assert all(cells(line) <= 60 for line in drawn)
    assert len(drawn) <= 24
    name_lines = [line for line in drawn if line in names]
    assert len(name_lines) >= 4
    for place, line in enumerate(drawn):
        if line in names:
            record = " ".join(drawn[place + 1 : place + 4])
            for cell in ("30/120", *cell_texts[language]):
                assert cell in record
            assert "0.2500" in record
