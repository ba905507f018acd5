"""Keju's reader for multiple-choice questions in Chinese, also where a prompt ends with a cue."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from keju.answers.kinds import Choice
from keju.answers.robust import RobustReader
from keju.answers.wordings import (
    CHINESE,
    CHINESE_COMPLETE,
    CHINESE_STRICT,
    CUE,
    normalise_chinese,
)
from keju.types import LABELS, Sample

# A line with only blanks.
_EMPTY_LINE = re.compile(r"\n[ \t\r]*+\n")


def cut_after_answer(text: str, answer: re.Pattern[str]) -> tuple[str, bool]:
    """Cut a base model's run-on: keep `text` up to the first empty line after its first `answer`.

    The tutorial's and the official questions have no recognisable beginning.
    """
    first_match = answer.search(text)
    end = _EMPTY_LINE.search(text, first_match.end()) if first_match else None
    if end is None or not text[end.end() :].strip():
        return text, False
    return text[: end.start()], True


# `B`, `(b).` or `B。` at the beginning of the reply; not `B是`.
_BARE_START = re.compile(r"\s*+[(\[]?[A-Da-d][)\]]?\.?(?=[ \t\r]*+(?:\n|\Z)|[。,;])")
# `B. 文字`: the label (1) and the text (2) at the beginning of the reply.
_FIRST_OPTION = re.compile(r"\s*+[(\[]?([A-D])[)\]]?[.:、][ \t]*+([^\n]++)")


class ChineseReader(RobustReader):
    """Keju's reader for Chinese: it reads a copy in Unicode normal form KC, with Chinese wordings.

    If the prompt ends with the cue, the reader adds it before a base model's reply, and before a
    chat reply only if that begins with an answer. It cuts off a base model's run-on.
    """

    def __init__(self, *, continues: bool = False, base: bool = False) -> None:
        super().__init__(Choice(), strict=CHINESE_STRICT, tolerant=CHINESE)
        self._continues, self._base = continues, base

    def prepare(self, text: str, sample: Sample) -> tuple[str, Sample, bool]:
        text = normalise_chinese(text)
        choices = tuple(map(normalise_chinese, sample.choices))
        question = normalise_chinese(sample.text)
        sample = msgspec.structs.replace(sample, choices=choices, text=question)
        if self._continues and (self._base or _opens_with_answer(text, choices)):
            text = CUE + text
        text, sample, cut = super().prepare(text, sample)
        if self._base:
            text, run_on_cut = cut_after_answer(text, CHINESE_COMPLETE)
            cut = cut or run_on_cut
        return text, sample, cut


def _opens_with_answer(text: str, choices: Sequence[str]) -> bool:
    """Whether a chat reply begins by completing the cue at the end of its prompt.

    This is the case if the first line is only a label, or a label and the text of its option (or
    the beginning of that text). Otherwise the reply may only begin to discuss option A. `text` and
    `choices` are in normal form.
    """
    if _BARE_START.match(text):
        return True
    option = _FIRST_OPTION.match(text)
    if option is None:
        return False
    option_text = choices[LABELS.index(option[1])].strip()
    reply_text = option[2].strip()
    return option_text == reply_text or (
        option_text.startswith(reply_text) and not text[option.end() :].strip()
    )
