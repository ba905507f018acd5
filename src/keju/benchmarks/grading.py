"""From a reply to an outcome: the order of judgement, equal for every exam and reader.

    1. no answer   what failed is an `error`: faults of the endpoint, also where a server calls them
                   a finish reason (``abort``), and what its filter broke off before an answer
    2. no label    a question without a published answer is `unlabelled`
    3. refusal     what the endpoint itself calls a refusal is `refused`, whatever text is there
    4. limits      a question that a limit of time, tokens or money has cut is `truncated` and
                   scores 0 under every reader, with and without tools
    5. cut off     a reply at its limit of tokens is `truncated`, unless the protocol's own marker
                   announced a whole answer before: ``So the answer is (B)``
    6. reading     `correct`, `incorrect`, `unparsed`, or `refused` by an option that says so

A cut reply has the score of what was read under published readers, which know nothing of cuts, and
none under Keju's own. Its outcome is `truncated` under all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

import msgspec

from keju.types import (
    ALL_OUTCOMES,
    CUT,
    FILTERED,
    UNGRADED,
    UNSCORED,
    Answer,
    LimitCut,
    Reading,
    Reply,
    Sample,
    Score,
)

if TYPE_CHECKING:
    from keju.benchmarks.base import Reader

VERSION = 2
"""Of the order above; stored scores of another one are not taken over. 1 is that of Keju 0.1."""
REFUSED, CUT_OFF = "refused_by_api", "cut_off"
"""Why nothing was read: the endpoint told a refusal; what a cut reply says does not count."""
LIMIT_CUTS = frozenset(get_args(LimitCut))
LIMIT_OF = "limit_of_"
"""Begins the reason of a reply that a limit of its question has cut: ``limit_of_time``."""
REFUSAL = "refusal"
"""Key of `Sample.metadata` that holds the label of a refusal option, where one is offered."""
GRADED = frozenset(code for code, name in enumerate(ALL_OUTCOMES) if name not in UNSCORED)
"""The places in `ALL_OUTCOMES` of what counts as an answer."""
EXACT = "exact"
"""Grader of an open answer that is, or for lack of a judge had to be, the target's very text."""
UNDECIDED = "undecided"
"""Grader of an answer that no rule decides; a judge may."""
LOST = frozenset(code for code, name in enumerate(ALL_OUTCOMES) if name in UNGRADED)
"""The places in `ALL_OUTCOMES` of what lacks a grade."""
PASS = 0.5
"""The least score that counts as correct where it is not all or nothing."""

# `B`, `(B)`: a label is whole wherever the reply ends; `1` may have become `12`.
_LABEL = re.compile(r"[A-Z]|\([A-Z]\)")
# Up to the last end of a sentence, bracket, tag or line: `So the answer is 12.` of
# `So the answer is 12. Let me ch`.
_ENDED = re.compile(r".*[.!?。！？)\]}>）】」\n]", re.DOTALL)


def grade(reply: Reply, sample: Sample, reader: Reader) -> Reading:
    """Read `reply` and score it, in the order above."""
    fault = reply.fault
    if fault is not None:
        return Reading(reader.name, Answer(reason=fault.kind), Score(0.0, "error"))
    answer = Answer(reason=REFUSED) if reply.refused else read(reply, sample, reader)
    if reply.finish == FILTERED and not _is_whole(answer, reply.text, sample, reader):
        return Reading(reader.name, Answer(reason=FILTERED), Score(0.0, "error"))
    if not sample.target:
        return Reading(reader.name, answer, Score(0.0, "unlabelled"))
    if reply.refused:
        return Reading(reader.name, answer, Score(0.0, "refused"))
    if reply.cut_by in LIMIT_CUTS:
        return Reading(reader.name, Answer(reason=LIMIT_OF + reply.cut_by), Score(0.0, "truncated"))
    cut = reply.finish == CUT and reply.label_logprobs is None
    if cut and not _is_whole(answer, reply.text, sample, reader):
        return _cut_off(answer, sample, reader)
    return Reading(reader.name, answer, _score(answer, sample, reader))


def read(reply: Reply, sample: Sample, reader: Reader) -> Answer:
    """Read the answer out of the label log-probabilities, or else out of the text."""
    if reply.label_logprobs is not None:
        return choose_label(reply.label_logprobs, sample.labels)
    if reader.raw and reply.raw:
        return reader.read(reply.raw, sample)
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


def _is_whole(answer: Answer, text: str, sample: Sample, reader: Reader) -> bool:
    """Whether a reply that was cut off had given its answer, in the form that was asked for.

    That is a reply of nothing but a label, or the protocol's own marker with an answer that ended
    before the cut: a label, or one that is read all the same without what was begun last.
    """
    if answer.value is None or answer.tier != "strict":
        return False
    if _LABEL.fullmatch(text.strip()):
        return True
    if not reader.marked:
        return False
    if _LABEL.fullmatch(answer.value):
        return True
    ended = _ENDED.match(text)
    return ended is not None and reader.read(ended[0], sample).value == answer.value


def _cut_off(answer: Answer, sample: Sample, reader: Reader) -> Reading:
    """A reply that was cut off before its answer: worth what a published reader makes of it."""
    if reader.scores_cut:
        score = _score(answer, sample, reader)
        return Reading(reader.name, answer, msgspec.structs.replace(score, outcome="truncated"))
    if answer.value is not None:
        answer = Answer(reason=CUT_OFF, cut=answer.cut, signs=answer.signs)
    return Reading(reader.name, answer, Score(0.0, "truncated"))


def _score(answer: Answer, sample: Sample, reader: Reader) -> Score:
    if answer.value is None:
        return Score(0.0, "unparsed")
    if sample.metadata and answer.value == sample.metadata.get(REFUSAL):
        return Score(0.0, "refused")
    worth = reader.worth(answer.value, sample)
    if worth is None:
        return Score(0.0, "ungraded", UNDECIDED)
    parts: dict[str, float] = {}
    if type(worth) is not float and isinstance(worth, Mapping):  # one number, as usual, goes first
        parts = {name: float(part) for name, part in worth.items()}
        worth = next(iter(parts.values()))
    value = float(worth)
    if value < 0 or value > 1 or (parts and (min(parts.values()) < 0 or max(parts.values()) > 1)):
        raise ValueError(f"reader '{reader.name}' gives {parts or value!r}, which is not in [0, 1]")
    return Score(value, "correct" if value >= PASS else "incorrect", parts=parts)
