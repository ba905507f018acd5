"""One exam in one arm as work for the engine: its requests, their identity, its scoreboards."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from time import time
from typing import Any

import msgspec

from keju.benchmarks import grading
from keju.benchmarks.base import Exam, Reader
from keju.benchmarks.choices import as_shown
from keju.benchmarks.prepare import choose_readers, generation_of, prepare_exams, resolve_sampling
from keju.config import Filters, TaskConfig
from keju.config.patterns import compile_pattern
from keju.engine.channel import Exchange
from keju.engine.limits import Ledger, Meter
from keju.engine.question_limits import (
    CutCause,
    LimitedSolver,
    QuestionLimits,
    cut_cause,
    ignored_limit,
)
from keju.engine.reply_checks import ReplyChecks
from keju.engine.solver import Solver
from keju.engine.tally import Tally, ToolUse, in_own_order, tool_use
from keju.errors import ConfigError, Notice
from keju.models.registry import fit_sampling, model_name
from keju.redaction import masked
from keju.runs.manifest import Stopping, StoredData, StoredExam, StoredProtocol
from keju.types import (
    FILTERED,
    Answer,
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
"""Why a reply that did come counts as an error."""
SAMPLED = ("temperature", "top_p", "top_k", "min_p", "max_tokens", "stop", "seed")
"""Settings of how text is drawn."""
MOST_NAMES, OTHER_NAMES = 1000, "…"
"""How many names of its model an endpoint may report before the rest is counted as one."""
MOST_UNITS = 50_000_000
"""Requests of one exam; a few bytes of each are held."""
READER_FAILED = "reader_failed"
"""The grader of a reply on which a reader broke down."""


class Job:
    """An exam, how it is asked, and what it has scored so far.

    A unit is one sample in one epoch. The hash of its request is its identity: model, sampling,
    prompt, sample and epoch, but not the address of the endpoint, so that another port or a
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
        filters: Filters | None = None,
        detailed: bool = False,
        arm: str = "",
        setup: Mapping[str, Any] | None = None,
        repeat_seed: int = 0,
        limits: QuestionLimits | None = None,
    ) -> None:
        """`setup` is what makes the arm another one than its name alone: its tools and limits.

        `limits` are those of each question, in every arm.
        What a `detailed` job read, and what each of its replies took, can be looked up.
        """
        self.exam = exam
        self.model = model
        self.sampling = sampling
        self.epochs = epochs
        self.arm = arm
        self.acts = setup is not None or exam.notebook is not None
        """Whether the model has tools, so that its replies are episodes."""
        self._repeat_seed = repeat_seed
        self.filters = filters if filters and (filters.remove_until or filters.regex) else None
        self.read_with(readers, keep_answers=detailed or epochs > 1 or exam.keeps_answers)
        self.units = len(exam.samples) * epochs
        self.uses: dict[int, ToolUse] = {}
        """What the episodes did with their tools, by unit, where the model acts."""
        self.calls = self.failed_calls = 0
        self.meter = Meter()
        """What the records that count have cost."""
        self.ledger = Ledger(self.units) if arm or detailed else None
        """What each unit's reply took, where that is compared."""
        self.outside = array("f", [0.0]) * (self.units if sampling.decode == "labels" else 0)
        """The probability of all that is not a label, by unit, where labels are compared."""
        self.errors: dict[int, Fault] = {}
        """Why units ended in an error."""
        self.thoughts_cut = bytearray(self.units)
        """By unit: whether a think block was cut out of the reply before readers saw it."""
        self.short_of_limit: set[int] = set()
        """Units whose reply was cut off with tokens to spare: the model's context was full."""
        self.limits = limits
        self.cuts: dict[int, CutCause] = {}
        """What cut the replies that were cut, by unit."""
        self.ignored_limits: dict[int, LimitCut] = {}
        """Limits that replies exceed without being cut, by unit, as version 1.0 let them."""
        self.reported: Counter[str] = Counter()
        """What the endpoint called its model, and in how many of the replies that count."""
        self._names = {"": 0}
        self.checks = ReplyChecks(self)
        """Faults of the endpoint that all replies together show."""
        self.stopping: Stopping | None = None
        """How a rule ended the asking, where one did."""
        self.solver = Solver() if limits is None else LimitedSolver(limits)
        """How a request becomes a reply."""
        self.watcher: Callable[[int, Record], None] | None = None
        """Sees each unit with its record when it is entered, and again when that is replaced."""
        identity = (exam.benchmark, model, arm, masked(msgspec.to_builtins(sampling)))
        identity += (setup,) if setup else ()
        self._fingerprint = msgspec.json.encode(identity, order="deterministic")
        self._hashers: dict[int, tuple[Prefix, hashlib.blake2b]] = {}

    @cached_property
    def seconds(self) -> array[float]:
        """How long each unit's reply took; made when it is needed, which the viewer never does."""
        return array("f", [0.0]) * self.units

    @cached_property
    def _reporters(self) -> array[int]:
        """By unit: the number of the name in `_names`, 0 where no name was reported."""
        return array("H", [0]) * self.units

    def read_with(self, readers: Sequence[Reader], *, keep_answers: bool) -> None:
        """Take these readers, the headline's first, before anything is entered."""
        self.readers = tuple(readers)
        samples = len(self.exam.samples)
        self.tallies = [
            Tally(samples, self.epochs, keep_answers=keep_answers) for _ in self.readers
        ]

    @property
    def title(self) -> str:
        """The exam, and the arm where there are several: ``demo/calculator``."""
        return f"{self.exam.benchmark}/{self.arm}" if self.arm else self.exam.benchmark

    @property
    def token_limit(self) -> int | None:
        """How long a reply may be by the settings; None where that is left to the model."""
        limit = self.sampling.max_tokens
        return limit if limit is not None else self.sampling.extra.get("max_completion_tokens")

    @property
    def missing(self) -> int:
        """Units that are still to be asked; none where a rule has ended the asking."""
        return 0 if self.stopping is not None else self.units - self.tallies[0].done

    def place(self, unit: int) -> tuple[Sample, int]:
        """The sample of a unit, and for which time it is asked."""
        index, epoch = divmod(unit, self.epochs)
        return self.exam.samples[index], epoch

    def request(self, unit: int) -> Request:
        """Render one unit."""
        sample, epoch = self.place(unit)
        prompt = self.exam.render(sample)
        # Repeats have seeds of their own; the first has one only if the user gave it.
        seed = self.sampling.seed
        if seed is not None:
            seed += epoch
        elif epoch:
            seed = self._repeat_seed + epoch
        # What all questions of a subset share is hashed once; the prefix is kept with its hash, so
        # that no other object gets its id.
        kept = self._hashers.get(id(prompt.prefix))
        if kept is None:
            if len(self._hashers) >= 256:
                self._hashers.clear()
            shared = hashlib.blake2b(self._fingerprint, digest_size=16)
            shared.update(prompt.prefix.digest)
            kept = self._hashers[id(prompt.prefix)] = (prompt.prefix, shared)
        hasher = kept[1].copy()
        hasher.update(f"{sample.id}\0{epoch}\0{seed}\0{prompt.cue}\0{prompt.tail}".encode())
        labels = sample.labels if self.sampling.decode == "labels" else ""
        return Request(prompt, self.sampling, hasher.hexdigest(), labels, seed)

    def record(self, unit: int, request: Request, exchange: Exchange) -> Record:
        """Read and score a reply, unless its solver has; return its journal line."""
        index, epoch = divmod(unit, self.epochs)
        sample = self.exam.samples[index]
        return Record(
            bench=self.exam.benchmark,
            id=sample.id,
            epoch=epoch,
            arm=self.arm,
            hash=request.hash,
            target=sample.target,
            order=sample.order,
            reply=exchange.reply,
            readings=exchange.readings or self.grade(index, exchange.reply),
            faults=exchange.faults,
            at=round(time(), 3),
            endpoint=exchange.endpoint,
        )

    def enter(self, unit: int, record: Record, order: tuple[int, ...] = ()) -> None:
        """Enter a record that counts on the scoreboards; who watches the job sees it.

        `order` is the recorded permutation of its options, where that may not be the sample's.
        """
        at = 0.0 if record.origin else record.at
        self.enter_readings(unit, record.reply, record.faults, record.readings, order, at)
        if self.watcher is not None:
            self.watcher(unit, record)

    def enter_readings(
        self,
        unit: int,
        reply: Reply,
        faults: tuple[Fault, ...],
        readings: tuple[Reading, ...],
        order: tuple[int, ...] = (),
        at: float = 0.0,
    ) -> None:
        """Enter what the readers made of a reply, and what it cost.

        `order` is the recorded permutation of its options, where that may not be the sample's.
        `at` is the time of its record, where that is the time at which it came.
        """
        if order:
            sample = self.exam.samples[unit // self.epochs]
            readings = tuple([in_own_order(reading, sample, order) for reading in readings])
        for tally, reading in zip(self.tallies, readings, strict=True):
            tally.add(unit, reading)
        fault = reply.fault
        if fault is not None:
            self.errors[unit] = fault
        elif readings[0].score.outcome == "error":
            self.errors[unit] = BROKEN_OFF
        elif self.errors:
            self.errors.pop(unit, None)
        self._note_cut(unit, reply)
        self.thoughts_cut[unit] = bool(reply.raw)
        self.seconds[unit] = reply.seconds
        if self.outside and reply.outside_mass is not None:
            self.outside[unit] = reply.outside_mass
        self.meter.count(reply, faults)
        if self.ledger is not None:
            self.ledger.enter(unit, reply.usage)
        if reply.episode is not None:
            self._note_tools(unit, tool_use(reply.episode))
        self._note_reporter(unit, reply.model)
        if unit not in self.errors:
            self.checks.see(unit, reply, readings[0], at)

    def _note_cut(self, unit: int, reply: Reply) -> None:
        """Keep what cut a reply; a later reply of the unit replaces it."""
        for known in (self.short_of_limit, self.cuts, self.ignored_limits):
            if unit in known:
                known.discard(unit) if isinstance(known, set) else known.pop(unit)
        if (cause := cut_cause(reply, self.limits)) is not None:
            self.cuts[unit] = cause
            if cause == "max_tokens" and not self.acts and self._tokens_to_spare(reply):
                self.short_of_limit.add(unit)
        elif self.limits is not None and (limit := ignored_limit(reply, self.limits)):
            self.ignored_limits[unit] = limit

    def _tokens_to_spare(self, reply: Reply) -> bool:
        """Whether a reply is surely shorter than the settings allow; some count no thoughts."""
        limit, usage = self.token_limit, reply.usage
        return limit is not None and usage.output > 0 and usage.output + usage.reasoning < limit

    def _note_tools(self, unit: int, use: ToolUse) -> None:
        """Keep what an episode did; a later episode of the unit replaces it."""
        for known, sign in ((self.uses.get(unit), -1), (use, 1)):
            if known is not None:
                self.calls += sign * len(known.calls)
                self.failed_calls += sign * sum(call.kind != "ok" for call in known.calls)
        self.uses[unit] = use

    def _note_reporter(self, unit: int, name: str) -> None:
        """Count the name that came with a reply; a later reply of the unit replaces it."""
        number = self._names.get(name)
        if number is None:
            if len(self._names) == MOST_NAMES:  # an endpoint that has a new name for each reply
                name = OTHER_NAMES
            number = self._names.setdefault(name, len(self._names))
        before = self._reporters[unit]
        if number != before:
            self._reporters[unit] = number
            if before:
                self.reported[list(self._names)[before]] -= 1
            if number:
                self.reported[name] += 1

    def grade(self, index: int, reply: Reply, order: tuple[int, ...] = ()) -> tuple[Reading, ...]:
        """What each reader makes of a reply to sample `index`, the headline's reader first.

        `order` is the recorded permutation of its options, where that may not be the sample's.
        A reader that breaks down leaves the reply ungraded: it was paid for and is kept.
        """
        sample, grade = self.exam.samples[index], self.exam.grade
        if order:
            sample = as_shown(sample, order)
        try:
            reply = self.filtered(reply)
            return tuple([grade(reply, sample, reader) for reader in self.readers])
        except Exception as error:
            failed = Answer(reason=f"reader_failed: {type(error).__name__}: {error}"[:300])
            score = Score(0.0, "ungraded", READER_FAILED)
            return tuple([Reading(reader.name, failed, score) for reader in self.readers])

    def filtered(self, reply: Reply) -> Reply:
        """The reply as the readers are given it."""
        if self.filters is None:
            return reply
        text, until = reply.text, self.filters.remove_until
        if until and until in text:
            text = text.rpartition(until)[2]
        if self.filters.regex:
            text = compile_pattern(self.filters.regex).first_match(text)
        return msgspec.structs.replace(reply, text=text)

    def recall(self, unit: int, record: Record, *, trusted: bool) -> tuple[Reading, ...]:
        """Enter a stored record and return its readings: new ones unless they are `trusted`."""
        if not trusted:
            readings = self.grade(unit // self.epochs, record.reply, record.order)
            record = msgspec.structs.replace(record, readings=readings)
        self.enter(unit, record, record.order)
        return record.readings

    def facts(self) -> StoredExam:
        """The exam as the run's manifest describes it."""
        exam = self.exam
        return StoredExam(
            name=exam.benchmark,
            protocol=StoredProtocol(exam.protocol.name, exam.protocol.version),
            readers={reader.name: reader.version for reader in self.readers},
            settings=dict(exam.settings),
            filters=self.filters.model_dump(exclude_none=True) if self.filters else {},
            sampling=masked(msgspec.to_builtins(self.sampling)),
            samples=len(exam.samples),
            epochs=self.epochs,
            grading=grading.VERSION,
            data=StoredData(exam.data.version, dict(exam.data.files), list(exam.data.notes)),
        )


def hints_of(jobs: Iterable[Job]) -> list[Notice]:
    """What is to be said of exams before anybody is asked, once for all arms."""
    return list({notice.text(): notice for job in jobs for notice in job.exam.hints}.values())


def make_jobs(config: TaskConfig, *, detailed: bool = False) -> list[Job]:
    """The exams of a run as work for the engine; refuses whatever cannot be carried out."""
    jobs = []
    for exam, args in prepare_exams(config):
        asked = resolve_sampling(exam.protocol, config, args.generation_config)
        try:
            sampling, notices = fit_sampling(config, asked)
        except ConfigError as error:
            raise ConfigError("sampling_refused", name=exam.benchmark, problem=error) from None
        exam.warnings = (*exam.warnings, *notices)
        if not exam.samples and (config.ids is not None or config.part is not None):
            continue
        if not exam.samples:
            raise ConfigError("no_question_selected", name=exam.benchmark)
        if (units := len(exam.samples) * config.repeats) > MOST_UNITS:
            raise ConfigError("too_many_units", name=exam.benchmark, units=units, most=MOST_UNITS)
        # Where labels are compared nothing is sampled, so settings of sampling would do nothing.
        for name in SAMPLED if sampling.decode == "labels" else ():
            if getattr(generation_of(config, args.generation_config), name) not in (None, 0):
                raise ConfigError("sampling_of_labels", setting=name, name=exam.benchmark)
        if sampling.form == "completion" and exam.render(exam.samples[0]).prefix.messages:
            names = {"name": exam.benchmark, "protocol": exam.protocol.name}
            raise ConfigError("conversation_as_completion", **names)
        readers = choose_readers(exam, args.reader or config.reader)
        for arm in config.arms or (None,):
            acts = arm is not None and arm.acts
            if acts:
                _refuse_tools(exam, sampling)
            jobs.append(
                Job(
                    exam,
                    sampling,
                    readers,
                    model=model_name(config),
                    epochs=config.repeats,
                    filters=args.filters,
                    detailed=detailed,
                    arm=arm.name if arm is not None else exam.arm,
                    setup=arm.identity() | config.agent.identity() if arm and acts else None,
                    repeat_seed=config.seed,
                    limits=QuestionLimits.of(config.agent, config.price),
                )
            )
    if not jobs:
        raise ConfigError("shard_empty", shard=config.shard)
    return jobs


def _refuse_tools(exam: Exam, sampling: Sampling) -> None:
    """ConfigError where no conversation can follow the questions, so that no tool can be used."""
    cued = exam.render(exam.samples[0]).cue
    if sampling.form != "chat" or sampling.decode != "generate" or cued:
        values = {"name": exam.benchmark, "protocol": exam.protocol.name}
        raise ConfigError("tools_without_conversation", **values)
    for name in ("tools", "tool_choice", "continue_final_message"):
        if name in sampling.extra:
            raise ConfigError("tools_in_extra_body", name=name)


def exams_of(jobs: Iterable[Job]) -> list[StoredExam]:
    """The exams of several jobs as a manifest describes them: one for all arms.

    Arms that an exam's own settings ask for have questions of their own. Their files stand together
    then, and a setting that differs has the values of all.
    """
    exams: dict[str, dict[str, StoredExam]] = {}
    for job in jobs:
        exams.setdefault(job.exam.benchmark, {}).setdefault(job.exam.arm, job.facts())
    return [_together(arms) for arms in exams.values()]


def _together(arms: Mapping[str, StoredExam]) -> StoredExam:
    first, *others = arms.values()
    if not any(arms):
        return first
    settings = {
        name: [own.settings[name] for own in arms.values()]
        if any(own.settings[name] != value for own in others)
        else value
        for name, value in first.settings.items()
    }
    data = [own.data for own in arms.values()]
    return msgspec.structs.replace(
        first,
        settings=settings,
        samples=sum(own.samples for own in arms.values()),
        samples_of={arm: own.samples for arm, own in arms.items()},
        data=StoredData(
            "; ".join(dict.fromkeys(own.version for own in data)),
            {name: digest for own in data for name, digest in own.files.items()},
            list(dict.fromkeys(note for own in data for note in own.notes)),
        ),
    )
