"""The readers of C-Eval: three published ones, OpenCompass's first capital, and Keju's own."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Mapping, Sequence

import msgspec

from keju.answers.kinds import Choice
from keju.answers.labels import read_label
from keju.answers.reader import CHINESE as EVALSCOPE_CHINESE
from keju.answers.reader import EvalScopeChoiceReader, Reader
from keju.answers.robust import RobustReader
from keju.answers.wordings import (
    CHINESE,
    CHINESE_COMPLETE,
    CHINESE_STRICT,
    CUE,
    normal_chinese,
)
from keju.benchmarks.ceval.facts import OPTIONS
from keju.benchmarks.ceval.protocols import CEvalProtocol, Mode
from keju.types import Answer, Sample, Tier


def readers_for(protocol: CEvalProtocol) -> Mapping[str, Reader]:
    """All readers, each told what the prompt looked like where that changes its rules."""
    base, continues = protocol.base, protocol.continues
    readers: tuple[Reader, ...] = (
        TutorialReader(continues=continues, base=base, answer_only=protocol.answer_only),
        OfficialReader(protocol.modes[0], protocol.shots),
        EvalScopeChoiceReader(EVALSCOPE_CHINESE),
        FirstCapitalReader(),
        ChineseReader(continues=continues, base=base),
    )
    return {reader.name: reader for reader in readers}


# A line of nothing but blanks.
_EMPTY_LINE = re.compile(r"\n[ \t\r]*+\n")


def cut_after_answer(text: str, answer: re.Pattern[str]) -> tuple[str, bool]:
    """Cut a base model's run-on: `text` up to the first empty line after its first `answer`.

    The tutorial's and the official questions begin with nothing that could be recognised.
    """
    first = answer.search(text)
    end = _EMPTY_LINE.search(text, first.end()) if first else None
    if end is None or not text[end.end() :].strip():
        return text, False
    return text[: end.start()], True


# --- tutorial --------------------------------------------------------------------------------

TUTORIAL_CUE = "答案："
# `答案：B`; not `答案:B`, `答案：AB`.
_TUTORIAL_ANSWER = re.compile(r"答案：\s?([A-D])(?![A-Za-z0-9])")
# The same in normal form, perhaps dressed: `答案:**B`, `答案: (B`.
_NORMAL_ANSWER = re.compile(r"答案:\s?[*(]{0,3}([A-D])(?![A-Za-z0-9])")
# A first line that begins with a label: `B. 文`, `(B)`, `选项B和C`; not `A股`.
_OPENING = re.compile(
    r"\s*+([*_(\[\"]*+(?:选项 ?)?[A-D](?!(?!选?项|[和与及或])[\u4e00-\u9fff])[^\n]*+)"
)


class TutorialReader(Reader):
    """The form that the tutorial shows: `答案：X`, the last one of the reply.

    Where the prompt already ends with the cue, the reply's own beginning completes it. Where only
    the answer was asked for, the text is read in Unicode normal form KC (``答案:Ｂ``), and a reply
    that begins with the label (``B``, ``B. text``) needs no cue.
    """

    name = "tutorial"
    about = "ceval.about_reader_tutorial"

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
        labels = self.pattern.findall(text)
        if labels:
            return _last(labels, "strict", cut=cut)
        line = _OPENING.match(unicodedata.normalize("NFKC", reply)) if self.answer_only else None
        if line is None:
            return Answer(reason="no_marker", cut=cut)
        choices = [unicodedata.normalize("NFKC", choice) for choice in sample.choices]
        label, reason = read_label(line[1], sample.labels, choices)
        if label is None:
            return Answer(reason="ambiguous" if reason == "ambiguous" else "no_marker")
        return Answer(label, "tolerant")


# --- official --------------------------------------------------------------------------------

# `选项 B`, `B`: what every cue may be followed by.
_LETTER = r"\s?选?项?\s?([A-D])"
_CUES = ("答案是", "答案为", "答案应为", "答案选", "答案是:", "答案应该是:")
_MORE_CUES = (
    "答案为:", "答案应为:", "答案:", "答案是：", "答案应该是：", "答案为：", "答案应为：", "答案：",
)  # fmt: skip
OFFICIAL_ZERO_SHOT = tuple(
    re.compile(pattern)
    for pattern in (  # `选B`, `选项B` at the beginning; `答案是 B`, `答案：选项B` anywhere
        r"^选([A-D])",
        r"^选项([A-D])",
        *(cue + _LETTER for cue in _CUES),
        r"正确的一项是\s?([A-D])",
        *(cue + _LETTER for cue in _MORE_CUES),
    )
)
"""hkust-nlp/ceval, in their order: the first that matches decides, by its last match."""

OFFICIAL_COT = (("答案是", "。"), ("答案为", "。"), ("选项", "是正确的。"))
"""What stands before and after the answer of a chain of thought, in their order."""

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _letter(text: str) -> str | None:
    """The letter that `text` is in the official normal form: lower case, no ASCII punctuation."""
    normal = " ".join(text.lower().translate(_PUNCTUATION).split())
    return normal.upper() if len(normal) == 1 and normal in "abcd" else None


class OfficialReader(Reader):
    """The scripts of hkust-nlp/ceval, which read each way of asking differently.

    Chain of thought: the last `答案是…。`, else `答案为…。`, else `选项…是正确的。`. Zero-shot: the
    first character, else 17 patterns in turn. Few-shot: the whole reply is the letter.
    """

    name = "official"
    about = "ceval.about_reader_official"

    def __init__(self, mode: Mode, shots: int) -> None:
        self._mode, self._shots = mode, shots
        self.marked = mode == "cot"

    def read(self, text: str, sample: Sample) -> Answer:
        if self._mode == "cot":
            for before, after in OFFICIAL_COT:
                if enclosed := _enclosed(text, before, after):
                    letter = _letter(enclosed[-1])
                    return Answer(letter, "strict") if letter else Answer(reason="invalid_label")
        elif self._shots:
            if letter := _letter(text):
                return Answer(letter, "strict")
        elif text[:1] and text[0] in "ABCD":
            return Answer(text[0], "strict")
        else:
            for pattern in OFFICIAL_ZERO_SHOT:
                if labels := pattern.findall(text):
                    return _last(labels, "tolerant")
        return Answer(reason="no_marker")


def _last(labels: Sequence[str], tier: Tier, *, cut: bool = False) -> Answer:
    """The last of the labels of a reply, and the first where it differs."""
    first = labels[0] if labels[0] != labels[-1] else None
    return Answer(labels[-1], tier, first=first, cut=cut)


def _enclosed(text: str, before: str, after: str) -> list[str]:
    """What ``before(.+?)after`` finds, in linear time even where `after` never comes."""
    enclosed: list[str] = []
    start = text.find(before)
    while start >= 0:
        begin = start + len(before)
        line_end = text.find("\n", begin)
        line_end = len(text) if line_end < 0 else line_end
        end = text.find(after, begin + 1, line_end)
        if end >= 0:
            enclosed.append(text[begin:end])
        start = text.find(before, end + len(after) if end >= 0 else line_end)
    return enclosed


# --- OpenCompass -----------------------------------------------------------------------------


class FirstCapitalReader(Reader):
    """OpenCompass: the first capital letter of the reply, wherever it stands."""

    name = "first-capital"
    about = "ceval.about_reader_first_capital"
    marked = False

    def read(self, text: str, sample: Sample) -> Answer:
        capital = next((letter for letter in text if letter.isupper()), "")
        if capital and capital in sample.labels:
            return Answer(capital, "strict")
        return Answer(reason="invalid_label" if capital else "no_marker")


# --- robust ----------------------------------------------------------------------------------

# `B`, `(b).` or `B。` that the reply begins with; not `B是`.
_BARE_START = re.compile(r"\s*+[(\[]?[A-Da-d][)\]]?\.?(?=[ \t\r]*+(?:\n|\Z)|[。,;])")
# `B. 文字`: the label (1) and the text (2) that the reply begins with.
_FIRST_OPTION = re.compile(r"\s*+[(\[]?([A-D])[)\]]?[.:、][ \t]*+([^\n]++)")


class ChineseReader(RobustReader):
    """Keju's own reader, on a copy in Unicode normal form KC, with the Chinese wordings.

    Where the prompt ends with the cue, a base model's reply completes it; a chat's only if it
    begins with an answer. A base model's run-on is cut.
    """

    def __init__(self, *, continues: bool = False, base: bool = False) -> None:
        super().__init__(Choice(), strict=CHINESE_STRICT, tolerant=CHINESE)
        self._continues, self._base = continues, base

    def prepare(self, text: str, sample: Sample) -> tuple[str, Sample, bool]:
        text = normal_chinese(text)
        choices = tuple(map(normal_chinese, sample.choices))
        question = normal_chinese(sample.text)
        sample = msgspec.structs.replace(sample, choices=choices, text=question)
        if self._continues and (self._base or _opens_with_answer(text, choices)):
            text = CUE + text
        text, sample, cut = super().prepare(text, sample)
        if self._base:
            text, cut_too = cut_after_answer(text, CHINESE_COMPLETE)
            cut = cut or cut_too
        return text, sample, cut


def _opens_with_answer(text: str, choices: Sequence[str]) -> bool:
    """Whether a chat reply to a prompt that ends with the cue begins by completing it.

    It does with a line that is only a label, or a label and its own option's text (or as much of
    it as came); it may as well begin to discuss option A. `text` and `choices` are in normal form.
    """
    if _BARE_START.match(text):
        return True
    option = _FIRST_OPTION.match(text)
    if option is None:
        return False
    own = choices[OPTIONS.index(option[1])].strip()
    written = option[2].strip()
    return own == written or (own.startswith(written) and not text[option.end() :].strip())
