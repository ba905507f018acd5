"""Several verdicts about one answer: what they come to, and how far they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from keju.judges.verdicts import GRADES, score_of
from keju.stats.agreement import kappa_of_labels, self_consistency

Votes = Sequence[str | None]
"""The verdicts of one judge about one answer, one for each repeat; None where there is none."""


def settled(votes: Votes) -> str | None:
    """The verdict that most votes give, an earlier one at a tie; the mean of scores."""
    given = [vote for vote in votes if vote is not None]
    if not given:
        return None
    if given[0] not in GRADES:
        return f"{sum(map(float, given)) / len(given):.6g}"
    counts = Counter(given)
    return max(counts, key=counts.__getitem__)


def consistency(answers: Sequence[Votes]) -> float | None:
    """Chance that two verdicts of one judge on one answer are the same, over all answers."""
    shares = []
    for votes in answers:
        share = self_consistency(Counter(vote for vote in votes if vote is not None).values())
        if share is not None:
            shares.append(share)
    return sum(shares) / len(shares) if shares else None


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
