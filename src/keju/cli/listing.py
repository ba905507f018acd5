"""``keju list``: what there is to choose from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from keju.cli import options
from keju.cli.arguments import StrictCommand
from keju.cli.kinds import MODEL_KINDS, Extra
from keju.cli.output import print_json, print_lines
from keju.cli.prepare import all_benchmarks
from keju.config import load as settings

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark

app = options.new_app()

What = Literal["benchmarks", "models", "protocols", "readers", "runs"]
Row = dict[str, Any]


@app.command(
    cls=StrictCommand,
    epilog=options.examples(
        "keju list benchmarks",
        "keju list protocols --benchmark bbh",
        "keju list runs --work-dir runs --json",
    ),
)
def list_(
    what: Annotated[
        What,
        typer.Argument(metavar="WHAT", help="One of: " + ", ".join(get_args(What)) + "."),
    ],
    benchmark: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Protocols or readers of this benchmark only.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    work_dir: options.WorkDir = None,
    as_json: options.Json = False,
) -> None:
    """List benchmarks, kinds of models, protocols, readers or stored runs."""
    from keju.errors import UsageError

    if benchmark is not None and what not in ("protocols", "readers"):
        raise UsageError(f"--benchmark is for protocols and readers, not for {what}")
    rows = _runs(work_dir) if what == "runs" else ROWS[what](benchmark)
    if as_json:
        print_json({what: rows})
        return
    _print(what, rows)


def _benchmarks(only: str | None) -> list[Row]:
    return [
        {
            "name": each.name,
            "title": each.title,
            "subsets": len(each.subset_names) or None,
            "protocol": each.default_protocol,
            "about": each.about,
        }
        for each in _chosen(only)
    ]


def _protocols(only: str | None) -> list[Row]:
    return [
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
        for each in _chosen(only)
        for name, protocol in each.protocols.items()
    ]


def _readers(only: str | None) -> list[Row]:
    return [
        {
            "benchmark": each.name,
            "reader": reader,
            "protocols": [n for n, p in each.protocols.items() if p.reader == reader],
        }
        for each in _chosen(only)
        for reader in each.reader_names
    ]


def _models(_: str | None) -> list[Row]:
    return [
        {
            "model": kind.spelling,
            "about": kind.about,
            "ready": kind.extra is None or kind.extra.installed,
            "needs": _needs(kind.extra),
        }
        for kind in MODEL_KINDS
    ]


def _needs(extra: Extra | None) -> str:
    return "" if extra is None or extra.installed else extra.remedy


def _runs(work_dir: str | None) -> list[Row]:
    from keju.runs.folder import list_runs

    return [
        {
            "run": run.id,
            "model": run.model,
            "benchmarks": run.benchmarks,
            "created": run.created,
            "complete": run.complete,
            "folder": str(run.folder),
        }
        for run in list_runs(str(settings.work_dir(work_dir)))
    ]


def _chosen(only: str | None) -> list[Benchmark]:
    from keju.benchmarks import registry

    return all_benchmarks() if only is None else [registry.get(only)]


ROWS: dict[str, Callable[[str | None], list[Row]]] = {
    "benchmarks": _benchmarks,
    "models": _models,
    "protocols": _protocols,
    "readers": _readers,
}


def _print(what: str, rows: list[Row]) -> None:
    from keju.report.table import Column, render_table

    if not rows:
        print_lines(f"no {what} yet")
        return
    columns = [Column(name, fold=name == "about") for name in rows[0]]
    render_table(columns, [[_cell(value) for value in row.values()] for row in rows])


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else value
