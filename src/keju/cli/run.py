"""``keju run``: mcpbr's command line, for any benchmark and any number of arms."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keju.cli.command import command, with_resume_command
from keju.cli.common import CommandOutput, note, print_lines, remark, session_output
from keju.cli.evaluate import print_next_steps
from keju.cli.options import EXAMS, MODEL, PACE, RUN
from keju.cli.shortcuts import with_run_name
from keju.errors import ConfigError, Notice, UsageError
from keju.messages import label_text

if TYPE_CHECKING:
    from keju.config import TaskConfig
    from keju.task import FinishedTask


@command(
    "run",
    "keju run -c config.yaml --benchmark bigbench-hard -n 20",
    "keju run -c config.yaml --filter-category boolean_expressions --filter-category navigate",
    "keju run -c config.yaml -t bbh_boolean_expressions_0 -v -o results.json",
    "keju run -c config.yaml -n 100 -M",
    sets={
        MODEL: "model api_url api_key",
        EXAMS: "data_dir offline seed",
        PACE: "eval_batch_size price",
        RUN: "work_dir run_id replace",
    },
)
def run(
    config: str | None,
    benchmark: str | None,
    size: int | None,
    filter_category: list[str] | None,
    task: list[str] | None,
    sampling_strategy: str | None,
    mcp_only: bool,
    baseline_only: bool,
    output: str | None,
    verbose: bool,
    quiet: bool,
    dry_run: bool,
    overrides: list[str] | None,
    run_name: str | None,
    **settings: Any,
) -> CommandOutput:
    """Evaluate a model with and without MCP servers, on the same questions in every arm.

    The file is mcpbr's (mcp_server, or mcp_server_a and mcp_server_b), or Keju's own with a list
    of arms. Keju starts every server and lists its tools before the first request to a
    model. To check only the servers, use 'keju mcp check'.

    Exit codes: 0 ok, 2 usage, 3 more than half without a grade, 4 incomplete, 5 endpoint,
    130 interrupted.
    """
    option_values = locals() | settings
    settings = with_run_name(settings, run_name)
    from keju.config.load import load
    from keju.config.mcpbr import find_model_name, read_run_file
    from keju.models.registry import settings_without_effect
    from keju.reporting.live import make_display
    from keju.task import run_exams

    if config is None:
        raise UsageError("run_no_file")
    if mcp_only and baseline_only:
        raise UsageError("run_both_only")
    target = _check_output(output, Path(config))
    idle: tuple[str, ...] = ()
    if settings.get("model"):
        settings["model"] = find_model_name(settings["model"])
        idle = ("model", *settings_without_effect(settings["model"]))
    translated = read_run_file(Path(config), os.environ, benchmark, idle)
    for notice in translated.notices:
        remark(notice.message, "own_warning")
    layer = _choose_questions(translated.layer, config, size, filter_category, task)
    if (mcp_only or baseline_only) and layer.get("sweep"):
        raise UsageError("sweep_all_arms")
    if mcp_only or baseline_only:
        layer = _choose_arms(layer, with_tools=mcp_only)
    if not layer.get("arms"):
        note(Notice("run_one_arm", {"file": config}).message)
    sources = (config, overrides or (), settings)
    loaded = load(*sources, idle=settings_without_effect, say=note, read_config=lambda _: layer)
    loaded = _apply_strategy(loaded, sampling_strategy or translated.strategy)
    forecast: dict[str, Any] | None = None
    if loaded.sweep is not None:
        from keju.cli.sweep import announce, forecast_sweep, make_tool_arms

        loaded, listed = make_tool_arms(loaded)
        forecast = forecast_sweep(loaded, listed)
        announce(forecast)
    if dry_run:
        return _preview(loaded, forecast)
    finished = run_exams(loaded, display=make_display(quiet=quiet))
    finished = with_resume_command("run", option_values, finished)
    document = _document(finished, loaded) if target is not None or verbose else {}
    if target is not None:
        _write(target, document)

    def show_details() -> None:
        if verbose:
            _print_tasks(document)

    def show_last() -> None:
        if target is not None:
            print_lines(label_text("run.results", file=target))
        if loaded.model == "scripted" and _has_unused_tools(finished):
            remark(label_text("run.scripted_tools"))

    return session_output(
        finished,
        lambda: print_next_steps(finished),
        verbose=verbose,
        show_details=show_details,
        show_last=show_last,
    )


def _preview(config: TaskConfig, sweep_forecast: dict[str, Any] | None) -> CommandOutput:
    """Return what ``--dry-run`` shows: the settings are checked, and nothing is asked."""
    from keju.cli.evaluate import forecast_run, print_forecast

    document = forecast_run(config)
    if sweep_forecast is not None:
        document["sweep"] = sweep_forecast
    return CommandOutput(document, lambda: print_forecast(document))


def _has_unused_tools(finished: FinishedTask) -> bool:
    """Whether an arm offered tools, but no episode called one."""
    stats = [entry.tools for entry in finished.results.benchmarks if entry.tools]
    return any(tool_stats.offered and not tool_stats.calls for tool_stats in stats)


def _check_output(output: str | None, config: Path) -> Path | None:
    """Return the file for results. A file that may not be written is refused before the run."""
    if output is None:
        return None
    path = Path(output)
    if path.is_dir():
        raise UsageError("file_is_folder", where=path)
    if path.exists() and config.exists() and path.samefile(config):
        raise UsageError("run_over_config", file=path)
    if not path.parent.is_dir():
        raise UsageError("run_no_folder", folder=path.parent)
    return path


def _choose_questions(
    layer: dict[str, Any],
    file: str,
    size: int | None,
    categories: list[str] | None,
    ids: list[str] | None,
) -> dict[str, Any]:
    """Return the settings of a file with the questions that the command line selects.

    Ids on the command line override the file's numbers and categories.
    """
    layer = dict(layer)
    if not layer.get("datasets"):
        raise ConfigError("run_no_benchmark", file=file)
    if size is not None and ids:
        raise UsageError("config_two_choices", first="-n", second="-t")
    if size is not None and size < 1:
        raise UsageError("run_size", size=size)
    exam = layer["datasets"][0]
    args = dict(layer.get("dataset_args", {}).get(exam, {}))
    if ids or size is not None:
        for name in ("total", "ids", "limit"):
            layer.pop(name, None)
        layer |= {"ids": ids} if ids else {"total": size}
    if layer.get("ids") is not None:
        layer.pop("total", None)
    if ids:
        args.pop("subset_list", None)
    if categories:
        args["subset_list"] = categories
    if args:
        layer["dataset_args"] = {**layer.get("dataset_args", {}), exam: args}
    else:
        layer.pop("dataset_args", None)
    return layer


def _choose_arms(layer: dict[str, Any], *, with_tools: bool) -> dict[str, Any]:
    from keju.config.mcpbr import filter_arms

    return layer | {"arms": filter_arms(layer.get("arms", []), with_tools=with_tools)}


def _apply_strategy(config: TaskConfig, strategy: str | None) -> TaskConfig:
    """Return `config` with the questions that one of mcpbr's strategies selects.

    - By default a number is spread over the subsets in proportion to their size, and the first
      questions of each are used.
    - ``stratified`` draws the questions of each subset at random.
    - ``sequential`` uses the first of all questions, with subsets in alphabetical order, as mcpbr
      does.
    - ``random`` draws from all questions.
    """
    from keju.benchmarks.prepare import prepare_exams

    if config.total is None:
        return config
    if strategy == "stratified":
        return config.model_copy(update={"sample": "random"})
    ((exam, _),) = prepare_exams(config.model_copy(update={"total": None}))
    if strategy is None:
        if len(exam.subsets) > 1 and config.total < len(exam.samples):
            values = {"n": config.total, "subsets": len(exam.subsets)}
            note(Notice("run_spread", values).message)
        return config
    samples = sorted(exam.samples, key=lambda sample: (sample.subset, sample.index))
    ids = [sample.id for sample in samples]
    if strategy == "random":
        ids = random.Random(config.seed).sample(ids, min(config.total, len(ids)))
    return config.model_copy(update={"total": None, "ids": ids[: config.total]})


def _document(finished: FinishedTask, config: TaskConfig) -> dict[str, Any]:
    """Return the run in the format of mcpbr's results."""
    from keju.results.mcpbr import mcpbr_document
    from keju.runs.run import Run
    from keju.scores.stored_replies import iter_graded_records

    stored = Run(finished.folder)
    records = iter_graded_records(stored)
    return mcpbr_document(finished.results, stored.manifest, records, config.price)


def _write(path: Path, document: dict[str, Any]) -> None:
    from keju.files import write_json

    write_json(path, document, make_folder=False)


def _print_tasks(document: dict[str, Any]) -> None:
    from keju.results.mcpbr import task_line

    arms = [name for name in document["summary"] if name != "paired"]
    print_lines("", *(task_line(task, arms) for task in document["tasks"]), "")
