"""Filters, order and page of a list of replies, as given in an address."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, Literal, get_args, get_origin
from urllib.parse import urlencode

import msgspec

from keju.errors import UsageError, did_you_mean, quoted
from keju.types import ALL_OUTCOMES, Outcome
from keju.viewer.index import ReplyDetails, ReplyIndex, ReplyKind

PAGE: Final = 50
"""The number of replies on a page."""
PIECE: Final = 1 << 17
"""The number of replies that are sorted at once."""
_LARGEST: Final = (1 << 32) - 1
_COMMON_PARAMETERS: Final = ("lang", "token")
"""Query parameters that every address may have."""
FAILED: Final = "failed"
"""Stands for every outcome except ``correct``."""

Sort = Literal["exam", "slowest", "longest", "tokens"]
SORTS: tuple[Sort, ...] = get_args(Sort)
Choice = Literal["strict", "tolerant", "fallback", "labels", "none"]
TIER_CHOICES: tuple[Choice, ...] = get_args(Choice)
"""Tiers in addresses; ``none`` means that no answer was read."""


class ReplySelection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Filters, order and page, as given in an address."""

    exam: str = ""
    """An exam, or an exam and its arm: ``demo/calculator``."""
    outcome: Outcome | Literal["failed", ""] = ""
    subset: str = ""
    tier: Choice | Literal[""] = ""
    readers: Literal["differ", ""] = ""
    tools: Literal["yes", "no", ""] = ""
    least: int | None = None
    """The minimum number of characters of the reply; `most` is the maximum."""
    most: int | None = None
    text: str = ""
    """Words to search for in the reply."""
    where: str = ""
    """A condition in SQL."""
    sort: Sort = "exam"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> ReplySelection:
        """Return the selection of an address; raise UsageError if a value is not allowed."""
        parameters = {name: query[name] for name in cls.__struct_fields__ if query.get(name)}
        for name, value in parameters.items():
            try:
                msgspec.convert({name: value}, cls, strict=False)
            except msgspec.ValidationError:
                raise _explain_refusal(name, value) from None
        selection = msgspec.convert(parameters, cls, strict=False)
        return selection if selection.page > 0 else msgspec.structs.replace(selection, page=1)

    @classmethod
    def unknown_parameters(cls, query: Mapping[str, str]) -> list[str]:
        """Return the query parameters that are not filters and have no effect."""
        return [name for name in query if name not in (*cls.__struct_fields__, *_COMMON_PARAMETERS)]

    def query(self, **changes: Any) -> str:
        """Return this selection as part of an address, with some of its fields changed."""
        changed = msgspec.structs.replace(self, **{"page": 1, **changes})
        return urlencode(msgspec.to_builtins(changed))

    @property
    def is_filtered(self) -> bool:
        """Whether the selection excludes any reply."""
        return bool(self.query(sort="exam"))

    @property
    def needs_details(self) -> bool:
        """Whether the selection needs more than the index."""
        detail_filters = (self.subset, self.tools, self.least, self.most, self.where)
        return any(value not in ("", None) for value in detail_filters) or self.sort != "exam"


def _explain_refusal(name: str, value: str) -> UsageError:
    """Return the error for a value that a filter does not allow; it lists the allowed values."""
    (kind,) = (field.type for field in msgspec.structs.fields(ReplySelection) if field.name == name)
    if choices := _choices(kind):
        return UsageError("view_address_choice", name=name, value=value, choices=quoted(choices))
    return UsageError("view_address_number", name=name, value=value)


def _choices(kind: Any) -> list[str]:
    """Return the values that a type allows, without the empty one."""
    if get_origin(kind) is Literal:
        return [value for value in get_args(kind) if value]
    return [value for part in get_args(kind) for value in _choices(part)]


def _unknown_name(name: str, value: str, existing_names: Sequence[str]) -> UsageError:
    """Return the error for a name that the run does not have; it suggests a similar name."""
    return UsageError(
        "view_address", name=name, value=value, hint=did_you_mean(value, existing_names)
    )


def accepted_kinds(selection: ReplySelection, kinds: Sequence[ReplyKind]) -> list[bool]:
    """Return, for each kind of reply, whether the selection accepts it, ignoring its outcome."""
    tier = "" if selection.tier == "none" else selection.tier
    return [
        (not selection.tier or kind.tier == tier) and (kind.differ or not selection.readers)
        for kind in kinds
    ]


