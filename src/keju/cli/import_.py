"""``keju import``: the log of another tool as a run, its verdicts beside Keju's."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from keju.cli.command import command
from keju.cli.common import Output, print_lines, reader_names
from keju.messages import first_of, said

ToolName = Literal["evalscope", "lm-eval", "inspect", "opencompass", "verifiers"]
SHOWN = 20
"""Differing rows that the table shows; ``--json`` and ``import.json`` have all."""
SHOWN_UNMATCHED = 5
ANSWER_WIDTH, REPLY_WIDTH = 30, 80


@command(
    "import",
    "keju import outputs/20260101_120000 --data-dir data",
    "keju import logs/2026-01-01_mmlu-pro.eval --datasets mmlu_pro --run-id tuesday",
    "keju import results_2026-01-01T12-00-00.json --from lm-eval --reader paper,robust --json",
)
def import_(
    log: str,
    tool: ToolName | None,
    dataset: str | None,
    protocol: str | None,
    reader: str | None,
    data_dir: str | None,
    work_dir: str | None,
    run_id: str | None,
) -> Output:
    """Import a log of EvalScope, lm-eval, Inspect, OpenCompass or verifiers as a run.

    Every reply is scored anew with the reader that is the tool's, and every row on which the two
    disagree is listed.
    """
    from keju.config.load import data_folder, runs_folder
    from keju.interop.imports.building import Wishes, import_log
    from keju.results.schema import to_document

    wishes = Wishes(
        tool=tool,
        dataset=dataset,
        data_dir=data_folder(data_dir),
        work_dir=str(runs_folder(work_dir)),
        run_id=run_id,
        protocol=protocol,
        readers=reader_names(reader),
    )
    imported = import_log(Path(log), wishes)
    document = imported.document | {"results": to_document(imported.results)}
    return Output(document, lambda: _print(document))


def _print(document: Mapping[str, Any]) -> None:
    from keju.errors import Notice
    from keju.report.format import percent
    from keju.report.table import Column, render_table

    origin = f"{document['tool']} {document['version']}".strip()
    print_lines(f"{origin}, model {document['model']}")
    numbers = ("rows", "matched", "errors", "the tool reports", "its n", "the tool's rows", "Keju")
    columns = [Column(title) for title in ("benchmark", "protocol", "reader")]
    differ = ("rows that differ", "answers that differ")
    columns += [Column(title, "right") for title in (*numbers, *differ)]
    rows = [
        [
            *(exam[key] for key in ("name", "protocol", "reader", "rows", "matched", "errors")),
            percent(next(iter(exam["reported"].values()), None)),
            exam["reported_n"],
            percent(exam["tool_accuracy"]),
            percent(next(iter(exam["keju_accuracy"].values()), None)),
            len(exam["differences"]),
            len(exam["differences"]) + len(exam["answer_differences"]),
        ]
        for exam in document["benchmarks"]
    ]
    render_table(columns, rows)
    for exam in document["benchmarks"]:
        if len(exam["reported"]) > 1:
            figures = (f"{name} {percent(value)}" for name, value in exam["reported"].items())
            print_lines(f"{exam['name']}: the tool reports {'; '.join(figures)}")
        if exam["rows_missing"]:
            whole = exam["rows_missing"] + exam["rows"]
            values = {"missing": exam["rows_missing"], "whole": whole}
            print_lines(f"{exam['name']}: {Notice('rows_missing', values).said}")
        _print_differences(exam, "differences", "the tool and Keju differ on {n} rows")
        told = "{n} rows have the same score for different answers"
        _print_differences(exam, "answer_differences", told)
        if exam["other_gold"]:
            first = exam["other_gold"][0]
            print_lines(
                f"{exam['name']}: {len(exam['other_gold'])} rows have another gold answer than the "
                f"data, e.g. {first['id']}: {first['log']} in the log, {first['data']} in the data"
            )
    unmatched = [exam["unmatched"] for exam in (*document["benchmarks"], document)]
    if many := sum(map(len, unmatched)):
        print_lines(f"{many} rows of the log answer no question and are left out:")
        first = list(islice(chain.from_iterable(unmatched), SHOWN_UNMATCHED + 2))
        shown = first_of(first, SHOWN_UNMATCHED)
        print_lines(*(f"  {row['where']}: {row['reason']}" for row in shown))
        if many > len(shown):
            print_lines(f"  and {many - len(shown)} more, all in import.json")
    print_lines(said("wrote", file=document["folder"]))


def _print_differences(exam: Mapping[str, Any], key: str, told: str) -> None:
    from keju.report.format import shorten
    from keju.report.table import Column, render_table

    rows = exam[key]
    if not rows:
        return

    def verdict(answer: str | None, score: str) -> str:
        return f"{shorten(str(answer), ANSWER_WIDTH)}: {score}" if answer else score

    cells = [
        [
            row["id"],
            shorten(row["target"], ANSWER_WIDTH),
            verdict(row["tool"]["answer"], _score(row["tool"]["score"])),
            verdict(row["keju"]["answer"] or row["keju"]["reason"], row["keju"]["outcome"]),
            row["reply"][-REPLY_WIDTH:],
        ]
        for row in rows[:SHOWN]
    ]
    title = f"{exam['name']}: {told.format(n=len(rows))}"
    if len(rows) > SHOWN:
        title += f"; the first {SHOWN}"
    print_lines("")
    columns: list[Column | str] = ["id", "target", "tool", "Keju"]
    render_table([*columns, Column("end of the reply", fold=True)], cells, title=title)


def _score(value: float | None) -> str:
    return "no score" if value is None else f"{value:g}"
