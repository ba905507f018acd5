"""BBH in the logs of other tools."""

from __future__ import annotations

from keju.benchmarks.base import ToolTask
from keju.benchmarks.bbh.facts import CHOICE_SUBSETS

TOOL_TASKS = (
    ToolTask(tool="evalscope", name="bbh(?:_(.+))?", protocol="evalscope", shots=3),
    ToolTask(tool="lm-eval", name="bbh_cot_fewshot_(.+)", protocol="paper"),
    ToolTask(tool="lm-eval", name="bbh_fewshot_(.+)", protocol="answer-only"),
    ToolTask(
        tool="lm-eval",
        name="bbh_(?:cot_)?zeroshot_(.+)",
        protocol="evalscope",
        reader="robust",
        args={"few_shot_num": 0},
    ),
    ToolTask(
        tool="inspect",
        name="bbh",
        protocol="evalscope",
        reader="robust",
        args={"few_shot_num": 0},
    ),
    ToolTask(
        tool="opencompass",
        name="bbh[-_](.+)",
        protocol="evalscope",
        args={"few_shot_num": 0},
        rules={"": "free form"} | dict.fromkeys(CHOICE_SUBSETS, "choice"),
    ),
    ToolTask(tool="verifiers", name="bbh", shots=3),
)
