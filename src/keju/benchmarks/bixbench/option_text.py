"""Which option a text repeats: numbers by value, words by their letters, never the other way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from unicodedata import normalize

from keju.answers.numbers import number_of, plain_numerals, range_of, same_number
from keju.answers.segments import clean_segment
from keju.benchmarks.grading import REFUSAL
from keju.types import Sample

FUZZY_RATIO = 0.8
"""The least likeness that counts (README of the verifiers environment `bixbench`)."""
SHORT = 200
"""Characters of a reply that may still be nothing but an option's text, misspelt."""

_OTHER = re.compile(r"[^a-z0-9]+")
_DIGIT = re.compile(r"\d")
_POLARITY = re.compile(
    r"\b(?:(no|not|non|un|never|neither|nor|none|without|cannot|lack(?:s|ed|ing)?|absen(?:t|ce)|fail(?:s|ed)?)\b"
    r"|(up|down|incr|decr|hyper|hypo|over|under|positiv|negativ|lower|higher|more|less|fewer"
    r"|above|below|before|after|gain|loss|same|differen))|(n['’]t\b)"
)
"""Words, and beginnings of words, of which one turns a statement into its opposite."""
_PREFIXES = ("un", "non", "in", "im", "ir", "dis", "anti")


def folded(text: str) -> str:
    """A text as far as it counts when it is compared as a whole."""
    return " ".join(clean_segment(plain_numerals(text)).casefold().split())


def letters(text: str) -> str:
    """The letters and digits of a text, lower case, anything between them one space."""
    return _OTHER.sub(" ", normalize("NFKC", text).lower()).strip()


def option_of(text: str, sample: Sample) -> str | None:
    """The label of the one option that `text` is; None where none or several fit.

    An option that is a number or a range is met by value only. One with digits inside is met by
    its whole text; only options of mere words may differ in punctuation.
    """
    labelled = zip(sample.labels, sample.choices, strict=True)
    found = [label for label, choice in labelled if _is_option(text, choice)]
    return found[0] if len(found) == 1 else None


def likely_option(text: str, sample: Sample) -> str | None:
    """The label of the option of mere words that a short `text` is most like, if it is alike.

    Not to know is never read out of likeness, nor the opposite of what was said.
    """
    if len(text) > SHORT or not (said := letters(text)):
        return None
    ratios = [
        (SequenceMatcher(None, said, words).ratio(), label) for label, words in _words(sample)
    ]
    best = max((ratio for ratio, _ in ratios), default=0.0)
    winners = [label for ratio, label in ratios if ratio == best]
    if best < FUZZY_RATIO or len(winners) != 1:
        return None
    choice = sample.choices[sample.labels.index(winners[0])]
    return None if _opposed(text, choice) else winners[0]


def _opposed(first: str, second: str) -> bool:
    """Whether two texts that are alike may say the opposite: only one of them has a ``not``."""
    if _polarity(first) != _polarity(second):
        return True
    one, other = (frozenset(letters(text).split()) for text in (first, second))
    return any(
        prefix + word in longer
        for shorter, longer in ((one, other), (other, one))
        for word in shorter - longer
        for prefix in _PREFIXES
    )


def _polarity(text: str) -> list[str]:
    plain = normalize("NFKC", text).lower()
    return sorted("".join(groups) for groups in _POLARITY.findall(plain))


def _words(sample: Sample) -> Iterator[tuple[str, str]]:
    refusal = sample.metadata.get(REFUSAL)
    for label, choice in zip(sample.labels, sample.choices, strict=True):
        if label != refusal and _only_words(choice):
            yield label, letters(choice)


def _is_option(text: str, choice: str) -> bool:
    number = number_of(choice)
    if number is not None:
        said = number_of(text)
        return said is not None and same_number(said, number)
    bounds = range_of(choice)
    if bounds is not None:
        return range_of(clean_segment(text)) == bounds
    if _only_words(choice):
        return bool(letters(choice)) and letters(text) == letters(choice)
    return folded(text) == folded(choice)


def _only_words(text: str) -> bool:
    return _DIGIT.search(text) is None
