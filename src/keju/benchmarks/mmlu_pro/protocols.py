"""The published ways to sit MMLU-Pro, and which settings each of them can honour."""

from __future__ import annotations

from keju.benchmarks.base import Protocol
from keju.benchmarks.mmlu_pro.prompts import (
    EVALSCOPE_HEAD,
    EVALSCOPE_QUESTION,
    EvalScopeForm,
    Form,
    OfficialApiForm,
    OfficialForm,
    Shots,
)
from keju.benchmarks.templates import check_template
from keju.config import DatasetArgs
from keju.errors import ConfigError, did_you_mean

EVALSCOPE = "evalscope"
OFFICIAL = "official"
OFFICIAL_API = "official-api"

PROTOCOLS: dict[str, Protocol] = {
    EVALSCOPE: Protocol(
        name=EVALSCOPE,
        version="1.14",
        reader="evalscope",
        about="EvalScope 1.14: 0 to 5 worked examples (default 5) and 'ANSWER: X', one message",
    ),
    OFFICIAL: Protocol(
        name=OFFICIAL,
        version="1",
        reader="l2",
        about="the authors' script for local models: 5 worked examples, a text to continue",
        form="completion",
        max_tokens=2048,
        stop=("Question:",),
    ),
    OFFICIAL_API: Protocol(
        name=OFFICIAL_API,
        version="1",
        reader="l2",
        about="the authors' script for APIs: 5 worked examples, one message, '**' ignored",
        max_tokens=4000,
    ),
}

SHOTS = 5
"""The default number of worked examples, and the most: the pool has no more a category."""

_QUESTION_NAMES = ("subject", "letters", "question", "choices")
_WHOLE_NAMES = (*_QUESTION_NAMES, "examples")


def protocol_of(args: DatasetArgs) -> Protocol:
    """The protocol that `args` name; ConfigError if there is none or a setting cannot apply."""
    name = args.protocol or EVALSCOPE
    if name not in PROTOCOLS:
        raise ConfigError(f"unknown MMLU-Pro protocol '{name}'{did_you_mean(name, PROTOCOLS)}")
    protocol = PROTOCOLS[name]
    if protocol.form == "completion" and args.system_prompt:
        raise ConfigError(
            f"system_prompt: protocol '{name}' sends a text to continue, which has no system"
            f" message; use protocol '{EVALSCOPE}' or '{OFFICIAL_API}', or leave it out"
        )
    if name == EVALSCOPE:
        _check_templates(args)
        return protocol
    for setting in ("prompt_template", "few_shot_prompt_template"):
        if getattr(args, setting) is not None:
            raise ConfigError(
                f"{setting}: protocol '{name}' has a fixed prompt;"
                f" use protocol '{EVALSCOPE}' or leave it out"
            )
    return protocol


def shot_count(args: DatasetArgs) -> int:
    """How many worked examples are shown; ConfigError if the pool has fewer."""
    count = SHOTS if args.few_shot_num is None else args.few_shot_num
    if count > SHOTS:
        raise ConfigError(
            f"few_shot_num: {count} worked examples asked for, MMLU-Pro has {SHOTS} a category"
        )
    if args.few_shot_random and not count:
        raise ConfigError("few_shot_random: there is nothing to draw with few_shot_num 0")
    return count


def form_of(protocol: Protocol, args: DatasetArgs, shots: Shots) -> Form:
    """How the prompts are written, with the templates of `args` where they are given."""
    if protocol.name == OFFICIAL:
        return OfficialForm(shots)
    if protocol.name == OFFICIAL_API:
        return OfficialApiForm(shots)
    return EvalScopeForm(shots, _template(args))


def _template(args: DatasetArgs) -> str:
    question = EVALSCOPE_QUESTION if args.prompt_template is None else args.prompt_template
    if not shot_count(args):
        return question
    if args.few_shot_prompt_template is not None:
        return args.few_shot_prompt_template
    return EVALSCOPE_HEAD + question


def _check_templates(args: DatasetArgs) -> None:
    if args.prompt_template is not None:
        check_template(
            args.prompt_template,
            known=_QUESTION_NAMES,
            required=("question", "choices"),
            setting="prompt_template",
        )
    if args.few_shot_prompt_template is None:
        return
    if not shot_count(args):
        raise ConfigError(
            "few_shot_prompt_template has no effect with few_shot_num 0; set prompt_template"
        )
    if args.prompt_template is not None:
        raise ConfigError(
            "prompt_template has no effect beside few_shot_prompt_template,"
            " which is the whole prompt: give one of them"
        )
    check_template(
        args.few_shot_prompt_template,
        known=_WHOLE_NAMES,
        required=("examples", "question", "choices"),
        setting="few_shot_prompt_template",
    )
