"""Options in other words: said shorter, turned round, copied badly or in part.

``Blue is second.`` says ``The blue book is second``; ``Dad of the Bride`` is meant for ``Father of
the Bride``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from keju.answers.options import LEAST_PART, LONGEST_SPELT, option_texts, plain_text

_DIGIT = re.compile(r"\d")
_WORDS = re.compile(r"\w+")
_ASIDE = frozenset({"the", "a", "an", "so", "thus", "therefore", "hence", "is", "are"})
_NEGATIONS = frozenset({"not", "no", "never", "none", "without", "cannot", "neither", "nor", "t"})


# The verb of `the third is the mangoes`.
_COPULA = re.compile(r"\b(?:is|are|was|were)\b")


class _Phrase(NamedTuple):
    """The telling words of an option, those before its verb and those after it."""

    words: list[str]
    first: set[str]
    rest: set[str]
    negations: frozenset[str]


def _phrase(text: str) -> _Phrase:
    words = _telling(text)
    first, *rest = _COPULA.split(text)
    return _Phrase(
        words, set(_telling(first)), set(_telling(" ".join(rest))), _NEGATIONS.intersection(words)
    )


@lru_cache(maxsize=1024)
def _phrases(choices: tuple[str, ...]) -> list[_Phrase]:
    return list(map(_phrase, option_texts(choices).plain))


def paraphrased(sentence: str, choices: Sequence[str]) -> str | None:
    """The one option that a sentence says in fewer words, or in a few more: ``Blue is second.``

    It may turn it round: ``The cheapest fruit is the kiwis`` for ``The kiwis are the cheapest``.
    """
    plain = sentence.lower()
    words = _telling(plain)
    negations = _NEGATIONS.intersection(words)
    options = _phrases(tuple(choices))
    can_turn = any(option.rest for option in options)
    clause = _phrase(plain.rpartition(",")[2] if can_turn else "")
    fits = []
    for index, option in enumerate(options):
        if option.negations != negations:
            continue
        is_fewer = len(words) <= len(option.words)
        short, long = (words, option.words) if is_fewer else (option.words, words)
        left = iter(long)
        is_short = len(short) >= 3 and len(long) <= 2 * len(short)
        is_turned = option.rest and option.rest <= clause.first and option.first == clause.rest
        if (is_short and all(word in left for word in short)) or (
            is_turned and len(clause.first) <= len(option.words) >= 3
        ):
            fits.append(chr(ord("A") + index))
    return fits[0] if len(fits) == 1 else None


def _telling(text: str) -> list[str]:
    """The words of a text that tell it from another."""
    return [word for word in _WORDS.findall(text) if word not in _ASIDE]


LEAST_COPIED = 0.75
"""The share of words in common from which on a text is a bad copy of an option."""


TELLING = 6
"""Different words from which on a part of one option alone is meant for it."""
# The ending of the plural.
_STEM = re.compile(r"(?<=\w{3})s\b")


@lru_cache(maxsize=1024)
def _stems(choices: tuple[str, ...]) -> list[str]:
    """The options without the endings of plurals."""
    return [_STEM.sub("", option) for option in option_texts(choices).plain]


def nearly_option(text: str, choices: Sequence[str]) -> str | None:
    """The one option that an announced text is a part of, or a copy of with a few wrong words.

    ``the customer's training`` is a part of ``It is the customer's training``; ``Dad of the Bride``
    is meant for ``Father of the Bride``. A text with numbers says what it says, and so does a
    negation.
    """
    if len(text) > 2 * LONGEST_SPELT:
        return None
    said = plain_text(text.partition("\n")[0])
    if not LEAST_PART <= len(said) <= LONGEST_SPELT:
        return None
    plain = option_texts(tuple(choices)).plain
    options = _words_of(tuple(choices))
    words = frozenset(_WORDS.findall(said))
    holding = [i for i, option in enumerate(plain) if said in option and words <= options[i]]
    if len(holding) == 1 and (3 * len(said) > len(plain[holding[0]]) or len(words) >= TELLING):
        return chr(ord("A") + holding[0])
    if len(words) >= TELLING:
        stems = _stems(tuple(choices))
        if stems.count(stem := _STEM.sub("", said)) == 1:
            return chr(ord("A") + stems.index(stem))  # `the bees win their games`: `their game`
    if len(words) < 3 or _DIGIT.search(said):
        return None
    shares = [_in_common(words, option) for option in options]
    share = max(shares, default=0.0)
    if share < LEAST_COPIED or shares.count(share) > 1:
        return None
    index = shares.index(share)
    own = options[index]
    speaks_for_another = any(words & other - own for other in options)
    return None if speaks_for_another or (words ^ own) & _NEGATIONS else chr(ord("A") + index)


@lru_cache(maxsize=1024)
def _words_of(choices: tuple[str, ...]) -> list[frozenset[str]]:
    """The words of each option."""
    return [frozenset(_WORDS.findall(text)) for text in option_texts(choices).plain]


def _in_common(first: frozenset[str], second: frozenset[str]) -> float:
    """The share of the words of two texts that both have."""
    return 2 * len(first & second) / (len(first) + len(second) or 1)


def resembles(text: str, choices: Sequence[str]) -> bool:
    """Whether most of a text stands in one option: ``large square match``."""
    pairs = _pairs(plain_text(text))
    return any(
        len(pairs & _pairs(each)) > len(pairs) / 2 for each in option_texts(tuple(choices)).plain
    )


def _pairs(text: str) -> set[str]:
    """The pairs of characters that stand side by side."""
    return set(map(str.__add__, text, text[1:]))


# `refers to "the writer`, `The antecedent of the pronoun is "The writer`: whom a pronoun means; and
# `the antecedent is unclear`, without anybody.
_REFERS = re.compile(
    r"\b(?:refers? (?:back )?to\s+[\"“']?(?=the )|antecedent\b[^.\n]{0,90}? is\s+[\"“']?)"
    r"(?:(the [a-z]+)(?: ([a-z]+))?\b)?",
    re.IGNORECASE,
)


def referred_to(text: str, choices: Sequence[str]) -> str | None:
    """The option that alone speaks of the one to whom a reply says that a pronoun refers.

    ``The antecedent is "The writer."`` is meant for ``The writer focuses on code``.
    """
    found: set[int] = set()
    if "pronoun" not in text and "antecedent" not in text:
        return None
    for match in _REFERS.finditer(text):
        if match[1] is None:
            return None
        for noun in (f"{match[1]} {match[2]}", match[1]):
            named = [
                index
                for index, option in enumerate(option_texts(tuple(choices)).plain)
                if f" {noun.lower()} " in f" {option} ".replace("'s ", " ").replace("’s ", " ")
            ]
            if len(named) == 1:
                found.add(named[0])
                break
    return chr(ord("A") + found.pop()) if len(found) == 1 else None


_BLANK = " \t\n_.。:：\u3000"
"""What ends a question that an option completes: the blank of ``is known as____``."""
# What may stand between such a question and the option: ` a `, `: "`, ` [`.
_BEFORE_OPTION = re.compile(r"[ \t_:：*\"'“]*+(?:(?:an?|the) )?", re.IGNORECASE)
_COMPLETED_BY_LABEL = re.compile(r"[(\[]([A-Z])[)\]]")
_TAIL, _LEAST_TAIL = 28, 8


def completed(text: str, question: str, choices: Sequence[str]) -> str | None:
    """The one option with which a reply completes the question's own last words.

    ``The response is known as separation anxiety`` answers ``… The response is known as``.
    """
    end = question.find("\nOptions:")
    end = end if end >= 0 else len(question)
    tail = question[max(0, end - 2 * _TAIL) : end].rstrip(_BLANK)[-_TAIL:]
    if len(tail) < _LEAST_TAIL or tail.endswith(("?", "？")) or (at := text.find(tail)) < 0:
        return None
    plain = option_texts(tuple(choices)).plain
    found = set()
    while at >= 0:
        at += len(tail)
        gap = _BEFORE_OPTION.match(text, at)
        begin = gap.end() if gap else at
        said = text[begin : begin + LONGEST_SPELT].casefold()
        if label := _COMPLETED_BY_LABEL.match(text, begin):
            found.add(ord(label[1]) - ord("A"))
        fits = [
            (len(option), index)
            for index, option in enumerate(plain)
            if option
            and said.startswith(option)
            and not said[len(option) : len(option) + 1].isalnum()
        ]
        if fits:
            found.add(max(fits)[1])
        at = text.find(tail, at)
    index = found.pop() if len(found) == 1 else len(choices)
    return chr(ord("A") + index) if index < len(choices) else None
