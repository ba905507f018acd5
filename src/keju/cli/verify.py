"""``keju verify``: scores recorded outputs whose scores are known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from keju.cli.command import command
from keju.cli.common import print_json, print_lines, print_sentences
from keju.errors import UsageError
from keju.messages import label_text

if TYPE_CHECKING:
    from keju.results.verify import VerifiedSet

DIFFERENT = 1
"""The exit code if a figure differs from the known one."""


@command("verify", "keju verify --data-dir data", "keju verify --data-dir data --json")
def verify(data_dir: str | None, show_all: bool, as_json: bool) -> int:
    """Score every recorded set in DATA/golden and compare it with its known scores.

    One line sums up the figures of all subsets unless one of them differs. Exit codes: 0 all as
    known, 1 a figure differs, 2 nothing to verify.
    """
    from keju.config.load import data_folder
    from keju.results.verify import verify_all

    folder = data_folder(data_dir)
    if folder is None:
        raise UsageError("cli_verify_needs_data")
    results = []
    for verified in verify_all(Path(folder)):
        results.append(verified)
        if not as_json:
            print_lines(*_render_lines(verified, show_all=show_all))
    is_ok = all(verified.ok for verified in results)
    if as_json:
        documents = [
            {
                "set": verified.recorded.label,
                "predictions": str(verified.recorded.predictions),
                "golden": str(verified.recorded.golden),
                "ok": verified.ok,
                "checks": [
                    {"what": c.label, "expected": c.expected, "got": c.actual, "ok": c.ok}
                    for c in verified.checks
                ],
            }
            for verified in results
        ]
        print_json({"ok": is_ok, "sets": documents})
    else:
        difference_count = sum(not check.ok for verified in results for check in verified.checks)
        total = sum(len(verified.checks) for verified in results)
        verdict = (
            label_text("verify.some", n=difference_count)
            if difference_count
            else label_text("verify.all_ok")
        )
        print_sentences(
            label_text("verify.total", sets=len(results), figures=total, verdict=verdict)
        )
    return 0 if is_ok else DIFFERENT


def _render_lines(verified: VerifiedSet, *, show_all: bool) -> list[str]:
    """Return a line for each figure of the whole set, and one line for all subsets that agree."""
    label = verified.recorded.label
    displayed_checks = [
        check for check in verified.checks if show_all or not check.ok or not check.is_of_subset
    ]
    hidden_count = len(verified.checks) - len(displayed_checks)
    lines = [
        label_text(
            "verify.line",
            label=label,
            what=check.label,
            expected=_format_number(check.expected),
            got=_format_number(check.actual),
            verdict=label_text("verify.ok" if check.ok else "verify.different"),
        )
        for check in displayed_checks
    ]
    return lines + (
        [label_text("verify.hidden", label=label, n=hidden_count)] if hidden_count else []
    )


def _format_number(value: float | None) -> str:
    if value is None:
        return label_text("verify.nothing")
    return f"{int(value):,}" if value == int(value) else f"{value:.8g}"
