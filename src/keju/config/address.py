"""Where an endpoint is: from what a user types to the address of each route, and who serves models.

A model's key and address may stand in the variables that other programs of its provider read;
those of one provider are never sent to another. A short name such as ``anthropic:sonnet`` is made
a full one when settings are read, so that a run asks, stores and resumes one and the same model.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from keju.errors import ConfigError
from keju.types import Form

PATHS: dict[Form, str] = {"chat": "/chat/completions", "completion": "/completions"}
MESSAGES = "/messages"
DEFAULT_VERSION = "/v1"


@dataclass(frozen=True)
class Address:
    """The base of an OpenAI-compatible endpoint, and the query its routes carry."""

    base: str
    query: str
    shown: str
    """The base without user name, password and query, for messages and the manifest."""
    secrets: tuple[str, ...] = ()
    """What the URL itself holds that must not be shown."""

    def route(self, form: Form) -> str:
        """The address that answers prompts of this form."""
        return self.base + PATHS[form] + self.query

    @property
    def messages(self) -> str:
        """The address of Anthropic's Messages API."""
        return self.base + MESSAGES + self.query

    def model(self, name: str) -> str:
        """The address that describes one model."""
        return f"{self.base}/models/{quote(name, safe='')}{self.query}"

    @property
    def props(self) -> str:
        """What llama.cpp's server tells of itself."""
        return f"{self.base.removesuffix(DEFAULT_VERSION)}/props{self.query}"

    @property
    def models(self) -> str:
        """The address that lists the models."""
        return f"{self.base}/models{self.query}"

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def parse_address(api_url: str) -> Address:
    """Read a base URL, or the full URL of a route.

    A URL without any path gets ``/v1``; one with a path is taken as it is, so that nothing is
    guessed. ``…/chat/completions`` and ``…/completions`` are recognised and cut off.
    """
    text = api_url.strip()
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigError("config_url_unreadable") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError("config_url_form")
    path = parts.path.rstrip("/")
    bare = path == ""
    for suffix in PATHS.values():
        path = path.removesuffix(suffix)
    if bare:
        path = DEFAULT_VERSION
    shown_host = f"[{host}]" if ":" in host else host
    shown = f"{parts.scheme}://{shown_host}{f':{port}' if port else ''}{path}"
    query = f"?{parts.query}" if parts.query else ""
    typed = [parts.username or "", parts.password or ""]
    typed += [pair.partition("=")[2] for pair in parts.query.split("&") if pair]
    plain = [*map(unquote, typed)]  # what the server gets
    pair = [f"{plain[0]}:{plain[1]}"] if plain[1] else []  # as Base64 in its header
    secrets = tuple(dict.fromkeys([*typed, *plain, *pair]))
    return Address(f"{parts.scheme}://{parts.netloc}{path}", query, shown, secrets)


def messages_address(api_url: str) -> Address:
    """The address of Anthropic's API, which ends in ``/v1`` whether or not that is said.

    ``https://there``, ``https://there/v1`` and ``https://there/v1/messages`` are one.
    """
    address = parse_address(api_url)

    def whole(base: str) -> str:
        return base.removesuffix(MESSAGES).removesuffix(DEFAULT_VERSION) + DEFAULT_VERSION

    return replace(address, base=whole(address.base), shown=whole(address.shown))


def shown_url(url: str) -> str:
    """A URL as it may be stored and printed: without user name, password, query and fragment.

    Never raises, so that what is no URL can be shown as well.
    """
    before, separator, after = url.strip().partition("://")
    if not separator:
        before, after = "", before
    visible = re.split("[?#]", after, maxsplit=1)[0]
    host, slash, path = visible.partition("/")
    return f"{before}{separator}{host.rpartition('@')[2]}{slash}{path}"


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


def key_flag(model: object, *, has_key: bool) -> str:
    """Return the flag that a command needs for a key that no variable holds, with a blank before.

    The key is never part of it.
    """
    is_needed = has_key and not os.environ.get(provider_of(model).key_variable)
    return " --api-key YOUR_KEY" if is_needed else ""


def full_name(model: str) -> str:
    """A model's name with a short name made a full one; any other name as it is."""
    return SHORT_NAMES.get(model.strip(), model)
