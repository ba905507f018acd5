"""What a server is started with: variables and placeholders filled in, secrets known."""

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
from keju.config.arms import INSTANCE, PYTHON, WORKDIR, Server, expand, find_references
from keju.config.serving import HIDDEN, find_keys
from keju.errors import ConfigError
from keju.redaction import Redactor
from keju.solvers.mcp.placeholders import (
    VARIABLES,
    filled,
    filled_arguments,
    filled_command,
    filled_path,
    filled_url,
    refuse_nul,
)

INHERITED: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR")
"""What a server sees of Keju's own environment; keys of endpoints are not among it."""
SHORTEST_SECRET: Final = 6
"""Characters of a value that is hidden; a shorter one, such as ``1``, occurs in any text."""
OF_HEADER: Final = "key in "
"""How the name of a header's value begins among the values that are hidden."""
LONG: Final = 16
"""Characters of a value that looks like a key."""
# GITHUB_TOKEN, ApiKey, db_password, LICENCE_FILE
_KEY_NAME = re.compile(r"key|token|secret|passw|pwd|auth|credential|licen[cs]e", re.IGNORECASE)

_INTERPRETER = re.compile(r"python[\d.]*|node|bun|ruby|perl|Rscript|bash|sh")
# -I, -u, -Bsu; not -m MODULE, -c CODE or -W ACTION
_PYTHON_FLAG, _NO_FLAG = re.compile(r"-[BEIOPSbiqsuv]+"), re.compile(r"(?!)")
# servers/calculator.py; not ${SERVER}.py, {workdir}/made.py or https://…
_SCRIPT = re.compile(r"(?!-)(?!\w+://)[^{}$\0]+\.(?:py|js|mjs|cjs|ts|rb|pl|R|sh)")


@dataclass(frozen=True)
class Launch:
    """One start of a server."""

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    folder: str = ""
    """What was made for it, and goes with its process."""
    setup: str | None = None
    """The command that a shell runs before; every value of data in it is quoted."""
    setup_env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What variables and headers gave, by their names."""

    def hide(self, text: str, *, keys_only: bool = False) -> str:
        """`text` without the values of variables and headers.

        With `keys_only`, for what a tool answers, only those go that look like keys: a model may
        need the word ``production``, or the path of a folder.
        """
        return (self._hide_keys if keys_only else self._hide_all)(text)

    @cached_property
    def _hide_all(self) -> Redactor:
        return Redactor(self._long(self.values), mark=HIDDEN, words=False)

    @cached_property
    def _hide_keys(self) -> Redactor:
        keys = {name: value for name, value in self.values.items() if _is_key(name, value)}
        return Redactor(self._long(keys), mark=HIDDEN, words=False)

    @staticmethod
    def _long(values: Mapping[str, str]) -> list[str]:
        """Return the values that are hidden; of ``Bearer x`` in a header also ``x``."""
        texts = [*values.values()]
        texts += [text.split()[-1] for name, text in values.items() if OF_HEADER in name and text]
        return [text for text in texts if len(text) >= SHORTEST_SECRET]


def launch_of(
    server: Server, environ: Mapping[str, str], workdir: str = "", instance: str = ""
) -> Launch:
    """How `server` is started; ConfigError where a variable or its program is missing."""
    values: dict[str, str] = {}

    given = {WORKDIR: workdir, INSTANCE: instance}

    def expanded(text: str) -> str:
        """Return a text with its references to variables filled in."""
        values.update({name: environ.get(name, "") for name in find_references(text)})
        return expand(text, environ)

    def value(text: str) -> str:
        """Return a text with its references and placeholders filled in."""
        return filled(expanded(text), given)

    try:
        refuse_nul(given)
        if HIDDEN in server.args or any(text.endswith(f"={HIDDEN}") for text in server.args):
            raise ConfigError("server_hidden")
        if server.url is not None:
            url, headers = filled_url(expanded(server.url), given), _headers(server, environ)
            values |= {OF_HEADER + name: text for name, text in headers.items()}
            if url != strip_credentials(url):
                values["key in the address"] = url
            return Launch(url=url, headers=headers, values=values)
        own = {
            name: value(f"${{{name}}}" if text is None else text)
            for name, text in server.env.items()
        }
        values |= {
            name: own[name] for name, text in server.env.items() if WORKDIR not in (text or "")
        }
        env = {name: environ[name] for name in INHERITED if environ.get(name)} | own
        program = sys.executable if server.command == PYTHON else value(server.command or "")
        found = shutil.which(program, path=env.get("PATH", os.defpath))
        if found is None:
            raise ConfigError("server_program_missing", program=server.command)
        values |= {f"key in args {n}": key for n, key in enumerate(find_keys(server.args))}
        arguments = filled_arguments(program, [expanded(text) for text in server.args], given)
        setup = server.setup_command
        return Launch(
            argv=(str(Path(found).absolute()), *arguments),
            env=env,
            # The supervisor has another one.
            cwd=str(Path(filled_path(expanded(server.cwd or ""), given)).absolute()),
            folder=workdir,
            setup=filled_command(expanded(setup), given, "setup_command") if setup else None,
            setup_env=env | {VARIABLES[name]: text for name, text in given.items() if text},
            values=values,
        )
    except ConfigError as error:
        raise ConfigError("server_problem", server=server.name, problem=error) from None


def refuse_missing_script(arm: str, server: Server) -> None:
    """ConfigError where a server is a script that is not there, before anything is started.

    That is certain only of ``python server.py`` and the like: what other programs do with their
    arguments is theirs to know, and a `setup_command` may write the file first.
    """
    script = _script_of(server)
    if script is None or server.setup_command is not None or "$" in (server.cwd or ""):
        return
    path = Path(server.cwd or "", script)
    if WORKDIR in str(path) or path.exists():
        return
    values = {"arm": arm, "server": server.name, "file": script}
    if path.is_absolute() or server.cwd is not None:
        raise ConfigError("server_script_missing_at", **values | {"file": path})
    raise ConfigError("server_script_missing", **values, folder=Path.cwd())


def _script_of(server: Server) -> str | None:
    """The script that an interpreter is given; None where it is not plain which argument that is.

    Flags of Python that take no value may stand before it.
    """
    program = "python" if server.command == PYTHON else Path(server.command or "").name
    if _INTERPRETER.fullmatch(program) is None:
        return None
    flags = _PYTHON_FLAG if program.startswith("python") else _NO_FLAG
    first = next((text for text in server.args if flags.fullmatch(text) is None), "")
    return first if _SCRIPT.fullmatch(first) else None


def _is_key(name: str, value: str) -> bool:
    """Whether a value is a key by its name (``API_TOKEN``) or its looks (``ghp_16C7e42F292c``)."""
    letters, digits = re.search("[A-Za-z]", value), re.search("[0-9]", value)
    looks = len(value) >= LONG and letters and digits and not re.search(r"[\s/]", value)
    return bool(looks or _KEY_NAME.search(name))


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
