"""Turns a log into a run folder that works with every other command."""

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
from keju.benchmarks.choices import restore_order
from keju.benchmarks.prepare import prepare_exam
from keju.benchmarks.samples import DigestTable, text_digest
from keju.config import TaskConfig
from keju.errors import DataError, Notice, UsageError, did_you_mean
from keju.files import SpooledSequence, atomic_folder, write_json
from keju.interop.imports.comparing import ImportedReply, VerdictComparison
from keju.interop.imports.detect import find_log, read_log
from keju.interop.imports.detect import is_log as is_log
from keju.interop.imports.log import LogPart, LogRow, LogRows, ModelLog
from keju.interop.imports.matching import QuestionMatcher, normalize_subset
from keju.interop.imports.options import COMPARISON, ImportResult
from keju.interop.imports.options import ImportOptions as ImportOptions
from keju.interop.imports.restoring import read_own_logs, restore_run
from keju.reporting.html import write_outputs
from keju.results.summarise import build_results
from keju.runs.journal import Journal
from keju.runs.manifest import Manifest, ManifestFile
from keju.runs.run import Run, make_run_folder
from keju.scores.exam_scores import ExamScores
from keju.scores.exams import make_scores
from keju.scores.parallel import map_on_all_cores
from keju.scores.stored_replies import ExamRequests
from keju.types import Record, Reply

_SECRET = re.compile(r"key|header|token$|secret|authorization", re.IGNORECASE)
"""Names of settings that may hold a secret, such as ``api_key``. The manifest leaves them out."""
BATCH_SIZE = 500
"""The number of records in one write to the journal."""


class _MatchedRow(NamedTuple):
    """A row of the log, by its number, and the question that it answers."""

    row: int
    place: int
    epoch: int
    order: tuple[int, ...]


@dataclass
class _MatchedPart:
    """One exam of the log with its rows matched."""

    part: LogPart
    exam: Exam
    args: dict[str, Any]
    has_reply: bytearray
    """By position in the exam: whether the log has a reply."""
    epochs: int = 1
    matched: SpooledSequence[_MatchedRow] = field(
        default_factory=lambda: SpooledSequence(_MatchedRow)
    )
    unmatched: SpooledSequence[dict[str, str]] = field(
        default_factory=lambda: SpooledSequence(dict)
    )
    """The places of the other rows, and why they are left out."""


def import_log(path: Path, wishes: ImportOptions, *, report: bool = True) -> ImportResult:
    """Read the log at `path`, match and score its rows, and write them as a run.

    A log that Keju wrote becomes the same run again.
    """
    log_files = find_log(path, wishes.tool)
    if own_logs := read_own_logs(log_files, wishes):
        return restore_run(log_files, own_logs, wishes, report=report)
    log = read_log(log_files)
    parts, unknown_rows = _group_parts(log, wishes.dataset)
    exams = [_match(part, wishes) for part in parts]
    if not any(matched_part.matched for matched_part in exams):
        raise DataError("import_no_match", **next(row for s in exams for row in s.unmatched))
    config = _make_config(log, [s for s in exams if s.matched], wishes)
    return _create_run(log, exams, unknown_rows, config, report)


def _group_parts(
    log: ModelLog, dataset: str | None
) -> tuple[list[LogPart], SpooledSequence[dict[str, str]]]:
    """Return the parts of the log by exam, and the rows of tasks that Keju does not have."""
    name = registry.get(dataset).name if dataset else ""
    parts_by_exam: dict[str, list[LogPart]] = defaultdict(list)
    unknown_rows: SpooledSequence[dict[str, str]] = SpooledSequence(dict)
    for part in log.parts:
        benchmark = part.benchmark
        if dataset:
            benchmark = dataset if benchmark in ("", name) else ""
        if benchmark:
            parts_by_exam[benchmark].append(part)
        else:
            for row in part.rows:
                unknown_rows.append(_describe_skipped_row(row, row.note or "import_no_task"))
    if not parts_by_exam:
        tasks = [part.task for part in log.parts[:3]]
        hint = did_you_mean(log.parts[0].task, registry.names())
        raise UsageError("import_no_exam", tool=log.tool, tasks=tasks, hint=hint)
    return [
        _join_parts(benchmark, members) for benchmark, members in parts_by_exam.items()
    ], unknown_rows


