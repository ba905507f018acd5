"""``keju eval``: evaluates a model on one or more benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, get_args

from keju.cli.command import command
from keju.cli.common import CommandOutput, note, print_lines, print_sentences, session_output
from keju.cli.matrix import evaluate_matrix
from keju.cli.options import EXAMS, MODEL, PACE, RUN, TOOLS
from keju.cli.shortcuts import apply_shortcuts
from keju.errors import UsageError, near_hint, quoted
from keju.messages import current_language, label_text

if TYPE_CHECKING:
    from keju.config import TaskConfig
    from keju.results.schema import ResultEntry
    from keju.scores.exam_scores import ExamScores
    from keju.task import FinishedTask

ROBUST = "robust"
"""The reader that results show in addition to a protocol's own."""
BYTES_PER_TOKEN = 4
"""A rough average for English and, with three bytes a character, for Chinese."""


@command(
    "eval",
    "keju eval --model NAME --api-url http://localhost:8000/v1 --datasets bbh mmlu_pro --limit 10",
    "keju eval --model NAME --api-url http://localhost:8000/v1 --datasets quiz.csv",
    "keju eval -m NAME --datasets bbh --subset navigate,snarks --temperature 0.6 --name tuesday",
    "keju eval -c config.yaml -s generation_config.temperature=0.6 --dry-run",
    sets={
        MODEL: "model api_url endpoints serve api_key api headers ca_file model_args "
        "generation_config temperature max_tokens top_p",
        EXAMS: "datasets dataset_args protocol reader limit total ids failed_of sample shard "
        "repeats rotate_options order seed until_ci until_decided data_dir capsules include_path "
        "dataset_hub offline judge",
        TOOLS: "arms sweep agent sandbox jobs unsafe_no_sandbox",
        PACE: "eval_batch_size timeout attempts retry_interval rpm tpm give_up_after error_limit "
        "budget price executor ray ray_address",
        RUN: "work_dir run_id resume replace use_cache language events metrics_port otel",
    },
    common="model api_url api_key datasets subset limit temperature max_tokens eval_batch_size "
    "run_name dry_run as_json",
)
def evaluate(
    config: str | None,
    overrides: list[str] | None,
    dry_run: bool,
    no_report: bool,
    quiet: bool,
    verbose: bool,
    tools: list[str] | None,
    subset: list[str] | None,
    few_shot: int | None,
    run_name: str | None,
    **settings: Any,
) -> CommandOutput:
    """Evaluate a model on one or more benchmarks.

    A file with 'models' in place of 'model' is a plan: Keju evaluates every model on every exam.
    Each pair is a separate run, and one report shows all runs. If you repeat the command, it asks
    only new questions.

    Settings come from flags, then -s, then KEJU_<FIELD> variables, then the file; mappings merge
    key by key. A run that stops early is saved, and the command that resumes it is printed.

    Exit codes: 0 ok, 2 usage, 3 more than half without a grade, 4 incomplete, 5 endpoint,
    130 interrupted.
    """
    from keju.config.load import load
    from keju.config.matrix import is_matrix_file
    from keju.models.registry import settings_without_effect

    if tools:
        if "arms" in settings:
            raise UsageError("cli_tools_and_arms")
        settings["arms"] = _arms_with_and_without(tools)
    is_matrix = config is not None and is_matrix_file(config)
    if is_matrix and (subset or few_shot is not None):
        raise UsageError("cli_plan_sets", flag="--subset" if subset else "--few-shot")
    settings = apply_shortcuts(
        settings,
        subset=subset,
        few_shot=few_shot,
        run_name=run_name,
        config=config,
        overrides=overrides,
    )
    if config is not None and is_matrix:
        options = {"dry_run": dry_run, "report": not no_report, "quiet": quiet}
        return evaluate_matrix(config, overrides or [], settings, **options)
    try:
        task = load(config, overrides or (), settings, idle=settings_without_effect, say=note)
    except UsageError:
        if not (config or overrides or settings):
            from keju.cli.help import eval_hint

            note(eval_hint())
        raise
    if dry_run:
        forecast = forecast_run(task)
        return CommandOutput(forecast, lambda: print_forecast(forecast))
    from keju.reporting.live import make_display
    from keju.task import run_exams

    finished = run_exams(task, display=make_display(quiet=quiet), report=not no_report)
    return session_output(finished, lambda: print_next_steps(finished), verbose=verbose)


