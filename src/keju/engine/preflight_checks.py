"""Checks of the reply to the preflight's cheap call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from keju.errors import Notice
from keju.models.base import Model
from keju.scores.reply_checks import is_same_model
from keju.types import CUT, Reply


class PreflightCall(NamedTuple):
    """The preflight's call."""

    reply: Reply
    requested_model: str
    """The requested name of the model."""
    declared: Collection[str]
    """Names that the settings allow endpoints to report for the model."""
    size: int
    """Bytes of its prompt."""


MAX_BYTES_PER_TOKEN = 12
"""More bytes per token than any prompt of English words has on average."""


def preflight_notices(model: Model, declared: Collection[str] = ()) -> Iterator[Notice]:
    """Yield the notices to report before the first question.

    `declared` are names that the settings allow endpoints to report for the model.
    """
    if model.trial is not None:
        trial = PreflightCall(model.trial, model.name, declared, model.trial_bytes)
        for check in TRIAL_CHECKS:
            yield from check(trial)
    yield from model.learnt


def _check_model_name(trial: PreflightCall) -> Iterator[Notice]:
    """Yield a notice if the endpoint reports another model than the requested one."""
    name = trial.reply.model
    if name and name not in trial.declared and not is_same_model(trial.requested_model, name):
        yield Notice("other_model_at_start", {"asked": trial.requested_model, "reported": name})


def _check_choices(trial: PreflightCall) -> Iterator[Notice]:
    """Yield a notice if the endpoint returns several choices."""
    if trial.reply.choices > 1:
        yield Notice("several_choices_at_start", {"most": trial.reply.choices})


def _check_logprobs(trial: PreflightCall) -> Iterator[Notice]:
    """Yield a notice if log-probabilities cannot be right."""
    if trial.reply.logprob_issue:
        yield Notice(f"logprobs_{trial.reply.logprob_issue}_at_start")


def _check_text_field(trial: PreflightCall) -> Iterator[Notice]:
    """Yield a notice if a reply that was not cut off is only in the field for reasoning."""
    reply = trial.reply
    is_empty = not reply.compared and not reply.text.strip() and reply.finish != CUT
    if is_empty and reply.reasoning and not reply.raw and not reply.refused:
        yield Notice("replies_in_reasoning_at_start")


def _check_prompt_tokens(trial: PreflightCall) -> Iterator[Notice]:
    """Yield a notice if the endpoint counts far fewer tokens than the prompt has."""
    usage = trial.reply.usage
    if 0 < usage.input * MAX_BYTES_PER_TOKEN < trial.size and not usage.cached:
        values = {"tokens": usage.input, "size": trial.size}
        yield Notice("prompt_tokens_capped_at_start", values)


TRIAL_CHECKS: tuple[Callable[[PreflightCall], Iterator[Notice]], ...] = (
    _check_model_name,
    _check_choices,
    _check_text_field,
    _check_prompt_tokens,
    _check_logprobs,
)
