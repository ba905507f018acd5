"""Makes a run of a log that Keju wrote: the same questions, arms, repeats, judges and episodes.

Such a log describes its run, so nothing is matched by text. Every reply is read and graded again,
and the result says on which rows the log has another score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from keju.benchmarks import registry
from keju.benchmarks.choices import restore_order
from keju.benchmarks.samples import DigestTable, text_digest
from keju.config import TaskConfig
from keju.config.load import load_run_config
from keju.errors import DataError, Notice, UsageError
from keju.files import atomic_folder, explain_shape, write_json
from keju.interop.imports.comparing import ImportedReply, VerdictComparison
from keju.interop.imports.detect import FoundLog, structure_errors
from keju.interop.imports.log import LogPart, LogRow, LogRows
from keju.interop.imports.options import COMPARISON, ImportOptions, ImportResult
from keju.interop.logs import eee, inspect_files, lm_eval_files
from keju.interop.logs.restored import RestoredAnswer, RestoredLog
from keju.judges import make_judge_stage
from keju.reporting.html import write_outputs
from keju.results.score import score_run
from keju.runs.journal import VERDICTS, Journal
from keju.runs.manifest import MANIFEST, Manifest
from keju.runs.run import Run, make_run_folder, write_grades
from keju.scores.exam_scores import ExamScores
from keju.scores.exams import describe_exams, make_scores
from keju.scores.parallel import map_on_all_cores
from keju.scores.stored_replies import ExamRequests
from keju.types import Reading, Record, Reply

READERS = {
    eee.TOOL: eee.read_logs,
    "inspect": inspect_files.read_logs,
    "lm-eval": lm_eval_files.read_logs,
}
"""By tool: the function that reads Keju's logs in its format."""
BATCH_SIZE = 500
"""The number of records in one write to the journal."""


@dataclass
class _RestoredExam:
    """One exam of the new run in one arm: the scores, and the comparison with the log."""

    log: RestoredLog
    job: ExamScores
    comparison: VerdictComparison
    rows: LogRows
    units: DigestTable
    unmatched: list[dict[str, str]] = field(default_factory=list)


def read_own_logs(log_files: FoundLog, options: ImportOptions) -> list[RestoredLog]:
    """Return the logs that Keju wrote, of one exam if an option names it.

    Raise UsageError for a protocol, because the log says how its questions were asked.
    """
    reader, dataset = READERS.get(log_files.tool), options.dataset
    with structure_errors(log_files):
        logs = list(reader(log_files.source, log_files.names)) if reader is not None else []
    if logs and options.protocol:
        raise UsageError("log_protocol", path=log_files.source.path)
    if not dataset or not logs:
        return logs
    chosen = [log for log in logs if log.mark.exam in (dataset, registry.get(dataset).name)]
    if not chosen:
        exams = sorted({log.mark.exam for log in logs})
        raise UsageError("log_other_exam", path=log_files.source.path, exam=dataset, exams=exams)
    return chosen


def restore_run(
    log_files: FoundLog, logs: Sequence[RestoredLog], options: ImportOptions, *, report: bool
) -> ImportResult:
    """Write the answers of the logs as a run."""
    manifest = _read_manifest(log_files, logs)
    config = _make_config(manifest, options)
    jobs = make_scores(config)
    stage = make_judge_stage(config, jobs)
    target = make_run_folder(config)
    if not target.is_new and any(target.path.iterdir()):
        raise UsageError("import_run_exists", path=target.path)
    try:
        with atomic_folder(target.path) as folder:
            exams = _write_journals(folder, logs, jobs)
            _write_manifest(folder, manifest, config, jobs, log_files)
            if stage is not None:
                stage.grade(folder, None)
                write_grades(folder, stage.grades)
            results = score_run(Run(folder), data_dir=options.data_dir)
            requests = ExamRequests(jobs)
            write_outputs(Run(folder), results, requests, config.language, report=report)
            document = _describe(target.path, folder.name, manifest, exams, log_files)
            write_json(folder / COMPARISON, document)
        return ImportResult(target.path, document, results)
    except BaseException:
        target.undo()
        raise


