"""The kinds of answers in BBH, for its robust reader: how to read them and compare them."""

from __future__ import annotations

import re
from collections.abc import Callable

from keju.answers.boundaries import OPENING
from keju.answers.kinds import LONGEST_LAST_LINE, AnswerKind, Choice, Number, Verdict
from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.segments import (
    AMBIGUOUS,
    DRESSING,
    NO_ANSWER,
    AnswerStatement,
    Conclusion,
    clean_segment,
    remove_lead,
    unwrap_latex,
)
from keju.answers.sentences import find_last_sentences, remove_stub
from keju.answers.verdicts import find_last_words
from keju.benchmarks.bbh import metadata
from keju.benchmarks.bbh.metadata import SUBSETS
from keju.types import Sample

# --- labels and numbers -----------------------------------------------------------------------


class BracketedLabel(Choice):
    """A label. Targets are labels in brackets, except in a few rows, whose target is a text."""

    plain = None

    def read(self, segment: str, sample: Sample) -> AnswerStatement:
        if _is_target_text(segment, sample):
            return AnswerStatement(sample.target)
        return super().read(segment, sample)

    def whole(self, text: str, sample: Sample) -> str | None:
        return sample.target if _is_target_text(text, sample) else super().whole(text, sample)

    def same(self, value: str, target: str) -> bool:
        return value == target or f"({value})" == target


def _is_target_text(text: str, sample: Sample) -> bool:
    """Whether the target is a text, not a label such as ``(B)``, and `text` equals it."""
    target = sample.target
    if len(target) == 3 and target[0] == "(" and target[2] == ")":
        return False
    return clean_segment(text).casefold() == clean_segment(target).casefold()


class ExpressionValue(Number):
    """The value of the question's full expression."""

    def evaluates(self, equation: str, sample: Sample) -> bool:
        """Reject ``(7 * 5 + 6 - 7)`` and ``4 - 9``, which are parts of the expression."""
        if _ONE_BRACKET.fullmatch(equation.partition("=")[0].strip()):
            return False
        part = re.split(r"[=:.]\s", equation)[-1].replace(" ", "")
        return f"({part})" not in sample.text.replace(" ", "")

    def plainly(self, text: str, sample: Sample) -> Conclusion:
        sentence = next(iter(find_last_sentences(text)), "")
        is_whole = self.evaluates(text.strip(), sample) and (
            "=" not in sentence or self.evaluates(sentence.rpartition("=")[0], sample)
        )
        return super().plainly(text, sample) if is_whole else Conclusion()


_ONE_BRACKET = lazy_pattern(r"\([^()]*\)")

# --- verdicts ----------------------------------------------------------------------------------

