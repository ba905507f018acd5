"""A task from beginning to end: prepare, ask, judge, results, report."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from keju.benchmarks import registry
from keju.config import JudgeConfig, TaskConfig
from keju.config.address import key_flag
from keju.config.arms import AgentLimits
from keju.engine.channel import ChannelLimits
from keju.engine.job import Job, make_jobs
from keju.engine.resume import KEPT_FAULTS, ReusedUnits, copy_cached, recall
from keju.engine.run_sharing import SHARE
from keju.engine.session import run_session
from keju.errors import (
    ConfigError,
    Interrupted,
    KejuError,
    Notice,
    RunIncomplete,
    TranslatableText,
    UsageError,
    WriteError,
    join_hints,
)
from keju.files import typed_path
from keju.interop.watchers import watch_runs
from keju.judges import make_judge_stage
from keju.messages import label_text
from keju.models.registry import is_local, make_model
from keju.progress.display import Display
from keju.progress.watching import WATCHER, HeadlineScore
from keju.reporting.html import write_outputs
from keju.results.schema import Results, to_document
from keju.results.summarise import build_results, examples_of
from keju.runs.journal import FILE, Journal
from keju.runs.manifest import MANIFEST, Manifest, ManifestFile
from keju.runs.run import (
    Run,
    RunFolder,
    damage_notices,
    find_run,
    make_run_folder,
    open_run,
    refuse_unknown_run,
    write_grades,
)
from keju.runs.run_ids import find_unfinished
from keju.runs.throughput import SessionThroughput, find_earlier_pace
from keju.scores.exam_scores import ExamScores
from keju.scores.exams import collect_hints, describe_exams
from keju.scores.stored_replies import ExamRequests

if TYPE_CHECKING:
    from keju.engine.queue import ArmsRule
    from keju.judges import GradingStage
    from keju.models.base import Model
    from keju.runs.resume_compat import ResumeDifference
    from keju.scores.stopping import StoppingRule


class FinishedTask(NamedTuple):
    """The result of a task."""

    results: Results
    folder: Path
    resume_command: str
    """Empty where resuming would change nothing."""
    error: KejuError | None = None
    """The error that ended it early."""

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return self.error.exit_code if self.error else 0

    @property
    def message(self) -> str:
        """Why it ended early, in one line, or ""."""
        return str(self.error) if self.error else ""

    @property
    def document(self) -> dict[str, Any]:
        """The results as the plain document in ``results.json``."""
        return to_document(self.results)

    @property
    def problem(self) -> str:
        """Why it ended early, and how to continue."""
        if self.error is None:
            return ""
        resume = self.resume_command
        return self.error.message + (label_text("resume_with", command=resume) if resume else "")


def run_exams(
    config: TaskConfig, *, display: Display | None = None, report: bool = True
) -> FinishedTask:
    """Run the exams of `config`. Continue the run with the same id if it is the same run.

    A judge grades only if `config` names it. The verdicts of another judge, from ``keju judge``,
    stay valid.
    """
    display = display or Display()
    excluded: set[str] = set()
    while (name := _find_unfinished(config, excluded)) is not None:
        try:
            continued = config.model_copy(update={"run_id": name})
            display.note(Notice("run_continues", {"run": name}).message)
            return _run_watched(continued, display, report=report)
        except UsageError as error:
            if error.code not in NOT_CONTINUED:
                raise
            excluded.add(name)
    return _run_watched(config, display, report=report)


NOT_CONTINUED = ("run_in_use", "run_is_another", "run_would_lose", "run_made_with_other")
"""Why an unfinished run cannot be continued; then the next id is taken."""


def _find_unfinished(config: TaskConfig, excluded: Collection[str] = ()) -> str | None:
    """Return the unfinished run that the same command began; None if the user named the run."""
    if config.run_id is not None or config.resume:
        return None
    return find_unfinished(select_failed(config), excluded)


def _run_watched(config: TaskConfig, display: Display, *, report: bool) -> FinishedTask:
    with watch_runs(config, display):
        return notify_watcher(_run_exams(config, display, report=report))


def notify_watcher(finished: FinishedTask) -> FinishedTask:
    """Notify the watcher of the results and return `finished`."""
    if (watcher := WATCHER.get()) is not None:
        headlines = [
            HeadlineScore(
                entry.name,
                entry.arm,
                entry.reader,
                entry.headline,
                metric.value,
                metric.ci95,
                metric.n,
            )
            for entry in finished.results.benchmarks
            if (metric := entry.metrics.get(entry.headline)) is not None
        ]
        complete = finished.error is None and finished.results.complete is not False
        watcher.finished(finished.folder.name, headlines, complete, finished.error)
    return finished


def _run_exams(config: TaskConfig, display: Display, *, report: bool) -> FinishedTask:
    task = _prepare(select_failed(config), display)
    config = task.config
    cache = find_run(config.use_cache, config.work_dir) if config.use_cache else None
    place = make_run_folder(config)
    try:
        for notice in _notices_before(task, place):
            display.note(notice.message)
        with Journal(place.path) as journal:
            session = _Session(task, journal, place.path, display)
            stop = run_stage(partial(session.ask, cache))
            stop = session.grade(stop) or find_shortfall(task.jobs, config.error_limit)
            results = session.summarise(stop)
            save_stop = run_stage(partial(session.save, results, stop, report=report))
            stop = stop or save_stop
    except KejuError as error:
        place.undo()
        raise (error.incomplete() if isinstance(error, WriteError) else error) from None
    return FinishedTask(results, place.path, resume_command(config, place.path, stop), stop)


class _Task(NamedTuple):
    """The exams, the model and the judge of a task, ready to be asked."""

    config: TaskConfig
    stored: Manifest | None
    """The manifest of the run to resume."""
    jobs: list[Job]
    model: Model
    stage: GradingStage | None
    earlier_judge: JudgeConfig | None
    """The judge that graded the stored run and is not asked again: its verdicts stay valid."""
    notices: list[Notice]

    @property
    def asked_stage(self) -> GradingStage | None:
        """The judge's stage if a judge grades the replies of this session."""
        return self.stage if self.earlier_judge is None else None


