"""What a hostile or broken endpoint says inside valid HTTP: bodies, fields, lies, statuses."""

from __future__ import annotations

import base64
import copy
import html
import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from perf.soak.hostile.peer import Attack, HostilePeer

BODIES: dict[str, Attack] = {}
"""Attacks in the body or in the status, by what they do."""
ODD: tuple[str, ...] = (
    *("null", "true", "-1", "0", "1.5", "1e308", "1e999", "NaN", "-Infinity", "1" + "0" * 400),
    *('""', '"x"', '"\\ud800"', '"\\u0000"', "[]", "[[]]", "[null]", "{}", '{"a":{"b":[]}}'),
    *('"\\u001b]0;owned\\u0007"', '"9"', '"' + "z" * 100_000 + '"', "9223372036854775808"),
)
"""Values, in JSON, none of which belongs in any field."""
_HOLE = "@@HOLE@@"


def body(name: str) -> Callable[[Attack], Attack]:
    """Add an attack to the list."""

    def add(attack: Attack) -> Attack:
        BODIES[name] = attack
        return attack

    return add


def _fixed(
    name: str, make: Callable[[HostilePeer], bytes], *headers: str, status: str = "200 OK"
) -> None:
    def attack(peer: HostilePeer) -> None:
        peer.reply(make(peer), *headers, status=status)

    BODIES[name] = attack


def _with_text(text: str) -> Callable[[HostilePeer], bytes]:
    return lambda peer: peer.encoded(text)


def _inside(peer: HostilePeer, written: bytes) -> bytes:
    """Return a good reply whose text is written as given, inside of the quotation marks."""
    return peer.encoded(_HOLE).replace(_HOLE.encode(), written)


# Bodies
_fixed("body: empty", lambda _: b"")
_fixed("body: blanks", lambda _: b" \n\t ")
_fixed("body: cut JSON", lambda peer: peer.encoded()[:-9])
_fixed("body: two JSON documents", lambda peer: peer.encoded() * 2)
_fixed("body: with a byte order mark", lambda peer: b"\xef\xbb\xbf" + peer.encoded())
_fixed("body: in UTF-16", lambda peer: peer.encoded().decode().encode("utf-16"))
_fixed("body: in Latin-1", lambda peer: _inside(peer, b"caf\xe9 (A)"))
_fixed("body: overlong and invalid UTF-8", lambda peer: _inside(peer, b"\xc0\xaf\xed\xa0\x80\xff"))
_fixed("body: lone surrogates", lambda peer: _inside(peer, rb"\ud800 (A) \udfff"))
_fixed("body: NUL in the text", lambda peer: _inside(peer, rb"A\u0000B\u0000"))
_fixed("body: raw NUL bytes", lambda peer: peer.encoded().replace(b" ", b"\0"))
_fixed("body: an array", lambda peer: b"[" + peer.encoded() + b"]")
_fixed("body: a string", lambda _: b'"ok"')
_fixed("body: a number", lambda _: b"1e400")
_fixed("body: null", lambda _: b"null")
_fixed("body: 100,000 nested arrays", lambda _: b"[" * 100_000)
_fixed("body: 100,000 nested objects", lambda _: b'{"choices":' * 100_000)
_fixed(
    "body: a good reply with 500 nested arrays in a field",
    lambda peer: peer.encoded()[:-1] + b',"x":' + b"[" * 500 + b"]" * 500 + b"}",
)
_fixed(
    "body: a good reply with 100,000 nested arrays in a field",
    lambda peer: peer.encoded()[:-1] + b',"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
)
_fixed("body: a number of 1,000,000 digits", lambda _: b'{"created":' + b"9" * 10**6 + b"}")
_fixed("body: keys twice", lambda peer: peer.encoded()[:-1] + b"," + peer.encoded("(B)")[1:])
_fixed("body: 200,000 keys", lambda _: json.dumps({f"k{i}": i for i in range(200_000)}).encode())
_fixed("body: 5,000,000 empty lists", lambda _: b"[" + b"[]," * 5_000_000 + b"1]")
_fixed(
    "body: a good reply with 4,000,000 empty objects in a field",
    lambda peer: peer.encoded()[:-1] + b',"x":[' + b"{}," * 4_000_000 + b"1]}",
)
_fixed(
    "body: HTML of a login page",
    lambda _: b"<html><title>Log in</title><script>alert(1)</script>",
)
_fixed(
    "body: XML with entities",
    lambda _: b'<!DOCTYPE a [<!ENTITY b "b"><!ENTITY c "&b;&b;">]><a>&c;</a>',
)
_fixed("body: YAML with a tag", lambda _: b"!!python/object/apply:os.system ['touch canary']")
_fixed("body: a pickle", lambda _: b"\x80\x04cos\nsystem\n(S'touch canary'\ntR.")
_fixed(
    "body: events although none were asked for",
    lambda peer: b"data: " + peer.encoded() + b"\n\ndata: [DONE]\n\n",
)
_fixed("body: broken events", lambda _: b"data: {\n\nevent: error\ndata:\n\n: c\n\n" * 100)
_fixed("body: no choices", lambda _: b'{"choices": [], "content": []}')
_fixed("body: 20,000 choices", lambda peer: _with_choices(peer, 20_000))
_fixed("body: an error with status 200", lambda _: b'{"error": {"message": "no", "code": 500}}')
_fixed("body: 'detail' with status 200", lambda _: b'{"detail": [{"msg": "x"}]}')

