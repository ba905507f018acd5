"""Kinds of answer: how an answer of each is read, recognised on its own, and compared.

`Choice` (a label or an option's text), `Number`, `Verdict` (yes or no, true or false, valid or
not), `Brackets`, `Words` (a list of words in order) and `Text`. Values come back in one spelling:
comparing them with a target is comparing normal forms.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from keju.answers.endings import (
    last_count,
    last_sentences,
    last_verdict,
    last_words,
    without_stub,
)
from keju.answers.labels import bare_label, read_label
from keju.answers.negation import FINAL, LINK, counts_as_second, strength_of
from keju.answers.numbers import (
    NUMBER_WORDS,
    comparable,
    leading_number,
    number_of,
    numbers_in,
    plain_numerals,
    same_number,
)
from keju.answers.plain import plainly_stated
from keju.answers.segments import (
    AMBIGUOUS,
    DRESSING,
    NO_ANSWER,
    NO_LABEL,
    Statement,
    clean_segment,
    unwrap_latex,
    without_lead,
)
from keju.types import Sample

LONGEST_LAST_LINE = 200
"""Characters of a last line that may be a text's answer on its own."""


class Kind(ABC):
    """One kind of answer."""

    marker: re.Pattern[str] | None = None
    """What announces an answer of this kind and of no other."""
    plain: re.Pattern[str] | None = None
    """How a value stands right after a strict marker, for the answer to count as a strict one."""
    paragraph = False
    """Whether an answer may go on over several lines."""
    equations = False
    """Whether an answer may stand after ``=``, or after ``the number of … is``."""
    closed = True
    """Whether a text that is no answer of this kind can be told from one that is."""
    listed = False
    """Whether a reply may list the possible answers line by line without giving one."""
    many = False
    """Whether there are more than two possible answers."""

    nothing = "no_marker"
    """The reason of a reply in which nothing is announced."""

    @abstractmethod
    def read(self, segment: str, sample: Sample) -> Statement:
        """What a segment after a marker states."""

    @abstractmethod
    def whole(self, text: str, sample: Sample) -> str | None:
        """The answer of a line or a reply that is nothing but an answer; None for any other."""

    def leading(self, sentence: str, sample: Sample) -> str | None:
        """The answer of a first sentence that is nothing else, perhaps with its reason."""
        return self.whole(sentence, sample)

    def plainly(self, text: str, sample: Sample) -> Statement:
        """The answer that a text names without announcing it, by rules of this kind."""
        return NO_ANSWER

    def same(self, value: str, target: str) -> bool:
        """Whether a value that was read is a target."""
        return value == target


class Choice(Kind):
    """A label of the row, alone or with its option's text, or an option's text."""

    plain: re.Pattern[str] | None = re.compile(r" ?[(\[（]?([A-Z])")
    """``(B``, `` B``: undecorated; not ``**B``, ``$B``."""
    listed = many = True

    def read(self, segment: str, sample: Sample) -> Statement:
        statement = read_label(segment, sample.labels, sample.choices, letter_counts=True)
        if statement != NO_LABEL:
            return statement
        label = bare_label(segment, sample.labels, sample.choices)
        return Statement(label) if label else statement

    def whole(self, text: str, sample: Sample) -> str | None:
        return bare_label(text, sample.labels, sample.choices)

    def leading(self, sentence: str, sample: Sample) -> str | None:
        if reasoned := _WITH_REASON.match(sentence):
            return reasoned[1] if reasoned[1] in sample.labels else None
        return self.whole(sentence, sample)

    def plainly(self, text: str, sample: Sample) -> Statement:
        return plainly_stated(text, sample)


# A label and its reason: `D。因为`, `B: since`, `**C** — because`.
_WITH_REASON = re.compile(
    r"\W{0,4}([A-Z])[)\]*]{0,3}\s?(?:[.。:：,，、;—–-]\W{0,4})?"
    r"(?:because|since|the reason|reason|explanation|因为|由于|理由|解析|原因)",
    re.IGNORECASE,
)


