"""Answers that begin or end a reply without being announced: its first line, its last line; and
what a reply repeats of the form in which it was asked.

Base models go on with the prompt's own cues: ``A: Yes``, ``12 m\\n\\nA:``. A small model writes the
text of one option behind the label of another, and then means that label by that text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from keju.answers.decision import PLAIN_LEAD_INS, StatementSpan, find_correction
from keju.answers.kinds import AnswerKind
from keju.answers.options import echoes_options, is_longer, is_other_prose
from keju.answers.segments import (
    DRESSING,
    AnswerStatement,
    clean_segment,
    last_block,
    last_paragraph,
)
from keju.answers.sentences import BRIEF, BROKEN_NUMBER, clauses, has_wide
from keju.types import Sample

# `A: A: `: the cue with which a prompt ends, and which a reply repeats; not the `A:` of a list.
_LEADING = re.compile(r"\s*+(?:A:\s++)++(?=\S)")
# `So the answer`, `The correct answer`, `Let's think`: what makes of an `A:` before it a cue.
_ANNOUNCES = re.compile(r"(?:[Ss]o )?[Tt]he (?:final |correct )?answer\b|Let['’]s think\b")
# `\n\nA:`, `\nQ:\nA:\n`: cues after which nothing came.
_TRAILING = re.compile(r"(?:\s*\n[ \t]*[AQ]:)++\s*\Z")
# `\n(B) `, `\nB: `: the next line has a label too.
_LABELLED = re.compile(r"\s*+[(\[]?([A-Z])[)\].:、]")


def without_cues(text: str, kind: AnswerKind, sample: Sample) -> str:
    """A reply without the cues before and after what it says.

    Where labels are asked for, ``A:`` is a cue only before an announcement or an answer.
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


def without_torn_letter(text: str) -> str:
    """A loop without the one letter with which it breaks off: ``Borderline:\\nBorderline:\\nB``."""
    before = text[:-1].rstrip()
    *_, previous_line, last_complete_line = ("", "", *before[-2 * LONGEST_LINE :].split("\n"))
    is_loop = (
        previous_line == last_complete_line
        and last_complete_line.startswith(text[-1])
        and last_complete_line[1:2].isalpha()
    )
    return before if is_loop else text


# `🎉`, `😊`: pictures, which say nothing; ticks and crosses say something.
_PICTURES = "\ufe0f\u200d\u2728\u2764\u2b50" + "".join(
    map(chr, (*range(0x2600, 0x2611), *range(0x2612, 0x2700), *range(0x1F000, 0x1FB00)))
)
_PICTURE = frozenset(_PICTURES)


def without_pictures(text: str, sample: Sample) -> str:
    """A reply without the pictures with which it ends, where no option ends with one."""
    bare = text.rstrip()
    if bare[-1:] not in _PICTURE or any(bare[-1] in choice for choice in sample.choices):
        return text
    return bare.rstrip(_PICTURES + " ") or text


# `\nB. `: a label of a list, behind which half a character was left.
_BARE_LABEL = re.compile(r"\n[ \t]*+[(\[]?[A-Z][)\].:、]{0,2}[ \t]*+\Z")


def without_half_character(text: str) -> str:
    """A reply without the half of a character with which it broke off, and its label."""
    text = text.rstrip("\ufffd")
    label = _BARE_LABEL.search(text, max(0, len(text) - 12))
    return text[: label.start()] if label else text


BARE = 40
"""Characters of a reply that may be an answer and nothing else, which is looked for first."""
LONGEST_LIST = 800
"""Characters of a list of words that may end a reply."""
LONGEST_LEAD = 160
"""Characters of what may stand before an answer, and around it, in a last line."""
LONGEST_LINE = 300
"""Characters of a first line that may be an answer and nothing else."""


