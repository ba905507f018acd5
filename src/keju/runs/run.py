"""A stored run, where it is, and the one rule that says which of its records count.

A journal has more lines than the run has questions: a failed request is asked again, a run goes on
at another temperature, a copied reply stands beside the run's own. The rule:

    Of the records that answer exactly a request, those with its hash, the first reply that is no
    error counts. An error counts only while there is no reply; of several errors the last one.

For example, with a run at temperature 0 that was once resumed at 0.7:

    line  question  hash  reply
    1     snarks_3  a1    error: server     counted until line 2 was there
    2     snarks_3  a1    "(B)"             counts
    3     snarks_3  f7    "(C)"             answers another request: temperature 0.7
    4     snarks_3  a1    error: timeout    an error never takes the place of a reply

Where today's requests are not known since the data is not at hand, or none of them is in the
journal since another version or another tool wrote the prompts, questions are told apart by exam,
id, arm and epoch. The last reply counts then, since the manifest describes the last session.

Resume, score, judge, export, report, replay and modes all take their records from `counting`. What
judges made of the answers stands in ``grades.jsonl``, by answer; like ``results.json`` it follows
from the journals and is written anew each time.
"""

from __future__ import annotations

import os
import re
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
from keju.files import is_there, read_json, typed_path, whole_file
from keju.runs.journal import FILE, RECEIPT, Journal, Records, is_fetched, open_journal
from keju.runs.manifest import MANIFEST, Manifest, StoredExam, this_moment
from keju.types import Reading, Record

RESULTS, REPORT = "results.json", "report.html"
REPLACED = ".replaced-"
"""Stands between the name of a run that was replaced, and a number."""
GRADES = "grades.jsonl"


class Requests(ABC):
    """The requests of a run as they would be sent today, numbered from 0."""

    fresh = False
    """The journal was begun by this process, so that every record in it answers one of them."""

    @property
    @abstractmethod
    def by_hash(self) -> DigestTable:
        """The numbers of the requests by hash."""

    @property
    @abstractmethod
    def by_key(self) -> DigestTable:
        """The numbers of the requests by key, as `key_digest` makes it."""


Counted = tuple[int, int, Record]
"""The number of a request, where a line begins in the journal, and the line: a record that counts
unless a later one with the same number follows."""


Read = Callable[[int, int, Record], Record]
"""Gives a record its readings: from the number of its request, its place, and itself."""


def key_digest(bench: str, sample_id: str, arm: str, epoch: int) -> bytes:
    """What tells questions apart where their requests are not known."""
    return text_digest(f"{bench}\0{sample_id}\0{arm}\0{epoch}")


class Counting:
    """The rule above for records that come one by one, each with the number of its request."""

    def __init__(self, *, by_key: bool) -> None:
        self._by_key = by_key
        self._replied = bytearray()

    def takes(self, number: int, failed: bool) -> bool:
        """Whether a record counts now; it takes the place of the one that counted before."""
        replied = self._replied
        if number >= len(replied):
            replied += bytes(number + 1 - len(replied))
        if replied[number] and (failed or not self._by_key):
            return False
        replied[number] |= not failed
        return True

    def begin(self, failed: Iterable[bool]) -> None:
        """Take in the first records of further requests, which all count."""
        self._replied += bytes(not each for each in failed)


def counting(
    placed: Iterable[tuple[int, Record]],
    table: DigestTable,
    *,
    by_key: bool = False,
    grow: bool = False,
    on_other: Callable[[Record], None] = lambda _: None,
) -> Iterator[Counted]:
    """The records that count, by the rule above, in the order of the journal.

    Only records that are in `table` count, unless it is to `grow` with them; `on_other` is called
    with the others. An error may be followed by the reply, or the later error, that takes its
    place.
    """
    number_of = table.add if grow else table.find
    rule = Counting(by_key=by_key)
    for start, record in placed:
        if by_key:
            digest = key_digest(record.bench, record.id, record.arm, record.epoch)
        else:
            digest = hash_digest(record.hash)
        number = number_of(digest)
        if number < 0:
            on_other(record)
        elif rule.takes(number, record.reply.fault is not None):
            yield number, start, record


