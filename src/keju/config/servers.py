"""MCP servers: how one is started or reached, what it may offer, and who shares it.

Values may hold ``${VAR}`` and ``${VAR:-default}``. They are stored as they are written and filled
in when the server is started, so that what a variable holds reaches the server and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_serializer, field_validator, model_validator

from keju.config.address import shown_url
from keju.config.strict import Count, Invalid, StrictSettings, Whole
from keju.errors import ConfigError

Scope = Literal["run", "worker", "sample"]

# ``${TOKEN}`` or ``${PORT:-8000}``
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
WORKDIR, INSTANCE = "{workdir}", "{instance_id}"
"""Placeholders: a folder made for the server, and the id of the question it serves."""


def expand(text: str, environ: Mapping[str, str]) -> str:
    """`text` with its references filled in; ConfigError names a variable that is not set.

    As in a shell, a default also stands in for a variable that is empty.
    """

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        found = environ.get(name)
        if found or (found is not None and default is None):
            return found
        if default is None:
            raise ConfigError("server_variable_unset", variable=name)
        return str(default)

    return _REFERENCE.sub(value, text)


def references(text: str) -> list[str]:
    """The variables that a text refers to."""
    return [name for name, _ in _REFERENCE.findall(text)]


def expand_all(value: Any, environ: Mapping[str, str]) -> Any:
    """The same for every text in a value of a file."""
    if isinstance(value, str):
        return expand(value, environ)
    if isinstance(value, list):
        return [expand_all(each, environ) for each in value]
    if isinstance(value, dict):
        return {key: expand_all(each, environ) for key, each in value.items()}
    return value


class ToolChoice(StrictSettings):
    """Which of a server's tools are offered; all by default."""

    allow: list[str] | None = None
    """Only these."""
    deny: list[str] = Field(default=[])
    """All but these."""


class Server(StrictSettings):
    """One MCP server of an arm: a command that speaks over stdio, or a URL (streamable HTTP)."""

    name: str = Field(default="mcp", pattern=r"^[^\x00-\x1f\x7f]{1,64}$")
    """What its tools' names begin with: ``NAME__tool``."""
    command: str | None = Field(default=None, min_length=1)
    args: list[str] = Field(default=[])
    """Arguments of the command; ``{workdir}`` and ``{instance_id}`` are filled in."""
    env: dict[str, str | None] = Field(default={}, repr=False)
    """Further environment variables; null takes the value of Keju's own variable of that name.
    Beside them the server gets HOME, LOGNAME, PATH, SHELL, TERM and USER. Values are never stored;
    what is written as ``${VAR}`` is stored as it is written."""
    cwd: str | None = None
    """Folder to start in; Keju's own by default."""
    url: str | None = None
    headers: dict[str, str] = Field(default={}, exclude=True, repr=False)
    """Request headers for the URL; never stored."""
    headers_var: str | None = None
    """A variable that holds the headers: a JSON object, or lines ``Name: value``."""

    scope: Scope = "run"
    """One server for the arm, a pool of them, or one for each question and arm."""
    workers: Count = 4
    """Servers in the pool of the scope ``worker``."""
    tools: ToolChoice = ToolChoice()
    max_in_flight: Count | None = None
    """Calls at once, for each server process."""
    retry: Literal["never", "read_only", "always"] = "read_only"
    """Which calls that a crash interrupted are made again: those of tools that say that they only
    read or may be repeated, all, or none."""
    max_restarts: int = Field(default=3, ge=0, le=1000)
    """Starts after a crash, beyond which the arm is given up."""
    startup_timeout_ms: Whole = 60_000
    tool_timeout_ms: Whole = 900_000
    setup_command: str | None = Field(default=None, min_length=1)
    """A shell command that is run before the server is started; outside of every time limit but
    its own."""
    setup_timeout_ms: Whole = 900_000

    @model_validator(mode="before")
    @classmethod
    def _one_for_each_question(cls, data: Any) -> Any:
        """A server that is told which question it serves can serve no other one."""
        if isinstance(data, dict) and "scope" not in data:
            texts = [*(data.get("args") or ()), data.get("setup_command") or ""]
            if any(isinstance(text, str) and INSTANCE in text for text in texts):
                return data | {"scope": "sample"}
        return data

    @field_validator("args", "env", "headers", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        """A port may be written as 8080 and a switch as true: programs get them as text."""
        if isinstance(value, list):
            return [_text(each) for each in value]
        return {k: _text(each) for k, each in value.items()} if isinstance(value, dict) else value

    @field_serializer("env")
    def _names_and_references(self, value: dict[str, str | None]) -> dict[str, str | None]:
        return {name: text if _is_reference(text) else None for name, text in value.items()}

    @field_serializer("url")
    def _without_secrets(self, value: str | None) -> str | None:
        return None if value is None else shown_url(value)

    @field_validator("url")
    @classmethod
    def _http(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://", "${")):
            raise Invalid("server_url_form")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise Invalid("server_one_way")
        local = ("args", "env", "cwd", "setup_command", "setup_timeout_ms")
        remote = ("headers", "headers_var")
        for name in local if self.url is not None else remote:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise Invalid("server_without_effect", setting=name, way=self.way)
        if self.scope != "worker" and "workers" in self.model_fields_set:
            raise Invalid("server_workers", scope=self.scope)
        texts = [*self.args, self.setup_command or ""]
        if self.scope != "sample" and any(INSTANCE in text for text in texts):
            raise Invalid("server_instance_shared", scope=self.scope)
        return self

    @property
    def way(self) -> str:
        """How it is spoken to."""
        return "stdio" if self.command is not None else "http"


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _is_reference(text: str | None) -> bool:
    """Whether a value is a variable's alone, without a default that could be a secret."""
    match = _REFERENCE.fullmatch(text or "")
    return match is not None and match[2] is None
