"""The part of a reply that may be an answer: where it stands, where it ends, what only dresses it.

Reasoning is not the answer: think blocks are cut out before any reader sees the text. A marker
(``So the answer is``) introduces a `Segment`; what the segment says is a `AnswerStatement`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from keju.types import Reply

OPEN = "<think>"
CLOSE = "</think>"

_UNUSUAL = (
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
)
"""How some models mark their reasoning, other than with ``<think>``."""


_FINAL_CHANNEL = "<|channel|>final<|message|>"
"""What stands before the answer of a model that writes into channels."""


# `<|return|>`, `<|im_end|>`: tokens that end a message.
_CLOSING_TOKENS = re.compile(
    r"(?:\s*<\|(?:return|end|call|im_end|eot_id|end_of_text|endoftext)\|>)+\s*\Z"
)


class SplitReply(NamedTuple):
    """A reply taken apart."""

    reasoning: str
    text: str
    """What is left to read; as received where there was nothing to cut."""
    unclosed: bool
    """The reasoning never ended, so whatever follows its start is not an answer."""


def split_thinking(text: str) -> SplitReply:
    """Separate reasoning from the answer text.

    Every closed ``<think>…</think>`` is reasoning. If a ``</think>`` without a beginning remains,
    everything up to the last one is. A ``<think>`` that never closes makes the rest reasoning.
    """
    if OPEN not in text and CLOSE not in text:
        return SplitReply("", text, False)
    outside: list[str] = []
    thoughts: list[str] = []
    position, unclosed = 0, False
    while (start := text.find(OPEN, position)) >= 0:
        outside.append(text[position:start])
        end = text.find(CLOSE, start)
        unclosed = end < 0
        thoughts.append(text[start + len(OPEN) : None if unclosed else end])
        position = len(text) if unclosed else end + len(CLOSE)
    outside.append(text[position:])
    answer = "".join(outside)
    stray = answer.rfind(CLOSE)
    if stray >= 0:
        thoughts.insert(0, answer[:stray].replace(CLOSE, "\n"))
        answer = answer[stray + len(CLOSE) :]
    reasoning = "\n".join(part for part in map(str.strip, thoughts) if part)
    return SplitReply(reasoning, answer.strip(), unclosed)


def as_reply(text: str, *, reasoning: Iterable[str] = (), finish: str = "", **fields: Any) -> Reply:
    """A text that a model wrote, as the reply it is: its thoughts kept apart.

    `reasoning` is what came apart from the text; `facts` are further fields of `Reply`.
    """
    if not reasoning and OPEN not in text and CLOSE not in text:  # as most replies are
        return Reply(text, finish=finish, **fields)
    thought = split_thinking(text)
    thoughts = "\n".join([part for part in (*reasoning, thought.reasoning) if part])
    raw = text if thought.text is not text else ""
    return Reply(thought.text, thoughts, finish, raw=raw, **fields)


def split_any_thinking(text: str) -> SplitReply:
    """As `split_thinking`, for unusual tags too; a reply without any is left as it is."""
    if "<|" in text:
        _, final, answer = text.rpartition(_FINAL_CHANNEL)
        text = _CLOSING_TOKENS.sub("", answer if final else text)
    for begin, end in _UNUSUAL:
        text = text.replace(begin, OPEN).replace(end, CLOSE)
    return split_thinking(text)


LONGEST = 4000
"""Characters of a segment; whatever goes on for longer is not an answer."""

Spans = Sequence[tuple[int, int]]


class Segment(NamedTuple):
    """What a marker introduces, and where the marker stands."""

    text: str
    """Rest of the marker's line, or the next non-empty line; empty if neither says anything."""
    start: int
    end: int


class AnswerStatement(NamedTuple):
    """The answer that a segment states, or why it states none."""

    value: str | None
    reason: str = ""


class Conclusion(NamedTuple):
    """The answer that a text gives without announcing it, the rule that found it, and where."""

    value: str | None = None
    reason: str = ""
    rule: str = ""
    passage: str = ""


AMBIGUOUS = AnswerStatement(None, "ambiguous")
DENIED = AnswerStatement(None, "denied")
INVALID_LABEL = AnswerStatement(None, "invalid_label")
NO_LABEL = AnswerStatement(None, "no_label")
NO_ANSWER = AnswerStatement(None, "invalid_answer")
SILENT = (NO_LABEL, NO_ANSWER)
"""What prose after a marker says: nothing, so that an earlier marker may count."""


# --- where a segment stands --------------------------------------------------------------------


def segments_after(
    text: str, pattern: re.Pattern[str], *, paragraph: bool = False
) -> list[Segment]:
    """The segment after each match of `pattern`, which must not backtrack, in order."""
    spans = [match.span() for match in pattern.finditer(text)]
    return [segment_at(text, spans, number, paragraph=paragraph) for number in range(len(spans))]


