"""The judging stage of a run: answers that no rule decides are graded by a model.

A judge is asked by the same engine as the candidate, with its own model, limits, budget, price
and journal (``verdicts.jsonl``). The order of events:

    1. The stage is made before the first answer; it watches the candidate's jobs and keeps each
       answer that a judge has to decide when it is entered, so that no reply is graded twice.
    2. `JudgeStage.grade` hands the answers over, asks what has no stored verdict, and enters the
       verdicts on the scoreboards. An answer without one is ungraded, never 0 for its judge.
    3. The results ask for the `JudgeStage.judgement` of each of their entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.benchmarks.grading import PASS
from keju.config import JudgeConfig, TaskConfig
from keju.engine.channel import Channel, Limits
from keju.engine.job import Job
from keju.engine.limits import Meter
from keju.engine.session import run_loop
from keju.errors import ConfigError, EndpointError, KejuError, Notice, RunIncomplete, UsageError
from keju.judges.exam import (
    BROKEN_OFF,
    GRADES,
    JudgeExam,
    Submission,
    agreement,
    consistency,
    is_tie,
    submit,
)
from keju.judges.judge import Judge
from keju.judges.prompts import PROTOCOLS
from keju.judges.quality import corrected_accuracy, describe, load_labelled, measure
from keju.runs.journal import VERDICTS, Journal
from keju.runs.manifest import ManifestFile
from keju.runs.run import Grade
from keju.stats.estimate import Estimate
from keju.types import Record, Sample

if TYPE_CHECKING:
    from keju.engine.display import Display
    from keju.engine.tally import Tally

LABELLED = "labelled"
"""Stands for the name of an exam where the answers come from a file of known grades."""
CORRECTED = "accuracy_judge_corrected"
CONSISTENT, AGREED = 0.8, 0.6
"""The least self-consistency and the least kappa of two judges that go without a warning."""


class Judgement(NamedTuple):
    """What an entry of the results says about its judges."""

    judge: dict[str, Any]
    """Who judged, what came of it and what it cost: `keju.results.schema.Judge`."""
    notices: list[Notice]
    metrics: dict[str, Estimate]
    by_rule: Tally | None = None
    """The scores before the judge, where it took the place of a reader that had decided."""


class Panel:
    """The judges of the exams that share one set of judge's settings; the first one decides."""

    def __init__(self, config: TaskConfig, settings: JudgeConfig, jobs: Sequence[Job]) -> None:
        if settings.second == settings.model:
            raise ConfigError("judge_twice")
        self.settings = settings
        self.jobs = jobs
        self.judges = [Judge(config, settings, settings.model)]
        if settings.second:
            self.judges.append(Judge(config, settings, settings.second, second=True))
        self.labelled = None
        if settings.labelled:
            self.labelled = load_labelled(Path(settings.labelled), partial(_find, jobs, {}))
        self._collected: list[dict[int, Submission]] = [{} for _ in jobs]
        for job, submissions in zip(jobs, self._collected, strict=True):
            job.watcher = partial(self._collect, job, submissions)

    def _collect(
        self, job: Job, submissions: dict[int, Submission], unit: int, record: Record
    ) -> None:
        """Keep an answer that the judges decide; it takes the place of an earlier one."""
        submission = submit(job, unit, record, self.settings.strategy)
        if submission is not None:
            submissions[unit] = submission
        else:
            submissions.pop(unit, None)

    def notices(self) -> Iterator[Notice]:
        """What is to be known about the judges, whatever they say."""
        for judge in self.judges:
            yield from judge.kinship()
            yield from judge.told()
        first = self.judges[0]
        missing = first.missing_key()
        if missing is not None and any(judge.asked for judge in self.judges):
            yield missing
        if self.settings.repeats > 1 and first.sampling.temperature == 0:
            yield Notice("judge_repeats_at_temperature_0")

    def hand_over(self) -> None:
        """Give every judge the answers of each exam, in its order, and then the labelled ones."""
        self.submissions = [[own[unit] for unit in sorted(own)] for own in self._collected]
        kind = self.judges[0].kind
        exams = [
            JudgeExam(job.title, [each.question for each in own], kind)
            for job, own in zip(self.jobs, self.submissions, strict=True)
        ]
        if self.labelled is not None:
            exams.append(JudgeExam(LABELLED, self.labelled.samples, kind))
        for judge in self.judges:
            judge.hand(exams)

    def decide(self) -> Iterator[Grade]:
        """Enter the first judge's verdicts on the scoreboards; the readings that result."""
        places = range(len(self.jobs))
        self.by_rule = [
            None if job.exam.open_answers else deepcopy(job.tallies) for job in self.jobs
        ]
        self.verdicts = [[judge.verdicts(place) for judge in self.judges] for place in places]
        for job, submissions, verdicts in zip(
            self.jobs, self.submissions, self.verdicts, strict=True
        ):
            for submission, verdict in zip(submissions, verdicts[0], strict=True):
                readings = submission.decided(verdict)
                for tally, reading in zip(job.tallies, readings, strict=True):
                    tally.add(submission.unit, reading)
                index, epoch = divmod(submission.unit, job.epochs)
                name = job.exam.samples[index].id
                yield Grade(job.exam.benchmark, name, submission.hash, readings, epoch)

    def judgement(self, job: Job, reader: int, deff: float) -> Judgement:
        """Who judged an exam, at what cost, and how far to trust it, under one of its readers."""
        place = self.jobs.index(job)
        verdicts, *second = self.verdicts[place]
        judge, notices = self._described(place), [*self.notices()]
        for code, own in (
            ("judge_without_verdict", verdicts),
            *(("second_judge_without_verdict", each) for each in second),
        ):
            if missing := own.count(None):
                notices.append(Notice(code, {"missing": missing, "whole": len(own)}))
        notices += self._cautions(place, judge)
        tallies = self.by_rule[place]
        by_rule = tallies[reader] if tallies is not None else None
        if by_rule is not None:
            notices += _overruled(by_rule, job.tallies[reader], job.readers[reader].name)
        if self.labelled is None:
            return Judgement(judge, notices, {}, by_rule)
        quality = measure(self.labelled.correct, self.judges[0].verdicts(len(self.jobs)))
        judge |= {"quality": describe(quality, self.labelled.correct)}
        tally = job.tallies[reader]
        units = [
            submission.unit
            for submission, verdict in zip(self.submissions[place], verdicts, strict=True)
            if submission.judged[reader] and verdict is not None
        ]
        correct = sum(tally.values[unit] >= PASS for unit in units)
        others = (tally.graded - len(units), tally.passed_count - correct)
        shrink = max(1.0, deff) * job.epochs
        try:
            metric = corrected_accuracy((len(units), correct), others, quality, shrink=shrink)
        except UsageError as error:
            notices.append(Notice("judge_not_corrected", {"reason": str(error)}))
            return Judgement(judge, notices, {}, by_rule)
        return Judgement(judge, notices, {CORRECTED: metric}, by_rule)

    def _cautions(self, place: int, judge: dict[str, Any]) -> Iterator[Notice]:
        """What makes the verdicts on an exam less certain than they look."""
        replies, whole = self.judges[0].replies[place], len(self.verdicts[place][0])
        if cut := replies.failures[BROKEN_OFF]:
            yield Notice("judge_cut_off", {"replies": cut})
        if replies.doubts:
            yield Notice("judge_in_doubt", {"doubts": replies.doubts, "whole": whole})
        for each in self.judges:
            names = +each.jobs[place].reported_names
            if len(names) > 1:
                counts = ", ".join(f"{name} ({many})" for name, many in names.most_common())
                values = {"judge": each.task.model, "models": len(names), "counts": counts}
                yield Notice("judge_reported_models", values)
        if ties := judge.get("ties"):
            yield Notice("judge_ties", {"ties": ties, "whole": whole})
        agreed = judge.get("agreement", {})
        share, kappa = agreed.get("self_consistency"), agreed.get("second", {}).get("kappa")
        if share is not None and share < CONSISTENT:
            yield Notice("judge_inconsistent", {"share": share})
        if kappa is not None and kappa < AGREED:
            yield Notice("judges_disagree", {"second": self.settings.second, "kappa": kappa})

    def _described(self, place: int) -> dict[str, Any]:
        settings, (verdicts, *second) = self.settings, self.verdicts[place]
        first = self.judges[0]
        protocol, replies = PROTOCOLS[first.kind], first.replies[place]
        meters = [judge.jobs[place].meter for judge in self.judges]
        known = [judge.jobs[-1].meter for judge in self.judges if self.labelled and place == 0]
        described: dict[str, Any] = {
            "model": settings.model,
            "strategy": settings.strategy,
            "protocol": protocol.name,
            "protocol_version": "+".join(sorted(replies.versions)) or protocol.version,
            "judged": len(verdicts) - verdicts.count(None),
            "ungraded": verdicts.count(None),
            "doubts": replies.doubts,
            "failed_replies": dict(replies.failures),
            **_spent(meters + known, settings),
        }
        if known:
            described[LABELLED] = _spent(known, settings)
        if not settings.continuous:
            counts = Counter(verdicts)
            described["verdicts"] = {grade: counts[grade] for grade in GRADES}
        agreed: dict[str, Any] = {}
        if settings.repeats > 1:
            described["repeats"] = settings.repeats
            votes = first.votes(place)
            described["ties"] = sum(map(is_tie, votes))
            agreed["self_consistency"] = consistency(votes)
        if second:
            agreed["second"] = {"model": settings.second} | agreement(verdicts, second[0])
        return described | ({"agreement": agreed} if agreed else {})


