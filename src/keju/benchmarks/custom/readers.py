"""The readers available to custom exams: option letters, and texts compared by value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from keju.answers.kinds import AnswerKind, Choice, Number, Text
from keju.answers.reader import Reader, choose_highest
from keju.answers.robust import ACCEPTED as ACCEPTED
from keju.answers.robust import RobustReader
from keju.answers.segments import SILENT, find_segments
from keju.answers.wordings import ANSWER_COLON
from keju.benchmarks.custom.exam_file import OPTION_READERS, ExamFile, Kind, ReaderRule
from keju.benchmarks.custom.statements import states_answer
from keju.config.patterns import compile_pattern
from keju.errors import ConfigError
from keju.types import Answer, ContinuationScore, Sample

LETTER = "letter"
MARKERS = {"en": ANSWER_COLON, "zh": re.compile(r"答案[:：]")}
"""The markers that Keju's prompts request: ``ANSWER: X``, ``答案：X``."""


class RuleReader(RobustReader):
    """Reads the last part of a reply that matches a rule of the exam file."""

    def __init__(self, kind: AnswerKind, rule: ReaderRule) -> None:
        marker = re.compile(re.escape(rule.marker or ""))
        self._parts: Callable[[str], list[str]]
        if rule.regex is not None:
            self._parts = compile_pattern(rule.regex).all_matches
        else:
            self._parts = lambda text: [part.text for part in find_segments(text, marker)]
        name = "marker" if rule.regex is None else "regex"
        super().__init__(kind, strict=marker, name=name, about=f"custom.about_reader_{name}")

    def read(self, text: str, sample: Sample) -> Answer:
        for part in reversed(self._parts(text)):
            value, reason = self._kind_of(sample).read(part, sample)
            if (value, reason) not in SILENT:
                return Answer(value, "strict" if value else "", reason)
        return Answer(reason="no_marker")


class ExactTextReader(Reader):
    """The full reply, compared exactly."""

    name = "exact"
    about = "custom.about_reader_exact"
    marked = False

    def read(self, text: str, sample: Sample) -> Answer:
        stripped_text = text.strip()
        return Answer(stripped_text, "strict") if stripped_text else Answer(reason="empty")

    def matches(self, value: str, sample: Sample) -> bool:
        accepted = sample.metadata.get(ACCEPTED) or (sample.target,)
        return any(value == accepted_text.strip() for accepted_text in accepted)


class FreeTextReader(RobustReader):
    """Reads an answer as text. A whole sentence that states the right answer counts as right."""

    version = RobustReader.version + 1

    def matches(self, value: str, sample: Sample) -> bool:
        if super().matches(value, sample):
            return True
        accepted = sample.metadata.get(ACCEPTED) or (sample.target,)
        if sample.choices or not sample.target:
            return False
        return any(states_answer(value, target, sample.text) for target in accepted)


class OptionReader(Reader):
    """Takes the option whose text has the highest log-probability, per character if `normalized`.

    These are the metrics ``acc`` and ``acc_norm`` of lm-eval.
    """

    marked = False

    def __init__(self, name: str, *, normalized: bool = False) -> None:
        self.name, self._normalized = name, normalized
        self.about = f"custom.about_reader_{name}"

    def read(self, text: str, sample: Sample) -> Answer:
        return Answer(reason="no_logprobs")

    def choose(self, scores: Sequence[ContinuationScore], sample: Sample) -> Answer:
        lengths = [len(choice) if self._normalized else 1 for choice in sample.choices]
        return choose_highest(
            [score.logprob / length for score, length in zip(scores, lengths, strict=False)], sample
        )


def make_option_readers() -> dict[str, Reader]:
    """Return the readers of log-probabilities of options."""
    readers = [OptionReader(OPTION_READERS[0]), OptionReader(OPTION_READERS[1], normalized=True)]
    return {reader.name: reader for reader in readers}


def make_readers(exam: ExamFile, kind: Kind) -> tuple[str, dict[str, Reader]]:
    """Return the name of the main reader, and all readers for an exam of this kind."""
    if exam.grader is not None:
        from keju.benchmarks.custom.programs import make_program_readers

        return make_program_readers(exam)
    rule = None if exam.decode == "continuations" else exam.reader
    answers, readers = READERS_OF_KINDS[kind](kind, MARKERS[exam.language])
    if isinstance(rule, ReaderRule):
        if kind == "mixed":
            raise ConfigError("custom.rule_of_mixed")
        readers.append(RuleReader(answers, rule))
    by_name = {reader.name: reader for reader in readers}
    name = readers[-1].name if isinstance(rule, ReaderRule) else rule or readers[0].name
    if name not in by_name:
        raise ConfigError(f"custom.reader_of_{kind}", name=name, valid=[*by_name])
    return name, by_name


def _choice_readers(_: Kind, strict: re.Pattern[str]) -> tuple[AnswerKind, list[Reader]]:
    options, about = Choice(), "custom.about_reader_letter"
    letter = RobustReader(options, strict=strict, name=LETTER, about=about)
    return options, [letter, RobustReader(options, strict=strict)]


def _text_readers(kind: Kind, strict: re.Pattern[str]) -> tuple[AnswerKind, list[Reader]]:
    about = "custom.about_reader_number"
    text, number = Text(), Number(anywhere=True)
    number_reader = RobustReader(
        _kind_by_options(kind, number), strict=strict, name="number", about=about
    )
    free_text = FreeTextReader(_kind_by_options(kind, text), strict=strict)
    return text, [free_text, ExactTextReader(), number_reader]


def _math_readers(_: Kind, __: re.Pattern[str]) -> tuple[AnswerKind, list[Reader]]:
    from keju.answers.mathematics.kind import Mathematics, make_math_reader
    from keju.answers.mathematics.qwen import QwenReader
    from keju.answers.mathematics.simple_evals import SimpleEvalsReader

    return Mathematics(), [make_math_reader(), QwenReader(), SimpleEvalsReader()]


READERS_OF_KINDS: Mapping[
    Kind, Callable[[Kind, re.Pattern[str]], tuple[AnswerKind, list[Reader]]]
] = {
    "choice": _choice_readers,
    "free": _text_readers,
    "mixed": _text_readers,
    "math": _math_readers,
}
"""For each kind of exam: its kind of answers and its readers, from the marker of Keju's prompts."""


def _kind_by_options(
    kind: Kind, free_kind: AnswerKind
) -> AnswerKind | Callable[[Sample], AnswerKind]:
    """Return the kind of free answers, or for a mixed exam the kind of each sample's answers."""
    if kind == "free":
        return free_kind
    options = Choice()
    return lambda sample: options if sample.choices else free_kind
