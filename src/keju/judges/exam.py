"""Grading answers as an exam like any other: what a judge is asked about, how a verdict is read out
of what it said, and what several about one answer come to.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from keju.answers.segments import split_thinking
from keju.benchmarks.base import Exam, Reader, Subset
from keju.benchmarks.choices import restore_order
from keju.benchmarks.grading import LIMIT_CUTS, UNDECIDED
from keju.engine.job import Job
from keju.judges.prompts import (
    ANSWER,
    CONTEXT,
    EVAL_MODE,
    PROTOCOLS,
    Kind,
    before_tags,
    harmless,
    render,
    render_first,
)
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
"""The score from which a partly right answer counts as correct."""
CLAMPED = "clamped"
"""Reason of a verdict whose number lay outside [0, 1]."""

INCOMPLETE = frozenset({CUT, FILTERED, *BROKEN_FINISHES})
"""Finish reasons of a reply that broke off: nothing in it is a verdict."""
BROKEN_OFF, NO_VERDICT, TWO_VERDICTS = "broken_off", "no_verdict", "two_verdicts"
"""Why a reply has no verdict. A verdict with the last reason is in doubt: others are beside it."""

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
"""What may stand beside a verdict in its line."""
_MARKS = tuple("\"'“”‘’«»「」『』`")
_NEAR = 24
"""Letters and digits before a verdict that show whether it is repeated from an answer."""


class _Verdict(NamedTuple):
    """A verdict in a judge's reply, and whether there is nothing else in its line."""

    value: str
    reason: str
    alone: bool
    start: int
    end: int


def read_verdict(text: str, shown: str, kind: Kind, finish: str = "") -> Answer:
    """The verdict of a judge that was `shown` a prompt; no value if there is none.

    Nothing counts in a reply that broke off. The last line that is nothing but a verdict decides;
    without such a line all verdicts must be the same. Tags around something that is no verdict are
    passed over.

    About an answer that writes verdicts itself the least favourable one decides, and a favourable
    one only at the very end of a reply that does not repeat the answer there. So an answer can
    neither raise its grade nor escape a verdict by what it writes.
    """
    if finish in INCOMPLETE:
        return Answer(reason=BROKEN_OFF)
    verdicts = list(_verdicts(text, kind))
    if not verdicts:
        return Answer(reason=NO_VERDICT)
    differ = len({each.value for each in verdicts}) > 1
    chosen = next((each for each in reversed(verdicts) if each.alone), verdicts[-1])
    if contexts := list(before_tags(shown)):
        chosen = min(reversed(verdicts), key=lambda each: score_of(each.value).value)
        if _passes(chosen) and not _is_own(verdicts[-1], text, contexts):
            return Answer(reason=NO_VERDICT)
    elif differ and not chosen.alone:
        return Answer(reason=TWO_VERDICTS)
    reason = TWO_VERDICTS if differ else chosen.reason
    return Answer(chosen.value, "strict" if chosen.alone else "tolerant", reason)


def _verdicts(text: str, kind: Kind) -> Iterator[_Verdict]:
    for tagged in _TAGGED[kind].finditer(text):
        verdict = _grade(tagged[1]) if kind == "grade" else _score(tagged[1])
        if verdict is not None:
            start, end = tagged.span()
            line_end = text.find("\n", end)
            beside = text[text.rfind("\n", 0, start) + 1 : start]
            beside += text[end : line_end if line_end >= 0 else len(text)]
            alone = not beside.strip(_DECORATION)
            yield _Verdict(*verdict, alone, start, end)


def _passes(verdict: _Verdict) -> bool:
    return score_of(verdict.value).outcome == "correct"


