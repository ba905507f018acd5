"""What the last sentence of a reply concludes, where no wording announces an answer.

``So it falls **5.93 m**.``, ``Let me settle this: D.``, ``It is invalid.``, ``所以一共有10只。``
What is denied, hedged or asked about concludes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from keju.answers.labels import labels_of_texts
from keju.answers.numbers import NUMBER_WORDS, numbers_in, plain_numerals
from keju.answers.segments import DRESSING, NO_ANSWER, NO_LABEL, Statement
from keju.types import Sample

SHORT = 200
"""Characters of a sentence that may conclude."""
BRIEF = 400
"""Characters of a reply whose last sentence concludes without saying so."""
CJK = re.compile(r"[\u4e00-\u9fff]")

# The end of a sentence or of a clause that stands for itself; not the point of `B. text`, `3.5`.
_CLAUSE_END = re.compile(
    r"[.!?\n;。；！](?:(?<=[\n;。；！])|(?<!\b[A-Z]\.)(?<!\bvs\.)(?<!\bi\.e\.)(?<!\be\.g\.)"
    r"(?=[*_\"'”’)\]]*(?:\s|\Z))[*_\"'”’)\]]*)"
)
_AROUND = DRESSING + ".。!！,，:：✅✔️✓☑🎯👍🙂😊()（）[]【】"

# `So `, `Thus, `, `i.e. `, `Conclusion: `; `所以`, `因此`, `即`: a conclusion begins.
_CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|then|conclusion|in short|i\.e\.|namely|finally"
    r"|final)"
    r"(?![A-Za-z])|所以|因此|因而|故|综上|可见|即|可知|得出|也就是",
    re.IGNORECASE,
)
# What takes a conclusion back, hedges it, or sets it beside another: `not`, `either`, `if`; `不`.
_UNSURE = re.compile(
    r"\b(?:not|cannot|never|neither|nor|impossible|either|or|if|whether|maybe|perhaps|might|may"
    r"|could"
    r"|unless|between|except|unlike|than|wrong|incorrect|false|eliminat\w*|rul(?:e|es|ed"
    r"|ing) out|without"
    r"|consider(?:ing)?|look(?:ing)? at|first|rather|instead|unclear|unsure|doubt\w*)\b"
    r"|n[’']t\b|[?？]|不|非|无法|或|如果|是否|错|可能|排除|未必|假设",
    re.IGNORECASE,
)
# `, rather than the`, `,而不是`: what follows is set against the answer before.
_CONTRAST = re.compile(
    r"[,，]?\s*(?:而不是|而非|而不|\brather than\b|\binstead of\b|\bnot the\b|\bnot\b)"
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
    said = [clause.strip() for clause in clauses(text[-3 * BRIEF :]) if clause.strip(_AROUND)]
    last = said[: -n - 1 : -1]
    return [] if last and _ANNOUNCES.search(last[0]) else last


# `the answer is `, `Answer:`, `答案是`.
_ANNOUNCES = re.compile(r"nswer(?: is\b|:)|答案[是为:]", re.IGNORECASE)


def is_unsure(clause: str, sample: Sample) -> bool:
    """Whether a clause takes back what it says; words of the question itself do not count."""
    for match in _UNSURE.finditer(clause):
        around = clause[match.start() : match.end() + 3].strip()
        if len(around) < 3 or around not in sample.text:
            return True
    return False


# --- options -------------------------------------------------------------------------------------

# A label that ends a sentence, in brackets or bold (1) or after what leads to it (2):
# `= 20$. **D**`, `so C`, `: D`, `I lean toward A`; `是B`, `那就 E 吧`, `,D`; not `vitamin C`.
_LAST_LABEL = re.compile(
    r"(?:(?:\*\*|(?<!\w)\*{0,2}[(\[])\s?(?:[Oo]ption "
    r"|选项 ?)?([A-Z])\s?(?:选?项)?(?:[)\]]\*{0,2}|\*\*)"
    r"|(?:(?:\b(?:so|is|be|with|on|towards?|guess|pick|choose|say|option|answer|choice"
    r"|therefore|thus"
    r"|hence|then|only)|[:→—–])\s+|[。→是为选即就于到改剩下成]\s?|[:,，]|\A)[\"“「『]?(?:选项 ?)?"
    r"([A-Z])[\"”」』]?(?: ?选?项)?)"
    r"(?:吧|了|呢|无疑|才对|才是正确的)?\Z"
)
# `J it is`, `(E), final answer`, `B is my pick`, `Only B survives`, `D 选项才是我最终的选择`.
_NAMED_SO = re.compile(
    r"(?:\A|[\s(*])([A-Z])[)*]{0,3}(?: it is|,? final answer|,? is (?:it"
    r"|my (?:final )?(?:answer|choice"
    r"|pick|guess))| ?选?项?[^,，]{0,12}才是[^,，]{0,8}(?:选择|答案))\Z"
    r"|\b[Oo]nly (?:option )?[(*]{0,2}([A-Z])[)*]{0,2} (?:survives|remains|fits|works|is left"
    r"|holds)\b"
)


# The `Grade: ` of `Grade: B`.
_ONE_WORD = re.compile(r"[\s*_]*[A-Za-z]+[:：,][\s*_(\[]*")


def last_label(text: str, sample: Sample) -> Statement:
    """The label that ends the last sentence, alone or with its own option's text."""
    said = last_sentences(text, 2)
    if not said or len(said[0]) > 2 * SHORT:
        return NO_LABEL
    sentence = said[0].strip("\"'”’ .。!！✅✔️✓☑")
    if named := _NAMED_SO.search(sentence):
        label = named[1] or named[2]
        return Statement(label) if label in sample.labels else NO_LABEL
    bare = sentence.rstrip("*_ ") if not sentence.endswith("**") else sentence
    for index, label in enumerate(sample.labels):
        own = sample.choices[index].strip(_AROUND)
        folded = bare.casefold().rstrip('*_ )）"”')
        if own and folded.endswith(own.casefold()):
            before = folded[: len(folded) - len(own)].rstrip(' .,:、*_($（)-–—="“')
            if before.endswith(label.casefold()) and not before[-2:-1].isalnum():
                head = before[:-1]
                if labels_of_texts(head, sample.choices):
                    return NO_LABEL
                clause = head[max(map(head.rfind, ",，:：;")) + 1 :]
                return NO_LABEL if is_unsure(clause, sample) else Statement(label)
    ending = _LAST_LABEL.search(bare)
    if ending is None or (label := ending[1] or ending[2]) not in sample.labels:
        return NO_LABEL
    head = bare[: ending.start()]
    clause = head[max(map(head.rfind, ",，:：;")) + 1 :]
    if _ONE_WORD.fullmatch(bare[: ending.start(1) if ending[1] else ending.start(2)]):
        return NO_LABEL
    if is_unsure(clause[-80:], sample) or re.search(r"(?<![A-Za-z0-9])[A-Z][)\]*\s,，、]*\Z", head):
        return NO_LABEL
    if re.search(r"[(\[][A-Z][)\]]|\b[Oo]ptions? [A-Z]\b", clause):
        return NO_LABEL
    texts = labels_of_texts(clause, sample.choices)
    return NO_LABEL if texts and label not in texts else Statement(label)


