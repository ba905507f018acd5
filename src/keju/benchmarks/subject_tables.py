"""Exams whose questions are in one table per subject: four options and a letter in each row.

The columns may be those of a hub (``question``, ``choices``, ``answer`` as a position) or of a CSV
file (``Question``, ``A`` to ``D``, ``Answer`` as a letter).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from keju.benchmarks.kit import (
    Question,
    Questions,
    Setup,
    arrange,
    read_text_field,
)
from keju.benchmarks.wording import Word, Wording, words
from keju.errors import DataError

OPTIONS = "ABCD"
QUESTION_COLUMNS = ("question", "Question", "input")
ANSWER_COLUMNS = ("answer", "Answer", "target")


def table_names(splits: Iterable[str], subjects: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the tables: ``test/anatomy``."""
    return tuple(f"{split}/{subject}" for split in splits for subject in subjects)


def read_questions(setup: Setup, split: str) -> Iterator[Question]:
    """Yield the questions of a split, subject by subject."""
    for subject in setup.subsets:
        table = f"{split}/{subject}"
        if not setup.folder.has(table):
            raise DataError("table_missing", table=table, path=setup.folder.path)
        origin = setup.folder.name_of(table)
        for number, row in enumerate(setup.folder.rows(table), 1):
            yield read_question(row, subject, f"{origin}, row {number}")


def make_questions(setup: Setup, titles: Mapping[str, str]) -> Questions:
    """Return the questions of the test split; `titles` are the subjects as prompts name them."""
    arranged = arrange(setup.benchmark.name, read_questions(setup, "test"), setup.subsets)
    arranged.subsets = [replace(s, title=titles[s.name]) for s in arranged.subsets]
    return arranged


def read_question(row: Mapping[str, Any], subject: str, where: str) -> Question:
    """Return a row as a question of `subject`."""
    return Question(
        read_text_field(row, QUESTION_COLUMNS, where),
        read_letter(row, where),
        read_options(row, where),
        subject,
    )


def read_options(row: Mapping[str, Any], where: str) -> Sequence[str]:
    """Return the four options of a row, from a list or from the columns A to D."""
    options = row.get("choices")
    if options is None:
        options = [row.get(letter) for letter in OPTIONS]
    if len(options) != len(OPTIONS) or any(option is None for option in options):
        raise DataError("options_not_four", where=where, columns=list(row))
    return tuple(map(str, options))


def read_letter(row: Mapping[str, Any], where: str) -> str:
    """Return the letter of the right option, which a hub stores as a position from 0."""
    answer = next((row[name] for name in ANSWER_COLUMNS if row.get(name) is not None), None)
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(OPTIONS):
        return OPTIONS[answer]
    letter = str(answer).strip()
    if letter.isdigit() and int(letter) < len(OPTIONS):
        return OPTIONS[int(letter)]
    if len(letter) != 1 or letter not in OPTIONS:
        raise DataError("answer_no_letter", where=where, answer=answer)
    return letter


def label_wording(
    question: str, *, head: str, space: str = "", question_words: Mapping[str, Word] | None = None
) -> Wording:
    """Return the wording of a text to continue whose next token is the letter.

    The head comes once, then the worked examples, each followed by its letter and a blank line.
    """
    vocabulary = {**words("A. text"), **(question_words or {})}
    return Wording(
        question=question,
        head=f"{head}{{examples}}",
        bare=head,
        shot=question,
        reply=f"{space}{{answer}}\n\n",
        between="",
        tail_is_whole=True,
        words=vocabulary,
    )


STRIPPED: Mapping[str, Word] = {"question": lambda sample: sample.text.strip()}
"""The question without the white space around it, as lm-eval writes it."""
