"""A table of animals that changes, and a question about its final content.

The published table is always the same one, of penguins. A fresh question has its own table of other
animals. A row may be added or deleted, and a table of another species may follow.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from math import sqrt
from typing import Literal, NamedTuple

from keju.benchmarks.fresh.task import (
    FreshQuestion,
    FreshTask,
    Language,
    add_options,
    find_label,
    scale_size,
    split_options,
)
from keju.benchmarks.fresh.tasks.penguins_solver import read_tables, solve_question
from keju.benchmarks.fresh.vocabulary import vocabulary

PUBLISHED_ROWS, PUBLISHED_COLUMNS, PUBLISHED_CONDITIONS = 4, 3, (1, 2)
PUBLISHED_CHANGES = {
    (): 52, ("add",): 22, ("second",): 20, ("add", "second"): 19, ("delete",): 17,
    ("add", "delete"): 16,
}  # fmt: skip
"""Published rows for each combination of changes."""
Kind = Literal["count", "place", "utmost", "total", "listed", "compared", "who", "value"]
PUBLISHED_KINDS: dict[Kind, int] = {
    "count": 35, "place": 27, "utmost": 19, "total": 18, "listed": 18, "compared": 8, "who": 7,
    "value": 6,
}  # fmt: skip
"""Published rows for each kind of question."""
NAME_KINDS: tuple[Kind, ...] = ("place", "utmost", "compared", "who")
"""Kinds whose answer is a name."""
OPTIONS = 5
TRIES = 16
"""Questions of one kind to try on a table before drawing another kind."""
STEPS = (10, 5, 1)
"""Sizes are round numbers if there are enough of them."""
ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip


class Species(NamedTuple):
    """An animal, with the range of its height and weight."""

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


class AnimalColumn(NamedTuple):
    """A column of the table, and the phrases that compare animals by it."""

    name: str
    unit: str
    superlatives: tuple[str, str]
    comparatives: tuple[str, str]
    condition: str


COLUMNS = (
    AnimalColumn(
        "age", "", ("oldest", "youngest"), ("older", "younger"), "are {} than {} years old",
    ),
    AnimalColumn(
        "height", "cm", ("tallest", "shortest"), ("taller", "shorter"), "are {} than {} cm tall",
    ),
    AnimalColumn(
        "weight", "kg", ("heaviest", "lightest"), ("heavier", "lighter"), "weigh {} than {} kg",
    ),
    AnimalColumn(
        "speed", "km/h", ("fastest", "slowest"), ("faster", "slower"), "run at {} than {} km/h",
    ),
    AnimalColumn(
        "price", "euro", ("most expensive", "cheapest"), ("more expensive", "cheaper"),
        "cost {} than {} euro",
    ),
)  # fmt: skip
BOUNDS = {"age": (1, 16), "speed": (10, 80), "price": (100, 900)}
"""Ranges of the columns that are equal for all species; the ages extend with the number of rows."""


class AnimalRow(NamedTuple):
    """A row: the index of a name in the vocabulary, and its values."""

    name: int
    values: tuple[int, ...]


class ValueTest(NamedTuple):
    """A comparison: more or less than a value, or than another animal's."""

    column: int
    is_more: bool
    value: int
    other_animal: int = -1


class TableQuery(NamedTuple):
    """A question; its kind determines which fields are used."""

    kind: Kind
    who: int
    """Species 0 or 1, or 2 for all animals."""
    form: int
    """Selects one of the forms for this kind of question."""
    column: int
    is_highest: bool
    place: int
    """The place in an order, from zero; negative from its end."""
    tests: tuple[ValueTest, ...]
    animal: int


class ZooProblem(NamedTuple):
    """Tables with their changes, a question, and its options."""

    species: list[int]
    columns: int
    rows: list[AnimalRow]
    added: list[AnimalRow]
    deleted: list[int]
    second_rows: list[AnimalRow]
    query: TableQuery
    options: list[int]
    """Numbers, or indexes of names in the vocabulary."""
    answer: int

    def animals(self, who: int) -> list[AnimalRow]:
        """Return the final rows of a species, or of all animals."""
        first_rows = [row for row in [*self.rows, *self.added] if row.name not in self.deleted]
        return (first_rows, self.second_rows, first_rows + self.second_rows)[who]


