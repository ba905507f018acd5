"""Files of predictions: recorded outputs, read as if they were replies to an exam."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from msgspec.structs import replace

from keju.answers.segments import as_reply
from keju.benchmarks import registry
from keju.benchmarks.base import Exam, Reader
from keju.benchmarks.choices import recorded_gold
from keju.benchmarks.kit import refuse
from keju.benchmarks.prepare import choose_readers, prepare_exam
from keju.benchmarks.samples import DigestTable, restrict, text_digest
from keju.engine.cores import map_on_all_cores
from keju.engine.job import Job
from keju.engine.limits import Meter
from keju.engine.tally import Tally
from keju.errors import ConfigError, DataError, Notice, Place
from keju.files import read_rows
from keju.models.openai.wire import finish_of
from keju.results.metrics import accuracy_of
from keju.results.schema import Entry
from keju.types import Reading, Reply, Sample, Sampling

Gold = Literal["recorded", "current"]
GOLDS: tuple[Gold, ...] = get_args(Gold)
MIXED = "mixed"


class Read(NamedTuple):
    """A file of predictions, read: the part of the exam that it answers, and what it scores."""

    job: Job
    golds: Golds
    missing: int
    """Questions of the exam that the file has no row for."""
    whole: int
    several: bool
    """Whether several readers were asked for."""
    replies: Callable[[Container[int]], Iterator[tuple[int, Reply]]]
    """Reads the file once more, for the replies to some of the questions."""


def read_predictions(
    dataset: str,
    predictions: Path,
    *,
    protocol: str | None = None,
    readers: list[str] | None = None,
    data_dir: str | None = None,
    dataset_args: dict[str, Any] | None = None,
    gold: Gold | None = None,
    seed: int = 42,
    detailed: bool = False,
    see: Callable[[int, Sample, Sequence[Reading]], None] = lambda *_: None,
) -> Read:
    """Read a file of recorded outputs as if they were replies to this exam.

    `gold` says which target counts where a row carries its own; by default the recorded one
    where the row also carries its own choices, else the current one. Where several readers
    are asked for, `see` is told the unit of each row, its question as it was graded, and what they
    made of it. What is `detailed` has the first reader alone, and can be compared.
    """
    exam, args = prepare_exam(
        dataset, dataset_args, data_dir=data_dir, protocol=protocol, seed=seed
    )
    refuse(args, dict.fromkeys(sorted(args.asking), Notice("asks_nothing", {}).text()), dataset)
    if readers and args.reader:
        raise ConfigError("score_reader_twice", dataset=dataset)
    golden = registry.get(dataset).golden
    letter = golden.letter if golden is not None else ""
    located = Predictions(exam, predictions, letter)
    rows = array("I", sorted(place for place, _, _ in located))
    if not rows:
        raise DataError("score_no_rows", file=predictions)
    part = restrict(exam, rows)
    readers = readers or args.reader
    several = bool(readers and len(readers) > 1)
    chosen = choose_readers(part, readers)[: 1 if detailed else None]
    job = Job(part, Sampling(), chosen, model="", filters=args.filters, detailed=detailed)
    golds = Golds(part, job.readers)

    def question_of(place: int, row: Mapping[str, Any]) -> tuple[Sample, Gold]:
        counts = gold or ("recorded" if exam.carries_gold(row) else "current")
        return exam.as_recorded(exam.samples[place], row, gold=counts == "recorded"), counts

    def read(sent: tuple[int, Mapping[str, Any]]) -> tuple[Reading, ...] | None:
        """None where the row is not one of the exam's: it is refused at its turn."""
        try:
            sample, _ = question_of(*sent)
        except DataError:
            return None
        reply = job.filter_reply(recorded_reply(sent[1], letter))
        return tuple(exam.grade(reply, sample, reader) for reader in job.readers)

    for (place, row, where), graded in map_on_all_cores(read, located, lambda each: each[:2]):
        unit = bisect_left(rows, place)
        try:
            sample, counts = question_of(place, row)
        except DataError as error:
            raise DataError("score_row", where=where, problem=error) from None
        assert graded is not None
        reply = job.filter_reply(recorded_reply(row, letter))
        job.enter_readings(unit, reply, (), graded)
        golds.see(unit, row, reply, sample, graded, counts)
        if several:
            see(unit, sample, graded)
    job.meter = Meter()  # nobody was asked

    def replies(items: Container[int]) -> Iterator[tuple[int, Reply]]:
        for place, row, _ in located:
            if (unit := bisect_left(rows, place)) in items:
                yield unit, recorded_reply(row, letter)

    return Read(job, golds, len(exam.samples) - len(rows), len(exam.samples), several, replies)