def _describe_skipped_row(row: LogRow, code: str) -> dict[str, str]:
    return {"where": row.where, "code": code, "reason": Notice(code).text()}


def _join_parts(benchmark: str, members: Sequence[LogPart]) -> LogPart:
    """Join parts of one exam; UsageError if they were read in different ways."""
    first_part = members[0]
    for other_part in members[1:]:
        if (other_part.protocol, other_part.reader) != (first_part.protocol, first_part.reader):
            tasks = {"first": first_part.task, "second": other_part.task}
            raise UsageError("import_two_ways", benchmark=benchmark, **tasks)
    is_single = len(members) == 1
    rows = first_part.rows if is_single else LogRows()
    for part in () if is_single else members:
        rows.extend(part.rows)
    return LogPart(
        benchmark=benchmark,
        task=", ".join(part.task for part in members),
        rows=rows,
        protocol=first_part.protocol,
        reader=first_part.reader,
        args=first_part.args,
        reported=first_part.reported if is_single else {},
        n=first_part.n if is_single else None,
        written_count=first_part.written_count if is_single else None,
        sampling=first_part.sampling,
    )


def _match(part: LogPart, wishes: ImportOptions) -> _MatchedPart:
    """Match all rows of a part. A question may occur only once in an epoch."""
    args = _choose_args(part, wishes) | _choose_subsets(part)
    exam, _ = prepare_exam(part.benchmark, args, data_dir=wishes.data_dir, offline=True)
    matched_part = _MatchedPart(part, exam, args, bytearray(len(exam.samples)))
    matcher = QuestionMatcher(exam)
    first_rows = array("I")
    """The first row of each question in each epoch."""
    for number, row in enumerate(part.rows):
        match = matcher.match(row)
        if match.place is None:
            matched_part.unmatched.append(_describe_skipped_row(row, match.reason))
            continue
        if match.number < len(first_rows):
            places = {"first": part.rows[first_rows[match.number]].where, "second": row.where}
            raise DataError("import_twice", id=exam.samples[match.place].id, **places)
        first_rows.append(number)
        matched_part.has_reply[match.place] = 1
        matched_part.epochs = max(matched_part.epochs, row.epoch + 1)
        matched_part.matched.append(_MatchedRow(number, match.place, row.epoch, match.order))
    return matched_part


def _choose_args(part: LogPart, wishes: ImportOptions) -> dict[str, Any]:
    """Return the settings of the log. With another protocol, only the split stays."""
    args = dict(part.args)
    if wishes.protocol and wishes.protocol != part.protocol:
        args = {key: value for key, value in args.items() if key == "split"}
    if protocol := wishes.protocol or part.protocol:
        args["protocol"] = protocol
    return args


def _choose_subsets(part: LogPart) -> dict[str, list[str]]:
    """Return the setting that loads only the subsets of the rows; empty if a row names none."""
    subset_names = registry.get(part.benchmark).subset_names
    spellings = {normalize_subset(name): name for name in subset_names}
    subsets = {normalize_subset(name) for name in part.rows.subsets}
    if not subsets or "" in subsets or not subsets <= spellings.keys():
        return {}
    names = [name for plain_name, name in spellings.items() if plain_name in subsets]
    return {"subset_list": names}