def _prepare(config: TaskConfig, display: Display | None = None) -> _Task:
    """Prepare the exams, the model and the judge. Raise errors before anything is written."""
    config, stored = _resume_config(config)
    jobs, earlier = make_jobs(config), _find_earlier_judge(stored, config)
    judged_config = config.model_copy(update={"judge": earlier})
    if any(job.exam.judge for job in jobs):  # the exam brings its own judge
        earlier = None
    elif earlier is not None:
        jobs = make_jobs(judged_config)
    model = _make_task_model(config, display)
    _check_executor(config, jobs)
    notices = _refuse_idle_settings(config, jobs, is_resumed=stored is not None)
    stage = make_judge_stage(config if earlier is None else judged_config, jobs)
    if stage is not None and earlier is None:
        stage.check()
    return _Task(config, stored, jobs, model, stage, earlier, [*collect_hints(jobs), *notices])


def _notices_before(task: _Task, place: RunFolder) -> Iterator[Notice]:
    """Give the model's server and the jobs that act their folder. Yield notices."""
    if task.model.server is not None:
        task.model.server.folder = place.path
    if place.replaced is not None:
        yield Notice("run_replaced", {"aside": place.replaced})
    yield from task.notices
    yield from _equip(task.config, task.jobs, place.path)


class _Session:
    """The stages of a task with an open journal: ask, grade, summarise, save."""

    def __init__(self, task: _Task, journal: Journal, folder: Path, display: Display) -> None:
        self.task = task
        self.journal = journal
        self.folder = folder
        self.display = display
        exams = describe_exams(task.jobs)
        self.manifest = ManifestFile(folder, task.config, exams, graded_by=task.earlier_judge)
        self.manifest.manifest.stopped = msgspec.UNSET  # until a session ends
        self.run = Run(folder)
        self.requests = ExamRequests(task.jobs)
        self.rule = _make_stopping_rule(
            task.config, task.jobs, self.manifest.manifest, task.asked_stage
        )
        self.notices = _version_notices(self.manifest)
        self.damaged = 0
        """Lines of the journal that cannot be read."""

    def ask(self, cache: Path | None) -> KejuError | None:
        """Ask the model all questions that neither the journal nor the cache answers."""
        task, manifest, journal = self.task, self.manifest, self.journal
        recalled = _recall_replies(
            manifest, self.requests, journal.path, lambda notice: self.display.note(notice.message)
        )
        self.damaged = recalled.damaged
        if cache is not None:
            copy_cached(self.requests, recalled, cache, journal, ask_again=manifest.ask_again)
        is_incomplete = recalled.count < sum(job.units for job in task.jobs)
        if task.asked_stage is not None and is_incomplete:
            task.asked_stage.preflight()
        return run_session(
            task.config,
            task.jobs,
            task.model,
            journal,
            manifest,
            recalled,
            self.display,
            rule=self.rule,
        )

    def grade(self, stop: KejuError | None) -> KejuError | None:
        """Let the judge grade the replies. Return the first error that stopped a stage."""
        stage, is_complete = self.task.stage, stop is None
        if stage is None:
            return stop
        log = self.manifest if is_complete and self.task.asked_stage is not None else None
        grade = partial(stage.grade, self.folder, log, runs_programs=is_complete)
        judge_stop = run_stage(partial(grade, display=self.display))
        return stop or judge_stop

    def summarise(self, stop: KejuError | None) -> Results:
        """Return the results of all replies, with the notices about them."""
        task = self.task
        if task.earlier_judge is not None:
            self.notices.append(Notice("judge_not_asked", {"judge": task.earlier_judge.model}))
        damage = damage_notices(self.damaged, count_missing(task.jobs))
        return build_results(task.jobs, self.manifest, stop, task.stage, [*damage, *self.notices])

    def save(self, results: Results, stop: KejuError | None, *, report: bool) -> None:
        """Write the grades, the manifest, the results and the report."""
        task = self.task
        self.journal.check()
        stopped = {job.title: job.stopping for job in task.jobs if job.stopping}
        self.manifest.manifest.stopped = stopped or msgspec.UNSET
        write_grades(self.folder, task.stage.grades if task.stage is not None else ())
        self.manifest.finish(complete=stop is None)
        write_outputs(self.run, results, self.requests, task.config.language, report=report)


