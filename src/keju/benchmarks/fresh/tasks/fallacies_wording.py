"""Arguments in English: every claim in one of the forms that fit it, about one of a few topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from keju.benchmarks.fresh.tasks.fallacies_logic import Quantifier


class Literal(NamedTuple):
    """To be of a kind, or not to be."""

    atom: int
    positive: bool


class Group(NamedTuple):
    """All of some literals, or at least one of them."""

    literals: tuple[Literal, ...]
    every: bool = True

    @property
    def negated(self) -> Group:
        """What is true where this is false."""
        flipped = tuple(Literal(atom, not positive) for atom, positive in self.literals)
        return Group(flipped, not self.every)

    @property
    def in_order(self) -> Group:
        """With what is denied at the end: in ``not a B and a C`` the ``not`` could mean both."""
        literals = sorted(self.literals, key=lambda literal: not literal.positive)
        return self._replace(literals=tuple(literals))

    def all_are(self, positive: bool) -> bool:
        return all(literal.positive == positive for literal in self.literals)


class Claim(NamedTuple):
    """Of all who are the first: they are the second. Of some: they are both. Of one: the second."""

    quantifier: Quantifier
    first: Group
    second: Group
    form: int
    """Which of the forms that fit; the number goes round."""


class Topic(NamedTuple):
    """What an argument is about: who is what of whom."""

    openings: tuple[str, ...]
    relations: tuple[str, ...]
    names: tuple[str, ...]
    individuals: tuple[str, ...]
    persons: bool


class Pronouns(NamedTuple):
    """Words for persons, or for things."""

    everyone: str
    whoever: str
    nobody: str
    somebody: str
    who: str


PERSONS = Pronouns("everyone who", "whoever", "nobody", "somebody", "who")
THINGS = Pronouns("everything that", "whatever", "nothing", "something", "that")

PLAIN_OPENING = "Here comes a perfectly valid argument:"
MARKERS = (
    ("First, ", "Second, ", "Third, ", "Fourth, ", "Fifth, ", "Sixth, ", "Seventh, ", "Eighth, "),
    ("First premise: ", "Second premise: ", "Third premise: ", "Fourth premise: ",
     "Fifth premise: ", "Sixth premise: ", "Seventh premise: ", "Eighth premise: "),
    ("First of all, ", "Next, ", "Plus, "),
    ("To begin with, ", "Moreover, ", "Finally, "),
    ("To start with, ", "Now, ", "Moreover, "),
    ("",),
)  # fmt: skip
"""What stands before the premises; more of them than there are words go on with `MORE`."""
MORE = "Moreover, "
CONCLUSIONS = (
    "It follows that ", "We may conclude: ", "We may conclude that ", "Therefore, ", "Hence, ",
    "In consequence, ", "So, necessarily, ", "All this entails that ", "From this follows: ",
)  # fmt: skip


class Wording:
    """Claims on the kinds of an argument, in words."""

    def __init__(self, kinds: Sequence[str], individual: str, *, persons: bool) -> None:
        self._kinds = kinds
        self._individual = individual
        self._words = PERSONS if persons else THINGS

    def claim(self, claim: Claim) -> str:
        """A sentence without its first capital and its full stop."""
        forms = {"all": self._all, "some": self._some, "one": self._one}[claim.quantifier]
        sentences = forms(claim.first, claim.second)
        return sentences[claim.form % len(sentences)]

    def _a(self, atom: int) -> str:
        """``an uncle of Ada``."""
        kind = self._kinds[atom]
        return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"

    def _is(self, group: Group) -> str:
        """What follows ``is``: ``a B``, ``neither a B nor a C``, ``a B or not a C``."""
        group = group.in_order
        texts = [self._a(atom) for atom, _ in group.literals]
        if len(texts) == 2 and group.every and group.all_are(False):
            return f"neither {texts[0]} nor {texts[1]}"
        if len(texts) == 2 and group.every and group.all_are(True):
            return f"both {texts[0]} and {texts[1]}"
        parts = [
            text if literal.positive else f"not {text}"
            for text, literal in zip(texts, group.literals, strict=True)
        ]
        return (" and " if group.every else " or ").join(parts)

    def _being(self, group: Group) -> str:
        """``being a B or not being a C``; of several that are not, each is said so."""
        parts = []
        for number, (atom, positive) in enumerate(group.in_order.literals):
            being = "not being " if not positive else "" if number else "being "
            parts.append(f"{being}{self._a(atom)}")
        return (" and " if group.every else " or ").join(parts)

    def _all(self, first: Group, second: Group) -> list[str]:
        words, told = self._words, self._is(second)
        forms = [
            *[f"{words.whoever} is {self._is(first)} is {told}"] * 3,
            f"{self._being(first)} is sufficient for {self._being(second)}",
            f"{self._being(second)} is necessary for {self._being(first)}",
        ]
        positive, single = first.all_are(True), len(second.literals) == 1
        if positive:
            every, no = self._subjects(first)
            if not (single and second.all_are(False)):  # "every A is not a B" could mean: not every
                forms += [f"{every} is {told}"] * 5
            if second.all_are(False):
                forms += [f"{no} is {self._is(second.negated)}"] * 4
        if len(first.literals) > 1 or not second.all_are(True):
            return forms
        if not positive and single:
            pair = Group((*first.literals, Literal(second.literals[0].atom, False)))
            forms += [f"{words.nobody} is {self._is(pair)}"] * 4
        elif positive and single:
            forms += [f"{words.everyone} is {self._is(first)} is {told}, too"] * 2
        elif positive and not second.every:
            forms.append(f"{self._subjects(first)[0]} is either {told}, or both")
        return forms

    def _subjects(self, first: Group) -> tuple[str, str]:
        """``every A who is a B`` and ``no A who is a B``, ``every A and every B`` and so on."""
        kinds = [self._kinds[atom] for atom, _ in first.literals]
        if len(kinds) == 1:
            return f"every {kinds[0]}", f"no {kinds[0]}"
        if not first.every:
            return f"every {kinds[0]} and every {kinds[1]}", f"no {kinds[0]} and no {kinds[1]}"
        who = f"{kinds[0]} {self._words.who} is {self._a(first.literals[1].atom)}"
        return f"every {who}", f"no {who}"

    def _some(self, first: Group, second: Group) -> list[str]:
        words, told = self._words, self._is(second)
        kind, a_kind = self._kinds[first.literals[0].atom], self._a(first.literals[0].atom)
        forms = [f"some {kind} is {told}"]
        if len(second.literals) == 1:
            forms += [
                f"{words.somebody} is {a_kind} and {told}",
                f"there is {words.somebody} {words.who} is {a_kind} and {told}",
            ]
        elif not second.every:
            forms.append(f"{words.somebody} is {a_kind} and, in addition, {told}")
        if second.all_are(False):
            forms.append(f"not every {kind} is {self._is(second.negated)}")
        return forms

    def _one(self, _: Group, second: Group) -> list[str]:
        forms = [f"{self._individual} is {self._is(second)}"]
        if second.all_are(False):
            said = f"{self._individual} is {self._is(second.negated)}"
            forms += [f"it is not the case that {said}", f"it is false that {said}"]
        return forms


def marked(markers: Sequence[str], number: int, sentence: str) -> str:
    """A premise with the words before it, its first capital and its full stop."""
    marker = markers[number] if number < len(markers) else MORE if markers[0] else ""
    return f"{joined(marker, sentence)}."


def joined(marker: str, sentence: str) -> str:
    """``First, every A``, but ``First premise: Every A``."""
    if marker.endswith((": ", ".")) or not marker:
        sentence = sentence[0].upper() + sentence[1:]
    return marker + sentence
