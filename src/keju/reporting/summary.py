"""The short answer after a run: the score, what it is made of, what is doubtful, where to look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from keju.errors import KejuError
from keju.files import typed_path
from keju.messages.wrapping import cells
from keju.reporting import arm_summary, curve_summary
from keju.reporting import format as fmt
from keju.reporting.brief import (
    BriefColumn,
    BriefScreen,
    LabelledCommand,
    pack_parts,
    short_model,
    short_subsets,
)
from keju.reporting.format import Labels, compact, count, interval, money, percent
from keju.reporting.score_interpretation import ASYMMETRY_RATIO, compare_with_chance
from keju.reporting.titles import title_of
from keju.reporting.warning_lines import SHOWN, WarningLine, print_warnings, warning_line
from keju.results.modes import counterpart
from keju.results.schema import NO_GOLD, Metric, ResultEntry, Results, SubsetRow
from keju.runs.run import REPORT, Run, command_name, find_comparable_run
from keju.types import ALL_OUTCOMES

ALL_SUBSETS = 6
"""Up to this number of subsets a summary names all of them; otherwise the best and the worst."""
EXTREMES = 3
_HUMANS = "human average"
_ROBUST = "accuracy_robust"
_OF_AUDIT = ("cut_replies", "unread_replies", "readers_apart", "refused_replies", "replies_in_")
"""The beginnings of the codes of warnings that ``keju audit`` explains."""


class RunPlace(NamedTuple):
    """Where a run is, and which commands follow. Scores of a file of predictions have none."""

    name: str = ""
    """The name of the run in commands."""
    folder: Path | None = None


def place_of(results: Results) -> RunPlace:
    """Return the place of the run that results belong to."""
    if not results.folder:
        return RunPlace()
    return RunPlace(fmt.run_command_name(results), Path(results.folder))


def render_summary(
    results: Results,
    *,
    file: TextIO | None = None,
    width: int | None = None,
    steps: Sequence[LabelledCommand] = (),
    is_next_shown: bool = True,
) -> None:
    """Print the short answer to `file` (stdout by default). `steps` follow the usual next steps."""
    screen = BriefScreen(file, width)
    place = place_of(results)
    entries = [entry for entry in results.benchmarks if not results.is_level(entry)]
    families = fmt.families(results)
    exams = [family for family in families if not results.is_level(family[0])]
    if not results.benchmarks:
        screen.put(screen.labels("no_results"))
    if results.curves:
        curve_summary.print_curves(screen, results)
    if results.comparisons and fmt.answered_rows(entries):
        arm_summary.print_arms(screen, results)
    elif len(exams) == 1:
        _print_exam(screen, exams[0], results)
    elif exams:
        _print_exams(screen, [family[0] for family in exams], results)
    if not results.curves:
        lines = list(_warnings(screen.labels, results, place))
        most = SHOWN if len(exams) == 1 or len(lines) <= SHOWN else SHOWN - 1
        print_warnings(screen, lines, _show_command(place), most=most)
    if is_next_shown:
        is_table = len(exams) > 1 and not results.comparisons
        _print_place(screen, results, place, is_separate=not is_table)
        screen.next_steps([*_next_steps(screen.labels, results, place), *steps])
    screen.flush()


def score_text(entry: ResultEntry, labels: Labels) -> str:
    """Return the headline with one decimal, or the words that replace it."""
    metric = fmt.display_metrics(entry, labels)[0].metric
    if not fmt.answered_rows([entry]):
        return labels("no_answers")
    if entry.gold == NO_GOLD:
        return labels("no_score")
    return fmt.metric_figure(metric, 1)


def _margin_text(metric: Metric) -> str:
    """Return the precision of a score: ``± 1.1``, or its interval if the sides differ."""
    if metric.value is None or metric.ci95 is None:
        return ""
    low, high = metric.ci95
    below, above = metric.value - low, high - metric.value
    if metric.unit:
        return f"95 % {fmt.metric_interval(metric)}"
    if max(below, above) > ASYMMETRY_RATIO * min(below, above):
        return f"95 % {interval(metric.ci95, 1)}"
    return f"± {50 * (high - low):.1f}"


def exam_title(entry: ResultEntry) -> str:
    """Return the title of an exam, and its arm if it has one."""
    return title_of(entry.name, entry.arm)


def _print_exam(screen: BriefScreen, family: Sequence[ResultEntry], results: Results) -> None:
    """Print the results of one exam; `family` has an entry for each reader."""
    entry, labels = family[0], screen.labels
    metric = fmt.display_metrics(entry, labels)[0].metric
    lead = "   ".join(
        filter(None, [exam_title(entry), score_text(entry, labels), _margin_text(metric)])
    )
    facts = [short_model(results.model)] if results.model else []
    facts += [labels("brief.questions", n=_graded_text(entry, labels))]
    facts += [_chance_text(entry, labels), _human_text(entry, labels)]
    screen.facts(facts, f"{lead}      ", style=_style(entry, labels))
    screen.facts(_second_line(family, results, labels), " " * (cells(exam_title(entry)) + 3))
    if not fmt.answered_rows([entry]):
        return
    screen.put()
    screen.facts(_outcome_texts(entry, labels), gap="   ")
    for line in _subset_lines(entry, screen.room, labels):
        screen.facts(line.parts, line.lead, gap=", ")


def _graded_text(entry: ResultEntry, labels: Labels) -> str:
    """Return the number of graded questions, and of how many: ``1 of 3``."""
    if not entry.ungraded:
        return count(entry.n)
    return labels("part_of_whole", part=count(entry.n), whole=count(entry.questions_with_reply))


def _style(entry: ResultEntry, labels: Labels) -> str:
    """Return the style of a headline: green above chance, yellow below."""
    standing = compare_with_chance(entry, labels)
    return {"like": "bold", "below": "bold yellow"}.get(standing or "above", "bold green")


def _chance_text(entry: ResultEntry, labels: Labels) -> str:
    metric = entry.metrics.get("chance")
    if metric is None or metric.value is None:
        return ""
    standing = compare_with_chance(entry, labels)
    key = f"brief.{standing}_chance" if standing in ("like", "below") else "brief.chance"
    return labels(key, chance=percent(metric.value, 0))


def _human_text(entry: ResultEntry, labels: Labels) -> str:
    for reference in entry.reference:
        if reference.name == _HUMANS:
            names = (entry.headline, *_paper_metrics(entry))
            value = next((reference.overall[n] for n in names if n in reference.overall), None)
            return labels("brief.humans", share=percent(value, 0)) if value is not None else ""
    return ""


def _paper_metrics(entry: ResultEntry) -> list[str]:
    """Return the complete metrics that the exam's paper reports, without those of groups."""
    return [name for name in fmt.published_metrics(entry) if not entry.metrics[name].partial]