# The full expression and its value: `not (True and False) is True`.
BOOL = Verdict(
    {"true": "True", "false": "False"},
    equations=True,
    phrases={r"\b(?:it|this|(?:expression|statement|result)) is not true\b(?! that)": "False"},
    sentence=lazy_pattern(r"(?:(?:True|False|and|or|not|[()])\s?)+ is (True|False)", re.IGNORECASE),
)
YES_NO = Verdict(
    {"yes": "Yes", "no": "No"},
    phrases={
        # whether the path returns to the starting point
        r"(?:没有?|不能?|未能?|无法|回不)(?:再|会|能)?(?:回到|在|到)[^,，。]{0,4}(?:起点|原点"
        r"|出发点|原处)": "No",
        r"\b(?:return|returns|returned|back|end up|ends up|ending up|ended up|is|are|be"
        r"|were)\b(?: (?!from)\w+){0,3}? (?:to|at|on|where)\b(?: \w+){0,2}? (?:start|starting"
        r"|origin|original|started|began)\b": ("Yes", "No"),
        r"\b(?:steps?|units?|away) from\b[^,.]*\b(?:start\w*|origin|began)\b": "No",
        r"\b(?:left|right|north|south|east|west|ahead|behind|front|short) of (?:the |your |where )"
        r"(?:\w+ )?(?:start\w*|origin|began)\b": "No",
        r"(?<![没不未能])(?:回到了?|在|正好在)[^,，。不]{0,3}(?:起点|原点|出发点|原处)": "Yes",
        r"(?:\bnot|n[’']t) (?:\w+ )?\(0, ?0\)": "No",
        r"(?<!start )(?<!begin )(?<!starting )\b(?:at|to|is|are|in) \(0, ?0\)": ("Yes", "No"),
        r"\bdiffers from\b[^,.]*\b(?:start\w*|origin)\b": "No",
        r"\bcoincides with\b[^,.]*\b(?:start\w*|origin)\b"
        r"|\b[Nn]et displacement\b[^,.;]{0,12}(?:\b0|\bzero)\b": "Yes",
        # whether a person tells the truth
        r"\b(?:honest|a truth[- ]teller)\b": ("Yes", "No"),
        r"\bdishonest\b": ("No", "Yes"),
        r"\b(?:doesn[’']t|does not|isn[’']t|is not) (?:lie|lying|a liar)\b": "Yes",
        r"\b(?:lying|a liar)\b|\b[A-Z]\w+ lies\b|说谎|撒谎|说的?是?假话|没有?说真话"
        r"|不(?:是)?说真话": ("No", "Yes"),
        r"\b(?:tells?|telling|told|speak(?:s|ing)?) the truth\b|\btruthful\b|(?<![没不有])(?:说"
        r"|讲)的?(?:是)?(?:真话|实话)": ("Yes", "No"),
        # whether something is the cause
        r"(?:\bnot|n[’']t)\b[^,.:;]{0,60}\bbecause of\b"
        r"|(?:\bnot|n[’']t)\b(?:(?!\bbut\b)[^,.;:]){0,60}\b(?:intentionally|deliberately"
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
_JUDGEMENT = lazy_pattern(
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
        r"\bcannot be (?:\w+ly )?inferred\b|\bnot (?:\w+ly )?entailed\b": "invalid",
        r"\b(?:argument|inference|deduction|reasoning) (?:\w+ )?fails\b"
        r"|\bcommits? the fallacy\b|\bis (?:a fallacy|fallacious)\b": "invalid",
        r"(?:不|并非|不是|不具|不能(?:算|说|称))(?:\w{0,6})有效|无效|不成立|(?:不能|无法"
        r"|推不)(?:必然)?(?:推|得)?出": "invalid",
        r"\b(?:conclusion|it) (?:\w+ )?follows (?:(?:\w+ly )?from\b"
        r"|(?:logically|necessarily|deductively)\b)": "valid",
        r"(?<![不无])(?:演绎|逻辑上?)有效|论证是?(?:演绎)?有效|是有效的|(?<!不)(?:能够?"
        r"|可以)推出": "valid",
    },
)


# --- brackets ----------------------------------------------------------------------------------

_SEPARATORS_OF_BRACKETS = DRESSING + ","
# `] ) >`, `**)}**`: brackets and characters that only separate them.
_BRACKET_RUN = lazy_pattern(rf"[{re.escape('()[]{}<>' + _SEPARATORS_OF_BRACKETS)}]*+")
_NOT_BRACKETS = {ord(separator): None for separator in _SEPARATORS_OF_BRACKETS}
# `$\boxed{`, `\texttt {`.
_WRAPPER = lazy_pattern(r"[\s$*]*+\\(?:boxed|fbox|text|texttt|mathrm|mathtt|textbf|mathbf)\s?\{")
# `\(`, `**\[`: a mathematical delimiter, not a bracket of the answer.
_DELIMITER = lazy_pattern(r"[\s*]*+\\([(\[])")
# `, or `: another run of brackets follows.
_ANOTHER_RUN = lazy_pattern(r"[\s,;|]*+(?:or|vs|versus|alternatively|otherwise)\b", re.IGNORECASE)
# Words that announce the missing brackets: `so you need `, `append`, `补上:`.
_NEEDED = lazy_pattern(r"\b(?:needs?|add|append)\b|补[上全齐]|添加|加上|需要", re.IGNORECASE)
# `)]`, "`] }`", `")", "]"`: closing brackets that end a sentence, without an opening one before.
_CLOSING_RUN = lazy_pattern(
    r"[^(\[{<)\]}>\n]*?(?<![\w(\[{<])([)\]}>](?:[\s,、，\"'`“”]*(?:and\s+)?[\"'`“”]?[)\]}>])*)"
    r"[^(\[{<)\]}>\n]*"
)
# `The completed sequence is`, `the full word would be`: a line that gives the full sequence.
_WHOLE_SEQUENCE = lazy_pattern(
    r"\b(?:complet\w+|correct\w*|final|full|whole|closed|resulting|would be)\b|完整|最终",
    re.IGNORECASE,
)
_LAST_LINES = 8
"""Lines at the end of a reply in which the reader looks for the sequence."""


def _find_starts(line: str, opening_brackets: str) -> list[int]:
    """Return where the question's brackets begin in a line, after a colon, a quote or a word."""
    position = line.find(opening_brackets) if opening_brackets else -1
    starts = []
    while position >= 0:
        if line[:position].rstrip(" `\"'*")[-1:] not in tuple("([{<)]}>"):
            starts.append(position)
        position = line.find(opening_brackets, position + 1)
    return starts[-1:]


_MAX_WRAPPERS = 4
"""Wrappers around brackets that are removed; real replies have fewer."""


class BracketSequence(AnswerKind):
    """A run of brackets, written with single spaces.

    `opening_of` returns the brackets of the question, which a reply may repeat before its answer.
    """

    def __init__(self, opening_of: Callable[[Sample], str]) -> None:
        self._opened = opening_of

    def read(self, segment: str, sample: Sample) -> AnswerStatement:
        """Read the brackets at the beginning of `segment`; only words may follow them."""
        segment = remove_lead(segment.removeprefix("- "), bullet=False)
        brackets, remainder = _split_leading_brackets(segment)
        if brackets.endswith("(") and remainder[:1].isalnum():
            brackets, remainder = brackets[:-1], " "
        elif remainder and not (remainder[0] in " .;:!。，" or not remainder[0].isascii()):
            return NO_ANSWER
        if _ANOTHER_RUN.match(remainder):
            return AMBIGUOUS
        value = self._without_opening(brackets, sample)
        return AnswerStatement(value) if value else NO_ANSWER

    def whole(self, text: str, sample: Sample) -> str | None:
        brackets, remainder = _split_leading_brackets(text)
        return (
            None if remainder.strip(DRESSING + ".。") else self._without_opening(brackets, sample)
        )

    def _without_opening(self, brackets: str, sample: Sample) -> str | None:
        return " ".join(brackets.removeprefix(self._opened(sample).replace(" ", ""))) or None

    def plainly(self, text: str, sample: Sample) -> Conclusion:
        """Return the closing part of a full sequence, or the closing brackets that the last line
        names.

        These rules come from replies of Llama-3.2-3B-Instruct and code-davinci-002, and from
        written ones. Closing brackets after an opening one are an intermediate step: none of 15
        such replies of Llama-3.2-3B-Instruct was right.
        """
        text = remove_stub(text).rstrip()
        lines = [line for line in text.split("\n")[-_LAST_LINES:] if line.strip()]
        # Only the full sequence can be distinguished from an intermediate step.
        opening_brackets = self._opened(sample)
        for number, line in enumerate(reversed(lines)):
            if number > 1 and not _WHOLE_SEQUENCE.search(line):
                continue
            for start in _find_starts(line, opening_brackets):
                if (value := self.read(line[start:], sample).value) and value != opening_brackets:
                    return Conclusion(value, rule="sequence", passage=line)
        line = lines[-1] if lines else ""
        request = _NEEDED.search(line)
        run = _CLOSING_RUN.fullmatch(line, request.end()) if request else None
        value = " ".join(run[1].translate(_NOT_BRACKETS).replace("and", "")) if run else ""
        return Conclusion(value, rule="closing_brackets", passage=line) if value else Conclusion()

    def same(self, value: str, target: str) -> bool:
        return value.replace(" ", "") == target.replace(" ", "")


def _split_leading_brackets(segment: str) -> tuple[str, str]:
    r"""Return the brackets at the beginning without separators, and the rest of the segment.

    Code removes ``\(…\)`` and ``\boxed{…}``, not a pattern, because the braces inside need not
    balance.
    """
    text = segment
    if "\\" in text:
        for _ in range(_MAX_WRAPPERS):
            if opening := _DELIMITER.match(text):
                closing = "\\)" if opening[1] == "(" else "\\]"
            elif opening := _WRAPPER.match(text):
                closing = "}"
            else:
                break
            text = "".join(text[opening.end() :].rsplit(closing, 1))
        text = text.replace("\\langle", "<").replace("\\rangle", ">").replace("\\", "")
    text = text.replace(" and ", " ")
    run = _BRACKET_RUN.match(text)
    end = run.end() if run else 0
    gap = " " if end and (text[end - 1].isspace() or text[end - 1] == ",") else ""
    return text[:end].translate(_NOT_BRACKETS), gap + text[end:] if text[end:] else ""


# --- words -------------------------------------------------------------------------------------

# `alpha`, `2.`, `(beta)`: text between blanks, commas and semicolons.
_TOKEN = lazy_pattern(r"[^\s,;、，；]+")
# Signs between words that show their order: `alpha < beta`, `alpha -> beta`.
_ORDER_SIGN = lazy_pattern(r"\s*+(?:->|=>|<=?|[→⟶➔➜⇒≤|])\s*+")
# `-`, `•`, `2.`, `(3)`.
_BULLET = lazy_pattern(r"[-–—*•·]|\(?\d+[.)]")
_AROUND_WORD = DRESSING + "[](){}"
# The end of a list of words when more text follows: `.`, ` (`, `, which`. Another word alone is not
# an end.
_LIST_END = lazy_pattern(
    r"[*_`\"'”’)\]]*+(?:[.:!。，]|\s*+[(—–]|\s*?\n| - "
    r"|[,;]?\s++(?:as|because|since|so|which|where|by|in|this|these|with|after|based)\b)",
    re.IGNORECASE,
)
_GAP_LENGTH = 30
"""Maximum number of characters between two words of a list."""
_LENGTH_FACTOR = 4
"""A wrong list is kept up to this multiple of the right list's length."""


class WordList(AnswerKind):
    """A list of words; `words_of` returns the question's words in lower case, in any order."""

    paragraph = True

    def __init__(self, words_of: Callable[[Sample], list[str]]) -> None:
        self._words_of = words_of

    def read(self, segment: str, sample: Sample) -> AnswerStatement:
        """Read the list of words in `segment`; drop a remark after all the question's words."""
        question_words = self._words_of(sample)
        segment = _strip_list_markup(segment)
        for part in (segment, remove_lead(segment, bullet=False), segment.rpartition(":")[2]):
            if (words := _match_sorted_words(part, question_words)) is not None:
                return AnswerStatement(" ".join(words))
        words = [
            word
            for word, _ in _tokenize_words(
                segment, question_words, _LENGTH_FACTOR * len(question_words)
            )
        ]
        if not words or 2 * sum(word in question_words for word in words) < len(words):
            return NO_ANSWER
        return AnswerStatement(" ".join(words))

    def whole(self, text: str, sample: Sample) -> str | None:
        question_words, lower_text = self._words_of(sample), text.lower()
        longest = 2 * sum(map(len, question_words)) + _GAP_LENGTH * len(question_words)
        if len(text) > longest or not all(word in lower_text for word in question_words):
            return None
        words = [
            word
            for word, _ in _tokenize_words(
                _strip_list_markup(text), question_words, len(question_words) + 1
            )
        ]
        return " ".join(words) if sorted(words) == sorted(question_words) else None

    def plainly(self, text: str, sample: Sample) -> Conclusion:
        """Return the last list that has nearly all words of the question, in any order."""
        question_words = self._words_of(sample)
        for sentence in find_last_sentences(text):
            if not all(map(sentence.lower().__contains__, question_words)):
                continue
            list_part = _strip_list_markup(sentence.rpartition(":")[2])
            words = [
                word for word, _ in _tokenize_words(list_part, question_words, LONGEST_LAST_LINE)
            ]
            value = find_last_words(words, question_words)
            if value and value.split() != question_words:
                return Conclusion(value, rule="word_list", passage=sentence)
        paragraphs = text.split("\n\n")[-_LAST_PARAGRAPHS:]
        for paragraph in reversed(paragraphs):  # a closing remark may follow the list
            value = self.whole(paragraph, sample) if len(question_words) > 1 else None
            value = value or _read_item_words(paragraph, question_words)
            if value and value.split() != question_words:
                return Conclusion(value, rule="word_list", passage=paragraph)
        return Conclusion()

    def same(self, value: str, target: str) -> bool:
        return value.split() == target.lower().split()


# `1. Acuity`, `- acuity (noun)`: a list item that is one word, perhaps with a remark.
_ITEM = lazy_pattern(
    r"[ \t]*(?:\d+[.)]|[-*•])[ \t]*[\"'*`]*([^\s\"'*`(),]+)[\"'*`]*[ \t]*(?:\([^()]*\))?"
)
_LAST_PARAGRAPHS = 4
"""Paragraphs at the end of a reply in which the reader looks for a list."""


def _read_item_words(paragraph: str, question_words: list[str]) -> str | None:
    """Return the words of a list with one word per line, if most are the question's words."""
    words = [match[1].lower() for line in paragraph.split("\n") if (match := _ITEM.fullmatch(line))]
    common = set(words) & set(question_words)
    is_list = len(question_words) > 1 and 3 * len(common) >= 2 * max(
        len(question_words), len(words)
    )
    return " ".join(words) if is_list else None


def _strip_list_markup(segment: str) -> str:
    """Return `segment` without LaTeX wrappers and without signs of order between its words."""
    return _ORDER_SIGN.sub(" ", unwrap_latex(segment) if "\\" in segment else segment)


def _match_sorted_words(segment: str, question_words: list[str]) -> list[str] | None:
    """Return `question_words` in the order of `segment`, if it begins with exactly these words.

    If each word has its own line, the next line must not be another item.
    """
    tokens = _tokenize_words(segment, question_words, len(question_words) + 1)
    words = [word for word, _ in tokens[: len(question_words)]]
    if sorted(words) != sorted(question_words):
        return None
    end = tokens[len(question_words) - 1][1]
    if len(tokens) > len(question_words) and not _LIST_END.match(segment, end):
        return None
    line_end = segment.find("\n", end)
    if line_end >= 0 and "\n" in segment[:end]:
        first_word, _, remainder = segment[line_end + 1 :].partition("\n")[0].strip().partition(" ")
        bulleted = _BULLET.fullmatch(segment.strip().split(None, 1)[0])
        if _BULLET.fullmatch(first_word) if bulleted else first_word and not remainder:
            return None
    return words


def _tokenize_words(segment: str, question_words: list[str], limit: int) -> list[tuple[str, int]]:
    """Return the first `limit` words of `segment`, each with the end position of its letters."""
    words: list[tuple[str, int]] = []
    for token in _TOKEN.finditer(segment):
        word = token[0].strip(_AROUND_WORD).lower()
        end = token.end()
        if word.endswith((".", ":", "!", "。")) and word not in question_words:
            word = word.rstrip(".:!。" + _AROUND_WORD)
            end = token.start() + token[0].lower().rfind(word) + len(word)
        is_bullet = not word or _BULLET.fullmatch(token[0])
        if (is_bullet or word == "and") and word not in question_words:
            continue
        words.append((word, end))
        if len(words) == limit:
            break
    return words


# --- by subset ---------------------------------------------------------------------------------

_KINDS: dict[metadata.Kind, AnswerKind] = {
    "choice": BracketedLabel(),
    "bool": BOOL,
    "yes_no": YES_NO,
    "valid": VALID,
    "integer": Number(),
    "brackets": BracketSequence(lambda sample: sample.text.rpartition("Input: ")[2].strip()),
    "words": WordList(lambda sample: sample.text.rpartition("List: ")[2].lower().split()),
}
# sports_understanding asks whether a sentence is plausible; its targets are `yes` and `no`.
KIND_OF = {name: _KINDS[subset.kind] for name, subset in SUBSETS.items()} | {
    "sports_understanding": PLAUSIBLE,
    "multistep_arithmetic_two": ExpressionValue(),
}
