"""The interface of all readers, and the published readers that several exams share.

These are the label readers of EvalScope and Inspect, and simple readers without wordings.
"""

from __future__ import annotations

import copy
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence

from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.segments import last_line
from keju.types import Answer, ContinuationScore, Sample

RAW = "@raw"
"""The end of the name of a reader that also reads think blocks."""


class Reader(ABC):
    """Reads an answer from the text of a reply and compares it with the target.

    Reading is separate from prompting: you can apply any reader of a benchmark to any stored run. A
    reader never guesses and takes at most linear time. `keju.reader` and `keju.grader` make a
    reader from a function.
    """

    name: str
    version: int = 1
    marked: bool = True
    """Whether the strict tier means that the marker of the protocol precedes the answer. False if
    the whole reply, or its last line, is the answer."""
    scores_cut: bool = True
    """Whether an answer in a cut-off reply keeps its score. Published readers ignore cuts."""
    raw: bool = False
    """Whether the reader also reads the ``<think>`` block, as the authors' script does."""
    is_model_rule: bool = False
    """Whether the published rule lets a model decide if an answer is right. Without a judge Keju's
    own rule decides."""
    about: str = ""
    """The rule of the reader for ``keju list readers``: a message code or a sentence."""

    @abstractmethod
    def read(self, text: str, sample: Sample) -> Answer:
        """Return the answer of `text`. Its think blocks are already removed unless `raw` is set."""

    def choose(self, scores: Sequence[ContinuationScore], sample: Sample) -> Answer:
        """Return the label of the option with the highest log-probability; in a tie the first.

        The reply then holds the log-probability of each option and no text.
        """
        return choose_highest([score.logprob for score in scores], sample)

    def with_thinking(self) -> Reader:
        """Return this reader for unchanged replies with their think blocks: ``l1@raw``."""
        reader = copy.copy(self)
        reader.name, reader.raw = f"{self.name}{RAW}", True
        return reader

    def facing(self, shown: Callable[[str], str]) -> Reader:
        """Return this reader with access to the text of the prompts before the question.

        `shown` returns this text for a subset. Only a reader that needs it returns a new reader.
        """
        return self

    def matches(self, value: str, sample: Sample) -> bool:
        """Return whether an answer equals the target. The default compares the exact texts."""
        return value == sample.target

    def worth(self, value: str, sample: Sample) -> float | Mapping[str, float] | None:
        """Return the score of an answer in [0, 1], or several values by name, the score first.

        None means that the answer cannot be graded.
        """
        return float(self.matches(value, sample))


def choose_highest(values: Sequence[float], sample: Sample) -> Answer:
    """Return the label of the option with the highest value; in a tie the first, flagged."""
    if len(values) != len(sample.choices) or not values or any(map(math.isnan, values)):
        return Answer(reason="no_logprobs")
    best = max(values)
    label = sample.labels[values.index(best)]
    return Answer(label, "labels", reason="tie" if values.count(best) > 1 else "")


class WholeReplyReader(Reader):
    """Takes the whole reply as the answer."""

    name = "whole-reply"
    about = "about_reader_whole_reply"
    marked = False

    def __init__(self, target_reader: Reader) -> None:
        self._other = target_reader

    def part(self, text: str) -> str:
        """Return the part of a reply that is the answer."""
        return text.strip()

    def read(self, text: str, sample: Sample) -> Answer:
        value = self.part(text)
        return Answer(value, "strict") if value else Answer(reason="empty")

    def matches(self, value: str, sample: Sample) -> bool:
        return self._other.matches(value, sample)


class LastLineReader(WholeReplyReader):
    """Takes the last line that is not blank as the answer."""

    name = "last-line"
    about = "about_reader_last_line"

    def part(self, text: str) -> str:
        return last_line(text)


ENGLISH = re.compile(r"ANSWER\s*+:\s*+\**+\s*+", re.IGNORECASE)
"""``ANSWER : **``, in any case."""
CHINESE = re.compile(r"答案\s*+[:：]\s*+\**+\s*+")
"""``答案：``."""

