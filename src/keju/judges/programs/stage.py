"""The stage of a run that grades programs by running them.

It works like the stage of judges: it watches the exams whose answers are programs, keeps each
program, runs those without a stored verdict, and enters all verdicts on the scoreboards. Verdicts
are in ``verdicts.jsonl``, by the hash of program and tests, so no program is run twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from keju.benchmarks.grading import UNDECIDED
from keju.benchmarks.programs import ProgramTests
from keju.config import TaskConfig
from keju.config.arms import SandboxSettings
from keju.errors import KejuError, Notice
from keju.judges.programs.runner import ProgramJob, ProgramRunner, ProgramVerdict
from keju.progress.display import Display, Progress
from keju.runs.journal import VERDICTS, Journal, Records, is_fetched
from keju.runs.run import JudgedReadings
from keju.scores.exam_scores import ExamScores
from keju.types import Outcome, Reading, Record, Reply, Score

if TYPE_CHECKING:
    from keju.runs.manifest import ManifestFile

GRADER = "programs"
PREFIX = "programs:"
"""Begins the exam's name in the records of verdicts."""
VERSION = 2
"""The version of the runner. A verdict of another version does not count."""
BROKEN = "tests_broken"
NO_DECISION = (BROKEN,)
"""Outcomes that say nothing about the program."""


class CandidatePrograms(NamedTuple):
    """The programs that the readers of a reply found."""

    readings: tuple[Reading, ...]
    hash: str
    """The hash of the reply's record."""


def program_hash(job: ProgramJob) -> str:
    """Return the identity of a program with its tests."""
    content = msgspec.json.encode((VERSION, *job), order="deterministic")
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def make_job(program: str, tests: ProgramTests) -> ProgramJob:
    """Return a program as work for the runner."""
    return ProgramJob(
        program, tests.entry_point, tests.tests, tests.prelude, tests.data, dict(tests.parts)
    )


def is_undecided(reading: Reading) -> bool:
    """Whether a reading holds a program without a grade; a cut reply may hold one."""
    score = reading.score
    return reading.answer.value is not None and score.grader == UNDECIDED


def apply_verdict(reading: Reading, verdict: ProgramVerdict) -> Reading:
    """Return a reading with the verdict on its program; its reason names the outcome."""
    answer = replace(reading.answer, reason="" if verdict.outcome == "passed" else verdict.outcome)
    if verdict.outcome in NO_DECISION:
        return Reading(reading.reader, answer, Score(0.0, "ungraded", BROKEN))
    parts = {name: float(passed) for name, passed in verdict.results.items()}
    value = next(iter(parts.values()))
    outcome: Outcome = "correct" if value else "incorrect"
    if reading.score.outcome == "truncated":
        outcome = "truncated"
    return Reading(reading.reader, answer, Score(value, outcome, GRADER, parts))


class ProgramStage:
    """The programs of several exams, their verdicts and their results."""

    def __init__(self, config: TaskConfig, jobs: Sequence[ExamScores]) -> None:
        self._settings, self._count = config.sandbox, config.jobs
        self.jobs = [job for job in jobs if job.exam.programs is not None]
        self._candidates: list[dict[int, CandidatePrograms]] = [{} for _ in self.jobs]
        self._verdicts: dict[str, ProgramVerdict] = {}
        self.grades: list[JudgedReadings] = []
        """The readings of each program after its run."""
        for job, candidates in zip(self.jobs, self._candidates, strict=True):
            job.watcher = partial(self._collect, candidates)

    def _collect(self, candidates: dict[int, CandidatePrograms], unit: int, record: Record) -> None:
        """Keep the programs of a record in place of earlier ones."""
        if any(map(is_undecided, record.readings)):
            candidates[unit] = CandidatePrograms(record.readings, record.hash)
        else:
            candidates.pop(unit, None)

    def check(self) -> None:
        """Raise UsageError, before any request, if no sandbox works."""
        check_sandbox(self._settings)

    def preflight(self) -> None:
        """Do nothing: `check` has tried the sandbox."""

    def grade(
        self,
        folder: Path,
        manifest: ManifestFile | None,
        *,
        display: Display | None = None,
        strict: bool = False,
        runs_programs: bool = False,
    ) -> KejuError | None:
        """Run the programs without a stored verdict, store their verdicts and enter all of them.

        The verdicts so far are entered if this is interrupted.
        """
        recall_verdicts(folder, self._verdicts)
        try:
            missing = self._missing() if manifest is not None or runs_programs else {}
            if missing and is_fetched(folder):
                self._run(missing, lambda _: None, display)
            elif missing:
                with Journal(folder, VERDICTS) as journal:
                    self._run(missing, partial(_store, journal), display)
        finally:
            self.grades = list(self._enter_verdicts())
            for job in self.jobs:
                add_notices(job, self._settings)
        return None

    def _run(
        self,
        missing: Mapping[str, ProgramJob],
        store: Callable[[Record], None],
        display: Display | None,
    ) -> None:
        names = {job.title for job in self.jobs}
        run_programs(
            self._settings, missing, self._verdicts, jobs=self._count, display=display,
            names=sorted(names), store=store,
        )  # fmt: skip

    def _missing(self) -> dict[str, ProgramJob]:
        """Return the programs without a verdict, by hash."""
        missing: dict[str, ProgramJob] = {}
        for job, candidates in zip(self.jobs, self._candidates, strict=True):
            for unit in sorted(candidates):
                for _, key, program in _programs_of(job, unit, candidates[unit].readings):
                    if key not in self._verdicts:
                        missing[key] = program
        return missing

    def _enter_verdicts(self) -> Iterator[JudgedReadings]:
        for job, candidates in zip(self.jobs, self._candidates, strict=True):
            for unit in sorted(candidates):
                readings, hash_of_record = candidates[unit]
                graded = grade_readings(job, unit, readings, self._verdicts)
                for tally, reading in zip(job.tallies, graded, strict=True):
                    tally.add(unit, reading)
                sample, epoch = job.locate(unit)
                yield JudgedReadings(
                    job.exam.benchmark, sample.id, hash_of_record, tuple(graded), epoch
                )

    def judgement(self, job: ExamScores, reader: int, deff: float = 1.0) -> None:
        """Return nothing, because programs need no judge."""


