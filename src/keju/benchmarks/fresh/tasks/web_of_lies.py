"""``Ada lies. Ben says Ada lies. Does Ben tell the truth?``: who tells the truth.

Published chains have five people: the text says whether the first is honest, and each of the other
four speaks about the one before. The difficulty of a fresh chain determines how many statements it
has.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from keju.benchmarks.fresh.task import FreshQuestion, FreshTask, Language, scale_size
from keju.benchmarks.fresh.vocabulary import vocabulary

PUBLISHED_STATEMENTS = 4


class LiarWords(NamedTuple):
    """The texts of a language, and the patterns that read them."""

    beginning: str
    gap: str
    """Between two sentences."""
    truth: str
    lie: str
    says: str
    question_form: str
    yes: str
    no: str
    sentence: re.Pattern[str]
    """Speaker and subject; the first sentence has no speaker."""
    question: re.Pattern[str]


WORDS: dict[Language, LiarWords] = {
    "en": LiarWords(
        "Question: ", " ", "{} tells the truth.", "{} lies.", "{} says ", "Does {} tell the truth?",
        "Yes", "No",
        # Ben says Ada lies.
        re.compile(r"(?:(?P<by>\w+) says )?(?P<of>\w+) (?:tells the (?P<truth>truth)|lies)\. "),
        re.compile(r"Does (\w+) tell the truth\?"),
    ),
    "zh": LiarWords(
        "问题：", "", "{}说真话。", "{}说谎话。", "{}说，", "{}说真话吗？", "是", "否",
        # 何建平说，陈晓雯说谎话。
        re.compile(r"(?:(?P<by>[^说，。]+)说，)?(?P<of>[^说，。]+)说(?:(?P<truth>真话)|谎话)。"),
        re.compile(r"([^说，。]+)说真话吗？"),
    ),
}  # fmt: skip


class LiarChain(NamedTuple):
    """People are indexes of names; each tells the truth or lies."""

    people: list[int]
    honest: list[bool]


class WebOfLies(FreshTask):
    """A problem is a `LiarChain`."""

    subset = "web_of_lies"
    languages = ("en", "zh")

    def invent(self, draw: random.Random, difficulty: float) -> LiarChain:
        size = scale_size(PUBLISHED_STATEMENTS, difficulty, least=1) + 1
        people = draw.sample(range(len(vocabulary("people.en"))), size)
        # People are honest at random, so their statements are random, and Yes is as likely as No.
        return LiarChain(people, [draw.random() < 0.5 for _ in people])

    def write(self, problem: LiarChain, language: Language) -> FreshQuestion:
        words, names = WORDS[language], vocabulary(f"people.{language}")
        people, honest = [names[person] for person in problem.people], problem.honest
        first_statement = words.truth if honest[0] else words.lie
        sentences = [first_statement.format(people[0])]
        for place in range(1, len(people)):
            statement = words.truth if honest[place] == honest[place - 1] else words.lie
            sentences.append(words.says.format(people[place]) + statement.format(people[place - 1]))
        sentences.append(words.question_form.format(people[-1]))
        target = words.yes if honest[-1] else words.no
        return FreshQuestion(words.beginning + words.gap.join(sentences), target)

    def solve(self, text: str) -> str | None:
        for words in WORDS.values():
            if text.startswith(words.beginning):
                return _find_answer(text.removeprefix(words.beginning), words)
        return None


def _find_answer(text: str, words: LiarWords) -> str | None:
    """Return the answer, deduced from people whose honesty is known, in any sentence order."""
    honest: dict[str, bool] = {}
    statements: list[tuple[str, str, bool]] = []
    place = 0
    while match := words.sentence.match(text, place):
        speaker, person, truth = match["by"], match["of"], bool(match["truth"])
        if speaker:
            statements.append((speaker, person, truth))
        else:
            honest[person] = truth
        place = match.end()
    question_match = words.question.fullmatch(text, place)
    known_count = 0
    while known_count < len(honest):
        known_count = len(honest)
        honest |= {
            speaker: honest[person] == truth
            for speaker, person, truth in statements
            if person in honest
        }
    if question_match is None or question_match[1] not in honest:
        return None
    return words.yes if honest[question_match[1]] else words.no
