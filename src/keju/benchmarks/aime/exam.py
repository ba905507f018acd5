"""AIME as a benchmark: years as subsets, and notices about small samples.

Keju has no questions of this contest. A year is a file, ``aime_2024.jsonl``; files of other years
are read in the same way. Files name the question ``problem``, ``Problem`` or ``question``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keju import messages
from keju.benchmarks.aime.readers import make_readers
from keju.benchmarks.base import Benchmark, Exam, Protocol, ToolTask, by_name
from keju.benchmarks.kit import Question, Setup, read_text_field
from keju.benchmarks.wording import Wording
from keju.errors import DataError, Notice
from keju.sources.folder import HubRepo, Layout

FOLDER = Path(__file__).parent
YEARS = ("2024", "2025")
ALL_YEARS = range(1983, 2050)
"""The years that a file may have."""
ROWS = 30
MANY_REPEATS = 32
TYPICAL_TOKENS = 10_000
"""The length of a reply of a reasoning model to such a question, in tokens, for the estimate."""

LAYOUT = Layout(
    tables=YEARS,
    stems=("aime_{table}", "AIME_{table}", "AIME{table}", "aime_{table}_problems", "{table}"),
    optional=frozenset(YEARS),
    folders=("AIME", "aime24", "aime25"),
    hubs={
        "huggingface": HubRepo("Maxwell-Jia/AIME_2024", "main"),
        "modelscope": HubRepo("AI-ModelScope/AIME_2024", "master"),
    },
    rows=dict.fromkeys(YEARS, ROWS),
    checksums=FOLDER / "checksums.txt",
)

# `73`, `073`, `73.0`, `336^\\circ`: an answer in the files.
_ANSWER = re.compile(r"(\d{1,3})(?:\.0)?(?:\^\{?\\circ\}?)?", re.ASCII)

BOXED = Wording(
    question="{question}\nPlease reason step by step, and put your final answer within \\boxed{}."
)
LM_EVAL = Wording(question="Question: {question}\nAnswer:")


def make_questions(setup: Setup) -> Iterator[Question]:
    """Yield the questions of all years that have a file."""
    for year in map(str, ALL_YEARS):
        if setup.folder.has(year):
            where = setup.folder.name_of(year)
            for number, row in enumerate(setup.folder.rows(year), 1):
                yield read_question(row, year, f"{where}, row {number}")


def read_question(row: Mapping[str, Any], year: str, where: str) -> Question:
    """Return a row as a question; its answer must be a whole number from 0 to 999."""
    text = read_text_field(row, ("problem", "question", "Problem", "Question"), where)
    answer = read_text_field(row, ("answer", "Answer"), where)
    match = _ANSWER.fullmatch(answer.strip())
    if match is None:
        raise DataError("aime.answer", where=where, answer=answer)
    return Question(text, str(int(match[1])), subset=year)


class AimeExam(Exam):
    """The questions of the selected years."""

    def locate(self, row: Mapping[str, Any]) -> str:
        """Return the id for ``id``; for ``year`` or ``subset`` and ``index``; for one year's
        ``index``."""
        year = row.get("subset", row.get("year"))
        if year is None and len(self.subsets) == 1:
            year = self.subsets[0].name
        return super().locate({**row, "subset": str(year)} if year is not None else row)

    def repeat_hints(self, repeats: int) -> Sequence[Notice]:
        """Return what so few questions can show, and what many repeats cost."""
        n = len(self.samples)
        half_width = 100 * 1.96 * math.sqrt(0.25 / n) if n else 0.0
        values = {
            "n": n,
            "repeats": repeats,
            "requests": n * repeats,
            "points": half_width,
            "least": half_width / math.sqrt(MANY_REPEATS),
            "many": MANY_REPEATS,
            "many_requests": n * MANY_REPEATS,
            "million_tokens": n * MANY_REPEATS * TYPICAL_TOKENS / 1e6,
        }
        return (Notice("aime.few_questions", values),)


messages.add_folder(FOLDER / "texts")

AIME = Benchmark(
    name="aime",
    title="AIME",
    about=messages.text_of("about_exam_aime", {}),
    aliases=("aime24", "aime25", "aime2024", "aime2025"),
    alias_settings={
        alias: {"subset_list": [year]}
        for year in YEARS
        for alias in (f"aime{year}", f"aime{year[2:]}")
    },
    layout=LAYOUT,
    rows=dict.fromkeys(YEARS, ROWS),
    questions=make_questions,
    exam=AimeExam,
    readers=make_readers(),
    tool_tasks=(
        ToolTask(tool="lm-eval", name="aime(?:24|25)?", protocol="lm-eval"),
        ToolTask(tool="evalscope", name="aime(?:24|25)", protocol="boxed"),
    ),
    protocols=by_name(
        Protocol(
            name="boxed",
            version="1",
            reader="boxed",
            about="zero-shot, the answer in \\boxed{}, as EvalScope 1.14 asks; 4 repeats",
            max_tokens=32768,
            temperature=0.6,
            repeats=4,
            wording=BOXED,
        ),
        Protocol(
            name="lm-eval",
            version="0.0",
            reader="lm-eval",
            about="lm-eval 0.4.13 aime24: zero-shot, a text to continue",
            form="completion",
            max_tokens=32768,
            stop=("Question:", "</s>", "<|im_end|>", "<|eot_id|>"),
            wording=LM_EVAL,
        ),
    ),
)
"""The American Invitational Mathematics Examination: 30 questions a year, © MAA."""
