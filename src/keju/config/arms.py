"""Settings of models that act: arms and their tools, limits, MCP servers and the sandbox.

Values of a server may contain ``${VAR}`` and ``${VAR:-default}``. They are stored unexpanded and
filled in when the server is started. So only the server gets the value of a variable.
"""

from __future__ import annotations

import re
import warnings
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

from keju.config.address import strip_credentials
from keju.config.serving import hide_keys
from keju.config.strict import Count, InvalidValue, Seconds, StrictSettings, Whole
from keju.errors import ConfigError

Scope = Literal["run", "worker", "sample"]

# ``${TOKEN}`` or ``${PORT:-8000}``
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
WORKDIR, INSTANCE = "{workdir}", "{instance_id}"
"""Placeholders: a folder made for the server, and the id of the question that it serves."""
PYTHON = "{python}"
"""As a command: the Python that Keju runs in, with its installed packages."""


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Return `text` with its references filled in.

    As in a shell, the default also replaces a variable that is empty. Raise ConfigError with the
    name of a variable that is not set.
    """

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        variable_value = environ.get(name)
        if variable_value or (variable_value is not None and default is None):
            return variable_value
        if default is None:
            raise ConfigError("server_variable_unset", variable=name)
        return str(default)

    return _REFERENCE.sub(value, text)


def find_references(text: str) -> list[str]:
    """Return the names of the variables that a text refers to."""
    return [name for name, _ in _REFERENCE.findall(text)]


def expand_all(value: Any, environ: Mapping[str, str]) -> Any:
    """Return a value with `expand` applied to every text in it."""
    if isinstance(value, str):
        return expand(value, environ)
    if isinstance(value, list):
        return [expand_all(element, environ) for element in value]
    if isinstance(value, dict):
        return {key: expand_all(member, environ) for key, member in value.items()}
    return value


class ToolChoice(StrictSettings):
    """Which of a server's tools are offered; all by default."""

    allow: list[str] | None = None
    """Offer only these tools."""
    deny: list[str] = Field(default=[])
    """Offer all tools except these."""


