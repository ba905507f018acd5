"""The short answer of a comparison: which run is better, one row for each exam, where to look."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import TextIO

from keju.reporting.assertions import assertion_title
from keju.reporting.brief import (
    BriefColumn,
    BriefScreen,
    LabelledCommand,
    known_names,
    short_subsets,
)
from keju.reporting.format import Labels, count, percent
from keju.reporting.pairs import p_value
from keju.reporting.titles import title_of
from keju.reporting.warning_lines import print_warnings, warning_line
from keju.results.compare import Compared
from keju.results.schema import SIGNIFICANT, Comparison, Verdict

SENTENCES = 4
CLEAREST = 3
_ORDER: tuple[Verdict, ...] = ("not comparable", "below", "above", "tie", "nothing")


class SideNames:
    """The names of both sides of all pairs: models, or runs where models are alike."""

    def __init__(self, pairs: Sequence[Comparison]) -> None:
        models: dict[str, str] = {}
        for pair in pairs:
            models[pair.base], models[pair.arm] = pair.base_model, pair.arm_model
        self._names = dict(
            zip(models, known_names(list(models.values()), list(models)), strict=True)
        )

    def base(self, pair: Comparison) -> str:
        """Return the name of the base."""
        return self._names[pair.base]

    def arm(self, pair: Comparison) -> str:
        """Return the name of the arm."""
        return self._names[pair.arm]


def render_comparison_summary(
    compared_runs: Compared,
    sources: Sequence[str] = (),
    *,
    diff: str = "",
    file: TextIO | None = None,
    width: int | None = None,
) -> None:
    """Print the short answer. `sources` are the names of the runs in commands.

    `diff` is the command that shows why two runs are not comparable.
    """
    screen, pairs = BriefScreen(file, width), compared_runs.comparisons
    labels, names = screen.labels, SideNames(pairs)
    sentences = _verdict_sentences(pairs, names, labels)
    for sentence in sentences[:SENTENCES]:
        screen.sentence(sentence, "bold")
    _print_rows(screen, pairs, names)
    _print_clearest(screen, pairs, names)
    _print_assertions(screen, pairs, names)
    subject = len(pairs) > 1
    lines = [
        warning_line(notice, "", labels, title_of(pair.exam) if subject else "")
        for pair in pairs
        for notice in pair.notices
    ]
    lines += [warning_line(notice, "", labels) for notice in compared_runs.notices]
    print_warnings(screen, lines, "")
    screen.put()
    screen.next_steps(_next_steps(compared_runs, sources, diff, labels))
    screen.flush()


def _verdict_sentences(pairs: Sequence[Comparison], names: SideNames, labels: Labels) -> list[str]:
    """Return one sentence for each pair of runs; pairs of one run with one verdict share it."""
    by_runs: dict[tuple[str, str], dict[Verdict, list[Comparison]]] = {}
    for pair in pairs:
        verdicts = by_runs.setdefault((pair.base, pair.arm), {})
        verdicts.setdefault(pair.verdict, []).append(pair)
    merged: dict[tuple[str, Verdict], list[str]] = {}
    sentences = []
    for verdicts in by_runs.values():
        if len(verdicts) == 1:
            ((verdict, (pair, *_)),) = verdicts.items()
            if verdict == "not comparable":
                sentences.append(_first_capital(pair.conclusion.text(labels.language)))
            else:
                merged.setdefault((names.arm(pair), verdict), []).append(names.base(pair))
            continue
        clauses = []
        for verdict in sorted(verdicts, key=_ORDER.index):
            exams = labels("list_separator").join(
                dict.fromkeys(title_of(pair.exam) for pair in verdicts[verdict])
            )
            pair = verdicts[verdict][0]
            text = _pair_sentence(verdict, names.arm(pair), [names.base(pair)], labels)
            clauses.append(labels("brief.on_exams", text=text, exams=exams))
        sentences += clauses
    ordered = sorted(merged, key=lambda key: _ORDER.index(key[1]))
    return sentences + [_pair_sentence(key[1], key[0], merged[key], labels) for key in ordered]


def _pair_sentence(verdict: Verdict, arm: str, bases: Sequence[str], labels: Labels) -> str:
    base = labels("brief.and").join(bases)
    return labels(f"brief.verdict.{verdict.replace(' ', '_')}", arm=arm, base=base)


def _first_capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _print_rows(screen: BriefScreen, pairs: Sequence[Comparison], names: SideNames) -> None:
    labels = screen.labels
    has_several_runs = len({(pair.base, pair.arm) for pair in pairs}) > 1
    rows = [
        [
            title_of(pair.exam),
            f"{names.base(pair)} -> {names.arm(pair)}" if has_several_runs else "",
            f"{_points(pair.base_rate)} -> {_points(pair.arm_rate)}",
            _difference_text(pair, labels),
            _interval_text(pair, labels),
            _change_text(pair, labels),
            _p_text(pair),
        ]
        for pair in pairs
    ]
    columns = [
        BriefColumn("left"),
        BriefColumn("left"),
        BriefColumn("left"),
        BriefColumn(),
        BriefColumn("left", spare=1),
        BriefColumn("left", spare=3),
        BriefColumn("left", spare=2),
    ]
    screen.rows(columns, rows)


def _points(value: float | None) -> str:
    return percent(value, 1).removesuffix(" %")


def _difference_text(pair: Comparison, labels: Labels) -> str:
    """Return ``-6.2 points``; empty if the two are not comparable."""
    if pair.difference is None or pair.obstacle is not None:
        return ""
    return labels("brief.points", points=f"{100 * pair.difference:+.1f}")


def _interval_text(pair: Comparison, labels: Labels) -> str:
    """Return ``(-7.3 to -5.1)``; empty if the two are not comparable."""
    if pair.difference is None or pair.obstacle is not None or pair.ci95 is None:
        return ""
    low, high = (f"{100 * end:+.1f}" for end in pair.ci95)
    return labels("brief.ends", low=low, high=high).strip()


def _change_text(pair: Comparison, labels: Labels) -> str:
    if pair.obstacle is not None or not pair.n:
        return ""
    return labels("brief.changes", gained=count(pair.arm_only), lost=count(pair.base_only))


def _p_text(pair: Comparison) -> str:
    p = pair.p if pair.p_holm is None else pair.p_holm
    return "" if p is None or pair.obstacle is not None else f"p {p_value(p)}"


def _print_clearest(screen: BriefScreen, pairs: Sequence[Comparison], names: SideNames) -> None:
    """Print the subsets that differ most clearly, or the smallest difference that would show."""
    labels = screen.labels
    decided = [pair for pair in pairs if pair.verdict in ("above", "below")]
    for pair in decided[:1]:
        rows = [row for row in pair.subsets if row.p_adjusted < SIGNIFICANT]
        short = short_subsets([row.name for row in pair.subsets])
        clearest = sorted(rows, key=lambda row: row.p_adjusted)[:CLEAREST]
        texts = [f"{short[row.name]} {100 * row.difference:+.0f}" for row in clearest]
        if texts:
            lead = labels("brief.clearest")
            if len({(decided_pair.base, decided_pair.arm) for decided_pair in decided}) > 1:
                name = f"{names.base(pair)} -> {names.arm(pair)}"
                lead += labels("in_brackets", text=name)
            elif len(decided) > 1:
                lead += labels("in_brackets", text=title_of(pair.exam))
            screen.facts(texts, f"{lead}  ", gap=", ")
    ties = [pair for pair in pairs if pair.verdict == "tie" and pair.detectable]
    if ties and not decided:
        smallest = max(100 * (pair.detectable or 0.0) for pair in ties)
        screen.facts([labels("brief.detectable", points=f"{smallest:.1f}")])


def _print_assertions(screen: BriefScreen, pairs: Sequence[Comparison], names: SideNames) -> None:
    """Print the assertions about tools and state: both scores, the difference, its interval."""
    labels = screen.labels
    rows = []
    for pair in pairs:
        side = f"{names.base(pair)} -> {names.arm(pair)}" if len(pairs) > 1 else ""
        for change in pair.assertions:
            points = ends = ""
            if change.difference is not None:
                points = labels("brief.points", points=f"{100 * change.difference:+.1f}")
            if change.ci95 is not None:
                low, high = (f"{100 * end:+.1f}" for end in change.ci95)
                ends = labels("brief.ends", low=low, high=high).strip()
            scores = f"{_points(change.base_rate)} -> {_points(change.arm_rate)}"
            rows.append([assertion_title(change.name, labels), side, scores, points, ends])
    if rows:
        screen.put()
        texts = [BriefColumn("left")] * 3
        screen.rows([*texts, BriefColumn(), BriefColumn("left", spare=1)], rows)


def _next_steps(
    compared_runs: Compared, sources: Sequence[str], diff: str, labels: Labels
) -> list[LabelledCommand]:
    """Return the commands that follow a comparison."""
    runs = " ".join(map(quote, sources))
    if diff:
        return [LabelledCommand(labels("brief.next.diff"), diff)]
    steps = [LabelledCommand(labels("brief.next.view"), f"keju view {runs}")]
    if len(sources) == 2 and compared_runs.comparable:
        base, run = map(quote, sources)
        command = f"keju gate {run} --baseline {base} --margin 0.01"
        steps.append(LabelledCommand(labels("brief.next.gate"), command))
    steps.append(LabelledCommand(labels("brief.next.subsets"), f"keju compare {runs} --verbose"))
    return steps
