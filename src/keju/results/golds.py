"""Which gold answers a file of predictions was scored with, and what the others would say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from msgspec.structs import replace

from keju.benchmarks.base import Exam, Reader
from keju.benchmarks.recorded import recorded_gold
from keju.engine.tally import Tally
from keju.errors import DataError
from keju.results.cells import join, read_subset
from keju.results.schema import Entry
from keju.types import Reading, Reply, Sample

Gold = Literal["recorded", "current"]
GOLDS: tuple[Gold, ...] = get_args(Gold)
MIXED = "mixed"


class Graded(NamedTuple):
    """A prediction as it counts."""

    reply: Reply
    sample: Sample
    readings: Sequence[Reading]


class Golds:
    """Scores every prediction with both golds where they differ."""

    def __init__(self, exam: Exam, readers: Sequence[Reader]) -> None:
        self._exam = exam
        self._readers = readers
        self._used: set[Gold] = set()
        self._differing = 0
        self._tallies = {gold: [Tally(len(exam.samples)) for _ in readers] for gold in GOLDS}

    def see(self, unit: int, row: Mapping[str, Any], graded: Graded, counts: Gold) -> None:
        """Enter one prediction; `counts` is the gold that was asked for."""
        carried = recorded_gold(row)[1] is not None
        self._used.add(counts if carried else "current")
        views = {gold: self._view(unit, row, gold) for gold in GOLDS} if carried else {}
        targets = {view.target for view in views.values() if view is not None}
        self._differing += len(targets) > 1
        for gold in GOLDS:
            view = views.get(gold, graded.sample)
            if view is None:
                continue
            same = view.target == graded.sample.target
            readings = graded.readings if same else self._grade(graded.reply, view)
            for tally, reading in zip(self._tallies[gold], readings, strict=True):
                tally.add(unit, reading)

    def _view(self, unit: int, row: Mapping[str, Any], gold: Gold) -> Sample | None:
        """The sample under one gold; None where that is no label of the options recorded."""
        try:
            return self._exam.as_recorded(self._exam.samples[unit], row, gold=gold == "recorded")
        except DataError:
            return None

    def _grade(self, reply: Reply, sample: Sample) -> list[Reading]:
        return [self._exam.grade(reply, sample, reader) for reader in self._readers]

    def annotated(self, entry: Entry) -> Entry:
        """`entry` with which gold counted and, where they differ, what the other gives."""
        (first, *others) = sorted(self._used)
        used = MIXED if others else first
        entry = replace(entry, gold=used, gold_differs=self._differing)
        if not self._differing:
            return entry
        place = [reader.name for reader in self._readers].index(entry.reader)
        exam = self._exam
        metrics = {}
        for gold in GOLDS:
            if gold != used:
                tally = self._tallies[gold][place]
                cells = [read_subset(exam, tally, subset) for subset in exam.subsets]
                accuracy = join(cells, clustered=exam.clustered).shares().estimate()
                metrics[f"accuracy_{gold}_gold"] = accuracy
        return entry.with_metrics(metrics)
