"""Showing a judge what others wrote, so that none of it can pass for a rule or a verdict."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

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


def without_quotes(text: str, shown: str) -> str:
    """What a judge that was `shown` these blocks says itself, repetitions of them left out.

    A block that is repeated is cut out with its fence; one that is begun and not ended takes the
    rest of the text with it. Lines that held a tag are also cut out in their original spelling.
    """
    code = _OPENING.search(shown)
    if code is not None:
        text = "".join(_outside_blocks(text, code[1]))
    for line in shown.splitlines():
        original = line.replace(STAND_IN, "<").strip()
        if STAND_IN in line and not _is_bare_tag(original):
            text = text.replace(line.strip(), "").replace(original, "")
    return text


def _outside_blocks(text: str, code: str) -> Iterator[str]:
    opening = re.compile(rf"\[begin (\w+) {code}\]")
    position = 0
    while found := opening.search(text, position):
        yield text[position : found.start()]
        ending = f"[end {found[1]} {code}]"
        end = text.find(ending, found.end())
        if end < 0:
            return
        position = end + len(ending)
    yield text[position:]


def _is_bare_tag(line: str) -> bool:
    """Whether a line is one verdict and nothing else, as a judge's own last line may be."""
    return re.fullmatch(r"<(\w+)>[^<>]*</\1>", line) is not None


def _shortened(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    kept = MOST_CHARACTERS // 2
    left_out = len(text) - 2 * kept
    return f"{text[:kept]}\n[{left_out} characters are left out here]\n{text[-kept:]}"
