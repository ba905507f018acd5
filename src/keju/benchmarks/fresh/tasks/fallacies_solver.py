"""Reads arguments in English: who is what, in the few dozen forms that such sentences have."""

from __future__ import annotations

import re

from keju.benchmarks.fresh.tasks.fallacies_logic import (
    And,
    Argument,
    Not,
    Or,
    Predicate,
    Statement,
    implies,
)

# --- sentences ---------------------------------------------------------------------------------

OPENING = re.compile(
    r"(?:argument|argument pertains to this question|argument seeks to clarify some such relations)"
    r": "
)
PREMISE = re.compile(
    r"(?:first of all,|(?:first|second|third|[a-z]+th)(?: premise:|,)|to begin with,|"
    r"to start with,|next,|now,|moreover,|finally,|plus,)\s*",
    re.IGNORECASE,
)
CONCLUSION = re.compile(
    r"(?:it follows that|we may conclude:|we may conclude that|therefore,|hence,|"
    r"in consequence,|so, necessarily,|all this entails that|from this follows:)\s*",
    re.IGNORECASE,
)
END = re.compile(r"\.(?=\s|[a-z]|$)")  # also in "Aquablush.finally"; not in "A.D LIPSTICK"


def read_argument(text: str) -> Argument | None:
    """The argument of a question; None where a sentence of it is not understood."""
    opening = OPENING.search(text)
    if opening is None:
        return None
    sentences = _sentences(text[opening.end() :])
    if sentences is None or len(sentences) < 2:
        return None
    *premises, conclusion = sentences
    return Argument(tuple(premises), conclusion)


def _sentences(text: str) -> list[Statement] | None:
    """Statements up to the conclusion, which is the last.

    A full stop may be part of a name (``R. Charleroi SC``): a sentence ends at the first one where
    what stands before it is one statement, and what follows it can be read too.
    """
    if last := CONCLUSION.match(text):
        statement = read_statement(text[last.end() :].removesuffix("."))
        return None if statement is None else [statement]
    if found := PREMISE.match(text):
        text = text[found.end() :]
    for end in END.finditer(text):
        statement = read_statement(text[: end.start()])
        rest = _sentences(text[end.end() :].lstrip()) if statement else None
        if statement and rest:
            return [statement, *rest]
    return None


# --- words -------------------------------------------------------------------------------------

KEYWORDS = (
    "every", "everyone who is", "everybody who is", "everything that is", "whoever is",
    "whatever is", "someone who is", "something that is", "no", "nobody is", "nothing is", "some",
    "somebody is", "something is", "there is somebody who is", "there is something that is",
    "there exists", "there is no", "not every", "if someone is", "then that person is",
    "if something is", "then that thing is", "is sufficient for", "is necessary for", "to be",
    "being", "who is", "that is", "is", "also", "however", "too", "either", "or both", "both",
    "neither", "nor", "and", "or", "not", "yet", "while", "in addition", "in the same time",
    "otherwise", "none of this", "at least one of these", ",", ":",
)  # fmt: skip
THOSE = (
    "everyone who is", "everybody who is", "everything that is", "whoever is", "whatever is",
    "someone who is", "something that is",
)  # fmt: skip
"""All of them speak of everyone: ``someone who is not A is B`` does too."""
WORD = re.compile(
    "|".join(
        re.escape(word) + (r"\b" if word[-1].isalpha() else "")
        for word in sorted(KEYWORDS, key=len, reverse=True)
    ),
    re.IGNORECASE,
)
KIND = r"[\w'-]+(?: [\w'-]+)? (?:of|to)"  # half-sister of; occasional purchaser of; opponent to
ATOM = re.compile(
    rf"(?:an? )?(?P<atom>{KIND} .+?)(?="
    r" is\b| who is\b| that is\b| nor\b| yet not\b| while not\b|,? too\b|, either\b|, or both\b"
    rf"|,? (?:and|or)(?:,| an? | not | both | neither | no | every | being | {KIND} )"
    r"|, an? |, not |, is\b|, then\b|$)",
    re.IGNORECASE,
)
"""``an ingredient of Stop and Stare``: it ends where a keyword or another atom begins."""


def _words(text: str) -> list[str] | None:
    """The keywords and the atoms of a sentence, atoms with a mark before them."""
    words, at = [], 0
    while at < len(text):
        if text[at] == " ":
            at += 1
            continue
        if found := WORD.match(text, at):
            words.append(found[0].lower())
        elif found := ATOM.match(text, at):
            words.append("@" + found["atom"].lower())
        else:
            return None
        at = found.end()
    return words


# --- statements --------------------------------------------------------------------------------

FALSE = re.compile(r"it is (?:false|not the case) that (?P<said>.+)", re.IGNORECASE)
NO_NAMES = (
    "every", "everyone", "everybody", "everything", "whoever", "whatever", "who", "that", "no",
    "nobody", "nothing", "not", "some", "somebody", "someone", "something", "there", "being", "if",
    "to", "be", "it",
)  # fmt: skip
NAMED = re.compile(
    rf"(?!(?i:{'|'.join(NO_NAMES)})\b)(?P<name>[\w'()-]+(?: (?!(?:who|that|an?|of)\b)[\w'()-]+)*?)"
    r" is (?P<what>.+)"
)  # Vitamin A is an ingredient of X


