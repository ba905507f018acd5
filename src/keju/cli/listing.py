"""``keju list``: what there is to choose from."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.cli.command import command
from keju.cli.common import (
    Output,
    all_benchmarks,
    exam_for,
    note,
    note_step,
    print_lines,
    print_steps,
)
from keju.cli.options import OPTIONS
from keju.errors import UsageError
from keju.messages import catalogue, helped, labels, said, spoken

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
"""The columns that name a row of each list."""
SPARED = {"folder": 2, "protocols": 1}
"""What a narrow table of runs can spare, the largest first: the run's id names its folder too."""


@command(
    "list",
    "keju list benchmarks",
    "keju list protocols --benchmark bbh",
    "keju list subsets --benchmark bbh",
    "keju list runs --work-dir runs --json",
)
def list_(what: str | None, benchmark: str | None, work_dir: str | None) -> Output:
    """List benchmarks, their subsets, kinds of models, protocols, readers or stored runs.

    Alone it says what can be listed. What the columns mean is said below a table, on stderr.
    """
    if what is None:
        if benchmark is not None or work_dir is not None:
            raise UsageError("cli_list_what")
        kinds = OPTIONS["what"].kind
        about = {f"keju list {kind}": said(f"list.{kind}") for kind in kinds}
        lists = [{"what": kind, "about": labels("en")[f"list.{kind}"]} for kind in kinds]
        return Output({"lists": lists}, lambda: print_steps([said("list.overview")], about))
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

        found = [_of_run(run) for run in list_runs(str(runs_folder(work_dir)))]
        rows, arms = [row for row, _ in found], [names for _, names in found]
    else:
        from keju.benchmarks import registry

        exams = all_benchmarks() if benchmark is None else [registry.get(benchmark)]
        rows = _of_readers(exams) if what == "readers" else _of_benchmarks(what, exams, benchmark)

    def show() -> None:
        from keju.report.table import Column, render_table

        if not rows:
            print_lines(_nothing(what, work_dir))
            return
        spared = SPARED if what == "runs" else {}
        columns = [
            Column(
                said(f"column.{name}"),
                fold=name == "about",
                spare=spared.get(name, 0),
                id=name in NAMES[what],
            )
            for name in rows[0]
        ]
        if what == "runs":
            shown = [_with_arms(*each) for each in zip(rows, arms, strict=True)]
        elif what == "readers":
            named = [{"benchmark": row["benchmark"] or said("list.any_exam")} for row in rows]
            told = _of_readers(exams, spoken())
            shown = [row | exam for row, exam in zip(told, named, strict=True)]
        else:
            shown = [row | {"about": _about(what, row)} if "about" in row else row for row in rows]
        render_table(columns, [[_cell(*item) for item in row.items()] for row in shown])
        note("")
        step = _next_step(what, rows, benchmark)
        note_step(said(f"list.note.{what}"), step.command)
        if step.lacks:
            note(said("list.needs_data", name=step.lacks))

    return Output({what: rows}, show)


def _about(what: str, row: Row) -> str:
    """What is said of a row, in the terminal's language where its room has words for it."""
    english = str(row["about"])
    match what:
        case "benchmarks":
            return catalogue(spoken()).get(f"about_exam_{row['name']}") or english
        case "protocols":
            return helped(f"protocol.{row['benchmark']}.{row['protocol']}", english)
        case "subsets":
            return helped(f"subset.{row['benchmark']}.{row['subset']}", english)
    return helped(f"kind.{row['model'].partition(':')[0]}", english)


def _nothing(what: str, work_dir: str | None) -> str:
    """What to say in place of an empty table."""
    if what != "runs":
        return said("list.no_rows", what=what)
    from keju.cli.help import TRYING
    from keju.config.load import runs_folder

    return said("list.no_runs", folder=runs_folder(work_dir), command=TRYING)


class Step(NamedTuple):
    """A command that does something with what was listed, and can be pasted."""

    command: str
    lacks: str = ""
    """The exam whose data it needs and nobody finds here: its folder stands as ``DIR``."""


def _next_step(what: str, rows: list[Row], asked: str | None) -> Step:
    """What to do next with a row that was listed, of an exam whose data is at hand if one is.

    `asked` is the one benchmark that the list is of, as it was written.
    """
    first, model = rows[0], "keju eval --model scripted --datasets"
    match what:
        case "readers":
            return Step(f"keju score RUN --reader {first['reader']}")
        case "models":
            return Step(f"{model} demo")
        case "runs":
            return Step(_of_newest(Path(rows[-1]["folder"]), complete=rows[-1]["complete"]))
    names = list(dict.fromkeys(row[NAMES[what][0]] for row in rows))
    ready = next(filter(_at_hand, names), None) if asked is None else None
    row = next(row for row in rows if row[NAMES[what][0]] == (ready or names[0]))
    exam = shlex.quote(asked or row[NAMES[what][0]])
    match what:
        case "subsets":
            command = f"{model} {exam} --dataset-args {_choice_of(asked, row)}"
        case "protocols":
            command = f"keju show {exam} --protocol {row['protocol']}"
        case _:
            command = f"keju show {exam}"
    if ready or (asked is not None and _at_hand(asked)):
        return Step(command)
    return Step(f"{command} --data-dir DIR", names[0])


