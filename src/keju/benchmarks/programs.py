"""Exams whose answers are programs: their tests, and the readers that find the program in a reply.

A reader only finds the program. `keju.judges.programs` runs it against the `ProgramTests` of its
question; until then the answer has no grade.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from keju.answers.reader import Reader
from keju.benchmarks.base import Exam, Protocol, Scores, graded_values
from keju.benchmarks.metadata import Golden, GradedRecording, RecordedFigure
from keju.benchmarks.wording import Wording, words
from keju.stats.estimate import BoundedValues, Estimate
from keju.stats.repeats import pass_at_k, reported_ks
from keju.types import Answer, Sample

PASSED, PLUS_PASSED = "pass@1", "plus_pass@1"
"""The results of a program: of its base tests, and of its base and further tests."""
PROMPT = "prompt"
"""The key of `Sample.metadata` with the beginning of a program that the model continues."""
ENTRY_POINT = "entry_point"
"""The key of `Sample.metadata` with the name of the function that the tests call."""
LONGEST_PROGRAM = 200_000
"""Characters of a text that the readers parse."""

# A fenced block: "```python", its lines and "```", or the end of the reply.
_BLOCK = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
# The first line of code in prose: `def f(x):`, `from math import pi`.
_FIRST_CODE = re.compile(r"^(?:def |class |import |from |@|async def )", re.MULTILINE)
_FUTURE = re.compile(r"^from __future__ import annotations\n", re.MULTILINE)
"""The line that only the first of several joined texts may have."""


@dataclass(frozen=True, kw_only=True)
class ProgramTests:
    """The tests of one question."""

    entry_point: str
    """The function that the tests call."""
    tests: str
    """Code that runs in a sandbox where ``candidate`` is the program's function."""
    prelude: str = ""
    """Code that runs before the tests, such as helpers that the question defines."""
    data: Any = None
    """JSON values that the tests find as ``DATA``."""
    parts: Mapping[str, str] = field(default_factory=lambda: {PASSED: ""})
    """The code of each result by its name, in order; an empty one calls ``check(candidate)``. A
    part only passes if all parts before it pass."""


@cache
def read_test_code(*paths: Path) -> str:
    """Return the texts of files as one program for the sandbox of the tests."""
    texts = [_FUTURE.sub("", path.read_text("utf-8")) for path in paths]
    return "from __future__ import annotations\n" + "\n".join(texts)


class CodeBlock(NamedTuple):
    """A fenced block of a reply."""

    code: str
    start: int


def find_blocks(text: str) -> list[CodeBlock]:
    """Return the fenced blocks of a text in order; the last one may be open."""
    return [CodeBlock(match[2], match.start(2)) for match in _BLOCK.finditer(text)]


def is_program(text: str) -> bool:
    """Whether a text is Python without a syntax error."""
    if len(text) > LONGEST_PROGRAM:
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return bool(text.strip())


def defines(text: str, sample: Sample) -> bool:
    """Whether a text has a line that defines the function of the question."""
    metadata = sample.metadata
    name = metadata.get(ENTRY_POINT) or metadata.get("fields", {}).get(ENTRY_POINT, "")
    pattern = rf"^(?:async )?(?:def|class) {re.escape(name)}\b|^{re.escape(name)}\s*="  # `def f(`
    return re.search(pattern, text, re.MULTILINE) is not None


class ProgramReader(Reader):
    """A reader of programs. Programs are graded later, so it never grades."""

    marked = False

    def __init__(self, name: str, about: str, find: Callable[[str, Sample], Answer]) -> None:
        self.name, self.about, self._find = name, about, find

    def read(self, text: str, sample: Sample) -> Answer:
        return self._find(text, sample)

    def matches(self, value: str, sample: Sample) -> bool:
        return False

    def worth(self, value: str, sample: Sample) -> float | Mapping[str, float] | None:
        return None


def cut_at(text: str, stops: tuple[str, ...]) -> str:
    """Return the text before the first of the stops."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else text


def completion_reader(stops: tuple[str, ...], name: str = "completion") -> ProgramReader:
    """Return the reader of continuations: the prompt and the reply up to a stop."""

    def find(text: str, sample: Sample) -> Answer:
        program = str(sample.metadata.get(PROMPT, "")) + cut_at(text, stops)
        return Answer(program, "strict", rule="completion")

    return ProgramReader(name, "about_reader_program_completion", find)


def whole_reader(stops: tuple[str, ...] = (), name: str = "whole") -> ProgramReader:
    """Return the reader that takes the whole reply, up to a stop."""

    def find(text: str, _: Sample) -> Answer:
        return Answer(cut_at(text, stops), "strict", rule="whole")

    return ProgramReader(name, "about_reader_program_whole", find)


def block_reader(place: int, name: str) -> ProgramReader:
    """Return the reader of the first (0) or the last (-1) fenced block."""

    def find(text: str, _: Sample) -> Answer:
        blocks = find_blocks(text)
        if not blocks:
            return Answer(reason="no_block")
        return Answer(blocks[place].code, "strict", rule="block")

    return ProgramReader(name, f"about_reader_program_{name.partition('-')[0]}_block", find)


def solution_reader(name: str = "evalplus") -> ProgramReader:
    """Return the reader of solutions: a whole program as it is, else the first fenced block."""

    def find(text: str, _: Sample) -> Answer:
        blocks = find_blocks(text)
        if blocks and not is_program(text):
            return Answer(blocks[0].code, "strict", rule="block")
        return Answer(text, "strict", rule="whole")

    return ProgramReader(name, "about_reader_program_evalplus", find)


def robust_reader() -> ProgramReader:
    """Return Keju's reader: its rule says where it found the program."""

    def find(text: str, sample: Sample) -> Answer:
        blocks = find_blocks(text)
        if blocks and not is_program(text):
            return _read_blocks(blocks, sample)
        if is_program(text) and defines(text, sample):
            return Answer(text, "strict", rule="whole")
        prompt = str(sample.metadata.get(PROMPT, ""))
        if prompt and not defines(text, sample):
            program = prompt + _longest_program(prompt, text)
            return Answer(program, "tolerant", rule="completion")
        start = _FIRST_CODE.search(text)
        code = text[start.start() :] if start else text
        return Answer(_longest_program("", code) or code, "fallback", rule="code_in_text")

    return ProgramReader("robust", "about_reader_program_robust", find)


