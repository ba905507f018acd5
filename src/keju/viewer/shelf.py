"""The runs of a folder, looked up by name, each with what was read of it so far."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keju.engine.job import Job, make_jobs
from keju.errors import KejuError
from keju.results.schema import Results, from_document
from keju.runs.journal import FILE, is_locked
from keju.runs.manifest import MANIFEST, Manifest
from keju.runs.run import RESULTS, Run
from keju.types import Record, Sample
from keju.viewer.index import Details, ExamPlaces, Index, Part, Place, Places

State = Literal["running", "complete", "incomplete", "imported"]
PATIENCE = 0.3
"""Seconds that a page waits for the data of exams; without it a list has no subsets yet."""
LONG = 20_000
"""Replies above which a first page comes without what only the exam's data tells."""
STILL_FRESH = 60.0
"""Seconds after its last line for which a run that has not ended counts as going on."""


class Asked(NamedTuple):
    """A question as it is put today, and whether that is what a record answers."""

    job: Job
    sample: Sample
    as_recorded: bool


class Questions:
    """The exams of a run, loaded when they are needed; `problem` says why they are not there."""

    def __init__(self, run: Run, data_dir: str | None) -> None:
        self.problem: KejuError | None = None
        self.jobs: Sequence[Job] = ()
        try:
            self.jobs = make_jobs(run.config(data_dir))
        except KejuError as error:
            self.problem = error
        for job in self.jobs:
            job.use_readers((), keep_answers=False)  # nothing is entered here
        self.subsets: dict[str, list[str]] = {}
        """By exam."""
        places: dict[str, ExamPlaces] = {}
        for exam in {id(job.exam): job.exam for job in self.jobs}.values():
            names = self.subsets.setdefault(exam.benchmark, [])
            names += [subset.name for subset in exam.subsets if subset.name not in names]
            numbers = {name: n for n, name in enumerate(names, 1)}
            places.setdefault(exam.benchmark, ExamPlaces()).enter(exam.samples, numbers)
        self.places: Places = places

    def place(self, record: Record) -> Place | None:
        """Where the question of a record stands; None where its exam does not have it."""
        exam = self.places.get(record.bench)
        return exam.get(record.id) if exam is not None else None

    def asked(self, record: Record) -> Asked | None:
        """The question of a record; None where the data is not at hand."""
        place = self.place(record)
        for job in self.jobs if place is not None else ():
            if (job.exam.benchmark, job.arm) == (record.bench, record.arm):
                position = place.position if place else 0
                unit = position * job.epochs + record.epoch
                known = record.epoch < job.epochs
                alike = known and job.request(unit).hash == record.hash
                return Asked(job, job.exam.samples[position], alike)
        return None


class Stored:
    """A run on the shelf; what is read of it is kept until its files change."""

    def __init__(self, folder: Path, data_dir: str | None) -> None:
        self.run = Run(folder)
        self.name = folder.name
        self.index = Index(folder)
        self._data_dir = data_dir
        self._lock = threading.Lock()
        self._changed = 0
        """When the manifest was written that `run` has read."""
        self._results: tuple[int, Results | None] = (0, None)
        self._details: Details | None = None
        self.chosen: tuple[object, Any] = (None, None)
        """The selection that was last looked at, and what it found."""

    @property
    def manifest(self) -> Manifest:
        """The manifest as it is now; DataError if it cannot be read."""
        changed = (self.run.folder / MANIFEST).stat().st_mtime_ns
        if changed != self._changed:
            self.run, self._changed = Run(self.run.folder), changed
        return self.run.manifest

    @property
    def results(self) -> Results | None:
        """``results.json`` where it is there, can be read and is not older than the journal."""
        path = self.run.folder / RESULTS
        try:
            changed = path.stat().st_mtime_ns
            if changed != self._results[0]:
                with suppress(KejuError):
                    self._results = (changed, from_document(self.run.results()))
            return self._results[1] if self.run.results_are_current else None
        except OSError:
            return None

    @property
    def state(self) -> State:
        """Whether the run goes on, is complete, or stopped on its way."""
        manifest = self.manifest
        if manifest.imported is True:
            return "imported"
        sessions = manifest.sessions
        if sessions and not sessions[-1].ended and _written_now(self.run.folder / FILE):
            return "running"
        return "complete" if manifest.complete else "incomplete"

    @property
    def arms(self) -> list[str]:
        """The names of its arms; none where it has no arms."""
        arms = self.manifest.config.get("arms") or ()
        return [str(arm.get("name", "")) for arm in arms]

    @property
    def total(self) -> int:
        """How many replies the whole run has."""
        arms = max(1, len(self.arms))
        return sum(exam.samples * exam.epochs * arms for exam in self.manifest.benchmarks)

    def questions(self) -> Questions:
        """The exams of the run, loaded once."""
        with self._lock:
            return self._questions

    @cached_property
    def _questions(self) -> Questions:
        return Questions(self.run, self._data_dir)

    def wait_for_questions(self) -> None:
        """Load the exams behind the page, which waits for them a short while.

        Of a long run it does not: ordering its replies would take a further pass.
        """
        if not self.questions_are_loaded and len(self.index) <= LONG:
            loading = threading.Thread(target=self.questions, daemon=True)
            loading.start()
            loading.join(PATIENCE)

    @property
    def questions_are_loaded(self) -> bool:
        """Whether `questions` answers at once."""
        return "_questions" in self.__dict__

    def details(self) -> Details:
        """What filters need, up to date with the index."""
        places = self.questions().places
        if self._details is None:
            self._details = Details(places)
        self._details.refresh(self.index)
        return self._details

    def subset_names(self, part: Part | None) -> list[str]:
        """The subsets of an exam, or of the only one."""
        by_exam = self.questions().subsets
        if part is not None:
            return by_exam.get(part.exam, [])
        return next(iter(by_exam.values())) if len(by_exam) == 1 else []


def _written_now(path: Path) -> bool:
    """Whether a process holds the journal, or wrote to it a short while ago."""
    with suppress(OSError):
        return time.time() - path.stat().st_mtime < STILL_FRESH or is_locked(path)
    return False


def is_text(name: str) -> bool:
    """Whether a name of a file is valid UTF-8."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


class Shelf:
    """The runs below a folder by name; a name is looked up, and never made a path of."""

    def __init__(self, folder: Path, data_dir: str | None = None) -> None:
        self.folder = folder
        self.data_dir = data_dir
        self._lock = threading.Lock()
        self._runs: dict[str, Stored] = {}

    def refresh(self) -> None:
        """See which runs there are."""
        folders = [path.parent for path in self.folder.glob(f"*/{MANIFEST}")]
        if (self.folder / MANIFEST).is_file():  # the folder of one run
            folders = [self.folder]
        with self._lock:
            # A name that is not valid text cannot be part of an address.
            names = {folder.name: folder for folder in folders}
            there = {name: folder for name, folder in names.items() if is_text(name)}
            for name in self._runs.keys() - there.keys():
                del self._runs[name]
            for name in there.keys() - self._runs.keys():
                self._runs[name] = Stored(there[name], self.data_dir)

    def __iter__(self) -> Iterator[Stored]:
        """The runs whose manifests can be read, the newest first."""
        readable = []
        for stored in list(self._runs.values()):
            with suppress(KejuError, OSError):
                readable.append((stored.manifest.created, stored.name, stored))
        return (stored for *_, stored in sorted(readable, key=lambda row: row[:2], reverse=True))

    def find(self, name: str) -> Stored | None:
        """The run of this name."""
        if name not in self._runs:
            self.refresh()
        return self._runs.get(name)
