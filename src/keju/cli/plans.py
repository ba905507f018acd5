"""``keju eval`` with a plan: several models on several exams."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from keju.cli.common import Output, print_lines, print_sentences
from keju.messages import said

if TYPE_CHECKING:
    from keju.plans.flow import FinishedPlan


def evaluate_plan(
    config: str,
    overrides: list[str],
    settings: dict[str, Any],
    *,
    dry_run: bool,
    report: bool,
    quiet: bool,
) -> Output:
    """Run a plan, or forecast its requests."""
    from keju.benchmarks import registry
    from keju.config.plan import load_plan
    from keju.models.registry import settings_without_effect

    plan = load_plan(
        config,
        overrides,
        settings,
        exam_name=lambda name: registry.get(name).name,
        idle=settings_without_effect,
    )
    if dry_run:
        from keju.plans.forecast import forecast

        forecast_document = forecast(plan)
        return Output(forecast_document, lambda: _print_forecast(forecast_document))
    from keju.plans.flow import run_plan
    from keju.report.board import make_board

    finished = run_plan(plan, board=make_board(quiet=quiet), report=report)
    problem = ""
    if finished.error is not None:
        resume_command = f"keju eval --config {shlex.quote(config)}"
        problem = finished.error.said + said("resume_with", command=resume_command)
    return Output(finished.document, lambda: _show(finished), problem, finished.exit_code)


def _show(finished: FinishedPlan) -> None:
    from keju.files import typed_path
    from keju.report.matrix import render_matrix
    from keju.runs.run import REPORT

    render_matrix(finished.matrix)
    print_lines(said("next.plan_folder", folder=typed_path(finished.folder)))
    if (finished.folder / REPORT).is_file():
        print_lines(said("next.report", report=typed_path(finished.folder / REPORT)))


def _print_forecast(document: dict[str, Any]) -> None:
    from keju.report.format import compact, money
    from keju.report.table import Column, render_table

    rows = document["runs"]
    titles = ("run", "board.wanted", "board.known", "board.asked", "board.input", "board.output")
    render_table(
        [*(Column(said(t), id=t == "run") for t in titles), Column(said("arms.cost"))],
        [
            (
                row["run"],
                row["requests"],
                row["known"],
                row["asked"],
                compact(row["prompt_tokens_estimate"]),
                None
                if row["output_tokens_estimate"] is None
                else compact(row["output_tokens_estimate"]),
                None if row["cost_estimate"] is None else money(row["cost_estimate"]),
            )
            for row in rows
        ],
    )
    for row in rows:
        for warning in row["warnings"]:
            print_sentences(said("named", name=row["run"], text=warning))
    print_sentences("", said("board.forecast", asked=document["asked"], known=document["known"]))
    if document["cost_estimate"] is not None:
        key = "board.cost"
        if any(row["asked"] and row["output_tokens_estimate"] is None for row in rows):
            key = "board.cost_of_input"
        print_sentences(said(key, cost=money(document["cost_estimate"])))