def run_stage(work: Callable[[], KejuError | None]) -> KejuError | None:
    """Run a stage. Return the error that stopped it, if the run can be resumed after that.

    That is the result of the stage, a file that cannot be written, or Ctrl-C.
    """
    try:
        return work()
    except RunIncomplete as error:
        return error
    except WriteError as error:
        return error.incomplete()
    except KeyboardInterrupt:
        return Interrupted("interrupted")


def select_failed(config: TaskConfig) -> TaskConfig:
    """Return `config` with the ids of the questions that `failed_of` did not answer correctly.

    The ids are stored with the new run, so that it can be resumed when the other run is gone.
    """
    if config.failed_of is None or config.ids is not None:
        return config
    from keju.results.samples import Samples

    run = open_run(config.failed_of, config.work_dir)
    requested_exams = {registry.get(name).name for name in config.datasets}
    stored_exams = [exam.name for exam in run.manifest.benchmarks]
    if requested_exams.isdisjoint(stored_exams):
        values = {"requested": sorted(requested_exams), "stored": stored_exams}
        raise ConfigError("failed_of_other_exam", run=run.id, **values)
    failed = Samples(run, load=False).failures
    ids = [row.id for row in failed if row.benchmark in requested_exams]
    if not ids:
        raise ConfigError("nothing_failed", run=run.id)
    return config.model_copy(update={"ids": list(dict.fromkeys(ids))})


class DryRun(NamedTuple):
    """A preview of a task, made without calling a model or writing a file."""

    jobs: list[Job]
    reused: int
    """Replies that its run already has."""
    notices: list[Notice]
    at_once: int
    """The most requests in flight, as the model allows it."""
    pace: SessionThroughput | None
    """The throughput of an earlier run of the same exams."""


