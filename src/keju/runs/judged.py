"""``grades.jsonl``: what the judges made of a run's answers, by answer.

Like ``results.json`` it follows from the journals and is written anew each time. Whoever shows a
run's answers reads them with `graded_records`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from keju.errors import DataError
from keju.files import whole_file
from keju.runs.journal import read_records
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


def graded_records(folder: Path) -> Iterator[Record]:
    """The records of a run in the order of its journal, with the judges' grades entered."""
    grades = read_grades(folder)
    for record in read_records(folder):
        readings = grades.get(record.hash)
        yield record if readings is None else msgspec.structs.replace(record, readings=readings)


def read_grades(folder: Path) -> dict[str, tuple[Reading, ...]]:
    """The readings of judged answers by the hash of their records; none without a judge."""
    path = folder / GRADES
    if not path.is_file():
        return {}
    decode = msgspec.json.Decoder(Grade).decode
    try:
        with path.open("rb") as lines:
            return {grade.hash: grade.readings for grade in map(decode, lines)}
    except msgspec.DecodeError as error:
        raise DataError(f"{path} is damaged ({error}): write it anew with keju judge") from None
