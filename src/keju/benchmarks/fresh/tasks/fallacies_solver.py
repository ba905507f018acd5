"""Parse arguments in English: statements about individuals, in a few dozen forms."""

from __future__ import annotations

import re

from keju.benchmarks.fresh.tasks.fallacies_logic import (
    And,
    Argument,
    LogicStatement,
    Not,
    Or,
    Predicate,
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
    """Return the argument of a question; None if one of its sentences is not understood."""
    opening = OPENING.search(text)
    if opening is None:
        return None
    sentences = _parse_sentences(text[opening.end() :])
    if sentences is None or len(sentences) < 2:
        return None
    *premises, conclusion = sentences
    return Argument(tuple(premises), conclusion)


def _parse_sentences(text: str) -> list[LogicStatement] | None:
    """Return the statements up to the conclusion, which is the last one.

    A full stop may be part of a name (``R. Charleroi SC``). So a sentence ends at the first full
    stop where the text before it is a statement and the text after it can be parsed.
    """
    if conclusion_match := CONCLUSION.match(text):
        statement = read_statement(text[conclusion_match.end() :].removesuffix("."))
        return None if statement is None else [statement]
    if premise_match := PREMISE.match(text):
        text = text[premise_match.end() :]
    for end in END.finditer(text):
        statement = read_statement(text[: end.start()])
        remaining_statements = _parse_sentences(text[end.end() :].lstrip()) if statement else None
        if statement and remaining_statements:
            return [statement, *remaining_statements]
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
UNIVERSAL_SUBJECTS = (
    "everyone who is", "everybody who is", "everything that is", "whoever is", "whatever is",
    "someone who is", "something that is",
)  # fmt: skip
"""All of them are universal: so is ``someone who is not A is B``."""
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
"""``an ingredient of Stop and Stare``: an atom ends where a keyword or another atom begins."""


def _tokenize(text: str) -> list[str] | None:
    """Return the keywords and the atoms of a sentence; atoms begin with a mark."""
    words, position = [], 0
    while position < len(text):
        if text[position] == " ":
            position += 1
            continue
        if match := WORD.match(text, position):
            words.append(match[0].lower())
        elif match := ATOM.match(text, position):
            words.append("@" + match["atom"].lower())
        else:
            return None
        position = match.end()
    return words


# --- statements --------------------------------------------------------------------------------

FALSE = re.compile(r"it is (?:false|not the case) that (?P<said>.+)", re.IGNORECASE)
NOT_NAMES = (
    "every", "everyone", "everybody", "everything", "whoever", "whatever", "who", "that", "no",
    "nobody", "nothing", "not", "some", "somebody", "someone", "something", "there", "being", "if",
    "to", "be", "it",
)  # fmt: skip
NAMED = re.compile(
    rf"(?!(?i:{'|'.join(NOT_NAMES)})\b)(?P<name>[\w'()-]+(?: (?!(?:who|that|an?|of)\b)[\w'()-]+)*?)"
    r" is (?P<what>.+)"
)  # Vitamin A is an ingredient of X


def read_statement(text: str) -> LogicStatement | None:
    """Return the statement of one sentence; None if its form is unknown."""
    if match := FALSE.fullmatch(text):
        statement = read_statement(match["said"])
        if statement is None or statement.quantifier != "one":
            return None
        return statement._replace(predicate=Not(statement.predicate))
    words = _tokenize(text)
    if words is not None:
        try:
            return StatementParser(words).parse_statement()
        except ValueError:
            pass
    if match := NAMED.fullmatch(text):
        words = _tokenize(match["what"])
        try:
            if words is not None:
                return LogicStatement(
                    "one", StatementParser(words).parse_predicate(), match["name"].lower()
                )
        except ValueError:
            pass
    return None


class StatementParser:
    """Parses a sentence from left to right; ValueError if its form is unknown."""

    def __init__(self, words: list[str]) -> None:
        self._words = [*words, ""]
        self._position = 0

    def _take(self, *accepted_words: str) -> str:
        """Take the next word if it is one of these."""
        word = self._words[self._position]
        if word not in accepted_words:
            return ""
        self._position += 1
        return word

    def _require(self, *accepted_words: str) -> None:
        if not self._take(*accepted_words):
            raise ValueError(f"{self._words[self._position]!r} instead of {accepted_words}")

    def _finish(self, statement: LogicStatement) -> LogicStatement:
        """Return a statement if only an afterthought follows: ``, too``."""
        if self._take(","):
            self._require("too", "either")
        if self._words[self._position]:
            raise ValueError(self._words[self._position])
        return statement

    def parse_predicate(self) -> Predicate:
        """Parse all remaining words as one predicate."""
        return self._finish(LogicStatement("all", self._parse_or())).predicate

    def parse_statement(self) -> LogicStatement:
        """Parse a universal or existential statement."""
        opening_word = self._take(*KEYWORDS)
        if opening_word in UNIVERSAL_SUBJECTS:
            return self._parse_universal()
        match opening_word:
            case "every" | "some" | "no" | "not every" | "there exists" | "there is no":
                return self._parse_kind(opening_word)
            case "somebody is" | "something is":
                return LogicStatement("some", self.parse_predicate())
            case "there is somebody who is" | "there is something that is":
                return LogicStatement("some", self.parse_predicate())
            case "nobody is" | "nothing is":
                return LogicStatement("all", Not(self.parse_predicate()))
            case "if someone is" | "if something is":
                condition = self._parse_or()
                self._take(",")
                self._require("then that person is", "then that thing is")
                return implies(condition, self.parse_predicate())
            case "being" | "not" | "to be":
                return self._parse_conditions(opening_word)
        raise ValueError(opening_word)

    def _parse_universal(self) -> LogicStatement:
        """Parse ``whoever is A is however B``."""
        condition = self._parse_or()
        self._take(",")
        self._require("is")
        return implies(condition, self._parse_consequence())

    def _parse_kind(self, opening_word: str) -> LogicStatement:
        """Parse ``every A who is B is C``, ``no A and no B is C``, ``there is no A who is B``."""
        kinds = [self._parse_atom()]
        while opening_word in ("every", "no") and self._take("and"):
            self._require(opening_word)
            kinds.append(self._parse_atom())
        subject: Predicate = kinds[0] if len(kinds) == 1 else Or(tuple(kinds))
        if self._take("who is", "that is"):
            subject = And((subject, self._parse_or()))
        if opening_word == "there exists":
            return self._finish(LogicStatement("some", subject))
        if opening_word == "there is no":
            return self._finish(LogicStatement("all", Not(subject)))
        self._require("is")
        consequence = self._parse_consequence()
        match opening_word:
            case "every":
                return implies(subject, consequence)
            case "no":
                return implies(subject, Not(consequence))
            case "some":
                return LogicStatement("some", And((subject, consequence)))
        return LogicStatement("some", And((subject, Not(consequence))))

    def _parse_conditions(self, opening_word: str) -> LogicStatement:
        """Parse ``not being A is sufficient for being B``, ``to be A or B is necessary for being
        C``."""
        if opening_word == "not":
            self._position -= 1
        left_condition = self._parse_or()
        relation = self._take("is sufficient for", "is necessary for")
        if not relation:
            raise ValueError("no condition")
        right_condition = self.parse_predicate()
        return (
            implies(left_condition, right_condition)
            if relation == "is sufficient for"
            else implies(right_condition, left_condition)
        )

    def _parse_consequence(self) -> Predicate:
        self._take("also", "however")
        return self.parse_predicate()

    def _parse_or(self) -> Predicate:
        """Parse parts joined by ``or``; commas join lists that end with ``or`` or ``and``."""
        parts, joints = [self._parse_and()], set()
        while True:
            start = self._position
            comma = self._take(",")
            joint = self._take("or", "and") if comma else self._take("or")
            if joint == "or" and self._take(","):
                self._require("otherwise")
                self._require(",")
            if not joint and not (comma and self._words[self._position].startswith(("@", "not"))):
                self._position = start
                break
            joints.add(joint)
            parts.append(self._parse_and())
        joints.discard("")
        if len(parts) == 1:
            return parts[0]
        if len(joints) != 1:
            raise ValueError("a list without an end")
        return And(tuple(parts)) if joints == {"and"} else Or(tuple(parts))

    def _parse_and(self) -> Predicate:
        """Parse parts joined by ``and``; it binds before ``or`` unless ``in addition`` follows."""
        parts = [self._parse_factor()]
        while joint := self._take("and", "yet", "while"):
            if joint == "and" and self._take(","):
                self._require("in addition", "in the same time")
                self._require(",")
                parts.append(self._parse_or())
            else:
                parts.append(self._parse_factor())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _parse_factor(self) -> Predicate:
        self._take("being")
        match self._take(
            "not", "both", "neither", "either", "none of this", "at least one of these"
        ):
            case "not":
                return Not(self._parse_factor())
            case "both":
                self._take(":")
                return And(self._parse_pair("and"))
            case "neither":
                return Not(Or(self._parse_pair("nor")))
            case "either":
                pair = self._parse_pair("or")
                self._require(",")
                self._require("or both")
                return Or(pair)
            case "none of this":
                self._require(":")
                return Not(self._parse_or())
            case "at least one of these":
                self._require(":")
                return self._parse_or()
        return self._parse_atom()

    def _parse_pair(self, joint: str) -> tuple[Predicate, ...]:
        first_part = self._parse_factor()
        self._require(joint)
        return first_part, self._parse_factor()

    def _parse_atom(self) -> Predicate:
        word = self._words[self._position]
        if not word.startswith("@"):
            raise ValueError(word)
        self._position += 1
        return word[1:]
