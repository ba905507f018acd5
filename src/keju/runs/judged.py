"""``grades.jsonl``: what the judges made of a run's answers, by answer.

Like ``results.json`` it follows from the journals and is written anew each time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from keju.benchmarks.samples import DigestTable, hash_digest
from keju.errors import DataError
from keju.files import whole_file
from keju.types import Reading, Record

GRADES = "grades.jsonl"


class Grade(msgspec.Struct, frozen=True, omit_defaults=True):
    """The readings of one answer after the judge; `hash` is that of the answer's record."""

    bench: str
    id: str
    hash: str
    readings: tuple[Reading, ...]
    epoch: int = 0


def write_grades(folder: Path, grades: Iterable[Grade]) -> None:
    """Write the whole file or none; no file where there are no grades."""
    encode, path = msgspec.json.Encoder().encode, folder / GRADES
    remaining = iter(grades)
    first = next(remaining, None)
    if first is None:
        path.unlink(missing_ok=True)
        return
    with whole_file(path) as file:
        file.write(encode(first) + b"\n")
        for grade in remaining:
            file.write(encode(grade) + b"\n")


def graded(folder: Path, records: Iterable[Record]) -> Iterator[Record]:
    """The same records, with the judges' grades entered where there are any."""
    path = folder / GRADES
    if not path.is_file():
        yield from records
        return
    decode = msgspec.json.Decoder(Grade).decode
    table, starts, end = DigestTable(), array("q"), 0
    with path.open("rb") as lines:
        try:
            for line in lines:
                number = table.add(hash_digest(decode(line).hash))
                starts[number : number + 1] = array("q", [end])
                end += len(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError("grades_damaged", path=path, problem=error) from None
        for record in records:
            number = table.find(hash_digest(record.hash))
            if number >= 0:
                lines.seek(starts[number])
                readings = decode(lines.readline()).readings
                record = msgspec.structs.replace(record, readings=readings)
            yield record