class Run:
    """A stored run: its manifest, its records, and those of them that count.

    Reading a run never changes it, and memory holds the places of records, never the replies.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records = Records(folder)
        """All records of the journal, those among them that do not count."""

    @cached_property
    def manifest(self) -> Manifest:
        """``manifest.json``; DataError if it cannot be read."""
        return Manifest.read(self.folder)

    @property
    def id(self) -> str:
        """The name of the run: that of its folder."""
        return self.folder.name

    @property
    def damaged(self) -> int:
        """Lines of the journal that could not be read, as far as it was read."""
        return self.records.damaged

    def config(self, data_dir: str | None = None) -> TaskConfig:
        """The settings that its results were made with; `data_dir` goes before the run's own."""
        judge = self.manifest.judge
        return load_run_config(self.manifest.config | ({"judge": judge} if judge else {}), data_dir)

    def results(self) -> dict[str, Any]:
        """What ``results.json`` holds."""
        return read_json(self.folder / RESULTS)

    @property
    def results_are_current(self) -> bool:
        """Whether ``results.json`` is there and was written after the last line of the journal.

        It was not where a run is still going on, or was killed. The times of a copy say nothing;
        there the manifest says that the run had come to its end.
        """
        results, journal = self.folder / RESULTS, self.records.path
        if is_fetched(self.folder):
            return results.is_file() and self.manifest.complete
        if not results.is_file() or not journal.is_file():
            return results.is_file()
        return results.stat().st_mtime_ns >= journal.stat().st_mtime_ns

    def counting(
        self, requests: Requests | None = None, *, match_keys: bool = True
    ) -> Iterator[Counted]:
        """The records that count in the order of the journal; see `counting`.

        Without `requests`, and where none of them is in the journal, records are told apart by
        their keys; `match_keys` rules the latter out where the data is not that of the run.
        """
        matched = False
        if requests is not None and not requests.fresh:
            for counted in counting(self.records.placed(), requests.by_hash):
                matched = True
                yield counted
        if not matched and match_keys:
            table = requests.by_key if requests is not None else DigestTable()
            grow = requests is None
            yield from counting(self.records.placed(), table, by_key=True, grow=grow)

    def answers(
        self, requests: Requests | None = None, *, read: Read | None = None
    ) -> Iterator[tuple[int, Record]]:
        """Each record that counts, once, after its number, with the judges' grades entered.

        The numbers ascend: they are those of the requests or, without `requests`, follow the
        journal. `read` may give the readings anew before the judges' grades.
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
        return zip(numbers, graded(self.folder, records), strict=True)


def damage_notices(lines: int, missing: int) -> list[Notice]:
    """The notice that lines of a journal could not be read, and that replies are `missing`.

    A line that was asked again is missed by nobody.
    """
    return [Notice("damaged_lines", {"lines": lines})] if lines and missing else []


def missing_notices(done: int, whole: int) -> list[Notice]:
    """The notice that numbers are of a part of the replies; without any there are no numbers."""
    if not 0 < done < whole:
        return []
    return [Notice("replies_missing", {"part": done, "whole": whole})]


def open_run(name: str | Path, work_dir: str = "runs") -> Run:
    """The stored run in the folder `name`, or with this id below `work_dir`."""
    return Run(find_run(str(name), work_dir))


def list_runs(work_dir: str = "runs") -> list[Run]:
    """The runs below `work_dir` whose manifests can be read, oldest first."""
    runs = []
    for path in sorted(Path(work_dir).glob(f"*/{MANIFEST}")):
        with suppress(DataError):
            run = Run(path.parent)
            runs.append((run.manifest.created, run))
    return [run for _, run in sorted(runs, key=itemgetter(0))]


def latest_beside(run: Run) -> Run | None:
    """The newest other complete run in the same folder that sat an exam of this one's alike.

    That is the same questions, put, read and judged in the same way, in the same arms.
    """
    own = _sat(run.manifest)
    for other in reversed(list_runs(str(run.folder.parent))):
        alike = other.manifest.complete and any(exam in own for exam in _sat(other.manifest))
        if alike and other.folder.name != run.folder.name:
            return other
    return None


def _sat(manifest: Manifest) -> list[Any]:
    """The exams of a run, each with all that two runs must share for a comparison to tell much."""
    config = manifest.config
    arms = sorted(str(arm.get("name")) for arm in config.get("arms") or () if isinstance(arm, dict))
    chosen = [config.get(name) for name in ("ids", "failed_of", "shard")]
    judge = manifest.judge
    return [
        (exam.name, *_manner(exam), exam.data.version, exam.data.files, arms, chosen, judge)
        for exam in manifest.benchmarks
    ]


def _manner(exam: StoredExam) -> tuple[Any, ...]:
    """How an exam was put, and read by the headline's reader."""
    reader = next(iter(exam.readers.items()), None)
    return exam.protocol, exam.settings, reader, exam.filters


# Run folders: where they are and how they are named.


def new_run_id(model: str, datasets: list[str]) -> str:
    """A name that sorts by time and says what was run: ``20260101-120000-quiz-scripted``."""
    stamp = this_moment().strftime("%Y%m%d-%H%M%S")
    words = "-".join(filter(None, map(_plain_name, (*datasets, model))))
    whole = f"{stamp}-{words}"[:_LONGEST_ID].encode()[:_LONGEST_NAME].decode(errors="ignore")
    return whole.rstrip("-.")


_LONGEST_ID, _LONGEST_NAME = 96, 200
"""Characters of a run's name, and bytes: file systems take 255, and an ending may follow."""


def _plain_name(name: str) -> str:
    """What a file name can hold of an exam's or a model's; a place is called by its last part.

    ``custom:data/quiz`` is ``custom-data-quiz``, ``.`` the name of this folder.
    """
    kind, colon, place = name.rpartition(":")
    if place.startswith((".", "/", "~")):
        place = Path(place).expanduser().resolve().name
    return re.sub(r"[^\w.]+", "-", f"{kind}{colon}{place}").strip("-.")