SOLVED = re.compile(r"####(?<![^\n]####)(?!#)")
"""The end of a worked solution, ``#### 90``; not the heading of a deeper level."""
# `I do not know.`, `Sorry, I cannot answer that question`, `Unknown`; `我不知道`, `无法确定`.
_GIVES_UP = re.compile(
    r"(?:(?:I['’]m |I am )?sorry,? (?:but )?)?(?:(?:I )?(?:really |honestly )?(?:do not"
    r"|don['’]t) know\b.*"
    r"|(?:I have )?no idea\b.*|unknown|n/a|(?:I['’]m |I am )?(?:not sure|unsure)\b.*"
    r"|(?:I )?can(?:not|['’]t)"
    r" (?:answer|say|tell|determine|help|know)\b.*|I am unable to .*"
    r"|there is not enough information\b.*"
    r"|it is (?:impossible|not possible) to (?:say|tell|know|determine)\b.*"
    r"|(?:抱歉|对不起)?[,，]?我?(?:真的)?(?:不知道|不清楚|不确定|无法(?:确定|回答|判断|得知)).*)",
    re.IGNORECASE | re.DOTALL,
)


class Text(Kind):
    """Whatever is announced, or a short last line; numbers compare by value, words in any case."""

    closed = False
    marker = SOLVED

    def read(self, segment: str, sample: Sample) -> Statement:
        bare = clean_segment(segment)
        return Statement(bare) if bare and not self._gives_up(bare, sample) else NO_ANSWER

    def whole(self, text: str, sample: Sample) -> str | None:
        bare = clean_segment(text)
        is_line = 0 < len(bare) <= LONGEST_LAST_LINE and "\n" not in text.strip()
        return bare if is_line and not self._gives_up(bare, sample) else None

    def _gives_up(self, bare: str, sample: Sample) -> bool:
        """Whether a text says that it has no answer, where that is not the right one."""
        said = bare.rpartition(":")[2].strip()
        return _GIVES_UP.fullmatch(said) is not None and not self.same(said, sample.target)

    def same(self, value: str, target: str) -> bool:
        first, second = number_of(value), number_of(target)
        if first is not None and second is not None:
            return same_number(first, second)
        return comparable(value) == comparable(target)


# --- numbers -----------------------------------------------------------------------------------

# `about 5`, `-1,000`, `three` (group 1): a second number after a link.
_SECOND_NUMBER = re.compile(
    rf"(?:about |around )?[+-]?(?:\d[\d,.]*+|((?:{'|'.join(NUMBER_WORDS)})\b))", re.I | re.A
)
# `5 if it rains, otherwise 6`; not `5, or so`.
_OTHER_NUMBER = re.compile(
    r"\b(?:otherwise|else|alternatively|in which case)\b[\s,:]*(?:it is |the answer is )?[+-]?\d",
    re.I | re.A,
)


