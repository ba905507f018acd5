"""Worked examples: three for each subset and language, written by Keju.

A file has BBH's published form: a sentence about the task, an empty line, and three blocks. Each
block begins with the question and ends with the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from keju.benchmarks.fresh.task import Language
from keju.errors import DataError


class ExampleMarkers(NamedTuple):
    """The text before each part of a worked example."""

    question: str
    answer: str
    reasoning: str
    conclusion: str
    full_stop: str


MARKS: dict[Language, ExampleMarkers] = {
    "en": ExampleMarkers("Q: ", "A:", " Let's think step by step.", "So the answer is ", "."),
    "zh": ExampleMarkers("问：", "答：", "让我们一步一步地思考。", "所以答案是", "。"),
}


class WorkedExample(NamedTuple):
    """The question and answer of one worked example."""

    question: str
    answer: str


def load_worked(subsets: Sequence[str], language: Language) -> dict[str, str]:
    """Return the task sentence and the worked examples of each subset."""
    folder, texts = files("keju.benchmarks.fresh").joinpath("worked"), {}
    for subset in subsets:
        file = folder.joinpath(f"{subset}.{language}.txt")
        if not file.is_file():
            raise DataError("fresh.no_worked", subset=subset, lang=language)
        texts[subset] = file.read_text("utf-8").strip()
    return texts


def load_answer_only(subsets: Sequence[str], language: Language) -> dict[str, str]:
    """Return the same without the reasoning: each question is followed by its answer."""
    texts, marks = load_worked(subsets, language), MARKS[language]
    gap = "" if language == "zh" else " "
    return {
        subset: "\n\n".join(
            [
                task_sentence(text, language),
                *(
                    f"{marks.question}{example.question}\n{marks.answer}{gap}{example.answer}"
                    for example in parse_worked_examples(text, language)
                ),
            ]
        )
        for subset, text in texts.items()
    }


def task_sentence(text: str, language: Language) -> str:
    """Return the text before the first worked example."""
    return text.partition(f"\n\n{MARKS[language].question}")[0]


def parse_worked_examples(text: str, language: Language) -> list[WorkedExample]:
    """Return the worked examples in a text, each with its question and its answer."""
    marks = MARKS[language]
    blocks = re.split(rf"^{re.escape(marks.question)}", text, flags=re.MULTILINE)[1:]
    examples = []
    for block in blocks:
        question, _, reasoning = block.partition(f"\n{marks.answer}{marks.reasoning}")
        answer = reasoning.rpartition(marks.conclusion)[2].strip()
        examples.append(WorkedExample(question, answer.removesuffix(marks.full_stop)))
    return examples
