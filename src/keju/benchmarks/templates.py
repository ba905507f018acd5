"""Prompt templates: only known placeholders are replaced, every other brace is literal text."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from keju.errors import ConfigError, did_you_mean

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_IN_CONTEXT = re.compile(r"(\\[A-Za-z]+)?\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A placeholder and the LaTeX command before it, which makes an unknown name an argument."""


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders named in `values`, in one pass: values are never looked into."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


def check_template(
    template: str, *, known: Collection[str], required: Collection[str] = (), setting: str
) -> None:
    """Refuse a template that names an unknown placeholder or lacks a required one.

    Braces that do not enclose a plain name, such as those of JSON, are text, and so are those of a
    LaTeX command, as in ``\\boxed{X}``. `setting` is the name of the setting to blame.
    """
    found = _IN_CONTEXT.findall(template)
    for command, name in found:
        if name not in known and not command:
            hint = did_you_mean(name, known)
            raise ConfigError(f"{setting}: unknown placeholder '{{{name}}}'{hint}")
    names = {name for _, name in found}
    missing = [f"{{{name}}}" for name in required if name not in names]
    if missing:
        raise ConfigError(f"{setting}: the placeholder {missing[0]} is missing")