class Number(Kind):
    """A number in any usual spelling: the one that leads what is announced, or follows its ``=``.

    With `anywhere` also the last clear number of what is announced or of the last line, as it is
    written, and the one after the marker of worked solutions; without it only a line that is
    nothing but a number counts.
    """

    equations = many = True

    def __init__(self, *, anywhere: bool = False) -> None:
        self.anywhere = anywhere
        self.closed = not anywhere
        if anywhere:
            self.marker = SOLVED
            self.nothing = "no_number"

    def read(self, segment: str, sample: Sample) -> Statement:
        bare = _plain_number(segment)
        if bare.isascii() and bare.isdigit():  # the usual case, at once
            return Statement(bare if self.anywhere else bare.lstrip("0") or "0")
        after_sign = bare.rpartition("=")[2].strip(DRESSING)
        for part in (after_sign, bare) if "=" in bare else (bare,):
            part = without_lead(part, bullet=False) if part[:1].isalpha() else part
            number = leading_number(part)
            if number is None:
                continue
            end = number.end
            value = number.plain
            if self.anywhere and number_of(written := part[:end].lstrip("([ ")):
                value = written
            if end == len(part) and (self.anywhere or not number.percent):
                return Statement(value)
            is_share = number.percent and not self.anywhere
            if is_share or not number.clear or _OTHER_NUMBER.search(part, end):
                return AMBIGUOUS
            link = LINK.match(part, end)
            second = _SECOND_NUMBER.match(part, link.end()) if link and link[0] else None
            if link and second:
                strength = strength_of(link[0])
                firm = strength == "either" or (strength == "joined" and not second[1])
                if firm or FINAL.match(part, second.end()):
                    return AMBIGUOUS
            return Statement(value)
        last = _last_number(segment) if self.anywhere else None
        return Statement(last) if last else NO_ANSWER

    def whole(self, text: str, sample: Sample) -> str | None:
        if self.anywhere:
            return None if "\n" in text else _last_number(text)
        if text.isascii() and text.strip().isdigit():
            return text.strip().lstrip("0") or "0"
        bare = _plain_number(text)
        if bare[:1] in ("(", "[") and not bare.endswith((")", "]")):
            return None
        number = leading_number(bare)
        rest = bare[number.end :].strip(" )]") if number else ""
        counted = rest and number and number.clear and len(rest) < 30 and not _FIGURE.search(rest)
        if counted and all(word in sample.text for word in rest.split()):
            rest = ""  # `7 instruments`
        is_all = number and not number.percent and not rest
        return number.plain if number and is_all else None

    def plainly(self, text: str, sample: Sample) -> Statement:
        count = None if self.anywhere else last_count(text)
        return Statement(count) if count else NO_ANSWER

    def same(self, value: str, target: str) -> bool:
        if value == target:
            return True
        first, second = number_of(value), number_of(target)
        return first is not None and second is not None and same_number(first, second)


_FIGURE = re.compile(r"[^A-Za-z ]")


def _plain_number(segment: str) -> str:
    """The cleaned segment with ASCII digits, minus signs and thousands commas."""
    bare = plain_numerals(clean_segment(segment)).replace("\u2013", "-")
    return bare.replace("{,}", ",") if "{" in bare else bare


def _last_number(text: str) -> str | None:
    """The last number of `text` that is clear, as it is written."""
    plain = plain_numerals(text)
    clear = [number for number in numbers_in(plain) if number.clear]
    return plain[clear[-1].start : clear[-1].end] if clear else None


# --- verdicts ----------------------------------------------------------------------------------

# `**?`: the verdict is asked about.
_QUESTION_MARK = re.compile(r"[*_\"'”’]{0,3}\?")
# `. `, `, `, ` — `: what sets a leading verdict off from its reasons.
_SET_OFF = re.compile(r"[*_\"'”’]{0,3}(?:[.,;:!。，：]|\s[-–—]|\s(?:because|since|as)\b)")
# ` longer`: the word after `no`.
_NEXT_WORD = re.compile(r"\s+([A-Za-z’']+)")
_AFTER_NO = frozenset({
    "according", "after", "and", "as", "based", "because", "but", "by", "considering", "due", "for",
    "from", "given", "he", "i", "if", "in", "is", "it", "its", "not", "on", "or", "per", "she",
    "since", "so", "that", "the", "there", "therefore", "these", "they", "this", "though", "under",
    "unless", "versus", "vs", "we", "when", "which", "while", "with", "you", "yes", "otherwise",
    "alternatively", "here", "maybe", "perhaps", "plausible", "implausible",
})  # fmt: skip
"""Words that can follow the verdict ``No``; before any other it counts things: ``no answer``."""