# The end of `25 %, is my final answer`.
_IS_MY_ANSWER = re.compile(r",? (?:is|would be) (?:my|the) (?:final )?(?:answer|choice|pick)\Z")


def last_text(text: str, sample: Sample) -> Statement:
    """The option whose text ends the last sentence: ``The stapler is mauve.``"""
    said = last_sentences(text)
    if not sample.choices or not said or len(said[0]) > 2 * SHORT:
        return NO_LABEL
    sentence = said[0]
    if contrast := _CONTRAST.search(sentence, 8):
        sentence = sentence[: contrast.start()]
    sentence = _IS_MY_ANSWER.sub("", sentence.strip(_AROUND)).strip(_AROUND)
    is_bold = said[0].rstrip(" .。!✔✅").endswith("**")
    if len(text.strip()) > BRIEF and not (_CONCLUDES.search(sentence) or is_bold):
        return NO_LABEL
    head, clause = _final_clause(sentence)
    labels = labels_of_texts(sentence, sample.choices)
    if labels and len({_plain(label, sample) for label in sample.labels}) < len(sample.labels):
        return NO_LABEL  # two options say the same
    ends = [label for label in labels if _ends_with(sentence, label, sample)]
    starts = len(labels) == 1 and len(last_sentences(text, 2)) == 1
    if len(ends) != 1:
        opens = starts and sentence.casefold().startswith(_plain(labels[0], sample))
        if not opens or is_unsure(sentence[len(_plain(labels[0], sample)) :], sample):
            return NO_LABEL
        return Statement(labels[0])
    (label,) = ends
    own = _plain(label, sample)
    rest = clause[: len(clause) - len(own)] if clause.casefold().endswith(own) else clause
    if _OTHER_LABEL.search(rest):
        return NO_LABEL
    others = [each for each in labels_of_texts(rest, sample.choices) if each != label]
    if others or is_unsure(rest, sample) or (head and _leads_to_two(head, rest)):
        return NO_LABEL
    return Statement(label)


# `, `, `，`, `: `; not the comma of `1,000`.
_COMMA = re.compile(r"[,，:：](?!\d)")


def _final_clause(sentence: str) -> tuple[str, str]:
    """What stands before the last comma of a sentence, and after it."""
    commas = list(_COMMA.finditer(sentence))
    if not commas:
        return "", sentence
    return sentence[: commas[-1].start()], sentence[commas[-1].end() :].strip()


# The end of `C) `, `(C) `: the text of another option's label follows.
_OTHER_LABEL = re.compile(r"(?<![A-Za-z0-9])[A-Z][)\].:、*]{1,3}\s*\Z")


