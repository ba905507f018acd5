"""Which replies hold a text, and which a condition in SQL accepts.

A text is looked for in the bytes of the journal, in which case does not matter. DuckDB evaluates
a condition in a child process (`condition`), block by block of the journal, so that a long run
takes no more memory than a short one. The child can read nothing else and write nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import re2

from keju.errors import Hint, MissingExtra
from keju.runs.journal import FILE
from keju.types import Record
from keju.viewer.blocks import blocks
from keju.viewer.condition import MEMORY, Task, evaluation
from keju.viewer.index import Details, Index

_CHUNK: Final = 1 << 21
_BLOCK: Final = 1 << 22
"""Bytes of lines that a condition is put to at once, about."""
_LEAST_BUFFER: Final = 1 << 18
"""Bytes that DuckDB reads at once, at the least; it takes memory for a few times as many."""
_CONTROLS: Final = bytes(range(32))

FIELDS: Final = {
    "id": "id",
    "exam": "bench",
    "arm": "coalesce(arm, '')",
    "epoch": "coalesce(epoch, 0)",
    "subset": "coalesce(facts.subset, '')",
    "outcome": "facts.outcome",
    "score": "facts.score",
    "tier": "coalesce(facts.tier, '')",
    "differ": "facts.differ",
    "tools": "facts.tools",
    "answer": "readings[1].answer.value",
    "reason": "readings[1].answer.reason",
    "target": "target",
    "reply": "coalesce(reply.text, '')",
    "reasoning": "coalesce(reply.reasoning, '')",
    "length": "length(coalesce(reply.text, ''))",
    "finish": "coalesce(reply.finish, '')",
    "error": "reply.error.kind",
    "seconds": "coalesce(reply.seconds, 0)",
    "input_tokens": "coalesce(reply.usage.input, 0)",
    "output_tokens": "coalesce(reply.usage.output, 0)",
    "attempts": "1 + coalesce(len(faults), 0)",
}
"""What a condition may name, and what it is made of."""
NUMBER: Final = '"#"'
"""The column of the index's number, which no condition names by chance."""
_LINE: Final = {
    "#": "BIGINT",
    "facts": {
        "subset": "VARCHAR",
        "outcome": "VARCHAR",
        "score": "DOUBLE",
        "tier": "VARCHAR",
        "differ": "BOOLEAN",
        "tools": "BOOLEAN",
    },
    "id": "VARCHAR",
    "bench": "VARCHAR",
    "arm": "VARCHAR",
    "epoch": "BIGINT",
    "target": "VARCHAR",
    "reply": {
        "text": "VARCHAR",
        "reasoning": "VARCHAR",
        "finish": "VARCHAR",
        "seconds": "DOUBLE",
        "usage": {"input": "BIGINT", "output": "BIGINT"},
        "error": {"kind": "VARCHAR"},
    },
    "readings": [{"answer": {"value": "VARCHAR", "reason": "VARCHAR"}}],
    "faults": ["JSON"],
}
"""What is read of a line; what it does not have is NULL. Number and facts are the index's, with the
judges' grades."""
_SHAPE: Final = msgspec.json.encode(_LINE).decode()


def can_query() -> bool:
    """Whether conditions can be put: they need DuckDB."""
    return find_spec("duckdb") is not None


def matching(
    index: Index,
    details: Details,
    subsets: Mapping[str, Sequence[str]],
    where: str,
    has_left: Callable[[], bool] = lambda: False,
) -> bytearray:
    """Return, by number, whether a condition accepts the reply; UsageError if it is not valid.

    `subsets` has the names of the subsets by exam. `has_left` says whether the browser has gone;
    the condition is then stopped.
    """
    if not can_query():
        raise MissingExtra(Hint("extra_for_condition"), "data")
    accepted = bytearray(len(index))
    with TemporaryDirectory(prefix="keju-view-") as folder:
        block = Path(folder).resolve() / "lines"
        task = Task(where, str(block), _QUERY, _SHAPE, MEMORY)
        with evaluation(task, has_left) as running:
            for longest in _blocks(block, index, details, subsets):
                for number in running.accepted(max(2 * longest, _LEAST_BUFFER)):
                    accepted[number] = 1
    return accepted


