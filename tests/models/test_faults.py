"""What statuses and error bodies mean."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from keju.models.base import MESSAGE_LENGTH, Redactor, refusal, retry_after


def no_header(name: str) -> str | None:
    return None


def openai_error(message: str, code: str | None = None) -> bytes:
    return json.dumps({"error": {"message": message, "type": "x", "code": code}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, openai_error("temperature must be 1"), "bad_request"),
        (422, b'{"detail": [{"loc": ["body", "n"], "msg": "must be 1"}]}', "bad_request"),
        (
            400,
            openai_error("This model's maximum context length is 8192 tokens."),
            "context_length",
        ),
        (400, openai_error("x", "context_length_exceeded"), "context_length"),
        (400, openai_error("the request exceeds the available context size"), "context_length"),
        (400, openai_error("Input is too long for requested model."), "context_length"),
        (400, openai_error("prompt (9000 tokens) exceeds the limit"), "context_length"),
        (413, b"Payload Too Large", "context_length"),
        (400, openai_error("The response was filtered", "content_filter"), "content_filter"),
        (400, openai_error("triggering Azure's content management policy"), "content_filter"),
        (403, openai_error("flagged by the content filter"), "content_filter"),
        (401, openai_error("bad key", "invalid_api_key"), "auth"),
        (402, openai_error("Insufficient Balance"), "auth"),
        (403, b"Forbidden", "auth"),
        (404, openai_error("The model `x` does not exist", "model_not_found"), "not_found"),
        (404, b"404 page not found", "not_found"),
        (405, b"", "not_found"),
        (400, openai_error("Model Not Exist"), "not_found"),
        (408, b"", "timeout"),
        (429, openai_error("slow down"), "rate_limit"),
        (429, openai_error("You exceeded your current quota", "insufficient_quota"), "auth"),
        (500, openai_error("boom"), "server"),
        (502, b"<html><head><title>502 Bad Gateway</title></head></html>", "server"),
        (503, b"", "server"),
        (504, b"", "timeout"),
        (529, b"", "rate_limit"),
        (503, b'{"error": {"message": "The model is overloaded. Try again later."}}', "rate_limit"),
        (500, b'{"error": {"code": "engine_overloaded_error", "message": "m"}}', "rate_limit"),
        (400, b'{"error": {"code": "Throttling.RateQuota", "message": "m"}}', "rate_limit"),
        (418, b"", "bad_request"),
    ],
)
def test_kind(status: int, body: bytes, kind: str) -> None:
    fault = refusal(status, body, no_header, Redactor([]))
    assert (fault.kind, fault.status) == (kind, status)
    assert fault.message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": "model is loading"}', "model is loading"),
        (b'{"message": "plain"}', "plain"),
        (b'{"detail": "Not here"}', "Not here"),
        (b'{"detail": [{"loc": ["body", "n"], "msg": "must be 1"}]}', "body.n: must be 1"),
        (b"<!DOCTYPE html><title> Gone </title>", "an HTML page: Gone"),
        (b"two\n  lines", "two lines"),
        (b"[1, 2]", "[1,2]"),
        (b"", "status 418"),
        (b"\xff\xfe", "��"),
    ],
)
def test_message(body: bytes, message: str) -> None:
    assert refusal(418, body, no_header, Redactor([])).message == message


def test_message_is_short() -> None:
    fault = refusal(500, b"word " * 100_000, no_header, Redactor([]))
    assert len(fault.message) == MESSAGE_LENGTH


def test_redirect_is_named_without_its_query() -> None:
    fault = refusal(307, b"", {"location": "https://u:p@other/x?key=1"}.get, Redactor([]))
    assert fault.kind == "not_found"
    assert fault.message == "the address redirects to https://other/x"


NOW = datetime(2025, 1, 1, 0, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("milliseconds", "value", "seconds"),
    [
        (None, "3", 3.0),
        (None, "0.5", 0.5),
        ("250", "3", 0.25),
        ("soon", "3", 3.0),
        (None, "Wed, 01 Jan 2025 00:01:30 GMT", 90.0),
        (None, "Tue, 31 Dec 2024 00:00:00 GMT", 0.0),
        (None, "later", None),
        (None, "-5", None),
        (None, "inf", None),
        (None, "nan", None),
        (None, None, None),
    ],
)
def test_retry_after(milliseconds: str | None, value: str | None, seconds: float | None) -> None:
    assert retry_after(milliseconds, value, NOW) == seconds


@pytest.mark.parametrize("wrap", [str, lambda key: f"Bearer {key}", lambda key: f"Basic {key}"])
def test_redaction(wrap: Callable[[str], str]) -> None:
    redact = Redactor([wrap("sk-MARKED-01"), "", "x"])
    assert redact("x: your key sk-MARKED-01 is bad") == "x: your key [redacted] is bad"
    assert "MARKED" not in repr(redact)
