"""From a log to a run folder that every other command can work on."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import msgspec

from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.benchmarks.choices import as_shown
from keju.benchmarks.prepare import prepare_exam
from keju.benchmarks.samples import DigestTable, text_digest
from keju.config import TaskConfig
from keju.engine.cores import map_on_all_cores
from keju.engine.job import Job, make_jobs
from keju.engine.resume import JobRequests
from keju.errors import DataError, Notice, UsageError, did_you_mean
from keju.files import Spool, atomic_folder, write_json
from keju.interop.imports.comparing import Comparison, Pair
from keju.interop.imports.detect import is_log as is_log
from keju.interop.imports.detect import read_log
from keju.interop.imports.log import Log, LogRow, LogRows, Part
from keju.interop.imports.matching import Matcher, plain
from keju.report.html import write_outputs
from keju.results.schema import Results
from keju.results.summarise import build_results
from keju.runs.journal import Journal
from keju.runs.manifest import Manifest, ManifestFile
from keju.runs.run import Run, make_run_folder
from keju.types import Record, Reply

_SECRET = re.compile(r"key|header|token$|secret|authorization", re.IGNORECASE)
"""Names of settings that may hold a secret, such as ``api_key``; a manifest never does."""
COMPARISON = "import.json"
"""The file of a run's folder that holds the tool's verdicts beside Keju's."""
AT_ONCE = 500
"""Records that are written to the journal at once."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the user asked for."""

    tool: str | None = None
    dataset: str | None = None
    data_dir: str | None = None
    work_dir: str = "runs"
    run_id: str | None = None
    protocol: str | None = None
    readers: list[str] | None = None


class _Matched(NamedTuple):
    """A row of the log by its number, and the question that it answers."""

    row: int
    place: int
    epoch: int
    order: tuple[int, ...]


@dataclass
class _MatchedPart:
    """One exam of the log with its rows matched."""

    part: Part
    exam: Exam
    args: dict[str, Any]
    asked: bytearray
    """By position in the exam: whether the log has a reply."""
    epochs: int = 1
    matched: Spool[_Matched] = field(default_factory=lambda: Spool(_Matched))
    unmatched: Spool[dict[str, str]] = field(default_factory=lambda: Spool(dict))
    """Where the others stand, and why they are left out."""


@dataclass(frozen=True)
class Imported:
    """What an import made."""

    folder: Path
    document: dict[str, Any]
    """The comparison, as ``import.json`` and ``--json`` have it."""
    results: Results


def import_log(path: Path, wishes: Wishes, *, report: bool = True) -> Imported:
    """Read the log at `path`, match and score its rows, and write them as a run."""
    log = read_log(path, wishes.tool)
    parts, strange = _known_parts(log, wishes.dataset)
    exams = [_match(part, wishes) for part in parts]
    if not any(matched_part.matched for matched_part in exams):
        raise DataError("import_no_match", **next(row for s in exams for row in s.unmatched))
    config = _config(log, [s for s in exams if s.matched], wishes)
    return _write(log, exams, strange, config, report)


def _known_parts(log: Log, dataset: str | None) -> tuple[list[Part], Spool[dict[str, str]]]:
    """The parts of the log by exam, and the rows of tasks that are none of Keju's."""
    name = registry.get(dataset).name if dataset else ""
    grouped: dict[str, list[Part]] = defaultdict(list)
    strange: Spool[dict[str, str]] = Spool(dict)
    for part in log.parts:
        benchmark = part.benchmark
        if dataset:
            benchmark = dataset if benchmark in ("", name) else ""
        if benchmark:
            grouped[benchmark].append(part)
        else:
            for row in part.rows:
                strange.append(_left_out(row, row.note or "import_no_task"))
    if not grouped:
        tasks = [part.task for part in log.parts[:3]]
        hint = did_you_mean(log.parts[0].task, registry.names())
        raise UsageError("import_no_exam", tool=log.tool, tasks=tasks, hint=hint)
    return [_joined(benchmark, members) for benchmark, members in grouped.items()], strange


def _left_out(row: LogRow, code: str) -> dict[str, str]:
    return {"where": row.where, "code": code, "reason": Notice(code).text()}


def _joined(benchmark: str, members: Sequence[Part]) -> Part:
    """Parts of one exam as one; they must have been read alike."""
    first = members[0]
    for other in members[1:]:
        if (other.protocol, other.reader) != (first.protocol, first.reader):
            tasks = {"first": first.task, "second": other.task}
            raise UsageError("import_two_ways", benchmark=benchmark, **tasks)
    whole = len(members) == 1
    rows = first.rows if whole else LogRows()
    for part in () if whole else members:
        rows.extend(part.rows)
    return Part(
        benchmark=benchmark,
        task=", ".join(part.task for part in members),
        rows=rows,
        protocol=first.protocol,
        reader=first.reader,
        args=first.args,
        reported=first.reported if whole else {},
        n=first.n if whole else None,
        asked=first.asked if whole else None,
        sampling=first.sampling,
    )