class Verdict(Kind):
    """A closed set of words, each standing for a value; only a leading word counts."""

    listed = True

    def __init__(
        self,
        values: Mapping[str, str],
        lead: str = "",
        *,
        equations: bool = False,
        phrases: Mapping[str, str] | None = None,
    ) -> None:
        """With `equations` the value after the last ``=`` counts.

        `phrases` are patterns that say a value without its word: ``does not follow``.
        """
        self._values = values
        self._phrases = [
            (re.compile(phrase, re.IGNORECASE), value) for phrase, value in (phrases or {}).items()
        ]
        self.equations = equations
        words = "|".join(sorted(values, key=len, reverse=True))
        # `True`, `deductively valid`; not `true-ish`, `validity`.
        word = rf"(?:{lead})?({words})\b(?!-)"
        self._pattern = re.compile(word, re.I | re.A)
        # `yes if it rains, otherwise no`.
        self._alternative = re.compile(
            rf"\b(?:otherwise|else|alternatively)\b[\s,:]*(?:it is |the answer is )?{word}",
            re.I | re.A,
        )

    def read(self, segment: str, sample: Sample) -> Statement:
        """The value of the leading word; two words of different value are ambiguous."""
        if value := self._values.get(segment.removesuffix(".").lower()):  # the usual case, at once
            return Statement(value)
        bare = without_lead(clean_segment(segment))
        if self.equations and "=" in bare:
            bare = bare.rpartition("=")[2].lstrip(DRESSING)
        if bare[:1] in ("(", "[", "{"):
            bare = bare[1:].lstrip(DRESSING)
        match = self._match_at(bare, 0)
        if match is None:
            return NO_ANSWER
        value, end = self._values[match[1].lower()], match.end()
        if end == len(bare):
            return Statement(value)
        if _QUESTION_MARK.match(bare, end):
            return NO_ANSWER
        link = LINK.match(bare, end)
        other = self._match_at(bare, link.end()) if link and link[0] else None
        is_second = link and other and counts_as_second(bare, link[0], other.end(), other.end())
        if other and is_second and self._values[other[1].lower()] != value:
            return AMBIGUOUS
        offered = self._alternative.search(bare, end)
        differs = offered and self._values[offered[1].lower()] != value
        return AMBIGUOUS if differs else Statement(value)

    def _match_at(self, bare: str, position: int) -> re.Match[str] | None:
        """The verdict at `position`, where it is not part of a phrase such as ``no longer``."""
        match = self._pattern.match(bare, position)
        if match is None or match[1].lower() != "no":
            return match
        word = _NEXT_WORD.match(bare, match.end())
        return None if word and word[1].lower() not in _AFTER_NO else match

    def whole(self, text: str, sample: Sample) -> str | None:
        if value := self._values.get(text.strip().lower()):
            return value
        match = self._pattern.fullmatch(clean_segment(text).strip("[]() "))
        return self._values[match[1].lower()] if match else None

    def leading(self, sentence: str, sample: Sample) -> str | None:
        match = self._match_at(sentence, len(sentence) - len(sentence.lstrip(DRESSING)))
        is_set_off = match and _SET_OFF.match(sentence, match.end())
        return self._values[match[1].lower()] if match and is_set_off else None

    def plainly(self, text: str, sample: Sample) -> Statement:
        return last_verdict(
            text, self._pattern, self._values, self._match_at, self._phrases, sample.text
        )

    def same(self, value: str, target: str) -> bool:
        return value.lower() == target.strip().lower()


