"""A stored run, its folder, and the rule for which of its records count.

A journal may have more lines than the run has questions. A failed request is asked again, a run
continues at another temperature, or a copied reply comes in addition to the run's. The rule:

    Of the records that answer exactly a request (those with its hash), the first reply without an
    error counts. An error counts only until a reply comes. Of several errors the last counts.

For example, with a run at temperature 0 that was once resumed at 0.7:

    line  question  hash  reply
    1     snarks_3  a1    error: server     counted until line 2 was there
    2     snarks_3  a1    "(B)"             counts
    3     snarks_3  f7    "(C)"             answers another request: temperature 0.7
    4     snarks_3  a1    error: timeout    an error never replaces a reply

Sometimes today's requests are not known, because the data is missing. Or none of them is in the
journal, because another version or another tool wrote the prompts. Then records are matched by
exam, id, arm and epoch, and the last reply counts, since the manifest describes the last session.

Resume, score, judge, export, report, replay and modes all take their records from
`select_counting`. ``grades.jsonl`` has the readings of judges, by answer. Like ``results.json`` it
follows from the journals and is written again each time.
"""

from __future__ import annotations

import os
import shlex
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from keju.benchmarks.samples import DigestTable, hash_digest, text_digest
from keju.bounds import LONGEST_RECORD
from keju.config import TaskConfig
from keju.config.load import load_run_config, runs_folder
from keju.errors import DataError, Notice, UsageError, did_you_mean
from keju.files import file_exists, read_json, typed_path, whole_file
from keju.runs.journal import FILE, RECEIPT, Journal, Records, is_fetched, open_journal
from keju.runs.manifest import MANIFEST, Manifest, StoredExam
from keju.runs.run_ids import candidate_ids
from keju.runs.run_ids import make_run_id as make_run_id
from keju.types import Reading, Record

RESULTS, REPORT = "results.json", "report.html"
REPLACED = ".replaced-"
"""The separator between the name of a run that was replaced and a number."""
GRADES = "grades.jsonl"


class RunRequests(ABC):
    """The requests of a run as they would be sent today, numbered from 0."""

    fresh = False
    """Whether this process began the journal, so that every record in it answers one of the
    requests."""

    @property
    @abstractmethod
    def by_hash(self) -> DigestTable:
        """The numbers of the requests by hash."""

    @property
    @abstractmethod
    def by_key(self) -> DigestTable:
        """The numbers of the requests by the key from `key_digest`."""


Counted = tuple[int, int, Record]
"""The number of a request, the start of a line in the journal, and its record. The record counts
unless a later one with the same number follows."""


Read = Callable[[int, int, Record], Record]
"""Gives a record its readings, from the number of its request, its place, and the record."""


def key_digest(bench: str, sample_id: str, arm: str, epoch: int) -> bytes:
    """Return the key that identifies a question where its request is not known."""
    return text_digest(f"{bench}\0{sample_id}\0{arm}\0{epoch}")


class RecordSelection:
    """The rule above for records that come one by one, each with the number of its request."""

    def __init__(self, *, by_key: bool) -> None:
        self._by_key = by_key
        self._has_reply = bytearray()

    def counts_now(self, number: int, failed: bool) -> bool:
        """Whether a record counts now. It replaces the one that counted before."""
        has_reply = self._has_reply
        if number >= len(has_reply):
            has_reply += bytes(number + 1 - len(has_reply))
        if has_reply[number] and (failed or not self._by_key):
            return False
        has_reply[number] |= not failed
        return True

    def begin(self, failed: Iterable[bool]) -> None:
        """Enter the first records of further requests, which all count."""
        self._has_reply += bytes(not is_failed for is_failed in failed)


