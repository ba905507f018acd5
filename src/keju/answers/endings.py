"""What the last sentence of a reply concludes, where no wording announces an answer.

``So it falls **5.93 m**.``, ``Let me settle this: D.``, ``It is invalid.``, ``所以一共有10只。``
What is denied, hedged or asked about concludes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from keju.answers.numbers import NUMBER_WORDS, numbers_in, plain_numerals
from keju.answers.segments import DRESSING, NO_ANSWER, Statement
from keju.types import Sample

SHORT = 200
"""Characters of a sentence that may conclude."""
SAID = 16
"""Characters of a sentence that stands in the question by no chance."""
BRIEF = 400
"""Characters of a reply whose last sentence concludes without saying so."""
CJK = re.compile(r"[\u4e00-\u9fff]")


def has_chinese(text: str) -> bool:
    """Whether a Chinese character stands in a text."""
    return not text.isascii() and _has_chinese(text)


@lru_cache(maxsize=16)
def _has_chinese(text: str) -> bool:
    """The same of a text with wider signs, which a reader asks several times."""
    return has_wide(text) and CJK.search(text) is not None


_WIDE_BYTES = b"\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xef"


def has_wide(text: str) -> bool:
    """Whether a character from U+3000 to U+9FFF, or from U+F000 to U+FFFF, stands in a text.

    UTF-8 begins them, and nothing else, with one of eight bytes, which are found several times as
    quickly as a pattern is: most texts with wider signs have only ``’`` or ``×``.
    """
    encoded = text.encode("utf-8", "surrogatepass")
    return any(map(encoded.__contains__, _WIDE_BYTES))


# The end of a sentence or of a clause that stands for itself; not the point of `B. text`, `3.5`.
_CLAUSE_END = re.compile(
    r"[.!?\n;。；！](?:(?<=[\n;。；！])|(?<!\b[A-Z]\.)(?<!\bvs\.)(?<!\bi\.e\.)(?<!\be\.g\.)"
    r"(?=[*_\"'”’)\]]*(?:\s|\Z))[*_\"'”’)\]]*)"
)
_AROUND = DRESSING + ".。!！,，:：✅✔️✓☑🎯👍🙂😊()（）[]【】"

# `So `, `Thus, `, `i.e. `, `Conclusion: `; `所以`, `因此`, `即`: a conclusion begins.
CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|then|conclusion|in short|i\.e\.|namely|finally"
    r"|final)"
    r"(?![A-Za-z])|所以|因此|因而|故|综上|可见|即|可知|得出|也就是",
    re.IGNORECASE,
)
# A part of every English match of it, in small letters; quicker to find than a pattern.
_CONCLUDING = (
    "so", "therefore", "thus", "hence", "consequently", "then", "conclusion", "in short", "i.e.",
    "namely", "final",
)  # fmt: skip


def concludes(sentence: str) -> bool:
    """Whether a conclusion begins in a sentence."""
    if sentence.isascii() and not any(map(sentence.lower().__contains__, _CONCLUDING)):
        return False
    return CONCLUDES.search(sentence) is not None


# What takes a conclusion back, hedges it, or sets it beside another: `not`, `either`, `if`; `不`.
_UNSURE = re.compile(
    r"\b(?:not|cannot|never|neither|nor|impossible|either|or|if|whether"
    r"|was going to|was about to|tempted|tempting"
    r"|unless|between|except|unlike|than|wrong|incorrect|false|eliminat(?:e|es|ed|ing)|rul(?:e|es"
    r"|ed"
    r"|ing) out|without"
    r"|consider(?:ing)?|look(?:ing)? at|first|rather|instead|unclear|unsure|unlikely"
    r"|improbable|doubt\w*)\b"
    r"|n[’']t\b|[?？]|不|非|无法|或|如果|是否|错|排除|未必|假设",
    re.IGNORECASE,
)
# `, rather than the`, `,而不是`: what follows is set against the answer before.
CONTRAST = re.compile(
    r"[,，]?\s*(?:而不是|而非|而不|\brather than\b|\binstead of\b|\bnot the\b|\bnot\b)"
    r"|[,，]\s*(?:并?不是|并非|不选)"
)


def clauses(text: str) -> Iterator[str]:
    """The clauses of a text, in order."""
    start = 0
    for end in _CLAUSE_END.finditer(text):
        yield text[start : end.end()]
        start = end.end()
    yield text[start:]


def last_sentences(text: str, n: int = 1) -> list[str]:
    """The last `n` clauses of a text that say anything, the last one first.

    None where one of them announces an answer, which is then no plain one.
    """
    last = _last_clauses(text[-BRIEF:], n) if n == 1 and len(text) > BRIEF else None
    if last is None:
        last = _last_clauses(text[-3 * BRIEF :], n, whole=True) or []
    return [] if last and _ANNOUNCES.search(last[0]) else last


def _last_clauses(text: str, n: int, *, whole: bool = False) -> list[str] | None:
    """The last `n` clauses that say anything; None where one may begin before the text."""
    first, *others = clauses(text)
    last: list[str] = []
    for clause in reversed([first, *others] if whole else others[1:]):
        if clause.strip(_AROUND):
            last.append(clause.strip())
        if len(last) == n:
            return last
    return last if whole else None


# `the answer is `, `Answer:`, `答案是`.
_ANNOUNCES = re.compile(r"nswer(?: is\b|:)|答案[是为:]", re.IGNORECASE)


HEDGES = re.compile(r"\b(?:maybe|perhaps|might|may|could)\b|可能", re.IGNORECASE)
"""What makes of an answer one that could be: it counts where there is no other."""
ASKS_WRONG = re.compile(
    r"\b(?:NOT|EXCEPT|LEAST)\b|\b(?:incorrect|false|except|not (?:true|correct))\b"
    r"|不正确|错误|不属于|不符合|不是|不包括|有误|不恰当|不可能|不能|不合|不当|不准确|不一致"
    r"|除了|无关|不宜"
)
"""The question asks for the option that is wrong: ``NOT``, ``EXCEPT``; ``不正确的是``."""
_WRONG_WORDS = frozenset({"不", "错", "not", "wrong", "incorrect", "false", "except", "非"})


# What denies or doubts the answer itself: `the answer is not`, `答案不是`, `不应选`.
_OF_THE_ANSWER = re.compile(r"\banswer\b|答案|选", re.IGNORECASE)


_ANSWER = re.compile(r"\banswer\b", re.IGNORECASE)


def is_unsure(clause: str, sample: Sample) -> bool:
    """Whether a clause takes back what it says; words of the question itself do not count."""
    found = list(_UNSURE.finditer(clause))
    if not found:
        return False
    wrong_is_right = ASKS_WRONG.search(sample.text) and not _OF_THE_ANSWER.search(clause)
    for match in found:
        if wrong_is_right and match[0].casefold() in _WRONG_WORDS:
            continue
        if _ANSWER.search(clause, match.end()):
            return True  # `I don't believe the answer is`: whatever the question's own words are
        around = clause[match.start() : match.end() + 3].strip()
        if len(around) < 3 or around not in sample.text:
            return True
    return False


# --- verdicts, numbers, words ---------------------------------------------------------------------

# Before a verdict word: `say `, `is **`, `: `, `→ `, `so `; `即为`.
_LEADS = re.compile(
    r"(?:\A|[:：→>—–,，(（✅✔❌]|['’]s\b|\bi\.e\.,?|\b(?:namely|get|got|gives?|yields?|say|is|be"
    r"|are|so|therefore|thus|answer|with|indeed|hence"
    r"|verdict)\b"
    r"|[是为即得答假真])[\s*_`\"'“:：（(]*\Z",
    re.IGNORECASE,
)


def last_verdict(
    text: str,
    word: re.Pattern[str],
    values: Mapping[str, str],
    at: Callable[[str, int], re.Match[str] | None],
    phrases: Sequence[tuple[re.Pattern[str], str]] = (),
    question: str = "",
) -> Statement:
    """The one verdict of the last sentence that has one: ``It is invalid.``, ``→ **No**``.

    `at` says whether a word is a verdict where it stands; `phrases` say one without its word. A
    sentence that only supposes is passed over; farther back only a conclusion counts.
    """
    if text.rstrip("*_ \n").endswith((":", "：")):
        return NO_ANSWER  # what it announces never came
    text = without_stub(text).rstrip()
    ended = ENDED.search(text) is not None
    asked = _asked(question)
    sentences = last_sentences(text, 12)
    for number, sentence in enumerate(sentences):
        if len(sentence) > 2 * SHORT or (number and not ended):
            break
        if number > 1 and not concludes(sentence):
            continue
        if sentence.endswith(("?", "？")) or _SUPPOSED.search(sentence):
            continue
        if len(sentence) > SAID and sentence in question:
            continue  # the question once more
        about_it = not asked or any(name in sentence for name in asked)
        hedged = HEDGED.search(sentence)
        value = _phrase(sentence, phrases, ended=ended) if about_it and not hedged else None
        if value:
            return Statement(value)
        found = [
            match
            for match in word.finditer(sentence)
            if _stands_alone(sentence, match) and at(sentence, match.start())
        ]
        if not found:
            continue
        statement = _verdict_of(sentence, found, values)
        if not hedged:
            return statement
        said = {values[match[1].lower()] for match in word.finditer(text)}
        if len(said) == 1 and len(text) <= BRIEF:
            return statement  # what could be counts where it is all that is said
    return _of_the_asked(sentences, asked, phrases)


def _verdict_of(
    sentence: str, found: Sequence[re.Match[str]], values: Mapping[str, str]
) -> Statement:
    """The verdict that a sentence ends with, or concludes, of those that it names."""
    last = found[-1]
    given = {values[match[1].lower()] for match in found}
    if len(given) > 1 and not concludes(sentence[found[-2].end() : last.start()]):
        return NO_ANSWER
    before = sentence[max(0, last.start() - 40) : last.start()]
    clause = before[max(map(before.rfind, ",，:：;→")) + 1 :]
    after = sentence[last.end() :].strip(_AROUND)
    is_end = not after or _GOES_ON.match(sentence, last.end())
    if not _LEADS.search(before) or _DENIES.search(clause) or _UNSETTLED.search(after):
        return NO_ANSWER
    is_conclusion = is_end or concludes(before)
    return Statement(values[last[1].lower()]) if is_conclusion else NO_ANSWER


def _of_the_asked(
    sentences: Sequence[str], asked: set[str], phrases: Sequence[tuple[re.Pattern[str], str]]
) -> Statement:
    """What all sentences say that begin with the one name that is asked about: ``Amy is lying.``"""
    name = next(iter(asked)) if len(asked) == 1 else ""
    said = {
        _phrase(sentence, phrases, ended=True)
        for sentence in sentences
        if name and sentence.startswith(f"{name} ") and not _REPORTS.search(sentence)
    }
    value = said.pop() if len(said) == 1 else None
    return Statement(value) if value else NO_ANSWER


# `Amy says that`, `if`: what a sentence reports or supposes it does not say.
_REPORTS = re.compile(r"\b(?:says?|said|claims?|if|whether)\b|[?？]", re.IGNORECASE)
# `, which`, ` here.`, ` as the value`: after a verdict that stands.
_GOES_ON = re.compile(
    r"[*_`\"'”’)]*(?:[,，.。—:：;]|\s(?:here|as|because|since|for|overall|in (?:this|the) \w+"
    r"|then)\b)"
)
# `If `, `Some say `; `如果`: a sentence that says what could be, or what others say.
_SUPPOSED = re.compile(
    r"\A\W*(?:if(?! I (?:have|had|must))|unless|suppose|assuming|some|others|one might|people)\b"
    r"|\A\W*(?:如果|假如|若|假设|所谓)",
    re.IGNORECASE,
)
HEDGED = re.compile(r"\b(?:may|might|could) (?:still |well |also )?be\b|(?<!不)可能", re.IGNORECASE)
"""An answer that may be one, ``it may be True``: it counts where nothing else is said."""
# The beginning of a sentence that broke off before it said anything: ` So the`, `\nTherefore,`.
_STUB = re.compile(
    r"(?<=[.!?\n。])\s*(?:(?:[Ss]o|[Tt]hus|[Tt]herefore|[Hh]ence)?,?\s?(?:[Tt]he)?\s?"
    r"(?:correct |final )?(?:answer|option|choice)?)(?: is)?\s*(?:因此|所以|综上)?\Z"
)


# What ends a reply that was not broken off, and a name in the middle of a sentence.
ENDED = re.compile(r"[.!?。！？)\]}*\"'”’`$✅✔✓吧呢啦]\Z")
_NAME = re.compile(r"(?<=[a-z] )[A-Z][a-z]+")


_LONGEST_STUB = 50
_STUB_ENDS = frozenset("oesrn,此以上")
"""What a stub may end with, blanks aside."""


def without_stub(text: str) -> str:
    """`text` without the beginning of a sentence that broke off before it said anything."""
    if text and text[-1] not in _STUB_ENDS and not text[-1].isspace():
        return text
    at = max(0, len(text) - _LONGEST_STUB)
    if not any(map(text[max(0, at - 1) :].__contains__, ".!?\n。")):
        return text  # no sentence ends there, after which one could begin
    stub = _STUB.search(text, at)
    return text[: stub.start()] if stub else text


def _phrase(
    sentence: str, phrases: Sequence[tuple[re.Pattern[str], str]], *, ended: bool
) -> str | None:
    """The value of the phrase that comes last in a sentence; of two at one place the longer.

    A sentence that did not end must end with it.
    """
    found = [
        (match.end(), -match.start(), value)
        for pattern, value in phrases
        for match in pattern.finditer(sentence)
        if not _ASKED.search(sentence[max(0, match.start() - 30) : match.start()])
        and not _SAID_BY.search(sentence, 0, match.start())
    ]
    return max(found)[2] if found and (ended or max(found)[0] == len(sentence)) else None


def phrase_of(
    segment: str, phrases: Sequence[tuple[re.Pattern[str], str]], question: str
) -> str | None:
    """What an announced sentence says in a phrase: ``the answer is: Amy tells the truth.``"""
    first = next(clauses(segment)).strip()
    if len(first) > SHORT or _REPORTS.search(first) or _DENIED.search(first):
        return None
    asked = _asked(question)
    if asked and not any(name in first for name in asked):
        return None
    return _phrase(first, phrases, ended=True)


# `not that`, `one who should`: what an announcement denies or only says of somebody.
_DENIED = re.compile(
    r"\A\W*(?:not|unknown|unclear)\b|\b(?:should|would|could|can|might|who|that)\b", re.IGNORECASE
)


def _asked(question: str) -> set[str]:
    """The names in the last sentence of a question."""
    return set(_NAME.findall(question[question.rfind(".", 0, len(question) - 2) :]))


# `Bob says `, before what is only reported: `Bob says Amy lies`.
_SAID_BY = re.compile(r"\b(?:says?|said|claims?|claimed|states?)\b(?: that)?(?: [A-Z]\w+)?\s?\Z")
_ASKED = re.compile(r"\b(?:whether|if|neither|nor|or)\b[^,]*\Z|是否|或", re.IGNORECASE)


# `not`, `cannot be called`, `whether it`: what stands before a verdict takes it back.
_DENIES = re.compile(
    r"\b(?:not|cannot|never|whether|if|or|neither|nor|why|either|others?|some|seems?"
    r"|appears?)\b|n[’']t\b"
    r"|不|非|是否|或|如果",
    re.IGNORECASE,
)


_UNSETTLED = re.compile(r"\b(?:if|unless|or|otherwise)\b|[?？]|如果|否则", re.IGNORECASE)


def _stands_alone(sentence: str, match: re.Match[str]) -> bool:
    before, after = sentence[match.start() - 1 : match.start()], sentence[match.end() :][:1]
    return not (before.isalnum() and before.isascii()) and not (after.isalnum() and after.isascii())


# `it may be `, `perhaps `; `大概是`: of what a guess says there may be no other number.
_GUESSES = (
    r"\b(?:(?:it|this|that|there) (?:may|might|could|should|must)(?: well)? be|perhaps|maybe"
    r"|probably)\b|可能[是有]|大概[是有]?"
)
_GUESS = re.compile(_GUESSES, re.IGNORECASE)
# `so I have `, `a final count of `, `settle on `, `i.e. `, `total is `; `所以`, `一共有`, `总数是`.
_COUNTS = re.compile(
    r"\b(?:so|therefore|thus|hence|altogether|in all|in total|totals?|sum|count|result"
    r"|settle on|i\.e\."
    r"|comes to|which (?:is|gives|makes|leaves)|leaving|makes?|values?|equals|evaluates to"
    r"|there are"
    r"|(?:you|I|we) (?:have|get|count)|giving|number|expression)\b"
    rf"|{_GUESSES}|所以|因此|一共|总共|总数|合计|共|即|结果|等于|值[为是]|总计|答",
    re.IGNORECASE,
)
_COUNTS_OR_EQUALS = re.compile(rf"{_COUNTS.pattern}|=", re.IGNORECASE)
_NUMBER_WORD = re.compile(rf"\b({'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)


# Between a Chinese character and the digits beside it.
_BESIDE_DIGITS = re.compile(r"(?<=[\u4e00-\u9fff])(?=[-\d])|(?<=\d)(?=[\u4e00-\u9fff])")


# `合计: 7`, `等于 2,416`: a number that ends a reply without a full stop; not `There are 24`.
_ENDS_WITH_NUMBER = re.compile(r"[:：=是为有于得共]\s*[*_]*-?\d[\d,]*[*_]*\Z")


def last_count(text: str) -> str | None:
    """The one number that follows the last word of a conclusion: ``so I have ten vegetables``."""
    if text.rstrip("*_ \n").endswith((":", "：")):
        return None
    for number, sentence in enumerate(last_sentences(without_stub(text), 2)):
        if not (ENDED.search(text[-8:].rstrip()) or _ENDS_WITH_NUMBER.search(sentence)):
            return None  # it breaks off
        if sentence.endswith(("?", "？")):
            continue
        plain = _BESIDE_DIGITS.sub(" ", plain_numerals(sentence))
        if plain.count("(") > plain.count(")"):
            return None  # it breaks off inside an expression
        if final := _FINAL_RESULT.search(plain):
            first = next(iter(numbers_in(plain[final.end() :])), None)
            if first and first.clear and not first.percent and first.start < 3:
                return first.plain
        if behind := _IN_TOTAL.search(plain):
            return str(NUMBER_WORDS.get(behind[1].lower(), behind[1]))
        found = list((_COUNTS if number else _COUNTS_OR_EQUALS).finditer(plain))
        for cue in reversed(found):
            rest = plain if _GUESS.fullmatch(cue[0]) else plain[cue.end() :]
            all_numbers = numbers_in(rest)
            numbers = [each.plain for each in all_numbers if each.clear and not each.percent]
            words = [str(NUMBER_WORDS[each.lower()]) for each in _NUMBER_WORD.findall(rest)]
            given = numbers or words
            if not given and not all_numbers:
                continue
            if len(set(given)) != 1 or len(all_numbers) > len(numbers) or _DENIES.search(rest):
                return None
            return given[0]
    return None


# `The final result is 24, and`, up to the number, whatever else is counted then.
_FINAL_RESULT = re.compile(r"\bfinal (?:result|value|count|total|sum) (?:is|=):? ?", re.IGNORECASE)
# `seven in total`, `7 instruments altogether.`
_IN_TOTAL = re.compile(
    rf"(?<![\w.-])(-?\d+|{'|'.join(NUMBER_WORDS)})(?: [a-z]+){{0,3}},? (?:in total|altogether"
    rf"|in all|overall)\W*\Z",
    re.IGNORECASE,
)


def last_words(words: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The words that end a sentence, if they are those of the question, in whatever order."""
    tail = list(words[-len(wanted) :]) if wanted else []
    before = words[-len(wanted) - 1] if len(words) > len(wanted) else "is"
    is_list = len(tail) > 1 and sorted(tail) == sorted(wanted) and before in _BEFORE_WORDS
    return " ".join(tail) if is_list else None


_BEFORE_WORDS = frozenset({"is", "are", "be", "order", "list", "words", "follows", "then", "as"})
