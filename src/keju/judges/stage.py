"""The judging stage of a run: a model grades the answers that no rule decides.

The judge uses the same engine as the candidate, with its own model, limits, budget, price and
journal (``verdicts.jsonl``). The steps:

1. The stage is created before the first answer. It watches the candidate's jobs and keeps
   each answer that a judge must decide, so that no reply is graded twice.
2. `JudgeStage.grade` hands over the answers, asks for verdicts that are not stored, and
   enters all verdicts on the scoreboards. An answer without a verdict is ungraded, not 0.
3. The results ask for the `JudgeStage.judgement` of each entry.
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
from keju.errors import ConfigError, EndpointError, KejuError, Notice, RunIncomplete, UsageError
from keju.judges.exam import (
    BROKEN_OFF,
    GRADES,
    CandidateAnswer,
    JudgeExam,
    is_tie,
    measure_agreement,
    measure_consistency,
    submit,
)
from keju.judges.judge import Judge
from keju.judges.prompts import PROTOCOLS
from keju.judges.quality import corrected_accuracy, describe_quality, load_labelled, measure
from keju.runs.journal import VERDICTS, Journal
from keju.runs.manifest import ManifestFile
from keju.runs.run import JudgedReadings
from keju.scores.exam_scores import ExamScores
from keju.scores.usage import UsageMeter
from keju.stats.estimate import Estimate
from keju.types import Record, Sample

if TYPE_CHECKING:
    from keju.progress.display import Display
    from keju.scores.tally import Tally

LABELLED = "labelled"
"""Stands for an exam's name if the answers come from a file of known grades."""
CORRECTED = "accuracy_judge_corrected"
CONSISTENT, AGREED = 0.8, 0.6
"""The lowest self-consistency and the lowest kappa of two judges without a warning."""


class Judgement(NamedTuple):
    """A result entry's facts about its judges."""

    judge: dict[str, Any]
    """The judges, their verdicts and their cost: `keju.results.schema.JudgeReport`."""
    notices: list[Notice]
    metrics: dict[str, Estimate]
    by_rule: Tally | None = None
    """The scores before the judge, if it replaced the decisions of a reader."""