def _match(part: Part, wishes: Wishes) -> _MatchedPart:
    """Match all rows of a part; a question may occur once in an epoch."""
    args = dict(part.args)
    protocol = wishes.protocol or part.protocol
    if wishes.protocol and wishes.protocol != part.protocol:
        args = {key: value for key, value in args.items() if key == "split"}
    if protocol:
        args["protocol"] = protocol
    # Where all rows name a subset that the exam has, only these are loaded.
    spellings = {plain(name): name for name in registry.get(part.benchmark).subset_names}
    subsets = {plain(name) for name in part.rows.subsets}
    if subsets and subsets <= spellings.keys() and "" not in subsets:
        args["subset_list"] = [
            name for plain_name, name in spellings.items() if plain_name in subsets
        ]
    exam, _ = prepare_exam(part.benchmark, args, data_dir=wishes.data_dir, offline=True)
    matched_part = _MatchedPart(part, exam, args, bytearray(len(exam.samples)))
    matcher = Matcher(exam)
    firsts = array("I")
    """The first row of each question in each epoch."""
    for number, row in enumerate(part.rows):
        match = matcher.match(row)
        if match.place is None:
            matched_part.unmatched.append(_left_out(row, match.reason))
            continue
        if match.number < len(firsts):
            places = {"first": part.rows[firsts[match.number]].where, "second": row.where}
            raise DataError("import_twice", id=exam.samples[match.place].id, **places)
        firsts.append(number)
        matched_part.asked[match.place] = 1
        matched_part.epochs = max(matched_part.epochs, row.epoch + 1)
        matched_part.matched.append(_Matched(number, match.place, row.epoch, match.order))
    return matched_part


def _config(log: Log, exams: Sequence[_MatchedPart], wishes: Wishes) -> TaskConfig:
    """The settings under which the run can be scored, reported and exported later."""
    dataset_args: dict[str, dict[str, Any]] = {}
    for matched_part in exams:
        args = dict(matched_part.args)
        names = [
            subset.name
            for subset in matched_part.exam.subsets
            if any(matched_part.asked[subset.start : subset.stop])
        ]
        if len(names) < len(matched_part.exam.subsets):
            args["subset_list"] = names
        if wishes.readers is None and matched_part.part.reader and not wishes.protocol:
            args["reader"] = list(
                dict.fromkeys([matched_part.part.reader, matched_part.exam.beside])
            )
        dataset_args[matched_part.part.benchmark] = args
    return TaskConfig(
        model=log.model,
        datasets=list(dataset_args),
        dataset_args=dataset_args,
        data_dir=wishes.data_dir,
        work_dir=wishes.work_dir,
        reader=wishes.readers,
        limit=_limit(exams),
        repeats=max(matched_part.epochs for matched_part in exams),
        run_id=wishes.run_id,
        offline=True,
    )


def _limit(exams: Sequence[_MatchedPart]) -> int | None:
    """The limit that explains which questions the log has, where one does.

    With limit 3 every subset that was asked has its first three questions in the log, or all that
    it has.
    """
    asked: list[tuple[int, int]] = []
    for each in exams:
        for subset in each.exam.subsets:
            inside = each.asked[subset.start : subset.stop]
            count = sum(inside)
            if any(inside[count:]):
                return None
            if count:
                asked.append((count, len(subset)))
    longest = max(count for count, _ in asked)
    cut = all(count == min(longest, size) for count, size in asked)
    return longest if cut and any(count < size for count, size in asked) else None


def _write(
    log: Log,
    exams: Sequence[_MatchedPart],
    strange: Sequence[Mapping[str, str]],
    config: TaskConfig,
    report: bool,
) -> Imported:
    jobs = make_jobs(config)
    place = make_run_folder(config)
    if not place.is_new and any(place.path.iterdir()):
        raise UsageError("import_run_exists", path=place.path)
    try:
        with atomic_folder(place.path) as folder:
            return _fill(folder, place.path, log, exams, strange, jobs, config, report)
    except BaseException:
        place.undo()
        raise