def select_counting(
    records: Iterable[tuple[int, Record]],
    table: DigestTable,
    *,
    by_key: bool = False,
    grow: bool = False,
    on_unmatched: Callable[[Record], None] = lambda _: None,
) -> Iterator[Counted]:
    """Yield the records that count, by the rule above, in the order of the journal.

    Only records in `table` count, unless `grow` adds them to it. `on_unmatched` is called with the
    others. A later reply or error may replace an error.
    """
    find_number = table.add if grow else table.find
    rule = RecordSelection(by_key=by_key)
    for start, record in records:
        if by_key:
            digest = key_digest(record.bench, record.id, record.arm, record.epoch)
        else:
            digest = hash_digest(record.hash)
        number = find_number(digest)
        if number < 0:
            on_unmatched(record)
        elif rule.counts_now(number, record.reply.fault is not None):
            yield number, start, record


class Run:
    """A stored run: its manifest, its records, and those of them that count.

    Reading a run never changes it. Memory holds the positions of records, never the replies.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records = Records(folder)
        """All records of the journal, including those that do not count."""

    @cached_property
    def manifest(self) -> Manifest:
        """``manifest.json``. Raises DataError if it cannot be read."""
        return Manifest.read(self.folder)

    @property
    def id(self) -> str:
        """The name of the run, which is the name of its folder."""
        return self.folder.name

    @property
    def damaged(self) -> int:
        """Lines of the journal that could not be read, as far as it was read."""
        return self.records.damaged

    def config(self, data_dir: str | None = None) -> TaskConfig:
        """Return the settings of its results. `data_dir` overrides the run's."""
        judge = self.manifest.judge
        return load_run_config(self.manifest.config | ({"judge": judge} if judge else {}), data_dir)

    def results(self) -> dict[str, Any]:
        """Return the content of ``results.json``."""
        return read_json(self.folder / RESULTS)

    @property
    def results_are_current(self) -> bool:
        """Whether ``results.json`` exists and was written after the last line of the journal.

        It was not if a run is still going on or was killed. The file times of a copy mean nothing,
        so there the manifest tells whether the run was complete.
        """
        results, journal = self.folder / RESULTS, self.records.path
        if is_fetched(self.folder):
            return results.is_file() and self.manifest.complete
        if not results.is_file() or not journal.is_file():
            return results.is_file()
        return results.stat().st_mtime_ns >= journal.stat().st_mtime_ns

    def counting(
        self, requests: RunRequests | None = None, *, match_keys: bool = True
    ) -> Iterator[Counted]:
        """Yield the records that count in the order of the journal.

        Without `requests`, and where none of them is in the journal, records are matched by their
        keys. `match_keys` turns the latter off where the data differs from the run's data.
        """
        has_match = False
        if requests is not None and not requests.fresh:
            for counted in select_counting(self.records.iter_with_positions(), requests.by_hash):
                has_match = True
                yield counted
        if not has_match and match_keys:
            table = requests.by_key if requests is not None else DigestTable()
            grow = requests is None
            yield from select_counting(
                self.records.iter_with_positions(), table, by_key=True, grow=grow
            )

    def answers(
        self, requests: RunRequests | None = None, *, read: Read | None = None
    ) -> Iterator[tuple[int, Record]]:
        """Yield each record that counts, once, after its number, with the judges' grades entered.

        The numbers ascend. They are the numbers of the requests or, without `requests`, follow the
        journal. `read` may compute new readings before the judges' grades.
        """
        starts = array("q")
        for number, start, _ in self.counting(requests):
            if number >= len(starts):
                starts.extend([-1] * (number + 1 - len(starts)))
            starts[number] = start
        numbers = array("I", (number for number, start in enumerate(starts) if start >= 0))
        records = self.records.at(starts[number] for number in numbers)
        if read is not None:
            records = map(read, numbers, (starts[number] for number in numbers), records)
        return zip(numbers, enter_grades(self.folder, records), strict=True)


def damage_notices(lines: int, missing: int) -> list[Notice]:
    """Return the notice about unreadable lines of a journal, if replies are `missing`.

    A line whose question was asked again is not missing.
    """
    return [Notice("damaged_lines", {"lines": lines})] if lines and missing else []


def missing_notices(done: int, total: int) -> list[Notice]:
    """Return the notice that results cover a part of the replies. Without any reply there is no
    notice."""
    if not 0 < done < total:
        return []
    return [Notice("replies_missing", {"part": done, "whole": total})]


