"""A table of animals, changed on the way, and a question on what it holds at the end.

The published table is of penguins, always the same one; a fresh question has a table of its own,
of other animals. A row may be added, another deleted, a table of another species follow.
"""

from __future__ import annotations

import random
from itertools import count
from math import sqrt
from typing import Literal, NamedTuple

from keju.benchmarks.fresh.task import (
    Language,
    Question,
    Task,
    label_of,
    scaled,
    split_options,
    with_options,
)
from keju.benchmarks.fresh.tasks.penguins_solver import read_tables, solve_question
from keju.benchmarks.fresh.vocabulary import vocabulary

PUBLISHED_ROWS, PUBLISHED_COLUMNS, PUBLISHED_CONDITIONS = 4, 3, (1, 2)
PUBLISHED_CHANGES = {
    (): 52, ("add",): 22, ("second",): 20, ("add", "second"): 19, ("delete",): 17,
    ("add", "delete"): 16,
}  # fmt: skip
"""Rows of each way in which the table is changed."""
Kind = Literal["count", "place", "utmost", "total", "listed", "compared", "who", "value"]
PUBLISHED_KINDS: dict[Kind, int] = {
    "count": 35, "place": 27, "utmost": 19, "total": 18, "listed": 18, "compared": 8, "who": 7,
    "value": 6,
}  # fmt: skip
"""Rows of each kind of question."""
NAMED: tuple[Kind, ...] = ("place", "utmost", "compared", "who")
"""Kinds whose answer is a name."""
OPTIONS = 5
TRIES = 16
"""Questions of one kind that are tried on a table, before it gets one of another kind."""
STEPS = (10, 5, 1)
"""Sizes are round numbers where there are enough of them."""
ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip


class Species(NamedTuple):
    """An animal, how tall and how heavy it may be."""

    name: str
    height: tuple[int, int]
    weight: tuple[int, int]


SPECIES = (
    Species("llama", (90, 180), (60, 200)), Species("camel", (160, 240), (300, 700)),
    Species("goat", (40, 100), (20, 120)), Species("donkey", (80, 160), (90, 400)),
    Species("zebra", (100, 160), (170, 400)), Species("kangaroo", (90, 200), (20, 95)),
    Species("tapir", (70, 130), (150, 320)), Species("alpaca", (70, 130), (45, 110)),
    Species("yak", (110, 220), (200, 600)), Species("gazelle", (50, 130), (15, 80)),
    Species("tiger", (60, 120), (90, 300)), Species("gorilla", (120, 190), (70, 220)),
    Species("emu", (110, 190), (18, 80)), Species("puma", (50, 110), (30, 110)),
)  # fmt: skip


class Column(NamedTuple):
    """What is known of each animal, and how animals are compared by it."""

    name: str
    unit: str
    utmost: tuple[str, str]
    than: tuple[str, str]
    condition: str


COLUMNS = (
    Column("age", "", ("oldest", "youngest"), ("older", "younger"), "are {} than {} years old"),
    Column(
        "height", "cm", ("tallest", "shortest"), ("taller", "shorter"), "are {} than {} cm tall",
    ),
    Column("weight", "kg", ("heaviest", "lightest"), ("heavier", "lighter"), "weigh {} than {} kg"),
    Column("speed", "km/h", ("fastest", "slowest"), ("faster", "slower"), "run at {} than {} km/h"),
    Column(
        "price", "euro", ("most expensive", "cheapest"), ("more expensive", "cheaper"),
        "cost {} than {} euro",
    ),
)  # fmt: skip
BOUNDS = {"age": (1, 16), "speed": (10, 80), "price": (100, 900)}
"""Of columns that are alike for all species; ages go up with the number of rows."""


class Animal(NamedTuple):
    """A row: the place of a name in the vocabulary, and its values."""

    name: int
    values: tuple[int, ...]


class Test(NamedTuple):
    """More or less than a value, or than another animal's."""

    column: int
    more: bool
    value: int
    other: int = -1


class Query(NamedTuple):
    """What is asked; which parts count hangs on the kind."""

    kind: Kind
    who: int
    """Species 0 or 1, or 2 for all animals."""
    form: int
    """Which of the forms that questions of this kind have."""
    column: int
    most: bool
    place: int
    """Of an order, from zero, or from its end below zero."""
    tests: tuple[Test, ...]
    animal: int


