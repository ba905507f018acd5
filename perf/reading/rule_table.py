"""Which rule of Keju's reader decides how many replies of which model, and how often it is right.

A cell is ``replies decided / share right``. ``by label`` counts the labelled replies of a model;
``by gold`` compares with the gold answers. A rule has to read at least as well as strict readings
do on the same subsets, and that share is printed behind it: a model that is right in 40 % of a
subset where it uses the protocol's marker should be right about as often where a rule reads it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from keju.answers.segments import split_thinking
from perf.reading.replies import OTHERS, RECORDINGS, Written, embedded, recorded


class RuleCell(NamedTuple):
    """What one rule did with the replies of one model."""

    decided: int
    right: float
    """The share of correct answers."""
    strict: float | None
    """The share of correct answers among strict readings, weighted by the rule's subsets."""


class Counts:
    """Readings of one model by rule and subset."""

    def __init__(self) -> None:
        self._decided: dict[str, Counter[str]] = defaultdict(Counter)
        self._right: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, rule: str, subset: str, *, right: bool) -> None:
        """Count a reading."""
        self._decided[rule][subset] += 1
        self._right[rule][subset] += right

    def cells(self) -> Iterator[tuple[str, RuleCell]]:
        """Yield each rule with its cell."""
        for rule, subsets in self._decided.items():
            n = subsets.total()
            yield rule, RuleCell(n, self._right[rule].total() / n, self._strict(subsets))

    def _strict(self, subsets: Mapping[str, int]) -> float | None:
        """What the rule's share would be if it were right as often as the marker is."""
        decided = self._decided.get("marker", Counter[str]())
        right = self._right.get("marker", Counter[str]())
        common = {name: n for name, n in subsets.items() if decided[name]}
        if not common:
            return None
        expected = sum(n * right[name] / decided[name] for name, n in common.items())
        return expected / sum(common.values())


def counts_of(replies: Iterable[Written]) -> Counts:
    """What the rules of the robust reader do with the replies of a model, by gold answer."""
    counts = Counts()
    for reply in replies:
        reader = reply.exam.readers["robust"]
        answer = reader.read(split_thinking(reply.text).text, reply.sample)
        right = answer.value is not None and reader.matches(answer.value, reply.sample)
        counts.add(answer.rule or "(nothing read)", reply.sample.subset, right=right)
    return counts


def print_rules(data: Path) -> None:
    """Print the table of rules and models."""
    columns: dict[str, dict[str, RuleCell]] = {}
    for recording in (*RECORDINGS, *OTHERS):
        if (data / recording.file).is_file():
            columns[recording.model] = dict(counts_of(recorded(recording, data)).cells())
    columns["embedded"] = dict(counts_of(embedded(data)).cells())
    rules = Counter[str]()
    for cells in columns.values():
        for rule, cell in cells.items():
            rules[rule] += cell.decided
    print("\nRules × models: replies decided, share right by gold (share of strict readings)")
    for rule, total in rules.most_common():
        models = [(name, cells[rule]) for name, cells in columns.items() if rule in cells]
        print(f"  {rule}: {total:,} replies of {len(models)} models")
        for name, (decided, right, strict) in models:
            strict_note = "" if strict is None else f" (strict {strict:.1%})"
            print(f"    {name:<32}{decided:>8,}{right:>9.1%}{strict_note}")
