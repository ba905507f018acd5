"""Several endpoints of one model: their addresses, and the limits of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from keju.config.address import parse_address
from keju.config.strict import Count, InvalidValue, Rate, StrictSettings, Text, Texts, variable_name
from keju.errors import ConfigError

PLACES = ADDRESS, ENDPOINTS, SERVE = "api_url", "endpoints", "serve"
"""The settings for the place of a model. A task has one of them."""


class Endpoint(StrictSettings):
    """One endpoint of several that serve the same model."""

    url: Text
    """Its base URL, in the form of `api_url`."""
    weight: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """The share of prefixes that start here, relative to the other endpoints' weights."""
    model: Text | None = None
    """The model's name at this endpoint; the task's `model` by default."""
    api_key_var: str | None = None
    """Name of the environment variable that holds its key; the task's key by default."""
    concurrency: Count | None = None
    """The most requests in flight at this endpoint; `eval_batch_size` by default."""
    rpm: Rate | None = None
    """The most requests a minute at this endpoint. The task's own limit covers all endpoints."""
    tpm: Rate | None = None
    """The most tokens a minute at this endpoint, input and output."""
    reports: Texts = Field(default=[])
    """Model names that this endpoint may report, if the other endpoints report different ones."""

    @model_validator(mode="before")
    @classmethod
    def _address_alone(cls, data: Any) -> Any:
        """Accept an address instead of settings."""
        return {"url": data} if isinstance(data, str) else data

    @field_validator("url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        try:
            parse_address(value)
        except ConfigError as error:
            raise InvalidValue(error.code) from None
        return value

    @field_validator("api_key_var")
    @classmethod
    def _names_a_variable(cls, value: str | None) -> str | None:
        return None if value is None else variable_name(value, f"{ENDPOINTS}.api_key_var")

    @property
    def declared(self) -> list[str]:
        """Model names that this endpoint may report: its `model` and `reports`."""
        return [*([self.model] if self.model else []), *self.reports]

    @property
    def display_url(self) -> str:
        """Its address without credentials."""
        return parse_address(self.url).display_url


def as_endpoints(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return `settings` with several addresses in ``api_url`` turned into endpoints.

    A list with a single address becomes that address.
    """
    addresses = settings.get(ADDRESS)
    if not isinstance(addresses, list | tuple):
        return dict(settings)
    other_settings = {name: value for name, value in settings.items() if name != ADDRESS}
    if len(addresses) < 2:
        return other_settings | {ADDRESS: addresses[0] if addresses else None}
    for setting in (ENDPOINTS, SERVE):
        if other_settings.get(setting):
            raise ConfigError("config_two_places", first=ADDRESS, second=setting)
    return other_settings | {ENDPOINTS: [{"url": url} for url in addresses]}


def check_distinct(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    """Return the endpoints, or raise Invalid if two of them are the same."""
    places = [(endpoint.display_url, endpoint.model) for endpoint in endpoints]
    repeated_urls = dict.fromkeys(url for url, model in places if places.count((url, model)) > 1)
    if repeated_urls:
        raise InvalidValue("config_named_twice", names=[*repeated_urls])
    return list(endpoints)
