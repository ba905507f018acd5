"""Hints that determine today's date: draw them and write them as text."""

from __future__ import annotations

import random
from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from typing import NamedTuple

from keju.benchmarks.fresh.task import Language
from keju.benchmarks.fresh.vocabulary import vocabulary

YEARS = (1905, 2035)

HintValues = dict[str, int | date]
"""The content of a hint, independent of language: days, years, months, counts, name indexes."""
DrawnHint = tuple[date, HintValues]
"""Today, and the content of the hint."""


class DateHint(NamedTuple):
    """A kind of hint: a function that draws its values, and its templates."""

    draw: Callable[[random.Random], DrawnHint]
    en: str
    zh: str


class DateShift(NamedTuple):
    """A distance from one date to another."""

    days: int = 0
    months: int = 0


def shift_date(day: date, shift: DateShift) -> date | None:
    """Return a date some days or months later, or None if the day does not exist."""
    year, month = divmod(day.year * 12 + day.month - 1 + shift.months, 12)
    if day.day > monthrange(year, month + 1)[1]:
        return None
    return date(year, month + 1, day.day) + timedelta(shift.days)


# --- drawing -----------------------------------------------------------------------------------


def draw_any_day(draw: random.Random) -> date:
    first_ordinal, last_ordinal = (
        date(YEARS[0], 1, 1).toordinal(),
        date(YEARS[1], 12, 31).toordinal(),
    )
    return date.fromordinal(draw.randint(first_ordinal, last_ordinal))


def _draw_early_day(draw: random.Random) -> date:
    """Draw a day that every month has."""
    return draw_any_day(draw).replace(day=draw.randint(1, 28))


def _plain_hint(shift: int) -> Callable[[random.Random], DrawnHint]:
    def draw_day(draw: random.Random) -> DrawnHint:
        today = draw_any_day(draw)
        return today, {"day": today + timedelta(shift)}

    return draw_day


def _draw_days_ago(draw: random.Random) -> DrawnHint:
    today, count = draw_any_day(draw), draw.randint(3, 60)
    return today, {"day": today - timedelta(count), "count": count, **_draw_people(draw)}


def _draw_due_date(draw: random.Random) -> DrawnHint:
    today, count = draw_any_day(draw), draw.randint(3, 30)
    return today, {"day": today + timedelta(count), "count": count}


def _draw_put_off(draw: random.Random) -> DrawnHint:
    today, count = draw_any_day(draw), draw.randint(2, 10)
    return today, {"day": today - timedelta(count), "count": count}


def _draw_birthday(draw: random.Random) -> DrawnHint:
    today, count = _draw_early_day(draw), draw.randint(2, 40)
    return today, {
        "day": today.replace(year=today.year - count),
        "count": count,
        **_draw_people(draw),
    }


def _draw_beliefs(draw: random.Random) -> DrawnHint:
    today = draw_any_day(draw)
    days, people = [today, today + timedelta(draw.choice((-2, -1, 1, 2)))], _draw_people(draw)
    right_person = people["one"]
    if draw.random() < 0.5:
        days, right_person = days[::-1], people["two"]
    return today, {"day": days[0], "other": days[1], "right": right_person, **people}


def _draw_day_first(draw: random.Random) -> DrawnHint:
    day, month = draw.sample(range(1, 13), 2)  # either number could be the month
    today = date(draw_any_day(draw).year, month, day)
    return today, {"german": today}


def _draw_last_of_month(draw: random.Random) -> DrawnHint:
    today = draw_any_day(draw).replace(day=1) - timedelta(1)
    return today, {"year": today.year, "month": today.month}


def _draw_holiday(draw: random.Random) -> DrawnHint:
    number = draw.randrange(len(HOLIDAYS))
    today = date(draw_any_day(draw).year, *HOLIDAYS[number])
    return today, {"year": today.year, "holiday": number}


def _draw_monthly(draw: random.Random) -> DrawnHint:
    first_payment, count = _draw_early_day(draw), draw.randint(2, 9)
    today = shift_date(first_payment, DateShift(months=count - 1))
    assert today is not None
    hint_values: HintValues = {
        "year": first_payment.year,
        "month": first_payment.month,
        "day_of_month": first_payment.day,
    }
    return today, hint_values | {"nth": count} | _draw_people(draw)


def _draw_hours(draw: random.Random) -> DrawnHint:
    today, part = date(draw_any_day(draw).year, 12, draw.randint(20, 31)), draw.randint(6, 18)
    return today, {"year": today.year + 1, "count": 24 * (31 - today.day) + part}