BOOL = Verdict({"true": "True", "false": "False"}, equations=True)
YES_NO = Verdict(
    {"yes": "Yes", "no": "No"},
    phrases={
        # back at the starting point or not
        r"\b(?:not|never|n[’']t)\b[^,.]{0,30}\b(?:return|back|end up|start|starting point"
        r"|origin)\b": "No",
        r"(?:没有?|不能?|未能?|无法|回不)(?:再|会|能)?(?:回到|在|到)[^,，。]{0,4}(?:起点|原点"
        r"|出发点|原处)": "No",
        r"\b(?:return|returns|back|end up|ends up|ending up|is|are"
        r"|be)\b(?: (?!from)\w+){0,3}? (?:to|at|on|where)\b(?: \w+){0,2}? (?:start|starting"
        r"|origin|started|began)\b": "Yes",
        r"\b(?:steps?|units?|away) from\b[^,.]*\b(?:start\w*|origin|began)\b": "No",
        r"(?<![没不未能])(?:回到了?|在|正好在)[^,，。不]{0,3}(?:起点|原点|出发点|原处)": "Yes",
        # who tells the truth
        r"\b(?:does(?: not|n[’']t) tell|is(?: not|n[’']t) telling) the truth|\bis (?:lying"
        r"|a liar)\b|\b[A-Z]\w+ lies\b|说谎|撒谎|说的?是?假话|没有?说真话|不(?:是)?说真话": "No",
        r"\b(?:tells|(?<!not )(?<!n't )telling) the truth\b|\bis truthful\b|(?<![没不有])(?:说"
        r"|讲)的?(?:是)?(?:真话|实话)": "Yes",
        # what caused what
        r"\b(?:did|does|was|is)(?: not|n[’']t)\b[^,.]{0,30}\b(?:cause|caused|causing"
        r"|intentional\w*|because of)\b|没有(?:导致|造成|引起)|不是[^,，。]{0,12}原因|并非故意"
        r"|不是故意": "No",
        r"(?<!not )\b(?:did (?:\w+ )?cause|caused|was the cause|was intentional"
        r"|acted intentionally)\b|(?<!没有)(?:导致|造成)了": "Yes",
    },
)
PLAUSIBLE = Verdict(
    {"yes": "yes", "no": "no", "plausible": "yes", "implausible": "no", "not plausible": "no"},
    phrases={
        r"不(?:太)?合理|不合逻辑|说不通|讲不通|不可能|不现实": "no",
        r"(?<![不否太])合理|说得通|讲得通": "yes",
        r"\bmakes? no sense|\b(?:does|do)(?: not|n[’']t) make sense|\bis(?: not"
        r"|n[’']t) (?:\w+ )?(?:plausible|possible|realistic)": "no",
        r"\bmakes? (?:perfect )?sense\b": "yes",
    },
)
VALID = Verdict(
    {
        "valid": "valid",
        "invalid": "invalid",
        "not valid": "invalid",
        "not deductively valid": "invalid",
        "not logically valid": "invalid",
    },
    lead=r"(?:deductively|logically)\s[*_]*",
    phrases={
        r"\b(?:does|do|did)(?: not|n[’']t) (?:\w+ ){0,2}(?:follow|hold)\b"
        r"|\bnon sequitur\b": "invalid",
        r"\b(?:is|be|are)(?: not|n[’']t) (?:an? )?(?:\w+ly )?[*_]*valid\b"
        r"|\bcannot be (?:\w+ly )?inferred\b": "invalid",
        r"\bcommits? the fallacy\b|\bis (?:a fallacy|fallacious)\b": "invalid",
        r"(?:不|并非|不是|不具|不能(?:算|说|称))(?:\w{0,6})有效|无效|不成立|(?:不能|无法"
        r"|推不)(?:必然)?(?:推|得)?出": "invalid",
        r"\b(?:conclusion|it) (?:\w+ )?follows (?:\w+ly )?from\b": "valid",
        r"(?<![不无])(?:演绎|逻辑上?)有效|论证是?(?:演绎)?有效|是有效的|(?<!不)(?:能够?"
        r"|可以)推出": "valid",
    },
)


# --- brackets ----------------------------------------------------------------------------------

_SEPARATORS = DRESSING + ","
# `] ) >`, `**)}**`: brackets with what only separates them.
_BRACKET_RUN = re.compile(rf"[{re.escape('()[]{}<>' + _SEPARATORS)}]*+")
_NOT_BRACKETS = {ord(separator): None for separator in _SEPARATORS}
# `$\boxed{`, `\texttt {`.
_WRAPPER = re.compile(r"[\s$*]*+\\(?:boxed|fbox|text|texttt|mathrm|mathtt|textbf|mathbf)\s?\{")
# `\(`, `**\[`: a mathematical delimiter, not a bracket of the answer.
_DELIMITER = re.compile(r"[\s*]*+\\([(\[])")
# `, or `: a second run of brackets is offered.
_ANOTHER_RUN = re.compile(r"[\s,;|]*+(?:or|vs|versus|alternatively|otherwise)\b", re.IGNORECASE)
# What says that the rest follows: `so you need `, `append`, `补上:`.
_NEEDED = re.compile(
    r"\b(?:needs?|add|append|clos(?:e|es|ed|ing)|missing|remaining|complet\w+|requires?|end with"
    r"|ends with)\b"
    r"|补[上全齐]|添加|加上|闭合|缺少?|需要|剩余",
    re.IGNORECASE,
)
# `)]`, "`] }`", `")", "]"`: closing brackets that no word touches.
_CLOSING_RUN = re.compile(
    r"(?<![\w(\[{<)\]}>])[)\]}>](?:[\s,、，\"'`“”]*(?:and\s+)?[\"'`“”]?[)\]}>])*(?![\w(\[{<])"
)
_DEEPEST = 4
"""Wrappers around brackets that are peeled off; nobody means more."""


