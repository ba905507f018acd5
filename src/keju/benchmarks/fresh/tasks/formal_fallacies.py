"""Whether an argument about all, some or named individuals is valid.

A valid argument is made from its conclusion. ``every A is B`` becomes ``every A is C`` and ``every
C is B``, or another valid step, until there are enough premises. An invalid argument is a valid one
with a fault: a converse, an additional ``not``, ``and`` instead of ``or``.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from keju.benchmarks.fresh.task import FreshQuestion, FreshTask, Language, scale_size
from keju.benchmarks.fresh.tasks.fallacies_logic import (
    And,
    KindSets,
    LogicStatement,
    Not,
    Or,
    Predicate,
    Quantifier,
    follows,
    implies,
    is_valid,
    make_world,
)
from keju.benchmarks.fresh.tasks.fallacies_solver import read_argument
from keju.benchmarks.fresh.tasks.fallacies_wording import (
    CONCLUSIONS,
    MARKERS,
    PLAIN_OPENING,
    TOPICS,
    ArgumentWording,
    Claim,
    KindLiteral,
    LiteralGroup,
    join_marker,
    write_premise,
)

PUBLISHED_PREMISES = {1: 34, 2: 150, 3: 64, 4: 2}
"""Published arguments by their number of premises."""
PUBLISHED_QUANTIFIERS: dict[Quantifier, int] = {"all": 128, "one": 58, "some": 30}
"""Conclusions of published arguments with several premises: about all, one by name, some."""
MOST_PREMISES = 16
"""The maximum number of premises, because validity is decided over 2^n kinds of individuals."""
PAIRS, POSITIVE, CONTRAPOSED = 0.26, 0.78, 0.2
"""The shares of sides with two kinds, of positive kinds, and of claims in contraposed form."""
PLAIN_OPENINGS = 0.4
QUESTION_TEXT = (
    "Is the argument, given the explicitly stated premises, deductively valid or invalid?"
)
OPTIONS = "Options:\n- valid \n- invalid"
QUESTION = re.compile(
    rf'"(?P<argument>.+)"\n{re.escape(QUESTION_TEXT)}\nOptions:\n- valid ?\n- invalid ?', re.DOTALL
)


class FallacyProblem(NamedTuple):
    """An argument about kinds that are numbers, and the choices for its text."""

    topic: int
    opening: int
    """The topic's opening; -1 for the plain one."""
    kinds: list[tuple[int, int]]
    """Relation and name of each kind, as indexes in the topic's vocabulary."""
    individual: int
    premises: list[Claim]
    conclusion: Claim
    markers: int
    end: int
    valid: bool