def is_one_long_line(text: str, kind: AnswerKind, sample: Sample) -> bool:
    """Whether an English reply that announces nothing is one line that is too long for an answer.

    It neither begins nor ends with an option then, as most replies that were cut off do not.
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
        if ("=" in line or "≈" in line) and _is_whole(text, kind):
            return False  # an option may follow
    return is_other_prose(line, choices) and not echoes_options(text, choices)


# --- the beginning -----------------------------------------------------------------------------

# `B. `, `- (C) `: a line that begins with a label.
LABELLED = re.compile(r"[\s*(\[-]{0,5}([A-Z])(?:[)\].:、]|\Z)")
_LABEL_ALONE = re.compile(r"\s*+[*(\[]{0,3}[A-Z][)\].:*]{0,3}[ \t]*+(?:\n|\Z)")
# `Q1. `, `1) `: what may stand before a leading answer.
_NUMBERED = re.compile(r"\s*+(?:(?:Q ?)?1[.):]\s|#{1,4} )?")


def leading_answer(
    text: str, kind: AnswerKind, sample: Sample, marked: Sequence[StatementSpan] = ()
) -> StatementSpan | None:
    """The answer that is the whole first line of a longer reply; not the first of its options.

    It gives way to one that is announced right after it: ``C) 1600\\n\\nThe answer is D) 1650``.
    """
    start = _NUMBERED.match(text)
    begin = start.end() if start else 0
    end = text.find("\n", begin)
    if end < 0 and start and start[0].strip():
        end = len(text)
    if not kind.closed or not 0 <= end - begin <= LONGEST_LINE:
        return None
    line = text[begin:end]
    if len(line) > BARE and not LABELLED.match(line):
        return None
    value = None if line.startswith("```") else kind.whole(line, sample)
    if marked and sample.choices and _is_announced_next(line, text[end:], end, marked[0]):
        return StatementSpan(marked[0].statement, 0, 0, True)  # `D: two`, and then `选择D: two`
    if value is None:
        return None
    is_item = not (start and start[0].strip())
    if sum(map(str.isalnum, line)) == 1:  # a label alone is one of a list only before another
        is_item = is_item and _LABEL_ALONE.match(text, end) is not None
    if is_item and _begins_a_list(text[end : end + 4 * LONGEST_LINE], value, kind, sample):
        return None
    statement = AnswerStatement(value)
    gives_way = _gives_way(statement, text, end, marked)
    return StatementSpan(statement, 0, end if gives_way else 0, not gives_way)


def _gives_way(
    statement: AnswerStatement, text: str, end: int, marked: Sequence[StatementSpan]
) -> bool:
    """Whether another answer is announced right after a first line that ends at `end`."""
    if not marked or marked[0].statement == statement:
        return False
    return text[end : marked[0].start].strip().lower() in PLAIN_LEAD_INS


def _is_announced_next(line: str, following_text: str, end: int, first_span: StatementSpan) -> bool:
    """Whether the label of a line that ends at `end` is announced right after it."""
    label = LABELLED.match(line)
    if label is None or label[1] != first_span.statement.value:
        return False
    between = following_text[: max(0, first_span.start - end)].strip()
    return len(between) <= 6 or between.lower() in PLAIN_LEAD_INS


# The options after an answer that stands apart: a blank line, then `A. ` and the next line `B. `.
_LIST_APART = re.compile(
    r"\s*\n[ \t]*\n[^A]*?[(\[*-]{0,3}A[)\].:、][^\n]*\n[ \t]*[(\[*-]{0,3}B[)\].:、]"
)


def _begins_a_list(following_text: str, value: str, kind: AnswerKind, sample: Sample) -> bool:
    """Whether the lines after a first one go on to list answers, of which it is one."""
    if sample.choices and _LIST_APART.match(following_text):
        return False
    for line in [
        candidate_line for candidate_line in following_text.split("\n") if candidate_line.strip()
    ][:3]:
        labelled = LABELLED.match(line) if sample.choices else None
        if (kind.whole(line, sample) or (labelled and labelled[1]) or value) != value:
            return True
    return False


# What follows where options are listed: `C. `.
_NEXT_LABEL = re.compile(r"\s*[*(\[]{0,3}[A-Z][)\].:、项]")


# ` — `, ` - `: before the reason of an answer.
_DASH = re.compile(r"\s[-–—]\s|—")


def leading_sentence(text: str, kind: AnswerKind, sample: Sample) -> str | None:
    """The answer that is the whole first sentence, with its reasons after it: ``B、核糖体。``."""
    if not kind.listed:
        return None
    start = len(text) - len(text.lstrip())
    first_sentence = next(clauses(text[start : start + LONGEST_LINE]), "")
    if first_sentence.startswith("```"):
        return None
    is_brief = text[start : start + 1] in ("(", "[") and len(text) <= 2 * LONGEST_LINE
    if is_brief and (value := kind.leading(text.strip(), sample)):
        return value  # a label and an option's text of several sentences
    sentence_end = start + len(first_sentence)
    if (
        _NEXT_LABEL.match(text[sentence_end : sentence_end + BARE])
        or len(first_sentence) > LONGEST_LINE
    ):
        return None
    value = kind.leading(first_sentence, sample)
    if value is None and "\n" not in text.strip() and (dash := _DASH.search(first_sentence)):
        value = kind.whole(first_sentence[: dash.start()], sample)
    return None if value and find_correction(text[sentence_end:]) else value


# `The best argument is:`, `I would recommend:`, `最接近的是：`: what ends a line that the next one
# completes.
_INTRODUCES = re.compile(
    r"(?:is|are|was|were|be|with|say|choose|pick|select|recommend|suggest|conclude|是|为|选择?)"
    r"[ *_]*+[:：][ \t*_]*+\Z",
)
_LONGEST_COLON = 24
"""Characters of that."""


_MAY_INTRODUCE = frozenset(":： \t*_")


def introduced(text: str, kind: AnswerKind, sample: Sample) -> str | None:
    """The one option that a line of its own names after a line that ends with ``is:``."""
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

# `### `, `=> `, `∴`, `✅ `: what may come before a last line's answer.
_HEADING = re.compile(r"(?:#{1,6}(?=\s)|>|=>|→|⇒|∴|[✅✔✓☑]\ufe0f?)\s*+")
# `So, `, `In conclusion: `, `We can conclude that `.
OPENING = (
    r"(?:(?:so|therefore|thus|hence|consequently|finally|overall|ultimately|in conclusion"
    r"|in summary|in total|as a result|this means(?: that)?|we (?:can )?conclude that)\b"
    r"[,:]?\s{1,3})"
)
# `Maybe `, `I think it is `, `It might be: `; `可能是`, `我认为是`: what follows is a guess.
_GUESS = re.compile(
    rf"{OPENING}{{0,2}}(?:(?:maybe|perhaps|possibly|probably|likely|most likely|I(?: would|['’]d)?"
    r" (?:think|guess|believe|say|suppose)(?: that)?)[,:]?\s)?"
    r"(?:(?:it|this|that)(?:['’]s| is| was| (?:may|might|could|would|should|must)(?: well| still)?"
    r" be)(?: probably| likely| perhaps| maybe)?:?\s)?"
    r"(?:我(?:认为|觉得|猜)?)?(?:可能|也许|或许|大概|应该|估计)?[是为]?",
    re.IGNORECASE,
)
# A noun that announces the outcome, up to the answer: `Total: `, `The sorted list is `, `Result =`;
# not `The total weight is`.
_RESULT_NOUN = re.compile(
    rf"{OPENING}{{0,2}}(?:the |my |our )?(?:(?:final|overall|grand|total|correct|sorted) )?"
    r"(?:result|total|output|conclusion|verdict|decision|count|sum|value|solution|choice"
    r"|selection|evaluation|(?<=sorted )list|words|order|sequence|sorted|number)"
    r"(?: (?:list|count|order|words|number|value|sequence|of (?:the )?(?:list|words|expression)))?"
    r"[*_]*+\s{0,2}(?:[:：=]|is\b:?|are\b:?|[-–—]\s)[*_]*+",
    re.IGNORECASE,
)
# `So the number of red things is `, `The whole expression evaluates to`.
_COUNT_PHRASE = re.compile(
    rf"{OPENING}{{0,2}}(?:the )?(?:total )?number of [a-z ]{{1,40}}? is\b:?|"
    rf"{OPENING}{{0,2}}(?:the )?(?:whole |entire |given |final )?expression "
    r"(?:is|evaluates to|simplifies to|equals|is equal to)\b:?",
    re.IGNORECASE,
)


def end_of_reply(text: str, kind: AnswerKind, sample: Sample, *, listed: bool) -> str | None:
    """The answer of a reply that ends with nothing else, or with a plain statement of it.

    That is the last line or a code block at the end, alone or as a statement: ``= -50``, ``Total:
    8``, a verdict; where answers go on over lines, the last paragraph; or the whole reply. A letter
    is never taken out of prose, and the last item of a list of answers is none; `listed` says that
    the reply repeats its options.
    """
    block = last_block(text)
    longest = LONGEST_LIST if kind.paragraph else LONGEST_LINE + sum(map(len, sample.choices))
    if len(block) > longest or (_BROKEN.fullmatch(block) and block != text.strip()):
        return None
    if kind.listed and ends_a_list(text, block, kind, sample, listed=listed):
        return None
    if block.isdecimal() and _numbers_next(text, block):
        return None
    parts = [block, *_after_equals(block, text, kind, sample)]
    if len(block) <= LONGEST_LEAD or not is_longer(block, sample.choices, LONGEST_LEAD):
        parts += _announced_parts(clean_segment(block), kind)
    if len(text) <= longest and text.strip() != block:
        parts += [last_paragraph(text), text] if kind.paragraph else [text]
    return next((value for part in parts if (value := kind.whole(part, sample))), None)


def _numbers_next(text: str, block: str) -> bool:
    """Whether a last line is the number of a list's next item, which never came: ``19. So\n20``."""
    lines = text.rstrip()[: -len(block)].rstrip().rpartition("\n")
    return block != "1" and lines[2].lstrip().startswith(
        (f"{int(block) - 1}.", f"{int(block) - 1})")
    )


