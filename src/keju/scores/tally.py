"""The scoreboards of a job: the scores of its replies and the tool calls of its episodes.

They stay small: one byte and one float for each question asked.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, overload

import msgspec

from keju.benchmarks.expectations import PART_NAMES
from keju.benchmarks.grading import EXACT, PASS
from keju.files import SpooledSequence
from keju.types import (
    ALL_OUTCOMES,
    LABELS,
    SIGNS,
    UNSCORED,
    CallKind,
    Episode,
    Outcome,
    Reading,
    Sample,
    Sign,
    Stop,
    ToolCall,
    complete_counts,
)

KEPT_ANSWERS = 4096
"""Different answers that are kept in memory."""
PENDING = 255
"""The outcome byte of a unit that has no record yet."""

CODE: dict[Outcome, int] = {outcome: code for code, outcome in enumerate(ALL_OUTCOMES)}
SIGN_BITS: dict[Sign, int] = {sign: 1 << place for place, sign in enumerate(SIGNS)}


class AnswerTable(Sequence[str | None]):
    """The answers read, by unit. Each takes four bytes, since most answers are one of a few labels.

    The first few different texts are kept in memory. The others are in a temporary file.
    """

    def __init__(self, units: int) -> None:
        self._numbers = array("I", bytes(4 * units))
        self._text_numbers: dict[str | None, int] = {None: 0}
        self._texts: list[str | None] = [None]
        self._spooled_texts: SpooledSequence[str] = SpooledSequence(str)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, unit: int) -> str | None: ...
    @overload
    def __getitem__(self, unit: slice) -> list[str | None]: ...
    def __getitem__(self, unit: int | slice) -> str | list[str | None] | None:
        if isinstance(unit, slice):
            return [self[index] for index in range(*unit.indices(len(self)))]
        number = self._numbers[unit]
        if number < KEPT_ANSWERS:
            return self._texts[number]
        return self._spooled_texts[number - KEPT_ANSWERS]

    def __setitem__(self, unit: int, answer: str | None) -> None:
        number = self._text_numbers.get(answer, -1)
        if number < 0 and len(self._texts) < KEPT_ANSWERS:
            number = self._text_numbers[answer] = len(self._texts)
            self._texts.append(answer)
        elif number < 0:
            assert answer is not None
            number = KEPT_ANSWERS + len(self._spooled_texts)
            self._spooled_texts.append(answer)
        self._numbers[unit] = number


class Tally:
    """The scores of one reader on one exam.

    A unit is one sample in one epoch, numbered ``sample * epochs + epoch``. Adding a unit again
    replaces its earlier score, so that a retried error is counted once.
    """

    def __init__(self, samples: int, epochs: int = 1, *, keep_answers: bool = False) -> None:
        self.samples = samples
        self.epochs = epochs
        self.outcomes = bytearray([PENDING]) * (samples * epochs)
        self.values = array("f", [0.0]) * (samples * epochs)
        self.answers: AnswerTable | None = None
        """The answers, by unit. Kept only where votes or predictions are needed.

        A label refers to the order of the exam's own sample. So equal labels mean equal options,
        even where repeats of a question showed the options in different orders (see
        `restore_label`).
        """
        if keep_answers:
            self.answers = AnswerTable(samples * epochs)
        self.counts = [0] * len(ALL_OUTCOMES)
        self.total = 0.0
        """The sum of the values of all units."""
        self.parts: dict[str, array[float]] = {}
        """By name: the several numbers of a grader, by unit; 0 where it gave none. An assertion is
        not a number where the question does not have it."""

        self.items: dict[int, Any] = {}
        """By unit: what the metrics of the exam need of a reply; empty for most exams."""
        self.signs = bytearray(samples * epochs)
        """By unit: the signs noticed in the reply, one bit for each of `SIGNS`."""
        self.for_judge: set[int] = set()
        """Units that are wrong only because no judge has seen them: their answer is not exactly the
        target's text."""

    def add(self, unit: int, reading: Reading) -> None:
        """Enter the score of one unit."""
        old_code = self.outcomes[unit]
        if old_code != PENDING:
            self.counts[old_code] -= 1
            self.total -= self.values[unit]
        code = CODE[reading.score.outcome]
        self.outcomes[unit] = code
        self.values[unit] = reading.score.value
        self.counts[code] += 1
        self.total += self.values[unit]
        if reading.score.grader == EXACT and reading.score.outcome == "incorrect":
            self.for_judge.add(unit)
        elif old_code != PENDING:
            self.for_judge.discard(unit)
        answer = reading.answer
        signs = sum(SIGN_BITS[sign] for sign in answer.signs) if answer.signs else 0
        if answer.first is not None:
            signs |= SIGN_BITS["two_answers"]
        self.signs[unit] = signs
        if self.answers is not None:
            self.answers[unit] = answer.value
        parts = reading.score.parts
        if parts or self.parts:
            self._add_parts(unit, parts)

    def _add_parts(self, unit: int, parts: Mapping[str, float]) -> None:
        """Enter the partial scores of one unit. One that it lacks is 0, or for an assertion not a
        number."""
        for name in {**self.parts, **parts}:
            missing = math.nan if name in PART_NAMES else 0.0
            if name not in self.parts:
                self.parts[name] = array("d", [missing]) * len(self.outcomes)
            self.parts[name][unit] = parts.get(name, missing)

    def restrict_to(self, items: Iterable[int]) -> Tally:
        """Return the scoreboard as if only these samples had been asked."""
        subset_tally = copy(self)
        subset_tally.items = {}
        subset_tally.outcomes = bytearray([PENDING]) * len(self.outcomes)
        for sample in items:
            units = slice(sample * self.epochs, (sample + 1) * self.epochs)
            subset_tally.outcomes[units] = self.outcomes[units]
            numbers = range(sample * self.epochs, (sample + 1) * self.epochs)
            subset_tally.items |= {n: self.items[n] for n in numbers if n in self.items}
        subset_tally.values = array(
            "f",
            (
                0.0 if code == PENDING else value
                for code, value in zip(subset_tally.outcomes, self.values, strict=True)
            ),
        )
        code_counts = Counter(subset_tally.outcomes)
        subset_tally.counts = [code_counts[code] for code in range(len(ALL_OUTCOMES))]
        subset_tally.total = sum(subset_tally.values)
        return subset_tally

    def sign_counts(self) -> dict[Sign, int]:
        """Return how many replies show each sign."""
        mask_counts = Counter(self.signs)
        return {
            sign: sum(count for signs, count in mask_counts.items() if signs & bit)
            for sign, bit in SIGN_BITS.items()
        }

    def units_with_sign(self, sign: Sign) -> Iterator[int]:
        """Return the units whose replies show a sign."""
        bit = SIGN_BITS[sign]
        return (unit for unit, signs in enumerate(self.signs) if signs & bit)

    def has_record(self, item: int) -> bool:
        """Whether any unit of a sample has a record."""
        units = self.outcomes[item * self.epochs : (item + 1) * self.epochs]
        return units.count(PENDING) < self.epochs

    @property
    def done(self) -> int:
        """The number of units that have a record."""
        return sum(self.counts)

    @property
    def graded(self) -> int:
        """The number of units in the headline's denominator."""
        return self.done - sum(self.counts[CODE[outcome]] for outcome in UNSCORED)

    @property
    def passed_count(self) -> int:
        """The number of units with a passing score. Units without a grade have no score."""
        return sum(value >= PASS for value in self.values)

    def outcome_counts(self) -> dict[Outcome, int]:
        """Return the number of units with each outcome."""
        return complete_counts(dict(zip(ALL_OUTCOMES, self.counts, strict=True)))


