"""Sentences of a reply: their ends, concluding words, and words that retract a conclusion.

This module checks only the form of a sentence. `conclusions` (options) and `verdicts` (all other
kinds) find the answer in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.phrases import load_pattern, load_words
from keju.answers.segments import DRESSING
from keju.types import Sample

SHORT = 200
"""The longest concluding sentence, in characters."""
BRIEF = 400
"""The longest reply, in characters, whose last sentence always counts as a conclusion."""
TAIL = 2400
"""The number of characters at the end of a reply that are searched for a conclusion."""
CJK = lazy_pattern(r"[\u4e00-\u9fff]")


def has_chinese(text: str) -> bool:
    """Whether a text contains a Chinese character."""
    return not text.isascii() and _has_chinese(text)


@lru_cache(maxsize=16)
def _has_chinese(text: str) -> bool:
    """Return the same for a text that is not ASCII, cached, since a reader uses it often."""
    return has_wide(text) and CJK.search(text) is not None


_WIDE_BYTES = b"\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xef"


def has_wide(text: str) -> bool:
    """Whether a text contains a character from U+3000 to U+9FFF, or from U+F000 to U+FFFF.

    In UTF-8 only these characters begin with one of eight bytes. Bytes are several times quicker to
    find than a pattern. Most texts that are not ASCII contain only ``’`` or ``×``.
    """
    encoded = text.encode("utf-8", "surrogatepass")
    return any(map(encoded.__contains__, _WIDE_BYTES))


# The end of a sentence, `. `, `。`, a new line; not the point of `B. text`, `3.5`, `vs. `, `Jr. `.
_CLAUSE_END = lazy_pattern(
    r"[.!?\n;。；！？](?:(?<=[\n;。；！？])|(?<!\b[A-Z]\.)(?<!\bvs\.)(?<!\bi\.e\.)(?<!\be\.g\.)"
    r"(?<!\bJr\.)(?<!\bMr\.)(?<!\bDr\.)(?<!\bSt\.)"
    r"(?=[*_\"'”’)\]]*(?:\s|\Z))[*_\"'”’)\]]*)"
)
AROUND = DRESSING + ".。!！,，:：✅✔️✓☑🎯👍🙂😊()（）[]【】"
"""The characters around the words of a sentence."""


def clauses(text: str) -> Iterator[str]:
    """Yield the sentences of a text, in order."""
    start = 0
    for end in _CLAUSE_END.finditer(text):
        yield text[start : end.end()]
        start = end.end()
    yield text[start:]


def find_tail(text: str) -> str:
    """Return the end of a text, from the beginning of a sentence."""
    if len(text) <= TAIL:
        return text
    end = _CLAUSE_END.search(text, len(text) - TAIL)
    return text[end.end() :] if end else ""


def find_last_sentences(text: str, count: int = 1) -> list[str]:
    """Return the last `count` sentences of a text that contain words, the last one first."""
    tail = find_tail(text)
    span = 2 * SHORT * count
    while True:
        begin = max(0, len(tail) - span)
        parts = list(clauses(tail[begin:]))
        last_with_words = [
            part.strip() for part in reversed(parts[1:] if begin else parts) if _has_words(part)
        ]
        if len(last_with_words) >= count or not begin:
            return last_with_words[:count]
        span *= 4


def _has_words(sentence: str) -> bool:
    return bool(sentence.strip(AROUND))


# --- conclusions -------------------------------------------------------------------------------

CONCLUDES = load_pattern("concludes")
_CONCLUDING = load_words("concluding_stems")


BEGINS_CONCLUSION = load_pattern("begins_conclusion")


@lru_cache(maxsize=64)
def concludes(sentence: str) -> bool:
    """Whether a conclusion begins in a sentence. Cached, since several rules use one sentence."""
    if sentence.isascii() and not any(map(sentence.lower().__contains__, _CONCLUDING)):
        return False
    return CONCLUDES.search(sentence) is not None


# `, `, `. `: before the last clause of a line.
_CLAUSES = lazy_pattern(r"[,;:.](?=\s)|[,，;；。：]")
# `at x `, `when $n`: the quantity of a condition.
_CONDITION = lazy_pattern(
    r"\b(?:when|at|where|with|for|let|if|given) [$\\(]*\w{1,3}\s*\Z", re.IGNORECASE
)
# Words that say nothing about a quantity: `所以`, `解得`.
_FUNCTION_WORDS = lazy_pattern(
    r"所以|因此|因为|即|故|则|得到?|解得|可得|求得|代入|于是|由此|又|且|有|为|是|时|当"
)


def last_clause(text: str) -> str:
    """Return the text after the last comma or the end of the last sentence."""
    return _CLAUSES.split(text)[-1]


def is_about_another_quantity(clause: str, sample: Sample) -> bool:
    """Whether words before an equation name a condition, or a quantity the question does not."""
    if clause.isascii():
        return _CONDITION.search(clause) is not None
    words = "".join(CJK.findall(_FUNCTION_WORDS.sub("", clause)))
    return len(words) > 1 and not any(a + b in sample.text for a, b in pairwise(words))


# --- retractions -------------------------------------------------------------------------------

_UNSURE = load_pattern("unsure")
CONTRAST = load_pattern("contrast")
_WRONG_WORDS = frozenset({"不", "错", "not", "wrong", "incorrect", "false", "except", "非", "n't"})
_SOFT = frozenset(
    {"or", "than", "between", "without", "rather", "instead", "consider", "considering"}
)
# `is`, `was`: the text before the verb does not belong to the answer.
_COPULA = lazy_pattern(r"\b(?:is|are|was|were|be)\b", re.IGNORECASE)
# Signs that a denial is about the answer itself: `the answer is not`, `答案不是`, `不应选`.
_OF_THE_ANSWER = lazy_pattern(r"\banswer\b|答案|选(?!项)", re.IGNORECASE)
_ANSWER = lazy_pattern(r"\banswer\b", re.IGNORECASE)


_BEFORE_OPTION = ' ([*_"“'
"""The characters directly before an option."""


def is_unsure(clause: str, sample: Sample) -> bool:
    """Whether a clause denies or retracts its statement. Words of the question do not count."""
    matches = list(_UNSURE.finditer(clause))
    if not matches:
        return False
    wrong_is_right = sample.asks_for_wrong and not _OF_THE_ANSWER.search(clause)
    for match in matches:
        if match[0].lower() in _SOFT and _COPULA.search(clause, match.end()):
            continue  # `the artist or movie name is (D)`
        if wrong_is_right and match[0].casefold() in _WRONG_WORDS:
            continue
        if _is_about_answer(clause, match, sample):
            return True
    return False


def _is_about_answer(clause: str, match: re.Match[str], sample: Sample) -> bool:
    """Whether a retracting word is about the answer, and not only a word of the question."""
    if _ANSWER.search(clause, match.end()):
        return True  # `I don't believe the answer is`: even if the question contains these words
    if not clause[match.end() :].strip(_BEFORE_OPTION):
        return True  # `The answer is not (`: directly before the option
    around = clause[match.start() : match.end() + 3].strip()
    return len(around) < 3 or around not in sample.text


HEDGES = lazy_pattern(r"\b(?:maybe|perhaps|might|may|could)\b|可能|似乎|好像|貌似", re.IGNORECASE)
"""Words of a possible answer. It counts if there is no other answer."""
UNDETERMINED = load_pattern("undetermined")
_PART = load_pattern("part_of_expression")


def is_about_part(sentence: str) -> bool:
    """Whether a sentence is about a part of an expression, and concludes nothing."""
    return _PART.search(sentence) is not None and not concludes(sentence)


_STUB = load_pattern("stub")
# The end of a complete reply.
ENDED = lazy_pattern(r"[.!?。！？)\]}*\"'”’`$✅✔✓吧呢啦~～]\Z")
_LONGEST_STUB = 50
_STUB_ENDS = frozenset("oesrn,此以上")
"""The last characters of a stub, apart from blanks."""


def remove_stub(text: str) -> str:
    """Return `text` without the first words of a sentence that broke off."""
    if text and text[-1] not in _STUB_ENDS and not text[-1].isspace():
        return text
    at = max(0, len(text) - _LONGEST_STUB)
    if not any(map(text[max(0, at - 1) :].__contains__, ".!?\n。")):
        return text  # no sentence ends there, so no stub can follow
    stub = _STUB.search(text, at)
    return text[: stub.start()] if stub else text


# `m = 13.`: an equation without words that broke off after the point of a number.
BROKEN_NUMBER = lazy_pattern(r"(?:\\[a-zA-Z]+|\b[a-zA-Z]\b|[^a-zA-Z.]|(?<=\d)\.(?=\d))*\d\.")


_LABEL_END = load_pattern("label_end")
# `= $`, `a subgroup $`: a formula that broke off at its beginning.
_OPEN_FORMULA = lazy_pattern(r"(?:\A|\s)[(\[]?\$\Z")
_LOOP_LENGTH = 24
"""The length of a repeated ending, in characters."""


def is_ended(text: str) -> bool:
    """Whether a text ends with a sentence, or with a label: ``it is (B).``, ``it is B``.

    An open bracket, an open formula or a loop means that the text was cut off.
    """
    end = text[-8:].rstrip()
    is_label = "A" <= end[-1:] <= "Z"
    if (not is_label and not ENDED.search(end)) or end.endswith("{~"):  # `\mathrm{~`, a unit
        return False
    line = text[-2 * SHORT :].rpartition("\n")[2].strip()
    if _has_open_part(text, line) or _ends_with_loop(text):
        return False
    if end[-1] == "." and end[-2:-1].isdigit():
        return BROKEN_NUMBER.fullmatch(line) is None
    return not is_label or _LABEL_END.search(line[-_LOOP_LENGTH:]) is not None


def _has_open_part(text: str, line: str) -> bool:
    """Whether a bracket is open in the last `line` of a text, or a formula near its end."""
    if line.count("(") > line.count(")") or (line[-1:] == "$" and _OPEN_FORMULA.search(line)):
        return True
    tail = text[-TAIL:]
    return tail.count("$$") % 2 > 0 or tail.count("\\[") > tail.count("\\]")


def _ends_with_loop(text: str) -> bool:
    """Whether a long text repeats its ending."""
    return len(text) > BRIEF and text[-BRIEF:].count(text[-_LOOP_LENGTH:]) > _MOST_REPETITIONS


_MOST_REPETITIONS = 3
"""The most repetitions of an ending that are not a loop."""
