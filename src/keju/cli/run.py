"""``keju run``: the command line of mcpbr, for any benchmark and any number of arms."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keju.cli.command import again_by, command
from keju.cli.common import Output, note, print_lines, remark, session_output
from keju.cli.evaluate import print_next_steps
from keju.cli.options import EXAMS, MODEL, PACE, RUN
from keju.errors import ConfigError, Notice, UsageError
from keju.messages import said

if TYPE_CHECKING:
    from keju.config import TaskConfig
    from keju.task import Finished


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
    overrides: list[str] | None,
    **settings: Any,
) -> Output:
    """Sit a benchmark with and without MCP servers, the same questions in every arm.

    The file is mcpbr's (mcp_server, or mcp_server_a and mcp_server_b), or Keju's own with a list
    of arms. Every server is started, and its tools are listed, before a model is asked. See
    'keju mcp check' for a look at the servers alone.

    Exit codes: 0 ok, 2 usage, 3 more than half without a grade, 4 incomplete, 5 endpoint,
    130 interrupted.
    """
    given = locals() | settings
    from keju.config.load import load
    from keju.config.mcpbr import model_of_provider, read_run_file
    from keju.models.registry import settings_without_effect
    from keju.report.live import make_display
    from keju.task import run_exams

    if config is None:
        raise UsageError("run_no_file")
    if mcp_only and baseline_only:
        raise UsageError("run_both_only")
    target = _writable(output, Path(config))
    idle: tuple[str, ...] = ()
    if settings.get("model"):
        settings["model"] = model_of_provider(settings["model"])
        idle = ("model", *settings_without_effect(settings["model"]))
    translated = read_run_file(Path(config), os.environ, benchmark, idle)
    for notice in translated.notices:
        remark(notice.said, "own_warning")
    layer = _chosen(translated.layer, config, size, filter_category, task)
    if mcp_only or baseline_only:
        layer = _only(layer, with_tools=mcp_only)
    if not layer.get("arms"):
        note(Notice("run_one_arm", {"file": config}).said)
    given_by = (config, overrides or (), settings)
    loaded = load(*given_by, idle=settings_without_effect, say=note, read=lambda _: layer)
    loaded = _drawn(loaded, sampling_strategy or translated.strategy)
    finished = run_exams(loaded, display=make_display(quiet=quiet))
    finished = again_by("run", given, finished)
    document = _document(finished, loaded) if target is not None or verbose else {}
    if target is not None:
        _write(target, document)

    def more() -> None:
        if verbose:
            _print_tasks(document)
        print_next_steps(finished)
        if target is not None:
            print_lines(said("run.results", file=target))
        if loaded.model == "scripted" and _left_tools_alone(finished):
            remark(said("run.scripted_tools"))

    return session_output(finished, more)


def _left_tools_alone(finished: Finished) -> bool:
    """Whether an arm offered tools, and no episode called one."""
    stats = [entry.tools for entry in finished.results.benchmarks if entry.tools]
    return any(each.offered and not each.calls for each in stats)


def _writable(output: str | None, config: Path) -> Path | None:
    """Where the file of results goes; one that may not be written is refused before the run."""
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


def _chosen(
    layer: dict[str, Any],
    file: str,
    size: int | None,
    categories: list[str] | None,
    ids: list[str] | None,
) -> dict[str, Any]:
    """The settings of a file with the questions that the command line names.

    Ids of the command line are asked whatever the file says of numbers and categories.
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


def _only(layer: dict[str, Any], *, with_tools: bool) -> dict[str, Any]:
    from keju.config.mcpbr import only_arms

    return layer | {"arms": only_arms(layer.get("arms", []), with_tools=with_tools)}


def _drawn(config: TaskConfig, strategy: str | None) -> TaskConfig:
    """`config` with the questions that a strategy of mcpbr takes.

    Without one a number is spread over the subsets in proportion to their size, the first of each;
    ``stratified`` draws them. ``sequential`` takes the first of all in alphabetical order of the
    subsets, as mcpbr does, and ``random`` draws from all.
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
            note(Notice("run_spread", values).said)
        return config
    samples = sorted(exam.samples, key=lambda sample: (sample.subset, sample.index))
    ids = [sample.id for sample in samples]
    if strategy == "random":
        ids = random.Random(config.seed).sample(ids, min(config.total, len(ids)))
    return config.model_copy(update={"total": None, "ids": ids[: config.total]})


def _document(finished: Finished, config: TaskConfig) -> dict[str, Any]:
    """The run in the shape of mcpbr's results."""
    from keju.engine.resume import iter_graded_records
    from keju.results.mcpbr import mcpbr_document
    from keju.runs.run import Run

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