def _draw_weekday(draw: random.Random) -> DrawnHint:
    today = draw_any_day(draw)
    first_of_month = today.replace(day=1)
    hint_values: HintValues = {
        "year": today.year,
        "month": today.month,
        "weekday": first_of_month.weekday(),
    }
    return today, hint_values | {"nth_word": (today.day - 1) // 7, "other_weekday": today.weekday()}


def _draw_people(draw: random.Random) -> dict[str, int]:
    person, other_person = draw.sample(range(len(vocabulary("people.en"))), 2)
    return {"one": person, "two": other_person}


# --- writing -----------------------------------------------------------------------------------

PLAIN_HINTS = (
    DateHint(_plain_hint(0), "Today is {day}.", "今天是{day}。"),
    DateHint(_plain_hint(-1), "Yesterday was {day}.", "昨天是{day}。"),
    DateHint(_plain_hint(1), "Tomorrow is {day}.", "明天是{day}。"),
    DateHint(_plain_hint(-2), "The day before yesterday was {day}.", "前天是{day}。"),
    DateHint(_plain_hint(2), "The day after tomorrow is {day}.", "后天是{day}。"),
)
HINTS = (
    DateHint(
        _draw_days_ago,
        "{one} moved house on {day}. That was {count} days ago.",
        "{one}在{day}搬了家，那是{count}天前的事。",
    ),
    DateHint(
        _draw_due_date,
        "The library book is due on {day}, {count} days from today.",
        "图书馆的书要在{day}归还，离今天还有{count}天。",
    ),
    DateHint(
        _draw_put_off,
        "The match planned for {day} was put off by {count} days and is played today.",
        "原定于{day}举行的比赛推迟了{count}天，改在今天举行。",
    ),
    DateHint(
        _draw_birthday,
        "{one} and {two} opened a bakery on {day}. Today it is exactly {count} years old.",
        "{one}和{two}在{day}开了一家面包店，到今天正好{count}年。",
    ),
    DateHint(
        _draw_beliefs,
        "{one} believes that today is {day}, {two} believes that it is {other}. {right} is right.",
        "{one}以为今天是{day}，{two}以为今天是{other}。{right}是对的。",
    ),
    DateHint(
        _draw_day_first,
        "In Germany, dates begin with the day. A German newspaper of today is dated {german}.",
        "在德国，日期先写日，再写月，最后写年。今天的一份德国报纸上写着{german}。",
    ),
    DateHint(
        _draw_last_of_month, "{month} {year} ends tonight.", "{year}年{month}将在今天夜里结束。"
    ),
    DateHint(
        _draw_holiday,
        "People celebrate {holiday} of {year} today.",
        "今天人们庆祝{year}年的{holiday}。",
    ),
    DateHint(
        _draw_monthly,
        "{one} pays the rent on day {day_of_month} of every month. {one} began in {month} {year} "
        "and pays for the {nth} time today.",
        "{one}每个月{day_of_month}号付房租，从{year}年{month}开始，今天是第{nth}次。",
    ),
    DateHint(
        _draw_hours, "The year {year} begins in {count} hours.", "再过{count}个小时就是{year}年了。"
    ),
    DateHint(
        _draw_weekday,
        "{month} 1, {year} is a {weekday}. Today is the {nth_word} {other_weekday} of that month.",
        "{year}年{month}1日是{weekday}，今天是那个月的第{nth_word}个{other_weekday}。",
    ),
)
HOLIDAYS = ((1, 1), (2, 14), (5, 1), (10, 31), (12, 24), (12, 25))
HOLIDAY_NAMES: dict[Language, tuple[str, ...]] = {
    "en": (
        "New Year's Day", "Valentine's Day", "International Workers' Day", "Halloween",
        "Christmas Eve", "Christmas Day",
    ),
    "zh": ("元旦", "情人节", "国际劳动节", "万圣夜", "平安夜", "圣诞节"),
}  # fmt: skip
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
WEEKDAYS: dict[Language, tuple[str, ...]] = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "zh": ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"),
}
ORDINALS: dict[Language, tuple[str, ...]] = {
    "en": ("first", "second", "third", "fourth", "fifth"),
    "zh": ("一", "二", "三", "四", "五"),
}
STYLES = 3
"""Forms of dates: ``5/14/1987``, ``May 14, 1987`` with a short or a full name of the month."""


def render_hint(hint: DateHint, values: HintValues, style: int, language: Language) -> str:
    """Return the text of a hint."""
    words = {name: _render_value(name, value, style, language) for name, value in values.items()}
    return (hint.zh if language == "zh" else hint.en).format(**words)


def _render_value(name: str, value: int | date, style: int, language: Language) -> str:
    if isinstance(value, date):
        return value.strftime("%d.%m.%Y") if name == "german" else date_text(value, style, language)
    if name in ("one", "two", "right"):
        return vocabulary(f"people.{language}")[value]
    if name in ("weekday", "other_weekday"):
        return WEEKDAYS[language][value]
    if name == "nth_word":
        return ORDINALS[language][value]
    if name == "holiday":
        return HOLIDAY_NAMES[language][value]
    if name == "month":
        return f"{value}月" if language == "zh" else MONTHS[value - 1]
    if name == "nth" and language == "en":
        return f"{value}{ {2: 'nd', 3: 'rd'}.get(value, 'th') }"
    return str(value)


def date_text(day: date, style: int, language: Language) -> str:
    """Return a date in the usual form of the language."""
    if language == "zh":
        return (
            f"{day.year}年{day.month}月{day.day}日"
            if style
            else f"{day.year}/{day.month}/{day.day}"
        )
    month = MONTHS[day.month - 1]
    if not style:
        return f"{day.month}/{day.day}/{day.year}"
    return f"{month[:3] if style == 1 else month} {day.day}, {day.year}"
