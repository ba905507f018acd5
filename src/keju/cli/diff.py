"""``keju diff``: in what two runs differ, and what of it makes their scores incomparable."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from keju.cli.command import command
from keju.cli.common import Output, exam_args


@command(
    "diff",
    "keju diff monday tuesday",
    "keju diff monday outputs/20260101_120000 --json",
    sets="dataset_args",
)
def diff(
    first: str,
    second: str,
    exam: str | None,
    one_reader: str | None,
    gold: Literal["recorded", "current"] | None,
    protocol: str | None,
    data_dir: str | None,
    work_dir: str | None,
    dataset_args: dict[str, Any] | None = None,
) -> Output:
    """Say in what two runs, logs or files differ, field by field, the weightiest first.

    A field that makes their scores incomparable is marked. No question is compared.

    Exit codes: 0 ok, also where they are not comparable, 2 usage.
    """
    from keju.report.compare import render_unlike
    from keju.results.compare import find_mismatches

    found = find_mismatches(
        first,
        second,
        datasets=exam,
        reader=one_reader,
        gold=gold,
        protocol=protocol,
        dataset_args=exam_args(exam, dataset_args),
        data_dir=data_dir,
        work_dir=work_dir,
    )
    document = {
        "comparable": not any(own.decisive for each in found for own in each.unlike),
        "exams": [msgspec.to_builtins(each) for each in found],
    }
    return Output(document, lambda: render_unlike(found))
