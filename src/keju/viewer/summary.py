"""Summarise a run for the pages, from its results or from its journal so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from keju.benchmarks.grading import PASS
from keju.reporting import format as fmt
from keju.reporting.answers import (
    ExamAnswer,
    FindReplies,
    exam_answer,
    margin_of,
)
from keju.reporting.format import Labels
from keju.reporting.page_numbers import page_figure, page_interval, page_percent, page_share
from keju.reporting.titles import title_of
from keju.results.comparability import settings_summary
from keju.results.schema import Metric, ResultEntry, Results, SubsetRow
from keju.stats.estimate import BoundedValues
from keju.types import ALL_OUTCOMES, UNGRADED, UNSCORED, Outcome, complete_counts
from keju.viewer.index import ExamArm, ReplyKind
from keju.viewer.run_index import IndexedRun, State

MOST_PARTS: Final = 500
"""The maximum number of exams and arms of one run on a page."""


class RunSummary(NamedTuple):
    """One exam of one run, as a row of the leaderboard and as the head of its page."""

    run: str
    model: str
    created: str
    state: State
    part: ExamArm
    group: tuple[str, ...]
    """The values that ranked scores share: exam, protocol, reader and metric."""
    figure: str
    """``63.6 %``, a range, or words if there is no number."""
    margin: str
    """``± 1.1``, if the interval is about as long on both sides."""
    title: str
    """The kind of number."""
    note: str
    row: SubsetRow
    """Value, interval, number of questions and outcomes, as charts need them."""
    answered: int
    total: int
    """The number of existing replies, and of replies of the whole exam."""
    final: bool
    """Whether it was made from the run's results, not from its journal so far."""
    entry: ResultEntry | None = None
    early: bool = False
    """Whether a stopping rule ended the exam early."""
    warnings: tuple[str, ...] = ()
    exam_settings: Mapping[str, Any] = MappingProxyType({})
    """The settings and questions of the exam, as far as the manifest contains them."""
    entries: tuple[ResultEntry, ...] = ()
    """The entry for each reader; the first one gives the headline."""

    @property
    def is_ranked(self) -> bool:
        """Whether all questions of the exam have a reply, so that the score can be ranked."""
        return self.answered >= self.total and not self.early

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """The sort key: the best score first, then incomplete results by size."""
        value = self.row.accuracy
        sort_value = -(value or 0.0) if self.is_ranked else -float(self.answered)
        return not self.is_ranked, value is None, sort_value


def run_summaries(stored: IndexedRun, labels: Labels) -> list[RunSummary]:
    """Return each exam of a run, according to the reader of its headline."""
    results = stored.results
    if results is not None and results.benchmarks:
        return list(_summaries_of_results(stored, results, labels))
    stored.index.refresh()
    return list(_summaries_so_far(stored, labels))


def _summaries_of_results(
    stored: IndexedRun, results: Results, labels: Labels
) -> Iterable[RunSummary]:
    state = stored.state
    for family in fmt.families(results):
        entry = family[0]
        headline = fmt.headline_of(entry, fmt.run_command_name(results), labels)
        headline_metric = fmt.display_metrics(entry, labels)[0]
        answered = sum(entry.outcomes.values())
        yield RunSummary(
            run=stored.name,
            model=results.model,
            created=stored.manifest.created,
            state=state,
            part=ExamArm(entry.name, entry.arm),
            group=(entry.name, fmt.protocol_line(entry), entry.reader, headline_metric.name),
            figure=_figure(headline, headline_metric.metric),
            margin=margin_of(headline_metric.metric) if headline.figure else "",
            title=headline.title if headline.figure else "",
            note=headline.note,
            row=_row(entry.full_name, headline_metric.metric, entry.outcomes, entry.cut_right),
            answered=answered,
            total=max(answered, total_of(stored, ExamArm(entry.name, entry.arm))),
            final=True,
            entry=entry,
            early=entry.stopping is not None and entry.stopping.met and entry.stopping.early,
            warnings=tuple(labels.warnings(entry)),
            exam_settings=settings_of(stored, ExamArm(entry.name, entry.arm)),
            entries=tuple(family),
        )