class JudgeStage:
    """The judges of a run: those that the task names, or else its exams."""

    def __init__(self, config: TaskConfig, jobs: Sequence[Job]) -> None:
        groups: list[tuple[JudgeConfig, list[Job]]] = []
        for job in jobs:
            judge = config.judge or job.exam.judge
            if judge is None or judge.strategy == "rule":
                continue
            same = [group for settings, group in groups if settings == judge]
            if same:
                same[0].append(job)
            else:
                groups.append((judge, [job]))
        self._panels = [Panel(config, judge, group) for judge, group in groups]
        self._judges = [judge for panel in self._panels for judge in panel.judges]
        self._error_limit = config.error_limit
        self.grades: list[Grade] = []
        """The readings of each answer that a judge decided, once it did."""

    def check(self) -> None:
        """Refuse judges that cannot be made, before anybody is asked."""
        for judge in self._judges:
            judge.model()

    def preflight(self) -> None:
        """Find a wrong address, key or model of a judge before the candidate is asked."""

        async def knock() -> None:
            for judge in self._judges:
                model = judge.model()
                channel = Channel(model, Limits.of(judge.task, model))
                try:
                    await channel.open([judge.sampling])
                except EndpointError as error:
                    raise judge.failed(error) from None
                finally:
                    await channel.close()

        run_loop(knock)

    def grade(
        self,
        folder: Path,
        manifest: ManifestFile | None,
        *,
        display: Display | None = None,
        strict: bool = False,
    ) -> KejuError | None:
        """Grade the answers that were entered so far; return what stopped that early.

        Judges are asked where there is a `manifest` to write that down in; otherwise only stored
        verdicts count. An endpoint that is not ready raises if `strict`.
        """
        for panel in self._panels:
            panel.hand_over()
        stop = None
        if manifest is None:
            for judge in self._judges:
                judge.recall(folder / VERDICTS)
        else:
            stop = self._ask(folder, manifest, display, strict=strict)
        for judge in self._judges:
            judge.look_back(folder / VERDICTS)
        self.grades = [grade for panel in self._panels for grade in panel.decide()]
        if manifest is None or stop is not None:
            return stop
        verdicts = [v for panel in self._panels for first, *_ in panel.verdicts for v in first]
        missing, whole, limit = verdicts.count(None), len(verdicts), self._error_limit
        if not missing or missing / whole <= limit:
            return None
        return RunIncomplete("judge_lacks_verdicts", missing=missing, whole=whole, limit=limit)

    def _ask(
        self, folder: Path, manifest: ManifestFile, display: Display | None, *, strict: bool
    ) -> KejuError | None:
        """Ask all judges what has no verdict yet; one that is stopped stops those after it."""
        stop: KejuError | None = None
        with Journal(folder, VERDICTS) as journal:
            for panel in self._panels:
                spent = Meter()  # both judges of a panel share its budget
                for judge in panel.judges:
                    recalled = judge.recall(journal.path)
                    lacking = recalled.count < sum(job.units for job in judge.jobs)
                    if lacking and stop is None:
                        log = manifest.judge_log(judge.task.model)
                        try:
                            stop = judge.work(journal, log, recalled, display, spent)
                        except EndpointError as error:
                            if strict:
                                raise
                            stop = RunIncomplete(error.code, **error.values)
                    for job in judge.jobs:
                        spent.include(job.meter)
        return stop

    def judgement(self, job: Job, reader: int, deff: float = 1.0) -> Judgement | None:
        """What the judges of an exam make of it under a reader; None if nobody judged it.

        `deff` is the design effect of the accuracy under that reader.
        """
        for panel in self._panels:
            if job in panel.jobs:
                return panel.judgement(job, reader, deff)
        return None


