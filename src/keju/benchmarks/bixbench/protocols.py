"""The published ways to ask BixBench, with their exact prompts, including their spacing errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from keju.benchmarks.base import Protocol, by_name
from keju.benchmarks.bixbench import agentic
from keju.benchmarks.bixbench.args import BixBenchArgs
from keju.benchmarks.choices import LabelStyle
from keju.benchmarks.wording import Wording, check_template, fill, words
from keju.errors import ConfigError
from keju.types import Sample

SYSTEM_MCQ = (
    "Respond with a single letter A, B, C, or D. If an 'E. I don't know' option is shown, you may"
    " answer E. Output only the letter."
)
SYSTEM_OPEN = "Answer succinctly in one or two sentences. Do not include qualifiers like 'I think'."
"""The README of the verifiers environment `bixbench`."""

SYSTEM_HYPOTHESIS_MCQ = (
    "You are evaluating whether a scientific hypothesis is supported. Respond with a single letter"
    " A or B. If a 'C. I don't know' option is shown, you may answer C. Output only the letter."
)
"""The environment's prompt with two corrections. Its claim that A means True is removed, because
shuffling makes it false, and its refusal option has the correct letter."""
SYSTEM_HYPOTHESIS_OPEN = (
    "Answer whether the hypothesis is true or false. Respond with 'True' or 'False' only, unless"
    " you are unsure."
)

ENVIRONMENT_MCQ = "{question}{legend}\n\nOptions:\n{choices}\n"
ENVIRONMENT_OPEN = "{question}"
LEGEND = "\n\nLegend: {true}=True, {false}=False"

OFFICIAL_MCQ = (
    "Extract the single letter answer to the following question from the given options. You must"
    " pick one answer even if you are unsure.\n\nQuestion: {question}\n\nOptions:\n{choices}"
    "IMPORTANT: You must only output a single letter answer in XML format.\n\n"
    " Example Output: <answer> X </answer>"
)
OFFICIAL_MCQ_WITH_REFUSAL = (
    "Extract the single letter answer to the following question from the given options given"
    " below.\n\nQuestion: {question}\n\nOptions:\n{choices}"
    "IMPORTANT: You must only output a single letter answer in XML format.\n\n"
    "Example Output: <answer> X </answer>"
)
OFFICIAL_OPEN = (
    "Answer following question to the best of your knowledge.Keep your answer concise and to the"
    " point.\n\nQuestion: {question}IMPORTANT: You must only output your answer in XML format.\n\n"
    "Example Output: <answer> Your answer </answer>"
)
"""Future-House/BixBench, the zero-shot script."""


AGENTIC = "agentic"
"""The mode with tools, and its protocol."""


class RefusalOption(NamedTuple):
    """The option "I don't know", for settings that offer it."""

    text: str
    is_last: bool
    """Whether it follows the shuffled options; otherwise it is shuffled with them."""


class QuestionView(NamedTuple):
    """The kind of answers and questions."""

    answer_mode: str
    question_source: str


@dataclass(frozen=True, kw_only=True)
class BixBenchProtocol(Protocol):
    """One publication: its prompts by answer mode, and its refusal option.

    `reader` is the reader of multiple choice; ``native`` reads open answers.
    """

    style: LabelStyle
    questions: Mapping[str, str]
    """The message by answer mode; ``refusal`` is the one for options with a refusal."""
    systems: Mapping[QuestionView, str]
    """The system message of each view; the other views have none."""
    refusal: RefusalOption
    hypotheses: bool = True
    """Whether it can ask about the truth of hypotheses."""
    tags_required: bool = False
    """Whether an open answer must be in tags."""

    def make_wording(self, args: BixBenchArgs) -> Wording:
        """Return the prompts for these settings; a user's empty system message also counts."""
        if args.question_source == "hypothesis" and not self.hypotheses:
            raise ConfigError("bixbench.no_hypothesis", protocol=self.name)
        template = args.prompt_template
        if template is None:
            offers_refusal = args.with_refusal and "refusal" in self.questions
            template = self.questions["refusal" if offers_refusal else args.answer_mode]
        else:
            required = ["question"] + (["choices"] if args.answer_mode == "mcq" else [])
            required += ["legend"] if args.add_tf_legend else []
            check_template(
                template, known_names=required, required=required, setting="prompt_template"
            )
        system = self.systems.get(QuestionView(args.answer_mode, args.question_source), "")
        return Wording(
            question=template,
            system_prompt=system if args.system_prompt is None else args.system_prompt,
            words=words(self.style)
            | {"legend": write_legend if args.add_tf_legend else lambda _: ""},
            shared=(),
        )


class AgenticProtocol(BixBenchProtocol):
    """The authors' notebook agent, whose prompts are assembled from parts."""

    def make_wording(self, args: BixBenchArgs) -> Wording:
        return agentic.make_wording(args)


def write_legend(sample: Sample) -> str:
    """Return a legend with the letters of True and False in the displayed order."""
    letters = dict(zip(sample.choices, sample.labels, strict=True))
    return fill(LEGEND, {"true": letters["True"], "false": letters["False"]})


PROTOCOLS: Mapping[str, BixBenchProtocol] = by_name(
    BixBenchProtocol(
        name="environment",
        version="1",
        reader="environment",
        about="the verifiers environment: a system prompt, the letter alone or a short answer",
        style="A. text",
        questions={"mcq": ENVIRONMENT_MCQ, "open": ENVIRONMENT_OPEN},
        systems={
            QuestionView("mcq", "mcq"): SYSTEM_MCQ,
            QuestionView("open", "mcq"): SYSTEM_OPEN,
            QuestionView("mcq", "hypothesis"): SYSTEM_HYPOTHESIS_MCQ,
            QuestionView("open", "hypothesis"): SYSTEM_HYPOTHESIS_OPEN,
        },
        refusal=RefusalOption("I don't know", is_last=True),
    ),
    BixBenchProtocol(
        name="official",
        version="1",
        reader="official",
        about="Future-House's zero-shot script: one message, temperature 1, answer in tags",
        temperature=1.0,
        style="(A) text",
        questions={
            "mcq": OFFICIAL_MCQ,
            "refusal": OFFICIAL_MCQ_WITH_REFUSAL,
            "open": OFFICIAL_OPEN,
        },
        systems={},
        refusal=RefusalOption("Insufficient information to answer the question", is_last=False),
        hypotheses=False,
        tags_required=True,
    ),
    AgenticProtocol(
        name=AGENTIC,
        version="1",
        reader="environment",
        about="Future-House's notebook agent: data, cells and an answer to submit (mode agentic)",
        temperature=1.0,
        style="(A) text",
        questions={},
        systems={},
        refusal=RefusalOption("Insufficient information to answer the question", is_last=False),
    ),
)
