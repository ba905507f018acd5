"""Answers that begin or end a reply without being announced: its first line, its last line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from keju.answers.decision import Stated, correction_in
from keju.answers.endings import clauses
from keju.answers.kinds import Kind
from keju.answers.negation import HARMLESS
from keju.answers.segments import (
    DRESSING,
    Statement,
    clean_segment,
    last_block,
    last_paragraph,
)
from keju.types import Sample

BARE = 40
"""Characters of a reply that may be an answer and nothing else, which is looked for first."""
LONGEST_LIST = 800
"""Characters of a list of words that may end a reply."""
LONGEST_LINE = 300
"""Characters of a first line that may be an answer and nothing else."""

# --- the beginning -----------------------------------------------------------------------------

# `B. `, `- (C) `: a line that begins with a label.
LABELLED = re.compile(r"[\s*(\[-]{0,5}([A-Z])(?:[)\].:、]|\Z)")
# `Q1. `, `1) `: what may stand before a leading answer.
_NUMBERED = re.compile(r"\s*+(?:(?:Q ?)?1[.):]\s)?")


def leading_answer(
    text: str, kind: Kind, sample: Sample, marked: Sequence[Stated] = ()
) -> Stated | None:
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
    if value is None:
        return None
    is_label = sum(map(str.isalnum, line)) == 1  # alone, it is not the first of the options
    if not is_label and not (start and start[0].strip()):
        lines = [each for each in text[end : end + 4 * LONGEST_LINE].split("\n") if each.strip()]
        for each in lines[:3]:
            labelled = LABELLED.match(each)
            if (kind.whole(each, sample) or (labelled and labelled[1]) or value) != value:
                return None
    statement = Statement(value)
    gives_way = marked and marked[0].statement != statement
    gives_way = gives_way and text[end : marked[0].start].strip().lower() in HARMLESS
    return Stated(statement, 0, end if gives_way else 0, not gives_way)


# What follows where options are listed: `C. `.
_NEXT_LABEL = re.compile(r"\s*[*(\[]{0,3}[A-Z][)\].:、项]")


def leading_sentence(text: str, kind: Kind, sample: Sample) -> str | None:
    """The answer that is the whole first sentence, with its reasons after it: ``B、核糖体。``."""
    if not kind.listed:
        return None
    start = len(text) - len(text.lstrip())
    first = next(clauses(text[start : start + LONGEST_LINE]), "")
    if first.startswith("```"):
        return None
    rest = start + len(first)
    if _NEXT_LABEL.match(text[rest : rest + BARE]) or len(first) > LONGEST_LINE:
        return None
    value = kind.leading(first, sample)
    return None if value and correction_in(text[rest:]) else value


# --- the end ----------------------------------------------------------------------------------

# `### `, `=> `, `∴`: what may stand before a last line's answer.
_HEADING = re.compile(r"(?:#{1,6}(?=\s)|>|=>|→|⇒|∴)\s*+")
# `So, `, `In conclusion: `, `We can conclude that `.
OPENING = (
    r"(?:(?:so|therefore|thus|hence|consequently|finally|overall|ultimately|in conclusion"
    r"|in summary|in total|as a result|this means(?: that)?|we (?:can )?conclude that)\b"
    r"[,:]?\s{1,3})"
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


def end_of_reply(text: str, kind: Kind, sample: Sample, *, listed: bool) -> str | None:
    """The answer of a reply that ends with nothing else, or with a plain statement of it.

    That is the last line or a code block at the end, alone or as a statement: ``= -50``, ``Total:
    8``, a verdict; where answers go on over lines, the last paragraph; or the whole reply. A letter
    is never taken out of prose, and the last item of a list of answers is none; `listed` says that
    the reply repeats its options.
    """
    block = last_block(text)
    longest = LONGEST_LIST if kind.paragraph else LONGEST_LINE + sum(map(len, sample.choices))
    if len(block) > longest or (
        kind.listed and ends_a_list(text, block, kind, sample, listed=listed)
    ):
        return None
    bare = clean_segment(block)
    parts = [block]
    if heading := _HEADING.match(bare):
        bare = bare[heading.end() :].strip(DRESSING)
        parts.append(bare)
    left, sign, right = _ALMOST.split(bare)[0].rpartition("=")
    if sign and left[-1:] not in ("!", "<", ">"):
        a_name = len(right) < 4 and right.strip().isalpha()
        if kind.evaluates(left, sample) if kind.equations else _is_whole(text, kind) and not a_name:
            parts.append(right)
    if kind.equations and (counted := _COUNT_PHRASE.match(bare)):
        parts.append(bare[counted.end() :])
    if named := _RESULT_NOUN.match(bare):
        parts.append(bare[named.end() :])
    if len(text) <= longest:
        parts += [last_paragraph(text), text] if kind.paragraph else [text]
    return next((value for part in parts if (value := kind.whole(part, sample))), None)


# ` ≈ 0.028`: the same value once more.
_ALMOST = re.compile(r"\s?(?:[≈≃]|\\approx)")


def _is_whole(text: str, kind: Kind) -> bool:
    """Whether a reply with options ends with an equation that was not broken off."""
    ended = text.rstrip().endswith((".", "$", "*", "。"))
    return kind.many and (len(text) <= LONGEST_LINE or ended)


def ends_a_list(text: str, block: str, kind: Kind, sample: Sample, *, listed: bool) -> bool:
    """Whether the last line is one of several that could each be the answer: repeated options."""
    before = text.rstrip()[: -len(block)].rstrip() if block else ""
    line = before[before.rfind("\n") + 1 :].strip()
    value = kind.whole(block, sample) if line else None
    if value is None:
        return False
    other = kind.whole(line, sample)
    if other is not None and other != value:
        return True
    labelled = LABELLED.match(line)
    if labelled and len(value) == 1 and ord(value) == ord(labelled[1]) + 1:
        return True
    return listed and len(block) > 8 and other is not None