def _arms_with_and_without(tools: list[str]) -> list[dict[str, Any]]:
    """Return a baseline and an arm with built-in tools; UsageError if one does not exist."""
    from keju.config.arms import OwnTool

    choices = get_args(OwnTool)
    for name in set(tools) - set(choices):
        values = {"place": "--tools", "value": name, "command": "eval"}
        hint = near_hint(name, choices)
        raise UsageError("cli_not_a_choice", choices=quoted(choices), hint=hint, **values)
    return [{"name": "baseline"}, {"name": "+".join(tools), "tools": tools}]


def print_next_steps(finished: FinishedTask) -> None:
    """Print where the run is, and useful commands for this run."""
    from keju.files import typed_path
    from keju.reporting.table import TerminalScreen
    from keju.results.modes import counterpart
    from keju.runs.run import REPORT, Run, command_name

    folder, report, screen = finished.folder, finished.folder / REPORT, TerminalScreen()
    screen.line(label_text("next.folder", folder=typed_path(folder)))
    if not finished.exit_code:
        if report.is_file():
            screen.line(label_text("next.report", report=typed_path(report)))
        screen.line(label_text("next"))
        screen.commands(_next_steps(finished))
        if pair := counterpart(Run(folder)):
            run_names = " ".join(command_name(run.folder) for run in (pair.direct, pair.reasoned))
            screen.line(label_text("next.modes", exam=pair.exam))
            screen.commands([(f"keju modes {run_names}", "")])
    screen.flush()


def _next_steps(finished: FinishedTask) -> list[tuple[str, str]]:
    """Return commands that show more about this run, each with its purpose."""
    from keju.runs.run import REPORT, Run, command_name, find_comparable_run

    folder, entries = finished.folder, finished.results.benchmarks
    run = command_name(folder)
    steps = [(f"keju view {run}", label_text("next.view")), *_audit_step(run, entries)]
    if len({entry.arm for entry in entries}) > 1:
        steps.append((f"keju compare {run}", label_text("next.arms")))
    if (previous_run := find_comparable_run(Run(folder))) is not None:
        compare_command = f"keju compare {command_name(previous_run.folder)} {run}"
        steps.append((compare_command, label_text("next.compare")))
    steps += _reader_step(run, entries)
    if not (folder / REPORT).is_file():
        steps.append((f"keju report {run} -o report.html", label_text("next.page")))
    steps.append((f"keju export {run} -o answers.csv", label_text("next.export")))
    if any(entry.arm for entry in entries):
        sample_id = next((record.id for _, record in Run(folder).answers()), "ID")
        steps.append((f"keju show {run} --sample {sample_id}", label_text("next.show")))
    return steps


def _audit_step(run: str, entries: Sequence[ResultEntry]) -> Iterator[tuple[str, str]]:
    """Yield the command that explains unread replies, if there are any."""
    codes = {notice.code for entry in entries for notice in entry.notices}
    if any(entry.outcomes["unparsed"] for entry in entries) or "readers_apart" in codes:
        yield f"keju audit {run}", label_text("next.audit")


def _reader_step(run: str, entries: Sequence[ResultEntry]) -> Iterator[tuple[str, str]]:
    """Yield the command that compares readers, if the exams have a second one."""
    if all(f"accuracy_{ROBUST}" in entry.metrics for entry in entries):
        protocol_readers = dict.fromkeys(entry.reader for entry in entries)
        readers = ",".join([*protocol_readers, ROBUST]) if len(protocol_readers) == 1 else ROBUST
        yield f"keju score {run} --reader {readers}", label_text("next.score")


def forecast_run(config: TaskConfig) -> dict[str, Any]:
    """Load the data, check all settings, render the first prompts and forecast the work."""
    from keju.task import make_dry_run

    jobs, reusable_count, notices, at_once, pace = make_dry_run(config)
    exams = [_forecast_exam(job) for job in jobs]
    tokens = sum(exam["prompt_tokens_estimate"] for exam in exams)
    requests = sum(exam["requests"] for exam in exams)
    document: dict[str, Any] = {
        "dry_run": True,
        **_describe_model(config),
        "eval_batch_size": config.eval_batch_size,
        "at_once": at_once,
        "requests": requests,
        "known": reusable_count,
        "prompt_tokens_estimate": tokens,
        "benchmarks": exams,
        "notices": [{"code": notice.code, "values": notice.values} for notice in notices],
        "warnings": [notice.text() for notice in notices],
    }
    if config.price is not None:
        document["input_cost_estimate"] = round(tokens * config.price.input / 1e6, 4)
    if pace is not None and requests > reusable_count:
        document["seconds_estimate"] = round(pace.forecast(requests - reusable_count), 1)
        document["pace"] = pace._asdict()
    return document