class FormalFallacies(FreshTask):
    """A problem is a `FallacyProblem`."""

    subset = "formal_fallacies"

    def invent(self, draw: random.Random, difficulty: float) -> FallacyProblem:
        (published,) = draw.choices(list(PUBLISHED_PREMISES), list(PUBLISHED_PREMISES.values()))
        size = min(scale_size(published, difficulty, least=1), MOST_PREMISES)
        valid = draw.random() < 0.5
        while True:
            *premises, conclusion = _draw_valid_argument(draw, size)
            if not valid:
                *premises, conclusion = _add_fault(draw, [*premises, conclusion])
            draw.shuffle(premises)
            if (
                not _repeats_premise(premises, conclusion)
                and _is_entailed(premises, conclusion) == valid
            ):
                break
        number = draw.randrange(len(TOPICS))
        topic = TOPICS[number]
        atoms = 1 + max(
            atom for claim in (*premises, conclusion) for atom in _atoms_of_claim(claim)
        )
        kinds = [
            (draw.randrange(len(topic.relations)), name)
            for name in draw.sample(range(len(topic.names)), atoms)
        ]
        return FallacyProblem(
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

    def write(self, problem: FallacyProblem, language: Language) -> FreshQuestion:
        topic = TOPICS[problem.topic]
        kinds = [f"{topic.relations[kind]} {topic.names[name]}" for kind, name in problem.kinds]
        wording = ArgumentWording(
            kinds, topic.individuals[problem.individual], persons=topic.persons
        )
        sentences = [PLAIN_OPENING if problem.opening < 0 else topic.openings[problem.opening]]
        for number, premise in enumerate(problem.premises):
            sentences.append(
                write_premise(MARKERS[problem.markers], number, wording.claim(premise))
            )
        conclusion_text = wording.claim(problem.conclusion)
        sentences.append(f"{join_marker(CONCLUSIONS[problem.end], conclusion_text)}.")
        text = f'"{" ".join(sentences)}"\n{QUESTION_TEXT}\n{OPTIONS}'
        return FreshQuestion(text, "valid" if problem.valid else "invalid")

    def solve(self, text: str) -> str | None:
        match = QUESTION.fullmatch(text)
        argument = read_argument(match["argument"]) if match else None
        if argument is None:
            return None
        return "valid" if is_valid(argument) else "invalid"


# --- drawing -----------------------------------------------------------------------------------


class FreshKinds:
    """Supplies kinds that are not in use yet."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._atoms = 0

    def literal(self) -> KindLiteral:
        self._atoms += 1
        return KindLiteral(self._atoms - 1, self._draw.random() < POSITIVE)

    def group(self, pairs: float = PAIRS) -> LiteralGroup:
        size = 2 if self._draw.random() < pairs else 1
        return LiteralGroup(tuple(self.literal() for _ in range(size)), self._draw.random() < 0.5)


def _draw_valid_argument(draw: random.Random, size: int) -> list[Claim]:
    """Draw claims of which the last follows from the others."""
    fresh_kinds = FreshKinds(draw)
    quantifier: Quantifier = "all"
    if size > 1:
        names = list(PUBLISHED_QUANTIFIERS)
        (quantifier,) = draw.choices(names, list(PUBLISHED_QUANTIFIERS.values()))
    condition, consequence = fresh_kinds.group(), fresh_kinds.group()
    steps = _draw_steps(draw, fresh_kinds, condition, consequence, size - (quantifier != "all"))
    claims = [_maybe_contrapose(draw, start, end) for start, end in steps]
    if quantifier == "all":
        return [*claims, _maybe_contrapose(draw, condition, consequence)]
    if draw.random() < 0.5:  # from the negated consequence to the negated condition
        condition, consequence = consequence.negated, condition.negated
    subject = (
        LiteralGroup((KindLiteral(fresh_kinds.literal().atom, True),))
        if quantifier == "some"
        else condition
    )
    return [
        Claim(quantifier, subject, condition, draw.randrange(60)),
        *claims,
        Claim(quantifier, subject, consequence, draw.randrange(60)),
    ]


def _draw_steps(
    draw: random.Random,
    fresh_kinds: FreshKinds,
    condition: LiteralGroup,
    consequence: LiteralGroup,
    size: int,
) -> list[tuple[LiteralGroup, LiteralGroup]]:
    """Draw `size` steps that lead from the condition to the consequence."""
    steps = [(condition, consequence)]
    while len(steps) < size:
        start, end = steps.pop(draw.randrange(len(steps)))
        middle = fresh_kinds.literal()
        middle_group = LiteralGroup((middle,))
        rule = draw.randrange(6 if len(steps) + 3 <= size else 4)
        if rule == 0 and len(end.literals) == 1:  # a disjunction without the other part
            steps += [
                (start, LiteralGroup((*end.literals, middle), False)),
                (start, middle_group.negated),
            ]
        elif rule == 1 and len(start.literals) == 1:  # both of two
            steps += [(start, middle_group), (LiteralGroup((*start.literals, middle)), end)]
        elif rule == 4:  # either of two ways
            other_middle = fresh_kinds.literal()
            steps += [
                (start, LiteralGroup((middle, other_middle), False)),
                (middle_group, end),
                (LiteralGroup((other_middle,)), end),
            ]
        elif rule == 5:  # two together
            other_middle = fresh_kinds.literal()
            steps += [
                (start, middle_group),
                (start, LiteralGroup((other_middle,))),
                (LiteralGroup((middle, other_middle)), end),
            ]
        else:
            steps += [(start, middle_group), (middle_group, end)]
    return steps


def _maybe_contrapose(
    draw: random.Random, condition: LiteralGroup, consequence: LiteralGroup
) -> Claim:
    """Return a universal claim, or sometimes its contrapositive."""
    if draw.random() < CONTRAPOSED:
        condition, consequence = consequence.negated, condition.negated
    return Claim("all", condition, consequence, draw.randrange(60))


def _add_fault(draw: random.Random, claims: list[Claim]) -> list[Claim]:
    """Return the claims with one of them changed."""
    claims = claims.copy()
    index = draw.randrange(len(claims))
    claim = claims[index]
    if claim.quantifier == "all" and draw.random() < 1 / 3:
        claims[index] = claim._replace(condition=claim.consequence, consequence=claim.condition)
    elif claim.quantifier == "all" and draw.random() < 0.5:
        claims[index] = claim._replace(condition=_change_group(draw, claim.condition))
    else:
        claims[index] = claim._replace(consequence=_change_group(draw, claim.consequence))
    return claims


def _change_group(draw: random.Random, group: LiteralGroup) -> LiteralGroup:
    """Return a changed group: ``and`` instead of ``or`` or the reverse, or one ``not`` more or
    less."""
    if len(group.literals) > 1 and draw.random() < 0.5:
        return group._replace(is_conjunction=not group.is_conjunction)
    literals = list(group.literals)
    index = draw.randrange(len(literals))
    literals[index] = KindLiteral(literals[index].atom, not literals[index].positive)
    return group._replace(literals=tuple(literals))


def _repeats_premise(premises: list[Claim], conclusion: Claim) -> bool:
    """Whether the conclusion is also a premise."""
    claims = [(c.quantifier, c.condition, c.consequence) for c in (*premises, conclusion)]
    return claims[-1] in claims[:-1]


def _atoms_of_claim(claim: Claim) -> list[int]:
    groups = (
        (claim.consequence,) if claim.quantifier == "one" else (claim.condition, claim.consequence)
    )
    return [literal.atom for group in groups for literal in group.literals]


def _is_entailed(premises: list[Claim], conclusion: Claim) -> bool | None:
    """Whether the conclusion follows; None if the premises contradict each other."""
    atoms = {atom for claim in (*premises, conclusion) for atom in _atoms_of_claim(claim)}
    kinds = KindSets([str(atom) for atom in sorted(atoms)])
    world = make_world([_to_statement(premise) for premise in premises], kinds)
    return follows(world, _to_statement(conclusion), kinds) if world.is_possible() else None


def _to_statement(claim: Claim) -> LogicStatement:
    consequence = _to_predicate(claim.consequence)
    if claim.quantifier == "one":
        return LogicStatement("one", consequence, "somebody")
    condition = _to_predicate(claim.condition)
    return (
        implies(condition, consequence)
        if claim.quantifier == "all"
        else LogicStatement("some", And((condition, consequence)))
    )


def _to_predicate(group: LiteralGroup) -> Predicate:
    parts = tuple(str(atom) if positive else Not(str(atom)) for atom, positive in group.literals)
    return And(parts) if group.is_conjunction else Or(parts)
