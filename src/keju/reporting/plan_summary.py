"""The short answer of a plan: how many questions to ask, what they show, and what they cost."""

from __future__ import annotations

from typing import TextIO

from keju.reporting.brief import BriefColumn, BriefScreen, LabelledCommand
from keju.reporting.format import Labels, compact, count, money
from keju.reporting.titles import title_of
from keju.reporting.warning_lines import print_warnings, warning_line
from keju.results.plan import Plan

SIZES = 6


def render_plan_summary(
    plan: Plan, step: str, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print the short answer of a plan, with the command for the next step."""
    screen = BriefScreen(file, width)
    labels = screen.labels
    screen.sentence(_sentence(plan, labels), "bold")
    screen.facts(_costs(plan, labels))
    rows = [
        [
            count(row.questions),
            labels("brief.points", points=f"{100 * row.effect:.1f}"),
            money(row.cost.value) if row.cost else "",
            labels.duration(row.seconds.value) if row.seconds else "",
        ]
        for row in plan.sizes[-SIZES:]
    ]
    columns = [
        BriefColumn(title=labels("plan.questions")),
        BriefColumn(title=labels("brief.plan.shows")),
        BriefColumn(title=labels("plan.cost") if plan.cost else "", spare=1),
        BriefColumn(title=labels("plan.seconds") if plan.seconds else "", spare=1),
    ]
    if rows:
        screen.put()
        screen.rows(columns, rows)
    print_warnings(screen, [warning_line(notice, "", labels) for notice in plan.notices], "")
    if step:
        screen.put()
        screen.next_steps([LabelledCommand(labels("brief.next.run"), step)], most_lines=1)
    screen.flush()


def _sentence(plan: Plan, labels: Labels) -> str:
    values = {"n": count(plan.questions), "exam": title_of(plan.exam)}
    values |= {"whole": count(plan.whole), "points": f"{100 * plan.effect:.1f}"}
    if plan.margin is not None:
        margin = f"{100 * plan.margin:.1f}"
        return labels("brief.plan.gate", margin=margin, **values)
    return labels("brief.plan.difference", **values)


def _costs(plan: Plan, labels: Labels) -> list[str]:
    """Return what the questions take, each fact in a few words."""
    tokens = plan.input_tokens.value + plan.output_tokens.value
    facts = [labels("brief.of_questions", whole=count(plan.whole))]
    facts.append(labels("brief.plan.tokens", n=compact(tokens)))
    if plan.cost is not None:
        low, high = money(plan.cost.low), money(plan.cost.high)
        facts.append(labels("brief.plan.cost", cost=money(plan.cost.value), low=low, high=high))
    if plan.seconds is not None:
        facts.append(labels("brief.plan.time", time=labels.duration(plan.seconds.value)))
    return facts