# `$\boxed{\text{`: typesetting between a marker and its labels.
_TYPESETTING = lazy_pattern(
    r"(?:(?:\$+|\\\(|\\(?:boxed|fbox|text|textbf|mathbf|mathrm)\s*\{)\s*)*+"
)
# `(B)`, `【A、C】`; the labels are group 1.
_BRACKETED = lazy_pattern(r"[(\[（【]\s*+([A-Za-z\d](?:\s*[,，/、]\s*[A-Za-z\d])*+)\s*+[)\]）】]")
# `A, C and more`: a sequence whose leading labels count.
_RUN = lazy_pattern(r"([A-Za-z\d][A-Za-z\d ,，/、]*+)")
# `A`, `AC`, `and`.
_WORD = lazy_pattern(r"[A-Za-z\d]+")


class EvalScopeChoiceReader(Reader):
    """EvalScope 1.14: reads the label after the last usable marker, else the last capital letter.

    Keju keeps the fallback because published numbers contain it. The fallback reads ``DNA`` as A
    and the pronoun as I. `marker` is `ENGLISH` or `CHINESE`.
    """

    name = "evalscope"
    about = "about_reader_evalscope"

    def __init__(self, marker: re.Pattern[str] = ENGLISH) -> None:
        self.marker = marker

    def read(self, text: str, sample: Sample) -> Answer:
        labels = sample.labels
        ends = [match.end() for match in self.marker.finditer(text)]
        last_run = _first_labels(text, reversed(ends), labels)
        if not last_run:
            return _read_last_capital(text, labels)
        if last_run not in labels or len(last_run) != 1:
            return Answer(reason="ambiguous")
        first_run = _first_labels(text, ends, labels)
        has_other = first_run != last_run and len(first_run) == 1
        return Answer(last_run, "strict", first=first_run if has_other else None)


def _first_labels(text: str, positions: Iterable[int], labels: str) -> str:
    """Return the first sequence of labels that begins at one of the positions."""
    return next((run for at in positions if (run := _labels_at(text, at, labels))), "")


def _read_last_capital(text: str, labels: str) -> Answer:
    """Return the last capital letter of a text if it is a label."""
    capital = next((letter for letter in reversed(text) if letter.isupper()), "")
    if capital and capital in labels:
        return Answer(capital, "fallback")
    return Answer(reason="invalid_label" if capital else "no_marker")


def _labels_at(text: str, position: int, labels: str) -> str:
    """Return the labels at `position`, with ``and`` and ``or`` only between two labels."""
    typesetting = _TYPESETTING.match(text, position)
    start = typesetting.end() if typesetting else position
    for pattern in (_BRACKETED, _RUN):
        match = pattern.match(text, start)
        run, end, is_after_connector = match[1] if match else "", 0, False
        for word in _WORD.finditer(run):
            if set(word[0]) <= set(labels):
                end, is_after_connector = word.end(), False
            elif end and not is_after_connector and word[0].lower() in ("and", "or"):
                is_after_connector = True
            else:
                break
        if end:
            return run[:end]
    return ""


_BLANKS = lazy_pattern(r"\s{65,}")
"""Long white space. Keju shortens it, so that reading takes linear time."""
_WRAPPED = (
    (re.compile(r"\$\s*([A-Za-z\d][A-Za-z\d ,]*?)\s*\$"), r"\1"),  # `$B$`
    (re.compile(r"\*\*\s*([A-Za-z\d][A-Za-z\d ,]*?)\s*\*\*"), r"\1"),  # `**B**`
    # `ANSWER: (B)`: after a colon, a comma or nothing, and before the end of a line or sentence.
    (re.compile(r"(^|[:,])(\s*)\(([A-Za-z\d])\)(?=\s*(?:[,.\n]|\Z))"), r"\1\2\3"),
)
_LINE = lazy_pattern(r"^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)", re.IGNORECASE | re.MULTILINE)
"""``ANSWER: B.`` on a separate line."""
_ANYWHERE = lazy_pattern(r"ANSWER\s*:\s*([A-Za-z\d ,]+)(?:\W|$)", re.IGNORECASE)
"""``so ANSWER: B!``. It reads ``Answer: because`` as an answer."""


