"""Grading as an exam for the judge: its questions, how a verdict is read from a reply, and how
several verdicts on one answer are combined.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from keju.answers.segments import split_thinking
from keju.benchmarks.base import Exam, Reader, Subset
from keju.benchmarks.choices import restore_order
from keju.benchmarks.expectations import EXPECT, PARTS, with_verdict
from keju.benchmarks.grading import LIMIT_CUTS, UNDECIDED
from keju.judges.prompts import (
    ANSWER,
    CONTEXT,
    EVAL_MODE,
    PROTOCOLS,
    Kind,
    find_tag_contexts,
    neutralize,
    render,
    render_first,
)
from keju.scores.exam_scores import ExamScores
from keju.stats.agreement import kappa_of_labels, self_consistency
from keju.types import (
    BROKEN_FINISHES,
    CUT,
    FILTERED,
    Answer,
    Outcome,
    Prompt,
    Reading,
    Record,
    Reply,
    Sample,
    Score,
)

GRADER = "judge"
GRADES: dict[str, Outcome] = {
    "correct": "correct",
    "incorrect": "incorrect",
    "refused": "refused",
}
PASS = 0.5
"""A partly right answer counts as correct from this score on."""
CLAMPED = "clamped"
"""The reason of a verdict whose number was outside [0, 1]."""

INCOMPLETE = frozenset({CUT, FILTERED, *BROKEN_FINISHES})
"""Finish reasons of an incomplete reply. Such a reply has no verdict."""
BROKEN_OFF, NO_VERDICT, TWO_VERDICTS = "broken_off", "no_verdict", "two_verdicts"
"""Reasons why a reply has no verdict. A verdict with the last reason is doubtful: the reply
contains different ones."""

_TAGGED: dict[Kind, re.Pattern[str]] = {
    kind: re.compile(
        rf"<\s{{0,4}}{kind}\s{{0,4}}>([^<>]{{0,80}})<\s{{0,4}}/\s{{0,4}}{kind}\s{{0,4}}>",
        re.IGNORECASE,
    )
    for kind in ("grade", "score")
}
"""``<grade>correct</grade>``, ``< Grade > **Correct** </ grade>``."""
_NUMBER = re.compile(r"[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?", re.ASCII)
"""``1``, ``0.75``, ``.5``, ``7.5e-1``."""
_DECORATION = " \t*_`#."
"""Characters that may surround a verdict in its line."""
_MARKS = tuple("\"'“”‘’«»「」『』`")
_NEAR = 24
"""How many letters and digits before a verdict show whether it is repeated from an answer."""


class _ParsedVerdict(NamedTuple):
    """A verdict in a judge's reply, and whether its line contains anything else."""

    value: str
    reason: str
    is_alone: bool
    start: int
    end: int

    @property
    def tier(self) -> Literal["strict", "tolerant"]:
        """The tier of an answer that this verdict decides."""
        return "strict" if self.is_alone else "tolerant"


def read_verdict(text: str, prompt_text: str, kind: Kind, finish: str = "") -> Answer:
    """Return the verdict of a judge that got the prompt `prompt_text`; no value if there is none.

    An incomplete reply has no verdict. The last line that contains only a verdict decides. Without
    such a line all verdicts must be the same. Tags around anything else are ignored.

    If the answer itself writes verdicts, the least favourable verdict of the judge decides. A
    favourable verdict then counts only at the very end of a reply that does not repeat the answer
    there. So an answer can neither raise its grade nor escape a verdict by its own text.
    """
    if finish in INCOMPLETE:
        return Answer(reason=BROKEN_OFF)
    verdicts = list(_find_verdicts(text, kind))
    if not verdicts:
        return Answer(reason=NO_VERDICT)
    is_contradictory = len({verdict.value for verdict in verdicts}) > 1
    alone = [verdict for verdict in verdicts if verdict.is_alone]
    deciding_verdict = (alone or verdicts)[-1]
    if contexts := list(find_tag_contexts(prompt_text)):
        deciding_verdict = min(
            reversed(verdicts), key=lambda verdict: score_of(verdict.value).value
        )
        if _passes(deciding_verdict) and not _is_unquoted(verdicts[-1], text, contexts):
            return Answer(reason=NO_VERDICT)
    elif is_contradictory and not deciding_verdict.is_alone:
        return Answer(reason=TWO_VERDICTS)
    reason = TWO_VERDICTS if is_contradictory else deciding_verdict.reason
    return Answer(deciding_verdict.value, deciding_verdict.tier, reason)


def _find_verdicts(text: str, kind: Kind) -> Iterator[_ParsedVerdict]:
    for tagged in _TAGGED[kind].finditer(text):
        verdict = _parse_grade(tagged[1]) if kind == "grade" else _parse_score(tagged[1])
        if verdict is not None:
            start, end = tagged.span()
            line_end = text.find("\n", end)
            rest_of_line = text[text.rfind("\n", 0, start) + 1 : start]
            rest_of_line += text[end : line_end if line_end >= 0 else len(text)]
            is_alone = not rest_of_line.strip(_DECORATION)
            yield _ParsedVerdict(*verdict, is_alone, start, end)


