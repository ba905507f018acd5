"""BixBench's agentic mode: the authors' prompts for one question in a notebook, and its answer.

The authors put all questions of a capsule to one episode; here each question has an episode, data
and a notebook of its own, so that no question helps another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from keju.benchmarks.bixbench.args import BixBenchArgs
from keju.benchmarks.bixbench.capsules import Capsules
from keju.benchmarks.choices import label_lines
from keju.benchmarks.facts import NotebookTask
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
"""As the prompt names them."""


def answer_form(args: BixBenchArgs) -> str:
    """What has to be submitted, in words."""
    if args.answer_mode == "mcq":
        return "a single letter, that of the right option"
    if args.question_source == "hypothesis":
        return 'a single string either "True" or "False"'
    return "a single string"


def wording(args: BixBenchArgs) -> Wording:
    """The prompt of one question: the question, steps, what to submit, guidelines."""
    vocabulary = words("(A) text")
    asked = ["question", *(["choices"] if args.answer_mode == "mcq" else [])]
    if args.prompt_template is not None:
        check_template(
            args.prompt_template, known=vocabulary, required=asked, setting="prompt_template"
        )
    hypothesis = args.question_source == "hypothesis"
    system = SYSTEM_HYPOTHESIS if hypothesis else SYSTEMS[args.answer_mode]
    return Wording(
        question=_task(args, asked) if args.prompt_template is None else args.prompt_template,
        system_prompt=system if args.system_prompt is None else args.system_prompt,
        words=vocabulary,
        shared=(),
    )


def _task(args: BixBenchArgs, asked: Sequence[str]) -> str:
    """The authors' message, whose parts stand in files of their own."""
    lead, tag = "are the questions", "questions"
    if args.question_source == "hypothesis":
        lead, tag = "is the hypothesis", "hypothesis"
    question = "\n".join(f"{{{name}}}" for name in asked)
    steps, guidelines, r = (
        (_TEXTS / f"agentic_{name}.txt").read_text("utf-8") for name in ("steps", "guidelines", "r")
    )
    parts = (
        f"Here {lead} you need to address:\n\n<{tag}>\n{question}\n</{tag}>\n",
        steps,
        f"[Use the submit_answer tool to submit your final answer as {answer_form(args)}]\n"
        + ARTIFACTS,
        guidelines,
        *([] if args.images else [AVOID_IMAGES]),
        r,
    )
    return "\n".join(parts).replace("{language}", LANGUAGES[args.language])


def notebook_task(args: BixBenchArgs, data: Path) -> NotebookTask:
    """How a question is worked on; its capsule is looked for only when it is."""

    @cache
    def capsules() -> Capsules:
        return Capsules.find(args.capsule_dir, data)

    def check(samples: Iterable[Sample]) -> None:
        for sample in samples:
            capsules().place(sample)

    def prepare(sample: Sample, work: Path) -> Mapping[str, Any]:
        return capsules().prepare(sample, work)._asdict()

    return NotebookTask(
        check=check,
        prepare=prepare,
        objection=partial(objection, args),
        answer_form=answer_form(args),
        max_turns=args.max_turns,
        cell_timeout=args.docker_timeout if "docker_timeout" in args.model_fields_set else None,
        image=args.docker_image if args.enable_agentic_docker else "",
        image_named="docker_image" in args.model_fields_set,
        images=args.images,
        rerun_all=args.rerun_all,
        language=args.language,
    )


def objection(args: BixBenchArgs, sample: Sample, answer: str) -> str | None:
    """What is wrong with a submitted answer: it is empty, or none of those to choose from."""
    plain = answer.strip().strip("()'\". ").lower()
    if not plain:
        return "The answer is empty."
    if args.answer_mode == "mcq":
        options = (choice.strip().lower() for choice in sample.choices)
        label, after = plain[:1].upper(), plain[1:2]
        lettered = label in sample.labels and after in ("", ")", ".", ":", " ")
        if not lettered and plain not in options:
            shown = label_lines(sample.choices, "(A) text")
            return f"The answer must be the letter of one of the options:\n{shown}"
    elif args.question_source == "hypothesis" and plain not in ("true", "false"):
        return 'The answer must be "True" or "False".'
    return None
