"""The settings of a run: one typed object behind flags, files, environment and Python."""

from __future__ import annotations

from keju.config.arms import AgentLimits, Arm, SandboxSettings, ServerSettings
from keju.config.cluster import RaySettings
from keju.config.endpoints import Endpoint
from keju.config.strict import variable_name
from keju.config.task import (
    Budget,
    DatasetArgs,
    GenerationConfig,
    JudgeArrangement,
    JudgeConfig,
    Price,
    ReplyFilters,
    TaskConfig,
)

__all__ = [
    "AgentLimits",
    "Arm",
    "Budget",
    "DatasetArgs",
    "Endpoint",
    "GenerationConfig",
    "JudgeArrangement",
    "JudgeConfig",
    "Price",
    "RaySettings",
    "ReplyFilters",
    "SandboxSettings",
    "ServerSettings",
    "TaskConfig",
    "variable_name",
]