def _after_equals(block: str, text: str, kind: AnswerKind, sample: Sample) -> list[str]:
    """What follows the last sign of equality of a last line, if it may be the answer."""
    left_side, sign, right_side = block.rpartition("=" if "=" in block else "≈")
    if not sign or left_side[-1:] in ("!", "<", ">"):
        return []
    almost = _ALMOST.search(right_side)
    right_side = right_side[: almost.start()] if almost else right_side
    if kind.equations:
        return [right_side] if kind.evaluates(left_side, sample) else []
    is_name = len(right_side) < 4 and right_side.strip(DRESSING + ".").isalpha()
    is_name = is_name or BROKEN_NUMBER.fullmatch(block) is not None
    return [right_side] if _is_whole(text, kind) and not is_name else []


# `(A`: a list of options that broke off.
_BROKEN = re.compile(r"[(\[][A-Z]")


def _announced_parts(bare: str, kind: AnswerKind) -> list[str]:
    """What may be the answer in a last line that begins with words of its own: ``Total: 8``."""
    parts = []
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


# ` ≈ 0.028`: the same value once more.
_ALMOST = re.compile(r"\s?(?:[≈≃]|\\approx)")


def _is_whole(text: str, kind: AnswerKind) -> bool:
    """Whether a reply with options ends with an equation that was not broken off."""
    ended = text.rstrip().endswith((".", "$", "*", "。"))
    return kind.many and (len(text) <= LONGEST_LINE or ended)


