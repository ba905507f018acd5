"""Showing a judge what others wrote, so that none of it can pass for a rule or a verdict."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

STAND_IN = "‹"
"""Replaces the first character of whatever looks like a tag that could mislead a judge."""
MOST_CHARACTERS = 40_000
"""A longer text is shown without its middle: an answer stands at the end, a task at the start."""
_CODE_BYTES = 6
_TAGS = re.compile(
    r"<(?=\||\s{0,8}/?\s{0,8}(?:grade|score|verdict|answer|question|target|rules?"
    r"|system|user|assistant|instructions?)\b)",
    re.IGNORECASE,
)
_VERDICT = re.compile(r"<\s{0,4}(grade|score)\s{0,4}>[^<>]*<\s{0,4}/\s{0,4}\1\s{0,4}>", re.I)
_MARKS = "\"'“”‘’«»「」"
_OPENING = re.compile(r"^\[begin \w+ ([0-9a-f]{12})\]$", re.MULTILINE)


def defused(text: str) -> str:
    """`text` with every tag of a verdict, of a block and of a chat template made harmless."""
    return _TAGS.sub(STAND_IN, text)


def fence(*texts: str) -> str:
    """A code for the lines around blocks of `texts`.

    It follows from the texts, so that the same request is made again on resume, and none of the
    texts can hold it: to write it down an author would have to know the hash of the result.
    """
    digest = hashlib.blake2b(digest_size=_CODE_BYTES)
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def block(name: str, text: str, code: str) -> str:
    """One text between two lines that carry the code."""
    return f"[begin {name} {code}]\n{defused(_shortened(text))}\n[end {name} {code}]"


def without_blocks(text: str, shown: str) -> str:
    """What a judge that was `shown` some blocks says outside whole repetitions of them.

    Of a block that is begun and never ended only the lines that really are repeated are cut out,
    so that a verdict of the judge's own stays.
    """
    code = _OPENING.search(shown)
    return "".join(_outside_blocks(text, shown, code[1])) if code is not None else text


class Quotation(NamedTuple):
    """Where a judge repeats a line that held a verdict when it was shown."""

    start: int
    end: int
    inline: bool
    """In quotation marks inside a sentence; otherwise the repetition is a line of its own."""


def quotations(text: str, shown: str) -> list[Quotation]:
    """The repetitions of shown verdicts, tags in their original spelling, in a judge's `text`.

    A shown line counts only if it held a whole verdict and more: a tag, half a verdict or a bare
    one could be found in whatever a judge writes itself.
    """
    originals = {line.replace(STAND_IN, "<").strip() for line in shown.splitlines()
                 if STAND_IN in line}  # fmt: skip
    lines = {line for line in originals if _VERDICT.search(line) and not _VERDICT.fullmatch(line)}
    found = []
    for line in lines:
        if line in text:
            quoted = re.finditer(rf"[{_MARKS}]{re.escape(line)}[{_MARKS}]", text)
            found += [Quotation(*match.span(), inline=True) for match in quoted]
    position = 0
    for line in text.splitlines(keepends=True) if lines else ():
        if line.strip() in lines:
            found.append(Quotation(position, position + len(line), inline=False))
        position += len(line)
    return found


def _outside_blocks(text: str, shown: str, code: str) -> Iterator[str]:
    opening = re.compile(rf"^[ \t]*\[begin (\w+) {code}\][ \t]*$", re.MULTILINE)
    position = 0
    while found := opening.search(text, position):
        yield text[position : found.start()]
        ending = f"[end {found[1]} {code}]"
        end = text.find(ending, found.end())
        if end < 0:
            yield _after_repetition(text[found.end() :], shown.partition(found[0].strip())[2])
            return
        position = end + len(ending)
    yield text[position:]


def _after_repetition(text: str, shown: str) -> str:
    """`text` from its first line on that is not the next one of `shown`."""
    lines = text.splitlines(keepends=True)
    same = 0
    for said, line in zip(lines, shown.splitlines(), strict=False):
        if said.strip() not in (line.strip(), line.replace(STAND_IN, "<").strip()):
            break
        same += 1
    return "".join(lines[same:])


def _shortened(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    kept = MOST_CHARACTERS // 2
    left_out = len(text) - 2 * kept
    return f"{text[:kept]}\n[{left_out} characters are left out here]\n{text[-kept:]}"
