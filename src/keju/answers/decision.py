"""Rules for words that retract an answer or add a second one, and the choice between answers.

`announcement_status` checks the text before a marker (``I do not think that the answer is``). Other
rules check the text after an answer. ``(B) or maybe (A)`` offers two answers. ``B, not C`` names
one answer. ``B. A is too early`` continues with a discussion of another option. All patterns are
possessive and linear.

A reply may state an answer, retract it and state another. It may also state an answer and continue
with a summary, an imagined next task or a list of answers to other tasks. Position alone cannot
distinguish these cases. Therefore the text between two answers decides (`decide`):

1. The later answer counts after a word of correction (``Wait``, ``I made a mistake``, ``更正``). It
   also counts after ``final answer``, if it has the marker of the protocol and the earlier one has
   another wording, or if the reply ends with it after new reasoning.
2. Of several answers in one line the last one counts. There is no answer if they answer the parts
   of a question, ``(a) … (b) …``, or if there is no reasoning between them.
3. A loop that continues with other answers has no answer, unless it gave the first one twice
   before.
4. Otherwise the first answer counts, and the text after it is run-on text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.phrases import load_pattern, load_phrase, load_words
from keju.answers.segments import AMBIGUOUS, AnswerStatement
from keju.answers.sentences import has_chinese

# --- before a marker ---------------------------------------------------------------------------

AnnouncementStatus = Literal["stated", "denied", "alternative"]

REACH = 80
"""The number of characters before a marker that may deny or qualify it."""

_SENTENCE_END_SIGNS = ".\n!?;。；"
PLAIN_LEAD_INS = frozenset(
    f"{opening}{word}".strip()
    for opening in ("", "so ", "so, ", "thus, ", "therefore, ", "hence, ")
    for word in ("", "the ", "final ", "the final ", "the correct ", "correct ")
)
"""The usual texts before a marker. Any other text is checked with patterns."""

_DENIAL = load_pattern("denial")
_DENIAL_STEMS = load_words("denial_stems")
_ALTERNATIVE = load_pattern("alternative")


SUPPOSES = load_pattern("supposes")


# `answer would be`, after `if it were so, the`.
_WOULD = lazy_pattern(r"[Aa]nswer would\b")


STATED_PREFIXES = (". The ", ". So the ")
"""The most frequent texts before a marker. The answer after them is stated."""


def announcement_status(text: str, start: int) -> AnnouncementStatus:
    """Return whether the sentence before the marker at `start` states, denies or qualifies it.

    ``It is not the case that the answer is`` denies the answer. ``if the answer is`` supposes it
    and also counts as a denial. ``otherwise the answer is`` is one of two alternatives.
    """
    if text.endswith(STATED_PREFIXES, 0, start):
        return "stated"
    if start < 2 or text[start - 2] in _SENTENCE_END_SIGNS or text[start - 1] == "\n":
        return "stated"
    before = text[max(0, start - REACH) : start]
    clause = before[1 + max(map(before.rfind, _SENTENCE_END_SIGNS)) :]
    if clause.strip(" *_#").lower() in PLAIN_LEAD_INS:
        return "stated"
    if _denies(clause) or (_WOULD.match(text, start) and SUPPOSES.search(clause)):
        return "denied"
    return "alternative" if _ALTERNATIVE.search(clause) else "stated"


@lru_cache(maxsize=64)
def _denies(clause: str) -> bool:
    """Whether the text before a marker denies its answer. The cache helps with looping replies."""
    if clause.isascii() and not any(map(clause.lower().__contains__, _DENIAL_STEMS)):
        return False
    return _DENIAL.search(clause) is not None


# `answer is`, `Answer would be`; `答案是`: markers that a sentence may deny.
_MARKER = lazy_pattern(r"\b[Aa]nswer (?:is|was|would be|could be|might be|must be)\b|答案应?[是为]")
_MARKER_STEMS = ("nswer ", "案")
"""The text after the first letter of every match of `_MARKER`; quicker to find than a pattern."""
# The end of the part of a sentence that a denial covers: `, so`, `。`; not the comma of `1,000`.
_PART_END = lazy_pattern(r"[,;](?=\s)|[.!?](?=[\s*_\"'”’)]|\Z)|[，；。！？\n]|,(?=[\u4e00-\u9fff])")


def remove_denied_parts(text: str) -> str:
    """Return a text without the parts of sentences that deny or suppose the answer they announce.

    Keju removes ``I do not think that the answer is No.``, so no rule finds ``No`` there.
    """
    if "nswer" not in text and "答案" not in text:
        return text
    kept_parts: list[str] = []
    position = 0
    for marker_start in _find_markers(text):
        if marker_start < position or announcement_status(text, marker_start) != "denied":
            continue
        nearest = max(position, marker_start - REACH)
        begin = max(text.rfind(end, nearest, marker_start) for end in _SENTENCE_END_SIGNS) + 1
        part = _PART_END.search(text, marker_start)
        kept_parts.append(text[position : begin or nearest])
        position = part.start() if part else len(text)
    return "".join([*kept_parts, text[position:]]) if kept_parts else text


def _find_markers(text: str) -> list[int]:
    """Return the positions at which matches of `_MARKER` begin, in order."""
    starts = []
    for stem in _MARKER_STEMS:
        at = text.find(stem)
        while at >= 0:
            if at and _MARKER.match(text, at - 1):
                starts.append(at - 1)
            at = text.find(stem, at + 1)
    return sorted(starts)


# --- between two answers and after them -------------------------------------------------------

LinkStrength = Literal["either", "joined", "apart"]
"""An alternative answer, an additional answer, or a following text that may be a remark."""

_LINK_WORDS = load_phrase("link_words")
LINK = load_pattern("link")

_EITHER = load_pattern("either")
# `,`, `&`, `and also`, `和`: both of them; not a full stop or a dash.
_JOINT = lazy_pattern(rf"[&+,、，]|{_LINK_WORDS}", re.IGNORECASE)

COMPLETE_ANSWER_END = load_pattern("complete_answer_end")

NEGATIVE = load_pattern("negative")

REJECTS = load_pattern("rejects")
EXPLAINS = load_pattern("explains")
OFFERS = load_pattern("offers")
# `. `, `?"`, `。`; not the point of `3.5` or of `A vs. B`.
SENTENCE_END = lazy_pattern(r"(?<!\bvs)[.!?](?=[\"'”’*)]*(?:\s|\Z))|[;。！？；\n]")
"""The end of a sentence, and of its statement about an answer."""


def link_strength(link: str) -> LinkStrength:
    """Return how firmly a text that `LINK` matched joins two answers."""
    if _EITHER.search(link):
        return "either"
    return "joined" if _JOINT.search(link) else "apart"


def is_second_answer(text: str, link: str, end: int, after: int) -> bool:
    """Whether an answer that `link` joins to another one is a second answer.

    It ends at `end`, and the text of its option ends at `after`. The answer does not count if a
    remark calls it wrong, or if it only begins a sentence.
    """
    strength = link_strength(link)
    if strength == "either":
        return True
    if NEGATIVE.match(text, end):
        return False
    return strength == "joined" or COMPLETE_ANSWER_END.match(text, after) is not None


class StatementSpan(NamedTuple):
    """A statement with the positions of the beginning and end of its marker."""

    statement: AnswerStatement
    start: int
    end: int
    is_strict: bool
    """Whether the marker of the protocol announces the statement."""


class Decision(NamedTuple):
    """The statement that counts, and another answer of the reply."""

    deciding_span: StatementSpan
    other_value: str | None = None
    """Another answer that the reply gives."""
    by_order_only: bool = False
    """Whether only the order decided between the two answers."""


Relation = Literal["corrected", "beside", "run-on"]

_CORRECTION_REACH = 1500
"""The number of characters after an answer, and before the next, searched for a correction."""

CORRECTION = load_pattern("correction")
_CORRECTION_STEMS = load_words("correction_stems")
_CORRECT_STEMS = load_words("correct_stems")
# `no,`, `no -`: a refusal at the beginning of a correction; not the `no` of `not`.
_NO_SIGN = lazy_pattern(r"no ?[,.:;!—–-]")


def find_correction(text: str) -> re.Match[str] | None:
    """Return the first word of correction in `text`."""
    return next(find_corrections(text), None)


def find_corrections(text: str) -> Iterator[re.Match[str]]:
    """Yield the words of correction in `text`."""
    if has_chinese(text):
        yield from CORRECTION.finditer(text)
        return
    small = text.lower()
    places = _find_correction_stems(small)
    if len(small) != len(text):
        places = [0, len(text)] if places else []
    for begin, end in _search_windows(places):
        yield from CORRECTION.finditer(text, begin, end)


_LONGEST_CORRECTION = 40
"""The most characters of a match of `CORRECTION` before its stem."""
_AFTER_STEM = 120
"""The most characters from the beginning of a stem to the end of its match."""


def _search_windows(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text around the stems at `places`, in order."""
    begin = end = 0
    for place in places:
        if place - _LONGEST_CORRECTION > end:
            if end:
                yield begin, end
            begin = place - _LONGEST_CORRECTION
        end = place + _AFTER_STEM
    if end:
        yield begin, end