def _leads_to_two(head: str, rest: str) -> bool:
    """Whether the last clause only goes on with a list: ``copper, zinc, or gold``."""
    return bool(re.match(r"(?:or|and)\b|[或和]", rest.strip(), re.IGNORECASE)) and bool(head)


def _plain(label: str, sample: Sample) -> str:
    """An option's text as it stands in a sentence, letter case aside."""
    return sample.choices[sample.labels.index(label)].strip(_AROUND).casefold()


def _ends_with(sentence: str, label: str, sample: Sample) -> bool:
    own = _plain(label, sample)
    folded = sentence.casefold().strip(_AROUND)
    if not own or not folded.endswith(own):
        return False
    before = folded[len(folded) - len(own) - 1 : len(folded) - len(own)]
    return not (
        before.isascii() and own[0].isascii() and (before.isalnum() or (before in "-." and before))
    )


# --- verdicts, numbers, words ---------------------------------------------------------------------

# Before a verdict word: `say `, `is **`, `: `, `→ `, `so `; `即为`.
_LEADS = re.compile(
    r"(?:\A|[:：→>—–,，(（✅✔❌]|\b(?:say|is|be|are|so|therefore|thus|answer|with|indeed|hence"
    r"|verdict)\b"
    r"|[是为即得])[\s*_\"'“:：（(]*\Z",
    re.IGNORECASE,
)


def last_verdict(
    text: str,
    word: re.Pattern[str],
    values: Mapping[str, str],
    at: Callable[[str, int], re.Match[str] | None],
) -> Statement:
    """The one verdict of the last sentence that has one: ``It is invalid.``, ``→ **No**``.

    `at` says whether a word is a verdict where it stands.
    """
    for sentence in last_sentences(text, 2):
        if len(sentence) > 2 * SHORT:
            break
        found = [
            match
            for match in word.finditer(sentence)
            if _stands_alone(sentence, match) and at(sentence, match.start())
        ]
        if not found:
            continue
        last = found[-1]
        given = {values[match[1].lower()] for match in found}
        if len(given) > 1 and not _CONCLUDES.search(sentence[found[-2].end() : last.start()]):
            return NO_ANSWER
        before = sentence[max(0, last.start() - 40) : last.start()]
        clause = before[max(map(before.rfind, ",，:：;→")) + 1 :]
        after = sentence[last.end() :].strip(_AROUND)
        is_end = not after or sentence[last.end() : last.end() + 1] in ",，.。—"
        if not _LEADS.search(before) or _DENIES.search(clause) or _UNSETTLED.search(after):
            return NO_ANSWER
        if not (is_end or _CONCLUDES.search(before)):
            return NO_ANSWER
        return Statement(values[last[1].lower()])
    return NO_ANSWER


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


# `so I have `, `a final count of `, `settle on `, `i.e. `, `total is `; `所以`, `一共有`, `总数是`.
_COUNTS = re.compile(
    r"\b(?:so|therefore|thus|hence|altogether|in all|in total|totals?|sum|count|result"
    r"|settle on|i\.e\."
    r"|comes to|which (?:is|gives|makes|leaves)|leaving|make)\b|所以|因此|一共|总共|总数|合计"
    r"|共|即|结果",
    re.IGNORECASE,
)
_NUMBER_WORD = re.compile(rf"\b({'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)


# Between a Chinese character and the digits beside it.
_BESIDE_DIGITS = re.compile(r"(?<=[\u4e00-\u9fff])(?=[-\d])|(?<=\d)(?=[\u4e00-\u9fff])")


def last_count(text: str) -> str | None:
    """The one number that follows the last word of a conclusion: ``so I have ten vegetables``."""
    for sentence in last_sentences(text, 2):
        plain = _BESIDE_DIGITS.sub(" ", plain_numerals(sentence))
        found = list(_COUNTS.finditer(plain))
        if not found:
            continue
        rest = plain[found[-1].end() :]
        all_numbers = numbers_in(rest)
        numbers = [each.plain for each in all_numbers if each.clear and not each.percent]
        words = [str(NUMBER_WORDS[each.lower()]) for each in _NUMBER_WORD.findall(rest)]
        given = numbers or words
        if len(set(given)) != 1 or len(all_numbers) > len(numbers) or _DENIES.search(rest):
            return None
        return given[0]
    return None


def last_words(words: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The words that end a sentence, if they are those of the question, in whatever order."""
    tail = list(words[-len(wanted) :]) if wanted else []
    before = words[-len(wanted) - 1] if len(words) > len(wanted) else "is"
    is_list = len(tail) > 1 and sorted(tail) == sorted(wanted) and before in _BEFORE_WORDS
    return " ".join(tail) if is_list else None


_BEFORE_WORDS = frozenset({"is", "are", "be", "order", "list", "words", "follows", "then", "as"})
