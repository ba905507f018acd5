"""``keju compare``: runs, logs and files of predictions, compared question by question."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from keju.cli.command import command
from keju.cli.common import CommandOutput, exam_args, is_brief, page_path, print_lines
from keju.errors import Inconclusive, UsageError
from keju.messages import current_language, label_text

if TYPE_CHECKING:
    from keju.results.compare import Compared
    from keju.results.schema import Comparison


@command(
    "compare",
    "keju compare monday tuesday",
    "keju compare runs/monday outputs/20260101_120000 --reader robust --json",
    "keju compare a.jsonl.gz b.jsonl.gz --datasets mmlu_pro --reader l1",
    "keju compare monday",
    "keju compare --why monday tuesday",
    "keju compare --modes monday-answer-only monday-cot",
    "keju compare monday tuesday -o compare.html",
    "keju compare --contamination published fresh",
    sets="dataset_args",
    forms="why modes",
)
def compare(
    sources: list[str],
    contamination: bool,
    exam: str | None,
    one_reader: str | None,
    gold: Literal["recorded", "current"] | None,
    protocol: str | None,
    data_dir: str | None,
    work_dir: str | None,
    output: str | None,
    verbose: bool,
    dataset_args: dict[str, Any] | None = None,
) -> CommandOutput:
    """Compare runs on the questions that they share; of one run alone, its arms.

    Keju first checks whether questions, prompts and readers are comparable. If not, it names the
    first field that differs and shows the scores side by side without a rank. If so, it shows the
    paired difference with its interval, the exact p, the questions gained and lost, each subset
    with false discoveries controlled, and the tokens, cost and time per question. A difference
    whose interval covers 0 is a tie.

    With --contamination the first run is of a published exam and the second of fresh questions of
    its kinds: does the model score higher on those that it may have met? No question is paired.

    Exit codes: 0 ok, 2 usage, 3 not comparable or no question in common.
    """
    page_path(output)
    settings = {"datasets": exam, "reader": one_reader, "gold": gold, "protocol": protocol}
    if contamination:
        _refuse_exam_flags(settings | {"dataset-args": dataset_args})
        return _contamination(sources, one_reader, data_dir, work_dir, output)
    from keju.reporting.comparison import texts_for, write_comparison
    from keju.results.compare import compare as compare_sources

    comparison = compare_sources(
        *sources,
        datasets=exam,
        reader=one_reader,
        gold=gold,
        protocol=protocol,
        dataset_args=exam_args(exam, dataset_args),
        data_dir=data_dir,
        work_dir=work_dir,
        texts=texts_for(len(sources)) if output else 0,
    )
    if output:
        write_comparison(comparison, Path(output), language=current_language())
    pair = next((pair for pair in comparison.comparisons if pair.obstacle or not pair.n), None)
    if pair is None:
        return CommandOutput(
            comparison.document, lambda: _show(comparison, output, "", sources, verbose)
        )
    diff = ""
    if pair.obstacle and not dataset_args:  # settings of an exam have no short form
        diff = _diff_command(sources, pair, settings | {"data-dir": data_dir, "work-dir": work_dir})
    return CommandOutput(
        comparison.document,
        lambda: _show(comparison, output, diff, sources, verbose),
        pair.conclusion.message,
        Inconclusive.exit_code,
        is_problem_shown=True,
    )


def _diff_command(sources: list[str], pair: Comparison, settings: Mapping[str, str | None]) -> str:
    """Return the command that shows why a pair is not comparable; "" if one is an arm of a run."""
    names = sources if len(sources) == 2 else [pair.base, pair.arm]
    if not set(names) <= set(sources):
        return ""
    flags = [f"--{name} {shlex.quote(value)}" for name, value in settings.items() if value]
    return " ".join(["keju compare --why", *map(shlex.quote, names), *flags])


def _refuse_exam_flags(settings: Mapping[str, Any]) -> None:
    """Raise UsageError for a setting that --contamination does not use."""
    for name in ("datasets", "gold", "protocol", "dataset-args"):
        if settings[name]:
            raise UsageError("contamination_setting", flag=f"--{name}")


def _show(
    comparison: Compared, output: str | None, diff: str, sources: list[str], verbose: bool
) -> None:
    from keju.reporting.compare import render_compared
    from keju.reporting.compare_summary import render_comparison_summary

    if not is_brief(verbose):
        render_compared(comparison, diff="" if sys.stdout.isatty() else diff)
    if sys.stdout.isatty():
        render_comparison_summary(comparison, sources, diff=diff)
    _name_file(output)


def _name_file(output: str | None) -> None:
    if output:
        print_lines(label_text("wrote", file=output))


def _contamination(
    sources: list[str],
    reader: str | None,
    data_dir: str | None,
    work_dir: str | None,
    output: str | None,
) -> CommandOutput:
    from keju.reporting.contamination import render_contamination, write_contamination
    from keju.results.contamination import contamination

    if len(sources) != 2:
        raise UsageError("contamination_two")
    comparison = contamination(*sources, reader=reader, data_dir=data_dir, work_dir=work_dir)
    if output:
        write_contamination(comparison, Path(output), language=current_language())

    def show() -> None:
        render_contamination(comparison)
        _name_file(output)

    is_inconclusive = comparison.verdict in ("not comparable", "nothing")
    problem = comparison.conclusions[0].message if is_inconclusive else ""
    code = Inconclusive.exit_code if is_inconclusive else 0
    return CommandOutput(comparison.document, show, problem, code, is_problem_shown=True)
