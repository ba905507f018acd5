"""Choose the subset of the demo: one that the embedded model is above guessing at, when easiest.

`python -m perf.demo_choice` evaluates the embedded model on the subsets of the fresh exam at the
easiest difficulty, `N` questions each of one seed, in the protocol of the demo. Left out are
subsets whose questions are longer than `LONGEST` on average, since the demo has to be over within
about a minute, and those that have fewer than `N` questions.

A subset is above guessing where the lower end of the 95 % interval of its accuracy is above the
best of three blind ways: one of the options, the most common answer, and the end of the question
given back, which is right for words that are sorted already. Of these the demo takes the one with
the shortest questions, and another seed.

It takes long, and goes on where it was stopped (``--work-dir``).
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from statistics import mean

from keju.benchmarks.fresh.making import make_questions
from keju.benchmarks.fresh.task import FreshQuestion
from keju.benchmarks.fresh.tasks import TASKS
from keju.config import TaskConfig
from keju.task import run_exams

EASIEST = 0.25
N, SHOTS, SEED = 200, 16, 1
LONGEST = 160
"""Characters of a question."""
LINE = "{:<42} {:>5} {:>9} {:>9} {:>9} {:>8}  {}"


def settings(subset: str) -> dict[str, object]:
    """The exam of one subset."""
    arguments = {"few_shot_num": SHOTS, "seed": SEED, "n": N, "difficulty": EASIEST}
    return arguments | {"protocol": "short", "subset_list": [subset]}


def evaluate(subset: str, work_dir: Path) -> str:
    """Sit one subset; return its line of the table."""
    started = time.perf_counter()
    config = TaskConfig(
        model="embedded",
        datasets=["fresh_bbh"],
        dataset_args={"fresh_bbh": settings(subset)},
        run_id=subset,
        work_dir=str(work_dir),
    )
    finished = run_exams(config, report=False)
    (entry,) = finished.results.benchmarks
    (row,) = entry.subsets
    guess = max(row.chance or 0.0, *_blind_ways(subset))
    low = row.ci95[0] if row.ci95 else 0.0
    shares = [f"{100 * value:.1f} %" for value in (row.accuracy or 0.0, low, guess)]
    chosen = "above guessing" if low > guess else ""
    seconds = f"{time.perf_counter() - started:.0f} s"
    return LINE.format(subset, row.n, *shares, seconds, chosen).rstrip()


def _questions(subset: str) -> list[FreshQuestion]:
    return list(make_questions(TASKS[subset], N, seed=SEED, difficulty=EASIEST))


def _blind_ways(subset: str) -> tuple[float, float]:
    """The share of the most common answer, and of questions that end with their own answer."""
    questions = _questions(subset)
    common = Counter(question.target for question in questions).most_common(1)[0][1]
    return common / N, sum(question.text.endswith(question.target) for question in questions) / N


def main() -> None:
    """Print a line for each subset as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m perf.demo_choice", description=__doc__)
    parser.add_argument("--work-dir", type=Path, default=Path("demo-choice"))
    parser.add_argument("subsets", nargs="*", help="only these")
    args = parser.parse_args()
    print(LINE.format("subset", "n", "accuracy", "at least", "guessing", "took", ""))
    for subset in args.subsets or TASKS:
        space = TASKS[subset].space(EASIEST)
        if space is not None and space < N + SHOTS:
            print(f"{subset:<42} left out: {space} questions", flush=True)
            continue
        length = mean(len(question.text) for question in _questions(subset))
        if length > LONGEST:
            print(f"{subset:<42} left out: {length:.0f} characters", flush=True)
            continue
        print(evaluate(subset, args.work_dir), flush=True)


if __name__ == "__main__":
    main()
