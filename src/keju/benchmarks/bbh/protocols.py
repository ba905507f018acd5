"""The published ways to ask BBH's questions.

Versions: ``evalscope`` v1.1 is EvalScope's own evaluation version (1.14). ``paper`` and
``answer-only`` 2022 are the prompts of Suzgun et al. 2022. ``mcpbr`` 0.14 is the benchmark
``bigbench-hard`` of mcpbr 0.14. A change that can change a score also changes the version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from keju.benchmarks.base import Protocol, by_name
from keju.benchmarks.bbh.readers import evalscope_target
from keju.benchmarks.wording import PromptMaker, Word, Wording, words
from keju.config import DatasetArgs
from keju.errors import ConfigError, DataError, did_you_mean
from keju.files import explain_shape
from keju.types import Message, Prefix, Sample

if TYPE_CHECKING:
    from keju.sources.folder import DataFolder

EVALSCOPE_QUESTION = (
    "Q: {question}\n"
    "A: Let's think step by step. Put your final answer in the format of "
    '"So the answer is [ANSWER]" (without quotes and markdown) where [ANSWER] is the answer to '
    "the problem.\n"
)
PAPER_QUESTION = "Q: {question}\nA: Let's think step by step."
ANSWER_ONLY_QUESTION = "Q: {question}\nA:"

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
"""Appended if ``final_line`` is set: mcpbr's reader needs it, but its prompt does not say it."""

NEXT_QUESTION = "\n\nQ:"
"""The text with which a base model begins another question."""
PROBLEM = "{problem_statement}"


EXAMPLE_FOLDERS = ("cot-prompts", "cot_prompts", "../cot-prompts", "../cot_prompts")
ANSWER_ONLY_FILES = (
    "answer_only_prompts.json",
    "../answer_only_prompts.json",
    "../golden/bbh/answer_only_prompts.json",
)
DASHES = "-----"
"""The line of a chain-of-thought file that ends the canary; prompts contain neither."""


class BBHArgs(DatasetArgs):
    """Settings of BBH."""

    final_line: bool = False
    """Protocol mcpbr: ask for the bare answer alone on the last line, as its reader needs it."""


def load_worked_examples(folder: DataFolder, subsets: Sequence[str]) -> dict[str, str]:
    """Return the task sentence and the three worked examples of each subset."""
    texts = {}
    for name in subsets:
        path = folder.first_of([f"{place}/{name}.txt" for place in EXAMPLE_FOLDERS])
        if path is None:
            raise DataError("bbh.no_shots", name=name, path=folder.path)
        head, dashes, body = folder.text(path).replace("\r\n", "\n").partition(f"{DASHES}\n")
        if not dashes or (head and not head.endswith("\n")):
            raise DataError("bbh.no_dashes", path=folder.path / path, dashes=DASHES)
        if not body.strip():
            raise DataError("bbh.nothing_after_dashes", path=folder.path / path, dashes=DASHES)
        texts[name] = body.strip()
    return texts


def load_answer_only(folder: DataFolder, names: Sequence[str]) -> dict[str, str]:
    """Return the published answer-only prompts of the subsets."""
    path = folder.first_of(ANSWER_ONLY_FILES)
    if path is None:
        raise DataError("bbh.no_answer_only", path=folder.path)
    try:
        texts = msgspec.convert(folder.json(path), type=dict[str, str])
    except msgspec.ValidationError as error:
        problem = explain_shape(error)
        raise DataError("bbh.prompts_no_texts", path=folder.path / path, problem=problem) from None
    for name in names:
        if name not in texts:
            raise DataError("bbh.no_prompt", path=folder.path / path, name=name)
    for name in names:
        if not texts[name].strip():
            raise DataError("bbh.empty_prompt", path=folder.path / path, name=name)
    return {name: texts[name].strip() for name in names}


