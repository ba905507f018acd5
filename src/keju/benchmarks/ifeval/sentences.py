"""Sentences and words of English text as the published checkers count them.

The checkers count sentences with punkt (Kiss and Strunk 2006) and its English parameters, and words
in capital letters with the word rules of NLTK. A simpler splitter gives other verdicts: it ends a
sentence after ``Dr.`` or in ``J. Bach``. So this module applies the same procedure to the same
parameters, which are the file ``punkt.json.gz``; nothing is downloaded and nothing is random. The
rules are those of NLTK up to version 3.9: later versions also close sentences at curly quotation
marks, and published numbers are older.
"""

from __future__ import annotations

import gzip
import re
import string
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

MIDDLE_UPPER, BEGIN_LOWER = 1 << 2, 1 << 4
UPPER, LOWER = 0b0001110, 0b1110000
"""Bits of the contexts in which a word occurred in training."""
ENDS = (".", "?", "!")
PUNCTUATION = frozenset(";:,.!?")
NUMBER = "##number##"

_NOT_IN_WORDS = r"[?!)\";}\]*:@'({\[]"
_REPEATED = r"(?:-{2,}|\.{2,}|(?:\.\s){2,}\.)"
# `word`, `Dr.`, `3.5`, `--`, `...`; a comma belongs to a word unless the word ends there.
_TOKEN = re.compile(
    rf"({_REPEATED}|(?=[^(\"`{{\[:;&#*@)}}\]\-,])\S+?"
    rf"(?=\s|$|{_NOT_IN_WORDS}|{_REPEATED}|,(?=$|\s|{_NOT_IN_WORDS}|{_REPEATED}))|\S)"
)
# The end mark in `Dr. Who` or `end.)`, with what follows it.
_END = re.compile(rf"[.?!](?=(?P<after>{_NOT_IN_WORDS}|\s+(?P<next>\S+)))")
# `")` at the start of a sentence belongs to the one before.
_CLOSING = re.compile(r'["\')\]}]+?(?:\s+|(?=--)|$)', re.MULTILINE)
_ELLIPSIS = re.compile(r"\.\.+$")  # `...`
_NUMERIC = re.compile(r"^-?[.,]?\d[\d,.-]*\.?$")  # `-3.5`, `1,000.`
_INITIAL = re.compile(r"[^\W\d]\.$")  # `J.`


class Parameters(msgspec.Struct, frozen=True):
    """The parameters of punkt for English."""

    abbreviations: frozenset[str]
    starters: frozenset[str]
    """Words that often begin a sentence."""
    collocations: frozenset[tuple[str, str]]
    """Pairs of words that a full stop does not separate."""
    contexts: dict[str, list[str]]
    """Words by the sum of their context bits."""

    def by_word(self) -> dict[str, int]:
        """Return the context bits of each word."""
        return {word: int(bits) for bits, words in self.contexts.items() for word in words}


@cache
def load_parameters() -> tuple[Parameters, dict[str, int]]:
    """Return the parameters and the context bits by word."""
    content = gzip.decompress(Path(__file__).with_name("punkt.json.gz").read_bytes())
    parameters = msgspec.json.decode(content, type=Parameters)
    return parameters, parameters.by_word()


class Token:
    """A token and what is known about it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.kind = _NUMERIC.sub(NUMBER, text.lower())
        self.ends_sentence = self.is_abbreviation = self.is_ellipsis = False

    @property
    def kind_without_stop(self) -> str:
        return self.kind[:-1] if len(self.kind) > 1 and self.kind.endswith(".") else self.kind

    @property
    def kind_in_sentence(self) -> str:
        """The kind without a full stop that ends a sentence."""
        return self.kind_without_stop if self.ends_sentence else self.kind


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [text[part] for part in _realign(text, _split(text))]


def _split(text: str) -> Iterator[slice]:
    start = 0
    for match, context in _candidates(text):
        if _contains_end(context):
            yield slice(start, match.end())
            start = match.start("next") if match["next"] else match.end()
    yield slice(start, len(text.rstrip()))


def _candidates(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each possible end with its context: the word before it and what follows."""
    word, previous = slice(0, 0), None
    for match in _END.finditer(text):
        before = text[word.stop : match.start()]
        space = max(map(before.rfind, string.whitespace))
        start = word.stop + space + 1 if space > 0 else word.start
        if previous is not None and word.stop <= start:
            yield previous, text[word] + previous[0] + previous["after"]
        word, previous = slice(start, match.start()), match
    if previous is not None:
        yield previous, text[word] + previous[0] + previous["after"]


def _realign(text: str, parts: Iterator[slice]) -> Iterator[slice]:
    """Move closing marks to the sentence that they close."""
    shift, current = 0, next(parts)
    for following in parts:
        current = slice(current.start + shift, current.stop)
        closing = _CLOSING.match(text[following])
        shift = closing.end() if closing else 0
        if closing:
            yield slice(current.start, following.start + len(closing[0].rstrip()))
        elif text[current]:
            yield current
        current = following
    current = slice(current.start + shift, current.stop)
    if text[current]:
        yield current


