"""Grading a stored run with a judge, the first time or again; the candidate is not asked."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from keju.config import Budget, GenerationConfig, JudgeConfig, Price, TaskConfig
from keju.config.load import canonical
from keju.config.strict import StrictSettings
from keju.engine.resume import stored_replies
from keju.errors import ConfigError, KejuError
from keju.files import read_json
from keju.judges.stage import Judging
from keju.results.outputs import build_results, write_outputs
from keju.runs.folder import RESULTS
from keju.runs.journal import Journal
from keju.runs.judged import GRADES, write_grades
from keju.runs.manifest import Manifest, ManifestFile
from keju.task import Finished, make_jobs

if TYPE_CHECKING:
    from keju.engine.display import Display


_OF_ONE_JUDGE = (
    "strategy", "continuous", "repeats", "second", "labelled", "budget", "price",
    "generation_config",
)  # fmt: skip
"""Settings of a judge that mean nothing to another one."""
_MAPPINGS: dict[str, type[StrictSettings]] = {
    "budget": Budget,
    "price": Price,
    "generation_config": GenerationConfig,
}


def judge_run(
    config: TaskConfig, folder: Path, *, display: Display | None = None, report: bool = True
) -> Finished:
    """Grade the answers of the run in `folder` as ``config.judge`` says; write its results anew.

    A judge whose endpoint is not ready raises EndpointError and changes nothing. Where the run
    had complete grades they stay in force until the new ones are complete; a grading that stops
    early then leaves its verdicts and nothing else.
    """
    jobs = make_jobs(config)
    judging = Judging.of(config, jobs)
    if judging is None and config.judge is None:
        raise ConfigError("no judge is named: give --model NAME, or --judge with its settings")
    if judging is not None:
        judging.check()
    with Journal(folder):
        file = ManifestFile(folder, config, [job.facts() for job in jobs])
        described = msgspec.structs.replace(file.manifest)
        earlier = _complete_results(folder, file.before)
        if earlier is not None and file.before is not None:
            _describe_results(file.manifest, file.before)
        for job, unit, record in stored_replies(jobs, folder):
            readings = job.grade(unit // job.epochs, record.reply, record.order)
            job.enter_readings(unit, record.reply, record.faults, readings, record.order)
        judgement = None
        if judging is not None:
            judgement = judging.grade(folder, file, display=display, strict=True)
        stop = judgement.stop if judgement is not None else None
        if stop is not None and earlier is not None:
            return _left_as_it_was(folder, earlier, stop, described.config.get("judge"))
        _describe_results(file.manifest, described)
        write_grades(folder, judgement.grades if judgement is not None else ())
        results = build_results(jobs, file, stop, judgement)
        finished = all(job.tallies[0].done == job.units for job in jobs)
        results["complete"] = stop is None and finished
        file.finish(complete=results["complete"])
        language = config.language
        write_outputs(folder, results, jobs, file.manifest, language, report=report)
    code, message = (stop.exit_code, str(stop)) if stop is not None else (0, "")
    return Finished(results, folder, code, message, f"keju judge {folder}", stop)


def complete_settings(stored: TaskConfig, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings to lay over those of a `stored` run, where `given` ones are to count.

    Without a judge of the run's own they begin with the one that its exams name. Where it is and
    the limits of asking it pass from one judge to another; whatever else was set up for one does
    not, and a key does not pass to another address. ConfigError if a judge is named and not to be
    asked.
    """
    given = canonical({"judge": given})["judge"]
    if "model" in given and given.get("strategy") == "rule":
        raise ConfigError("strategy 'rule' asks no judge: leave out the strategy or the model")
    if stored.judge is None:
        judges = [job.exam.judge for job in make_jobs(stored)] if "model" not in given else [None]
        if judges[0] is None or any(judge != judges[0] for judge in judges):
            return dict(given)
        return judges[0].model_dump(mode="json", exclude_defaults=True) | dict(given)
    if given.get("api_url", stored.judge.api_url) != stored.judge.api_url:
        given = {"api_key_var": _unset("api_key_var")} | dict(given)
    if given.get("model", stored.judge.model) == stored.judge.model:
        asks_again = "model" in given and stored.judge.strategy == "rule"
        return ({"strategy": _unset("strategy")} if asks_again else {}) | dict(given)
    fresh = {name: _unset(name) for name in _OF_ONE_JUDGE}
    parts = {
        name: _checked(settings, name, given[name])
        for name, settings in _MAPPINGS.items()
        if isinstance(given.get(name), Mapping)
    }
    return fresh | dict(given) | parts


def _unset(name: str) -> Any:
    return JudgeConfig.model_fields[name].default


def _checked(settings: type[StrictSettings], name: str, given: Mapping[str, Any]) -> Any:
    """The `given` part as an object: it replaces a stored one, where a mapping would merge."""
    try:
        return settings(**given)
    except ConfigError as error:
        raise ConfigError(f"judge.{name}: {error}") from None


def _describe_results(manifest: Manifest, other: Manifest) -> None:
    """Let `manifest` say of the results beside it what `other` says."""
    manifest.complete, manifest.config = other.complete, other.config
    manifest.benchmarks = other.benchmarks


def _complete_results(folder: Path, before: Manifest | None) -> dict[str, Any] | None:
    """The results of a run that was graded completely, by rules or by a judge; else None."""
    if before is None or not before.complete or not (folder / RESULTS).is_file():
        return None
    results = read_json(folder / RESULTS)
    ungraded = any(entry["outcomes"]["ungraded"] for entry in results["benchmarks"])
    return results if (folder / GRADES).is_file() or not ungraded else None


def _left_as_it_was(
    folder: Path, results: dict[str, Any], stop: KejuError, judge: dict[str, Any] | None
) -> Finished:
    message = f"{stop}; the earlier results stay as they are until this grading is complete"
    again = f"keju judge {shlex.quote(str(folder))}"
    if judge:
        again += f" --judge {shlex.quote(json.dumps(judge))}"
    return Finished(results, folder, stop.exit_code, message, again, type(stop)(message))
