"""Requests and replies of Anthropic's Messages API, as JSON.

A conversation is a list of turns whose roles alternate, and a turn is a list of blocks. The part
that all questions of a subset share ends with a cache mark, up to which the service keeps it:

    system    [worked examples' instructions]
    user      [an example]   assistant [its solution, marked]   user [the question]
    user      [examples in one text, marked] [the question]

A model with tools gets its own turns back byte for byte. After them comes one turn of the user that
begins with the results of all its calls, in order. Such a conversation only grows, so it also has a
mark at its end.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from keju.answers.segments import as_reply
from keju.models.anthropic.sampling import ONLY_CLIENT
from keju.models.base import Redactor, error_of, kind_of, one_line
from keju.models.openai.wire import document_of, token_count, unreadable_fault
from keju.types import (
    CUT,
    REFUSAL_FINISH,
    Fault,
    Prompt,
    Reply,
    Request,
    Tool,
    ToolCall,
    Turn,
    Usage,
)

FINISHES: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": CUT,
    "model_context_window_exceeded": CUT,
    "tool_use": "tool_calls",
    "refusal": REFUSAL_FINISH,
}
"""The API's stop reasons in Keju's words; unknown ones stay unchanged."""
PAUSED: Final = "pause_turn"
"""The stop reason of a reply that continues when it is sent back."""
MARK: Final = {"type": "ephemeral"}
"""The cache mark on the last block that is kept for the next request."""

Block = dict[str, Any]
_encode = msgspec.json.encode
PICTURES: Final = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""Media types by the first bytes of a file."""


class _WireMessage(msgspec.Struct):
    """A reply whose content is kept as it was written."""

    content: msgspec.Raw


class Unsendable(Exception):
    """A prompt that the API cannot express."""


class RequestBody(NamedTuple):
    """A request's body, and its turns, to which further turns can be added."""

    fields: dict[str, Any]
    turns: list[dict[str, Any]]

    def encoded(self) -> bytes:
        """Return the JSON that is sent; equal requests give equal bytes."""
        return _encode(self.fields | {"messages": self.turns})


def body_of(model: str, request: Request) -> RequestBody:
    """Return the body for `request`; raise Unsendable."""
    prompt, sampling = request.prompt, request.sampling
    system, turns = _prompt_turns(prompt)
    if request.turns:
        _add_turns(turns, request)
    elif request.continues_cue and prompt.cue.strip():
        add_blocks(turns, "assistant", _text(prompt.cue.rstrip()))
    fields: dict[str, Any] = {"model": model, "max_tokens": sampling.max_tokens}
    fields |= {"temperature": sampling.temperature, "top_p": sampling.top_p}
    fields |= {"stop_sequences": [stop for stop in sampling.stop if stop.strip()]}
    fields |= {"system": system}
    fields = {name: value for name, value in fields.items() if value not in (None, [])}
    extra = {name: value for name, value in sampling.extra.items() if name != ONLY_CLIENT}
    if request.tools:
        extra |= {
            "tools": [*map(_tool, request.tools)],
            "tool_choice": {"type": request.tool_choice},
        }
        extra["cache_control"] = MARK
    return RequestBody(fields | extra, turns)


def _prompt_turns(prompt: Prompt) -> tuple[list[Block], list[dict[str, Any]]]:
    """Return the system's blocks and the turns of a prompt, with its shared part marked."""
    system: list[Block] = []
    turns: list[dict[str, Any]] = []
    shared: list[Block] = []
    for message in prompt.prefix.messages:
        if message.role == "system" and turns:
            raise Unsendable("Anthropic's API takes a system message at the beginning alone")
        if message.content.strip():
            shared = [_text(message.content)]
            if message.role == "system":
                system += shared
            else:
                add_blocks(turns, message.role, *shared)
    lead, tail = prompt.prefix.lead, prompt.tail
    if lead.strip() and tail.strip():
        shared = [_text(lead)]
        add_blocks(turns, "user", *shared)
    else:  # the API refuses blocks of white space
        tail = lead + tail
    if not tail.strip():
        raise Unsendable("the prompt is empty")
    add_blocks(turns, "user", _text(tail))
    if turns[0]["role"] != "user":
        raise Unsendable("Anthropic's API wants a conversation that the user begins")
    for block in shared:
        block["cache_control"] = MARK
    return system, turns