# The beginning or the end of a code block: ```` ```text ````, `~~~`; not ```` ```a b ````.
_FENCE = re.compile(r"(?:```|~~~)[\w+.-]*+")
_EMPTY_LINES = frozenset({"$$", "\\[", "\\(", "---", "***", '"""'})
_BULLETS = ("- ", "* ", "• ")


def segment_at(text: str, spans: Spans, number: int, *, paragraph: bool = False) -> Segment:
    """The segment after one of the markers at `spans`, which are in order and do not overlap.

    A segment is the rest of the marker's line or, if that is empty, the next non-empty line (with
    `paragraph` on to the next blank line); of a list all items, since several are not one answer.
    It ends before a closing tag. It never reaches beyond the next marker, so that all segments
    together are no longer than the text, and is cut after `LONGEST` characters.
    """
    start, end = spans[number]
    limit = spans[number + 1][0] if number + 1 < len(spans) else len(text)
    limit = min(limit, end + LONGEST)
    line_end = text.find("\n", end, limit)
    segment = text[end : line_end if line_end >= 0 else limit].strip()
    if line_end >= 0 and (not segment.strip("*_`") or _sets_apart(segment)):
        block: list[str] = []
        while line_end >= 0:
            next_end = text.find("\n", line_end + 1, limit)
            line = text[line_end + 1 : next_end if next_end >= 0 else limit].strip()
            line_end = next_end
            if not line or _sets_apart(line):
                if block:
                    break
                continue
            is_item = block and line[:2] in _BULLETS and block[0][:2] in _BULLETS
            if block and not (paragraph or is_item):
                break
            block.append(line)
        segment = "\n".join(block)
    if "</" in segment:
        segment = segment.partition("</")[0].rstrip()
    return Segment(segment, start, end)


def _sets_apart(line: str) -> bool:
    """Whether a line holds no answer itself: the beginning or end of a code block, a rule."""
    return line in _EMPTY_LINES or _FENCE.fullmatch(line) is not None


def last_line(text: str) -> str:
    """The last line that is not blank, stripped."""
    bare = text.rstrip()
    return bare[bare.rfind("\n") + 1 :].strip()


def last_block(text: str) -> str:
    """What ends the text: the inside of a code block, or else the last line."""
    line = last_line(text)
    if line[:3] not in ("```", "~~~"):
        return line
    inside = text.rstrip()[: -len(line)].rstrip()
    opening = inside.rfind(f"\n{line[:3]}")
    if opening < 0 and not inside.startswith(line[:3]):
        return line
    return inside[opening + 1 :].partition("\n")[2].strip()


def last_paragraph(text: str) -> str:
    """The lines after the last blank one; of several, not a first one that ends with a colon."""
    bare = text.rstrip()
    paragraph = bare[bare.rfind("\n\n") + 1 :].strip()
    heading, _, following_lines = paragraph.partition("\n")
    return (
        following_lines
        if following_lines and heading.rstrip("*_ ").endswith((":", "："))
        else paragraph
    )


# `<answer>`, `</Answer>`; group 1 is set where it closes.
_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)


def tag_content(text: str) -> str | None:
    """What stands inside the last closed ``<answer>…</answer>``; None if there is none."""
    inside: str | None = None
    begin = -1
    for match in _TAG.finditer(text):
        if not match[1]:
            begin = match.end()
        elif begin >= 0:
            inside, begin = text[begin : match.start()], -1
    return inside


# Where a model runs on: `Q: `, `**Question 2:**`, `### Problem 3`, `Next question`, `Human:`,
# `[INST]`, `题目：`, `第2题`. Not `Questions`, `Problem:`, `User stories`. Most lines begin with no
# letter of those, and are left at once.
NEXT_QUESTION = re.compile(
    r"\n[ \t#*_>-]{0,8}+(?=[QPETNAHUIS<\[问题第下另用例以])"
    r"(?:Q(?:uestion)?\s?(?:(?:[Nn]o\.? ?|#)?\d{1,3})?[*_]{0,3}[:：]"
    r"|Q(?:uestion)? ?\d{1,3}[*_]{0,3}[.)\n]|(?:Problem|Exercise|Task|Example|Quiz) #?\d{1,3}\b"
    r"|(?:Next|Another|New) (?:question|problem|task|example|exercise)\b"
    r"|(?:Human|User|Instruction|Student|Input|Prompt)[*_]{0,2}:|\[INST\]"
    r"|<\|(?:im_start|start_header_id|user|endoftext|eot_id)"
    r"|The following (?:is|are) (?:an? )?(?:multiple|single)[- ]choice"
    r"|(?:问题|题目)\s?\d{0,3}[*_]{0,2}[:：]|第 ?[\d一二三四五六七八九十]{1,3} ?题"
    r"|[下另]一道?题|(?:用户|问)[:：]|例题? ?\d"
    r"|以下是(?:中国|一[道个]))"
)
_OPENING_QUESTION = re.compile(NEXT_QUESTION.pattern.replace(r"\n[", r"\s*+[", 1))


