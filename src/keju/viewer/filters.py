"""What an address asks for: which replies, in which order, which page of them."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, get_args, get_origin
from urllib.parse import urlencode

import msgspec

from keju.errors import UsageError, did_you_mean, quoted
from keju.types import ALL_OUTCOMES, Outcome
from keju.viewer.index import Details, Index, Kind

PAGE: Final = 50
"""Replies on a page."""
PIECE: Final = 1 << 17
"""Replies that are sorted at once."""
_LARGEST: Final = (1 << 32) - 1
_OF_ALL_PAGES: Final = ("lang", "token")
"""What every address may have."""
FAILED: Final = "failed"
"""Stands for every outcome but ``correct``."""

Sort = Literal["exam", "slowest", "longest", "tokens"]
SORTS: tuple[Sort, ...] = get_args(Sort)
Choice = Literal["strict", "tolerant", "fallback", "labels", "none"]
TIER_CHOICES: tuple[Choice, ...] = get_args(Choice)
"""Tiers as addresses have them: ``none`` where nothing was read."""


class Selection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Filters, order and page, as they stand in an address."""

    exam: str = ""
    """An exam, or an exam and its arm: ``bbh/calculator``."""
    outcome: Outcome | Literal["failed", ""] = ""
    subset: str = ""
    tier: Choice | Literal[""] = ""
    readers: Literal["differ", ""] = ""
    tools: Literal["yes", "no", ""] = ""
    least: int | None = None
    """Characters of the reply."""
    most: int | None = None
    text: str = ""
    """Words to be found in the reply."""
    where: str = ""
    """A condition in SQL."""
    sort: Sort = "exam"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Selection:
        """The selection of an address; UsageError if a value is none of those that it may have."""
        given = {name: query[name] for name in cls.__struct_fields__ if query.get(name)}
        for name, value in given.items():
            try:
                msgspec.convert({name: value}, cls, strict=False)
            except msgspec.ValidationError:
                raise _refusal(name, value) from None
        chosen = msgspec.convert(given, cls, strict=False)
        return chosen if chosen.page > 0 else msgspec.structs.replace(chosen, page=1)

    @classmethod
    def unknown(cls, query: Mapping[str, str]) -> list[str]:
        """What an address has that is no filter, and so takes nothing away."""
        return [name for name in query if name not in (*cls.__struct_fields__, *_OF_ALL_PAGES)]

    def query(self, **changes: Any) -> str:
        """This selection as part of an address, with some of its fields changed."""
        changed = msgspec.structs.replace(self, **{"page": 1, **changes})
        return urlencode(msgspec.to_builtins(changed))

    @property
    def is_filtered(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.query(sort="exam"))

    @property
    def needs_details(self) -> bool:
        """Whether the index alone cannot answer it."""
        beyond = (self.subset, self.tools, self.least, self.most, self.where)
        return any(each not in ("", None) for each in beyond) or self.sort != "exam"


def _refusal(name: str, value: str) -> UsageError:
    """A filter has a value that it cannot have; what it may have is said."""
    (kind,) = (field.type for field in msgspec.structs.fields(Selection) if field.name == name)
    if choices := _choices(kind):
        return UsageError("view_address_choice", name=name, value=value, choices=quoted(choices))
    return UsageError("view_address_number", name=name, value=value)


def _choices(kind: Any) -> list[str]:
    """The values that a type lists, but for the one that stands for none of them."""
    if get_origin(kind) is Literal:
        return [value for value in get_args(kind) if value]
    return [value for part in get_args(kind) for value in _choices(part)]


def _not_there(name: str, value: str, known: Sequence[str]) -> UsageError:
    """A filter names something that the run does not have; what it has is said."""
    return UsageError("view_address", name=name, value=value, hint=did_you_mean(value, known))


def accepted_kinds(selection: Selection, kinds: Sequence[Kind]) -> list[bool]:
    """Which kinds of replies a selection takes, its outcome aside."""
    tier = "" if selection.tier == "none" else selection.tier
    return [
        (not selection.tier or kind.tier == tier) and (kind.differ or not selection.readers)
        for kind in kinds
    ]


