"""Keju examines language models.

The public names, each imported when it is first used, so that ``import keju`` costs nothing:

    from keju import TaskConfig, run_task
    run_task(TaskConfig(model="NAME", api_url="http://localhost:8000/v1", datasets=["bbh"]))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark, Exam, Protocol, Reader
    from keju.config import DatasetArgs, GenerationConfig, TaskConfig
    from keju.errors import (
        ConfigError,
        DataError,
        EndpointError,
        Interrupted,
        KejuError,
        MissingExtra,
        RunIncomplete,
        UsageError,
    )
    from keju.models.base import Model
    from keju.task import run_task
    from keju.types import Answer, Message, Prompt, Record, Reply, Request, Sample, Score

    __version__: str

__all__ = [
    "Answer",
    "Benchmark",
    "ConfigError",
    "DataError",
    "DatasetArgs",
    "EndpointError",
    "Exam",
    "GenerationConfig",
    "Interrupted",
    "KejuError",
    "Message",
    "MissingExtra",
    "Model",
    "Prompt",
    "Protocol",
    "Reader",
    "Record",
    "Reply",
    "Request",
    "RunIncomplete",
    "Sample",
    "Score",
    "TaskConfig",
    "UsageError",
    "__version__",
    "run_task",
]

_HOMES = {
    "keju.benchmarks.base": ("Benchmark", "Exam", "Protocol", "Reader"),
    "keju.config": ("DatasetArgs", "GenerationConfig", "TaskConfig"),
    "keju.errors": (
        "ConfigError",
        "DataError",
        "EndpointError",
        "Interrupted",
        "KejuError",
        "MissingExtra",
        "RunIncomplete",
        "UsageError",
    ),
    "keju.models.base": ("Model",),
    "keju.task": ("run_task",),
    "keju.types": (
        "Answer",
        "Message",
        "Prompt",
        "Record",
        "Reply",
        "Request",
        "Sample",
        "Score",
    ),
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "__version__":
        from importlib.metadata import version

        return version("keju")
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'keju' has no attribute '{name}'")


def __dir__() -> list[str]:
    return list(__all__)
