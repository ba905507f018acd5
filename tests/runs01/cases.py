"""The runs that version 0.1 recorded; `tests/support/recorded_runs.py` says how they are stored."""

from __future__ import annotations

import json
from pathlib import Path

from tests.runs01.changes import CHANGES, reworded
from tests.runs01.questions import SUBJECTS
from tests.support.recorded_runs import RecordedCase, Recordings, dataset_args

HERE = Path(__file__).parent

_JUDGE = {"model": "judge", "repeats": 3, "second": "judge-2", "price": {"input": 1, "output": 2}}
_KINDS = ["boolean_expressions", "object_counting"]
_TWICE = ("--reader", "evalscope,robust")
_SUBJECTS = list(SUBJECTS)

CASES = (
    RecordedCase("bbh", ("--datasets", "bbh", *_TWICE)),
    RecordedCase("bbh-paper", ("--datasets", "bbh", "--protocol", "paper", "--language", "zh")),
    RecordedCase("mmlu_pro", ("--datasets", "mmlu_pro", "--price", "input=1,output=2", *_TWICE)),
    RecordedCase(
        "mmlu_pro-official", ("--datasets", "mmlu_pro", "--protocol", "official", "--limit", "2")
    ),
    RecordedCase(
        "mmlu_pro-drawn",
        ("--datasets", "mmlu_pro", "--limit", "0.5", "--sample", "stratified", "--seed", "7"),
    ),
    RecordedCase(
        "mmlu_pro-rotated",
        ("--datasets", "mmlu_pro", "--rotate-options", "3", "--limit", "1", *_TWICE),
    ),
    RecordedCase(
        "ceval", ("--datasets", "ceval", *dataset_args(ceval={"subset_list": _SUBJECTS}), *_TWICE)
    ),
    RecordedCase(
        "ceval-labels",
        (
            "--datasets",
            "ceval",
            "--protocol",
            "tutorial",
            *dataset_args(ceval={"subset_list": _SUBJECTS}),
        ),
    ),
    RecordedCase(
        "bixbench", ("--datasets", "bixbench", *dataset_args(bixbench={"with_refusal": True}))
    ),
    RecordedCase(
        "bixbench-judged",
        (
            *("--datasets", "bixbench", *dataset_args(bixbench={"answer_mode": "open"})),
            *("--judge", json.dumps(_JUDGE)),
        ),
        judged=True,
    ),
    RecordedCase(
        "several",
        (
            *("--datasets", "bbh", "mmlu_pro", "ceval", "bixbench", "demo", "--limit", "1"),
            *dataset_args(
                ceval={"subset_list": _SUBJECTS}, bbh={"few_shot_num": 0}, demo={"size": 3}
            ),
        ),
    ),
    RecordedCase(
        "repeated",
        (
            *("--datasets", "demo", "--repeats", "3", "--generation-config", "temperature=0.7"),
            *dataset_args(demo={"size": 3}),
        ),
    ),
    RecordedCase("custom", ("--datasets", "custom:data/quiz")),
    RecordedCase(
        "errors",
        (
            *("--datasets", "demo", *dataset_args(demo={"size": 6}), "--attempts", "1"),
            *("--error-limit", "1", "--eval-batch-size", "1"),
        ),
        plan={"context": 900},
        total=36,
        at_first={"faults": {"500": 0.15}, "seed": 3},
    ),
    RecordedCase(
        "killed",
        (
            *("--datasets", "demo", *dataset_args(demo={"size": 40, "subset_list": _KINDS})),
            *("--eval-batch-size", "4"),
        ),
        at_first={"latency": 0.05},
        origin="killed",
        total=80,
    ),
    RecordedCase("imported", resumes=False, origin="import"),
)

RUNS = Recordings(HERE, CASES, CHANGES, reworded)