def _choice_of(asked: str | None, row: Row) -> str:
    """The settings that choose one subset; as JSON where an exam has a name that is no key."""
    from keju.cli.unknown import KEY
    from keju.config.exams import called

    exam = called([asked or row["benchmark"]])[0]
    if KEY.fullmatch(exam):
        return shlex.quote(f"{exam}.subset_list=[{row['subset']}]")
    return shlex.quote(json.dumps({exam: {"subset_list": [row["subset"]]}}, ensure_ascii=False))


def _at_hand(name: str) -> bool:
    """Whether an exam can be sat here as it stands."""
    from keju.benchmarks import registry
    from keju.sources.folder import is_data_available

    benchmark = registry.get(name)
    return is_data_available(benchmark.name, benchmark.layout)


def _of_newest(folder: Path, *, complete: bool) -> str:
    """The command that goes on with a run that is not finished, or shows one that is."""
    from keju.config.address import key_flag
    from keju.files import typed_path
    from keju.runs.manifest import MANIFEST, Manifest
    from keju.runs.run import command_name

    if complete:
        return f"keju report {command_name(folder)}"
    stored = Manifest.read(folder)
    key = key_flag(stored.config.get("model"), has_key=bool(stored.endpoint.get("has_key")))
    return f"keju eval --config {shlex.quote(typed_path(folder / MANIFEST))} --resume{key}"


def _with_arms(row: Row, arms: list[str]) -> Row:
    """A stored run whose scores say of which arm they are, where it has arms: ``calc 40.00 %``."""
    pairs = zip(arms, row["scores"], strict=True)
    return row | {"scores": [f"{arm} {_word(score)}" if arm else score for arm, score in pairs]}


def _of_run(run: Run) -> tuple[Row, list[str]]:
    """One stored run with its headline scores, and the arms that these are of.

    Scores of a run without results are left out.
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


def _of_readers(exams: list[Benchmark], language: Language = "en") -> list[Row]:
    """The readers of each exam, then those that any exam takes which has none of that name.

    Of one exam alone only those that it takes; plug-ins may have none of their own.
    """
    from keju.benchmarks.prepare import make_option_readers, make_plain_readers
    from keju.messages import text_of

    rows = [
        {
            "benchmark": exam.name,
            "reader": name,
            "protocols": [n for n, own in exam.protocols.items() if own.reader == name],
            "default": exam.protocols[exam.default_protocol].reader == name,
            "about": text_of(reader.about, {}, language),
        }
        for exam in exams
        for name, reader in exam.readers.items()
    ]
    rules = make_option_readers()
    rules += make_plain_readers(rules[0])
    own = exams[0].readers if len(exams) == 1 else {}
    return rows + [
        {
            "benchmark": "",
            "reader": rule.name,
            "protocols": [],
            "default": False,
            "about": text_of(rule.about, {}, language),
        }
        for rule in rules
        if rule.name not in own
    ]


def _of_benchmarks(what: str, exams: list[Benchmark], only: str | None) -> list[Row]:
    rows: list[Row] = []
    for each in exams:
        if what == "benchmarks":
            rows.append(
                {
                    "name": each.name,
                    "title": each.title,
                    "subsets": len(each.subset_names) or None,
                    "protocol": each.default_protocol,
                    "about": each.about,
                }
            )
        elif what == "protocols":
            rows += [
                {
                    "benchmark": each.name,
                    "protocol": name,
                    "version": protocol.version,
                    "default": name == each.default_protocol,
                    "reader": protocol.reader,
                    "headline": protocol.headline,
                    "decode": protocol.decode,
                    "about": protocol.about,
                }
                for name, protocol in each.protocols.items()
            ]
        else:
            counts = {subset: each.rows.get(subset) for subset in each.subset_names}
            if only is not None and not counts:  # its questions tell
                counts = {subset.name: len(subset) for subset in exam_for(only).subsets}
            rows += [
                {
                    "benchmark": each.name,
                    "subset": subset,
                    "questions": count,
                    "about": each.subset_about.get(subset, ""),
                }
                for subset, count in counts.items()
            ]
    return rows


def _cell(name: str, value: Any) -> Any:
    if name == "created":
        from keju.report.format import moment

        return moment(value)
    if isinstance(value, bool):
        return said("yes" if value else "no")
    return said("list_separator").join(map(_word, value)) if isinstance(value, list) else value


def _word(value: Any) -> str:
    from keju.report.format import count, percent

    if isinstance(value, int):
        return count(value)
    return percent(value) if value is None or isinstance(value, float) else str(value)
