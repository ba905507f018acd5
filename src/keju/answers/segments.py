"""The part of a reply that may be an answer: its beginning, its end and its decoration.

Reasoning is not the answer. Keju removes think blocks before a reader gets the text. A marker
(``So the answer is``) introduces a `Segment`. Its content is an `AnswerStatement`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.phrases import load_pattern, load_phrase
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
"""The tags of some models for their reasoning, other than ``<think>``."""


_FINAL_CHANNEL = "<|channel|>final<|message|>"
"""The tokens before the answer of a model that writes into channels."""


_CLOSING_TOKENS = load_pattern("closing_tokens")


class SplitReply(NamedTuple):
    """A reply, split into reasoning and answer text."""

    reasoning: str
    text: str
    """The text without reasoning. It is unchanged if there was no reasoning."""
    unclosed: bool
    """Whether the reasoning never ended. Then the text after its start is not an answer."""


def split_thinking(text: str) -> SplitReply:
    """Separate reasoning from the answer text.

    Every closed ``<think>…</think>`` is reasoning. If a ``</think>`` without a beginning remains,
    all text up to the last one is reasoning. After a ``<think>`` that never closes, all text is
    reasoning.
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
    """Return the reply for a text of a model, with separate reasoning.

    `reasoning` contains the reasoning that the model sent separately. `fields` are more fields of
    `Reply`.
    """
    if not reasoning and OPEN not in text and CLOSE not in text:  # the usual case
        return Reply(text, finish=finish, **fields)
    thought = split_thinking(text)
    thoughts = "\n".join([part for part in (*reasoning, thought.reasoning) if part])
    raw = text if thought.text is not text else ""
    return Reply(thought.text, thoughts, finish, raw=raw, **fields)


def split_any_thinking(text: str) -> SplitReply:
    """Separate reasoning like `split_thinking`, but also with unusual tags and channels."""
    if "<|" in text:
        _, final, answer = text.rpartition(_FINAL_CHANNEL)
        text = _CLOSING_TOKENS.sub("", answer if final else text)
    for begin, end in _UNUSUAL:
        text = text.replace(begin, OPEN).replace(end, CLOSE)
    return split_thinking(text)


LONGEST = 4000
"""The longest segment, in characters. Longer text is not an answer."""

Spans = Sequence[tuple[int, int]]


class Segment(NamedTuple):
    """The text that a marker introduces, and the position of the marker."""

    text: str
    """The remaining line after the marker, or the next non-empty line. It may be empty."""
    start: int
    end: int


class AnswerStatement(NamedTuple):
    """The answer of a segment, or the reason why it has none."""

    value: str | None
    reason: str = ""


class Conclusion(NamedTuple):
    """The unannounced answer of a text, the rule that found it, and the passage."""

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
"""The statements of prose after a marker. They are ignored, so an earlier marker may count."""


# --- finding segments --------------------------------------------------------------------------


def find_segments(text: str, pattern: re.Pattern[str], *, paragraph: bool = False) -> list[Segment]:
    """Return the segment after each match of `pattern`, in order. It must not backtrack."""
    spans = [match.span() for match in pattern.finditer(text)]
    return [read_segment(text, spans, number, paragraph=paragraph) for number in range(len(spans))]


# The beginning or the end of a code block: ```` ```text ````, `~~~`; not ```` ```a b ````.
_FENCE = lazy_pattern(r"(?:```|~~~)[\w+.-]*+")
_EMPTY_LINES = frozenset({"$$", "\\[", "\\(", "---", "***", '"""'})
_BULLETS = frozenset({"- ", "* ", "• "})


def read_segment(text: str, spans: Spans, number: int, *, paragraph: bool = False) -> Segment:
    """Return the segment after one of the markers at `spans`, which are ordered without overlaps.

    A segment is the remaining line after the marker. If that is empty, it is the next non-empty
    line, or with `paragraph` all lines up to the next blank line. A list is one segment with all
    its items. A segment ends before a closing tag, before the next marker, and after `LONGEST`
    characters. So all segments together are not longer than the text.
    """
    start, end = spans[number]
    limit = spans[number + 1][0] if number + 1 < len(spans) else len(text)
    limit = min(limit, end + LONGEST)
    line_end = text.find("\n", end, limit)
    segment = text[end : line_end if line_end >= 0 else limit].strip()
    if line_end >= 0 and (not segment.strip("*_`") or _is_separator_line(segment)):
        segment = _read_next_lines(text, line_end, limit, paragraph=paragraph)
    if "</" in segment:
        segment = segment.partition("</")[0].rstrip()
    return Segment(segment, start, end)


def _read_next_lines(text: str, line_end: int, limit: int, *, paragraph: bool) -> str:
    """Return the next line that is not empty, a list of items, or with `paragraph` a paragraph."""
    block: list[str] = []
    while line_end >= 0:
        next_end = text.find("\n", line_end + 1, limit)
        line = text[line_end + 1 : next_end if next_end >= 0 else limit].strip()
        line_end = next_end
        if not line or _is_separator_line(line):
            if block:
                break
            continue
        if block and not (paragraph or {line[:2], block[0][:2]} <= _BULLETS):
            break
        block.append(line)
    return "\n".join(block)


