"""Is an argument valid? Everyone, someone or somebody by name is this or that, hence …

A valid argument is made from its conclusion: ``every A is B`` becomes ``every A is C`` and ``every
C is B``, or another step that holds, until there are as many premises as are wanted. An invalid one
is a valid one with a fault: a statement turned round, a ``not`` too many, ``and`` for ``or``.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from keju.benchmarks.fresh.task import Language, Question, Task, scaled
from keju.benchmarks.fresh.tasks.fallacies_logic import (
    And,
    Kinds,
    Not,
    Or,
    Predicate,
    Quantifier,
    Statement,
    follows,
    implies,
    is_valid,
    world_of,
)
from keju.benchmarks.fresh.tasks.fallacies_solver import read_argument
from keju.benchmarks.fresh.tasks.fallacies_topics import TOPICS
from keju.benchmarks.fresh.tasks.fallacies_wording import (
    CONCLUSIONS,
    MARKERS,
    PLAIN_OPENING,
    Claim,
    Group,
    Literal,
    Wording,
    joined,
    marked,
)

PUBLISHED_PREMISES = {1: 34, 2: 150, 3: 64, 4: 2}
"""Arguments with so many premises."""
PUBLISHED_QUANTIFIERS: dict[Quantifier, int] = {"all": 128, "one": 58, "some": 30}
"""Conclusions of arguments with more than one premise: on all, on one by name, on some."""
MOST_PREMISES = 16
"""Beyond, arguments are no longer: what follows is decided on 2^n kinds of individuals."""
PAIRS, POSITIVE, CONTRAPOSED = 0.26, 0.78, 0.2
"""How often a side of a claim is two kinds, a kind is not denied, a claim is turned about."""
PLAIN_OPENINGS = 0.4
ASKED = "Is the argument, given the explicitly stated premises, deductively valid or invalid?"
OPTIONS = "Options:\n- valid \n- invalid"
QUESTION = re.compile(
    rf'"(?P<argument>.+)"\n{re.escape(ASKED)}\nOptions:\n- valid ?\n- invalid ?', re.DOTALL
)


class Fallacy(NamedTuple):
    """An argument on kinds that are numbers, and how it is put."""

    topic: int
    opening: int
    """Of the topic's; -1 for the plain one."""
    kinds: list[tuple[int, int]]
    """Relation and name of each kind, as places in the topic's vocabulary."""
    individual: int
    premises: list[Claim]
    conclusion: Claim
    markers: int
    end: int
    valid: bool


class FormalFallacies(Task):
    """A problem is a `Fallacy`."""

    subset = "formal_fallacies"

    def invent(self, draw: random.Random, difficulty: float) -> Fallacy:
        (published,) = draw.choices(list(PUBLISHED_PREMISES), list(PUBLISHED_PREMISES.values()))
        size = min(scaled(published, difficulty, least=1), MOST_PREMISES)
        valid = draw.random() < 0.5
        while True:
            *premises, conclusion = _valid_argument(draw, size)
            if not valid:
                *premises, conclusion = _with_a_fault(draw, [*premises, conclusion])
            draw.shuffle(premises)
            if not _repeats(premises, conclusion) and _follows(premises, conclusion) == valid:
                break
        number = draw.randrange(len(TOPICS))
        topic = TOPICS[number]
        atoms = 1 + max(atom for claim in (*premises, conclusion) for atom in _atoms(claim))
        kinds = [
            (draw.randrange(len(topic.relations)), name)
            for name in draw.sample(range(len(topic.names)), atoms)
        ]
        return Fallacy(
            topic=number,
            opening=-1 if draw.random() < PLAIN_OPENINGS else draw.randrange(len(topic.openings)),
            kinds=kinds,
            individual=draw.randrange(len(topic.individuals)),
            premises=premises,
            conclusion=conclusion,
            markers=draw.randrange(len(MARKERS)),
            end=draw.randrange(len(CONCLUSIONS)),
            valid=valid,
        )

    def write(self, problem: Fallacy, language: Language) -> Question:
        topic = TOPICS[problem.topic]
        kinds = [f"{topic.relations[kind]} {topic.names[name]}" for kind, name in problem.kinds]
        wording = Wording(kinds, topic.individuals[problem.individual], persons=topic.persons)
        sentences = [PLAIN_OPENING if problem.opening < 0 else topic.openings[problem.opening]]
        for number, premise in enumerate(problem.premises):
            sentences.append(marked(MARKERS[problem.markers], number, wording.claim(premise)))
        told = wording.claim(problem.conclusion)
        sentences.append(f"{joined(CONCLUSIONS[problem.end], told)}.")
        text = f'"{" ".join(sentences)}"\n{ASKED}\n{OPTIONS}'
        return Question(text, "valid" if problem.valid else "invalid")

    def solve(self, text: str) -> str | None:
        found = QUESTION.fullmatch(text)
        argument = read_argument(found["argument"]) if found else None
        if argument is None:
            return None
        return "valid" if is_valid(argument) else "invalid"


# --- drawing -----------------------------------------------------------------------------------


