"""Unannounced answers in the first or last line of a reply, and cues that a reply repeats.

Base models continue with the cues of the prompt: ``A: Yes``, ``12 m\\n\\nA:``. A small model writes
the text of one option after the label of another option. It then means that label by that text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from keju.answers.decision import PLAIN_LEAD_INS, StatementSpan, find_correction
from keju.answers.kinds import AnswerKind
from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.options import echoes_options, is_longer, is_other_prose
from keju.answers.phrases import load_pattern, load_phrase
from keju.answers.segments import (
    DRESSING,
    AnswerStatement,
    clean_segment,
    last_block,
    last_paragraph,
)
from keju.answers.sentences import (
    BRIEF,
    BROKEN_NUMBER,
    clauses,
    has_wide,
    is_about_another_quantity,
    is_about_part,
    last_clause,
)
from keju.types import Sample

# `A: A: `: the cue with which a prompt ends, and which a reply repeats; not the `A:` of a list.
_LEADING = lazy_pattern(r"\s*+(?:A:\s++)++(?=\S)")
# `So the answer`, `The correct answer`, `Let's think`: an `A:` before these words is a cue.
_ANNOUNCES = lazy_pattern(r"(?:[Ss]o )?[Tt]he (?:final |correct )?answer\b|Let['’]s think\b")
# `\n\nA:`, `\nQ:\nA:\n`: cues at the end of a reply.
_TRAILING = lazy_pattern(r"(?:\s*\n[ \t]*[AQ]:)++\s*\Z")
# `\n(B) `, `\nB: `: the next line also begins with a label.
_LABELLED = lazy_pattern(r"\s*+[(\[]?([A-Z])[)\].:、]")


def remove_cues(text: str, kind: AnswerKind, sample: Sample) -> str:
    """Return a reply without the cues at its beginning and end.

    If the question has options, ``A:`` is a cue only before an announcement or an answer.
    """
    if text.rstrip().endswith(":") and (trailing := _TRAILING.search(text)):
        before = text[: trailing.start()]
        text = text if before.endswith((":", " is")) else before
    lead = _LEADING.match(text) if text.lstrip()[:2] == "A:" else None
    if lead is None:
        return text
    body = text[lead.end() :]
    line, _, following_lines = body.partition("\n")
    if sample.choices and not _ANNOUNCES.match(body):
        is_answer = kind.whole(line, sample) is not None and not _LABELLED.match(following_lines)
        return body if is_answer else text
    return body


_COURTESY = load_pattern("courtesy")
_COURTESY_STEMS = (
    "you",
    "hope",
    "feel free",
    "hesitate",
    "hank",
    "happy to",
    "希望",
    "如",
    "需要我",
    "欢迎",
    "还有",
)
"""A part of every match of `_COURTESY`; quicker to find than a pattern."""
_LONGEST_COURTESY = 200


def remove_courtesy(text: str) -> str:
    """Return a reply without the offers and wishes at its end."""
    tail = text[-_LONGEST_COURTESY:]
    if not any(map(tail.__contains__, _COURTESY_STEMS)):
        return text
    courtesy = _COURTESY.search(text, max(0, len(text) - _LONGEST_COURTESY))
    return text[: courtesy.start()] if courtesy else text


def remove_cut_letter(text: str) -> str:
    """Return a loop without the letter of its cut-off end: ``Borderline:\\nBorderline:\\nB``."""
    before = text[:-1].rstrip()
    *_, previous_line, last_complete_line = ("", "", *before[-2 * LONGEST_LINE :].split("\n"))
    is_loop = (
        previous_line == last_complete_line
        and last_complete_line.startswith(text[-1])
        and last_complete_line[1:2].isalpha()
    )
    return before if is_loop else text


# `\n\]`, `$$`, ` ∎`: the end of a displayed formula or of a proof.
_DISPLAY_END = lazy_pattern(r"\s*(?:\\\]|\$\$|[∎□■])\s*\Z")


def remove_display(text: str) -> str:
    """Return a text without the signs around a last displayed formula of several lines."""
    if text.rstrip()[-1:] not in _DISPLAY_SIGNS:
        return text
    end = _DISPLAY_END.search(text, max(0, len(text) - _LONGEST_DISPLAY_END))
    if end is None:
        return text
    body, sign = text[: end.start()], end[0].strip()
    opening = {"\\]": "\\[", "$$": "$$"}.get(sign)
    if opening is None:
        return body
    begin = body.rfind(opening)
    is_display = begin >= 0 and body[begin + 2 :].lstrip(" ")[:1] == "\n" and "\\boxed" not in body
    return body[:begin] + body[begin + 2 :] if is_display else text


_LONGEST_DISPLAY_END = 12
_DISPLAY_SIGNS = frozenset("]$∎□■")
# `🎉`, `😊`: pictures without a meaning for the answer. Ticks and crosses have a meaning.
_PICTURES = "\ufe0f\u200d\u2728\u2764\u2b50" + "".join(
    map(chr, (*range(0x2600, 0x2611), *range(0x2612, 0x2700), *range(0x1F000, 0x1FB00)))
)
_PICTURE = frozenset(_PICTURES)


def remove_pictures(text: str, sample: Sample) -> str:
    """Return a reply without the pictures at its end, unless an option contains the last one."""
    bare = text.rstrip()
    if bare[-1:] not in _PICTURE or any(bare[-1] in choice for choice in sample.choices):
        return text
    return bare.rstrip(_PICTURES + " ") or text


# `\nB. `: a label of a list, before a character that was cut in half.
_BARE_LABEL = lazy_pattern(r"\n[ \t]*+[(\[]?[A-Z][)\].:、]{0,2}[ \t]*+\Z")


def remove_half_character(text: str) -> str:
    """Return a reply without the half character at its cut-off end and without its label."""
    if not text.endswith("\ufffd"):
        return text
    text = text.rstrip("\ufffd")
    label = _BARE_LABEL.search(text, max(0, len(text) - 12))
    return text[: label.start()] if label else text


BARE = 40
"""The longest reply, in characters, that Keju first tries to read as an answer alone."""
LONGEST_LIST = 800
"""The longest list of words, in characters, that may end a reply."""
LONGEST_LEAD = 160
"""The most characters that may surround an answer in a last line."""
LONGEST_LINE = 300
"""The longest first line, in characters, that may be an answer alone."""


def is_one_long_line(text: str, kind: AnswerKind, sample: Sample) -> bool:
    """Whether an English reply without an announcement is one line that is too long for an answer.

    Such a reply neither begins nor ends with an option. Most replies that were cut off are like
    this.
    """
    line = text.strip()
    if len(line) <= LONGEST_LEAD or "\n" in line or line.endswith(":"):
        return False
    if (not text.isascii() and has_wide(text)) or (len(text) <= 2 * BRIEF and ". " not in line):
        return False
    choices = sample.choices
    if len(line) <= LONGEST_LINE + sum(map(len, choices)):
        if not is_longer(line, choices, LONGEST_LEAD):
            return False
        if ("=" in line or "≈" in line) and _is_complete_equation(text, kind):
            return False  # an option may follow
    return is_other_prose(line, choices) and not echoes_options(text, choices)


# --- the beginning -----------------------------------------------------------------------------

# `B. `, `- (C) `: a line that begins with a label.
LABELLED = lazy_pattern(r"[\s*(\[-]{0,5}([A-Z])(?:[)\].:、]|\Z)")
_LABEL_ALONE = lazy_pattern(r"\s*+[*(\[]{0,3}[A-Z][)\].:*]{0,3}[ \t]*+(?:\n|\Z)")
# `Q1. `, `1) `: a number or heading before a leading answer.
_NUMBERED = lazy_pattern(r"\s*+(?:(?:Q ?)?1[.):]\s|#{1,4} )?")


def find_leading_answer(
    text: str, kind: AnswerKind, sample: Sample, marked: Sequence[StatementSpan] = ()
) -> StatementSpan | None:
    """Return the answer that fills the first line of a longer reply.

    The first item of a list of options is not an answer. An answer that the reply announces
    directly after the first line takes precedence: ``C) 1600\\n\\nThe answer is D) 1650``.
    """
    line = _find_first_line(text) if kind.closed else None
    if line is None:
        return None
    value = None if line.text.startswith("```") else kind.whole(line.text, sample)
    if marked and sample.choices and _is_announced_next(line, text, marked[0]):
        return StatementSpan(marked[0].statement, 0, 0, True)  # `D: two`, and then `选择D: two`
    if value is None or _begins_a_list(line, text, value, kind, sample):
        return None
    statement = AnswerStatement(value)
    if _is_superseded(statement, text, line.end, marked):
        return StatementSpan(statement, 0, line.end, False)
    return StatementSpan(statement, 0, 0, True)


class _FirstLine(NamedTuple):
    """The first line of a longer reply, without its number."""

    text: str
    end: int
    is_numbered: bool


def _find_first_line(text: str) -> _FirstLine | None:
    """Return the first line of a reply if it may be an answer alone."""
    numbering = _NUMBERED.match(text)
    number = numbering[0] if numbering else ""
    is_numbered = bool(number.strip())
    end = text.find("\n", len(number))
    if end < 0 and is_numbered:
        end = len(text)
    line = text[len(number) : end]
    if not 0 <= end - len(number) <= (LONGEST_LINE if LABELLED.match(line) else BARE):
        return None
    return _FirstLine(line, end, is_numbered)


def _is_superseded(
    statement: AnswerStatement, text: str, end: int, marked: Sequence[StatementSpan]
) -> bool:
    """Whether the reply announces another answer directly after a first line that ends at `end`."""
    if not marked or marked[0].statement == statement:
        return False
    return text[end : marked[0].start].strip().lower() in PLAIN_LEAD_INS


def _is_announced_next(line: _FirstLine, text: str, first_span: StatementSpan) -> bool:
    """Whether the reply announces the label of its first line directly after this line."""
    label = LABELLED.match(line.text)
    if label is None or label[1] != first_span.statement.value:
        return False
    between = text[line.end : first_span.start].strip()
    return len(between) <= 6 or between.lower() in PLAIN_LEAD_INS


_LIST_APART = load_pattern("list_apart")


def _begins_a_list(
    first_line: _FirstLine, text: str, value: str, kind: AnswerKind, sample: Sample
) -> bool:
    """Whether the following lines continue a list of answers that the first line begins."""
    # a label alone is one of a list only before another
    is_label = sum(map(str.isalnum, first_line.text)) == 1
    if first_line.is_numbered or (is_label and not _LABEL_ALONE.match(text, first_line.end)):
        return False
    following_text = text[first_line.end : first_line.end + 4 * LONGEST_LINE]
    if sample.choices and _LIST_APART.match(following_text):
        return False
    next_lines = list(filter(str.strip, following_text.split("\n")))[:3]
    return any(_find_line_answer(line, kind, sample) not in ("", value) for line in next_lines)


def _find_line_answer(line: str, kind: AnswerKind, sample: Sample) -> str:
    """Return the answer that a line is, or the label of an option with which it begins."""
    labelled = LABELLED.match(line) if sample.choices else None
    return kind.whole(line, sample) or (labelled[1] if labelled else "")


# The next item of a list of options: `C. `.
_NEXT_LABEL = lazy_pattern(r"\s*[*(\[]{0,3}[A-Z][)\].:、项]")


# ` — `, ` - `: before the reason of an answer.
_DASH = lazy_pattern(r"\s[-–—]\s|—")


def find_sentence_answer(text: str, kind: AnswerKind, sample: Sample) -> str | None:
    """Return the answer that fills the first sentence, before its reasons: ``B、核糖体。``."""
    if not kind.listed:
        return None
    start = len(text) - len(text.lstrip())
    first_sentence = next(clauses(text[start : start + LONGEST_LINE]), "")
    if first_sentence.startswith("```"):
        return None
    is_brief = text[start : start + 1] in ("(", "[") and len(text) <= 2 * LONGEST_LINE
    if is_brief and (value := kind.leading(text.strip(), sample)):
        return value  # a label and an option's text of several sentences
    if sample.asks_for_wrong and len(first_sentence) > 8 and not LABELLED.match(first_sentence):
        return None  # a statement of the options, called right or wrong
    sentence_end = start + len(first_sentence)
    if _NEXT_LABEL.match(text[sentence_end : sentence_end + BARE]):
        return None
    value = kind.leading(first_sentence, sample)
    if value is None and "\n" not in text.strip() and (dash := _DASH.search(first_sentence)):
        value = kind.whole(first_sentence[: dash.start()], sample)
    return None if value and find_correction(text[sentence_end:]) else value


_INTRODUCES = load_pattern("introduces")
_LONGEST_COLON = 24
"""The longest match of `_INTRODUCES`, in characters."""


_MAY_INTRODUCE = frozenset(":： \t*_")


def find_introduced_option(text: str, kind: AnswerKind, sample: Sample) -> str | None:
    """Return the only option that fills a line after a line ending with ``is:``."""
    values = set()
    line_break = text.find("\n") if kind.listed else -1
    while line_break >= 0:
        end = line_break
        line_break = text.find("\n", end + 1)
        if text[end - 1 : end] not in _MAY_INTRODUCE or not _INTRODUCES.search(
            text, max(0, end - _LONGEST_COLON), end
        ):
            continue
        follows = text[end : end + 5 * LONGEST_LINE].lstrip()[: 4 * LONGEST_LINE]
        line, _, following_lines = follows.partition("\n")
        option = line.strip().partition(" - ")[0]
        value = None if _BROKEN.fullmatch(option) else kind.whole(option, sample)
        labelled = LABELLED.match(following_lines.lstrip())
        if value and not (labelled and labelled[1] != value):
            values.add(value)
    return values.pop() if len(values) == 1 else None


# --- the end ----------------------------------------------------------------------------------

# `### `, `=> `, `∴`, `✅ `: signs before the answer of a last line.
_HEADING = lazy_pattern(r"(?:#{1,6}(?=\s)|>|=>|→|⇒|∴|[✅✔✓☑]\ufe0f?)\s*+")
OPENING = load_phrase("opening")
_GUESS = load_pattern("guess")
_RESULT_NOUN = load_pattern("result_noun")
_COUNT_PHRASE = load_pattern("count_phrase")


def find_final_answer(text: str, kind: AnswerKind, sample: Sample, *, listed: bool) -> str | None:
    """Return the answer at the end of a reply, alone or in a plain statement.

    This is the last line or a code block at the end, alone or as a statement: ``= -50``, ``Total:
    8``, a verdict. It is the last paragraph if answers may have several lines, or the whole reply.
    Keju never takes a letter out of prose. The last item of a list of answers is not an answer.
    `listed` tells whether the reply repeats its options.
    """
    block = last_block(text)
    longest = LONGEST_LIST if kind.paragraph else LONGEST_LINE + sum(map(len, sample.choices))
    if len(block) > longest or _is_list_end(text, block, kind, sample, listed=listed):
        return None
    parts = [block, *_parts_after_equals(block, text, kind, sample)]
    if len(block) <= LONGEST_LEAD or not is_longer(block, sample.choices, LONGEST_LEAD):
        parts += _announced_parts(clean_segment(block), kind)
    if len(text) <= longest and text.strip() != block:
        parts += [last_paragraph(text), text] if kind.paragraph else [text]
    return next((value for part in parts if (value := kind.whole(part, sample))), None)


def _is_list_end(text: str, block: str, kind: AnswerKind, sample: Sample, *, listed: bool) -> bool:
    """Whether a last line is the last item of a list of answers, or the item that broke off."""
    if _BROKEN.fullmatch(block) and block != text.strip():
        return True
    if kind.listed and ends_a_list(text, block, kind, sample, listed=listed):
        return True
    return block.isdecimal() and _is_next_list_number(text, block)


def _is_next_list_number(text: str, block: str) -> bool:
    """Whether a last line is only the number of the next item of a list: ``19. So\n20``."""
    lines = text.rstrip()[: -len(block)].rstrip().rpartition("\n")
    return block != "1" and lines[2].lstrip().startswith(
        (f"{int(block) - 1}.", f"{int(block) - 1})")
    )


def _parts_after_equals(block: str, text: str, kind: AnswerKind, sample: Sample) -> list[str]:
    """Return the text after the last equals sign of a last line, if it may be the answer."""
    left_side, sign, right_side = block.rpartition("=" if "=" in block else "≈")
    if not sign or left_side[-1:] in ("!", "<", ">"):
        return []
    right_side = _ALMOST.split(right_side, maxsplit=1)[0]
    if kind.equations:
        is_step = is_about_part(last_clause(left_side)) or not kind.evaluates(left_side, sample)
        return [] if is_step else [right_side]
    if is_about_another_quantity(last_clause(left_side), sample):
        return []
    is_name = len(right_side) < 4 and right_side.strip(DRESSING + ".").isalpha()
    if is_name or BROKEN_NUMBER.fullmatch(block) or not _is_complete_equation(text, kind):
        return []
    return [right_side]


# `(A`: a list of options that broke off.
_BROKEN = lazy_pattern(r"[(\[][A-Z]")


def _announced_parts(bare: str, kind: AnswerKind) -> list[str]:
    """Return possible answers in a last line that begins with other words: ``Total: 8``."""
    parts = []
    if bare[:1] == "|":  # the last row of a table
        bare = bare.strip("|" + DRESSING).replace(" |", ":", 1)
    if heading := _HEADING.match(bare):
        bare = bare[heading.end() :].strip(DRESSING)
        parts.append(bare)
    if kind.equations and (counted := _COUNT_PHRASE.match(bare)):
        parts.append(bare[counted.end() :])
    if (guess := _GUESS.match(bare)) and guess[0]:
        parts.append(bare[guess.end() :])
    if noun := _RESULT_NOUN.match(bare):
        parts.append(bare[noun.end() :])
    return parts


# ` ≈ 0.028`: the same value, rounded.
_ALMOST = lazy_pattern(r"\s?(?:[≈≃]|\\approx)")


def _is_complete_equation(text: str, kind: AnswerKind) -> bool:
    """Whether a reply with options ends with a complete equation."""
    ended = text.rstrip().endswith((".", "$", "*", "。"))
    return kind.many and (len(text) <= LONGEST_LINE or ended)


def _begins_list_again(before: str, line: str, block: str) -> bool:
    """Whether the last two lines also occur earlier, followed by a line with another label."""
    turn = f"{line}\n{block}\n"
    at = before.find(turn)
    block_label, next_label = LABELLED.match(block), LABELLED.match(before, at + len(turn))
    if at < 0 or block_label is None or next_label is None:
        return False
    return block_label[1] != next_label[1]


def ends_a_list(text: str, block: str, kind: AnswerKind, sample: Sample, *, listed: bool) -> bool:
    """Whether the last line is one of several possible answers, as in repeated options."""
    before = text.rstrip()[: -len(block)].rstrip()  # empty without a block
    value = kind.whole(block, sample) if before else None
    if value is None:
        return False
    lines = list(filter(str.strip, before[-LONGEST_LIST:].split("\n")))
    line = lines[-1].strip()
    if _begins_list_again(before, lines[-1], block) or _is_next_label(line, value):
        return True
    value_above = kind.whole(line, sample)
    if value_above is None or value_above != value:
        return value_above is not None
    if sample.choices:  # `A.`, `B.`, `C.`, `C.`, `C.`: the list got stuck
        labels = [label[1] for label in map(LABELLED.match, lines) if label]
        return "".join(dict.fromkeys(labels)).endswith(chr(ord(value) - 1) + value)
    return listed and len(block) > 8


def _is_next_label(line: str, value: str) -> bool:
    """Whether a line begins with the label before the label `value`."""
    labelled = LABELLED.match(line)
    return labelled is not None and len(value) == 1 and ord(value) == ord(labelled[1]) + 1