class Zoo(NamedTuple):
    """Tables with what is changed in them, a question, and its options."""

    species: list[int]
    columns: int
    rows: list[Animal]
    added: list[Animal]
    deleted: list[int]
    second: list[Animal]
    query: Query
    options: list[int]
    """Numbers, or places of names in the vocabulary."""
    answer: int

    def animals(self, who: int) -> list[Animal]:
        """The rows of a species, or of all, as they are at the end."""
        first = [row for row in [*self.rows, *self.added] if row.name not in self.deleted]
        return (first, self.second, first + self.second)[who]


NOT_IN_THE_TABLE = {
    9: "no answer: that a famous jazzman was called Louis is not in the table",
    49: "no answer: that Gwen is a Welsh name is not in the table",
    105: "no answer: that a famous painter was called Vincent is not in the table",
    143: "no answer: that Gwen is a name of women is not in the table",
}


class PenguinsInATable(Task):
    """A problem is a `Zoo`."""

    subset = "penguins_in_a_table"
    exceptions = NOT_IN_THE_TABLE

    def invent(self, draw: random.Random, difficulty: float) -> Zoo:
        zoo = _tables(draw, difficulty)
        answer, tries = None, count()
        while answer is None:
            if next(tries) % TRIES == 0:  # a small table may have no question of a kind
                (kind,) = draw.choices(list(PUBLISHED_KINDS), list(PUBLISHED_KINDS.values()))
            query = _query(draw, zoo, kind, difficulty)
            answer = _answer(zoo, query)
        place = draw.randrange(OPTIONS)
        options = _wrong(draw, zoo, query, answer)
        options.insert(place, answer)
        return zoo._replace(query=query, options=options, answer=place)

    def write(self, problem: Zoo, language: Language) -> Question:
        text = f"{_told(problem)}{WORDING[problem.query.kind](problem, problem.query)}"
        people = vocabulary("people.en")
        named = problem.query.kind in NAMED
        options = [people[option] if named else str(option) for option in problem.options]
        return with_options(text, options, problem.answer, language)

    def solve(self, text: str) -> str | None:
        story, options = split_options(text)
        read = read_tables(story)
        answer = solve_question(*read) if read is not None else None
        return None if answer is None else label_of(options, answer)


# --- drawing -----------------------------------------------------------------------------------


def _tables(draw: random.Random, difficulty: float) -> Zoo:
    """Tables without a question yet."""
    (changes,) = draw.choices(list(PUBLISHED_CHANGES), list(PUBLISHED_CHANGES.values()))
    width = sqrt(difficulty) if difficulty > 1 else difficulty
    columns = min(scaled(PUBLISHED_COLUMNS, width, least=1), len(COLUMNS))
    size, change = scaled(PUBLISHED_ROWS, difficulty, least=2), scaled(1, difficulty, least=0)
    added = change if "add" in changes else 0
    species = draw.sample(range(len(SPECIES)), 2)
    names = draw.sample(range(len(vocabulary("people.en"))), 2 * size + added)
    first = _animals(draw, SPECIES[species[0]], names[: size + added], columns)
    second = _animals(draw, SPECIES[species[1]], names[size + added :], columns)
    return Zoo(
        species=species,
        columns=columns,
        rows=first[:size],
        added=first[size:],
        deleted=draw.sample(names[:size], min(change, size - 1)) if "delete" in changes else [],
        second=second if "second" in changes else [],
        query=Query("listed", 0, 0, 0, False, 0, (), 0),
        options=[],
        answer=0,
    )


