"""Read hints about today's date, published ones and Keju's, and compute the requested date.

If a hint or the calendar allows several dates, all are kept. The options decide if exactly one of
them fits. For example, 40 eggs, one a day, may last until the 39th day or the 40th, depending on
whether the first was eaten at once. A month before the 31st of March is the last of February or the
day after.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

from keju.types import LABELS

Days = list[date]

DATE = (  # 5/14/1987, May 14, 1987, Sept. 1st, 2021, 1987/5/14, 1987年5月14日
    r"(\d{1,2}/\d{1,2}/\d{4}|[A-Z][a-z]+\.? \d{1,2}(?:st|nd|rd|th)?, \d{4}|"
    r"\d{4}/\d{1,2}/\d{1,2}|\d{4}年\d{1,2}月\d{1,2}日)"
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
CHINESE_WEEKDAYS = "一二三四五六日"
ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
HOLIDAYS = {
    "New Year's Day": (1, 1), "元旦": (1, 1), "Valentine's Day": (2, 14), "情人节": (2, 14),
    "International Workers' Day": (5, 1), "国际劳动节": (5, 1), "Halloween": (10, 31),
    "万圣夜": (10, 31), "Christmas Eve": (12, 24), "平安夜": (12, 24), "Christmas Day": (12, 25),
    "圣诞节": (12, 25),
}  # fmt: skip
NUMBERS = {"one": 1, "ten": 10}

# --- calendar ----------------------------------------------------------------------------------


def parse_date(text: str) -> date:
    """Return a date in any form of `DATE`; plain numbers are month, day, year, or begin with the
    year."""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if len(numbers) == 2:
        return date(numbers[1], month_number(text), numbers[0])
    if numbers[0] > 31:
        return date(*numbers)
    return date(numbers[2], numbers[0], numbers[1])


def month_number(name: str) -> int:
    """Return the number of a month by its first three letters: Feb, February; 5月 is 5."""
    return int(name[:-1]) if name[:1].isdigit() else MONTHS.index(name[:3].lower()) + 1


def weekday_number(name: str) -> int:
    if name.startswith("星期"):
        return CHINESE_WEEKDAYS.index(name[2])
    return WEEKDAYS.index(name[:3].lower())


def shift_day(day: date, days: int = 0, months: int = 0) -> Days:
    """Return a date the given days and months later; several if the month has no such day."""
    months += day.year * 12 + day.month - 1
    first_of_month = date(months // 12, months % 12 + 1, 1)
    last_of_month = (first_of_month + timedelta(31)).replace(day=1) - timedelta(1)
    shifted_day = first_of_month + timedelta(min(day.day, last_of_month.day) - 1 + days)
    return (
        [shifted_day] if day.day <= last_of_month.day else [shifted_day, shifted_day + timedelta(1)]
    )


def nth_weekday(year: int, month: int, nth: int, weekday: int) -> date:
    """Return, for example, the first Monday of a month."""
    first_of_month = date(year, month, 1)
    return first_of_month + timedelta((weekday - first_of_month.weekday()) % 7 + 7 * (nth - 1))


def last_day_of_month(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(1)


def palindrome_days(year: int) -> Days:
    """Return the days of a year that read the same backwards: 02/02/2020."""
    days = [date(year, 1, 1) + timedelta(number) for number in range(365)]
    return [day for day in days if (text := day.strftime("%m%d%Y")) == text[::-1]]


def day_before_year(year: int, hours: int) -> date:
    """Return the day on which a year is the given number of hours away."""
    return date(year, 1, 1) - timedelta((hours - 1) // 24 + 1)


def resolve_beliefs(
    person: str, day: date, other_person: str, other_day: date, right_person: str
) -> Days:
    return [
        believed_day
        for name, believed_day in ((person, day), (other_person, other_day))
        if name == right_person
    ]


# --- hints -------------------------------------------------------------------------------------

HintRule = tuple[str, Callable[..., "date | Days"]]
"""A pattern, and a function of its groups (dates, whole numbers, or texts) that returns today."""

PUBLISHED_RULES: tuple[HintRule, ...] = (
    (r"Today is {D}\. \w+'s appointment will be \d+ days later\.", shift_day),
    (r"It is {D} today\.", shift_day),
    (r"Today, {D}, is a day that we will never forget\.", shift_day),
    (r"The current local time is [\d:]+ [ap]m of {D}\.", shift_day),
    (r"Yesterday was {D}\. Today could not be .+ because .+ has only \d+ days\.",
     lambda day: shift_day(day, 1)),
    (r"Yesterday, {D}, \w+ ate .+\.", lambda day: shift_day(day, 1)),
    (r"(?:\w+ booked a flight for|Today's meeting is rescheduled to 11 am) tomorrow, {D}\.",
     lambda day: shift_day(day, -1)),
    (r"\w+ scheduled .+ for tomorrow \(\w+, {D}\)\.", lambda day: shift_day(day, -1)),
    (r"It was {D} a week ago\.", lambda day: shift_day(day, 7)),
    (r"The deadline is {D}, which is {N} days away from now\.", lambda day, n: shift_day(day, -n)),
    (r"\w+ quited \w+ job on {D}\. {N} days have passed since then\.", shift_day),
    (r"{D} is like yesterday to \w+, but that is actually (\w+) years ago\.",
     lambda day, count: shift_day(day, months=12 * NUMBERS[count])),
    (r"In the UK, people usually put the day before the month when formatting the date\. "
     r"Therefore, today is {N}/{N}/{N} to them\.", lambda day, month, year: date(year, month, day)),
    (r"(\w+) thinks today is {D}, but (\w+) thinks today is {D}\. (\w+) is correct\.",
     resolve_beliefs),
    (r"\w+ thought today is {D}, but today is in fact \w+ \d+, which is {N} day later\.",
     shift_day),
    (r"The concert was scheduled to be on {D}, but was delayed by (\w+) day to today\.",
     lambda day, count: shift_day(day, NUMBERS[count])),
    (r"\w+ and \w+ married on {D}\. It is their {N}-year anniversary today\.",
     lambda day, count: shift_day(day, months=12 * count)),
    (r"\w+ and \w+ married on {D}\. Today is their golden wedding anniversary\.",
     lambda day: shift_day(day, months=12 * 50)),
    (r"Today is ([A-Z].+) of {N}\.", lambda name, year: date(year, *HOLIDAYS[name])),
    (r"\w+ is celebrating the last day of (\w+) {N}\.",
     lambda month, year: last_day_of_month(year, month_number(month))),
    (r"This is the last day of {N}\.", lambda year: last_day_of_month(year, 12)),
    (r"Today is the first day of {N}\.", lambda year: date(year, 1, 1)),
    (r"Today is the last day of the (\w+) quarter of {N}\.",
     lambda nth, year: last_day_of_month(year, 3 * ORDINALS.index(nth))),
    (r"Today is the (\w+) day of the (\w+) month of {N}\.",
     lambda day, month, year: date(year, ORDINALS.index(month), ORDINALS.index(day))),
    (r"\w+ was born on the last day of (\w+) in {N}\. Today is \w+ {N}-year-old birthday\.",
     lambda month, year, age: shift_day(
         last_day_of_month(year, month_number(month)), months=12 * age)),
    (r"Today is {N}/{N}(?:\. \w+ is watching NFL|, and it is \w+'s second time in the year) {N}"
     r"(?: to see a meteor shower)?\.", lambda month, day, year: date(year, month, day)),
    (r"\w+ got \w+ job in {N}\. Today is \w+ {N}-year work anniversary\. \w+ still remember that "
     r"on (\w+) {N}, \w+ second day at work, .+\.",
     lambda year, years, month, day: date(year + years, month_number(month), day - 1)),
    (r"\w+ visits the bookstore on the {N}th of each month starting from the (\w+) of {N}\. It is "
     r"\w+ {N}th visit to the bookstore today\.",
     lambda day, month, year, nth: shift_day(date(year, month_number(month), day), months=nth - 1)),
    (r"The first day of {N} is a \w+, and today is the (\w+) (\w+) of \d+\.",
     lambda year, nth, name: nth_weekday(year, 1, ORDINALS.index(nth), weekday_number(name))),
    (r"On {D} \w+ bought {N} eggs\. \w+ ate one per day\. Today \w+ ran out of eggs\.",
     lambda day, count: [*shift_day(day, count - 1), *shift_day(day, count)]),
    (r"Today is the palindrome day of {N}, because the MMDDYYYY format of the date is the same "
     r"backwards as forwards\.", palindrome_days),
    (r"{N} is coming in {N} hours\.", day_before_year),
    (r"In the US, Thanksgiving is on the fourth Thursday of November\. Today is the US "
     r"Thanksgiving of {N}\.", lambda year: nth_weekday(year, 11, 4, 3)),
)  # fmt: skip
KEJU_RULES: tuple[HintRule, ...] = (
    (r"(?:Today is |今天是){D}[.。]", shift_day),
    (r"(?:Yesterday was |昨天是){D}[.。]", lambda day: shift_day(day, 1)),
    (r"(?:Tomorrow is |明天是){D}[.。]", lambda day: shift_day(day, -1)),
    (r"(?:The day before yesterday was |前天是){D}[.。]", lambda day: shift_day(day, 2)),
    (r"(?:The day after tomorrow is |后天是){D}[.。]", lambda day: shift_day(day, -2)),
    (r"\w+ moved house on {D}\. That was {N} days ago\.", shift_day),
    (r"\w+在{D}搬了家，那是{N}天前的事。", shift_day),
    (r"The library book is due on {D}, {N} days from today\.", lambda day, n: shift_day(day, -n)),
    (r"图书馆的书要在{D}归还，离今天还有{N}天。", lambda day, n: shift_day(day, -n)),
    (r"The match planned for {D} was put off by {N} days and is played today\.", shift_day),
    (r"原定于{D}举行的比赛推迟了{N}天，改在今天举行。", shift_day),
    (r"\w+ and \w+ opened a bakery on {D}\. Today it is exactly {N} years old\.",
     lambda day, count: shift_day(day, months=12 * count)),
    (r"\w+和\w+在{D}开了一家面包店，到今天正好{N}年。",
     lambda day, count: shift_day(day, months=12 * count)),
    (r"(\w+) believes that today is {D}, (\w+) believes that it is {D}\. (\w+) is right\.",
     resolve_beliefs),
    (r"(\w+)以为今天是{D}，(\w+)以为今天是{D}。(\w+)是对的。", resolve_beliefs),
    (r"(?:In Germany, dates begin with the day\. A German newspaper of today is dated |"
     r"在德国，日期先写日，再写月，最后写年。今天的一份德国报纸上写着){N}\.{N}\.{N}[.。]",
     lambda day, month, year: date(year, month, day)),
    (r"(\w+) {N} ends tonight\.", lambda month, year: last_day_of_month(year, month_number(month))),
    (r"{N}年(\d+月)将在今天夜里结束。",
     lambda year, month: last_day_of_month(year, month_number(month))),
    (r"People celebrate (.+) of {N} today\.", lambda name, year: date(year, *HOLIDAYS[name])),
    (r"今天人们庆祝{N}年的(.+)。", lambda year, name: date(year, *HOLIDAYS[name])),
    (r"\w+ pays the rent on day {N} of every month\. \w+ began in (\w+) {N} and pays for the "
     r"{N}(?:st|nd|rd|th) time today\.",
     lambda day, month, year, nth: shift_day(date(year, month_number(month), day), months=nth - 1)),
    (r"\w+每个月{N}号付房租，从{N}年(\d+月)开始，今天是第{N}次。",
     lambda day, year, month, nth: shift_day(date(year, month_number(month), day), months=nth - 1)),
    (r"The year {N} begins in {N} hours\.", day_before_year),
    (r"再过{N}个小时就是{N}年了。", lambda hours, year: day_before_year(year, hours)),
    (r"(\w+) 1, {N} is a \w+\. Today is the (\w+) (\w+) of that month\.",
     lambda month, year, nth, name: nth_weekday(
         year, month_number(month), ORDINALS.index(nth), weekday_number(name))),
    (r"{N}年(\d+月)1日是\w+，今天是那个月的第(.)个(星期.)。",
     lambda year, month, nth, name: nth_weekday(
         year, month_number(month), CHINESE_WEEKDAYS.index(nth) + 1, weekday_number(name))),
)  # fmt: skip
RULES = [
    (re.compile(pattern.replace("{D}", DATE).replace("{N}", r"(\d+)")), rule)
    for pattern, rule in (*KEJU_RULES, *PUBLISHED_RULES)
]

# The bridge was opened on May 3, 1987. The school was opened 12 days after the bridge.
# 大桥在1987年5月3日启用。学校比大桥晚12天启用。今天距离学校启用正好3个月。
OPENING_DAY = re.compile(rf"(?:The (.+) was opened on |(.+)在){DATE}(?:启用)?")
DISTANCE = re.compile(
    r"The (.+) was opened (\d+) (\w+) (after|before) the (.+)|(.+)比(.+)(晚|早)(\d+)(\D+)启用"
)
TODAY = re.compile(
    r"Today is (\d+) (\w+) after the opening of the (.+)|今天距离(.+)启用正好(\d+)(\D+)"
)
UNITS: dict[str, dict[str, int]] = {
    "days": {"days": 1}, "天": {"days": 1}, "weeks": {"days": 7}, "周": {"days": 7},
    "months": {"months": 1}, "个月": {"months": 1}, "years": {"months": 12}, "年": {"months": 12},
}  # fmt: skip


def find_todays(hint: str) -> Days:
    """Return all possible dates of today; none if the hint is not understood."""
    for pattern, rule in RULES:
        if match := pattern.fullmatch(hint):
            try:
                days = rule(*map(_parse_value, match.groups()))
            except (ValueError, KeyError):  # no such day, month or name
                return []
            return days if isinstance(days, list) else [days]
    return _solve_chain(re.split(r"\. |。", hint.rstrip(".。")))


def _parse_value(text: str) -> Any:
    if re.fullmatch(DATE, text):
        return parse_date(text)
    return int(text) if text.isdecimal() else text


def _solve_chain(sentences: list[str]) -> Days:
    days: dict[str, Days] = {}
    for sentence in sentences:
        if match := OPENING_DAY.fullmatch(sentence):
            days[match[1] or match[2]] = [parse_date(match[3])]
        elif match := DISTANCE.fullmatch(sentence):
            name, count, unit, side, earlier_name = match.group(
                *((1, 2, 3, 4, 5) if match[1] else (6, 9, 10, 8, 7))
            )
            steps = int(count) if side in ("after", "晚") else -int(count)
            days[name] = _shift_days(days.get(earlier_name, []), steps, unit)
        elif match := TODAY.fullmatch(sentence):
            count, unit, name = match.group(*((1, 2, 3) if match[1] else (5, 6, 4)))
            return _shift_days(days.get(name, []), int(count), unit)
        else:
            return []
    return []


def _shift_days(days: Days, steps: int, unit: str) -> Days:
    step = {name: steps * size for name, size in UNITS.get(unit, {}).items()}
    return [shifted_day for day in days for shifted_day in shift_day(day, **step)] if step else []


# --- questions ---------------------------------------------------------------------------------

QUESTION = re.compile(
    r"(?P<hint>.+?) What is the date (?P<asked>.+) in MM/DD/YYYY\?"
    r"|(?P<chinese_hint>.+。)(?P<chinese_asked>.+)的日期是什么？请按“年/月/日”的格式回答。"
)
DATE_PHRASES: dict[str, dict[str, int]] = {
    "today": {}, "今天": {},
    "tomorrow": {"days": 1}, "明天": {"days": 1}, "24 hours later": {"days": 1},
    "24小时以后": {"days": 1}, "yesterday": {"days": -1}, "昨天": {"days": -1},
    "one week from today": {"days": 7}, "一周以后": {"days": 7},
    "one week ago from today": {"days": -7}, "一周以前": {"days": -7},
    "10 days ago": {"days": -10}, "10天以前": {"days": -10},
    "a month ago": {"months": -1}, "一个月以前": {"months": -1},
    "one year ago from today": {"months": -12}, "一年前的今天": {"months": -12},
}  # fmt: skip


def solve_dates(head: str, options: Sequence[str]) -> str | None:
    """Return the label of the only option that fits; None if there is not exactly one."""
    match = QUESTION.fullmatch(head)
    if match is None:
        return None
    hint, date_phrase = (
        match["hint"] or match["chinese_hint"],
        match["asked"] or match["chinese_asked"],
    )
    shift = DATE_PHRASES.get(date_phrase)
    if shift is None or not all(re.fullmatch(DATE, option) for option in options):
        return None
    right_days = {
        shifted_day for day in find_todays(hint) for shifted_day in shift_day(day, **shift)
    }
    matching_numbers = [
        number for number, option in enumerate(options) if parse_date(option) in right_days
    ]
    return f"({LABELS[matching_numbers[0]]})" if len(matching_numbers) == 1 else None