def _summaries_so_far(stored: IndexedRun, labels: Labels) -> Iterable[RunSummary]:
    """Yield summaries from the journal: plain means over questions, scored by the first reader."""
    counts = kinds_by_part(stored.index.counts())
    parts = list(counts) or [ExamArm(exam.name) for exam in stored.manifest.benchmarks]
    for part in parts[:MOST_PARTS]:
        yield _summary_so_far(stored, part, counts.get(part, Counter()), labels)


def _summary_so_far(
    stored: IndexedRun, part: ExamArm, kinds: Counter[ReplyKind], labels: Labels
) -> RunSummary:
    manifest, state = stored.manifest, stored.state
    metric, outcomes = estimate_mean(kinds), outcomes_of(kinds)
    answered = sum(outcomes.values())
    total = max(answered, total_of(stored, part))
    # A damaged or cut journal has fewer replies than the manifest says.
    is_incomplete = state == "complete" and answered < total and not manifest.stopped
    has_value = metric.value is not None or metric.bounds is not None
    return RunSummary(
        run=stored.name,
        model=manifest.model,
        created=manifest.created,
        state="incomplete" if is_incomplete else state,
        part=part,
        group=(part.exam, *_protocol_and_reader(stored, part), "accuracy"),
        figure=page_share(metric.value, metric.bounds) if has_value else labels("no_answers"),
        margin=margin_of(metric),
        title=labels("view.so_far") if has_value else "",
        note="",
        row=_row(part.name, metric, outcomes, count_correct_truncated(kinds)),
        answered=answered,
        total=total,
        final=False,
        exam_settings=settings_of(stored, part),
    )


def _protocol_and_reader(stored: IndexedRun, part: ExamArm) -> tuple[str, str]:
    """Return the protocol and the first reader of an exam, as the manifest has them."""
    for exam in stored.manifest.benchmarks:
        if exam.name == part.exam:
            protocol = f"{exam.protocol.name}@{exam.protocol.version}"
            return protocol, next(iter(exam.readers), "")
    return "", ""


def _figure(headline: fmt.Headline, metric: Metric) -> str:
    """Return a score with one decimal, or the words that replace it."""
    return page_figure(metric) if headline.figure else headline.title


def answer_of(run_summary: RunSummary, labels: Labels, find_replies: FindReplies) -> ExamAnswer:
    """Return the score of a summary as the card of a page."""
    if run_summary.entries:
        return exam_answer(run_summary.entries, run_summary.run, labels, find_replies)
    row, part = run_summary.row, run_summary.part
    has_figure = row.accuracy is not None or row.bounds is not None
    words = fmt.describe_outcomes(row.outcomes, labels, cut_right=row.cut_right, zeros=())
    occurring = [outcome for outcome in ALL_OUTCOMES if row.outcomes.get(outcome)]
    return ExamAnswer(
        name=title_of(part.exam, part.arm),
        figure=run_summary.figure if has_figure else "",
        margin=run_summary.margin,
        title=run_summary.title or run_summary.figure,
        note=run_summary.note,
        ends=page_interval(row.ci95) if row.ci95 else "",
        chance=page_percent(row.chance) if row.chance is not None else "",
        meaning="",
        findings=[],
        counts=[
            (text, find_replies(part.exam, part.arm, outcome))
            for outcome, text in zip(occurring, words, strict=True)
        ],
        row=row,
        other_readers=[],
    )


def kinds_by_part(
    counts: Mapping[tuple[ExamArm, ReplyKind], int],
) -> dict[ExamArm, Counter[ReplyKind]]:
    """Return the number of replies of each kind by exam and arm."""
    counts_by_part: dict[ExamArm, Counter[ReplyKind]] = {}
    for (part, kind), n in counts.items():
        counts_by_part.setdefault(part, Counter())[kind] += n
    return counts_by_part


