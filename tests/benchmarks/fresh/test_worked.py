"""Worked examples: complete, right, and Keju's own words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keju.benchmarks.fresh.making import published_digests, question_digest
from keju.benchmarks.fresh.task import Language
from keju.benchmarks.fresh.tasks import TASKS
from keju.benchmarks.fresh.worked import (
    MARKS,
    load_answer_only,
    load_worked,
    parse_worked_examples,
    task_sentence,
)
from tests.benchmarks.fresh.conftest import Published

EACH = [
    pytest.param(subset, language, id=f"{subset}-{language}")
    for subset, task in TASKS.items()
    for language in task.languages
]
WORDS = 8
"""A sequence of so many words is nobody's by chance."""


@pytest.mark.parametrize(("subset", "language"), EACH)
def test_there_are_three_and_their_answers_are_right(subset: str, language: Language) -> None:
    text = load_worked([subset], language)[subset]
    examples = parse_worked_examples(text, language)
    assert len(examples) == 3
    for example in examples:
        assert TASKS[subset].solve(example.question) == example.answer
        assert question_digest(example.question)[:8] not in published_digests()
    assert 0 < len(task_sentence(text, language)) < 300
    assert len({example.question for example in examples}) == 3


@pytest.mark.parametrize(("subset", "language"), EACH)
def test_answer_only_has_the_same_questions_and_no_reasoning(
    subset: str, language: Language
) -> None:
    worked_text = load_worked([subset], language)[subset]
    bare = load_answer_only([subset], language)[subset]
    marks = MARKS[language]
    assert marks.reasoning.strip() not in bare
    assert marks.conclusion.strip() not in bare
    for example in parse_worked_examples(worked_text, language):
        assert f"{marks.question}{example.question}\n{marks.answer}" in bare
        assert bare.endswith(example.answer) or f"{example.answer}\n\n{marks.question}" in bare


def sequences(text: str) -> set[tuple[str, ...]]:
    """All runs of eight words in the parts of a text, letter case and punctuation aside.

    The marks of questions and answers, which every protocol has, end a part.
    """
    parts = re.split(r"^Q: |^A: Let's think step by step\.", text, flags=re.MULTILINE)
    word_lists = (re.findall(r"[\w'-]+", part.lower()) for part in parts)
    return {
        tuple(words[i : i + WORDS]) for words in word_lists for i in range(len(words) - WORDS + 1)
    }


@pytest.mark.parametrize("subset", TASKS)
def test_the_words_are_not_the_published_ones(
    subset: str, published: Published, data_dir: Path
) -> None:
    """No eight words in a row are shared with the published worked examples.

    Questions follow the published template: a sequence that stands in several published questions
    of the subset is the template's.
    """
    published_text = (data_dir / "bbh" / "cot-prompts" / f"{subset}.txt").read_text("utf-8")
    template: set[tuple[str, ...]] = set()
    seen_sequences: set[tuple[str, ...]] = set()
    for row in published(subset):
        row_sequences = sequences(row.text)
        template |= row_sequences & seen_sequences
        seen_sequences |= row_sequences
    keju_text = load_worked([subset], "en")[subset]
    shared = (sequences(keju_text) & sequences(published_text.partition("-----")[2])) - template
    assert not {" ".join(words) for words in shared}
