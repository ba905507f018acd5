"""From a reply to an outcome: the rules that are equal for every exam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from keju.types import FILTERED, OUTCOMES, Answer, Reading, Reply, Sample, Score

if TYPE_CHECKING:
    from keju.benchmarks.base import Reader

REFUSAL = "refusal"
"""Key of `Sample.metadata` that holds the label of a refusal option, where one is offered."""

GRADED = frozenset(
    code for code, outcome in enumerate(OUTCOMES) if outcome not in ("error", "ungraded")
)
"""The places in `OUTCOMES` of what counts as an answer."""
PASS = 0.5
"""The least score that counts as correct where it is not all or nothing."""


def grade(reply: Reply, sample: Sample, reader: Reader) -> Reading:
    """Read `reply` and score it.

    An error of the endpoint is an error, never an answer; so is a reply that its filter broke off
    before anything could be read. Otherwise the finish reason of a reply without an answer says
    whether it was cut short. Without a gold answer nothing is graded.
    """
    if reply.error is not None:
        return Reading(reader.name, Answer(reason=reply.error.kind), Score(0.0, "error"))
    answer = read(reply, sample, reader)
    if answer.value is None and reply.finish == FILTERED:
        return Reading(reader.name, Answer(reason=FILTERED), Score(0.0, "error"))
    return Reading(reader.name, answer, _score(answer, reply, sample, reader))


def read(reply: Reply, sample: Sample, reader: Reader) -> Answer:
    """Read the answer out of the label log-probabilities, or else out of the text."""
    if reply.label_logprobs is not None:
        return choose_label(reply.label_logprobs, sample.labels)
    if not reply.text.strip():
        return Answer(reason="unclosed_think" if reply.reasoning and reply.raw else "empty")
    return reader.read(reply.text, sample)


def choose_label(logprobs: dict[str, float], labels: str) -> Answer:
    """The likeliest label; a tie goes to the first in label order and is flagged."""
    present = [(label, logprobs[label]) for label in labels if label in logprobs]
    if not present:
        return Answer(reason="labels_not_in_top_logprobs")
    best = max(value for _, value in present)
    winners = [label for label, value in present if value == best]
    return Answer(winners[0], "labels", reason="tie" if len(winners) > 1 else "")


def _score(answer: Answer, reply: Reply, sample: Sample, reader: Reader) -> Score:
    if not sample.target:
        return Score(0.0, "ungraded", "no_target")
    if answer.value is None:
        cut_short = reply.finish == "length" and reply.label_logprobs is None
        return Score(0.0, "truncated" if cut_short else "unparsed")
    if sample.metadata and answer.value == sample.metadata.get(REFUSAL):
        return Score(0.0, "refused")
    worth = reader.worth(answer.value, sample)
    if worth is None:
        return Score(0.0, "unparsed")
    parts: dict[str, float] = {}
    if type(worth) is not float and isinstance(worth, Mapping):  # one number, as usual, goes first
        parts = {name: float(part) for name, part in worth.items()}
        worth = next(iter(parts.values()))
    value = float(worth)
    if value < 0 or value > 1 or (parts and (min(parts.values()) < 0 or max(parts.values()) > 1)):
        raise ValueError(f"reader '{reader.name}' gives {parts or value!r}, which is not in [0, 1]")
    return Score(value, "correct" if value >= PASS else "incorrect", parts=parts)