def _row(name: str, metric: Metric, outcomes: Mapping[Outcome, int], cut_right: int) -> SubsetRow:
    return SubsetRow(
        name=name,
        n=metric.n,
        ungraded=sum(outcomes.get(outcome, 0) for outcome in UNSCORED),
        accuracy=metric.value,
        ci95=metric.ci95,
        outcomes=dict(outcomes),
        bounds=metric.bounds,
        cut_right=cut_right,
    )


def settings_of(stored: IndexedRun, part: ExamArm) -> dict[str, Any]:
    """Return the settings of an exam in one arm; empty if the manifest does not have them."""
    for exam in stored.manifest.benchmarks:
        if exam.name == part.exam:
            return settings_summary(exam, stored.manifest, part.arm)
    return {}


def total_of(stored: IndexedRun, part: ExamArm) -> int:
    """Return the number of replies of an exam in one arm; 0 if it is unknown."""
    for exam in stored.manifest.benchmarks:
        if exam.name == part.exam:
            return (exam.samples_of or {}).get(part.arm, exam.samples) * exam.epochs
    return 0


def estimate_mean(kinds: Mapping[ReplyKind, int]) -> Metric:
    """Return the mean score with its interval and the bounds that ungraded replies leave."""
    bounded = BoundedValues(clustered=False)
    for kind, n in kinds.items():
        if kind.outcome in UNGRADED:
            bounded.add(None, (0.0, 1.0), count=n)
        elif kind.outcome != "unlabelled":
            bounded.add(kind.score, (kind.score, kind.score), count=n)
    return bounded.estimate()


def outcomes_of(kinds: Mapping[ReplyKind, int]) -> dict[Outcome, int]:
    """Return the number of replies by outcome."""
    outcomes: Counter[Outcome] = Counter()
    for kind, n in kinds.items():
        outcomes[kind.outcome] += n
    return complete_counts(outcomes)


def count_correct_truncated(kinds: Mapping[ReplyKind, int]) -> int:
    """Return the number of truncated replies that are still correct."""
    return sum(n for kind, n in kinds.items() if kind.outcome == "truncated" and kind.score >= PASS)


def subset_rows(stored: IndexedRun, part: ExamArm) -> list[SubsetRow]:
    """Return the answered part of the subsets of an exam, according to the index."""
    index, details = stored.index, stored.details()
    names, kinds = stored.subset_names(part), index.kinds
    place = index.parts.index(part) if part in index.parts else -1
    size = len(details.subset)
    columns = zip(index.part[:size], details.subset, index.kind[:size], strict=True)
    counts = Counter((subset, kind) for part_place, subset, kind in columns if part_place == place)
    rows = []
    for number, name in enumerate(names, 1):
        kind_counts = Counter(
            {kinds[kind]: n for (subset, kind), n in counts.items() if subset == number}
        )
        if kind_counts:
            rows.append(
                _row(
                    name,
                    estimate_mean(kind_counts),
                    outcomes_of(kind_counts),
                    count_correct_truncated(kind_counts),
                )
            )
    return rows


def count_differences(stored: IndexedRun, entry: ResultEntry) -> int:
    """Return for how many replies the outcome in the journal differs from the results.

    The results may come from newer readers than the journal.
    """
    part = ExamArm(entry.name, entry.arm)
    kinds = Counter(
        {
            kind: n
            for (counted_part, kind), n in stored.index.counts().items()
            if counted_part == part
        }
    )
    journal_outcomes = outcomes_of(kinds)
    differences = (abs(journal_outcomes.get(o, 0) - entry.outcomes.get(o, 0)) for o in ALL_OUTCOMES)
    return -(-sum(differences) // 2)
