"""The keys and values of a few prefixes, kept as long as questions with them arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from keju.models.hf.encode import Item, common_length
from keju.models.hf.replica import KeysValues, Replica

MOST_KEPT = 4
WORTH = 0.8
"""A kept prefix that covers a smaller share of what the questions have in common is replaced."""


class Shared(NamedTuple):
    """A prefix that some questions go on from."""

    cache: KeysValues
    length: int
    """How many of its tokens the questions share."""
    fresh: bool
    """Whether it was computed just now, so that somebody has to pay for it."""


class _Kept(NamedTuple):
    tokens: Sequence[int]
    cache: KeysValues


class PrefixStore:
    """Computes a prefix once and keeps the last few."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._kept: list[_Kept] = []

    def share(self, items: Sequence[Item]) -> Shared:
        """What questions of one prefix have in common, computed or found."""
        length = min(item.shared for item in items)
        wanted = items[0].tokens[:length]
        best, common = None, 0
        for kept in self._kept:
            reach = common_length(kept.tokens, wanted)
            if reach > common:
                best, common = kept, reach
        if best is not None and common >= WORTH * length:
            self._kept.remove(best)
            self._kept.append(best)
            return Shared(best.cache, common, fresh=False)
        del self._kept[: len(self._kept) + 1 - MOST_KEPT]
        made = _Kept(wanted, self._replica.prefix(wanted))
        self._kept.append(made)
        return Shared(made.cache, length, fresh=True)

    def clear(self) -> None:
        """Forget everything, to free memory."""
        self._kept.clear()


def by_prefix(items: Sequence[Item]) -> list[list[Item]]:
    """Items with the same prefix, written in the same way, together in order of arrival."""
    groups: dict[tuple[int, int], list[Item]] = {}
    for item in items:
        groups.setdefault((id(item.prefix), id(item.request.sampling)), []).append(item)
    return list(groups.values())


def batched(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """`items` in pieces of at most `size`."""
    return [items[start : start + size] for start in range(0, len(items), size)]
