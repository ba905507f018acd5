"""``keju export``: writes a run as a table, or as the submission file of an exam's site."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keju.cli.command import command
from keju.cli.common import note, open_stored_run, print_json, remark
from keju.errors import UsageError
from keju.messages import label_text


@command(
    "export",
    "keju export tuesday -o tuesday.csv",
    "keju export tuesday --format parquet -o tuesday.parquet --full-text",
    "keju export tuesday -o table.tex",
    "keju export ceval-test --format submission -o submission.json",
)
def export(
    run: str,
    form: str | None,
    output: str | None,
    full_text: bool,
    fill: str | None,
    partial: bool,
    data_dir: str | None,
    work_dir: str | None,
    as_json: bool,
) -> None:
    """Export a run: one row a sample and epoch, its results, or the submission of an exam's site.

    Results go out as a table in Markdown or LaTeX, as YAML for the folder .eval_results of a model
    on the hub, or to W&B (offline) and MLflow (a local folder) with keju[wandb] or keju[mlflow].
    """
    from keju.interop.export import PAGES, TRACKERS, check_form, export_run, form_of, require_target

    form = form_of(output, form)
    check_form(form)
    _refuse_unused_flags(form, fill=fill, partial=partial, full_text=full_text)
    if output is None and as_json and form not in TRACKERS:
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


def _refuse_unused_flags(form: str, *, fill: str | None, partial: bool, full_text: bool) -> None:
    """Raise UsageError for a flag that has no effect on this form."""
    from keju.interop.export import SUBMISSION, TABLES

    if form != SUBMISSION and (fill is not None or partial):
        flag = "--fill" if fill is not None else "--partial"
        raise UsageError("cli_only_submission", flag=flag, form=form)
    if form == SUBMISSION and full_text:
        raise UsageError("cli_submission_full_text")
    if full_text and form not in TABLES:
        raise UsageError("export_no_texts", form=form)


def _list_missing(missing: Sequence[str], fill: str | None) -> None:
    """Name the questions without an answer."""
    label = "export.missing_filled" if fill else "export.missing_empty"
    remark(label_text(label, n=len(missing), fill=fill))
    for sample_id in missing:
        note(f"  {sample_id}")