class InspectChoiceReader(Reader):
    """Inspect 0.3.285: reads the last line ``ANSWER: X``, or else the last ``ANSWER: X``.

    The text after the last marker must be one label of the question, in either case. Otherwise
    there is no answer. The reader does not try other markers.
    """

    name = "inspect"
    about = "about_reader_inspect"

    def read(self, text: str, sample: Sample) -> Answer:
        text = _BLANKS.sub(lambda blanks: blanks[0][:32] + blanks[0][-32:], text)
        for pattern, inside in _WRAPPED:
            text = pattern.sub(inside, text)
        matches = _LINE.findall(text) or _ANYWHERE.findall(text)
        if not matches:
            return Answer(reason="no_marker")
        matched_labels = [label for label in matches[-1].strip().upper().split(",") if label]
        if len(matched_labels) == 1 and matched_labels[0] in tuple(sample.labels):
            return Answer(matched_labels[0], "strict")
        return Answer(reason="invalid_label")


class LabelReader(Reader):
    """Takes the label that was chosen by its probability; of a written reply its first capital."""

    about = "about_reader_label"
    marked = False

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, text: str, sample: Sample) -> Answer:
        capital = next((letter for letter in text if letter.isupper()), "")
        if capital and capital in sample.labels:
            return Answer(capital, "strict")
        return Answer(reason="invalid_label" if capital else "no_marker")


# `Answer: B`, `answer : $B$`; the letter is group 1.
_SIMPLE_EVALS = lazy_pattern(r"(?i)Answer[ \t]*+:[ \t]*+\$?([A-D])")
# `Answer` before a colon, in any case, with any white space between them.
_SIMPLE_EVALS_WORDS = tuple(
    lazy_pattern(rf"(?i){word}[ \t]*+([A-D]|[أ-د]|[অ]|[ব]|[ড]|[ঢ]|[Ａ]|[Ｂ]|[Ｃ]|[Ｄ])")
    for word in (
        r"Answer\s*+:", "Answer\\s*+:" + "\u200b" * 6, r"উত্তর\s*+:", r"उत्तर\s*+:",
        "উত্তরঃ", r"Antwort\s*+:", r"답변\s*+:", r"정답\s*+:", r"답\s*+:", r"答案\s*+：",
        r"答案\s*+:", r"答\s*+：", r"答\s*+:", r"答复\s*+：", r"答曰\s*+：", "الإجابة:", "الجواب:",
        "إجابة:", "الإجابة النهائية:", "الإجابة الصحيحة:", "الإجابة الصحيحة هي:", "الإجابة هي:",
        "الجواب النهائي:", r"Respuesta\s*+:", r"Risposta\s*+:", r"答え\s*+:", r"答え\s*+：",
        r"回答\s*+:", r"回答\s*+：", r"解答\s*+:", r"Jawaban\s*+:", r"Réponse\s*+:",
        r"Resposta\s*+:", r"Jibu\s*+:", r"Idahun\s*+:", r"Ìdáhùn\s*+:", r"Idáhùn\s*+:",
        r"Àmọ̀nà\s*+:", r"Àdáhùn\s*+:",
        r"Ànúgọ\s*+:", r"Àṣàyàn\s*+:",
    )
)  # fmt: skip
"""The word for an answer in the languages of MMMLU, in the order of simple-evals."""
_SIMPLE_EVALS_FORMATTING = (
    "**", "$\\boxed{", "}$", "\\$", "$\\text{", "$", "\\mathrm{", "\\{", "\\text", "\\(",
    "\\mathbf{", "{", "\\boxed",
)  # fmt: skip
"""Formatting that simple-evals removes, in its order."""
_SIMPLE_EVALS_LETTERS = str.maketrans("أبجدঅবডঢＡＢＣＤ", "ABCDABCDABCD")


class SimpleEvalsChoiceReader(Reader):
    """simple-evals: reads the first ``Answer: X``; as published, a small letter is no answer.

    Its rule for MMLU (`multilingual`) removes formatting first, and knows the word in other
    languages.
    """

    name = "simple-evals"
    about = "about_reader_simple_evals"

    def __init__(self, *, multilingual: bool = False) -> None:
        self._multilingual = multilingual

    def read(self, text: str, sample: Sample) -> Answer:
        patterns: tuple[re.Pattern[str], ...] = (_SIMPLE_EVALS,)
        if self._multilingual:
            for formatting in _SIMPLE_EVALS_FORMATTING:
                text = text.replace(formatting, "")
            patterns = _SIMPLE_EVALS_WORDS
        for pattern in patterns:
            if match := pattern.search(text):
                letter = match[1].translate(_SIMPLE_EVALS_LETTERS)
                valid = letter in tuple(sample.labels)
                return Answer(letter, "strict") if valid else Answer(reason="invalid_label")
        return Answer(reason="no_marker")
