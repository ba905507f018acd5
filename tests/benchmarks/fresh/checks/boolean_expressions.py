"""Python's own reading of an expression."""

from __future__ import annotations

ENGLISH = {"真": "True", "假": "False", "非": "not", "且": "and", "或": "or"}
CHINESE = {"True": "真", "False": "假"}
TOKENS = {"True", "False", "not", "and", "or", "(", ")"}


def answer(text: str) -> str:
    """The value of an expression, in the language of the question."""
    english = text.endswith("is")
    words = text.removesuffix(" is").removesuffix(" 的值是").split()
    tokens = words if english else [ENGLISH.get(word, word) for word in words]
    assert set(tokens) <= TOKENS
    value = str(eval(" ".join(tokens), {"__builtins__": {}}))
    return value if english else CHINESE[value]
