"""Generators of questions whose answers a program computes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import NamedTuple

NAMES = ("Alice", "Bob", "Claire", "Dave", "Eve", "Fred", "Gertrude")
GIFTS = ("a red ball", "a blue kite", "a green book", "a yellow hat", "a white mug")
THINGS = ("apple", "pear", "plum", "carrot", "onion", "chair", "lamp", "drum", "flute", "violin")
WORDS = (
    "anchor", "basket", "candle", "desert", "engine", "fabric", "garden", "hammer", "island",
    "jacket", "kettle", "ladder", "magnet", "needle", "orchard", "pencil", "quarry", "ribbon",
    "saddle", "temple", "umbrella", "velvet", "window", "yellow", "zipper",
)  # fmt: skip
PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}


class DemoQuestion(NamedTuple):
    """A question with its options; `answer` is the index of the right one."""

    text: str
    choices: tuple[str, ...]
    answer: int


def boolean_expressions(draw: random.Random) -> DemoQuestion:
    """Ask for the value of a small Boolean expression."""
    words = [draw.choice(("", "not ")) + draw.choice(("True", "False")) for _ in range(3)]
    joins = [draw.choice(("and", "or")) for _ in range(2)]
    bracket_value = _apply(joins[0], _value(words[0]), _value(words[1]))
    value = _apply(joins[1], bracket_value, _value(words[2]))
    text = f"( {words[0]} {joins[0]} {words[1]} ) {joins[1]} {words[2]} is"
    return DemoQuestion(text, ("True", "False"), 0 if value else 1)


def _value(words: str) -> bool:
    return words.endswith("True") is not words.startswith("not")


def _apply(join: str, left_value: bool, right_value: bool) -> bool:
    return (left_value and right_value) if join == "and" else (left_value or right_value)


def multistep_arithmetic(draw: random.Random) -> DemoQuestion:
    """Ask for the value of an expression in brackets."""
    a, b, c, d = (draw.randint(-9, 9) for _ in range(4))
    value = (a + b) * (c - d)
    return _make_number_question(
        draw, f"(({a} + {b}) * ({c} - {d})) =", value, range(value - 12, value + 13)
    )


def object_counting(draw: random.Random) -> DemoQuestion:
    """Ask for the number of things in a list."""
    counts = {thing: draw.randint(1, 4) for thing in draw.sample(THINGS, draw.randint(3, 5))}
    listing = ", ".join(f"{n} {thing}{'s' if n > 1 else ''}" for thing, n in counts.items())
    total = sum(counts.values())
    text = f"I have {listing}. How many things do I have in all?"
    return _make_number_question(draw, text, total, range(max(1, total - 5), total + 6))


def _make_number_question(draw: random.Random, text: str, value: int, near: range) -> DemoQuestion:
    """Return a question with `value` and three other numbers of `near` as shuffled options."""
    numbers = [value, *draw.sample([number for number in near if number != value], 3)]
    draw.shuffle(numbers)
    return DemoQuestion(text, tuple(map(str, numbers)), numbers.index(value))


def word_sorting(draw: random.Random) -> DemoQuestion:
    """Ask for the word that comes first in the alphabet."""
    words = draw.sample(WORDS, 4)
    text = f"Which of these words comes first in alphabetical order: {', '.join(words)}?"
    return DemoQuestion(text, tuple(words), words.index(min(words)))


def tracking_shuffled_objects(draw: random.Random) -> DemoQuestion:
    """Ask which gift a person holds after three swaps."""
    people = draw.sample(NAMES, 3)
    holds = dict(zip(people, draw.sample(GIFTS, 3), strict=True))
    story = ", ".join(f"{name} has {gift}" for name, gift in holds.items())
    gifts = tuple(holds.values())
    swaps = []
    for _ in range(3):
        left_person, right_person = draw.sample(people, 2)
        holds[left_person], holds[right_person] = holds[right_person], holds[left_person]
        swaps.append(f"{left_person} and {right_person} swap gifts.")
    asked_person = draw.choice(people)
    text = f"At the start, {story}. {' Then '.join(swaps)} At the end, {asked_person} has"
    return DemoQuestion(text, gifts, gifts.index(holds[asked_person]))


def dyck_languages(draw: random.Random) -> DemoQuestion:
    """Ask for the bracket that must be closed next."""
    opened: list[str] = []
    symbols: list[str] = []
    for _ in range(draw.randint(5, 9)):
        if len(opened) > 1 and draw.random() < 0.4:
            symbols.append(PAIRS[opened.pop()])
        else:
            opened.append(draw.choice(tuple(PAIRS)))
            symbols.append(opened[-1])
    closing = tuple(PAIRS.values())
    text = f"Which bracket must come next so that all are closed properly: {' '.join(symbols)}"
    return DemoQuestion(text, closing, closing.index(PAIRS[opened[-1]]))


KINDS: Mapping[str, Callable[[random.Random], DemoQuestion]] = {
    kind.__name__: kind
    for kind in (
        boolean_expressions,
        multistep_arithmetic,
        object_counting,
        word_sorting,
        tracking_shuffled_objects,
        dyck_languages,
    )
}
