"""The judging stage of a run: answers that no rule decides are graded by a model.

A judge is asked by the same engine as the candidate, with its own model, limits, budget, price
and journal (``verdicts.jsonl``). Verdicts are merged into the scoreboards afterwards; an answer
without one is ungraded, and never 0 because of the judge.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from keju.config import JudgeConfig, Price, TaskConfig
from keju.engine.job import Job
from keju.engine.limits import Meter, Spending
from keju.engine.resume import recall, remember, stored_replies
from keju.errors import ConfigError, EndpointError, KejuError, RunIncomplete, UsageError
from keju.exams import resolve_sampling
from keju.grades import Grade
from keju.journal import VERDICTS, Journal
from keju.judges import opinions, quality
from keju.judges.bundle import Bundle
from keju.judges.exam import JudgeExam
from keju.judges.model import Judge
from keju.judges.prompts import Kind
from keju.judges.verdicts import GRADES
from keju.manifest import Manifest, session
from keju.models.factory import make_model, model_name
from keju.settings import is_local
from keju.stats.judge import JudgeQuality
from keju.task import Sitting, run_loop
from keju.types import Sample

if TYPE_CHECKING:
    from keju.report.display import Display

LABELLED = "labelled"
"""Stands for the name of an exam where the answers come from a file of known grades."""
CORRECTED = "accuracy_judge_corrected"


def judge_task(config: TaskConfig, judge: JudgeConfig, model: str) -> TaskConfig:
    """Asking a judge as a task of its own.

    The key comes from the variable that the judge's settings name; only a judge at the very
    endpoint of the candidate may share the candidate's.
    """
    endpoint: dict[str, Any] = {}
    if not is_local(model):
        address = judge.api_url or config.api_url or os.environ.get("OPENAI_BASE_URL")
        shared = config.api_key if address == config.api_url else None
        key = os.environ.get(judge.api_key_var) or shared
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
        self._kind = kind

    def model(self) -> Judge:
        """The judge's model, not yet started; ConfigError if it cannot be made."""
        try:
            return Judge(make_model(self.task), self._kind)
        except ConfigError as error:
            raise ConfigError(f"judge: {error}") from None

    def hand_over(self, exams: Sequence[JudgeExam]) -> None:
        """Give the judge its work, one exam after the other."""
        name = model_name(self.task)
        self.jobs = [
            Job(
                exam,
                resolve_sampling(exam.protocol, self.task),
                list(exam.readers.values()),
                model=name,
                epochs=self.task.repeats,
                keep_answers=True,
                arm=name,
            )
            for exam in exams
        ]

    def sit(
        self, journal: Journal, manifest: Manifest, display: Display | None, already: Meter
    ) -> KejuError | None:
        """Ask what has no verdict yet; return what stopped it early."""
        recalled = recall(self.jobs, journal, trusted=False)
        if recalled.count == sum(job.units for job in self.jobs):
            return None
        ledger = JudgeLedger(manifest, self.task.model)
        sitting = Sitting(
            self.task, self.jobs, self.model(), journal, ledger, recalled, display, already
        )
        return sitting.run()

    def votes(self, place: int) -> list[opinions.Votes]:
        """The verdicts on each answer of one exam, one for each repeat."""
        job = self.jobs[place]
        said = job.tallies[0].answers or []
        return [said[at : at + job.epochs] for at in range(0, job.units, job.epochs)]


