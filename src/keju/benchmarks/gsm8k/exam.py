"""GSM8K as a benchmark: its data, its protocols and its recorded outputs.

Every published answer is a worked solution that ends with ``#### 18``. The text after the marker,
without thousands commas, is the gold answer. The solution is the explanation of a worked example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from keju import messages
from keju.benchmarks.base import Benchmark, Protocol, ToolTask, by_name
from keju.benchmarks.gsm8k.golden import GOLDEN
from keju.benchmarks.gsm8k.readers import make_readers
from keju.benchmarks.kit import Question, Setup, draw_in_one_stream, read_text_field
from keju.benchmarks.wording import Wording
from keju.errors import DataError
from keju.sources.folder import HubRepo, Layout

TEST, TRAIN = "test", "train"
FOLDER = Path(__file__).parent
SOLVED = "####"
LM_EVAL_SEED = 1234
"""The default seed of lm-eval for the draw of worked examples."""
LM_EVAL_TOKENS = 256
"""The default limit of lm-eval where a task sets none."""
ZEROEVAL_TOKENS = 4096

LAYOUT = Layout(
    tables=(TEST, TRAIN),
    hubs={
        "huggingface": HubRepo("openai/gsm8k", "main"),
        "modelscope": HubRepo("AI-ModelScope/gsm8k", "master"),
    },
    rows={TEST: 1319, TRAIN: 7473},
    checksums=FOLDER / "checksums.txt",
)

LM_EVAL = Wording(
    question="Question: {question}\nAnswer:", shot="Question: {question}\nAnswer: {explanation}"
)
LM_EVAL_COT = Wording(question="Q: {question}\nA:", shot="Q: {question}\nA: {explanation}")
LM_EVAL_COT_ZEROSHOT = Wording(question="Q: {question}\nA: Let's think step by step.")
ZEROEVAL = Wording(
    question="\n## Question: \n\n{question}\n\n\n## Instruction \n\n"
    "Please answer this question by first reasoning and then providing your answer.\n"
    "Present your reasoning and solution in the following json format. \n"
    'Please show your final answer in the `answer` field, e.g.,`"answer": "42"`.\n\n'
    '```json\n{\n    "reasoning": "___",\n    "answer": "___"\n}\n```\n'
)
"""WildEval/ZeroEval, the template for open questions."""


def read_solution(row: Mapping[str, Any], where: str) -> Question:
    """Return a row as a question; the number after the last ``####`` is its answer."""
    solution = read_text_field(row, ("answer",), where)
    _, marker, final = solution.rpartition(SOLVED)
    target = final.strip().replace(",", "")
    if not marker or not target:
        raise DataError("gsm8k.no_final_answer", where=where)
    text = read_text_field(row, ("question",), where)
    return Question(text, target, explanation=solution)


def read_table(setup: Setup, table: str) -> Iterator[Question]:
    """Yield the rows of a table as questions."""
    name = setup.folder.name_of(table)
    for number, row in enumerate(setup.folder.rows(table), 1):
        yield read_solution(row, f"{name}, row {number}")


def make_questions(setup: Setup) -> Iterator[Question]:
    """Yield the questions of the test split."""
    for question in read_table(setup, TEST):
        yield question._replace(explanation="")


def make_examples(setup: Setup) -> Iterator[Question]:
    """Yield the pool of worked examples: the fixed ones of the protocol, or the training split."""
    if setup.protocol.name != "lm-eval-cot":
        yield from read_table(setup, TRAIN)
        return
    for row in msgspec.json.decode((FOLDER / "cot_examples.json").read_bytes()):
        yield Question(row["question"], explanation=row["answer"])


messages.add_folder(FOLDER / "texts")

GSM8K = Benchmark(
    name="gsm8k",
    title="GSM8K",
    about=messages.text_of("about_exam_gsm8k", {}),
    aliases=("gsm8k_cot", "gsm8k_cot_zeroshot", "gsm"),
    alias_protocols={
        "gsm8k_cot": "lm-eval-cot",
        "gsm8k_cot_zeroshot": "lm-eval-cot-zeroshot",
        "gsm": "zeroeval",
    },
    layout=LAYOUT,
    rows={"all": 1319},
    questions=make_questions,
    examples=make_examples,
    readers=make_readers("lm-eval"),
    golden=GOLDEN,
    tool_tasks=(
        ToolTask(tool="lm-eval", name="gsm8k", protocol="lm-eval", shots=5),
        ToolTask(tool="lm-eval", name="gsm8k_cot", protocol="lm-eval-cot", shots=8),
        ToolTask(tool="lm-eval", name="gsm8k_cot_zeroshot", protocol="lm-eval-cot-zeroshot"),
    ),
    protocols=by_name(
        Protocol(
            name="lm-eval",
            version="3.0",
            reader="strict-match",
            about="lm-eval 0.4.13 gsm8k: 5 worked examples, drawn for each question; '#### N'",
            form="completion",
            max_tokens=LM_EVAL_TOKENS,
            stop=("Question:", "</s>", "<|im_end|>"),
            wording=LM_EVAL,
            shots=5,
            draw_shots=draw_in_one_stream(LM_EVAL_SEED),
            readers=make_readers("lm-eval"),
        ),
        Protocol(
            name="lm-eval-cot",
            version="3.0",
            reader="strict-match",
            about="lm-eval 0.4.13 gsm8k_cot: 8 fixed worked examples; 'The answer is N.'",
            form="completion",
            max_tokens=LM_EVAL_TOKENS,
            stop=("Q:", "</s>", "<|im_end|>"),
            wording=LM_EVAL_COT,
            shots=8,
            shot_choices=range(9),
            readers=make_readers("lm-eval-cot"),
        ),
        Protocol(
            name="lm-eval-cot-zeroshot",
            version="3.0",
            reader="strict-match",
            about="lm-eval 0.4.13 gsm8k_cot_zeroshot: zero-shot; 'The answer is N.'",
            form="completion",
            max_tokens=LM_EVAL_TOKENS,
            stop=("Q:", "</s>", "<|im_end|>"),
            wording=LM_EVAL_COT_ZEROSHOT,
            shot_choices=(0,),
            readers=make_readers("lm-eval-cot-zeroshot"),
        ),
        Protocol(
            name="zeroeval",
            version="1",
            reader="zeroeval",
            about="ZeroEval: zero-shot, one message; the answer is a field of a JSON object",
            max_tokens=ZEROEVAL_TOKENS,
            wording=ZEROEVAL,
            shot_choices=(0,),
            readers=make_readers("zeroeval"),
        ),
    ),
)  # fmt: skip
"""GSM8K (Cobbe et al. 2021): 1,319 test questions, MIT licence."""