def _passes(verdict: _ParsedVerdict) -> bool:
    return score_of(verdict.value).outcome == "correct"


def _is_unquoted(verdict: _ParsedVerdict, text: str, contexts: Iterable[str]) -> bool:
    """Whether the last verdict of a reply is the judge's own, and not repeated from an answer.

    `contexts` are the texts before the verdicts in the answer. A verdict in quotation marks counts
    as repeated, and so does a verdict after the same words.
    """
    before, after = text[: verdict.start], text[verdict.end :]
    if before.endswith(_MARKS) or any(map(str.isalnum, after)):
        return False
    preceding_letters = _last_letters(neutralize(before[-CONTEXT:]))
    return not any(preceding_letters.endswith(_last_letters(context)) for context in contexts)


def _last_letters(text: str) -> str:
    """Return the last letters and digits of `text`, normalised."""
    end = unicodedata.normalize("NFKC", html.unescape(html.unescape(text))).casefold()
    return "".join(filter(str.isalnum, end))[-_NEAR:]


def _parse_grade(tag_text: str) -> tuple[str, str] | None:
    word = tag_text.strip(" \t\r\n*_`\"'.!").casefold()
    return (word, "") if word in GRADES else None


def _parse_score(tag_text: str) -> tuple[str, str] | None:
    number = _NUMBER.fullmatch(tag_text.strip(" \t\r\n*_`"))
    if number is None:
        return None
    value = float(number[0])
    clamped_value = min(1.0, max(0.0, value))
    return f"{clamped_value:g}", "" if clamped_value == value else CLAMPED


def score_of(verdict: str | None) -> Score:
    """Return the score of a verdict. An answer without a verdict is ungraded, not 0."""
    if verdict is None:
        return Score(0.0, "ungraded", GRADER)
    if verdict in GRADES:
        return Score(float(verdict == "correct"), GRADES[verdict], GRADER)
    value = float(verdict)
    return Score(value, "correct" if value >= PASS else "incorrect", GRADER)


def reading_of(verdict: Answer) -> Reading:
    """Return a verdict as the reading of the judge's reply."""
    return Reading(VerdictReader.name, verdict, score_of(verdict.value))


class VerdictReader(Reader):
    """Reads a judge's verdict on one answer."""

    name = "verdict"

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def read(self, text: str, sample: Sample) -> Answer:
        return read_verdict(text, render(sample, self._kind).tail, self._kind)

    def matches(self, value: str, sample: Sample) -> bool:
        return score_of(value).outcome == "correct"


def combine_votes(votes: Sequence[str | None]) -> str | None:
    """Combine one judge's verdicts on one answer; None means a repeat without a verdict.

    Return the most frequent verdict, or the earliest at a tie (see `is_tie`). Return the mean of
    scores.
    """
    valid_votes = [vote for vote in votes if vote is not None]
    if not valid_votes:
        return None
    if valid_votes[0] not in GRADES:
        return f"{sum(map(float, valid_votes)) / len(valid_votes):.6g}"
    counts = Counter(valid_votes)
    return max(counts, key=counts.__getitem__)


def is_tie(votes: Sequence[str | None]) -> bool:
    """Whether no verdict has a majority, so that the order of the votes decides."""
    counts = sorted(Counter(vote for vote in votes if vote in GRADES).values())
    return len(counts) > 1 and counts[-1] == counts[-2]


def measure_consistency(answers: Iterable[Sequence[str | None]]) -> float | None:
    """Return the chance that two verdicts of one judge on one answer agree, over all answers."""
    vote_counts = (Counter(vote for vote in votes if vote is not None) for votes in answers)
    shares = [self_consistency(counts.values()) for counts in vote_counts]
    defined_shares = [share for share in shares if share is not None]
    return sum(defined_shares) / len(defined_shares) if defined_shares else None


def measure_agreement(
    first_verdicts: Sequence[str | None], second_verdicts: Sequence[str | None]
) -> dict[str, Any]:
    """Return how well two judges agree on the answers for which both gave a verdict."""
    verdict_pairs = [
        (a, b)
        for a, b in zip(first_verdicts, second_verdicts, strict=True)
        if a is not None and b is not None
    ]
    if not verdict_pairs:
        return {"n": 0, "disagreements": 0, "observed": None, "kappa": None}
    labels = [(score_of(a).outcome, score_of(b).outcome) for a, b in verdict_pairs]
    kappa = kappa_of_labels([a for a, _ in labels], [b for _, b in labels])
    return {
        "n": len(verdict_pairs),
        "disagreements": sum(a != b for a, b in labels),
        "observed": kappa.observed,
        "kappa": kappa.value,
    }


PREFIX = "judge:"


