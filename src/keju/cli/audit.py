"""``keju audit``: likely faults in a stored run's scores; no model is asked."""

from __future__ import annotations

import sys

from keju.cli.command import command
from keju.cli.common import CommandOutput, is_brief, open_stored_run, reader_names


@command(
    "audit",
    "keju audit tuesday",
    "keju audit tuesday --reader robust --json",
    "keju audit tuesday --beside monday --beside other.jsonl",
    "keju audit tuesday --datasets bbh --beside bbh-outputs.jsonl",
)
def audit(
    run: str,
    exam: str | None,
    one_reader: str | None,
    other_runs: list[str] | None,
    data_dir: str | None,
    work_dir: str | None,
    verbose: bool,
) -> CommandOutput:
    """Read a stored run with all readers of its exams, and explain replies that were misread.

    The audit shows the score of each reader, the replies on which readers disagree, and suspicious
    replies by likely cause: cut off, refused, echoed options, a letter taken out of prose, a form
    that a reader does not know. It also compares the extracted labels with the gold ones. With
    --beside it lists the questions that several runs answer with the same wrong answer, because
    their gold answer may be wrong.
    """
    import msgspec

    from keju.reporting.audit import render_audit
    from keju.reporting.audit_summary import render_audit_summary
    from keju.results.audit import audit as audit_run
    from keju.runs.run import command_name

    stored = open_stored_run(run, work_dir)
    result = audit_run(
        stored,
        datasets=exam,
        readers=reader_names(one_reader),
        beside=other_runs or (),
        data_dir=data_dir,
        work_dir=work_dir,
    )

    def show() -> None:
        if not is_brief(verbose):
            render_audit(result)
        if sys.stdout.isatty():
            render_audit_summary(result, run=command_name(stored.folder))

    return CommandOutput(msgspec.to_builtins(result), show)
