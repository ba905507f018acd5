"""``keju score``: score a stored run again, or a file of predictions, without asking any model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from keju.cli import options
from keju.cli.arguments import StrictCommand
from keju.cli.output import print_json
from keju.cli.prepare import own_args
from keju.config import load as settings
from keju.errors import UsageError

app = options.new_app()

Gold = Literal["recorded", "current"]


@app.command(
    cls=StrictCommand,
    epilog=options.examples(
        "keju score tuesday --reader robust",
        "keju score --datasets bbh --predictions outputs.jsonl.gz --protocol paper",
        "keju score --datasets mmlu_pro --predictions outputs.jsonl --reader l1,l2 --json",
    ),
)
def score(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A run: its folder or its id.")
    ] = None,
    datasets: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Benchmark of the predictions.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    predictions: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="JSON Lines (or .gz): the sample's key and 'output'.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    protocol: options.Protocol = None,
    reader: Annotated[
        str | None,
        typer.Option(
            metavar="R,R2",
            help="Readers to score with; several stand side by side.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    gold: Annotated[
        Gold | None,
        typer.Option(
            help="Which gold answers count where a row carries its own.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    dataset_args: options.DatasetArgs = None,
    data_dir: options.DataDir = None,
    work_dir: options.WorkDir = None,
    as_json: options.Json = False,
) -> None:
    """Score a stored run again, or a file of predictions; no model is asked."""
    readers = [name for name in reader.split(",") if name] if reader is not None else None
    if run is not None:
        given = {
            "--datasets": datasets,
            "--predictions": predictions,
            "--protocol": protocol,
            "--gold": gold,
            "--dataset-args": dataset_args,
        }
        results = _score_run(run, readers, data_dir, work_dir, given)
    elif datasets is None or predictions is None:
        raise UsageError("give a RUN, or both --datasets NAME and --predictions FILE")
    else:
        from keju.results.score import score_predictions

        results = score_predictions(
            datasets,
            Path(predictions),
            protocol=protocol,
            readers=readers,
            data_dir=settings.data_dir(data_dir),
            dataset_args=own_args(datasets, dataset_args),
            gold=gold,
        )
    _print(results, as_json=as_json)


def _score_run(
    run: str,
    readers: list[str] | None,
    data_dir: str | None,
    work_dir: str | None,
    given: dict[str, str | None],
) -> dict[str, Any]:
    for flag, value in given.items():
        if value is not None:
            raise UsageError(f"{flag} is for a file of predictions; a RUN brings its own")
    from keju.results.score import score_run
    from keju.runs.folder import find_run

    folder = find_run(run, str(settings.work_dir(work_dir)))
    return score_run(folder, readers=readers, data_dir=data_dir)


def _print(results: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(results)
        return
    from keju.report.terminal import render_results

    render_results(results)
