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


def wants_judge(score: Score, strategy: Strategy) -> bool:
    """Whether the judge decides about an answer to which the rule gave `score`.

    ``llm_recall`` hands in what the rule left undecided and what a reader missed; where a rule of
    an exam with open answers has decided, its name stands in `Score.grader` and that is final.
    """
    if score.outcome in ("error", "refused"):
        return False
    if score.outcome == "ungraded":
        return score.grader == UNDECIDED and strategy != "rule"
    if strategy == "llm":
        return True
    missed = score.outcome in ("incorrect", "unparsed") and not score.grader
    return strategy == "llm_recall" and missed