class JudgeLedger:
    """Writes a judge's sittings into the manifest of the run."""

    def __init__(self, manifest: Manifest, model: str) -> None:
        self._manifest = manifest
        judges = manifest.document.setdefault("judges", {})
        self._entry = judges.setdefault(model, {"endpoint": {}, "sessions": []})

    def keep_endpoint(self) -> None:
        """What is there stays."""

    def note_endpoint(self, facts: dict[str, Any]) -> None:
        """Write down what is known of the judge's endpoint."""
        self._entry["endpoint"] = facts
        self._manifest.write()

    def add_session(self, started: str, seconds: float, retries: int, spent: Spending) -> None:
        """Record what the judge's sitting took and spent."""
        self._entry["sessions"].append(session(started, seconds, retries, spent))


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
        first = self.seats[0].task
        self.judges_itself = first.model == config.model and first.api_url == config.api_url

    def convene(self, bundles: Sequence[Bundle]) -> None:
        """Hand the answers of each exam, and then the labelled ones, to every judge."""
        exams = [bundle.exam(self.kind) for bundle in bundles]
        if self.labelled is not None:
            exams.append(JudgeExam(LABELLED, self.labelled.samples, self.kind))
        for seat in self.seats:
            seat.hand_over(exams)

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
            "protocol": self.seats[0].jobs[place].exam.protocol.name,
            "protocol_version": self.seats[0].jobs[place].exam.protocol.version,
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
        if self.panel.judges_itself:
            warnings.append("the judge is the candidate itself: its verdicts favour its answers")
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


@dataclass
class Judgement:
    """The outcome of the stage."""

    stop: KejuError | None = None
    """Why not everything was asked."""
    grades: list[Grade] = field(default_factory=list)
    opinions: dict[int, Opinion] = field(default_factory=dict)
    """By the identity of the candidate's job."""

    def annotate(self, job: Job, reader: int, entry: dict[str, Any]) -> None:
        """Add to an entry of the results what concerns its judge."""
        opinion = self.opinions.get(id(job))
        if opinion is not None:
            opinion.annotate(reader, entry)


class Judging:
    """The judges of a run."""

    def __init__(self, panels: Sequence[Panel], error_limit: float) -> None:
        self._panels = panels
        self._error_limit = error_limit

    @classmethod
    def of(cls, config: TaskConfig, jobs: Sequence[Job]) -> Self | None:
        """The judges that the task names, or else its exams; None if nobody is to be asked."""
        groups: list[tuple[JudgeConfig, list[Job]]] = []
        for job in jobs:
            judge = config.judge or job.exam.judge
            if judge is None or judge.strategy == "rule":
                continue
            group = next((group for known, group in groups if known == judge), None)
            if group is None:
                groups.append((judge, [job]))
            else:
                group.append(job)
        if not groups:
            return None
        return cls([Panel(config, judge, group) for judge, group in groups], config.error_limit)

    def check(self) -> None:
        """Refuse judges that cannot be made, before anybody is asked."""
        for panel in self._panels:
            for seat in panel.seats:
                seat.model()

    def preflight(self) -> None:
        """Find a wrong address, key or model of a judge, in one line, before the candidate sits."""

        async def knock() -> None:
            for panel in self._panels:
                for seat in panel.seats:
                    seat.hand_over([JudgeExam("", [], panel.kind)])
                    await _knock(seat, panel.judge)

        run_loop(knock)

    def grade(
        self,
        folder: Path,
        manifest: Manifest | None,
        *,
        display: Display | None = None,
        strict: bool = False,
    ) -> Judgement:
        """Grade what is in the journal of a run and enter it on the scoreboards.

        Judges are asked where there is a `manifest` to write it down in; otherwise only stored
        verdicts count. An endpoint that is not there raises if `strict`, and is else what stopped
        the stage.
        """
        bundles = self._collect(folder)
        judgement = Judgement()
        with ExitStack() as stack:
            journal = stack.enter_context(Journal(folder, VERDICTS)) if manifest else None
            for panel in self._panels:
                panel.convene([bundles[id(job)] for job in panel.jobs])
                already = Meter()
                for seat in panel.seats:
                    if manifest is None or journal is None or judgement.stop is not None:
                        remember(seat.jobs, folder / VERDICTS)
                        continue
                    judgement.stop = self._ask(
                        panel, seat, strict, lambda s=seat, a=already: s.sit(journal, manifest, display, a)
                    )
                    for job in seat.jobs:
                        already.include(job.meter)
        for panel in self._panels:
            for opinion in panel.conclude([bundles[id(job)] for job in panel.jobs]):
                judgement.grades += opinion.bundle.merge(opinion.verdicts)
                judgement.opinions[id(opinion.bundle.job)] = opinion
        if manifest is not None and judgement.stop is None:
            judgement.stop = self._too_many_ungraded(judgement)
        return judgement
