"""``< ( [ ] )``: the brackets that close a sequence.

Published sequences are words of a random grammar. A word is a pair of brackets around another word
(probability one half), two words (one quarter), or empty. Sequences have 4 to 100 brackets. The
last one to three, all of them closing, are removed and asked for.
"""

from __future__ import annotations

import random

from keju.benchmarks.fresh.task import FreshQuestion, FreshTask, Language, scale_size

PUBLISHED_LENGTHS = (4, 100)
PUBLISHED_CLOSINGS = 3
NESTED, JOINED = 0.5, 0.75
"""Below the first value a word is nested in brackets, below the second it is two words, else empty.
"""
PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
OPENINGS, CLOSINGS = tuple(PAIRS), tuple(PAIRS.values())
QUESTION_FORMS = {
    "en": "Complete the rest of the sequence, making sure that the parentheses are closed "
    "properly. Input: ",
    "zh": "补全下面的括号序列，使所有括号都正确闭合。输入：",
}


class DyckLanguages(FreshTask):
    """A problem is a complete word and the number of final brackets to ask for."""

    subset = "dyck_languages"
    languages = ("en", "zh")

    def invent(self, draw: random.Random, difficulty: float) -> tuple[list[str], int]:
        shortest, longest = (scale_size(size, difficulty, least=2) for size in PUBLISHED_LENGTHS)
        # The square root, because few words end in many closing brackets, and long words are
        # enough.
        closing_count = draw.randint(1, scale_size(PUBLISHED_CLOSINGS, difficulty**0.5, least=1))
        while True:
            word = _draw_word(draw, longest)
            if shortest <= len(word) > closing_count and all(
                b in CLOSINGS for b in word[-closing_count:]
            ):
                return word, closing_count

    def write(self, problem: tuple[list[str], int], language: Language) -> FreshQuestion:
        word, closing_count = problem
        return FreshQuestion(
            QUESTION_FORMS[language] + " ".join(word[:-closing_count]),
            " ".join(word[-closing_count:]),
        )

    def solve(self, text: str) -> str | None:
        for prefix in QUESTION_FORMS.values():
            if text.startswith(prefix):
                return _missing_brackets(text.removeprefix(prefix))
        return None


def _draw_word(draw: random.Random, longest: int) -> list[str]:
    """Draw a word of the grammar; it is empty if it would become longer than `longest`."""
    word: list[str] = []
    todo = [""]  # pending parts, the next one last: a bracket, or "" for a word
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
            # The rest of the random number is also random.
            kind = int(luck / NESTED * len(OPENINGS))
            word.append(OPENINGS[kind])
            todo += (CLOSINGS[kind], "")
        elif luck < JOINED:
            todo += ("", "")
    return word


def _missing_brackets(sequence: str) -> str | None:
    """Return the brackets that close a sequence; None if it is invalid or already closed."""
    missing: list[str] = []
    for bracket in sequence.split():
        if bracket in PAIRS:
            missing.append(PAIRS[bracket])
        elif not missing or missing.pop() != bracket:
            return None
    return " ".join(reversed(missing)) or None
