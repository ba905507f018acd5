"""MATH-500 as a benchmark: its data, its protocols and its recorded outputs.

Files name the columns in two ways: ``problem`` and ``answer`` on the hub, ``Question`` and
``Answer`` in other copies. The subsets are the seven subjects. A recorded set with its own
questions has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from keju import messages
from keju.answers.mathematics.kind import BOXED, make_math_reader
from keju.answers.mathematics.qwen import QwenReader
from keju.answers.mathematics.simple_evals import ANSWER, SimpleEvalsReader
from keju.answers.reader import Reader
from keju.benchmarks.base import Benchmark, Exam, Protocol, ToolTask, by_name
from keju.benchmarks.kit import Question, Setup, read_text_field
from keju.benchmarks.math_500.golden import GOLDEN
from keju.benchmarks.math_500.minerva import MINERVA_MARKER, MinervaReader
from keju.benchmarks.wording import Wording
from keju.sources.folder import HubRepo, Layout

TEST = "test"
ROW = "row"
"""Key of `Sample.metadata` with the row of a question in its file, from 0."""
FOLDER = Path(__file__).parent
SUBJECTS = {
    "Algebra": 124, "Counting & Probability": 38, "Geometry": 41, "Intermediate Algebra": 97,
    "Number Theory": 62, "Prealgebra": 82, "Precalculus": 56,
}  # fmt: skip
"""The rows of each subject, in alphabetical order."""

LAYOUT = Layout(
    tables=(TEST,),
    stems=("{table}", "data/{table}", "MATH500", "MATH-500", "math500", "questions"),
    folders=("math", "MATH-500", "math500"),
    hubs={
        "huggingface": HubRepo("HuggingFaceH4/MATH-500", "main"),
        "modelscope": HubRepo("AI-ModelScope/MATH-500", "master"),
    },
    rows={TEST: 500},
    checksums=FOLDER / "checksums.txt",
)

QWEN = Wording(
    system="Please reason step by step, and put your final answer within \\boxed{}.",
    question="{question}",
)
"""QwenLM/Qwen2.5-Math, prompt type ``qwen25-math-cot``."""
LM_EVAL = Wording(
    question="Problem:\n{question}\n\nSolution:",
    shot="Problem:\n{question}\n\nSolution: {explanation}",
)
"""lm-eval 0.4.13, minerva_math500 (Lewkowycz et al. 2022)."""
SIMPLE_EVALS = Wording(
    question="Solve the following math problem step by step. The last line of your response should"
    " be of the form Answer: $ANSWER (without quotes) where $ANSWER is the answer to the"
    " problem.\n\n"
    '{question}\n\nRemember to put your answer on its own line after "Answer:", and you do not need'
    " to use a \\boxed command."
)
"""openai/simple-evals, math_eval.py."""


def make_readers(marker: Any = BOXED) -> dict[str, Reader]:
    """Return all readers; `marker` is the one that the protocol asks for."""
    readers = (QwenReader(), MinervaReader(), SimpleEvalsReader(), make_math_reader(marker))
    return by_name(*readers)


def make_questions(setup: Setup) -> Iterator[Question]:
    """Yield the questions with their subjects."""
    where = setup.folder.name_of(TEST)
    for number, row in enumerate(setup.folder.rows(TEST), 1):
        place = f"{where}, row {number}"
        answer = read_text_field(row, ("answer", "Answer"), place).strip()
        yield Question(
            read_text_field(row, ("problem", "Question", "question"), place),
            answer,
            subset=str(row.get("subject") or ""),
            id=str(row.get("unique_id") or row.get("id") or ""),
            metadata={ROW: number - 1} | ({"level": row["level"]} if "level" in row else {}),
        )


def make_examples(_: Setup) -> Iterator[Question]:
    """Yield the four worked examples of the paper."""
    for row in msgspec.json.decode((FOLDER / "minerva_examples.json").read_bytes()):
        yield Question(row["problem"], explanation=row["solution"])


class Math500Exam(Exam):
    """The questions of MATH-500."""

    @cached_property
    def _ids(self) -> dict[int, str]:
        """The ids of the questions by their row in the file."""
        return {sample.metadata[ROW]: sample.id for sample in self.samples}

    def locate(self, row: Mapping[str, Any]) -> str:
        """Return the id for ``id``, ``unique_id``, or ``index`` among all rows of the file."""
        if isinstance(row.get("unique_id"), str):
            return str(row["unique_id"])
        if "subset" not in row and not isinstance(row.get("id"), str):
            return self._ids.get(row["index"], f"row {row['index']}")
        return super().locate(row)


messages.add_folder(FOLDER / "texts")

MATH_500 = Benchmark(
    name="math_500",
    title="MATH-500",
    about=messages.text_of("about_exam_math_500", {}),
    aliases=("math500", "math-500", "minerva_math500"),
    alias_protocols={"minerva_math500": "lm-eval"},
    layout=LAYOUT,
    rows=SUBJECTS,
    questions=make_questions,
    examples=make_examples,
    exam=Math500Exam,
    readers=make_readers(),
    golden=GOLDEN,
    tool_tasks=(
        ToolTask(tool="lm-eval", name="minerva_math500", protocol="lm-eval", shots=4),
    ),
    protocols=by_name(
        Protocol(
            name="qwen",
            version="2.5",
            reader="qwen",
            about="Qwen2.5-Math: zero-shot, the answer in \\boxed{}",
            max_tokens=2048,
            wording=QWEN,
            shot_choices=(0,),
            readers=make_readers(),
        ),
        Protocol(
            name="lm-eval",
            version="3.1",
            reader="lm-eval",
            about="lm-eval 0.4.13 minerva_math500: 4 fixed worked examples, a text to continue",
            form="completion",
            max_tokens=256,
            stop=("Problem:",),
            wording=LM_EVAL,
            shots=4,
            shot_choices=range(5),
            readers=make_readers(MINERVA_MARKER),
        ),
        Protocol(
            name="simple-evals",
            version="1",
            reader="simple-evals",
            about="simple-evals: zero-shot, the answer after 'Answer:'; a judge decides",
            wording=SIMPLE_EVALS,
            shot_choices=(0,),
            readers=make_readers(ANSWER),
        ),
    ),
)  # fmt: skip
"""MATH-500 (Hendrycks et al. 2021; Lightman et al. 2023): 500 test questions, MIT licence."""
