"""Where encoded questions wait until a pass has room for them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from keju.models.hf.encode import Item
from keju.models.hf.prefixes import by_prefix
from keju.models.hf.settings import Reuse
from keju.types import Sampling

QUIET = 0.005
"""Seconds without an arrival after which nothing more is expected for the moment."""
ROUNDS = 8
"""Batches that are taken together, so that rows of one batch are of similar length."""


@dataclass(frozen=True)
class Size:
    """How much one pass may hold."""

    rows: int
    tokens: int
    form: Reuse


class Pool:
    """Questions in order of arrival, given out in passes; safe between threads."""

    def __init__(self) -> None:
        self._waiting: list[Item] = []
        self._changed = threading.Condition()
        self._closed = False

    def put(self, items: Sequence[Item]) -> None:
        """Let questions in."""
        with self._changed:
            self._waiting.extend(items)
            self._changed.notify_all()

    def take(self, size: Size) -> list[Item]:
        """Wait for the next pass: all of one kind; empty when the pool is closed."""
        with self._changed:
            settled = False
            while not self._closed:
                chosen = choose(self._waiting, size, settled=settled) if self._waiting else []
                if chosen:
                    self._remove(chosen)
                    return chosen
                before = len(self._waiting)
                self._changed.wait(QUIET if before else None)
                settled = bool(before) and len(self._waiting) == before
            return []

    def refill(self, sampling: Sampling, count: int) -> list[Item]:
        """At most `count` further questions with this sampling, without waiting."""
        with self._changed:
            same = [item for item in self._waiting if item.request.sampling == sampling]
            chosen = [item for group in by_prefix(same) for item in group][:count]
            self._remove(chosen)
            return chosen

    def close(self) -> list[Item]:
        """Let nobody wait any longer; return what was left."""
        with self._changed:
            self._closed = True
            left, self._waiting = self._waiting, []
            self._changed.notify_all()
            return left

    def _remove(self, chosen: Sequence[Item]) -> None:
        taken = {id(item) for item in chosen}
        self._waiting = [item for item in self._waiting if id(item) not in taken]


def choose(waiting: Sequence[Item], size: Size, *, settled: bool) -> list[Item]:
    """The questions of the next pass, or none where it is better to wait for more.

    Whole groups of one prefix are preferred: a prefix that is split over passes is computed
    twice. `settled` says that nothing has arrived for a while.
    """
    sampling = waiting[0].request.sampling
    same = [item for item in waiting if item.request.sampling == sampling]
    if sampling.decode != "labels":
        return same[: size.rows] if settled or len(same) >= size.rows else []
    groups = by_prefix(same)
    if size.form != "tree":
        most = size.rows * ROUNDS
        chosen = same if size.form == "off" else groups[0]
        complete = settled or len(groups) > 1 or len(chosen) >= most
        return chosen[:most] if complete else []
    return _whole_groups(groups, size, settled=settled)


def _whole_groups(groups: Sequence[list[Item]], size: Size, *, settled: bool) -> list[Item]:
    """Groups in order of arrival up to the size of a pass; the last one may still be growing."""
    chosen: list[Item] = []
    room = size.tokens
    for number, group in enumerate(groups):
        shared = min(item.shared for item in group)
        cost = shared + sum(len(item.tokens) - shared for item in group)
        growing = number == len(groups) - 1
        if cost > room or len(chosen) + len(group) > size.rows:
            return chosen if room <= size.tokens / 2 else chosen + _part(group, room, size, chosen)
        if growing and chosen and room <= size.tokens / 2:
            return chosen
        chosen += group
        room -= cost
    return chosen if settled else []


def _part(group: Sequence[Item], room: int, size: Size, chosen: Sequence[Item]) -> list[Item]:
    """As much of a group as there is room for; at least one question if nothing else is chosen."""
    shared = min(item.shared for item in group)
    room -= shared
    part: list[Item] = []
    for item in group:
        own = len(item.tokens) - shared
        if (own > room and (part or chosen)) or len(chosen) + len(part) >= size.rows:
            break
        part.append(item)
        room -= own
    return part
