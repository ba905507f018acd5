"""The scores of one exam in one arm, by the requests that its replies answer."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from keju.benchmarks import grading
from keju.benchmarks.base import Exam, Reader
from keju.benchmarks.choices import restore_order
from keju.config import ReplyFilters
from keju.config.patterns import compile_pattern
from keju.errors import Notice
from keju.redaction import mask_secrets
from keju.runs.manifest import StoredData, StoredExam, StoredProtocol, StoredStop
from keju.scores.question_limits import (
    CutCause,
    QuestionLimits,
    find_cut_cause,
    find_ignored_limit,
)
from keju.scores.reply_checks import ReplyChecks
from keju.scores.tally import EpisodeToolUse, Tally, restore_label, summarize_tool_use
from keju.scores.usage import UnitTokens, UsageMeter
from keju.types import (
    FILTERED,
    Answer,
    Continuation,
    Fault,
    LimitCut,
    Prefix,
    Reading,
    Record,
    Reply,
    Request,
    Sample,
    Sampling,
    Score,
)

BROKEN_OFF = Fault(FILTERED, "the endpoint's filter broke the reply off before an answer")
"""The fault of a reply that came but counts as an error."""
MAX_NAMES, OTHER_NAMES = 1000, "…"
"""An endpoint may report at most this many names for its model. Further names are counted as
one."""
READER_FAILED = "reader_failed"
"""The grader of a reply on which a reader failed."""


class ExamScores:
    """An exam in one arm, the settings used to ask it, and the scores so far.

    A unit is one sample in one epoch. The hash of its request identifies it. The hash covers model,
    sampling, prompt, sample and epoch, but not the address of the endpoint. So another port or a
    larger limit reuses every reply that is still valid.
    """

    def __init__(
        self,
        exam: Exam,
        sampling: Sampling,
        readers: Sequence[Reader],
        *,
        model: str,
        epochs: int = 1,
        filters: ReplyFilters | None = None,
        detailed: bool = False,
        arm: str = "",
        setup: Mapping[str, Any] | None = None,
        repeat_seed: int = 0,
        limits: QuestionLimits | None = None,
    ) -> None:
        """Create the scores of an exam without replies.

        `setup` holds the tools and limits of the arm, which tell it from other arms. `limits` are
        those of each question and apply in every arm. `detailed` scores keep the answers and
        the tokens of each reply.
        """
        self.exam = exam
        self.model = model
        self.sampling = sampling
        self.epochs = epochs
        self.arm = arm
        self.acts = setup is not None or exam.notebook is not None
        """Whether the model has tools, so that its replies are episodes."""
        self._repeat_seed = repeat_seed
        self.filters = filters if filters and filters.changes_replies else None
        self.use_readers(readers, keep_answers=detailed or epochs > 1 or exam.keeps_answers)
        self.units = len(exam.samples) * epochs
        self.uses: dict[int, EpisodeToolUse] = {}
        """The tool calls of the episodes, by unit, where the model acts."""
        self.calls = self.failed_calls = 0
        self.meter = UsageMeter()
        """The requests and tokens of the records that count."""
        self.ledger = UnitTokens(self.units) if arm or detailed else None
        """The tokens of each unit's reply, where they are compared."""
        labelled_units = self.units if sampling.decode == "labels" else 0
        self.unlabelled_mass = array("f", [0.0]) * labelled_units
        """The probability of everything that is not a label, by unit, where labels are compared."""
        self.errors: dict[int, Fault] = {}
        """The faults of units that ended in an error."""
        self.thoughts_cut = bytearray(self.units)
        """By unit: whether a think block was cut out of the reply before readers saw it."""
        self.short_of_limit: set[int] = set()
        """Units whose reply was cut off with tokens to spare, because the model's context was
        full."""
        self.limits = limits
        self.cuts: dict[int, CutCause] = {}
        """The causes that cut replies, by unit."""
        self.ignored_limits: dict[int, LimitCut] = {}
        """Limits that replies exceed without being cut, by unit, as in version 1.0."""
        self.reported_names: Counter[str] = Counter()
        """The names that the endpoint reported for its model, with the number of replies that
        count."""
        self._name_numbers = {"": 0}
        self.checks = ReplyChecks(self)
        """Checks for faults of the endpoint that only many replies together show."""
        self.stopping: StoredStop | None = None
        """How a stopping rule ended the exam, where one did."""
        self.watcher: Callable[[int, Record], None] | None = None
        """Called with each unit and its record when the record is entered or replaced."""
        identity = (exam.benchmark, model, arm, mask_secrets(msgspec.to_builtins(sampling)))
        identity += (setup,) if setup else ()
        self._fingerprint = msgspec.json.encode(identity, order="deterministic")
        self._hashers: dict[int, tuple[Prefix, hashlib.blake2b]] = {}

    @cached_property
    def seconds(self) -> array[float]:
        """How long each unit's reply took. Created on first use, since the viewer never needs
        it."""
        return array("f", [0.0]) * self.units

    @cached_property
    def _reporters(self) -> array[int]:
        """By unit: the number of the reported name in `_name_numbers`, 0 where no name was
        reported."""
        return array("H", [0]) * self.units

    def use_readers(self, readers: Sequence[Reader], *, keep_answers: bool) -> None:
        """Use these readers, the headline's first. Call this before any record is entered."""
        self.readers = tuple(readers)
        samples = len(self.exam.samples)
        self.tallies = [
            Tally(samples, self.epochs, keep_answers=keep_answers) for _ in self.readers
        ]

    @property
    def session_notices(self) -> Sequence[Notice]:
        """Notices about the session that asked the exam, for readers of the results."""
        return ()

    @property
    def title(self) -> str:
        """The exam, and the arm where there are several: ``demo/calculator``."""
        return f"{self.exam.benchmark}/{self.arm}" if self.arm else self.exam.benchmark

    @property
    def token_limit(self) -> int | None:
        """The most tokens of a reply in the settings, or None if they set no limit."""
        limit = self.sampling.max_tokens
        return limit if limit is not None else self.sampling.extra.get("max_completion_tokens")

    @property
    def missing(self) -> int:
        """The number of units that are still to be asked, or 0 where a rule has ended the
        exam."""
        return 0 if self.stopping is not None else self.units - self.tallies[0].done

    @property
    def stopped_early(self) -> bool:
        """Whether a stopping rule ended the exam before all questions were asked."""
        return self.stopping is not None and self.stopping.early

    def locate(self, unit: int) -> tuple[Sample, int]:
        """Return the sample of a unit and its epoch."""
        index, epoch = divmod(unit, self.epochs)
        return self.exam.samples[index], epoch

    def request(self, unit: int) -> Request:
        """Render one unit."""
        sample, epoch = self.locate(unit)
        prompt = self.exam.render(sample)
        # Each repeat has a different seed. The first has a seed only if the user set one.
        seed = self.sampling.seed
        if seed is not None:
            seed += epoch
        elif epoch:
            seed = self._repeat_seed + epoch
        # The part that all questions of a subset share is hashed once. The entry keeps the prefix
        # alive, so that no other object gets its id.
        entry = self._hashers.get(id(prompt.prefix))
        if entry is None:
            if len(self._hashers) >= 256:
                self._hashers.clear()
            prefix_hasher = hashlib.blake2b(self._fingerprint, digest_size=16)
            prefix_hasher.update(prompt.prefix.digest)
            entry = self._hashers[id(prompt.prefix)] = (prompt.prefix, prefix_hasher)
        hasher = entry[1].copy()
        hasher.update(f"{sample.id}\0{epoch}\0{seed}\0{prompt.cue}\0{prompt.tail}".encode())
        labels = sample.labels if self.sampling.decode == "labels" else ""
        continuations: tuple[Continuation, ...] = ()
        if self.sampling.decode == "continuations":
            continuations = self.exam.continuations(sample)
            hasher.update(msgspec.json.encode(continuations))
        return Request(
            prompt, self.sampling, hasher.hexdigest(), labels, seed, continuations=continuations
        )

    def enter(self, unit: int, record: Record, order: tuple[int, ...] = ()) -> None:
        """Enter a record that counts on the scoreboards and call the watcher.

        `order` is the recorded permutation of the options, where it may differ from the sample's.
        """
        received_at = 0.0 if record.origin else record.at
        self.enter_readings(unit, record.reply, record.faults, record.readings, order, received_at)
        if self.watcher is not None:
            self.watcher(unit, record)

    def _note_error(self, unit: int, fault: Fault | None, reading: Reading) -> None:
        """Keep the fault of a unit that ended in an error; forget an earlier one."""
        if fault is not None:
            self.errors[unit] = fault
        elif reading.score.outcome == "error":
            self.errors[unit] = BROKEN_OFF
        elif self.errors:
            self.errors.pop(unit, None)

    def enter_readings(
        self,
        unit: int,
        reply: Reply,
        faults: tuple[Fault, ...],
        readings: tuple[Reading, ...],
        order: tuple[int, ...] = (),
        at: float = 0.0,
    ) -> None:
        """Enter the readings of a reply, and its cost.

        `order` is the recorded permutation of the options, where it may differ from the sample's.
        `at` is the time of the record, where that is the time at which it came.
        """
        if order:
            sample = self.exam.samples[unit // self.epochs]
            readings = tuple([restore_label(reading, sample, order) for reading in readings])
        for tally, reading in zip(self.tallies, readings, strict=True):
            tally.add(unit, reading)
        if self.exam.keeps_items:
            self._keep_items(unit, reply)
        self._note_error(unit, reply.fault, readings[0])
        self._note_cut(unit, reply)
        self.thoughts_cut[unit] = bool(reply.raw)
        self.seconds[unit] = reply.seconds
        if self.unlabelled_mass and reply.outside_mass is not None:
            self.unlabelled_mass[unit] = reply.outside_mass
        self.meter.count(reply, faults)
        if self.ledger is not None:
            self.ledger.enter(unit, reply.usage)
        if reply.episode is not None:
            self._note_tools(unit, summarize_tool_use(reply.episode))
        self._note_reporter(unit, reply.model)
        if unit not in self.errors:
            self.checks.see(unit, reply, readings[0], at)

    def _keep_items(self, unit: int, reply: Reply) -> None:
        """Keep what the metrics of the exam need of a reply, for each reader."""
        sample, seen_reply = self.exam.samples[unit // self.epochs], self.filter_reply(reply)
        for tally, reader in zip(self.tallies, self.readers, strict=True):
            try:
                tally.items[unit] = self.exam.item(seen_reply, sample, reader)
            except Exception:  # its reading has no grade for the same reason
                tally.items[unit] = None

    def _note_cut(self, unit: int, reply: Reply) -> None:
        """Store the cause that cut a reply. A later reply of the unit replaces it."""
        for cut_units in (self.short_of_limit, self.cuts, self.ignored_limits):
            if unit in cut_units:
                cut_units.discard(unit) if isinstance(cut_units, set) else cut_units.pop(unit)
        if (cause := find_cut_cause(reply, self.limits)) is not None:
            self.cuts[unit] = cause
            if cause == "max_tokens" and not self.acts and self._has_tokens_to_spare(reply):
                self.short_of_limit.add(unit)
        elif self.limits is not None and (limit := find_ignored_limit(reply, self.limits)):
            self.ignored_limits[unit] = limit

    def _has_tokens_to_spare(self, reply: Reply) -> bool:
        """Whether a reply is certainly shorter than the settings allow. Some endpoints do not count
        thoughts."""
        limit, usage = self.token_limit, reply.usage
        return limit is not None and usage.output > 0 and usage.output + usage.reasoning < limit

    def _note_tools(self, unit: int, use: EpisodeToolUse) -> None:
        """Store the tool calls of an episode. A later episode of the unit replaces them."""
        for tool_record, sign in ((self.uses.get(unit), -1), (use, 1)):
            if tool_record is not None:
                self.calls += sign * len(tool_record.calls)
                self.failed_calls += sign * sum(call.kind != "ok" for call in tool_record.calls)
        self.uses[unit] = use

    def _note_reporter(self, unit: int, name: str) -> None:
        """Count the model name that came with a reply. A later reply of the unit replaces it."""
        number = self._name_numbers.get(name)
        if number is None:
            if len(self._name_numbers) == MAX_NAMES:  # an endpoint with a new name for each reply
                name = OTHER_NAMES
            number = self._name_numbers.setdefault(name, len(self._name_numbers))
        previous_number = self._reporters[unit]
        if number != previous_number:
            self._reporters[unit] = number
            if previous_number:
                self.reported_names[list(self._name_numbers)[previous_number]] -= 1
            if number:
                self.reported_names[name] += 1

    def grade(self, index: int, reply: Reply, order: tuple[int, ...] = ()) -> tuple[Reading, ...]:
        """Return the reading of a reply to sample `index` by each reader, the headline's reader
        first.

        `order` is the recorded permutation of the options, where it may differ from the sample's.
        If a reader fails, the reply is kept without a grade, because it was paid for.
        """
        sample, grade = self.exam.samples[index], self.exam.grade
        if order:
            sample = restore_order(sample, order)
        try:
            reply = self.filter_reply(reply)
            return tuple([grade(reply, sample, reader) for reader in self.readers])
        except Exception as error:
            unread_answer = Answer(reason=f"reader_failed: {type(error).__name__}: {error}"[:300])
            score = Score(0.0, "ungraded", READER_FAILED)
            return tuple([Reading(reader.name, unread_answer, score) for reader in self.readers])

    def filter_reply(self, reply: Reply) -> Reply:
        """Return the reply as readers see it."""
        if self.filters is None:
            return reply
        text, until = reply.text, self.filters.remove_until
        if until and until in text:
            text = text.rpartition(until)[2]
        if self.filters.regex:
            text = compile_pattern(self.filters.regex).first_match(text)
        return msgspec.structs.replace(reply, text=text)

    def recall(self, unit: int, record: Record, *, trusted: bool) -> tuple[Reading, ...]:
        """Enter a stored record and return its readings. Compute new readings unless the stored
        ones are `trusted`."""
        if not trusted:
            readings = self.grade(unit // self.epochs, record.reply, record.order)
            record = msgspec.structs.replace(record, readings=readings)
        self.enter(unit, record, record.order)
        return record.readings

    def facts(self) -> StoredExam:
        """Return the exam as the run's manifest describes it."""
        exam = self.exam
        return StoredExam(
            name=exam.benchmark,
            protocol=StoredProtocol(exam.protocol.name, exam.protocol.version),
            readers={reader.name: reader.version for reader in self.readers},
            settings=dict(exam.settings),
            filters=self.filters.model_dump(exclude_none=True) if self.filters else {},
            sampling=mask_secrets(msgspec.to_builtins(self.sampling)),
            samples=len(exam.samples),
            epochs=self.epochs,
            grading=grading.VERSION,
            data=StoredData(exam.data.version, dict(exam.data.files), list(exam.data.notes)),
        )
