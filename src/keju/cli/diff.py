"""``keju diff``: the differences between two runs, and which make their scores incomparable."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from keju.cli.command import command
from keju.cli.common import CommandOutput, exam_args


@command(
    "diff",
    "keju diff monday tuesday",
    "keju diff monday outputs/20260101_120000 --json",
    sets="dataset_args",
)
def diff(
    left_source: str,
    right_source: str,
    exam: str | None,
    one_reader: str | None,
    gold: Literal["recorded", "current"] | None,
    protocol: str | None,
    data_dir: str | None,
    work_dir: str | None,
    dataset_args: dict[str, Any] | None = None,
) -> CommandOutput:
    """List the fields in which two runs, logs or files differ, the most important first.

    A field that makes their scores incomparable is marked. No question is compared.

    Exit codes: 0 ok, even if they are not comparable, 2 usage.
    """
    from keju.reporting.compare import render_unlike
    from keju.results.compare import find_mismatches

    differences = find_mismatches(
        left_source,
        right_source,
        datasets=exam,
        reader=one_reader,
        gold=gold,
        protocol=protocol,
        dataset_args=exam_args(exam, dataset_args),
        data_dir=data_dir,
        work_dir=work_dir,
    )
    document = {
        "comparable": not any(
            field.decisive for difference in differences for field in difference.unlike
        ),
        "exams": [msgspec.to_builtins(difference) for difference in differences],
    }
    return CommandOutput(document, lambda: render_unlike(differences))
