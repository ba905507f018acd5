"""A plan in the terminal: what to ask, what it shows, what it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TextIO

from keju.messages import spoken
from keju.report.format import UNKNOWN, Labels, compact, count, money, percent
from keju.report.table import Screen
from keju.results.plan import Plan, Range


def _between(own: Range | None, words: Callable[[float], str]) -> tuple[str, str]:
    if own is None:
        return UNKNOWN, UNKNOWN
    return words(own.value), f"{words(own.low)} … {words(own.high)}"


def plan_titles(labels: Labels) -> list[str]:
    """The titles of `plan_rows`: what is planned, how much of it, and the interval of that."""
    return [labels(f"plan.{name}") for name in ("planned", "amount", "interval")]


def plan_rows(made: Plan, labels: Labels) -> list[list[str]]:
    """What to ask, the difference it shows and what it takes, each with its interval."""
    return [
        [labels("plan.questions"), count(made.questions), ""],
        [labels("plan.effect"), f"{100 * made.effect:.2f}", ""],
        [labels("plan.requests"), count(round(made.requests)), ""],
        [labels("plan.input"), *_between(made.input_tokens, compact)],
        [labels("plan.output"), *_between(made.output_tokens, compact)],
        [labels("plan.cost"), *_between(made.cost, money)],
        [labels("plan.seconds"), *_between(made.seconds, labels.duration)],
    ]


def plan_words(made: Plan, labels: Labels) -> list[str]:
    """What the plan rests on, and what could mislead about it."""
    share = percent(made.discordance)
    words = [labels(f"plan.{made.discordance_from}", discordance=share), *_on_set(made, labels)]
    if made.deff > 1:
        words.append(labels("plan.contexts", deff=made.deff))
    if made.at_once:
        words.append(labels("plan.at_once", n=made.at_once))
    return [*words, *(notice.text(labels.language) for notice in made.notices)]


def _on_set(made: Plan, labels: Labels) -> Iterator[str]:
    """What holds where only this very set of questions counts, of which a part is asked."""
    if made.questions_on_set is not None:
        yield labels("plan.for_set", n=made.questions_on_set)
    elif made.effect_on_set is not None:
        yield labels("plan.on_set", points=100 * made.effect_on_set)


def plan_title(made: Plan, labels: Labels) -> str:
    """The exam that is planned."""
    facts = {"exam": made.exam, "protocol": made.protocol}
    return labels("plan.title", **facts, whole=count(made.whole))


def render_plan(
    made: Plan, step: str, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print a plan to `file` (stdout by default), with the command that is the next step."""
    labels, screen = Labels(spoken()), Screen(file, width)
    screen.line(plan_title(made, labels))
    screen.line()
    screen.table(plan_titles(labels), plan_rows(made, labels))
    screen.line()
    titles = [labels(f"plan.{key}") for key in ("questions", "effect", "cost", "seconds")]
    rows = [
        [
            count(row.questions),
            f"{100 * row.effect:.2f}",
            _between(row.cost, money)[0],
            _between(row.seconds, labels.duration)[0],
        ]
        for row in made.sizes
    ]
    screen.table(titles, rows)
    screen.line()
    if step:
        screen.commands([(step, "")], indent=0)
        screen.line()
    for line in plan_words(made, labels):
        screen.line(line)
    screen.flush()
