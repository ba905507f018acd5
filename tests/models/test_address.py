"""Where an endpoint is, out of what users type."""

from __future__ import annotations

import pytest

from keju.errors import ConfigError
from keju.models.address import parse_address


@pytest.mark.parametrize(
    ("given", "chat"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1/chat/completions"),
        ("http://localhost:8000/", "http://localhost:8000/v1/chat/completions"),
        ("  http://localhost:8000/v1 ", "http://localhost:8000/v1/chat/completions"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/v1/chat/completions/", "http://h/v1/chat/completions"),
        ("http://h/v1/completions", "http://h/v1/chat/completions"),
        ("https://h/chat/completions", "https://h/chat/completions"),
        ("https://h/api/v3", "https://h/api/v3/chat/completions"),
        ("https://h/compatible-mode/v1", "https://h/compatible-mode/v1/chat/completions"),
        ("https://h/openai/v1?api-version=2", "https://h/openai/v1/chat/completions?api-version=2"),
        ("http://[::1]:8000", "http://[::1]:8000/v1/chat/completions"),
    ],
)
def test_route(given: str, chat: str) -> None:
    address = parse_address(given)
    assert address.route("chat") == chat
    assert address.route("completion") == chat.replace("/chat/completions", "/completions")
    assert address.models == chat.replace("/chat/completions", "/models")


@pytest.mark.parametrize(
    "given", ["localhost:8000", "localhost:8000/v1", "", "ftp://h/v1", "http://", "http://h:port/"]
)
def test_what_is_no_url_is_refused_in_one_line(given: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_address(given)
    assert "\n" not in str(caught.value)
    assert "api_url" in str(caught.value)


def test_credentials_are_not_shown() -> None:
    address = parse_address("https://user:hidden1@h:99/v1?key=hidden2")
    assert address.shown == "https://h:99/v1"
    assert "hidden" not in repr(address)
    assert {"hidden1", "hidden2"} <= set(address.secrets)