def _find_correction_stems(lowercase_text: str) -> list[int]:
    """Return the positions of correction stems in a lower-case English text, in order."""
    stems = [stem for stem in _CORRECTION_STEMS if stem in lowercase_text]
    if "orrect" in lowercase_text:
        stems += [stem for stem in _CORRECT_STEMS if stem in lowercase_text]
    places = [match.start() for match in _NO_SIGN.finditer(lowercase_text)]
    for stem in stems:
        at = lowercase_text.find(stem)
        while at >= 0:
            places.append(at)
            at = lowercase_text.find(stem, at + 1)
    return sorted(places)


_HOWEVER = load_pattern("however")
_TENTATIVE = load_pattern("tentative")
_FINAL_WORDING = load_pattern("final_wording")
# `所以选择`: a conclusion, before a loop of `选择`.
_CONCLUDING_WORD = lazy_pattern(r"所以|因此|综上|故")
_CONTEXT_LENGTH = 60
"""The number of characters before a marker that belong to it."""

_PART = load_pattern("next_part")
_FIRST_PART = lazy_pattern(
    r"(?:^|[\s.(（])(?:\(?(?:a|i|1)\)|[Pp]art \(?[aA1I])|第[一1](?:问|空|小题)|[(（][1一][)）]"
)
# `. 2. The `: a list of answers to several tasks continues.
_NUMBERED = lazy_pattern(r"[.)\n] ?\(?[2-9][.)、] ?[^\n]{0,12}\Z")
# ` or, if activities count, `; `或者`: the next answer is an alternative.
_OFFER = lazy_pattern(r"[\s$})*,.](?:or|alternatively)\b[^.;\n。]*\Z|或[^。\n]*\Z", re.IGNORECASE)
# `____`, `?`, `\nA. `: another question, with its options, between two answers.
_ANOTHER_TASK = lazy_pattern(r"_{2,}|[?？]|\n[(\[]?A[)\].、][ \t]*+[^\s]")
_LONGEST_GAP = 40
"""The most characters between two answers in a line that are not reasoning."""


