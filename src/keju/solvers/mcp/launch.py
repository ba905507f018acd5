"""What a server is started with: variables and placeholders filled in, secrets known."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from keju.config.address import shown_url
from keju.config.servers import INSTANCE, WORKDIR, Server, expand
from keju.errors import ConfigError

INHERITED: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR")
"""What a server sees of Keju's own environment; keys of endpoints are not among it."""
SHORTEST_SECRET: Final = 6
"""Characters of a value that is hidden; a shorter one, such as ``1``, occurs in any text."""
HIDDEN: Final = "***"


@dataclass(frozen=True)
class Launch:
    """One start of a server."""

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    folder: str = ""
    """What was made for it, and goes with its process."""
    setup: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def hide(self, text: str) -> str:
        """`text` without the values that must not be shown."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text


def launch_of(
    server: Server, environ: Mapping[str, str], workdir: str = "", instance: str = ""
) -> Launch:
    """How `server` is started; ConfigError where a variable or its program is missing."""
    filled: list[str] = []

    def value(text: str) -> str:
        """A text with its references filled in, remembered where it had any."""
        result = expand(text, environ)
        if result != text:
            filled.extend(_variables(text, environ))
        return result.replace(WORKDIR, workdir).replace(INSTANCE, instance)

    try:
        if server.url is not None:
            url, headers = value(server.url), _headers(server, environ)
            shown = shown_url(url)
            secrets = [*headers.values(), *filled, *([url] if url != shown else [])]
            return Launch(url=url, headers=headers, secrets=_hidden(secrets))
        own = {
            name: value(f"${{{name}}}" if text is None else text)
            for name, text in server.env.items()
        }
        env = {name: environ[name] for name in INHERITED if environ.get(name)} | own
        program = value(server.command or "")
        found = shutil.which(program, path=env.get("PATH", os.defpath))
        if found is None:
            raise ConfigError("server_program_missing", program=server.command)
        return Launch(
            argv=(found, *(value(text) for text in server.args)),
            env=env,
            cwd=value(server.cwd) if server.cwd else None,
            folder=workdir,
            setup=value(server.setup_command) if server.setup_command else None,
            secrets=_hidden([*own.values(), *filled]),
        )
    except ConfigError as error:
        raise ConfigError("server_problem", server=server.name, problem=error) from None


def _variables(text: str, environ: Mapping[str, str]) -> list[str]:
    """The values of the variables that `text` refers to."""
    return [each for name, each in environ.items() if "${" + name in text and each]


def _hidden(values: list[str]) -> tuple[str, ...]:
    """The values that are hidden, long ones first: one may be a part of another."""
    return tuple(
        sorted({v for v in values if len(v) >= SHORTEST_SECRET}, key=lambda v: (-len(v), v))
    )


def _headers(server: Server, environ: Mapping[str, str]) -> dict[str, str]:
    headers = {name: expand(text, environ) for name, text in server.headers.items()}
    if server.headers_var is None:
        return headers
    text = expand(f"${{{server.headers_var}}}", environ).strip()
    try:
        if text.startswith("{"):
            return headers | {str(k): str(v) for k, v in json.loads(text).items()}
        pairs = [line.split(":", 1) for line in text.splitlines() if line.strip()]
        return headers | {name.strip(): own.strip() for name, own in pairs}
    except ValueError:  # the text is not repeated: it holds secrets
        raise ConfigError("server_headers_form", variable=server.headers_var) from None