def _animals(draw: random.Random, species: Species, names: list[int], columns: int) -> list[Animal]:
    """Rows of one species; no value is there twice in its column."""
    values = []
    for column in COLUMNS[:columns]:
        low, high = BOUNDS.get(column.name) or getattr(species, column.name)
        if column.name == "age":
            high, step = high + len(names), 1
        else:
            step = next((s for s in STEPS if (high - low) // s >= 2 * len(names)), STEPS[-1])
        values.append(draw.sample(range(low, high + 1, step), len(names)))
    return [Animal(name, row) for name, row in zip(names, zip(*values, strict=True), strict=True)]


def _query(draw: random.Random, zoo: Zoo, kind: Kind, difficulty: float) -> Query:
    """A question; it may turn out to have no answer, or none that is the only one."""
    who = draw.randrange(3) if zoo.second else 0
    rows = zoo.animals(who)
    places = [0, 0, 1, -2, -1, -1] if difficulty <= 1 else [*range(len(ORDINALS)), -2, -1]
    tests: tuple[Test, ...] = ()
    animal, column = draw.randrange(len(rows)), draw.randrange(zoo.columns)
    if kind == "count":
        number = scaled(draw.randint(*PUBLISHED_CONDITIONS), difficulty, least=1)
        columns = draw.sample(range(zoo.columns), min(number, zoo.columns))
        tests = tuple(_fulfilled(draw, rows, animal, column) for column in sorted(columns))
    if kind == "compared":
        tests = _neighbours(rows, animal, column)
    place = draw.choice(places)
    if kind == "utmost" and not 0 <= place < len(rows):
        place = 0
    return Query(
        kind=kind,
        who=who,
        form=draw.randrange(12),
        column=column,
        most=draw.random() < 0.5,
        place=place,
        tests=tests,
        animal=animal,
    )


def _fulfilled(draw: random.Random, rows: list[Animal], animal: int, column: int) -> Test:
    """A test that an animal passes, so that somebody does."""
    value, limit = rows[animal].values[column], draw.choice(rows).values[column]
    if value == limit:
        limit += draw.choice((-1, 1))
    return Test(column, value > limit, limit)


def _neighbours(rows: list[Animal], animal: int, column: int) -> tuple[Test, ...]:
    """An animal told by those who are next to it in the order of a column."""
    ordered = sorted(rows, key=lambda row: row.values[column])
    place = ordered.index(rows[animal])
    below = [Test(column, True, row.values[column], row.name) for row in ordered[:place][-1:]]
    above = [Test(column, False, row.values[column], row.name) for row in ordered[place + 1 :][:1]]
    return (*above, *below)


def _answer(zoo: Zoo, query: Query) -> int | None:
    """A name's place in the vocabulary or a number; None where there is not just one."""
    rows, column = zoo.animals(query.who), query.column
    values = [row.values[column] for row in rows]
    found: list[int] = []
    match query.kind:
        case "count":
            fits = [row for row in rows if _passes(row, query.tests)]
            found = [len(fits)] if fits else []
        case "place":
            people = vocabulary("people.en")
            names = [row.name for row in rows]
            if query.form % 2:
                names.sort(key=lambda name: people[name])
            found = names[query.place :][:1] if abs(query.place) <= len(names) else []
        case "utmost":
            ordered = sorted(values, reverse=query.most)
            leading = ordered[: query.place + 1]
            same = [row.name for row in rows if row.values[column] == leading[-1]]
            found = same if len(set(leading)) == len(leading) else []  # ranks without a tie
        case "total":
            average = _is_average(zoo, query)
            found = [sum(values) // len(values) if average else sum(values)]
        case "listed":
            found = [len(rows) if query.form % 4 else 1 + bool(zoo.second)]
        case "compared":
            found = [row.name for row in rows if query.tests and _passes(row, query.tests)]
        case "who":
            value = rows[query.animal].values[column]
            same = [row.name for row in rows if row.values[column] == value]
            found = same if COLUMNS[column].name in ("age", "height") else []
        case "value":
            utmost = (max if query.most else min)(values)
            found = [utmost if _is_utmost_value(zoo, query) else values[query.animal]]
    return found[0] if len(found) == 1 else None


def _passes(row: Animal, tests: tuple[Test, ...]) -> bool:
    for test in tests:
        value = row.values[test.column]
        if not (value > test.value if test.more else value < test.value):
            return False
    return True


def _wrong(draw: random.Random, zoo: Zoo, query: Query, answer: int) -> list[int]:
    """Options beside the right one: from the tables, as long as they hold enough of them."""
    pool: list[int] = []
    if query.kind in NAMED:
        told = [row.name for row in zoo.animals(2)] + zoo.deleted
        pool = [row.name for row in zoo.animals(query.who) if row.name != answer]
        untold = [n for n in range(len(vocabulary("people.en"))) if n not in told]
        pool += draw.sample(untold, max(0, OPTIONS - 1 - len(pool)))
    elif query.kind == "value":
        told = [row.values[query.column] for row in zoo.animals(2)]
        pool = [value for value in dict.fromkeys(told) if value != answer]
    elif query.kind in ("count", "listed"):
        start = max(1, answer - draw.randrange(OPTIONS))
        pool = [number for number in range(start, start + OPTIONS) if number != answer]
    while len(pool) < OPTIONS - 1:
        number = answer + draw.choice((-1, 1)) * draw.randint(1, max(OPTIONS, answer // 5))
        if number > 0 and number not in pool:
            pool.append(number)
    return draw.sample(pool, OPTIONS - 1)


# --- writing -----------------------------------------------------------------------------------


def _told(zoo: Zoo) -> str:
    """The tables, and what is changed in them."""
    people, columns = vocabulary("people.en"), COLUMNS[: zoo.columns]
    header = ", ".join(["name", *(f"{c.name} ({c.unit})" if c.unit else c.name for c in columns)])
    one, two = (SPECIES[number].name for number in zoo.species)
    a_one = f"{'an' if one[0] in 'aeiou' else 'a'} {one}"
    examples = []
    for number, column in enumerate(columns):
        row = zoo.rows[number % len(zoo.rows)]
        value = f"{row.values[number]} {column.unit}".rstrip()
        examples.append(f"the {column.name} of {people[row.name]} is {value}")
    parts = [
        "Here is a table where the first line is a header and each subsequent line is "
        f"{a_one}:  {header} {' '.join(map(_record, zoo.rows))}  "
        f"For example: {', '.join(examples)}.  "
    ]
    parts += [f"We now add {a_one} to the table:\n{_record(row)}\n" for row in zoo.added]
    parts += [
        f"We then delete the {one} named {people[name]} from the table.\n" for name in zoo.deleted
    ]
    if zoo.second:
        lines = [header, *map(_record, zoo.second), ""]
        parts.append(f"And here is a similar table, but listing {two}s:\n" + "\n".join(lines))
    return "".join(parts)


def _record(row: Animal) -> str:
    return ", ".join([vocabulary("people.en")[row.name], *map(str, row.values)])


def _who(zoo: Zoo, query: Query) -> str:
    """``llama``, or ``animal`` for those of both tables."""
    return "animal" if query.who == 2 else SPECIES[zoo.species[query.who]].name


def _count(zoo: Zoo, query: Query) -> str:
    conditions = [
        COLUMNS[test.column].condition.format("more" if test.more else "less", test.value)
        for test in query.tests
    ]
    return f"How many {_who(zoo, query)}s {' and '.join(conditions)}?"


def _ordinal(place: int) -> str:
    return {-1: "last", -2: "next to last"}.get(place) or ORDINALS[place]


def _place(zoo: Zoo, query: Query) -> str:
    order = " sorted by alphabetic order" if query.form % 2 else ""
    return f"What is the name of the {_ordinal(query.place)} {_who(zoo, query)}{order}?"


def _utmost(zoo: Zoo, query: Query) -> str:
    column, who = COLUMNS[query.column], _who(zoo, query)
    if query.place == 0 and query.form % 4 == 0:
        return f"Which {who} is {column.than[not query.most]} than the other ones?"
    rank = f"{_ordinal(query.place)} " if query.place else ""
    return f"Which is the {rank}{column.utmost[not query.most]} {who}?"


def _total(zoo: Zoo, query: Query) -> str:
    sum_of = "average" if _is_average(zoo, query) else "cumulated"
    return f"What is the {sum_of} {COLUMNS[query.column].name} of the {_who(zoo, query)}s?"


def _listed(zoo: Zoo, query: Query) -> str:
    tables = "tables" if zoo.second else "table"
    if query.form % 4 == 0:
        return f"How many species are listed in the {tables}?"
    if query.who == 2 or (not zoo.second and query.form % 2):
        return f"How many animals are listed in the {tables}?"
    return f"How many {_who(zoo, query)}s are there in the {tables}?"


def _compared(zoo: Zoo, query: Query) -> str:
    people = vocabulary("people.en")
    tests = [
        f"{COLUMNS[test.column].than[not test.more]} than {people[test.other]}"
        for test in query.tests
    ]
    return f"Which {_who(zoo, query)} is {' and '.join(tests)}?"


def _by_value(zoo: Zoo, query: Query) -> str:
    value, who = zoo.animals(query.who)[query.animal].values[query.column], _who(zoo, query)
    if COLUMNS[query.column].name == "age":
        return f"What is the name of the {who} that is {value} years old?"
    if query.form % 2:
        return f"What is the name of the {who} that is {value} cm tall?"
    return f"What is the name of the {value} cm tall {who}?"


def _value(zoo: Zoo, query: Query) -> str:
    column = COLUMNS[query.column].name
    if _is_utmost_value(zoo, query):
        return f"What is the {'largest' if query.most else 'smallest'} {column}?"
    name = vocabulary("people.en")[zoo.animals(query.who)[query.animal].name]
    return f"What is the {column} of {name}?"


WORDING = {
    "count": _count, "place": _place, "utmost": _utmost, "total": _total, "listed": _listed,
    "compared": _compared, "who": _by_value, "value": _value,
}  # fmt: skip


def _is_average(zoo: Zoo, query: Query) -> bool:
    """Every third question on a total, where the average is a whole number."""
    values = [row.values[query.column] for row in zoo.animals(query.who)]
    return query.form % 3 == 0 and sum(values) % len(values) == 0


def _is_utmost_value(zoo: Zoo, query: Query) -> bool:
    """Every second question on a value, where there is one table."""
    return query.form % 2 == 0 and not zoo.second
