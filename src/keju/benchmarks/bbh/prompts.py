"""Wording a question: the protocol's template or the user's, split where the question begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keju.benchmarks.bbh.protocols import FEWSHOT, FINAL_LINE, MCPBR_PROBLEM, SHOTS
from keju.benchmarks.templates import check_template, fill
from keju.config import DatasetArgs
from keju.errors import ConfigError, did_you_mean
from keju.types import Message, Prefix, Prompt

QUESTION = "{question}"
PROBLEM = "{problem_statement}"


@dataclass(frozen=True)
class Wording:
    """All that a subset's prompts share; one `Prefix` object for all of them."""

    prefix: Prefix
    pieces: tuple[str, ...]
    """What stands after the question, each time it occurs."""

    def render(self, question: str) -> Prompt:
        """The prompt of one question."""
        return Prompt(self.prefix, question + question.join(self.pieces))


def word_subset(template: str, values: Mapping[str, str], system_prompt: str | None) -> Wording:
    """Fill a template's placeholders but the question; what precedes the question is shared."""
    pieces = [fill(piece, values) for piece in template.split(QUESTION)]
    return _wording(pieces, system_prompt)


def word_problem(template: str, subset: str, system_prompt: str | None) -> Wording:
    """mcpbr's wording: ``{problem_statement}`` alone is replaced, by the question in its frame."""
    before, after = MCPBR_PROBLEM.replace("{subset}", subset).split(QUESTION)
    first, *others = template.split(PROBLEM)
    pieces = [first + before, *(after + other + before for other in others)]
    return _wording([*pieces[:-1], pieces[-1].removesuffix(before)], system_prompt)


def _wording(pieces: Sequence[str], system_prompt: str | None) -> Wording:
    messages = (Message("system", system_prompt),) if system_prompt else ()
    return Wording(Prefix(messages, pieces[0]), tuple(pieces[1:]))


def choose_template(args: DatasetArgs, protocol: str, shots: int, *, final_line: bool) -> str:
    """The template that is sent: the user's where one is given, else the protocol's.

    With worked examples ``prompt_template`` words the question that follows them. A template that
    could have no effect, or that leaves the question out, is refused.
    """
    if protocol == "mcpbr":
        return _mcpbr_template(args) + (FINAL_LINE if final_line else "")
    question, few_shot = args.prompt_template, args.few_shot_prompt_template
    if few_shot is not None:
        if shots == 0:
            raise ConfigError("few_shot_prompt_template has no effect with few_shot_num 0")
        if question is not None:
            raise ConfigError(
                "few_shot_prompt_template takes the place of prompt_template: give one of the two"
            )
        names = ("question", "fewshot")
        check_template(few_shot, known=names, required=names, setting="few_shot_prompt_template")
        return few_shot
    if question is not None:
        check_template(
            question, known=("question",), required=("question",), setting="prompt_template"
        )
    return (FEWSHOT if shots else "") + (question or SHOTS[protocol].question)


def _mcpbr_template(args: DatasetArgs) -> str:
    """mcpbr replaces ``{problem_statement}`` and nothing else: all other braces are text."""
    if args.few_shot_prompt_template is not None:
        raise ConfigError("protocol mcpbr has no worked examples: few_shot_prompt_template refused")
    template = args.prompt_template
    if template is None:
        template = SHOTS["mcpbr"].question
    elif PROBLEM not in template:
        found = template.partition("{")[2].partition("}")[0]
        hint = did_you_mean(found, ["problem_statement"]) if found else ""
        raise ConfigError(f"prompt_template: the placeholder {PROBLEM} is missing{hint}")
    return template
