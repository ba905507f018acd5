"""Read files of predictions: recorded outputs, treated as replies to an exam."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from msgspec.structs import replace

from keju.answers.segments import as_reply
from keju.benchmarks import registry
from keju.benchmarks.base import Exam, Reader
from keju.benchmarks.choices import recorded_gold
from keju.benchmarks.kit import reject_settings
from keju.benchmarks.prepare import choose_readers, prepare_exam
from keju.benchmarks.samples import DigestTable, restrict, text_digest
from keju.config import TaskConfig
from keju.config.arms import SandboxSettings
from keju.errors import ConfigError, DataError, FileLine, Notice
from keju.files import read_rows
from keju.models.openai.wire import finish_of
from keju.progress.display import Display
from keju.results.metrics import accuracy_of
from keju.results.schema import ResultEntry
from keju.scores.exam_scores import ExamScores
from keju.scores.parallel import map_on_all_cores
from keju.scores.tally import Tally
from keju.scores.usage import UsageMeter
from keju.types import Reading, Reply, Sample, Sampling

Gold = Literal["recorded", "current"]
GOLDS: tuple[Gold, ...] = get_args(Gold)
MIXED = "mixed"


class ProgramSettings(NamedTuple):
    """How programs are graded when predictions or a stored run are scored."""

    unsafe: bool = False
    """Whether they run without a sandbox."""
    jobs: int | None = None
    """How many run at the same time; by default one for each core."""
    display: Display | None = None

    def apply(self, config: TaskConfig) -> TaskConfig:
        """Return the settings of a task with these."""
        changes: dict[str, Any] = {}
        if self.unsafe:
            changes["sandbox"] = SandboxSettings(unsafe=True)
        if self.jobs is not None:
            changes["jobs"] = self.jobs
        return config.model_copy(update=changes)


class PredictionsPart(NamedTuple):
    """A file of predictions after reading: the part of the exam that it answers, and its scores."""

    job: ExamScores
    golds: GoldScorer
    missing: int
    """The number of questions of the exam without a row in the file."""
    exam_size: int
    several: bool
    """Whether several readers were requested."""
    replies: Callable[[Container[int]], Iterator[tuple[int, Reply]]]
    """Reads the file again and returns the first reply to each of some questions."""


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
    on_row: Callable[[int, Sample, Sequence[Reading]], None] = lambda *_: None,
    programs: ProgramSettings | None = None,
) -> PredictionsPart:
    """Read a file of recorded outputs as if they were replies to this exam.

    `gold` says which target counts if a row has its own target. By default, the recorded target
    counts if the row also has its own choices; otherwise the current one counts. If several readers
    are requested, `on_row` is called with the unit of each row, its question as it was graded, and
    all readings. With `detailed`, only the first reader is used and the result can be compared.
    """
    exam, args = prepare_exam(
        dataset, dataset_args, data_dir=data_dir, protocol=protocol, seed=seed
    )
    reject_settings(
        args, dict.fromkeys(sorted(args.asking), Notice("asks_nothing", {}).text()), dataset
    )
    if readers and args.reader:
        raise ConfigError("score_reader_twice", dataset=dataset)
    golden = registry.get(dataset).golden
    letter = golden.letter if golden is not None else ""
    located = Predictions(exam, predictions, letter)
    places, epochs = array("I"), 1
    for place, row, _ in located:
        places.append(place)
        epochs = max(epochs, epoch_of(row) + 1)
    if not places:
        raise DataError("score_no_rows", file=predictions)
    rows = array("I", (place for place, _ in groupby(sorted(places))))
    part = restrict(exam, rows)
    readers = readers or args.reader
    several = bool(readers and len(readers) > 1)
    job_readers = choose_readers(part, readers)[: 1 if detailed else None]
    job = ExamScores(
        part,
        Sampling(),
        job_readers,
        model="",
        epochs=epochs,
        filters=args.filters,
        detailed=detailed,
    )
    golds = GoldScorer(part, job.readers, epochs)

    def unit_of(place: int, row: Mapping[str, Any]) -> int:
        return bisect_left(rows, place) * epochs + epoch_of(row)

    def question_of(place: int, row: Mapping[str, Any]) -> tuple[Sample, Gold]:
        counts = gold or ("recorded" if exam.carries_gold(row) else "current")
        return exam.as_recorded(exam.samples[place], row, gold=counts == "recorded"), counts

    def grade_row(located_row: tuple[int, Mapping[str, Any]]) -> tuple[Reading, ...] | None:
        """Return None if the row is not one of the exam's; it is rejected when its turn comes."""
        try:
            sample, _ = question_of(*located_row)
        except DataError:
            return None
        reply = job.filter_reply(recorded_reply(located_row[1], letter))
        return tuple(exam.grade(reply, sample, reader) for reader in job.readers)

    ungraded_programs: dict[int, Sequence[Reading]] = {}
    for (place, row, where), graded in map_on_all_cores(
        grade_row, located, lambda located_row: located_row[:2]
    ):
        unit = unit_of(place, row)
        try:
            sample, counts = question_of(place, row)
        except DataError as error:
            raise DataError("score_row", where=where, problem=error) from None
        assert graded is not None
        reply = job.filter_reply(recorded_reply(row, letter))
        job.enter_readings(unit, reply, (), graded)
        golds.add(unit, row, reply, sample, graded, counts)
        if exam.programs is not None:
            ungraded_programs[unit] = graded
        elif several:
            on_row(unit, sample, graded)
    if ungraded_programs:
        for unit, readings in _run_programs(job, ungraded_programs, programs):
            on_row(unit, part.samples[unit], readings)
    job.meter = UsageMeter()  # No model was asked.

    def replies(positions: Container[int]) -> Iterator[tuple[int, Reply]]:
        for place, row, _ in located:
            position = bisect_left(rows, place)
            if position in positions and not epoch_of(row):
                yield position, recorded_reply(row, letter)

    return PredictionsPart(
        job, golds, len(exam.samples) - len(rows), len(exam.samples), several, replies
    )


