"""What each model of Anthropic's API accepts, in one dated table.

The API tells much of it by itself (``GET /v1/models/ID``: the longest reply, the kinds of
thinking); what it does not tell, or what must be known before anything is sent, stands here.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

AS_OF: Final = "2026-11-16"
"""When the table was last compared with what the vendor says."""
DEFAULT_VERSION: Final = "2026-10-21"
"""The version of the API that is asked for where no setting names another."""
NO_SAMPLING_SINCE: Final = "2026-10-21"
"""From this version on no model has ``temperature``, ``top_p`` and ``top_k``."""
MODEST_EFFORTS: Final = ("low", "medium", "high")

Thinking = Literal["adaptive", "enabled", "disabled", "between_tools"]


class Gate(NamedTuple):
    """What one family of models accepts."""

    thinks: Literal["off", "on", "always"]
    """Whether it thinks where a request does not say."""
    thinking: tuple[Thinking, ...]
    """Which settings of thinking a request may name."""
    sampling: Literal["one", "default", "none"]
    """In versions that have it: temperature or top_p, a temperature of 1 alone, or nothing."""
    most_tokens: int = 128_000
    """The longest reply."""
    prefill: bool = False
    """Whether it goes on from an assistant's turn that was begun for it."""
    efforts: bool = True
    """Whether it takes ``output_config.effort``."""
    default_effort: str = "high"
    modest: tuple[Thinking, ...] = ()
    """Settings of thinking that go with an effort of at most ``high``."""
    bound: bool = False
    """Whether its thinking is tied to all that was said before: history may only grow."""


_OF_4_5 = Gate(
    "off", ("enabled", "disabled"), "one", most_tokens=64_000, prefill=True, efforts=False
)
_OF_4_6 = Gate("off", ("adaptive", "enabled", "disabled"), "one")
_OF_4_8 = Gate("off", ("adaptive", "disabled"), "none")
_OF_5 = Gate("on", ("adaptive", "disabled"), "default")
_ALWAYS = Gate("always", ("adaptive",), "none", bound=True)

GATES: Final = {
    "claude-haiku-4-5": _OF_4_5,
    "claude-sonnet-4-5": _OF_4_5,
    "claude-opus-4-5": _OF_4_5._replace(efforts=True),
    "claude-opus-4-6": _OF_4_6,
    "claude-sonnet-4-6": _OF_4_6,
    "claude-opus-4-7": _OF_4_8,
    "claude-opus-4-8": _OF_4_8,
    "claude-sonnet-5": _OF_5,
    "claude-opus-5": _OF_5._replace(modest=("disabled",)),
    "claude-haiku-5-5": _OF_5._replace(modest=("disabled",), default_effort="medium", bound=True),
    "claude-sonnet-5-5": Gate(
        "on", ("adaptive", "between_tools"), "none", modest=("between_tools",), bound=True
    ),
    "claude-opus-5-5": _ALWAYS._replace(default_effort="medium"),
    "claude-fable-5": _ALWAYS,
    "claude-mythos-5": _ALWAYS,
}
"""By the beginning of the model's id: ``claude-sonnet-4-5`` is also ``claude-sonnet-4-5-20250929``,
and of ``claude-opus-5`` and ``claude-opus-5-5`` the longer one counts."""


def gate_of(model: str) -> Gate | None:
    """What `model` accepts; None for a name that the table does not know."""
    known = [name for name in GATES if model == name or model.startswith(f"{name}-")]
    return GATES[max(known, key=len)] if known else None