class Golds:
    """Scores every prediction with both gold answers where a row carries its own."""

    def __init__(self, exam: Exam, readers: Sequence[Reader]) -> None:
        self._exam = exam
        self._readers = readers
        self._used: set[Gold] = set()
        self._differences = 0
        self.targets: dict[int, str] = {}
        """The gold answers that counted, by unit, where they are not those of the exam."""
        self._tallies = {gold: [Tally(len(exam.samples)) for _ in readers] for gold in GOLDS}

    def see(
        self,
        unit: int,
        row: Mapping[str, Any],
        reply: Reply,
        sample: Sample,
        readings: Sequence[Reading],
        counts: Gold,
    ) -> None:
        """Enter one prediction as it counts; `counts` is the gold that was asked for."""
        carried = recorded_gold(row)[1] is not None
        self._used.add(counts if carried else "current")
        if sample.target != self._exam.samples[unit].target:
            self.targets[unit] = sample.target
        targets = set()
        for gold in GOLDS:
            view, own = sample, readings
            if carried:
                asked = self._exam.samples[unit]
                try:
                    view = self._exam.as_recorded(asked, row, gold=gold == "recorded")
                except DataError:
                    continue  # that gold is not a label of the recorded options
                targets.add(view.target)
            if view.target != sample.target:
                own = [self._exam.grade(reply, view, reader) for reader in self._readers]
            for tally, reading in zip(self._tallies[gold], own, strict=True):
                tally.add(unit, reading)
        self._differences += len(targets) > 1

    @property
    def used(self) -> str:
        """Which gold counted."""
        (first, *others) = sorted(self._used)
        return MIXED if others else first

    def annotate(self, entry: Entry) -> Entry:
        """`entry` with which gold counted and, where they differ, what the other gives."""
        used = self.used
        entry = replace(entry, gold=used, gold_differs=self._differences)
        if not self._differences:
            return entry
        place = [reader.name for reader in self._readers].index(entry.reader)
        exam, metrics = self._exam, {}
        for gold, tallies in self._tallies.items():
            if gold != used:
                metrics[f"accuracy_{gold}_gold"] = accuracy_of(exam, tallies[place])
        return entry.with_metrics(metrics)


class Prediction(NamedTuple):
    """A row of a predictions file, the position of its sample, and the line it stands in."""

    place: int
    row: dict[str, Any]
    where: str


class Predictions:
    """The rows of a predictions file in its order; read anew each time, so that none are held."""

    def __init__(self, exam: Exam, path: Path, letter: str = "") -> None:
        """A row must have the ``output``, or what was read out of it under the key `letter`."""
        self._exam = exam
        self._path = path
        self._letter = letter
        self._places = DigestTable(text_digest(sample.id) for sample in exam.samples)
        self._held = None if path.is_file() else list(read_rows(path))
        """The rows of what can be read only once, such as a pipe."""

    def __iter__(self) -> Iterator[Prediction]:
        seen = bytearray(len(self._exam.samples))
        for number, row in self._held or read_rows(self._path):
            where = Place(self._path, number)
            try:
                sample_id = self._exam.locate(row)
                place = self._places.find(text_digest(sample_id))
                if place >= 0:
                    self._exam.check_keys(row, self._exam.samples[place])
            except KeyError as error:
                raise DataError("score_row_no_key", where=where, key=str(error)) from None
            except DataError as error:
                raise DataError("score_row", where=where, problem=error) from None
            if place < 0:
                values = {"where": where, "exam": self._exam.benchmark, "id": sample_id}
                raise DataError("score_row_unknown", **values)
            if not isinstance(row.get("finish_reason"), str | None):
                raise DataError("score_row_finish", where=where)
            has_output = "output" in row and isinstance(row["output"], str | None)
            if not has_output and self._letter not in row:
                raise DataError("score_row_no_output", where=where)
            if seen[place]:
                raise DataError("score_row_again", where=where, id=sample_id)
            seen[place] = 1
            yield Prediction(place, row, where)


def recorded_reply(row: Mapping[str, Any], letter: str) -> Reply:
    """The recorded output of a row as the reply it was, or the letter that was read out of it."""
    if "output" not in row:
        read = str(row[letter] or "")
        return Reply(label_logprobs={read: 0.0} if read else {})
    facts = {
        "finish": finish_of(row.get("finish_reason")),
        "refusal": str(row.get("refusal") or ""),
    }
    return as_reply(row["output"] or "", **facts)
