"""``keju list``: lists benchmarks, models, protocols, readers, runs and subsets."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.cli.command import command
from keju.cli.common import (
    CommandOutput,
    all_benchmarks,
    load_exam,
    note,
    note_step,
    print_lines,
    print_steps,
)
from keju.cli.options import OPTIONS
from keju.errors import UsageError
from keju.messages import catalogue, current_language, helped, label_text, labels

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark
    from keju.messages import Language
    from keju.runs.run import Run

Row = dict[str, Any]
NAMES = {
    "benchmarks": ("name",),
    "models": ("model",),
    "protocols": ("benchmark", "protocol"),
    "readers": ("benchmark", "reader"),
    "runs": ("run",),
    "subsets": ("benchmark", "subset"),
}
"""The columns that identify a row of each list."""
SPARE_COLUMNS = {"folder": 2, "protocols": 1}
"""Columns that a narrow table of runs may drop, the highest number first. The id also names the
folder."""


@command(
    "list",
    "keju list benchmarks",
    "keju list protocols --benchmark bbh",
    "keju list subsets --benchmark bbh",
    "keju list benchmarks --lm-eval hellaswag",
    "keju list runs --work-dir runs --json",
)
def list_(
    what: str | None,
    benchmark: str | None,
    lm_eval: str | None,
    include_path: str | None,
    work_dir: str | None,
) -> CommandOutput:
    """List benchmarks, their subsets, kinds of models, protocols, readers or stored runs.

    Without an argument, it says what can be listed. A legend of the columns follows on stderr.
    """
    if lm_eval is not None:
        return _list_lm_eval(what, benchmark, lm_eval, include_path)
    if what is None:
        if benchmark is not None or work_dir is not None:
            raise UsageError("cli_list_what")
        return _list_kinds()
    if benchmark is not None and what not in ("protocols", "readers", "subsets"):
        raise UsageError("cli_benchmark_flag", what=what)
    arms: list[list[str]] = []
    exams: list[Benchmark] = []
    if what == "models":
        from keju.models.registry import all_kinds

        rows = [
            {
                "model": kind.spelling,
                "about": kind.about,
                "ready": kind.extra is None or kind.extra.installed,
                "needs": kind.extra.remedy if kind.extra and not kind.extra.installed else "",
            }
            for kind in all_kinds()
        ]
    elif what == "runs":
        from keju.config.load import runs_folder
        from keju.runs.run import list_runs

        runs_with_arms = [_describe_run(run) for run in list_runs(str(runs_folder(work_dir)))]
        rows, arms = [row for row, _ in runs_with_arms], [names for _, names in runs_with_arms]
    else:
        from keju.benchmarks import registry

        exams = all_benchmarks() if benchmark is None else [registry.get(benchmark)]
        rows = (
            _list_readers(exams) if what == "readers" else _list_benchmarks(what, exams, benchmark)
        )

    def show() -> None:
        from keju.reporting.table import TableColumn, render_table

        if not rows:
            print_lines(_describe_empty_list(what, work_dir))
            return
        spare_columns = SPARE_COLUMNS if what == "runs" else {}
        columns = [
            TableColumn(
                label_text(f"column.{name}"),
                fold=name == "about",
                spare=spare_columns.get(name, 0),
                id=name in NAMES[what],
            )
            for name in rows[0]
        ]
        if what == "runs":
            displayed_rows = [
                _add_arm_names(*row_and_arms) for row_and_arms in zip(rows, arms, strict=True)
            ]
        elif what == "readers":
            exam_names = [
                {"benchmark": row["benchmark"] or label_text("list.any_exam")} for row in rows
            ]
            translated_rows = _list_readers(exams, current_language())
            displayed_rows = [
                row | exam for row, exam in zip(translated_rows, exam_names, strict=True)
            ]
        else:
            displayed_rows = [
                row | {"about": _describe_row(what, row)} if "about" in row else row for row in rows
            ]
        render_table(
            columns, [[_format_cell(*cell) for cell in row.items()] for row in displayed_rows]
        )
        note("")
        step = _next_step(what, rows, benchmark)
        note_step(label_text(f"list.note.{what}"), step.command)
        if step.lacks:
            note(label_text("list.needs_data", name=step.lacks))

    return CommandOutput({what: rows}, show)


def _list_kinds() -> CommandOutput:
    """Return what can be listed."""
    kinds = OPTIONS["what"].kind
    about = {f"keju list {kind}": label_text(f"list.{kind}") for kind in kinds}
    lists = [{"what": kind, "about": labels("en")[f"list.{kind}"]} for kind in kinds]
    return CommandOutput(
        {"lists": lists}, lambda: print_steps([label_text("list.overview")], about)
    )


def _list_lm_eval(
    what: str | None, benchmark: str | None, pattern: str, include_path: str | None
) -> CommandOutput:
    """Return the tasks of lm-eval whose names match a pattern."""
    if what not in (None, "benchmarks") or benchmark is not None:
        raise UsageError("cli_lm_eval_flag", what=what or "benchmarks")
    from keju.benchmarks import lm_eval_tasks
    from keju.config.exams import LM_EVAL

    names = lm_eval_tasks.list_names(pattern, [include_path] if include_path else [])
    rows: list[Row] = [
        {"name": f"{LM_EVAL}{entry.name}", "kind": entry.kind, "output": entry.output}
        for entry in names
    ]

    def show() -> None:
        from keju.reporting.table import TableColumn, render_table

        if not rows:
            print_lines(label_text("list.no_rows", what=pattern))
            return
        columns = [TableColumn(label_text(f"column.{name}"), id=name == "name") for name in rows[0]]
        render_table(columns, [[_format_cell(*cell) for cell in row.items()] for row in rows])
        note("")
        example = f"keju eval --model scripted --datasets {rows[0]['name']}"
        note_step(label_text("list.note.lm_eval"), example)

    return CommandOutput({"benchmarks": rows}, show)


def _describe_row(what: str, row: Row) -> str:
    """Return the description of a row, in the terminal's language if there is a translation."""
    english = str(row["about"])
    match what:
        case "benchmarks":
            return catalogue(current_language()).get(f"about_exam_{row['name']}") or english
        case "protocols":
            return helped(f"protocol.{row['benchmark']}.{row['protocol']}", english)
        case "subsets":
            return helped(f"subset.{row['benchmark']}.{row['subset']}", english)
    return helped(f"kind.{row['model'].partition(':')[0]}", english)


