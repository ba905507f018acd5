"""Tool calls in plain text, for models whose endpoint does not support them.

The prompt has the same bytes in every arm. In arms with tools, the list of tools follows it as the
user's first turn. In the request it is the end of the same message, because many templates need
alternating roles. A call is written in tags, and results come as the user's next turn:

    <tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>
    <tool_result id="call_1">3</tool_result>

Many models write a call as they were trained to, in a code fence or as the whole reply. It counts
if its JSON has the form of a call. Any other JSON in a fence is a part of the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from keju.types import Reply, Request, Tool, ToolCall, ToolChoice, Turn

LIST = """You may use these tools before you answer:

{tools}

To call a tool, write

<tool_call>{{"name": "NAME", "arguments": {{…}}}}</tool_call>

and end your reply there. You may write several calls. You are then given the results and go on. \
When you need no tool, answer the question as it asks you to."""
CLOSING = "You cannot call tools any more. Answer the question now, as it asks you to."

# Possible beginnings of a call's JSON: after `<tool_call>`, also in a fence within the tags; after
# a line that opens a fence, "```json"; at the beginning of the reply
_OPENING = re.compile(
    r"(?P<tag><tool_call>)\s*(?:```\w*\s*)?|^[ \t]*```\w*\s*(?=[{\[])|\A\s*(?=[{\[])", re.MULTILINE
)
_TAG_END = re.compile(r"</tool_call>|\Z")
_FENCE_END = re.compile(r"```|\Z")
_ARGUMENTS = ("arguments", "parameters")
_MEMBERS = {"name", "id", "type", *_ARGUMENTS}
# A string may contain raw line breaks, as in code that models write
_JSON = json.JSONDecoder(strict=False)
_RESULT = "<tool_result"


class TextualToolCalls:
    """Tool calls that are parsed from the model's text."""

    closing = CLOSING

    def __init__(self) -> None:
        self._list: tuple[tuple[Tool, ...], Turn] | None = None

    def encode_request(
        self, request: Request, tools: tuple[Tool, ...], turns: tuple[Turn, ...], choice: ToolChoice
    ) -> Request:
        """Return the request of a turn; the list of tools comes first."""
        if self._list is None or self._list[0] is not tools:
            self._list = (tools, _list_tools(tools))
        return replace(request, turns=(self._list[1], *turns))

    def decode_reply(self, reply: Reply) -> Turn:
        """Return the model's own turn, up to the point where it begins to invent results."""
        text = reply.text.partition(_RESULT)[0].rstrip()
        return Turn(
            role="assistant",
            text=text,
            reasoning=reply.reasoning,
            calls=parse_calls(text),
            seconds=round(reply.seconds, 3),
            usage=reply.usage,
        )

    def encode_turn(self, turn: Turn) -> Turn:
        """Return that turn as it is sent back: its calls are in its text."""
        return replace(turn, calls=())

    def encode_results(self, answers: Sequence[Turn]) -> Sequence[Turn]:
        """Return the results as the user's turn, including their pictures."""
        blocks = [f'{_RESULT} id="{turn.call}">{turn.text}</tool_result>' for turn in answers]
        images = tuple(image for turn in answers for image in turn.images)
        return (Turn(role="user", text="\n".join(blocks), images=images),)


def parse_calls(text: str) -> tuple[ToolCall, ...]:
    """Return the calls in a text; a call that cannot be parsed has no name."""
    calls = enumerate(_find_calls(text), 1)
    return tuple(ToolCall(f"call_{number}", name, arguments) for number, (name, arguments) in calls)


def _find_calls(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and arguments of each call in order; a malformed call has its text and no name."""
    position = 0
    while opening := _OPENING.search(text, position):
        begin = position = opening.end()
        value: Any = None
        with suppress(ValueError, RecursionError):
            decoded, position = _JSON.raw_decode(text, begin)
            msgspec.json.encode(decoded)  # half a character, "\ud800", cannot be stored
            value = decoded
        end = (_TAG_END if opening["tag"] else _FENCE_END).search(text, position)
        assert end is not None  # the end of the text matches
        body, position = text[begin : end.start()].strip(), end.end()
        if opening["tag"] or _is_call(value, body):
            yield from _read_calls(value) or [("", body)]


def _is_call(value: Any, body: str) -> bool:
    """Whether valid or malformed JSON outside of tags is a call."""
    if value is None:
        return '"name"' in body and any(f'"{key}"' in body for key in _ARGUMENTS)
    return bool(_read_calls(value)) and all(
        call.keys() <= _MEMBERS and not call.keys().isdisjoint(_ARGUMENTS)
        for call in (value if isinstance(value, list) else [value])
    )


def _read_calls(value: Any) -> list[tuple[str, str]]:
    """Return the call, or the calls of a list, in a JSON value; empty for any other value."""
    calls = []
    for entry in value if isinstance(value, list) else [value]:
        if not isinstance(entry, dict) or not isinstance(name := entry.get("name"), str):
            return []
        arguments: Any = next((entry[key] for key in _ARGUMENTS if key in entry), {})
        text = (
            arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        )
        calls.append((name, text))
    return calls


def _list_tools(tools: tuple[Tool, ...]) -> Turn:
    lines = [
        f"- {tool.name}: {' '.join(tool.description.split())}\n"
        f"  arguments: {msgspec.json.encode(tool.parameters).decode()}"
        for tool in tools
    ]
    return Turn(role="user", text=LIST.format(tools="\n".join(lines)))
