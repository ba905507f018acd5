"""A task from beginning to end: prepare, ask, judge, results, report."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from keju.benchmarks import registry
from keju.config import JudgeConfig, TaskConfig
from keju.config.address import key_flag
from keju.config.arms import Agent
from keju.config.load import load, merge
from keju.engine.channel import Limits
from keju.engine.display import Display
from keju.engine.job import Job, exams_of, hints_of, make_jobs
from keju.engine.resume import (
    KEPT_FAULTS,
    JobRequests,
    Recalled,
    copy_cached,
    read_anew,
    recall,
    stored_replies,
)
from keju.engine.session import run_session
from keju.engine.watching import WATCHER, Headline
from keju.errors import (
    ConfigError,
    Hint,
    Interrupted,
    KejuError,
    Notice,
    RunIncomplete,
    WriteError,
    joined,
)
from keju.files import read_json, typed_path
from keju.interop.watchers import watch_runs
from keju.judges import make_judge_stage
from keju.messages import said
from keju.models.registry import idle_settings, is_local, make_model
from keju.report.html import write_outputs
from keju.results.schema import Results, from_document, to_document
from keju.results.summarise import build_results, examples_of
from keju.runs.journal import FILE, Journal
from keju.runs.manifest import MANIFEST, Manifest, ManifestFile
from keju.runs.pace import Pace, earlier_pace
from keju.runs.run import (
    GRADES,
    RESULTS,
    Run,
    command_name,
    damage_notices,
    find_run,
    open_run,
    refuse_unknown_run,
    run_folder,
    write_grades,
)

if TYPE_CHECKING:
    from keju.engine.queue import Rule
    from keju.judges.stage import JudgeStage
    from keju.models.base import Model
    from keju.runs.sameness import Difference


class Finished(NamedTuple):
    """How a task ended."""

    results: Results
    folder: Path
    resume_command: str
    """Empty where resuming would change nothing."""
    error: KejuError | None = None
    """What ended it early."""

    @property
    def exit_code(self) -> int:
        """That of the command."""
        return self.error.exit_code if self.error else 0

    @property
    def message(self) -> str:
        """Why it ended early, in one line; empty if it did not."""
        return str(self.error) if self.error else ""

    @property
    def document(self) -> dict[str, Any]:
        """The results as the plain document that ``results.json`` holds."""
        return to_document(self.results)

    @property
    def problem(self) -> str:
        """Why it ended early, and how to go on."""
        if self.error is None:
            return ""
        resume = self.resume_command
        return self.error.said + (said("resume_with", command=resume) if resume else "")


def run_exams(
    config: TaskConfig, *, display: Display | None = None, report: bool = True
) -> Finished:
    """Run the exams of `config`; go on with the run of the same id as far as it is the same run.

    A judge is asked only where `config` names it. The verdicts of another one, whom ``keju judge``
    asked about this run, stay in force.
    """
    display = display or Display()
    with watch_runs(config, display):
        return _told(_run_exams(config, display, report=report))


def _told(finished: Finished) -> Finished:
    """`finished`, of which whoever follows the run is told."""
    if (watcher := WATCHER.get()) is not None:
        headlines = [
            Headline(
                entry.name, entry.arm, entry.reader, entry.headline, own.value, own.ci95, own.n
            )
            for entry in finished.results.benchmarks
            if (own := entry.metrics.get(entry.headline)) is not None
        ]
        complete = finished.error is None and finished.results.complete is not False
        watcher.finished(finished.folder.name, headlines, complete, finished.error)
    return finished


def _run_exams(config: TaskConfig, display: Display, *, report: bool) -> Finished:
    config, stored = _resumed(with_failed(config))
    jobs, earlier = make_jobs(config), _earlier_judge(stored, config)
    graded = config.model_copy(update={"judge": earlier})
    asks = earlier is None or any(job.exam.judge for job in jobs)
    if not asks:
        jobs = make_jobs(graded)
    model = _model(config, display)
    _check_executor(config, jobs)
    idle = _idle_settings(config, jobs, is_resumed=stored is not None)
    stage = make_judge_stage(config if asks else graded, jobs)
    if stage is not None and asks:
        stage.check()
    cache = find_run(config.use_cache, config.work_dir) if config.use_cache else None
    place = run_folder(config)
    folder = place.path

    def say(notice: Notice) -> None:
        display.note(notice.said)

    if model.server is not None:
        model.server.folder = folder
    if place.replaced is not None:
        say(Notice("run_replaced", {"aside": place.replaced}))
    try:
        for notice in (*hints_of(jobs), *idle, *_equip(config, jobs, folder)):
            say(notice)
        with Journal(folder) as journal:
            grader = None if asks else earlier
            manifest = ManifestFile(folder, config, exams_of(jobs), graded_by=grader)
            run, requests = Run(folder), JobRequests(jobs)
            manifest.manifest.stopped = msgspec.UNSET  # until a session ends
            rule = _rule(config, jobs, manifest.manifest, stage if asks else None)
            notices, damaged = _other_versions(manifest), 0

            def ask() -> KejuError | None:
                nonlocal damaged
                recalled = _recalled(manifest, requests, journal.path, say)
                damaged = recalled.damaged
                if cache is not None:
                    copy_cached(requests, recalled, cache, journal, ask_again=manifest.ask_again)
                if stage is not None and asks and recalled.count < sum(job.units for job in jobs):
                    stage.preflight()
                return run_session(
                    config, jobs, model, journal, manifest, recalled, display, rule=rule
                )

            def save() -> None:
                journal.check()
                stopped = {job.exam.benchmark: job.stopping for job in jobs if job.stopping}
                manifest.manifest.stopped = stopped or msgspec.UNSET
                write_grades(folder, stage.grades if stage is not None else ())
                manifest.finish(complete=stop is None)
                write_outputs(run, results, requests, config.language, report=report)

            stop = _stopped(ask)
            if stage is not None:
                asked = manifest if stop is None and asks else None
                judged = _stopped(partial(stage.grade, folder, asked, display=display))
                stop = stop or judged
            if earlier is not None and not asks:
                notices.append(Notice("judge_not_asked", {"judge": earlier.model}))
            notices[:0] = damage_notices(damaged, missing(jobs))
            stop = stop or shortfall(jobs, config.error_limit)
            results = build_results(jobs, manifest, stop, stage, notices)
            unsaved = _stopped(save)
            stop = stop or unsaved
    except KejuError as error:
        place.undo()
        raise (error.incomplete() if isinstance(error, WriteError) else error) from None
    return Finished(results, folder, resume_command(config, folder, stop), stop)


def _stopped(work: Callable[[], KejuError | None]) -> KejuError | None:
    """Do a part of a run; return what stopped it in such a way that the run can be resumed.

    That is what the work says itself, a file that cannot be written, or Ctrl-C.
    """
    try:
        return work()
    except RunIncomplete as error:
        return error
    except WriteError as error:
        return error.incomplete()
    except KeyboardInterrupt:
        return Interrupted("interrupted")


def with_failed(config: TaskConfig) -> TaskConfig:
    """`config` with the ids of the questions that `failed_of` did not get right.

    They are stored with the new run, so that it can be resumed when the other one is gone.
    """
    if config.failed_of is None or config.ids is not None:
        return config
    from keju.results.samples import Samples

    run = open_run(config.failed_of, config.work_dir)
    wanted = {registry.get(name).name for name in config.datasets}
    sat = [exam.name for exam in run.manifest.benchmarks]
    if wanted.isdisjoint(sat):
        names = {"asked": sorted(wanted), "sat": sat}
        raise ConfigError("failed_of_other_exam", run=run.id, **names)
    failed = Samples(run, load=False).failures
    ids = [row.id for row in failed if row.benchmark in wanted]
    if not ids:
        raise ConfigError("nothing_failed", run=run.id)
    return config.model_copy(update={"ids": list(dict.fromkeys(ids))})


class Rehearsal(NamedTuple):
    """What a task would do, found out without asking anybody or writing anything."""

    jobs: list[Job]
    known: int
    """Replies that its run has already."""
    notices: list[Notice]
    at_once: int
    """The most requests in flight, as the model allows it."""
    pace: Pace | None
    """How fast an earlier run went that asked the same."""


def rehearse(config: TaskConfig) -> Rehearsal:
    """Make everything ready as `run_exams` does; whatever that refuses is refused."""
    config = with_failed(config)
    refuse_unknown_run(config)
    config, stored = _resumed(config)
    jobs = make_jobs(config)
    model = _model(config)
    _check_executor(config, jobs)
    idle = _idle_settings(config, jobs, is_resumed=stored is not None)
    _equip(config, jobs, Path(config.work_dir))
    for job in jobs:
        job.solver.check(model)
    stage = make_judge_stage(config, jobs)
    if stage is not None:
        stage.check()
    said = [*hints_of(jobs), *idle]
    if config.stops_early:
        said.append(Notice("dry_run_until"))
    if any(arm.acts for arm in config.arms):
        said.append(Notice("dry_run_episodes", {"most": config.agent.max_iterations + 1}))
    folder = Path(config.work_dir, stored.run if stored is not None else "")
    file = ManifestFile(folder, config, exams_of(jobs))
    _rule(config, jobs, file.manifest, stage)
    at_once = config.at_once if config.endpoints else Limits.of(config, model).concurrency
    pace = earlier_pace(config, exams_of(jobs), at_once)
    known = 0
    if stored is not None:
        known = _recalled(file, JobRequests(jobs), folder / FILE, said.append).count
    return Rehearsal(jobs, known, said, at_once, pace)


def _model(config: TaskConfig, display: Display | None = None) -> Model:
    """The model, not yet started; with a server that Keju is to start, where the task says so."""
    if config.serve is None or is_local(config.model):
        return make_model(config)
    from keju.solvers.serving import served_model

    return served_model(config, display or Display())


def _check_executor(config: TaskConfig, jobs: Sequence[Job]) -> None:
    """Refuse what a cluster cannot do, where one is to work on the task."""
    if config.executor != "local":
        from keju.engine.cluster.crew import check_executor

        check_executor(config, jobs)


def _equip(config: TaskConfig, jobs: Sequence[Job], folder: Path) -> list[Notice]:
    """Give the jobs that act their tools; return what is to be told."""
    if not any(job.acts for job in jobs):
        return []
    from keju.solvers.workshop import equip

    return equip(config, jobs, folder)


ACTING = ("max_iterations", "max_result_chars", "protocol", "hide_old_env_states", "arm_order")
"""Settings of `agent` that say how a model acts; the others hold without tools too."""


def _idle_settings(config: TaskConfig, jobs: Sequence[Job], *, is_resumed: bool) -> list[Notice]:
    """Refuse settings of `agent` that need tools where there are none.

    Version 1.0 accepted them, so that a run that is resumed gets a notice instead.
    """
    if config.arms or any(job.acts for job in jobs):
        return []
    usual = Agent()
    names = [name for name in ACTING if getattr(config.agent, name) != getattr(usual, name)]
    if not names:
        return []
    values = {"names": [f"agent.{name}" for name in names]}
    if is_resumed:
        return [Notice("agent_idle", values)]
    raise ConfigError("agent_without_tools", **values)


def _other_versions(file: ManifestFile) -> list[Notice]:
    """The notice that a run which goes on is read with other versions than it was made with."""
    if file.before is None:
        return []
    from keju.runs.sameness import other_versions

    return other_versions(file.before, file.manifest.benchmarks)


def _rule(
    config: TaskConfig, jobs: Sequence[Job], manifest: Manifest, stage: JudgeStage | None
) -> Rule | None:
    """When enough was asked, where the task says so."""
    if not config.stops_early:
        return None
    from keju.results.until import make_rule

    return make_rule(config, jobs, manifest, stage)


def _recalled(
    file: ManifestFile, requests: JobRequests, path: Path, say: Callable[[Notice], None]
) -> Recalled:
    """What the run has answered already; UsageError if it is not the run that is asked for.

    Where the run grows, that is said and counted before anybody is asked. `path` is its journal.
    """
    before, run = file.before, file.manifest.run
    found: list[Difference] = []
    if before is not None and path.is_file() and path.stat().st_size:
        from keju.runs.sameness import differences, refuse_another

        found = differences(before, file.manifest)
        refuse_another(run, found, 0)
    recalled = recall(
        requests,
        path,
        believed_from=file.believed_from,
        ask_again=file.ask_again,
        find_unused=True,
    )
    if found:
        refuse_another(run, found, recalled.unused)
    whole = sum(job.units for job in requests.jobs)
    counts = {"known": recalled.count, "whole": whole, "asked": whole - recalled.count}
    notices = _other_versions(file)
    if found:
        listed = joined("joined_by_semicolon", [each.told for each in found])
        notices.append(Notice("run_grows", {"differences": listed, **counts}))
    elif recalled.unused:
        notices.append(Notice("replies_unused", {"replies": recalled.unused}))
    for notice in notices:
        say(notice)
    return recalled


def _resumed(config: TaskConfig) -> tuple[TaskConfig, Manifest | None]:
    """`config`, and the manifest of the run that it goes on with; UsageError if that was imported.

    A run that is resumed keeps its protocols where the command names none: a later version may
    have another default, and a run goes on as it began.
    """
    folder = Path(config.work_dir, config.run_id or "")
    if config.run_id is None or config.replace or not (folder / MANIFEST).is_file():
        return config, None
    from keju.runs.sameness import refuse_imported

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


def _earlier_judge(stored: Manifest | None, config: TaskConfig) -> JudgeConfig | None:
    """The judge that graded a stored run, where the command names none."""
    settings = stored.judge if stored is not None and config.judge is None else None
    return JudgeConfig(**settings) if settings else None


def resume_command(config: TaskConfig, folder: Path, stop: KejuError | None) -> str:
    """The command that goes on with a run; empty where that would change nothing."""
    if isinstance(stop, FinalErrors) or not (folder / MANIFEST).is_file():
        return ""
    key = key_flag(config.model, has_key=config.api_key is not None)
    who = ""
    if config.executor == "ray":
        settings = config.ray.model_dump(exclude_defaults=True)
        told = f" --ray {shlex.quote(json.dumps(settings))}" if settings else ""
        who = f" --executor ray{told}"
    return f"keju eval --config {shlex.quote(typed_path(folder / MANIFEST))} --resume{who}{key}"


class FinalErrors(RunIncomplete):
    """Too many samples ended in an error that asking again cannot mend."""


def missing(jobs: Sequence[Job]) -> int:
    """How many questions have no record."""
    return sum(job.missing for job in jobs)


def shortfall(jobs: Sequence[Job], limit: float) -> KejuError | None:
    """What is missing at the end of a session that nothing stopped."""
    total = sum(job.tallies[0].done + job.missing for job in jobs)
    if unanswered := missing(jobs):
        return RunIncomplete("samples_unanswered", part=unanswered, whole=total)
    faults = [fault for job in jobs for fault in job.errors.values()]
    if len(faults) <= limit * total:
        return None
    kinds, examples = Counter(fault.kind for fault in faults), examples_of(faults)
    told = [
        Hint("failed_kind", n=many, kind=kind, problem=examples[kind])
        for kind, many in kinds.most_common()
    ]
    reasons = joined("joined_by_semicolon", told)
    values = {"part": len(faults), "whole": total, "limit": limit, "reasons": reasons}
    if all(fault.kind in KEPT_FAULTS for fault in faults):
        return FinalErrors("samples_failed_for_good", **values)
    return RunIncomplete("samples_failed", **values)


def judge_run(
    config: TaskConfig, folder: Path, *, display: Display | None = None, report: bool = True
) -> Finished:
    """Grade the answers of the run in `folder` as ``config.judge`` says; write its results anew.

    A judge whose endpoint is not ready raises EndpointError and changes nothing. Where the run
    had complete grades they stay in force until the new ones are complete; a grading that stops
    early then leaves its verdicts and nothing else.
    """
    display = display or Display()
    with watch_runs(config, display):
        return _told(_judge_run(config, folder, display, report=report))


def _judge_run(config: TaskConfig, folder: Path, display: Display, *, report: bool) -> Finished:
    from keju.runs.sameness import differences, refuse_another

    jobs = make_jobs(config)
    stage = make_judge_stage(config, jobs)
    if stage is None and config.judge is None:
        raise ConfigError("judge_not_named")
    if stage is not None:
        stage.check()
    with Journal(folder):
        own = Manifest.read(folder).config.get("judge")
        task = config.model_copy(update={"judge": JudgeConfig(**own) if own else None})
        facts = exams_of(jobs)
        file = ManifestFile(folder, task, facts, graded_by=config.judge)
        assert file.before is not None
        refuse_another(folder.name, differences(file.before, file.manifest), 0)
        description = msgspec.structs.replace(file.manifest)
        earlier = _complete_results(folder, file.before)
        if earlier is not None and file.before is not None:
            _describe_results(file.manifest, file.before)
        run, requests = Run(folder), JobRequests(jobs)
        for reply, readings in read_anew(stored_replies(run, requests), jobs):
            reply.enter(readings)
        for job in jobs:
            job.stopping = (file.manifest.stopped or {}).get(job.exam.benchmark)
        notices = damage_notices(run.damaged, missing(jobs))
        for notice in notices:
            display.note(notice.said)
        stop = None
        if stage is not None:
            stop = _stopped(partial(stage.grade, folder, file, display=display, strict=True))
        if stop is not None and earlier is not None:
            return _left_as_it_was(folder, earlier, stop, description.judge)
        _describe_results(file.manifest, description)
        results = build_results(jobs, file, stop, stage, notices)
        complete = stop is None and not missing(jobs)
        results = msgspec.structs.replace(results, complete=complete)

        def save() -> None:
            write_grades(folder, stage.grades if stage is not None else ())
            file.finish(complete=complete)
            write_outputs(run, results, requests, config.language, report=report)

        unsaved = _stopped(save)
        stop = stop or unsaved
    return Finished(results, folder, f"keju judge {folder}", stop)


def judge_stored(
    run: Run,
    given: dict[str, Any] | None,
    flags: dict[str, Any],
    *,
    display: Display | None = None,
    report: bool = True,
) -> Finished:
    """Grade a stored run as its own judge did, with `given` and then `flags` laid over that."""
    from keju.judges.judge import complete_settings, fill_defaults

    file, settings = run.folder / MANIFEST, dict(flags)
    earlier = fill_defaults(run.manifest.graded_by or {})
    if earlier:
        settings["judge"] = earlier
    if given is not None:
        config = load(file, flags=settings, idle=idle_settings)
        settings["judge"] = merge(earlier, complete_settings(config, given))
    config = load(file, flags=settings, idle=idle_settings)
    return judge_run(config, run.folder, display=display, report=report)


def _describe_results(manifest: Manifest, other: Manifest) -> None:
    """Let `manifest` say of the results beside it what `other` says."""
    manifest.complete, manifest.config = other.complete, other.config
    manifest.benchmarks, manifest.graded_by = other.benchmarks, other.graded_by


def _complete_results(folder: Path, before: Manifest | None) -> Results | None:
    """The results of a run that was graded completely, by rules or by a judge; else None."""
    if before is None or not before.complete or not (folder / RESULTS).is_file():
        return None
    results = from_document(read_json(folder / RESULTS))
    ungraded = any(entry.outcomes["ungraded"] for entry in results.benchmarks)
    return results if (folder / GRADES).is_file() or not ungraded else None


def _left_as_it_was(
    folder: Path, results: Results, stop: KejuError, judge: dict[str, Any] | None
) -> Finished:
    again = f"keju judge {command_name(folder)}"
    if judge:
        again += f" --judge {shlex.quote(json.dumps(judge))}"
    return Finished(results, folder, again, type(stop)("earlier_results_stay", problem=stop))
