"""GPQA as a benchmark: its tables, its protocols and the order of its options.

The files list the right answer first, so every protocol permutes the options. Keju stores each
permutation with its question.

The authors ask that questions are not published in clear text, so reports do not show them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from keju import messages
from keju.answers.kinds import Choice
from keju.answers.reader import (
    EvalScopeChoiceReader,
    InspectChoiceReader,
    SimpleEvalsChoiceReader,
)
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_COLON, ANSWER_IS
from keju.benchmarks.base import Benchmark, Protocol, ToolTask, by_name
from keju.benchmarks.gpqa.readers import FlexibleReader, StrictReader
from keju.benchmarks.kit import Questions, Setup, arrange, read_text_field
from keju.benchmarks.wording import Wording, words
from keju.config import DatasetArgs
from keju.sources.folder import HubRepo, Layout
from keju.types import LABELS, Sample

RIGHT = "Correct Answer"
WRONG = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
Variant = Literal["diamond", "main", "extended"]
ROWS = {"diamond": 198, "main": 448, "extended": 546}
SIMPLE_EVALS_REPEATS = 4
INSPECT_SEED = 42

Order = tuple[int, ...]
Options = Sequence[str]


class GPQAArgs(DatasetArgs):
    """Settings of GPQA."""

    variant: Variant = "diamond"
    """Which questions: diamond (198), main (448) or extended (546)."""
    permutations: int = SIMPLE_EVALS_REPEATS
    """How many orders of its options each question is asked in (protocol simple-evals)."""


def draw_simple_evals(rows: int, repeats: int) -> list[list[Order]]:
    """Return the orders of simple-evals by repeat: one stream over all repeats of all questions."""
    stream = random.Random(0)
    return [[tuple(stream.sample(range(4), 4)) for _ in range(rows)] for _ in range(repeats)]


def draw_inspect(rows: int) -> list[Order]:
    """Return the orders of inspect_evals: a shuffle for each question, from one stream."""
    stream, orders = random.Random(INSPECT_SEED), []
    for _ in range(rows):
        order = list(range(4))
        stream.shuffle(order)
        orders.append(tuple(order))
    return orders


def draw_lm_eval(options: Sequence[Options], seed: int) -> list[Order]:
    """Return the orders of lm-eval's shuffle, which has no seed there: here it has the run's."""
    stream, orders = random.Random(seed), []
    for _ in options:
        order = [1, 2, 3, 0]  # lm-eval puts the right answer last before it shuffles
        stream.shuffle(order)
        orders.append(tuple(order))
    return orders


def clean_for_lm_eval(text: str) -> str:
    """Return an option as lm-eval writes it: without `` [title]`` and without double blanks."""
    return text.strip().replace(" [title]", ". ").replace("  ", " ")


def read_rows(setup: Setup) -> Iterator[tuple[str, Options]]:
    """Yield question and options of each row, the right option first."""
    assert isinstance(setup.args, GPQAArgs)
    table = f"gpqa_{setup.args.variant}"
    name = setup.folder.name_of(table)
    for number, row in enumerate(setup.folder.rows(table), 1):
        where = f"{name}, row {number}"
        options = [read_text_field(row, (column,), where) for column in (RIGHT, *WRONG)]
        yield read_text_field(row, ("Question",), where), options


def make_questions(setup: Setup) -> Questions:
    """Return the questions with the permuted options of the protocol."""
    args = setup.args
    assert isinstance(args, GPQAArgs)
    rows = list(read_rows(setup))
    protocol = setup.protocol.name
    clean: Callable[[str], str] = clean_for_lm_eval if protocol == "lm-eval" else str
    rows = [(text, [clean(option) for option in options]) for text, options in rows]
    if protocol == "simple-evals":
        repeats = draw_simple_evals(len(rows), args.permutations)
    elif protocol == "inspect":
        repeats = [draw_inspect(len(rows))]
    else:
        repeats = [draw_lm_eval([options for _, options in rows], setup.seed)]
    samples = (
        make_sample(args.variant, index, repeat, text, options, orders[index])
        for repeat, orders in enumerate(repeats)
        for index, (text, options) in enumerate(rows)
    )
    arranged = arrange("gpqa", samples, (args.variant,))
    return replace(arranged, version=args.variant, clustered=len(repeats) > 1)


def make_sample(
    variant: str, row: int, repeat: int, text: str, options: Options, order: Order
) -> Sample:
    """Return a question with its options in `order`; its repeats share a group."""
    permuted_options = tuple(options[place] for place in order)
    base_id = f"gpqa_{variant}_{row}"
    return Sample(
        id=f"{base_id}_r{repeat}" if repeat else base_id,
        subset=variant,
        index=row + repeat * ROWS[variant],
        text=text,
        # Two options may be equal. As published, the first of them is the right one.
        target=LABELS[permuted_options.index(options[0])],
        choices=permuted_options,
        order=order,
        group=base_id,
        metadata={"row": row, "repeat": repeat},
    )


SIMPLE_EVALS = Wording(
    question="Answer the following multiple choice question. The last line of your response should "
    "be of the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. "
    "Think step by step before answering.\n\n{question}\n\n{choices}",
    words=words("A) text"),
)
LM_EVAL = Wording(
    question="What is the correct answer to this question:{question}\nChoices:\n{choices}\n"
    "Let's think step by step: ",
    words=words("(A) text"),
)
INSPECT = Wording(
    question="Answer the following multiple choice question. The last line of your response should "
    "be of the following format: 'ANSWER: $LETTER' (without quotes) where LETTER is one of "
    "{letters}. Think step by step before answering.\n\n{question}\n\n{choices}",
    words=words("A) text"),
)


def manifest_settings(setup: Setup, _: Wording) -> Mapping[str, Any]:
    """Return the settings that shaped the prompts."""
    args = setup.args
    assert isinstance(args, GPQAArgs)
    repeats = args.permutations if setup.protocol.name == "simple-evals" else 1
    return {"variant": args.variant, "permutations": repeats}


messages.add_folder(Path(__file__).parent / "texts")

GPQA = Benchmark(
    name="gpqa",
    title="GPQA",
    about=messages.text_of("about_exam_gpqa", {}),
    aliases=("gpqa_diamond", "gpqa_main", "gpqa_extended", "gpqa_diamond_cot_zeroshot"),
    alias_protocols={"gpqa_diamond_cot_zeroshot": "lm-eval"},
    alias_settings={
        "gpqa_main": {"variant": "main"},
        "gpqa_extended": {"variant": "extended"},
    },
    layout=Layout(
        tables=tuple(f"gpqa_{name}" for name in ROWS),
        optional=frozenset({"gpqa_main", "gpqa_extended"}),
        hubs={"huggingface": HubRepo("Idavidrein/gpqa", "main")},
        archives=("dataset.zip",),
        rows={f"gpqa_{name}": rows for name, rows in ROWS.items()},
    ),
    questions=make_questions,
    private=True,
    Args=GPQAArgs,
    settings=manifest_settings,
    refused={"shuffle_choices": "every protocol permutes the options", "few_shot_random": ""},
    readers=by_name(
        SimpleEvalsChoiceReader(),
        StrictReader(),
        FlexibleReader(),
        InspectChoiceReader(),
        EvalScopeChoiceReader(),
        RobustReader(Choice(), strict=ANSWER_COLON),
    ),
    tool_tasks=(
        ToolTask(tool="lm-eval", name="gpqa_diamond_cot_zeroshot", protocol="lm-eval"),
        ToolTask(tool="inspect", name="gpqa_diamond", protocol="inspect"),
    ),
    protocols=by_name(
        Protocol(
            name="simple-evals",
            version="1",
            reader="simple-evals",
            about="simple-evals: zero-shot chain of thought, four orders of the options; "
            "'Answer: X'",
            wording=SIMPLE_EVALS,
            shot_choices=(0,),
            templates=False,
        ),
        Protocol(
            name="lm-eval",
            version="2.2",
            reader="lm-eval",
            about="lm-eval 0.4.13 gpqa_*_cot_zeroshot; its shuffle has the run's seed",
            form="completion",
            max_tokens=256,
            stop=("</s>",),
            wording=LM_EVAL,
            shot_choices=(0,),
            templates=False,
            readers=by_name(
                StrictReader(),
                FlexibleReader(),
                SimpleEvalsChoiceReader(),
                InspectChoiceReader(),
                EvalScopeChoiceReader(),
                RobustReader(Choice(), strict=ANSWER_IS),
            ),
        ),
        Protocol(
            name="inspect",
            version="1",
            reader="inspect",
            about="inspect_evals gpqa_diamond: zero-shot chain of thought; 'ANSWER: X'; it asks "
            "each question four times (--repeats 4)",
            wording=INSPECT,
            shot_choices=(0,),
            templates=False,
        ),
    ),
)
"""GPQA: 198 questions of the diamond set, 448 main, 546 extended; CC BY 4.0."""
