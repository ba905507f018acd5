"""Reads tables of animals and the questions on them: what is added, deleted, asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

ANIMAL = "animal"
"""What rows of all tables are called."""
AGE, HEIGHT, WEIGHT, SPEED, PRICE = "age", "height", "weight", "speed", "price"

UTMOST = {
    "oldest": (AGE, max), "youngest": (AGE, min), "younest": (AGE, min),
    "tallest": (HEIGHT, max), "shortest": (HEIGHT, min),
    "heaviest": (WEIGHT, max), "lightest": (WEIGHT, min),
    "fastest": (SPEED, max), "slowest": (SPEED, min),
    "most expensive": (PRICE, max), "cheapest": (PRICE, min),
}  # fmt: skip
"""``younest`` is how one published question spells it."""
THAN = {
    "older": (AGE, 1), "younger": (AGE, -1), "taller": (HEIGHT, 1), "shorter": (HEIGHT, -1),
    "heavier": (WEIGHT, 1), "lighter": (WEIGHT, -1), "faster": (SPEED, 1), "slower": (SPEED, -1),
    "more expensive": (PRICE, 1), "cheaper": (PRICE, -1),
}  # fmt: skip
ORDER = {
    "first": 0, "fist": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "sixth": 5,
    "seventh": 6, "eighth": 7, "ninth": 8, "tenth": 9, "next to last": -2, "last": -1,
}  # fmt: skip
"""``fist`` is how one published question spells it."""
ONE_TWO = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}


class Row(NamedTuple):
    """One animal."""

    species: str
    name: str
    values: dict[str, int]


class Tables(NamedTuple):
    """All animals in the order in which they are listed, the columns and the number of tables."""

    rows: list[Row]
    columns: list[str]
    species: list[str]

    def of(self, who: str) -> list[Row]:
        """The rows of a species, singular or plural, or of all animals."""
        one = who.removesuffix("s")
        if one == ANIMAL:
            return self.rows
        return [row for row in self.rows if row.species == one]


# --- the tables --------------------------------------------------------------------------------

HEADER = r"name(?:, [a-z]+(?: \([^()]+\))?)+"  # name, age, height (cm), weight (kg)
RECORD = r"[A-Z]\w*(?:, \d+)+"  # Louis, 7, 50, 11
FIRST = re.compile(
    r"Here is a table where the first line is a header and each subsequent line is an? "
    rf"(?P<species>\w+):\s+(?P<header>{HEADER})\s+(?P<records>{RECORD}(?:\s+{RECORD})*)\s+"
    r"For example: [^.]+\.\s+(?P<rest>.+)",
    re.DOTALL,
)
ADDED = re.compile(rf"We now add an? (?P<species>\w+) to the table:\s+(?P<record>{RECORD})\s+")
DELETED = re.compile(r"We then delete the (?P<species>\w+) named (?P<name>\w+) from the table\.\s+")
SECOND = re.compile(
    rf"And here is a similar table, but listing (?P<species>\w+)s:\s+(?P<header>{HEADER})\s+"
    rf"(?P<records>{RECORD}(?:\s+{RECORD})*)\s+"
)


def read_tables(text: str) -> tuple[Tables, str] | None:
    """The tables as they are at the end, and the question on them."""
    first = FIRST.fullmatch(text)
    if first is None:
        return None
    columns = [column.partition(" ")[0] for column in first["header"].split(", ")]
    tables = Tables([], columns, [first["species"]])
    tables.rows.extend(_records(first["records"], first["species"], columns))
    rest = first["rest"]
    while True:
        if found := ADDED.match(rest):
            tables.rows.extend(_records(found["record"], found["species"], columns))
        elif found := DELETED.match(rest):
            tables.rows[:] = [row for row in tables.rows if row.name != found["name"]]
        elif found := SECOND.match(rest):
            if found["header"] != first["header"]:
                return None
            tables.species.append(found["species"])
            tables.rows.extend(_records(found["records"], found["species"], columns))
        else:
            break
        rest = rest[found.end() :]
    fits = all(len(row.values) == len(columns) - 1 for row in tables.rows)
    return (tables, rest) if fits else None


def _records(text: str, species: str, columns: list[str]) -> Iterable[Row]:
    for record in re.findall(RECORD, text):
        name, *values = record.split(", ")
        yield Row(species, name, dict(zip(columns[1:], map(int, values), strict=False)))


# --- the questions -----------------------------------------------------------------------------


def solve_question(tables: Tables, question: str) -> str | None:
    """The text of the answer; None where the tables do not hold it, as with ``a Welsh name``."""
    for pattern, read in QUESTIONS:
        if found := pattern.fullmatch(question):
            try:
                return read(tables, found)
            except (KeyError, ValueError):  # a column or a species that is in no table
                return None
    return None


def _only(rows: Iterable[Row]) -> str | None:
    """The name of a row that is the only one."""
    names = [row.name for row in rows]
    return names[0] if len(names) == 1 else None


def _utmost(tables: Tables, found: re.Match[str]) -> str | None:
    """``Which is the second youngest penguin?``"""
    if found["which"] not in UTMOST:
        return None
    column, best = UTMOST[found["which"]]
    rows = tables.of(found["who"])
    values = sorted({row.values[column] for row in rows}, reverse=best is max)
    place = ORDER[found["rank"] or "first"]
    if place >= len(values):
        return None
    return _only(row for row in rows if row.values[column] == values[place])


def _above_others(tables: Tables, found: re.Match[str]) -> str | None:
    """``Which penguin is older than the other ones?``"""
    column, sign = THAN[found["than"]]
    rows = tables.of(found["who"])
    best = max(sign * row.values[column] for row in rows)
    return _only(row for row in rows if sign * row.values[column] == best)


def _nth(tables: Tables, found: re.Match[str]) -> str | None:
    """``What is the name of the last penguin sorted by alphabetic order?``"""
    names = [row.name for row in tables.of(found["who"])]
    if found["sorted"]:
        names.sort()
    place = ORDER[found["rank"]]
    return names[place] if -len(names) <= place < len(names) else None


MEASURES = {
    "years old": (AGE, 1), "cm tall": (HEIGHT, 1), "m tall": (HEIGHT, 100), "kg": (WEIGHT, 1),
    "km/h": (SPEED, 1), "euro": (PRICE, 1),
}  # fmt: skip
"""A unit to its column and the number of the column's own units in it."""