def _is_separator_line(line: str) -> bool:
    """Whether a line is only a separator: the beginning or end of a code block, a rule."""
    return line in _EMPTY_LINES or _FENCE.fullmatch(line) is not None


def last_line(text: str) -> str:
    """Return the last line that is not blank, stripped."""
    bare = text.rstrip()
    return bare[bare.rfind("\n") + 1 :].strip()


def last_block(text: str) -> str:
    """Return the content of a code block at the end of a text, or else the last line."""
    line = last_line(text)
    if line[:3] not in ("```", "~~~"):
        return line
    inside = text.rstrip()[: -len(line)].rstrip()
    opening = inside.rfind(f"\n{line[:3]}")
    if opening < 0 and not inside.startswith(line[:3]):
        return line
    return inside[opening + 1 :].partition("\n")[2].strip()


def last_paragraph(text: str) -> str:
    """Return the lines after the last blank one, without a first line that ends with a colon."""
    bare = text.rstrip()
    paragraph = bare[bare.rfind("\n\n") + 1 :].strip()
    heading, _, following_lines = paragraph.partition("\n")
    return (
        following_lines
        if following_lines and heading.rstrip("*_ ").endswith((":", "："))
        else paragraph
    )


# `<answer>`, `</Answer>`; group 1 is set where it closes.
_TAG = lazy_pattern(r"<(/?)answer>", re.IGNORECASE)


def find_tag_content(text: str) -> str | None:
    """Return the content of the last closed ``<answer>…</answer>``, or None."""
    inside: str | None = None
    begin = -1
    for match in _TAG.finditer(text):
        if not match[1]:
            begin = match.end()
        elif begin >= 0:
            inside, begin = text[begin : match.start()], -1
    return inside


NEXT_QUESTION = load_pattern("next_question")
_OPENING_QUESTION = lazy_pattern(load_phrase("next_question").replace(r"\n[", r"\s*+[", 1))


def find_opening_question(text: str) -> int:
    """Return the position of a question at the beginning of a reply, ``Q: Who …``, or -1."""
    if text[:1] in "QP*#问题第" or text[:1].isspace():
        match = _OPENING_QUESTION.match(text)
        return match.end() if match else -1
    return -1


class ReplyStretch(NamedTuple):
    """The part of a reply between two questions."""

    start: int
    end: int
    question: int
    """The position of the question at its beginning; -1 without one."""


def split_stretches(text: str) -> list[ReplyStretch]:
    """Return the stretches of a reply. Each restated or invented question begins a new one."""
    opening_match = _OPENING_QUESTION.match(text)
    opening = opening_match.end() if opening_match else -1
    starts = [(0, opening)]
    starts += [
        (match.start(), match.end()) for match in NEXT_QUESTION.finditer(text, max(0, opening - 1))
    ]
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return [ReplyStretch(start, end, at) for (start, at), end in zip(starts, ends, strict=True)]


# --- decoration of an answer -------------------------------------------------------------------

DRESSING = " \t\r\n\f\v\u00a0\u3000*_`$\"'“”‘’«»「」『』"
"""The characters around an answer that are not part of it."""

# The beginning of a decorative command, `\boxed{` or `\text {`; a delimiter, `\(` or `\,`; another
# brace. Not `\frac{`, of which only the brace matches.
_LATEX = lazy_pattern(
    r"\\(?:boxed|fbox|text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|operatorname) ?\{"
    r"|\\[(){}\[\],;:! ]|[{}]"
)

ADVERBS = load_phrase("adverbs")

BULLET = load_phrase("bullet")

# `of course, clearly B`; not `- clearly B`: before a number the dash may be a minus.
_EMPHASIS = lazy_pattern(rf"{ADVERBS}{{1,3}}", re.IGNORECASE)
# `- **clearly yes`: a bullet, decoration and emphasis, each of which may be missing.
_LEAD = lazy_pattern(rf"{BULLET}?[*_`\"'“]{{0,3}}{ADVERBS}{{0,3}}", re.IGNORECASE)


def clean_segment(segment: str) -> str:
    r"""Return the bare answer inside `segment`.

    This unwraps ``\boxed{}``, ``\text{}`` and similar commands, ``\(…\)`` and ``$``. It strips
    white space, ``*``, ``_``, backticks and quotes. It removes one final full stop.
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
    r"""Remove the commands that are only decoration. Braces of other commands stay.

    One pass with a stack handles nested commands: ``\boxed{\text{B}}`` is ``B``. The result is
    cached, since several rules clean the last line of a reply.
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


def remove_lead(segment: str, *, bullet: bool = True) -> str:
    """Return `segment` without a bullet and words like ``clearly`` before its answer.

    If a dash may be a minus, ``bullet=False`` keeps it.
    """
    lead = (_LEAD if bullet else _EMPHASIS).match(segment)
    return segment[lead.end() :] if lead else segment
