"""Scoring what is already there: stored runs and files of predictions. No model is called."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from msgspec.structs import replace

from keju.answers.thinking import as_reply
from keju.benchmarks import registry
from keju.benchmarks.base import Exam, Reader
from keju.benchmarks.choices import recorded_gold
from keju.benchmarks.kit import refuse
from keju.benchmarks.prepare import choose_readers, prepare_exam
from keju.benchmarks.samples import DigestTable, restrict, text_digest
from keju.engine.budget import Meter
from keju.engine.job import Job, exams_of, make_jobs
from keju.engine.resume import JobRequests, stored_replies
from keju.engine.tally import Tally
from keju.errors import ConfigError, DataError, Notice
from keju.files import read_rows
from keju.judges import judge_stage
from keju.models.openai.wire import finish_of
from keju.results.arms import compare_arms
from keju.results.schema import SCHEMA, Disagreement, Entry, Results
from keju.results.summarise import accuracy_of, entries_of, origin_of, price_of, tools_of
from keju.runs.folder import command_name
from keju.runs.manifest import Manifest
from keju.runs.run import Run, damage_notices
from keju.runs.sameness import other_versions
from keju.types import Reading, Reply, Sample, Sampling

Gold = Literal["recorded", "current"]
GOLDS: tuple[Gold, ...] = get_args(Gold)
MIXED = "mixed"


def score_run(
    run: Run, *, readers: list[str] | None = None, data_dir: str | None = None
) -> Results:
    """Read a stored run anew, with the readers asked for or those it was made with.

    What a judge has said about the answers counts as it did; it is not asked again.
    """
    config = run.config(data_dir)
    if readers:  # they count for all exams, whichever the run named for one of them
        kept = {
            name: {key: value for key, value in args.items() if key != "reader"}
            for name, args in config.dataset_args.items()
        }
        config = config.model_copy(update={"reader": readers, "dataset_args": kept})
    jobs = make_jobs(config)
    stage = judge_stage(config, jobs)
    changed = changed_files(run.manifest, jobs)
    several = bool(readers and len(readers) > 1)
    disagreements: list[Disagreement] = []
    joint: list[dict[int, Joint]] = [{} for _ in jobs]
    requests = JobRequests(jobs)
    for reply in stored_replies(run, requests, match_keys=not changed):
        readings = reply.enter()
        if several:
            sample = reply.sample
            disagreements += _disagreement(sample, readings)
            joint[jobs.index(reply.job)][reply.unit] = Joint(sample.target, readings)
    if stage is not None:
        stage.grade(run.folder, None)
    price = price_of(run.manifest)
    entries = [
        entry
        for job in jobs
        for entry in entries_of(
            job,
            beside=not several,
            stage=stage,
            price=price,
            tools=tools_of(run.manifest, job),
        )
    ]
    if changed and not any(job.tallies[0].done for job in jobs):
        raise DataError("score_data_changed", file=changed[0])
    notices = other_versions(run.manifest, exams_of(jobs))
    if changed:
        notices.append(Notice("data_changed", {"file": changed[0]}))
    missing = sum(job.units - job.tallies[0].done for job in jobs)
    notices += damage_notices(run.damaged, missing)
    name = command_name(run.folder)
    entries = [entry.with_notices(notices).told_of(name) for entry in entries]
    for job, rows in zip(jobs, joint, strict=True):
        entries = _with_joint_metrics(job, entries, [rows[unit] for unit in sorted(rows)])
    return Results(
        schema=SCHEMA,
        run=run.manifest.run,
        model=run.manifest.model,
        benchmarks=tuple(entries),
        complete=None if run.manifest.imported is True else not missing,
        disagreements=_weightiest_first(disagreements) if several else None,
        comparisons=tuple(compare_arms(jobs, price)),
        **origin_of(run.manifest, run.folder),
    )


def score_predictions(
    dataset: str,
    predictions: Path,
    *,
    protocol: str | None = None,
    readers: list[str] | None = None,
    data_dir: str | None = None,
    dataset_args: dict[str, Any] | None = None,
    gold: Gold | None = None,
    seed: int = 42,
) -> Results:
    """Score a file of recorded outputs as if they were replies to this exam.

    `gold` says which target counts where a row carries its own; by default the recorded one
    where the row also carries its own choices, else the current one.
    """
    exam, args = prepare_exam(
        dataset, dataset_args, data_dir=data_dir, protocol=protocol, seed=seed
    )
    refuse(args, dict.fromkeys(sorted(args.asking), Notice("asks_nothing", {}).text()), dataset)
    if readers and args.reader:
        raise ConfigError("score_reader_twice", dataset=dataset)
    readers = readers or args.reader
    golden = registry.get(dataset).golden
    letter = golden.letter if golden is not None else ""
    located = Predictions(exam, predictions, letter)
    rows = array("I", sorted(place for place, _, _ in located))
    if not rows:
        raise DataError("score_no_rows", file=predictions)
    part = restrict(exam, rows)
    job = Job(part, Sampling(), choose_readers(part, readers), model="", filters=args.filters)
    several = bool(readers and len(readers) > 1)
    disagreements: dict[int, list[Disagreement]] = {}
    joint: list[Joint] = []
    golds = Golds(part, job.readers)
    for place, row, where in located:
        unit = bisect_left(rows, place)
        counts = gold or ("recorded" if exam.carries_gold(row) else "current")
        try:
            sample = exam.as_recorded(exam.samples[place], row, gold=counts == "recorded")
        except DataError as error:
            raise DataError("score_row", where=where, problem=error) from None
        reply = job.filtered(recorded_reply(row, letter))
        graded = tuple(exam.grade(reply, sample, reader) for reader in job.readers)
        job.enter_readings(unit, reply, (), graded)
        golds.see(unit, row, reply, sample, graded, counts)
        if several:
            disagreements[unit] = list(_disagreement(sample, graded))
            joint.append(Joint(sample.target, graded))
    job.meter = Meter()  # nobody was asked
    entries = entries_of(job, beside=not several)
    entries = [golds.annotate(e) for e in _with_joint_metrics(job, entries, joint)]
    missing = len(exam.samples) - len(rows)
    if missing:
        notice = Notice("missing_predictions", {"missing": missing, "whole": len(exam.samples)})
        entries = [entry.with_notices([notice]) for entry in entries]
    return Results(
        schema=SCHEMA,
        run=predictions.name,
        model=predictions.name,
        benchmarks=tuple(entries),
        disagreements=_weightiest_first(
            row for unit in sorted(disagreements) for row in disagreements[unit]
        )
        if several
        else None,
    )


def changed_files(manifest: Manifest, jobs: Sequence[Job]) -> list[str]:
    """The data files that are not what they were when the run was made."""
    before = {exam.name: exam.data.files for exam in manifest.benchmarks}
    return [
        name
        for job in jobs
        for name, digest in job.exam.data.files.items()
        if before.get(job.exam.benchmark, {}).get(name, digest) != digest
    ]


def _disagreement(sample: Sample, readings: Sequence[Reading]) -> Iterator[Disagreement]:
    """The row, if its outcome depends on the reader."""
    if len({reading.score.outcome for reading in readings}) > 1:
        yield Disagreement(
            sample.id,
            sample.subset,
            sample.target,
            {reading.reader: reading.answer.value for reading in readings},
            {reading.reader: reading.score.outcome for reading in readings},
            {reading.reader: reading.score.value for reading in readings},
        )


def _weightiest_first(rows: Iterable[Disagreement]) -> tuple[Disagreement, ...]:
    """Those first whose score depends on the reader, each in the order of the exam."""
    return tuple(sorted(rows, key=lambda row: not row.decides))


class Joint(NamedTuple):
    """What several readers made of one reply, for metrics that need all of them."""

    target: str
    readings: Sequence[Reading]


def _with_joint_metrics(job: Job, entries: Sequence[Entry], rows: Sequence[Joint]) -> list[Entry]:
    """`entries` with the exam's joint metrics; `rows` are in the order of the file or run."""
    answers: dict[str, list[str | None]] = {}
    for reading in (reading for row in rows for reading in row.readings):
        answers.setdefault(reading.reader, []).append(reading.answer.value)
    metrics = job.exam.joint_metrics(answers, [row.target for row in rows]) if rows else {}
    own = (job.exam.benchmark, job.arm)
    return [
        entry.with_metrics(metrics.get(entry.reader, {}) if (entry.name, entry.arm) == own else {})
        for entry in entries
    ]


class Golds:
    """Scores every prediction with both gold answers where a row carries its own."""

    def __init__(self, exam: Exam, readers: Sequence[Reader]) -> None:
        self._exam = exam
        self._readers = readers
        self._used: set[Gold] = set()
        self._differences = 0
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

    def annotate(self, entry: Entry) -> Entry:
        """`entry` with which gold counted and, where they differ, what the other gives."""
        (first, *others) = sorted(self._used)
        used = MIXED if others else first
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
            where = f"{self._path}, line {number}"
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
