"""What the endpoints say they did, held against what a run says it got.

The ledgers are written by the endpoints alone (see `perf.soak.witness`), the records by Keju. A
calm run of the same questions says what the texts and the scores must be.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keju.runs.journal import Records
from keju.types import Record

NUMBERS = ("name", "reader", "n", "metrics", "outcomes", "subsets")
"""What results must have in common with those of a calm run."""
SHOWN = 3
"""Examples that are told of a thing that is wrong."""


class Entries:
    """The ledger of one endpoint, over all its lives."""

    def __init__(self, path: Path) -> None:
        self.requests: Counter[str] = Counter()
        self.true_answers: Counter[str] = Counter()
        self.texts: dict[str, str] = {}
        self.wrong_answers = 0
        """Replies of another model."""
        self.faults: Counter[str] = Counter()
        self.refusals = 0
        """How often it did not listen for a while."""
        self.lives: list[int] = []
        """Its processes, one after the other."""
        for line in path.read_bytes().splitlines() if path.exists() else ():
            self._enter(json.loads(line))

    def _enter(self, line: dict[str, Any]) -> None:
        match line["did"]:
            case "asked":
                self.requests[line["key"]] += 1
            case "gave":
                self.true_answers[line["key"]] += 1
                self.texts[line["key"]] = line["text"]
            case "other":
                self.wrong_answers += 1
            case "fault":
                self.faults[line["kind"]] += 1
            case "ordered":
                self.refusals += line["kind"] == "refuse"
            case "began":
                self.lives.append(line["pid"])


class Calm(NamedTuple):
    """A run that nobody disturbed."""

    records: dict[tuple[str, int], Record]
    numbers: Any

    @classmethod
    def of(cls, folder: Path, document: dict[str, Any]) -> Calm:
        """The run in a folder, whose command printed `document`."""
        records = {(record.id, record.epoch): record for record in Records(folder)}
        return cls(records, numbers(document))


def numbers(document: dict[str, Any]) -> Any:
    """The part of results that no fault may change."""
    return [{key: entry[key] for key in NUMBERS} for entry in document["benchmarks"]]


def digest_in(text: str) -> str:
    """The digest of the prompt that an answer holds: ``[0f3a…] So the answer is (A).``"""
    return text[1:].partition("]")[0] if text.startswith("[") else ""


def problems(
    folder: Path, calm: Calm, ledgers: dict[str, Entries], document: dict[str, Any]
) -> Iterator[str]:
    """What is wrong with a finished run; nothing if all is well."""
    stored = Records(folder)
    records = list(stored)
    if stored.damaged:
        yield f"{stored.damaged} lines of the journal are damaged"
    replies = [record for record in records if record.reply.fault is None]
    times = Counter((record.id, record.epoch) for record in replies)
    yield from _describe_problem("lost", calm.records.keys() - times.keys())
    yield from _describe_problem("asked by nobody", times.keys() - calm.records.keys())
    yield from _describe_problem("doubled", (key for key, count in times.items() if count > 1))
    yield from _describe_problem("scored without a reply", _scored_errors(records))
    wrong: dict[str, list[str]] = defaultdict(list)
    for record in replies:
        if fault := _fault_of(record, calm, ledgers):
            wrong[fault].append(record.id)
    for fault_kind, ids in wrong.items():
        yield from _describe_problem(fault_kind, ids)
    if numbers(document) != calm.numbers:
        yield "the results are not those of a calm run"


def _scored_errors(records: Iterable[Record]) -> Iterator[str]:
    """Records of faults with a score that counts."""
    for record in records:
        outcomes = {reading.score.outcome for reading in record.readings}
        if record.reply.fault is not None and not outcomes <= {"error"}:
            yield record.id


def _fault_of(record: Record, calm: Calm, ledgers: dict[str, Entries]) -> str:
    """What is wrong with a reply that counts; empty if nothing is."""
    text = record.reply.text
    key = digest_in(text)
    # A run with several endpoints names the one that gave the reply.
    candidates = [ledgers[record.endpoint]] if record.endpoint in ledgers else [*ledgers.values()]
    if not any(entries.texts.get(key) == text for entries in candidates):
        return "with a text that its endpoint never gave"
    calm_record = calm.records.get((record.id, record.epoch))
    if calm_record is None:
        return ""
    if calm_record.reply.text != text:
        return "with the answer to another question"
    if (calm_record.hash, calm_record.target) != (record.hash, record.target):
        return "with another identity than in a calm run"
    return "" if calm_record.readings == record.readings else "scored otherwise than in a calm run"


def given_twice(folders: Sequence[Path], ledgers: Iterable[Entries]) -> int:
    """How many true answers were given and are in no record."""
    recorded_count = sum(
        record.reply.fault is None for folder in folders for record in Records(folder)
    )
    return sum(entries.true_answers.total() for entries in ledgers) - recorded_count


def broken_attempts(folders: Sequence[Path]) -> int:
    """Attempts that records say were cut or took too long: their answers may have been given."""
    return sum(
        fault.kind in ("timeout", "connection")
        for folder in folders
        for record in Records(folder)
        for fault in (*record.faults, *filter(None, [record.reply.error]))
    )


def _describe_problem(problem: str, ids: Iterable[Any]) -> Iterator[str]:
    """One line on questions of which something is wrong."""
    keys = sorted(map(str, ids))
    if keys:
        ellipsis = ", …" if len(keys) > SHOWN else ""
        yield f"{len(keys)} {problem}: {', '.join(keys[:SHOWN])}{ellipsis}"
