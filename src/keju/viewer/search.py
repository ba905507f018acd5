"""Words in replies: a search through the bytes of the journal, in which case does not matter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import re2

from keju.runs.journal import FILE
from keju.types import Record
from keju.viewer.index import Index

_CHUNK: Final = 1 << 23


def holding(index: Index, text: str) -> set[int]:
    """The numbers of the replies that hold a text, in their id, reply, reasoning or transcript."""
    numbers = {start: number for number, start in enumerate(index.starts)}
    decode, folded = msgspec.json.Decoder(Record).decode, text.casefold()
    return {
        numbers[start]
        for start, line in _lines_with(index.folder / FILE, text)
        if start in numbers and _holds(decode(line), folded)
    }


def _lines_with(path: Path, text: str) -> Iterator[tuple[int, bytes]]:
    """The lines whose bytes hold a text as JSON has it, each after the place where it begins."""
    options = re2.Options()
    options.case_sensitive = False
    written = msgspec.json.encode(text)[1:-1].decode()
    pattern = re2.compile(re2.escape(written), options)
    begin = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            chunk += file.readline()
            place = 0
            while found := pattern.search(chunk, place):
                start = chunk.rfind(b"\n", 0, found.start()) + 1
                place = chunk.find(b"\n", found.end()) + 1
                if not place:  # a torn last line
                    break
                yield begin + start, chunk[start:place]
            begin += len(chunk)


def _holds(record: Record, folded: str) -> bool:
    reply = record.reply
    turns = reply.episode.turns if reply.episode is not None else ()
    texts = (record.id, reply.text, reply.reasoning, *(turn.text for turn in turns))
    return any(folded in text.casefold() for text in texts)
