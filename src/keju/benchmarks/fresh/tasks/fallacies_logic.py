"""Statements about everyone, someone or somebody by name, and what follows from them.

All predicates have one place. An individual is of one of 2^n kinds, by which of the n predicates
are true of it; a set of kinds is a number with 2^n bits. Statements on everyone leave a set of
allowed kinds, and an argument is valid when no choice of individuals of allowed kinds makes its
premises true and its conclusion false. That is exact: one individual of a kind is as good as many.

`Every A is B` says nothing about whether there is an A, and there is at least one individual.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple


class Not(NamedTuple):
    """What is not so."""

    part: Predicate


class And(NamedTuple):
    """What is all of this."""

    parts: tuple[Predicate, ...]


class Or(NamedTuple):
    """What is at least one of this."""

    parts: tuple[Predicate, ...]


Predicate = str | Not | And | Or
"""A text is a predicate without parts: ``cousin of Ada``."""
Quantifier = Literal["all", "some", "one"]


class Statement(NamedTuple):
    """Something is true of everyone, of someone, or of the one who has a name."""

    quantifier: Quantifier
    predicate: Predicate
    name: str = ""


class Argument(NamedTuple):
    """Premises and what is said to follow from them."""

    premises: tuple[Statement, ...]
    conclusion: Statement


def implies(first: Predicate, second: Predicate) -> Statement:
    """Everyone who is the first is the second."""
    return Statement("all", Or((Not(first), second)))


def atoms_of(predicate: Predicate) -> Iterator[str]:
    """The predicates without parts in one."""
    if isinstance(predicate, str):
        yield predicate
    elif isinstance(predicate, Not):
        yield from atoms_of(predicate.part)
    else:
        for part in predicate.parts:
            yield from atoms_of(part)


@cache
def _column(number: int, atoms: int) -> int:
    """The kinds of which predicate `number` is true: bit k stands where bit `number` of k does."""
    block = ((1 << (1 << number)) - 1) << (1 << number)
    width, mask = 2 << number, block
    while width < 1 << atoms:
        mask |= mask << width
        width *= 2
    return mask


class Kinds:
    """Sets of kinds over some predicates."""

    def __init__(self, atoms: Sequence[str]) -> None:
        self.everything = (1 << (1 << len(atoms))) - 1
        self._columns = {atom: _column(n, len(atoms)) for n, atom in enumerate(atoms)}

    def of(self, predicate: Predicate) -> int:
        """The kinds of which a predicate is true."""
        if isinstance(predicate, str):
            return self._columns[predicate]
        if isinstance(predicate, Not):
            return self.everything & ~self.of(predicate.part)
        sets = [self.of(part) for part in predicate.parts]
        kinds = sets[0]
        for other in sets[1:]:
            kinds = kinds & other if isinstance(predicate, And) else kinds | other
        return kinds


class World(NamedTuple):
    """What premises leave: kinds that may be, of which some must be, and those of named ones."""

    allowed: int
    needed: tuple[int, ...]
    named: dict[str, int]

    def possible(self, without: int = 0) -> bool:
        """Whether individuals can be chosen, none of them of the kinds that are left out."""
        left = self.allowed & ~without
        return bool(left) and all(left & kinds for kinds in (*self.needed, *self.named.values()))


def world_of(premises: Sequence[Statement], kinds: Kinds) -> World:
    """The worlds in which premises are true."""
    allowed, needed = kinds.everything, []
    named: dict[str, int] = {}
    for statement in premises:
        true = kinds.of(statement.predicate)
        if statement.quantifier == "all":
            allowed &= true
        elif statement.quantifier == "some":
            needed.append(true)
        else:
            named[statement.name] = named.get(statement.name, kinds.everything) & true
    return World(allowed, tuple(needed), named)


def follows(world: World, conclusion: Statement, kinds: Kinds) -> bool:
    """Whether a statement is true in all worlds that premises leave."""
    false = kinds.everything & ~kinds.of(conclusion.predicate)
    if not world.possible():
        return True
    if conclusion.quantifier == "all":
        return not world.allowed & false
    if conclusion.quantifier == "some":
        return not world.possible(without=kinds.everything & ~false)
    own = world.named.get(conclusion.name, kinds.everything)
    return not world.allowed & own & false


def is_valid(argument: Argument) -> bool:
    """Whether the conclusion follows from the premises."""
    statements = (*argument.premises, argument.conclusion)
    atoms = dict.fromkeys(a for statement in statements for a in atoms_of(statement.predicate))
    kinds = Kinds(list(atoms))
    return follows(world_of(argument.premises, kinds), argument.conclusion, kinds)
