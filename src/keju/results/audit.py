"""Audit a stored run: find out what may be wrong with its scores, without asking a model.

All readers of the exam read the replies. A reply is listed if readers disagree on it or if it holds
no answer. It is listed under its likely cause (see `keju.results.causes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations

import msgspec

from keju.benchmarks.base import Exam, Reader
from keju.benchmarks.grading import GRADED, PASS
from keju.benchmarks.prepare import available_readers, choose_readers
from keju.config.load import runs_folder
from keju.errors import DataError, Notice, UsageError
from keju.judges import make_judge_stage
from keju.results.causes import CODES, AuditedReply, Forms, causes_of, readers_of_form
from keju.results.doubts import doubts_of
from keju.results.metrics import accuracy_of
from keju.results.rule_changes import RuleTable, make_rule_table
from keju.results.schema import InNotebook
from keju.results.scored_exam import ScoredExam, Source, config_of_exam, path_of, scored_exams_of
from keju.runs.resume_compat import find_changed_files, version_notices
from keju.runs.run import command_name, damage_notices, missing_notices, open_run
from keju.scores.exam_scores import ExamScores
from keju.scores.exams import describe_exams, make_scores
from keju.scores.stored_replies import (
    ExamRequests,
    StoredReply,
    iter_stored_replies,
    reread_replies,
)
from keju.stats.agreement import cohens_kappa
from keju.stats.estimate import Ends, Estimate
from keju.stats.options import option_bias, recall_spread
from keju.types import CUT, LABELS, Outcome, Reading, Sample, Sign

FEWEST = 4
"""The smallest number of readers that an audit compares."""
FEW = 12
"""Up to this many replies (or 1 % of all replies, if that is more) are listed although the
headline's reader only guessed what they state. If there are more, the model has a wording that the
reader does not know, and one notice reports it."""
END = 160
"""The number of characters of a reply's end that a finding shows."""


