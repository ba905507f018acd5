"""A date, given a hint from which today's date can be told.

Published questions are some forty hints, each with up to nine questions: tomorrow, a month ago, …
Fresh hints are of Keju's own and of the same kinds: today's date behind a step or two. Easy ones
say it plainly; hard ones tell a chain of dates, of which each depends on the one before. What
calendars leave open, as a month before the 31st of March, is not asked.
"""

from __future__ import annotations

import random
from datetime import date
from typing import NamedTuple

from keju.benchmarks.bbh.facts import ERRATA
from keju.benchmarks.fresh.task import Language, Question, Task, split_options, with_options
from keju.benchmarks.fresh.tasks.date_hints import (
    HINTS,
    PLAIN_HINTS,
    STYLES,
    YEARS,
    Shift,
    Values,
    any_day,
    date_text,
    shifted,
    told,
)
from keju.benchmarks.fresh.tasks.date_reading import answer_of

ALL_HINTS = (*PLAIN_HINTS, *HINTS)
SIX_OPTIONS = 0.85
"""How many published questions have six options; the others have five."""
PLAIN = 0.2
"""How many published hints say today's date plainly, or that of a day next to it."""
EASIEST = 0.25
"""The difficulty at which all hints are plain."""
LINKS = 2
"""By how many dates a chain grows when the difficulty grows by one."""