class Drawn:
    """Gives kinds that were not there before."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._atoms = 0

    def literal(self) -> Literal:
        self._atoms += 1
        return Literal(self._atoms - 1, self._draw.random() < POSITIVE)

    def group(self, pairs: float = PAIRS) -> Group:
        size = 2 if self._draw.random() < pairs else 1
        return Group(tuple(self.literal() for _ in range(size)), self._draw.random() < 0.5)


def _valid_argument(draw: random.Random, size: int) -> list[Claim]:
    """Claims of which the last follows from the others."""
    drawn = Drawn(draw)
    quantifier: Quantifier = "all"
    if size > 1:
        names = list(PUBLISHED_QUANTIFIERS)
        (quantifier,) = draw.choices(names, list(PUBLISHED_QUANTIFIERS.values()))
    first, second = drawn.group(), drawn.group()
    steps = _steps(draw, drawn, first, second, size - (quantifier != "all"))
    claims = [_contraposed(draw, one, two) for one, two in steps]
    if quantifier == "all":
        return [*claims, _contraposed(draw, first, second)]
    if draw.random() < 0.5:  # from what is not the second to what is not the first
        first, second = second.negated, first.negated
    subject = Group((Literal(drawn.literal().atom, True),)) if quantifier == "some" else first
    return [
        Claim(quantifier, subject, first, draw.randrange(60)),
        *claims,
        Claim(quantifier, subject, second, draw.randrange(60)),
    ]


def _steps(
    draw: random.Random, drawn: Drawn, first: Group, second: Group, size: int
) -> list[tuple[Group, Group]]:
    """So many steps that lead from the first to the second."""
    steps = [(first, second)]
    while len(steps) < size:
        one, two = steps.pop(draw.randrange(len(steps)))
        middle = drawn.literal()
        over = Group((middle,))
        rule = draw.randrange(6 if len(steps) + 3 <= size else 4)
        if rule == 0 and len(two.literals) == 1:  # not the other one of two
            steps += [(one, Group((*two.literals, middle), False)), (one, over.negated)]
        elif rule == 1 and len(one.literals) == 1:  # both of two
            steps += [(one, over), (Group((*one.literals, middle)), two)]
        elif rule == 4:  # either way
            other = drawn.literal()
            steps += [(one, Group((middle, other), False)), (over, two), (Group((other,)), two)]
        elif rule == 5:  # both together
            other = drawn.literal()
            steps += [(one, over), (one, Group((other,))), (Group((middle, other)), two)]
        else:
            steps += [(one, over), (over, two)]
    return steps


def _contraposed(draw: random.Random, first: Group, second: Group) -> Claim:
    """A claim on all as it is, or the other way about: who is not the second is not the first."""
    if draw.random() < CONTRAPOSED:
        first, second = second.negated, first.negated
    return Claim("all", first, second, draw.randrange(60))


def _with_a_fault(draw: random.Random, claims: list[Claim]) -> list[Claim]:
    """The same claims, one of which is changed."""
    claims = claims.copy()
    place = draw.randrange(len(claims))
    claim = claims[place]
    if claim.quantifier == "all" and draw.random() < 1 / 3:
        claims[place] = claim._replace(first=claim.second, second=claim.first)
    elif claim.quantifier == "all" and draw.random() < 0.5:
        claims[place] = claim._replace(first=_changed(draw, claim.first))
    else:
        claims[place] = claim._replace(second=_changed(draw, claim.second))
    return claims


def _changed(draw: random.Random, group: Group) -> Group:
    """Another group: ``and`` for ``or``, or one ``not`` more or less."""
    if len(group.literals) > 1 and draw.random() < 0.5:
        return group._replace(every=not group.every)
    literals = list(group.literals)
    place = draw.randrange(len(literals))
    literals[place] = Literal(literals[place].atom, not literals[place].positive)
    return group._replace(literals=tuple(literals))


def _repeats(premises: list[Claim], conclusion: Claim) -> bool:
    """Whether the conclusion is a premise word for word."""
    said = [(c.quantifier, c.first, c.second) for c in (*premises, conclusion)]
    return said[-1] in said[:-1]


def _atoms(claim: Claim) -> list[int]:
    groups = (claim.second,) if claim.quantifier == "one" else (claim.first, claim.second)
    return [literal.atom for group in groups for literal in group.literals]


def _follows(premises: list[Claim], conclusion: Claim) -> bool | None:
    """Whether the conclusion follows; None where the premises contradict each other."""
    atoms = {atom for claim in (*premises, conclusion) for atom in _atoms(claim)}
    kinds = Kinds([str(atom) for atom in sorted(atoms)])
    world = world_of([_statement(premise) for premise in premises], kinds)
    return follows(world, _statement(conclusion), kinds) if world.possible() else None


def _statement(claim: Claim) -> Statement:
    second = _predicate(claim.second)
    if claim.quantifier == "one":
        return Statement("one", second, "somebody")
    first = _predicate(claim.first)
    return (
        implies(first, second)
        if claim.quantifier == "all"
        else Statement("some", And((first, second)))
    )


def _predicate(group: Group) -> Predicate:
    parts = tuple(str(atom) if positive else Not(str(atom)) for atom, positive in group.literals)
    return And(parts) if group.every else Or(parts)
