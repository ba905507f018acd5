"""The runs that version 1.0 recorded; `tests/support/recorded_runs.py` says how they are stored."""

from __future__ import annotations

import json
from pathlib import Path

from tests.runs01.questions import SUBJECTS
from tests.runs10.changes import CHANGES, reworded
from tests.runs10.model import answer
from tests.support.recorded_runs import RecordedCase, Recordings, dataset_args

HERE = Path(__file__).parent

_JUDGE = json.dumps(
    {"model": "judge", "repeats": 3, "second": "judge-2", "price": {"input": 1, "output": 2}}
)
_TWICE = ("--reader", "evalscope,robust")
_ARITHMETIC = "multistep_arithmetic_two"
_SERVER = {
    "name": "calc",
    "command": "{python}",
    "args": ["-I", "tools/mcp_server.py", "--tools", "calculate,sleep"],
}
_ARMS = json.dumps(
    [
        {"name": "baseline"},
        {"name": "calc", "servers": [_SERVER | {"tools": {"allow": ["calculate"]}}]},
        {"name": "placebo", "servers": [_SERVER], "stub_tools": True},
    ]
)
_LIMITED = json.dumps([{"name": "baseline"}, {"name": "calc", "servers": [_SERVER]}])
_CELLS = tuple(
    f"matrix--{model}--{exam}"
    for model in ("small", "large")
    for exam in ("pro", "quiz", "fresh", "letters")
)


def _fresh(n: int, *subsets: str) -> tuple[str, ...]:
    settings = {
        "subset_list": list(subsets or (_ARITHMETIC,)),
        "seed": 7,
        "n": n,
        "few_shot_num": 0,
    }
    return "--datasets", "fresh_bbh", *dataset_args(fresh_bbh=settings)


def _subjects(*more: str) -> tuple[str, ...]:
    return "--datasets", "ceval", *dataset_args(ceval={"subset_list": list(SUBJECTS)}), *more