def read_statement(text: str) -> Statement | None:
    """One sentence; None where it has a form that is not known."""
    if found := FALSE.fullmatch(text):
        statement = read_statement(found["said"])
        if statement is None or statement.quantifier != "one":
            return None
        return statement._replace(predicate=Not(statement.predicate))
    words = _words(text)
    if words is not None:
        try:
            return Reader(words).statement()
        except ValueError:
            pass
    if found := NAMED.fullmatch(text):
        words = _words(found["what"])
        try:
            if words is not None:
                return Statement("one", Reader(words).whole(), found["name"].lower())
        except ValueError:
            pass
    return None


class Reader:
    """Reads a sentence from left to right; ValueError where its form is not known."""

    def __init__(self, words: list[str]) -> None:
        self._words = [*words, ""]
        self._at = 0

    def _next(self, *wanted: str) -> str:
        """Take the next word if it is one of these."""
        word = self._words[self._at]
        if word not in wanted:
            return ""
        self._at += 1
        return word

    def _need(self, *wanted: str) -> None:
        if not self._next(*wanted):
            raise ValueError(f"{self._words[self._at]!r} instead of {wanted}")

    def _done(self, statement: Statement) -> Statement:
        """A statement, if nothing but an afterthought follows: ``, too``."""
        if self._next(","):
            self._need("too", "either")
        if self._words[self._at]:
            raise ValueError(self._words[self._at])
        return statement

    def whole(self) -> Predicate:
        """All that is left, as one predicate."""
        return self._done(Statement("all", self._any())).predicate

    def statement(self) -> Statement:
        """A statement on everyone or someone."""
        first = self._next(*KEYWORDS)
        if first in THOSE:
            return self._on_those()
        match first:
            case "every" | "some" | "no" | "not every" | "there exists" | "there is no":
                return self._on_a_kind(first)
            case "somebody is" | "something is":
                return Statement("some", self.whole())
            case "there is somebody who is" | "there is something that is":
                return Statement("some", self.whole())
            case "nobody is" | "nothing is":
                return Statement("all", Not(self.whole()))
            case "if someone is" | "if something is":
                condition = self._any()
                self._next(",")
                self._need("then that person is", "then that thing is")
                return implies(condition, self.whole())
            case "being" | "not" | "to be":
                return self._on_conditions(first)
        raise ValueError(first)

    def _on_those(self) -> Statement:
        """``whoever is A is however B``."""
        condition = self._any()
        self._next(",")
        self._need("is")
        return implies(condition, self._consequence())

    def _on_a_kind(self, first: str) -> Statement:
        """``every A who is B is C``, ``no A and no B is C``, ``there is no A who is B``."""
        kinds = [self._atom()]
        while first in ("every", "no") and self._next("and"):
            self._need(first)
            kinds.append(self._atom())
        subject: Predicate = kinds[0] if len(kinds) == 1 else Or(tuple(kinds))
        if self._next("who is", "that is"):
            subject = And((subject, self._any()))
        if first == "there exists":
            return self._done(Statement("some", subject))
        if first == "there is no":
            return self._done(Statement("all", Not(subject)))
        self._need("is")
        told = self._consequence()
        match first:
            case "every":
                return implies(subject, told)
            case "no":
                return implies(subject, Not(told))
            case "some":
                return Statement("some", And((subject, told)))
        return Statement("some", And((subject, Not(told))))

    def _on_conditions(self, first: str) -> Statement:
        """``not being A is sufficient for being B``, ``to be A or B is necessary for being C``."""
        if first == "not":
            self._at -= 1
        one = self._any()
        how = self._next("is sufficient for", "is necessary for")
        if not how:
            raise ValueError("no condition")
        two = self.whole()
        return implies(one, two) if how == "is sufficient for" else implies(two, one)

    def _consequence(self) -> Predicate:
        self._next("also", "however")
        return self.whole()

    def _any(self) -> Predicate:
        """Parts joined by ``or``; commas join lists that end with ``or`` or ``and``."""
        parts, joints = [self._all()], set()
        while True:
            here = self._at
            comma = self._next(",")
            joint = self._next("or", "and") if comma else self._next("or")
            if joint == "or" and self._next(","):
                self._need("otherwise")
                self._need(",")
            if not joint and not (comma and self._words[self._at].startswith(("@", "not"))):
                self._at = here
                break
            joints.add(joint)
            parts.append(self._all())
        joints.discard("")
        if len(parts) == 1:
            return parts[0]
        if len(joints) != 1:
            raise ValueError("a list without an end")
        return And(tuple(parts)) if joints == {"and"} else Or(tuple(parts))

    def _all(self) -> Predicate:
        """Parts joined by ``and``, which binds before ``or`` unless it says ``in addition``."""
        parts = [self._one()]
        while joint := self._next("and", "yet", "while"):
            if joint == "and" and self._next(","):
                self._need("in addition", "in the same time")
                self._need(",")
                parts.append(self._any())
            else:
                parts.append(self._one())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self) -> Predicate:
        self._next("being")
        match self._next(
            "not", "both", "neither", "either", "none of this", "at least one of these"
        ):
            case "not":
                return Not(self._one())
            case "both":
                self._next(":")
                return And(self._pair("and"))
            case "neither":
                return Not(Or(self._pair("nor")))
            case "either":
                pair = self._pair("or")
                self._need(",")
                self._need("or both")
                return Or(pair)
            case "none of this":
                self._need(":")
                return Not(self._any())
            case "at least one of these":
                self._need(":")
                return self._any()
        return self._atom()

    def _pair(self, joint: str) -> tuple[Predicate, ...]:
        first = self._one()
        self._need(joint)
        return first, self._one()

    def _atom(self) -> Predicate:
        word = self._words[self._at]
        if not word.startswith("@"):
            raise ValueError(word)
        self._at += 1
        return word[1:]