def open_run(name: str | Path, work_dir: str = "runs") -> Run:
    """Return the stored run in the folder `name`, or with this id below `work_dir`."""
    return Run(find_run(str(name), work_dir))


def list_runs(work_dir: str = "runs") -> list[Run]:
    """Return the runs below `work_dir` whose manifests can be read, oldest first."""
    runs = []
    for path in sorted(Path(work_dir).glob(f"*/{MANIFEST}")):
        with suppress(DataError):
            run = Run(path.parent)
            runs.append((run.manifest.created, run))
    return [run for _, run in sorted(runs, key=itemgetter(0))]


def find_comparable_run(run: Run) -> Run | None:
    """Return the newest other complete run in the same folder with a comparable exam, or None.

    Comparable exams have the same questions, prompts, readers, judges and arms.
    """
    run_exams = _exam_keys(run.manifest)
    for other_run in reversed(list_runs(str(run.folder.parent))):
        is_comparable = other_run.manifest.complete and any(
            exam in run_exams for exam in _exam_keys(other_run.manifest)
        )
        if is_comparable and other_run.folder.name != run.folder.name:
            return other_run
    return None


def _exam_keys(manifest: Manifest) -> list[Any]:
    """Return a key for each exam of a run. Runs with a common key can be compared."""
    config = manifest.config
    arms = sorted(str(arm.get("name")) for arm in config.get("arms") or () if isinstance(arm, dict))
    question_settings = [config.get(name) for name in ("ids", "failed_of", "shard")]
    judge = manifest.judge
    return [
        (
            exam.name,
            *_asking_settings(exam),
            exam.data.version,
            exam.data.files,
            arms,
            question_settings,
            judge,
        )
        for exam in manifest.benchmarks
    ]


def _asking_settings(exam: StoredExam) -> tuple[Any, ...]:
    """Return the settings that ask an exam, and the headline's reader."""
    reader = next(iter(exam.readers.items()), None)
    return exam.protocol, exam.settings, reader, exam.filters


# Run folders: where they are and how they are named.


class RunFolder(NamedTuple):
    """The folder of a run, and whether the run begins in this session."""

    path: Path
    is_new: bool
    replaced: Path | None = None
    """The new folder of the run that this one replaces."""

    def undo(self) -> None:
        """Remove the folder of a run that was refused before anything was saved.

        The run that it replaced is put back.
        """
        if not self.is_new or not self.path.is_dir():
            return
        paths = list(self.path.iterdir())
        if all(path.stat().st_size == 0 for path in paths):
            for path in paths:
                path.unlink()
            self.path.rmdir()
            if self.replaced is not None:
                self.replaced.rename(self.path)


def make_run_folder(config: TaskConfig) -> RunFolder:
    """Create the folder of a run if necessary and return it: the named one, or a new one."""
    refuse_unknown_run(config)
    work_dir = Path(config.work_dir)
    if config.run_id is not None:
        folder = work_dir / config.run_id
        replaced = _move_aside(folder) if config.replace else None
        existed = folder.exists()
        return RunFolder(
            _create_folder(folder, exist_ok=True), is_new=not existed, replaced=replaced
        )
    for name in candidate_ids(config):  # another process may take one at the same time
        try:
            return RunFolder(_create_folder(work_dir / name, exist_ok=False), is_new=True)
        except FileExistsError:
            continue
    raise AssertionError("the ids never end")


def command_name(folder: Path) -> str:
    """Return the name of the run in `folder` for a command: its id in the usual folder, else its
    path.

    For a copy of a remote run it is the address.
    """
    if is_fetched(folder):
        return shlex.quote(read_json(folder / RECEIPT)["address"])
    is_usual_place = folder.absolute().parent == runs_folder(None).absolute()
    return shlex.quote(folder.name if is_usual_place else typed_path(folder))


def refuse_unknown_run(config: TaskConfig) -> None:
    """Raise UsageError if the run to resume does not exist."""
    if not config.resume:
        return
    if config.run_id is None:
        raise UsageError("run_resume_id")
    work_dir = Path(config.work_dir)
    if not (work_dir / config.run_id / MANIFEST).is_file():
        hint = suggest_runs(config.run_id, work_dir)
        raise UsageError(
            "run_none_to_resume", run_id=config.run_id, work_dir=config.work_dir, hint=hint
        )


