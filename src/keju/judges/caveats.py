"""What a reader of judged results has to know about the judges: warnings, and whom they concern."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Literal

from keju.config import JudgeConfig, TaskConfig
from keju.config.address import parse_address
from keju.errors import ConfigError, Notice
from keju.models.openai.preflight import KEY_ADVICE

Kinship = Literal["itself", "namesake"]
"""A judge that is the candidate, and one that has its name at another endpoint."""

ADDRESS_ADVICE, MODEL_ADVICE = "check --api-url", " and --model"
"""How `keju.models.openai.preflight` names the settings of a candidate."""
_LOOPBACK = re.compile(r"(?<=://)(?:127\.0\.0\.1|\[::1\]|0\.0\.0\.0)(?=[:/])")
_USUAL_PORT = re.compile(r"^(http://[^/]*):80(?=/)|^(https://[^/]*):443(?=/)")


def place_of(api_url: str | None) -> str | None:
    """An endpoint's address in one spelling; what is no address stays as it is."""
    try:
        return parse_address(api_url).shown if api_url else None
    except ConfigError:
        return api_url


def kinship(judge: TaskConfig, candidate: TaskConfig) -> Kinship | None:
    """Whether a judge is the candidate, however its address is spelt, or only called like it."""
    if judge.model != candidate.model:
        return None
    return "itself" if _machine(judge.api_url) == _machine(candidate.api_url) else "namesake"


def _machine(api_url: str | None) -> str | None:
    """The place of an endpoint, with one name for this computer and no port that goes unsaid."""
    place = place_of(api_url)
    if place is None:
        return None
    return _USUAL_PORT.sub(r"\1\2", _LOOPBACK.sub("localhost", place))


def key_variable(judge: JudgeConfig) -> str:
    """Name of the environment variable with the key of a judge."""
    return judge.api_key_var or "OPENAI_API_KEY"


def lacking_key(judge: JudgeConfig, task: TaskConfig) -> Notice | None:
    """What became of a judge whose settings name a variable that is not set; None if it is set."""
    if judge.api_key_var is None or task.api_url is None or os.environ.get(judge.api_key_var):
        return None
    code = "judge_without_key" if task.api_key is None else "judge_with_candidates_key"
    return Notice(code, {"variable": judge.api_key_var})


def advice_about_judge(told: str, judge: JudgeConfig, task: TaskConfig) -> str:
    """What `told` about an endpoint, with the settings of its judge in place of a candidate's."""
    lacking = lacking_key(judge, task)
    own = f"set {key_variable(judge)}"
    told = told.replace(KEY_ADVICE, own if lacking is None else f"{own} ({lacking.text()})")
    if judge.api_url is None:
        return told.replace(ADDRESS_ADVICE + MODEL_ADVICE, f"{ADDRESS_ADVICE} and judge.model")
    both = "check judge.api_url and judge.model (or llm_judge_base_url and llm_judge_model)"
    told = told.replace(ADDRESS_ADVICE + MODEL_ADVICE, both)
    return told.replace(ADDRESS_ADVICE, "check judge.api_url (or llm_judge_base_url)")


def about_kinship(kin: Kinship | None, *, second: bool) -> Iterator[Notice]:
    """The warning about a judge that is, or may be, the candidate."""
    which = "second_judge" if second else "judge"
    if kin is not None:
        yield Notice(f"{which}_is_candidate" if kin == "itself" else f"{which}_is_namesake")


def about_verdicts(missing: int, second_missing: int, answers: int) -> Iterator[Notice]:
    """The warnings about answers without a verdict."""
    if missing:
        yield Notice("judge_without_verdict", {"missing": missing, "whole": answers})
    if second_missing:
        values = {"missing": second_missing, "whole": answers}
        yield Notice("second_judge_without_verdict", values)


def about_repeats(repeats: int, temperature: float | None) -> Iterator[Notice]:
    """The warning about repeats that cannot differ by chance."""
    if repeats > 1 and temperature == 0:
        yield Notice("judge_repeats_at_temperature_0")
