"""Who holds which thing at the end, after people have swapped: three subsets.

Published stories have three, five or seven people and as many swaps. Everybody takes part in a
swap, and no two people swap twice in a row. The number of swaps grows with the difficulty, the
number of people with its square root: at 4 there are four times as many swaps among twice as many
people.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

import msgspec

from keju.benchmarks.fresh.task import (
    FreshQuestion,
    FreshTask,
    Language,
    add_options,
    find_label,
    scale_size,
    split_options,
)  # fmt: skip
from keju.benchmarks.fresh.vocabulary import read_phrases, vocabulary

FEWEST = 3
"""People in the easiest stories: two people could only repeat one swap."""


class SwapStory(msgspec.Struct, frozen=True):
    """A story in one language; ``{}`` in a sentence is a person, a thing, or both in turn."""

    people: str
    """The people, and what each has at the start."""
    holds: str
    meanwhile: str
    swap: str
    end: str


THINGS = ("hats", "instruments", "posts", "countries", "people")
"""The vocabulary of the swapped things in each story."""
STORIES = read_phrases("swap_stories", dict[Language, tuple[SwapStory, ...]])
TURNS: dict[Language, tuple[str, str, str]] = {
    "en": ("First, ", "Then, ", "Finally, "),
    "zh": ("首先，", "然后，", "最后，"),
}
NUMERALS = "零一二三四五六七八九十"

# Alice, Bob, and Claire are … each …: Alice gets Ulysses, Bob …, and Claire ….⏎As …, … the end …
ENGLISH = re.compile(r"(?P<people>[\w, ]+?),? and (?P<last>\w+) are [^:]+: (?P<start>.+)\.\n.+")
ENGLISH_SWAP = re.compile(r"(?:First|Then|Finally), (\w+) and (\w+) (?:swap|switch|trade|change) ")
ENGLISH_END = re.compile(r"At the end of the \w+, (\w+) (?:has|is) ?[\w ]*")
# 陈晓雯、李国栋和王雅琴三人…：陈晓雯戴着…，…。⏎舞会上…首先，…舞会结束时，陈晓雯戴着
CHINESE = re.compile(
    r"(?P<people>[^和]+)和(?P<last>[^和]+?)[一二三四五六七八九十]+人[^：]+：(?P<start>.+)。\n.+"
)
CHINESE_SWAP = re.compile(r"(?:首先|然后|最后)，([^，。和]+)和([^，。和]+)互换")
CHINESE_END = re.compile(r"[^，。]+结束时，([^，。]+)")


class Shuffle(NamedTuple):
    """People and things are indexes of entries; swaps name people by their story index."""

    story: int
    people: list[int]
    things: list[int]
    swaps: list[tuple[int, int]]
    answer: int
    """The index of the requested thing, by the person who has it at the end."""


class TrackingShuffledObjects(FreshTask):
    """A problem is a `Shuffle`."""

    languages = ("en", "zh")

    def __init__(self, name: str, size: int) -> None:
        self.subset = f"tracking_shuffled_objects_{name}_objects"
        self._size = size

    def invent(self, draw: random.Random, difficulty: float) -> Shuffle:
        size = scale_size(self._size, difficulty**0.5, least=FEWEST)
        swaps = _draw_swaps(draw, size, scale_size(self._size, difficulty, least=1))
        story = draw.randrange(len(THINGS))
        names = draw.sample(range(len(vocabulary("people.en"))), 2 * size)
        things = names[size:]
        if THINGS[story] != "people":
            things = draw.sample(range(len(vocabulary("hats.en"))), size)
        return Shuffle(story, names[:size], things, swaps, draw.randrange(size))

    def write(self, problem: Shuffle, language: Language) -> FreshQuestion:
        story, names = STORIES[language][problem.story], vocabulary(f"people.{language}")
        people = [names[person] for person in problem.people]
        entries = vocabulary(f"{THINGS[problem.story]}.{language}")
        things = [entries[thing] for thing in problem.things]
        if language == "zh" and THINGS[problem.story] == "instruments":
            things = [thing[1:] for thing in things]  # without their measure word
        thing_phrases = [
            _with_article(thing, problem.story) if language == "en" else thing for thing in things
        ]
        start = [story.holds.format(*pair) for pair in zip(people, thing_phrases, strict=True)]
        holders, turns = list(range(len(people))), _swap_words(len(problem.swaps), language)
        for left_person, right_person in problem.swaps:
            holders[left_person], holders[right_person] = (
                holders[right_person],
                holders[left_person],
            )
        swaps = [
            turn + story.swap.format(people[left_person], people[right_person])
            for turn, (left_person, right_person) in zip(turns, problem.swaps, strict=True)
        ]
        end = story.end.format(people[holders.index(problem.answer)])
        gap = "" if language == "zh" else " "
        text = (
            f"{story.people.format(_join_people(people, language))}{_join_start(start, language)}\n"
            f"{gap.join([story.meanwhile, *swaps, end])}"
        )
        return add_options(text, things, problem.answer, language)

    def solve(self, text: str) -> str | None:
        head, options = split_options(text)
        if match := ENGLISH.fullmatch(head):
            people = [*match["people"].split(", "), match["last"]]
            start = match["start"].replace(", and ", ", ").split(", ")
            swaps, ends = ENGLISH_SWAP.findall(head), ENGLISH_END.findall(head)
        elif match := CHINESE.fullmatch(head):
            people = [*match["people"].split("、"), match["last"]]
            start = match["start"].split("，")
            swaps, ends = CHINESE_SWAP.findall(head), CHINESE_END.findall(head)
        else:
            return None
        return _trace_holder(people, start, swaps, ends, options)


# --- drawing and writing -----------------------------------------------------------------------


def _draw_swaps(draw: random.Random, people: int, number: int) -> list[tuple[int, int]]:
    """Draw pairs of people; none swaps twice in a row, and everybody swaps if there is time."""
    while True:
        swaps: list[tuple[int, int]] = []
        previous_pair: set[int] = set()
        while len(swaps) < number:
            left_person = draw.randrange(people)
            right_person = (left_person + draw.randrange(1, people)) % people
            if previous_pair != {left_person, right_person}:
                swaps.append((left_person, right_person))
                previous_pair = {left_person, right_person}
        taking_part = {person for pair in swaps for person in pair}
        if len(taking_part) == min(people, 2 * number):
            return swaps


def _with_article(thing: str, story: int) -> str:
    if THINGS[story] not in ("hats", "instruments"):
        return thing
    return f"{'an' if thing[0] in 'aeio' else 'a'} {thing}"


def _swap_words(number: int, language: Language) -> list[str]:
    """Return the words before the swaps: first, then, then, finally."""
    first_word, middle_word, last_word = TURNS[language]
    return [first_word, *[middle_word] * (number - 2), last_word][:number]


def _join_people(people: list[str], language: Language) -> str:
    *leading_people, last_person = people
    if language == "en":
        return f"{', '.join(leading_people)}, and {last_person}"
    tens, ones = divmod(len(people), 10)
    numeral = "十" * tens + (NUMERALS[ones] if ones or not tens else "")
    return f"{'、'.join(leading_people)}和{last_person}{numeral}"


def _join_start(start: list[str], language: Language) -> str:
    *leading_parts, last_part = start
    return (
        f"{', '.join(leading_parts)}, and {last_part}."
        if language == "en"
        else f"{'，'.join(start)}。"
    )


# --- solving -----------------------------------------------------------------------------------


def _trace_holder(
    people: list[str],
    start: list[str],
    swaps: list[tuple[str, str]],
    ends: list[str],
    options: list[str],
) -> str | None:
    """Trace the thing back from the end: find its holder before each swap."""

    def person_in(sentence: str) -> str:
        # The longest matching name: Milan is not Mila.
        return max((name for name in people if sentence.startswith(name)), key=len, default="")

    start_sentences = {person_in(sentence): sentence for sentence in start}
    swapping = {name for pair in swaps for name in pair}
    if len(ends) != 1 or set(start_sentences) != set(people) or not swapping <= set(people):
        return None
    holder = person_in(ends[0])
    for left_person, right_person in reversed(swaps):
        holder = {left_person: right_person, right_person: left_person}.get(holder, holder)
    start_sentence = start_sentences.get(holder, "")
    return find_label(
        options, max((o for o in options if start_sentence.endswith(o)), key=len, default="")
    )
