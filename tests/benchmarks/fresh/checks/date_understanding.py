"""Dates as numbers of days, counted year by year and month by month; no calendar of Python's."""

from __future__ import annotations

import re

Day = tuple[int, int, int]

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
WEEK = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
CHINESE_WEEK = "一二三四五六日"
FEASTS = {
    "New Year": (1, 1), "元旦": (1, 1), "Valentine": (2, 14), "情人节": (2, 14), "Workers": (5, 1),
    "劳动节": (5, 1), "Halloween": (10, 31), "万圣夜": (10, 31), "Christmas Eve": (12, 24),
    "平安夜": (12, 24), "Christmas Day": (12, 25), "圣诞节": (12, 25),
}  # fmt: skip
NTH = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4}
WRITTEN = re.compile(
    r"(?P<m>\d+)/(?P<d>\d+)/(?P<y>\d{4})|(?P<name>[A-Z][a-z]{2})[a-z]* (?P<dd>\d+), (?P<yy>\d{4})"
    r"|(?P<yyy>\d{4})[/年](?P<mm>\d+)[/月](?P<ddd>\d+)日?"
)


def month_length(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return (
        29 if month == 2 and leap else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    )


def plus_days(day: Day, number: int) -> Day:
    """One day after the other, forward or backward."""
    year, month, date = day
    for _ in range(abs(number)):
        date += 1 if number > 0 else -1
        if date == 0:
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)
            date = month_length(year, month)
        elif date > month_length(year, month):
            year, month, date = (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)
    return year, month, date


def plus_months(day: Day, number: int) -> Day:
    """The same day of another month; it must have one."""
    year, month, date = day
    for _ in range(abs(number)):
        month += 1 if number > 0 else -1
        if month in (0, 13):
            year, month = (year - 1, 12) if month == 0 else (year + 1, 1)
    assert date <= month_length(year, month)
    return year, month, date


def plus(day: Day, number: int, unit: str) -> Day:
    if unit in ("days", "天", "weeks", "周"):
        return plus_days(day, number * (7 if unit in ("weeks", "周") else 1))
    return plus_months(day, number * {"months": 1, "个月": 1, "years": 12, "年": 12}[unit])


def written(text: str) -> list[Day]:
    """All dates in a text."""
    days = []
    for match in WRITTEN.finditer(text):
        month = MONTHS.index(match["name"]) + 1 if match["name"] else int(match["m"] or match["mm"])
        year, day = (
            match["y"] or match["yy"] or match["yyy"],
            match["d"] or match["dd"] or match["ddd"],
        )
        days.append((int(year), month, int(day)))
    return days


def answer(text: str) -> str:
    """The label of the right date."""
    story, options = re.split(r"\nOptions:\n|\n选项：\n", text)
    if story.endswith("YYYY?"):
        hint, question = story.split(" What is the date ")
    else:
        hint, question = story.rsplit("。", maxsplit=2)[0], story.rsplit("。", maxsplit=2)[1]
    day = shift(today(hint), question)
    (label,) = (
        label
        for label, option_text in re.findall(r"\((\w)\) (.+)", options)
        if written(option_text) == [day]
    )
    return f"({label})"


def shift(day: Day, question: str) -> Day:
    """What is asked for, from today on."""
    if "month" in question or "月以前" in question:
        return plus_months(day, -1)
    if "year" in question or "一年前" in question:
        return plus_months(day, -12)
    steps = {"10 days": -10, "10天": -10, "week ago": -7, "周以前": -7, "week from": 7, "周以后": 7}
    steps |= {"hours": 1, "小时": 1, "tomorrow": 1, "明天": 1, "yesterday": -1, "昨天": -1}
    return plus_days(
        day, next((number for phrase, number in steps.items() if phrase in question), 0)
    )


def today(hint: str) -> Day:
    """The day that a hint tells."""
    days, numbers = written(hint), [int(n) for n in re.findall(r"\d+", WRITTEN.sub("", hint))]
    if "opening of" in hint or "距离" in hint:
        return chain(hint)
    for phrase, number in (
        ("moved", 1),
        ("搬", 1),
        ("put off", 1),
        ("推迟", 1),
        ("due", -1),
        ("归还", -1),
    ):
        if phrase in hint:
            return plus_days(days[0], number * numbers[0])
    if "bakery" in hint or "面包店" in hint:
        return plus_months(days[0], 12 * numbers[0])
    if "right" in hint or "对的" in hint:
        left_speaker, right_speaker, right = re.findall(
            r"([^\s，。]+?)(?: believes| is right|以为|是对的)", hint
        )
        return days[[left_speaker, right_speaker].index(right)]
    if "German" in hint or "德国" in hint:
        day, month, year = numbers
        return year, month, day
    if "rent" in hint or "房租" in hint:
        return rent(hint)
    if "that month" in hint or "那个月" in hint:
        return of_month(hint)
    if "hours" in hint or "小时" in hint:
        return plus_days((max(numbers), 1, 1), -(min(numbers) // 24) - 1)
    if "celebrate" in hint or "庆祝" in hint:
        (feast,) = (feast for name, feast in FEASTS.items() if name in hint)
        return (numbers[0], *feast)
    if "ends tonight" in hint or "夜里结束" in hint:
        year, month = max(numbers), min(numbers)
        if hint.isascii():
            month = MONTHS.index(hint[:3]) + 1
        return year, month, month_length(year, month)
    plain = {"day before": 2, "前天": 2, "day after": -2, "后天": -2, "Yesterday": 1, "昨天": 1}
    plain |= {"Tomorrow": -1, "明天": -1}
    return plus_days(
        days[0], next((number for phrase, number in plain.items() if phrase in hint), 0)
    )


def rent(hint: str) -> Day:
    if hint.isascii():
        day, year, nth = map(int, re.findall(r"\d+", hint))
        (name,) = re.findall(r"began in (\w{3})", hint)
        return plus_months((year, MONTHS.index(name) + 1, day), nth - 1)
    day, year, month, nth = map(int, re.findall(r"\d+", hint))
    return plus_months((year, month, day), nth - 1)


def of_month(hint: str) -> Day:
    """Counts on from the weekday of the first of the month, which the hint tells."""
    if hint.isascii():
        ((year, month, _),) = written(hint)
        current_weekday, weekday = (
            WEEK.index(name) for name in re.findall(r"\w+day", hint.replace("Today", ""))
        )
        (nth,) = (number for word, number in NTH.items() if f"the {word} " in hint)
    else:
        ((year, month, _),) = written(hint)
        current_weekday, weekday = (
            CHINESE_WEEK.index(name) for name in re.findall(r"星期(.)", hint)
        )
        nth = CHINESE_WEEK.index(re.findall(r"第(.)个", hint)[0])
    date = 1
    while current_weekday != weekday or nth:
        nth -= current_weekday == weekday
        date, current_weekday = date + 1, (current_weekday + 1) % 7
    return year, month, date


def chain(hint: str) -> Day:
    """Every sentence of a chain stands on the one before."""
    sentences = re.split(r"\. |。", hint)
    (day,) = written(sentences[0])
    for sentence in sentences[1:]:
        if not sentence.strip():
            continue
        number, unit = re.findall(r"(\d+) ?(days|weeks|months|years|天|周|个月|年)", sentence)[0]
        earlier = " before " in sentence or "早" in sentence
        day = plus(day, -int(number) if earlier else int(number), unit)
    return day
