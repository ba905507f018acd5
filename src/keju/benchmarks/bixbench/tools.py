"""BixBench in the logs of other tools."""

from __future__ import annotations

from keju.benchmarks.base import ToolTask

TOOL_TASKS = (
    ToolTask(tool="inspect", name="bixbench", protocol="environment"),
    ToolTask(
        tool="verifiers",
        name="bixbench",
        settings=(
            "answer_mode",
            "question_source",
            "add_tf_legend",
            "seed",
            "shuffle_options",
            "with_refusal",
            "use_think",
            "all_questions",
            "compat_shuffle",
            "data_version",
        ),
    ),
)
