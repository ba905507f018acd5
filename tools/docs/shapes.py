"""What a value looks like, out of its JSON Schema, in words of both languages."""

from __future__ import annotations

import json
from typing import Any

from keju.messages import Language, labels
from tools.docs.markdown import code

WORDS: dict[str, dict[Language, str]] = {
    "string": {"en": "text", "zh": "文本"},
    "integer": {"en": "whole number", "zh": "整数"},
    "number": {"en": "number", "zh": "数"},
    "boolean": {"en": "true or false", "zh": "布尔值"},
    "object": {"en": "mapping", "zh": "映射"},
    "array": {"en": "list", "zh": "列表"},
    "null": {"en": "null", "zh": "null"},
    "any": {"en": "anything", "zh": "任意值"},
    "list": {"en": "list of: {}", "zh": "列表，每项为：{}"},
    "mapping": {"en": "mapping to: {}", "zh": "映射，值为：{}"},
    "or": {"en": " or ", "zh": "或"},
    "two": {"en": "two numbers", "zh": "两个数"},
    "more": {"en": " and more", "zh": "等"},
}
BOUNDS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
LARGEST_BOUND = 100_000
"""Beyond it a bound only says what a computer can hold."""


def shape(schema: dict[str, Any], language: Language) -> str:
    """The kind of value, with its bounds; a struct of the page is a link to its section."""
    word = {name: texts[language] for name, texts in WORDS.items()}
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        parts = [shape(part, language) for part in schema["anyOf"]]
        return word["or"].join(dict.fromkeys(part for part in parts if part != "null"))
    if "enum" in schema:
        return word["or"].join(code(str(value)) for value in schema["enum"] if value is not None)
    if "const" in schema:
        return code(str(schema["const"]))
    kind = schema.get("type")
    if kind == "array" and "prefixItems" in schema:
        return word["two"]
    if kind == "array" and schema.get("items"):
        return word["list"].format(shape(schema["items"], language))
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        inner = shape(schema["additionalProperties"], language)
        return word["object"] if inner == word["any"] else word["mapping"].format(inner)
    bounds = [
        f"{sign} {schema[name]:g}"
        for name, sign in BOUNDS.items()
        if name in schema and abs(schema[name]) <= LARGEST_BOUND
    ]
    return labels(language)["clause_separator"].join([word[kind or "any"], *bounds])


def default(value: Any) -> str:
    """A default as a file has it; nothing where there is none."""
    if value is None or value in ({}, [], ""):
        return ""
    return code(json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value)