class _UnitProgram(NamedTuple):
    place: int
    """The place of its reading."""
    key: str
    job: ProgramJob


def _programs_of(job: ExamScores, unit: int, readings: Sequence[Reading]) -> Iterator[_UnitProgram]:
    """Yield the programs of a reply, with the places of their readings."""
    assert job.exam.programs is not None
    tests: ProgramTests | None = None
    for place, reading in enumerate(readings):
        if is_undecided(reading):
            tests = tests or job.exam.programs(job.locate(unit)[0])
            program = make_job(reading.answer.value or "", tests)
            yield _UnitProgram(place, program_hash(program), program)


def grade_readings(
    job: ExamScores,
    unit: int,
    readings: Sequence[Reading],
    verdicts: Mapping[str, ProgramVerdict],
) -> list[Reading]:
    """Return the readings of a reply with the verdicts that are known."""
    graded = list(readings)
    for place, key, _ in _programs_of(job, unit, readings):
        if key in verdicts:
            graded[place] = apply_verdict(graded[place], verdicts[key])
    return graded


def add_notices(job: ExamScores, settings: SandboxSettings) -> None:
    """Add the warnings about the programs of an exam to its results."""
    notices = []
    if settings.unsafe:
        notices.append(Notice("programs_without_sandbox"))
    if broken := job.tallies[0].outcome_counts()["ungraded"]:
        values = {"broken": broken, "whole": job.tallies[0].done}
        notices.append(Notice("programs_tests_broken", values))
    job.exam.warnings = (*job.exam.warnings, *notices)


def recall_verdicts(folder: Path, verdicts: dict[str, ProgramVerdict]) -> None:
    """Add the verdicts in a run's folder; damaged lines do not count."""
    if not (folder / VERDICTS).is_file():
        return
    records = Records(folder, VERDICTS)
    for record in records:
        if record.bench.startswith(PREFIX) and records.is_sealed:
            verdicts[record.hash] = msgspec.json.decode(record.reply.text, type=ProgramVerdict)


def _store(journal: Journal, record: Record) -> None:
    journal.append([record])


def run_programs(
    settings: SandboxSettings,
    missing: Mapping[str, ProgramJob],
    verdicts: dict[str, ProgramVerdict],
    *,
    jobs: int | None = None,
    display: Display | None = None,
    names: Iterable[str] = (),
    store: Callable[[Record], None] = lambda _: None,
) -> None:
    """Run programs by hash and enter their verdicts; each is stored as soon as it is known."""
    display, keys = display or Display(), list(missing)
    names, start = list(names), time.monotonic()
    display.start(len(keys), 0, [f"{PREFIX}{name}" for name in names])

    async def run() -> None:
        done = right = 0
        async with ProgramRunner(settings, jobs) as runner:
            async for place, verdict in runner.run(list(missing.values())):
                verdicts[keys[place]] = verdict
                text = msgspec.json.encode(verdict).decode()
                store(
                    Record(
                        bench=PREFIX + ",".join(names),
                        id=keys[place],
                        hash=keys[place],
                        reply=Reply(text=text),
                        at=time.time(),
                    )
                )
                done, right = done + 1, right + (verdict.outcome == "passed")
                elapsed = time.monotonic() - start
                display.update(Progress(done, len(keys), right, elapsed=elapsed))

    try:
        asyncio.run(run())
    finally:
        display.finish()


def check_sandbox(settings: SandboxSettings) -> None:
    """Raise UsageError if no sandbox works and the settings do not turn it off."""

    async def open_once() -> None:
        async with ProgramRunner(settings, 1):
            pass

    asyncio.run(open_once())


def grade_programs(
    job: ExamScores,
    readings: Mapping[int, Sequence[Reading]],
    settings: SandboxSettings,
    *,
    jobs: int | None = None,
    display: Display | None = None,
) -> dict[int, list[Reading]]:
    """Return the readings of replies by unit, after their programs have run."""
    missing = {
        key: program
        for unit, unit_readings in readings.items()
        for _, key, program in _programs_of(job, unit, unit_readings)
    }
    verdicts: dict[str, ProgramVerdict] = {}
    if missing:
        run_programs(settings, missing, verdicts, jobs=jobs, display=display, names=[job.title])
    return {
        unit: grade_readings(job, unit, unit_readings, verdicts)
        for unit, unit_readings in readings.items()
    }
