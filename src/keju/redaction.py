"""Secrets: which settings hold them, and how they are removed from texts of other programs.

A server may echo a secret as it was given, or in the form in which it was sent: percent-encoded in
an address, escaped in JSON, or in Base64 as in ``Authorization: Basic``. All forms are hidden.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, quote_plus

import msgspec

if TYPE_CHECKING:
    from keju.types import Reply

SHORTEST_SECRET: Final = 4
"""Shorter values are not secrets, and hiding them would garble every message."""
SHORTEST_KEY: Final = 8
"""Shorter keys are placeholders such as ``EMPTY``, which an answer may contain."""
REDACTED: Final = "[redacted]"
REPLY_TEXTS: Final = ("text", "reasoning", "raw", "model", "finish", "refusal", "request_id")
"""The texts of a reply from a model or its endpoint, apart from the tool calls."""

# api_key, X-Api-Key, apiKey, hf_token, access-token, token, password, client_secret, Authorization;
# not max_tokens, bos_token, prompt_cache_key, api_key_var
_SECRET_NAME = re.compile(
    r"(?:.*[-_. ])?(?:(?:api|access|secret|private|subscription|auth|account|client)[-_ ]?key"
    r"|(?:access|api|auth|bearer|client|github|hf|id|refresh|security|session)[-_ ]?token"
    r"|secret|client[-_ ]?secret|passw(?:or)?d|passphrase|pwd|credentials?|authorization|cookie)"
    r"|key|token",
    re.IGNORECASE,
)
# ${HF_TOKEN}: a reference is stored as it is written
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")

_process_secrets: set[str] = set()
"""The secrets of this process, for errors with unexpected texts."""


def is_secret_name(name: object) -> bool:
    """Whether a setting, header or field of this name holds a secret."""
    return _SECRET_NAME.fullmatch(str(name)) is not None


def mask_secrets(value: Any) -> Any:
    """Return nested settings with every secret replaced by REDACTED.

    A secret is a text with a secret name as its key: ``{"api_key": "sk-1"}``. References to
    variables stay.
    """
    if isinstance(value, Mapping):
        return {
            name: REDACTED if _is_secret(name, nested) else mask_secrets(nested)
            for name, nested in value.items()
        }
    return [mask_secrets(nested) for nested in value] if isinstance(value, list | tuple) else value


def find_secrets(value: Any) -> Iterator[str]:
    """Yield the secrets in nested settings; see `mask_secrets`."""
    if isinstance(value, Mapping):
        for name, nested in value.items():
            if _is_secret(name, nested):
                yield nested
            else:
                yield from find_secrets(nested)
    elif isinstance(value, list | tuple):
        for nested in value:
            yield from find_secrets(nested)


def has_masked(value: Any) -> bool:
    """Whether nested settings hold a secret that was replaced when they were stored."""
    if isinstance(value, Mapping):
        return any(map(has_masked, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_masked, value))
    return bool(value == REDACTED)


def _is_secret(name: object, value: object) -> bool:
    is_text = isinstance(value, str) and value != "" and not _REFERENCE.fullmatch(value)
    return is_text and is_secret_name(name)


def list_forms(secret: str) -> set[str]:
    """Return the forms in which a secret may be sent, and so be echoed."""
    percent = {quote(secret), quote(secret, safe=""), quote_plus(secret)}
    # %2f is equivalent to %2F
    lower = {re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), text) for text in percent}
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    escaped |= {text.replace("/", "\\/") for text in escaped}
    escaped |= {html.escape(secret), html.escape(secret, quote=False), repr(secret)[1:-1]}
    return {secret} | percent | lower | escaped | _encode_base64(secret)


def _encode_base64(secret: str) -> set[str]:
    """Return the forms of a secret in Base64, alone and after any other text.

    Three bytes are four characters, so there are three ways to begin. Characters at the ends that
    depend on the surrounding text are left out.
    """
    base64_forms = set()
    for data in {secret.encode("utf-8", "surrogatepass"), secret.encode("latin-1", "ignore")}:
        for offset in range(3):
            text = base64.b64encode(b"\0" * offset + data).decode()
            start = (0, 2, 3)[offset]
            end = (offset + len(data)) * 8 // 6
            inner = text[start:end]
            base64_forms |= {inner, inner.replace("+", "-").replace("/", "_")}
        base64_forms.add(base64.b64encode(data).decode().rstrip("="))
    return {text for text in base64_forms if len(text) >= SHORTEST_KEY}


class Redactor:
    """Removes secrets from texts of other programs.

    Messages lose every secret. Replies lose only `keys`, the secrets that are credentials, since
    the value of a plain header, such as a date, may be an answer.
    """

    def __init__(
        self,
        secrets: Iterable[str],
        keys: Iterable[str] = (),
        *,
        mark: str = REDACTED,
        words: bool = True,
    ) -> None:
        """Create a redactor. With `words`, each word of a secret is secret too: ``x`` of ``Bearer
        x``."""
        self._secrets, self._mark, self._words = {*secrets}, mark, words
        self._key_texts: set[str] = set()
        self.add(keys)

    def add(self, keys: Iterable[str]) -> None:
        """Hide further keys, in messages and in replies."""
        self._key_texts |= {*keys}
        _process_secrets.update(key for key in self._key_texts if len(key) >= SHORTEST_KEY)
        texts = self._secrets | self._key_texts
        self._hidden = _list_parts(texts, SHORTEST_SECRET, words=self._words)
        self._hidden_keys = _list_parts(self._key_texts, SHORTEST_KEY, words=self._words)

    def __call__(self, text: str) -> str:
        """Return `text` without the secrets."""
        return self._remove_forms(self._hidden, text)

    def reply(self, reply: Reply) -> Reply:
        """Return `reply` without the keys. Nearly always that is `reply` itself."""
        if not self._hidden_keys:
            return reply
        texts: dict[str, Any] = {name: getattr(reply, name) for name in REPLY_TEXTS}
        if reply.tool_calls:
            texts["tool_calls"] = msgspec.json.encode(reply.tool_calls).decode()
        if reply.native:
            texts["native"] = reply.native.decode("utf-8", "replace")
        hidden: dict[str, Any] = {
            name: self._remove_forms(self._hidden_keys, text) for name, text in texts.items()
        }
        if hidden == texts:
            return reply
        if reply.tool_calls:
            hidden["tool_calls"] = tuple(msgspec.json.decode(hidden["tool_calls"]))
        if reply.native:
            hidden["native"] = hidden["native"].encode()
        return msgspec.structs.replace(reply, **hidden)

    def _remove_forms(self, forms: list[str], text: str) -> str:
        present = [form for form in forms if form in text]  # faster than one pattern for all
        return re.sub("|".join(map(re.escape, present)), self._mark, text) if present else text

    def __repr__(self) -> str:
        return "Redactor()"


def _list_parts(secrets: Iterable[str], shortest: int, *, words: bool) -> list[str]:
    """Return the secrets, their words if requested, and all their forms, the longest first."""
    texts = {part for secret in secrets for part in (secret, *(secret.split() if words else ()))}
    parts = {form for text in texts if len(text) >= shortest for form in list_forms(text)}
    return sorted((part for part in parts if len(part) >= shortest), key=len, reverse=True)


def hide_secrets(text: str, secrets: Iterable[str] = (), mark: str = "***") -> str:
    """Return a text without `secrets` and without the keys that this process has used."""
    return Redactor([*secrets, *_process_secrets], mark=mark)(text)
