"""Estimates of token counts, for all code without a real count."""

from __future__ import annotations

import json
from typing import Final

from keju.types import Tool

CHARACTERS_PER_TOKEN: Final = 4
"""A rough guide for English, and for JSON in English."""


def text_tokens(text: str) -> int:
    """Return a rough count, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def schema_tokens(tools: tuple[Tool, ...]) -> int:
    """Estimate how many tokens the definitions of all tools take in every request."""
    return sum(text_tokens(_definition_text(tool)) for tool in tools)


def _definition_text(tool: Tool) -> str:
    """Return the JSON definition of a tool in a request."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    definition = {"type": "function", "function": function}
    return json.dumps(definition, ensure_ascii=False, separators=(",", ":"))
