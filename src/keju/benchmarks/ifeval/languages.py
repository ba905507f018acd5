"""The language of a text, always the same for the same text.

The published checkers use langdetect: naive Bayes over the frequency of one to three characters in
the Wikipedias of 55 languages, from a random sample of a text. Its verdicts on short texts depend
on the draw. This module makes the same estimate from the same frequencies, in
``languages.json.gz``, with a fixed seed, so that the result never changes. Another detector would
disagree with the recorded verdicts on short and mixed texts.
"""

from __future__ import annotations

import gzip
import random
import re
from functools import cache
from pathlib import Path

import msgspec

SEED = 0
TRIALS, MOST_DRAWS, CHECK_EVERY = 7, 1000, 5
SMOOTHING, SMOOTHING_SPREAD, BASE = 0.5, 0.05, 10_000
CERTAIN, LIKELY = 0.99999, 0.1
LONGEST_TEXT = 10_000
UNKNOWN = "unknown"
"""The result where no language is likely."""

# `https://example.org/page?x=1`
_ADDRESS = re.compile(r"https?://[-_.?&~;+=/#0-9A-Za-z]{1,2076}")
# `someone@example.org`
_MAIL = re.compile(r"[-_.0-9A-Za-z]{1,64}@[-_0-9A-Za-z]{1,255}[-_.0-9A-Za-z]{1,255}")
_SPACES = re.compile(r"  +")

REPLACED_LETTERS = {"ș": "ş", "ț": "ţ", "\u06cc": "\u064a"} | dict.fromkeys("\xa0«°»", " ")
REPLACED_RANGES = (
    (0x1EA0, 0x1EFF, "\u1ec3"),  # Vietnamese letters
    (0x2000, 0x206F, " "),  # punctuation
    (0x3040, 0x309F, "\u3042"),  # Hiragana
    (0x30A0, 0x30FF, "\u30a2"),  # Katakana
    (0x3100, 0x312F, "\u3105"),  # Bopomofo
    (0x31A0, 0x31BF, "\u3105"),
    (0xAC00, 0xD7AF, "\uac00"),  # Hangul
)
"""Letters that count as one, because each of them is rare."""


class Frequencies(msgspec.Struct, frozen=True):
    """How often each language uses sequences of one to three characters."""

    languages: list[str]
    totals: list[list[int]]
    """By language: the number of sequences of one, two and three characters."""
    ngrams: dict[str, list[int]]
    """By sequence: pairs of a language's number and a count."""
    kanji: dict[str, str]
    """Groups of Chinese characters that count as one."""
    accents: dict[str, str]
    """Letters with a separate Vietnamese accent, and the letter that includes it."""

    def shares(self, ngram: str) -> list[float]:
        """Return the share of a sequence in each language."""
        values, pairs = [0.0] * len(self.languages), self.ngrams[ngram]
        for language, count in zip(pairs[::2], pairs[1::2], strict=True):
            values[language] = count / self.totals[language][len(ngram) - 1]
        return values


@cache
def load_frequencies() -> tuple[Frequencies, dict[str, str], re.Pattern[str]]:
    """Return the frequencies, the character of each group, and a pattern of separate accents."""
    content = gzip.decompress(Path(__file__).with_name("languages.json.gz").read_bytes())
    frequencies = msgspec.json.decode(content, type=Frequencies)
    characters = {
        character: representative
        for representative, group in frequencies.kanji.items()
        for character in group
    } | REPLACED_LETTERS
    return frequencies, characters, re.compile("|".join(map(re.escape, frequencies.accents)))


def detect_language(text: str) -> str | None:
    """Return the code of the text's language, such as ``en``; None if it has no letters."""
    frequencies, characters, accents = load_frequencies()
    text = _MAIL.sub(" ", _ADDRESS.sub(" ", text))
    text = accents.sub(lambda match: frequencies.accents[match[0]], text)[:LONGEST_TEXT]
    text = _drop_foreign_latin(_SPACES.sub(" ", text))
    ngrams = _find_ngrams(text, frequencies, characters)
    if not ngrams:
        return None
    probabilities = _estimate(ngrams, frequencies)
    best = max(range(len(probabilities)), key=probabilities.__getitem__)
    return frequencies.languages[best] if probabilities[best] > LIKELY else UNKNOWN


def _drop_foreign_latin(text: str) -> str:
    """Remove Latin letters from a text that is mostly written in other letters."""
    latin = sum("A" <= character <= "z" for character in text)
    non_latin = sum(
        character >= "\u0300" and not "\u1e00" <= character <= "\u1eff" for character in text
    )
    if latin * 2 >= non_latin:
        return text
    return "".join(character for character in text if not "A" <= character <= "z")


def _normalize(character: str, characters: dict[str, str]) -> str:
    if character < "\x80":
        return character if character.isalpha() else " "
    if character in characters:
        return characters[character]
    code = ord(character)
    ranges = (letter for low, high, letter in REPLACED_RANGES if low <= code <= high)
    return next(ranges, character)


def _find_ngrams(text: str, frequencies: Frequencies, characters: dict[str, str]) -> list[str]:
    """Return the known sequences of a text; words in capital letters have none."""
    sequences: list[str] = []
    window, in_capitals = " ", False
    for raw in text:
        character, previous = _normalize(raw, characters), window[-1]
        if previous == " ":
            window, in_capitals = " ", False
        if not (previous == " " and character == " "):
            window = (window + character)[-3:]
            in_capitals = character.isupper() and (in_capitals or previous.isupper())
        if in_capitals:
            continue
        for size in range(1, len(window) + 1):
            ngram = window[-size:]
            if ngram != " " and ngram in frequencies.ngrams:
                sequences.append(ngram)
    return sequences


def _estimate(ngrams: list[str], frequencies: Frequencies) -> list[float]:
    """Return the probability of each language: the mean over several samples of the sequences."""
    draw = random.Random(SEED)
    count = len(frequencies.languages)
    means, shares = [0.0] * count, {}
    for _ in range(TRIALS):
        values = [1 / count] * count
        weight = (SMOOTHING + draw.gauss(0.0, 1.0) * SMOOTHING_SPREAD) / BASE
        for number in range(MOST_DRAWS + 1):
            ngram = draw.choice(ngrams)
            if ngram not in shares:
                shares[ngram] = frequencies.shares(ngram)
            values = [
                value * (weight + share) for value, share in zip(values, shares[ngram], strict=True)
            ]
            if number % CHECK_EVERY == 0:
                total = sum(values)
                values = [value / total for value in values]
                if max(values) > CERTAIN:
                    break
        means = [mean + value / TRIALS for mean, value in zip(means, values, strict=True)]
    return means