ASKED: tuple[tuple[Shift, dict[Language, str]], ...] = (
    (Shift(), {"en": "today", "zh": "今天"}),
    (Shift(days=1), {"en": "tomorrow", "zh": "明天"}),
    (Shift(days=-1), {"en": "yesterday", "zh": "昨天"}),
    (Shift(days=7), {"en": "one week from today", "zh": "一周以后"}),
    (Shift(days=-7), {"en": "one week ago from today", "zh": "一周以前"}),
    (Shift(days=-10), {"en": "10 days ago", "zh": "10天以前"}),
    (Shift(days=1), {"en": "24 hours later", "zh": "24小时以后"}),
    (Shift(months=-1), {"en": "a month ago", "zh": "一个月以前"}),
    (Shift(months=-12), {"en": "one year ago from today", "zh": "一年前的今天"}),
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
UNITS: tuple[tuple[Shift, int, dict[Language, str]], ...] = (
    (Shift(days=1), 40, {"en": "days", "zh": "天"}),
    (Shift(days=7), 9, {"en": "weeks", "zh": "周"}),
    (Shift(months=1), 11, {"en": "months", "zh": "个月"}),
    (Shift(months=12), 5, {"en": "years", "zh": "年"}),
)
"""What dates of a chain are apart, and how many of it at most."""

UNDECIDED = dict.fromkeys(
    (6, 30, 88, 172),
    "40 eggs, one a day, last until the 39th day or the 40th, as the first was eaten at once or "
    "not; both answers are among the options",
)
_NAME = "bbh_date_understanding_"
WRONG = {int(row.removeprefix(_NAME)): ERRATA[row].fault for row in ERRATA if _NAME in row}
"""Published rows whose target is not the right date; for most of them no option is."""
EXCEPTIONS = dict(sorted((UNDECIDED | WRONG).items()))


class Link(NamedTuple):
    """How far a date of a chain is from the one before: so many units after it, or before."""

    number: int
    unit: int
    after: bool


class Chain(NamedTuple):
    """Buildings were opened, the first of them on a day; the last link leads to today."""

    day: date
    buildings: list[int]
    links: list[Link]


class Dated(NamedTuple):
    """A hint by its number with its values, plain ones first, or a chain; and what is asked."""

    hint: int | None
    values: Values
    chain: Chain | None
    style: int
    asked: int
    options: list[date]
    answer: int


class DateUnderstanding(Task):
    """A problem is a `Dated`."""

    subset = "date_understanding"
    languages = ("en", "zh")
    exceptions = EXCEPTIONS

    def invent(self, draw: random.Random, difficulty: float) -> Dated:
        hint, values, chain = None, Values(), None
        if links := _rounded(draw, LINKS * max(0.0, difficulty - 1)):
            today, chain = _chain(draw, links + 1)
        else:
            share = (1 - PLAIN) * min(1.0, (difficulty - EASIEST) / (1 - EASIEST))
            hint = draw.randrange(len(PLAIN_HINTS))
            if draw.random() < share:
                hint = len(PLAIN_HINTS) + draw.randrange(len(HINTS))
            today, values = ALL_HINTS[hint].draw(draw)
        right = None
        while right is None:  # not every month has a 31st
            asked = draw.randrange(len(ASKED))
            right = shifted(today, ASKED[asked][0])
        others = [shifted(today, shift) for shift, _ in ASKED]
        options = _wrong(draw, right, others, 5 if draw.random() < SIX_OPTIONS else 4)
        answer = draw.randrange(len(options) + 1)
        options.insert(answer, right)
        return Dated(hint, values, chain, draw.randrange(STYLES), asked, options, answer)

    def write(self, problem: Dated, language: Language) -> Question:
        if problem.chain is not None:
            hint = _told_chain(problem.chain, problem.style, language)
        else:
            assert problem.hint is not None
            hint = told(ALL_HINTS[problem.hint], problem.values, problem.style, language)
        asked = QUESTIONS[language].format(ASKED[problem.asked][1][language])
        options = [FORMATS[language].format(day) for day in problem.options]
        return with_options(hint + asked, options, problem.answer, language)

    def solve(self, text: str) -> str | None:
        return answer_of(*split_options(text))


def _rounded(draw: random.Random, size: float) -> int:
    """A size between two whole numbers is one or the other, so that it grows little by little."""
    return int(size) + (draw.random() < size - int(size))


def _wrong(draw: random.Random, right: date, others: list[date | None], number: int) -> list[date]:
    """Answers to other questions about today, and dates that a slip turns the right one into."""
    slips = [
        *others,
        *(shifted(right, Shift(days=days)) for days in (-1, 1, draw.randint(2, 30))),
        *(shifted(right, Shift(months=months)) for months in (-1, 1, draw.randint(2, 11), -12, 12)),
        shifted(right, Shift(months=12 * draw.randint(-60, 60))),
    ]
    wrong = sorted({day for day in slips if day is not None} - {right})
    return draw.sample(wrong, number)


def _chain(draw: random.Random, links: int) -> tuple[date, Chain]:
    """A chain of so many links, and the day at its end: today."""
    while True:
        day = first = any_day(draw)
        chosen: list[Link] = []
        while len(chosen) < links:
            unit, last = draw.randrange(len(UNITS)), len(chosen) + 1 == links
            shift, most, _ = UNITS[unit]
            number, after = draw.randint(2, most), last or draw.random() < 0.5
            times = number if after else -number
            moved = shifted(day, Shift(times * shift.days, times * shift.months))
            if moved is not None:
                day = moved
                chosen.append(Link(number, unit, after))
        if YEARS[0] <= day.year <= YEARS[1]:
            buildings = draw.sample(range(len(BUILDINGS["en"])), links)
            return day, Chain(first, buildings, chosen)


def _told_chain(chain: Chain, style: int, language: Language) -> str:
    names = [BUILDINGS[language][building] for building in chain.buildings]
    day = date_text(chain.day, style, language)
    said = [
        f"The {names[0]} was opened on {day}." if language == "en" else f"{names[0]}在{day}启用。"
    ]
    for place, (number, unit, after) in enumerate(chain.links, 1):
        apart, last = f"{number} {UNITS[unit][2]['en']}", place == len(names)
        if language == "zh":
            apart = f"{number}{UNITS[unit][2]['zh']}"
            said.append(
                f"今天距离{names[-1]}启用正好{apart}。"
                if last
                else f"{names[place]}比{names[place - 1]}{'晚' if after else '早'}{apart}启用。"
            )
        elif last:
            said.append(f"Today is {apart} after the opening of the {names[-1]}.")
        else:
            side = "after" if after else "before"
            said.append(f"The {names[place]} was opened {apart} {side} the {names[place - 1]}.")
    return ("" if language == "zh" else " ").join(said)