class MatchingReplies(msgspec.Struct, frozen=True):
    """The replies that a selection accepts."""

    numbers: Sequence[int]
    outcomes: Mapping[Outcome, int]
    """The number of replies by outcome, before the filter by outcome."""

    @property
    def pages(self) -> int:
        """The number of pages."""
        return max(1, -(-len(self.numbers) // PAGE))


def find(
    selection: ReplySelection,
    index: ReplyIndex,
    details: Callable[[], ReplyDetails],
    subsets: Callable[[], Sequence[str]],
    find_text: Callable[[str], bytearray],
    evaluate_condition: Callable[[str], bytearray],
) -> MatchingReplies:
    """Return the replies that a selection accepts.

    `find_text` returns, for each number, whether the reply contains a text, and
    `evaluate_condition` whether a condition accepts it. The callables are called only if they are
    needed.
    """
    numbers = _by_index(selection, index)
    if selection.needs_details or selection.text:
        numbers = _by_details(selection, details(), numbers, subsets)
    for words, search_replies in (
        (selection.text, find_text),
        (selection.where, evaluate_condition),
    ):
        if words:
            accepted = search_replies(words)
            numbers = array("I", (n for n in numbers if n < len(accepted) and accepted[n]))
    outcomes = _count_outcomes(index, numbers)
    return MatchingReplies(_by_outcome(selection, index, numbers), outcomes)


def _by_index(selection: ReplySelection, index: ReplyIndex) -> Sequence[int]:
    """Return the replies of the selected exam and of the selected kinds; all outcomes."""
    parts = {part.name: number for number, part in enumerate(index.parts)}
    if selection.exam and selection.exam not in parts:
        raise _unknown_name("exam", selection.exam, list(parts))
    accepts_kind = accepted_kinds(selection, index.kinds)
    numbers: Sequence[int] = range(len(index))
    if not all(accepts_kind):
        numbers = array("I", (n for n in numbers if accepts_kind[index.kind[n]]))
    if selection.exam:
        part = parts[selection.exam]
        numbers = array("I", (n for n in numbers if index.part[n] == part))
    return numbers


def _count_outcomes(index: ReplyIndex, numbers: Sequence[int]) -> dict[Outcome, int]:
    """Return the number of replies by outcome, in the usual order."""
    kinds = index.kinds
    outcomes: Counter[Outcome] = Counter()
    for number, count in Counter(index.kind[n] for n in numbers).items():
        outcomes[kinds[number].outcome] += count
    return {o: outcomes[o] for o in ALL_OUTCOMES if outcomes[o]}


def _by_outcome(
    selection: ReplySelection, index: ReplyIndex, numbers: Sequence[int]
) -> Sequence[int]:
    """Return the replies with the selected outcome."""
    if not selection.outcome:
        return numbers
    accepts_outcome = [
        kind.outcome != "correct"
        if selection.outcome == FAILED
        else kind.outcome == selection.outcome
        for kind in index.kinds
    ]
    return array("I", (n for n in numbers if accepts_outcome[index.kind[n]]))


def _by_details(
    selection: ReplySelection,
    details: ReplyDetails,
    numbers: Sequence[int],
    subsets: Callable[[], Sequence[str]],
) -> Sequence[int]:
    if selection.subset:
        names = subsets()
        if selection.subset not in names:
            raise _unknown_name("subset", selection.subset, names)
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


def sort_replies(
    selection: ReplySelection,
    index: ReplyIndex,
    numbers: Sequence[int],
    details: ReplyDetails | None,
) -> Sequence[int]:
    """Sort numbers as the selection requires; the order of the exam needs the exam's data."""
    if details is None:
        return numbers
    if selection.sort == "exam":
        position, part = details.position, index.part
        by_part = _sorted(numbers, part.__getitem__)
        ordered = array("I")
        for _, group in groupby(by_part, part.__getitem__):
            ordered.extend(_sorted(array("I", group), position.__getitem__))
        return ordered
    # The bits of non-negative floats are in the same order as the floats.
    columns: dict[Sort, array[int]] = {
        "slowest": array("I", details.seconds.tobytes()),
        "longest": details.length,
        "tokens": details.tokens,
    }
    column = columns[selection.sort]
    return _sorted(numbers, lambda n: _LARGEST - column[n])


def _sorted(numbers: Sequence[int], key: Callable[[int], int]) -> array[int]:
    """Sort numbers by a 32-bit key; equal keys keep their order.

    The numbers are sorted in pieces, each as integers made of key and number, and merged, because a
    list of a million of them would take a hundred megabytes.
    """
    pieces = []
    for start in range(0, len(numbers), PIECE):
        part = numbers[start : start + PIECE]
        pieces.append(array("Q", sorted([key(n) << 32 | n for n in part])))
    merged = pieces[0] if len(pieces) == 1 else heapq.merge(*pieces)
    return array("I", (combined & _LARGEST for combined in merged))
