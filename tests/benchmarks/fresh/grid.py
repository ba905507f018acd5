"""One cell of the grid of fresh questions: a task, a seed, a difficulty, a language.

The tests look at small cells, ``python -m perf.fresh grid`` at 1,000 questions in each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import comb

from keju.benchmarks.fresh.making import make_questions
from keju.benchmarks.fresh.task import FreshQuestion, FreshTask, Language, split_options
from tests.benchmarks.fresh.checks import check_of

CHANCE_OF_ALARM = 1e-6
"""How rarely a label of a balanced task may look unbalanced by chance."""
NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
)  # fmt: skip


def cell_faults(
    task: FreshTask, *, n: int, seed: int, difficulty: float, language: Language = "en"
) -> list[str]:
    """What is wrong with the questions of a cell, in words; nothing where all is well."""
    questions = list(make_questions(task, n, seed=seed, difficulty=difficulty, language=language))
    faults = [f"{len(questions)} questions instead of {n}"] if len(questions) != n else []
    if len({bare(question.text) for question in questions}) != len(questions):
        faults.append("a question is there twice")
    check = check_of(task.subset)
    for question in questions:
        for solver_name, answer in (
            ("solver", task.solve(question.text)),
            ("check", check(question.text)),
        ):
            if answer != question.target:
                faults.append(
                    f"{solver_name}: {answer} instead of {question.target}: {question.text}"
                )
    return [*faults, *unbalanced(questions)]


def bare(text: str) -> str:
    """A question by which it is known: the order of its options and its spacing aside."""
    head, options = split_options(text)
    return " ".join(" ".join([head, *sorted(options)]).lower().split())


def unbalanced(questions: Sequence[FreshQuestion]) -> Iterator[str]:
    """Labels that are right too often or too seldom among questions with as many options.

    Where the options are numbers in their order, a label's place is its value: left out. Answers
    of which there are two, as Yes and No, are looked at like the labels of two options.
    """
    targets: dict[int, Counter[str]] = {}
    words = Counter(question.target for question in questions)
    if len(words) == 2 and not split_options(questions[0].text)[1]:
        for word, count in words.items():
            if chance(count, len(questions), 1 / 2) < CHANCE_OF_ALARM:
                yield f"{word} is right {count} times in {len(questions)}"
    for question in questions:
        options = split_options(question.text)[1]
        if options and not in_order(options):
            targets.setdefault(len(options), Counter())[question.target] += 1
    for size, counts in targets.items():
        n = counts.total()
        for label in (f"({letter})" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:size]):
            if chance(counts[label], n, 1 / size) < CHANCE_OF_ALARM:
                yield f"{label} of {size} options is right {counts[label]} times in {n}"


def in_order(options: Sequence[str]) -> bool:
    """Whether options are numbers that rise: zero, one, two; 12, 15, 19."""
    values = [NUMBERS.index(option) if option in NUMBERS else -1 for option in options]
    if all(re.fullmatch(r"\d+", option) for option in options):
        values = [int(option) for option in options]
    known_values = [value for value in values if value >= 0]
    return (
        len(known_values) > 1
        and known_values == sorted(known_values)
        and values[: len(known_values)] == known_values
    )


def chance(count: int, n: int, share: float) -> float:
    """How likely a binomial count is so far or farther on its side, twice."""
    tails = (range(count + 1), range(count, n + 1))
    return 2 * min(sum(comb(n, k) * share**k * (1 - share) ** (n - k) for k in t) for t in tails)