def _second_line(family: Sequence[ResultEntry], results: Results, labels: Labels) -> list[str]:
    """Return the facts of the second line: the paper's mean, other readers, the protocol."""
    entry = family[0]
    facts = []
    headline = fmt.display_metrics(entry, labels)[0]
    if entry.grader and headline.metric.bounds and headline.metric.value is not None:
        best = percent(headline.metric.bounds[1], 1)
        facts.append(labels("brief.lower_bound", best=best))
    elif headline.name != "accuracy" and entry.gold != NO_GOLD:
        facts.append(headline.title)
    for name in _paper_metrics(entry)[:1] if len(family) == 1 else ():
        metric = entry.metrics[name]
        if name != entry.headline and metric.value is not None:
            title = labels.metric(name, metric.title)
            title = title[:1].lower() + title[1:]
            facts.append(labels("brief.paper", title=title, figure=percent(metric.value, 1)))
    if len(family) > 1:
        facts = [f"{by_reader.reader} {score_text(by_reader, labels)}" for by_reader in family]
    facts.append(_protocol_text(entry, results, labels))
    if results.disagreements:
        facts.append(labels("readers_disagree", n=count(len(results.disagreements))))
    return facts


def _protocol_text(entry: ResultEntry, results: Results, labels: Labels) -> str:
    text = labels("brief.protocol", protocol=entry.protocol)
    shots = _few_shot_number(entry, results)
    return text if shots is None else text + labels("brief.shots", n=shots)


