"""Decide the outcome of a reply, in one order for every exam and reader.

    1. no answer   a failure is an `error`: endpoint faults, including finish reasons such as
                   ``abort``, and replies that a filter stopped before an answer
    2. no label    a question without a published answer is `unlabelled`
    3. refusal     a refusal reported by the endpoint is `refused`, with any text
    4. limits      a question stopped by a limit on time, tokens or money is `truncated` and
                   scores 0 under every reader, with and without tools
    5. cut off     a reply at its token limit is `truncated`, unless the protocol's marker
                   announced a complete answer before: ``So the answer is (B)``
    6. reading     `correct`, `incorrect`, `unparsed`, or `refused` by an option that says so

Published readers do not know whether a reply was cut: under them a cut reply gets the score of the
answer that was read. Under Keju's readers it gets none. Its outcome is `truncated` under all.
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
"""Version of the order above. Stored scores of another version are not used. 1 is Keju 0.1's."""
REFUSED, CUT_OFF = "refused_by_api", "cut_off"
"""Reasons for an empty answer: the endpoint reported a refusal; the reply was cut off."""
LIMIT_CUTS = frozenset(get_args(LimitCut))
LIMIT_OF = "limit_of_"
"""Prefix of the reason of a reply that a limit of its question stopped: ``limit_of_time``."""
REFUSAL = "refusal"
"""Key of `Sample.metadata` that holds the label of a refusal option, if there is one."""
GRADED = frozenset(code for code, name in enumerate(ALL_OUTCOMES) if name not in UNSCORED)
"""The indices in `ALL_OUTCOMES` of the outcomes that count as answers."""
EXACT = "exact"
"""Grader of an open answer that must equal the target text, or did so without a judge."""
UNDECIDED = "undecided"
"""Grader of an answer that no rule decides; a judge may."""
LOST = frozenset(code for code, name in enumerate(ALL_OUTCOMES) if name in UNGRADED)
"""The indices in `ALL_OUTCOMES` of the outcomes without a grade."""
PASS = 0.5
"""The lowest score that counts as correct when scores are not all or nothing."""

# `B`, `(B)`: a label is complete wherever the reply ends; `1` could be the start of `12`.
_LABEL = re.compile(r"[A-Z]|\([A-Z]\)")
# Everything up to the last end of a sentence, bracket, tag or line: `So the answer is 12.` in `So
# the answer is 12. Let me ch`.
_COMPLETE_PART = re.compile(r".*[.!?。！？)\]}>）】」\n]", re.DOTALL)


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
    cut = reply.finish == CUT and not reply.compared
    if cut and not _is_whole(answer, reply.text, sample, reader):
        return _read_cut_off(answer, sample, reader)
    return Reading(reader.name, answer, _score(answer, sample, reader))


def read(reply: Reply, sample: Sample, reader: Reader) -> Answer:
    """Read the answer from the log-probabilities of labels or continuations if there are any, else
    from the text."""
    if reply.continuations is not None:
        return reader.choose(reply.continuations, sample)
    if reply.label_logprobs is not None:
        return choose_label(reply.label_logprobs, sample.labels)
    if reader.raw and reply.raw:
        return reader.read(reply.raw, sample)
    if not reply.text.strip():
        return Answer(reason="unclosed_think" if reply.reasoning and reply.raw else "empty")
    return reader.read(reply.text, sample)


def choose_label(logprobs: dict[str, float], labels: str) -> Answer:
    """Return the most likely label; in a tie the first label wins and the tie is flagged."""
    present = [(label, logprobs[label]) for label in labels if label in logprobs]
    if not present:
        return Answer(reason="labels_not_in_top_logprobs")
    best = max(value for _, value in present)
    winners = [label for label, value in present if value == best]
    return Answer(winners[0], "labels", reason="tie" if len(winners) > 1 else "")


def _is_whole(answer: Answer, text: str, sample: Sample, reader: Reader) -> bool:
    """Whether a reply that was cut off contains a complete answer in the requested form.

    The reply must be only a label, or contain the protocol's marker and an answer that ended before
    the cut. Such an answer is a label, or it stays the same when the last, incomplete part is
    removed.
    """
    if answer.value is None or answer.tier != "strict":
        return False
    if _LABEL.fullmatch(text.strip()):
        return True
    if not reader.marked:
        return False
    if _LABEL.fullmatch(answer.value):
        return True
    complete_part = _COMPLETE_PART.match(text)
    return complete_part is not None and reader.read(complete_part[0], sample).value == answer.value


def _read_cut_off(answer: Answer, sample: Sample, reader: Reader) -> Reading:
    """Return the reading of a reply that was cut off; published readers score it."""
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
    # Usually it is one number, so check the type first.
    if type(worth) is not float and isinstance(worth, Mapping):
        parts = {name: float(part) for name, part in worth.items()}
        worth = next(iter(parts.values()))
    value = float(worth)
    if value < 0 or value > 1 or not all(0 <= part <= 1 for part in parts.values()):
        raise ValueError(f"reader '{reader.name}' gives {parts or value!r}, which is not in [0, 1]")
    return Score(value, "correct" if value >= PASS else "incorrect", parts=parts)