class Brackets(Kind):
    """A run of brackets, written with single spaces.

    `opened` gives the brackets of the question, which a reply may repeat before its answer.
    """

    def __init__(self, opened: Callable[[Sample], str]) -> None:
        self._opened = opened

    def read(self, segment: str, sample: Sample) -> Statement:
        """The brackets that `segment` begins with; only words may follow them."""
        segment = without_lead(segment.removeprefix("- "), bullet=False)
        brackets, rest = _leading_brackets(segment)
        if brackets.endswith("(") and rest[:1].isalnum():
            brackets, rest = brackets[:-1], " "
        elif rest and not (rest[0] in " .;:!。，" or not rest[0].isascii()):
            return NO_ANSWER
        if _ANOTHER_RUN.match(rest):
            return AMBIGUOUS
        value = self._closing(brackets, sample)
        return Statement(value) if value else NO_ANSWER

    def whole(self, text: str, sample: Sample) -> str | None:
        brackets, rest = _leading_brackets(text)
        return None if rest.strip(DRESSING + ".。") else self._closing(brackets, sample)

    def _closing(self, brackets: str, sample: Sample) -> str | None:
        return " ".join(brackets.removeprefix(self._opened(sample).replace(" ", ""))) or None

    def plainly(self, text: str, sample: Sample) -> Statement:
        text = without_stub(text).rstrip()
        line = text[text.rfind("\n") + 1 :]
        _, colon, rest = line.replace("：", ":").rpartition(":")
        opened = self._opened(sample)  # only the whole sequence is told from a step on the way
        if colon and rest.strip().startswith(opened) and (value := self.whole(rest, sample)):
            return Statement(value)
        needed = _NEEDED.search(line)
        runs = {
            run[0].translate(_NOT_BRACKETS)
            for run in _CLOSING_RUN.finditer(line, needed.end() if needed else len(line))
        }
        return Statement(" ".join(runs.pop())) if len(runs) == 1 else NO_ANSWER

    def same(self, value: str, target: str) -> bool:
        return value.replace(" ", "") == target.replace(" ", "")


def _leading_brackets(segment: str) -> tuple[str, str]:
    r"""The brackets at the beginning without what separates them, and the rest of the segment.

    ``\(…\)`` and ``\boxed{…}`` are peeled off by hand, since the braces inside need not balance.
    """
    plain = segment
    if "\\" in plain:
        for _ in range(_DEEPEST):
            if opening := _DELIMITER.match(plain):
                closing = "\\)" if opening[1] == "(" else "\\]"
            elif opening := _WRAPPER.match(plain):
                closing = "}"
            else:
                break
            plain = "".join(plain[opening.end() :].rsplit(closing, 1))
        plain = plain.replace("\\langle", "<").replace("\\rangle", ">").replace("\\", "")
    plain = plain.replace(" and ", " ")
    run = _BRACKET_RUN.match(plain)
    end = run.end() if run else 0
    gap = " " if end and (plain[end - 1].isspace() or plain[end - 1] == ",") else ""
    return plain[:end].translate(_NOT_BRACKETS), gap + plain[end:] if plain[end:] else ""


# --- words -------------------------------------------------------------------------------------

# `alpha`, `2.`, `(beta)`: what blanks, commas and semicolons separate.
_TOKEN = re.compile(r"[^\s,;、，；]+")
# What may stand between words to show their order: `alpha < beta`, `alpha -> beta`.
_ORDER_SIGN = re.compile(r"\s*+(?:->|=>|<=?|[→⟶➔➜⇒≤|])\s*+")
# `-`, `•`, `2.`, `(3)`.
_BULLET = re.compile(r"[-–—*•·]|\(?\d+[.)]")
_AROUND_WORD = DRESSING + "[](){}"
# What ends a list of words when more text follows, `.`, ` (`, `, which`; another word alone does
# not.
_SETS_APART = re.compile(
    r"[*_`\"'”’)\]]*+(?:[.:!。，]|\s*+[(—–]|\s*?\n| - "
    r"|[,;]?\s++(?:as|because|since|so|which|where|by|in|this|these|with|after|based)\b)",
    re.IGNORECASE,
)
_MOST = 4
"""A wrong list is kept up to this many times the length of the right one."""


