from __future__ import annotations

import io

import pytest

from keju.progress.display import ArmStatus, ExamStatus, Progress
from keju.reporting.live import arm_rows, make_display
from keju.stats.intervals import wilson
from tests.support.terminals import Terminal


def at(elapsed: float, answered: int, total: int = 1000, **fields: object) -> Progress:
    facts: dict[str, object] = {
        "exams": (ExamStatus("bbh", answered * 0.8, answered),),
        "requests": answered,
        "input_tokens": answered * 100,
        "output_tokens": answered * 10,
        "in_flight": 4,
        "limit": 8,
    }
    return Progress(done=answered, total=total, elapsed=elapsed, **(facts | fields))  # type: ignore[arg-type]


def test_a_log_gets_plain_lines_and_few_of_them() -> None:
    stream = io.StringIO()
    display = make_display(stream)
    display.start(1000, 0, ["bbh"])
    for tick in range(1, 601):
        display.update(at(tick / 5, tick * 1000 // 600))
    display.finish()
    lines = stream.getvalue().splitlines()
    assert "\x1b" not in stream.getvalue()
    assert "\r" not in stream.getvalue()
    assert lines[0] == "bbh: 1,000 answers"
    assert 10 <= len(lines) <= 24
    assert lines[-1].startswith("1,000/1,000 (100 %)")


def test_a_log_of_a_long_run_is_never_silent_for_minutes_nor_chatty() -> None:
    stream = io.StringIO()
    display = make_display(stream)
    display.start(100_000, 0, ["bbh"])
    for elapsed in range(3600):
        display.update(at(float(elapsed), elapsed, total=100_000))
    assert 60 <= len(stream.getvalue().splitlines()) <= 100


def test_repeats_of_a_question_are_no_further_questions() -> None:
    lines = []
    for repeats in (1, 4, 40):
        stream = io.StringIO()
        display = make_display(stream)
        display.start(100, 0, ["bbh"])
        display.update(at(0.1, 100, total=100, exams=(ExamStatus("bbh", 80.0, 100, repeats),)))
        lines.append(stream.getvalue())
    for questions, line in zip((100, 25), lines, strict=False):
        low, high = wilson(0.8, questions)
        assert f"accuracy 80.0 % ({low * 100:.1f}–{high * 100:.1f})" in line
    assert "accuracy 80.0 %, " in lines[2], "fewer than five questions have no interval"


def test_the_last_state_is_printed_once() -> None:
    stream = io.StringIO()
    display = make_display(stream)
    display.start(10, 0, ["demo"])
    display.update(at(0.1, 10, total=10))
    display.finish()
    display.finish()
    assert stream.getvalue().count("10/10") == 1


def test_a_line_says_accuracy_with_wilsons_interval_speed_and_what_is_left() -> None:
    stream = io.StringIO()
    display = make_display(stream)
    display.start(1000, 0, ["bbh"])
    display.update(at(0.0, 0))
    display.update(at(5.0, 50))
    display.update(
        at(
            10.0,
            100,
            unparsed=3,
            truncated=2,
            errors=1,
            cost=0.0123,
            retries=4,
            waiting="rate limit",
        )
    )
    line = stream.getvalue().splitlines()[-1]
    low, high = wilson(0.8, 100)
    assert f"accuracy 80.0 % ({low * 100:.1f}–{high * 100:.1f})" in line
    for words in ("unparsed 3", "truncated 2", "errors 1", "10 requests/s", "1.1k tokens/s in and out",
                  "in flight 4/8", "cost 0.0123", "retries 4", "left 1 min 30 s",
                  "waiting: rate limit"):  # fmt: skip
        assert words in line
    assert "refused" not in line


def test_rates_follow_the_last_ten_seconds() -> None:
    stream = io.StringIO()
    display = make_display(stream)
    display.start(10_000, 0, ["bbh"])
    for elapsed in range(61):
        display.update(
            at(float(elapsed), elapsed * 100 if elapsed <= 50 else 4950 + elapsed, total=10_000)
        )
    assert "1 requests/s" in stream.getvalue().splitlines()[-1]


def test_reused_answers_are_announced_and_not_counted_as_speed() -> None:
    stream = io.StringIO()
    display = make_display(stream)
    display.start(1000, 900, ["bbh"])
    display.update(at(0.0, 900, requests=0))
    display.update(at(10.0, 910, requests=10))
    assert "1,000 answers, 900 of them reused" in stream.getvalue()
    assert "left 1 min 30 s" in stream.getvalue()


def test_quiet_says_what_failed_and_nothing_else() -> None:
    stream = Terminal()
    display = make_display(stream, quiet=True)
    display.start(10, 0, ["demo"])
    display.update(at(1.0, 10, total=10))
    display.note("something")
    display.warn("something failed")
    display.finish()
    assert stream.getvalue() == "something failed\n"


def test_a_terminal_gets_a_panel_that_is_redrawn_and_left_in_order() -> None:
    stream = Terminal()
    display = make_display(stream)
    display.start(1000, 0, ["bbh", "ceval"])
    display.update(at(1.0, 10))
    display.note("a line that stays")
    display.update(at(2.0, 1000, waiting="endpoint down, retry in 12 s"))
    display.finish()
    text = stream.getvalue()
    assert "\x1b[" in text
    assert "bbh, ceval: 1,000 answers" in text
    assert "a line that stays" in text
    assert "endpoint down, retry in 12 s" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    display.finish()
    assert stream.getvalue() == text


def test_updates_faster_than_the_eye_are_not_drawn() -> None:
    def drawn(updates: int) -> int:
        stream = Terminal()
        display = make_display(stream)
        display.start(1000, 0, ["bbh"])
        for number in range(updates):
            display.update(at(1.0 + number * 1e-4, number))
        return len(stream.getvalue())

    assert drawn(500) == drawn(1)


def test_finish_draws_what_an_update_left_undrawn() -> None:
    stream = Terminal()
    display = make_display(stream)
    display.start(1000, 0, ["bbh"])
    display.update(at(1.0, 10))
    display.update(at(1.01, 777))
    assert "777/1,000" not in stream.getvalue()
    display.finish()
    assert "777/1,000" in stream.getvalue()


def test_an_interrupted_start_leaves_nothing_to_finish() -> None:
    stream = Terminal()
    display = make_display(stream)
    display.note("before the start")
    display.finish()
    assert stream.getvalue() == "before the start\n"


def test_arms_stand_in_a_table_of_their_own() -> None:
    arms = [
        ExamStatus("bbh", 3.0, 4, arm=ArmStatus("bbh · baseline", 4, 10, 0, 0, 0, 0.01)),
        ExamStatus("bbh", 0.0, 0, arm=ArmStatus("bbh · calc", 2, 10, 7, 1, 2, 0.02)),
    ]
    titles, baseline_row, calc_row = arm_rows(Progress(done=6, total=20, exams=tuple(arms)))
    assert titles == ["arm", "done", "right", "tool calls", "failed", "errors", "cost"]
    assert baseline_row == ["bbh · baseline", "4/10", "75.0 %", "0", "0", "0", "0.0100"]
    assert calc_row == ["bbh · calc", "2/10", "–", "7", "1", "2", "0.0200"]
    assert arm_rows(Progress(done=1, total=2, exams=(ExamStatus("bbh", 1.0, 1),))) == []


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_arms_can_be_told_apart_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    names = [f"fresh_bbh/difficulty-{level}" for level in ("0.25", "0.5", "0.75")]
    arms = [ExamStatus(n, 3.0, 4, arm=ArmStatus(n, 4, 10_000, 7, 1, 2, 0.01)) for n in names]
    stream = Terminal()
    display = make_display(stream)
    display.start(20, 0, ["fresh_bbh"])
    display.update(Progress(done=6, total=20, elapsed=1.0, exams=tuple(arms)))
    display.finish()
    rows = [line.split() for line in stream.getvalue().splitlines() if " 75.0" in line][-3:]
    shown_names = [row[0] for row in rows]
    assert len(set(shown_names)) == len(names)
    full_names = names if columns > 80 else [name.removeprefix("fresh_bbh/") for name in names]
    if columns != 40:
        assert shown_names in (names, full_names)
        assert [row[-1] for row in rows] == ["0.0100"] * 3
    assert [row[1:4] for row in rows] == [["4/10,000", "75.0", "%"]] * 3


@pytest.mark.parametrize(
    ("language", "message"),
    [("en", "oldest reply: 2 min 10 s"), ("zh", "最早的回复已等待 2 分钟 10 秒")],
)
def test_a_reply_that_takes_long_is_spoken_of(
    monkeypatch: pytest.MonkeyPatch, language: str, message: str
) -> None:
    monkeypatch.setenv("KEJU_LANGUAGE", language)
    for stream in (io.StringIO(), Terminal()):
        display = make_display(stream)
        display.start(1000, 0, ["bbh"])
        display.update(at(20.0, 1, oldest=20.0))
        assert message.split("2 ")[0] not in stream.getvalue()
        display.update(at(140.0, 1, oldest=130.0))
        display.finish()
        assert message in " ".join(stream.getvalue().split())


def lines_of(*states: Progress, total: int = 10) -> list[str]:
    """What a log with a line for each state says."""
    lines = []
    for count in range(1, len(states) + 1):
        stream = io.StringIO()
        display = make_display(stream)
        display.start(total, 0, ["bbh"])
        for state in states[:count]:
            display.update(state)
        display.finish()
        lines.append(stream.getvalue().splitlines()[-1])
    return lines


def test_requests_that_nobody_has_answered_yet_are_no_speed_and_no_outlook() -> None:
    states = [at(t, 0, total=10, requests=8, in_flight=8, limit=8) for t in (0.1, 1.6, 40.0)]
    for line in lines_of(at(0.0, 0, total=10, in_flight=0, requests=0), *states):
        assert "requests/s" not in line
        assert "tokens/s" not in line
        assert "left" not in line


def test_the_first_reply_of_many_in_flight_tells_no_speed() -> None:
    begun = at(0.0, 0, total=100, requests=8, in_flight=8)
    one_answered = at(5.0, 1, total=100, requests=9, in_flight=8)
    eight_answered = at(10.0, 8, total=100, requests=16, in_flight=8)
    *_, early, late = lines_of(begun, one_answered, eight_answered, total=100)
    assert "requests/s" not in early
    assert "left" not in early
    assert "0.8 requests/s" in late
    assert "left 1 min 55 s" in late


def one_by_one(answered: int, elapsed: float) -> Progress:
    """Ten questions, one in flight at a time."""
    return at(elapsed, answered, total=10, requests=answered + 1, in_flight=1, limit=1)


def test_the_outlook_runs_down_while_a_long_reply_is_written_and_never_grows() -> None:
    answers = [one_by_one(answered, 40.0 * answered) for answered in range(5)]
    waiting = [one_by_one(4, 160.0 + waited) for waited in range(10, 131, 10)]
    lines = lines_of(*answers, *waiting)
    assert "left" not in lines[1], "one reply is no pace"
    assert "left 5 min 20 s" in lines[2], "replies that take longer than the window tell one too"
    assert "left 4 min 00 s" in lines[4]
    assert "0.025 requests/s" in lines[4]
    assert "left 3 min 30 s" in lines[7]
    assert "left 3 min 20 s" in lines[10], "the reply takes longer than others; they do not"
    assert "left at least 3 min 20 s" in lines[-1]


def test_a_last_reply_that_outlasts_all_others_has_no_outlook() -> None:
    quick = [at(0.1 * n, n, total=100, in_flight=4) for n in range(100)]
    *_, last_line = lines_of(*quick, at(70.0, 99, total=100, in_flight=1, oldest=60.0), total=100)
    assert "left" not in last_line
    assert "oldest reply: 1 min 00 s" in last_line