def _describe_empty_list(what: str, work_dir: str | None) -> str:
    """Return the text for an empty list."""
    if what != "runs":
        return label_text("list.no_rows", what=what)
    from keju.cli.help import DEMO_COMMAND
    from keju.config.load import runs_folder

    return label_text("list.no_runs", folder=runs_folder(work_dir), command=DEMO_COMMAND)


class SuggestedCommand(NamedTuple):
    """A command for a listed row, to paste."""

    command: str
    lacks: str = ""
    """The exam whose missing data it needs. The command has ``DIR`` in place of its folder."""


def _next_step(what: str, rows: list[Row], requested_benchmark: str | None) -> SuggestedCommand:
    """Return the next command for a listed row, preferably for an exam with data on this machine.

    `requested_benchmark` is the benchmark of the list, as the user wrote it.
    """
    first_row, model = rows[0], "keju eval --model scripted --datasets"
    match what:
        case "readers":
            return SuggestedCommand(f"keju score RUN --reader {first_row['reader']}")
        case "models":
            return SuggestedCommand(f"{model} demo")
        case "runs":
            return SuggestedCommand(
                _command_for_run(Path(rows[-1]["folder"]), complete=rows[-1]["complete"])
            )
    names = list(dict.fromkeys(row[NAMES[what][0]] for row in rows))
    ready = next(filter(_has_data, names), None) if requested_benchmark is None else None
    row = next(row for row in rows if row[NAMES[what][0]] == (ready or names[0]))
    exam = shlex.quote(requested_benchmark or row[NAMES[what][0]])
    match what:
        case "subsets":
            command = f"{model} {exam} --dataset-args {_subset_settings(requested_benchmark, row)}"
        case "protocols":
            command = f"keju show {exam} --protocol {row['protocol']}"
        case _:
            command = f"keju show {exam}"
    if ready or (requested_benchmark is not None and _has_data(requested_benchmark)):
        return SuggestedCommand(command)
    return SuggestedCommand(f"{command} --data-dir DIR", names[0])


def _subset_settings(requested_benchmark: str | None, row: Row) -> str:
    """Return the settings that select one subset; as JSON if the exam's name is not a key."""
    from keju.cli.unknown import KEY
    from keju.config.exams import setting_names

    exam = setting_names([requested_benchmark or row["benchmark"]])[0]
    if KEY.fullmatch(exam):
        return shlex.quote(f"{exam}.subset_list=[{row['subset']}]")
    return shlex.quote(json.dumps({exam: {"subset_list": [row["subset"]]}}, ensure_ascii=False))


def _has_data(name: str) -> bool:
    """Whether an exam's data is on this machine."""
    from keju.benchmarks import registry
    from keju.sources.folder import is_data_available

    benchmark = registry.get(name)
    return is_data_available(benchmark.name, benchmark.layout)