def _overruled(before: Tally, after: Tally, reader: str) -> Iterator[Notice]:
    """The notice that a judge scores otherwise than the reader of an exam with closed answers."""
    pairs = zip(before.values, after.values, strict=True)
    changes = [new - old for old, new in pairs if new != old]
    if changes or before.counts != after.counts:
        raised = sum(change > 0 for change in changes)
        values = {"reader": reader, "raised": raised, "lowered": len(changes) - raised}
        yield Notice("judge_overrules_reader", values | {"whole": after.done})


def _find(jobs: Sequence[Job], table: dict[str, Sample], name: str) -> Sample | None:
    """A question by its id, or by its name in the benchmark's own data; `table` is filled once."""
    if not table:
        table.update({sample.id: sample for job in jobs for sample in job.exam.samples})
    ids = (name, *(job.exam.locate({"id": name}) for job in jobs))
    return next((table[each] for each in ids if each in table), None)


def _spent(meters: Sequence[Meter], settings: JudgeConfig) -> dict[str, Any]:
    """What it took to ask the judges, and what that cost."""
    total = Meter()
    for meter in meters:
        total.include(meter)
    usage = {
        "requests": total.requests,
        "input_tokens": total.input,
        "output_tokens": total.output,
        "cached_tokens": total.cached,
        "reasoning_tokens": total.reasoning,
    }
    price = settings.price
    cost = sum(meter.cost(price) or 0.0 for meter in meters) if price is not None else None
    return {"usage": usage, "cost": cost}
