"""Find the replies that contain a text or satisfy a condition in SQL.

A text is searched in the bytes of the journal, ignoring case. DuckDB evaluates a condition in a
child process (`condition`), block by block, so that a long run needs no more memory than a short
one. The child cannot read other files and cannot write any.
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

from keju.errors import MissingExtra, TranslatableText
from keju.runs.journal import FILE
from keju.types import Record
from keju.viewer.blocks import blocks
from keju.viewer.condition import MEMORY, ConditionQuery, start_evaluation
from keju.viewer.index import ReplyDetails, ReplyIndex

_CHUNK: Final = 1 << 21
_BLOCK: Final = 1 << 22
"""The approximate number of bytes of lines per evaluation of a condition."""
_LEAST_BUFFER: Final = 1 << 18
"""The minimum number of bytes that DuckDB reads at once; it needs a few times as much memory."""
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
"""The names that a condition can use, and their sources."""
NUMBER: Final = '"#"'
"""The column with the index's number; its name does not occur in conditions by accident."""
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
"""The fields that are read from a line; missing fields are NULL. The number and the facts come from
the index and include the judges' grades."""
_SHAPE: Final = msgspec.json.encode(_LINE).decode()


def can_query() -> bool:
    """Return whether conditions can be evaluated, which needs DuckDB."""
    return find_spec("duckdb") is not None


def evaluate_condition(
    index: ReplyIndex,
    details: ReplyDetails,
    subsets: Mapping[str, Sequence[str]],
    where: str,
    has_left: Callable[[], bool] = lambda: False,
) -> bytearray:
    """Return, for each number, whether a condition accepts the reply.

    `subsets` contains the names of the subsets by exam. When `has_left` returns True, because the
    browser has disconnected, the condition is stopped. Raises UsageError if it is not valid.
    """
    if not can_query():
        raise MissingExtra(TranslatableText("extra_for_condition"), "data")
    accepted = bytearray(len(index))
    with TemporaryDirectory(prefix="keju-view-") as folder:
        block = Path(folder).resolve() / "lines"
        task = ConditionQuery(where, str(block), _QUERY, _SHAPE, MEMORY)
        with start_evaluation(task, has_left) as running:
            for longest in _blocks(block, index, details, subsets):
                for number in running.evaluate_block(max(2 * longest, _LEAST_BUFFER)):
                    accepted[number] = 1
    return accepted


# The query for a block. Each line is one row with one column. A condition can access only this row:
# a query inside the condition cannot name other data.
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
    path: Path, index: ReplyIndex, details: ReplyDetails, subsets: Mapping[str, Sequence[str]]
) -> Iterator[int]:
    """Write the lines that count to a file, block by block; yield the length of the longest line.

    The facts of the index are inserted at the beginning of the line:

        {"#":7,"facts":{"subset":"word_sorting","outcome":"correct",…},"bench":"demo",…

    Lines that are not valid text are skipped, because DuckDB would split or drop them.
    """
    names = [["", *subsets.get(part.exam, ())] for part in index.parts]
    kinds, lines = index.kinds, index.lines()
    size = min(len(index), len(details.subset))

    @cache
    def facts(part: int, subset: int, kind: int, acted: bool) -> bytes:
        fields = {"subset": names[part][subset], **kinds[kind]._asdict(), "tools": acted}
        return msgspec.json.encode(fields)

    for block in blocks(index.folder / FILE, 0, _BLOCK):
        longest = 0
        with path.open("wb") as file:
            for place, line in block.lines():
                number = lines.find(place)
                if not 0 <= number < size or not _is_text(line):
                    continue
                facts_json = facts(
                    index.part[number],
                    details.subset[number],
                    index.kind[number],
                    details.acted[number] > 0,
                )
                extended_line = b'{"#":%d,"facts":%s,%s' % (number, facts_json, line[1:])
                file.write(extended_line)
                longest = max(longest, len(extended_line))
        yield longest


def _is_text(line: bytes) -> bool:
    """Return whether a line is valid UTF-8 without control characters except its line end."""
    if len(line.translate(None, _CONTROLS)) != len(line) - 1:
        return False
    try:
        return line.isascii() or bool(line.decode())
    except UnicodeDecodeError:
        return False


def find_text(index: ReplyIndex, text: str) -> bytearray:
    """Return, for each number, whether the id, text, reasoning or transcript contains a text."""
    lines, holds = index.lines(), bytearray(len(index))
    decode, folded = msgspec.json.Decoder(Record).decode, text.casefold()
    for start, line in _find_lines(index.folder / FILE, text):
        number = lines.find(start)
        if 0 <= number < len(holds):
            with suppress(ValueError, RecursionError):  # a line that is not a record
                holds[number] = _contains(decode(line), folded)
    return holds


def _find_lines(path: Path, text: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines whose bytes contain the JSON form of a text, each with its position."""
    options = re2.Options()
    options.case_sensitive = False
    encoded_text = msgspec.json.encode(text)[1:-1].decode()
    pattern = re2.compile(re2.escape(encoded_text), options)
    for block in blocks(path, 0, _CHUNK):
        chunk, place = block.data, 0
        while match := pattern.search(chunk, place):
            start = chunk.rfind(b"\n", 0, match.start()) + 1
            place = chunk.find(b"\n", match.end()) + 1
            yield block.start + start, chunk[start:place]
            if not place:
                break


def _contains(record: Record, folded: str) -> bool:
    reply = record.reply
    turns = reply.episode.turns if reply.episode is not None else ()
    texts = (record.id, reply.text, reply.reasoning, *(turn.text for turn in turns))
    return any(folded in text.casefold() for text in texts)
