"""``keju compare``: runs, logs and files of predictions side by side, question by question."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from keju.cli.command import command
from keju.cli.common import Output, exam_args, page_path, print_lines
from keju.errors import Inconclusive, UsageError
from keju.messages import said, spoken

if TYPE_CHECKING:
    from keju.results.compare import Compared


@command(
    "compare",
    "keju compare monday tuesday",
    "keju compare runs/monday outputs/20260101_120000 --reader robust --json",
    "keju compare a.jsonl.gz b.jsonl.gz --datasets mmlu_pro --reader l1",
    "keju compare monday",
    "keju compare monday tuesday -o compare.html",
    "keju compare --contamination published fresh",
    sets="dataset_args",
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
    dataset_args: dict[str, Any] | None = None,
) -> Output:
    """Compare runs on the questions that they share; of one run alone, its arms.

    First whether they are comparable at all: what was asked, how it was put, how answers are read.
    Where that differs, the first field is named, and the scores stand side by side without a rank.
    Else the paired difference with its interval, the exact p, the questions gained and lost, each
    subset with false discoveries controlled, and what a question takes. A difference whose interval
    covers 0 is a tie.

    With --contamination the first run is of a published exam and the second of fresh questions of
    its kinds: does the model score higher on those that it may have met? No question is paired.

    Exit codes: 0 ok, 2 usage, 3 not comparable or no question in common.
    """
    page_path(output)
    if contamination:
        given: dict[str, Any] = {"--datasets": exam, "--gold": gold, "--protocol": protocol}
        given |= {"--dataset-args": dataset_args}
        flag = next((flag for flag, value in given.items() if value), None)
        if flag is not None:
            raise UsageError("contamination_setting", flag=flag)
        return _contamination(sources, one_reader, data_dir, work_dir, output, spoken())
    from keju.report.comparison import texts_for, write_comparison
    from keju.results.compare import compare as compare_sources

    found = compare_sources(
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
        write_comparison(found, Path(output), language=spoken())
    unlike = next((pair for pair in found.comparisons if pair.obstacle or not pair.n), None)
    problem = unlike.conclusion.said if unlike else ""
    code = Inconclusive.exit_code if unlike else 0
    settings = {"datasets": exam, "reader": one_reader, "gold": gold, "protocol": protocol}
    settings |= {"data-dir": data_dir, "work-dir": work_dir}
    flags = [f"--{name} {shlex.quote(value)}" for name, value in settings.items() if value]
    # Of several sources the two whose names are told; settings of an exam have no short form.
    named = sources if len(sources) == 2 else [unlike.base, unlike.arm] if unlike else []
    is_told = unlike and unlike.obstacle and not dataset_args and set(named) <= set(sources)
    diff = " ".join(["keju diff", *map(shlex.quote, named), *flags]) if is_told else ""
    return Output(found.document, lambda: _show(found, output, diff), problem, code, shown=True)


def _show(found: Compared, output: str | None, diff: str) -> None:
    from keju.report.compare import render_compared

    render_compared(found, diff=diff)
    if output:
        print_lines(said("wrote", file=output))


def _contamination(
    sources: list[str],
    reader: str | None,
    data_dir: str | None,
    work_dir: str | None,
    output: str | None,
    language: Literal["en", "zh"],
) -> Output:
    from keju.report.contamination import render_contamination, write_contamination
    from keju.results.contamination import contamination

    if len(sources) != 2:
        raise UsageError("contamination_two")
    found = contamination(*sources, reader=reader, data_dir=data_dir, work_dir=work_dir)
    if output:
        write_contamination(found, Path(output), language=language)

    def show() -> None:
        render_contamination(found)
        if output:
            print_lines(said("wrote", file=output))

    open_ = found.verdict in ("not comparable", "nothing")
    problem = found.conclusions[0].said if open_ else ""
    code = Inconclusive.exit_code if open_ else 0
    return Output(found.document, show, problem, code, shown=True)
