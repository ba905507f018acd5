"""Statements about all, some or named individuals, and valid conclusions from them.

All predicates have one place. With n predicates there are 2^n kinds of individuals; a set of kinds
is a number with 2^n bits. Universal premises restrict the allowed kinds. An argument is valid if no
choice of individuals of allowed kinds makes its premises true and its conclusion false. This check
is exact, because one individual of a kind is as good as many.

`Every A is B` does not imply that there is an A. There is at least one individual.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple


class Not(NamedTuple):
    """The negation of a predicate."""

    part: Predicate


class And(NamedTuple):
    """The conjunction of predicates."""

    parts: tuple[Predicate, ...]


class Or(NamedTuple):
    """The disjunction of predicates."""

    parts: tuple[Predicate, ...]


Predicate = str | Not | And | Or
"""A text is a predicate without parts: ``cousin of Ada``."""
Quantifier = Literal["all", "some", "one"]


class LogicStatement(NamedTuple):
    """A predicate is true of everyone, of someone, or of the individual with a name."""

    quantifier: Quantifier
    predicate: Predicate
    name: str = ""


class Argument(NamedTuple):
    """Premises and the conclusion drawn from them."""

    premises: tuple[LogicStatement, ...]
    conclusion: LogicStatement


def implies(condition: Predicate, consequence: Predicate) -> LogicStatement:
    """Return the statement that everyone with the condition has the consequence."""
    return LogicStatement("all", Or((Not(condition), consequence)))


def list_atoms(predicate: Predicate) -> Iterator[str]:
    """Yield the predicates without parts inside a predicate."""
    if isinstance(predicate, str):
        yield predicate
    elif isinstance(predicate, Not):
        yield from list_atoms(predicate.part)
    else:
        for part in predicate.parts:
            yield from list_atoms(part)


@cache
def _column(number: int, atoms: int) -> int:
    """Return the kinds of which predicate `number` is true: bit k is set if bit `number` of k is
    set."""
    block = ((1 << (1 << number)) - 1) << (1 << number)
    width, mask = 2 << number, block
    while width < 1 << atoms:
        mask |= mask << width
        width *= 2
    return mask


class KindSets:
    """Sets of kinds over some predicates."""

    def __init__(self, atoms: Sequence[str]) -> None:
        self.everything = (1 << (1 << len(atoms))) - 1
        self._columns = {atom: _column(n, len(atoms)) for n, atom in enumerate(atoms)}

    def kinds_of(self, predicate: Predicate) -> int:
        """Return the kinds of which a predicate is true."""
        if isinstance(predicate, str):
            return self._columns[predicate]
        if isinstance(predicate, Not):
            return self.everything & ~self.kinds_of(predicate.part)
        sets = [self.kinds_of(part) for part in predicate.parts]
        kinds = sets[0]
        for part_kinds in sets[1:]:
            kinds = kinds & part_kinds if isinstance(predicate, And) else kinds | part_kinds
        return kinds


class World(NamedTuple):
    """The possibilities that premises leave: kinds that may exist, must exist, or have a name."""

    allowed: int
    needed: tuple[int, ...]
    named_kinds: dict[str, int]

    def is_possible(self, without: int = 0) -> bool:
        """Whether individuals can be chosen without using the excluded kinds."""
        remaining = self.allowed & ~without
        return bool(remaining) and all(
            remaining & kinds for kinds in (*self.needed, *self.named_kinds.values())
        )


def make_world(premises: Sequence[LogicStatement], kinds: KindSets) -> World:
    """Return the possibilities in which the premises are true."""
    allowed, needed = kinds.everything, []
    named_kinds: dict[str, int] = {}
    for statement in premises:
        true_kinds = kinds.kinds_of(statement.predicate)
        if statement.quantifier == "all":
            allowed &= true_kinds
        elif statement.quantifier == "some":
            needed.append(true_kinds)
        else:
            named_kinds[statement.name] = (
                named_kinds.get(statement.name, kinds.everything) & true_kinds
            )
    return World(allowed, tuple(needed), named_kinds)


def follows(world: World, conclusion: LogicStatement, kinds: KindSets) -> bool:
    """Whether a statement is true in all possibilities that the premises leave."""
    false_kinds = kinds.everything & ~kinds.kinds_of(conclusion.predicate)
    if not world.is_possible():
        return True
    if conclusion.quantifier == "all":
        return not world.allowed & false_kinds
    if conclusion.quantifier == "some":
        return not world.is_possible(without=kinds.everything & ~false_kinds)
    individual_kinds = world.named_kinds.get(conclusion.name, kinds.everything)
    return not world.allowed & individual_kinds & false_kinds


def is_valid(argument: Argument) -> bool:
    """Whether the conclusion follows from the premises."""
    statements = (*argument.premises, argument.conclusion)
    atoms = dict.fromkeys(a for statement in statements for a in list_atoms(statement.predicate))
    kinds = KindSets(list(atoms))
    return follows(make_world(argument.premises, kinds), argument.conclusion, kinds)
