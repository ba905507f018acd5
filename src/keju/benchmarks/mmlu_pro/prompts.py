"""The published prompts of MMLU-Pro, word for word.

A prompt is made of what all questions of a category share (head, worked examples) and the
question's own part; the first is rendered once a category.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from keju.benchmarks.choices import label_lines
from keju.benchmarks.mmlu_pro.data import Row
from keju.benchmarks.templates import fill
from keju.types import Sample

EVALSCOPE_QUESTION = (
    "Answer the following multiple choice question. The last line of your response should be of"
    " the following format: 'ANSWER: [LETTER]' (without quotes) where [LETTER] is one of"
    " {letters}. Think step by step before answering.\n\n"
    "Question:\n{question}\nOptions:\n{choices}\n"
)
"""EvalScope 1.14, `mmlu_pro`: the question, and the whole prompt without worked examples."""

EVALSCOPE_HEAD = (
    "The following are multiple choice questions (with answers) about {subject}. Think step by"
    " step and then finish your answer with 'ANSWER: [LETTER]' (without quotes) where [LETTER] is"
    " the correct letter choice.\n\n{examples}\n\n"
)
"""EvalScope 1.14, `mmlu_pro`: what stands before the question."""

OFFICIAL_HEAD = (
    "The following are multiple choice questions (with answers) about {subject}. Think step by"
    ' step and then finish your answer with "the answer is (X)" where X is the correct letter'
    " choice.\n\n\n\n"
)
"""TIGER-AI-Lab/MMLU-Pro, the script for local models."""

OFFICIAL_API_HEAD = (
    "The following are multiple choice questions (with answers) about {subject}. Think step by"
    ' step and then output the answer in the format of "The answer is (X)" at the end.\n\n'
)
"""TIGER-AI-Lab/MMLU-Pro, the script for APIs."""

PADDING = "N/A"
"""Fills up the options of the pool; the authors' prompts drop it, EvalScope's keep it."""

_THOUGHT = "A: Let's think step by step."
_OWN = re.compile(r"\{(?:letters|question|choices)\}")


Shots = Mapping[str, Sequence[Row]]
"""The worked examples of each category."""


class Form(ABC):
    """How a protocol writes its prompts: `lead` for a category, `tail` for a question."""

    @abstractmethod
    def lead(self, category: str) -> str:
        """The beginning that all questions of `category` share."""

    @abstractmethod
    def tail(self, sample: Sample) -> str:
        """The rest of the prompt."""


class EvalScopeForm(Form):
    """One template for the whole prompt; it is cut where the question's own text begins."""

    def __init__(self, shots: Shots, template: str) -> None:
        own = _OWN.search(template)
        at = own.start() if own else len(template)
        self._lead, self._tail = template[:at], template[at:]
        self._shared = {
            category: {
                "subject": category,
                "examples": "\n\n".join(_evalscope_shot(row) for row in rows),
            }
            for category, rows in shots.items()
        }

    def lead(self, category: str) -> str:
        return fill(self._lead, self._shared[category])

    def tail(self, sample: Sample) -> str:
        return fill(
            self._tail,
            {
                **self._shared[sample.subset],
                "letters": ",".join(sample.labels),
                "question": sample.text,
                "choices": label_lines(sample.choices, "A) text"),
            },
        )


def _evalscope_shot(row: Row) -> str:
    rationale = row.cot.replace("The answer is", "ANSWER:")
    rationale = re.sub(r"ANSWER: \(([A-Z])\)", r"ANSWER: \1", rationale)
    options = label_lines(row.options, "A text")
    return f"Question:\n{row.question}\nOptions:\n{options}\n{rationale}"


class OfficialForm(Form):
    """The authors' completion prompt, which the model continues."""

    def __init__(self, shots: Shots) -> None:
        self._shots = shots

    def lead(self, category: str) -> str:
        head = fill(OFFICIAL_HEAD, {"subject": category})
        return head + "".join(self._shot(row) for row in self._shots[category])

    def tail(self, sample: Sample) -> str:
        return self._question(sample.text, sample.choices) + f"Answer{_THOUGHT[1:]}"

    def _shot(self, row: Row) -> str:
        rationale = row.cot.replace(_THOUGHT, f"Answer{_THOUGHT[1:]}")
        return f"{self._question(row.question, _unpadded(row.options))}{rationale}\n\n"

    @staticmethod
    def _question(question: str, options: Sequence[str]) -> str:
        return f"Question:\n{question}\nOptions:\n{label_lines(options, 'A. text')}\n"


class OfficialApiForm(Form):
    """The authors' prompt for APIs: one user message."""

    def __init__(self, shots: Shots) -> None:
        self._shots = shots

    def lead(self, category: str) -> str:
        head = fill(OFFICIAL_API_HEAD, {"subject": category})
        return head + "".join(self._shot(row) for row in self._shots[category])

    def tail(self, sample: Sample) -> str:
        return self._block(sample.text, sample.choices, _THOUGHT.removeprefix("A: "))

    def _shot(self, row: Row) -> str:
        return self._block(row.question, _unpadded(row.options), row.cot.removeprefix("A: "))

    @staticmethod
    def _block(question: str, options: Sequence[str], answer: str) -> str:
        lines = label_lines(options, "A. text")
        return f"Question: {question}\nOptions: {lines}\nAnswer: {answer}\n\n"


def _unpadded(options: Sequence[str]) -> list[str]:
    return [option for option in options if option != PADDING]