def _make_config(log: ModelLog, exams: Sequence[_MatchedPart], wishes: ImportOptions) -> TaskConfig:
    """Return the settings to score, report and export the run later."""
    dataset_args: dict[str, dict[str, Any]] = {}
    for matched_part in exams:
        args = dict(matched_part.args)
        names = [
            subset.name
            for subset in matched_part.exam.subsets
            if any(matched_part.has_reply[subset.start : subset.stop])
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
        limit=_infer_limit(exams),
        repeats=max(matched_part.epochs for matched_part in exams),
        run_id=wishes.run_id,
        offline=True,
    )


def _infer_limit(exams: Sequence[_MatchedPart]) -> int | None:
    """Return the limit that explains which questions the log has; None if there is none.

    With limit 3, the log has the first three questions of every used subset, or all of a smaller
    one.
    """
    subset_counts: list[tuple[int, int]] = []
    for matched_part in exams:
        for subset in matched_part.exam.subsets:
            replies_in_subset = matched_part.has_reply[subset.start : subset.stop]
            count = sum(replies_in_subset)
            if any(replies_in_subset[count:]):
                return None
            if count:
                subset_counts.append((count, len(subset)))
    largest_count = max(count for count, _ in subset_counts)
    is_limited = all(count == min(largest_count, size) for count, size in subset_counts)
    return (
        largest_count if is_limited and any(count < size for count, size in subset_counts) else None
    )


def _create_run(
    log: ModelLog,
    exams: Sequence[_MatchedPart],
    unknown_rows: Sequence[Mapping[str, str]],
    config: TaskConfig,
    report: bool,
) -> ImportResult:
    jobs = make_scores(config)
    target = make_run_folder(config)
    if not target.is_new and any(target.path.iterdir()):
        raise UsageError("import_run_exists", path=target.path)
    try:
        with atomic_folder(target.path) as folder:
            return _write_run(folder, target.path, log, exams, unknown_rows, jobs, config, report)
    except BaseException:
        target.undo()
        raise


def _write_run(
    folder: Path,
    final_folder: Path,
    log: ModelLog,
    exams: Sequence[_MatchedPart],
    unknown_rows: Sequence[Mapping[str, str]],
    jobs: Sequence[ExamScores],
    config: TaskConfig,
    report: bool,
) -> ImportResult:
    """Write the run into a temporary folder, which becomes `final_folder` when it is complete."""
    by_name = {job.exam.benchmark: job for job in jobs}
    digest = hashlib.sha256("".join(sorted(log.files.values())).encode()).hexdigest()
    comparisons: dict[str, dict[str, Any]] = {}
    requests = ExamRequests(jobs)
    requests.fresh = True
    with Journal(folder) as journal:
        file = ManifestFile(folder, config, [job.facts() for job in jobs], home=final_folder)
        for matched_part in exams:
            job = by_name.get(matched_part.exam.benchmark)
            comparison = VerdictComparison(matched_part.part, job, matched_part.exam)
            pairs = _pairs(matched_part, job, log.tool, digest) if job is not None else iter(())
            while batch := list(islice(pairs, BATCH_SIZE)):
                journal.append(pair.record for pair in batch)
                for pair in batch:
                    comparison.add(pair)
            comparisons[matched_part.exam.benchmark] = comparison.document(matched_part.unmatched)
        _describe_origin(file.manifest, log, exams, unknown_rows)
        results = build_results(jobs, file, None)
        origin = Notice("imported", {"origin": f"{log.tool} {log.version}"})
        entries = []
        for entry in results.benchmarks:
            entries.append(entry.with_notices([origin, *_loss_notices(comparisons[entry.name])]))
        results = msgspec.structs.replace(results, benchmarks=tuple(entries))
        file.finish(complete=True)
        write_outputs(Run(folder), results, requests, config.language, report=report)
    document = {
        "schema": 1,
        "run": folder.name,
        "folder": str(final_folder),
        "tool": log.tool,
        "version": log.version,
        "model": log.model,
        "files": dict(log.files),
        "benchmarks": list(comparisons.values()),
        "unmatched": unknown_rows,
    }
    write_json(folder / COMPARISON, document)
    return ImportResult(final_folder, document, results)