def _read_manifest(log_files: FoundLog, logs: Sequence[RestoredLog]) -> Manifest:
    """Return the manifest of the run, reduced to the exams and arms of the logs.

    Raise UsageError if the logs are of several runs.
    """
    runs = {(log.mark.manifest.get("run"), log.mark.manifest.get("created")) for log in logs}
    path = log_files.source.path
    if len(runs) > 1:
        names = sorted(str(run) for run, _ in runs)
        raise UsageError("import_several_runs", path=path, name="Keju", runs=names)
    parts = [(log.mark.exam, log.mark.arm) for log in logs]
    if twice := next((part for part in parts if parts.count(part) > 1), None):
        files = [log.name for log in logs if (log.mark.exam, log.mark.arm) == twice]
        title = "/".join(filter(None, twice))
        raise UsageError("import_task_twice", task=title, first=files[0], second=files[1])
    try:
        manifest = msgspec.convert(logs[0].mark.manifest, Manifest)
    except msgspec.ValidationError as error:
        problem = explain_shape(error)
        raise DataError("log_mark_damaged", place=path, problem=problem) from None
    manifest.benchmarks = [exam for exam in manifest.benchmarks if exam.name in dict(parts)]
    config = manifest.config
    datasets = config.get("datasets") or ()
    config["datasets"] = [name for name in datasets if _exam_of_setting(name) in dict(parts)]
    if args := config.get("dataset_args"):
        config["dataset_args"] = {
            name: values for name, values in args.items() if _exam_of_setting(name) in dict(parts)
        }
    if arms := config.get("arms"):
        present = {arm for _, arm in parts}
        config["arms"] = [arm for arm in arms if arm.get("name") in present]
    return manifest


def _exam_of_setting(name: str) -> str:
    """Return the exam that a setting names by its path or by an alias."""
    return registry.get(name).name


def _make_config(manifest: Manifest, options: ImportOptions) -> TaskConfig:
    """Return the settings of the new run, which are the old settings in another folder."""
    settings = dict(manifest.config)
    settings.pop("run_id", None)
    if options.readers:
        settings["reader"] = options.readers
        settings["dataset_args"] = {
            name: {key: value for key, value in args.items() if key != "reader"}
            for name, args in (settings.get("dataset_args") or {}).items()
        }
    settings["work_dir"] = options.work_dir
    if options.run_id is not None:
        settings["run_id"] = options.run_id
    if judge := manifest.judge:
        settings["judge"] = judge
    return load_run_config(settings, options.data_dir)


def _write_journals(
    folder: Path, logs: Sequence[RestoredLog], jobs: Sequence[ExamScores]
) -> list[_RestoredExam]:
    """Write the answers and the verdicts of judges, each once."""
    exams = []
    verdicts: dict[tuple[str, float], Record] = {}
    with Journal(folder) as journal:
        for log in logs:
            exam = _start_exam(log, jobs)
            verdicts |= {_verdict_key(verdict): verdict for verdict in log.mark.verdicts}
            replies = _grade(exam, verdicts)
            while batch := list(islice(replies, BATCH_SIZE)):
                journal.append(reply.record for reply in batch)
                for reply in batch:
                    exam.comparison.add(reply)
            exams.append(exam)
    if verdicts:
        sorted_verdicts: list[Record] = sorted(verdicts.values(), key=lambda verdict: verdict.at)
        with Journal(folder, VERDICTS) as verdict_journal:
            verdict_journal.append(sorted_verdicts)
    if not any(len(exam.rows) for exam in exams):
        row = next((row for exam in exams for row in exam.unmatched), None)
        if row is None:
            raise UsageError("import_no_rows", path=logs[0].name, tool="Keju")
        raise DataError("import_no_match", **row)
    return exams


def _verdict_key(verdict: Record) -> tuple[str, float]:
    return verdict.hash, verdict.at


def _start_exam(log: RestoredLog, jobs: Sequence[ExamScores]) -> _RestoredExam:
    mark = log.mark
    job = next(job for job in jobs if (job.exam.benchmark, job.arm) == (mark.exam, mark.arm))
    ids = (text_digest(sample.id) for sample in job.exam.samples)
    units = DigestTable(ids, size=len(job.exam.samples))
    rows = LogRows()
    part = LogPart(task=log.name, rows=rows, benchmark=mark.exam)
    return _RestoredExam(log, job, VerdictComparison(part, job, job.exam), rows, units)


