"""The readers of MMLU-Pro: two by its authors, EvalScope's, Inspect's, and Keju's.

The authors' patterns need quadratic time on looping text. The code here gives the same results in
linear time.
"""

from __future__ import annotations

import re

from keju.answers.kinds import Choice
from keju.answers.reader import EvalScopeChoiceReader, InspectChoiceReader, Reader
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_COLON, ANSWER_IS
from keju.types import Answer, Sample

# `answer is (B`; the authors' first pattern has no word boundary: `answer is Because` gives B.
_LEVEL_1 = re.compile(r"answer is \(?([A-J])")
# `Answer: B`; the letter may be on the next line.
_LEVEL_2 = re.compile(r"[aA]nswer:(?=\s*([A-J]))")
# A single capital letter, including the pronoun `I`; not the `A` of `DNA`.
_STANDALONE = re.compile(r"\b[A-J]\b")


class Level1Reader(Reader):
    r"""The first match of ``answer is \(?([A-J])\)?`` (TIGER-AI-Lab/MMLU-Pro).

    As published it has no word boundary and accepts letters beyond the row's options.
    """

    name = "l1"
    about = "mmlu_pro.about_reader_l1"

    def __init__(self, *, without_bold: bool = False) -> None:
        """`without_bold` removes ``**`` first, as the authors do with replies of APIs."""
        self.without_bold = without_bold

    def read(self, text: str, sample: Sample) -> Answer:
        if self.without_bold:
            text = text.replace("**", "")
        match = _LEVEL_1.search(text)
        return Answer(match[1], "strict") if match else self.unmarked(text)

    def unmarked(self, text: str) -> Answer:
        """Return the answer of a reply without the marker."""
        return Answer(reason="no_marker")


class Level2Reader(Level1Reader):
    """Level 1; else the letter after ``Answer:``; else the last single capital letter A to J."""

    name = "l2"
    about = "mmlu_pro.about_reader_l2"

    def unmarked(self, text: str) -> Answer:
        letter, line_end = "", len(text)
        # The last announced letter on the first line that announces one.
        for match in _LEVEL_2.finditer(text):
            if match.start() > line_end:
                break
            if not letter:
                end = text.find("\n", match.start())
                line_end = end if end >= 0 else len(text)
            letter = match[1]
        if letter:
            return Answer(letter, "tolerant")
        for match in _STANDALONE.finditer(text):
            letter = match[0]
        return Answer(letter, "fallback") if letter else super().unmarked(text)


def make_readers(protocol: str) -> dict[str, Reader]:
    """Return all readers, configured for replies to the prompts of `protocol`."""
    without_bold = protocol == "official-api"
    strict = ANSWER_COLON if protocol == "evalscope" else ANSWER_IS
    readers: tuple[Reader, ...] = (
        Level1Reader(without_bold=without_bold),
        Level2Reader(without_bold=without_bold),
        EvalScopeChoiceReader(),
        InspectChoiceReader(),
        RobustReader(Choice(), strict=strict),
    )
    return {reader.name: reader for reader in readers}
