"""The published ways to put BBH's questions.

Versions: ``evalscope`` v1.1 is EvalScope's own evaluation version (1.14). ``paper`` and
``answer-only`` 2022 are the prompts of Suzgun et al. 2022. ``mcpbr`` 0.14 is the benchmark
``bigbench-hard`` of mcpbr 0.14. A change that can move a score changes the version.
"""

from __future__ import annotations

from typing import NamedTuple

from keju.benchmarks.base import Protocol

NEXT_QUESTION = "\n\nQ:"
"""Where a base model that continues the text goes on to another question."""

PROTOCOLS: dict[str, Protocol] = {
    "evalscope": Protocol(
        name="evalscope",
        version="v1.1",
        reader="evalscope",
        about="EvalScope's bbh: 3-shot chain of thought with a format instruction, or 0-shot",
        stop=(NEXT_QUESTION,),
    ),
    "paper": Protocol(
        name="paper",
        version="2022",
        reader="paper",
        about="Suzgun et al. 2022: 3-shot chain of thought, exact match, mean of 23 tasks",
        headline="macro_23",
        stop=(NEXT_QUESTION,),
    ),
    "answer-only": Protocol(
        name="answer-only",
        version="2022",
        reader="answer-only",
        about="Suzgun et al. 2022: 3-shot without reasoning, exact match, mean of 23 tasks",
        headline="macro_23",
        stop=(NEXT_QUESTION,),
    ),
    "mcpbr": Protocol(
        name="mcpbr",
        version="0.14",
        reader="mcpbr",
        about="mcpbr's bigbench-hard: 0-shot, the last line must be the bare answer",
    ),
}

EVALSCOPE_QUESTION = (
    "Q: {question}\n"
    "A: Let's think step by step. Put your final answer in the format of "
    '"So the answer is [ANSWER]" (without quotes and markdown) where [ANSWER] is the answer to '
    "the problem.\n"
)
PAPER_QUESTION = "Q: {question}\nA: Let's think step by step."
ANSWER_ONLY_QUESTION = "Q: {question}\nA:"

FEWSHOT = "{fewshot}\n\n"
"""What all few-shot prompts begin with: the task sentence and the worked examples."""

MCPBR_PROBLEM = (
    "Solve the following reasoning task ({subset}):\n\n{question}\n\n"
    "Think step-by-step and provide your final answer."
)
MCPBR_PROMPT = (
    "Solve the following reasoning challenge:\n\n{problem_statement}\n\n"
    "IMPORTANT INSTRUCTIONS:\n"
    "- Think carefully step-by-step\n"
    "- Show your reasoning process\n"
    "- Provide a clear, definitive final answer"
)
FINAL_LINE = (
    "\n- End with the bare answer alone on the last line, written as the task writes it, "
    "for example (B) for an option"
)
"""Appended with ``final_line``: what mcpbr's reader needs and its prompt does not say."""


class Shots(NamedTuple):
    """How a protocol words a question, and with how many worked examples it may be put."""

    question: str
    allowed: tuple[int, ...]
    """The published number first."""


SHOTS: dict[str, Shots] = {
    "evalscope": Shots(EVALSCOPE_QUESTION, (3, 0)),
    "paper": Shots(PAPER_QUESTION, (3,)),
    "answer-only": Shots(ANSWER_ONLY_QUESTION, (3,)),
    "mcpbr": Shots(MCPBR_PROMPT, (0,)),
}
