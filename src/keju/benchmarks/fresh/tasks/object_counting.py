"""``I have a horse, two owls, and a drill. How many animals do I have?``: things of a kind.

Published lists have two to ten sorts of things of the kind that is asked for, and in one list of
five one to three sorts of another kind. Most sorts are there once, none more than five times.
"""

from __future__ import annotations

import random
import re
from functools import cache
from typing import NamedTuple

from keju.benchmarks.fresh.task import Language, Question, Task, scaled
from keju.benchmarks.fresh.vocabulary import vocabulary

PUBLISHED_SORTS = (2, 10)
PUBLISHED_OTHERS = (1, 3)
MIXED = 0.18
"""How many published lists have things of another kind."""
NUMBERS, WEIGHTS = (1, 2, 3, 4, 5), (78, 11, 6, 4, 1)
"""How often a sort is there, and how many of 100 published ones are there so often."""

COMMON = 30
"""Entries at the beginning of a vocabulary that everybody knows; long lists go on to rarer ones."""

EVERYTHING = "household"
"""The kind that is asked for as objects, whatever they are."""
KINDS: dict[str, dict[Language, str]] = {
    "animals": {"en": "animals", "zh": "只动物"},
    "clothes": {"en": "pieces of clothing", "zh": "件衣物"},
    "flowers": {"en": "flowers", "zh": "朵花"},
    "fruits": {"en": "fruits", "zh": "个水果"},
    "instruments": {"en": "musical instruments", "zh": "件乐器"},
    "tools": {"en": "tools", "zh": "件工具"},
    EVERYTHING: {"en": "objects", "zh": "件物品"},
}
"""The vocabulary of a kind, and how it is asked for."""
OTHERS = [kind for kind in KINDS if kind != EVERYTHING]
"""Kinds that may stand between those that are asked for: nobody doubts that a drill is no fruit."""

PUBLISHED_KINDS = {
    "musical instruments": "trumpet, piano, drum, accordion, trombone, flute, clarinet, violin",
    "fruits": "plum, apple, banana, raspberry, strawberry, grape, peach, blackberry, nectarine, "
    "orange",
    "objects": "toaster, bed, fridge, lamp, table, chair, microwave, oven, car, stove, couch",
    "animals": "fish, mouse/mice, pig, donkey, rabbit, cow, snail, frog, cat, dog, bear, chicken, "
    "snake, duck, goat",
    "vegetables": "yam, onion, lettuce head, head of broccoli/heads of broccoli, potato/potatoes, "
    "cauliflower, cabbage, carrot, garlic, stalk of celery/stalks of celery",
}
"""What the published lists name, so that they are understood."""

COUNTS: dict[Language, tuple[str, ...]] = {
    "en": ("no", "one", "two", "three", "four", "five"),
    "zh": ("零", "一", "两", "三", "四", "五"),
}
TIMES = {"a": 1, "an": 1} | {word: n for words in COUNTS.values() for n, word in enumerate(words)}
# I have a bee, and two figs. How many fruits do I have?
ENGLISH = re.compile(r"I have (.+)\. How many (.+) do I have\?")
# 我有一只蜜蜂和两个无花果。我一共有多少个水果？
CHINESE = re.compile(r"我有(.+)。我一共有多少(.+)？")


class Things(NamedTuple):
    """A list: each sort of thing is a kind, the number of an entry, and how often it is there."""

    asked: str
    things: list[tuple[str, int, int]]


class ObjectCounting(Task):
    """A problem is a list of `Things`."""

    subset = "object_counting"
    languages = ("en", "zh")

    def invent(self, draw: random.Random, difficulty: float) -> Things:
        asked = draw.choice(list(KINDS))
        fewest, most = (scaled(size, difficulty, least=2) for size in PUBLISHED_SORTS)
        sorts = {asked: draw.randint(fewest, most)}
        if asked != EVERYTHING and draw.random() < MIXED * difficulty:
            low, high = (scaled(size, difficulty, least=1) for size in PUBLISHED_OTHERS)
            sorts[draw.choice([kind for kind in OTHERS if kind != asked])] = draw.randint(low, high)
        things = [
            (kind, number, draw.choices(NUMBERS, WEIGHTS)[0])
            for kind, size in sorts.items()
            for number in draw.sample(range(max(COMMON, size)), size)
        ]
        draw.shuffle(things)
        return Things(asked, things)

    def write(self, problem: Things, language: Language) -> Question:
        total = sum(times for kind, _, times in problem.things if kind == problem.asked)
        named = [
            _said(vocabulary(f"{kind}.{language}")[number], times, language)
            for kind, number, times in problem.things
        ]
        asked, rest, last = KINDS[problem.asked][language], named[:-1], named[-1]
        if language == "zh":
            text = f"我有{'、'.join(rest)}和{last}。我一共有多少{asked}？"
        else:
            text = f"I have {', '.join(rest)}, and {last}. How many {asked} do I have?"
        return Question(text, str(total))

    def solve(self, text: str) -> str | None:
        if found := ENGLISH.fullmatch(text):
            items = [item.split(" ", 1) for item in re.split(r", and |, ", found[1])]
        elif found := CHINESE.fullmatch(text):
            items = [[item[:1], item[1:]] for item in re.split(r"、|和", found[1])]
        else:
            return None
        kinds, asked, total = lexicon(), found[2], 0
        if asked not in kinds.values():
            return None
        for times, *thing in items:
            kind = kinds.get("".join(thing))
            if kind is None or times not in TIMES:
                return None
            if kind == asked or asked in KINDS[EVERYTHING].values():
                total += TIMES[times]
        return str(total)


@cache
def lexicon() -> dict[str, str]:
    """Things, one or many of them, and how their kind is asked for."""
    kinds = {
        form: asked
        for asked, entries in PUBLISHED_KINDS.items()
        for entry in entries.split(", ")
        for form in forms(entry)
    }
    for kind, asked in KINDS.items():
        kinds |= {form: asked["en"] for entry in vocabulary(f"{kind}.en") for form in forms(entry)}
        kinds |= dict.fromkeys(vocabulary(f"{kind}.zh"), asked["zh"])
    return kinds


def _said(entry: str, times: int, language: Language) -> str:
    """So many things: ``a horse``, ``two wolves``, 三头狮子."""
    if language == "zh":
        return COUNTS["zh"][times] + entry
    one, many = forms(entry)
    return f"{article(one)} {one}" if times == 1 else f"{COUNTS['en'][times]} {many}"


def forms(entry: str) -> tuple[str, str]:
    """One and many of a thing: ``wolf/wolves`` says both, ``cherry`` follows the rule."""
    one, _, many = entry.partition("/")
    if many:
        return one, many
    if re.search(r"[^aeiou]y$", one):
        return one, one[:-1] + "ies"
    return one, one + ("es" if re.search(r"(s|x|z|ch|sh)$", one) else "s")


def article(word: str) -> str:
    """``an`` before a vowel: an apron, a ukulele."""
    return "an" if word[0].lower() in "aeiou" and not word.startswith("uk") else "a"
