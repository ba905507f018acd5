"""The judging stage of a run: answers that no rule decides are graded by a model.

A judge is asked by the same engine as the candidate, with its own model, limits, budget, price
and journal (``verdicts.jsonl``). Verdicts are merged into the scoreboards afterwards; an answer
without one is ungraded, and never 0 because of the judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from keju.config import JudgeConfig, TaskConfig
from keju.engine.budget import Meter
from keju.engine.channel import Channel, Limits
from keju.engine.job import Job
from keju.engine.resume import JobRequests, recall, stored_replies
from keju.engine.session import run_loop, run_session
from keju.errors import EndpointError, KejuError, RunIncomplete
from keju.judges.exam import Bundle
from keju.judges.panel import Opinion, Panel, Seat
from keju.runs.journal import VERDICTS, Journal
from keju.runs.judged import Grade
from keju.runs.manifest import ManifestFile
from keju.runs.run import Run
from keju.solvers.once import once

if TYPE_CHECKING:
    from keju.engine.display import Display


@dataclass
class Judgement:
    """The outcome of the stage."""

    stop: KejuError | None = None
    """Why not everything was asked."""
    grades: list[Grade] = field(default_factory=list)
    opinions: dict[int, Opinion] = field(default_factory=dict)
    """By the identity of the candidate's job."""

    def opinion(self, job: Job) -> Opinion | None:
        """What the judges of an exam make of it; None if nobody judged it."""
        return self.opinions.get(id(job))


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
        run_loop(self._knock)

    async def _knock(self) -> None:
        for panel in self._panels:
            for seat in panel.seats:
                model = seat.model()
                channel = Channel(model, Limits.of(seat.task, model))
                try:
                    await channel.open([seat.sampling])
                except EndpointError as error:
                    raise panel.explained(error, seat) from None
                finally:
                    await channel.close()

    def grade(
        self,
        run: Run,
        requests: JobRequests,
        manifest: ManifestFile | None,
        *,
        display: Display | None = None,
        strict: bool = False,
    ) -> Judgement:
        """Grade what counts in the journal of a run and enter it on the scoreboards.

        Judges are asked where there is a `manifest` to write that down in; otherwise only stored
        verdicts count. An endpoint that is not ready raises if `strict`, and else is what stopped
        the stage.
        """
        bundles = self._collect(run, requests)
        for panel in self._panels:
            panel.convene([bundles[id(job)] for job in panel.jobs])
        stop = None
        if manifest is None:
            for panel in self._panels:
                recall(JobRequests(panel.work), run.folder / VERDICTS)
        else:
            stop = self._ask(run.folder, manifest, display, strict=strict)
        judgement = Judgement(stop)
        for panel in self._panels:
            for opinion in panel.conclude([bundles[id(job)] for job in panel.jobs]):
                judgement.grades += opinion.bundle.merge(opinion.verdicts)
                judgement.opinions[id(opinion.bundle.job)] = opinion
        if manifest is not None and stop is None:
            judgement.stop = self._too_many_ungraded(judgement)
        return judgement

    def _collect(self, run: Run, requests: JobRequests) -> dict[int, Bundle]:
        """The answers that are to be judged, by the identity of their job."""
        bundles = {
            id(job): Bundle(job, panel.judge.strategy)
            for panel in self._panels
            for job in panel.jobs
        }
        for reply in stored_replies(run, requests):
            if id(reply.job) in bundles:
                bundles[id(reply.job)].consider(reply.unit, reply.record)
        return bundles

    def _ask(
        self, folder: Path, manifest: ManifestFile, display: Display | None, *, strict: bool
    ) -> KejuError | None:
        """Ask all judges what has no verdict yet; one that is stopped stops those after it."""
        stop: KejuError | None = None
        with Journal(folder, VERDICTS) as journal:
            for panel in self._panels:
                spent = Meter()
                for seat in panel.seats:
                    if stop is not None:
                        recall(JobRequests(seat.jobs), journal.path)
                        continue
                    try:
                        stop = _ask_judge(seat, journal, manifest, display, spent)
                        if isinstance(stop, RunIncomplete):
                            stop = type(stop)(f"{panel.named(seat)}: {stop}")
                    except EndpointError as error:
                        explained = panel.explained(error, seat)
                        if strict:
                            raise explained from None
                        stop = RunIncomplete(str(explained))
                    for job in seat.jobs:
                        spent.include(job.meter)
        return stop

    def _too_many_ungraded(self, judgement: Judgement) -> KejuError | None:
        verdicts = [v for opinion in judgement.opinions.values() for v in opinion.verdicts]
        missing = verdicts.count(None)
        if not missing or missing / len(verdicts) <= self._error_limit:
            return None
        return RunIncomplete(
            f"the judge has no verdict on {missing} of {len(verdicts)} answers, "
            f"more than the limit of {self._error_limit:.1%}"
        )


def _ask_judge(
    seat: Seat, journal: Journal, manifest: ManifestFile, display: Display | None, spent: Meter
) -> KejuError | None:
    """Let one judge work; return what stopped it early."""
    recalled = recall(JobRequests(seat.jobs), journal.path)
    if recalled.count == sum(job.units for job in seat.jobs):
        return None
    seat.asked = True
    log = manifest.judge_log(seat.task.model)
    return run_session(
        seat.task, seat.jobs, seat.model(), once, journal, log, recalled, display, spent
    )