# The query for a block. Each line is the only column of a row. A condition sees the row alone: a
# query inside the condition can name nothing outside it.
_QUERY: Final = (
    """
        SELECT {number} FROM (
            SELECT {number}, {fields} FROM (
                SELECT unnest(from_json(line, $2)) FROM read_csv(
                    $1, columns = {columns}, auto_detect = false, header = false,
                    delim = '\x01', quote = '', escape = '', new_line = '\\n',
                    max_line_size = {half}, buffer_size = {buffer})))
        WHERE (
        {where}
        )""".replace("{number}", NUMBER)
    .replace("{fields}", ", ".join(f"{source} AS {name}" for name, source in FIELDS.items()))
    .replace("{columns}", "{line: 'VARCHAR'}")
)


def _blocks(
    path: Path, index: Index, details: Details, subsets: Mapping[str, Sequence[str]]
) -> Iterator[int]:
    """Write the lines that count to a file, block after block; the bytes of each one's longest.

    What the index knows of a line stands at its beginning:

        {"#":7,"facts":{"subset":"snarks","outcome":"correct",…},"bench":"bbh",…

    A line whose bytes are no text is left out, as it would be a row of its own or none.
    """
    names = [["", *subsets.get(part.exam, ())] for part in index.parts]
    kinds, lines = index.kinds, index.lines()
    size = min(len(index), len(details.subset))

    @cache
    def facts(part: int, subset: int, kind: int, acted: bool) -> bytes:
        known = {"subset": names[part][subset], **kinds[kind]._asdict(), "tools": acted}
        return msgspec.json.encode(known)

    for block in blocks(index.folder / FILE, 0, _BLOCK):
        longest = 0
        with path.open("wb") as file:
            for place, line in block.lines():
                number = lines.find(place)
                if not 0 <= number < size or not _is_text(line):
                    continue
                known = facts(
                    index.part[number],
                    details.subset[number],
                    index.kind[number],
                    details.acted[number] > 0,
                )
                longer = b'{"#":%d,"facts":%s,%s' % (number, known, line[1:])
                file.write(longer)
                longest = max(longest, len(longer))
        yield longest


def _is_text(line: bytes) -> bool:
    """Whether a line is one of JSON's: valid UTF-8, and no control character but its end."""
    if len(line.translate(None, _CONTROLS)) != len(line) - 1:
        return False
    try:
        return line.isascii() or bool(line.decode())
    except UnicodeDecodeError:
        return False


def holding(index: Index, text: str) -> bytearray:
    """By number: whether the reply holds a text, in its id, text, reasoning or transcript."""
    lines, holds = index.lines(), bytearray(len(index))
    decode, folded = msgspec.json.Decoder(Record).decode, text.casefold()
    for start, line in _lines_with(index.folder / FILE, text):
        number = lines.find(start)
        if 0 <= number < len(holds):
            with suppress(ValueError, RecursionError):  # a line that is not a record
                holds[number] = _holds(decode(line), folded)
    return holds


def _lines_with(path: Path, text: str) -> Iterator[tuple[int, bytes]]:
    """The lines whose bytes hold a text as JSON has it, each after the place where it begins."""
    options = re2.Options()
    options.case_sensitive = False
    written = msgspec.json.encode(text)[1:-1].decode()
    pattern = re2.compile(re2.escape(written), options)
    for block in blocks(path, 0, _CHUNK):
        chunk, place = block.data, 0
        while found := pattern.search(chunk, place):
            start = chunk.rfind(b"\n", 0, found.start()) + 1
            place = chunk.find(b"\n", found.end()) + 1
            yield block.start + start, chunk[start:place]
            if not place:
                break


def _holds(record: Record, folded: str) -> bool:
    reply = record.reply
    turns = reply.episode.turns if reply.episode is not None else ()
    texts = (record.id, reply.text, reply.reasoning, *(turn.text for turn in turns))
    return any(folded in text.casefold() for text in texts)
