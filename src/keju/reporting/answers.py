"""The first screen of a run's page: the question, the answer, and what to make of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from keju.reporting import format as fmt
from keju.reporting.findings import Finding, findings
from keju.reporting.format import Labels
from keju.reporting.page_numbers import (
    NO_BREAK,
    join_sentences,
    page_figure,
    page_percent,
)
from keju.reporting.score_interpretation import ASYMMETRY_RATIO, compare_with_chance
from keju.reporting.titles import title_of
from keju.results.schema import NO_GOLD, Metric, ResultEntry, Results, SubsetRow
from keju.types import ALL_OUTCOMES

EXAMS_NAMED = 3
"""The number of exams that the question names."""
FindReplies = Callable[[str, str, str], str]
"""Returns the address of the replies of an exam, an arm and an outcome; empty if there is none."""


class ExamAnswer(NamedTuple):
    """The score of one exam in one arm, and what to make of it."""

    name: str
    figure: str
    """``68.1 %``, a range, or empty without labels."""
    margin: str
    """``± 1.1``; empty if the two sides of the interval differ much."""
    title: str
    """The kind of number."""
    note: str
    ends: str
    """The interval, ``67.0–69.3``."""
    chance: str
    meaning: str
    findings: list[Finding]
    counts: list[tuple[str, str]]
    """The number of replies by outcome in words, with the addresses of the replies."""
    row: SubsetRow
    other_readers: list[str]
    """The scores by other readers of the same replies."""


def placebo_arms(config: Mapping[str, Any]) -> set[str]:
    """Return the arms of a run's settings whose tools never work."""
    return {str(arm.get("name", "")) for arm in config.get("arms") or () if arm.get("stub_tools")}


def page_question(results: Results, placebos: Collection[str], labels: Labels) -> str:
    """Return the question that the run answers; it does not ask about `placebos`."""
    if results.sweeps and fmt.answered_rows(results.benchmarks):
        return labels("page.tools")
    levels = {entry.arm for entry in results.benchmarks if results.is_level(entry)}
    tested_arms = list(
        dict.fromkeys(
            pair.arm
            for pair in results.comparisons
            if pair.base_is_first and pair.arm not in {*levels, *placebos}
        )
    )
    if tested_arms and fmt.answered_rows(results.benchmarks):
        key = "page.help" if len(tested_arms) > 1 else "page.helps"
        return labels(key, arms=_listed(tested_arms, labels))
    exams = list(dict.fromkeys(title_of(entry.name) for entry in results.benchmarks))
    return ask_about(results.model, exams, labels)


def ask_about(model: str, exams: Sequence[str], labels: Labels) -> str:
    """Return the question of a run without arms."""
    listed = (
        _listed(exams, labels) if len(exams) <= EXAMS_NAMED else labels("page.exams", n=len(exams))
    )
    name = fmt.printable(model, one_line=True) or labels("page.model")
    return labels("page.question", model=name, exams=listed)


def _listed(names: Sequence[str], labels: Labels) -> str:
    """Join names as a sentence does: ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return labels("page.and", names=labels("list_separator").join(names[:-1]), last_name=names[-1])


def exam_answer(
    entries: Sequence[ResultEntry], run: str, labels: Labels, find_replies: FindReplies
) -> ExamAnswer:
    """Return the answer of an exam; `entries` has an entry for each reader, the headline first."""
    entry, *other_entries = entries
    headline = fmt.headline_of(entry, run, labels)
    metric = fmt.display_metrics(entry, labels)[0].metric
    chance = entry.metrics.get("chance")
    has_figure = bool(headline.figure)
    return ExamAnswer(
        name=title_of(entry.name, entry.arm),
        figure=page_figure(metric) if has_figure else "",
        margin=margin_of(metric) if has_figure else "",
        title=headline.title,
        note=headline.note,
        ends=fmt.metric_interval(metric, 1) if has_figure and metric.ci95 else "",
        chance=page_percent(chance.value) if chance else "",
        meaning=meaning_of(entry, labels),
        findings=[
            finding._replace(
                href=find_replies(entry.name, entry.arm, finding.reply_filter)
                if finding.reply_filter
                else ""
            )
            for finding in findings(entry, labels)
        ],
        counts=[
            (text, find_replies(entry.name, entry.arm, outcome))
            for outcome, text in outcome_words(entry, labels).items()
        ],
        row=headline_row(entry, labels),
        other_readers=[_other_reader(other_entry, run, labels) for other_entry in other_entries],
    )


def _other_reader(entry: ResultEntry, run: str, labels: Labels) -> str:
    metric = fmt.display_metrics(entry, labels)[0].metric
    headline = fmt.headline_of(entry, run, labels)
    figure = page_figure(metric) if headline.figure else headline.title
    return labels("page.other_reader", reader=entry.reader, figure=figure)


def outcome_words(entry: ResultEntry, labels: Labels) -> dict[str, str]:
    """Return the counts of the outcomes that occur, in words."""
    occurring = [o for o in entry.outcomes if entry.outcomes[o] or o in ("correct", "incorrect")]
    words = fmt.describe_outcomes(entry.outcomes, labels, cut_right=entry.cut_right)
    ordered = [outcome for outcome in ALL_OUTCOMES if outcome in occurring]
    return dict(zip(ordered, words, strict=True))


def margin_of(metric: Metric) -> str:
    """Return half the length of an interval as ``± 1.1``; empty for a lopsided interval."""
    if metric.value is None or metric.ci95 is None or metric.bounds is not None or metric.unit:
        return ""
    below, above = _margins(metric.value, metric.ci95)
    if max(below, above) > ASYMMETRY_RATIO * min(below, above):
        return ""
    return f"±{NO_BREAK}{(below + above) / 2:.1f}"


def _margins(value: float, ends: Sequence[float]) -> tuple[float, float]:
    """Return the points from a value to the ends of its interval."""
    return max(0.0, 100 * (value - ends[0])), max(0.0, 100 * (ends[1] - value))


def meaning_of(entry: ResultEntry, labels: Labels) -> str:
    """Return what to make of a score: whether it is better than guessing, and how sure it is."""
    metric = fmt.display_metrics(entry, labels)[0].metric
    if metric.value is None or metric.ci95 is None or entry.gold == NO_GOLD or metric.unit:
        return ""
    chance, words = entry.metrics.get("chance"), []
    if (level := compare_with_chance(entry, labels)) and chance:
        words.append(labels(f"meaning.{level}_chance", chance=page_percent(chance.value)))
    below, above = _margins(metric.value, metric.ci95)
    if max(below, above) > ASYMMETRY_RATIO * min(below, above):
        words.append(labels("meaning.sure_sides", below=f"{below:.1f}", above=f"{above:.1f}"))
    else:
        words.append(labels("meaning.sure", points=f"{(below + above) / 2:.1f}"))
    return join_sentences(words, labels)


def headline_row(entry: ResultEntry, labels: Labels) -> SubsetRow:
    """Return the headline of an exam as a row of a chart."""
    metric, chance = fmt.display_metrics(entry, labels)[0].metric, entry.metrics.get("chance")
    return SubsetRow(
        name=title_of(entry.name, entry.arm),
        n=metric.n,
        accuracy=metric.value,
        ci95=metric.ci95,
        outcomes=entry.outcomes,
        bounds=metric.bounds,
        chance=chance.value if chance else None,
    )