def _grade(
    exam: _RestoredExam, verdicts: dict[tuple[str, float], Record]
) -> Iterator[ImportedReply]:
    """Yield the answers of a log with new readings, and keep the verdicts about them."""
    job = exam.job

    def find(answer: RestoredAnswer) -> int:
        return exam.units.find(text_digest(answer.record.id))

    def known_answers() -> Iterator[RestoredAnswer]:
        for answer in exam.log.read_answers():
            verdicts.update({_verdict_key(verdict): verdict for verdict in answer.verdicts})
            if find(answer) >= 0 and answer.record.epoch < job.epochs:
                yield answer
            else:
                code = "import_no_question"
                reason = Notice(code).text()
                exam.unmatched.append({"where": answer.where, "code": code, "reason": reason})

    def send(answer: RestoredAnswer) -> tuple[int, Reply, tuple[int, ...]]:
        return find(answer), answer.record.reply, answer.record.order

    def grade(arguments: tuple[int, Reply, tuple[int, ...]]) -> tuple[Reading, ...]:
        return job.grade(*arguments)

    for answer, readings in map_on_all_cores(grade, known_answers(), send):
        record = msgspec.structs.replace(answer.record, readings=readings)
        row = LogRow(
            where=answer.where,
            reply=record.reply,
            target=record.target,
            answer=answer.answer,
            verdict=None if _is_judged(answer.record.readings, readings) else answer.score,
            epoch=record.epoch,
        )
        exam.rows.append(row)
        job.enter(find(answer) * job.epochs + record.epoch, record, record.order)
        sample = restore_order(job.exam.samples[find(answer)], record.order)
        yield ImportedReply(row, sample, record)


def _is_judged(stored: Sequence[Reading], today: Sequence[Reading]) -> bool:
    """Whether a judge gave the log's score, so that a reader cannot give it again."""
    graders = [readings[0].score.grader if readings else "" for readings in (stored, today)]
    return bool(graders[0]) and graders[0] != graders[1]


def _write_manifest(
    folder: Path,
    manifest: Manifest,
    config: TaskConfig,
    jobs: Sequence[ExamScores],
    log_files: FoundLog,
) -> None:
    """Write the manifest of the old run with the new folder and the origin of its replies."""
    settings = dict(manifest.config) | {"run_id": folder.name}
    if config.data_dir:
        settings["data_dir"] = str(Path(config.data_dir).absolute())
    if config.reader:
        settings["reader"] = config.reader
        settings["dataset_args"] = config.model_dump(mode="json", exclude_defaults=True).get(
            "dataset_args", {}
        )
        readers = {exam.name: exam.readers for exam in describe_exams(jobs)}
        for exam in manifest.benchmarks:
            exam.readers = dict(readers[exam.name])
    origin = {
        "tool": log_files.tool,
        "version": _origin_version(manifest),
        "files": dict(log_files.source.hashes),
    }
    new_manifest = msgspec.structs.replace(
        manifest,
        run=folder.name,
        config=settings,
        origin=manifest.origin or origin,
        read_anew=0,
    )
    write_json(folder / MANIFEST, new_manifest.as_dict())


def _origin_version(manifest: Manifest) -> str:
    """Return the version of Keju that asked the questions."""
    packages: Mapping[str, Any] = manifest.environment.get("packages") or {}
    return f"Keju {packages.get('keju', '')}".strip()


def _describe(
    folder: Path,
    run_id: str,
    manifest: Manifest,
    exams: Iterable[_RestoredExam],
    log_files: FoundLog,
) -> dict[str, Any]:
    """Return the comparison of the log's scores with Keju's."""
    benchmarks = []
    for exam in exams:
        document = exam.comparison.document(exam.unmatched)
        arm = {"arm": exam.job.arm} if exam.job.arm else {}
        benchmarks.append(document | arm)
    return {
        "schema": 1,
        "run": run_id,
        "folder": str(folder),
        "tool": log_files.tool,
        "version": _origin_version(manifest),
        "model": manifest.model,
        "files": dict(log_files.source.hashes),
        "benchmarks": benchmarks,
        "unmatched": [],
    }
