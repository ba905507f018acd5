"""The kinds of answer of BBH: how its robust reader reads them and compares them with targets."""

from __future__ import annotations

import re
from collections.abc import Callable

from keju.answers.edges import OPENING
from keju.answers.kinds import LONGEST_LAST_LINE, Choice, Kind, Number, Verdict
from keju.answers.segments import (
    AMBIGUOUS,
    DRESSING,
    NO_ANSWER,
    Conclusion,
    Statement,
    clean_segment,
    unwrap_latex,
    without_lead,
)
from keju.answers.sentences import last_sentences, without_stub
from keju.answers.verdicts import last_words
from keju.benchmarks.bbh import facts
from keju.benchmarks.bbh.facts import SUBSETS
from keju.types import Sample

# --- labels and numbers -----------------------------------------------------------------------


class Labelled(Choice):
    """A label, where targets are labels in brackets; a few rows have the text of an answer."""

    plain = None

    def read(self, segment: str, sample: Sample) -> Statement:
        if _is_target_text(segment, sample):
            return Statement(sample.target)
        return super().read(segment, sample)

    def whole(self, text: str, sample: Sample) -> str | None:
        return sample.target if _is_target_text(text, sample) else super().whole(text, sample)

    def same(self, value: str, target: str) -> bool:
        return value == target or f"({value})" == target


def _is_target_text(text: str, sample: Sample) -> bool:
    """Whether the target is a text, not a label such as ``(B)``, and `text` is that text."""
    target = sample.target
    if len(target) == 3 and target[0] == "(" and target[2] == ")":
        return False
    return clean_segment(text).casefold() == clean_segment(target).casefold()


class Arithmetic(Number):
    """The value of the question's whole expression."""

    def evaluates(self, equation: str, sample: Sample) -> bool:
        """Not ``(7 * 5 + 6 - 7)``, one bracket of an expression that has two."""
        return _ONE_BRACKET.fullmatch(equation.partition("=")[0].strip()) is None

    def plainly(self, text: str, sample: Sample) -> Conclusion:
        is_whole = self.evaluates(text.strip(), sample)
        return super().plainly(text, sample) if is_whole else Conclusion()


_ONE_BRACKET = re.compile(r"\([^()]*\)")

# --- verdicts ----------------------------------------------------------------------------------