def _contains_end(context: str) -> bool:
    """Whether a token before the last one ends a sentence."""
    tokens = [
        Token(word) for line in context.split("\n") if line.strip() for word in _TOKEN.findall(line)
    ]
    for token in tokens:
        _mark(token)
    for token, following in pairwise(tokens):
        if token.text.endswith("."):
            _reconsider(token, following)
    return any(token.ends_sentence for token in tokens[:-1])


def _mark(token: Token) -> None:
    """Decide by the token alone."""
    parameters, _ = load_parameters()
    text = token.text
    if text in ENDS:
        token.ends_sentence = True
    elif _ELLIPSIS.match(text):
        token.is_ellipsis = True
    elif text.endswith(".") and not text.endswith(".."):
        word = text[:-1].lower()
        abbreviations = parameters.abbreviations
        token.is_abbreviation = bool({word, word.split("-")[-1]} & abbreviations)
        token.ends_sentence = not token.is_abbreviation


def _reconsider(token: Token, following: Token) -> None:
    """Decide by the token and the next one."""
    parameters, contexts = load_parameters()
    kind, next_kind = token.kind_without_stop, following.kind_in_sentence
    is_initial = _INITIAL.match(token.text) is not None
    if (kind, next_kind) in parameters.collocations:
        token.ends_sentence, token.is_abbreviation = False, True
        return
    starts = _starts_sentence(following)
    is_upper = following.text[0].isupper()
    is_unsure = (token.is_abbreviation or token.is_ellipsis) and not is_initial
    if is_unsure and (starts is True or (is_upper and next_kind in parameters.starters)):
        token.ends_sentence = True
        return
    if is_initial or kind == NUMBER:
        is_name = is_initial and is_upper and not contexts.get(next_kind, 0) & LOWER
        if starts is False or (starts is None and is_name):
            token.ends_sentence, token.is_abbreviation = False, True


def _starts_sentence(token: Token) -> bool | None:
    """Whether a token starts a sentence, by the case of its first letter; None if unsure."""
    if token.text in PUNCTUATION:
        return False
    bits = load_parameters()[1].get(token.kind_in_sentence, 0)
    if token.text[0].isupper() and bits & LOWER and not bits & MIDDLE_UPPER:
        return True
    if token.text[0].islower() and (bits & UPPER or not bits & BEGIN_LOWER):
        return False
    return None


class Rewriting(NamedTuple):
    """A step of the word rules."""

    pattern: re.Pattern[str]
    replacement: str


_WORD_STEPS = tuple(
    Rewriting(re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"([«“‘„]|`+)", r" \1 "),  # opening quotation marks
        (r'^"', "``"),
        (r"(``)", r" \1 "),
        (r"([ (\[{<])(\"|'{2})", r"\1 `` "),  # `("so`
        (r"(?i)(?<!\w)(')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", r"\1 "),  # `'word`
        (r"([^.])(\.)([\]\)}>\"'»”’ ]*)\s*$", r"\1 \2 \3 "),  # `end.")`
        (r"([:,])([^\d])", r" \1 \2"),  # `so, then`
        (r"([:,])$", r" \1 "),
        (r"\.{2,}", r" \g<0> "),
        (r"[;@#$%&]", r" \g<0> "),
        (r"[‒-―]", r" \g<0> "),  # long dashes
        (r"([^.])(\.)([\]\)}>\"']*)\s*$", r"\1 \2\3 "),
        (r"[?!]", r" \g<0> "),
        (r"([^'])' ", r"\1 ' "),
        (r"[*]", r" \g<0> "),
        (r"[\]\[(){}<>]", r" \g<0> "),
        (r"--", r" -- "),
        (r"^|$", " "),
        (r"([»”’])", r" \1 "),  # closing quotation marks
        (r"''", " '' "),
        (r'"', " '' "),
        (r"\s+", " "),
        (r"([^' ])('[sS]|'[mM]|'[dD]|') ", r"\1 \2 "),  # `it's `
        (r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r"\1 \2 "),  # `can't `
        (r"(?i)\b(can)(not)\b", r" \1 \2 "),
        (r"(?i)\b(d)('ye)\b", r" \1 \2 "),
        (r"(?i)\b(gim|lem)(me)\b", r" \1 \2 "),
        (r"(?i)\b(gon)(na)\b", r" \1 \2 "),
        (r"(?i)\b(got)(ta)\b", r" \1 \2 "),
        (r"(?i)\b(more)('n)\b", r" \1 \2 "),
        (r"(?i)\b(wan)(na)(?=\s)", r" \1 \2 "),
        (r"(?i) ('t)(is|was)\b", r" \1 \2 "),
    )
)
"""The word rules of NLTK, in their order; the comments show what they separate."""


def split_words(text: str) -> list[str]:
    """Return the words of a text: the word rules of NLTK, sentence by sentence."""
    words: list[str] = []
    for sentence in split_sentences(text):
        for step in _WORD_STEPS:
            sentence = step.pattern.sub(step.replacement, sentence)
        words += sentence.split()
    return words
