"""The command of a server, with variables and placeholders filled in, and the secrets in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from keju.config.address import strip_credentials
from keju.config.arms import INSTANCE, PYTHON, WORKDIR, ServerSettings, expand, find_references
from keju.config.serving import HIDDEN, find_keys
from keju.errors import ConfigError
from keju.redaction import Redactor
from keju.solvers.mcp.placeholders import (
    VARIABLES,
    fill_arguments,
    fill_command,
    fill_path,
    fill_placeholders,
    fill_url,
    refuse_nul,
)

INHERITED: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR")
"""Variables of Keju's environment that a server inherits. Keys of endpoints are not among them."""
SHORTEST_SECRET: Final = 6
"""Least length of a value that is hidden. A shorter one, such as ``1``, occurs in any text."""
OF_HEADER: Final = "key in "
"""Prefix of a header's name among the hidden values."""
LONG: Final = 16
"""Least length of a value that looks like a key."""
# GITHUB_TOKEN, ApiKey, db_password, LICENCE_FILE
_KEY_NAME = re.compile(r"key|token|secret|passw|pwd|auth|credential|licen[cs]e", re.IGNORECASE)

_INTERPRETER = re.compile(r"python[\d.]*|node|bun|ruby|perl|Rscript|bash|sh")
# -I, -u, -Bsu; not -m MODULE, -c CODE or -W ACTION
_PYTHON_FLAG, _NO_FLAG = re.compile(r"-[BEIOPSbiqsuv]+"), re.compile(r"(?!)")
# servers/calculator.py; not ${SERVER}.py, {workdir}/made.py or https://…
_SCRIPT = re.compile(r"(?!-)(?!\w+://)[^{}$\0]+\.(?:py|js|mjs|cjs|ts|rb|pl|R|sh)")


@dataclass(frozen=True)
class ServerLaunch:
    """One start of a server."""

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    folder: str = ""
    """The folder that was created for it and is removed with its process."""
    setup: str | None = None
    """The shell command that runs before it; every value of data in it is quoted."""
    setup_env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values of variables and headers, by their names."""

    def hide(self, text: str, *, keys_only: bool = False) -> str:
        """Return `text` without the values of variables and headers.

        With `keys_only`, used for the results of tools, only values that look like keys are
        removed. A model may need the word ``production``, or the path of a folder.
        """
        return (self._hide_keys if keys_only else self._hide_all)(text)

    @cached_property
    def _hide_all(self) -> Redactor:
        return Redactor(self._hidden_values(self.values), mark=HIDDEN, words=False)

    @cached_property
    def _hide_keys(self) -> Redactor:
        keys = {name: value for name, value in self.values.items() if _is_key(name, value)}
        return Redactor(self._hidden_values(keys), mark=HIDDEN, words=False)

    @staticmethod
    def _hidden_values(values: Mapping[str, str]) -> list[str]:
        """Return the values to hide; for ``Bearer x`` in a header also ``x``."""
        texts = [*values.values()]
        texts += [text.split()[-1] for name, text in values.items() if OF_HEADER in name and text]
        return [text for text in texts if len(text) >= SHORTEST_SECRET]


def make_launch(
    server: ServerSettings, environ: Mapping[str, str], workdir: str = "", instance: str = ""
) -> ServerLaunch:
    """Return how to start `server`; raise ConfigError if a variable or its program is missing."""
    texts = _LaunchTexts(environ, {WORKDIR: workdir, INSTANCE: instance})
    try:
        refuse_nul(texts.placeholders)
        if HIDDEN in server.args or any(text.endswith(f"={HIDDEN}") for text in server.args):
            raise ConfigError("server_hidden")
        launch = _launch_program if server.url is None else _launch_by_url
        return launch(server, texts)
    except ConfigError as error:
        raise ConfigError("server_problem", server=server.name, problem=error) from None


class _LaunchTexts:
    """Fills the references and placeholders of a server's settings, and notes what to hide."""

    def __init__(self, environ: Mapping[str, str], placeholders: dict[str, str]) -> None:
        self.environ = environ
        self.placeholders = placeholders
        self.values: dict[str, str] = {}
        """The values that must not appear in any output, by name."""

    def expand(self, text: str) -> str:
        """Return a text with its references to variables filled in."""
        names = find_references(text)
        self.values.update({name: self.environ.get(name, "") for name in names})
        return expand(text, self.environ)

    def fill(self, text: str) -> str:
        """Return a text with its references and placeholders filled in."""
        return fill_placeholders(self.expand(text), self.placeholders)


