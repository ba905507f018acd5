"""Who serves models over HTTP: where their key and address stand, and short names of models.

A model's key and address may stand in the variables that other programs of its provider read;
those of one provider are never sent to another. A short name such as ``anthropic:sonnet`` is made
a full one when settings are read, so that a run asks, stores and resumes one and the same model.
"""

from __future__ import annotations

from typing import Final, NamedTuple

AS_OF: Final = "2026-11-16"
"""When the short names were looked up."""
SHORT_NAMES: Final = {
    "anthropic:sonnet": "anthropic:claude-sonnet-5-5",
    "anthropic:opus": "anthropic:claude-opus-5-5",
    "anthropic:haiku": "anthropic:claude-haiku-5-5",
}


class Provider(NamedTuple):
    """An API, the variables of its own programs, and the address that these take by default."""

    key_variable: str
    url_variable: str
    home: str


OPENAI: Final = Provider("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1")
ANTHROPIC: Final = Provider("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com")
PROVIDERS: Final = {"": OPENAI, "anthropic": ANTHROPIC}
"""By what stands before the colon of a model's name; any other name is at an OpenAI endpoint."""


def provider_of(model: object) -> Provider:
    """The provider of the model that a setting names."""
    before = model.strip().partition(":")[0] if isinstance(model, str) and ":" in model else ""
    return PROVIDERS.get(before, OPENAI)


def full_name(model: str) -> str:
    """A model's name with a short name made a full one; any other name as it is."""
    return SHORT_NAMES.get(model.strip(), model)
