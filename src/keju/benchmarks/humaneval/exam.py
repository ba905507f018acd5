"""HumanEval as a benchmark: its questions, its tests and its recorded verdicts.

The tests of OpenAI's file are code; those of EvalPlus's file are inputs, for which a program must
return what the published solution returns. Either file works.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keju import messages
from keju.benchmarks import input_tests
from keju.benchmarks.base import Benchmark, Protocol, by_name
from keju.benchmarks.kit import Question, Setup
from keju.benchmarks.metadata import GoldenCheck, RecordingSetup
from keju.benchmarks.programs import (
    ENTRY_POINT,
    PASSED,
    PLUS_PASSED,
    PROMPT,
    ProgramExam,
    ProgramTests,
    evalplus_protocol,
    program_figures,
    program_readers,
    read_test_code,
)
from keju.benchmarks.wording import Wording, words
from keju.errors import DataError
from keju.sources.folder import HubRepo, Layout
from keju.types import Sample

TABLE = "HumanEval"
STOPS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")
"""Where a completion ends, as in lm-eval and in OpenAI's script."""
FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution")
INPUTS = ("base_input", "plus_input")
ROW = "row"
"""The key of `Sample.metadata` with the rest of the published row: its tests."""
ROOT = """
import math
def is_root(value, expected, given):
    total = sum(factor * math.pow(value, place) for place, factor in enumerate(given[0]))
    return abs(total) <= 1e-4
"""
"""The rule of question 32: any root of the polynomial is right."""


def make_questions(setup: Setup) -> Iterator[Question]:
    """Yield the questions; each must have tests."""
    where = setup.folder.name_of(TABLE)
    for number, row in enumerate(setup.folder.rows(TABLE), 1):
        has_inputs = all(name in row for name in INPUTS)
        for name in (*FIELDS, *(() if has_inputs else ("test",))):
            if not isinstance(row.get(name), str):
                raise DataError("humaneval.field", where=where, number=number, name=name)
        tests = {name: row[name] for name in (*INPUTS, "atol", "test") if name in row}
        metadata = {PROMPT: row["prompt"], ENTRY_POINT: row["entry_point"], ROW: tests}
        yield Question(
            row["prompt"], row["canonical_solution"], id=row["task_id"], metadata=metadata
        )


def make_tests(sample: Sample) -> ProgramTests:
    """Return the tests of a question: its inputs where it has them, else its code."""
    metadata, row = sample.metadata, sample.metadata[ROW]
    prompt, entry_point = metadata[PROMPT], metadata[ENTRY_POINT]
    if INPUTS[0] not in row:
        # Tests also call helpers of the prompt, whose last function is not complete but valid.
        return ProgramTests(entry_point=entry_point, tests=row["test"], prelude=prompt)
    data: dict[str, Any] = {"solution": prompt + sample.target, "entry_point": entry_point}
    data |= {"atol": row.get("atol", 0)} | {name: row[name] for name in INPUTS}
    rule = "is_root" if entry_point == "find_zero" else "None"
    call = f"check_inputs(candidate, DATA, DATA['{{}}'], copy_through_pipe, {rule})"
    parts = {
        name: call.format(key) for name, key in zip((PASSED, PLUS_PASSED), INPUTS, strict=True)
    }
    code = read_test_code(Path(input_tests.__file__)) + ROOT
    return ProgramTests(entry_point=entry_point, tests=code, data=data, parts=parts)


LM_EVAL = Protocol(
    name="lm-eval",
    version="1.0",
    reader="completion",
    about="lm-evaluation-harness 0.4.13: the model continues the prompt",
    form="completion",
    max_tokens=1024,
    stop=STOPS,
    shot_choices=(0,),
    templates=False,
    wording=Wording(question="{question}", words=words()),
)

messages.add_folder(Path(__file__).parent / "texts")

HUMANEVAL = Benchmark(
    name="humaneval",
    title="HumanEval",
    about=messages.text_of("about_exam_humaneval", {}),
    aliases=("human_eval", "openai_humaneval", "humaneval_plus"),
    layout=Layout(
        tables=(TABLE,),
        own_stems={
            TABLE: (
                *(TABLE, f"data/{TABLE}", "openai_humaneval/test", "test", "data/test"),
                *("HumanEvalPlus", "HumanEvalPlus-v0.1.10", "HumanEvalPlus-v0.1.9"),
            )
        },
        hubs={
            "huggingface": HubRepo("openai/openai_humaneval", "main"),
            "modelscope": HubRepo("opencompass/humaneval", "master"),
        },
        rows={TABLE: 164},
        checksums=Path(__file__).with_name("checksums.txt"),
    ),
    rows={"all": 164},
    questions=make_questions,
    exam=ProgramExam,
    programs=make_tests,
    refused=dict.fromkeys(("few_shot_num", "few_shot_random", "shuffle_choices"), ""),
    readers=program_readers(STOPS),
    protocols=by_name(evalplus_protocol(), LM_EVAL),
    golden=GoldenCheck(
        settings=lambda *_: RecordingSetup({}, "evalplus", ["evalplus"]),
        figures=program_figures,
        recorded_gold=False,
    ),
)
"""HumanEval (Chen et al. 2021): functions to complete, graded by their tests."""
