"""The published schema of Anthropic's Messages API, as a judge of requests.

`check` raises `Refused` for whatever the API refuses: unknown keys at every level, wrong types,
what a model or a version does not take, conversations out of order, thinking that was changed. It
is written from the published description and shares nothing with Keju's client, its table of
models included, so that each of them tests the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

OLD, NEW = "2023-06-01", "2026-10-21"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
ID = re.compile(r"[a-zA-Z0-9_-]+")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
MEDIA = ("image/jpeg", "image/png", "image/gif", "image/webp")


class Row(NamedTuple):
    """One line of the published table of models."""

    default_thinking: bool
    thinking: tuple[str, ...]
    forced_tool: bool
    sampling: str
    prefill: bool
    cap: int = 128_000
    bound: bool = False
    """Its thinking is tied to everything before it."""
    no_effort: bool = False
    calm: tuple[str, ...] = ()
    """Kinds of thinking that go with an effort of at most high."""


MODELS = {
    "claude-haiku-4-5": Row(False, ("enabled", "disabled"), True, "one", True, 64_000, no_effort=True),
    "claude-sonnet-4-5-20250929": Row(False, ("enabled", "disabled"), True, "one", True, 64_000, no_effort=True),
    "claude-opus-4-5": Row(False, ("enabled", "disabled"), True, "one", True, 64_000),
    "claude-opus-4-6": Row(False, ("adaptive", "enabled", "disabled"), True, "one", False),
    "claude-sonnet-4-6": Row(False, ("adaptive", "enabled", "disabled"), True, "one", False),
    "claude-opus-4-7": Row(False, ("adaptive", "disabled"), True, "none", False),
    "claude-opus-4-8": Row(False, ("adaptive", "disabled"), True, "none", False),
    "claude-sonnet-5": Row(True, ("adaptive", "disabled"), False, "default", False),
    "claude-opus-5": Row(True, ("adaptive", "disabled"), False, "default", False, calm=("disabled",)),
    "claude-haiku-5-5": Row(True, ("adaptive", "disabled"), False, "default", False, bound=True, calm=("disabled",)),
    "claude-sonnet-5-5": Row(True, ("adaptive", "between_tools"), False, "none", False, bound=True, calm=("between_tools",)),
    "claude-opus-5-5": Row(True, ("adaptive",), False, "none", False, bound=True),
    "claude-fable-5-1": Row(True, ("adaptive",), False, "none", False, bound=True),
}  # fmt: skip


class Refused(Exception):
    """What the API answers to a request that it does not take."""

    def __init__(
        self, message: str, status: int = 400, kind: str = "invalid_request_error"
    ) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


def need(truth: object, message: str) -> None:
    if not truth:
        raise Refused(message)


def is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def checked_object(where: str, value: Any, required: str, optional: str = "") -> dict[str, Any]:
    """An object with all of the `required` keys and no key that is not listed."""
    need(isinstance(value, dict), f"{where}: not an object")
    for name in required.split():
        need(name in value, f"{where}.{name}: field required")
    for name in value:
        need(
            name in f"{required} {optional}".split(),
            f"{where}.{name}: extra inputs are not permitted",
        )
    return dict(value)


class Request(NamedTuple):
    """One request and what its judge may ask about earlier replies."""

    document: dict[str, Any]
    version: str
    signed: Callable[[dict[str, Any], int, dict[str, Any]], bool]
    """Whether a thinking block in message i of a document is as it was issued."""

    @property
    def row(self) -> Row:
        return MODELS[self.document["model"]]

    @property
    def thinks(self) -> bool:
        thinking = self.document.get("thinking")
        return self.row.default_thinking if thinking is None else thinking["type"] != "disabled"


FIELDS = (
    "stop_sequences system metadata tools tool_choice thinking output_config service_tier "
    "cache_control stream container diagnostics inference_geo speed"
)


def check(request: Request) -> None:
    """Raise Refused for a body that the API does not take."""
    document = request.document
    sampling = "temperature top_p top_k" if request.version == OLD else ""
    checked_object("body", document, "model max_tokens messages", f"{FIELDS} {sampling}")
    model, limit = document["model"], document["max_tokens"]
    need(isinstance(model, str) and 1 <= len(model) <= 256, "model: 1 to 256 characters")
    if model not in MODELS:
        raise Refused(f"model: {model}", 404, "not_found_error")
    need(is_integer(limit) and 0 <= limit <= request.row.cap, f"max_tokens: 0 to {request.row.cap}")
    check_options(document)
    check_thinking(request)
    check_sampling(request)
    check_tools(request)
    check_system(document.get("system", []))
    check_messages(request)
    check_marks(document)


def check_options(document: dict[str, Any]) -> None:
    stops = document.get("stop_sequences", [])
    need(isinstance(stops, list), "stop_sequences: not a list")
    for stop in stops:
        need(
            isinstance(stop, str) and stop.strip(), "stop_sequences: each must hold non-whitespace"
        )
    if (metadata := document.get("metadata")) is not None:
        user = checked_object("metadata", metadata, "", "user_id").get("user_id")
        need(user is None or (isinstance(user, str) and len(user) <= 256), "metadata.user_id")
    need(document.get("service_tier", "auto") in ("auto", "standard_only"), "service_tier")
    need(document.get("stream", False) is False, "stream: this server does not stream")
    need(document.get("speed") in (None, "standard", "fast"), "speed")
    for name in ("cache_control",):
        if document.get(name) is not None:
            check_mark(name, document[name])


def check_thinking(request: Request) -> None:
    document, row = request.document, request.row
    config = checked_object(
        "output_config", document.get("output_config") or {}, "", "effort format"
    )
    effort = config.get("effort")
    need(effort is None or effort in EFFORTS, f"output_config.effort: {effort}")
    need(effort is None or not row.no_effort, "output_config.effort: not supported by this model")
    if config.get("format") is not None:
        shape = checked_object("output_config.format", config["format"], "type schema")
        need(
            shape["type"] == "json_schema" and isinstance(shape["schema"], dict),
            "output_config.format",
        )
    thinking = document.get("thinking")
    if thinking is None:
        need("thinking" not in document, "thinking: leave it out")
        return
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    need(kind in row.thinking, f"thinking.type: {kind} is not supported by this model")
    need(
        kind not in row.calm or effort not in ("xhigh", "max"),
        f"thinking.type: {kind} needs a lower effort",
    )
    fields = {"enabled": "type budget_tokens", "adaptive": "type"}.get(str(kind), "type")
    checked_object(
        "thinking", thinking, fields, "display" if kind in ("enabled", "adaptive") else ""
    )
    need(thinking.get("display") in (None, "summarized", "omitted"), "thinking.display")
    if kind == "enabled":
        budget = thinking["budget_tokens"]
        need(
            is_integer(budget) and 1024 <= budget < document["max_tokens"], "thinking.budget_tokens"
        )


def check_sampling(request: Request) -> None:
    document, row = request.document, request.row
    sampling = {
        name: document[name] for name in ("temperature", "top_p", "top_k") if name in document
    }
    for name, value in sampling.items():
        need(
            isinstance(value, int | float) and not isinstance(value, bool), f"{name}: not a number"
        )
        need(value >= 0 and (name == "top_k" or value <= 1), f"{name}: out of range")
    need(
        len(sampling.keys() & {"temperature", "top_p"}) < 2,
        "temperature and top_p cannot both be set",
    )
    usual = all(value == 1 for value in sampling.values()) and "top_k" not in sampling
    need(
        not sampling or row.sampling == "one" or (row.sampling == "default" and usual),
        "sampling is not supported by this model",
    )
    need(
        not sampling or not request.thinks or sampling == {"temperature": 1},
        "sampling: not while thinking",
    )


def check_tools(request: Request) -> None:
    document = request.document
    tools = document.get("tools", [])
    need(isinstance(tools, list), "tools: not a list")
    names = []
    optional = "description strict input_examples cache_control type defer_loading allowed_callers eager_input_streaming"
    for tool in tools:
        checked_object("tools", tool, "name input_schema", optional)
        need(
            isinstance(tool["name"], str) and NAME.fullmatch(tool["name"]),
            f"tools.name: {tool['name']}",
        )
        schema = tool["input_schema"]
        need(
            isinstance(schema, dict) and schema.get("type") == "object",
            "tools.input_schema.type: object",
        )
        need(isinstance(tool.get("description", ""), str), "tools.description: not a text")
        need(tool.get("type", "custom") in ("custom", None), "tools.type")
        names.append(tool["name"])
    need(len(set(names)) == len(names), "tools: names must be unique")
    choice = document.get("tool_choice")
    if choice is None:
        need("tool_choice" not in document, "tool_choice: leave it out")
        return
    kind = choice.get("type") if isinstance(choice, dict) else None
    need(kind in ("auto", "any", "tool", "none"), "tool_choice.type")
    required = "type name" if kind == "tool" else "type"
    checked_object(
        "tool_choice", choice, required, "" if kind == "none" else "disable_parallel_tool_use"
    )
    need(tools, "tool_choice: no tools")
    need(kind != "tool" or choice["name"] in names, "tool_choice.name: no such tool")
    forced = kind in ("any", "tool")
    need(
        not forced or (request.row.forced_tool and not request.thinks),
        "tool_choice: cannot be forced here",
    )


def check_system(system: Any) -> None:
    if isinstance(system, str):
        need(system, "system: empty")
        return
    need(isinstance(system, list), "system: a text or a list of text blocks")
    for block in system:
        need(isinstance(block, dict) and block.get("type") == "text", "system: text blocks alone")
        check_block("system", block, "system", NEW)


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def check_messages(request: Request) -> None:
    messages = request.document["messages"]
    need(isinstance(messages, list) and 1 <= len(messages) <= 100_000, "messages: at least one")
    before = ""
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        checked_object(where, message, "role content")
        role = message["role"]
        need(role in ("user", "assistant"), f"{where}.role: {role}")
        need(role != before, f"{where}: roles must alternate")
        before = role
        need(
            isinstance(message["content"], str | list) and message["content"],
            f"{where}.content: empty",
        )
        for block in blocks_of(message):
            check_block(where, block, role, request.version)
    need(messages[0]["role"] == "user", "messages: the first message must be the user's")
    check_calls(messages)
    check_thoughts(request, messages)
    last_message = messages[-1]
    if last_message["role"] == "assistant" and blocks_of(last_message)[-1]["type"] == "text":
        need(request.row.prefill, "messages: this model does not support prefill")
        enabled = request.document.get("thinking", {}).get("type") == "enabled"
        need(not enabled, "messages: no prefill while thinking")
        text = blocks_of(last_message)[-1]["text"]
        need(text == text.rstrip(), "messages: final assistant content cannot end with whitespace")


BLOCKS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "text": ("text", "citations cache_control", ("user", "assistant", "system")),
    "image": ("source", "cache_control transformations", ("user", "result")),
    "tool_use": ("id name input", "cache_control caller toolset_name", ("assistant",)),
    "tool_result": ("tool_use_id", "content is_error cache_control", ("user",)),
    "thinking": ("thinking signature", "", ("assistant",)),
    "redacted_thinking": ("data", "", ("assistant",)),
    "server_tool_use": ("id name input", "cache_control caller", ("assistant",)),
    "web_search_tool_result": ("tool_use_id content", "cache_control caller", ("assistant",)),
    "document": ("source", "title context citations cache_control", ("user", "result")),
}


def check_block(where: str, block: Any, role: str, version: str) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    need(kind in BLOCKS, f"{where}: block type {kind}")
    required, optional, roles = BLOCKS[str(kind)]
    roles = (*roles, "result") if kind == "text" else roles
    need(role in roles, f"{where}: {kind} is not allowed in {role}")
    checked_object(f"{where}.{kind}", block, f"type {required}", optional)
    if block.get("cache_control") is not None:
        check_mark(f"{where}.cache_control", block["cache_control"])
    if kind == "text":
        need(
            isinstance(block["text"], str) and block["text"].strip(),
            f"{where}: text must hold non-whitespace",
        )
        need(
            not (role == "user" and version == NEW and block.get("citations")),
            f"{where}: citations",
        )
    elif kind == "image":
        source = block["source"]
        shape = {"base64": "type media_type data", "url": "type url", "file": "type file_id"}
        need(isinstance(source, dict) and source.get("type") in shape, f"{where}: image source")
        checked_object(f"{where}.source", source, shape[source["type"]])
        need(source.get("media_type", MEDIA[0]) in MEDIA, f"{where}: media type")
    elif kind == "tool_use":
        need(isinstance(block["id"], str) and ID.fullmatch(block["id"]), f"{where}: tool_use.id")
        need(
            isinstance(block["name"], str) and NAME.fullmatch(block["name"]),
            f"{where}: tool_use.name",
        )
        need(isinstance(block["input"], dict), f"{where}: tool_use.input must be an object")
    elif kind == "tool_result":
        content = block.get("content", "")
        need(isinstance(block.get("is_error", False), bool), f"{where}: is_error")
        need(isinstance(content, str | list), f"{where}: tool_result.content")
        for inner in content if isinstance(content, list) else ():
            check_block(f"{where}.tool_result", inner, "result", version)


def check_calls(messages: list[dict[str, Any]]) -> None:
    """Every call is answered at once, once, and before anything else is said."""
    for number, message in enumerate(messages):
        calls = [b["id"] for b in blocks_of(message) if b["type"] == "tool_use"]
        need(len(set(calls)) == len(calls), f"messages.{number}: tool_use ids must be unique")
        if calls:
            need(number + 1 < len(messages), f"messages.{number}: tool_use without tool_result")
        if message["role"] != "user":
            continue
        before = (
            [b["id"] for b in blocks_of(messages[number - 1]) if b["type"] == "tool_use"]
            if number
            else []
        )
        kinds = [b["type"] for b in blocks_of(message)]
        results = [b["tool_use_id"] for b in blocks_of(message) if b["type"] == "tool_result"]
        need(
            kinds[: len(results)].count("tool_result") == len(results),
            f"messages.{number}: tool_result must come first",
        )
        need(
            sorted(results) == sorted(before),
            f"messages.{number}: tool_use and tool_result do not match",
        )
        need(
            results == before, f"messages.{number}: tool_results are not in the order of the calls"
        )


def check_thoughts(request: Request, messages: list[dict[str, Any]]) -> None:
    for number, message in enumerate(messages):
        blocks = blocks_of(message)
        thoughts = [b for b in blocks if b["type"] in ("thinking", "redacted_thinking")]
        if not thoughts:
            continue
        need(
            blocks[0]["type"] in ("thinking", "redacted_thinking"),
            f"messages.{number}: thinking must come first",
        )
        need(
            blocks[-1]["type"] not in ("thinking", "redacted_thinking"),
            f"messages.{number}: thinking cannot be last",
        )
        for block in thoughts:
            need(
                request.signed(block, number, request.document),
                f"messages.{number}: thinking blocks cannot be modified",
            )
        is_last_turn = not any(m["role"] == "assistant" for m in messages[number + 1 :])
        need(request.thinks or not is_last_turn, f"messages.{number}: thinking is off")


def check_mark(where: str, mark: Any) -> None:
    checked_object(where, mark, "type", "ttl")
    need(mark["type"] == "ephemeral" and mark.get("ttl", "5m") in ("5m", "1h"), where)


def marked(document: dict[str, Any]) -> list[dict[str, Any]]:
    """All blocks that may carry a mark, in the order of the prompt."""
    system = document.get("system", [])
    blocks = [*document.get("tools", []), *(system if isinstance(system, list) else [])]
    return blocks + [block for message in document["messages"] for block in blocks_of(message)]


def check_marks(document: dict[str, Any]) -> None:
    marks = [block["cache_control"] for block in marked(document) if block.get("cache_control")]
    marks += [document["cache_control"]] if document.get("cache_control") else []
    need(len(marks) <= 4, "cache_control: at most 4 marks")
    times = [mark.get("ttl", "5m") for mark in marks]
    need(times == sorted(times), "cache_control: a 1h mark must stand before any 5m mark")