CASES = (
    RecordedCase("bbh", ("--datasets", "bbh", "--limit", "2", *_TWICE)),
    RecordedCase(
        "bbh-paper",
        ("--datasets", "bbh", "--protocol", "paper", "--limit", "1", "--language", "zh"),
    ),
    RecordedCase("mmlu_pro", ("--datasets", "mmlu_pro", "--price", "input=1,output=2", *_TWICE)),
    RecordedCase(
        "mmlu_pro-large", ("--datasets", "mmlu_pro", *_TWICE), model="large", baseline="mmlu_pro"
    ),
    RecordedCase(
        "mmlu_pro-official", ("--datasets", "mmlu_pro", "--protocol", "official", "--limit", "1")
    ),
    RecordedCase(
        "mmlu_pro-rotated",
        ("--datasets", "mmlu_pro", "--rotate-options", "3", "--limit", "1", *_TWICE),
    ),
    RecordedCase("ceval", _subjects(*_TWICE)),
    RecordedCase("ceval-labels", _subjects("--protocol", "tutorial")),
    RecordedCase(
        "bixbench", ("--datasets", "bixbench", *dataset_args(bixbench={"with_refusal": True}))
    ),
    RecordedCase(
        "bixbench-judged",
        (
            "--datasets",
            "bixbench",
            *dataset_args(bixbench={"answer_mode": "open"}),
            "--judge",
            _JUDGE,
        ),
        judged=True,
    ),
    RecordedCase(
        "judged-arms",
        (
            *("--datasets", "bixbench", *dataset_args(bixbench={"answer_mode": "open"})),
            *("--judge", _JUDGE, "--repeats", "2", "--total", "6"),
            *("--generation-config", "temperature=0.7"),
            *("--arms", json.dumps([{"name": "plain"}, {"name": "again"}])),
        ),
        judged=True,
    ),
    RecordedCase("demo", ("--datasets", "demo", *dataset_args(demo={"size": 4}))),
    RecordedCase(
        "demo-letters",
        ("--datasets", "demo", "--protocol", "letters", *dataset_args(demo={"size": 4})),
    ),
    RecordedCase("fresh", _fresh(8, _ARITHMETIC, "navigate", "word_sorting") + _TWICE),
    RecordedCase(
        "fresh-large",
        _fresh(8, _ARITHMETIC, "navigate", "word_sorting") + _TWICE,
        model="large",
        baseline="fresh",
    ),
    RecordedCase("custom", ("--datasets", "custom:data/quiz")),
    RecordedCase(
        "several",
        (
            *(
                "--datasets",
                "bbh",
                "mmlu_pro",
                "ceval",
                "bixbench",
                "demo",
                "fresh_bbh",
                "custom:data/quiz",
            ),
            *("--limit", "1"),
            *dataset_args(
                ceval={"subset_list": list(SUBJECTS)},
                bbh={"few_shot_num": 0},
                demo={"size": 3},
                fresh_bbh={"n": 1, "subset_list": ["navigate", _ARITHMETIC]},
            ),
        ),
    ),
    RecordedCase(
        "repeated",
        (
            *("--datasets", "mmlu_pro", "--limit", "1", "--repeats", "3"),
            *("--generation-config", "temperature=0.7"),
        ),
    ),
    RecordedCase(
        "errors",
        (
            *("--datasets", "demo", *dataset_args(demo={"size": 6}), "--attempts", "1"),
            *("--error-limit", "1", "--eval-batch-size", "1"),
        ),
        plan={"context": 900},
        at_first={"faults": {"500": 0.15}, "seed": 3},
        total=36,
    ),
    RecordedCase(
        "killed",
        (
            *("--datasets", "demo", "--eval-batch-size", "4"),
            *dataset_args(
                demo={"size": 40, "subset_list": ["boolean_expressions", "object_counting"]}
            ),
        ),
        at_first={"latency": 0.05},
        origin="killed",
        total=80,
    ),
    RecordedCase(
        "killed-arms",
        (*_fresh(30), "--arms", _ARMS, "--eval-batch-size", "4"),
        at_first={"latency": 0.05},
        origin="killed",
    ),
    RecordedCase(
        "budget",
        ("--datasets", "mmlu_pro", "--budget", "requests=20", "--eval-batch-size", "4"),
    ),
    RecordedCase(
        "stopped",
        (
            *("--datasets", "demo", *dataset_args(demo={"size": 60})),
            *("--until-ci", "0.15", "--eval-batch-size", "2"),
        ),
    ),
    RecordedCase("arms", (*_fresh(8), "--arms", _ARMS, "--agent", "max_iterations=4")),
    RecordedCase("python", (*_fresh(5), "--tools", "python")),
    RecordedCase(
        "notebook",
        (
            *("--datasets", "bixbench", "--total", "5", "--capsules", "capsules"),
            *dataset_args(bixbench={"mode": "agentic"}),
        ),
    ),
    RecordedCase(
        "limits",
        (
            *(*_fresh(10), "--arms", _LIMITED, "--price", "input=1,output=2"),
            *("--agent", "timeout_seconds=1.0,max_iterations=3"),
        ),
        model="slow",
    ),
    RecordedCase("part-1", ("--datasets", "mmlu_pro", "--shard", "1/2")),
    RecordedCase("part-2", ("--datasets", "mmlu_pro", "--shard", "2/2")),
    RecordedCase("merged", origin="merge", parts=("part-1", "part-2")),
    RecordedCase("imported", resumes=False, origin="import"),
    RecordedCase("matrix", origin="matrix", parts=_CELLS),
    *(
        RecordedCase(
            name,
            origin="cell",
            baseline=name.replace("large", "small") if "--large--" in name else None,
        )
        for name in _CELLS
    ),
)

RUNS = Recordings(HERE, CASES, CHANGES, reworded, answers=answer)
