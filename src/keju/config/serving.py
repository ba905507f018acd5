"""The command of a server that Keju starts: its required parts, and how it is stored."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from keju.config.strict import InvalidValue

PORT = "{port}"
"""A placeholder for the port at which the server listens."""
HIDDEN = "***"

# ``--api-key`` and ``HF_TOKEN``, not ``--tokenizer`` or ``--max-num-batched-tokens``
_KEY = re.compile(r"(^|[-_])(api-?key|key|token|secret|passw(or)?d|credentials?)$", re.IGNORECASE)
# ``${HF_TOKEN}``: variables are stored by name
_VARIABLE = re.compile(r"\$\{[^}]*\}")


def split_command(command: str) -> list[str]:
    """Return the words of a command, split as in a shell; raise Invalid if it is not a command."""
    try:
        words = shlex.split(command)
    except ValueError:  # a quote that is not closed
        raise InvalidValue("serve_quotes") from None
    if not any(PORT in word for word in words):
        raise InvalidValue("serve_without_port")
    return words


def redact_command(command: str) -> str:
    """Return a command with its keys hidden. References to variables stay.

    ``serve --api-key sk-1 --hf-token ${HF}`` gives ``serve --api-key '***' --hf-token '${HF}'``.
    """
    words, redacted_words = shlex.split(command), [*_without_keys(shlex.split(command))]
    return command if words == redacted_words else shlex.join(redacted_words)


def hide_keys(words: list[str]) -> list[str]:
    """Return the words of a command with its keys hidden."""
    return [*_without_keys(words)]


def find_keys(words: list[str]) -> list[str]:
    """Return the keys among the words of a command."""
    pairs = zip(words, _without_keys(words), strict=True)
    return [
        word.removeprefix(redacted_word.removesuffix(HIDDEN))
        for word, redacted_word in pairs
        if word != redacted_word
    ]


def _without_keys(words: list[str]) -> Iterator[str]:
    after_key = False
    for word in words:
        name, equals, value = word.partition("=")
        if after_key and not word.startswith("-"):
            yield word if _VARIABLE.fullmatch(word) else HIDDEN
        elif equals and _KEY.search(name) and not _VARIABLE.fullmatch(value):
            yield f"{name}={HIDDEN}"
        else:
            yield word
        after_key = word.startswith("-") and not equals and bool(_KEY.search(name))
