"""``I have a horse, two owls, and a drill. How many animals do I have?``: things of a kind.

Published lists have two to ten sorts of things of the requested kind. One list in five also has one
to three sorts of another kind. Most sorts occur once, none more than five times.
"""

from __future__ import annotations

import random
import re
from functools import cache
from typing import NamedTuple

from keju.benchmarks.fresh.task import FreshQuestion, FreshTask, Language, scale_size
from keju.benchmarks.fresh.vocabulary import vocabulary

PUBLISHED_SORTS = (2, 10)
PUBLISHED_OTHERS = (1, 3)
MIXED = 0.18
"""The share of published lists with things of another kind."""
NUMBERS, WEIGHTS = (1, 2, 3, 4, 5), (78, 11, 6, 4, 1)
"""The numbers of a sort, with their frequencies among 100 published ones."""

COMMON_ENTRIES = 30
"""Common entries at the beginning of a vocabulary; long lists also use rarer ones."""

EVERYTHING = "household"
"""The kind whose things, of any sort, questions call objects."""
KINDS: dict[str, dict[Language, str]] = {
    "animals": {"en": "animals", "zh": "只动物"},
    "clothes": {"en": "pieces of clothing", "zh": "件衣物"},
    "flowers": {"en": "flowers", "zh": "朵花"},
    "fruits": {"en": "fruits", "zh": "个水果"},
    "instruments": {"en": "musical instruments", "zh": "件乐器"},
    "tools": {"en": "tools", "zh": "件工具"},
    EVERYTHING: {"en": "objects", "zh": "件物品"},
}
"""The name of each kind in questions, by its vocabulary."""
OTHER_KINDS = [kind for kind in KINDS if kind != EVERYTHING]
"""Kinds that may be mixed in, because they clearly differ: a drill is not a fruit."""

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
"""The things in the published lists, needed to solve them."""

COUNTS: dict[Language, tuple[str, ...]] = {
    "en": ("no", "one", "two", "three", "four", "five"),
    "zh": ("零", "一", "两", "三", "四", "五"),
}
TIMES = {"a": 1, "an": 1} | {word: n for words in COUNTS.values() for n, word in enumerate(words)}
# I have a bee, and two figs. How many fruits do I have?
ENGLISH = re.compile(r"I have (.+)\. How many (.+) do I have\?")
# 我有一只蜜蜂和两个无花果。我一共有多少个水果？
CHINESE = re.compile(r"我有(.+)。我一共有多少(.+)？")


class CountingProblem(NamedTuple):
    """A list; each sort of thing has a kind, the index of an entry, and a number."""

    asked_kind: str
    things: list[tuple[str, int, int]]


class ObjectCounting(FreshTask):
    """A problem is a `CountingProblem`."""

    subset = "object_counting"
    languages = ("en", "zh")

    def invent(self, draw: random.Random, difficulty: float) -> CountingProblem:
        asked_kind = draw.choice(list(KINDS))
        min_sorts, max_sorts = (scale_size(size, difficulty, least=2) for size in PUBLISHED_SORTS)
        sorts = {asked_kind: draw.randint(min_sorts, max_sorts)}
        if asked_kind != EVERYTHING and draw.random() < MIXED * difficulty:
            low, high = (scale_size(size, difficulty, least=1) for size in PUBLISHED_OTHERS)
            sorts[draw.choice([kind for kind in OTHER_KINDS if kind != asked_kind])] = draw.randint(
                low, high
            )
        things = [
            (kind, number, draw.choices(NUMBERS, WEIGHTS)[0])
            for kind, size in sorts.items()
            for number in draw.sample(range(max(COMMON_ENTRIES, size)), size)
        ]
        draw.shuffle(things)
        return CountingProblem(asked_kind, things)

    def write(self, problem: CountingProblem, language: Language) -> FreshQuestion:
        total = sum(times for kind, _, times in problem.things if kind == problem.asked_kind)
        thing_phrases = [
            _counted_phrase(vocabulary(f"{kind}.{language}")[number], times, language)
            for kind, number, times in problem.things
        ]
        kind_phrase, leading_phrases, last_phrase = (
            KINDS[problem.asked_kind][language],
            thing_phrases[:-1],
            thing_phrases[-1],
        )
        if language == "zh":
            text = f"我有{'、'.join(leading_phrases)}和{last_phrase}。我一共有多少{kind_phrase}？"
        else:
            listing = f"{', '.join(leading_phrases)}, and {last_phrase}"
            text = f"I have {listing}. How many {kind_phrase} do I have?"
        return FreshQuestion(text, str(total))

    def solve(self, text: str) -> str | None:
        if match := ENGLISH.fullmatch(text):
            counted_things = [
                thing_phrase.split(" ", 1) for thing_phrase in re.split(r", and |, ", match[1])
            ]
        elif match := CHINESE.fullmatch(text):
            counted_things = [
                [thing_phrase[:1], thing_phrase[1:]]
                for thing_phrase in re.split(r"、|和", match[1])
            ]
        else:
            return None
        kinds, kind_phrase, total = load_lexicon(), match[2], 0
        if kind_phrase not in kinds.values():
            return None
        for times, *thing in counted_things:
            kind = kinds.get("".join(thing))
            if kind is None or times not in TIMES:
                return None
            if kind == kind_phrase or kind_phrase in KINDS[EVERYTHING].values():
                total += TIMES[times]
        return str(total)


@cache
def load_lexicon() -> dict[str, str]:
    """Return the kind of each thing, in singular and plural, as questions name it."""
    kinds = {
        form: kind_phrase
        for kind_phrase, entries in PUBLISHED_KINDS.items()
        for entry in entries.split(", ")
        for form in word_forms(entry)
    }
    for kind, kind_names in KINDS.items():
        kinds |= {
            form: kind_names["en"]
            for entry in vocabulary(f"{kind}.en")
            for form in word_forms(entry)
        }
        kinds |= dict.fromkeys(vocabulary(f"{kind}.zh"), kind_names["zh"])
    return kinds


def _counted_phrase(entry: str, times: int, language: Language) -> str:
    """Return a number of things: ``a horse``, ``two wolves``, 三头狮子."""
    if language == "zh":
        return COUNTS["zh"][times] + entry
    singular, plural = word_forms(entry)
    return f"{article(singular)} {singular}" if times == 1 else f"{COUNTS['en'][times]} {plural}"


def word_forms(entry: str) -> tuple[str, str]:
    """Return singular and plural: ``wolf/wolves`` gives both, ``cherry`` follows the rule."""
    singular, _, plural = entry.partition("/")
    if plural:
        return singular, plural
    if re.search(r"[^aeiou]y$", singular):
        return singular, singular[:-1] + "ies"
    return singular, singular + ("es" if re.search(r"(s|x|z|ch|sh)$", singular) else "s")


def article(word: str) -> str:
    """Return ``an`` before a vowel: an apron, a ukulele."""
    return "an" if word[0].lower() in "aeiou" and not word.startswith("uk") else "a"