def _describe_model(config: TaskConfig) -> dict[str, Any]:
    """Return the model and its endpoints without keys."""
    from keju.config.address import strip_credentials
    from keju.config.serving import redact_command

    document: dict[str, Any] = {"model": config.model}
    document["api_url"] = config.api_url and strip_credentials(config.api_url)
    if config.endpoints:
        document["endpoints"] = [endpoint.display_url for endpoint in config.endpoints]
    if config.serve:
        document["serve"] = redact_command(config.serve)
    return document


def _forecast_exam(job: ExamScores) -> dict[str, Any]:
    """Return the size of an exam, and its first prompt."""
    import msgspec

    exam = job.exam
    prompts = (exam.render(sample) for sample in exam.samples)
    size = sum(len(message.content.encode()) for prompt in prompts for message in prompt.messages)
    return {
        "name": exam.benchmark,
        **({"arm": job.arm} if job.arm else {}),
        "protocol": exam.protocol.name,
        "readers": [reader.name for reader in job.readers],
        "n": len(exam.samples),
        "subsets": len(exam.subsets),
        "requests": job.units,
        "prompt_tokens_estimate": size * job.units // len(exam.samples) // BYTES_PER_TOKEN,
        "sampling": msgspec.to_builtins(job.sampling),
        "first_prompt": [msgspec.to_builtins(m) for m in exam.render(exam.samples[0]).messages],
    }


def print_forecast(document: dict[str, Any]) -> None:
    from keju.reporting.format import compact
    from keju.reporting.table import render_table

    _print_first_prompts(document)
    columns = ("benchmark", "protocol", "readers", "questions", "requests", "input")
    render_table(
        [label_text(f"column.{name}") for name in columns],
        [
            (
                "/".join(filter(None, (exam["name"], exam.get("arm")))),
                exam["protocol"],
                label_text("list_separator").join(exam["readers"]),
                *(exam["n"], exam["requests"]),
                label_text("about", n=compact(exam["prompt_tokens_estimate"])),
            )
            for exam in document["benchmarks"]
        ],
    )
    print_sentences("", *_forecast_sentences(document))


def _print_first_prompts(document: dict[str, Any]) -> None:
    from keju.reporting.format import printable

    # all arms have the same prompts
    exams_by_name = {exam["name"]: exam for exam in document["benchmarks"]}
    for exam in exams_by_name.values():
        print_lines(label_text("dry_run.first", exam=exam["name"], protocol=exam["protocol"]))
        for message in exam["first_prompt"]:
            print_lines(f"--- {message['role']} ---", printable(message["content"]))
        print_lines("---", "")


def _forecast_sentences(document: dict[str, Any]) -> Iterator[str]:
    from keju.errors import Notice
    from keju.reporting.format import Labels, count

    reusable_count, request_count = document["known"], document["requests"]
    new_count = request_count - reusable_count
    values = {"model": document["model"], "at_once": max(1, min(document["at_once"], new_count))}
    for notice in document["notices"]:
        yield Notice(notice["code"], notice["values"]).message
    if reusable_count:
        yield label_text("dry_run.known", known=count(reusable_count), whole=count(request_count))
    yield label_text("dry_run.ready", asked=count(new_count), **values)
    if "input_cost_estimate" in document:
        yield label_text("dry_run.cost", cost=document["input_cost_estimate"])
    if pace := document.get("pace"):
        format_duration = Labels(current_language()).duration
        pace_values = {"replies": count(pace["replies"]), "taken": format_duration(pace["seconds"])}
        remaining_time = format_duration(document["seconds_estimate"])
        yield label_text("dry_run.pace", run=pace["run"], left=remaining_time, **pace_values)
    elif new_count > 0:
        yield label_text("dry_run.no_pace", model=document["model"])
