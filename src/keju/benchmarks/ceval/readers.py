"""The readers of C-Eval: three published ones, OpenCompass's first capital, and Keju's own."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Mapping

import msgspec

from keju.answers.labels import read_label
from keju.benchmarks.base import Reader
from keju.benchmarks.ceval.chinese import (
    CUE,
    STRICT,
    TOLERANT,
    completed,
    cut_after_answer,
    cut_run_on,
    normalised,
    only_verdict,
    opens_with_answer,
)
from keju.benchmarks.ceval.protocols import Setting
from keju.benchmarks.choice_readers import (
    EVALSCOPE_CHINESE,
    ChoiceReader,
    ChoiceRules,
    EvalScopeChoiceReader,
    RobustChoiceReader,
)
from keju.types import Answer, Sample

READER_NAMES = ("tutorial", "official", "evalscope", "first-capital", "robust")


def readers_for(setting: Setting) -> Mapping[str, Reader]:
    """All readers, each told what the prompt looked like where that changes its rules."""
    readers: list[Reader] = [
        TutorialReader(
            continues=setting.continues,
            base=setting.form == "base",
            answer_only=setting.mode == "answer-only",
        ),
        _official(setting),
        EvalScopeChoiceReader(EVALSCOPE_CHINESE),
        FirstCapitalReader(),
        RobustReader(continues=setting.continues, base=setting.form == "base"),
    ]
    return {reader.name: reader for reader in readers}


# --- tutorial --------------------------------------------------------------------------------

TUTORIAL_CUE = "答案："
_TUTORIAL_ANSWER = re.compile(r"答案：\s?([A-D])(?![A-Za-z0-9])")
_NORMAL_ANSWER = re.compile(r"答案:\s?[*(]{0,3}([A-D])(?![A-Za-z0-9])")
_OPENING = re.compile(
    r"\s*+([*_(\[\"]*+(?:选项 ?)?[A-D](?!(?!选?项|[和与及或])[\u4e00-\u9fff])[^\n]*+)"
)
"""A first line that begins with a label, which no Chinese word goes on from (``A股``)."""


class TutorialReader(ChoiceReader):
    """The form that the tutorial shows: `答案：X`, the last one of the reply.

    Where the prompt already ends with the cue, the reply's own beginning completes it. Where only
    the answer was asked for, the text is read in Unicode normal form KC (``答案:Ｂ``), and a reply
    that begins with the label (``B``, ``B. text``) needs no cue.
    """

    name = "tutorial"

    def __init__(
        self, *, continues: bool = False, base: bool = False, answer_only: bool = False
    ) -> None:
        self.lead = TUTORIAL_CUE if continues else ""
        self.base = base
        self.answer_only = answer_only
        self.pattern = _NORMAL_ANSWER if answer_only else _TUTORIAL_ANSWER

    def read(self, text: str, sample: Sample) -> Answer:
        reply, cut = text.lstrip(), False
        text = self.lead + reply
        if self.answer_only:
            text = unicodedata.normalize("NFKC", text)
        if self.base:
            text, cut = cut_after_answer(text, self.pattern)
        found = self.pattern.findall(text)
        if not found and self.answer_only:
            return _opening_label(reply, sample)
        if not found:
            return Answer(reason="no_marker", cut=cut)
        first = found[0] if found[0] != found[-1] else None
        return Answer(found[-1], "strict", first=first, cut=cut)


def _opening_label(reply: str, sample: Sample) -> Answer:
    """The label that the first line of `reply` begins with."""
    line = _OPENING.match(unicodedata.normalize("NFKC", reply))
    if line is None:
        return Answer(reason="no_marker")
    choices = [unicodedata.normalize("NFKC", choice) for choice in sample.choices]
    reading = read_label(line[1], sample.labels, choices)
    if reading.value is None:
        return Answer(reason="ambiguous" if reading.reason == "ambiguous" else "no_marker")
    return Answer(reading.value, "tolerant")


# --- official --------------------------------------------------------------------------------

_LETTER = r"\s?选?项?\s?([A-D])"
_CUES = ("答案是", "答案为", "答案应为", "答案选", "答案是:", "答案应该是:")
_MORE_CUES = ("答案为:", "答案应为:", "答案:", "答案是：", "答案应该是：", "答案为：")
_LAST_CUES = ("答案应为：", "答案：")
OFFICIAL_ZERO_SHOT = tuple(
    re.compile(pattern)
    for pattern in (
        r"^选([A-D])",
        r"^选项([A-D])",
        *(cue + _LETTER for cue in _CUES),
        r"正确的一项是\s?([A-D])",
        *(cue + _LETTER for cue in _MORE_CUES + _LAST_CUES),
    )
)
"""hkust-nlp/ceval, in their order: the first that matches decides, by its last match."""

OFFICIAL_COT = (("答案是", "。"), ("答案为", "。"), ("选项", "是正确的。"))
"""What stands before and after the answer of a chain of thought, in their order."""

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _normal(text: str) -> str:
    """The official normal form: lower case, no ASCII punctuation, single spaces."""
    return " ".join(text.lower().translate(_PUNCTUATION).split())


def _letter(text: str) -> str | None:
    normal = _normal(text)
    return normal.upper() if len(normal) == 1 and normal in "abcd" else None


def _official(setting: Setting) -> Reader:
    if setting.mode == "cot":
        return OfficialCotReader()
    return OfficialZeroShotReader() if setting.shots == 0 else OfficialFewShotReader()


class OfficialFewShotReader(ChoiceReader):
    """Few-shot answer-only: the whole reply is the letter."""

    name = "official"

    def read(self, text: str, sample: Sample) -> Answer:
        letter = _letter(text)
        return Answer(letter, "strict") if letter else Answer(reason="no_marker")


class OfficialZeroShotReader(ChoiceReader):
    """Zero-shot answer-only: the first character, else 17 patterns in turn."""

    name = "official"

    def read(self, text: str, sample: Sample) -> Answer:
        if text[:1] and text[0] in "ABCD":
            return Answer(text[0], "strict")
        for pattern in OFFICIAL_ZERO_SHOT:
            if found := pattern.findall(text):
                first = found[0] if found[0] != found[-1] else None
                return Answer(found[-1], "tolerant", first=first)
        return Answer(reason="no_marker")


class OfficialCotReader(ChoiceReader):
    """Chain of thought: the last `答案是…。`, else `答案为…。`, else `选项…是正确的。`."""

    name = "official"

    def read(self, text: str, sample: Sample) -> Answer:
        for before, after in OFFICIAL_COT:
            found = _enclosed(text, before, after)
            if found:
                letter = _letter(found[-1])
                return Answer(letter, "strict") if letter else Answer(reason="invalid_label")
        return Answer(reason="no_marker")


def _enclosed(text: str, before: str, after: str) -> list[str]:
    """What ``before(.+?)after`` finds, in linear time even where `after` never comes."""
    found: list[str] = []
    start = text.find(before)
    while start >= 0:
        begin = start + len(before)
        line_end = text.find("\n", begin)
        line_end = len(text) if line_end < 0 else line_end
        end = text.find(after, begin + 1, line_end)
        if end >= 0:
            found.append(text[begin:end])
        start = text.find(before, end + len(after) if end >= 0 else line_end)
    return found


# --- OpenCompass -----------------------------------------------------------------------------


class FirstCapitalReader(ChoiceReader):
    """OpenCompass: the first capital letter of the reply, wherever it stands."""

    name = "first-capital"

    def read(self, text: str, sample: Sample) -> Answer:
        capital = next((letter for letter in text if letter.isupper()), "")
        if capital and capital in sample.labels:
            return Answer(capital, "strict")
        return Answer(reason="invalid_label" if capital else "no_marker")


# --- robust ----------------------------------------------------------------------------------


class RobustReader(RobustChoiceReader):
    """Keju's own reader, on a copy in Unicode normal form KC, with the Chinese wordings.

    A base model's run-on is cut at the first empty line after its answer: the tutorial's and the
    official questions begin with nothing that could be recognised.
    """

    def __init__(self, *, continues: bool = False, base: bool = False) -> None:
        super().__init__(
            ChoiceRules(
                strict=STRICT,
                tolerant=TOLERANT,
                questions=("问题:",),
                normalise=completed if continues and base else normalised,
                cut=cut_run_on if base else None,
            )
        )
        self.cued_chat = continues and not base

    def read(self, text: str, sample: Sample) -> Answer:
        choices = tuple(normalised(choice) for choice in sample.choices)
        if choices != sample.choices:
            sample = msgspec.structs.replace(sample, choices=choices)
        if self.cued_chat and opens_with_answer(normalised(text), choices):
            text = CUE + text
        return super().read(text, sample)

    def _read_tiers(self, text: str, sample: Sample) -> Answer:
        answer = super()._read_tiers(text, sample)
        if answer.reason == "no_marker" and (label := only_verdict(text)):
            return Answer(label, "tolerant")
        return answer