def find_opening_question(text: str) -> int:
    """Where the question begins that a reply opens with, ``Q: Who …``; -1 without one."""
    if text[:1] in "QP*#问题第" or text[:1].isspace():
        match = _OPENING_QUESTION.match(text)
        return match.end() if match else -1
    return -1


class ReplyStretch(NamedTuple):
    """A stretch of a reply between two questions."""

    start: int
    end: int
    question: int
    """Where the question that it begins with stands; -1 where it begins with none."""


def split_stretches(text: str) -> list[ReplyStretch]:
    """A reply taken apart where a line begins a question: its own, restated, or an invented one."""
    opening_match = _OPENING_QUESTION.match(text)
    opening = opening_match.end() if opening_match else -1
    starts = [(0, opening)]
    starts += [
        (match.start(), match.end()) for match in NEXT_QUESTION.finditer(text, max(0, opening - 1))
    ]
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return [ReplyStretch(start, end, at) for (start, at), end in zip(starts, ends, strict=True)]


# --- what dresses an answer --------------------------------------------------------------------

DRESSING = " \t\r\n\f\v\u00a0\u3000*_`$\"'“”‘’«»「」『』"
"""What may stand around an answer without being part of it."""

# The beginning of a command that only dresses, `\boxed{` or `\text {`; a delimiter, `\(` or `\,`;
# any other brace. Not `\frac{`, of which only the brace matches.
_LATEX = re.compile(
    r"\\(?:boxed|fbox|text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|operatorname) ?\{"
    r"|\\[(){}\[\],;:! ]|[{}]"
)

ADVERBS = (
    r"(?:(?:definitely|indeed|clearly|therefore|thus|hence|then|simply|certainly|obviously|surely"
    r"|actually|undoubtedly|evidently|apparently|ultimately|finally|exactly|just|probably|likely"
    r"|in fact|of course|no doubt|without (?:a )?doubt|most (?:likely|probably|certainly))"
    r"\b[,:]? {0,4})"
)
"""One word of emphasis with what follows it, ``clearly, ``; letter case does not matter."""

BULLET = r"(?:[-–—•·▪●>→]\s{1,4}(?=\S))"
"""The sign of a list's item, ``- B``. A number's minus looks the same, so numbers keep theirs."""

# `of course, clearly B`; not `- clearly B`: before a number the dash may be a minus.
_EMPHASIS = re.compile(rf"{ADVERBS}{{1,3}}", re.IGNORECASE)
# `- **clearly yes`: a bullet, decoration and emphasis, each of which may be missing.
_LEAD = re.compile(rf"{BULLET}?[*_`\"'“]{{0,3}}{ADVERBS}{{0,3}}", re.IGNORECASE)


def clean_segment(segment: str) -> str:
    r"""Return the bare answer inside `segment`.

    Unwraps ``\boxed{}``, ``\text{}`` and their like, ``\(…\)`` and ``$``; strips white space,
    ``*``, ``_``, backticks and quotes; drops one final full stop.
    """
    if segment.isalnum():
        return segment
    bare = segment.strip(DRESSING)
    if "\\" in bare:
        bare = unwrap_latex(bare).strip(DRESSING)
    if bare.endswith((".", "。")):
        bare = bare[:-1].rstrip(DRESSING)
    return bare


@lru_cache(maxsize=16)
def unwrap_latex(segment: str) -> str:
    r"""Remove the commands that only dress an answer; braces of other commands stay.

    One pass with a stack, so that nesting costs nothing: ``\boxed{\text{B}}`` is ``B``. The last
    line of a reply is cleaned again and again, by every rule that looks at it.
    """
    parts: list[str] = []
    wrappers: list[bool] = []
    position = 0
    for match in _LATEX.finditer(segment):
        parts.append(segment[position : match.start()])
        position = match.end()
        token = match[0]
        if token == "{":
            wrappers.append(False)
            parts.append(token)
        elif token == "}":
            if not (wrappers and wrappers.pop()):
                parts.append(token)
        elif token.endswith("{") and token != r"\{":
            wrappers.append(True)
        elif token in (r"\{", r"\}", r"\ "):
            parts.append(token[1])
    parts.append(segment[position:])
    return "".join(parts)


def without_lead(segment: str, *, bullet: bool = True) -> str:
    """`segment` from its answer on: without a bullet and words such as ``clearly`` before it.

    Where a dash may be a minus, ``bullet=False`` leaves it.
    """
    lead = (_LEAD if bullet else _EMPHASIS).match(segment)
    return segment[lead.end() :] if lead else segment