# The whole expression and its value: `not (True and False) is True`.
BOOL = Verdict(
    {"true": "True", "false": "False"},
    equations=True,
    phrases={r"\b(?:it|this|(?:expression|statement|result)) is not true\b(?! that)": "False"},
    sentence=re.compile(r"(?:(?:True|False|and|or|not|[()])\s?)+ is (True|False)", re.IGNORECASE),
)
YES_NO = Verdict(
    {"yes": "Yes", "no": "No"},
    phrases={
        # back at the starting point or not
        r"(?:没有?|不能?|未能?|无法|回不)(?:再|会|能)?(?:回到|在|到)[^,，。]{0,4}(?:起点|原点"
        r"|出发点|原处)": "No",
        r"\b(?:return|returns|returned|back|end up|ends up|ending up|ended up|is|are|be"
        r"|were)\b(?: (?!from)\w+){0,3}? (?:to|at|on|where)\b(?: \w+){0,2}? (?:start|starting"
        r"|origin|original|started|began)\b": ("Yes", "No"),
        r"\b(?:steps?|units?|away) from\b[^,.]*\b(?:start\w*|origin|began)\b": "No",
        r"(?<![没不未能])(?:回到了?|在|正好在)[^,，。不]{0,3}(?:起点|原点|出发点|原处)": "Yes",
        # who tells the truth
        r"\b(?:lying|a liar)\b|\b[A-Z]\w+(?: [-–—]|:)? lies\b|说谎|撒谎|说的?是?假话|没有?说真话"
        r"|不(?:是)?说真话": ("No", "Yes"),
        r"\b(?:tells?|telling|told|speak(?:s|ing)?) the truth\b|\btruthful\b|(?<![没不有])(?:说"
        r"|讲)的?(?:是)?(?:真话|实话)": ("Yes", "No"),
        # what caused what
        r"(?:\bnot|n[’']t)\b[^,.]{0,60}\bbecause of\b"
        r"|(?:\bnot|n[’']t)\b(?:(?!\bbut\b)[^,.;]){0,60}\b(?:intentionally|deliberately"
        r"|on purpose)\b"
        r"|没有(?:导致|造成|引起)|不是[^,，。]{0,12}原因|并非故意|不是故意": "No",
        r"(?<!\bthe )\b(?:caus(?:e|ed|ing)|intentional(?:ly)?|deliberate(?:ly)?|on purpose)\b"
        r"(?! and effect)|\bthe (?:\w+ )?cause\b|\bbecause of\b"
        r"|(?<!没有)(?:导致|造成)了": ("Yes", "No"),
        r"\bunintentional(?:ly)?\b|\b(?:side effect|by-?product|accident(?:al(?:ly)?)?)\b": "No",
    },
)
# `, given all the above premises`.
_PREMISES = r"(?:,? (?:given|from|based on|by) (?:the|these|all the)[a-z ]{0,30} premises?,?)?"
# `The argument, given the premises, is not deductively valid`; `So the sentence is plausible`.
_JUDGEMENT = re.compile(
    rf"{OPENING}{{0,2}}(?:the|this) (?:given |above |whole )?(?:argument|deduction|reasoning"
    rf"|inference|syllogism|sentence|statement|claim|scenario){_PREMISES} is (?:an? )?"
    r"((?:not )?(?:an? )?(?:(?:deductively|logically) )?(?:valid|invalid|plausible|implausible))"
    rf"(?: (?:logical |deductive )?(?:argument|inference|deduction|one|sentence|statement))?"
    rf"{_PREMISES}",
    re.IGNORECASE,
)
PLAUSIBLE = Verdict(
    {"yes": "yes", "no": "no", "plausible": "yes", "implausible": "no", "not plausible": "no"},
    sentence=_JUDGEMENT,
    phrases={
        r"不(?:太)?合理|不合逻辑|说不通|讲不通|不可能|不现实": "no",
        r"(?<![不否太])合理|说得通|讲得通": "yes",
        r"\bmakes? no sense\b|\bnonsens\w+": "no",
        r"\bmakes? (?:perfect |complete |much )?sense\b|\b(?:plausible|possible|realistic"
        r"|believable"
        r"|reasonable|sensible|accurate|likely)\b": ("yes", "no"),
        r"\b(?:implausible|impossible|unrealistic|improbable|inaccurate|nonsensical|unlikely"
        r"|incorrect|illogical)\b": ("no", "yes"),
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
    sentence=_JUDGEMENT,
    phrases={
        r"\b(?:does|do|did)(?: not|n[’']t) (?:\w+ ){0,2}(?:follow|hold)\b"
        r"|\bnon sequitur\b": "invalid",
        r"\bvalid\b": ("valid", "invalid"),
        r"\binvalid\b": ("invalid", "valid"),
        r"\bcannot be (?:\w+ly )?inferred\b": "invalid",
        r"\b(?:argument|inference|deduction|reasoning) (?:\w+ )?fails\b"
        r"|\bcommits? the fallacy\b|\bis (?:a fallacy|fallacious)\b": "invalid",
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
# What says that the rest follows: `so you need `, `append`, `missing:`, `补上:`.
_NEEDED = re.compile(
    r"\b(?:needs?|add|append|missing|remaining|required)\b|补[上全齐]|添加|加上|需要", re.IGNORECASE
)
# `)]`, "`] }`", `")", "]"`: closing brackets that end a sentence, with no opening one before them.
_CLOSING_RUN = re.compile(
    r"[^(\[{<)\]}>\n]*?(?<![\w(\[{<])([)\]}>](?:[\s,、，\"'`“”]*(?:and\s+)?[\"'`“”]?[)\]}>])*)"
    r"[^(\[{<)\]}>\n]*"
)
# `The completed sequence is`, `the full word would be`: a line that gives the whole sequence.
_WHOLE_SEQUENCE = re.compile(
    r"\b(?:complet\w+|correct\w*|final|full|whole|closed|resulting|would be)\b|完整|最终",
    re.IGNORECASE,
)
_LAST_LINES = 8
"""Lines at the end of a reply in which the sequence is looked for."""


def _starts(line: str, opened: str) -> list[int]:
    """Where the brackets of the question begin in a line, after a colon, a quote or a word."""
    at = line.find(opened) if opened else -1
    starts = []
    while at >= 0:
        if line[:at].rstrip(" `\"'*")[-1:] not in tuple("([{<)]}>"):
            starts.append(at)
        at = line.find(opened, at + 1)
    return starts[-1:]


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

    def plainly(self, text: str, sample: Sample) -> Conclusion:
        """The rest of a whole sequence, or the closing brackets that the last line asks to add.

        Looked at: Llama-3.2-3B-Instruct, code-davinci-002, written replies. Closing brackets after
        an opening one are a step on the way: none of 15 such replies of Llama-3.2-3B-Instruct was
        right.
        """
        text = without_stub(text).rstrip()
        lines = [line for line in text.split("\n")[-_LAST_LINES:] if line.strip()]
        opened = self._opened(sample)  # only the whole sequence is told from a step on the way
        for number, line in enumerate(reversed(lines)):
            if number > 1 and not _WHOLE_SEQUENCE.search(line):
                continue
            for start in _starts(line, opened):
                if (value := self.read(line[start:], sample).value) and value != opened:
                    return Conclusion(value, rule="sequence", passage=line)
        line = lines[-1] if lines else ""
        needed = _NEEDED.search(line)
        run = _CLOSING_RUN.fullmatch(line, needed.end()) if needed else None
        value = " ".join(run[1].translate(_NOT_BRACKETS).replace("and", "")) if run else ""
        return Conclusion(value, rule="closing_brackets", passage=line) if value else Conclusion()

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
_BETWEEN = 30
"""Characters that may stand between two words of a list."""
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
        wanted, small = self._wanted(sample), text.lower()
        longest = 2 * sum(map(len, wanted)) + _BETWEEN * len(wanted)
        if len(text) > longest or not all(word in small for word in wanted):
            return None
        words = [word for word, _ in _words(_plain_list(text), wanted, len(wanted) + 1)]
        return " ".join(words) if sorted(words) == sorted(wanted) else None

    def plainly(self, text: str, sample: Sample) -> Conclusion:
        """The last list that has nearly all words of the question, in whatever order."""
        wanted = self._wanted(sample)
        for sentence in last_sentences(text):
            if not all(map(sentence.lower().__contains__, wanted)):
                continue
            list_part = _plain_list(sentence.rpartition(":")[2])
            words = [word for word, _ in _words(list_part, wanted, LONGEST_LAST_LINE)]
            value = last_words(words, wanted)
            if value and value.split() != wanted:
                return Conclusion(value, rule="word_list", passage=sentence)
        paragraphs = text.split("\n\n")[-_LAST_PARAGRAPHS:]
        for paragraph in reversed(paragraphs):  # a closing remark may follow the list
            value = self.whole(paragraph, sample) if len(wanted) > 1 else None
            value = value or _itemized(paragraph, wanted)
            if value and value.split() != wanted:
                return Conclusion(value, rule="word_list", passage=paragraph)
        return Conclusion()

    def same(self, value: str, target: str) -> bool:
        return value.split() == target.lower().split()


# `1. Acuity`, `- acuity (noun)`: an item that is one word, perhaps with a remark.
_ITEM = re.compile(
    r"[ \t]*(?:\d+[.)]|[-*•])[ \t]*[\"'*`]*([^\s\"'*`(),]+)[\"'*`]*[ \t]*(?:\([^()]*\))?"
)
_LAST_PARAGRAPHS = 4
"""Paragraphs at the end of a reply in which a list is looked for."""


def _itemized(paragraph: str, wanted: list[str]) -> str | None:
    """The words of a list with one word on each line, if they are nearly those of the question."""
    words = [item[1].lower() for line in paragraph.split("\n") if (item := _ITEM.fullmatch(line))]
    common = set(words) & set(wanted)
    is_list = len(wanted) > 1 and 3 * len(common) >= 2 * max(len(wanted), len(words))
    return " ".join(words) if is_list else None


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


# --- by subset ---------------------------------------------------------------------------------

_KINDS: dict[facts.Kind, Kind] = {
    "choice": Labelled(),
    "bool": BOOL,
    "yes_no": YES_NO,
    "valid": VALID,
    "integer": Number(),
    "brackets": Brackets(lambda sample: sample.text.rpartition("Input: ")[2].strip()),
    "words": Words(lambda sample: sample.text.rpartition("List: ")[2].lower().split()),
}
# sports_understanding asks whether a sentence is plausible and spells yes and no in lower case.
KIND_OF = {name: _KINDS[subset.kind] for name, subset in SUBSETS.items()} | {
    "sports_understanding": PLAUSIBLE,
    "multistep_arithmetic_two": Arithmetic(),
}
