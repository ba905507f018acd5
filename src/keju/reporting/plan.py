"""Print a plan: the number of questions, the effect they can show, and the expected cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TextIO

from keju.messages import current_language
from keju.reporting.format import UNKNOWN, Labels, compact, count, money, percent
from keju.reporting.table import TerminalScreen
from keju.results.plan import ForecastRange, Plan


def _amount_and_range(
    estimate: ForecastRange | None, format_value: Callable[[float], str]
) -> tuple[str, str]:
    if estimate is None:
        return UNKNOWN, UNKNOWN
    return format_value(
        estimate.value
    ), f"{format_value(estimate.low)} … {format_value(estimate.high)}"


def plan_titles(labels: Labels) -> list[str]:
    """Return the titles of `plan_rows`: the quantity, the amount and its interval."""
    return [labels(f"plan.{name}") for name in ("planned", "amount", "interval")]


def plan_rows(plan: Plan, labels: Labels) -> list[list[str]]:
    """Return the number of questions, the detectable effect and the costs, with their intervals."""
    return [
        [labels("plan.questions"), count(plan.questions), ""],
        [labels("plan.effect"), f"{100 * plan.effect:.2f}", ""],
        [labels("plan.requests"), count(round(plan.requests)), ""],
        [labels("plan.input"), *_amount_and_range(plan.input_tokens, compact)],
        [labels("plan.output"), *_amount_and_range(plan.output_tokens, compact)],
        [labels("plan.cost"), *_amount_and_range(plan.cost, money)],
        [labels("plan.seconds"), *_amount_and_range(plan.seconds, labels.duration)],
    ]


def plan_notes(plan: Plan, labels: Labels) -> list[str]:
    """Return the assumptions of the plan and its warnings."""
    share = percent(plan.discordance)
    words = [
        labels(f"plan.{plan.discordance_from}", discordance=share),
        *_notes_for_set(plan, labels),
    ]
    if plan.deff > 1:
        words.append(labels("plan.contexts", deff=plan.deff))
    if plan.at_once:
        words.append(labels("plan.at_once", n=plan.at_once))
    return [*words, *(notice.text(labels.language) for notice in plan.notices)]


def _notes_for_set(plan: Plan, labels: Labels) -> Iterator[str]:
    """Return the plan for this set of questions only, if only a part of it is asked."""
    if plan.questions_on_set is not None:
        yield labels("plan.for_set", n=plan.questions_on_set)
    elif plan.effect_on_set is not None:
        yield labels("plan.on_set", points=100 * plan.effect_on_set)


def plan_title(plan: Plan, labels: Labels) -> str:
    """Return the title with the exam of the plan."""
    facts = {"exam": plan.exam, "protocol": plan.protocol}
    return labels("plan.title", **facts, whole=count(plan.whole))


def render_plan(
    plan: Plan, step: str, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print a plan to `file` (stdout by default), with the command for the next step."""
    labels, screen = Labels(current_language()), TerminalScreen(file, width)
    screen.line(plan_title(plan, labels))
    screen.line()
    screen.table(plan_titles(labels), plan_rows(plan, labels))
    screen.line()
    titles = [labels(f"plan.{key}") for key in ("questions", "effect", "cost", "seconds")]
    rows = [
        [
            count(row.questions),
            f"{100 * row.effect:.2f}",
            _amount_and_range(row.cost, money)[0],
            _amount_and_range(row.seconds, labels.duration)[0],
        ]
        for row in plan.sizes
    ]
    screen.table(titles, rows)
    screen.line()
    if step:
        screen.commands([(step, "")], indent=0)
        screen.line()
    for line in plan_notes(plan, labels):
        screen.line(line)
    screen.flush()