def _move_aside(folder: Path) -> Path | None:
    """Rename the folder of a run to ``RUN.replaced-1``, or to the next number that is free.

    Raise UsageError if another process writes to it.
    """
    if not folder.is_dir():
        return None
    if not any((folder / name).is_file() for name in (MANIFEST, FILE)) and any(folder.iterdir()):
        raise UsageError("run_not_a_run", folder=folder)
    taken_names = {path.name for path in folder.parent.glob(f"{folder.name}{REPLACED}*")}
    candidate_names = (f"{folder.name}{REPLACED}{number}" for number in count(1))
    aside = folder.with_name(next(name for name in candidate_names if name not in taken_names))
    try:
        with Journal(folder):
            folder.rename(aside)
    except OSError as error:
        values = {"folder": folder, "aside": aside, "problem": error.strerror}
        raise UsageError("run_not_moved", **values) from None
    return aside


def _create_folder(folder: Path, *, exist_ok: bool) -> Path:
    """Create a folder. Raise FileExistsError only if it must be new."""
    try:
        folder.mkdir(parents=True, exist_ok=exist_ok)
    except OSError as error:
        if not exist_ok and isinstance(error, FileExistsError):
            raise
        raise UsageError("run_cannot_create", folder=folder, problem=error.strerror) from None
    if not os.access(folder, os.W_OK):
        raise UsageError("run_no_permission", folder=folder)
    return folder


def find_run(name: str, work_dir: str = "runs") -> Path:
    """Return the folder of a run, given as a path, as an id below `work_dir`, or as an address.

    A run at an address (``s3://bucket/run``) is fetched, so the folder is a copy.
    """
    if "://" in name:
        from keju.runs.remote import fetch_run

        return fetch_run(name)
    for folder in (Path(name), Path(work_dir) / name):
        if file_exists(folder / MANIFEST):
            return folder
    raise UsageError(
        "run_none", name=name, work_dir=work_dir, hint=suggest_runs(name, Path(work_dir))
    )


def suggest_runs(name: str, work_dir: Path) -> str:
    """Return the runs with similar names for a message, or ""."""
    names = [path.parent.name for path in sorted(work_dir.glob(f"*/{MANIFEST}"))]
    return did_you_mean(name, names) if names else ""


# Grades of judges


class JudgedReadings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The readings of one answer after the judge. `hash` is the hash of the answer's record."""

    bench: str
    id: str
    hash: str
    readings: tuple[Reading, ...]
    epoch: int = 0


def write_grades(folder: Path, grades: Iterable[JudgedReadings]) -> None:
    """Write the whole file or nothing. Write it only if there is a grade."""
    encode, path = msgspec.json.Encoder().encode, folder / GRADES
    remaining = iter(grades)
    first_grade = next(remaining, None)
    if first_grade is None:
        path.unlink(missing_ok=True)
        return
    with whole_file(path) as file:
        file.write(encode(first_grade) + b"\n")
        for grade in remaining:
            file.write(encode(grade) + b"\n")


def enter_grades(folder: Path, records: Iterable[Record]) -> Iterator[Record]:
    """Yield the same records, with the judges' grades entered where there are any."""
    path = folder / GRADES
    if not path.is_file():
        yield from records
        return
    decode = msgspec.json.Decoder(JudgedReadings).decode
    table, starts, end = DigestTable(), array("q"), 0
    with open_journal(path) as lines:
        try:
            for line in iter(partial(lines.readline, LONGEST_RECORD), b""):
                number = table.add(hash_digest(decode(line).hash))
                starts[number : number + 1] = array("q", [end])
                end += len(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError("grades_damaged", path=path, problem=error) from None
        for record in records:
            number = table.find(hash_digest(record.hash))
            if number >= 0:
                lines.seek(starts[number])
                readings = decode(lines.readline()).readings
                record = msgspec.structs.replace(record, readings=readings)
            yield record
