"""The judges of some exams: who they are, what they are handed, and what they say."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from keju.benchmarks.prepare import resolve_sampling
from keju.config import JudgeConfig, Price, TaskConfig
from keju.engine.budget import Meter
from keju.engine.job import Job
from keju.errors import ConfigError, EndpointError, Notice, UsageError
from keju.judges import caveats, quality
from keju.judges import verdicts as reading
from keju.judges.exam import Bundle, JudgeExam
from keju.judges.model import Judge
from keju.judges.prompts import PROTOCOLS, Kind
from keju.judges.verdicts import GRADES
from keju.models.registry import is_local, make_model, model_name
from keju.stats.estimate import Estimate
from keju.stats.judge import JudgeQuality
from keju.types import Sample, Sampling

LABELLED = "labelled"
"""Stands for the name of an exam where the answers come from a file of known grades."""
CORRECTED = "accuracy_judge_corrected"


def judge_task(config: TaskConfig, judge: JudgeConfig, model: str) -> TaskConfig:
    """Asking a judge as a task of its own.

    The key comes from the variable that the judge's settings name. A judge at the very endpoint
    of the candidate uses the candidate's, unless they name a variable themselves; a key meant
    for another endpoint is not sent there.
    """
    endpoint: dict[str, Any] = {}
    if not is_local(model):
        address = judge.api_url or config.api_url or os.environ.get("OPENAI_BASE_URL")
        key: Any = os.environ.get(caveats.key_variable(judge))
        if address is not None and caveats.place_of(address) == caveats.place_of(config.api_url):
            key = (key if judge.api_key_var else None) or config.api_key
        endpoint = {"api_url": address, "api_key": key, "ca_file": config.ca_file}
    try:
        return TaskConfig(
            **endpoint,
            model=model,
            datasets=config.datasets,
            generation_config=judge.generation_config,
            repeats=judge.repeats,
            seed=config.seed,
            eval_batch_size=judge.eval_batch_size,
            timeout=judge.timeout,
            attempts=judge.attempts,
            retry_interval=config.retry_interval,
            give_up_after=judge.give_up_after,
            budget=judge.budget,
            price=judge.price,
            work_dir=config.work_dir,
        )
    except ConfigError as error:
        raise ConfigError(f"judge: {error}") from None


class Seat:
    """One judge and the answers that it is handed."""

    def __init__(self, task: TaskConfig, kind: Kind) -> None:
        self.task = task
        self.jobs: list[Job] = []
        self.asked = False
        """Whether it was asked anything by this process, rather than remembered."""
        self._kind = kind

    def model(self) -> Judge:
        """The judge's model, not yet started; ConfigError if it cannot be made."""
        try:
            return Judge(make_model(self.task), self._kind)
        except ConfigError as error:
            raise ConfigError(f"judge: {error}") from None

    @property
    def sampling(self) -> Sampling:
        """How the judge decodes: at temperature 0 unless its settings say otherwise."""
        return resolve_sampling(PROTOCOLS[self._kind], self.task)

    def hand_over(self, exams: Sequence[JudgeExam]) -> None:
        """Give the judge its work, one exam after the other."""
        name = model_name(self.task)
        self.jobs = [
            Job(
                exam,
                self.sampling,
                list(exam.readers.values()),
                model=name,
                epochs=self.task.repeats,
                keep_answers=True,
                arm=name,
                repeat_seed=self.task.seed,
            )
            for exam in exams
        ]

    def votes(self, place: int) -> list[reading.Votes]:
        """The verdicts on each answer of one exam, one for each repeat."""
        job = self.jobs[place]
        said = job.tallies[0].answers or []
        return [said[at : at + job.epochs] for at in range(0, job.units, job.epochs)]