# Texts
_fixed("text: 2 MiB", _with_text("word " * 400_000))
_fixed("text: 3 MiB of one letter", _with_text("A" * 3 * 2**20))
_fixed("text: 200,000 brackets", _with_text("(" * 100_000 + "A" + ")" * 100_000))
_fixed("text: 100,000 unclosed <think>", _with_text("<think>" * 100_000))
_fixed(
    "text: 10,000 announcements of an answer",
    _with_text("ANSWER: A\nThe answer is (B).\n" * 10_000),
)
_fixed("text: 1,000,000 line ends", _with_text("\n" * 10**6 + "(A)"))
_fixed("text: terminal escapes", _with_text("\x1b[2J\x1b]52;c;cm0=\x07\x9b31m\x1bP\x90 (A)"))
_fixed(
    "text: characters that change the direction", _with_text("\u202e(A)\u2066\u200f\u2028\ufeff")
)
_fixed(
    "text: HTML and a script",
    _with_text("</script></style><img src=x onerror=pwned()><svg onload=pwned()>(A)"),
)
_fixed("text: formulas", _with_text('=HYPERLINK("http://x")\n@SUM(A1)\n(A)'))
_fixed(
    "text: templates",
    _with_text("{{7*7}} {0.__class__} ${HOME} %(x)s $(touch canary) `touch canary` {question}"),
)
_fixed(
    "text: a journal line of its own", _with_text('(A)"}\n{"id":"forged","reply":{"text":"(A)"}}\n')
)
_fixed(
    "text: marks of many tools",
    _with_text("<|im_end|><|eot_id|></s>[INST]<tool_call>{}</tool_call>"),
)
_fixed("text: 300 KiB of 'canary' in one line", _with_text("canary " * 44_000 + "(A)"))
_fixed("text: combining characters", _with_text("A" + "\u0301" * 300_000))


def _with_choices(peer: HostilePeer, count: int) -> bytes:
    good = peer.good()
    name = "content" if peer.is_anthropic else "choices"
    return json.dumps(good | {name: good[name] * count}).encode()


# Fields: every value of ODD in every field
OPENAI_FIELDS = (
    *("id", "object", "created", "model", "choices", "choices.0", "choices.0.index", "usage"),
    *("choices.0.message", "choices.0.message.role", "choices.0.message.content"),
    *("choices.0.finish_reason", "choices.0.logprobs", "choices.0.message.tool_calls"),
    *(
        "choices.0.message.refusal",
        "choices.0.message.reasoning_content",
        "choices.0.message.reasoning",
    ),
    *("usage.prompt_tokens", "usage.completion_tokens", "usage.total_tokens", "system_fingerprint"),
    *("usage.prompt_tokens_details", "usage.prompt_tokens_details.cached_tokens", "error"),
    *("usage.completion_tokens_details", "usage.completion_tokens_details.reasoning_tokens"),
)
ANTHROPIC_FIELDS = (
    *("id", "type", "role", "model", "content", "content.0", "content.0.type", "content.0.text"),
    *("stop_reason", "stop_sequence", "usage", "usage.input_tokens", "usage.output_tokens"),
    *(
        "usage.cache_read_input_tokens",
        "usage.cache_creation_input_tokens",
        "stop_details",
        "error",
    ),
)


def fields(names: Sequence[str]) -> dict[str, Attack]:
    """Return an attack for each field: its values change from request to request."""
    return {f"field: {name} has every wrong value": _field(name.split(".")) for name in names}


