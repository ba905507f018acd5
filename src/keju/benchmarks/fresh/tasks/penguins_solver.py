"""Parse tables of animals with their changes, and answer the questions on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

ANIMAL = "animal"
"""The name for rows of all tables."""
AGE, HEIGHT, WEIGHT, SPEED, PRICE = "age", "height", "weight", "speed", "price"

SUPERLATIVES = {
    "oldest": (AGE, max), "youngest": (AGE, min), "younest": (AGE, min),
    "tallest": (HEIGHT, max), "shortest": (HEIGHT, min),
    "heaviest": (WEIGHT, max), "lightest": (WEIGHT, min),
    "fastest": (SPEED, max), "slowest": (SPEED, min),
    "most expensive": (PRICE, max), "cheapest": (PRICE, min),
}  # fmt: skip
"""One published question has the spelling ``younest``."""
COMPARATIVES = {
    "older": (AGE, 1), "younger": (AGE, -1), "taller": (HEIGHT, 1), "shorter": (HEIGHT, -1),
    "heavier": (WEIGHT, 1), "lighter": (WEIGHT, -1), "faster": (SPEED, 1), "slower": (SPEED, -1),
    "more expensive": (PRICE, 1), "cheaper": (PRICE, -1),
}  # fmt: skip
ORDER = {
    "first": 0, "fist": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "sixth": 5,
    "seventh": 6, "eighth": 7, "ninth": 8, "tenth": 9, "next to last": -2, "last": -1,
}  # fmt: skip
"""One published question has the spelling ``fist``."""
NUMBER_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}


class ParsedAnimal(NamedTuple):
    """One animal."""

    species: str
    name: str
    values: dict[str, int]


class AnimalTables(NamedTuple):
    """All animals in the order of the tables, the columns, and the species of the tables."""

    rows: list[ParsedAnimal]
    columns: list[str]
    species: list[str]

    def of(self, who: str) -> list[ParsedAnimal]:
        """Return the rows of a species, singular or plural, or of all animals."""
        singular = who.removesuffix("s")
        if singular == ANIMAL:
            return self.rows
        return [row for row in self.rows if row.species == singular]


# --- the tables --------------------------------------------------------------------------------

HEADER = r"name(?:, [a-z]+(?: \([^()]+\))?)+"  # name, age, height (cm), weight (kg)
RECORD = r"[A-Z]\w*(?:, \d+)+"  # Louis, 7, 50, 11
FIRST_TABLE = re.compile(
    r"Here is a table where the first line is a header and each subsequent line is an? "
    rf"(?P<species>\w+):\s+(?P<header>{HEADER})\s+(?P<records>{RECORD}(?:\s+{RECORD})*)\s+"
    r"For example: [^.]+\.\s+(?P<rest>.+)",
    re.DOTALL,
)
ADDED_ROW = re.compile(rf"We now add an? (?P<species>\w+) to the table:\s+(?P<record>{RECORD})\s+")
DELETED = re.compile(r"We then delete the (?P<species>\w+) named (?P<name>\w+) from the table\.\s+")
SECOND_TABLE = re.compile(
    rf"And here is a similar table, but listing (?P<species>\w+)s:\s+(?P<header>{HEADER})\s+"
    rf"(?P<records>{RECORD}(?:\s+{RECORD})*)\s+"
)


def read_tables(text: str) -> tuple[AnimalTables, str] | None:
    """Return the final tables, and the question about them."""
    first_table = FIRST_TABLE.fullmatch(text)
    if first_table is None:
        return None
    columns = [column.partition(" ")[0] for column in first_table["header"].split(", ")]
    tables = AnimalTables([], columns, [first_table["species"]])
    tables.rows.extend(_parse_records(first_table["records"], first_table["species"], columns))
    remaining_text = first_table["rest"]
    while True:
        if match := ADDED_ROW.match(remaining_text):
            tables.rows.extend(_parse_records(match["record"], match["species"], columns))
        elif match := DELETED.match(remaining_text):
            tables.rows[:] = [row for row in tables.rows if row.name != match["name"]]
        elif match := SECOND_TABLE.match(remaining_text):
            if match["header"] != first_table["header"]:
                return None
            tables.species.append(match["species"])
            tables.rows.extend(_parse_records(match["records"], match["species"], columns))
        else:
            break
        remaining_text = remaining_text[match.end() :]
    is_complete = all(len(row.values) == len(columns) - 1 for row in tables.rows)
    return (tables, remaining_text) if is_complete else None


def _parse_records(text: str, species: str, columns: list[str]) -> Iterable[ParsedAnimal]:
    for record in re.findall(RECORD, text):
        name, *values = record.split(", ")
        yield ParsedAnimal(species, name, dict(zip(columns[1:], map(int, values), strict=False)))


# --- the questions -----------------------------------------------------------------------------


def solve_question(tables: AnimalTables, question: str) -> str | None:
    """Return the text of the answer; None if it is not in the tables, as for ``a Welsh name``."""
    for pattern, solve in QUESTIONS:
        if match := pattern.fullmatch(question):
            try:
                return solve(tables, match)
            except (KeyError, ValueError):  # a column or a species that is not in a table
                return None
    return None


def _only_name(rows: Iterable[ParsedAnimal]) -> str | None:
    """Return the name of the only row; None if there are none or several."""
    names = [row.name for row in rows]
    return names[0] if len(names) == 1 else None


def _answer_superlative(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``Which is the second youngest penguin?``"""
    if match["which"] not in SUPERLATIVES:
        return None
    column, best = SUPERLATIVES[match["which"]]
    rows = tables.of(match["who"])
    values = sorted({row.values[column] for row in rows}, reverse=best is max)
    place = ORDER[match["rank"] or "first"]
    if place >= len(values):
        return None
    return _only_name(row for row in rows if row.values[column] == values[place])


