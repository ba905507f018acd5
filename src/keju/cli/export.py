"""``keju export``: writes runs as a table for a paper, or one run's answers or submission."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keju.cli.command import command
from keju.cli.common import note, open_stored_run, print_json, remark
from keju.errors import UsageError
from keju.messages import current_language, label_text

if TYPE_CHECKING:
    from keju.interop.paper import TableForm


@command(
    "export",
    "keju export monday tuesday --table md",
    "keju export monday tuesday -o table.tex --intervals",
    "keju export tuesday -o tuesday.csv",
    "keju export tuesday --format parquet -o tuesday.parquet --full-text",
    "keju export tuesday --format inspect -o logs",
    "keju export ceval-test --format submission -o submission.json",
)
def export(
    runs: list[str],
    table_form: TableForm | None,
    intervals: bool,
    form: str | None,
    output: str | None,
    full_text: bool,
    fill: str | None,
    partial: bool,
    data_dir: str | None,
    work_dir: str | None,
    as_json: bool,
) -> None:
    """Export runs: a table for a paper, or one run's answers, results or submission.

    Without --table a run goes out as one row for each question and repetition, or as its results in
    the format of a model's folder .eval_results on the hub, of W&B (offline) or MLflow (a local
    folder) with keju[wandb] or keju[mlflow], or as the submission of an exam's site. The formats
    eee, inspect and lm-eval are logs of other tools, with all texts; keju import reads them back.
    """
    table_form = _choose_table(table_form, form, output)
    if table_form is not None:
        flags = {"--full-text": full_text, "--fill": fill, "--partial": partial}
        _refuse_row_flags(flags)
        _export_table(runs, table_form, output, intervals, data_dir, work_dir, as_json=as_json)
        return
    if intervals:
        raise UsageError("export_only_table", flag="--intervals")
    if len(runs) > 1:
        raise UsageError("export_one_run", runs=shlex.join(runs), file=output or "answers.csv")
    (run,) = runs
    from keju.interop.export import (
        LOGS,
        PAGES,
        TRACKERS,
        check_form,
        export_run,
        form_of,
        require_target,
    )

    form = form_of(output, form)
    check_form(form)
    _refuse_unused_flags(form, fill=fill, partial=partial, full_text=full_text)
    if output is None and as_json and form not in (*TRACKERS, *LOGS):
        raise UsageError("cli_json_needs_file")
    require_target(form, output)
    stored = open_stored_run(run, work_dir)
    target = Path(output) if output else None
    facts, notices, missing = export_run(
        stored, form, target, full_text=full_text, fill=fill, partial=partial, data_dir=data_dir
    )
    if missing:
        _list_missing(missing, fill)
    for notice in notices:
        remark(notice.message)
    if as_json:
        warnings = {"warnings": [notice.text() for notice in notices], "notices": notices}
        print_json({"run": stored.id, "format": form, "file": output} | facts | warnings)
    elif place := facts.get("place", target if form in PAGES else None):
        remark(label_text("wrote", file=place))
    elif target:
        remark(label_text("export.wrote", rows=facts["rows"], file=target))


def _choose_table(
    table_form: TableForm | None, form: str | None, output: str | None
) -> TableForm | None:
    """Return the format of the table, if a flag or the suffix of the file asks for one."""
    from keju.interop.paper import TABLE_SUFFIXES

    suffix_form = TABLE_SUFFIXES.get(Path(output or "").suffix.lower())
    if table_form is None:
        is_table = form is None and suffix_form in ("md", "latex")
        return suffix_form if is_table else None
    if form is not None:
        raise UsageError("cli_same_flags", first="--table", second="--format")
    if output and suffix_form != table_form:
        suffixes = {value: suffix for suffix, value in TABLE_SUFFIXES.items()}
        values = {"file": output, "form": table_form, "suffix": suffixes[table_form]}
        raise UsageError("export_table_suffix", **values)
    return table_form


def _refuse_row_flags(flags: Mapping[str, object]) -> None:
    """Raise UsageError for a flag that has no effect on a table."""
    for flag, value in flags.items():
        if value:
            raise UsageError("export_not_table", flag=flag)


def _export_table(
    names: Sequence[str],
    form: TableForm,
    output: str | None,
    intervals: bool,
    data_dir: str | None,
    work_dir: str | None,
    *,
    as_json: bool,
) -> None:
    """Write the table of the runs, and name the metrics of a CSV file, which has no notes."""
    from keju.interop.paper import write_table

    if output is None and as_json:
        raise UsageError("cli_json_needs_file")
    stored_runs = [open_stored_run(name, work_dir) for name in dict.fromkeys(names)]
    facts = write_table(
        stored_runs,
        form,
        Path(output) if output else None,
        intervals=intervals,
        language=current_language(),
        data_dir=data_dir,
    )
    if as_json:
        run_ids = [stored.id for stored in stored_runs]
        print_json({"runs": run_ids, "table": form, "file": output} | facts)
        return
    for text in (*facts["metrics"], *facts["notes"]) if form == "csv" else ():
        note(text)
    if output:
        remark(label_text("wrote", file=output))


def _refuse_unused_flags(form: str, *, fill: str | None, partial: bool, full_text: bool) -> None:
    """Raise UsageError for a flag that has no effect on this form."""
    from keju.interop.export import LOGS, SUBMISSION, TABLES

    if form != SUBMISSION and (fill is not None or partial):
        flag = "--fill" if fill is not None else "--partial"
        raise UsageError("cli_only_submission", flag=flag, form=form)
    if form == SUBMISSION and full_text:
        raise UsageError("cli_submission_full_text")
    if full_text and form in LOGS:
        raise UsageError("export_has_texts", form=form)
    if full_text and form not in TABLES:
        raise UsageError("export_no_texts", form=form)


def _list_missing(missing: Sequence[str], fill: str | None) -> None:
    """Name the questions without an answer."""
    label = "export.missing_filled" if fill else "export.missing_empty"
    remark(label_text(label, n=len(missing), fill=fill))
    for sample_id in missing:
        note(f"  {sample_id}")
