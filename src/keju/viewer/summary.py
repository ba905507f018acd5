"""What the pages say of a run: out of its results, or of what its journal holds so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from keju.benchmarks.grading import PASS
from keju.report import format as fmt
from keju.report.format import Labels
from keju.report.meaning import chance_words
from keju.results.conditions import asked_at_a_glance
from keju.results.schema import Entry, Metric, Results, Row
from keju.stats.estimate import Bounded
from keju.types import ALL_OUTCOMES, UNGRADED, UNSCORED, Outcome, complete_counts
from keju.viewer.index import Kind, Part
from keju.viewer.shelf import State, Stored

MOST_PARTS: Final = 500
"""Exams and arms of one run that a page shows."""


class Glance(NamedTuple):
    """One exam of one run, as a row of the leaderboard and at the head of its page."""

    run: str
    model: str
    created: str
    state: State
    part: Part
    group: tuple[str, ...]
    """What numbers must share to stand in one table: exam, protocol, reader and metric."""
    figure: str
    """``63.59 %``, a range, or words where there is no number."""
    title: str
    """What kind of number it is."""
    note: str
    row: Row
    """Value, interval, number of questions and outcomes, as charts take them."""
    done: int
    total: int
    """Replies that there are, and that the whole exam has."""
    final: bool
    """Made from the run's results; else from what the journal holds so far."""
    entry: Entry | None = None
    early: bool = False
    """A rule stopped it before all was asked."""
    warnings: tuple[str, ...] = ()
    asked: Mapping[str, Any] = MappingProxyType({})
    """How the exam was put, and which questions, as far as the manifest tells it."""
    chance: str = ""
    """The chance level in words, where it is known."""

    @property
    def is_ranked(self) -> bool:
        """Whether all questions of the exam have a reply, so that the number can be ranked."""
        return self.done >= self.total and not self.early

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Sorts the best first, those with some of the questions below, those with most first."""
        value = self.row.accuracy
        last = -(value or 0.0) if self.is_ranked else -float(self.done)
        return not self.is_ranked, value is None, last


def glances(stored: Stored, labels: Labels) -> list[Glance]:
    """Each exam of a run, by the reader that its headline is of."""
    results = stored.results
    if results is not None and results.benchmarks:
        return list(_of_results(stored, results, labels))
    stored.index.refresh()
    return list(_so_far(stored, labels))


def _of_results(stored: Stored, results: Results, labels: Labels) -> Iterable[Glance]:
    state = stored.state
    for entry, *_ in fmt.families(results):
        headline = fmt.headline_of(entry, fmt.named_run(results), labels)
        shown = fmt.shown_metrics(entry, labels)[0]
        done = sum(entry.outcomes.values())
        yield Glance(
            run=stored.name,
            model=results.model,
            created=stored.manifest.created,
            state=state,
            part=Part(entry.name, entry.arm),
            group=(entry.name, fmt.protocol_line(entry), entry.reader, shown.name),
            figure=headline.figure or headline.title,
            title=headline.title if headline.figure else "",
            note=headline.note,
            row=_row(entry.full_name, shown.metric, entry.outcomes, entry.cut_right),
            done=done,
            total=max(done, total_of(stored, Part(entry.name, entry.arm))),
            final=True,
            entry=entry,
            early=entry.stopping is not None and entry.stopping.met and entry.stopping.early,
            warnings=tuple(labels.warnings(entry)),
            asked=asked_of(stored, Part(entry.name, entry.arm)),
            chance=chance_words(entry, labels),
        )


def _so_far(stored: Stored, labels: Labels) -> Iterable[Glance]:
    """What the journal holds: plain means over questions, as their first reader scores them."""
    manifest, state = stored.manifest, stored.state
    exams = {exam.name: exam for exam in manifest.benchmarks}
    counts = kinds_by_part(stored.index.counts())
    parts = list(counts) or [Part(name) for name in exams]
    for part in parts[:MOST_PARTS]:
        kinds = counts.get(part, Counter())
        metric, outcomes = estimate(kinds), outcomes_of(kinds)
        exam = exams.get(part.exam)
        protocol = f"{exam.protocol.name}@{exam.protocol.version}" if exam else ""
        reader = next(iter(exam.readers), "") if exam else ""
        done = sum(outcomes.values())
        total = max(done, total_of(stored, part))
        # A journal that was damaged or cut since is no longer what the manifest says.
        lost = state == "complete" and done < total and not manifest.stopped
        has_value = metric.value is not None or metric.bounds is not None
        yield Glance(
            run=stored.name,
            model=manifest.model,
            created=manifest.created,
            state="incomplete" if lost else state,
            part=part,
            group=(part.exam, protocol, reader, "accuracy"),
            figure=fmt.share(metric.value, metric.bounds) if has_value else labels("no_answers"),
            title=labels("view.so_far") if has_value else "",
            note="",
            row=_row(part.name, metric, outcomes, cut_right_of(kinds)),
            done=done,
            total=total,
            final=False,
            asked=asked_of(stored, part),
        )


def kinds_by_part(counts: Mapping[tuple[Part, Kind], int]) -> dict[Part, Counter[Kind]]:
    """How many replies of each kind the exams and arms have."""
    found: dict[Part, Counter[Kind]] = {}
    for (part, kind), n in counts.items():
        found.setdefault(part, Counter())[kind] += n
    return found


def _row(name: str, metric: Metric, outcomes: Mapping[Outcome, int], cut_right: int) -> Row:
    return Row(
        name=name,
        n=metric.n,
        ungraded=sum(outcomes.get(outcome, 0) for outcome in UNSCORED),
        accuracy=metric.value,
        ci95=metric.ci95,
        outcomes=dict(outcomes),
        bounds=metric.bounds,
        cut_right=cut_right,
    )


def asked_of(stored: Stored, part: Part) -> dict[str, Any]:
    """How an exam was put in one arm; nothing where the manifest does not have it."""
    for exam in stored.manifest.benchmarks:
        if exam.name == part.exam:
            return asked_at_a_glance(exam, stored.manifest, part.arm)
    return {}


def total_of(stored: Stored, part: Part) -> int:
    """Replies that an exam has in one arm; 0 where it is not known."""
    for exam in stored.manifest.benchmarks:
        if exam.name == part.exam:
            return (exam.samples_of or {}).get(part.arm, exam.samples) * exam.epochs
    return 0


def estimate(kinds: Mapping[Kind, int]) -> Metric:
    """The mean score of replies with its interval, within what those without a grade leave it."""
    bounded = Bounded(clustered=False)
    for kind, n in kinds.items():
        if kind.outcome in UNGRADED:
            bounded.add(None, (0.0, 1.0), many=n)
        elif kind.outcome != "unlabelled":
            bounded.add(kind.score, (kind.score, kind.score), many=n)
    return bounded.estimate()


def outcomes_of(kinds: Mapping[Kind, int]) -> dict[Outcome, int]:
    """How many replies have which outcome."""
    outcomes: Counter[Outcome] = Counter()
    for kind, n in kinds.items():
        outcomes[kind.outcome] += n
    return complete_counts(outcomes)


def cut_right_of(kinds: Mapping[Kind, int]) -> int:
    """How many replies were cut off and are right all the same."""
    return sum(n for kind, n in kinds.items() if kind.outcome == "truncated" and kind.score >= PASS)


def subset_rows(stored: Stored, part: Part) -> list[Row]:
    """The subsets of an exam as far as they are answered, out of the index."""
    index, details = stored.index, stored.details()
    names, kinds = stored.subset_names(part), index.kinds
    place = index.parts.index(part) if part in index.parts else -1
    size = len(details.subset)
    columns = zip(index.part[:size], details.subset, index.kind[:size], strict=True)
    counts = Counter((subset, kind) for own, subset, kind in columns if own == place)
    rows = []
    for number, name in enumerate(names, 1):
        own = Counter({kinds[kind]: n for (subset, kind), n in counts.items() if subset == number})
        if own:
            rows.append(_row(name, estimate(own), outcomes_of(own), cut_right_of(own)))
    return rows


def differing_counts(stored: Stored, entry: Entry) -> int:
    """How many replies the journal reads otherwise than the results do.

    Results may have been made by readers that are newer than what the journal's lines say.
    """
    part = Part(entry.name, entry.arm)
    kinds = Counter({kind: n for (own, kind), n in stored.index.counts().items() if own == part})
    stored_now = outcomes_of(kinds)
    apart = (abs(stored_now.get(o, 0) - entry.outcomes.get(o, 0)) for o in ALL_OUTCOMES)
    return -(-sum(apart) // 2)
