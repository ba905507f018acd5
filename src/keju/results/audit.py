"""What may be wrong with the number of a stored run, without asking a model.

Its replies are read by all readers of the exam, side by side; every reply that they do not agree
on, or that holds no answer, is listed under its likely cause (`keju.results.causes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations

import msgspec

from keju.benchmarks.base import Exam, Reader
from keju.benchmarks.grading import GRADED, PASS
from keju.benchmarks.prepare import choose_readers, readers_at_hand
from keju.config.load import runs_folder
from keju.engine.job import Job, exams_of, make_jobs
from keju.engine.resume import JobRequests, StoredReply, read_anew, stored_replies
from keju.errors import DataError, Notice, UsageError
from keju.judges import make_judge_stage
from keju.results.causes import CODES, Case, Forms, causes_of, readers_of_form
from keju.results.doubts import doubts_of
from keju.results.metrics import accuracy_of
from keju.results.schema import InNotebook
from keju.results.sittings import Sitting, Source, config_of_exam, path_of, sittings_of
from keju.runs.run import command_name, damage_notices, missing_notices, open_run
from keju.runs.sameness import changed_files, other_versions
from keju.stats.agreement import cohens_kappa
from keju.stats.estimate import Ends, Estimate
from keju.stats.options import option_bias, recall_spread
from keju.types import CUT, LABELS, Outcome, Reading, Sample, Sign

FEWEST = 4
"""Readers that stand side by side at least."""
FEW = 12
"""Replies, or a hundredth if that is more, that are listed though the headline's reader only had
to guess what they state; where there are more, the model has a wording of its own."""
END = 160
"""Characters of a reply's end that are shown."""


class ReaderRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one reader makes of the replies."""

    reader: str
    version: int
    own: bool
    """Whether the exam or its protocol names it; else it is another tool's simple rule."""
    accuracy: Estimate
    outcomes: dict[Outcome, int]
    apart: int
    """Replies that it scores otherwise than the headline's reader."""
    kappa: float | None
    """Its agreement with the headline's reader on right and wrong; None where undefined."""
    knows_form: bool
    """Whether it finds an answer in the form that the protocol asks for."""
    outside: bool
    """Whether its accuracy lies more than a standard error from the headline's."""


class ReaderPair(msgspec.Struct, frozen=True, kw_only=True):
    """How far two readers agree on which replies are right."""

    first: str
    second: str
    n: int
    apart: int
    kappa: float | None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A reply to look at."""

    id: str
    subset: str
    cause: str
    also: tuple[str, ...]
    """Further causes."""
    decides: bool
    """Whether its score depends on which of the two readers counts, the headline's or the other."""
    target: str
    answers: dict[str, str | None]
    """By reader."""
    outcomes: dict[str, Outcome]
    end: str
    command: str
    """Shows the whole reply."""
    epoch: int = 0
    rules: dict[str, str] = {}
    """By reader: the rule that decided, where a reader has several."""
    passages: dict[str, str] = {}
    """By reader: the words in which the answer was read."""
    in_reasoning: bool = False
    """Whether the reply has no text, so that `end` is that of its reasoning."""


class CauseRow(msgspec.Struct, frozen=True, kw_only=True):
    """How many replies are listed under a cause."""

    cause: str
    n: int
    also: int
    """Replies of other causes to which it applies too."""
    wrong: int
    """Of the former, those without a score by the headline's reader that counts as right."""
    explanation: str


class LabelRow(msgspec.Struct, frozen=True):
    """One label: how often it is the gold answer and how often the headline's reader read it."""

    label: str
    gold: int
    read: int
    recall: float | None


class LabelCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The labels that were read against the gold ones."""

    rows: tuple[LabelRow, ...]
    chi_squared: float | None
    """None where it cannot be tested."""
    df: int
    p: float | None
    rstd: float | None
    """Standard deviation of the recall over labels."""
    rotations: dict[str, Estimate]
    """What rotated options tell about positions, where each question was asked in several."""


class Erratum(msgspec.Struct, frozen=True):
    """A question that is known to be faulty."""

    id: str
    problem: str


class ExamAudit(msgspec.Struct, frozen=True, kw_only=True):
    """The audit of one exam, in one arm."""

    name: str
    arm: str
    protocol: str
    reader: str
    """The headline's."""
    beside: str
    """The one that it is compared with first."""
    replies: int
    flagged: int
    cap_hits: int
    """Replies that took all tokens they were allowed."""
    range: Ends | None
    """The least and the largest accuracy over the readers."""
    form_range: Ends | None
    """The same over the readers that know the protocol's form."""
    readers: tuple[ReaderRow, ...]
    pairs: tuple[ReaderPair, ...]
    signs: dict[Sign, int]
    causes: tuple[CauseRow, ...]
    findings: tuple[Finding, ...]
    """Those first whose score depends on the reader, then by cause."""
    labels: LabelCounts | None
    errata: tuple[Erratum, ...]
    notices: tuple[Notice, ...]
    warnings: tuple[str, ...]
    """The notices in English."""


class SharedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A question to which all runs give the same wrong answer: perhaps its gold answer is wrong."""

    exam: str
    id: str
    target: str
    answer: str
    known: str
    """What is known to be wrong with it; empty if nothing is."""


class Audit(InNotebook, msgspec.Struct, frozen=True, kw_only=True):
    """The audit of a run."""

    run: str
    model: str
    exams: tuple[ExamAudit, ...]
    beside: tuple[str, ...] = ()
    """Other runs that were looked at."""
    failed_by_all: int = 0
    """Questions that no run gets right."""
    shared_failures: tuple[SharedFailure, ...] = ()
    notices: tuple[Notice, ...] = ()
    """What could mislead about all exams."""
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
    """Audit a stored run; the first of `readers` takes the place of the protocol's own.

    `datasets` chooses one exam of a run that sat several, which predictions beside it then answer.
    With others `beside` it (runs, logs or predictions), the questions that all of them fail with
    the same answer are listed.
    """
    stored = open_run(path_of(run), str(runs_folder(work_dir)))
    config = config_of_exam(stored, datasets, data_dir)
    jobs = make_jobs(config)
    for job in jobs:
        first = choose_readers(job.exam, list(readers)) if readers else job.readers[:1]
        job.read_with(_all_readers(job.exam, first), keep_answers=True)
    stage = make_judge_stage(config, jobs)
    facts = exams_of(jobs)
    changed = changed_files(stored.manifest, facts)
    name, is_judged = command_name(stored.folder), stage is not None
    desks = {
        id(job): _Desk(job, name, is_judged, partial(doubts_of, job, stored.manifest))
        for job in jobs
    }
    replies = stored_replies(stored, JobRequests(jobs), match_keys=not changed)
    for reply, readings in read_anew(replies, jobs):
        desks[id(reply.job)].see(reply, readings)
    if changed and not any(job.tallies[0].done for job in jobs):
        raise DataError("score_data_changed", file=changed[0])
    if stage is not None:
        stage.grade(stored.folder, None)
    notices = other_versions(stored.manifest, facts)
    notices += [Notice("data_changed", {"file": changed[0]})] if changed else []
    missing = sum(job.units - job.tallies[0].done for job in jobs)
    notices += damage_notices(stored.damaged, missing)
    failed = _failures(jobs) if beside else {}
    names = {job.exam.benchmark for job in jobs}
    for source in beside:
        found = _sittings(source, names, datasets, data_dir, work_dir)
        failed = _failures_beside(found, failed)
    return Audit(
        run=stored.id,
        model=stored.manifest.model,
        exams=tuple(desk.audited() for desk in desks.values()),
        beside=tuple(str(path_of(source)) for source in beside),
        failed_by_all=len(failed),
        shared_failures=tuple(_shared(jobs, failed)),
        notices=tuple(notices),
        warnings=tuple(notice.text() for notice in notices),
    )


def _all_readers(exam: Exam, first: Sequence[Reader]) -> list[Reader]:
    """The readers asked for, all others of the exam, and rules of others where these are few."""
    readers = {reader.name: reader for reader in (*first, *exam.readers.values())}
    for name, rule in readers_at_hand(exam).items():
        if len(readers) < FEWEST:
            readers.setdefault(name, rule)
    return list(readers.values())


class _Desk:
    """Where the replies of one job are looked at, one by one."""

    def __init__(
        self, job: Job, run: str, judged: bool, doubts: Callable[[], Sequence[Notice]]
    ) -> None:
        self._job = job
        self._doubts = doubts
        self._run = run
        self._judged = judged
        self._forms: Forms = {}
        self._findings: dict[int, Finding] = {}
        self._gold, self._read = (bytearray(job.units) for _ in range(2))
        """By unit: the place of a label from 1 on, as it was shown; 0 where there is none."""
        self._at_cap = bytearray(job.units)
        self._guessed: dict[int, str] = {}
        """By unit: the wording, where all that is wrong is that the headline's reader guessed."""
        self._bearable = max(FEW, job.units // 100)

    def see(self, stored: StoredReply, readings: tuple[Reading, ...]) -> None:
        """Enter a stored reply as all readers read it; list it if it is suspect."""
        job, unit, record = self._job, stored.unit, stored.record
        sample = stored.sample
        reply = job.filtered(record.reply)
        stored.enter(readings)
        self._note_label(self._gold, unit, sample, sample.target)
        self._note_label(self._read, unit, sample, readings[0].answer.value)
        cap = job.sampling.max_tokens
        self._at_cap[unit] = record.reply.finish == CUT or bool(
            cap and record.reply.usage.output >= cap
        )
        case = Case(
            job.exam,
            job.sampling,
            sample,
            reply,
            job.readers,
            readings,
            record.readings,
            record.target or None,
            self._judged,
            self._forms,
            job.limits,
        )
        self._findings.pop(unit, None)
        self._guessed.pop(unit, None)
        suspect = case.suspect
        if not suspect and case.guessed_right:
            self._guessed[unit] = case.wording
        if not suspect and not (unit in self._guessed and len(self._guessed) <= self._bearable):
            return
        cause, *also = causes_of(case)
        in_reasoning = not reply.text.strip() and bool(reply.reasoning.strip())
        end = (reply.reasoning if in_reasoning else reply.text).rstrip()[-END:]
        if reply.error is not None:
            end = f"{reply.error.kind}: {reply.error.message}"[:END]
        arm = f" --arm {job.arm}" if job.arm else ""
        self._findings[unit] = Finding(
            id=sample.id,
            subset=sample.subset,
            cause=cause,
            also=tuple(also),
            decides=case.own.score.value != case.beside.score.value,
            target=sample.target,
            answers={reading.reader: reading.answer.value for reading in readings},
            outcomes={reading.reader: reading.score.outcome for reading in readings},
            end=end,
            command=f"keju show {self._run} --sample {sample.id}{arm}",
            epoch=record.epoch,
            rules={each.reader: each.answer.rule for each in readings if each.answer.rule},
            passages={each.reader: each.answer.passage for each in readings if each.answer.passage},
            in_reasoning=in_reasoning and reply.error is None,
        )

    def _note_label(self, labels: bytearray, unit: int, sample: Sample, answer: str | None) -> None:
        bare = (answer or "").strip("()")
        labels[unit] = LABELS.index(bare) + 1 if len(bare) == 1 and bare in sample.labels else 0

    def audited(self) -> ExamAudit:
        """What the replies came to."""
        job, exam = self._job, self._job.exam
        systematic = len(self._guessed) > self._bearable
        for unit in self._guessed if systematic else ():
            self._findings.pop(unit, None)
        rows = self._reader_rows()
        names = [reader.name for reader in job.readers]
        place = names.index(exam.beside) if exam.beside in names else 0
        order = {code: place for place, code in enumerate(CODES)}
        findings = [self._findings[unit] for unit in sorted(self._findings)]
        findings.sort(key=lambda each: (not each.decides, order[each.cause]))
        notices = [*self._doubts(), *_far_readers(rows)]
        if job.missing:
            notices += missing_notices(job.tallies[0].done, job.units)
        if systematic:
            (wording, most), *_ = Counter(self._guessed.values()).most_common(1)
            counts = {"part": len(self._guessed), "whole": job.tallies[0].done, "most": most}
            said = {"reader": job.readers[0].name, "wording": wording}
            notices.append(Notice("audit_own_wording", {**counts, **said}))
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
            range=_range(rows),
            form_range=_range([row for row in rows if row.knows_form]),
            readers=tuple(rows),
            pairs=tuple(self._pairs()),
            signs={sign: n for sign, n in job.tallies[place].sign_counts().items() if n},
            causes=tuple(_cause_rows(findings, job.readers[0].name)),
            findings=tuple(findings),
            labels=self._labels(),
            errata=tuple(Erratum(id, exam.errata[id]) for id in sorted(ids or ())),
            notices=tuple(notices),
            warnings=tuple(notice.text() for notice in notices),
        )

    def _reader_rows(self) -> list[ReaderRow]:
        job = self._job
        rows: list[ReaderRow] = []
        first = accuracy_of(job.exam, job.tallies[0])
        knowing = readers_of_form(job.exam, job.readers)
        for place, (reader, tally) in enumerate(zip(job.readers, job.tallies, strict=True)):
            accuracy = accuracy_of(job.exam, tally) if place else first
            table = self._table(0, place)
            differ = table[0][1] + table[1][0]
            rows.append(
                ReaderRow(
                    reader=reader.name,
                    version=reader.version,
                    own=reader.name in job.exam.readers,
                    accuracy=accuracy,
                    outcomes=tally.outcome_counts(),
                    apart=differ,
                    kappa=cohens_kappa(table).value if place and sum(map(sum, table)) else None,
                    knows_form=reader.name in knowing,
                    outside=_is_outside(first, accuracy),
                )
            )
        return rows

    def _table(self, one: int, other: int) -> list[list[int]]:
        """Replies that both readers have a grade for: right and wrong by one, and by the other."""
        first, second = self._job.tallies[one], self._job.tallies[other]
        table = [[0, 0], [0, 0]]
        units = zip(first.outcomes, first.values, second.outcomes, second.values, strict=True)
        for code, value, code_too, value_too in units:
            if code in GRADED and code_too in GRADED:
                table[value < PASS][value_too < PASS] += 1
        return table

    def _pairs(self) -> Iterator[ReaderPair]:
        for one, other in combinations(range(len(self._job.readers)), 2):
            table = self._table(one, other)
            n = sum(map(sum, table))
            yield ReaderPair(
                first=self._job.readers[one].name,
                second=self._job.readers[other].name,
                n=n,
                apart=table[0][1] + table[1][0],
                kappa=cohens_kappa(table).value if n else None,
            )

    def _labels(self) -> LabelCounts | None:
        """The labels read against the gold ones, where both are labels."""
        pairs = Counter(zip(self._gold, self._read, strict=True))
        gold = Counter(self._gold)
        asked = [place for place in range(1, max(gold, default=0) + 1) if gold[place]]
        if len(asked) < 2:
            return None
        read: Counter[int] = Counter()
        for (right, label), n in pairs.items():
            read[label] += n if right else 0
        places = range(1, max((*asked, *read)) + 1)
        rows = [
            LabelRow(
                LABELS[place - 1],
                gold[place],
                read[place],
                pairs[place, place] / gold[place] if gold[place] else None,
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
            rotations={name: own for name, own in rotated.items() if name.startswith("position_")},
        )


def _range(rows: Sequence[ReaderRow]) -> Ends | None:
    """The least and the largest accuracy."""
    values = [row.accuracy.value for row in rows if row.accuracy.value is not None]
    return (min(values), max(values)) if values else None


def _is_outside(headline: Estimate, other: Estimate) -> bool:
    """Whether another reader's accuracy lies more than a standard error from the headline's."""
    if headline.value is None or other.value is None or not isinstance(headline.se, float):
        return False
    return abs(other.value - headline.value) > headline.se


def _far_readers(rows: Sequence[ReaderRow]) -> Iterator[Notice]:
    """Warn of readers that know the protocol's form and score otherwise than the first.

    Where no form is known, all readers count.
    """
    is_known = any(row.knows_form for row in rows)
    for row in rows:
        fits = row.knows_form or not is_known
        if row.outside and fits and row.accuracy.value is not None:
            first = rows[0].accuracy
            values = {"reader": row.reader, "other": rows[0].reader, "apart": row.apart}
            points = 100 * (row.accuracy.value - (first.value or 0.0))
            se = 100 * first.se if isinstance(first.se, float) else 0.0
            code = "audit_reader_outside" if se else "audit_reader_otherwise"
            yield Notice(code, {**values, "points": points} | ({"se": se} if se else {}))


def _cause_rows(findings: Sequence[Finding], reader: str) -> Iterator[CauseRow]:
    first = Counter(each.cause for each in findings)
    also = Counter(code for each in findings for code in each.also)
    wrong = Counter(each.cause for each in findings if each.outcomes[reader] != "correct")
    for code in sorted(CODES, key=lambda code: -first[code]):
        if first[code] or also[code]:
            yield CauseRow(
                cause=code,
                n=first[code],
                also=also[code],
                wrong=wrong[code],
                explanation=Notice(f"cause_{code}").text(),
            )


# --- questions that all runs fail --------------------------------------------------------------

Failures = dict[tuple[str, str], set[str]]
"""By exam and id of each question that is never right: the wrong answers that it always got."""


def _failures(jobs: Sequence[Job]) -> Failures:
    """The questions that this run never gets right, in any repeat or arm."""
    failed: Failures = {}
    right: set[tuple[str, str]] = set()
    for job in jobs:
        tally = job.tallies[0]
        assert tally.answers is not None
        for unit, (code, value) in enumerate(zip(tally.outcomes, tally.values, strict=True)):
            key = (job.exam.benchmark, job.exam.samples[unit // job.epochs].id)
            if code not in GRADED:
                continue
            if value >= PASS:
                right.add(key)
            failed[key] = failed.get(key, answers := _answers(tally.answers[unit])) & answers
    return {key: answers for key, answers in failed.items() if key not in right}


def _failures_beside(sittings: Iterable[Sitting], failed: Failures) -> Failures:
    """Those of the failed questions that another run, log or file of predictions fails as well."""
    left: Failures = {}
    for sitting in sittings:
        for item in sitting:
            key = (sitting.exam.benchmark, item.id)
            if key in failed and item.score is not None and item.score < PASS:
                left[key] = left.get(key, failed[key]) & _answers(item.answer)
    return left


def _sittings(
    source: Source,
    exams: Collection[str],
    exam: str | None,
    data_dir: str | None,
    work_dir: str | None,
) -> list[Sitting]:
    """The sittings of a source; predictions are of the one exam that is looked at."""
    try:
        return sittings_of(source, datasets=exam, data_dir=data_dir, work_dir=work_dir)
    except UsageError as error:
        if error.notice.code != "sitting_needs_exam" or len(exams) != 1:
            raise
        (name,) = exams
        return sittings_of(source, datasets=name, data_dir=data_dir, work_dir=work_dir)


def _answers(value: str | None) -> set[str]:
    return set() if value is None else {value.strip("() .").casefold()}


def _shared(jobs: Sequence[Job], failed: Failures) -> Iterator[SharedFailure]:
    exams = {(job.exam.benchmark, job.exam.arm): job.exam for job in jobs}
    for exam in exams.values():
        for sample in exam.samples:
            if answers := failed.get((exam.benchmark, sample.id)):
                yield SharedFailure(
                    exam=exam.benchmark,
                    id=sample.id,
                    target=sample.target,
                    answer=", ".join(
                        own.upper() if len(own) == 1 else own for own in sorted(answers)
                    ),
                    known=exam.errata.get(sample.id, ""),
                )
