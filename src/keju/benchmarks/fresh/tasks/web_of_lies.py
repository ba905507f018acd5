"""``Ada lies. Ben says Ada lies. Does Ben tell the truth?``: who tells the truth.

Published chains have five people: one of whom it is told, and four of whom each speaks about the
one before. A fresh one has as many statements as its difficulty asks for.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from keju.benchmarks.fresh.task import Language, Question, Task, scaled
from keju.benchmarks.fresh.vocabulary import vocabulary

PUBLISHED_STATEMENTS = 4


class Words(NamedTuple):
    """How a language says it, and how what it says is read."""

    beginning: str
    gap: str
    """Between two sentences."""
    truth: str
    lie: str
    says: str
    asked: str
    yes: str
    no: str
    sentence: re.Pattern[str]
    """Who says of whom; nobody says it of the first."""
    question: re.Pattern[str]


WORDS: dict[Language, Words] = {
    "en": Words(
        "Question: ", " ", "{} tells the truth.", "{} lies.", "{} says ", "Does {} tell the truth?",
        "Yes", "No",
        # Ben says Ada lies.
        re.compile(r"(?:(?P<by>\w+) says )?(?P<of>\w+) (?:tells the (?P<truth>truth)|lies)\. "),
        re.compile(r"Does (\w+) tell the truth\?"),
    ),
    "zh": Words(
        "问题：", "", "{}说真话。", "{}说谎话。", "{}说，", "{}说真话吗？", "是", "否",
        # 何建平说，陈晓雯说谎话。
        re.compile(r"(?:(?P<by>[^说，。]+)说，)?(?P<of>[^说，。]+)说(?:(?P<truth>真话)|谎话)。"),
        re.compile(r"([^说，。]+)说真话吗？"),
    ),
}  # fmt: skip


class Chain(NamedTuple):
    """People are numbers of names; each tells the truth or lies, as the one after says or not."""

    people: list[int]
    honest: list[bool]


class WebOfLies(Task):
    """A problem is a `Chain`."""

    subset = "web_of_lies"
    languages = ("en", "zh")

    def invent(self, draw: random.Random, difficulty: float) -> Chain:
        size = scaled(PUBLISHED_STATEMENTS, difficulty, least=1) + 1
        people = draw.sample(range(len(vocabulary("people.en"))), size)
        # Honest people at random: so is what they say, and Yes is as likely as No.
        return Chain(people, [draw.random() < 0.5 for _ in people])

    def write(self, problem: Chain, language: Language) -> Question:
        words, names = WORDS[language], vocabulary(f"people.{language}")
        people, honest = [names[person] for person in problem.people], problem.honest
        told = words.truth if honest[0] else words.lie
        sentences = [told.format(people[0])]
        for place in range(1, len(people)):
            said = words.truth if honest[place] == honest[place - 1] else words.lie
            sentences.append(words.says.format(people[place]) + said.format(people[place - 1]))
        sentences.append(words.asked.format(people[-1]))
        target = words.yes if honest[-1] else words.no
        return Question(words.beginning + words.gap.join(sentences), target)

    def solve(self, text: str) -> str | None:
        for words in WORDS.values():
            if text.startswith(words.beginning):
                return _answer(text.removeprefix(words.beginning), words)
        return None


def _answer(text: str, words: Words) -> str | None:
    """Who is honest is worked out from those of whom it is told, in whatever order it is said."""
    honest: dict[str, bool] = {}
    said: list[tuple[str, str, bool]] = []
    place = 0
    while found := words.sentence.match(text, place):
        by, of, truth = found["by"], found["of"], bool(found["truth"])
        if by:
            said.append((by, of, truth))
        else:
            honest[of] = truth
        place = found.end()
    asked = words.question.fullmatch(text, place)
    known = 0
    while known < len(honest):
        known = len(honest)
        honest |= {by: honest[of] == truth for by, of, truth in said if of in honest}
    if asked is None or asked[1] not in honest:
        return None
    return words.yes if honest[asked[1]] else words.no