def _few_shot_number(entry: ResultEntry, results: Results) -> int | None:
    """Return the number of worked examples according to the manifest; None if it is unknown."""
    if not results.folder:
        return None
    try:
        exams = Run(Path(results.folder)).manifest.benchmarks
    except (KejuError, OSError):
        return None
    shots = [exam.settings.get("few_shot_num") for exam in exams if exam.name == entry.name]
    return shots[0] if shots and isinstance(shots[0], int) else None


def _outcome_texts(entry: ResultEntry, labels: Labels) -> list[str]:
    texts = []
    for outcome in ALL_OUTCOMES:
        n = entry.outcomes.get(outcome, 0)
        if n or outcome in ("correct", "incorrect"):
            if outcome == "truncated" and entry.cut_right:
                right = labels("brief.of_them_right", right=count(entry.cut_right))
                texts.append(f"{labels(f'brief.outcome.{outcome}')} {count(n)}{right}")
            else:
                texts.append(f"{labels(f'brief.outcome.{outcome}')} {count(n)}")
    return texts


class _SubsetLine(NamedTuple):
    lead: str
    parts: list[str]


def _subset_lines(entry: ResultEntry, room: int, labels: Labels) -> Iterator[_SubsetLine]:
    """Yield the best and the worst subsets, or all if there are few."""
    rows = [row for row in fmt.answered_rows(entry.subsets) if row.accuracy is not None]
    if len(rows) < 2:
        return
    short = short_subsets([row.name for row in rows])
    titles = {
        row.name: row.title if labels.language != "en" and row.title else short[row.name]
        for row in rows
    }
    ranked = sorted(rows, key=lambda row: -(row.accuracy or 0.0))
    if len(rows) <= ALL_SUBSETS:
        texts = [_subset_text(row, titles, labels) for row in ranked]
        lead = labels("brief.subsets") + "  "
        lines = pack_parts(texts, room - cells(lead), ", ")
        for number, line in enumerate(lines[:2]):
            yield _SubsetLine(" " * cells(lead) if number else lead, [line])
        return
    leads = [labels("brief.best"), labels("brief.worst")]
    length = max(map(len, leads)) + 2
    groups = (ranked[:EXTREMES], ranked[: -EXTREMES - 1 : -1])
    for lead, group in zip(leads, groups, strict=True):
        yield _SubsetLine(lead.ljust(length), [_subset_text(row, titles, labels) for row in group])


def _subset_text(row: SubsetRow, titles: dict[str, str], labels: Labels) -> str:
    """Return ``hyperbaton 50 (at chance)``."""
    text = f"{titles[row.name]} {100 * (row.accuracy or 0.0):.0f}"
    if row.chance is None or row.ci95 is None or row.ci95[0] > row.chance:
        return text
    return text + labels("brief.below" if row.ci95[1] < row.chance else "brief.like")


def _print_exams(screen: BriefScreen, entries: Sequence[ResultEntry], results: Results) -> None:
    """Print several exams in one table, one row for each exam."""
    labels = screen.labels
    occurring = fmt.occurring_outcomes(entries)
    counts = [[count(entry.outcomes.get(outcome, 0)) for outcome in occurring] for entry in entries]
    widths = [max(map(len, column)) for column in zip(*counts, strict=True)]
    rows = []
    for entry, numbers in zip(entries, counts, strict=True):
        metric = fmt.display_metrics(entry, labels)[0].metric
        ends = "" if metric.ci95 is None else interval(metric.ci95, 1)
        shots = _protocol_text(entry, results, labels)
        padded = " / ".join(n.rjust(w) for n, w in zip(numbers, widths, strict=True))
        mark = "!" if entry.notices else ""
        rows.append(
            [
                exam_title(entry),
                shots,
                score_text(entry, labels),
                ends,
                _graded_text(entry, labels),
                padded,
                mark,
            ]
        )
    outcomes = " / ".join(labels(f"brief.outcome.{outcome}") for outcome in occurring)
    columns = [
        BriefColumn("left", short_model(results.model) if results.model else ""),
        BriefColumn("left", spare=3),
        BriefColumn(title=labels("brief.score")),
        BriefColumn(title="95 %", spare=1),
        BriefColumn(title=labels("n")),
        BriefColumn(title=outcomes, spare=2),
        BriefColumn("left"),
    ]
    screen.rows(columns, rows)