def _run_programs(
    job: ExamScores,
    readings: Mapping[int, Sequence[Reading]],
    settings: ProgramSettings | None,
) -> Iterator[tuple[int, Sequence[Reading]]]:
    """Run the programs of the rows, enter their grades and yield the readings of each row."""
    from keju.judges.programs.stage import add_notices, grade_programs

    settings = settings or ProgramSettings()
    sandbox = SandboxSettings(unsafe=settings.unsafe)
    graded = grade_programs(job, readings, sandbox, jobs=settings.jobs, display=settings.display)
    for unit, row_readings in graded.items():
        for tally, reading in zip(job.tallies, row_readings, strict=True):
            tally.add(unit, reading)
        yield unit, row_readings
    add_notices(job, sandbox)


class GoldScorer:
    """Scores every prediction with both gold answers if a row has its own."""

    def __init__(self, exam: Exam, readers: Sequence[Reader], epochs: int = 1) -> None:
        self._exam = exam
        self._epochs = epochs
        self._readers = readers
        self._used: set[Gold] = set()
        self._differences = 0
        self.targets: dict[int, str] = {}
        """The gold answers that counted, by sample, if they differ from the exam's gold answers."""
        self._tallies = {
            gold: [Tally(len(exam.samples), epochs) for _ in readers] for gold in GOLDS
        }

    def add(
        self,
        unit: int,
        row: Mapping[str, Any],
        reply: Reply,
        sample: Sample,
        readings: Sequence[Reading],
        counts: Gold,
    ) -> None:
        """Add one prediction; `counts` is the requested gold."""
        carried = recorded_gold(row)[1] is not None
        self._used.add(counts if carried else "current")
        index = unit // self._epochs
        exam_sample = self._exam.samples[index]
        if sample.target != exam_sample.target:
            self.targets[index] = sample.target
        targets = set()
        for gold in GOLDS:
            graded_sample, gold_readings = sample, readings
            if carried:
                try:
                    graded_sample = self._exam.as_recorded(
                        exam_sample, row, gold=gold == "recorded"
                    )
                except DataError:
                    continue  # This gold is not a label of the recorded options.
                targets.add(graded_sample.target)
            if graded_sample.target != sample.target:
                gold_readings = [
                    self._exam.grade(reply, graded_sample, reader) for reader in self._readers
                ]
            for tally, reading in zip(self._tallies[gold], gold_readings, strict=True):
                tally.add(unit, reading)
        self._differences += len(targets) > 1

    @property
    def used_gold(self) -> str:
        """The gold that counted."""
        (gold, *further_golds) = sorted(self._used)
        return MIXED if further_golds else gold

    def annotate(self, entry: ResultEntry) -> ResultEntry:
        """Return `entry` with the gold that counted; if golds differ, add the accuracy with the
        other."""
        used_gold = self.used_gold
        entry = replace(entry, gold=used_gold, gold_differs=self._differences)
        if not self._differences:
            return entry
        place = [reader.name for reader in self._readers].index(entry.reader)
        exam, metrics = self._exam, {}
        for gold, tallies in self._tallies.items():
            if gold != used_gold:
                metrics[f"accuracy_{gold}_gold"] = accuracy_of(exam, tallies[place])
        return entry.with_metrics(metrics)


