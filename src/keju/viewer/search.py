"""Which replies hold a text, and which a condition in SQL accepts.

A text is looked for in the bytes of the journal, in which case does not matter. A condition is
put to DuckDB, which reads the journal once more; it can read nothing else, write nothing, and is
stopped where it takes too long.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Final

import msgspec
import re2

from keju.errors import MissingExtra, UsageError
from keju.runs.journal import FILE
from keju.types import Record
from keju.viewer.index import Details, Index

_CHUNK: Final = 1 << 21
PATIENCE: Final = 10.0
"""Seconds that a condition may take."""
LEAST_LINE: Final = 1 << 20
"""Bytes that DuckDB is told a line may have, at the least; it takes memory for many of them."""
_ROWS: Final = 10_000
"""Lines that are taken from DuckDB at once."""

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
    "length": "strlen(coalesce(reply.text, ''))",
    "finish": "coalesce(reply.finish, '')",
    "error": "reply.error.kind",
    "seconds": "coalesce(reply.seconds, 0)",
    "input_tokens": "coalesce(reply.usage.input, 0)",
    "output_tokens": "coalesce(reply.usage.output, 0)",
    "attempts": "1 + coalesce(len(faults), 0)",
}
"""What a condition may name, and what it is made of."""
_LINE: Final = {
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
"""What is read of a line; what it does not have is NULL."""
_SHAPE: Final = msgspec.json.encode(_LINE).decode()
_FACTS: Final = {
    "line": "BIGINT",
    "subset": "VARCHAR",
    "outcome": "VARCHAR",
    "score": "DOUBLE",
    "tier": "VARCHAR",
    "differ": "BOOLEAN",
    "tools": "BOOLEAN",
}
"""What the index knows, with the judges' grades."""


def can_query() -> bool:
    """Whether conditions can be put: they need DuckDB."""
    return find_spec("duckdb") is not None


def matching(
    index: Index, details: Details, subsets: Mapping[str, Sequence[str]], where: str
) -> bytearray:
    """By number: whether a condition accepts the reply; UsageError if it is none.

    `subsets` has the names of the subsets by exam.
    """
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("a condition", "data") from None
    journal = index.folder.resolve() / FILE
    accepted = bytearray(len(index))
    numbers, longest = _numbers_of_lines(journal, index)
    with TemporaryDirectory(prefix="keju-view-") as folder:
        facts = Path(folder) / "facts.csv"
        _write_facts(facts, index, details, subsets, numbers)
        with duckdb.connect() as connection:
            allowed = ", ".join(f"'{_quoted(path)}'" for path in (journal, facts))
            for setting in (
                f"allowed_paths = [{allowed}]",
                "enable_external_access = false",
                "memory_limit = '2GB'",
                "threads = 2",
                "lock_configuration = true",
            ):
                connection.execute(f"SET {setting}")
            timer = Timer(PATIENCE, connection.interrupt)
            timer.start()
            try:
                query = _query(where, longest)
                if len(connection.extract_statements(query)) != 1:
                    raise UsageError("view_where", problem=";")
                found = connection.execute(query, [str(facts), str(journal), _SHAPE])
                while lines := found.fetchmany(_ROWS):
                    for (line,) in lines:
                        accepted[numbers[line]] = 1
            except duckdb.InterruptException:
                raise UsageError("view_where_slow", seconds=PATIENCE) from None
            except (duckdb.Error, RuntimeError) as error:
                problem = str(error).partition("\n")[0]
                raise UsageError("view_where", problem=problem) from None
            finally:
                timer.cancel()
    return accepted


def _numbers_of_lines(journal: Path, index: Index) -> tuple[array[int], int]:
    """By line of a journal the number of its reply, or -1; and the bytes of the longest line."""
    numbers, lines, place, longest = array("i"), index.lines(), 0, 0
    with journal.open("rb") as written:
        for line in written:
            numbers.append(lines.find(place))
            place += len(line)
            longest = max(longest, len(line))
    return numbers, longest


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _query(where: str, longest: int) -> str:
    """The numbers of the lines that a condition accepts.

    Lines are numbered before anything is left out. A line that is damaged, or torn while it is
    written, is a row of NULLs, and no line of the index; `read_json` would lose the line after
    it too.
    """
    fields = ", ".join(f"{made} AS {name}" for name, made in FIELDS.items())
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in _FACTS.items())
    return f"""
        WITH facts AS (SELECT * FROM read_csv($1, header = false, columns = {{{columns}}})),
        written AS (
            SELECT row_number() OVER () - 1 AS line, json FROM read_ndjson_objects(
                $2, ignore_errors = true, maximum_object_size = {max(2 * longest, LEAST_LINE)})),
        lines AS (SELECT line, unnest(from_json(json, $3)) FROM written),
        replies AS (SELECT line, {fields} FROM lines JOIN facts USING (line))
        SELECT line FROM replies WHERE (
        {where}
        )"""


def _write_facts(
    path: Path,
    index: Index,
    details: Details,
    subsets: Mapping[str, Sequence[str]],
    numbers: Sequence[int],
) -> None:
    names = [["", *subsets.get(part.exam, ())] for part in index.parts]
    kinds = index.kinds
    size = min(len(index), len(details.subset))
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            (
                line,
                names[index.part[n]][details.subset[n]],
                *kinds[index.kind[n]],
                details.acted[n] > 0,
            )
            for line, n in enumerate(numbers)
            if 0 <= n < size
        )


def holding(index: Index, text: str) -> bytearray:
    """By number: whether the reply holds a text, in its id, text, reasoning or transcript."""
    lines, holds = index.lines(), bytearray(len(index))
    decode, folded = msgspec.json.Decoder(Record).decode, text.casefold()
    for start, line in _lines_with(index.folder / FILE, text):
        number = lines.find(start)
        if 0 <= number < len(holds):
            holds[number] = _holds(decode(line), folded)
    return holds


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
