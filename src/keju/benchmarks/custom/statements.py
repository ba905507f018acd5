"""Right answers in whole sentences: ``The symbol of gold is Au`` states ``Au``.

The rule needs no list of answers. A sentence states the right answer if it contains it once, and
all its other words come from the question or only connect words. So it counts no sentence that
denies the answer, asks for it, hedges, or names another candidate. If the question itself contains
the right answer, it may offer candidates, and the rule counts no sentence at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from keju.answers.numbers import is_same_number, parse_number
from keju.answers.phrases import load_words

LONGEST_SENTENCE = 200
"""The longest sentence, in characters, that the rule reads."""
# A number `1,000.5`, a word `don't` without its possessive `'s`, one Chinese character, or a sign.
_TOKEN = re.compile(
    r"\d+(?:[.,]\d+)*|[^\W\d_\u3400-\u9fff]+(?:['’](?!s\b)[^\W\d_]+)?|['’]s\b|[\u3400-\u9fff]|[^\w\s]"
)
CONNECTING_WORDS = frozenset(load_words("stating_words"))
"""Words that say nothing about the subject."""
DENYING_WORDS = frozenset(load_words("denying_words"))
"""Words of denials, hedges, alternatives and questions, wherever they come from."""
ASKING_WORDS = frozenset(load_words("asking_words"))
"""Words with which a question begins: ``Is it Au``."""
LISTING_WORDS = frozenset(("and", "和", "与", "及", "、"))
"""Words that join a second answer to the first."""
ALLOWED_SIGNS = frozenset("\"'“”‘’`*_:：.。!！=＝「」『』《》")
"""Signs that do not separate answers."""


def states_answer(sentence: str, target: str, question: str) -> bool:
    """Return whether a sentence states the right answer of a question, and nothing else."""
    if len(sentence) > LONGEST_SENTENCE:
        return False
    words, target_words = _split(sentence), _split(target)
    question_words = _split(question)
    places = _find_places(words, target_words)
    if len(places) != 1 or _find_places(question_words, target_words):
        return False
    before, after = words[: places[0]], words[places[0] + len(target_words) :]
    if (before and before[0] in ASKING_WORDS) or _is_listed(before, after):
        return False
    remaining_words = [*before, *after]
    if _has_second_sentence(remaining_words):
        return False
    if parse_number(target) is not None and any(map(parse_number, remaining_words)):
        return False
    known_words = CONNECTING_WORDS.union(question_words) - DENYING_WORDS
    return all(
        word in ALLOWED_SIGNS or (word in known_words and (word[0].isalnum() or word == "'s"))
        for word in remaining_words
    )


def _split(text: str) -> list[str]:
    """Return the words and signs of a text in one case and width."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    words = _TOKEN.findall(plain)
    while words and words[-1] in ALLOWED_SIGNS:
        words.pop()
    return words


def _find_places(words: Sequence[str], part: Sequence[str]) -> list[int]:
    """Return where the words of `part` follow each other in `words`."""
    if not part:
        return []
    return [
        start
        for start in range(len(words) - len(part) + 1)
        if all(map(_is_same_word, words[start : start + len(part)], part))
    ]


def _is_same_word(word: str, target_word: str) -> bool:
    if word == target_word:
        return True
    number, target_number = parse_number(word), parse_number(target_word)
    if number is None or target_number is None:
        return False
    return is_same_number(number, target_number)


def _is_listed(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether another answer is joined to the answer: ``Au and Ag``."""
    neighbours = {*before[-1:], *after[:1]}
    return bool(neighbours & LISTING_WORDS)


def _has_second_sentence(words: Sequence[str]) -> bool:
    """Whether a full stop is inside the text: ``It is not. Au``."""
    return any(word in ".。!！" for word in words if len(word) == 1)
