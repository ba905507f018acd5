"""``keju gate``: decides whether a run may replace its baseline, and whether its score is high
enough; it takes stored runs, or asks two endpoints."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from keju.cli.command import command
from keju.cli.common import CommandOutput, exam_args, is_brief
from keju.cli.options import EXAMS, MODEL, PACE, RUN, TOOLS
from keju.errors import UsageError

if TYPE_CHECKING:
    from keju.results.gate import GateResult

OF_STORED_RUNS = frozenset(
    {"datasets", "reader", "protocol", "dataset_args", "data_dir", "work_dir"}
)
"""Settings that have an effect on the gate of stored runs."""


@command(
    "gate",
    "keju gate tuesday --baseline monday --margin 0.01",
    "keju gate tuesday --at-least 0.7",
    "keju gate tuesday --baseline monday --margin 0.01 --junit gate.xml --badge gate.svg",
    "keju gate --model NAME --api-url http://new:8000/v1 --baseline-url http://old:8000/v1 "
    "--datasets gsm8k mmlu_pro --margin 0.01",
    sets={
        MODEL: "model api_url api_key api headers ca_file model_args generation_config",
        EXAMS: "datasets dataset_args protocol reader limit total ids sample repeats seed "
        "data_dir dataset_hub offline judge",
        TOOLS: "sandbox jobs unsafe_no_sandbox",
        PACE: "eval_batch_size timeout attempts retry_interval rpm tpm give_up_after error_limit "
        "budget price",
        RUN: "work_dir run_id",
    },
    common="run baseline margin at_least model api_url api_key baseline_url baseline_model "
    "baseline_api_key datasets limit max_cost junit markdown badge as_json",
)
def gate(
    run: str | None,
    baseline: str | None,
    margin: float | None,
    at_least: float | None,
    junit: str | None,
    markdown: str | None,
    badge: str | None,
    gold: Literal["recorded", "current"] | None,
    baseline_url: list[str] | None,
    baseline_model: str | None,
    baseline_api_key: str | None,
    baseline_price: str | None,
    max_cost: float | None,
    config: str | None,
    overrides: list[str] | None,
    no_report: bool,
    quiet: bool,
    verbose: bool,
    **settings: Any,
) -> CommandOutput:
    """Decide whether a run is no worse than its baseline by more than a margin, or good enough.

    Each exam is decided by a one-sided test at level 0.05 on the shared questions, with Holm's p
    for several exams. A run that is too bad passes in at most one of twenty cases, and a good one
    fails in at most one of twenty. The worst verdict decides. 'keju compare' tests whether the two
    runs differ at all, and may come to another answer.

    Without RUN, Keju asks a new and an old endpoint the same questions in the same random order,
    and stops as soon as it is 99 % sure what all questions would say. Otherwise it asks all of
    them. The same command resumes.

    Exit codes: 0 pass, 1 fail, 2 usage or not comparable, 3 inconclusive: more questions would
    decide; 4 incomplete, 5 endpoint, 130 interrupted.
    """
    exports = {"junit": junit, "markdown": markdown, "badge": badge}
    if run is None and baseline is None and at_least is None:
        from keju.cli.gate_endpoints import EndpointOptions, gate_endpoints

        if gold is not None:
            raise UsageError("gate_only_stored", flag="--gold")
        options = EndpointOptions(
            margin=margin,
            baseline_url=baseline_url or None,
            baseline_model=baseline_model,
            baseline_api_key=baseline_api_key,
            baseline_price=baseline_price,
            max_cost=max_cost,
            config=config,
            overrides=overrides,
            no_report=no_report,
            quiet=quiet,
            verbose=verbose,
            **exports,
        )
        return gate_endpoints(options, settings)
    if run is None:
        raise UsageError("gate_run_missing")
    of_endpoints = {
        **dict.fromkeys(sorted(settings.keys() - OF_STORED_RUNS), True),
        "baseline_url": baseline_url,
        "baseline_model": baseline_model,
        "baseline_api_key": baseline_api_key,
        "baseline_price": baseline_price,
        "max_cost": max_cost,
        "config": config,
        "set": overrides,
        "no_report": no_report,
        "quiet": quiet,
    }
    _refuse_settings_of_endpoints(of_endpoints)
    result = _gate_stored_runs(run, baseline, margin, at_least, gold, settings)
    write_exports(result, exports)
    return CommandOutput(
        result.document, lambda: show_gate(result, verbose=verbose), exit_code=result.exit_code
    )


def _refuse_settings_of_endpoints(values: dict[str, Any]) -> None:
    """Raise UsageError for settings that have no effect on stored runs."""
    for name, value in values.items():
        if value and not (name == "baseline_api_key" and _comes_from_environment(value)):
            raise UsageError("gate_only_endpoints", flag=f"--{name.replace('_', '-')}")


def _comes_from_environment(key: str) -> bool:
    import os

    return os.environ.get("KEJU_BASELINE_API_KEY") == key


def _gate_stored_runs(
    run: str,
    baseline: str | None,
    margin: float | None,
    at_least: float | None,
    gold: Literal["recorded", "current"] | None,
    settings: dict[str, Any],
) -> GateResult:
    """Return the gate of a stored run."""
    from keju.results.gate import gate as gated

    exams = settings.get("datasets")
    if exams and len(exams) > 1:
        raise UsageError("gate_one_exam", first=exams[0])
    exam = exams[0] if exams else None
    return gated(
        run,
        baseline=baseline,
        margin=margin,
        least=at_least,
        datasets=exam,
        reader=settings.get("reader"),
        gold=gold,
        protocol=settings.get("protocol"),
        dataset_args=exam_args(exam, settings.get("dataset_args")),
        data_dir=settings.get("data_dir"),
        work_dir=settings.get("work_dir"),
    )


def write_exports(result: GateResult, exports: dict[str, str | None]) -> None:
    """Write the files for CI servers: JUnit, Markdown, a badge."""
    from keju.files import whole_file
    from keju.reporting import gate as report

    writers = {"junit": report.junit, "markdown": report.markdown, "badge": report.badge}
    for name, path in exports.items():
        if path is not None:
            with whole_file(Path(path)) as file:
                file.write(writers[name](result).encode())


def show_gate(result: GateResult, *, verbose: bool) -> None:
    """Print a gate: the short answer on a terminal, everything in a pipe and with ``--verbose``."""
    from keju.reporting import gate as report
    from keju.reporting.gate_summary import render_gate_summary

    if not is_brief(verbose):
        report.render_gate(result)
    if sys.stdout.isatty():
        render_gate_summary(result)
