"""When could somebody have gone to a place? In the one part of the day when nobody saw them.

A day runs from waking up to closing time. Marks between the two cut it into parts; somebody saw
the person in every part but one, and that one is the answer.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from keju.benchmarks.fresh.task import (
    Language,
    Question,
    Task,
    scaled,
    split_options,
    with_options,
)  # fmt: skip
from keju.benchmarks.fresh.vocabulary import vocabulary
from keju.types import LABELS

PUBLISHED_SIGHTINGS = (3, 5)
DAY = (5 * 60, 22 * 60)
"""Nobody wakes up before five, nothing is open after ten in the evening; in minutes."""
STEPS = (60, 30, 15)
"""Marks of a day are full hours; where they would be crowded, half or quarter hours."""
OPTIONS = 4

TIME = r"\d{1,2}(?::\d\d)?[ap]m"  # 7am, 12:30pm
SPAN = rf"(?P<start>{TIME}) to (?P<end>{TIME})"
WOKE = re.compile(rf"^(?P<who>\w+) woke up at (?P<at>{TIME})\.$", re.M)
SEEN = re.compile(rf"^\w+ saw (?P<who>\w+) .+ from {SPAN}\.$", re.M)
CLOSED = re.compile(rf"^The .+ was closed after (?P<at>{TIME})\.$", re.M)
CLOCK = re.compile(r"(\d+):?(\d*)([ap])m")


class Day(NamedTuple):
    """People, the place and what they were seen at are numbers of entries of vocabularies."""

    person: int
    place: int
    marks: list[int]
    """Minutes of the day: waking up, the ends of its parts, closing time."""
    free: int
    """The part in which nobody saw the person."""
    witnesses: list[int]
    sightings: list[int]
    """For each part; what stands at the free one is not told."""
    options: list[tuple[int, int]]
    answer: int


class TemporalSequences(Task):
    """A problem is a `Day`."""

    subset = "temporal_sequences"

    def invent(self, draw: random.Random, difficulty: float) -> Day:
        parts = scaled(draw.randint(*PUBLISHED_SIGHTINGS), difficulty, least=1) + 1
        first, last = DAY
        step = next((step for step in STEPS if 2 * parts < (last - first) // step), STEPS[-1])
        marks = sorted(draw.sample(range(first, last + 1, step), parts + 1))
        free = draw.randrange(parts)
        gap = (marks[free], marks[free + 1])
        seen = [(marks[part], marks[part + 1]) for part in range(parts) if part != free]
        options = draw.sample(seen, min(OPTIONS - 1, len(seen)))
        while len(options) < OPTIONS - 1:  # few sightings: any time that runs into one of them
            start, end = sorted(draw.sample(range(first, last + 1, step), 2))
            busy = any(start < until and since < end for since, until in seen)
            if busy and (start, end) not in options:
                options.append((start, end))
        answer = draw.randrange(OPTIONS)
        options.insert(answer, gap)
        person, *witnesses = draw.sample(range(len(vocabulary("people.en"))), parts + 1)
        return Day(
            person=person,
            place=draw.randrange(len(vocabulary("visits.en"))),
            marks=marks,
            free=free,
            witnesses=witnesses,
            sightings=draw.sample(range(len(vocabulary("sightings.en"))), parts),
            options=options,
            answer=answer,
        )

    def write(self, problem: Day, language: Language) -> Question:
        people, sightings = vocabulary("people.en"), vocabulary("sightings.en")
        name, place = people[problem.person], vocabulary("visits.en")[problem.place]
        marks = [_clock(mark) for mark in problem.marks]
        lines = [
            f"Today, {name} went to the {place}. Between what times could they have gone?",
            "We know that:",
            f"{name} woke up at {marks[0]}.",
        ]
        seen = zip(problem.witnesses, problem.sightings, marks[:-1], marks[1:], strict=True)
        for part, (witness, sighting, start, end) in enumerate(seen):
            if part != problem.free:
                what = f"{people[witness]} saw {name} {sightings[sighting]}"
                lines.append(f"{what} from {start} to {end}.")
        lines.append(f"The {place} was closed after {marks[-1]}.")
        lines.append(f"Between what times could {name} have gone to the {place}?")
        options = [f"{_clock(start)} to {_clock(end)}" for start, end in problem.options]
        return with_options("\n".join(lines), options, problem.answer, language)

    def solve(self, text: str) -> str | None:
        story, options = split_options(text)
        woke, closed = WOKE.search(story), CLOSED.search(story)
        seen = list(SEEN.finditer(story))
        if woke is None or closed is None or len(seen) != story.count(" saw "):
            return None
        if any(found["who"] != woke["who"] for found in seen):
            return None
        gaps, at = [], _minutes(woke["at"])
        for start, end in [*sorted(map(_span, seen)), (_minutes(closed["at"]), 24 * 60)]:
            if at < start:
                gaps.append((at, start))
            at = max(at, end)
        offered = [re.fullmatch(SPAN, option) for option in options]
        right = [number for number, found in enumerate(offered) if found and _span(found) in gaps]
        return f"({LABELS[right[0]]})" if len(right) == len(gaps) == 1 else None


def _clock(minutes: int) -> str:
    """A time of the day: 750 is ``12:30pm``."""
    hour, minute = divmod(minutes, 60)
    shown = f"{(hour + 11) % 12 + 1}:{minute:02}" if minute else f"{(hour + 11) % 12 + 1}"
    return shown + ("pm" if hour >= 12 else "am")


def _span(found: re.Match[str]) -> tuple[int, int]:
    """From when to when, in minutes of the day."""
    return _minutes(found["start"]), _minutes(found["end"])


def _minutes(clock: str) -> int:
    """The reverse of `_clock`."""
    found = CLOCK.fullmatch(clock)
    assert found is not None, clock
    hour, minute, half = found.groups()
    return int(hour) % 12 * 60 + int(minute or 0) + (12 * 60 if half == "p" else 0)