NOT_IN_THE_TABLE = {
    9: "no answer: that a famous jazzman was called Louis is not in the table",
    49: "no answer: that Gwen is a Welsh name is not in the table",
    105: "no answer: that a famous painter was called Vincent is not in the table",
    143: "no answer: that Gwen is a name of women is not in the table",
}


class PenguinsInATable(FreshTask):
    """A problem is a `ZooProblem`."""

    subset = "penguins_in_a_table"
    exceptions = NOT_IN_THE_TABLE

    def invent(self, draw: random.Random, difficulty: float) -> ZooProblem:
        zoo = _draw_tables(draw, difficulty)
        answer, tries = None, count()
        while answer is None:
            if next(tries) % TRIES == 0:  # a small table may have no question of a kind
                (kind,) = draw.choices(list(PUBLISHED_KINDS), list(PUBLISHED_KINDS.values()))
            query = _draw_query(draw, zoo, kind, difficulty)
            answer = _find_answer(zoo, query)
        place = draw.randrange(OPTIONS)
        options = _draw_wrong_options(draw, zoo, query, answer)
        options.insert(place, answer)
        return zoo._replace(query=query, options=options, answer=place)

    def write(self, problem: ZooProblem, language: Language) -> FreshQuestion:
        text = f"{_tables_text(problem)}{WORDING[problem.query.kind](problem, problem.query)}"
        people = vocabulary("people.en")
        is_name = problem.query.kind in NAME_KINDS
        options = [people[option] if is_name else str(option) for option in problem.options]
        return add_options(text, options, problem.answer, language)

    def solve(self, text: str) -> str | None:
        story, options = split_options(text)
        parsed_tables = read_tables(story)
        answer = solve_question(*parsed_tables) if parsed_tables is not None else None
        return None if answer is None else find_label(options, answer)


# --- drawing -----------------------------------------------------------------------------------


def _draw_tables(draw: random.Random, difficulty: float) -> ZooProblem:
    """Draw tables, without a question."""
    (changes,) = draw.choices(list(PUBLISHED_CHANGES), list(PUBLISHED_CHANGES.values()))
    width = sqrt(difficulty) if difficulty > 1 else difficulty
    columns = min(scale_size(PUBLISHED_COLUMNS, width, least=1), len(COLUMNS))
    size, change = (
        scale_size(PUBLISHED_ROWS, difficulty, least=2),
        scale_size(1, difficulty, least=0),
    )
    added = change if "add" in changes else 0
    species = draw.sample(range(len(SPECIES)), 2)
    names = draw.sample(range(len(vocabulary("people.en"))), 2 * size + added)
    first_animals = _draw_animals(draw, SPECIES[species[0]], names[: size + added], columns)
    second_animals = _draw_animals(draw, SPECIES[species[1]], names[size + added :], columns)
    return ZooProblem(
        species=species,
        columns=columns,
        rows=first_animals[:size],
        added=first_animals[size:],
        deleted=draw.sample(names[:size], min(change, size - 1)) if "delete" in changes else [],
        second_rows=second_animals if "second" in changes else [],
        query=TableQuery("listed", 0, 0, 0, False, 0, (), 0),
        options=[],
        answer=0,
    )