def _loss_notices(comparison: Mapping[str, Any]) -> Iterator[Notice]:
    """Yield notices about the tool's rows that are not in the results."""
    if missing := comparison["rows_missing"]:
        yield Notice("rows_missing", {"missing": missing, "whole": missing + comparison["rows"]})
    if unmatched_count := len(comparison["unmatched"]):
        yield Notice("unmatched_rows", {"rows": unmatched_count})


def _pairs(
    matched_part: _MatchedPart, job: ExamScores, tool: str, digest: str
) -> Iterator[ImportedReply]:
    """Yield the journal records of an exam in its order, each with its row."""
    ids = (text_digest(sample.id) for sample in job.exam.samples)
    positions = DigestTable(ids, size=len(job.exam.samples))
    match_numbers = array("I", [0]) * job.units
    """By unit: the number of its match, plus 1."""
    for number, match in enumerate(matched_part.matched, 1):
        position = positions.find(text_digest(matched_part.exam.samples[match.place].id))
        match_numbers[position * job.epochs + match.epoch] = number
    del positions  # frees tens of megabytes for a long log
    units = (unit for unit, number in enumerate(match_numbers) if number)

    def load_row(unit: int) -> tuple[int, _MatchedRow, LogRow]:
        match = matched_part.matched[match_numbers[unit] - 1]
        return unit, match, matched_part.part.rows[match.row]

    def to_job(
        match_and_row: tuple[int, _MatchedRow, LogRow],
    ) -> tuple[int, Reply, tuple[int, ...]]:
        unit, match, row = match_and_row
        return unit // job.epochs, row.reply, match.order

    graded_rows = map_on_all_cores(
        lambda arguments: job.grade(*arguments), map(load_row, units), to_job
    )
    for (unit, match, row), readings in graded_rows:
        job.enter_readings(unit, row.reply, (), readings, match.order)
        original_sample = matched_part.exam.samples[match.place]
        sample = restore_order(original_sample, match.order)
        identity = f"{digest}\0{original_sample.id}\0{row.epoch}"
        record = Record(
            bench=job.exam.benchmark,
            id=original_sample.id,
            epoch=row.epoch,
            hash=hashlib.blake2b(identity.encode(), digest_size=16).hexdigest(),
            target=sample.target,
            order=match.order,
            reply=row.reply,
            readings=readings,
            at=round(time(), 3),
            origin=tool,
        )
        yield ImportedReply(row, sample, record)


def _describe_origin(
    manifest: Manifest,
    log: ModelLog,
    exams: Sequence[_MatchedPart],
    unknown_rows: Sequence[Mapping[str, str]],
) -> None:
    """Write the origin of the replies and the tool's own figures into the manifest.

    Each exam has the settings of the log. Keju's own settings were not used.
    """
    by_name = {matched_part.exam.benchmark: matched_part.part for matched_part in exams}
    manifest.imported = True
    manifest.origin = {
        "tool": log.tool,
        "version": log.version,
        "files": dict(log.files),
        "reported": {name: part.reported for name, part in by_name.items()},
        "reported_n": {name: part.n for name, part in by_name.items()},
        "rows": sum(len(matched_part.part.rows) for matched_part in exams) + len(unknown_rows),
        "unmatched": sum(len(matched_part.unmatched) for matched_part in exams) + len(unknown_rows),
    }
    del manifest.config["seed"]
    prompts = {"prompts": f"as {log.tool} {log.version} wrote them".strip()}
    for exam in manifest.benchmarks:
        part = by_name[exam.name]
        exam.sampling = {k: value for k, value in part.sampling.items() if not _SECRET.search(k)}
        mode = {key: value for key, value in exam.settings.items() if key == "mode"}
        exam.settings = mode | dict(part.args) | prompts
