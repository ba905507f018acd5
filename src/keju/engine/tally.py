"""The scoreboards of a job: what its replies are worth, and what its episodes did with their tools.

They stay small: one byte and one float for each question asked.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import NamedTuple, overload

import msgspec

from keju.benchmarks.grading import EXACT, PASS
from keju.files import Spool
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
    counted_outcomes,
)

KEPT_ANSWERS = 4096
"""Different answers that are kept in memory."""
PENDING = 255
"""The outcome byte of a unit that has no record yet."""

CODE: dict[Outcome, int] = {outcome: code for code, outcome in enumerate(ALL_OUTCOMES)}
SIGN_BITS: dict[Sign, int] = {sign: 1 << place for place, sign in enumerate(SIGNS)}


class Answers(Sequence[str | None]):
    """What was read, by unit: four bytes each, since most answers are one of few labels.

    The first few different texts are kept; others lie in a temporary file.
    """

    def __init__(self, units: int) -> None:
        self._numbers = array("I", bytes(4 * units))
        self._known: dict[str | None, int] = {None: 0}
        self._texts: list[str | None] = [None]
        self._others: Spool[str] = Spool(str)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, unit: int) -> str | None: ...
    @overload
    def __getitem__(self, unit: slice) -> list[str | None]: ...
    def __getitem__(self, unit: int | slice) -> str | list[str | None] | None:
        if isinstance(unit, slice):
            return [self[each] for each in range(*unit.indices(len(self)))]
        number = self._numbers[unit]
        if number < KEPT_ANSWERS:
            return self._texts[number]
        return self._others[number - KEPT_ANSWERS]

    def __setitem__(self, unit: int, answer: str | None) -> None:
        number = self._known.get(answer, -1)
        if number < 0 and len(self._texts) < KEPT_ANSWERS:
            number = self._known[answer] = len(self._texts)
            self._texts.append(answer)
        elif number < 0:
            assert answer is not None
            number = KEPT_ANSWERS + len(self._others)
            self._others.append(answer)
        self._numbers[unit] = number


class Tally:
    """The scores of one reader on one exam.

    A unit is one sample in one epoch, numbered ``sample * epochs + epoch``. Adding a unit again
    replaces what was known of it, so that a retried error is counted once.
    """

    def __init__(self, samples: int, epochs: int = 1, *, keep_answers: bool = False) -> None:
        self.samples = samples
        self.epochs = epochs
        self.outcomes = bytearray([PENDING]) * (samples * epochs)
        self.values = array("f", [0.0]) * (samples * epochs)
        self.answers: Answers | None = None
        """What was read, by unit; kept only where votes or predictions are needed.

        A label is that of the exam's own sample, so that equal labels mean equal options even
        where repeats of an item showed them in different orders (see `in_own_order`).
        """
        if keep_answers:
            self.answers = Answers(samples * epochs)
        self.counts = [0] * len(ALL_OUTCOMES)
        self.total = 0.0
        """Sum of the values of all units."""
        self.parts: dict[str, array[float]] = {}
        """By name: a grader's several numbers, by unit; 0 where it gave none."""

        self.signs = bytearray(samples * epochs)
        """By unit: what was noticed about the reply, a bit for each of `SIGNS`."""
        self.for_judge: set[int] = set()
        """Units that are wrong only for lack of a judge: not the target's very text."""

    def add(self, unit: int, reading: Reading) -> None:
        """Enter the score of one unit."""
        before = self.outcomes[unit]
        if before != PENDING:
            self.counts[before] -= 1
            self.total -= self.values[unit]
        code = CODE[reading.score.outcome]
        self.outcomes[unit] = code
        self.values[unit] = reading.score.value
        self.counts[code] += 1
        self.total += self.values[unit]
        if reading.score.grader == EXACT and reading.score.outcome == "incorrect":
            self.for_judge.add(unit)
        elif before != PENDING:
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
            for name in {**self.parts, **parts}:
                if name not in self.parts:
                    self.parts[name] = array("d", [0.0]) * len(self.outcomes)
                self.parts[name][unit] = parts.get(name, 0.0)

    def only(self, items: Iterable[int]) -> Tally:
        """The scoreboard as if nothing but these samples had been asked."""
        part = copy(self)
        part.outcomes = bytearray([PENDING]) * len(self.outcomes)
        for item in items:
            units = slice(item * self.epochs, (item + 1) * self.epochs)
            part.outcomes[units] = self.outcomes[units]
        part.values = array(
            "f",
            (
                0.0 if code == PENDING else value
                for code, value in zip(part.outcomes, self.values, strict=True)
            ),
        )
        seen = Counter(part.outcomes)
        part.counts = [seen[code] for code in range(len(ALL_OUTCOMES))]
        part.total = sum(part.values)
        return part

    def sign_counts(self) -> dict[Sign, int]:
        """How many replies show each sign."""
        seen = Counter(self.signs)
        return {
            sign: sum(n for signs, n in seen.items() if signs & bit)
            for sign, bit in SIGN_BITS.items()
        }

    def showing(self, sign: Sign) -> Iterator[int]:
        """The units whose replies show a sign."""
        bit = SIGN_BITS[sign]
        return (unit for unit, signs in enumerate(self.signs) if signs & bit)

    def has(self, item: int) -> bool:
        """Whether any unit of a sample has a record."""
        units = self.outcomes[item * self.epochs : (item + 1) * self.epochs]
        return units.count(PENDING) < self.epochs

    @property
    def done(self) -> int:
        """How many units have a record."""
        return sum(self.counts)

    @property
    def graded(self) -> int:
        """How many units are in the headline's denominator."""
        return self.done - sum(self.counts[CODE[outcome]] for outcome in UNSCORED)

    @property
    def right(self) -> int:
        """How many units have a score that passes; those without a grade have none."""
        return sum(value >= PASS for value in self.values)

    def outcome_counts(self) -> dict[Outcome, int]:
        """Counts by outcome, over all units."""
        return counted_outcomes(dict(zip(ALL_OUTCOMES, self.counts, strict=True)))