def make_dry_run(config: TaskConfig) -> DryRun:
    """Prepare a task as `run_exams` does, and raise the same errors."""
    config = select_failed(config)
    if (name := _find_unfinished(config)) is not None:
        config = config.model_copy(update={"run_id": name})
    refuse_unknown_run(config)
    task = _prepare(config)
    config, stored, jobs, model = task.config, task.stored, task.jobs, task.model
    _equip(config, jobs, Path(config.work_dir))
    for job in jobs:
        job.solver.check(model)
    notices = list(task.notices)
    if config.stops_early:
        notices.append(Notice("dry_run_until"))
    if any(arm.acts for arm in config.arms):
        notices.append(Notice("dry_run_episodes", {"most": config.agent.max_iterations + 1}))
    folder = Path(config.work_dir, stored.run if stored is not None else "")
    file = ManifestFile(folder, config, describe_exams(jobs))
    _make_stopping_rule(config, jobs, file.manifest, task.asked_stage)
    in_flight = config.at_once if config.endpoints else ChannelLimits.of(config, model).concurrency
    pace = find_earlier_pace(config, describe_exams(jobs), in_flight)
    reused = 0
    if stored is not None:
        reused = _recall_replies(file, ExamRequests(jobs), folder / FILE, notices.append).count
    return DryRun(jobs, reused, notices, in_flight, pace)


def _make_task_model(config: TaskConfig, display: Display | None = None) -> Model:
    """Return the model, not yet started. Its server starts with it, where Keju should start one."""
    if config.serve is None or is_local(config.model):
        return make_model(config)
    from keju.solvers.serving import served_model

    return served_model(config, display or Display())


def _check_executor(config: TaskConfig, jobs: Sequence[Job]) -> None:
    """Raise an error if a cluster should work on the task and cannot."""
    if config.executor != "local":
        from keju.engine.cluster.executor import check_executor

        check_executor(config, jobs)


def _equip(config: TaskConfig, jobs: Sequence[Job], folder: Path) -> list[Notice]:
    """Give the jobs that act their tools. Return notices about them."""
    if not any(job.acts for job in jobs):
        for job in jobs:
            if job.exam.asserted:
                raise ConfigError("expect_without_tools", exam=job.exam.benchmark)
        return []
    from keju.solvers.tool_setup import attach_tools

    return attach_tools(config, jobs, folder)


ACTING = ("max_iterations", "max_result_chars", "protocol", "hide_old_env_states", "arm_order")
"""Settings of `agent` for a model that acts. The others apply without tools too."""


def _refuse_idle_settings(
    config: TaskConfig, jobs: Sequence[Job], *, is_resumed: bool
) -> list[Notice]:
    """Raise ConfigError for settings of `agent` that need tools where there are none.

    Version 1.0 accepted them, so a resumed run gets a notice instead.
    """
    if config.arms or any(job.acts for job in jobs):
        return []
    defaults = AgentLimits()
    names = [name for name in ACTING if getattr(config.agent, name) != getattr(defaults, name)]
    if not names:
        return []
    values = {"names": [f"agent.{name}" for name in names]}
    if is_resumed:
        return [Notice("agent_idle", values)]
    raise ConfigError("agent_without_tools", **values)


def _version_notices(file: ManifestFile) -> list[Notice]:
    """Return the notice that a resumed run is read with other versions than those it was made
    with."""
    if file.before is None:
        return []
    from keju.runs.resume_compat import version_notices

    return version_notices(file.before, file.manifest.benchmarks)


def _make_stopping_rule(
    config: TaskConfig, jobs: Sequence[Job], manifest: Manifest, stage: GradingStage | None
) -> StoppingRule | ArmsRule | None:
    """Return the stopping rule of the task, or None.

    Arms that a judge grades are asked everything, because the judge grades at the end.
    """
    share = SHARE.get()
    if share is not None and share.make_rule is not None:
        rule: StoppingRule | None = share.make_rule(jobs, manifest, stage)
        return rule
    if not config.stops_early or (config.sweep is not None and stage is not None):
        return None
    if config.sweep is not None and config.until_ci is None and config.until_decided is None:
        from keju.results.sweep_rule import SweepRule

        return SweepRule(config.sweep, config.seed)
    from keju.results.stopping_rule import make_rule

    return make_rule(config, jobs, manifest, stage)