def _read_blocks(blocks: list[CodeBlock], sample: Sample) -> Answer:
    """Return the last block that defines the function; else the only one, or all together."""
    for block in reversed(blocks):
        if defines(block.code, sample):
            return Answer(block.code, "strict", rule="block")
    prompt = str(sample.metadata.get(PROMPT, ""))
    if prompt and is_program(prompt + blocks[0].code):
        return Answer(prompt + blocks[0].code, "tolerant", rule="completion_in_block")
    return Answer("\n".join(block.code for block in blocks), "tolerant", rule="blocks")


MOST_ATTEMPTS = 40


def _longest_program(start: str, text: str) -> str:
    """Return the longest beginning of `text` that continues `start` to a program.

    It drops lines at the end, at most `MOST_ATTEMPTS` times, each time at the line of the error.
    """
    lines = text.splitlines(keepends=True)
    offset = start.count("\n")
    for _ in range(MOST_ATTEMPTS):
        code = start + "".join(lines)
        if not lines or len(code) > LONGEST_PROGRAM:
            break
        try:
            ast.parse(code)
        except SyntaxError as error:
            line = (error.lineno or 0) - 1 - offset
            lines = lines[: max(0, min(line, len(lines) - 1))]
        except (ValueError, RecursionError, MemoryError):
            break
        else:
            return "".join(lines)
    return text


def program_readers(stops: tuple[str, ...]) -> dict[str, Reader]:
    """Return the readers of programs for an exam with these stops."""
    readers = (
        solution_reader(),
        completion_reader(stops),
        block_reader(0, "first-block"),
        block_reader(-1, "last-block"),
        whole_reader(),
        robust_reader(),
    )
    return {reader.name: reader for reader in readers}


@dataclass(kw_only=True, eq=False)
class ProgramExam(Exam):
    """An exam whose answers are programs, with the rows of predictions by ``task_id``."""

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        """Return pass@k for all tests; the usual metrics of repeats count the base tests."""
        if scores.epochs < 2 or PLUS_PASSED not in scores.parts:
            return {}
        return {
            f"plus_pass@{k}": self._estimate_pass_at(scores, k)
            for k in reported_ks(scores.epochs)[1:]
        }

    def _estimate_pass_at(self, scores: Scores, k: int) -> Estimate:
        bounded = BoundedValues(clustered=self.clustered)
        for index, sample in enumerate(self.samples):
            values, ungraded = graded_values(scores, scores.parts[PLUS_PASSED], index)
            right, size = round(sum(values)), len(values) + ungraded
            if size >= k:
                worst, best = (pass_at_k(size, count, k) for count in (right, right + ungraded))
                value = pass_at_k(len(values), right, k) if len(values) >= k else None
                bounded.add(value, (worst, best), sample.group or sample.id)
        return bounded.estimate()

    def locate(self, row: Mapping[str, Any]) -> str:
        if "task_id" not in row and isinstance(row.get("id"), str):
            return str(row["id"])
        return str(row["task_id"])


EVALPLUS_TOKENS = 768
"""The default limit of EvalPlus."""
EVALPLUS_QUESTION = (
    "Please provide a self-contained Python script that solves the following problem in a"
    " markdown code block:\n```python\n{task}\n```"
)
"""EvalPlus 0.3, the message to models of APIs."""


def evalplus_protocol() -> Protocol:
    """Return the protocol of EvalPlus."""
    task = {"task": lambda sample: sample.text.strip()}
    return Protocol(
        name="evalplus",
        version="0.3",
        reader="evalplus",
        about="EvalPlus 0.3: one message that asks for a program in a code block",
        max_tokens=EVALPLUS_TOKENS,
        shot_choices=(0,),
        templates=False,
        wording=Wording(question=EVALPLUS_QUESTION, words=words() | task),
    )


def program_figures(
    golden: Golden, recorded: GradedRecording, unstable: Collection[str] = ()
) -> Iterator[RecordedFigure]:
    """Yield the programs that pass, and those with another verdict than the recorded one.

    The verdicts of `unstable` rows on all tests depend on the order of a set.
    """
    reader = recorded.exam.protocol.reader
    yield RecordedFigure("rows", len(recorded.rows), len(recorded.rows))
    for key, name in (("base_pass", PASSED), ("plus_pass", PLUS_PASSED)):
        parts = {row.sample.id: row.readings[reader].score.parts for row in recorded.rows}
        if not all(name in values for values in parts.values()):
            continue
        skipped = unstable if name == PLUS_PASSED else ()
        actual = {row for row, values in parts.items() if values[name]}.difference(skipped)
        expected = set(golden[key]).difference(skipped)
        yield RecordedFigure(name, len(expected), len(actual))
        yield RecordedFigure(f"{name}, other verdicts", 0, len(actual ^ expected))
