"""MBPP+ as a benchmark: its questions in two published forms, their tests and recorded verdicts.

EvalPlus's file has inputs, for which a program must return what the published solution returns. The
rows of hubs have tests as code; those tests use NumPy, which the sandbox must have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from keju import messages
from keju.benchmarks import input_tests
from keju.benchmarks.base import Benchmark, Protocol, by_name
from keju.benchmarks.kit import Question, Setup
from keju.benchmarks.mbpp_plus import rules
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
    whole_reader,
)
from keju.benchmarks.wording import Wording, words
from keju.errors import DataError
from keju.files import LOG
from keju.sources.folder import HubRepo, Layout
from keju.types import Sample

TABLE = "MbppPlus"
FOLDER = Path(__file__).parent
ROW = "row"
"""The key of `Sample.metadata` with the rest of the published row: its tests."""
INPUTS = ("base_input", "plus_input")
ASSERTS = "test_list"
STOPS = ("\n[DONE]", "[DONE]")
UNSTABLE = ("Mbpp/160", "Mbpp/249", "Mbpp/579")
"""Rows whose recorded verdicts on all inputs depend on the order of a set."""
# `def similar_elements(a, b):`, `similar_elements`.
_FUNCTION = re.compile(r"^def (\w+)\s*\(", re.MULTILINE)
CALL = (
    "check_inputs(candidate, DATA, map(find_conversion(DATA['task_id']), DATA['{}']),"
    " copy_through_pipe, RULES.get(DATA['entry_point']))"
)


def make_questions(setup: Setup) -> Iterator[Question]:
    """Yield the questions of either form."""
    where = setup.folder.name_of(TABLE)
    needs_asserts = setup.protocol.name == "lm-eval"
    for number, row in enumerate(setup.folder.rows(TABLE), 1):
        question = _read_hub_row(row) if ASSERTS in row else _read_row(row)
        if question is None or (needs_asserts and ASSERTS not in row):
            code = "mbpp_plus.asserts" if needs_asserts else "mbpp_plus.fields"
            raise DataError(code, where=where, number=number)
        yield question


def _read_row(row: Mapping[str, Any]) -> Question | None:
    """Return a row of EvalPlus's file; None if it lacks a field."""
    names = ("task_id", "prompt", "entry_point", "canonical_solution", *INPUTS)
    if any(name not in row for name in names):
        return None
    tests = {name: row[name] for name in ("task_id", *INPUTS)} | {"atol": row.get("atol", 0)}
    metadata = {PROMPT: row["prompt"], ENTRY_POINT: row["entry_point"], ROW: tests}
    return Question(row["prompt"], row["canonical_solution"], id=row["task_id"], metadata=metadata)


def _read_hub_row(row: Mapping[str, Any]) -> Question | None:
    """Return a row of a hub, whose tests are code; None if it lacks a field."""
    if any(name not in row for name in ("task_id", "prompt", "code", "test")):
        return None
    asserts = "\n".join(row[ASSERTS])
    functions = [name for name in _FUNCTION.findall(row["code"]) if name in asserts]
    tests = {name: row.get(name) for name in (ASSERTS, "test", "test_imports")}
    metadata = {PROMPT: "", ENTRY_POINT: functions[-1] if functions else "", ROW: tests}
    return Question(row["prompt"], row["code"], id=f"Mbpp/{row['task_id']}", metadata=metadata)


def make_tests(sample: Sample) -> ProgramTests:
    """Return the tests of a question, by inputs or as code."""
    entry_point, row = sample.metadata[ENTRY_POINT], sample.metadata[ROW]
    if ASSERTS in row:
        code = "\n".join(row.get("test_imports") or ())
        parts = {PASSED: "\n".join(row[ASSERTS]), PLUS_PASSED: row["test"]}
        return ProgramTests(entry_point=entry_point, tests=code, parts=parts)
    data = {**row, "entry_point": entry_point}
    data["solution"] = sample.metadata[PROMPT] + sample.target
    parts = {
        name: CALL.format(key) for name, key in zip((PASSED, PLUS_PASSED), INPUTS, strict=True)
    }
    code = read_test_code(Path(input_tests.__file__), Path(rules.__file__))
    return ProgramTests(entry_point=entry_point, tests=code, data=data, parts=parts)


def make_examples(_: Setup) -> Iterator[Question]:
    """Yield the three worked examples of lm-eval."""
    for row in msgspec.json.decode((FOLDER / "examples.json").read_bytes()):
        yield Question(row["text"], explanation=row["code"], metadata={ROW: row})


def _test_words() -> dict[str, Any]:
    return {
        f"test_{place}": partial(
            lambda sample, place: sample.metadata[ROW][ASSERTS][place], place=place
        )
        for place in range(3)
    }


LM_EVAL_QUESTION = (
    "You are an expert Python programmer, and here is your task: {question} Your code should pass"
    " these tests:\n\n{test_0}\n{test_1}\n{test_2}\n[BEGIN]\n"
)
LM_EVAL = Protocol(
    name="lm-eval",
    version="1.0",
    reader="whole",
    about="lm-evaluation-harness 0.4.13: 3 worked examples, a text to continue; rows of a hub",
    form="completion",
    max_tokens=256,
    stop=("[DONE]",),
    shots=3,
    shot_choices=(3,),
    templates=False,
    readers=program_readers(STOPS) | by_name(whole_reader(STOPS)),
    wording=Wording(
        question=LM_EVAL_QUESTION,
        shot=LM_EVAL_QUESTION + "{explanation}\n[DONE]",
        words=words() | _test_words(),
    ),
)

messages.add_folder(FOLDER / "texts")

MBPP_PLUS = Benchmark(
    name="mbpp_plus",
    title="MBPP+",
    about=messages.text_of("about_exam_mbpp_plus", {}),
    aliases=("mbpp-plus", "mbppplus", "mbpp+"),
    layout=Layout(
        tables=(TABLE,),
        own_stems={TABLE: (TABLE, "MbppPlus-v0.1.0", "test", "data/test")},
        folders=("mbpp",),
        hubs={
            "huggingface": HubRepo("evalplus/mbppplus", "main"),
            "modelscope": HubRepo("evalplus/mbppplus", "master"),
        },
        rows={TABLE: 399},
        decoder=LOG,
        checksums=FOLDER / "checksums.txt",
    ),
    rows={"all": 399},
    questions=make_questions,
    examples=make_examples,
    exam=ProgramExam,
    programs=make_tests,
    refused=dict.fromkeys(("few_shot_random", "shuffle_choices"), ""),
    readers=program_readers(STOPS),
    protocols=by_name(evalplus_protocol(), LM_EVAL),
    golden=GoldenCheck(
        settings=lambda *_: RecordingSetup({}, "evalplus", ["evalplus"]),
        figures=partial(program_figures, unstable=UNSTABLE),
        recorded_gold=False,
    ),
)
"""MBPP+ (Liu et al. 2023): functions to write, graded on many inputs."""
