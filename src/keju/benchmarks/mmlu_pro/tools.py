"""MMLU-Pro in the logs of other tools."""

from __future__ import annotations

from keju.benchmarks.base import ToolTask

TOOL_TASKS = (
    ToolTask(tool="evalscope", name="mmlu_pro(?:_(.+))?", protocol="evalscope", shots=5),
    ToolTask(tool="lm-eval", name="mmlu_pro_(.+)", protocol="official", reader="l1", shots=5),
    ToolTask(tool="inspect", name="mmlu_pro", protocol="evalscope", args={"few_shot_num": 0}),
    ToolTask(
        tool="opencompass",
        name="mmlu_pro[-_](.+)",
        protocol="evalscope",
        args={"few_shot_num": 0},
        rules={"": "colon"},
    ),
    ToolTask(tool="verifiers", name="mmlu_pro", shots=5),
)
