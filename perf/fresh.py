"""Fresh exams: how far the solvers reach, whether the questions are right, and what they take.

    python -m perf fresh                     the time and memory of 100,000 questions
    python -m perf.fresh solvers [--write]   every solver on every published row
    python -m perf.fresh grid [--write]      1,000 questions in every cell of the grid
    python -m perf.fresh published           writes the digests of the published questions

``--write`` puts a table into docs/reference-fresh.md, between its markers. The published questions
are looked for in ``../shared/data`` or KEJU_DATA_DIR.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.fresh.grid import bare, cell_faults
from tests.benchmarks.fresh.measures import length, mean_gap, share_gap

from keju.benchmarks.bbh.metadata import SUBSETS
from keju.benchmarks.fresh import making
from keju.benchmarks.fresh.making import make_questions, question_digest
from keju.benchmarks.fresh.task import FreshQuestion, FreshTask, split_options
from keju.benchmarks.fresh.tasks import TASKS
from perf.measure import ROOT, NotMeasured, Row, cpu, in_child, peak_mb, within
from perf.pages import write_between

PAGE = ROOT / "docs" / "reference-fresh.md"
CELL, SEEDS, DIFFICULTIES = 1000, (11, 12), (0.5, 1.0, 3.0)
MANY, FEW = 100_000, 1_000
SECONDS, FLAT = 60, 1.5
"""What so many questions may take on one core, and their memory beside that of a few."""


def published(subset: str) -> list[FreshQuestion]:
    """The published questions of a subset."""
    variable = os.environ.get("KEJU_DATA_DIR")
    folder = Path(variable) if variable else ROOT.parent / "shared" / "data"
    path = folder / "bbh" / "bbh" / f"{subset}.json"
    if not path.is_file():
        raise NotMeasured(f"no published questions at {path}: set KEJU_DATA_DIR")
    rows = json.loads(path.read_text("utf-8"))["examples"]
    return [FreshQuestion(row["input"], row["target"]) for row in rows]


# --- solvers -----------------------------------------------------------------------------------


def solvers() -> Iterator[str]:
    """A row for each subset, then the rows that a solver does not answer as published, and why."""
    yield "| subset | languages | rows | read | as published | exceptions |"
    yield "|---|---|---|---|---|---|"
    exceptions: list[str] = []
    totals = Counter[str]()
    for name, task in TASKS.items():
        rows = published(name)
        answers = [task.solve(row.text) for row in rows]
        read = sum(answer is not None for answer in answers)
        wrong = [i for i, row in enumerate(rows) if answers[i] != row.target]
        right = len(rows) - len(wrong)
        unexplained = [i for i in wrong if i not in task.exceptions]
        explained = f"{len(wrong)}, all explained below" if wrong else "none"
        if unexplained:
            explained = f"{len(wrong)}, not explained: {', '.join(map(str, unexplained))}"
        totals.update(rows=len(rows), read=read, right=right, wrong=len(wrong))
        cells = (name, ", ".join(task.languages), len(rows), read, right, explained)
        yield "| " + " | ".join(map(str, cells)) + " |"
        exceptions += _exceptions(task, wrong)
    total_row = (
        f"{len(TASKS)} subsets",
        "",
        *(totals[column] for column in ("rows", "read", "right")),
    )
    yield "| " + " | ".join(map(str, (*total_row, totals["wrong"]))) + " |"
    yield ""
    yield "The exceptions, with the rows counted from 0:"
    yield ""
    yield from exceptions


def _exceptions(task: FreshTask, wrong: list[int]) -> Iterator[str]:
    """The rows that are not answered as published, those of one reason together."""
    reasons: dict[str, list[int]] = {}
    for row in wrong:
        reasons.setdefault(task.exceptions.get(row, "not explained"), []).append(row)
    for reason, rows in reasons.items():
        word = "row" if len(rows) == 1 else "rows"
        yield f"- {task.subset} {word} {', '.join(map(str, rows))}: {reason}"


# --- the grid ----------------------------------------------------------------------------------


class Cells(NamedTuple):
    """What the cells of one subset come to."""

    questions: int
    faults: list[str]
    overlap: int
    """Questions that are published ones."""


def grid(n: int) -> Iterator[str]:
    """A row for each subset: all its cells together, and how like the published questions it is."""
    yield (
        "| subset | cells | questions | faults | published among them | length, gap of means "
        "| options, largest gap of shares | answers, largest gap of shares |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    totals = Counter[str]()
    for name, task in TASKS.items():
        rows, result = published(name), _cells(task, n)
        fresh = list(make_questions(task, min(n, task.space(1.0) or n), seed=1, difficulty=1.0))
        gaps = (
            mean_gap(length, rows, fresh),
            share_gap(lambda question: len(split_options(question.text)[1]), rows, fresh),
            _answers_gap(rows, fresh),
        )
        cell_count = len(task.languages) * len(SEEDS) * len(DIFFICULTIES)
        totals.update(cells=cell_count, questions=result.questions, faults=len(result.faults))
        totals.update(overlap=result.overlap)
        counts = (
            cell_count,
            f"{result.questions:,}",
            len(result.faults),
            result.overlap,
        )
        cells = (name, *counts, *("–" if gap is None else f"{100 * gap:.1f} %" for gap in gaps))
        for fault in result.faults[:3]:
            print(f"{name}: {fault}", file=sys.stderr)
        yield "| " + " | ".join(map(str, cells)) + " |"
    total_row = (totals["cells"], f"{totals['questions']:,}", totals["faults"], totals["overlap"])
    yield f"| {len(TASKS)} subsets | " + " | ".join(map(str, total_row)) + " | | | |"


def _cells(task: FreshTask, n: int) -> Cells:
    published_texts = {bare(question.text) for question in published(task.subset)}
    questions = overlap = 0
    faults: list[str] = []
    for language in task.languages:
        for seed in SEEDS:
            for difficulty in DIFFICULTIES:
                size = min(n, task.space(difficulty) or n)
                options = {"n": size, "seed": seed, "difficulty": difficulty}
                faults += cell_faults(task, **options, language=language)  # type: ignore[arg-type]
                batch = make_questions(task, **options)  # type: ignore[arg-type]
                overlap += sum(bare(question.text) in published_texts for question in batch)
                questions += size
    return Cells(questions, faults, overlap)


def _answers_gap(rows: list[FreshQuestion], fresh: list[FreshQuestion]) -> float | None:
    """The largest gap between shares of answers; None where labels are dealt out evenly.

    An answer that is written out counts by its number of parts: ``] ) >`` has three.
    """
    if split_options(rows[0].text)[1]:
        return None

    def answer(question: FreshQuestion) -> str:
        return question.target if question.target.isalpha() else f"{len(question.target.split())}"

    return share_gap(answer, rows, fresh)


# --- the digests of the published questions ----------------------------------------------------


def write_published() -> str:
    """Write the file by which a question is known to be published."""
    size = making.PUBLISHED_BYTES
    digests = {question_digest(row.text)[:size] for subset in SUBSETS for row in published(subset)}
    path = Path(making.__file__).with_name(making.PUBLISHED)
    path.write_bytes(b"".join(sorted(digests)))
    return f"wrote {len(digests):,} digests to {path.name}"


# --- time and memory ---------------------------------------------------------------------------


def measure() -> Iterator[Row]:
    """The time of so many questions on one core, and their memory against that of a few."""
    few_questions, many_questions = (in_child(make_exam, n=n).value for n in (FEW, MANY))
    yield within(f"fresh: {many_questions[0]:,} questions, CPU", many_questions[1], SECONDS, "s")
    ratio = many_questions[2] / few_questions[2]
    limit = f"{FLAT:g}x of {few_questions[2]:.0f} MB, {few_questions[0]:,} questions"
    yield Row("fresh: their memory", f"{many_questions[2]:.0f} MB", limit, ratio, ratio <= FLAT)


def make_exam(n: int) -> tuple[int, float, float]:
    """Make an exam of about `n` questions; return their number, CPU seconds and peak in MB."""
    from keju.benchmarks.prepare import prepare_exam

    names = [name for name, task in TASKS.items() if (task.space(1.0) or n) >= n]
    before = cpu()
    per_subset = -(-n // len(names))
    args = {"n": per_subset, "seed": 3, "subset_list": names, "few_shot_num": 0}
    exam, _ = prepare_exam("fresh_bbh", args)
    return len(exam.samples), cpu() - before, peak_mb()


def main() -> None:
    """Print a table, or write it into its page."""
    parser = argparse.ArgumentParser(prog="python -m perf.fresh", description=__doc__)
    parser.add_argument("part", choices=("solvers", "grid", "published"))
    parser.add_argument("-n", type=int, default=CELL, help="questions of a cell of the grid")
    parser.add_argument("--write", action="store_true", help="write the table to the page")
    args = parser.parse_args()
    if args.part == "published":
        print(write_published())
        return
    lines = []
    for line in solvers() if args.part == "solvers" else grid(args.n):
        print(line, flush=True)
        lines.append(line)
    if args.write:
        write_between(PAGE, args.part, lines)


if __name__ == "__main__":
    main()
