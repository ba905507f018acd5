"""C-Eval in the logs of other tools."""

from __future__ import annotations

from keju.benchmarks.base import ToolTask

TOOL_TASKS = (
    ToolTask(
        tool="evalscope", name="ceval(?:_(.+))?", protocol="evalscope", shots=5, settings=("split",)
    ),
    ToolTask(
        tool="lm-eval", name="ceval-valid_(.+)", protocol="lm-eval", args={"split": "val"}, shots=5
    ),
    ToolTask(tool="inspect", name="ceval", protocol="evalscope", args={"few_shot_num": 0}),
    ToolTask(
        tool="opencompass",
        name="ceval-test-(.+)",
        protocol="opencompass",
        args={"split": "test"},
        rules={"": "capital"},
    ),
    ToolTask(
        tool="opencompass", name="ceval[-_](.+)", protocol="opencompass", rules={"": "capital"}
    ),
    ToolTask(tool="verifiers", name="ceval", shots=5, settings=("split", "mode", "form", "decode")),
)
