"""``keju list``: what there is to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keju.cli.command import command
from keju.cli.common import Output, all_benchmarks, print_lines
from keju.errors import UsageError

if TYPE_CHECKING:
    from keju.runs.run import Run

Row = dict[str, Any]


@command(
    "list",
    "keju list benchmarks",
    "keju list protocols --benchmark bbh",
    "keju list subsets --benchmark bbh",
    "keju list runs --work-dir runs --json",
)
def list_(what: str, benchmark: str | None, work_dir: str | None) -> Output:
    """List benchmarks, their subsets, kinds of models, protocols, readers or stored runs."""
    if benchmark is not None and what not in ("protocols", "readers", "subsets"):
        raise UsageError("cli_benchmark_flag", what=what)
    if what == "models":
        from keju.models.registry import all_kinds

        rows = [
            {
                "model": kind.spelling,
                "about": kind.about,
                "ready": kind.extra is None or kind.extra.installed,
                "needs": kind.extra.remedy if kind.extra and not kind.extra.installed else "",
            }
            for kind in all_kinds()
        ]
    elif what == "runs":
        from keju.config.load import runs_folder
        from keju.runs.run import list_runs

        rows = [_of_run(run) for run in list_runs(str(runs_folder(work_dir)))]
    else:
        rows = _of_benchmarks(what, benchmark)

    def show() -> None:
        from keju.report.table import Column, render_table

        if not rows:
            print_lines(f"no {what} yet")
            return
        columns = [Column(name, fold=name == "about") for name in rows[0]]
        render_table(columns, [[_cell(value) for value in row.values()] for row in rows])

    return Output({what: rows}, show)


def _of_run(run: Run) -> Row:
    """One stored run with its headline scores; those of a run without results are left out."""
    from keju.errors import KejuError
    from keju.results.schema import from_document

    try:
        entries = from_document(run.results()).benchmarks
    except (KejuError, OSError):
        entries = ()
    exams = run.manifest.benchmarks
    headlines = [entry.metrics.get(entry.headline) for entry in entries]
    return {
        "run": run.id,
        "model": run.manifest.model,
        "benchmarks": [exam.name for exam in exams],
        "protocols": [exam.protocol.name for exam in exams],
        "scores": [metric.value if metric else None for metric in headlines],
        "n": [entry.n for entry in entries],
        "created": run.manifest.created,
        "complete": run.manifest.complete,
        "folder": str(run.folder),
    }


def _of_benchmarks(what: str, only: str | None) -> list[Row]:
    from keju.benchmarks import registry

    rows: list[Row] = []
    for each in all_benchmarks() if only is None else [registry.get(only)]:
        if what == "benchmarks":
            rows.append(
                {
                    "name": each.name,
                    "title": each.title,
                    "subsets": len(each.subset_names) or None,
                    "protocol": each.default_protocol,
                    "about": each.about,
                }
            )
        elif what == "protocols":
            rows += [
                {
                    "benchmark": each.name,
                    "protocol": name,
                    "version": protocol.version,
                    "default": name == each.default_protocol,
                    "reader": protocol.reader,
                    "headline": protocol.headline,
                    "decode": protocol.decode,
                    "about": protocol.about,
                }
                for name, protocol in each.protocols.items()
            ]
        elif what == "subsets":
            rows += [
                {
                    "benchmark": each.name,
                    "subset": subset,
                    "questions": each.rows.get(subset),
                    "about": each.subset_about.get(subset, ""),
                }
                for subset in each.subset_names
            ]
        else:
            rows += [
                {
                    "benchmark": each.name,
                    "reader": reader,
                    "protocols": [n for n, p in each.protocols.items() if p.reader == reader],
                }
                for reader in each.reader_names
            ]
    return rows


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_word, value)) if isinstance(value, list) else value


def _word(value: Any) -> str:
    from keju.report.format import percent

    return percent(value) if value is None or isinstance(value, float) else str(value)