def decide(text: str, stated: Sequence[StatementSpan]) -> Decision:
    """Return the statement that counts, from the statements of `text` in order."""
    deciding_span = stated[0]
    other_span: StatementSpan | None = None
    by_order = is_undecided = False
    is_settled = _is_settled(stated)
    for previous_span, later_span in pairwise(stated):
        if later_span.statement == deciding_span.statement:
            continue
        same_line = text.find("\n", deciding_span.end, later_span.start) < 0
        relation = find_relation(
            text, deciding_span, previous_span, later_span, same_line=same_line
        )
        if not is_undecided and _is_clearer(later_span, deciding_span):
            relation = "corrected"
        if relation == "corrected":
            deciding_span, other_span = later_span, deciding_span
            by_order = is_undecided = False
        elif relation == "beside" and not is_settled:
            deciding_span, is_undecided = deciding_span._replace(statement=AMBIGUOUS), True
            other_span = other_span or later_span
        elif later_span.statement.value is not None:
            other_span, by_order = other_span if by_order else later_span, True
    return _make_decision(_find_strict_span(deciding_span, stated), other_span, by_order)


def _is_clearer(later_span: StatementSpan, deciding_span: StatementSpan) -> bool:
    """Whether a clear answer follows an ambiguous or impossible one."""
    return deciding_span.statement.value is None and bool(later_span.statement.value)


def _find_strict_span(
    deciding_span: StatementSpan, stated: Sequence[StatementSpan]
) -> StatementSpan:
    """Return the same answer with the marker of the protocol, if the reply has it."""
    if deciding_span.is_strict:
        return deciding_span
    equal_spans = (span for span in stated if span.statement == deciding_span.statement)
    return next((span for span in equal_spans if span.is_strict), deciding_span)


def _make_decision(
    deciding_span: StatementSpan, other_span: StatementSpan | None, by_order: bool
) -> Decision:
    """Return a decision with the other answer, unless it equals the one that counts."""
    value = deciding_span.statement.value
    other_value = other_span.statement.value if other_span else None
    if other_value == value:
        return Decision(deciding_span)
    return Decision(deciding_span, other_value, by_order and value is not None)


