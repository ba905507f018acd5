"""Settings of the cluster that a run uses."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from keju.config.strict import Count, Seconds, StrictSettings


class RaySettings(StrictSettings):
    """A Ray cluster, and the resources of each actor."""

    address: str | None = Field(default=None, pattern=r"^(auto|local|[^\s:/]+:\d{1,5})$")
    """``local`` starts a cluster on this machine, ``auto`` joins the existing one, and HOST:PORT
    joins the one at this address. The default is ``auto`` if RAY_ADDRESS is set, else ``local``."""
    actors: Count | None = None
    """The number of actors. The default is one per node for endpoints, and as many as fit for local
    models."""
    cpus: Annotated[float, Field(ge=0)] | None = None
    """CPUs of an actor, and the threads of a local model. The default is none for endpoints; for
    local models, the CPUs of the smallest node, or one next to a GPU."""
    gpus: Annotated[float, Field(ge=0)] | None = None
    """GPUs of an actor. The default is one for a local model if the cluster has GPUs."""
    resources: dict[str, Annotated[float, Field(gt=0)]] = Field(default={})
    """Custom resources of the cluster that an actor takes."""
    patience: Seconds = 60.0
    """Seconds without a sign of life before an actor is given up. Actors also wait this long for a
    place if none is running."""