def _warnings(labels: Labels, results: Results, place: RunPlace) -> Iterator[WarningLine]:
    """Yield the warnings of all exams as lines."""
    entries = results.benchmarks
    has_several = len(fmt.families(results)) > 1
    if results.complete is False and not results.stopped:  # the error says why a run stopped
        text = fmt.describe_incomplete(results, labels)
        yield WarningLine(text[:1].upper() + text[1:], "", float("inf"))
    for entry in entries:
        subject = exam_title(entry) if has_several else ""
        for notice in entry.notices:
            command = _show_command(place)
            if place.name and notice.code.startswith(_OF_AUDIT):
                command = f"keju audit {place.name}"
            if notice.code == "readers_apart" and (line := _tolerant_line(entry, labels)):
                if subject:
                    line = labels("named", name=subject, text=line)
                yield WarningLine(line, command, abs(float(notice.values["points"])))
            else:
                yield warning_line(notice, command, labels, subject)


def _tolerant_line(entry: ResultEntry, labels: Labels) -> str:
    """Return what a more tolerant reader gives, if results have its score."""
    metric, headline = entry.metrics.get(_ROBUST), entry.metrics.get("accuracy")
    if metric is None or headline is None or metric.value is None or headline.value is None:
        return ""
    answers = round((metric.value - headline.value) * metric.n)
    key = "brief.tolerant_more" if answers > 0 else "brief.tolerant_fewer"
    return labels(key, n=count(abs(answers)), figure=percent(metric.value, 1))


def _show_command(place: RunPlace) -> str:
    return f"keju show {place.name}" if place.name else ""


def _print_place(
    screen: BriefScreen, results: Results, place: RunPlace, *, is_separate: bool
) -> None:
    """Print how long the run took, what it used, and where it is, after an empty line."""
    labels = screen.labels
    entries = [family[0] for family in fmt.families(results)]
    seconds = max((entry.timing.seconds for entry in entries), default=0.0)
    tokens = sum(entry.usage.input_tokens + entry.usage.output_tokens for entry in entries)
    costs = [entry.usage.cost for entry in entries if isinstance(entry.usage.cost, float)]
    facts = [labels.duration(seconds)] if seconds else []
    facts += [labels("brief.tokens", n=compact(tokens))] if tokens else []
    facts += [labels("brief.cost", cost=money(sum(costs)))] if costs else []
    path = ""
    if place.folder is not None:
        report = place.folder / REPORT
        path = typed_path(report if report.is_file() else place.folder)
    if is_separate and (facts or path):
        screen.put()
    if facts or path:
        line = " · ".join(filter(None, [*facts, path]))
        screen.put(line if len(line) <= screen.room else path or line)


def _next_steps(labels: Labels, results: Results, place: RunPlace) -> Iterator[LabelledCommand]:
    """Yield the commands that show more, the most useful first."""
    if place.folder is None:
        return
    name, entries = place.name, results.benchmarks
    yield LabelledCommand(labels("brief.next.view"), f"keju view {name}")
    if any(_needs_audit(entry) for entry in entries):
        yield LabelledCommand(labels("brief.next.audit"), f"keju audit {name}")
    previous = find_comparable_run(Run(place.folder))
    if previous is not None:
        command = f"keju compare {command_name(previous.folder)} {name}"
        yield LabelledCommand(labels("brief.next.compare"), command)
    if (pair := counterpart(Run(place.folder))) is not None:
        runs = " ".join(command_name(run.folder) for run in (pair.direct, pair.reasoned))
        yield LabelledCommand(labels("brief.next.modes"), f"keju modes {runs}")
    if not results.curves:
        yield LabelledCommand(labels("brief.next.show"), f"keju show {name}")
        yield LabelledCommand(labels("brief.next.table"), f"keju export {name} --table latex")


def _needs_audit(entry: ResultEntry) -> bool:
    return bool(entry.outcomes.get("unparsed")) or any(
        notice.code.startswith(_OF_AUDIT) for notice in entry.notices
    )
