"""About how many tokens a text takes, where nobody counts them: one rule for all who must guess."""

from __future__ import annotations

import json
from typing import Final

from keju.types import Tool

CHARACTERS_PER_TOKEN: Final = 4
"""A rough guide for English, and for JSON in English."""


def text_tokens(text: str) -> int:
    """A rough count, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def schema_tokens(tools: tuple[Tool, ...]) -> int:
    """About how many tokens the tools' definitions take in every request: the sum of all."""
    return sum(text_tokens(_definition_text(tool)) for tool in tools)


def _definition_text(tool: Tool) -> str:
    """What endpoints are told of a tool."""
    about = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    definition = {"type": "function", "function": about}
    return json.dumps(definition, ensure_ascii=False, separators=(",", ":"))