def add_blocks(turns: list[dict[str, Any]], role: str, *blocks: Any) -> None:
    """Add blocks to a conversation. Neighbouring blocks of one role form one turn."""
    if not blocks:
        return
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] = [*turns[-1]["content"], *blocks]
    else:
        turns.append({"role": role, "content": [*blocks]})


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _add_turns(turns: list[dict[str, Any]], request: Request) -> None:
    """Add the turns after the prompt."""
    for turn in request.turns:
        if turn.role == "assistant" and turn.native:
            turns.append({"role": "assistant", "content": msgspec.Raw(turn.native)})
        elif turn.role == "assistant":
            text_blocks = [_text(turn.text)] if turn.text.strip() else []
            add_blocks(turns, "assistant", *text_blocks, *map(_tool_use, turn.calls))
        elif turn.role == "tool":
            add_blocks(turns, "user", _tool_result(turn))
        else:
            add_blocks(
                turns, "user", *([_text(turn.text)] if turn.text.strip() else []), *_pictures(turn)
            )


def _tool(tool: Tool) -> Block:
    schema = {"type": "object"} | tool.parameters
    description = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **description, "input_schema": schema}


def _tool_use(call: ToolCall) -> Block:
    """Return the block of a call that did not come from this API; malformed arguments become
    empty."""
    try:
        arguments = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, UnicodeEncodeError):
        arguments = None
    arguments = arguments if isinstance(arguments, dict) else {}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _tool_result(turn: Turn) -> Block:
    result: Block = {"type": "tool_result", "tool_use_id": turn.call}
    if content := [*([_text(turn.text)] if turn.text.strip() else []), *_pictures(turn)]:
        result["content"] = content
    return result | ({"is_error": True} if turn.kind != "ok" else {})


def _pictures(turn: Turn) -> list[Block]:
    """Return the pictures of a turn, except unknown types."""
    blocks = []
    for picture in turn.images:
        kind = next((kind for start, kind in PICTURES.items() if picture.startswith(start)), None)
        if kind is not None:
            data = b64encode(picture).decode()
            source = {"type": "base64", "media_type": kind, "data": data}
            blocks.append({"type": "image", "source": source})
    return blocks


def normalise(
    body: bytes, request: Request, seconds: float, redact: Redactor, request_id: str = ""
) -> Reply:
    """Turn the body of a successful call into a reply, or a fault if it cannot be used."""
    document: Any
    try:
        document = document_of(body)
    except ValueError:
        return Reply(seconds=seconds, error=unreadable_fault(body, redact))
    if not isinstance(document, dict) or not isinstance(document.get("content"), list):
        return Reply(seconds=seconds, error=_missing_message_fault(document, redact, request_id))
    blocks = [block for block in document["content"] if isinstance(block, dict)]
    word = document.get("stop_reason")
    finish = FINISHES.get(word, word) if isinstance(word, str) else ""
    # Keju does not run calls of a reply that was cut off or refused
    is_complete = finish not in (CUT, REFUSAL_FINISH)
    text, finish = _cut_at_stops(
        _joined_text(blocks, "text"), finish, document, request.sampling.stop
    )
    model = document.get("model")
    calls = _calls(blocks) if is_complete else ()
    return as_reply(
        text,
        reasoning=[thought for thought in _texts(blocks, "thinking") if thought],
        finish="tool_calls" if calls and finish == "stop" else finish,
        usage=usage_of(document.get("usage")),
        seconds=seconds,
        model=model if isinstance(model, str) else "",
        refusal=_refusal_text(document) if finish == REFUSAL_FINISH else "",
        request_id=request_id,
        tool_calls=calls,
        native=_native(body, document) if request.tools or finish == PAUSED else b"",
    )


