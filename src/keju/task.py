"""Sitting an exam from beginning to end: the flow that every command and Python call takes."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.benchmarks.prepare import choose_readers, prepare_exams, resolve_sampling
from keju.config import JudgeConfig, TaskConfig
from keju.engine.job import Job
from keju.engine.resume import KEPT_FAULTS, recall
from keju.engine.session import Sitting
from keju.errors import ConfigError, DataError, KejuError, RunIncomplete
from keju.models.factory import make_model, model_name
from keju.results.outputs import build_results, write_outputs
from keju.runs.folder import find_run, run_folder
from keju.runs.journal import Journal
from keju.runs.judged import write_grades
from keju.runs.manifest import MANIFEST, Manifest, ManifestFile

if TYPE_CHECKING:
    from keju.engine.display import Display
    from keju.judges.stage import Judging


class Finished(NamedTuple):
    """How a sitting ended."""

    results: dict[str, Any]
    folder: Path
    exit_code: int
    message: str
    """Why it ended early, in one line; empty if it did not."""
    resume_command: str
    """Empty where resuming would change nothing."""
    error: KejuError | None = None
    """What ended it early."""

    @property
    def told(self) -> str:
        """Why it ended early, and how to go on."""
        resume = f"; resume with: {self.resume_command}" if self.resume_command else ""
        return self.message + resume


def run_task(task_cfg: TaskConfig | dict[str, Any] | str | Path) -> dict[str, Any]:
    """Sit the exams of a task and return the results document.

    `task_cfg` is a TaskConfig, a mapping with its fields, or the path of a YAML or JSON file.
    Raises a KejuError that says in one line what is wrong. A run that stopped early raises
    RunIncomplete, EndpointError or Interrupted, and can be resumed under its run id.
    """
    from keju.config.load import load

    if isinstance(task_cfg, TaskConfig):
        given = task_cfg.model_dump(exclude_unset=True) | {"headers": task_cfg.headers}
        if task_cfg.api_key is not None:
            given["api_key"] = task_cfg.api_key.get_secret_value()
        config = load(flags=given)
    elif isinstance(task_cfg, dict):
        config = load(flags=task_cfg)
    else:
        config = load(file=Path(task_cfg))
    finished = sit(config)
    if finished.error is not None:
        raise type(finished.error)(finished.told)
    return finished.results


def make_jobs(config: TaskConfig) -> list[Job]:
    """The exams of a run as work for the engine; refuses whatever cannot be carried out."""
    jobs = []
    for exam, args in prepare_exams(config):
        sampling = resolve_sampling(exam.protocol, config)
        if not exam.samples:
            raise ConfigError(f"{exam.benchmark}: the selection holds no question")
        if sampling.decode == "labels":
            _refuse_sampling(config, exam.benchmark)
        if sampling.form == "completion" and exam.render(exam.samples[0]).prefix.messages:
            raise ConfigError(
                f"{exam.benchmark}: protocol '{exam.protocol.name}' is a conversation and cannot "
                "be sent to a completions endpoint; use --api chat"
            )
        readers = choose_readers(exam, args.reader or config.reader)
        job = Job(
            exam,
            sampling,
            readers,
            model=model_name(config),
            epochs=config.repeats,
            filters=args.filters,
            repeat_seed=config.seed,
        )
        jobs.append(job)
    return jobs


_SAMPLED = ("temperature", "top_p", "top_k", "min_p", "max_tokens", "stop", "seed")


def _refuse_sampling(config: TaskConfig, benchmark: str) -> None:
    """Where labels are compared nothing is sampled, so settings of sampling would do nothing."""
    for name in _SAMPLED:
        if getattr(config.generation_config, name) not in (None, 0):
            raise ConfigError(
                f"generation_config.{name} has no effect on {benchmark}, which compares the "
                "log-probabilities of labels: leave it out, or take a protocol that generates"
            )


def sit(config: TaskConfig, *, display: Display | None = None, report: bool = True) -> Finished:
    """Sit the exams of `config`; resume what a run of the same id has answered already.

    A run that was graded by a judge keeps it unless another one is named.
    """
    config = _with_stored_judge(config)
    jobs = make_jobs(config)
    model = make_model(config)
    judging = judging_of(config, jobs)
    if judging is not None:
        judging.check()
    cache = find_run(config.use_cache, config.work_dir) if config.use_cache else None
    place = run_folder(config)
    folder = place.path
    try:
        with Journal(folder) as journal:
            manifest = ManifestFile(folder, config, [job.facts() for job in jobs])
            recalled = recall(
                jobs,
                journal,
                trusted=manifest.trusted,
                cache=cache,
                ask_again=manifest.ask_again,
            )
            if display is not None and manifest.differences:
                told = "; ".join(manifest.differences)
                display.note(f"this run goes on with other settings ({told})")
            if judging is not None and recalled.count < sum(job.units for job in jobs):
                judging.preflight()
            stop = Sitting(config, jobs, model, journal, manifest, recalled, display).run()
            judgement = None
            if judging is not None:
                ask = manifest if stop is None else None
                judgement = judging.grade(folder, ask, display=display)
                stop = stop or judgement.stop
            stop = stop or _shortfall(jobs, config.error_limit)
            results = build_results(jobs, manifest, stop, judgement)
            try:
                write_grades(folder, judgement.grades if judgement is not None else ())
                manifest.finish(complete=stop is None)
                language = config.language
                write_outputs(folder, results, jobs, manifest.manifest, language, report=report)
            except DataError as error:
                stop = stop or RunIncomplete(str(error))
    except KejuError:
        place.remove_if_empty()
        raise
    message = str(stop) if stop is not None else ""
    code = stop.exit_code if stop is not None else 0
    return Finished(results, folder, code, message, _resume_command(config, folder, stop), stop)


def _with_stored_judge(config: TaskConfig) -> TaskConfig:
    """`config` with the judge that graded the run it names, where it names none itself."""
    if config.judge is not None or config.run_id is None:
        return config
    folder = Path(config.work_dir, config.run_id)
    stored = Manifest.read(folder).config.get("judge") if (folder / MANIFEST).is_file() else None
    return config.model_copy(update={"judge": JudgeConfig(**stored)}) if stored else config


def _resume_command(config: TaskConfig, folder: Path, stop: KejuError | None) -> str:
    if isinstance(stop, FinalErrors):
        return ""
    key = ""
    if config.api_key is not None and not os.environ.get("OPENAI_API_KEY"):
        key = " --api-key YOUR_KEY"
    return f"keju eval --config {shlex.quote(str(folder / MANIFEST))} --resume{key}"


class FinalErrors(RunIncomplete):
    """Too many samples ended in an error that asking again cannot mend."""


def judging_of(config: TaskConfig, jobs: Sequence[Job]) -> Judging | None:
    """The judges of a run; None, and nothing imported, where nobody is to be asked."""
    if config.judge is None and all(job.exam.judge is None for job in jobs):
        return None
    from keju.judges.stage import Judging

    return Judging.of(config, jobs)


def _shortfall(jobs: Sequence[Job], limit: float) -> KejuError | None:
    """What is missing at the end of a sitting that nothing stopped."""
    total = sum(job.units for job in jobs)
    unanswered = total - sum(job.tallies[0].done for job in jobs)
    if unanswered:
        return RunIncomplete(f"{unanswered} of {total} samples have no record")
    faults = [fault for job in jobs for fault in job.errors.values()]
    if len(faults) <= limit * total:
        return None
    (kind, count), *_ = Counter(fault.kind for fault in faults).most_common(1)
    example = next(fault.message for fault in faults if fault.kind == kind)
    told = (
        f"{len(faults)} of {total} samples ended in an error, more than the limit of {limit:.1%} "
        f"({count} {kind}: {example})"
    )
    if all(fault.kind in KEPT_FAULTS for fault in faults):
        return FinalErrors(f"{told}; asking again would not change that")
    return RunIncomplete(told)
