"""The text word by word: a capital with a comma begins a record, a keyword tells the question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

UNITS = {"years": "age", "cm": "height", "kg": "weight", "km/h": "speed", "euro": "price"}
HIGH = {
    "oldest": "age", "tallest": "height", "heaviest": "weight", "fastest": "speed", "older": "age",
    "taller": "height", "heavier": "weight", "faster": "speed", "most expensive": "price",
    "more expensive": "price",
}  # fmt: skip
LOW = {
    "youngest": "age", "shortest": "height", "lightest": "weight", "slowest": "speed",
    "younger": "age", "shorter": "height", "lighter": "weight", "slower": "speed",
    "cheapest": "price", "cheaper": "price",
}  # fmt: skip
RANKS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()  # noqa: SIM905

Animal = dict[str, Any]


def answer(text: str) -> str:
    """The label of the option that is the answer."""
    story, _, option_lines = text.partition("\nOptions:\n")
    question = story.splitlines()[-1].split("  ")[-1]
    tables = story[: -len(question)]
    value = str(look_up(final_animals(tables), question.rstrip("?").split(), "listing" in tables))
    (line,) = [line for line in option_lines.splitlines() if line[4:] == value]
    return line[:3]


def final_animals(tables: str) -> list[Animal]:
    """The animals that are in a table at the end, in their order."""
    words = tables.split()
    header = [word.rstrip(",") for word in words[words.index("name,") :]]
    columns: list[str] = []
    for word in header:
        if word[0].isupper():
            break
        if word[0] != "(" and word not in columns:
            columns.append(word)
    species = words[words.index("subsequent") + 4].rstrip(":")
    animals: list[Animal] = []
    for at, word in enumerate(words):
        if word == "listing":
            species = words[at + 1].rstrip("s:")
        elif word == "named":
            animals = [animal for animal in animals if animal["name"] != words[at + 1]]
        elif word[0].isupper() and word.endswith(",") and words[at + 1][0].isdigit():
            values = [int(value.rstrip(",")) for value in words[at + 1 : at + len(columns)]]
            record = dict(zip(columns, [word[:-1], *values], strict=True))
            animals.append(record | {"species": species})
    return animals


def look_up(animals: list[Animal], words: list[str], two_tables: bool) -> object:
    """What the question asks for."""
    if words[:3] == ["How", "many", "species"]:
        return 2 if two_tables else 1
    if words[:2] == ["How", "many"]:
        matching = of(animals, words[2])
        for at, word in enumerate(words):
            if word == "than":
                limit, column = int(words[at + 1]), UNITS[words[at + 2]]
                is_more = words[at - 1] == "more"
                matching = [
                    a for a in matching if (a[column] > limit if is_more else a[column] < limit)
                ]
        return len(matching)
    if words[0] == "Which":
        return chosen(animals, words)
    if words[3] in ("cumulated", "average"):
        values = [animal[words[4]] for animal in of(animals, words[-1])]
        return sum(values) if words[3] == "cumulated" else sum(values) // len(values)
    if words[3] in ("largest", "smallest"):
        values = sorted(animal[words[4]] for animal in animals)
        return values[-1 if words[3] == "largest" else 0]
    if words[3] != "name":
        return next(animal[words[3]] for animal in animals if animal["name"] == words[-1])
    return named_animal(animals, words[6:])


def of(animals: list[Animal], species: str) -> list[Animal]:
    """Those of a species."""
    return [a for a in animals if species.rstrip("s") in ("animal", a["species"])]


def named_animal(animals: list[Animal], words: list[str]) -> object:
    """``next to last goat sorted by alphabetic order``, ``60 cm tall goat``."""
    sizes = [at for at, word in enumerate(words) if word in UNITS]
    if sizes:
        species = words[0] if "that" in words else words[-1]
        value, column = int(words[sizes[0] - 1]), UNITS[words[sizes[0]]]
        (animal,) = [a for a in of(animals, species) if a[column] == value]
        return animal["name"]
    by_letters = words[-1] == "order"
    query = words[: words.index("sorted")] if by_letters else words
    names = [animal["name"] for animal in of(animals, query[-1])]
    names = sorted(names) if by_letters else names
    if query[0] in RANKS:
        return names[RANKS.index(query[0])]
    return names[-2] if query[0] == "next" else names[-1]


def chosen(animals: list[Animal], words: list[str]) -> object:
    """``Which is the second oldest goat``, ``Which goat is older than Ann and younger than Bo``."""
    if words[1:3] == ["is", "the"]:
        rank = RANKS.index(words[3]) if words[3] in RANKS else 0
        kind = " ".join(words[4 if words[3] in RANKS else 3 : -1])
        column = HIGH.get(kind) or LOW[kind]
        for animal in of(animals, words[-1]):
            better: Callable[[int], bool] = animal[column].__lt__
            if kind in LOW:
                better = animal[column].__gt__
            if sum(better(a[column]) for a in of(animals, words[-1])) == rank:
                return animal["name"]
    matching = of(animals, words[1])
    for part in " ".join(words[3:]).split(" and "):
        kind, _, reference = part.partition(" than ")
        column = HIGH.get(kind) or LOW[kind]
        values = [a[column] for a in animals if a["name"] == reference]
        if reference == "the other ones":
            values = [sorted((a[column] for a in matching), reverse=kind in HIGH)[1]]
        limit = values[0]
        matching = [
            a for a in matching if (a[column] > limit if kind in HIGH else a[column] < limit)
        ]
    (animal,) = matching
    return animal["name"]