class RunFolder(NamedTuple):
    """Where a run is saved, and whether it begins here."""

    path: Path
    new: bool
    replaced: Path | None = None
    """Where the run now is whose place it takes."""

    def undo(self) -> None:
        """Remove the folder of a run that was refused before anything was saved.

        The run whose place it took is put back.
        """
        if not self.new or not self.path.is_dir():
            return
        left = list(self.path.iterdir())
        if all(path.stat().st_size == 0 for path in left):
            for path in left:
                path.unlink()
            self.path.rmdir()
            if self.replaced is not None:
                self.replaced.rename(self.path)


def run_folder(config: TaskConfig) -> RunFolder:
    """The folder of a run, made if need be: the one it names, or a new one of its own."""
    refuse_unknown_run(config)
    work_dir = Path(config.work_dir)
    if config.run_id is not None:
        folder = work_dir / config.run_id
        replaced = _moved_aside(folder) if config.replace else None
        existed = folder.exists()
        return RunFolder(_create(folder, exist_ok=True), new=not existed, replaced=replaced)
    name = new_run_id(config.model, config.datasets)
    for number in range(1, 1000):  # others may start in the same second
        folder = work_dir / (name if number == 1 else f"{name}-{number}")
        try:
            return RunFolder(_create(folder, exist_ok=False), new=True)
        except FileExistsError:
            continue
    raise UsageError("run_too_many", work_dir=work_dir, name=name)


def command_name(folder: Path) -> str:
    """What a command calls the run in `folder`: its id where runs usually are, else its path.

    A copy of a run that lies elsewhere is called by its address.
    """
    if is_fetched(folder):
        return shlex.quote(read_json(folder / RECEIPT)["address"])
    usual = folder.absolute().parent == runs_folder(None).absolute()
    return shlex.quote(folder.name if usual else typed_path(folder))


def refuse_unknown_run(config: TaskConfig) -> None:
    """UsageError where a run is to be resumed that is not there."""
    if not config.resume:
        return
    if config.run_id is None:
        raise UsageError("run_resume_id")
    work_dir = Path(config.work_dir)
    if not (work_dir / config.run_id / MANIFEST).is_file():
        hint = near_runs(config.run_id, work_dir)
        raise UsageError(
            "run_none_to_resume", run_id=config.run_id, work_dir=config.work_dir, hint=hint
        )


def _moved_aside(folder: Path) -> Path | None:
    """Rename the folder of a run to ``RUN.replaced-1``, or to the next number that is free.

    UsageError if another process writes to it.
    """
    if not folder.is_dir():
        return None
    if not any((folder / name).is_file() for name in (MANIFEST, FILE)) and any(folder.iterdir()):
        raise UsageError("run_not_a_run", folder=folder)
    taken = {path.name for path in folder.parent.glob(f"{folder.name}{REPLACED}*")}
    numbered = (f"{folder.name}{REPLACED}{number}" for number in count(1))
    aside = folder.with_name(next(name for name in numbered if name not in taken))
    try:
        with Journal(folder):
            folder.rename(aside)
    except OSError as error:
        values = {"folder": folder, "aside": aside, "problem": error.strerror}
        raise UsageError("run_not_moved", **values) from None
    return aside


def _create(folder: Path, *, exist_ok: bool) -> Path:
    """Make a folder; FileExistsError only where it must be new."""
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
    """The folder of a run, given as a path, as an id below `work_dir`, or as an address.

    What lies at an address (``s3://bucket/run``) is fetched: the folder is a copy.
    """
    if "://" in name:
        from keju.runs.remote import fetched

        return fetched(name)
    for folder in (Path(name), Path(work_dir) / name):
        if is_there(folder / MANIFEST):
            return folder
    raise UsageError("run_none", name=name, work_dir=work_dir, hint=near_runs(name, Path(work_dir)))


def near_runs(name: str, work_dir: Path) -> str:
    """The runs that may be meant, for a message; empty where there are none."""
    names = [path.parent.name for path in sorted(work_dir.glob(f"*/{MANIFEST}"))]
    return did_you_mean(name, names) if names else ""


# What judges made of answers.


class Grade(msgspec.Struct, frozen=True, omit_defaults=True):
    """The readings of one answer after the judge; `hash` is that of the answer's record."""

    bench: str
    id: str
    hash: str
    readings: tuple[Reading, ...]
    epoch: int = 0


def write_grades(folder: Path, grades: Iterable[Grade]) -> None:
    """Write the whole file or none; no file where there are no grades."""
    encode, path = msgspec.json.Encoder().encode, folder / GRADES
    remaining = iter(grades)
    first = next(remaining, None)
    if first is None:
        path.unlink(missing_ok=True)
        return
    with whole_file(path) as file:
        file.write(encode(first) + b"\n")
        for grade in remaining:
            file.write(encode(grade) + b"\n")


def graded(folder: Path, records: Iterable[Record]) -> Iterator[Record]:
    """The same records, with the judges' grades entered where there are any."""
    path = folder / GRADES
    if not path.is_file():
        yield from records
        return
    decode = msgspec.json.Decoder(Grade).decode
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