def _by_value(tables: Tables, found: re.Match[str]) -> str | None:
    """``What is the name of the 0.6 m tall penguin?``"""
    column, factor = MEASURES[found["unit"]]
    value = round(float(found["value"]) * factor)
    return _only(row for row in tables.of(found["who"]) if row.values[column] == value)


CONDITION = re.compile(
    r"(?:are|weight?|run at|cost) (?P<sign>more|less) than (?P<value>\d+) (?P<unit>[a-z/ ]+)"
)  # are more than 5 years old; weight less than 12 kg


def _count_if(tables: Tables, found: re.Match[str]) -> str | None:
    """``How many penguins are more than 5 years old and weight less than 12 kg?``"""
    rows = tables.of(found["who"])
    for part in found["conditions"].split(" and "):
        condition = CONDITION.fullmatch(part)
        if condition is None or condition["unit"] not in MEASURES:
            return None
        (column, _), value = MEASURES[condition["unit"]], int(condition["value"])
        sign = 1 if condition["sign"] == "more" else -1
        rows = [row for row in rows if sign * row.values[column] > sign * value]
    return str(len(rows))


def _below(tables: Tables, found: re.Match[str]) -> str | None:
    """``Which penguin is less than 7 years old?``"""
    (column, _), value = MEASURES[found["unit"]], int(found["value"])
    sign = 1 if found["sign"] == "more" else -1
    rows = tables.of(found["who"])
    return _only(row for row in rows if sign * row.values[column] > sign * value)


def _compared(tables: Tables, found: re.Match[str]) -> str | None:
    """``Which penguin is younger than Vincent and older than Louis?``"""
    rows = tables.of(found["who"])
    # "younger but taller than Gwen": what has no name of its own takes the next one's
    tests, name = [], ""
    for part in reversed(re.split(r" and | but ", found["tests"])):
        than, _, named = part.partition(" than ")
        name = named or name
        others = [row for row in tables.rows if row.name == name]
        if than not in THAN or len(others) != 1:
            return None
        tests.append((THAN[than], others[0]))
    return _only(
        row
        for row in rows
        if all(s * row.values[c] > s * other.values[c] for (c, s), other in tests)
    )


def _years_apart(tables: Tables, found: re.Match[str]) -> str | None:
    """``Which penguin is two years younger than Vincent?``"""
    column, sign = THAN[found["than"]]
    others = [row for row in tables.rows if row.name == found["name"]]
    if column != AGE or len(others) != 1:
        return None
    value = others[0].values[column] + sign * ONE_TWO[found["years"]]
    return _only(row for row in tables.of(found["who"]) if row.values[column] == value)