class Panel:
    """The judges of the exams that share one set of judge's settings."""

    def __init__(self, config: TaskConfig, judge: JudgeConfig, jobs: Sequence[Job]) -> None:
        if judge.second == judge.model:
            raise ConfigError("judge.second is the judge itself: use judge.repeats for repeats")
        self.judge = judge
        self.jobs = jobs
        self.kind: Kind = "score" if judge.continuous else "grade"
        names = [judge.model, *([judge.second] if judge.second else [])]
        self.seats = [Seat(judge_task(config, judge, name), self.kind) for name in names]
        self.labelled = (
            quality.load_labelled(Path(judge.labelled), _finder(jobs)) if judge.labelled else None
        )
        self._kin = [caveats.kinship(seat.task, config) for seat in self.seats]

    def which(self, seat: Seat) -> str:
        """The part that a judge has."""
        return "the judge" if seat is self.seats[0] else "the second judge"

    def named(self, seat: Seat) -> str:
        """A judge as messages name it."""
        return f"{self.which(seat)} '{seat.task.model}'"

    def explained(self, error: EndpointError, seat: Seat) -> EndpointError:
        """Say which judge it was, and its own settings in place of the candidate's."""
        told = caveats.advice_about_judge(str(error), self.judge, seat.task)
        return EndpointError(f"{self.named(seat)}: {told}")

    def warnings(self) -> Iterator[Notice]:
        """What is to be known about the judges, whatever they say."""
        first = self.seats[0]
        for seat, kin in zip(self.seats, self._kin, strict=True):
            yield from caveats.about_kinship(kin, second=seat is not first)
        lacking = caveats.lacking_key(self.judge, first.task)
        if lacking is not None and any(seat.asked for seat in self.seats):
            yield lacking
        yield from caveats.about_repeats(self.judge.repeats, first.sampling.temperature)

    def convene(self, bundles: Sequence[Bundle]) -> None:
        """Hand the answers of each exam, and then the labelled ones, to every judge."""
        exams = [bundle.exam(self.kind) for bundle in bundles]
        if self.labelled is not None:
            exams.append(JudgeExam(LABELLED, self.labelled.samples, self.kind))
        for seat in self.seats:
            seat.hand_over(exams)

    @property
    def work(self) -> list[Job]:
        """What all judges have to do."""
        return [job for seat in self.seats for job in seat.jobs]

    def conclude(self, bundles: Sequence[Bundle]) -> Iterator[Opinion]:
        """What the judges say about each exam; the first judge decides."""
        known = None
        if self.labelled is not None:
            verdicts = [reading.settled(votes) for votes in self.seats[0].votes(len(bundles))]
            known = quality.measure(self.labelled.correct, verdicts)
        for place, bundle in enumerate(bundles):
            said = [seat.votes(place) for seat in self.seats]
            settled = [[reading.settled(votes) for votes in each] for each in said]
            described = self._described(place, said, settled)
            yield Opinion(self, bundle, settled[0], settled[-1], described, known)

    def _described(
        self, place: int, said: list[list[reading.Votes]], settled: list[list[str | None]]
    ) -> dict[str, Any]:
        verdicts = settled[0]
        meters = [seat.jobs[place].meter for seat in self.seats]
        known = [seat.jobs[-1].meter for seat in self.seats if self.labelled and place == 0]
        described: dict[str, Any] = {
            "model": self.judge.model,
            "strategy": self.judge.strategy,
            "protocol": PROTOCOLS[self.kind].name,
            "protocol_version": PROTOCOLS[self.kind].version,
            "judged": sum(verdict is not None for verdict in verdicts),
            "ungraded": sum(verdict is None for verdict in verdicts),
            "usage": _usage(meters + known),
            "cost": _cost(meters + known, self.judge.price),
        }
        if known:
            own = {"usage": _usage(known), "cost": _cost(known, self.judge.price)}
            described[LABELLED] = own
        if self.kind == "grade":
            counts = Counter(verdicts)
            described["verdicts"] = {grade: counts[grade] for grade in GRADES}
        agreement: dict[str, Any] = {}
        if self.judge.repeats > 1:
            described["repeats"] = self.judge.repeats
            agreement["self_consistency"] = reading.consistency(said[0])
        if self.judge.second is not None:
            second = reading.agreement(verdicts, settled[1])
            agreement["second"] = {"model": self.judge.second} | second
        return described | ({"agreement": agreement} if agreement else {})


class Said(NamedTuple):
    """What the results say about the judges of an exam."""

    judge: dict[str, Any]
    notices: list[Notice]
    metrics: dict[str, Estimate]


@dataclass(frozen=True)
class Opinion:
    """What a panel makes of one exam."""

    panel: Panel
    bundle: Bundle
    verdicts: list[str | None]
    last: list[str | None]
    """The verdicts of the second judge; where there is none, of the only one."""
    described: dict[str, Any]
    known: JudgeQuality | None
    """The judge's quality, where it was measured."""

    def about(self, reader: int, deff: float) -> Said:
        """Who judged, at what cost, and how far to trust it, under one reader of the exam.

        `deff` is the design effect of the accuracy.
        """
        second = self.last.count(None) if self.panel.judge.second else 0
        missing: int = self.described["ungraded"]
        notices = [
            *self.panel.warnings(),
            *caveats.about_verdicts(missing, second, len(self.verdicts)),
        ]
        if self.known is None or self.panel.labelled is None:
            return Said(self.described, notices, {})
        known = quality.describe(self.known, self.panel.labelled.correct)
        described = self.described | {"quality": known}
        judged, others = self.bundle.parts(reader, self.verdicts)
        try:
            shrink = max(1.0, deff) * self.bundle.job.epochs
            corrected = quality.corrected_accuracy(judged, others, self.known, shrink=shrink)
        except UsageError as error:
            notices.append(Notice("judge_not_corrected", {"reason": str(error)}))
            return Said(described, notices, {})
        return Said(described, notices, {CORRECTED: corrected})


def _finder(jobs: Sequence[Job]) -> Callable[[str], Sample | None]:
    """Finds a question of these exams by its id, or by its name in the benchmark's own data.

    The table is made when first used.
    """
    table: dict[str, Sample] = {}

    def find(name: str) -> Sample | None:
        if not table:
            table.update({s.id: s for job in jobs for s in job.exam.samples})
        ids = (name, *(job.exam.locate({"id": name}) for job in jobs))
        return next((table[sample_id] for sample_id in ids if sample_id in table), None)

    return find


def _usage(meters: Sequence[Meter]) -> dict[str, int]:
    total = Meter()
    for meter in meters:
        total.include(meter)
    return {
        "requests": total.requests,
        "input_tokens": total.input,
        "output_tokens": total.output,
        "cached_tokens": total.cached,
        "reasoning_tokens": total.reasoning,
    }


def _cost(meters: Sequence[Meter], price: Price | None) -> float | None:
    if price is None:
        return None
    return sum(meter.cost(price) or 0.0 for meter in meters)
