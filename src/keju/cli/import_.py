"""``keju import``: turns another tool's log into a run, with its verdicts next to Keju's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from keju.cli.command import command
from keju.cli.common import CommandOutput, print_sentences, reader_names
from keju.messages import current_language, first_of, label_text, translate_place

ToolName = Literal["evalscope", "lm-eval", "inspect", "opencompass", "verifiers", "eee"]
LISTED_DIFFERENCES = 20
"""Rows of the table of differences. ``--json`` and ``import.json`` have all."""
LISTED_UNMATCHED = 5
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
) -> CommandOutput:
    """Import a log of EvalScope, lm-eval, Inspect, OpenCompass or verifiers as a run.

    Keju scores every reply again with the reader that matches the tool, and lists every row on
    which the two scores disagree. A log that keju export wrote, also one in the format eee, becomes
    the same run again.
    """
    from keju.config.load import data_folder, runs_folder
    from keju.interop.imports.building import import_log
    from keju.interop.imports.options import ImportOptions
    from keju.results.schema import to_document

    wishes = ImportOptions(
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
    return CommandOutput(document, lambda: _print(document))


def _print(document: Mapping[str, Any]) -> None:
    from keju.errors import Notice
    from keju.reporting.format import percent
    from keju.reporting.table import TableColumn, render_table

    origin = f"{document['tool']} {document['version']}".strip()
    print_sentences(label_text("import.origin", tool=origin, model=document["model"]))
    names = [
        TableColumn(label_text(f"column.{name}")) for name in ("benchmark", "protocol", "reader")
    ]
    numbers = ("rows", "matched", "errors", "reported", "reported_n", "tool_rows", "keju")
    titles = (*numbers, "differ", "answers_differ")
    columns = [*names, *(TableColumn(label_text(f"import.{title}"), "right") for title in titles)]
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
        exam_values = {"exam": exam["name"]}
        if len(exam["reported"]) > 1:
            figures = (f"{name} {percent(value)}" for name, value in exam["reported"].items())
            print_sentences(
                label_text(
                    "import.reports",
                    figures=label_text("pair_separator").join(figures),
                    **exam_values,
                )
            )
        if exam["rows_missing"]:
            row_count = exam["rows_missing"] + exam["rows"]
            values = {"missing": exam["rows_missing"], "whole": row_count}
            print_sentences(
                label_text(
                    "import.notice", text=Notice("rows_missing", values).message, **exam_values
                )
            )
        for key in ("differences", "answer_differences"):
            _print_differences(exam, key)
        if golds := exam["other_gold"]:
            print_sentences(
                label_text("import.other_gold", n=len(golds), **exam_values, **golds[0])
            )
    _print_unmatched([exam["unmatched"] for exam in (*document["benchmarks"], document)])
    print_sentences(label_text("wrote", file=document["folder"]))


def _print_unmatched(unmatched: Sequence[Sequence[Mapping[str, str]]]) -> None:
    """Print the first rows without a matching question, and their number."""
    from keju.errors import Notice

    if count := sum(map(len, unmatched)):
        print_sentences(label_text("import.left_out", n=count))
        leading_rows = list(islice(chain.from_iterable(unmatched), LISTED_UNMATCHED + 2))
        listed_rows = first_of(leading_rows, LISTED_UNMATCHED)
        for row in listed_rows:
            reason = Notice(row["code"]).message
            where = translate_place(row["where"], current_language())
            print_sentences("  " + label_text("import.left_out_row", where=where, reason=reason))
        if count > len(listed_rows):
            print_sentences("  " + label_text("import.more", n=count - len(listed_rows)))


def _print_differences(exam: Mapping[str, Any], key: str) -> None:
    """Print a table of the rows on which the tool and Keju differ. `key` selects its title."""
    from keju.reporting.format import shorten
    from keju.reporting.table import TableColumn, render_table

    rows = exam[key]
    if not rows:
        return

    def verdict(answer: str | None, score: str) -> str:
        short_answer = shorten(str(answer), ANSWER_WIDTH)
        return label_text("named", name=short_answer, text=score) if answer else score

    cells = [
        [
            row["id"],
            shorten(row["target"], ANSWER_WIDTH),
            verdict(row["tool"]["answer"], _format_score(row["tool"]["score"])),
            verdict(
                _describe_reading(row["keju"]), label_text(f"outcome.{row['keju']['outcome']}")
            ),
            row["reply"][-REPLY_WIDTH:],
        ]
        for row in rows[:LISTED_DIFFERENCES]
    ]
    title = label_text(f"import.{key}", exam=exam["name"], n=len(rows))
    if len(rows) > LISTED_DIFFERENCES:
        title = label_text("import.first", title=title, n=LISTED_DIFFERENCES)
    print_sentences("")
    names = ("id", "target", "tool", "keju", "end")
    columns = [TableColumn(label_text(f"import.{n}"), fold=n == "end", id=n == "id") for n in names]
    render_table(columns, cells, title=title)


def _describe_reading(reading: Mapping[str, Any]) -> str | None:
    """Return the answer that Keju read, or the reason why it read none, in words."""
    from keju.reporting.format import Labels

    reason = reading["reason"]
    answer: str | None = reading["answer"]
    return answer or (Labels(current_language()).reason(reason) if reason else None)


def _format_score(value: float | None) -> str:
    return label_text("import.no_score") if value is None else f"{value:g}"
