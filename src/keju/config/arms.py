"""Settings of models that act: arms and their tools, the loop's limits, MCP servers, the sandbox.

Values of a server may hold ``${VAR}`` and ``${VAR:-default}``. They are stored as they are written
and filled in when the server is started, so that what a variable holds reaches the server and
nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    field_serializer,
    field_validator,
    model_validator,
)

from keju.config.address import shown_url
from keju.config.serving import without_keys
from keju.config.strict import Count, Invalid, Seconds, StrictSettings, Whole
from keju.errors import ConfigError

Scope = Literal["run", "worker", "sample"]

# ``${TOKEN}`` or ``${PORT:-8000}``
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
WORKDIR, INSTANCE = "{workdir}", "{instance_id}"
"""Placeholders: a folder made for the server, and the id of the question it serves."""
PYTHON = "{python}"
"""A command: the Python that Keju runs in, with the packages that are installed there."""


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
    """A program that speaks over stdio; ``{python}`` is the Python that Keju runs in."""
    args: list[str] = Field(default=[])
    """Arguments of the command; ``{workdir}`` and ``{instance_id}`` are filled in."""
    env: dict[str, str | None] = Field(default={}, repr=False)
    """Further environment variables; null takes the value of Keju's own variable of that name.
    Beside them the server gets HOME, LOGNAME, PATH, SHELL, TERM and USER. Values are never stored;
    what is written as ``${VAR}`` is stored as it is written."""
    cwd: str | None = None
    """Folder to start in; Keju's own by default."""
    url: str | None = None
    """The address, for a server over HTTP."""
    headers: dict[str, str] = Field(default={}, exclude=True, repr=False)
    """Request headers for the URL; never stored."""
    headers_var: str | None = None
    """A variable that holds the headers: a JSON object, or lines ``Name: value``."""

    scope: Scope = "run"
    """One server for the arm, a pool of them, or one for each question and arm."""
    workers: Count = 4
    """Servers in the pool of the scope ``worker``."""
    tools: ToolChoice = ToolChoice()
    """Which of its tools are offered."""
    max_in_flight: Count | None = None
    """Calls at once, for each server process."""
    retry: Literal["never", "read_only", "always"] = "read_only"
    """Which calls that a crash interrupted are made again: those of tools that say that they only
    read or may be repeated, all, or none."""
    max_restarts: int = Field(default=3, ge=0, le=1000)
    """Starts after a crash, beyond which the arm is given up."""
    startup_timeout_ms: Whole = 60_000
    """Milliseconds for the server to be ready."""
    tool_timeout_ms: Whole = 900_000
    """Milliseconds for one call."""
    setup_command: str | None = Field(default=None, min_length=1)
    """A shell command that is run before the server is started; outside of every time limit but
    its own."""
    setup_timeout_ms: Whole = 900_000
    """Milliseconds for `setup_command`."""

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

    @field_serializer("args")
    def _without_keys(self, value: list[str]) -> list[str]:
        """A key after a flag such as ``--api-key`` is not stored."""
        return without_keys(value)

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


GIB: Final = 2**30
LEAST_MEMORY: Final = 64 * 2**20
"""Bytes without which no Python starts."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)


def size(value: Any) -> Any:
    """Bytes, as a number or as ``4GiB``, ``512m``, ``1.5 GB``; container engines' ``8g`` too."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise Invalid("config_not_size", value=value[:40])
    number, unit, binary = match.groups()
    # ``GB`` are powers of ten; ``GiB`` and the bare ``g`` of container engines are powers of two.
    step = 1000 if value.strip().lower().endswith("b") and unit and not binary else 1024
    return int(float(number) * step ** " kmgt".index(unit.lower() or " "))


Bytes = Annotated[Whole, BeforeValidator(size)]


