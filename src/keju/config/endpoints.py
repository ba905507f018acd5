"""Several endpoints of one model: where they are, and what each of them may be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from keju.config.address import parse_address
from keju.config.strict import Count, Invalid, Rate, StrictSettings, Text, Texts, variable_name
from keju.errors import ConfigError

PLACES = ADDRESS, ENDPOINTS, SERVE = "api_url", "endpoints", "serve"
"""The settings that say where a model is; a task has one of them."""


class Endpoint(StrictSettings):
    """One endpoint of several that serve the same model."""

    url: Text
    """Its base URL, as `api_url`."""
    weight: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """How many of the prefixes begin here, against those of the others."""
    model: Text | None = None
    """What the model is called there; the task's `model` by default."""
    api_key_var: str | None = None
    """Name of the environment variable that holds its key; the task's key by default."""
    concurrency: Count | None = None
    """The most requests in flight there; `eval_batch_size` by default."""
    rpm: Rate | None = None
    """Requests a minute there; the task's own are over all endpoints."""
    tpm: Rate | None = None
    """Tokens a minute there, input and output."""
    reports: Texts = Field(default=[])
    """Names that it may report for the model, where they differ from those of the others."""

    @model_validator(mode="before")
    @classmethod
    def _address_alone(cls, data: Any) -> Any:
        """Accept an address in place of settings."""
        return {"url": data} if isinstance(data, str) else data

    @field_validator("url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        try:
            parse_address(value)
        except ConfigError as error:
            raise Invalid(error.code) from None
        return value

    @field_validator("api_key_var")
    @classmethod
    def _names_a_variable(cls, value: str | None) -> str | None:
        return None if value is None else variable_name(value, f"{ENDPOINTS}.api_key_var")

    @property
    def declared(self) -> list[str]:
        """Names that it may report for the model: what it is asked for there, and `reports`."""
        return [*([self.model] if self.model else []), *self.reports]

    @property
    def shown(self) -> str:
        """Its address without credentials."""
        return parse_address(self.url).shown


def as_endpoints(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with several addresses in ``api_url`` as endpoints; one alone is an address."""
    given = settings.get(ADDRESS)
    if not isinstance(given, list | tuple):
        return dict(settings)
    rest = {name: value for name, value in settings.items() if name != ADDRESS}
    if len(given) < 2:
        return rest | {ADDRESS: given[0] if given else None}
    for other in (ENDPOINTS, SERVE):
        if rest.get(other):
            raise ConfigError("config_two_places", first=ADDRESS, second=other)
    return rest | {ENDPOINTS: [{"url": url} for url in given]}


def distinct(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    """The same endpoints; Invalid where two of them are one."""
    places = [(each.shown, each.model) for each in endpoints]
    twice = dict.fromkeys(shown for shown, model in places if places.count((shown, model)) > 1)
    if twice:
        raise Invalid("config_named_twice", names=[*twice])
    return list(endpoints)