def _recall_replies(
    file: ManifestFile, requests: ExamRequests, path: Path, say: Callable[[Notice], None]
) -> ReusedUnits:
    """Return the replies that the run already has. Raise UsageError if it is another run.

    If the run grows, a notice with the counts comes before the first question. `path` is its
    journal.
    """
    before, run = file.before, file.manifest.run
    found_differences: list[ResumeDifference] = []
    if before is not None and path.is_file() and path.stat().st_size:
        from keju.runs.resume_compat import find_differences, refuse_other_run

        found_differences = find_differences(before, file.manifest)
        refuse_other_run(run, found_differences, 0)
    recalled = recall(
        requests,
        path,
        trusted_from=file.trusted_from,
        ask_again=file.ask_again,
        find_unused=True,
    )
    if found_differences:
        refuse_other_run(run, found_differences, recalled.unused)
    total = sum(job.units for job in requests.jobs)
    counts = {"known": recalled.count, "whole": total, "asked": total - recalled.count}
    notices = _version_notices(file)
    if found_differences:
        listed = join_hints(
            "joined_by_semicolon", [difference.hint for difference in found_differences]
        )
        notices.append(Notice("run_grows", {"differences": listed, **counts}))
    elif recalled.unused:
        notices.append(Notice("replies_unused", {"replies": recalled.unused}))
    for notice in notices:
        say(notice)
    return recalled


def _resume_config(config: TaskConfig) -> tuple[TaskConfig, Manifest | None]:
    """Return `config` and the manifest of the run to resume. Raise UsageError if that was imported.

    A resumed run keeps its protocols if the command names none, since a later version may have
    another default.
    """
    folder = Path(config.work_dir, config.run_id or "")
    if config.run_id is None or config.replace or not (folder / MANIFEST).is_file():
        return config, None
    from keju.runs.resume_compat import refuse_imported

    stored = Manifest.read(folder)
    refuse_imported(config.run_id, stored)
    if not config.resume or config.protocol is not None:
        return config, stored
    protocols = {exam.name: exam.protocol.name for exam in stored.benchmarks}
    args = dict(config.dataset_args)
    for name in config.datasets:
        protocol = protocols.get(registry.get(name).name)
        if protocol and not args.get(name, {}).get("protocol"):
            args[name] = {**args.get(name, {}), "protocol": protocol}
    return config.model_copy(update={"dataset_args": args}), stored


def _find_earlier_judge(stored: Manifest | None, config: TaskConfig) -> JudgeConfig | None:
    """Return the judge that graded a stored run, if the command names none."""
    settings = stored.judge if stored is not None and config.judge is None else None
    return JudgeConfig(**settings) if settings else None


def resume_command(config: TaskConfig, folder: Path, stop: KejuError | None) -> str:
    """Return the command that continues a run, or "" if that would change nothing."""
    if isinstance(stop, TooManyErrors) or not (folder / MANIFEST).is_file():
        return ""
    key = key_flag(config.model, has_key=config.api_key is not None)
    executor_flags = ""
    if config.executor == "ray":
        settings = config.ray.model_dump(exclude_defaults=True)
        ray_flag = f" --ray {shlex.quote(json.dumps(settings))}" if settings else ""
        executor_flags = f" --executor ray{ray_flag}"
    manifest = shlex.quote(typed_path(folder / MANIFEST))
    return f"keju eval --config {manifest} --resume{executor_flags}{key}"


class TooManyErrors(RunIncomplete):
    """Too many samples ended in an error that asking again cannot fix."""


def count_missing(jobs: Sequence[ExamScores]) -> int:
    """Return the number of questions without a record."""
    return sum(job.missing for job in jobs)


def find_shortfall(jobs: Sequence[ExamScores], limit: float) -> KejuError | None:
    """Return the error for missing or failed replies at the end of a session, or None."""
    total = sum(job.tallies[0].done + job.missing for job in jobs)
    if unanswered := count_missing(jobs):
        return RunIncomplete("samples_unanswered", part=unanswered, whole=total)
    faults = [fault for job in jobs for fault in job.errors.values()]
    if len(faults) <= limit * total:
        return None
    kinds, examples = Counter(fault.kind for fault in faults), examples_of(faults)
    hints = [
        TranslatableText("failed_kind", n=count, kind=kind, problem=examples[kind])
        for kind, count in kinds.most_common()
    ]
    reasons = join_hints("joined_by_semicolon", hints)
    values = {"part": len(faults), "whole": total, "limit": limit, "reasons": reasons}
    if all(fault.kind in KEPT_FAULTS for fault in faults):
        return TooManyErrors("samples_failed_for_good", **values)
    return RunIncomplete("samples_failed", **values)