class Words(Kind):
    """A list of words; `wanted` gives those of the question, in lower case and any order."""

    paragraph = True

    def __init__(self, wanted: Callable[[Sample], list[str]]) -> None:
        self._wanted = wanted

    def read(self, segment: str, sample: Sample) -> Statement:
        """The list of words in `segment`; a remark after all the question's words is dropped."""
        wanted = self._wanted(sample)
        segment = _plain_list(segment)
        for part in (segment, without_lead(segment, bullet=False), segment.rpartition(":")[2]):
            if (words := _sorted_words(part, wanted)) is not None:
                return Statement(" ".join(words))
        words = [word for word, _ in _words(segment, wanted, _MOST * len(wanted))]
        if not words or 2 * sum(word in wanted for word in words) < len(words):
            return NO_ANSWER
        return Statement(" ".join(words))

    def whole(self, text: str, sample: Sample) -> str | None:
        wanted = self._wanted(sample)
        words = [word for word, _ in _words(_plain_list(text), wanted, len(wanted) + 1)]
        return " ".join(words) if sorted(words) == sorted(wanted) else None

    def plainly(self, text: str, sample: Sample) -> Statement:
        wanted = self._wanted(sample)
        for sentence in last_sentences(text):
            list_part = _plain_list(sentence.rpartition(":")[2])
            words = [word for word, _ in _words(list_part, wanted, LONGEST_LAST_LINE)]
            if (value := last_words(words, wanted)) and value.split() != wanted:
                return Statement(value)
        for paragraph in reversed(text.split("\n\n")):  # a closing remark may follow the list
            value = self.whole(paragraph, sample) if len(wanted) > 1 else None
            if value and value.split() != wanted:
                return Statement(value)
        return NO_ANSWER

    def same(self, value: str, target: str) -> bool:
        return value.split() == target.lower().split()


def _plain_list(segment: str) -> str:
    """`segment` without LaTeX wrappers and without signs of order between its words."""
    return _ORDER_SIGN.sub(" ", unwrap_latex(segment) if "\\" in segment else segment)


def _sorted_words(segment: str, wanted: list[str]) -> list[str] | None:
    """Exactly the words `wanted`, in the order of `segment`, if it begins with all of them.

    Where each word has its own line, the next line must not be a further item.
    """
    tokens = _words(segment, wanted, len(wanted) + 1)
    words = [word for word, _ in tokens[: len(wanted)]]
    if sorted(words) != sorted(wanted):
        return None
    end = tokens[len(wanted) - 1][1]
    if len(tokens) > len(wanted) and not _SETS_APART.match(segment, end):
        return None
    line_end = segment.find("\n", end)
    if line_end >= 0 and "\n" in segment[:end]:
        first, _, rest = segment[line_end + 1 :].partition("\n")[0].strip().partition(" ")
        bulleted = _BULLET.fullmatch(segment.strip().split(None, 1)[0])
        if _BULLET.fullmatch(first) if bulleted else first and not rest:
            return None
    return words


def _words(segment: str, wanted: list[str], most: int) -> list[tuple[str, int]]:
    """The first `most` words of `segment`, each with where its letters end."""
    words: list[tuple[str, int]] = []
    for token in _TOKEN.finditer(segment):
        word = token[0].strip(_AROUND_WORD).lower()
        end = token.end()
        if word.endswith((".", ":", "!", "。")) and word not in wanted:
            word = word.rstrip(".:!。" + _AROUND_WORD)
            end = token.start() + token[0].lower().rfind(word) + len(word)
        is_bullet = not word or _BULLET.fullmatch(token[0])
        if (is_bullet or word == "and") and word not in wanted:
            continue
        words.append((word, end))
        if len(words) == most:
            break
    return words
