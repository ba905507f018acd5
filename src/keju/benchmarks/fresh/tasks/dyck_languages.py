"""``< ( [ ] )``: the brackets that close a sequence.

Published sequences are words of a random grammar: with a chance of one half a word is a pair of
brackets around another word, with one quarter two words, else nothing. They have 4 to 100
brackets, of which the last one to three, all of them closing, are left out and asked for.
"""

from __future__ import annotations

import random

from keju.benchmarks.fresh.task import Language, Question, Task, scaled

PUBLISHED_LENGTHS = (4, 100)
PUBLISHED_CLOSINGS = 3
NESTED, JOINED = 0.5, 0.75
"""Below the first a word is nested in brackets, below the second it is two words, else nothing."""
PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
OPENINGS, CLOSINGS = tuple(PAIRS), tuple(PAIRS.values())
ASKED = {
    "en": "Complete the rest of the sequence, making sure that the parentheses are closed "
    "properly. Input: ",
    "zh": "补全下面的括号序列，使所有括号都正确闭合。输入：",
}


class DyckLanguages(Task):
    """A problem is a whole word and the number of brackets at its end that are asked for."""

    subset = "dyck_languages"
    languages = ("en", "zh")

    def invent(self, draw: random.Random, difficulty: float) -> tuple[list[str], int]:
        shortest, longest = (scaled(size, difficulty, least=2) for size in PUBLISHED_LENGTHS)
        # The square root: few words end in many closing brackets, and long words are enough.
        asked = draw.randint(1, scaled(PUBLISHED_CLOSINGS, difficulty**0.5, least=1))
        while True:
            word = _word(draw, longest)
            if shortest <= len(word) > asked and all(b in CLOSINGS for b in word[-asked:]):
                return word, asked

    def write(self, problem: tuple[list[str], int], language: Language) -> Question:
        word, asked = problem
        return Question(ASKED[language] + " ".join(word[:-asked]), " ".join(word[-asked:]))

    def solve(self, text: str) -> str | None:
        for before in ASKED.values():
            if text.startswith(before):
                return _rest(text.removeprefix(before))
        return None


def _word(draw: random.Random, longest: int) -> list[str]:
    """A word of the grammar; an empty one where it would become longer than `longest`."""
    word: list[str] = []
    todo = [""]  # what is still to be written, the next one last: a bracket, or "" for a word
    size, chance = 0, draw.random
    while todo:
        if bracket := todo.pop():
            word.append(bracket)
            continue
        luck = chance()
        if luck < NESTED:
            size += 2
            if size > longest:
                return []
            kind = int(luck / NESTED * len(OPENINGS))  # what is left of the luck is as random
            word.append(OPENINGS[kind])
            todo += (CLOSINGS[kind], "")
        elif luck < JOINED:
            todo += ("", "")
    return word


def _rest(sequence: str) -> str | None:
    """What closes a sequence; None where it is not one, or closed already."""
    missing: list[str] = []
    for bracket in sequence.split():
        if bracket in PAIRS:
            missing.append(PAIRS[bracket])
        elif not missing or missing.pop() != bracket:
            return None
    return " ".join(reversed(missing)) or None