def _answer_above_others(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``Which penguin is older than the other ones?``"""
    column, sign = COMPARATIVES[match["than"]]
    rows = tables.of(match["who"])
    best = max(sign * row.values[column] for row in rows)
    return _only_name(row for row in rows if sign * row.values[column] == best)


def _answer_nth(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``What is the name of the last penguin sorted by alphabetic order?``"""
    names = [row.name for row in tables.of(match["who"])]
    if match["sorted"]:
        names.sort()
    place = ORDER[match["rank"]]
    return names[place] if -len(names) <= place < len(names) else None


MEASURES = {
    "years old": (AGE, 1), "cm tall": (HEIGHT, 1), "m tall": (HEIGHT, 100), "kg": (WEIGHT, 1),
    "km/h": (SPEED, 1), "euro": (PRICE, 1),
}  # fmt: skip
"""The column of a unit, and the factor to the column's own unit."""


def _answer_by_value(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``What is the name of the 0.6 m tall penguin?``"""
    column, factor = MEASURES[match["unit"]]
    value = round(float(match["value"]) * factor)
    return _only_name(row for row in tables.of(match["who"]) if row.values[column] == value)


CONDITION = re.compile(
    r"(?:are|weight?|run at|cost) (?P<sign>more|less) than (?P<value>\d+) (?P<unit>[a-z/ ]+)"
)  # are more than 5 years old; weight less than 12 kg


def _answer_count(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``How many penguins are more than 5 years old and weight less than 12 kg?``"""
    rows = tables.of(match["who"])
    for part in match["conditions"].split(" and "):
        condition = CONDITION.fullmatch(part)
        if condition is None or condition["unit"] not in MEASURES:
            return None
        (column, _), value = MEASURES[condition["unit"]], int(condition["value"])
        sign = 1 if condition["sign"] == "more" else -1
        rows = [row for row in rows if sign * row.values[column] > sign * value]
    return str(len(rows))


def _answer_below(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``Which penguin is less than 7 years old?``"""
    (column, _), value = MEASURES[match["unit"]], int(match["value"])
    sign = 1 if match["sign"] == "more" else -1
    rows = tables.of(match["who"])
    return _only_name(row for row in rows if sign * row.values[column] > sign * value)


def _answer_compared(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``Which penguin is younger than Vincent and older than Louis?``"""
    rows = tables.of(match["who"])
    # "younger but taller than Gwen": a part without a name uses the name in the next part
    tests, name = [], ""
    for part in reversed(re.split(r" and | but ", match["tests"])):
        than, _, part_name = part.partition(" than ")
        name = part_name or name
        named_rows = [row for row in tables.rows if row.name == name]
        if than not in COMPARATIVES or len(named_rows) != 1:
            return None
        tests.append((COMPARATIVES[than], named_rows[0]))
    return _only_name(
        row
        for row in rows
        if all(s * row.values[c] > s * reference_row.values[c] for (c, s), reference_row in tests)
    )


def _answer_years_apart(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``Which penguin is two years younger than Vincent?``"""
    column, sign = COMPARATIVES[match["than"]]
    named_rows = [row for row in tables.rows if row.name == match["name"]]
    if column != AGE or len(named_rows) != 1:
        return None
    value = named_rows[0].values[column] + sign * NUMBER_WORDS[match["years"]]
    return _only_name(row for row in tables.of(match["who"]) if row.values[column] == value)


def _answer_total(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``What is the cumulated age of the penguins and giraffes?``"""
    rows = [row for who in match["who"].split(" and ") for row in tables.of(who)]
    total = sum(row.values[match["column"]] for row in rows)
    if match["sum"] == "cumulated":
        return str(total)
    return str(total // len(rows)) if rows and total % len(rows) == 0 else None


def _answer_value(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``What is the height of Gwen?``"""
    rows = [row for row in tables.rows if row.name == match["name"]]
    return str(rows[0].values[match["column"]]) if len(rows) == 1 else None


def _answer_extreme_value(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``What is the shortest height?``"""
    best = max if match["which"] in ("largest", "highest") else min
    return str(best(row.values[match["column"]] for row in tables.rows))


def _answer_listed(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``How many animals are listed in the tables?``"""
    counted_word = match["what"]
    if counted_word == "columns":
        return str(len(tables.columns))
    return str(len(tables.species) if counted_word == "species" else len(tables.of(counted_word)))


def _answer_column_number(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``what is the number of the column with the weights (1, 2, 3 or 4)?``"""
    name = match["column"].removesuffix("s")
    return str(tables.columns.index(name) + 1) if name in tables.columns else None


def _answer_species(tables: AnimalTables, _: re.Match[str]) -> str | None:
    """Answer ``What animals are listed in the table?``"""
    return f"{tables.species[0]}s" if len(tables.species) == 1 else None


def _answer_name_length(tables: AnimalTables, match: re.Match[str]) -> str | None:
    """Answer ``Which penguin has the shortest name?``"""
    rows = tables.of(match["who"])
    best = (min if match["which"] == "shortest" else max)(len(row.name) for row in rows)
    return _only_name(row for row in rows if len(row.name) == best)


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern for any of the words, longer ones first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


WHO, COLUMN, RANK = r"(?P<who>\w+)", r"(?P<column>\w+)", rf"(?P<rank>{_any_of(ORDER)})"
MORE, SIZE = (
    rf"(?P<than>{_any_of(COMPARATIVES)})",
    rf"(?P<value>[\d.]+) (?P<unit>{_any_of(MEASURES)})",
)
YEARS = rf"(?P<years>{_any_of(NUMBER_WORDS)}) years?"
LARGEST = r"(?P<which>shortest|smallest|lowest|largest|highest)"
QUESTIONS: list[tuple[re.Pattern[str], Callable[[AnimalTables, re.Match[str]], str | None]]] = [
    (re.compile(pattern, re.IGNORECASE), solve)
    for pattern, solve in (
        (
            rf"Which is the (?:{RANK} )?(?P<which>{_any_of(SUPERLATIVES)}) {WHO}\?",
            _answer_superlative,
        ),
        (rf"Which {WHO} is {MORE} than the other ones\?", _answer_above_others),
        (
            rf"What is the name of the {RANK} {WHO}(?P<sorted> sorted by alphabetic order)?\?",
            _answer_nth,
        ),
        (rf"What is the name of the {WHO} that is {SIZE}\?", _answer_by_value),
        (rf"What is the name of the {SIZE} {WHO}\?", _answer_by_value),
        (r"How many (?P<what>\w+) are (?:there|listed) in the tables?\?", _answer_listed),
        (rf"How many {WHO} (?P<conditions>.+)\?", _answer_count),
        (rf"Which {WHO} is (?P<sign>more|less) than {SIZE}\?", _answer_below),
        (rf"Which {WHO} is {YEARS} {MORE} than (?P<name>\w+)\?", _answer_years_apart),
        (rf"Which {WHO} is (?P<tests>.+ than .+)\?", _answer_compared),
        (
            rf"What is the (?P<sum>cumulated|average) {COLUMN} of the (?P<who>[\w ]+)\?",
            _answer_total,
        ),
        (rf"What is the {COLUMN} of (?P<name>\w+)\?", _answer_value),
        (rf"What is the {LARGEST} {COLUMN}\?", _answer_extreme_value),
        (rf"What is the number of the column with the {COLUMN} \([^)]*\)\?", _answer_column_number),
        (r"What animals are listed in the table\?", _answer_species),
        (rf"Which {WHO} has the (?P<which>shortest|longest) name\?", _answer_name_length),
    )
]
