"""Settings of models that act: arms and their tools, the loop's limits, the sandbox."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_serializer, model_validator

from keju.config.strict import Count, Invalid, Seconds, StrictSettings, Whole

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]

REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
"""A value that only names a variable: ``${GITHUB_TOKEN}``."""


class ToolFilter(StrictSettings):
    """Which tools of a server are offered, by their names at the server."""

    allow: list[str] | None = None
    """Only these."""
    deny: list[str] = Field(default=[])
    """None of these."""


class Server(StrictSettings):
    """An MCP server: a command that speaks over stdio, or the address of one."""

    name: Name
    command: str | None = None
    args: list[str] = Field(default=[])
    """``{workdir}`` and ``{instance_id}`` stand for a fresh folder and the question's id."""
    env: dict[str, str | None] = Field(default={}, repr=False)
    """Variables of its process; of their values a run keeps nothing but ``${NAME}``."""
    url: str | None = None
    headers_var: str | None = None
    """Name of the environment variable that holds its headers."""
    scope: Literal["run", "worker", "sample"] = "run"
    tools: ToolFilter = ToolFilter()
    startup_timeout_ms: Whole = 60_000
    tool_timeout_ms: Whole = 900_000
    setup_command: str | None = None
    setup_timeout_ms: Whole = 900_000
    max_in_flight: Count = 8
    retry: Literal["never", "read_only", "always"] = "read_only"
    max_restarts: int = Field(default=3, ge=0)

    @field_serializer("env")
    def _without_values(self, env: dict[str, str | None]) -> dict[str, str | None]:
        """What may be stored: names, and values that only name a variable."""
        return {k: v if v and REFERENCE.fullmatch(v) else None for k, v in env.items()}

    @model_validator(mode="after")
    def _one_transport(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise Invalid("config_server_transport", name=self.name)
        return self


class Arm(StrictSettings):
    """One way to sit the exams: with these tools, or with none."""

    name: Name
    servers: list[Server] = Field(default=[])
    tools: list[Literal["python"]] = Field(default=[])
    """Tools of Keju's own."""
    stub_tools: bool = False
    """A placebo: the tools are listed, and every call answers that they are not available."""

    @property
    def acts(self) -> bool:
        """Whether the model has tools in this arm."""
        return bool(self.servers or self.tools)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [server.name for server in self.servers] + list(self.tools)
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise Invalid("config_named_twice", names=", ".join(repeated))
        if self.stub_tools and not names:
            raise Invalid("config_stub_without_tools", name=self.name)
        return self


class Agent(StrictSettings):
    """How far a model may go in one episode, and how it is told of its tools."""

    max_iterations: Count = 15
    """Turns in which it may call tools; then it is asked for its answer, without them."""
    timeout_seconds: Seconds | None = None
    """Time of an episode: replies and calls, without waits for an endpoint that is down or full."""
    max_tokens: Whole | None = None
    """Tokens of an episode, input and output of all its turns."""
    max_cost: float | None = Field(default=None, gt=0)
    """Money for an episode; needs a price."""
    max_result_chars: Whole = 100_000
    """Characters of one call's result; what is longer is cut, and the model is told so."""
    protocol: Literal["native", "text"] = "native"
    """Tool calls of the endpoint, or written in text for models that know none."""
    hide_old_env_states: bool = False
    """Leave out all notes of the environment but the last one (a notebook's older states)."""
    arm_order: Literal["random", "given"] = "random"
    """In which order the arms of one question come: drawn for each, or as they are listed."""


class Sandbox(StrictSettings):
    """Where code of a model runs."""

    backend: Literal["auto", "bwrap", "docker", "podman", "none"] = "auto"
    network: Literal["none", "host"] = "none"
    memory: str | None = None
    """Of the whole tree of an episode, as ``4GiB``."""
    cell_timeout: Seconds = 600.0
    image: str | None = None
    """Of containers."""
    venv: str | None = None
    """A Python environment for kernels."""
    max_work_bytes: Whole = 1 << 30


def _names_differ(arms: list[Arm]) -> list[Arm]:
    names = [arm.name for arm in arms]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise Invalid("config_named_twice", names=", ".join(repeated))
    return arms


Arms = Annotated[list[Arm], AfterValidator(_names_differ)]