def _draw_animals(
    draw: random.Random, species: Species, names: list[int], columns: int
) -> list[AnimalRow]:
    """Draw rows of one species; values in a column do not repeat."""
    values = []
    for column in COLUMNS[:columns]:
        low, high = BOUNDS.get(column.name) or getattr(species, column.name)
        if column.name == "age":
            high, step = high + len(names), 1
        else:
            step = next((s for s in STEPS if (high - low) // s >= 2 * len(names)), STEPS[-1])
        values.append(draw.sample(range(low, high + 1, step), len(names)))
    return [
        AnimalRow(name, row) for name, row in zip(names, zip(*values, strict=True), strict=True)
    ]


def _draw_query(draw: random.Random, zoo: ZooProblem, kind: Kind, difficulty: float) -> TableQuery:
    """Draw a question; it may have no answer or several."""
    who = draw.randrange(3) if zoo.second_rows else 0
    rows = zoo.animals(who)
    places = [0, 0, 1, -2, -1, -1] if difficulty <= 1 else [*range(len(ORDINALS)), -2, -1]
    tests: tuple[ValueTest, ...] = ()
    animal, column = draw.randrange(len(rows)), draw.randrange(zoo.columns)
    if kind == "count":
        number = scale_size(draw.randint(*PUBLISHED_CONDITIONS), difficulty, least=1)
        columns = draw.sample(range(zoo.columns), min(number, zoo.columns))
        tests = tuple(_draw_true_test(draw, rows, animal, column) for column in sorted(columns))
    if kind == "compared":
        tests = _neighbour_tests(rows, animal, column)
    place = draw.choice(places)
    if kind == "utmost" and not 0 <= place < len(rows):
        place = 0
    return TableQuery(
        kind=kind,
        who=who,
        form=draw.randrange(12),
        column=column,
        is_highest=draw.random() < 0.5,
        place=place,
        tests=tests,
        animal=animal,
    )


def _draw_true_test(
    draw: random.Random, rows: list[AnimalRow], animal: int, column: int
) -> ValueTest:
    """Draw a test that an animal passes, so that at least one does."""
    value, limit = rows[animal].values[column], draw.choice(rows).values[column]
    if value == limit:
        limit += draw.choice((-1, 1))
    return ValueTest(column, value > limit, limit)


def _neighbour_tests(rows: list[AnimalRow], animal: int, column: int) -> tuple[ValueTest, ...]:
    """Return tests that identify an animal by its neighbours in the order of a column."""
    ordered = sorted(rows, key=lambda row: row.values[column])
    place = ordered.index(rows[animal])
    below = [ValueTest(column, True, row.values[column], row.name) for row in ordered[:place][-1:]]
    above = [
        ValueTest(column, False, row.values[column], row.name) for row in ordered[place + 1 :][:1]
    ]
    return (*above, *below)


def _find_answer(zoo: ZooProblem, query: TableQuery) -> int | None:
    """Return the index of a name or a number; None if there is not exactly one."""
    answers = _FIND_ANSWERS[query.kind](zoo, query)
    return answers[0] if len(answers) == 1 else None


def _find_count(zoo: ZooProblem, query: TableQuery) -> list[int]:
    """Return the number of animals that pass the tests, if there are any."""
    fits = [row for row in zoo.animals(query.who) if _passes(row, query.tests)]
    return [len(fits)] if fits else []


def _find_place(zoo: ZooProblem, query: TableQuery) -> list[int]:
    """Return the name at a place of the table, or of the names in alphabetical order."""
    names = [row.name for row in zoo.animals(query.who)]
    if query.form % 2:
        people = vocabulary("people.en")
        names.sort(key=lambda name: people[name])
    return names[query.place :][:1] if abs(query.place) <= len(names) else []


def _find_utmost(zoo: ZooProblem, query: TableQuery) -> list[int]:
    """Return the name at a rank of a column, unless animals share this rank or a better one."""
    rows = zoo.animals(query.who)
    ordered = sorted((row.values[query.column] for row in rows), reverse=query.is_highest)
    leading = ordered[: query.place + 1]
    matching_names = [row.name for row in rows if row.values[query.column] == leading[-1]]
    return matching_names if len(set(leading)) == len(leading) else []


def _find_total(zoo: ZooProblem, query: TableQuery) -> list[int]:
    """Return the sum of a column, or its average."""
    values = [row.values[query.column] for row in zoo.animals(query.who)]
    return [sum(values) // len(values) if _is_average(zoo, query) else sum(values)]


def _find_listed(zoo: ZooProblem, query: TableQuery) -> list[int]:
    """Return the number of animals, or of tables."""
    rows = zoo.animals(query.who)
    return [len(rows) if query.form % 4 else 1 + bool(zoo.second_rows)]


def _find_compared(zoo: ZooProblem, query: TableQuery) -> list[int]:
    """Return the names of the animals that pass the tests."""
    rows = zoo.animals(query.who)
    return [row.name for row in rows if query.tests and _passes(row, query.tests)]


def _find_who(zoo: ZooProblem, query: TableQuery) -> list[int]:
    """Return the names of the animals with the value of one animal."""
    rows = zoo.animals(query.who)
    if COLUMNS[query.column].name not in ("age", "height"):
        return []
    value = rows[query.animal].values[query.column]
    return [row.name for row in rows if row.values[query.column] == value]


def _find_value(zoo: ZooProblem, query: TableQuery) -> list[int]:
    """Return a value of one animal, or the highest or lowest one of all."""
    values = [row.values[query.column] for row in zoo.animals(query.who)]
    if _is_utmost_value(zoo, query):
        return [max(values) if query.is_highest else min(values)]
    return [values[query.animal]]


_FIND_ANSWERS: dict[str, Callable[[ZooProblem, TableQuery], list[int]]] = {
    "count": _find_count,
    "place": _find_place,
    "utmost": _find_utmost,
    "total": _find_total,
    "listed": _find_listed,
    "compared": _find_compared,
    "who": _find_who,
    "value": _find_value,
}
"""By kind of question: all names or numbers that answer it. A good question has exactly one."""


def _passes(row: AnimalRow, tests: tuple[ValueTest, ...]) -> bool:
    for test in tests:
        value = row.values[test.column]
        if not (value > test.value if test.is_more else value < test.value):
            return False
    return True


def _draw_wrong_options(
    draw: random.Random, zoo: ZooProblem, query: TableQuery, answer: int
) -> list[int]:
    """Draw wrong options, from the tables if they hold enough."""
    pool: list[int] = []
    if query.kind in NAME_KINDS:
        used_values = [row.name for row in zoo.animals(2)] + zoo.deleted
        pool = [row.name for row in zoo.animals(query.who) if row.name != answer]
        unused_names = [n for n in range(len(vocabulary("people.en"))) if n not in used_values]
        pool += draw.sample(unused_names, max(0, OPTIONS - 1 - len(pool)))
    elif query.kind == "value":
        used_values = [row.values[query.column] for row in zoo.animals(2)]
        pool = [value for value in dict.fromkeys(used_values) if value != answer]
    elif query.kind in ("count", "listed"):
        start = max(1, answer - draw.randrange(OPTIONS))
        pool = [number for number in range(start, start + OPTIONS) if number != answer]
    while len(pool) < OPTIONS - 1:
        number = answer + draw.choice((-1, 1)) * draw.randint(1, max(OPTIONS, answer // 5))
        if number > 0 and number not in pool:
            pool.append(number)
    return draw.sample(pool, OPTIONS - 1)


# --- writing -----------------------------------------------------------------------------------


def _tables_text(zoo: ZooProblem) -> str:
    """Return the text of the tables and their changes."""
    people, columns = vocabulary("people.en"), COLUMNS[: zoo.columns]
    header = ", ".join(["name", *(f"{c.name} ({c.unit})" if c.unit else c.name for c in columns)])
    first_species, second_species = (SPECIES[number].name for number in zoo.species)
    species_with_article = f"{'an' if first_species[0] in 'aeiou' else 'a'} {first_species}"
    examples = []
    for number, column in enumerate(columns):
        row = zoo.rows[number % len(zoo.rows)]
        value = f"{row.values[number]} {column.unit}".rstrip()
        examples.append(f"the {column.name} of {people[row.name]} is {value}")
    parts = [
        "Here is a table where the first line is a header and each subsequent line is "
        f"{species_with_article}:  {header} {' '.join(map(_row_text, zoo.rows))}  "
        f"For example: {', '.join(examples)}.  "
    ]
    parts += [
        f"We now add {species_with_article} to the table:\n{_row_text(row)}\n" for row in zoo.added
    ]
    parts += [
        f"We then delete the {first_species} named {people[name]} from the table.\n"
        for name in zoo.deleted
    ]
    if zoo.second_rows:
        lines = [header, *map(_row_text, zoo.second_rows), ""]
        parts.append(
            f"And here is a similar table, but listing {second_species}s:\n" + "\n".join(lines)
        )
    return "".join(parts)


def _row_text(row: AnimalRow) -> str:
    return ", ".join([vocabulary("people.en")[row.name], *map(str, row.values)])


def _animal_word(zoo: ZooProblem, query: TableQuery) -> str:
    """Return ``llama``, or ``animal`` for both tables."""
    return "animal" if query.who == 2 else SPECIES[zoo.species[query.who]].name


def _count_question(zoo: ZooProblem, query: TableQuery) -> str:
    conditions = [
        COLUMNS[test.column].condition.format("more" if test.is_more else "less", test.value)
        for test in query.tests
    ]
    return f"How many {_animal_word(zoo, query)}s {' and '.join(conditions)}?"


def _ordinal(place: int) -> str:
    return {-1: "last", -2: "next to last"}.get(place) or ORDINALS[place]


def _place_question(zoo: ZooProblem, query: TableQuery) -> str:
    order = " sorted by alphabetic order" if query.form % 2 else ""
    return f"What is the name of the {_ordinal(query.place)} {_animal_word(zoo, query)}{order}?"


def _superlative_question(zoo: ZooProblem, query: TableQuery) -> str:
    column, who = COLUMNS[query.column], _animal_word(zoo, query)
    if query.place == 0 and query.form % 4 == 0:
        return f"Which {who} is {column.comparatives[not query.is_highest]} than the other ones?"
    rank = f"{_ordinal(query.place)} " if query.place else ""
    return f"Which is the {rank}{column.superlatives[not query.is_highest]} {who}?"


def _total_question(zoo: ZooProblem, query: TableQuery) -> str:
    sum_of = "average" if _is_average(zoo, query) else "cumulated"
    return f"What is the {sum_of} {COLUMNS[query.column].name} of the {_animal_word(zoo, query)}s?"


def _listed_question(zoo: ZooProblem, query: TableQuery) -> str:
    tables = "tables" if zoo.second_rows else "table"
    if query.form % 4 == 0:
        return f"How many species are listed in the {tables}?"
    if query.who == 2 or (not zoo.second_rows and query.form % 2):
        return f"How many animals are listed in the {tables}?"
    return f"How many {_animal_word(zoo, query)}s are there in the {tables}?"


def _comparison_question(zoo: ZooProblem, query: TableQuery) -> str:
    people = vocabulary("people.en")
    tests = [
        f"{COLUMNS[test.column].comparatives[not test.is_more]} than {people[test.other_animal]}"
        for test in query.tests
    ]
    return f"Which {_animal_word(zoo, query)} is {' and '.join(tests)}?"


def _by_value_question(zoo: ZooProblem, query: TableQuery) -> str:
    value, who = zoo.animals(query.who)[query.animal].values[query.column], _animal_word(zoo, query)
    if COLUMNS[query.column].name == "age":
        return f"What is the name of the {who} that is {value} years old?"
    if query.form % 2:
        return f"What is the name of the {who} that is {value} cm tall?"
    return f"What is the name of the {value} cm tall {who}?"


def _value_question(zoo: ZooProblem, query: TableQuery) -> str:
    column = COLUMNS[query.column].name
    if _is_utmost_value(zoo, query):
        return f"What is the {'largest' if query.is_highest else 'smallest'} {column}?"
    name = vocabulary("people.en")[zoo.animals(query.who)[query.animal].name]
    return f"What is the {column} of {name}?"


WORDING = {
    "count": _count_question, "place": _place_question, "utmost": _superlative_question,
    "total": _total_question, "listed": _listed_question,
    "compared": _comparison_question, "who": _by_value_question, "value": _value_question,
}  # fmt: skip


def _is_average(zoo: ZooProblem, query: TableQuery) -> bool:
    """Whether the question asks for an average: one in three totals, if it is an integer."""
    values = [row.values[query.column] for row in zoo.animals(query.who)]
    return query.form % 3 == 0 and sum(values) % len(values) == 0


def _is_utmost_value(zoo: ZooProblem, query: TableQuery) -> bool:
    """Whether the question asks for an extreme value: every second one on values, for one table."""
    return query.form % 2 == 0 and not zoo.second_rows
