"""``keju import``: the log of another tool as a run, its verdicts beside Keju's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from keju.cli import options
from keju.cli.arguments import StrictCommand
from keju.cli.output import print_json, print_lines
from keju.config import load as settings

app = options.new_app()

ToolName = Literal["evalscope", "lm-eval", "inspect", "opencompass", "verifiers"]
SHOWN = 20
"""Differing rows that the table shows; ``--json`` and ``import.json`` have all."""
SHOWN_UNMATCHED = 5
ANSWER_WIDTH, REPLY_WIDTH = 30, 80


@app.command(
    cls=StrictCommand,
    epilog=options.examples(
        "keju import outputs/20260101_120000 --data-dir data",
        "keju import logs/2026-01-01_mmlu-pro.eval --datasets mmlu_pro --run-id tuesday",
        "keju import results_2026-01-01T12-00-00.json --from lm-eval --reader paper,robust --json",
    ),
)
def import_(
    log: Annotated[str, typer.Argument(metavar="LOG", help="A log file, or a run's folder.")],
    tool: Annotated[
        ToolName | None,
        typer.Option(
            "--from",
            help="The tool that wrote it; found out by default.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    datasets: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The benchmark, where the tool's task has another name.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    protocol: options.Protocol = None,
    reader: Annotated[
        str | None,
        typer.Option(
            metavar="R,R2",
            help="Readers to score with; the tool's equivalent by default.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    data_dir: options.DataDir = None,
    work_dir: options.WorkDir = None,
    run_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Name of the new run.", rich_help_panel=options.OUTPUT),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Import a log of EvalScope, lm-eval, Inspect, OpenCompass or verifiers as a run.

    Every reply is scored anew with the reader that is the tool's, and every row on which the two
    disagree is listed.
    """
    from keju.interop.imports.building import Wishes, import_log

    readers = [name for name in reader.split(",") if name] if reader is not None else None
    wishes = Wishes(
        tool=tool,
        dataset=datasets,
        data_dir=settings.data_dir(data_dir),
        work_dir=str(settings.work_dir(work_dir)),
        run_id=run_id,
        protocol=protocol,
        readers=readers,
    )
    imported = import_log(Path(log), wishes)
    if as_json:
        print_json(imported.document | {"results": imported.results})
    else:
        _print(imported.document)


def _print(document: Mapping[str, Any]) -> None:
    from keju.report.table import Column, render_table

    origin = f"{document['tool']} {document['version']}".strip()
    print_lines(f"{origin}, model {document['model']}")
    columns = [
        Column("benchmark"),
        Column("protocol"),
        Column("reader"),
        Column("rows", "right"),
        Column("matched", "right"),
        Column("errors", "right"),
        Column("the tool reports", "right"),
        Column("the tool's rows", "right"),
        Column("Keju", "right"),
        Column("rows that differ", "right"),
    ]
    exams = document["benchmarks"]
    render_table(columns, [_summary(exam) for exam in exams])
    for exam in exams:
        _differences(exam)
        _other_gold(exam)
    _unmatched(document)
    print_lines(f"wrote {document['folder']}")


def _summary(exam: Mapping[str, Any]) -> list[str | int | float | None]:
    from keju.report.format import percent

    return [
        exam["name"],
        exam["protocol"],
        exam["reader"],
        exam["rows"],
        exam["matched"],
        exam["errors"],
        percent(next(iter(exam["reported"].values()), None)),
        percent(exam["tool_accuracy"]),
        percent(next(iter(exam["keju_accuracy"].values()), None)),
        len(exam["differences"]),
    ]


def _differences(exam: Mapping[str, Any]) -> None:
    from keju.report.format import shorten
    from keju.report.table import Column, render_table

    rows = exam["differences"]
    if not rows:
        return
    columns = [
        Column("id"),
        Column("target"),
        Column("tool"),
        Column("Keju"),
        Column("end of the reply", fold=True),
    ]
    cells: list[list[str | int | float | None]] = [
        [
            row["id"],
            shorten(row["target"], ANSWER_WIDTH),
            _verdict(row["tool"]["answer"], f"{row['tool']['score']:g}"),
            _verdict(row["keju"]["answer"] or row["keju"]["reason"], row["keju"]["outcome"]),
            row["reply"][-REPLY_WIDTH:],
        ]
        for row in rows[:SHOWN]
    ]
    title = f"{exam['name']}: the tool and Keju differ on {len(rows)} rows"
    if len(rows) > SHOWN:
        title += f"; the first {SHOWN}"
    print_lines("")
    render_table(columns, cells, title=title)


def _verdict(answer: str | None, score: str) -> str:
    from keju.report.format import shorten

    return f"{shorten(str(answer), ANSWER_WIDTH)}: {score}" if answer else score


def _other_gold(exam: Mapping[str, Any]) -> None:
    rows = exam["other_gold"]
    if rows:
        first = rows[0]
        print_lines(
            f"{exam['name']}: {len(rows)} rows have another gold answer than the data, e.g. "
            f"{first['id']}: {first['log']} in the log, {first['data']} in the data"
        )


def _unmatched(document: Mapping[str, Any]) -> None:
    rows = [row for exam in document["benchmarks"] for row in exam["unmatched"]]
    rows += document["unmatched"]
    if not rows:
        return
    print_lines(f"{len(rows)} rows of the log answer no question and are left out:")
    print_lines(*(f"  {row['where']}: {row['reason']}" for row in rows[:SHOWN_UNMATCHED]))
    if len(rows) > SHOWN_UNMATCHED:
        print_lines(f"  and {len(rows) - SHOWN_UNMATCHED} more, all in import.json")
