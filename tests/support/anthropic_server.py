"""Anthropic's Messages API on loopback: it refuses what the published schema refuses.

``with AnthropicServer(AnthropicPlan(answer=…)) as server: … server.url``. A plan's `answer` gets
the request and returns a text, a list of blocks, an `AnthropicMessage`, or a `RawResponse` of any
status. Thinking blocks are signed. A request that contains them must repeat them byte for byte,
and on models whose thinking is bound to its history nothing before them may change.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.support.anthropic_schema import MODELS, NEW, OLD, Refused, Request, check, marked

KEY = "sk-ant-the-right-key-0123456789"
SCHEMA_VERSION = NEW


class AnthropicMessage(NamedTuple):
    """A message of the model; `thinks` is put before its content as a signed block."""

    content: list[dict[str, Any]] | str
    stop: str | None = None
    thinks: str | None = None
    usage: dict[str, Any] | None = None
    extra_fields: dict[str, Any] | None = None
    """Further fields of the message."""


class RawResponse(NamedTuple):
    """A reply as it stands."""

    status: int
    body: bytes = b""
    headers: dict[str, str] | None = None


Answer = str | list[dict[str, Any]] | AnthropicMessage | RawResponse


@dataclass
class AnthropicPlan:
    """What the server says."""

    answer: Callable[[dict[str, Any], int], Answer] | str = "So the answer is (A)."
    """Sees the body and the number of the request, from 0."""
    key: str | None = KEY
    info: bool = True
    """Whether models are described (``GET /v1/models/ID``)."""


def error(kind: str, message: str, code: str = "") -> bytes:
    """The body of an error."""
    problem: dict[str, Any] = {"type": kind, "message": message}
    if code:
        problem["details"] = {"error_code": code}
    return json.dumps({"type": "error", "error": problem, "request_id": "req_x"}).encode()


def tool_use(name: str, arguments: dict[str, Any], key: str) -> dict[str, Any]:
    """A call."""
    return {"type": "tool_use", "id": key, "name": name, "input": arguments}


@dataclass
class AnthropicServer:
    """The server; as a context manager it runs in threads of its own."""

    plan: AnthropicPlan = field(default_factory=AnthropicPlan)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    """The requests that fit the schema, in order."""
    headers: list[dict[str, str]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """What was wrong with those that did not."""
    paths: list[str] = field(default_factory=list)
    """Paths of GET requests."""

    def __post_init__(self) -> None:
        self.issued: list[bytes] = []
        """Content of messages with thinking or calls, as it was sent."""
        self.cached: set[str] = set()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Its address, as ANTHROPIC_BASE_URL has it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def sign(self, document: dict[str, Any], number: int, text: str) -> str:
        """The signature of a thinking block in message `number`."""
        bound = MODELS[document["model"]].bound
        before = [document.get("system"), document.get("tools"), document["messages"][:number]]
        history = json.dumps(_unmarked(before)) if bound else ""
        return hashlib.sha256(f"{document['model']}\0{history}\0{text}".encode()).hexdigest()

    def signed(self, block: dict[str, Any], number: int, document: dict[str, Any]) -> bool:
        """Whether a thinking block is as it was issued; omitted thinking has an empty text."""
        if block["type"] == "redacted_thinking":
            return any(block["data"].encode() in content for content in self.issued)
        issued = any(json.dumps(block["signature"]).encode() in content for content in self.issued)
        thinking = block["thinking"] or "hidden"
        return issued and block["signature"] == self.sign(document, number, thinking)

    def respond(self, method: str, path: str, headers: dict[str, str], body: bytes) -> RawResponse:
        """The reply to one request."""
        try:
            self._authorise(headers)
            if method == "GET":
                self.paths.append(path)
                return self._models(path)
            if path != "/v1/messages":
                raise Refused(f"no route {path}", 404, "not_found_error")
            document = json.loads(body)
            version = headers.get("anthropic-version", "")
            if version not in (OLD, NEW):
                raise Refused("anthropic-version: header is required")
            if headers.get("content-type") != "application/json":
                raise Refused("content-type: application/json")
            check(Request(document, version, self.signed))
            self._unchanged(document, body)
        except Refused as refused:
            self.refused.append(str(refused))
            return RawResponse(refused.status, error(refused.kind, str(refused)))
        number = len(self.bodies)
        self.bodies.append(document)
        self.headers.append(headers)
        plan = self.plan.answer
        answer = plan(document, number) if callable(plan) else plan
        return (
            answer
            if isinstance(answer, RawResponse)
            else RawResponse(200, self._message(document, answer))
        )

    def _authorise(self, headers: dict[str, str]) -> None:
        used_key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix(
            "Bearer "
        )
        if self.plan.key is not None and used_key != self.plan.key:
            raise Refused(f"invalid x-api-key {used_key}", 401, "authentication_error")

    def _models(self, path: str) -> RawResponse:
        listed = [_info(name) for name in MODELS]
        name = path.removeprefix("/v1/models").removeprefix("/")
        if not self.plan.info or (name and name not in MODELS):
            return RawResponse(404, error("not_found_error", f"model: {name}"))
        return RawResponse(
            200, json.dumps(_info(name) if name else {"data": listed, "has_more": False}).encode()
        )

    def _unchanged(self, document: dict[str, Any], body: bytes) -> None:
        """What the model said with calls comes back byte for byte."""
        for message in document["messages"]:
            if message["role"] != "assistant" or isinstance(message["content"], str):
                continue
            kinds = {block["type"] for block in message["content"]}
            if not kinds & {"thinking", "redacted_thinking", "tool_use"}:
                continue
            same_contents = [
                content for content in self.issued if json.loads(content) == message["content"]
            ]
            if not same_contents:
                raise Refused("messages: the assistant's content is not what was issued")
            if not any(content in body for content in same_contents):
                raise Refused("messages: the assistant's content was written anew")

    def _message(
        self, document: dict[str, Any], answer: str | list[dict[str, Any]] | AnthropicMessage
    ) -> bytes:
        reply = answer if isinstance(answer, AnthropicMessage) else AnthropicMessage(answer)
        content = (
            [{"type": "text", "text": reply.content}]
            if isinstance(reply.content, str)
            else reply.content
        )
        if reply.thinks is not None:
            text = reply.thinks
            is_visible = (document.get("thinking") or {}).get("display") != "omitted"
            signature = self.sign(document, len(document["messages"]), text)
            thought = {
                "type": "thinking",
                "thinking": text if is_visible and text != "hidden" else "",
                "signature": signature,
            }
            content = [thought, *content]
        calls = any(block["type"] == "tool_use" for block in content)
        # Odd white space, so that whoever writes the content anew is found out.
        encoded_content = json.dumps(content, separators=(" ,", " : ")).encode()
        self.issued.append(encoded_content)
        head = {
            "id": f"msg_{len(self.bodies)}",
            "type": "message",
            "role": "assistant",
            "model": document["model"],
        }
        head |= {
            "stop_reason": reply.stop or ("tool_use" if calls else "end_turn"),
            "stop_sequence": None,
        }
        head |= {"stop_details": None, "usage": reply.usage or self._usage(document, content)}
        head |= reply.extra_fields or {}
        return json.dumps(head).encode()[:-1] + b', "content": ' + encoded_content + b"}"

    def _usage(self, document: dict[str, Any], content: list[dict[str, Any]]) -> dict[str, Any]:
        """Counts as the service gives them: a prefix up to a mark is written once and then read."""
        prefixes, text = [], ""
        for block in marked(document):
            text += json.dumps(_unmarked(block))
            if block.get("cache_control"):
                prefixes.append(text)
        if document.get("cache_control"):
            prefixes.append(text)
        with self.lock:
            cached_length = max((len(p) for p in prefixes if p in self.cached), default=0)
            cacheable_length = max((len(p) for p in prefixes), default=0)
            self.cached.update(prefixes)
        return {
            "input_tokens": (len(text) - cacheable_length) // 4,
            "output_tokens": len(json.dumps(content)) // 4,
            "cache_creation_input_tokens": (cacheable_length - cached_length) // 4,
            "cache_read_input_tokens": cached_length // 4,
            "output_tokens_details": {
                "thinking_tokens": 7 if content[:1] and content[0]["type"] == "thinking" else 0
            },
            "service_tier": "standard",
        }

    def __enter__(self) -> Self:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self) -> None:
                size = int(self.headers.get("content-length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = owner.respond(self.command, self.path, headers, self.rfile.read(size))
                self.send_response(reply.status)
                response_headers = {
                    "request-id": f"req_{len(owner.bodies)}",
                    "content-type": "application/json",
                }
                for name, value in (response_headers | (reply.headers or {})).items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            do_GET = do_POST = handle_one  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _unmarked(value: Any) -> Any:
    """`value` without marks, which are no part of what a model reads."""
    if isinstance(value, dict):
        return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [_unmarked(element) for element in value] if isinstance(value, list) else value


def _info(name: str) -> dict[str, Any]:
    row = MODELS[name]
    return {
        "type": "model",
        "id": name,
        "display_name": name.title(),
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 200_000,
        "max_tokens": row.cap,
        "capabilities": {"thinking": {"types": {k: {"supported": True} for k in row.thinking}}},
    }
