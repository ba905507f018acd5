"""Runs made for the tests of the viewer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from keju.files import write_json
from keju.runs.journal import Journal
from keju.runs.manifest import MANIFEST
from keju.types import (
    Answer,
    Episode,
    Outcome,
    Reading,
    Record,
    Reply,
    Score,
    ToolCall,
    Turn,
    Usage,
)

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> </textarea></script>"
    "\u202e{{ 7 * 7 }} javascript:alert(3) 答案是（B）。 So the answer is (B)."
)


def reading(
    outcome: Outcome, value: str | None = "(B)", *, reader: str = "paper", tier: Any = "strict"
) -> Reading:
    found = Answer(value, tier) if value is not None else Answer(reason="no_marker")
    return Reading(reader, found, Score(float(outcome == "correct"), outcome))


def record(
    number: int,
    outcome: Outcome = "incorrect",
    *,
    text: str = "So the answer is (B).",
    subset: str = "snarks",
    other: Outcome | None = None,
    hash: str = "",
    **more: Any,
) -> Record:
    readings: tuple[Reading, ...] = (reading(outcome),)
    if other is not None:
        readings += (reading(other, reader="robust"),)
    return Record(
        bench="bbh",
        id=f"bbh_{subset}_{number}",
        hash=hash or f"{number:032x}",
        target="(A)",
        reply=more.pop(
            "reply", Reply(text=text, finish="stop", usage=Usage(40, 9), seconds=0.5 + number)
        ),
        readings=readings,
        **more,
    )


def acting(number: int) -> Record:
    """A reply of a model that ran a cell of a notebook."""
    turns = (
        Turn(
            role="assistant",
            text="Let me count.",
            calls=(ToolCall("c1", "edit_cell", '{"contents": "print(6 * 7)"}'),),
        ),
        Turn(role="tool", call="c1", text="42", seconds=0.25),
        Turn(role="assistant", text="So the answer is (B)."),
    )
    reply = Reply(text="So the answer is (B).", episode=Episode(turns, "final", 2))
    return record(number, reply=reply)


def write(folder: Path, records: Sequence[Record], *, ended: bool = True, **more: Any) -> Path:
    """A stored run of these records without results."""
    folder.mkdir(parents=True, exist_ok=True)
    exam = {
        "name": "bbh",
        "protocol": {"name": "paper", "version": "1"},
        "readers": {"paper": 1, "robust": 1},
        "samples": max(len(records), 1),
    }
    manifest = {
        "schema": 1,
        "run": folder.name,
        "model": "some-model",
        "created": "2026-11-16T10:00:00+00:00",
        "complete": ended,
        "config": {"model": "some-model", "datasets": ["bbh"], "data_dir": "nowhere"},
        "benchmarks": [exam],
        "sessions": [{"started": "2026-11-16T10:00:00+00:00", "ended": ended}],
    }
    write_json(folder / MANIFEST, manifest | more)
    add(folder, records)
    return folder


def add(folder: Path, records: Sequence[Record]) -> None:
    """Append to the journal of a run."""
    with Journal(folder) as journal:
        journal.append(records)


@contextmanager
def torn(folder: Path, whole: Record) -> Iterator[None]:
    """While it is open the journal ends in the first half of a line."""
    path = folder / "records.jsonl"
    size, line = path.stat().st_size, msgspec.json.encode(whole)
    with path.open("ab") as file:
        file.write(line[: len(line) // 2])
    yield
    with path.open("r+b") as file:
        file.truncate(size)


def mixed(n: int, seed: int = 1) -> list[Record]:
    """Replies of many kinds."""
    draw = random.Random(seed)
    outcomes: Sequence[Outcome] = ("correct", "correct", "incorrect", "unparsed", "truncated")
    records = []
    for number in range(n):
        outcome = draw.choice(outcomes)
        other = draw.choice(outcomes) if draw.random() < 0.2 else outcome
        text = f"{'word ' * draw.randrange(40)}So the answer is (B)."
        records.append(record(number, outcome, text=text, other=other))
    return records
