"""Find the passage of a reply from which its answer was read, and mark it."""

from __future__ import annotations

import re
from typing import NamedTuple

from keju.reporting.format import printable, without_canary
from keju.reporting.gallery import TextExcerpt
from keju.types import Reading, Record

# The end of a sentence: `. `, `。`, or a line break.
_SENTENCE_END = re.compile(r"[.!?]\s+|[。！？\n]\s*")


class ReplyPiece(NamedTuple):
    """A piece of a reply; the passage that was read is marked."""

    text: str
    is_marked: bool


class MarkedReply(NamedTuple):
    """A reply with its middle cut out, in pieces."""

    head: list[ReplyPiece]
    left_out: int
    tail: list[ReplyPiece]

    @property
    def has_mark(self) -> bool:
        """Whether any piece is marked."""
        return any(piece.is_marked for piece in (*self.head, *self.tail))

    @property
    def has_text(self) -> bool:
        """Whether the reply contains more than blanks."""
        return any(piece.text.strip() for piece in (*self.head, *self.tail))


def mark_reply(reply: TextExcerpt, record: Record) -> MarkedReply:
    """Return a reply with the passage marked from which the answer of the headline was read."""
    for passage in _candidate_passages(record, f"{reply.head}\n{reply.tail}"):
        if passage in reply.tail:
            return MarkedReply(
                _unmarked(reply.head), reply.left_out, _mark_last(reply.tail, passage)
            )
        if passage in reply.head:
            return MarkedReply(
                _mark_last(reply.head, passage), reply.left_out, _unmarked(reply.tail)
            )
    return MarkedReply(_unmarked(reply.head), reply.left_out, _unmarked(reply.tail))


def _unmarked(text: str) -> list[ReplyPiece]:
    return [ReplyPiece(text, False)] if text else []


def _candidate_passages(record: Record, text: str) -> list[str]:
    """Return passages that may hold the answer of the headline, the best first.

    Published readers do not record a passage. Then the passage of another reader counts if it read
    the same answer, and at last the answer itself if the reply contains it only once.
    """
    if not record.readings:
        return []
    headline_reading, *other_readings = record.readings
    value = plain_answer(headline_reading)
    passages = [_tighten(headline_reading)]
    if value:
        passages += [
            _tighten(reading) for reading in other_readings if plain_answer(reading) == value
        ]
        passages.append(_unique_word(value, text))
    return [passage for passage in passages if passage]


def plain_answer(reading: Reading) -> str:
    """Return the answer of a reading without brackets: ``(B)`` and ``B`` are the same option."""
    return without_brackets(reading.answer.value or "")


def without_brackets(answer: str) -> str:
    """Return a label without brackets: ``(B)`` and ``B`` are the same option."""
    return answer.strip().strip("()")


def _tighten(reading: Reading) -> str:
    """Return the passage of a reading without the sentences before the one with the answer.

    A passage begins some characters before its marker, in the middle of another sentence:

        ``nter midfielder. So the answer is (E).`` becomes ``So the answer is (E).``
    """
    passage = printable(without_canary(reading.answer.passage)).strip()
    value = plain_answer(reading).casefold()
    starts = [0, *(match.end() for match in _SENTENCE_END.finditer(passage))]
    for start in reversed(starts):
        if value and value in passage[start:].casefold():
            return passage[start:]
    return passage


def _unique_word(value: str, text: str) -> str:
    """Return an answer as the text has it, if the text contains it once and as a whole word."""
    pattern = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)
    matches = [match.group() for match in pattern.finditer(text)]
    return matches[0] if len(matches) == 1 else ""


def _mark_last(text: str, passage: str) -> list[ReplyPiece]:
    """Return a text in pieces with the last occurrence of a passage marked."""
    start = text.rindex(passage)
    end = start + len(passage)
    pieces = [
        ReplyPiece(text[:start], False),
        ReplyPiece(text[start:end], True),
        ReplyPiece(text[end:], False),
    ]
    return [piece for piece in pieces if piece.text]