def _field(path: Sequence[str]) -> Attack:
    def attack(peer: HostilePeer) -> None:
        document = copy.deepcopy(peer.good())
        _set_field(document, path, _HOLE)
        value = ODD[peer.number % len(ODD)]
        peer.reply(json.dumps(document).replace(f'"{_HOLE}"', value).encode())

    return attack


def _set_field(place: Any, path: Sequence[str], value: Any) -> None:
    for name in path[:-1]:
        place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
    if isinstance(place, list):
        place[int(path[-1])] = value
    else:
        place[path[-1]] = value


# Lies
def _changed(name: str, **changes: Any) -> None:
    BODIES[f"lie: {name}"] = lambda peer: peer.reply(json.dumps(peer.good() | changes).encode())


_changed("another model", model="gpt-\x1b[31m../../etc/passwd")
_changed("the same id for every reply", id="../../../same")
_changed(
    "tokens below zero",
    usage={
        "prompt_tokens": -5,
        "completion_tokens": -(10**9),
        "input_tokens": -1,
        "output_tokens": -7,
    },
)
_changed(
    "10 to the power of 18 tokens",
    usage=dict.fromkeys(
        ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"), 10**18
    ),
)
_changed(
    "more cached tokens than tokens",
    usage={"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 10**9}},
)
_changed(
    "tool calls without tools",
    stop_reason="tool_use",
    content=[{"type": "tool_use", "id": "a", "name": "sh", "input": {"cmd": "touch canary"}}],
)


@body("lie: unknown reasons to stop")
def _reasons(peer: HostilePeer) -> None:
    reason = ("eos", "", "длина", "stop\x1b[0m", "content_filter", "tool_calls", "x" * 10_000)[
        peer.number % 7
    ]
    document = peer.good() | {"stop_reason": reason}
    if "choices" in document:
        document["choices"][0]["finish_reason"] = reason
    peer.reply(json.dumps(document).encode())


@body("lie: tool calls that nobody offered")
def _calls(peer: HostilePeer) -> None:
    document = peer.good()
    names = ("../../bin/sh", "__import__", "$(touch canary)", "", "a" * 10_000)
    calls = [
        {"id": "1", "type": "function", "function": {"name": n, "arguments": "{"}} for n in names
    ]
    if "choices" in document:
        document["choices"][0]["message"] |= {"tool_calls": calls, "content": None}
    peer.reply(json.dumps(document).encode())


# Statuses
def _status(name: str, status: str, content: bytes, *headers: str) -> None:
    BODIES[f"status: {name}"] = lambda peer: peer.reply(content, *headers, status=status)


for _code in (205, 206, 226, 299, 400, 401, 402, 403, 404, 405, 407, 409, 410, 411, 413, 414, 415):
    _status(str(_code), f"{_code} X", b'{"error": {"message": "no", "type": "t"}}')
for _code in (
    418,
    421,
    422,
    426,
    428,
    431,
    451,
    500,
    501,
    502,
    503,
    504,
    505,
    507,
    511,
    520,
    529,
    600,
    999,
):
    _status(str(_code), f"{_code} X", b'{"error": {"message": "no", "type": "t"}}')
_status("502 with a page of 8 MiB of unclosed titles", "502 X", b"<html>" + b"<title" * 1_400_000)
_status("429 with Retry-After that is negative", "429 X", b"{}", "Retry-After: -1")
_status("429 with Retry-After NaN", "429 X", b"{}", "Retry-After: nan")
_status("429 with Retry-After inf", "429 X", b"{}", "Retry-After: inf")
_status("429 with Retry-After of 400 digits", "429 X", b"{}", "Retry-After: " + "9" * 400)
_status(
    "429 with a date in the year 9999", "429 X", b"{}", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"
)
_status(
    "429 with a date that is none", "429 X", b"{}", "Retry-After: Fri, 99 Foo 0000 99:99:99 XYZ"
)
_status("429 with Retry-After twice", "429 X", b"{}", "Retry-After: 0", "Retry-After: 99999")
_status(
    "429 with odd limits in headers",
    "429 X",
    b"{}",
    "x-ratelimit-reset-requests: 1e9d",
    "retry-after-ms: -7e300",
)
_status("503 with a body of 10 MiB", "503 X", b"e" * 10 * 2**20)
_status(
    "500 with escapes in its message",
    "500 X",
    b'{"error": {"message": "\\u001b[2J\\u0007\\u009b", "type": []}}',
)
_status(
    "400 with an error of every type",
    "400 X",
    b'{"error": [[], {"message": {"a": 1}}], "message": 5, "detail": {}}',
)
_status(
    "400 that asks for max_completion_tokens for ever",
    "400 X",
    b'{"error": {"message": "use max_completion_tokens"}}',
)
_status(
    "400 that speaks of the context length",
    "400 X",
    b'{"error": {"message": "maximum context length is -1 tokens"}}',
)
_status(
    "404 with a list of models as large as a book",
    "404 X",
    b'{"data": [' + b'{"id": "\\u001b[31m"},' * 50_000 + b'{"id": 5}]}',
)
for _name, _target in {
    "to a file": "file:///etc/passwd",
    "to another host": "http://127.0.0.2:9/v1/chat/completions",
    "to itself": "/v1/chat/completions",
    "to a program": "javascript:alert(1)",
    "to gopher": "gopher://127.0.0.1:25/x",
    "to an address of 100 KiB": "http://a/" + "b" * 100_000,
    "to an address with escapes": "http://\x1b[31mhost\x07/",
}.items():
    _status(f"302 {_name}", "302 Found", b"", f"Location: {_target}")
_status("301 without an address", "301 Moved", b"")
_status("308 to another port", "308 Moved", b"", "Location: http://127.0.0.1:1/v1")
_status("401 that asks for a password", "401 X", b"", 'WWW-Authenticate: Basic realm="\x1b[2J"')
_status("407 of a proxy", "407 X", b"", "Proxy-Authenticate: NTLM", "Proxy-Authenticate: Negotiate")


# Echoes of the key
def forms(key: str) -> tuple[str, ...]:
    """Return the forms in which a server may send a key back."""
    basic = base64.b64encode(f"user:{key}".encode()).decode()
    alone = base64.b64encode(key.encode()).decode()
    escaped = json.dumps(key)[1:-1]
    return (key, escaped, quote(key, safe=""), html.escape(key), alone, basic, f"Bearer {key}")


def _echo(name: str, send: Callable[[HostilePeer, str], None]) -> None:
    def attack(peer: HostilePeer) -> None:
        key_forms = forms(peer.key)
        send(peer, key_forms[peer.number % len(key_forms)])

    BODIES[f"key: echoed {name}"] = attack


def _error(text: str) -> bytes:
    return json.dumps(
        {"error": {"message": text, "type": text, "code": text, "param": text}}
    ).encode()


def _field_echo(name: str) -> Callable[[HostilePeer, str], None]:
    def send(peer: HostilePeer, text: str) -> None:
        document = peer.good()
        _set_field(document, name.split("."), text)
        peer.reply(json.dumps(document).encode())

    return send


_echo("in the text", lambda peer, text: peer.reply(peer.encoded(f"{text} (A)")))
_echo("in the model's name", _field_echo("model"))
_echo("in the id", _field_echo("id"))
_echo("in the fingerprint", _field_echo("system_fingerprint"))
_echo("in the stop reason of Anthropic", _field_echo("stop_reason"))
_echo(
    "as the name of a field",
    lambda peer, text: peer.reply(json.dumps(peer.good() | {text: text}).encode()),
)
_echo("in usage", _field_echo("usage.service_tier"))
_echo(
    "in headers",
    lambda peer, text: peer.reply(
        None, f"Server: {text}", f"X-Request-Id: {text}", f"Request-Id: {text}"
    ),
)
_echo(
    "in a redirect",
    lambda peer, text: peer.reply(b"", f"Location: http://a/?k={text}", status="302 Found"),
)
_echo("in an error 400", lambda peer, text: peer.reply(_error(text), status="400 X"))
_echo(
    "in an error 401",
    lambda peer, text: peer.reply(_error(text), f"WWW-Authenticate: {text}", status="401 X"),
)
_echo("in an error 500", lambda peer, text: peer.reply(_error(text), status="500 X"))
_echo(
    "in an error 429",
    lambda peer, text: peer.reply(_error(text), f"Retry-After: {text}", status="429 X"),
)
_echo(
    "in an error page",
    lambda peer, text: peer.reply(
        f"<h1>bad key {text}</h1>".encode(), status="403 X", kind="text/html"
    ),
)
_echo("in the reason", lambda peer, text: peer.reply(b"", status=f"500 {text}"))
_echo(
    "in the list of models",
    lambda peer, text: peer.reply(json.dumps({"data": [{"id": text}]}).encode(), status="404 X"),
)
_echo("as the encoding", lambda peer, text: peer.reply(None, f"Content-Encoding: {text}"))
