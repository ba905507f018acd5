"""Write arguments in English: each claim in one of several forms, about one of a few topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from keju.benchmarks.fresh.tasks.fallacies_logic import Quantifier
from keju.benchmarks.fresh.vocabulary import read_phrases, vocabulary


class KindLiteral(NamedTuple):
    """A kind, or its negation."""

    atom: int
    positive: bool


class LiteralGroup(NamedTuple):
    """The conjunction or the disjunction of some literals."""

    literals: tuple[KindLiteral, ...]
    is_conjunction: bool = True

    @property
    def negated(self) -> LiteralGroup:
        """The negation of this group."""
        flipped = tuple(KindLiteral(atom, not positive) for atom, positive in self.literals)
        return LiteralGroup(flipped, not self.is_conjunction)

    @property
    def in_order(self) -> LiteralGroup:
        """The group with negated literals last: in ``not a B and a C`` the ``not`` could apply to
        both."""
        literals = sorted(self.literals, key=lambda literal: not literal.positive)
        return self._replace(literals=tuple(literals))

    def all_are(self, positive: bool) -> bool:
        return all(literal.positive == positive for literal in self.literals)


class Claim(NamedTuple):
    """A claim about individuals: all with the condition have the consequence, some have both, or
    one individual has the consequence."""

    quantifier: Quantifier
    condition: LiteralGroup
    consequence: LiteralGroup
    form: int
    """The number of the form to use, modulo the number of forms that fit."""


class Topic(msgspec.Struct, frozen=True):
    """The topic of an argument: relations and names for its kinds."""

    openings: tuple[str, ...]
    relations: tuple[str, ...]
    individuals: tuple[str, ...]
    names: tuple[str, ...] = vocabulary("people.en")
    persons: bool = True


TOPICS = read_phrases("topics", tuple[Topic, ...])


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
"""The text before the premises; further premises begin with `FURTHER_MARKER`."""
FURTHER_MARKER = "Moreover, "
CONCLUSIONS = (
    "It follows that ", "We may conclude: ", "We may conclude that ", "Therefore, ", "Hence, ",
    "In consequence, ", "So, necessarily, ", "All this entails that ", "From this follows: ",
)  # fmt: skip


class ArgumentWording:
    """Writes claims about the kinds of an argument as sentences."""

    def __init__(self, kinds: Sequence[str], individual: str, *, persons: bool) -> None:
        self._kinds = kinds
        self._individual = individual
        self._words = PERSONS if persons else THINGS

    def claim(self, claim: Claim) -> str:
        """Return a sentence without its initial capital and its full stop."""
        forms = {
            "all": self._universal_forms,
            "some": self._particular_forms,
            "one": self._individual_forms,
        }[claim.quantifier]
        sentences = forms(claim.condition, claim.consequence)
        return sentences[claim.form % len(sentences)]

    def _with_article(self, atom: int) -> str:
        """Return ``an uncle of Ada``."""
        kind = self._kinds[atom]
        return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"

    def _predicate_text(self, group: LiteralGroup) -> str:
        """Return the text after ``is``: ``a B``, ``neither a B nor a C``, ``a B or not a C``."""
        group = group.in_order
        texts = [self._with_article(atom) for atom, _ in group.literals]
        if len(texts) == 2 and group.is_conjunction and group.all_are(False):
            return f"neither {texts[0]} nor {texts[1]}"
        if len(texts) == 2 and group.is_conjunction and group.all_are(True):
            return f"both {texts[0]} and {texts[1]}"
        parts = [
            text if literal.positive else f"not {text}"
            for text, literal in zip(texts, group.literals, strict=True)
        ]
        return (" and " if group.is_conjunction else " or ").join(parts)

    def _being_text(self, group: LiteralGroup) -> str:
        """Return ``being a B or not being a C``; each negated kind has its own ``not being``."""
        parts = []
        for number, (atom, positive) in enumerate(group.in_order.literals):
            being = "not being " if not positive else "" if number else "being "
            parts.append(f"{being}{self._with_article(atom)}")
        return (" and " if group.is_conjunction else " or ").join(parts)

    def _universal_forms(self, condition: LiteralGroup, consequence: LiteralGroup) -> list[str]:
        words, consequence_text = self._words, self._predicate_text(consequence)
        forms = [
            *[f"{words.whoever} is {self._predicate_text(condition)} is {consequence_text}"] * 3,
            f"{self._being_text(condition)} is sufficient for {self._being_text(consequence)}",
            f"{self._being_text(consequence)} is necessary for {self._being_text(condition)}",
        ]
        positive, single = condition.all_are(True), len(consequence.literals) == 1
        if positive:
            every_subject, no_subject = self._subjects(condition)
            # "every A is not a B" could mean: not every.
            if not (single and consequence.all_are(False)):
                forms += [f"{every_subject} is {consequence_text}"] * 5
            if consequence.all_are(False):
                forms += [f"{no_subject} is {self._predicate_text(consequence.negated)}"] * 4
        if len(condition.literals) > 1 or not consequence.all_are(True):
            return forms
        if not positive and single:
            pair = LiteralGroup(
                (*condition.literals, KindLiteral(consequence.literals[0].atom, False))
            )
            forms += [f"{words.nobody} is {self._predicate_text(pair)}"] * 4
        elif positive and single:
            forms += [
                f"{words.everyone} is {self._predicate_text(condition)} is {consequence_text}, too"
            ] * 2
        elif positive and not consequence.is_conjunction:
            forms.append(f"{self._subjects(condition)[0]} is either {consequence_text}, or both")
        return forms

    def _subjects(self, condition: LiteralGroup) -> tuple[str, str]:
        """Return ``every A who is a B`` and ``no A who is a B``, ``every A and every B``, and so
        on."""
        kinds = [self._kinds[atom] for atom, _ in condition.literals]
        if len(kinds) == 1:
            return f"every {kinds[0]}", f"no {kinds[0]}"
        if not condition.is_conjunction:
            return f"every {kinds[0]} and every {kinds[1]}", f"no {kinds[0]} and no {kinds[1]}"
        who = f"{kinds[0]} {self._words.who} is {self._with_article(condition.literals[1].atom)}"
        return f"every {who}", f"no {who}"

    def _particular_forms(self, condition: LiteralGroup, consequence: LiteralGroup) -> list[str]:
        words, consequence_text = self._words, self._predicate_text(consequence)
        kind, a_kind = (
            self._kinds[condition.literals[0].atom],
            self._with_article(condition.literals[0].atom),
        )
        forms = [f"some {kind} is {consequence_text}"]
        if len(consequence.literals) == 1:
            forms += [
                f"{words.somebody} is {a_kind} and {consequence_text}",
                f"there is {words.somebody} {words.who} is {a_kind} and {consequence_text}",
            ]
        elif not consequence.is_conjunction:
            forms.append(f"{words.somebody} is {a_kind} and, in addition, {consequence_text}")
        if consequence.all_are(False):
            forms.append(f"not every {kind} is {self._predicate_text(consequence.negated)}")
        return forms

    def _individual_forms(self, _: LiteralGroup, consequence: LiteralGroup) -> list[str]:
        forms = [f"{self._individual} is {self._predicate_text(consequence)}"]
        if consequence.all_are(False):
            negated_claim = f"{self._individual} is {self._predicate_text(consequence.negated)}"
            forms += [
                f"it is not the case that {negated_claim}",
                f"it is false that {negated_claim}",
            ]
        return forms


def write_premise(markers: Sequence[str], number: int, sentence: str) -> str:
    """Return a premise with its marker, initial capital and full stop."""
    marker = markers[number] if number < len(markers) else FURTHER_MARKER if markers[0] else ""
    return f"{join_marker(marker, sentence)}."


def join_marker(marker: str, sentence: str) -> str:
    """Return ``First, every A``, but ``First premise: Every A``."""
    if marker.endswith((": ", ".")) or not marker:
        sentence = sentence[0].upper() + sentence[1:]
    return marker + sentence
