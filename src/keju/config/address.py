"""Addresses of endpoints, and the providers that serve models.

This module turns the URL that a user types into the address of each route.

A provider is an API with its own environment variables, such as OPENAI_API_KEY. Keju reads the key
and the address of a model from the variables of its provider. It never sends the key of one
provider to another.

Short names such as ``anthropic:sonnet`` become full names when settings are read. So a run asks,
stores and resumes the same model.
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
    display_url: str
    """The base without user name, password and query, for messages and the manifest."""
    secrets: tuple[str, ...] = ()
    """Parts of the URL that must not be shown."""

    def route(self, form: Form) -> str:
        """Return the address that answers prompts of this form."""
        return self.base + PATHS[form] + self.query

    @property
    def messages(self) -> str:
        """The address of Anthropic's Messages API."""
        return self.base + MESSAGES + self.query

    def model(self, name: str) -> str:
        """Return the address that describes one model."""
        return f"{self.base}/models/{quote(name, safe='')}{self.query}"

    @property
    def props(self) -> str:
        """The address where llama.cpp's server describes itself."""
        return f"{self.base.removesuffix(DEFAULT_VERSION)}/props{self.query}"

    @property
    def models(self) -> str:
        """The address that lists the models."""
        return f"{self.base}/models{self.query}"

    def __repr__(self) -> str:
        return f"Address({self.display_url!r})"


def parse_address(api_url: str) -> Address:
    """Read a base URL, or the full URL of a route.

    A URL without a path gets ``/v1``. Any other path stays as it is, except that a final
    ``/chat/completions`` or ``/completions`` is removed.
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
    has_no_path = path == ""
    for suffix in PATHS.values():
        path = path.removesuffix(suffix)
    if has_no_path:
        path = DEFAULT_VERSION
    display_host = f"[{host}]" if ":" in host else host
    display_url = f"{parts.scheme}://{display_host}{f':{port}' if port else ''}{path}"
    query = f"?{parts.query}" if parts.query else ""
    typed_secrets = [parts.username or "", parts.password or ""]
    typed_secrets += [pair.partition("=")[2] for pair in parts.query.split("&") if pair]
    decoded_secrets = [*map(unquote, typed_secrets)]  # as the server receives them
    # Base64-encoded in the request header
    basic_credentials = [f"{decoded_secrets[0]}:{decoded_secrets[1]}"] if decoded_secrets[1] else []
    secrets = tuple(dict.fromkeys([*typed_secrets, *decoded_secrets, *basic_credentials]))
    return Address(f"{parts.scheme}://{parts.netloc}{path}", query, display_url, secrets)


def messages_address(api_url: str) -> Address:
    """Return the address of Anthropic's API, which always ends in ``/v1``.

    ``https://there``, ``https://there/v1`` and ``https://there/v1/messages`` give the same address.
    """
    address = parse_address(api_url)

    def with_version(base: str) -> str:
        return base.removesuffix(MESSAGES).removesuffix(DEFAULT_VERSION) + DEFAULT_VERSION

    return replace(
        address, base=with_version(address.base), display_url=with_version(address.display_url)
    )


def strip_credentials(url: str) -> str:
    """Return a URL without user name, password, query and fragment, to store and print.

    This never raises. A text that is not a URL is returned without these parts, too.
    """
    scheme, separator, location = url.strip().partition("://")
    if not separator:
        scheme, location = "", scheme
    visible = re.split("[?#]", location, maxsplit=1)[0]
    host, slash, path = visible.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


AS_OF: Final = "2026-11-16"
"""The date on which the short names were looked up."""
SHORT_NAMES: Final = {
    "anthropic:sonnet": "anthropic:claude-sonnet-5-5",
    "anthropic:opus": "anthropic:claude-opus-5-5",
    "anthropic:haiku": "anthropic:claude-haiku-5-5",
}


class Provider(NamedTuple):
    """An API, the variables that its own programs read, and its default address."""

    key_variable: str
    url_variable: str
    home: str


OPENAI: Final = Provider("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1")
ANTHROPIC: Final = Provider("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com")
PROVIDERS: Final = {"": OPENAI, "anthropic": ANTHROPIC}
"""Providers by the part of a model's name before the colon. Any other prefix means OpenAI."""


def find_provider(model: object) -> Provider:
    """Return the provider of the model in a setting."""
    prefix = model.strip().partition(":")[0] if isinstance(model, str) and ":" in model else ""
    return PROVIDERS.get(prefix, OPENAI)


def key_flag(model: object, *, has_key: bool) -> str:
    """Return the flag for the key, with a space before it, if no variable holds the key.

    The flag has a placeholder instead of the key.
    """
    is_needed = has_key and not os.environ.get(find_provider(model).key_variable)
    return " --api-key YOUR_KEY" if is_needed else ""


def expand_name(model: str) -> str:
    """Return a model's full name. Only short names change."""
    return SHORT_NAMES.get(model.strip(), model)
