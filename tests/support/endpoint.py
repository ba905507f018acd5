"""A fault-injecting, OpenAI-compatible endpoint on loopback, fast enough to measure against.

In a test: ``with FaultyEndpoint(Plan(faults={"429": 0.2})) as ep: … ep.url``. As a process:
``python -m tests.support.endpoint --port 0 --faults '{"429": 0.2}' --seed 1``, which prints one
JSON line with its address. The fault of an attempt depends on nothing but the seed, the prompt
and the number of the attempt, so that a run can be repeated exactly.
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import urlsplit

import msgspec

from tests.support.echo import tokenize
from tests.support.replies import (
    EndpointRequest,
    Plan,
    Raw,
    answer,
    draw,
    error_body,
    latency_of,
    pick,
    prompt_key,
    refusal,
)

ROUTES = {"/v1/chat/completions": "chat", "/v1/completions": "completion"}
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found"}
_decode_body = msgspec.json.Decoder(dict[str, Any]).decode


class Stats:
    """What the endpoint has seen."""

    def __init__(self) -> None:
        self.requests = 0
        self.answered = 0
        self.proxied = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self.connections = 0
        self.attempts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.failed_at: dict[str, float] = {}
        """When a prompt was last answered with a fault, by `Asked.key`, on the monotonic clock."""

    def snapshot(self) -> dict[str, Any]:
        """The counts as ``GET /stats`` gives them."""
        return {
            "requests": self.requests,
            "answered": self.answered,
            "distinct": len(self.attempts),
            "max_attempts": max(self.attempts.values(), default=0),
            "max_in_flight": self.max_in_flight,
            "connections": self.connections,
            "proxied": self.proxied,
            "faults": dict(self.faults),
        }


class _Connection(asyncio.Protocol):
    """One keep-alive HTTP/1.1 connection."""

    transport: asyncio.Transport

    def __init__(self, endpoint: FaultyEndpoint) -> None:
        self.endpoint = endpoint
        self.stats = endpoint.stats
        self.buffer = b""
        self.busy = False
        self.timer: asyncio.TimerHandle | None = None
        self.sending: asyncio.Task[None] | None = None

    @property
    def plan(self) -> Plan:
        """The plan of the moment."""
        return self.endpoint.plan

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.stats.connections += 1
        self.endpoint.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.endpoint.connections.discard(self)
        if self.timer is not None:
            self.timer.cancel()
        if self.sending is not None:
            self.sending.cancel()
        self._idle()

    def data_received(self, data: bytes) -> None:
        self.buffer = self.buffer + data if self.buffer else data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].decode("latin-1").split("\r\n")
        headers = {}
        for line in head[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        size = int(headers.get("content-length", 0))
        if len(self.buffer) < end + 4 + size:
            return
        body = self.buffer[end + 4 : end + 4 + size]
        self.buffer = self.buffer[end + 4 + size :]
        method, target, _ = head[0].split(" ")
        self._handle(method, target, headers, body)

    def _handle(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        if target.startswith("http"):
            self.stats.proxied += 1
            target = urlsplit(target).path
        target = target.partition("?")[0]
        if self.plan.redirect is not None:
            self._write(307, b"", {"Location": self.plan.redirect})
        elif method == "GET" and target == "/stats":
            self._write(200, msgspec.json.encode(self.stats.snapshot()))
        elif method == "GET" and target == "/v1/models":
            length = {} if self.plan.context is None else {"max_model_len": self.plan.context}
            models = [{"id": name, "object": "model"} | length for name in self.plan.models]
            self._write(200, msgspec.json.encode({"object": "list", "data": models}))
        elif method == "POST" and target == "/tokenize" and self.plan.echo == "tokens":
            document = _decode_body(body)
            tokens = tokenize(document["prompt"], document["add_special_tokens"])
            self._write(200, msgspec.json.encode({"tokens": tokens, "count": len(tokens)}))
        elif method == "POST" and target in ROUTES:
            self._post(target, headers, body)
        else:
            self._write(404, error_body(404, f"no route {method} {target}"))

    def _post(self, target: str, headers: dict[str, str], body: bytes) -> None:
        self.stats.requests += 1
        self.endpoint.last_headers = headers
        try:
            document = _decode_body(body)
        except msgspec.DecodeError:
            return self._write(400, error_body(400, "the body is not a JSON object"))
        self.endpoint.last_body = document
        route = ROUTES[target]
        key = prompt_key(document.get("messages" if route == "chat" else "prompt", ""))
        request = EndpointRequest("chat" if route == "chat" else "completion", document, key)
        refused_with = refusal(self.plan, request, headers.get("authorization", ""))
        if refused_with is not None:
            self.stats.faults[str(refused_with[0])] += 1
            return self._write(*refused_with)
        self._begin()
        attempt_key = f"{key}:{document.get('seed')}"
        attempt = self.stats.attempts[attempt_key]
        self.stats.attempts[attempt_key] = attempt + 1
        raw = self.plan.raw(request, attempt) if self.plan.raw is not None else None
        if raw is not None:
            self.stats.faults["raw"] += 1
            self.stats.failed_at[key] = time.monotonic()
            self.sending = self.endpoint.loop.create_task(self._send(raw))
            return None
        fault = self._fault(attempt_key, attempt)
        if fault is not None:
            self.stats.faults[fault] += 1
        delay = self.plan.stall if fault == "stall" else latency_of(self.plan, key)
        if delay:
            loop = self.endpoint.loop
            self.timer = loop.call_later(delay, self._finish, request, fault)
            return None
        return self._finish(request, fault)

    def _fault(self, key: str, attempt: int) -> str | None:
        limit = self.plan.max_requests
        if limit is not None and self.stats.requests > limit:
            return "503"
        if attempt < len(self.plan.first_faults):
            return self.plan.first_faults[attempt]
        if not self.plan.faults:
            return None
        drawn: str | None = pick(self.plan.faults, draw(self.plan.seed, key, attempt))
        return drawn

    def _finish(self, request: EndpointRequest, fault: str | None) -> None:
        self._idle()
        if fault is None:
            self.stats.answered += 1
            return self._write(200, answer(self.plan, request))
        self.stats.failed_at[request.key] = time.monotonic()
        if fault in ("drop", "stall"):
            return self.transport.abort()
        if fault == "partial":
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
            return self.transport.close()
        if fault == "malformed":
            return self._write(200, answer(self.plan, request)[:-20])
        if fault == "html":
            return self._write(200, b"<html><body>Bad gateway</body></html>", {}, "text/html")
        if fault == "empty":
            return self._write(200, b'{"choices": []}')
        if fault == "null":
            message = {"role": "assistant", "content": None}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return self._write(200, msgspec.json.encode({"choices": [choice]}))
        return self._write(int(fault), error_body(int(fault), f"injected {fault}"))

    async def _send(self, raw: Raw) -> None:
        await asyncio.sleep(raw.delay)
        size = -(-len(raw.data) // raw.pieces) or 1
        for start in range(0, len(raw.data), size):
            self.transport.write(raw.data[start : start + size])
            if raw.pieces > 1:
                await asyncio.sleep(0.01)
        while raw.rest:
            if self.transport.get_write_buffer_size() < len(raw.rest):
                self.transport.write(raw.rest)
            await asyncio.sleep(0.0001)
        self._idle()
        if raw.then == "abort":
            self.transport.abort()
        elif raw.then == "close":
            self.transport.close()

    def _begin(self) -> None:
        self.busy = True
        self.stats.in_flight += 1
        self.stats.max_in_flight = max(self.stats.max_in_flight, self.stats.in_flight)

    def _idle(self) -> None:
        if self.busy:
            self.busy = False
            self.stats.in_flight -= 1

    def _write(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> None:
        extra_headers = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        if status in (429, 503) and self.plan.retry_after is not None:
            extra_headers += f"Retry-After: {self.plan.retry_after}\r\n"
        head = (
            f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}\r\nServer: keju-test\r\n"
            f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{extra_headers}\r\n"
        )
        self.transport.write(head.encode("latin-1") + body)


class FaultyEndpoint:
    """The endpoint; as a context manager it runs in a thread of its own."""

    def __init__(
        self,
        plan: Plan | None = None,
        *,
        port: int = 0,
        tls: tuple[Path, Path] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.plan = plan or Plan()
        self.port = port
        self.stats = Stats()
        self.connections: set[_Connection] = set()
        self.last_body: dict[str, Any] = {}
        self.last_headers: dict[str, str] = {}
        self.loop = loop or asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._thread: threading.Thread | None = None
        self._tls: ssl.SSLContext | None = None
        if tls is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(*tls)

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The base URL, with the version."""
        return f"{self.origin}/v1"

    async def listen(self) -> None:
        """Open the port; the same one as before if it was open already."""
        self._server = await self.loop.create_server(
            lambda: _Connection(self), "127.0.0.1", self.port, ssl=self._tls, backlog=2048
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def shut(self) -> None:
        """Close the port and break all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self.connections):
            connection.transport.abort()
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # those that were sending end too

    def down(self) -> None:
        """Let the endpoint die, from another thread."""
        asyncio.run_coroutine_threadsafe(self.shut(), self.loop).result(10)

    def up(self) -> None:
        """Bring the endpoint back on the same port, from another thread."""
        asyncio.run_coroutine_threadsafe(self.listen(), self.loop).result(10)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()
        self.loop.call_soon_threadsafe(self.loop.stop)
        if self._thread is not None:
            self._thread.join(10)
        self.loop.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--faults", default="{}", help="JSON: fault to share of attempts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--answers", help="JSON file: prompt key to text")
    parser.add_argument("--text", help="one text for every prompt")
    parser.add_argument("--key")
    parser.add_argument("--models", default="", help="names, separated by commas")
    parser.add_argument("--latency", default="0", help="seconds, or JSON: seconds to share")
    parser.add_argument("--stall", type=float, default=30.0)
    parser.add_argument("--retry-after")
    parser.add_argument("--logprobs", default="openai")
    return parser.parse_args()


def plan_of(arguments: argparse.Namespace) -> Plan:
    """The plan that the command line describes."""
    latency = msgspec.json.decode(arguments.latency.encode())
    if isinstance(latency, dict):
        latency = {float(seconds): share for seconds, share in latency.items()}
    answers: Any = arguments.text
    if arguments.answers:
        answers = msgspec.json.decode(Path(arguments.answers).read_bytes(), type=dict[str, str])
    return Plan(
        answers=answers,
        faults=msgspec.json.decode(arguments.faults.encode(), type=dict[str, float]),
        seed=arguments.seed,
        key=arguments.key,
        models=tuple(filter(None, arguments.models.split(","))),
        latency=latency,
        stall=arguments.stall,
        retry_after=arguments.retry_after,
        logprobs=arguments.logprobs,
    )


def _fast_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def main() -> None:
    """Serve until the process is ended."""
    arguments = _arguments()
    endpoint = FaultyEndpoint(plan_of(arguments), port=arguments.port, loop=_fast_loop())
    endpoint.loop.run_until_complete(endpoint.listen())
    address = {"url": endpoint.url, "port": endpoint.port}
    sys.stdout.write(msgspec.json.encode(address).decode() + "\n")
    sys.stdout.flush()
    endpoint.loop.run_forever()


if __name__ == "__main__":
    main()
