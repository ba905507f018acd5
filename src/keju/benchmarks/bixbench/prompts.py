"""The published prompts of BixBench, word for word, faults of spacing included."""

from __future__ import annotations

import re

from keju.benchmarks.choices import LabelStyle, label_lines
from keju.benchmarks.wording import fill
from keju.types import Message, Prefix, Prompt, Sample

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
"""The environment's, without its claim that A means True, which shuffling makes false, and with
the letter that its refusal option really has."""
SYSTEM_HYPOTHESIS_OPEN = (
    "Answer whether the hypothesis is true or false. Respond with 'True' or 'False' only, unless"
    " you are unsure."
)

ENVIRONMENT_MCQ = "{question}{legend}\n\nOptions:\n{choices}\n"
ENVIRONMENT_OPEN = "{question}"
ENVIRONMENT_REFUSAL = "I don't know"
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
OFFICIAL_REFUSAL = "Insufficient information to answer the question"
"""Future-House/BixBench, the zero-shot script."""

_OWN = re.compile(r"\{(?:question|choices|legend)\}")


class Wording:
    """A template made ready: what all questions share is rendered once."""

    def __init__(self, template: str, style: LabelStyle, *, system: str, legend: bool) -> None:
        own = _OWN.search(template)
        cut = own.start() if own else len(template)
        turns = (Message("system", system),) if system else ()
        self._prefix = Prefix(turns, template[:cut])
        self._tail = template[cut:]
        self._style = style
        self._legend = legend

    def render(self, sample: Sample) -> Prompt:
        """The prompt of one question."""
        values = {
            "question": sample.text,
            "choices": label_lines(sample.choices, self._style),
            "legend": legend_of(sample) if self._legend else "",
        }
        return Prompt(self._prefix, fill(self._tail, values))


def legend_of(sample: Sample) -> str:
    """Which letters mean True and False, as the options are shown."""
    letters = {text: label for label, text in zip(sample.labels, sample.choices, strict=True)}
    return fill(LEGEND, {"true": letters["True"], "false": letters["False"]})
