"""``keju judge``: grades the answers of a stored run with a model."""

from __future__ import annotations

from typing import Any

from keju.cli.command import command
from keju.cli.common import CommandOutput, open_stored_run, print_lines, session_output
from keju.messages import label_text


@command(
    "judge",
    "keju judge tuesday --model NAME --api-url http://localhost:8000/v1",
    "keju judge tuesday --strategy llm --second OTHER --labelled graded.jsonl",
    """keju judge tuesday --judge '{"model": "NAME", "repeats": 3}' --json""",
    sets="judge model api_url api_key_var strategy repeats second labelled data_dir",
)
def judge(
    run: str, work_dir: str | None, no_report: bool, quiet: bool, verbose: bool, **settings: Any
) -> CommandOutput:
    """Grade the answers of a stored run with a model; the candidate is not asked again.

    Verdicts that the run has already are kept. Its results and report are written again; complete
    ones stay until the new grading is complete.

    Exit codes: 0 ok, 2 usage, 3 more than half without a grade, 4 incomplete, 5 endpoint,
    130 interrupted.
    """
    from keju.files import typed_path
    from keju.reporting.live import make_display
    from keju.stored_tasks import judge_stored

    finished = judge_stored(
        open_stored_run(run, work_dir),
        settings.pop("judge", None),
        settings,
        display=make_display(quiet=quiet),
        report=not no_report,
    )
    folder = label_text("next.folder", folder=typed_path(finished.folder))
    return session_output(finished, lambda: print_lines(folder), verbose=verbose)
