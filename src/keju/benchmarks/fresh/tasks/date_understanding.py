"""A date, given a hint that determines today's date.

The published questions have about forty hints, each with up to nine questions: tomorrow, a month
ago, … Fresh hints are written by Keju and of the same kinds: today's date after one or two steps.
Easy hints state it directly. Hard hints are a chain of dates, each relative to the one before.
Dates that calendars leave open, such as a month before the 31st of March, are not asked.
"""

from __future__ import annotations

import random
from datetime import date
from typing import NamedTuple

from keju.benchmarks.bbh.metadata import ERRATA
from keju.benchmarks.fresh.task import (
    FreshQuestion,
    FreshTask,
    Language,
    add_options,
    split_options,
)
from keju.benchmarks.fresh.tasks.date_hints import (
    HINTS,
    PLAIN_HINTS,
    STYLES,
    YEARS,
    DateShift,
    HintValues,
    date_text,
    draw_any_day,
    render_hint,
    shift_date,
)
from keju.benchmarks.fresh.tasks.date_reading import solve_dates

ALL_HINTS = (*PLAIN_HINTS, *HINTS)
SIX_OPTIONS = 0.85
"""The share of published questions with six options; the others have five."""
PLAIN_SHARE = 0.2
"""The share of published hints that state the date of today, tomorrow or yesterday."""
EASIEST = 0.25
"""The difficulty at which all hints are plain."""
LINKS = 2
"""The number of dates by which a chain grows when the difficulty grows by one."""

DATE_QUESTIONS: tuple[tuple[DateShift, dict[Language, str]], ...] = (
    (DateShift(), {"en": "today", "zh": "今天"}),
    (DateShift(days=1), {"en": "tomorrow", "zh": "明天"}),
    (DateShift(days=-1), {"en": "yesterday", "zh": "昨天"}),
    (DateShift(days=7), {"en": "one week from today", "zh": "一周以后"}),
    (DateShift(days=-7), {"en": "one week ago from today", "zh": "一周以前"}),
    (DateShift(days=-10), {"en": "10 days ago", "zh": "10天以前"}),
    (DateShift(days=1), {"en": "24 hours later", "zh": "24小时以后"}),
    (DateShift(months=-1), {"en": "a month ago", "zh": "一个月以前"}),
    (DateShift(months=-12), {"en": "one year ago from today", "zh": "一年前的今天"}),
)
QUESTIONS: dict[Language, str] = {
    "en": " What is the date {} in MM/DD/YYYY?",
    "zh": "{}的日期是什么？请按“年/月/日”的格式回答。",
}
FORMATS: dict[Language, str] = {"en": "{0.month:02}/{0.day:02}/{0.year:04}", "zh": "{0:%Y/%m/%d}"}

BUILDINGS: dict[Language, tuple[str, ...]] = {
    "en": (
        "bridge", "museum", "theater", "school", "hospital", "station", "library", "stadium",
        "airport", "market hall", "lighthouse", "tunnel",
    ),
    "zh": (
        "大桥", "博物馆", "剧院", "学校", "医院", "火车站", "图书馆", "体育场", "机场", "菜市场",
        "灯塔", "隧道",
    ),
}  # fmt: skip
UNITS: tuple[tuple[DateShift, int, dict[Language, str]], ...] = (
    (DateShift(days=1), 40, {"en": "days", "zh": "天"}),
    (DateShift(days=7), 9, {"en": "weeks", "zh": "周"}),
    (DateShift(months=1), 11, {"en": "months", "zh": "个月"}),
    (DateShift(months=12), 5, {"en": "years", "zh": "年"}),
)
"""The distances between dates of a chain, with the maximum count of each."""

UNDECIDED = dict.fromkeys(
    (6, 30, 88, 172),
    "40 eggs, one a day, last until the 39th day or the 40th, as the first was eaten at once or "
    "not; both answers are among the options",
)
_NAME = "bbh_date_understanding_"
WRONG_TARGETS = {int(row.removeprefix(_NAME)): ERRATA[row].fault for row in ERRATA if _NAME in row}
"""Published rows with a wrong target; in most of them no option is right."""
EXCEPTIONS = dict(sorted((UNDECIDED | WRONG_TARGETS).items()))


class DateLink(NamedTuple):
    """The distance of a date in a chain from the one before, in units, after or before it."""

    number: int
    unit: int
    after: bool


class DateChain(NamedTuple):
    """Buildings with opening dates; the first has a date, and the last link leads to today."""

    day: date
    buildings: list[int]
    links: list[DateLink]


class DateProblem(NamedTuple):
    """A hint by its number (plain ones first) with its values, or a chain; and the question."""

    hint: int | None
    values: HintValues
    chain: DateChain | None
    style: int
    date_question: int
    options: list[date]
    answer: int


