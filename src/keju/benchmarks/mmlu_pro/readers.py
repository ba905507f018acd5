"""The readers of MMLU-Pro: the two of its authors, EvalScope's, and Keju's own.

The authors' patterns are quadratic on looping text. What stands here has the same results in
linear time.
"""

from __future__ import annotations

import re

from keju.answers.choice_markers import ANSWER_COLON, ANSWER_IS
from keju.benchmarks.base import Reader
from keju.benchmarks.choice_readers import (
    ChoiceReader,
    ChoiceRules,
    EvalScopeChoiceReader,
    RobustChoiceReader,
)
from keju.types import Answer, Sample

NAMES = ("l1", "l2", "evalscope", "robust")
QUESTION_LINES = ("Question:",)

_LEVEL_1 = re.compile(r"answer is \(?([A-J])")
_LEVEL_2 = re.compile(r"[aA]nswer:(?=\s*([A-J]))")
_ALONE = re.compile(r"\b[A-J]\b")


class Level1(ChoiceReader):
    r"""The first match of ``answer is \(?([A-J])\)?`` (TIGER-AI-Lab/MMLU-Pro).

    As published it has no word boundary and accepts letters beyond the row's options.
    """

    name = "l1"

    def __init__(self, *, plain: bool = False) -> None:
        """With `plain`, ``**`` is removed first, as the authors do with replies of APIs."""
        self.plain = plain

    def read(self, text: str, sample: Sample) -> Answer:
        match = _LEVEL_1.search(self._prepared(text))
        return Answer(match[1], "strict") if match else Answer(reason="no_marker")

    def _prepared(self, text: str) -> str:
        return text.replace("**", "") if self.plain else text


class Level2(Level1):
    """Level 1; else the letter after ``Answer:``; else the last stand-alone capital A to J."""

    name = "l2"

    def read(self, text: str, sample: Sample) -> Answer:
        text = self._prepared(text)
        if match := _LEVEL_1.search(text):
            return Answer(match[1], "strict")
        if letter := _after_answer_colon(text):
            return Answer(letter, "tolerant")
        if letter := _last_alone(text):
            return Answer(letter, "fallback")
        return Answer(reason="no_marker")


def _after_answer_colon(text: str) -> str:
    """The last letter announced on the first line that announces one."""
    letter, line_end = "", len(text)
    for match in _LEVEL_2.finditer(text):
        if match.start() > line_end:
            break
        if not letter:
            found = text.find("\n", match.start())
            line_end = found if found >= 0 else len(text)
        letter = match[1]
    return letter


def _last_alone(text: str) -> str:
    letter = ""
    for match in _ALONE.finditer(text):
        letter = match[0]
    return letter


def readers_of(protocol: str) -> dict[str, Reader]:
    """All readers, as they read the replies to the prompts of `protocol`."""
    plain = protocol == "official-api"
    strict = ANSWER_COLON if protocol == "evalscope" else ANSWER_IS
    found: list[Reader] = [
        Level1(plain=plain),
        Level2(plain=plain),
        EvalScopeChoiceReader(),
        RobustChoiceReader(ChoiceRules(strict, questions=QUESTION_LINES)),
    ]
    return {reader.name: reader for reader in found}
