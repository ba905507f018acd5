"""Settings of models that act: arms and their tools, the loop's limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from keju.config.servers import Server
from keju.config.strict import Count, Invalid, Seconds, StrictSettings, Whole

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
    servers: list[Server] = Field(default=[])
    tools: list[OwnTool] = Field(default=[])
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

    def identity(self) -> dict[str, Any]:
        """The limits and the form under which a model acts; the order of arms is none of them."""
        return self.model_dump(mode="json", exclude={"arm_order"})


def _names_differ(arms: list[Arm]) -> list[Arm]:
    names = [arm.name for arm in arms]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise Invalid("config_named_twice", names=", ".join(repeated))
    return arms


Arms = Annotated[list[Arm], AfterValidator(_names_differ)]