def in_own_order(reading: Reading, sample: Sample, order: Sequence[int]) -> Reading:
    """`reading` with its label as `sample` itself shows that option.

    `order` is the permutation in which the options were shown to the model; one that is not of
    these options changes nothing, nor does an answer that is no label.
    """
    own = sample.order or tuple(range(len(sample.choices)))
    label = reading.answer.value
    if tuple(order) == own or not label or label not in (*sample.labels,):
        return reading
    if sorted(order) != sorted(own):
        return reading
    moved = LABELS[own.index(order[LABELS.index(label)])]
    answer = msgspec.structs.replace(reading.answer, value=moved)
    return msgspec.structs.replace(reading, answer=answer)


LOST: frozenset[Stop] = frozenset({"server_lost", "kernel_died"})
"""Stop reasons of episodes whose last calls took the tools with them."""


class Call(NamedTuple):
    """One call of a tool."""

    tool: str
    kind: CallKind
    seconds: float
    queued: float
    size: int
    """Characters of its result."""


class ToolUse(NamedTuple):
    """One episode."""

    stop: Stop
    requests: int
    calls: tuple[Call, ...]
    unsafe: bool = False
    """Whether its code ran without a sandbox."""


def tool_use(episode: Episode) -> ToolUse:
    """What an episode did: every call of the model, also those that were never answered.

    A call without an answer crashed its server, or the episode ended before it was carried out.
    """
    unanswered: list[ToolCall] = []
    calls: list[Call] = []
    for turn in episode.turns:
        if turn.role == "assistant":
            unanswered += turn.calls
        elif turn.role == "tool":
            call = next((call for call in unanswered if call.id == turn.call), None)
            if call is not None:
                unanswered.remove(call)
            tool = call.name if call is not None else ""
            calls.append(Call(tool, turn.kind, turn.seconds, turn.queued, len(turn.text)))
    kind: CallKind = "server_crash" if episode.stop in LOST else "broken_off"
    calls += [Call(call.name, kind, 0.0, 0.0, 0) for call in unanswered]
    kernel = episode.facts.get("kernel", {})
    return ToolUse(episode.stop, episode.requests, tuple(calls), bool(kernel.get("unsafe")))
