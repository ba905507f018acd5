"""The published ways to ask MMLU-Pro, with their exact prompts.

A worked example is a row of the pool: its rationale, ``cot_content``, is its ``{explanation}``.
"""

from __future__ import annotations

import re

from keju.benchmarks.base import Protocol, by_name
from keju.benchmarks.choices import format_choices
from keju.benchmarks.mmlu_pro.readers import make_readers
from keju.benchmarks.wording import Wording, words
from keju.types import Sample

EVALSCOPE_QUESTION = (
    "Answer the following multiple choice question. The last line of your response should be of"
    " the following format: 'ANSWER: [LETTER]' (without quotes) where [LETTER] is one of"
    " {letters}. Think step by step before answering.\n\n"
    "Question:\n{question}\nOptions:\n{choices}\n"
)
"""EvalScope 1.14, `mmlu_pro`: the question, and the full prompt without worked examples."""

EVALSCOPE_HEAD = (
    "The following are multiple choice questions (with answers) about {subject}. Think step by"
    " step and then finish your answer with 'ANSWER: [LETTER]' (without quotes) where [LETTER] is"
    " the correct letter choice.\n\n{examples}\n\n"
)
"""EvalScope 1.14, `mmlu_pro`: the text before the question."""

OFFICIAL_HEAD = (
    "The following are multiple choice questions (with answers) about {subject}. Think step by"
    ' step and then finish your answer with "the answer is (X)" where X is the correct letter'
    " choice.\n\n\n\n"
)
OFFICIAL_QUESTION = "Question:\n{question}\nOptions:\n{choices}\n"
"""TIGER-AI-Lab/MMLU-Pro, the script for local models."""

OFFICIAL_API_HEAD = (
    "The following are multiple choice questions (with answers) about {subject}. Think step by"
    ' step and then output the answer in the format of "The answer is (X)" at the end.\n\n'
)
OFFICIAL_API_QUESTION = "Question: {question}\nOptions: {choices}\nAnswer: "
"""TIGER-AI-Lab/MMLU-Pro, the script for APIs."""

PADDING = "N/A"
"""Pads the options of the pool; the authors' prompts drop it, EvalScope's keep it."""

THOUGHT = "Let's think step by step."
SHOTS = 5
"""The default number of worked examples and the maximum: the pool has five per category."""


def _evalscope_rationale(shot: Sample) -> str:
    """Change ``The answer is (B).`` to ``ANSWER: B.``, where ``ANSWER: (B)`` is an intermediate
    step."""
    rationale = str(shot.metadata["cot_content"]).replace("The answer is", "ANSWER:")
    return re.sub(r"ANSWER: \(([A-Z])\)", r"ANSWER: \1", rationale)


def _official_rationale(shot: Sample) -> str:
    """Change ``A: Let's think`` to ``Answer: Let's think``."""
    return str(shot.metadata["cot_content"]).replace(f"A: {THOUGHT}", f"Answer: {THOUGHT}")


def _api_rationale(shot: Sample) -> str:
    return str(shot.metadata["cot_content"]).removeprefix("A: ")


def _unpadded_options(shot: Sample) -> str:
    return format_choices([option for option in shot.choices if option != PADDING], "A. text")


PROTOCOLS: dict[str, Protocol] = by_name(
    Protocol(
        name="evalscope",
        version="1.14",
        reader="evalscope",
        about="EvalScope 1.14: 0 to 5 worked examples (default 5) and 'ANSWER: X', one message",
        shots=SHOTS,
        shot_choices=range(SHOTS + 1),
        readers=make_readers("evalscope"),
        wording=Wording(
            question=EVALSCOPE_QUESTION,
            head=EVALSCOPE_HEAD,
            shot="Question:\n{question}\nOptions:\n{choices}\n{explanation}",
            words=words("A) text"),
            shot_words=words("A text") | {"explanation": _evalscope_rationale},
            shared=("subject",),
        ),
    ),
    Protocol(
        name="official",
        version="1",
        reader="l2",
        about="the authors' script for local models: 5 worked examples, a text to continue",
        form="completion",
        max_tokens=2048,
        stop=("Question:",),
        shots=SHOTS,
        shot_choices=range(SHOTS + 1),
        templates=False,
        readers=make_readers("official"),
        wording=Wording(
            question=f"{OFFICIAL_QUESTION}Answer: {THOUGHT}",
            bare=OFFICIAL_HEAD,
            head=OFFICIAL_HEAD + "{examples}",
            shot=OFFICIAL_QUESTION + "{explanation}\n\n",
            between="",
            words=words("A. text"),
            shot_words=words() | {"choices": _unpadded_options, "explanation": _official_rationale},
            tail_is_whole=True,
        ),
    ),
    Protocol(
        name="official-api",
        version="1",
        reader="l2",
        about="the authors' script for APIs: 5 worked examples, one message, '**' ignored",
        max_tokens=4000,
        shots=SHOTS,
        shot_choices=range(SHOTS + 1),
        templates=False,
        readers=make_readers("official-api"),
        wording=Wording(
            question=f"{OFFICIAL_API_QUESTION}{THOUGHT}\n\n",
            bare=OFFICIAL_API_HEAD,
            head=OFFICIAL_API_HEAD + "{examples}",
            shot=OFFICIAL_API_QUESTION + "{explanation}\n\n",
            between="",
            words=words("A. text"),
            shot_words=words() | {"choices": _unpadded_options, "explanation": _api_rationale},
            tail_is_whole=True,
        ),
    ),
)