def restore_label(reading: Reading, sample: Sample, order: Sequence[int]) -> Reading:
    """Return `reading` with its label in the order of `sample` itself.

    `order` is the permutation in which the options were shown to the model. Nothing changes if it
    is not a permutation of these options or if the answer is not a label.
    """
    sample_order = sample.order or tuple(range(len(sample.choices)))
    label = reading.answer.value
    if tuple(order) == sample_order or not label or label not in (*sample.labels,):
        return reading
    if sorted(order) != sorted(sample_order):
        return reading
    restored_label = LABELS[sample_order.index(order[LABELS.index(label)])]
    answer = msgspec.structs.replace(reading.answer, value=restored_label)
    return msgspec.structs.replace(reading, answer=answer)


LOST: frozenset[Stop] = frozenset({"server_lost", "kernel_died"})
"""Stop reasons of episodes whose last calls ended the tools."""


class ToolCallStats(NamedTuple):
    """One call of a tool."""

    tool: str
    kind: CallKind
    seconds: float
    queued: float
    size: int
    """Characters of its result."""


class EpisodeToolUse(NamedTuple):
    """The tool calls of one episode."""

    stop: Stop
    requests: int
    calls: tuple[ToolCallStats, ...]
    unsafe: bool = False
    """Whether its code ran without a sandbox."""


def summarize_tool_use(episode: Episode) -> EpisodeToolUse:
    """Return the tool use of an episode: every call of the model, including calls without a result.

    A call has no result if it crashed its server, or if the episode ended before it was carried
    out.
    """
    unanswered: list[ToolCall] = []
    calls: list[ToolCallStats] = []
    for turn in episode.turns:
        if turn.role == "assistant":
            unanswered += turn.calls
        elif turn.role == "tool":
            call = next((call for call in unanswered if call.id == turn.call), None)
            if call is not None:
                unanswered.remove(call)
            tool = call.name if call is not None else ""
            calls.append(ToolCallStats(tool, turn.kind, turn.seconds, turn.queued, len(turn.text)))
    kind: CallKind = "server_crash" if episode.stop in LOST else "broken_off"
    calls += [ToolCallStats(call.name, kind, 0.0, 0.0, 0) for call in unanswered]
    kernel = episode.facts.get("kernel", {})
    return EpisodeToolUse(episode.stop, episode.requests, tuple(calls), bool(kernel.get("unsafe")))
