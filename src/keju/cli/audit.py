"""``keju audit``: likely faults in a stored run's scores; no model is asked."""

from __future__ import annotations

from keju.cli.command import command
from keju.cli.common import CommandOutput, open_stored_run, reader_names


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
) -> CommandOutput:
    """Read a stored run with all readers of its exams, and say why replies were not well read.

    Shows the score under each reader, where they disagree, and every reply that is worth a look
    under its likely cause: cut off, refused, echoed options, a letter taken out of prose, a form
    that a reader does not know. Also the labels read against the gold ones, and with --beside the
    questions that several runs fail with the same answer, whose gold answer may be wrong.
    """
    import msgspec

    from keju.reporting.audit import render_audit
    from keju.results.audit import audit as audit_run

    stored = open_stored_run(run, work_dir)
    result = audit_run(
        stored,
        datasets=exam,
        readers=reader_names(one_reader),
        beside=other_runs or (),
        data_dir=data_dir,
        work_dir=work_dir,
    )
    return CommandOutput(msgspec.to_builtins(result), lambda: render_audit(result))
