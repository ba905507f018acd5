"""The runs of a folder by name, with their cached data."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keju.errors import KejuError
from keju.results.schema import Results, from_document
from keju.runs.journal import FILE, is_locked
from keju.runs.manifest import MANIFEST, Manifest
from keju.runs.run import RESULTS, Run
from keju.scores.exam_scores import ExamScores
from keju.scores.exams import make_scores
from keju.types import Record, Sample
from keju.viewer.index import ExamArm, ExamPlaces, ExamPosition, Places, ReplyDetails, ReplyIndex

State = Literal["running", "complete", "incomplete", "imported"]
PATIENCE = 0.3
"""Seconds that a page waits for the exams' data; without the data, a list has no subsets."""
LONG_RUN = 20_000
"""For runs with more replies than this, the first page does not wait for the exams' data."""
STILL_FRESH = 60.0
"""Seconds after its last line during which an unfinished run counts as going on."""


class CurrentQuestion(NamedTuple):
    """A question as Keju would ask it today, and whether the record answers exactly this prompt."""

    job: ExamScores
    sample: Sample
    as_recorded: bool


class RunExams:
    """The exams of a run, loaded on demand; `problem` is the reason why they are not available."""

    def __init__(self, run: Run, data_dir: str | None) -> None:
        self.problem: KejuError | None = None
        self.jobs: Sequence[ExamScores] = ()
        try:
            self.jobs = make_scores(run.config(data_dir))
        except KejuError as error:
            self.problem = error
        for job in self.jobs:
            job.use_readers((), keep_answers=False)  # no answers are added here
        self.subsets: dict[str, list[str]] = {}
        """The subsets by exam."""
        places: dict[str, ExamPlaces] = {}
        for exam in {id(job.exam): job.exam for job in self.jobs}.values():
            names = self.subsets.setdefault(exam.benchmark, [])
            names += [subset.name for subset in exam.subsets if subset.name not in names]
            numbers = {name: n for n, name in enumerate(names, 1)}
            places.setdefault(exam.benchmark, ExamPlaces()).enter(exam.samples, numbers)
        self.places: Places = places

    def place(self, record: Record) -> ExamPosition | None:
        """Return the place of a record's question, or None if its exam does not have it."""
        exam = self.places.get(record.bench)
        return exam.get(record.id) if exam is not None else None

    def find_question(self, record: Record) -> CurrentQuestion | None:
        """Return the question of a record, or None if the data is not available."""
        place = self.place(record)
        for job in self.jobs if place is not None else ():
            if (job.exam.benchmark, job.arm) == (record.bench, record.arm):
                position = place.position if place else 0
                unit = position * job.epochs + record.epoch
                has_epoch = record.epoch < job.epochs
                is_recorded = has_epoch and job.request(unit).hash == record.hash
                return CurrentQuestion(job, job.exam.samples[position], is_recorded)
        return None


