"""Verify this installation: score recorded outputs again and compare with the known scores.

A recorded set is a pair of files in ``DATA/golden/BENCHMARK`` or ``DATA/recorded/BENCHMARK``:
``NAME_predictions.jsonl`` (or ``.jsonl.gz``) with the outputs of a model, and ``NAME_golden.json``
with the scores they must give. Sets are found by these names, so the pair of a new model is
verified as soon as it is in the folder. ``recorded`` may also hold outputs without known scores,
and those of exams without a rule; they are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import UNSET

from keju.benchmarks import registry
from keju.benchmarks.metadata import (
    GoldenCheck,
    GradedRecording,
    GradedRow,
    RecordedFigure,
    RecordedScores,
)
from keju.benchmarks.prepare import choose_readers, prepare_exam
from keju.config.arms import SandboxSettings
from keju.errors import DataError, did_you_mean
from keju.files import read_json, read_rows
from keju.results.predictions import Predictions, epoch_of, recorded_reply
from keju.results.schema import SubsetRow
from keju.results.summarise import entries_of
from keju.scores.exam_scores import ExamScores
from keju.scores.parallel import map_on_all_cores
from keju.types import Reading, Sampling

FOLDER, RECORDED = "golden", "recorded"
GOLDEN = "_golden.json"
PREDICTIONS = ("_predictions.jsonl", "_predictions.jsonl.gz")


class RecordedSet(NamedTuple):
    """The outputs of a model, and the scores they must give."""

    benchmark: str
    name: str
    predictions: Path
    golden: Path
    data_dir: Path

    @property
    def label(self) -> str:
        """The name of the set in messages, e.g. ``demo/Mistral-7B-v0.1``."""
        return f"{self.benchmark}/{self.name}"


class VerifiedSet(NamedTuple):
    """A recorded set and all its figures."""

    recorded: RecordedSet
    checks: list[RecordedFigure]

    @property
    def ok(self) -> bool:
        """Whether every figure equals the known one."""
        return all(check.ok for check in self.checks)


def find_sets(data_dir: Path) -> list[RecordedSet]:
    """Return the recorded sets in `data_dir`; raise DataError if none or only a part exists."""
    folders = [data_dir / name for name in (FOLDER, RECORDED) if (data_dir / name).is_dir()]
    if not folders:
        raise DataError("verify_no_folder", data_dir=data_dir, folder=FOLDER)
    exams = _names_of_folders()
    sets = []
    for parent in folders:
        for folder in sorted(path for path in parent.iterdir() if path.is_dir()):
            exam = exams.get(folder.name)
            if exam is not None:
                sets += _find_sets_of(folder, exam, data_dir)
            elif parent.name == FOLDER and any(map(_is_part_of_set, folder.iterdir())):
                hint = did_you_mean(folder.name, exams)
                raise DataError("verify_no_rule", folder=folder, exam=folder.name, hint=hint)
    if not sets:
        expected_names = f"NAME{PREDICTIONS[0]} and NAME{GOLDEN}"
        raise DataError("verify_nothing", folder=folders[0], shown=expected_names)
    return sets


def _names_of_folders() -> dict[str, str]:
    """Return the exams that have a rule, by all names that their data folders may have."""
    exams: dict[str, str] = {}
    for name in registry.names():
        benchmark = registry.get(name)
        if benchmark.golden is not None:
            folders = benchmark.layout.folders if benchmark.layout else ()
            exams |= dict.fromkeys((*folders, name), name)
    return exams


def _is_part_of_set(path: Path) -> bool:
    return path.name.endswith((GOLDEN, *PREDICTIONS))


def _find_sets_of(folder: Path, exam: str, data_dir: Path) -> list[RecordedSet]:
    """Return the sets of one exam; DataError if one of a pair of golden files is missing."""
    files = {path.name for path in folder.iterdir()}
    goldens = {name.removesuffix(GOLDEN) for name in files if name.endswith(GOLDEN)}
    outputs = {
        name.removesuffix(suffix): name
        for suffix in reversed(PREDICTIONS)
        for name in files
        if name.endswith(suffix)
    }
    needs_scores = folder.parent.name == FOLDER
    sets = []
    for name in sorted({*goldens, *outputs} if needs_scores else goldens):
        golden, output = name + GOLDEN, outputs.get(name, name + PREDICTIONS[0])
        for present, counterpart in ((golden, output), (output, golden)):
            if counterpart not in files:
                raise DataError("verify_half", file=folder / present, other=counterpart)
        sets.append(RecordedSet(exam, name, folder / output, folder / golden, data_dir))
    return sets


def verify_all(data_dir: Path) -> Iterator[VerifiedSet]:
    """Score every recorded set in `data_dir`, several in parallel."""
    sets = find_sets(data_dir)
    for recorded, figures in map_on_all_cores(
        _check_figures, sets, lambda recorded_set: recorded_set, direct_items=0, batch_size=1
    ):
        yield VerifiedSet(recorded, figures)


def _check_figures(recorded: RecordedSet) -> list[RecordedFigure]:
    check = registry.get(recorded.benchmark).golden
    assert check is not None  # `find_sets` rejects the others.
    golden = read_json(recorded.golden)
    try:
        figures = list(check.figures(golden, _grade_rows(recorded, check, golden)))
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError("verify_shape", file=recorded.golden, problem=str(error)) from None
    if not figures:
        raise DataError("verify_no_figure", file=recorded.golden)
    return figures


def _grade_rows(
    recorded: RecordedSet, check: GoldenCheck, golden: dict[str, Any]
) -> GradedRecording:
    """Return every row of a set as graded by Keju, and the resulting scores."""
    recorded_rows = [row for _, row in read_rows(recorded.predictions)]
    recorded_settings = check.settings(golden, recorded_rows)
    args = dict(recorded_settings.args)
    if recorded_settings.has_questions:
        args["local_path"] = str(recorded.predictions.parent)
    exam, _ = prepare_exam(
        recorded.benchmark,
        args,
        data_dir=str(recorded.data_dir),
        protocol=recorded_settings.protocol,
    )
    names = list(recorded_settings.readers or [exam.protocol.reader])
    readers = choose_readers(exam, names)[: len(names)]
    epochs = 1 + max((epoch_of(row) for row in recorded_rows), default=0)
    job = ExamScores(exam, Sampling(), readers, model="", epochs=epochs)
    rows: list[GradedRow] = []
    undecided: dict[int, Sequence[Reading]] = {}
    for index, row, _ in Predictions(exam, recorded.predictions, check.letter):
        sample = exam.samples[index]
        recorded_sample = exam.as_recorded(sample, row, gold=True)
        reply = recorded_reply(row, check.letter)
        graded = recorded_sample if check.recorded_gold else sample
        by_reader = {reader.name: exam.grade(reply, graded, reader) for reader in readers}
        unit = index * epochs + epoch_of(row)
        job.enter_readings(unit, reply, (), tuple(by_reader.values()))
        rows.append(GradedRow(row, sample, recorded_sample, by_reader))
        undecided[unit] = tuple(by_reader.values())
    if exam.programs is not None:
        rows = _run_programs(job, rows, undecided)
    entry = entries_of(job)[0]
    return GradedRecording(
        exam=exam,
        rows=rows,
        data=recorded.data_dir / recorded.benchmark,
        overall=RecordedScores(entry.questions_with_reply, entry.outcomes),
        metrics={name: metric.value for name, metric in entry.metrics.items()},
        subsets={row.name: _build_part(row) for row in entry.subsets},
        groups={row.name: _build_part(row) for row in entry.groups},
    )


def _run_programs(
    job: ExamScores, rows: Sequence[GradedRow], readings: Mapping[int, Sequence[Reading]]
) -> list[GradedRow]:
    """Run the programs of a set, enter their grades and return the rows with them."""
    from keju.judges.programs.stage import grade_programs

    graded = grade_programs(job, readings, SandboxSettings())
    graded_rows = []
    for row, (unit, row_readings) in zip(rows, graded.items(), strict=True):
        for tally, reading in zip(job.tallies, row_readings, strict=True):
            tally.add(unit, reading)
        by_reader = {reading.reader: reading for reading in row_readings}
        graded_rows.append(row._replace(readings=by_reader))
    return graded_rows


def _build_part(row: SubsetRow) -> RecordedScores:
    micro = None if row.micro_accuracy is UNSET else row.micro_accuracy
    return RecordedScores(row.n + row.ungraded, row.outcomes, row.accuracy, micro)
