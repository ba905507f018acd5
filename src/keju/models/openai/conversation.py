"""The turns after the prompt in OpenAI's format: turns, tools, and the model's own messages.

Each turn is encoded once per episode and appended to the earlier ones. The bytes of a conversation
only grow, so servers find its beginning in their caches.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from keju.types import Reply, Request, Tool, Turn

KEPT_LISTS = 256
"""Number of tool lists whose JSON is kept. Servers for one question have separate lists."""
_encode = msgspec.json.encode
_decode = msgspec.json.decode


class _EncodedTurn(NamedTuple):
    """An encoded turn: its message, and its pictures as content parts."""

    message: bytes
    pictures: bytes


class Conversation:
    """Encodes the turns of all episodes of one model."""

    def __init__(self) -> None:
        self._turns: WeakKeyDictionary[Turn, _EncodedTurn] = WeakKeyDictionary()
        self._tools: dict[int, tuple[tuple[Tool, ...], bytes]] = {}

    def after_prompt(self, turns: tuple[Turn, ...]) -> bytes:
        """Return the bytes after the text of the last user message: its end, and the turns after
        it.

        Many templates need alternating roles. So a user's turn after the prompt or another user's
        turn becomes a part of that message. Tool results only hold text, so their pictures come in
        a message after the last result.
        """
        pieces: list[bytes] = []
        pictures: list[bytes] = []
        previous_role = "user"
        for turn in turns:
            encoded = self._turns.get(turn)
            if encoded is None:
                encoded = self._turns[turn] = _EncodedTurn(_message(turn), _pictures(turn))
            if pictures and turn.role != "tool":
                pieces += (_END[previous_role], _PICTURES % b",".join(pictures))
                pictures, previous_role = [], ""
            if turn.role == previous_role == "user":
                pieces.append(b"\\n\\n" + encoded.message[len(_USER) :])
            else:
                pieces += (_END[previous_role], b",", encoded.message)
            previous_role = turn.role
            if encoded.pictures:
                pictures.append(encoded.pictures)
        pieces.append(_END[previous_role])
        if pictures:
            pieces.append(_PICTURES % b",".join(pictures))
        pieces.append(b"]")
        return b"".join(pieces)

    def tool_fields(self, request: Request) -> bytes:
        """Return the fields of a body that list the tools and whether they may be called."""
        tools = request.tools
        entry = self._tools.get(id(tools))
        if entry is None:
            if len(self._tools) >= KEPT_LISTS:
                del self._tools[next(iter(self._tools))]
            definitions = [{"type": "function", "function": tool} for tool in tools]
            entry = self._tools[id(tools)] = (tools, b',"tools":' + _encode(definitions))
        return entry[1] + (b',"tool_choice":"none"' if request.tool_choice == "none" else b"")


_USER: Final = b'{"role":"user","content":"'
_END: Final = {"user": b'"}', "assistant": b"", "tool": b"", "": b""}
"""The end of a message. A user's message stays open, because the next turn may extend it."""
_PICTURES: Final = b',{"role":"user","content":[%b]}'


def _message(turn: Turn) -> bytes:
    """Return a turn as a message of the API. The model's own message is unchanged if it can be sent
    back."""
    if turn.role == "user":
        return _USER + _encode(turn.text)[1:-1]
    if turn.role == "tool":
        return _encode({"role": "tool", "tool_call_id": turn.call, "content": turn.text})
    if turn.native:
        return turn.native
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _as_object(call.arguments)},
            }
            for call in turn.calls
        ]
    return _encode(message)


def _as_object(arguments: str) -> str:
    """Return arguments that every server can parse: vLLM and llama.cpp refuse a history with
    others."""
    return arguments if _is_object(arguments) else _encode({"malformed": arguments}).decode()


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(_decode(arguments), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, UnicodeEncodeError, RecursionError):
        return False


def _pictures(turn: Turn) -> bytes:
    """Return the pictures of a turn as content parts of a user's message."""
    parts = []
    for image in turn.images:
        kind = "jpeg" if image.startswith(b"\xff\xd8") else "png"
        url = f"data:image/{kind};base64,{b64encode(image).decode()}"
        parts.append(_encode({"type": "image_url", "image_url": {"url": url}}))
    return b",".join(parts)


class _RawChoice(msgspec.Struct):
    message: msgspec.Raw
    index: int = 0


class _RawBody(msgspec.Struct):
    choices: list[_RawChoice]


def native_message(body: bytes, reply: Reply) -> bytes:
    """Return the message of a reply byte for byte; empty if an endpoint may not accept it back.

    This is the case if a call lacks an id, or its arguments are not a JSON object.
    """
    for call, stored in zip(reply.calls, reply.tool_calls, strict=True):
        if stored.get("id") != call.id or not isinstance(stored.get("function"), dict):
            return b""
        if stored["function"].get("arguments") != call.arguments or not _is_object(call.arguments):
            return b""
    try:
        choices = _decode(body, type=_RawBody).choices
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b""
    return bytes(next((choice for choice in choices if choice.index == 0), choices[0]).message)