def _cumulated(tables: Tables, found: re.Match[str]) -> str | None:
    """``What is the cumulated age of the penguins and giraffes?``"""
    rows = [row for who in found["who"].split(" and ") for row in tables.of(who)]
    total = sum(row.values[found["column"]] for row in rows)
    if found["sum"] == "cumulated":
        return str(total)
    return str(total // len(rows)) if rows and total % len(rows) == 0 else None


def _value(tables: Tables, found: re.Match[str]) -> str | None:
    """``What is the height of Gwen?``"""
    rows = [row for row in tables.rows if row.name == found["name"]]
    return str(rows[0].values[found["column"]]) if len(rows) == 1 else None


def _utmost_value(tables: Tables, found: re.Match[str]) -> str | None:
    """``What is the shortest height?``"""
    best = max if found["which"] in ("largest", "highest") else min
    return str(best(row.values[found["column"]] for row in tables.rows))


def _listed(tables: Tables, found: re.Match[str]) -> str | None:
    """``How many animals are listed in the tables?``"""
    what = found["what"]
    if what == "columns":
        return str(len(tables.columns))
    return str(len(tables.species) if what == "species" else len(tables.of(what)))


def _column_number(tables: Tables, found: re.Match[str]) -> str | None:
    """``what is the number of the column with the weights (1, 2, 3 or 4)?``"""
    name = found["column"].removesuffix("s")
    return str(tables.columns.index(name) + 1) if name in tables.columns else None


def _species(tables: Tables, _: re.Match[str]) -> str | None:
    """``What animals are listed in the table?``"""
    return f"{tables.species[0]}s" if len(tables.species) == 1 else None


def _name_length(tables: Tables, found: re.Match[str]) -> str | None:
    """``Which penguin has the shortest name?``"""
    rows = tables.of(found["who"])
    best = (min if found["which"] == "shortest" else max)(len(row.name) for row in rows)
    return _only(row for row in rows if len(row.name) == best)


def _any(words: Iterable[str]) -> str:
    """A pattern for one of the words, the longer before the shorter."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


WHO, COLUMN, RANK = r"(?P<who>\w+)", r"(?P<column>\w+)", rf"(?P<rank>{_any(ORDER)})"
MORE, SIZE = rf"(?P<than>{_any(THAN)})", rf"(?P<value>[\d.]+) (?P<unit>{_any(MEASURES)})"
YEARS = rf"(?P<years>{_any(ONE_TWO)}) years?"
LARGEST = r"(?P<which>shortest|smallest|lowest|largest|highest)"
QUESTIONS: list[tuple[re.Pattern[str], Callable[[Tables, re.Match[str]], str | None]]] = [
    (re.compile(pattern, re.IGNORECASE), read)
    for pattern, read in (
        (rf"Which is the (?:{RANK} )?(?P<which>{_any(UTMOST)}) {WHO}\?", _utmost),
        (rf"Which {WHO} is {MORE} than the other ones\?", _above_others),
        (rf"What is the name of the {RANK} {WHO}(?P<sorted> sorted by alphabetic order)?\?", _nth),
        (rf"What is the name of the {WHO} that is {SIZE}\?", _by_value),
        (rf"What is the name of the {SIZE} {WHO}\?", _by_value),
        (r"How many (?P<what>\w+) are (?:there|listed) in the tables?\?", _listed),
        (rf"How many {WHO} (?P<conditions>.+)\?", _count_if),
        (rf"Which {WHO} is (?P<sign>more|less) than {SIZE}\?", _below),
        (rf"Which {WHO} is {YEARS} {MORE} than (?P<name>\w+)\?", _years_apart),
        (rf"Which {WHO} is (?P<tests>.+ than .+)\?", _compared),
        (rf"What is the (?P<sum>cumulated|average) {COLUMN} of the (?P<who>[\w ]+)\?", _cumulated),
        (rf"What is the {COLUMN} of (?P<name>\w+)\?", _value),
        (rf"What is the {LARGEST} {COLUMN}\?", _utmost_value),
        (rf"What is the number of the column with the {COLUMN} \([^)]*\)\?", _column_number),
        (r"What animals are listed in the table\?", _species),
        (rf"Which {WHO} has the (?P<which>shortest|longest) name\?", _name_length),
    )
]