class ReaderRow(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one reader."""

    reader: str
    version: int
    own: bool
    """Whether the exam or its protocol defines the reader; False for a simple rule of another
    tool."""
    accuracy: Estimate
    outcomes: dict[Outcome, int]
    apart: int
    """The number of replies that it scores differently from the headline's reader."""
    kappa: float | None
    """The agreement with the headline's reader on right and wrong (Cohen's kappa); None if
    undefined."""
    knows_form: bool
    """Whether the reader finds an answer in the form that the protocol asks for."""
    outside: bool
    """Whether its accuracy differs from the headline's by more than one standard error."""


class ReaderPair(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement of two readers on which replies are right."""

    first: str
    second: str
    n: int
    apart: int
    kappa: float | None


class AuditFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A suspect reply."""

    id: str
    subset: str
    cause: str
    also: tuple[str, ...]
    """Further causes that apply."""
    decides: bool
    """Whether the headline's reader and the secondary reader score the reply differently."""
    target: str
    answers: dict[str, str | None]
    """By reader."""
    outcomes: dict[str, Outcome]
    end: str
    command: str
    """A command that shows the whole reply."""
    epoch: int = 0
    rules: dict[str, str] = {}
    """By reader: the rule that decided, if the reader has several rules."""
    passages: dict[str, str] = {}
    """By reader: the passage that holds the answer."""
    in_reasoning: bool = False
    """Whether the reply has no text, so that `end` shows the end of its reasoning."""


class CauseRow(msgspec.Struct, frozen=True, kw_only=True):
    """The number of replies that are listed under one cause."""

    cause: str
    n: int
    also: int
    """The number of replies that are listed under another cause but also have this one."""
    wrong: int
    """The number of these `n` replies that the headline's reader does not score as correct."""
    explanation: str


class LabelRow(msgspec.Struct, frozen=True):
    """One label: how often it is the gold answer, and how often the headline's reader read it."""

    label: str
    gold: int
    read: int
    recall: float | None


class LabelCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The labels that were read, compared with the gold labels."""

    rows: tuple[LabelRow, ...]
    chi_squared: float | None
    """None if it cannot be tested."""
    df: int
    p: float | None
    rstd: float | None
    """The standard deviation of the recall over the labels."""
    rotations: dict[str, Estimate]
    """The accuracy by position of the right option, if each question was asked with rotated
    options."""


class FaultyQuestion(msgspec.Struct, frozen=True):
    """A question that is known to be faulty."""

    id: str
    problem: str


class ExamAudit(msgspec.Struct, frozen=True, kw_only=True):
    """The audit of one exam in one arm."""

    name: str
    arm: str
    protocol: str
    reader: str
    """The headline's reader."""
    beside: str
    """The reader that it is compared with first."""
    replies: int
    flagged: int
    cap_hits: int
    """The number of replies that used all tokens they were allowed."""
    range: Ends | None
    """The lowest and the highest accuracy over all readers."""
    form_range: Ends | None
    """The same over the readers that know the protocol's form of answers."""
    readers: tuple[ReaderRow, ...]
    pairs: tuple[ReaderPair, ...]
    signs: dict[Sign, int]
    causes: tuple[CauseRow, ...]
    findings: tuple[AuditFinding, ...]
    """Findings whose score depends on the reader come first; then they are ordered by cause."""
    labels: LabelCounts | None
    errata: tuple[FaultyQuestion, ...]
    notices: tuple[Notice, ...]
    warnings: tuple[str, ...]
    """The notices in English."""
    rules: RuleTable | None = None
    """The worth of rule changes and of several attempts; None without any."""


class SharedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A question that all runs answer with the same wrong answer: its gold answer may be wrong."""

    exam: str
    id: str
    target: str
    answer: str
    known: str
    """The known error of the question; empty if no error is known."""


class Audit(InNotebook, msgspec.Struct, frozen=True, kw_only=True):
    """The audit of a run."""

    run: str
    model: str
    exams: tuple[ExamAudit, ...]
    beside: tuple[str, ...] = ()
    """The other runs that the audit looked at."""
    failed_by_all: int = 0
    """The number of questions that no run answers correctly."""
    shared_failures: tuple[SharedFailure, ...] = ()
    notices: tuple[Notice, ...] = ()
    """The notices that concern all exams."""
    warnings: tuple[str, ...] = ()


def audit(
    run: Source,
    *,
    datasets: str | None = None,
    readers: Sequence[str] | None = None,
    beside: Sequence[Source] = (),
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> Audit:
    """Audit a stored run; the first of `readers` takes the place of the protocol's reader.

    `datasets` selects one exam of a run with several; predictions in `beside` then answer that
    exam. If `beside` names other runs, logs or predictions, the audit lists the questions that all
    of them answer with the same wrong answer.
    """
    stored = open_run(path_of(run), str(runs_folder(work_dir)))
    config = config_of_exam(stored, datasets, data_dir)
    jobs = make_scores(config)
    for job in jobs:
        preferred_readers = choose_readers(job.exam, list(readers)) if readers else job.readers[:1]
        job.use_readers(_choose_audit_readers(job.exam, preferred_readers), keep_answers=True)
    stage = make_judge_stage(config, jobs)
    facts = describe_exams(jobs)
    changed = find_changed_files(stored.manifest, facts)
    name, is_judged = command_name(stored.folder), stage is not None
    collectors = {
        id(job): _ReplyAuditor(job, name, is_judged, partial(doubts_of, job, stored.manifest))
        for job in jobs
    }
    replies = iter_stored_replies(stored, ExamRequests(jobs), match_keys=not changed)
    for reply, readings in reread_replies(replies, jobs):
        collectors[id(reply.job)].add_reply(reply, readings)
    if changed and not any(job.tallies[0].done for job in jobs):
        raise DataError("score_data_changed", file=changed[0])
    if stage is not None:
        stage.grade(stored.folder, None)
    notices = version_notices(stored.manifest, facts)
    notices += [Notice("data_changed", {"file": changed[0]})] if changed else []
    missing = sum(job.units - job.tallies[0].done for job in jobs)
    notices += damage_notices(stored.damaged, missing)
    failed = _find_failures(jobs) if beside else {}
    names = {job.exam.benchmark for job in jobs}
    other_exams: list[ScoredExam] = []
    for source in beside:
        scored_exams = _load_scored_exams(source, names, datasets, data_dir, work_dir)
        failed = _find_shared_failures(scored_exams, failed)
        other_exams += scored_exams
    return Audit(
        run=stored.id,
        model=stored.manifest.model,
        exams=tuple(collector.build_audit(other_exams) for collector in collectors.values()),
        beside=tuple(str(path_of(source)) for source in beside),
        failed_by_all=len(failed),
        shared_failures=tuple(_list_shared_failures(jobs, failed)),
        notices=tuple(notices),
        warnings=tuple(notice.text() for notice in notices),
    )


def _choose_audit_readers(exam: Exam, preferred_readers: Sequence[Reader]) -> list[Reader]:
    """Return the readers that the audit compares: the requested ones and all others of the exam.

    Rules of other tools are added if there are fewer than `FEWEST` readers.
    """
    readers = {reader.name: reader for reader in (*preferred_readers, *exam.readers.values())}
    for name, rule in available_readers(exam).items():
        if len(readers) < FEWEST:
            readers.setdefault(name, rule)
    return list(readers.values())


class _ReplyAuditor:
    """Collects the replies of one job and lists the suspect ones."""

    def __init__(
        self, job: ExamScores, run: str, judged: bool, doubts: Callable[[], Sequence[Notice]]
    ) -> None:
        self._job = job
        self._doubts = doubts
        self._run = run
        self._has_judge = judged
        self._forms: Forms = {}
        self._findings: dict[int, AuditFinding] = {}
        self._gold_labels, self._read_labels = (bytearray(job.units) for _ in range(2))
        """By unit: the position of a label from 1 on, in the order shown; 0 if there is no
        label."""
        self._at_cap = bytearray(job.units)
        self._guessed: dict[int, str] = {}
        """By unit: the wording, if the only problem is that the headline's reader guessed."""
        self._guess_limit = max(FEW, job.units // 100)

    def add_reply(self, stored: StoredReply, readings: tuple[Reading, ...]) -> None:
        """Add a stored reply with the readings of all readers, and list it if it is suspect."""
        job, unit, record = self._job, stored.unit, stored.record
        sample = stored.sample
        reply = job.filter_reply(record.reply)
        stored.enter(readings)
        self._record_label(self._gold_labels, unit, sample, sample.target)
        self._record_label(self._read_labels, unit, sample, readings[0].answer.value)
        cap = job.sampling.max_tokens
        self._at_cap[unit] = record.reply.finish == CUT or bool(
            cap and record.reply.usage.output >= cap
        )
        case = AuditedReply(
            job.exam,
            job.sampling,
            sample,
            reply,
            job.readers,
            readings,
            record.readings,
            record.target or None,
            self._has_judge,
            self._forms,
            job.limits,
        )
        self._findings.pop(unit, None)
        self._guessed.pop(unit, None)
        is_suspect = case.is_suspect
        if not is_suspect and case.guessed_right:
            self._guessed[unit] = case.wording
        if not is_suspect and not (
            unit in self._guessed and len(self._guessed) <= self._guess_limit
        ):
            return
        cause, *also = causes_of(case)
        in_reasoning = not reply.text.strip() and bool(reply.reasoning.strip())
        end = (reply.reasoning if in_reasoning else reply.text).rstrip()[-END:]
        if reply.error is not None:
            end = f"{reply.error.kind}: {reply.error.message}"[:END]
        arm = f" --arm {job.arm}" if job.arm else ""
        self._findings[unit] = AuditFinding(
            id=sample.id,
            subset=sample.subset,
            cause=cause,
            also=tuple(also),
            decides=case.headline_reading.score.value != case.secondary_reading.score.value,
            target=sample.target,
            answers={reading.reader: reading.answer.value for reading in readings},
            outcomes={reading.reader: reading.score.outcome for reading in readings},
            end=end,
            command=f"keju show {self._run} --sample {sample.id}{arm}",
            epoch=record.epoch,
            rules={
                reading.reader: reading.answer.rule for reading in readings if reading.answer.rule
            },
            passages={
                reading.reader: reading.answer.passage
                for reading in readings
                if reading.answer.passage
            },
            in_reasoning=in_reasoning and reply.error is None,
        )

    def _record_label(
        self, labels: bytearray, unit: int, sample: Sample, answer: str | None
    ) -> None:
        label = (answer or "").strip("()")
        labels[unit] = LABELS.index(label) + 1 if len(label) == 1 and label in sample.labels else 0

    def build_audit(self, other_exams: Sequence[ScoredExam]) -> ExamAudit:
        """Return the audit of the exam; `other_exams` are those of the runs next to it."""
        job, exam = self._job, self._job.exam
        has_unknown_wording = len(self._guessed) > self._guess_limit
        for unit in self._guessed if has_unknown_wording else ():
            self._findings.pop(unit, None)
        rows = self._build_reader_rows()
        names = [reader.name for reader in job.readers]
        place = names.index(exam.beside) if exam.beside in names else 0
        order = {code: place for place, code in enumerate(CODES)}
        findings = [self._findings[unit] for unit in sorted(self._findings)]
        findings.sort(key=lambda finding: (not finding.decides, order[finding.cause]))
        notices = [*self._doubts(), *_reader_notices(rows)]
        if job.missing:
            notices += missing_notices(job.tallies[0].done, job.units)
        if has_unknown_wording:
            (wording, wording_count), *_ = Counter(self._guessed.values()).most_common(1)
            counts = {
                "part": len(self._guessed),
                "whole": job.tallies[0].done,
                "most": wording_count,
            }
            wording_values = {"reader": job.readers[0].name, "wording": wording}
            notices.append(Notice("audit_own_wording", {**counts, **wording_values}))
        ids = exam.errata and {sample.id for sample in exam.samples if sample.id in exam.errata}
        return ExamAudit(
            name=exam.benchmark,
            arm=job.arm,
            protocol=exam.protocol.name,
            reader=job.readers[0].name,
            beside=job.readers[place].name,
            replies=job.tallies[0].done,
            flagged=len(findings),
            cap_hits=sum(self._at_cap),
            range=_find_accuracy_range(rows),
            form_range=_find_accuracy_range([row for row in rows if row.knows_form]),
            readers=tuple(rows),
            pairs=tuple(self._compare_readers()),
            signs={sign: n for sign, n in job.tallies[place].sign_counts().items() if n},
            causes=tuple(_count_causes(findings, job.readers[0].name)),
            findings=tuple(findings),
            labels=self._count_labels(),
            errata=tuple(FaultyQuestion(id, exam.errata[id]) for id in sorted(ids or ())),
            notices=tuple(notices),
            warnings=tuple(notice.text() for notice in notices),
            rules=make_rule_table(job, other_exams),
        )

    def _build_reader_rows(self) -> list[ReaderRow]:
        job = self._job
        rows: list[ReaderRow] = []
        headline_accuracy = accuracy_of(job.exam, job.tallies[0])
        names_knowing_form = readers_of_form(job.exam, job.readers)
        for place, (reader, tally) in enumerate(zip(job.readers, job.tallies, strict=True)):
            accuracy = accuracy_of(job.exam, tally) if place else headline_accuracy
            table = self._count_agreements(0, place)
            differing_count = table[0][1] + table[1][0]
            rows.append(
                ReaderRow(
                    reader=reader.name,
                    version=reader.version,
                    own=reader.name in job.exam.readers,
                    accuracy=accuracy,
                    outcomes=tally.outcome_counts(),
                    apart=differing_count,
                    kappa=cohens_kappa(table).value if place and sum(map(sum, table)) else None,
                    knows_form=reader.name in names_knowing_form,
                    outside=_is_outside(headline_accuracy, accuracy),
                )
            )
        return rows

    def _count_agreements(self, left_place: int, right_place: int) -> list[list[int]]:
        """Return a 2 × 2 table of the replies that both readers graded: right and wrong by each."""
        left_tally, right_tally = self._job.tallies[left_place], self._job.tallies[right_place]
        table = [[0, 0], [0, 0]]
        units = zip(
            left_tally.outcomes,
            left_tally.values,
            right_tally.outcomes,
            right_tally.values,
            strict=True,
        )
        for left_code, left_value, right_code, right_value in units:
            if left_code in GRADED and right_code in GRADED:
                table[left_value < PASS][right_value < PASS] += 1
        return table

    def _compare_readers(self) -> Iterator[ReaderPair]:
        for left_place, right_place in combinations(range(len(self._job.readers)), 2):
            table = self._count_agreements(left_place, right_place)
            n = sum(map(sum, table))
            yield ReaderPair(
                first=self._job.readers[left_place].name,
                second=self._job.readers[right_place].name,
                n=n,
                apart=table[0][1] + table[1][0],
                kappa=cohens_kappa(table).value if n else None,
            )

    def _count_labels(self) -> LabelCounts | None:
        """Return how often each label was read and how often it is the gold answer."""
        pairs = Counter(zip(self._gold_labels, self._read_labels, strict=True))
        gold_counts = Counter(self._gold_labels)
        gold_places = [
            place for place in range(1, max(gold_counts, default=0) + 1) if gold_counts[place]
        ]
        if len(gold_places) < 2:
            return None
        read_counts: Counter[int] = Counter()
        for (gold_place, label), n in pairs.items():
            read_counts[label] += n if gold_place else 0
        places = range(1, max((*gold_places, *read_counts)) + 1)
        rows = [
            LabelRow(
                LABELS[place - 1],
                gold_counts[place],
                read_counts[place],
                pairs[place, place] / gold_counts[place] if gold_counts[place] else None,
            )
            for place in places
        ]
        test = None
        counts = [row.read for row in rows], [row.gold for row in rows]
        if sum(counts[0]) and all(row.gold or not row.read for row in rows):
            test = option_bias(*counts)
        recalls = [row.recall for row in rows if row.recall is not None]
        job = self._job
        rotated = job.exam.metrics(job.tallies[0]) if job.exam.rotations > 1 else {}
        return LabelCounts(
            rows=tuple(rows),
            chi_squared=test.statistic if test else None,
            df=test.df if test else 0,
            p=test.p if test else None,
            rstd=recall_spread(recalls) if recalls else None,
            rotations={
                name: estimate for name, estimate in rotated.items() if name.startswith("position_")
            },
        )


def _find_accuracy_range(rows: Sequence[ReaderRow]) -> Ends | None:
    """Return the lowest and the highest accuracy."""
    values = [row.accuracy.value for row in rows if row.accuracy.value is not None]
    return (min(values), max(values)) if values else None


def _is_outside(headline: Estimate, reader_accuracy: Estimate) -> bool:
    """Whether the accuracies of two readers differ by more than the headline's standard error."""
    if (
        headline.value is None
        or reader_accuracy.value is None
        or not isinstance(headline.se, float)
    ):
        return False
    return abs(reader_accuracy.value - headline.value) > headline.se


def _reader_notices(rows: Sequence[ReaderRow]) -> Iterator[Notice]:
    """Yield a warning for each reader that scores differently from the headline's reader.

    Only readers that know the protocol's form count. If no reader knows it, all readers count.
    """
    for row in [row for row in rows if row.knows_form] or rows:
        if row.outside and row.accuracy.value is not None:
            headline_accuracy = rows[0].accuracy
            values = {"reader": row.reader, "other": rows[0].reader, "apart": row.apart}
            points = 100 * (row.accuracy.value - (headline_accuracy.value or 0.0))
            se = 100 * headline_accuracy.se if isinstance(headline_accuracy.se, float) else 0.0
            code = "audit_reader_outside" if se else "audit_reader_otherwise"
            yield Notice(code, {**values, "points": points} | ({"se": se} if se else {}))


def _count_causes(findings: Sequence[AuditFinding], reader: str) -> Iterator[CauseRow]:
    primary_counts = Counter(finding.cause for finding in findings)
    also = Counter(code for finding in findings for code in finding.also)
    wrong_counts = Counter(
        finding.cause for finding in findings if finding.outcomes[reader] != "correct"
    )
    for code in sorted(CODES, key=lambda code: -primary_counts[code]):
        if primary_counts[code] or also[code]:
            yield CauseRow(
                cause=code,
                n=primary_counts[code],
                also=also[code],
                wrong=wrong_counts[code],
                explanation=Notice(f"cause_{code}").text(),
            )


# --- questions that all runs fail --------------------------------------------------------------

Failures = dict[tuple[str, str], set[str]]
"""By exam and id of each question that was never answered correctly: the wrong answers that all
attempts share."""


def _find_failures(jobs: Sequence[ExamScores]) -> Failures:
    """Return the questions that this run never answers correctly, in any repeat or arm."""
    failed: Failures = {}
    answered_correctly: set[tuple[str, str]] = set()
    for job in jobs:
        tally = job.tallies[0]
        assert tally.answers is not None
        for unit, (code, value) in enumerate(zip(tally.outcomes, tally.values, strict=True)):
            key = (job.exam.benchmark, job.exam.samples[unit // job.epochs].id)
            if code not in GRADED:
                continue
            if value >= PASS:
                answered_correctly.add(key)
            answers = _normalise_answer(tally.answers[unit])
            failed[key] = failed.get(key, answers) & answers
    return {key: answers for key, answers in failed.items() if key not in answered_correctly}


def _find_shared_failures(scored_exams: Iterable[ScoredExam], failed: Failures) -> Failures:
    """Return the failed questions that another run, log or file of predictions fails as well."""
    shared_failures: Failures = {}
    for scored_exam in scored_exams:
        for question in scored_exam:
            key = (scored_exam.exam.benchmark, question.id)
            if key in failed and question.score is not None and question.score < PASS:
                shared_failures[key] = shared_failures.get(key, failed[key]) & _normalise_answer(
                    question.answer
                )
    return shared_failures


def _load_scored_exams(
    source: Source,
    exams: Collection[str],
    exam: str | None,
    data_dir: str | None,
    work_dir: str | None,
) -> list[ScoredExam]:
    """Return the scored exams of a source; predictions are read as answers to the audited exam."""
    try:
        return scored_exams_of(source, datasets=exam, data_dir=data_dir, work_dir=work_dir)
    except UsageError as error:
        if error.notice.code != "sitting_needs_exam" or len(exams) != 1:
            raise
        (name,) = exams
        return scored_exams_of(source, datasets=name, data_dir=data_dir, work_dir=work_dir)


def _normalise_answer(value: str | None) -> set[str]:
    return set() if value is None else {value.strip("() .").casefold()}


def _list_shared_failures(jobs: Sequence[ExamScores], failed: Failures) -> Iterator[SharedFailure]:
    exams = {(job.exam.benchmark, job.exam.arm): job.exam for job in jobs}
    for exam in exams.values():
        for sample in exam.samples:
            if answers := failed.get((exam.benchmark, sample.id)):
                yield SharedFailure(
                    exam=exam.benchmark,
                    id=sample.id,
                    target=sample.target,
                    answer=", ".join(
                        answer.upper() if len(answer) == 1 else answer for answer in sorted(answers)
                    ),
                    known=exam.errata.get(sample.id, ""),
                )