def _is_own(verdict: _Verdict, text: str, contexts: Iterable[str]) -> bool:
    """Whether the last verdict of a reply is the judge's own, and not repeated from an answer.

    `contexts` are what the answer has before the verdicts that it writes. One that stands in
    quotation marks is repeated, and one after the same words.
    """
    before, after = text[: verdict.start], text[verdict.end :]
    if before.endswith(_MARKS) or any(map(str.isalnum, after)):
        return False
    said = _letters(harmless(before[-CONTEXT:]))
    return not any(said.endswith(_letters(context)) for context in contexts)


def _letters(text: str) -> str:
    """The last letters and digits of `text`, in one spelling."""
    end = unicodedata.normalize("NFKC", html.unescape(html.unescape(text))).casefold()
    return "".join(filter(str.isalnum, end))[-_NEAR:]


def _grade(said: str) -> tuple[str, str] | None:
    word = said.strip(" \t\r\n*_`\"'.!").casefold()
    return (word, "") if word in GRADES else None


def _score(said: str) -> tuple[str, str] | None:
    number = _NUMBER.fullmatch(said.strip(" \t\r\n*_`"))
    if number is None:
        return None
    value = float(number[0])
    inside = min(1.0, max(0.0, value))
    return f"{inside:g}", "" if inside == value else CLAMPED


def score_of(verdict: str | None) -> Score:
    """What a verdict is worth; without one an answer is ungraded, and never 0 for that."""
    if verdict is None:
        return Score(0.0, "ungraded", GRADER)
    if verdict in GRADES:
        return Score(float(verdict == "correct"), GRADES[verdict], GRADER)
    value = float(verdict)
    return Score(value, "correct" if value >= PASS else "incorrect", GRADER)


def reading_of(verdict: Answer) -> Reading:
    """A verdict as the reading of the judge's reply."""
    return Reading(VerdictReader.name, verdict, score_of(verdict.value))


class VerdictReader(Reader):
    """Reads the verdict of a judge about one answer."""

    name = "verdict"

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def read(self, text: str, sample: Sample) -> Answer:
        return read_verdict(text, render(sample, self._kind).tail, self._kind)

    def matches(self, value: str, sample: Sample) -> bool:
        return score_of(value).outcome == "correct"


def settled(votes: Sequence[str | None]) -> str | None:
    """What one judge's verdicts on one answer come to; None among them is a repeat without one.

    The verdict that most votes give, an earlier one at a tie (see `is_tie`); the mean of scores.
    """
    given = [vote for vote in votes if vote is not None]
    if not given:
        return None
    if given[0] not in GRADES:
        return f"{sum(map(float, given)) / len(given):.6g}"
    counts = Counter(given)
    return max(counts, key=counts.__getitem__)


def is_tie(votes: Sequence[str | None]) -> bool:
    """Whether no verdict has most votes, so that the order of asking decides."""
    counts = sorted(Counter(vote for vote in votes if vote in GRADES).values())
    return len(counts) > 1 and counts[-1] == counts[-2]


def consistency(answers: Iterable[Sequence[str | None]]) -> float | None:
    """Chance that two verdicts of one judge on one answer are the same, over all answers."""
    counted = (Counter(vote for vote in votes if vote is not None) for votes in answers)
    shares = [self_consistency(counts.values()) for counts in counted]
    defined = [share for share in shares if share is not None]
    return sum(defined) / len(defined) if defined else None


def agreement(first: Sequence[str | None], second: Sequence[str | None]) -> dict[str, Any]:
    """How far two judges agree about the answers that both have a verdict on."""
    both = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if not both:
        return {"n": 0, "disagreements": 0, "observed": None, "kappa": None}
    labels = [(score_of(a).outcome, score_of(b).outcome) for a, b in both]
    kappa = kappa_of_labels([a for a, _ in labels], [b for _, b in labels])
    return {
        "n": len(both),
        "disagreements": sum(a != b for a, b in labels),
        "observed": kappa.observed,
        "kappa": kappa.value,
    }


PREFIX = "judge:"