def _fill(
    folder: Path,
    home: Path,
    log: Log,
    exams: Sequence[_MatchedPart],
    strange: Sequence[Mapping[str, str]],
    jobs: Sequence[Job],
    config: TaskConfig,
    report: bool,
) -> Imported:
    """Write the run into a folder that will be at `home` once all is written."""
    by_name = {job.exam.benchmark: job for job in jobs}
    digest = hashlib.sha256("".join(sorted(log.files.values())).encode()).hexdigest()
    compared: dict[str, dict[str, Any]] = {}
    requests = JobRequests(jobs)
    requests.fresh = True
    with Journal(folder) as journal:
        file = ManifestFile(folder, config, [job.facts() for job in jobs], home=home)
        for each in exams:
            job = by_name.get(each.exam.benchmark)
            comparison = Comparison(each.part, job, each.exam)
            pairs = _pairs(each, job, log.tool, digest) if job is not None else iter(())
            while batch := list(islice(pairs, AT_ONCE)):
                journal.append(pair.record for pair in batch)
                for pair in batch:
                    comparison.see(pair)
            compared[each.exam.benchmark] = comparison.document(each.unmatched)
        _describe(file.manifest, log, exams, strange)
        results = build_results(jobs, file, None)
        origin = Notice("imported", {"origin": f"{log.tool} {log.version}"})
        entries = []
        for entry in results.benchmarks:
            entries.append(entry.with_notices([origin, *_losses(compared[entry.name])]))
        results = msgspec.structs.replace(results, benchmarks=tuple(entries))
        file.finish(complete=True)
        write_outputs(Run(folder), results, requests, config.language, report=report)
    document = {
        "schema": 1,
        "run": folder.name,
        "folder": str(home),
        "tool": log.tool,
        "version": log.version,
        "model": log.model,
        "files": dict(log.files),
        "benchmarks": list(compared.values()),
        "unmatched": strange,
    }
    write_json(folder / COMPARISON, document)
    return Imported(home, document, results)


def _losses(compared: Mapping[str, Any]) -> Iterator[Notice]:
    """What of the tool's rows is not in the results."""
    if missing := compared["rows_missing"]:
        yield Notice("rows_missing", {"missing": missing, "whole": missing + compared["rows"]})
    if lost := len(compared["unmatched"]):
        yield Notice("unmatched_rows", {"rows": lost})


def _pairs(each: _MatchedPart, job: Job, tool: str, digest: str) -> Iterator[Pair]:
    """The journal lines of an exam in its order, each with the row it comes from."""
    ids = (text_digest(sample.id) for sample in job.exam.samples)
    positions = DigestTable(ids, size=len(job.exam.samples))
    replied = array("I", [0]) * job.units
    """By unit: the number of the match that answers it, plus 1."""
    for number, match in enumerate(each.matched, 1):
        position = positions.find(text_digest(each.exam.samples[match.place].id))
        replied[position * job.epochs + match.epoch] = number
    del positions  # tens of megabytes of a long log
    units = (unit for unit, number in enumerate(replied) if number)

    def found(unit: int) -> tuple[int, _Matched, LogRow]:
        match = each.matched[replied[unit] - 1]
        return unit, match, each.part.rows[match.row]

    def send(item: tuple[int, _Matched, LogRow]) -> tuple[int, Reply, tuple[int, ...]]:
        unit, match, row = item
        return unit // job.epochs, row.reply, match.order

    graded = map_on_all_cores(lambda sent: job.grade(*sent), map(found, units), send)
    for (unit, match, row), readings in graded:
        job.enter_readings(unit, row.reply, (), readings, match.order)
        asked = each.exam.samples[match.place]
        sample = as_shown(asked, match.order)
        identity = f"{digest}\0{asked.id}\0{row.epoch}"
        record = Record(
            bench=job.exam.benchmark,
            id=asked.id,
            epoch=row.epoch,
            hash=hashlib.blake2b(identity.encode(), digest_size=16).hexdigest(),
            target=sample.target,
            order=match.order,
            reply=row.reply,
            readings=readings,
            at=round(time(), 3),
            origin=tool,
        )
        yield Pair(row, sample, record)


def _describe(
    manifest: Manifest,
    log: Log,
    exams: Sequence[_MatchedPart],
    strange: Sequence[Mapping[str, str]],
) -> None:
    """Write into the manifest where the replies come from and what the tool made of them.

    Of each exam it says what the log tells, and no setting of Keju's: none was in force.
    """
    by_name = {each.exam.benchmark: each.part for each in exams}
    manifest.imported = True
    manifest.origin = {
        "tool": log.tool,
        "version": log.version,
        "files": dict(log.files),
        "reported": {name: part.reported for name, part in by_name.items()},
        "reported_n": {name: part.n for name, part in by_name.items()},
        "rows": sum(len(each.part.rows) for each in exams) + len(strange),
        "unmatched": sum(len(each.unmatched) for each in exams) + len(strange),
    }
    del manifest.config["seed"]
    prompts = {"prompts": f"as {log.tool} {log.version} wrote them".strip()}
    for exam in manifest.benchmarks:
        part = by_name[exam.name]
        exam.sampling = {k: value for k, value in part.sampling.items() if not _SECRET.search(k)}
        mode = {key: value for key, value in exam.settings.items() if key == "mode"}
        exam.settings = mode | dict(part.args) | prompts