class CandidateAnswer(NamedTuple):
    """A candidate's answer that is given to a judge."""

    unit: int
    """The answer's unit in the candidate's job."""
    hash: str
    question: Sample
    """The judge's question: the candidate's question with target and answer."""
    readings: tuple[Reading, ...]
    """The readings by the rules."""
    is_judged: tuple[bool, ...]
    """For each of these readings, whether the judge decides it."""

    def apply_verdict(self, verdict: str | None) -> tuple[Reading, ...]:
        """Return the readings with the judge's verdict; a cut reply keeps the outcome
        ``truncated``."""
        score = cut_off = score_of(verdict)
        if score.outcome != "ungraded":
            cut_off = Score(score.value, "truncated", GRADER)
        return tuple(
            replace(
                reading,
                score=with_verdict(
                    reading.score,
                    cut_off if reading.score.outcome == "truncated" else score,
                    self.question,
                ),
            )
            if judged
            else reading
            for reading, judged in zip(self.readings, self.is_judged, strict=True)
        )


def submit(job: ExamScores, unit: int, record: Record, strategy: str) -> CandidateAnswer | None:
    """Return the answer in a graded record for the judge; None if the judge has nothing to decide.

    The judge gets the open answer that was read, or else the text that the readers got. Errors and
    empty replies are not answers, and a choice by likelihood needs no judge.
    """
    readings, is_open = record.readings, job.exam.open_answers
    judged = tuple(
        wants_judge(reading.score, strategy, open_answers=is_open) for reading in readings
    )
    reply = record.reply
    if not any(judged) or reply.error is not None or reply.compared:
        return None
    if reply.cut_by in LIMIT_CUTS:  # a reply over a limit scores 0, with any text
        return None
    index, epoch = divmod(unit, job.epochs)
    sample = restore_order(job.exam.samples[index], record.order)
    text = readings[0].answer.value if is_open else None
    if text is None:
        text = split_thinking(job.filter_reply(reply).text).text
    if not text.strip() or not sample.target:
        return None
    return CandidateAnswer(
        unit, record.hash, make_judge_sample(sample, text, unit, epoch), readings, judged
    )


def wants_judge(score: Score, strategy: str, *, open_answers: bool) -> bool:
    """Whether the judge decides on an answer that got `score` from the rules.

    For exams with open answers, the rules' decisions are final: a judge can neither lower nor raise
    them. With ``llm_recall`` the judge gets only undecided answers and, for exams with closed
    answers, those that the reader missed.
    """
    if strategy == "rule" or score.outcome in ("error", "refused"):
        return False
    if score.outcome == "ungraded":
        return score.grader == UNDECIDED
    if open_answers and score.outcome in ("correct", "incorrect"):
        return False
    if strategy == "llm":
        return True
    if score.parts.get(PARTS["answer"]) == 1.0:  # only its assertions fail
        return False
    return score.outcome in ("incorrect", "unparsed") and not open_answers


def make_judge_sample(sample: Sample, text: str, index: int = 0, epoch: int = 0) -> Sample:
    """Return the answer `text` to `sample` as a question for the judge.

    Its id is the sample's id. Repeats after the first add their number.
    """
    mode = sample.metadata.get(EVAL_MODE)
    return Sample(
        id=f"{sample.id}#{epoch}" if epoch else sample.id,
        subset=sample.subset,
        index=index,
        text=sample.text,
        target=sample.target,
        choices=sample.choices,
        metadata={ANSWER: text}
        | ({} if mode is None else {EVAL_MODE: mode})
        | {key: sample.metadata[key] for key in (EXPECT,) if key in sample.metadata},
    )


class JudgeExam(Exam):
    """The answers of one exam, to be graded one by one."""

    def __init__(
        self,
        name: str,
        samples: Sequence[Sample],
        kind: Kind,
        write: Callable[[Sample, Kind], Prompt] = render,
    ) -> None:
        super().__init__(
            benchmark=PREFIX + name,
            protocol=PROTOCOLS[kind],
            samples=samples,
            subsets=(Subset(name, 0, len(samples)),),
            readers={VerdictReader.name: VerdictReader(kind)},
        )
        self.kind = kind
        self._write = write

    def with_first_prompt(self) -> JudgeExam:
        """Return the same answers with the prompt of version 0.1."""
        return JudgeExam(self.benchmark.removeprefix(PREFIX), self.samples, self.kind, render_first)

    def render(self, sample: Sample) -> Prompt:
        return self._write(sample, self.kind)

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        """Read the verdict. A failed attempt has none; its reading gives the reason."""
        if reply.error is not None and not reply.text:
            return Reading(reader.name, Answer(reason=reply.error.kind), Score(0.0, "error"))
        prompt_text = self.render(sample).tail
        verdict = reading_of(read_verdict(reply.text, prompt_text, self.kind, reply.finish))
        has_failed = reply.error is not None
        return replace(verdict, score=Score(0.0, "error")) if has_failed else verdict
