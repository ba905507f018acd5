"""Which answers a judge is asked about."""

from __future__ import annotations

from typing import Literal

from keju.types import Reply, Sample, Score

Strategy = Literal["rule", "llm", "llm_recall"]
UNDECIDED = "undecided"
"""Grader of an answer that no rule of an exam with open answers decides."""


def can_be_judged(reply: Reply, sample: Sample) -> bool:
    """Whether there is a text to grade and a target to compare it with.

    Errors and empty replies are no answers, and the likeliest label needs no interpreter.
    """
    text = reply.error is None and bool(reply.text.strip())
    return text and bool(sample.target) and reply.label_logprobs is None


def wants_judge(score: Score, strategy: Strategy, *, open_answers: bool) -> bool:
    """Whether the judge decides about an answer to which the rule gave `score`.

    ``llm_recall`` hands in what the rules left undecided and, of exams with closed answers, what
    the reader missed; what the rules of an exam with open answers decide is final.
    """
    if strategy == "rule" or score.outcome in ("error", "refused"):
        return False
    if score.outcome == "ungraded":
        return score.grader == UNDECIDED
    if strategy == "llm":
        return True
    return score.outcome in ("incorrect", "unparsed") and not open_answers