class JudgePanel:
    """The judges of all exams with the same judge settings; the first judge decides."""

    def __init__(
        self, config: TaskConfig, settings: JudgeConfig, jobs: Sequence[ExamScores]
    ) -> None:
        if settings.second == settings.model:
            raise ConfigError("judge_twice")
        self.settings = settings
        self.jobs = jobs
        self.judges = [Judge(config, settings, settings.model)]
        if settings.second:
            self.judges.append(Judge(config, settings, settings.second, is_second=True))
        self.labelled = None
        if settings.labelled:
            self.labelled = load_labelled(Path(settings.labelled), partial(_find, jobs, {}))
        self._collected: list[dict[int, CandidateAnswer]] = [{} for _ in jobs]
        for job, submissions in zip(jobs, self._collected, strict=True):
            job.watcher = partial(self._collect, job, submissions)

    def _collect(
        self, job: ExamScores, submissions: dict[int, CandidateAnswer], unit: int, record: Record
    ) -> None:
        """Keep an answer for the judges; it replaces an earlier one."""
        submission = submit(job, unit, record, self.settings.strategy)
        if submission is not None:
            submissions[unit] = submission
        else:
            submissions.pop(unit, None)

    def notices(self) -> Iterator[Notice]:
        """Yield the notices about the judges that do not depend on their verdicts."""
        for judge in self.judges:
            yield from judge.self_judging_notices()
            yield from judge.sampling_notices()
        first_judge = self.judges[0]
        missing = first_judge.missing_key()
        if missing is not None and any(judge.was_asked for judge in self.judges):
            yield missing
        if self.settings.repeats > 1 and first_judge.sampling.temperature == 0:
            yield Notice("judge_repeats_at_temperature_0")

    def assign_answers(self) -> None:
        """Give every judge the answers of each exam, in order, and then the labelled ones."""
        self.submissions = [
            [submissions[unit] for unit in sorted(submissions)] for submissions in self._collected
        ]
        kind = self.judges[0].kind
        exams = [
            JudgeExam(job.title, [submission.question for submission in submissions], kind)
            for job, submissions in zip(self.jobs, self.submissions, strict=True)
        ]
        if self.labelled is not None:
            exams.append(JudgeExam(LABELLED, self.labelled.samples, kind))
        for judge in self.judges:
            judge.assign(exams)

    def apply_verdicts(self) -> Iterator[JudgedReadings]:
        """Enter the first judge's verdicts on the scoreboards; yield the resulting readings."""
        places = range(len(self.jobs))
        self.by_rule = [
            None if job.exam.open_answers else deepcopy(job.tallies) for job in self.jobs
        ]
        self.verdicts = [[judge.verdicts(place) for judge in self.judges] for place in places]
        for job, submissions, verdicts in zip(
            self.jobs, self.submissions, self.verdicts, strict=True
        ):
            for submission, verdict in zip(submissions, verdicts[0], strict=True):
                readings = submission.apply_verdict(verdict)
                for tally, reading in zip(job.tallies, readings, strict=True):
                    tally.add(submission.unit, reading)
                index, epoch = divmod(submission.unit, job.epochs)
                name = job.exam.samples[index].id
                yield JudgedReadings(job.exam.benchmark, name, submission.hash, readings, epoch)

    def judgement(self, job: ExamScores, reader: int, deff: float) -> Judgement:
        """Return the judges of an exam, their cost and reliability, for one of its readers."""
        place = self.jobs.index(job)
        verdicts = self.verdicts[place][0]
        judge, notices = self._describe_judge(place), [*self.notices()]
        codes = ("judge_without_verdict", "second_judge_without_verdict")
        for code, judge_verdicts in zip(codes, self.verdicts[place], strict=False):
            if missing := judge_verdicts.count(None):
                notices.append(Notice(code, {"missing": missing, "whole": len(judge_verdicts)}))
        notices += self._find_cautions(place, judge)
        tallies = self.by_rule[place]
        by_rule = tallies[reader] if tallies is not None else None
        if by_rule is not None:
            notices += _overruled_notices(by_rule, job.tallies[reader], job.readers[reader].name)
        if self.labelled is None:
            return Judgement(judge, notices, {}, by_rule)
        quality = measure(self.labelled.correct, self.judges[0].verdicts(len(self.jobs)))
        judge |= {"quality": describe_quality(quality, self.labelled.correct)}
        tally = job.tallies[reader]
        units = [
            submission.unit
            for submission, verdict in zip(self.submissions[place], verdicts, strict=True)
            if submission.is_judged[reader] and verdict is not None
        ]
        correct = sum(tally.values[unit] >= PASS for unit in units)
        rule_counts = (tally.graded - len(units), tally.passed_count - correct)
        shrink = max(1.0, deff) * job.epochs
        try:
            metric = corrected_accuracy((len(units), correct), rule_counts, quality, shrink=shrink)
        except UsageError as error:
            notices.append(Notice("judge_not_corrected", {"reason": str(error)}))
            return Judgement(judge, notices, {}, by_rule)
        return Judgement(judge, notices, {CORRECTED: metric}, by_rule)

    def _find_cautions(self, place: int, judge: dict[str, Any]) -> Iterator[Notice]:
        """Yield the reasons why the verdicts on an exam are less reliable than they seem."""
        replies, verdict_count = self.judges[0].replies[place], len(self.verdicts[place][0])
        if cut := replies.failures[BROKEN_OFF]:
            yield Notice("judge_cut_off", {"replies": cut})
        if replies.doubts:
            yield Notice("judge_in_doubt", {"doubts": replies.doubts, "whole": verdict_count})
        for panel_judge in self.judges:
            names = +panel_judge.jobs[place].reported_names
            if len(names) > 1:
                counts = ", ".join(f"{name} ({count})" for name, count in names.most_common())
                values = {"judge": panel_judge.task.model, "models": len(names), "counts": counts}
                yield Notice("judge_reported_models", values)
        if ties := judge.get("ties"):
            yield Notice("judge_ties", {"ties": ties, "whole": verdict_count})
        agreement = judge.get("agreement", {})
        share = agreement.get("self_consistency")
        if share is not None and share < CONSISTENT:
            yield Notice("judge_inconsistent", {"share": share})
        kappa = agreement.get("second", {}).get("kappa")
        if kappa is not None and kappa < AGREED:
            yield Notice("judges_disagree", {"second": self.settings.second, "kappa": kappa})

    def _describe_judge(self, place: int) -> dict[str, Any]:
        settings, (verdicts, *second_verdicts) = self.settings, self.verdicts[place]
        first_judge = self.judges[0]
        protocol, replies = PROTOCOLS[first_judge.kind], first_judge.replies[place]
        meters = [judge.jobs[place].meter for judge in self.judges]
        labelled_judges = self.judges if self.labelled and place == 0 else ()
        labelled_meters = [judge.jobs[-1].meter for judge in labelled_judges]
        description: dict[str, Any] = {
            "model": settings.model,
            "strategy": settings.strategy,
            "protocol": protocol.name,
            "protocol_version": "+".join(sorted(replies.versions)) or protocol.version,
            "judged": len(verdicts) - verdicts.count(None),
            "ungraded": verdicts.count(None),
            "doubts": replies.doubts,
            "failed_replies": dict(replies.failures),
            **_describe_usage(meters + labelled_meters, settings),
        }
        if labelled_meters:
            description[LABELLED] = _describe_usage(labelled_meters, settings)
        if not settings.continuous:
            counts = Counter(verdicts)
            description["verdicts"] = {grade: counts[grade] for grade in GRADES}
        agreement: dict[str, Any] = {}
        if settings.repeats > 1:
            description["repeats"] = settings.repeats
            votes = first_judge.votes(place)
            description["ties"] = sum(map(is_tie, votes))
            agreement["self_consistency"] = measure_consistency(votes)
        for other_verdicts in second_verdicts:
            measures = measure_agreement(verdicts, other_verdicts)
            agreement["second"] = {"model": settings.second} | measures
        if agreement:
            description["agreement"] = agreement
        return description


