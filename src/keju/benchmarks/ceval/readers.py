"""The readers of C-Eval: three published ones, OpenCompass's first capital, and Keju's."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Mapping, Sequence

from keju.answers.chinese_reader import ChineseReader, cut_after_answer
from keju.answers.labels import read_label
from keju.answers.reader import CHINESE as EVALSCOPE_CHINESE
from keju.answers.reader import EvalScopeChoiceReader, Reader
from keju.benchmarks.ceval.protocols import CEvalProtocol, Mode
from keju.types import Answer, Sample, Tier


def make_readers(protocol: CEvalProtocol) -> Mapping[str, Reader]:
    """Return all readers, configured for the form of the protocol's prompts."""
    base, continues = protocol.is_base, protocol.ends_with_cue
    readers: tuple[Reader, ...] = (
        TutorialReader(continues=continues, base=base, answer_only=protocol.is_answer_only),
        CEvalOfficialReader(protocol.modes[0], protocol.shots),
        EvalScopeChoiceReader(EVALSCOPE_CHINESE),
        FirstCapitalReader(),
        ChineseReader(continues=continues, base=base),
    )
    return {reader.name: reader for reader in readers}


# --- tutorial --------------------------------------------------------------------------------

TUTORIAL_CUE = "答案："
# `答案：B`; not `答案:B`, `答案：AB`.
_TUTORIAL_ANSWER = re.compile(r"答案：\s?([A-D])(?![A-Za-z0-9])")
# The same in normal form, perhaps with formatting: `答案:**B`, `答案: (B`.
_NORMAL_ANSWER = re.compile(r"答案:\s?[*(]{0,3}([A-D])(?![A-Za-z0-9])")
# A first line that begins with a label: `B. 文`, `(B)`, `选项B和C`; not `A股`.
_OPENING = re.compile(
    r"\s*+([*_(\[\"]*+(?:选项 ?)?[A-D](?!(?!选?项|[和与及或])[\u4e00-\u9fff])[^\n]*+)"
)


class TutorialReader(Reader):
    """Reads the last `答案：X` of the reply, the form that the tutorial shows.

    If the prompt already ends with the cue, the reader adds it to the beginning of the reply. If
    the prompt asked only for the answer, the reader uses Unicode normal form KC (``答案:Ｂ``).
    Then a reply that begins with the label (``B``, ``B. text``) needs no cue.
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
            return _last_label(labels, "strict", cut=cut)
        line = _OPENING.match(unicodedata.normalize("NFKC", reply)) if self.answer_only else None
        if line is None:
            return Answer(reason="no_marker", cut=cut)
        choices = [unicodedata.normalize("NFKC", choice) for choice in sample.choices]
        label, reason = read_label(line[1], sample.labels, choices)
        if label is None:
            return Answer(reason="ambiguous" if reason == "ambiguous" else "no_marker")
        return Answer(label, "tolerant")


# --- official --------------------------------------------------------------------------------

# `选项 B`, `B`: the text that may follow every cue.
_LETTER = r"\s?选?项?\s?([A-D])"
_FIRST_CUES = ("答案是", "答案为", "答案应为", "答案选", "答案是:", "答案应该是:")
_LAST_CUES = (
    "答案为:", "答案应为:", "答案:", "答案是：", "答案应该是：", "答案为：", "答案应为：", "答案：",
)  # fmt: skip
OFFICIAL_ZERO_SHOT = tuple(
    re.compile(pattern)
    for pattern in (  # `选B`, `选项B` at the beginning; `答案是 B`, `答案：选项B` anywhere
        r"^选([A-D])",
        r"^选项([A-D])",
        *(cue + _LETTER for cue in _FIRST_CUES),
        r"正确的一项是\s?([A-D])",
        *(cue + _LETTER for cue in _LAST_CUES),
    )
)
"""The patterns of hkust-nlp/ceval in their order: the first one that matches decides, by its last
match."""

OFFICIAL_COT = (("答案是", "。"), ("答案为", "。"), ("选项", "是正确的。"))
"""The text before and after the answer of a chain of thought, in their order."""

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _read_letter(text: str) -> str | None:
    """Return the letter if `text` in the official form (lower case, no punctuation) is one."""
    normal = " ".join(text.lower().translate(_PUNCTUATION).split())
    return normal.upper() if len(normal) == 1 and normal in "abcd" else None


class CEvalOfficialReader(Reader):
    """The scripts of hkust-nlp/ceval, which read each way of asking differently.

    Chain of thought: the last `答案是…。`, else `答案为…。`, else `选项…是正确的。`. Zero-shot: the
    first character, else 17 patterns in turn. Few-shot: the full reply is the letter.
    """

    name = "official"
    about = "ceval.about_reader_official"

    def __init__(self, mode: Mode, shots: int) -> None:
        self._mode, self._shots = mode, shots
        self.marked = mode == "cot"

    def read(self, text: str, sample: Sample) -> Answer:
        if self._mode == "cot":
            for before, after in OFFICIAL_COT:
                if enclosed := _find_enclosed(text, before, after):
                    letter = _read_letter(enclosed[-1])
                    return Answer(letter, "strict") if letter else Answer(reason="invalid_label")
        elif self._shots:
            if letter := _read_letter(text):
                return Answer(letter, "strict")
        elif text[:1] and text[0] in "ABCD":
            return Answer(text[0], "strict")
        else:
            for pattern in OFFICIAL_ZERO_SHOT:
                if labels := pattern.findall(text):
                    return _last_label(labels, "tolerant")
        return Answer(reason="no_marker")


def _last_label(labels: Sequence[str], tier: Tier, *, cut: bool = False) -> Answer:
    """Return the last label of a reply, with the first one if it differs."""
    first_label = labels[0] if labels[0] != labels[-1] else None
    return Answer(labels[-1], tier, first=first_label, cut=cut)


def _find_enclosed(text: str, before: str, after: str) -> list[str]:
    """Return the matches of ``before(.+?)after``, in linear time even if `after` never occurs."""
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
    """OpenCompass: the first capital letter of the reply, at any position."""

    name = "first-capital"
    about = "ceval.about_reader_first_capital"
    marked = False

    def read(self, text: str, sample: Sample) -> Answer:
        capital = next((letter for letter in text if letter.isupper()), "")
        if capital and capital in sample.labels:
            return Answer(capital, "strict")
        return Answer(reason="invalid_label" if capital else "no_marker")
