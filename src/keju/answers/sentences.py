"""Sentences of a reply: their ends, concluding words, and words that retract a conclusion.

This module checks only the form of a sentence. `conclusions` (options) and `verdicts` (all other
kinds) find the answer in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from keju.answers.segments import DRESSING
from keju.types import Sample

SHORT = 200
"""The longest concluding sentence, in characters."""
BRIEF = 400
"""The longest reply, in characters, whose last sentence always counts as a conclusion."""
TAIL = 2400
"""The number of characters at the end of a reply that are searched for a conclusion."""
CJK = re.compile(r"[\u4e00-\u9fff]")


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
_CLAUSE_END = re.compile(
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

# `So `, `Thus, `, `i.e. `, `Based on`, `Considering all`; `所以`, `由此可见`; not `and so are`.
CONCLUDES = re.compile(
    r"\b(?:so(?! (?:is|are|was|were|do|does|did|has|have)\b)|therefore|thus|hence|consequently"
    r"|accordingly|conclusion|conclude[sd]?|in short"
    r"|in summary|i\.e\.|namely|finally"
    r"|final (?:answer|result|choice|verdict|conclusion)|overall(?=,)|ultimately"
    r"|as a result|by elimination"
    r"|this means|that means|this leaves|that leaves)(?![A-Za-z])"
    r"|\A[\s*_#>-]*(?:however|but|yet|还是|不过|但)\b"
    r"|\A[\s*_#>-]*(?:based on|considering|given|after|upon|from|looking at|among|of (?:the|these)"
    r"|out of|since|then|at the end|in this case|with th)\b"
    r"|所以|因此|因而|故|综上|可见|由此|即|可知|得出|也就是|总之|于是|改选|改为",
    re.IGNORECASE,
)
# A part of every English match of `CONCLUDES`, in lower case; quicker to find than a pattern.
_CONCLUDING = (
    "so", "there", "thus", "hence", "conse", "accord", "conclu", "short", "summary", "i.e.",
    "namely", "final", "overall", "ultim", "result", "elimin", "mean", "leaves", "based", "consid",
    "given", "after", "upon", "from", "looking", "among", "of th", "out of", "since", "then",
    "at the end", "in this case", "with th", "however", "but", "yet",
)  # fmt: skip


BEGINS_CONCLUSION = re.compile(
    r"\s*(?:so|therefore|thus|hence|based on|considering|overall|in conclusion|finally)\b"
    r"|\s*(?:因此|所以|综上|故|由此|总之)",
    re.IGNORECASE,
)
"""A sentence that begins as a conclusion: ``So``, ``Therefore,``, ``Based on``; ``因此``."""


@lru_cache(maxsize=64)
def concludes(sentence: str) -> bool:
    """Whether a conclusion begins in a sentence. Cached, since several rules use one sentence."""
    if sentence.isascii() and not any(map(sentence.lower().__contains__, _CONCLUDING)):
        return False
    return CONCLUDES.search(sentence) is not None


# --- retractions -------------------------------------------------------------------------------

UNLESS_FORCED = r"(?! (?:I|we) (?:had|have|must)| forced| pressed)"
"""Excluded words after ``if``: ``if I have to choose`` is not a supposition about the answer."""
# Words that deny a conclusion or leave it open: `not`, `either`, `if`; `不`.
_UNSURE = re.compile(
    rf"\b(?:not|cannot|never|neither|nor|impossible|either|or|if{UNLESS_FORCED}|whether"
    r"|was going to|was about to|tempted|tempting"
    r"|unless|between|except|unlike|than|wrong|incorrect|false|eliminat(?:e|es|ed|ing)|rul(?:e|es"
    r"|ed|ing) out|without"
    r"|consider(?:ing)?|look(?:ing)? at|at first|first (?:thought|glance|guess)|rather|instead"
    r"|unclear|unsure|unlikely"
    r"|improbable|doubt\w*)\b"
    r"|n[’']t\b|[?？]|不(?![过仅但难])|非(?!常)|无法|或|如果|是否|错|排除|未必|假设",
    re.IGNORECASE,
)
# `, rather than the`, `,而不是`: a contrast to the answer before.
CONTRAST = re.compile(
    r"[,，]?\s*(?:而不是|而非|而不|\brather than\b|\binstead of\b|\bnot the\b|\bnot\b)"
    r"|[,，]\s*(?:并?不是|并非|不选)"
)
_WRONG_WORDS = frozenset({"不", "错", "not", "wrong", "incorrect", "false", "except", "非", "n't"})
_SOFT = frozenset(
    {"or", "than", "between", "without", "rather", "instead", "consider", "considering"}
)
# `is`, `was`: the text before the verb does not belong to the answer.
_COPULA = re.compile(r"\b(?:is|are|was|were|be)\b", re.IGNORECASE)
# Signs that a denial is about the answer itself: `the answer is not`, `答案不是`, `不应选`.
_OF_THE_ANSWER = re.compile(r"\banswer\b|答案|选(?!项)", re.IGNORECASE)
_ANSWER = re.compile(r"\banswer\b", re.IGNORECASE)


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
        if _ANSWER.search(clause, match.end()):
            return (
                True  # `I don't believe the answer is`: even if the question contains these words
            )
        if not clause[match.end() :].strip(_BEFORE_OPTION):
            return True  # `The answer is not (`: directly before the option
        around = clause[match.start() : match.end() + 3].strip()
        if len(around) < 3 or around not in sample.text:
            return True
    return False


HEDGES = re.compile(r"\b(?:maybe|perhaps|might|may|could)\b|可能|似乎|好像|貌似", re.IGNORECASE)
"""Words of a possible answer. It counts if there is no other answer."""
# `can't definitively say`, `cannot be determined`, `not enough information`; `无法判断`.
UNDETERMINED = re.compile(
    r"\b(?:can(?:not|['’]t| not)|could(?: not|n['’]t)|unable to|impossible to|not possible to"
    r"|difficult to|hard to|no way to)"
    r" (?:be )?(?:\w+ly )?(?:determined?|known?|decided?|answered|tell|say|sure|concluded?"
    r"|established?|confirm|assess|deduced?|inferred?)\b"
    r"|\b(?:not enough|insufficient|more|without (?:more|further|additional)) (?:information"
    r"|context|data)\b|\b(?:unclear|undetermined|inconclusive|paradox|contradiction)\b"
    r"|\bdepends on\b|无法(?:确定|判断|得知|回答)|不能确定|信息不足",
    re.IGNORECASE,
)
"""Words of a sentence that says that no conclusion is possible."""

# The first words of a sentence that broke off: ` So the`, `\nTherefore,`.
_STUB = re.compile(
    r"(?<=[.!?\n。])\s*(?:(?:[Ss]o|[Tt]hus|[Tt]herefore|[Hh]ence)?,?\s?(?:[Tt]he)?\s?"
    r"(?:correct |final )?(?:answer|option|choice)?)(?: is)?\s*(?:因此|所以|综上)?\Z"
)
# The end of a complete reply.
ENDED = re.compile(r"[.!?。！？)\]}*\"'”’`$✅✔✓吧呢啦~～]\Z")
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
BROKEN_NUMBER = re.compile(r"(?:\\[a-zA-Z]+|\b[a-zA-Z]\b|[^a-zA-Z.]|(?<=\d)\.(?=\d))*\d\.")


# `is B`, `answer: C`, `选D`: a label that ends a reply without a full stop; not `R = P`, `- D`.
_LABEL_END = re.compile(
    r"(?:\b(?:is|be|answer|option|choice|choose|pick|select|with|say|so|thus|hence|therefore|to|and|or)"
    r"|(?i:answer|choice|option|conclusion|verdict|pick|result)[*_]*:"
    r"|[是为选即：→]|\.\.\.|[.,;。，] "
    r"|\A)"
    r"[\s*_:]*[(\[]?[A-Z]\Z"
)
# `= $`, `a subgroup $`: a formula that broke off at its beginning.
_OPEN_FORMULA = re.compile(r"(?:\A|\s)[(\[]?\$\Z")
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
    if line.count("(") > line.count(")") or (end[-1] == "$" and _OPEN_FORMULA.search(line)):
        return False
    tail = text[-TAIL:]
    if tail.count("$$") % 2 or tail.count("\\[") > tail.count("\\]"):
        return False
    if len(text) > BRIEF and text[-BRIEF:].count(text[-_LOOP_LENGTH:]) > _MOST_REPETITIONS:
        return False
    if end[-1] == "." and end[-2:-1].isdigit():
        return BROKEN_NUMBER.fullmatch(line) is None
    return not is_label or _LABEL_END.search(line[-_LOOP_LENGTH:]) is not None


_MOST_REPETITIONS = 3
"""The most repetitions of an ending that are not a loop."""