class Found(msgspec.Struct, frozen=True):
    """The replies that a selection takes."""

    numbers: Sequence[int]
    outcomes: Mapping[Outcome, int]
    """How many it would take of each outcome."""

    @property
    def pages(self) -> int:
        """Pages that they fill."""
        return max(1, -(-len(self.numbers) // PAGE))


def find(
    selection: Selection,
    index: Index,
    details: Callable[[], Details],
    subsets: Callable[[], Sequence[str]],
    holding: Callable[[str], bytearray],
    matching: Callable[[str], bytearray],
) -> Found:
    """The replies that a selection takes.

    `details`, `subsets`, `holding`, for each number whether the reply holds a text, and `matching`,
    whether a condition accepts it, are asked only where they are needed.
    """
    parts = {part.name: number for number, part in enumerate(index.parts)}
    if selection.exam and selection.exam not in parts:
        raise _not_there("exam", selection.exam, list(parts))
    kinds = index.kinds
    takes = accepted_kinds(selection, kinds)
    size = len(index)
    numbers: Sequence[int] = range(size)
    if not all(takes):
        numbers = array("I", (n for n in numbers if takes[index.kind[n]]))
    if selection.exam:
        part = parts[selection.exam]
        numbers = array("I", (n for n in numbers if index.part[n] == part))
    if selection.needs_details or selection.text:
        more = details()
        numbers = _by_details(selection, more, numbers, subsets)
    for words, look in ((selection.text, holding), (selection.where, matching)):
        if words:
            accepted = look(words)
            numbers = array("I", (n for n in numbers if n < len(accepted) and accepted[n]))
    counted = Counter(index.kind[n] for n in numbers)
    outcomes: Counter[Outcome] = Counter()
    for number, count in counted.items():
        outcomes[kinds[number].outcome] += count
    if selection.outcome:
        wanted = selection.outcome
        rights = [
            kind.outcome != "correct" if wanted == FAILED else kind.outcome == wanted
            for kind in kinds
        ]
        numbers = array("I", (n for n in numbers if rights[index.kind[n]]))
    ordered = {o: outcomes[o] for o in ALL_OUTCOMES if outcomes[o]}
    return Found(numbers, ordered)


def _by_details(
    selection: Selection,
    details: Details,
    numbers: Sequence[int],
    subsets: Callable[[], Sequence[str]],
) -> Sequence[int]:
    if selection.subset:
        names = subsets()
        if selection.subset not in names:
            raise _not_there("subset", selection.subset, names)
        subset = names.index(selection.subset) + 1
        numbers = array("I", (n for n in numbers if details.subset[n] == subset))
    if selection.tools:
        acted = selection.tools == "yes"
        numbers = array("I", (n for n in numbers if bool(details.acted[n]) == acted))
    if selection.least is not None:
        numbers = array("I", (n for n in numbers if details.length[n] >= selection.least))
    if selection.most is not None:
        numbers = array("I", (n for n in numbers if details.length[n] <= selection.most))
    return numbers


def in_order(
    selection: Selection, index: Index, numbers: Sequence[int], details: Details | None
) -> Sequence[int]:
    """Numbers in the order of the selection; in that of the exam where its data is there."""
    if details is None:
        return numbers
    if selection.sort == "exam":
        position, part = details.position, index.part
        names = sorted({part[n] for n in numbers})
        if len(names) == 1:
            return _sorted(numbers, position.__getitem__)
        ordered = array("I")
        for name in names:
            own = array("I", (n for n in numbers if part[n] == name))
            ordered.extend(_sorted(own, position.__getitem__))
        return ordered
    # The bits of floats of no sign ascend with them.
    columns: dict[Sort, array[int]] = {
        "slowest": array("I", details.seconds.tobytes()),
        "longest": details.length,
        "tokens": details.tokens,
    }
    column = columns[selection.sort]
    return _sorted(numbers, lambda n: _LARGEST - column[n])


def _sorted(numbers: Sequence[int], key: Callable[[int], int]) -> array[int]:
    """Numbers by a key of 32 bits, those of one key in their order.

    They are sorted piece by piece, each as whole numbers of key and number, and merged: a million
    of them would take a hundred megabytes as a list.
    """
    pieces = []
    for start in range(0, len(numbers), PIECE):
        part = numbers[start : start + PIECE]
        pieces.append(array("Q", sorted([key(n) << 32 | n for n in part])))
    merged = pieces[0] if len(pieces) == 1 else heapq.merge(*pieces)
    return array("I", (each & _LARGEST for each in merged))