def _launch_by_url(server: ServerSettings, texts: _LaunchTexts) -> ServerLaunch:
    """Return how to reach a server that somebody else starts."""
    url = fill_url(texts.expand(server.url or ""), texts.placeholders)
    headers = _read_headers(server, texts.environ)
    texts.values |= {OF_HEADER + name: text for name, text in headers.items()}
    if url != strip_credentials(url):
        texts.values["key in the address"] = url
    return ServerLaunch(url=url, headers=headers, values=texts.values)


def _launch_program(server: ServerSettings, texts: _LaunchTexts) -> ServerLaunch:
    """Return how to start a server as a program."""
    placeholders, values = texts.placeholders, texts.values
    env = {name: texts.environ[name] for name in INHERITED if texts.environ.get(name)}
    for name, setting in server.env.items():
        env[name] = texts.fill(f"${{{name}}}" if setting is None else setting)
        if WORKDIR not in (setting or ""):
            values[name] = env[name]
    program = sys.executable if server.command == PYTHON else texts.fill(server.command or "")
    program_path = shutil.which(program, path=env.get("PATH", os.defpath))
    if program_path is None:
        raise ConfigError("server_program_missing", program=server.command)
    values |= {f"key in args {n}": key for n, key in enumerate(find_keys(server.args))}
    arguments = fill_arguments(program, [*map(texts.expand, server.args)], placeholders)
    cwd = fill_path(texts.expand(server.cwd or ""), placeholders)
    setup = server.setup_command
    folders = {VARIABLES[name]: text for name, text in placeholders.items() if text}
    return ServerLaunch(
        argv=(str(Path(program_path).absolute()), *arguments),
        env=env,
        cwd=str(Path(cwd).absolute()),  # the supervisor has another current folder
        folder=placeholders[WORKDIR],
        setup=fill_command(texts.expand(setup), placeholders, "setup_command") if setup else None,
        setup_env=env | folders,
        values=values,
    )


def refuse_missing_script(arm: str, server: ServerSettings) -> None:
    """Raise ConfigError if a server is a script that does not exist, before anything is started.

    This is only certain for commands such as ``python server.py``. Other programs may use their
    arguments in any way, and a `setup_command` may write the file first.
    """
    script = _find_script(server)
    if script is None or server.setup_command is not None or "$" in (server.cwd or ""):
        return
    path = Path(server.cwd or "", script)
    if WORKDIR in str(path) or path.exists():
        return
    values = {"arm": arm, "server": server.name, "file": script}
    if path.is_absolute() or server.cwd is not None:
        raise ConfigError("server_script_missing_at", **values | {"file": path})
    raise ConfigError("server_script_missing", **values, folder=Path.cwd())


def _find_script(server: ServerSettings) -> str | None:
    """Return the script argument of an interpreter; None if it is not certain which argument it is.

    Flags of Python that take no value may come before it.
    """
    program = "python" if server.command == PYTHON else Path(server.command or "").name
    if _INTERPRETER.fullmatch(program) is None:
        return None
    flags = _PYTHON_FLAG if program.startswith("python") else _NO_FLAG
    first_argument = next((text for text in server.args if flags.fullmatch(text) is None), "")
    return first_argument if _SCRIPT.fullmatch(first_argument) else None


def _is_key(name: str, value: str) -> bool:
    """Whether a value is a key by its name (``API_TOKEN``) or its looks (``ghp_16C7e42F292c``)."""
    letters, digits = re.search("[A-Za-z]", value), re.search("[0-9]", value)
    looks_like_key = len(value) >= LONG and letters and digits and not re.search(r"[\s/]", value)
    return bool(looks_like_key or _KEY_NAME.search(name))


def _read_headers(server: ServerSettings, environ: Mapping[str, str]) -> dict[str, str]:
    headers = {name: expand(text, environ) for name, text in server.headers.items()}
    if server.headers_var is None:
        return headers
    text = expand(f"${{{server.headers_var}}}", environ).strip()
    try:
        if text.startswith("{"):
            return headers | {str(k): str(v) for k, v in json.loads(text).items()}
        pairs = [line.split(":", 1) for line in text.splitlines() if line.strip()]
        return headers | {name.strip(): header_value.strip() for name, header_value in pairs}
    except ValueError:  # the text is not repeated in the message, because it holds secrets
        raise ConfigError("server_headers_form", variable=server.headers_var) from None