class Prediction(NamedTuple):
    """A row of a predictions file, the position of its sample, and its line in the file."""

    place: int
    row: dict[str, Any]
    location: str


class Predictions:
    """The rows of a predictions file in order; read again each time, never held in memory."""

    def __init__(self, exam: Exam, path: Path, letter: str = "") -> None:
        """Expect rows with ``output``, or with the letter that was read from it in the key
        `letter`."""
        self._exam = exam
        self._path = path
        self._letter = letter
        self._places = DigestTable(text_digest(sample.id) for sample in exam.samples)
        self._held = None if path.is_file() else list(read_rows(path))
        """The rows of a file that can be read only once, such as a pipe."""

    def __iter__(self) -> Iterator[Prediction]:
        has_row = bytearray(len(self._exam.samples))
        repeats: set[tuple[int, int]] = set()
        """The rows of epochs after the first."""
        for number, row in self._held or read_rows(self._path):
            where = FileLine(self._path, number)
            place = self._find_place(row, where)
            if not isinstance(row.get("finish_reason"), str | None):
                raise DataError("score_row_finish", where=where)
            has_output = "output" in row and isinstance(row["output"], str | None)
            if not has_output and self._letter not in row:
                raise DataError("score_row_no_output", where=where)
            if not is_epoch(row.get("epoch", 0)):
                raise DataError("score_row_epoch", where=where, epoch=row["epoch"])
            epoch = epoch_of(row)
            if (place, epoch) in repeats if epoch else has_row[place]:
                sample_id = self._exam.samples[place].id
                raise DataError("score_row_again", where=where, id=sample_id)
            if epoch:
                repeats.add((place, epoch))
            else:
                has_row[place] = 1
            yield Prediction(place, row, where)

    def _find_place(self, row: Mapping[str, Any], where: FileLine) -> int:
        """Return the position of a row's question in the exam."""
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
        return place


MOST_EPOCHS = 10_000


def is_epoch(value: Any) -> bool:
    """Whether a value is the number of a repeat, from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_EPOCHS


def epoch_of(row: Mapping[str, Any]) -> int:
    """Return the number of the repeat that a row holds; 0 if it names none."""
    epoch: int = row.get("epoch", 0)
    return epoch


def recorded_reply(row: Mapping[str, Any], letter: str) -> Reply:
    """Return the recorded output of a row as a reply, or the letter that was read from it."""
    if "output" not in row:
        read_letter = str(row[letter] or "")
        return Reply(label_logprobs={read_letter: 0.0} if read_letter else {})
    facts = {
        "finish": finish_of(row.get("finish_reason")),
        "refusal": str(row.get("refusal") or ""),
    }
    return as_reply(row["output"] or "", **facts)
