"""``keju modes``: C-Eval sat with and without a chain of thought, side by side."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keju.cli.command import command
from keju.cli.common import print_json, print_lines, stored_run
from keju.errors import UsageError

if TYPE_CHECKING:
    from keju.benchmarks.ceval.modes import ModesRow
    from keju.runs.manifest import Manifest, StoredExam
    from keju.runs.run import Run

BENCHMARK = "ceval"
ANSWER_ONLY, COT = "answer-only", "cot"
OTHER = {ANSWER_ONLY: COT, COT: ANSWER_ONLY}
OF_THE_MODE = ("mode", "decode")
"""Settings in which the two runs may differ."""


@command("modes", "keju modes monday-answer-only monday-cot")
def modes(answer_only: str, cot: str, work_dir: str | None, as_json: bool) -> None:
    """Knowledge or reasoning? Two C-Eval runs of a model, subject by subject.

    A subject that gains from a chain of thought is one of reasoning; one that does not is one of
    knowledge. The runs must be alike in all but the mode. Only questions that both graded are
    compared, one by one; a difference whose interval leaves out 0 is marked.
    """
    from keju.benchmarks.ceval.modes import compare_modes

    direct = _checked(stored_run(answer_only, work_dir), ANSWER_ONLY)
    reasoned = _checked(stored_run(cot, work_dir), COT)
    if unlike := difference_of(direct.manifest, reasoned.manifest):
        raise UsageError(f"the runs cannot be compared: {unlike}")
    found = compare_modes(_scores(direct), _scores(reasoned))
    if as_json:
        document = {
            "model": direct.manifest.model,
            "answer_only": direct.id,
            "cot": reasoned.id,
            "overall": found.overall._asdict(),
        }
        rows = {"subjects": found.subjects, "categories": found.categories}
        print_json(document | {key: [r._asdict() for r in own] for key, own in rows.items()})
        return
    _print("subject", [*found.subjects, found.overall])
    if found.categories:
        print_lines("")
        _print("category", found.categories)


def _checked(run: Run, mode: str) -> Run:
    """The same run, if it sat the exam in this mode."""
    found = mode_of(run.manifest)
    if found is None:
        raise UsageError(f"run '{run.id}' did not sit {BENCHMARK}")
    if found != mode:
        raise UsageError(
            f"run '{run.id}' sat {BENCHMARK} in mode {found}, not {mode}; "
            "the answer-only run comes first, then the one with a chain of thought"
        )
    return run


def _exam(manifest: Manifest) -> StoredExam | None:
    return next((exam for exam in manifest.benchmarks if exam.name == BENCHMARK), None)


def mode_of(manifest: Manifest) -> str | None:
    """In which mode a run sat C-Eval; None if it did not."""
    exam = _exam(manifest)
    return None if exam is None else str(exam.settings.get("mode"))


def difference_of(first: Manifest, second: Manifest) -> str:
    """The first thing beside the mode in which two runs of C-Eval differ; empty if none does."""
    one, other = _conditions(first), _conditions(second)
    for name in dict.fromkeys([*one, *other]):
        if one.get(name) != other.get(name):
            return f"{name} is {one.get(name)!r} in the first and {other.get(name)!r} in the second"
    return ""


def _conditions(manifest: Manifest) -> dict[str, Any]:
    """What two runs must have in common, the weightiest first."""
    exam = _exam(manifest)
    assert exam is not None
    own = {key: value for key, value in exam.settings.items() if key not in OF_THE_MODE}
    config = manifest.config
    given = config.get("dataset_args", {})
    shuffled = any(args.get("shuffle") for name, args in given.items() if _is_ceval(name))
    drawn = shuffled or own.get("shuffle_choices") or own.get("few_shot_random")
    return {
        "model": manifest.model,
        **own,
        "protocol": exam.protocol.name,
        "shuffle": shuffled,
        "seed": config.get("seed") if drawn else None,
    }


def _is_ceval(name: str) -> bool:
    from keju.benchmarks.registry import ALIASES

    return ALIASES.get(name, name) == BENCHMARK


def _scores(run: Run) -> dict[str, float]:
    """The score of each graded question of a run: the mean over its repeats and rotations.

    Errors and what has no grade are left out.
    """
    values: dict[str, list[float]] = defaultdict(list)
    for _, record in run.answers():
        if record.bench != BENCHMARK or not record.readings:
            continue
        score = record.readings[0].score
        if score.outcome not in ("error", "ungraded"):
            values[record.id.partition("#")[0]].append(score.value)
    return {name: sum(own) / len(own) for name, own in values.items()}


def mode_hint(folder: Path) -> str | None:
    """A line with the command that compares a run with its counterpart in the other mode, if any.

    The counterpart is the newest complete run beside `folder` that is alike in all but the mode.
    """
    from keju.runs.run import Run, list_runs

    manifest = Run(folder).manifest
    mode = mode_of(manifest)
    if mode is None or mode not in OTHER:
        return None
    for run in reversed(list_runs(str(folder.parent))):
        other = run.manifest
        if other.complete and mode_of(other) == OTHER[mode] and not difference_of(manifest, other):
            pair = {mode: folder, OTHER[mode]: run.folder}
            line = f"keju modes {pair[ANSWER_ONLY]} {pair[COT]}"
            return f"both modes of C-Eval are there, side by side: {line}"
    return None


def _print(kind: str, rows: list[ModesRow]) -> None:
    from keju.report.format import percent
    from keju.report.table import Column, render_table

    columns = [
        Column(kind),
        Column("title"),
        Column("shared", "right"),
        Column("answer-only", "right"),
        Column("chain of thought", "right"),
        Column("difference", "right"),
        Column("95 % interval", "right"),
        Column("beyond noise"),
    ]
    cells = [
        [
            row.subject,
            row.title if row.title != row.subject else "",
            row.n,
            percent(row.answer_only),
            percent(row.cot),
            f"{100 * row.difference:+.2f}",
            "" if row.ci95 is None else f"{100 * row.ci95.low:+.2f} to {100 * row.ci95.high:+.2f}",
            "yes" if row.apart else "",
        ]
        for row in rows
    ]
    render_table(columns, cells)