def _begins_list_again(before: str, line: str, block: str) -> bool:
    """Whether a last line and the line above it stood together before, with another label below."""
    turn = f"{line}\n{block}\n"
    at = before.find(turn)
    block_label, next_label = LABELLED.match(block), LABELLED.match(before, at + len(turn))
    return (
        at >= 0
        and block_label is not None
        and next_label is not None
        and block_label[1] != next_label[1]
    )


def ends_a_list(text: str, block: str, kind: AnswerKind, sample: Sample, *, listed: bool) -> bool:
    """Whether the last line is one of several that could each be the answer: repeated options."""
    before = text.rstrip()[: -len(block)].rstrip() if block else ""
    value = kind.whole(block, sample) if before else None
    if value is None:
        return False
    lines = [line for line in before[-LONGEST_LIST:].split("\n") if line.strip()]
    line = lines[-1].strip()
    value_above = kind.whole(line, sample)
    if (value_above is not None and value_above != value) or _begins_list_again(
        before, lines[-1], block
    ):
        return True
    labelled = LABELLED.match(line)
    if labelled and len(value) == 1 and ord(value) == ord(labelled[1]) + 1:
        return True
    if (
        value_above is not None and sample.choices
    ):  # `A.`, `B.`, `C.`, `C.`, `C.`: the list got stuck
        listed_labels = [
            label_match[1] for list_line in lines if (label_match := LABELLED.match(list_line))
        ]
        return "".join(dict.fromkeys(listed_labels)).endswith(chr(ord(value) - 1) + value)
    return listed and len(block) > 8 and value_above is not None
