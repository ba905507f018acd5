"""Settings of a cluster that a run is worked on with."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from keju.config.strict import Count, Seconds, StrictSettings


class Ray(StrictSettings):
    """A cluster of Ray, and what each actor takes of it."""

    address: str | None = Field(default=None, pattern=r"^(auto|local|[^\s:/]+:\d{1,5})$")
    """``local`` starts a cluster on this machine, ``auto`` joins the one that is there, HOST:PORT
    the one at this address. Without it: ``auto`` where RAY_ADDRESS is set, else ``local``."""
    actors: Count | None = None
    """How many; by default one a node for endpoints, and as many as have room for local models."""
    cpus: Annotated[float, Field(ge=0)] | None = None
    """CPUs of an actor, and the threads of a local model; by default none for endpoints, else those
    of the smallest node, or one beside a GPU."""
    gpus: Annotated[float, Field(ge=0)] | None = None
    """GPUs of an actor; by default one for a local model where the cluster has any."""
    resources: dict[str, Annotated[float, Field(gt=0)]] = Field(default={})
    """Resources of the cluster's own that an actor takes."""
    patience: Seconds = 60.0
    """Seconds without a sign of life after which an actor is given up, and for which actors wait
    for a place where none works."""