class Submission(NamedTuple):
    """An answer of the candidate that is handed to a judge."""

    unit: int
    """Of the candidate's job."""
    hash: str
    question: Sample
    """What the judge is asked: the question as the candidate saw it, with target and answer."""
    readings: tuple[Reading, ...]
    """What the rules made of the answer."""
    judged: tuple[bool, ...]
    """Which of these readings the judge decides."""

    def decided(self, verdict: str | None) -> tuple[Reading, ...]:
        """The readings with the judge's word; a reply that was cut off stays one."""
        score = cut_off = score_of(verdict)
        if score.outcome != "ungraded":
            cut_off = Score(score.value, "truncated", GRADER)
        return tuple(
            replace(reading, score=cut_off if reading.score.outcome == "truncated" else score)
            if judged
            else reading
            for reading, judged in zip(self.readings, self.judged, strict=True)
        )


def submit(job: Job, unit: int, record: Record, strategy: str) -> Submission | None:
    """The answer in a graded record as it is handed in; None if the judge has nothing to decide.

    The judge sees what was read as an open answer, and else what the readers were given. Errors
    and empty replies are not answers, and the likeliest label needs no interpreter.
    """
    readings, is_open = record.readings, job.exam.open_answers
    judged = tuple(wants_judge(each.score, strategy, open_answers=is_open) for each in readings)
    reply = record.reply
    if not any(judged) or reply.error is not None or reply.label_logprobs is not None:
        return None
    if reply.cut_by in LIMIT_CUTS:  # it scores 0, whatever it says
        return None
    index, epoch = divmod(unit, job.epochs)
    sample = restore_order(job.exam.samples[index], record.order)
    text = readings[0].answer.value if is_open else None
    if text is None:
        text = split_thinking(job.filter_reply(reply).text).text
    if not text.strip() or not sample.target:
        return None
    return Submission(unit, record.hash, handed_in(sample, text, unit, epoch), readings, judged)


def wants_judge(score: Score, strategy: str, *, open_answers: bool) -> bool:
    """Whether the judge decides about an answer to which the rule gave `score`.

    What the rules of an exam with open answers decide is final, on both sides: a judge can neither
    lower the share that they find right nor raise it. ``llm_recall`` hands in what they left
    undecided and, of exams with closed answers, what the reader missed.
    """
    if strategy == "rule" or score.outcome in ("error", "refused"):
        return False
    if score.outcome == "ungraded":
        return score.grader == UNDECIDED
    if open_answers and score.outcome in ("correct", "incorrect"):
        return False
    if strategy == "llm":
        return True
    return score.outcome in ("incorrect", "unparsed") and not open_answers


def handed_in(sample: Sample, text: str, index: int = 0, epoch: int = 0) -> Sample:
    """The answer `text` to `sample` as a question for the judge.

    Its id is the sample's own; the repeats of an answer after the first carry their number.
    """
    mode = sample.metadata.get(EVAL_MODE)
    return Sample(
        id=f"{sample.id}#{epoch}" if epoch else sample.id,
        subset=sample.subset,
        index=index,
        text=sample.text,
        target=sample.target,
        choices=sample.choices,
        metadata={ANSWER: text} | ({} if mode is None else {EVAL_MODE: mode}),
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

    def earlier(self) -> JudgeExam:
        """The same answers as version 0.1 asked about them."""
        return JudgeExam(self.benchmark.removeprefix(PREFIX), self.samples, self.kind, render_first)

    def render(self, sample: Sample) -> Prompt:
        return self._write(sample, self.kind)

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        """Read the verdict; a failed attempt has none, and says why."""
        if reply.error is not None and not reply.text:
            return Reading(reader.name, Answer(reason=reply.error.kind), Score(0.0, "error"))
        shown = self.render(sample).tail
        verdict = reading_of(read_verdict(reply.text, shown, self.kind, reply.finish))
        failed = reply.error is not None
        return replace(verdict, score=Score(0.0, "error")) if failed else verdict