class ServerSettings(StrictSettings):
    """One MCP server of an arm: a command that speaks over stdio, or a URL (streamable HTTP)."""

    name: str = Field(default="mcp", pattern=r"^[^\x00-\x1f\x7f]{1,64}$")
    """The prefix of its tools' names: ``NAME__tool``."""
    command: str | None = Field(default=None, min_length=1)
    """A program that speaks over stdio; ``{python}`` is the Python that Keju runs in."""
    args: list[str] = Field(default=[])
    """Arguments of the command; ``{workdir}`` and ``{instance_id}`` are filled in."""
    env: dict[str, str | None] = Field(default={}, repr=False)
    """Further environment variables. The value null passes on Keju's own variable of that name. The
    server also gets HOME, LOGNAME, PATH, SHELL, TERM and USER. Values are never stored, except
    references such as ``${VAR}``."""
    cwd: str | None = None
    """Folder to start in; Keju's own working folder by default."""
    url: str | None = None
    """The address, for a server over HTTP."""
    headers: dict[str, str] = Field(default={}, exclude=True, repr=False)
    """Request headers for the URL; never stored."""
    headers_var: str | None = None
    """A variable that holds the headers: a JSON object, or lines ``Name: value``."""

    scope: Scope = "run"
    """One server for the arm (``run``), a pool (``worker``), or one for each question and arm
    (``sample``)."""
    workers: Count = 4
    """Number of servers in the pool of the scope ``worker``."""
    tools: ToolChoice = ToolChoice()
    """Which of its tools are offered."""
    max_in_flight: Count | None = None
    """The most calls at the same time, for each server process."""
    retry: Literal["never", "read_only", "always"] = "read_only"
    """Which calls are made again after a crash interrupted them: only calls of tools that declare
    that they are read-only or repeatable (``read_only``), all (``always``), or none (``never``)."""
    max_restarts: int = Field(default=3, ge=0, le=1000)
    """How often the server is restarted after a crash before the arm is given up."""
    startup_timeout_ms: Whole = 60_000
    """Milliseconds for the server to be ready."""
    tool_timeout_ms: Whole = 900_000
    """Milliseconds for one call."""
    setup_command: str | None = Field(default=None, min_length=1)
    """A shell command that runs before the server is started. Only `setup_timeout_ms` limits its
    time."""
    setup_timeout_ms: Whole = 900_000
    """Milliseconds for `setup_command`."""

    @model_validator(mode="before")
    @classmethod
    def _default_scope(cls, data: Any) -> Any:
        """Use one server for each question by default if an argument contains its id."""
        if isinstance(data, dict) and "scope" not in data:
            texts = [*(data.get("args") or ()), data.get("setup_command") or ""]
            if any(isinstance(text, str) and INSTANCE in text for text in texts):
                return data | {"scope": "sample"}
        return data

    @field_validator("args", "env", "headers", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        """Turn numbers and booleans, such as the port 8080, into texts: programs expect texts."""
        if isinstance(value, list):
            return [_to_text(argument) for argument in value]
        return (
            {k: _to_text(text) for k, text in value.items()} if isinstance(value, dict) else value
        )

    @field_serializer("env")
    def _names_and_references(self, value: dict[str, str | None]) -> dict[str, str | None]:
        return {name: text if _is_reference(text) else None for name, text in value.items()}

    @field_serializer("args")
    def _without_keys(self, value: list[str]) -> list[str]:
        """Hide a key after a flag such as ``--api-key``: keys are not stored."""
        return hide_keys(value)

    @field_serializer("url")
    def _without_secrets(self, value: str | None) -> str | None:
        return None if value is None else strip_credentials(value)

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://", "${")):
            raise InvalidValue("server_url_form")
        return value

    @model_validator(mode="after")
    def _check_transport(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise InvalidValue("server_one_way")
        local = ("args", "env", "cwd", "setup_command", "setup_timeout_ms")
        remote = ("headers", "headers_var")
        for name in local if self.url is not None else remote:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise InvalidValue("server_without_effect", setting=name, way=self.transport)
        if self.scope != "worker" and "workers" in self.model_fields_set:
            raise InvalidValue("server_workers", scope=self.scope)
        texts = [*self.args, self.setup_command or ""]
        if self.scope != "sample" and any(INSTANCE in text for text in texts):
            raise InvalidValue("server_instance_shared", scope=self.scope)
        return self

    @property
    def transport(self) -> str:
        """The transport: stdio or HTTP."""
        return "stdio" if self.command is not None else "http"


def _to_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _is_reference(text: str | None) -> bool:
    """Whether a value is only a variable, without a default that could be a secret."""
    match = _REFERENCE.fullmatch(text or "")
    return match is not None and match[2] is None


GIB: Final = 2**30
LEAST_MEMORY: Final = 64 * 2**20
"""The fewest bytes with which Python can start."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)


def parse_size(value: Any) -> Any:
    """Return a size in bytes, given a number or ``4GiB``, ``512m``, ``8g`` or ``1.5 GB``."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise InvalidValue("config_not_size", value=value[:40])
    number, unit, binary = match.groups()
    # ``GB`` is a power of ten. ``GiB`` and the ``g`` of container engines are powers of two.
    step = 1000 if value.strip().lower().endswith("b") and unit and not binary else 1024
    return int(float(number) * step ** " kmgt".index(unit.lower() or " "))


Bytes = Annotated[Whole, BeforeValidator(parse_size)]


class SandboxSettings(StrictSettings):
    """Where a model's code runs, and how many resources it may use."""

    backend: Literal["auto", "bwrap", "docker", "podman", "none"] = "auto"
    """``auto`` is bubblewrap; ``none`` requires `unsafe`."""
    unsafe: bool = False
    """Run the code without any sandbox (``--unsafe-no-sandbox``)."""
    network: Literal["none", "host"] = "none"
    """Whether the code may use the network."""
    image: str | None = Field(default=None, min_length=1)
    """The image of containers; it must already be on this machine."""
    venv: str | None = Field(default=None, min_length=1)
    """A Python environment with ipykernel. The default is Keju's own; in containers, the image's.
    """
    read_only: list[str] = Field(default=[])
    """Further files and folders of the host that the code may read, at the same paths."""
    memory: Bytes | None = None
    """Memory of a whole episode, such as ``4GiB``. The default is 8 GiB or 60 % of the available
    memory (the smaller one), divided by the number of episodes at the same time."""
    processes: Count = 256
    """The most processes and threads of an episode."""
    open_files: Count = 1024
    """The most open files of each process."""
    max_file_bytes: Bytes = GIB
    """The most bytes of each file."""
    max_work_bytes: Bytes = 4 * GIB
    """The most bytes of the work folder. It is checked about once a second; a larger one ends the
    episode."""
    scratch_bytes: Bytes = GIB // 2
    """The most bytes of /tmp and of /dev/shm, which count as memory."""
    cpu_seconds: Whole = 24 * 3600
    """The most seconds of CPU of each process, over its whole life."""
    cell_timeout: Seconds = 300.0
    """The most seconds for one cell."""
    start_timeout: Seconds = 60.0
    """The most seconds until a kernel is ready."""
    max_kernel_restarts: int = Field(default=1, ge=0, le=1000)
    """How often a crashed kernel is restarted in one episode."""
    max_cell_chars: Count = 20_000
    """The most characters of a cell's output; the beginning and the end are kept."""

    @field_validator("memory")
    @classmethod
    def _check_memory(cls, value: int | None) -> int | None:
        if value is not None and value < LEAST_MEMORY:
            raise InvalidValue("config_memory_small", least=LEAST_MEMORY >> 20)
        return value

    @model_validator(mode="after")
    def _check_backend(self) -> Self:
        """Refuse contradictions: turning the sandbox off must be explicit and excludes a named
        backend."""
        if self.backend == "none" and not self.unsafe:
            raise InvalidValue("config_sandbox_none")
        if self.unsafe and self.backend not in ("auto", "none"):
            raise InvalidValue("config_sandbox_both", backend=self.backend)
        if self.image is not None and self.backend not in ("docker", "podman"):
            raise InvalidValue("config_sandbox_image")
        return self

    @property
    def active_backend(self) -> Literal["bwrap", "docker", "podman", "none"]:
        """The backend that is used, after ``auto`` and `unsafe` are resolved."""
        if self.unsafe:
            return "none"
        return "bwrap" if self.backend == "auto" else self.backend


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
OwnTool = Literal["python"]
"""Keju's own tools."""

CHANGEABLE = (
    "env", "url", "headers_var", "cwd", "workers", "max_in_flight", "max_restarts",
    "startup_timeout_ms", "setup_timeout_ms",
)  # fmt: skip
"""Settings of a server that may change between the sessions of a run."""


class Arm(StrictSettings):
    """One way to run the exams: with these tools, or without tools."""

    name: Name
    """Its name."""
    servers: list[ServerSettings] = Field(default=[])
    """MCP servers whose tools the model may call."""
    tools: list[OwnTool] = Field(default=[])
    """Keju's own tools: `python`."""
    stub_tools: bool = False
    """A placebo: the tools are listed, but every call answers that they are not available."""

    @property
    def acts(self) -> bool:
        """Whether the model has tools in this arm."""
        return bool(self.servers or self.tools)

    def identity(self) -> dict[str, Any]:
        """Return the definition of the arm, without the settings that a resumed run may change."""
        definition = self.model_dump(mode="json", exclude_defaults=True)
        for server in definition.get("servers", ()):
            for name in CHANGEABLE:
                server.pop(name, None)
        return definition

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [server.name for server in self.servers] + list(self.tools)
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidValue("config_named_twice", names=repeated)
        if self.stub_tools and not names:
            raise InvalidValue("config_stub_without_tools", name=self.name)
        return self


class AgentLimits(StrictSettings):
    """Limits of one question in every arm, and how a model uses its tools."""

    max_iterations: Count = 15
    """The most turns with tool calls. After them the model must answer without tools."""
    timeout_seconds: Seconds | None = None
    """The most seconds for a question: replies and calls, without waits for an endpoint that is
    down or full. This limit holds in every arm, with and without tools."""
    max_tokens: Whole | None = None
    """The most tokens for a question, input and output of all its turns, in every arm."""
    max_cost: float | None = Field(default=None, gt=0)
    """The most money for a question, in every arm; requires a price."""
    max_result_chars: Whole = 100_000
    """The most characters of one call's result. A longer result is cut, and the model is informed.
    """
    protocol: Literal["native", "text"] = "native"
    """``native`` uses the endpoint's tool calls; ``text`` writes them in text for other models."""
    hide_old_env_states: bool = False
    """Leave out all notes of the environment except the last one (a notebook's older states)."""
    arm_order: Literal["random", "given"] = "random"
    """The order of the arms of each question: drawn at random, or as they are listed."""

    def identity(self) -> dict[str, Any]:
        """Return the settings that change a model's behaviour; the order of arms does not."""
        return self.model_dump(mode="json", exclude={"arm_order"})


def _check_arm_names(arms: list[Arm]) -> list[Arm]:
    names = [arm.name for arm in arms]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidValue("config_named_twice", names=repeated)
    return arms


def _refuse_text(value: Any) -> Any:
    if isinstance(value, str):
        raise InvalidValue("arms_as_text")
    return value


Arms = Annotated[list[Arm], BeforeValidator(_refuse_text), AfterValidator(_check_arm_names)]


_OLD_NAMES = {"Agent": "AgentLimits", "Sandbox": "SandboxSettings", "Server": "ServerSettings"}


def __getattr__(name: str) -> Any:
    """Return a class by its name in Keju 1.0, with a DeprecationWarning."""
    if name not in _OLD_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    text = f"{__name__}.{name} is now {__name__}.{_OLD_NAMES[name]}"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return globals()[_OLD_NAMES[name]]
