"""Settings of the sandbox, in which code of a model runs."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from keju.config.strict import Count, Invalid, Seconds, StrictSettings, Whole

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
    """Of each process."""
    max_file_bytes: Bytes = GIB
    """Of each file."""
    max_work_bytes: Bytes = 4 * GIB
    """Of the work folder; it is looked at every second or so, and above it the episode ends."""
    scratch_bytes: Bytes = GIB // 2
    """Of /tmp and of /dev/shm; they are memory."""
    cpu_seconds: Whole = 24 * 3600
    """Of each process, over its whole life."""
    cell_timeout: Seconds = 300.0
    start_timeout: Seconds = 60.0
    """For a kernel to be ready."""
    max_kernel_restarts: int = Field(default=1, ge=0, le=1000)
    """How often a kernel that died is started again in one episode."""
    max_cell_chars: Count = 20_000
    """Output of one cell; the beginning and the end are kept."""

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