class IndexedRun:
    """A run of the folder; its data is cached until its files change."""

    def __init__(self, folder: Path, data_dir: str | None) -> None:
        self.run = Run(folder)
        self.name = folder.name
        self.index = ReplyIndex(folder)
        self._data_dir = data_dir
        self._lock = threading.Lock()
        self._manifest_mtime = 0
        """The modification time of the manifest that `run` has read."""
        self._results: tuple[int, Results | None] = (0, None)
        self._details: ReplyDetails | None = None
        self.last_selection: tuple[object, Any] = (None, None)
        """The last selection that was shown, and its replies."""

    @property
    def manifest(self) -> Manifest:
        """The present manifest; raises DataError if it cannot be read."""
        mtime = (self.run.folder / MANIFEST).stat().st_mtime_ns
        if mtime != self._manifest_mtime:
            self.run, self._manifest_mtime = Run(self.run.folder), mtime
        return self.run.manifest

    @property
    def results(self) -> Results | None:
        """``results.json`` if it exists, can be read, and is not older than the journal."""
        path = self.run.folder / RESULTS
        try:
            mtime = path.stat().st_mtime_ns
            if mtime != self._results[0]:
                with suppress(KejuError):
                    self._results = (mtime, from_document(self.run.results()))
            return self._results[1] if self.run.results_are_current else None
        except OSError:
            return None

    @property
    def state(self) -> State:
        """Whether the run is going on, is complete, or has stopped early."""
        manifest = self.manifest
        if manifest.imported is True:
            return "imported"
        sessions = manifest.sessions
        if sessions and not sessions[-1].ended and _is_active(self.run.folder / FILE):
            return "running"
        return "complete" if manifest.complete else "incomplete"

    @property
    def arms(self) -> list[str]:
        """The names of its arms; empty without arms."""
        arms = self.manifest.config.get("arms") or ()
        return [str(arm.get("name", "")) for arm in arms]

    @property
    def total(self) -> int:
        """The number of replies of the complete run."""
        arms = max(1, len(self.arms))
        return sum(exam.samples * exam.epochs * arms for exam in self.manifest.benchmarks)

    def questions(self) -> RunExams:
        """Return the exams of the run; they are loaded once."""
        with self._lock:
            return self._questions

    @cached_property
    def _questions(self) -> RunExams:
        return RunExams(self.run, self._data_dir)

    def wait_for_questions(self) -> None:
        """Load the exams in a thread and wait for them for a short time.

        This skips long runs, because sorting their replies would take another pass.
        """
        if not self.questions_are_loaded and len(self.index) <= LONG_RUN:
            loading = threading.Thread(target=self.questions, daemon=True)
            loading.start()
            loading.join(PATIENCE)

    @property
    def questions_are_loaded(self) -> bool:
        """Whether `questions` returns immediately."""
        return "_questions" in self.__dict__

    def details(self) -> ReplyDetails:
        """Return the values that filters need, up to date with the index."""
        places = self.questions().places
        if self._details is None:
            self._details = ReplyDetails(places)
        self._details.refresh(self.index)
        return self._details

    def subset_names(self, part: ExamArm | None) -> list[str]:
        """Return the subsets of an exam, or of the only exam."""
        by_exam = self.questions().subsets
        if part is not None:
            return by_exam.get(part.exam, [])
        return next(iter(by_exam.values())) if len(by_exam) == 1 else []


def _is_active(path: Path) -> bool:
    """Return whether a process holds the journal or has written to it recently."""
    with suppress(OSError):
        return time.time() - path.stat().st_mtime < STILL_FRESH or is_locked(path)
    return False


def is_text(name: str) -> bool:
    """Return whether a file name is valid UTF-8."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


class RunIndex:
    """The runs below a folder by name; a name is never used as a path."""

    def __init__(self, folder: Path, data_dir: str | None = None) -> None:
        self.folder = folder
        self.data_dir = data_dir
        self._lock = threading.Lock()
        self._runs: dict[str, IndexedRun] = {}

    def refresh(self) -> None:
        """Find new runs and forget deleted ones."""
        folders = [path.parent for path in self.folder.glob(f"*/{MANIFEST}")]
        if (self.folder / MANIFEST).is_file():  # the folder of one run
            folders = [self.folder]
        with self._lock:
            # A name that is not valid text cannot be part of an address.
            names = {folder.name: folder for folder in folders}
            named_folders = {name: folder for name, folder in names.items() if is_text(name)}
            for name in self._runs.keys() - named_folders.keys():
                del self._runs[name]
            for name in named_folders.keys() - self._runs.keys():
                self._runs[name] = IndexedRun(named_folders[name], self.data_dir)

    def __iter__(self) -> Iterator[IndexedRun]:
        """Yield the runs whose manifests can be read, the newest first."""
        readable = []
        for stored in list(self._runs.values()):
            with suppress(KejuError, OSError):
                readable.append((stored.manifest.created, stored.name, stored))
        return (stored for *_, stored in sorted(readable, key=lambda row: row[:2], reverse=True))

    def find(self, name: str) -> IndexedRun | None:
        """Return the run with this name."""
        if name not in self._runs:
            self.refresh()
        return self._runs.get(name)