@dataclass(frozen=True, kw_only=True)
class BBHProtocol(Protocol):
    """A protocol of BBH, with the source of its worked examples."""

    examples: Callable[[DataFolder, Sequence[str]], Mapping[str, str]] = load_worked_examples
    shown_target: Callable[[Sample], str] = lambda sample: sample.target
    """The target as ``keju show`` prints it."""
    final_line: bool = False
    """Whether the setting ``final_line`` has an effect."""
    lenient: bool = False
    """If true, an unreadable subset is skipped with a warning, and a row without a target is asked
    without a score; otherwise both are errors."""


QUESTION: dict[str, Word] = {"question": words()["question"]}


def make_question_wording(question: str) -> Wording:
    """Return a wording with the published worked examples, then the question."""
    return Wording(
        question=question, head="{fewshot}\n\n", words=QUESTION, shared=(), examples="fewshot"
    )


@dataclass(frozen=True, kw_only=True)
class ProblemWording(Wording):
    """mcpbr's prompt: only ``{problem_statement}`` is replaced, by the framed question."""

    problem: str = MCPBR_PROBLEM
    final_line: str = FINAL_LINE

    def adapted(self, args: DatasetArgs, shots: bool) -> Wording:
        if args.few_shot_prompt_template is not None:
            raise ConfigError("bbh.mcpbr_no_shots")
        template = args.prompt_template
        if template is not None and PROBLEM not in template:
            name = template.partition("{")[2].partition("}")[0]
            hint = did_you_mean(name, ["problem_statement"]) if name else ""
            raise ConfigError("bbh.placeholder_missing", placeholder=PROBLEM, hint=hint)
        question = (self.question if template is None else template) + (
            self.final_line if getattr(args, "final_line", False) else ""
        )
        return replace(self, question=question, system_prompt=args.system_prompt)

    def prompts(self, subsets: Iterable[str], *_: object, **__: object) -> PromptMaker:
        """Make the prompts; the frame up to the first question is part of the prefix."""
        prefixes, tails = {}, {}
        turns = (Message("system", self.system_prompt),) if self.system_prompt else ()
        before_problem, *after_problems = self.question.split(PROBLEM)
        for subset in subsets:
            before_question, after_question = self.problem.replace("{subset}", subset).split(
                "{question}"
            )
            prefixes[subset] = Prefix(turns, before_problem + before_question)
            tail: list[str | Word] = []
            for text_after in after_problems:
                tail += [QUESTION["question"], after_question + text_after + before_question]
            tails[subset] = [*tail[:-1], after_question + after_problems[-1]]
        return PromptMaker(prefixes, tails)


PROTOCOLS: dict[str, BBHProtocol] = by_name(
    BBHProtocol(
        name="evalscope",
        version="v1.1",
        reader="evalscope",
        about="EvalScope's bbh: 3-shot chain of thought with a format instruction, or 0-shot",
        stop=(NEXT_QUESTION,),
        shots=3,
        shot_choices=(0, 3),
        wording=make_question_wording(EVALSCOPE_QUESTION),
        shown_target=evalscope_target,
    ),
    BBHProtocol(
        name="paper",
        version="2022",
        reader="paper",
        about="Suzgun et al. 2022: 3-shot chain of thought, exact match, mean of 23 tasks",
        headline="macro_23",
        stop=(NEXT_QUESTION,),
        shots=3,
        shot_choices=(3,),
        wording=make_question_wording(PAPER_QUESTION),
    ),
    BBHProtocol(
        name="answer-only",
        version="2022",
        reader="answer-only",
        about="Suzgun et al. 2022: 3-shot without reasoning, exact match, mean of 23 tasks",
        headline="macro_23",
        stop=(NEXT_QUESTION,),
        shots=3,
        shot_choices=(3,),
        wording=make_question_wording(ANSWER_ONLY_QUESTION),
        examples=load_answer_only,
    ),
    BBHProtocol(
        name="mcpbr",
        version="0.14",
        reader="mcpbr",
        about="mcpbr's bigbench-hard: 0-shot, the last line must be the bare answer",
        shot_choices=(0,),
        wording=ProblemWording(
            question=MCPBR_PROMPT, words={"problem_statement": QUESTION["question"]}
        ),
        final_line=True,
        lenient=True,
    ),
)