def _calls(blocks: Iterable[Block]) -> tuple[dict[str, Any], ...]:
    """Return the calls of a reply in OpenAI's format."""
    calls = []
    for block in blocks:
        name = block.get("name")
        if block.get("type") == "tool_use" and isinstance(name, str):
            arguments = json.dumps(block.get("input"), ensure_ascii=False)
            function = {"name": name, "arguments": arguments}
            calls.append({"id": block.get("id"), "type": "function", "function": function})
    return tuple(calls)


def _native(body: bytes, document: Mapping[str, Any]) -> bytes:
    """Return the content of a reply as it was written, to send it back; empty if there is none."""
    if not document["content"]:
        return b""
    try:
        return bytes(msgspec.json.decode(body, type=_WireMessage).content)
    except msgspec.DecodeError:  # only the slower, tolerant decoder can read it
        return _encode(document["content"])


def _texts(blocks: Iterable[Block], kind: str) -> list[str]:
    """Return the texts of all blocks of one type."""
    values = [block.get(kind) for block in blocks if block.get("type") == kind]
    return [text for text in values if isinstance(text, str)]


def _joined_text(blocks: Iterable[Block], kind: str) -> str:
    return "".join(_texts(blocks, kind))


def _cut_at_stops(
    text: str, finish: str, document: Mapping[str, Any], stops: Iterable[str]
) -> tuple[str, str]:
    """Return a text without the sequence that ended it, and why it ended.

    The API refuses stop sequences of white space, so the text is cut at them here.
    """
    sequence = document.get("stop_sequence")
    if isinstance(sequence, str) and sequence:
        text = text.removesuffix(sequence)
    stop_positions = [text.find(stop) for stop in stops if not stop.strip()]
    if cuts := [position for position in stop_positions if position >= 0]:
        return text[: min(cuts)], "stop" if finish == CUT else finish
    return text, finish


def _refusal_text(document: Mapping[str, Any]) -> str:
    """Return the API's explanation of a refusal: ``cyber: the request asks for …``."""
    details = document.get("stop_details")
    fields = details if isinstance(details, dict) else {}
    words = [fields.get(name) for name in ("category", "explanation")]
    return ": ".join(word for word in words if isinstance(word, str) and word)


def _missing_message_fault(document: Any, redact: Redactor, request_id: str) -> Fault:
    """Return the fault of a reply that is not a message. Some gateways report an error as
    success."""
    if not isinstance(document, dict) or not document.get("error"):
        return Fault("malformed", "not a reply of Anthropic's API: it holds no list of content")
    message, code = error_of(_encode(document))
    kind = kind_of(500, message, code)
    return Fault(kind, one_line(redact(message)), 500, request_id=request_id)


def usage_of(usage: Any) -> Usage:
    """Return the token counts of a reply. Input tokens include those read from and written to the
    cache."""
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("output_tokens_details")
    cache_written = token_count(usage.get("cache_creation_input_tokens"))
    cache_read = token_count(usage.get("cache_read_input_tokens"))
    return Usage(
        token_count(usage.get("input_tokens")) + cache_written + cache_read,
        token_count(usage.get("output_tokens")),
        cache_read,
        token_count(details.get("thinking_tokens")) if isinstance(details, dict) else 0,
        cache_written,
    )


def join_replies(paused: Reply, continued: Reply) -> Reply:
    """Return a paused reply and its continuation as one reply."""
    if continued.error is not None:
        return continued
    pairs = zip(
        msgspec.structs.astuple(paused.usage), msgspec.structs.astuple(continued.usage), strict=True
    )
    return msgspec.structs.replace(
        continued,
        text=paused.text + continued.text,
        reasoning="\n".join(filter(None, (paused.reasoning, continued.reasoning))),
        usage=Usage(*(a + b for a, b in pairs)),
        seconds=paused.seconds + continued.seconds,
    )
