"""The settings of a run: one typed object behind flags, files, environment and Python."""

from __future__ import annotations

from keju.config.arms import Agent, Arm, Sandbox, Server
from keju.config.cluster import Ray
from keju.config.endpoints import Endpoint
from keju.config.strict import variable_name
from keju.config.task import (
    Arranged,
    Budget,
    DatasetArgs,
    Filters,
    GenerationConfig,
    JudgeConfig,
    Price,
    TaskConfig,
)

__all__ = [
    "Agent",
    "Arm",
    "Arranged",
    "Budget",
    "DatasetArgs",
    "Endpoint",
    "Filters",
    "GenerationConfig",
    "JudgeConfig",
    "Price",
    "Ray",
    "Sandbox",
    "Server",
    "TaskConfig",
    "variable_name",
]
