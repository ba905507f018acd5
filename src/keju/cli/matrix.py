"""``keju eval`` with a matrix: several models on several exams."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from keju.cli.common import CommandOutput, print_lines, print_sentences
from keju.messages import label_text

if TYPE_CHECKING:
    from keju.matrix.flow import FinishedMatrix


def evaluate_matrix(
    config: str,
    overrides: list[str],
    settings: dict[str, Any],
    *,
    dry_run: bool,
    report: bool,
    quiet: bool,
) -> CommandOutput:
    """Run a matrix, or forecast its requests."""
    from keju.benchmarks import registry
    from keju.config.matrix import load_matrix
    from keju.models.registry import settings_without_effect

    matrix = load_matrix(
        config,
        overrides,
        settings,
        exam_name=lambda name: registry.get(name).name,
        idle=settings_without_effect,
    )
    if dry_run:
        from keju.matrix.forecast import forecast

        forecast_document = forecast(matrix)
        return CommandOutput(forecast_document, lambda: _print_forecast(forecast_document))
    from keju.matrix.flow import run_matrix
    from keju.reporting.board import make_board

    finished = run_matrix(matrix, board=make_board(quiet=quiet), report=report)
    problem = ""
    if finished.error is not None:
        resume_command = f"keju eval --config {shlex.quote(config)}"
        problem = finished.error.message + label_text("resume_with", command=resume_command)
    return CommandOutput(finished.document, lambda: _show(finished), problem, finished.exit_code)


def _show(finished: FinishedMatrix) -> None:
    from keju.files import typed_path
    from keju.reporting.matrix import render_matrix
    from keju.runs.run import REPORT

    render_matrix(finished.matrix)
    print_lines(label_text("next.plan_folder", folder=typed_path(finished.folder)))
    if (finished.folder / REPORT).is_file():
        print_lines(label_text("next.report", report=typed_path(finished.folder / REPORT)))


def _print_forecast(document: dict[str, Any]) -> None:
    from keju.reporting.format import compact, money
    from keju.reporting.table import TableColumn, render_table

    rows = document["runs"]
    titles = ("run", "board.wanted", "board.known", "board.asked", "board.input", "board.output")
    render_table(
        [
            *(TableColumn(label_text(t), id=t == "run") for t in titles),
            TableColumn(label_text("arms.cost")),
        ],
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
            print_sentences(label_text("named", name=row["run"], text=warning))
    print_sentences(
        "", label_text("board.forecast", asked=document["asked"], known=document["known"])
    )
    if document["cost_estimate"] is not None:
        key = "board.cost"
        if any(row["asked"] and row["output_tokens_estimate"] is None for row in rows):
            key = "board.cost_of_input"
        print_sentences(label_text(key, cost=money(document["cost_estimate"])))
