"""``keju score``: scores a stored run again, or a file of predictions, without asking a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from keju.cli.command import command
from keju.cli.common import (
    CommandOutput,
    args_of,
    find_exam,
    find_problem,
    open_stored_run,
    reader_names,
    show_results,
)
from keju.errors import UsageError


@command(
    "score",
    "keju score tuesday --reader robust",
    "keju score tuesday --datasets bbh --reader paper,robust",
    "keju score --datasets bbh --predictions outputs.jsonl.gz --protocol paper",
    "keju score --datasets mmlu_pro --predictions outputs.jsonl --reader l1,l2 --json",
    sets="dataset_args",
)
def score(
    run: str | None,
    dataset: str | None,
    predictions: str | None,
    protocol: str | None,
    reader: str | None,
    gold: Literal["recorded", "current"] | None,
    data_dir: str | None,
    work_dir: str | None,
    jobs: int | None,
    unsafe_no_sandbox: bool,
    verbose: bool,
    dataset_args: dict[str, Any] | None = None,
) -> CommandOutput:
    """Score a stored run again, or a file of predictions; no model is asked.

    Exit codes: 0 ok, 2 usage, 3 more than half of the replies have no grade.
    """
    from keju.config.load import data_folder
    from keju.reporting.live import make_display
    from keju.results.predictions import ProgramSettings
    from keju.results.schema import to_document
    from keju.results.score import score_predictions, score_run

    programs = ProgramSettings(bool(unsafe_no_sandbox), jobs, make_display(quiet=False))
    if run is not None:
        for flag, value in (
            ("--predictions", predictions),
            ("--protocol", protocol),
            ("--gold", gold),
            ("--dataset-args", dataset_args),
        ):
            if value is not None:
                raise UsageError("cli_not_with_run", flag=flag)
        stored = open_stored_run(run, work_dir)
        readers = reader_names(reader)
        results = score_run(
            stored, readers=readers, data_dir=data_dir, exam=dataset, programs=programs
        )
    elif dataset is None or predictions is None:
        raise UsageError("cli_nothing_to_score")
    else:
        dataset = find_exam(dataset, data_folder(data_dir))
        results = score_predictions(
            dataset,
            Path(predictions),
            protocol=protocol,
            readers=reader_names(reader),
            data_dir=data_folder(data_dir),
            dataset_args=args_of(dataset, dataset_args or {}),
            gold=gold,
            programs=programs,
        )
    return CommandOutput(
        to_document(results),
        lambda: show_results(results, verbose=verbose),
        *find_problem(results),
    )
