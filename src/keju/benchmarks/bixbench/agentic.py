"""BixBench's agentic mode: the authors' prompts for one question in a notebook, and its answer.

The authors ask all questions of a capsule in one episode. Here each question has a separate
episode, data folder and notebook, so that no question helps another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from keju.benchmarks.bixbench.args import BixBenchArgs
from keju.benchmarks.bixbench.capsules import CapsuleFolder
from keju.benchmarks.choices import format_choices
from keju.benchmarks.metadata import NotebookTask
from keju.benchmarks.wording import Wording, check_template, words
from keju.types import Sample

_TEXTS = Path(__file__).with_name("prompts")
_EXPERT = "You are an expert bioinformatician and seasoned biological data scientist"
_NOTEBOOK = (
    ".\nYour task is to create a comprehensive Jupyter notebook named 'notebook.ipynb' that"
    " analyzes data to answer a series of %s.\nThe notebook should contain all necessary artifacts"
    " (plots, tables, print outputs) to fully answer these questions, structured in a way that"
    " another model could use to derive the answers."
)
SYSTEMS: Final = {
    "mcq": _EXPERT + _NOTEBOOK % "Multiple Choice Questions (MCQs)",
    "open": _EXPERT + _NOTEBOOK % "open-ended questions",
}
SYSTEM_HYPOTHESIS: Final = (
    _EXPERT + " tasked with\ncreating a Jupyter notebook to analyze data relating to a hypothesis."
    " Your goal is to\nvalidate whether the data provided supports the hypothesis or not."
)
"""Future-House/data-analysis-crow, the prompts of the capsules."""
ARTIFACTS: Final = (
    "Remember, the final notebook should contain all necessary artifacts (plots, tables, print"
    " outputs) to solve the task provided.\n"
)
AVOID_IMAGES: Final = (
    "AVOID USING PLOTS/IMAGES. USE TABLES AND PRINT OUTPUTS INSTEAD AS MUCH AS POSSIBLE.\n"
)
LANGUAGES: Final = {"python": "Python", "r": "R"}
"""Their names in the prompt."""


def describe_answer_form(args: BixBenchArgs) -> str:
    """Return a description of the answer to submit."""
    if args.answer_mode == "mcq":
        return "a single letter, that of the right option"
    if args.question_source == "hypothesis":
        return 'a single string either "True" or "False"'
    return "a single string"


def make_wording(args: BixBenchArgs) -> Wording:
    """Return the prompt of one question: the question, steps, the answer's form, guidelines."""
    vocabulary = words("(A) text")
    placeholder_names = ["question", *(["choices"] if args.answer_mode == "mcq" else [])]
    if args.prompt_template is not None:
        check_template(
            args.prompt_template,
            known_names=vocabulary,
            required=placeholder_names,
            setting="prompt_template",
        )
    hypothesis = args.question_source == "hypothesis"
    system = SYSTEM_HYPOTHESIS if hypothesis else SYSTEMS[args.answer_mode]
    return Wording(
        question=_write_task(args, placeholder_names)
        if args.prompt_template is None
        else args.prompt_template,
        system_prompt=system if args.system_prompt is None else args.system_prompt,
        words=vocabulary,
        shared=(),
    )


def _write_task(args: BixBenchArgs, placeholder_names: Sequence[str]) -> str:
    """Return the authors' message, which is assembled from separate files."""
    lead, tag = "are the questions", "questions"
    if args.question_source == "hypothesis":
        lead, tag = "is the hypothesis", "hypothesis"
    question = "\n".join(f"{{{name}}}" for name in placeholder_names)
    steps, guidelines, r_advice = (
        (_TEXTS / f"agentic_{name}.txt").read_text("utf-8") for name in ("steps", "guidelines", "r")
    )
    parts = (
        f"Here {lead} you need to address:\n\n<{tag}>\n{question}\n</{tag}>\n",
        steps,
        "[Use the submit_answer tool to submit your final answer as "
        f"{describe_answer_form(args)}]\n{ARTIFACTS}",
        guidelines,
        *([] if args.images else [AVOID_IMAGES]),
        r_advice,
    )
    return "\n".join(parts).replace("{language}", LANGUAGES[args.language])


def make_notebook_task(args: BixBenchArgs, data: Path) -> NotebookTask:
    """Return how a model works on a question; the capsules are located on first use."""

    @cache
    def capsules() -> CapsuleFolder:
        return CapsuleFolder.find(args.capsule_dir, data)

    def check(samples: Iterable[Sample]) -> None:
        for sample in samples:
            capsules().locate(sample)

    def prepare(sample: Sample, work: Path) -> Mapping[str, Any]:
        return capsules().prepare(sample, work)._asdict()

    return NotebookTask(
        check=check,
        prepare=prepare,
        objection=partial(find_objection, args),
        answer_form=describe_answer_form(args),
        max_turns=args.max_turns,
        cell_timeout=args.docker_timeout if "docker_timeout" in args.model_fields_set else None,
        image=args.docker_image if args.enable_agentic_docker else "",
        image_named="docker_image" in args.model_fields_set,
        images=args.images,
        rerun_all=args.rerun_all,
        language=args.language,
    )


def find_objection(args: BixBenchArgs, sample: Sample, answer: str) -> str | None:
    """Return the problem with a submitted answer: it is empty, or not one of the choices."""
    plain_answer = answer.strip().strip("()'\". ").lower()
    if not plain_answer:
        return "The answer is empty."
    if args.answer_mode == "mcq":
        options = (choice.strip().lower() for choice in sample.choices)
        label, next_character = plain_answer[:1].upper(), plain_answer[1:2]
        is_lettered = label in sample.labels and next_character in ("", ")", ".", ":", " ")
        if not is_lettered and plain_answer not in options:
            option_lines = format_choices(sample.choices, "(A) text")
            return f"The answer must be the letter of one of the options:\n{option_lines}"
    elif args.question_source == "hypothesis" and plain_answer not in ("true", "false"):
        return 'The answer must be "True" or "False".'
    return None
