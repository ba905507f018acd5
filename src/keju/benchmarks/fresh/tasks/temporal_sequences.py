"""The only part of a day in which a person could have gone to a place.

A day lasts from waking up to closing time. Marks between the two divide it into parts. Somebody saw
the person in every part but one, which is the answer.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from keju.benchmarks.fresh.task import (
    FreshQuestion,
    FreshTask,
    Language,
    add_options,
    scale_size,
    split_options,
)  # fmt: skip
from keju.benchmarks.fresh.vocabulary import vocabulary
from keju.types import LABELS

PUBLISHED_SIGHTINGS = (3, 5)
DAY = (5 * 60, 22 * 60)
"""From five in the morning to ten in the evening, in minutes."""
STEPS = (60, 30, 15)
"""The marks of a day are full hours, or half or quarter hours if there are many."""
OPTIONS = 4

TIME = r"\d{1,2}(?::\d\d)?[ap]m"  # 7am, 12:30pm
SPAN = rf"(?P<start>{TIME}) to (?P<end>{TIME})"
WOKE = re.compile(rf"^(?P<who>\w+) woke up at (?P<at>{TIME})\.$", re.M)
SIGHTING = re.compile(rf"^\w+ saw (?P<who>\w+) .+ from {SPAN}\.$", re.M)
CLOSED = re.compile(rf"^The .+ was closed after (?P<at>{TIME})\.$", re.M)
CLOCK = re.compile(r"(\d+):?(\d*)([ap])m")


class Day(NamedTuple):
    """The person, the place and the activities are indexes of vocabulary entries."""

    person: int
    place: int
    marks: list[int]
    """Minutes of the day: waking up, the ends of its parts, closing time."""
    free: int
    """The part without a witness."""
    witnesses: list[int]
    sightings: list[int]
    """For each part; the entry of the free part is not used."""
    options: list[tuple[int, int]]
    answer: int


class TemporalSequences(FreshTask):
    """A problem is a `Day`."""

    subset = "temporal_sequences"

    def invent(self, draw: random.Random, difficulty: float) -> Day:
        parts = scale_size(draw.randint(*PUBLISHED_SIGHTINGS), difficulty, least=1) + 1
        day_start, day_end = DAY
        step = next(
            (step for step in STEPS if 2 * parts < (day_end - day_start) // step), STEPS[-1]
        )
        marks = sorted(draw.sample(range(day_start, day_end + 1, step), parts + 1))
        free = draw.randrange(parts)
        gap = (marks[free], marks[free + 1])
        busy_spans = [(marks[part], marks[part + 1]) for part in range(parts) if part != free]
        options = draw.sample(busy_spans, min(OPTIONS - 1, len(busy_spans)))
        while len(options) < OPTIONS - 1:  # few sightings: add times that overlap with one
            start, end = sorted(draw.sample(range(day_start, day_end + 1, step), 2))
            is_busy = any(start < until and since < end for since, until in busy_spans)
            if is_busy and (start, end) not in options:
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

    def write(self, problem: Day, language: Language) -> FreshQuestion:
        people, sightings = vocabulary("people.en"), vocabulary("sightings.en")
        name, place = people[problem.person], vocabulary("visits.en")[problem.place]
        marks = [_format_clock(mark) for mark in problem.marks]
        lines = [
            f"Today, {name} went to the {place}. Between what times could they have gone?",
            "We know that:",
            f"{name} woke up at {marks[0]}.",
        ]
        sightings_by_part = zip(
            problem.witnesses, problem.sightings, marks[:-1], marks[1:], strict=True
        )
        for part, (witness, sighting, start, end) in enumerate(sightings_by_part):
            if part != problem.free:
                observation = f"{people[witness]} saw {name} {sightings[sighting]}"
                lines.append(f"{observation} from {start} to {end}.")
        lines.append(f"The {place} was closed after {marks[-1]}.")
        lines.append(f"Between what times could {name} have gone to the {place}?")
        options = [
            f"{_format_clock(start)} to {_format_clock(end)}" for start, end in problem.options
        ]
        return add_options("\n".join(lines), options, problem.answer, language)

    def solve(self, text: str) -> str | None:
        story, options = split_options(text)
        wake_match, closing_match = WOKE.search(story), CLOSED.search(story)
        sighting_matches = list(SIGHTING.finditer(story))
        if (
            wake_match is None
            or closing_match is None
            or len(sighting_matches) != story.count(" saw ")
        ):
            return None
        if any(match["who"] != wake_match["who"] for match in sighting_matches):
            return None
        gaps, free_from = [], _parse_minutes(wake_match["at"])
        for start, end in [
            *sorted(map(_parse_span, sighting_matches)),
            (_parse_minutes(closing_match["at"]), 24 * 60),
        ]:
            if free_from < start:
                gaps.append((free_from, start))
            free_from = max(free_from, end)
        option_matches = [re.fullmatch(SPAN, option) for option in options]
        right_numbers = [
            number
            for number, option_match in enumerate(option_matches)
            if option_match and _parse_span(option_match) in gaps
        ]
        return f"({LABELS[right_numbers[0]]})" if len(right_numbers) == len(gaps) == 1 else None


def _format_clock(minutes: int) -> str:
    """Return a time of the day: 750 is ``12:30pm``."""
    hour, minute = divmod(minutes, 60)
    clock_text = f"{(hour + 11) % 12 + 1}:{minute:02}" if minute else f"{(hour + 11) % 12 + 1}"
    return clock_text + ("pm" if hour >= 12 else "am")


def _parse_span(match: re.Match[str]) -> tuple[int, int]:
    """Return start and end in minutes of the day."""
    return _parse_minutes(match["start"]), _parse_minutes(match["end"])


def _parse_minutes(clock: str) -> int:
    """Return the minutes of a time, the inverse of `_clock`."""
    match = CLOCK.fullmatch(clock)
    assert match is not None, clock
    hour, minute, half = match.groups()
    return int(hour) % 12 * 60 + int(minute or 0) + (12 * 60 if half == "p" else 0)
