"""What odd endpoints send: fault modes made of statuses, bodies, headers, encodings and timing.

Each list below is one dimension; `modes` crosses them where a cross means something. A fate is
written down by hand for every status and every shape, never asked of Keju.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Literal

from tests.support.replies import Raw

Fate = Literal["answer", "retry", "final", "stop", "limit"]
"""The reply counts; another attempt is made; it is the sample's error; the run stops; the run waits
until it gives up."""
TEXT: Final = "So the answer is (A)."
DEEP: Final = 100_000
CHOICE: Final[dict[str, Any]] = {
    "index": 0,
    "finish_reason": "stop",
    "message": {"role": "assistant", "content": TEXT},
}
GOOD: Final = json.dumps({"object": "chat.completion", "model": "m", "choices": [CHOICE]}).encode()
ESCAPES: Final = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b1m\u202ereversed"


@dataclass(frozen=True)
class Mode:
    """One way in which an endpoint misbehaves."""

    name: str
    raw: Raw
    fate: Fate
    lasts: bool = False
    """Every attempt at every question meets it, instead of the first one."""


def nested(depth: int = DEEP) -> bytes:
    """JSON nested so deep that no recursive reader gets to the bottom."""
    return b'{"a":' * depth + b"1" + b"}" * depth


def message(
    status: int | str, body: bytes, *headers: str, length: bool = True, version: str = "HTTP/1.1"
) -> bytes:
    """One HTTP reply, its length told unless a header does; the connection ends with it."""
    lines = [f"{version} {status} Status", "Content-Type: application/json", *headers]
    lines.append("Connection: close")
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + body


STATUSES: Final[dict[int, Fate]] = {
    300: "stop", 301: "stop", 302: "stop", 303: "stop", 304: "stop", 307: "stop", 308: "stop",
    400: "final", 401: "stop", 402: "stop", 403: "stop", 404: "stop", 405: "stop", 406: "final",
    408: "retry", 409: "retry", 410: "final", 411: "final", 412: "final", 413: "final",
    415: "final", 417: "final", 418: "final", 421: "final", 422: "final", 423: "retry",
    425: "retry", 426: "final", 429: "retry", 431: "final", 451: "final", 499: "final",
    500: "retry", 501: "retry", 502: "retry", 503: "retry", 504: "retry", 507: "retry",
    508: "retry", 520: "retry", 522: "retry", 524: "retry", 529: "retry", 530: "retry",
    598: "retry", 599: "retry",
}  # fmt: skip
"""What a refusal means by its status, whatever its body holds."""

ERRORS: Final[dict[str, bytes]] = {
    "empty": b"",
    "openai": b'{"error": {"message": "injected", "type": "t", "param": null, "code": null}}',
    "fastapi": b'{"detail": [{"msg": "x", "loc": ["body", "n"]}]}',
    "fastapi, place is a number": b'{"detail": [{"msg": "x", "loc": 5}]}',
    "fastapi, place is nested": b'{"detail": [{"msg": "x", "loc": [[1], {"a": null}]}]}',
    "fastapi, place is null": b'{"detail": [{"msg": "x", "loc": null}]}',
    "error is a text": b'{"error": "injected"}',
    "error is a number": b'{"error": 5}',
    "error is null": b'{"error": null}',
    "error is a list": b'{"error": [1, {"message": "x"}]}',
    "message is an object": b'{"error": {"message": {"a": [1]}, "code": 7}}',
    "message is a list": b'{"error": {"message": [null, 1, "x", {"msg": 4}], "code": [1]}}',
    "message holds escapes": json.dumps({"error": {"message": ESCAPES}}).encode(),
    "text": b"upstream is sad",
    "text with escapes": ESCAPES.encode(),
    "html": b"<!DOCTYPE html><html><title>Bad\x1b[31m</title></html>",
    "not UTF-8": b"\xff\xfe\x80{{{",
    "number": b"17",
    "long number": b"9" * 5000,
    "null": b"null",
    "list": b'[1, "x", {}]',
    "half a character": b'{"error": {"message": "\\ud83d"}}',
    "NUL": b'{"error": {"message": "a\\u0000b"}}',
    "nested": nested(),
    "nested list": b"[" * DEEP + b"]" * DEEP,
    "nested error": b'{"error":' + nested() + b"}",
    "nested message": b'{"error": {"message":' + nested() + b"}}",
    "nested code": b'{"error": {"message": "x", "code":' + nested() + b"}}",
    "a megabyte": b'{"error": {"message": "' + b"a" * 1_000_000 + b'"}}',
    "cut": b'{"error": {"mess',
}
"""Bodies of refusals; none of them changes what the status means."""


def _choice(**changes: Any) -> bytes:
    return json.dumps({"choices": [CHOICE | changes]}).encode()


def _with_extra_field(name: str, value: bytes) -> bytes:
    """A good reply with one more field, whose value is written as it is."""
    return GOOD[:-1] + b', "%s": ' % name.encode() + value + b"}"


def _content(value: bytes) -> bytes:
    return (
        b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": ' + value + b"}}]}"
    )


SHAPES: Final[dict[str, tuple[bytes, Fate]]] = {
    "nothing": (b"", "retry"),
    "blanks": (b"  \r\n ", "retry"),
    "null": (b"null", "retry"),
    "true": (b"true", "retry"),
    "number": (b"3", "retry"),
    "text": (b'"So the answer is (A)."', "retry"),
    "list": (b"[" + GOOD + b"]", "retry"),
    "empty object": (b"{}", "retry"),
    "plain text": (TEXT.encode(), "retry"),
    "html": (b"<html><body>Bad gateway</body></html>", "retry"),
    "xml": (b"<?xml version='1.0'?><reply/>", "retry"),
    "server-sent events": (b"data: " + GOOD + b"\n\ndata: [DONE]\n\n", "retry"),
    "two documents": (GOOD + b"\n" + GOOD, "retry"),
    "garbage after it": (GOOD + b"garbage", "retry"),
    "single quotes": (GOOD.replace(b'"', b"'"), "retry"),
    "cut in the middle": (GOOD[: len(GOOD) // 2], "retry"),
    "cut before the end": (GOOD[:-1], "retry"),
    "not UTF-8": (GOOD.replace(b"answer", b"\xff\xfe"), "retry"),
    "UTF-16": (GOOD.decode().encode("utf-16"), "retry"),
    "byte-order mark": (b"\xef\xbb\xbf" + GOOD, "answer"),
    "blanks around it": (b"\n\n  " + GOOD + b" \n", "answer"),
    "keys twice": (b'{"choices": [],' + GOOD[1:], "answer"),
    "choices null": (b'{"choices": null}', "retry"),
    "choices empty": (b'{"choices": []}', "retry"),
    "choices an object": (b'{"choices": {"0": 1}}', "retry"),
    "choices a text": (b'{"choices": "A"}', "retry"),
    "choices of numbers": (b'{"choices": [1, 2]}', "retry"),
    "choices of null": (b'{"choices": [null]}', "retry"),
    "choices of nothing": (b'{"choices": [{}]}', "retry"),
    "message null": (b'{"choices": [{"message": null}]}', "retry"),
    "message a text": (b'{"choices": [{"message": "A"}]}', "retry"),
    "message a list": (b'{"choices": [{"message": [1]}]}', "retry"),
    "content a number": (_content(b"5"), "retry"),
    "content true": (_content(b"true"), "retry"),
    "content an object": (_content(b'{"text": "A"}'), "retry"),
    "content of numbers": (_content(b"[1, 2]"), "retry"),
    "content of unknown parts": (_content(b'[{"type": "video"}]'), "retry"),
    "content of odd types": (_content(b'[{"type": ["text"], "text": "A"}]'), "retry"),
    "content nested": (_content(nested()), "retry"),
    "content a nested list": (_content(b"[" * DEEP + b"]" * DEEP), "retry"),
    "content parts": (
        _content(b'[{"type": "text", "text": "So the answer is (A)."}, 7, null]'),
        "answer",
    ),
    "a nested field": (_with_extra_field("more", nested()), "retry"),
    "a nested list beside it": (_with_extra_field("more", b"[" * DEEP + b"]" * DEEP), "retry"),
    "a nested usage": (_with_extra_field("usage", nested()), "retry"),
    "nested tool calls": (_choice()[:-3] + b', "tool_calls": ' + nested() + b"}]}", "retry"),
    "tool calls nested 500 deep": (
        _choice(message={"content": TEXT, "tool_calls": ["?"]}).replace(b'"?"', nested(500)),
        "answer",
    ),
    "a number of 5,000 digits": (_with_extra_field("created", b"9" * 5000), "answer"),
    "an exponent of 99999": (_with_extra_field("created", b"1e99999"), "answer"),
    "NaN": (_with_extra_field("created", b"NaN"), "answer"),
    "Infinity": (_with_extra_field("created", b"-Infinity"), "answer"),
    "half a character": (_with_extra_field("id", b'"\\ud83d"'), "answer"),
    "NUL in a field": (_with_extra_field("id", b'"a\\u0000b"'), "answer"),
    "escapes in the model's name": (
        _with_extra_field("model", json.dumps(ESCAPES).encode()),
        "answer",
    ),
    "usage a list": (_with_extra_field("usage", b"[1]"), "answer"),
    "usage of texts": (_with_extra_field("usage", b'{"prompt_tokens": "x"}'), "answer"),
    "usage negative": (_with_extra_field("usage", b'{"prompt_tokens": -5}'), "answer"),
    "usage beyond all bounds": (_with_extra_field("usage", b'{"prompt_tokens": 1e300}'), "answer"),
    "usage of 5,000 digits": (
        _with_extra_field("usage", b'{"prompt_tokens": %s}' % (b"9" * 5000)),
        "answer",
    ),
    "usage details odd": (_with_extra_field("usage", b'{"prompt_tokens_details": 4}'), "answer"),
    "model a number": (_with_extra_field("model", b"4"), "answer"),
    "model null": (_with_extra_field("model", b"null"), "answer"),
    "finish reason null": (_choice(finish_reason=None), "answer"),
    "finish reason a number": (_choice(finish_reason=4), "answer"),
    "finish reason a list": (_choice(finish_reason=["stop"]), "answer"),
    "log-probabilities odd": (_choice(logprobs={"content": [1, None, {"token": 5}]}), "answer"),
    "tool calls odd": (
        _choice(message={"content": TEXT, "tool_calls": [1, None, {"a": {}}]}),
        "answer",
    ),
    "tool calls an object": (_choice(message={"content": TEXT, "tool_calls": {"a": 1}}), "answer"),
    "reasoning a number": (_choice(message={"content": TEXT, "reasoning": 5}), "answer"),
    "reasoning a list": (_choice(message={"content": TEXT, "reasoning_content": [1]}), "answer"),
    "error as success": (b'{"error": {"message": "overloaded", "code": 503}}', "retry"),
    "error text as success": (b'{"error": "overloaded"}', "retry"),
    "nested error as success": (b'{"error":' + nested() + b"}", "retry"),
    "error of a huge code": (b'{"error": {"message": "x", "code": 1e400}}', "retry"),
}
"""Bodies of replies of status 200."""

WAITS: Final = (
    "", "soon", "-1", "nan", "inf", "1e-320", "0", "0.01", "0x1", "0,01", "\t", "0 seconds", "٠",
    "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 99 Foo 2020 99:99:99 GMT",
    "Mon, 01 Jan 0001 00:00:00 +2359", "Mon, 01 Jan 1990 00:00:00 GMT", "9" * 400 + "e-400",
    "Fri, 31 Dec 9999 23:59:60 GMT"[:8],
)  # fmt: skip
"""Values of Retry-After and Retry-After-Ms that must not stop anybody."""

PLACES: Final = (
    "http://[::1", "http://[", "//", "http://user:secret@host:99999/path?key=1", "é",
    "javascript:alert(1)", "http://\u2100.example/", "a" * 3000,
)  # fmt: skip
"""Values of Location; nobody goes there."""

HEADERS: Final[dict[str, tuple[str, ...]]] = {
    "of another type": ("Content-Type: text/html; charset=ebcdic",),
    "of a broken type": ("Content-Type: ;;;=",),
    "with cookies": ("Set-Cookie: a=b; Path=/", "Set-Cookie: ==;;"),
    "in great number": tuple(f"X-{i}: y" for i in range(60)),
    "with a long value": ("X-Long: " + "y" * 10_000,),
    "beyond ASCII": ("Server: été 科举",),
    "that answer nothing": ("Link: <http://127.0.0.1/>; rel=next", "Refresh: 0; url=/"),
    "of a service": ('Alt-Svc: h3=":443"', "Strict-Transport-Security: max-age=1"),
}
"""Headers of a good reply that change nothing."""


def _chunked(body: bytes, ending: bytes = b"0\r\n\r\n") -> bytes:
    half = len(body) // 2
    parts = [b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:])]
    return b"".join(parts) + ending


def _zipped(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


CHUNKED, ZIPPED = "Transfer-Encoding: chunked", "Content-Encoding: gzip"
BOMB: Final = _zipped(b'{"a": "' + b"a" * (300 << 20) + b'"}')
"""300 MiB in 300 KB."""

ENCODINGS: Final[dict[str, tuple[bytes, Fate]]] = {
    "gzip": (message(200, _zipped(GOOD), ZIPPED), "answer"),
    "deflate": (message(200, zlib.compress(GOOD), "Content-Encoding: deflate"), "answer"),
    "identity": (message(200, GOOD, "Content-Encoding: identity"), "answer"),
    "gzip in two members": (
        message(200, _zipped(GOOD[:30]) + _zipped(GOOD[30:]), ZIPPED),
        "answer",
    ),
    "gzip in other letters": (message(200, _zipped(GOOD), "Content-Encoding: GZip "), "answer"),
    "a bomb in two layers": (
        message(200, _zipped(BOMB), "Content-Encoding: gzip, gzip"),
        "retry",
    ),
    "gzip that is none": (message(200, GOOD, ZIPPED), "retry"),
    "gzip cut": (message(200, _zipped(GOOD)[:40], ZIPPED), "retry"),
    "gzip damaged": (message(200, _zipped(GOOD)[:30] + b"\0" * 40, ZIPPED), "retry"),
    "gzip of nothing": (message(200, _zipped(b""), ZIPPED), "retry"),
    "gzip unannounced": (message(200, _zipped(GOOD)), "retry"),
    "a bomb": (message(200, BOMB, ZIPPED), "retry"),
    "a bomb in chunks": (message(200, _chunked(BOMB), ZIPPED, CHUNKED, length=False), "retry"),
    "a bomb of an error": (message(503, BOMB, ZIPPED), "retry"),
    "brotli that is none": (message(200, GOOD, "Content-Encoding: br"), "retry"),
    "zstandard that is none": (message(200, GOOD, "Content-Encoding: zstd"), "retry"),
    "deflate that is none": (message(200, GOOD, "Content-Encoding: deflate"), "retry"),
    "chunks": (message(200, _chunked(GOOD), CHUNKED, length=False), "answer"),
    "chunks with a trailer": (
        message(200, _chunked(GOOD, b"0\r\nX-A: b\r\n\r\n"), CHUNKED, length=False),
        "answer",
    ),
    "chunks without an end": (message(200, _chunked(GOOD, b""), CHUNKED, length=False), "retry"),
    "chunks of a wrong size": (message(200, b"fff\r\n" + GOOD, CHUNKED, length=False), "retry"),
    "chunks of no size": (message(200, b"zz\r\n" + GOOD, CHUNKED, length=False), "retry"),
    "chunks of a huge size": (
        message(200, b"f" * 16 + b"\r\n" + GOOD, CHUNKED, length=False),
        "retry",
    ),
    "chunks of a negative size": (message(200, b"-5\r\n" + GOOD, CHUNKED, length=False), "retry"),
    "no length": (message(200, GOOD, length=False), "answer"),
    "a length too long": (message(200, GOOD, "Content-Length: 99999", length=False), "retry"),
    "a length too short": (message(200, GOOD, "Content-Length: 50", length=False), "retry"),
    "a negative length": (message(200, GOOD, "Content-Length: -5", length=False), "retry"),
    "a length in words": (message(200, GOOD, "Content-Length: many", length=False), "retry"),
    "a length beyond 64 bits": (
        message(200, GOOD, "Content-Length: " + "9" * 30, length=False),
        "retry",
    ),
    "two lengths": (message(200, GOOD, "Content-Length: 5"), "retry"),
    "an exabyte": (
        message(200, GOOD, "Content-Length: 1" + "0" * 18, length=False),
        "retry",
    ),
    "HTTP/1.0": (message(200, GOOD, version="HTTP/1.0"), "answer"),
    "HTTP/0.9": (GOOD, "retry"),
    "HTTP/9.9": (message(200, GOOD, version="HTTP/9.9"), "retry"),
    "no status": (message("OK", GOOD), "retry"),
    "status 99": (message("099", b""), "retry"),
    "status 1000": (message(1000, GOOD), "retry"),
    "status 100 first": (b"HTTP/1.1 100 Continue\r\n\r\n" + message(200, GOOD), "answer"),
    "a header without a colon": (message(200, GOOD, "nonsense"), "retry"),
    "a header with NUL": (message(200, GOOD, "X-A: a\0b"), "retry"),
    "a thousand headers": (message(200, GOOD, *(f"X-{i}: y" for i in range(1000))), "answer"),
    "a megabyte of header": (message(200, GOOD, "X-A: " + "y" * (1 << 20)), "retry"),
    "random bytes": (bytes(range(256)) * 8, "retry"),
    "TLS in place of HTTP": (b"\x15\x03\x01\x00\x02\x02\x28", "retry"),
    "a greeting of SMTP": (b"220 mail.example ESMTP\r\n", "retry"),
    "nothing": (b"", "retry"),
}
"""Whole replies whose framing is odd."""

TIMINGS: Final[dict[str, tuple[Raw, Fate]]] = {
    "silence": (Raw(data=b"", then="keep"), "retry"),
    "silence after the head": (Raw(data=message(200, GOOD)[: -len(GOOD)], then="keep"), "retry"),
    "silence in the middle": (Raw(data=message(200, GOOD)[:-50], then="keep"), "retry"),
    "a late reply": (Raw(data=message(200, GOOD), delay=0.5), "answer"),
    "a reply in pieces": (Raw(data=message(200, GOOD), pieces=20), "answer"),
    "a reply in single bytes": (Raw(data=message(200, GOOD), pieces=400), "retry"),
    "an endless body": (
        Raw(data=message(200, b"", length=False), rest=b" " * (1 << 20)),
        "retry",
    ),
    "an endless body in chunks": (
        Raw(
            data=message(200, b"", CHUNKED, length=False),
            rest=b"100000\r\n" + b"a" * (1 << 20) + b"\r\n",
        ),
        "retry",
    ),
    "an endless error": (Raw(data=message(500, b"", length=False), rest=b"e" * (1 << 20)), "retry"),
    "an endless header": (Raw(data=b"HTTP/1.1 200 OK\r\nX-A: ", rest=b"y" * (1 << 16)), "retry"),
    "endless headers": (Raw(data=b"HTTP/1.1 200 OK\r\n", rest=b"X-A: y\r\n" * 1000), "retry"),
    "endless trailers": (
        Raw(
            data=message(200, _chunked(GOOD, b"0\r\n"), CHUNKED, length=False),
            rest=b"X-A: " + b"y" * 60_000 + b"\r\n",
        ),
        "retry",
    ),
    "an endless trailer": (
        Raw(
            data=message(200, _chunked(GOOD, b"0\r\nX-A: "), CHUNKED, length=False),
            rest=b"y" * (1 << 16),
        ),
        "retry",
    ),
    "endless chunks of one byte": (
        Raw(data=message(200, b"", CHUNKED, length=False), rest=b"1\r\n \r\n" * 10_000),
        "retry",
    ),
    "an endless extension of a chunk": (
        Raw(data=message(200, b"1;", CHUNKED, length=False), rest=b"y" * (1 << 16)),
        "retry",
    ),
    "endless informational replies": (
        Raw(data=b"", rest=b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100),
        "retry",
    ),
}
"""What comes late, never, or without an end."""


def modes() -> list[Mode]:
    """Every mode, in a fixed order."""
    return list(_modes())


def _modes() -> Iterator[Mode]:
    bodies = [name for name in ERRORS if name != "a megabyte"]
    turn = count()
    for status, fate in STATUSES.items():
        for _ in range(2):
            body = bodies[next(turn) % len(bodies)]
            raw = Raw(data=message(status, ERRORS[body]), then="close")
            yield Mode(f"status {status}, body {body}", raw, fate)
    for name, body_bytes in ERRORS.items():
        for status in (422, 429, 500):
            raw = Raw(data=message(status, body_bytes))
            yield Mode(f"refusal {status}, body {name}", raw, STATUSES[status])
    for name, (body_bytes, fate) in SHAPES.items():
        yield Mode(f"reply, {name}", Raw(data=message(200, body_bytes)), fate)
    for wait in WAITS:
        for header in ("Retry-After", "Retry-After-Ms"):
            raw = Raw(data=message(429, b"{}", f"{header}: {wait}"))
            yield Mode(f"{header} {wait[:40]!r}", raw, "retry")
    for place in PLACES:
        raw = Raw(data=message(307, b"", f"Location: {place}"))
        yield Mode(f"Location {place[:40]!r}", raw, "stop")
    for name, headers in HEADERS.items():
        yield Mode(f"headers {name}", Raw(data=message(200, GOOD, *headers)), "answer")
    for name, (data, fate) in ENCODINGS.items():
        yield Mode(f"framing, {name}", Raw(data=data), fate)
    for name, (raw, fate) in TIMINGS.items():
        yield Mode(f"timing, {name}", raw, fate)
    full_reply = message(200, GOOD)
    for share in (0.0, 0.05, 0.3, 0.5, 0.8, 0.99):
        for then in ("close", "abort"):
            data = full_reply[: int(share * len(full_reply))]
            yield Mode(f"{then} after {share:.0%}", Raw(data=data, then=then), "retry")
    for status in (429, 500, 502, 503, 529):
        raw = Raw(data=message(status, ERRORS["openai"]))
        fate = "limit" if status in (429, 529) else "retry"
        yield Mode(f"status {status} for ever", raw, fate, lasts=True)
    for name in ("nothing", "html", "content nested", "choices empty", "cut in the middle"):
        raw = Raw(data=message(200, SHAPES[name][0]))
        yield Mode(f"reply, {name}, for ever", raw, "retry", lasts=True)
    for name in ("gzip cut", "chunks without an end", "HTTP/0.9", "a bomb"):
        yield Mode(f"framing, {name}, for ever", Raw(data=ENCODINGS[name][0]), "retry", lasts=True)
