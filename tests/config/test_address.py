"""Where an endpoint is, out of what users type."""

from __future__ import annotations

import pytest

from keju.config.address import parse_address, strip_credentials
from keju.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "chat"),
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
def test_route(url: str, chat: str) -> None:
    address = parse_address(url)
    assert address.route("chat") == chat
    assert address.route("completion") == chat.replace("/chat/completions", "/completions")
    assert address.models == chat.replace("/chat/completions", "/models")


@pytest.mark.parametrize(
    "url", ["localhost:8000", "localhost:8000/v1", "", "ftp://h/v1", "http://", "http://h:port/"]
)
def test_what_is_no_url_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_address(url)
    assert "\n" not in str(error.value)
    assert "api_url" in str(error.value)


def test_credentials_are_not_shown() -> None:
    address = parse_address("https://user:hidden1@h:99/v1?key=hidden2")
    assert address.display_url == "https://h:99/v1"
    assert "hidden" not in repr(address)
    assert {"hidden1", "hidden2"} <= set(address.secrets)


def test_secrets_of_a_url_are_known_as_typed_and_as_sent() -> None:
    address = parse_address("https://user:hid%3Aden@h/v1?key=hid%2Fden")
    assert {"hid%3Aden", "hid:den", "hid%2Fden", "hid/den"} <= set(address.secrets)


@pytest.mark.parametrize(
    "url", ["http://user:hidden@h:hidden/v1", "http://hidden@\u2100/v1", "http://[hidden/"]
)
def test_what_is_no_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_address(url)
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "stripped"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        (" https://user:hidden@h:99/v1?key=hidden#hidden ", "https://h:99/v1"),
        ("https://hidden@h", "https://h"),
        ("https://user:hid@den@h/a@b", "https://h/a@b"),
        ("https://h?key=hidden", "https://h"),
        ("http://[::1]:8000/v1?key=hidden", "http://[::1]:8000/v1"),
        ("user:hidden@h/v1", "h/v1"),
        ("http://user:hidden@h:x/v1", "http://h:x/v1"),
        ("", ""),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, stripped: str) -> None:
    assert strip_credentials(url) == stripped
