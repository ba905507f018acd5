"""Tool calls in plain text, for models whose endpoint knows none.

The prompt stays the same bytes in every arm. The list of tools follows it, as the user's first
turn, in arms that have tools; on the wire it is the end of the same message, since many templates
want user and model to alternate. A call stands in tags, and results come as the user's next turn:

    <tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>
    <tool_result id="call_1">3</tool_result>
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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

# `<tool_call>{"name": "add", …}</tool_call>`, or without its end where the reply ends
_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_RESULT = "<tool_result"


class Textual:
    """Tool calls that are read out of the model's text."""

    closing = CLOSING

    def __init__(self) -> None:
        self._list: tuple[tuple[Tool, ...], Turn] | None = None

    def asked(
        self, request: Request, tools: tuple[Tool, ...], turns: tuple[Turn, ...], choice: ToolChoice
    ) -> Request:
        """The request of a turn: the list of tools comes first."""
        if self._list is None or self._list[0] is not tools:
            self._list = (tools, _listed(tools))
        return replace(request, turns=(self._list[1], *turns))

    def said(self, reply: Reply) -> Turn:
        """The model's own turn, up to where it begins to make up results."""
        text = reply.text.partition(_RESULT)[0].rstrip()
        return Turn(
            role="assistant",
            text=text,
            reasoning=reply.reasoning,
            calls=calls_in(text),
            seconds=round(reply.seconds, 3),
            usage=reply.usage,
        )

    def sent(self, turn: Turn) -> Turn:
        """That turn as it is sent back: its calls stand in its text."""
        return replace(turn, calls=())

    def told(self, answers: Sequence[Turn]) -> Sequence[Turn]:
        """The results as the user's turn; pictures come with it."""
        blocks = [f'{_RESULT} id="{turn.call}">{turn.text}</tool_result>' for turn in answers]
        images = tuple(image for turn in answers for image in turn.images)
        return (Turn(role="user", text="\n".join(blocks), images=images),)


def calls_in(text: str) -> tuple[ToolCall, ...]:
    """The calls that a text holds; one that cannot be read has no name."""
    calls = []
    for number, match in enumerate(_CALL.finditer(text)):
        name, arguments = "", match[1]
        try:
            call = msgspec.json.decode(match[1])
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            call = None
        if isinstance(call, dict) and isinstance(call.get("name"), str):
            name = call["name"]
            given: Any = call.get("arguments", call.get("parameters", {}))
            arguments = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        calls.append(ToolCall(f"call_{number + 1}", name, arguments))
    return tuple(calls)


def _listed(tools: tuple[Tool, ...]) -> Turn:
    lines = [
        f"- {tool.name}: {' '.join(tool.description.split())}\n"
        f"  arguments: {msgspec.json.encode(tool.parameters).decode()}"
        for tool in tools
    ]
    return Turn(role="user", text=LIST.format(tools="\n".join(lines)))
