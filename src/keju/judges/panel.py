"""The judges of some exams: who they are, what they are handed, and what they say."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keju.config import JudgeConfig, Price, TaskConfig
from keju.engine.job import Job
from keju.engine.limits import Meter
from keju.errors import ConfigError, UsageError
from keju.exams import resolve_sampling
from keju.judges import opinions, quality
from keju.judges.bundle import Bundle
from keju.judges.exam import JudgeExam
from keju.judges.model import Judge
from keju.judges.prompts import PROTOCOLS, Kind
from keju.judges.verdicts import GRADES
from keju.models.address import parse_address
from keju.models.factory import make_model, model_name
from keju.settings import is_local
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
        key: Any = os.environ.get(key_variable(judge))
        if address is not None and _place(address) == _place(config.api_url):
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


def key_variable(judge: JudgeConfig) -> str:
    """Name of the environment variable with the key of a judge."""
    return judge.api_key_var or "OPENAI_API_KEY"


def _place(api_url: str | None) -> str | None:
    """An endpoint's address in one spelling; what is no address stays as it is."""
    try:
        return parse_address(api_url).shown if api_url else None
    except ConfigError:
        return api_url


class Seat:
    """One judge and the answers that it is handed."""

    def __init__(self, task: TaskConfig, kind: Kind) -> None:
        self.task = task
        self.jobs: list[Job] = []
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

    def votes(self, place: int) -> list[opinions.Votes]:
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
        self.judges_itself = [
            seat.task.model
            for seat in self.seats
            if seat.task.model == config.model
            and _place(seat.task.api_url) == _place(config.api_url)
        ]
        """The judges that are the candidate."""

    def named(self, seat: Seat) -> str:
        """A judge as messages name it."""
        which = "the judge" if seat is self.seats[0] else "the second judge"
        return f"{which} '{seat.task.model}'"

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
            verdicts = [opinions.settled(votes) for votes in self.seats[0].votes(len(bundles))]
            known = quality.measure(self.labelled.correct, verdicts)
        for place, bundle in enumerate(bundles):
            said = [seat.votes(place) for seat in self.seats]
            settled = [[opinions.settled(votes) for votes in each] for each in said]
            yield Opinion(self, bundle, settled[0], self._described(place, said, settled), known)

    def _described(
        self, place: int, said: list[list[opinions.Votes]], settled: list[list[str | None]]
    ) -> dict[str, Any]:
        verdicts = settled[0]
        described: dict[str, Any] = {
            "model": self.judge.model,
            "strategy": self.judge.strategy,
            "protocol": PROTOCOLS[self.kind].name,
            "protocol_version": PROTOCOLS[self.kind].version,
            "judged": sum(verdict is not None for verdict in verdicts),
            "ungraded": sum(verdict is None for verdict in verdicts),
            "usage": _usage([seat.jobs[place].meter for seat in self.seats]),
            "cost": _cost([seat.jobs[place].meter for seat in self.seats], self.judge.price),
        }
        if self.kind == "grade":
            counts = Counter(verdicts)
            described["verdicts"] = {grade: counts[grade] for grade in GRADES}
        agreement: dict[str, Any] = {}
        if self.judge.repeats > 1:
            described["repeats"] = self.judge.repeats
            agreement["self_consistency"] = opinions.consistency(said[0])
        if self.judge.second is not None:
            second = opinions.agreement(verdicts, settled[1])
            agreement["second"] = {"model": self.judge.second} | second
        return described | ({"agreement": agreement} if agreement else {})


@dataclass(frozen=True)
class Opinion:
    """What a panel makes of one exam."""

    panel: Panel
    bundle: Bundle
    verdicts: list[str | None]
    described: dict[str, Any]
    known: JudgeQuality | None
    """The judge's quality, where it was measured."""

    def annotate(self, reader: int, entry: dict[str, Any]) -> None:
        """Say in an entry of the results who judged, at what cost, and how far to trust it."""
        entry["judge"] = dict(self.described)
        warnings = entry.setdefault("warnings", [])
        for name in self.panel.judges_itself:
            which = "the judge" if name == self.panel.judge.model else "the second judge"
            warnings.append(f"{which} is the candidate itself: its verdicts favour its answers")
        if missing := self.described["ungraded"]:
            warnings.append(
                f"the judge has no verdict on {missing} of {len(self.verdicts)} answers; "
                "'keju judge' with this run asks again"
            )
        if self.known is None or self.panel.labelled is None:
            return
        entry["judge"]["quality"] = quality.describe(self.known, self.panel.labelled.correct)
        deff = max(1.0, entry["metrics"]["accuracy"].get("deff") or 1.0)
        judged, others = self.bundle.parts(reader, self.verdicts)
        try:
            corrected = quality.corrected_accuracy(
                judged, others, self.known, shrink=deff * self.bundle.job.epochs
            )
        except UsageError as error:
            warnings.append(f"the accuracy is not corrected for the judge's errors: {error}")
        else:
            entry["metrics"][CORRECTED] = corrected


def _finder(jobs: Sequence[Job]) -> Callable[[str], Sample | None]:
    """Finds a question of these exams by its id; the table is made when first used."""
    table: dict[str, Sample] = {}

    def find(sample_id: str) -> Sample | None:
        if not table:
            table.update({s.id: s for job in jobs for s in job.exam.samples})
        return table.get(sample_id)

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