def _command_for_run(folder: Path, *, complete: bool) -> str:
    """Return the command that continues an unfinished run, or shows a finished one."""
    from keju.config.address import key_flag
    from keju.files import typed_path
    from keju.runs.manifest import MANIFEST, Manifest
    from keju.runs.run import command_name

    if complete:
        return f"keju view {command_name(folder)}"
    stored = Manifest.read(folder)
    key = key_flag(stored.config.get("model"), has_key=bool(stored.endpoint.get("has_key")))
    return f"keju eval --config {shlex.quote(typed_path(folder / MANIFEST))} --resume{key}"


def _add_arm_names(row: Row, arms: list[str]) -> Row:
    """Return a stored run with the arm before each score, if it has arms: ``calc 40.00 %``."""
    pairs = zip(arms, row["scores"], strict=True)
    return row | {
        "scores": [f"{arm} {_format_word(score)}" if arm else score for arm, score in pairs]
    }


def _describe_run(run: Run) -> tuple[Row, list[str]]:
    """Return one stored run with its headline scores, and the arms of these scores.

    A run without results has no scores.
    """
    from keju.errors import KejuError
    from keju.results.schema import from_document

    try:
        entries = from_document(run.results()).benchmarks
    except (KejuError, OSError):
        entries = ()
    exams = run.manifest.benchmarks
    headlines = [entry.metrics.get(entry.headline) for entry in entries]
    row = {
        "run": run.id,
        "model": run.manifest.model,
        "benchmarks": [exam.name for exam in exams],
        "protocols": [exam.protocol.name for exam in exams],
        "scores": [metric.value if metric else None for metric in headlines],
        "n": [entry.n for entry in entries],
        "created": run.manifest.created,
        "complete": run.manifest.complete,
        "folder": str(run.folder),
    }
    return row, [entry.arm for entry in entries]


def _list_readers(exams: list[Benchmark], language: Language = "en") -> list[Row]:
    """Return the readers of each exam, then the common readers that every exam accepts.

    For a single exam, common readers with the name of an exam's reader are left out.
    """
    from keju.benchmarks.prepare import make_option_readers, make_plain_readers
    from keju.messages import text_of

    rows = [
        {
            "benchmark": exam.name,
            "reader": name,
            "protocols": [n for n, protocol in exam.protocols.items() if protocol.reader == name],
            "default": exam.protocols[exam.default_protocol].reader == name,
            "about": text_of(reader.about, {}, language),
        }
        for exam in exams
        for name, reader in exam.readers.items()
    ]
    rules = make_option_readers()
    rules += make_plain_readers(rules[0])
    exam_readers = exams[0].readers if len(exams) == 1 else {}
    return rows + [
        {
            "benchmark": "",
            "reader": rule.name,
            "protocols": [],
            "default": False,
            "about": text_of(rule.about, {}, language),
        }
        for rule in rules
        if rule.name not in exam_readers
    ]


def _list_benchmarks(
    what: str, exams: list[Benchmark], requested_benchmark: str | None
) -> list[Row]:
    rows: list[Row] = []
    for benchmark in exams:
        if what == "benchmarks":
            rows.append(
                {
                    "name": benchmark.name,
                    "title": benchmark.title,
                    "subsets": len(benchmark.subset_names) or None,
                    "protocol": benchmark.default_protocol,
                    "about": benchmark.about,
                }
            )
        elif what == "protocols":
            rows += [
                {
                    "benchmark": benchmark.name,
                    "protocol": name,
                    "version": protocol.version,
                    "default": name == benchmark.default_protocol,
                    "reader": protocol.reader,
                    "headline": protocol.headline,
                    "decode": protocol.decode,
                    "about": protocol.about,
                }
                for name, protocol in benchmark.protocols.items()
            ]
        else:
            counts = {subset: benchmark.rows.get(subset) for subset in benchmark.subset_names}
            # the questions of the exam have them
            if requested_benchmark is not None and not counts:
                counts = {
                    subset.name: len(subset) for subset in load_exam(requested_benchmark).subsets
                }
            rows += [
                {
                    "benchmark": benchmark.name,
                    "subset": subset,
                    "questions": count,
                    "about": benchmark.subset_about.get(subset, ""),
                }
                for subset, count in counts.items()
            ]
    return rows


def _format_cell(name: str, value: Any) -> Any:
    if name == "created":
        from keju.reporting.format import moment

        return moment(value)
    if isinstance(value, bool):
        return label_text("yes" if value else "no")
    return (
        label_text("list_separator").join(map(_format_word, value))
        if isinstance(value, list)
        else value
    )


def _format_word(value: Any) -> str:
    from keju.reporting.format import count, percent

    if isinstance(value, int):
        return count(value)
    return percent(value) if value is None or isinstance(value, float) else str(value)