class Sandbox(StrictSettings):
    """Where code of a model runs, and how much it may use."""

    backend: Literal["auto", "bwrap", "docker", "podman", "none"] = "auto"
    """``auto`` is bubblewrap; ``none`` needs `unsafe`."""
    unsafe: bool = False
    """Run the code without any sandbox (``--unsafe-no-sandbox``)."""
    network: Literal["none", "host"] = "none"
    """Whether code may use the network."""
    image: str | None = Field(default=None, min_length=1)
    """The image of containers; it must be there already."""
    venv: str | None = Field(default=None, min_length=1)
    """A Python environment with ipykernel; Keju's own by default, with containers the image's."""
    read_only: list[str] = Field(default=[])
    """Further files and folders of the host that the code may read, at the same path."""
    memory: Bytes | None = None
    """Bytes of a whole episode, as ``4GiB``; by default the smaller of 8 GiB and 60 % of what is
    available, divided by the episodes at once."""
    processes: Count = 256
    """Processes and threads of an episode."""
    open_files: Count = 1024
    """Open files of each process."""
    max_file_bytes: Bytes = GIB
    """Bytes of each file."""
    max_work_bytes: Bytes = 4 * GIB
    """Bytes of the work folder, looked at every second or so; above it the episode ends."""
    scratch_bytes: Bytes = GIB // 2
    """Bytes of /tmp and of /dev/shm; they are memory."""
    cpu_seconds: Whole = 24 * 3600
    """Seconds of CPU of each process, over its whole life."""
    cell_timeout: Seconds = 300.0
    """Seconds for one cell."""
    start_timeout: Seconds = 60.0
    """Seconds for a kernel to be ready."""
    max_kernel_restarts: int = Field(default=1, ge=0, le=1000)
    """How often a kernel that died is started again in one episode."""
    max_cell_chars: Count = 20_000
    """Characters of the output of one cell; the beginning and the end are kept."""

    @field_validator("memory")
    @classmethod
    def _enough(cls, value: int | None) -> int | None:
        if value is not None and value < LEAST_MEMORY:
            raise Invalid("config_memory_small", least=LEAST_MEMORY >> 20)
        return value

    @model_validator(mode="after")
    def _chosen(self) -> Self:
        """No sandbox is a choice of its own, and no sandbox beside a named one is none."""
        if self.backend == "none" and not self.unsafe:
            raise Invalid("config_sandbox_none")
        if self.unsafe and self.backend not in ("auto", "none"):
            raise Invalid("config_sandbox_both", backend=self.backend)
        if self.image is not None and self.backend not in ("docker", "podman"):
            raise Invalid("config_sandbox_image")
        return self

    @property
    def chosen(self) -> Literal["bwrap", "docker", "podman", "none"]:
        """The backend that is meant."""
        if self.unsafe:
            return "none"
        return "bwrap" if self.backend == "auto" else self.backend


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
OwnTool = Literal["python"]
"""Tools of Keju's own."""

KEEPING = (
    "env", "url", "headers_var", "cwd", "workers", "max_in_flight", "max_restarts",
    "startup_timeout_ms", "setup_timeout_ms",
)  # fmt: skip
"""Settings of a server that may change between the sessions of a run."""


class Arm(StrictSettings):
    """One way to sit the exams: with these tools, or with none."""

    name: Name
    """Its name."""
    servers: list[Server] = Field(default=[])
    """MCP servers whose tools the model may call."""
    tools: list[OwnTool] = Field(default=[])
    """Tools of Keju's own: `python`."""
    stub_tools: bool = False
    """A placebo: the tools are listed, and every call answers that they are not available."""

    @property
    def acts(self) -> bool:
        """Whether the model has tools in this arm."""
        return bool(self.servers or self.tools)

    def identity(self) -> dict[str, Any]:
        """What makes the arm what it is: all but how its servers are reached and looked after."""
        definition = self.model_dump(mode="json", exclude_defaults=True)
        for server in definition.get("servers", ()):
            for name in KEEPING:
                server.pop(name, None)
        return definition

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [server.name for server in self.servers] + list(self.tools)
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise Invalid("config_named_twice", names=repeated)
        if self.stub_tools and not names:
            raise Invalid("config_stub_without_tools", name=self.name)
        return self


class Agent(StrictSettings):
    """Limits of one question in every arm, and how a model acts with its tools."""

    max_iterations: Count = 15
    """Turns in which it may call tools; then it is asked for its answer, without them."""
    timeout_seconds: Seconds | None = None
    """Seconds of a question: replies and calls, without waits for an endpoint that is down or full.
    It holds in every arm, with and without tools."""
    max_tokens: Whole | None = None
    """Tokens of a question, input and output of all its turns, in every arm."""
    max_cost: float | None = Field(default=None, gt=0)
    """Money for a question, in every arm; needs a price."""
    max_result_chars: Whole = 100_000
    """Characters of one call's result; what is longer is cut, and the model is told so."""
    protocol: Literal["native", "text"] = "native"
    """Tool calls of the endpoint, or written in text for models that know none."""
    hide_old_env_states: bool = False
    """Leave out all notes of the environment but the last one (a notebook's older states)."""
    arm_order: Literal["random", "given"] = "random"
    """In which order the arms of one question come: drawn for each, or as they are listed."""

    def identity(self) -> dict[str, Any]:
        """The limits and the form under which a model acts; the order of arms is none of them."""
        return self.model_dump(mode="json", exclude={"arm_order"})


def _names_differ(arms: list[Arm]) -> list[Arm]:
    names = [arm.name for arm in arms]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise Invalid("config_named_twice", names=repeated)
    return arms


Arms = Annotated[list[Arm], AfterValidator(_names_differ)]
