"""``make readers``: how right readers are on labelled replies, Keju's and those of other tools.

    python -m perf.reading [--half tuning|reported|both] [--errors RULE] [--data-dir DIR]

A reading is *misread* where the reply states another answer, *missed* where it states one and
nothing was read, *invented* where it states none. Shares of a recorded model are weighted back to
all of its replies by stratum, with a 95 % interval; `hard` leaves out the stratum in which all
rules agree and is not weighted. Written replies are counted as they are. Then follow the labelled
replies of the data folder and the table of the reader's rules and the models that they decided.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from keju.answers.segments import split_thinking
from keju.stats.intervals import Interval, wilson
from keju.types import Sample
from perf.exam import data_dir
from perf.measure import ROOT
from perf.reading.labels import Half, models, rows_of
from perf.reading.outside import print_outside
from perf.reading.replies import CORPUS, Written, exam_of, replies_of
from perf.reading.rule_table import print_rules
from perf.reading.rules import ROBUST, rules_of
from perf.reading.values import AMBIGUOUS, kind_of, value_of

ERRORS = ("misread", "missed", "invented")
WRITTEN = ("written.jsonl", "written_reported.jsonl")
"""Replies that were written for the readers; the second file was never tuned on."""
Z95 = 1.959964


class Reading(NamedTuple):
    """What one rule made of one reply."""

    reply: Written
    stratum: str
    label: str | None
    value: str | None
    verdict: str
    """``right``, or the kind of error."""


def verdict(label: str | None, value: str | None, kind: str, sample: Sample) -> str:
    """Whether a reading is right.

    Where two answers stand undecided, and where what is stated can be no answer, nothing should be
    read; such a label itself is no error.
    """
    stated = label if label in (None, AMBIGUOUS) else value_of(label, kind, sample)
    if label == AMBIGUOUS or (label is not None and stated is None):
        return "right" if value is None else "misread"
    if value == stated:
        return "right"
    if stated is None:
        return "invented"
    return "missed" if value is None else "misread"


def recorded_readings(model: str, data: Path, half: Half | None) -> Iterator[tuple[str, Reading]]:
    """What each rule makes of the labelled replies of a model."""
    replies = replies_of(model, data)
    for row in rows_of(model):
        label = row.agreed_label
        if label is not msgspec.UNSET and half in (None, row.half) and row.key in replies:
            yield from read(replies[row.key], row.stratum, label)


def read(reply: Written, stratum: str, label: str | None) -> Iterator[tuple[str, Reading]]:
    """What each rule makes of a reply, which it gets without its thinking."""
    text, kind = split_thinking(reply.text).text, kind_of(reply.sample)
    for name, rule in rules_of(reply.exam).items():
        value = value_of(rule(text, reply.sample), kind, reply.sample)
        right = verdict(label, value, kind, reply.sample)
        yield name, Reading(reply, stratum, label, value, right)


def share(readings: list[Reading], sizes: Mapping[str, int], error: str) -> tuple[float, Interval]:
    """The share of all replies with an error, weighted by stratum, and its interval.

    The interval adds up the strata's Wilson intervals as independent parts, so that a stratum
    without an error still says how little was looked at.
    """
    strata: dict[str, list[bool]] = defaultdict(list)
    for reading in readings:
        strata[reading.stratum].append(reading.verdict == error)
    total = sum(sizes[name] for name in strata)
    value = low = high = 0.0
    for name, wrong in strata.items():
        part, weight = sum(wrong) / len(wrong), sizes[name] / total
        # A stratum that was read whole leaves no doubt of this kind.
        correction = math.sqrt(max(0.0, 1 - len(wrong) / sizes[name]))
        interval = wilson(part, len(wrong))
        value += weight * part
        low += (weight * correction * (part - interval.low)) ** 2
        high += (weight * correction * (interval.high - part)) ** 2
    return value, Interval(max(0.0, value - math.sqrt(low)), value + math.sqrt(high))


def print_model(model: str, data: Path, half: Half | None, errors: str) -> None:
    """The table of one recorded model."""
    sizes = msgspec.json.decode((CORPUS / "strata.json").read_bytes())[model]
    by_rule: dict[str, list[Reading]] = defaultdict(list)
    for name, reading in recorded_readings(model, data, half):
        by_rule[name].append(reading)
    if not by_rule:
        print(f"\n{model}: no labels or no texts")
        return
    print(f"\n{model}: {len(by_rule[ROBUST])} labelled replies of {sum(sizes.values()):,}")
    print(f"  {'':<20}{''.join(f'{error:>26}' for error in ERRORS)}{'errors in hard strata':>26}")
    for name, readings in by_rule.items():
        line = f"  {name:<20}"
        for error in ERRORS:
            value, (low, high) = share(readings, sizes, error)
            line += f"{value:>12.2%} ({low:.2%}–{high:.2%})"
        hard = [reading for reading in readings if reading.stratum != "agree"]
        wrong = sum(reading.verdict != "right" for reading in hard)
        print(f"{line}{wrong:>16} of {len(hard)}")
    print_errors(by_rule.get(errors, []))


def print_written(name: str, half: str | None, data: Path, errors: str) -> None:
    """The table of one file of written replies."""
    by_rule: dict[str, list[Reading]] = defaultdict(list)
    text = (ROOT / "tests" / "readers" / name).read_bytes()
    for row in map(msgspec.json.decode, text.splitlines()):
        if half is None or row["half"] == half:
            for rule, reading in read(as_written(row, data), "", row["label"]):
                by_rule[rule].append(reading)
    if not by_rule:
        return
    print(f"\n{name}: {len(by_rule[ROBUST])} replies")
    for rule, readings in by_rule.items():
        counts = Counter(reading.verdict for reading in readings)
        cells = "".join(f"{counts[error]:>10} {error}" for error in ERRORS)
        print(f"  {rule:<20}{cells}   of {len(readings)}")
    print_errors(by_rule.get(errors, []))


def as_written(row: Mapping[str, Any], data: Path) -> Written:
    """A reply that was written for the corpus, with the question that it names."""
    exam = exam_of(row["benchmark"], PROTOCOLS[row["benchmark"]], data)
    sample = Sample(
        id=row["id"],
        index=0,
        subset=row["subset"],
        text=row["question"],
        target="",
        choices=tuple(row.get("choices", ())),
    )
    return Written(f"written/{row['id']}", row["output"], sample, exam)


PROTOCOLS = {
    "bbh": "paper",
    "mmlu_pro": "official",
    "ceval": "evalscope",
    "bixbench": "official",
}
"""The protocol under which written replies of an exam are read."""


def print_errors(readings: list[Reading]) -> None:
    """Every error of one rule."""
    for reading in readings:
        if reading.verdict != "right":
            label, end = reading.label, " ".join(reading.reply.text.split())[-160:]
            print(f"    {reading.verdict}: {reading.reply.key} [{reading.stratum}]", end=" ")
            print(f"states {label!r}, read {reading.value!r}: … {end}")


def main() -> int:
    """Print all tables."""
    parser = argparse.ArgumentParser(description="how right readers are on labelled replies")
    parser.add_argument("--half", choices=("tuning", "reported", "both"), default="both")
    parser.add_argument("--errors", default=ROBUST, help="the rule whose errors are listed")
    parser.add_argument("--data-dir", type=Path, default=data_dir())
    options = parser.parse_args()
    if options.data_dir is None:
        print("not measured: set KEJU_DATA_DIR to the folder of real data")
        return 0
    half = None if options.half == "both" else options.half
    for model in models():
        print_model(model, options.data_dir, half, options.errors)
    for name in WRITTEN:
        print_written(name, half, options.data_dir, options.errors)
    print_outside(options.data_dir)
    print_rules(options.data_dir)
    return 0


if __name__ == "__main__":
    sys.exit(main())