class DateUnderstanding(FreshTask):
    """A problem is a `DateProblem`."""

    subset = "date_understanding"
    languages = ("en", "zh")
    exceptions = EXCEPTIONS

    def invent(self, draw: random.Random, difficulty: float) -> DateProblem:
        hint, values, chain = None, HintValues(), None
        if links := _round_randomly(draw, LINKS * max(0.0, difficulty - 1)):
            today, chain = _draw_chain(draw, links + 1)
        else:
            share = (1 - PLAIN_SHARE) * min(1.0, (difficulty - EASIEST) / (1 - EASIEST))
            hint = draw.randrange(len(PLAIN_HINTS))
            if draw.random() < share:
                hint = len(PLAIN_HINTS) + draw.randrange(len(HINTS))
            today, values = ALL_HINTS[hint].draw(draw)
        right_day = None
        while right_day is None:  # not every month has a 31st
            date_question = draw.randrange(len(DATE_QUESTIONS))
            right_day = shift_date(today, DATE_QUESTIONS[date_question][0])
        other_days = [shift_date(today, shift) for shift, _ in DATE_QUESTIONS]
        options = _draw_wrong_days(
            draw, right_day, other_days, 5 if draw.random() < SIX_OPTIONS else 4
        )
        answer = draw.randrange(len(options) + 1)
        options.insert(answer, right_day)
        return DateProblem(
            hint, values, chain, draw.randrange(STYLES), date_question, options, answer
        )

    def write(self, problem: DateProblem, language: Language) -> FreshQuestion:
        if problem.chain is not None:
            hint = _render_chain(problem.chain, problem.style, language)
        else:
            assert problem.hint is not None
            hint = render_hint(ALL_HINTS[problem.hint], problem.values, problem.style, language)
        question_text = QUESTIONS[language].format(
            DATE_QUESTIONS[problem.date_question][1][language]
        )
        options = [FORMATS[language].format(day) for day in problem.options]
        return add_options(hint + question_text, options, problem.answer, language)

    def solve(self, text: str) -> str | None:
        return solve_dates(*split_options(text))


def _round_randomly(draw: random.Random, size: float) -> int:
    """Round a size up or down at random, so that it grows gradually."""
    return int(size) + (draw.random() < size - int(size))


def _draw_wrong_days(
    draw: random.Random, right_day: date, other_days: list[date | None], number: int
) -> list[date]:
    """Draw answers to other questions about today, and dates that a slip makes of the right one."""
    slips = [
        *other_days,
        *(shift_date(right_day, DateShift(days=days)) for days in (-1, 1, draw.randint(2, 30))),
        *(
            shift_date(right_day, DateShift(months=months))
            for months in (-1, 1, draw.randint(2, 11), -12, 12)
        ),
        shift_date(right_day, DateShift(months=12 * draw.randint(-60, 60))),
    ]
    wrong_days = sorted({day for day in slips if day is not None} - {right_day})
    return draw.sample(wrong_days, number)


def _draw_chain(draw: random.Random, links: int) -> tuple[date, DateChain]:
    """Draw a chain with this number of links; return the day at its end, today, and the chain."""
    while True:
        day = first_day = draw_any_day(draw)
        chain_links: list[DateLink] = []
        while len(chain_links) < links:
            unit, is_last = draw.randrange(len(UNITS)), len(chain_links) + 1 == links
            shift, max_number, _ = UNITS[unit]
            number, after = draw.randint(2, max_number), is_last or draw.random() < 0.5
            times = number if after else -number
            next_day = shift_date(day, DateShift(times * shift.days, times * shift.months))
            if next_day is not None:
                day = next_day
                chain_links.append(DateLink(number, unit, after))
        if YEARS[0] <= day.year <= YEARS[1]:
            buildings = draw.sample(range(len(BUILDINGS["en"])), links)
            return day, DateChain(first_day, buildings, chain_links)


def _render_chain(chain: DateChain, style: int, language: Language) -> str:
    names = [BUILDINGS[language][building] for building in chain.buildings]
    day = date_text(chain.day, style, language)
    sentences = [
        f"The {names[0]} was opened on {day}." if language == "en" else f"{names[0]}在{day}启用。"
    ]
    for place, (number, unit, after) in enumerate(chain.links, 1):
        distance, is_last = f"{number} {UNITS[unit][2]['en']}", place == len(names)
        if language == "zh":
            distance = f"{number}{UNITS[unit][2]['zh']}"
            sentences.append(
                f"今天距离{names[-1]}启用正好{distance}。"
                if is_last
                else f"{names[place]}比{names[place - 1]}{'晚' if after else '早'}{distance}启用。"
            )
        elif is_last:
            sentences.append(f"Today is {distance} after the opening of the {names[-1]}.")
        else:
            side = "after" if after else "before"
            sentences.append(
                f"The {names[place]} was opened {distance} {side} the {names[place - 1]}."
            )
    return ("" if language == "zh" else " ").join(sentences)
