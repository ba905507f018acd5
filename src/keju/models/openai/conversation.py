"""What is said after the prompt, on OpenAI's wire: turns, tools, and the model's own messages.

Each turn is encoded once, for as long as its episode lasts, and joined to those before it: the
bytes of a conversation only grow, so that servers find its beginning in their caches.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from keju.types import Reply, Request, Tool, Turn

KEPT_LISTS = 256
"""Lists of tools whose JSON is kept; servers of one question have lists of their own."""
_encode = msgspec.json.encode
_decode = msgspec.json.decode


class _Said(NamedTuple):
    """A turn on the wire: its message, and the pictures that came with it as content parts."""

    message: bytes
    pictures: bytes


class Conversation:
    """Encodes the turns of all episodes of one model."""

    def __init__(self) -> None:
        self._turns: WeakKeyDictionary[Turn, _Said] = WeakKeyDictionary()
        self._tools: dict[int, tuple[tuple[Tool, ...], bytes]] = {}

    def after_prompt(self, turns: tuple[Turn, ...]) -> bytes:
        """What follows the text of the last user message: its end, and the turns after it.

        Many templates want user and model to alternate, so a user's turn that follows another one,
        or the prompt, is a part of its message. Results hold text alone, so their pictures come in
        a message after the last of them.
        """
        pieces: list[bytes] = []
        pictures: list[bytes] = []
        before = "user"
        for turn in turns:
            encoded = self._turns.get(turn)
            if encoded is None:
                encoded = self._turns[turn] = _Said(_message(turn), _pictures(turn))
            if pictures and turn.role != "tool":
                pieces += (_END[before], _PICTURES % b",".join(pictures))
                pictures, before = [], ""
            if turn.role == before == "user":
                pieces.append(b"\\n\\n" + encoded.message[len(_USER) :])
            else:
                pieces += (_END[before], b",", encoded.message)
            before = turn.role
            if encoded.pictures:
                pictures.append(encoded.pictures)
        pieces.append(_END[before])
        if pictures:
            pieces.append(_PICTURES % b",".join(pictures))
        pieces.append(b"]")
        return b"".join(pieces)

    def tool_fields(self, request: Request) -> bytes:
        """The fields of a body that name the tools, and whether they may be called."""
        tools = request.tools
        entry = self._tools.get(id(tools))
        if entry is None:
            if len(self._tools) >= KEPT_LISTS:
                del self._tools[next(iter(self._tools))]
            listed = [{"type": "function", "function": tool} for tool in tools]
            entry = self._tools[id(tools)] = (tools, b',"tools":' + _encode(listed))
        return entry[1] + (b',"tool_choice":"none"' if request.tool_choice == "none" else b"")


_USER: Final = b'{"role":"user","content":"'
_END: Final = {"user": b'"}', "assistant": b"", "tool": b"", "": b""}
"""What closes a message: a user's stays open, since the next turn may go on with it."""
_PICTURES: Final = b',{"role":"user","content":[%b]}'


def _message(turn: Turn) -> bytes:
    """A turn as a message of the API; the model's own as it came, where it can be sent back."""
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
    """Arguments that every server can read back: vLLM and llama.cpp refuse a history of others."""
    return arguments if _is_object(arguments) else _encode({"malformed": arguments}).decode()


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(_decode(arguments), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, UnicodeEncodeError, RecursionError):
        return False


def _pictures(turn: Turn) -> bytes:
    """The pictures of a turn as content parts of a user's message."""
    parts = []
    for image in turn.images:
        kind = "jpeg" if image.startswith(b"\xff\xd8") else "png"
        url = f"data:image/{kind};base64,{b64encode(image).decode()}"
        parts.append(_encode({"type": "image_url", "image_url": {"url": url}}))
    return b",".join(parts)


class _Choice(msgspec.Struct):
    message: msgspec.Raw
    index: int = 0


class _Body(msgspec.Struct):
    choices: list[_Choice]


def native_message(body: bytes, reply: Reply) -> bytes:
    """The message of a reply byte for byte; empty where an endpoint may not take it back.

    That is where a call lacks an id of its own, or its arguments are no JSON object.
    """
    for call, stored in zip(reply.calls, reply.tool_calls, strict=True):
        if stored.get("id") != call.id or not isinstance(stored.get("function"), dict):
            return b""
        if stored["function"].get("arguments") != call.arguments or not _is_object(call.arguments):
            return b""
    try:
        choices = _decode(body, type=_Body).choices
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b""
    return bytes(next((choice for choice in choices if choice.index == 0), choices[0]).message)