def _is_settled(stated: Sequence[StatementSpan]) -> bool:
    """Whether a loop gives the first answer twice before it continues with others: C, C, D, A.

    Not C, C, D, C, D, where the loop alternates between two answers.
    """
    values = [span.statement for span in stated]
    if len(values) < 3 or values[0] != values[1]:
        return False
    differing_values = [value for value in values if value != values[0]]
    return len(set(differing_values)) > 1 or len(differing_values) == 1


def find_relation(
    text: str,
    deciding_span: StatementSpan,
    previous_span: StatementSpan,
    later_span: StatementSpan,
    *,
    same_line: bool,
) -> Relation:
    """Return the relation of a later answer to the current one, from the text between answers."""
    begin, end = previous_span.end, later_span.start
    between = text[begin:end]
    if _follows_first_line(between, previous_span):
        return "corrected"
    if end - begin > 2 * _CORRECTION_REACH:
        between = (
            text[begin : begin + _CORRECTION_REACH] + "\n" + text[end - _CORRECTION_REACH : end]
        )
    before = text[max(0, deciding_span.start - _CONTEXT_LENGTH) : deciding_span.start]
    if find_correction(between) or _HOWEVER.match(between) or _is_tentative(before):
        return "corrected"
    nearest = max(0, deciding_span.start - _CORRECTION_REACH)
    if _PART.search(between) and _FIRST_PART.search(text, nearest, deciding_span.end):
        return "beside"
    if same_line:
        return _find_relation_in_line(between, previous_span)
    return _find_relation_across_lines(text, deciding_span, later_span, between, before)


def _follows_first_line(between: str, previous_span: StatementSpan) -> bool:
    """Whether an announcement follows an answer without any marker at the beginning of a reply."""
    if not previous_span.end and previous_span.is_strict and not _ANOTHER_TASK.search(between):
        return True
    return between.strip().lower() in PLAIN_LEAD_INS


def _find_relation_in_line(between: str, previous_span: StatementSpan) -> Relation:
    """Return the relation of two answers in one line."""
    if _NUMBERED.search(between):
        return "run-on"
    if _OFFER.search(between):
        return "beside"
    are_adjacent = len(between) <= _LONGEST_GAP and previous_span.statement.value is not None
    return "beside" if are_adjacent else "corrected"


def _find_relation_across_lines(
    text: str, deciding_span: StatementSpan, later_span: StatementSpan, between: str, before: str
) -> Relation:
    """Return the relation of two answers in different lines; `before` precedes the first."""
    end = later_span.start
    if _FINAL_WORDING.search(
        text[max(0, end - _CONTEXT_LENGTH) : end]
    ) and not _FINAL_WORDING.search(before):
        return "corrected"
    if _CONCLUDING_WORD.match(text, deciding_span.start) and not _CONCLUDING_WORD.match(text, end):
        return "run-on"
    if _resumes_reasoning(text, between, later_span):
        return "corrected"
    if later_span.is_strict != deciding_span.is_strict:
        return "corrected" if later_span.is_strict else "run-on"
    return "beside" if _is_loop(text, deciding_span, between) else "run-on"


_LEAST_REASONING_BETWEEN = 200
"""The fewest characters between two answers that are reasoning."""
_LEAST_REASONING_BEFORE = 100
"""The fewest characters before a first answer that are reasoning."""


def _resumes_reasoning(text: str, between: str, later_span: StatementSpan) -> bool:
    """Whether a reply continues to reason about the question and then ends with another answer."""
    if len(between) < _LEAST_REASONING_BETWEEN or _ANOTHER_TASK.search(between):
        return False
    following_text = text[later_span.end :].strip()
    return len(following_text) <= _LONGEST_GAP and "\n" not in following_text


def _is_loop(text: str, deciding_span: StatementSpan, between: str) -> bool:
    """Whether a loop continues with another answer: no words between them, or repeated words."""
    if _NUMBERED.search("." + between):
        return False
    words = between.partition("\n")[2].strip(" \n*_.:)(")
    if words.lower() in PLAIN_LEAD_INS and deciding_span.start > _LEAST_REASONING_BEFORE:
        return False  # the reasoning ends with the first answer
    return len(words) <= _LONGEST_GAP // 2 or words[-_LONGEST_GAP:] in text[: deciding_span.start]


def _is_tentative(before: str) -> bool:
    clause = before[max(map(before.rfind, ".\n。!?")) + 1 :]
    return _TENTATIVE.search(clause) is not None