class JudgeStage:
    """The judges of a run, from the task or else from its exams."""

    def __init__(self, config: TaskConfig, jobs: Sequence[ExamScores]) -> None:
        groups: list[tuple[JudgeConfig, list[ExamScores]]] = []
        for job in jobs:
            judge = config.judge or job.exam.judge
            if judge is None or judge.strategy == "rule":
                continue
            matching_groups = [group for settings, group in groups if settings == judge]
            if matching_groups:
                matching_groups[0].append(job)
            else:
                groups.append((judge, [job]))
        self._panels = [JudgePanel(config, judge, group) for judge, group in groups]
        self._judges = [judge for panel in self._panels for judge in panel.judges]
        self._error_limit = config.error_limit
        self.grades: list[JudgedReadings] = []
        """The readings of each answer that a judge has decided."""

    def check(self) -> None:
        """Raise an error for judges that cannot be made, before any request."""
        for judge in self._judges:
            judge.create_model()

    def preflight(self) -> None:
        """Find a wrong address, key or model of a judge before the candidate is asked."""
        for judge in self._judges:
            judge.check_endpoint()

    def grade(
        self,
        folder: Path,
        manifest: ManifestFile | None,
        *,
        display: Display | None = None,
        strict: bool = False,
        runs_programs: bool = False,
    ) -> KejuError | None:
        """Grade the answers so far; return the error that stopped this early, if any.

        With a `manifest`, missing verdicts are requested and recorded. Without it only stored
        verdicts count. With `strict`, an endpoint that is not ready raises its error.
        """
        for panel in self._panels:
            panel.assign_answers()
        stop = None
        if manifest is None:
            for judge in self._judges:
                judge.recall(folder / VERDICTS)
        else:
            stop = self._ask(folder, manifest, display, strict=strict)
        for judge in self._judges:
            judge.count_failures(folder / VERDICTS)
        self.grades = [grade for panel in self._panels for grade in panel.apply_verdicts()]
        if manifest is None or stop is not None:
            return stop
        verdicts = [
            v
            for panel in self._panels
            for first_verdicts, *_ in panel.verdicts
            for v in first_verdicts
        ]
        missing, verdict_count, limit = verdicts.count(None), len(verdicts), self._error_limit
        if not missing or missing / verdict_count <= limit:
            return None
        return RunIncomplete(
            "judge_lacks_verdicts", missing=missing, whole=verdict_count, limit=limit
        )

    def _ask(
        self, folder: Path, manifest: ManifestFile, display: Display | None, *, strict: bool
    ) -> KejuError | None:
        """Ask all judges for missing verdicts. If one is stopped, the judges after it are not
        asked."""
        stop: KejuError | None = None
        with Journal(folder, VERDICTS) as journal:
            for panel in self._panels:
                panel_usage = UsageMeter()  # both judges of a panel share its budget
                for judge in panel.judges:
                    recalled = judge.recall(journal.path)
                    has_missing_verdicts = recalled.count < sum(job.units for job in judge.jobs)
                    if has_missing_verdicts and stop is None:
                        log = manifest.judge_log(judge.task.model)
                        try:
                            stop = judge.run(journal, log, recalled, display, panel_usage)
                        except EndpointError as error:
                            if strict:
                                raise
                            stop = RunIncomplete(error.code, **error.values)
                    for job in judge.jobs:
                        panel_usage.include(job.meter)
        return stop

    def judgement(self, job: ExamScores, reader: int, deff: float = 1.0) -> Judgement | None:
        """Return the facts about an exam's judges under a reader; None if the exam has no judge.

        `deff` is the design effect of the accuracy under that reader.
        """
        for panel in self._panels:
            if job in panel.jobs:
                return panel.judgement(job, reader, deff)
        return None


def _overruled_notices(tally_before: Tally, tally_after: Tally, reader: str) -> Iterator[Notice]:
    """Yield the notice that a judge changed scores of a reader of closed answers."""
    pairs = zip(tally_before.values, tally_after.values, strict=True)
    changes = [new - old for old, new in pairs if new != old]
    if changes or tally_before.counts != tally_after.counts:
        raised = sum(change > 0 for change in changes)
        values = {"reader": reader, "raised": raised, "lowered": len(changes) - raised}
        yield Notice("judge_overrules_reader", values | {"whole": tally_after.done})


def _find(jobs: Sequence[ExamScores], table: dict[str, Sample], name: str) -> Sample | None:
    """Return a question by its id, or by its name in the benchmark's own data.

    `table` is filled on the first call.
    """
    if not table:
        table.update({sample.id: sample for job in jobs for sample in job.exam.samples})
    ids = (name, *(job.exam.locate({"id": name}) for job in jobs))
    return next((table[sample_id] for sample_id in ids if sample_id in table), None)


def _describe_usage(meters: Sequence[UsageMeter], settings: JudgeConfig) -> dict[str, Any]:
    """Return the usage and the cost of requests to the judges."""
    total = UsageMeter()
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
