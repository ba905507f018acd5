"""Sentences become Python expressions; a counterexample is searched for kind by kind.

A counterexample to what is said of all, or of one by name, is one individual; to what is said of
some it is one for every premise on some. Its kinds are tried one after the other, and every
statement is looked at as soon as all that it speaks of is decided.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import CodeType
from typing import NamedTuple

KIND = re.compile(
    r"(?:\ban? )?\b(?:(?:pen|dance|chess|former|occasional) )?[a-z]+ (?:of|to) "
    r"(?:the [A-Z][\w']* \w+|[A-Z]\w*)"
)
LEADS = re.compile(
    r"(?:First of all|To (?:begin|start) with|Next|Plus|Now|Moreover|Finally|\w+ premise"
    r"|First|Second|Third|Fourth|Fifth|Sixth|Seventh|Eighth|It follows that|We may conclude that"
    r"|We may conclude|Therefore|Hence|In consequence|So, necessarily|All this entails that"
    r"|From this follows)[,:]? "
)


class Told(NamedTuple):
    """A statement: on whom, and as an expression on one individual."""

    on: str
    code: CodeType
    kinds: frozenset[str]


def answer(text: str) -> str:
    """Whether the argument of a question holds."""
    argument = text.split('"')[1]
    body = re.split(r"(?:valid argument|this question|such relations): ", argument, maxsplit=1)[1]
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        kind = match[0].removeprefix("an ").removeprefix("a ")
        return numbers.setdefault(kind, f"k{len(numbers)}")

    statements = []
    for sentence in body.removesuffix(".").split(". "):
        short = LEADS.sub("", KIND.sub(number, sentence), count=1)
        statements.append(parse_statement(short[0].lower() + short[1:]))
    *premises, conclusion = statements
    order = list(numbers.values())
    return "valid" if holds(premises, conclusion, order) else "invalid"


def parse_statement(sentence: str) -> Told:
    """A sentence whose kinds are numbered: ``every k0 is k1 or not k2``."""
    kind_group = r"(.+?)"
    for pattern, on, expression in (
        (r"it is (?:not the case|false) that .+? is (.+)", "one", "not ({0})"),
        (rf"(?:everyone who|everything that|whoever|whatever) is {kind_group} is (.+?)(?:, too)?", "all", "not ({0}) or ({1})"),
        (r"every (k\d+) and every (k\d+) is (.+)", "all", "not ({0} or {1}) or ({2})"),
        (r"every (k\d+) (?:who|that) is (k\d+) is (.+)", "all", "not ({0} and {1}) or ({2})"),
        (r"every (k\d+) is (.+)", "all", "not {0} or ({1})"),
        (r"no (k\d+) and no (k\d+) is (.+)", "all", "not (({0} or {1}) and ({2}))"),
        (r"no (k\d+) (?:who|that) is (k\d+) is (.+)", "all", "not ({0} and {1} and ({2}))"),
        (r"no (k\d+) is (.+)", "all", "not ({0} and ({1}))"),
        (r"(?:nobody|nothing) is (.+)", "all", "not ({0})"),
        (r"(.+) is sufficient for (.+)", "all", "not ({0}) or ({1})"),
        (r"(.+) is necessary for (.+)", "all", "not ({1}) or ({0})"),
        (r"not every (k\d+) is (.+)", "some", "{0} and not ({1})"),
        (r"some (k\d+) is (.+)", "some", "{0} and ({1})"),
        (r"(?:there is )?some(?:body|thing)(?: who| that)? is (k\d+) and(?:, in addition,)? (.+)", "some", "{0} and ({1})"),
        (r"[\w ]+? is (.+)", "one", "{0}"),
    ):  # fmt: skip
        if match := re.fullmatch(pattern, sentence):
            filled = expression.format(*map(plain, match.groups()))
            assert not re.sub(r"\b(?:k\d+|and|or|not)\b|[() ]", "", filled), sentence
            return Told(on, compile(filled, "", "eval"), frozenset(re.findall(r"k\d+", filled)))
    raise AssertionError(sentence)


def plain(text: str) -> str:
    """A predicate as an expression: ``neither k0 nor k1`` is ``not (k0 or k1)``."""
    text = text.replace("being ", "").removesuffix(", or both")
    text = re.sub(r"neither (k\d+) nor (k\d+)", r"not (\1 or \2)", text)
    return re.sub(r"\b(?:both|either) ", "", text)


def holds(premises: Sequence[Told], conclusion: Told, order: list[str]) -> bool:
    """Whether there is no counterexample."""
    always = [premise for premise in premises if premise.on == "all"]
    individual_premises = [premise for premise in premises if premise.on == "one"]
    existential_premises = [premise for premise in premises if premise.on == "some"]
    if conclusion.on == "some":
        starting_points = [[*always, premise] for premise in existential_premises] or [always]
        if individual_premises:
            starting_points.append([*always, *individual_premises])
        return not all(
            has_counterexample(premise_set, order, conclusion) for premise_set in starting_points
        )
    individuals = individual_premises if conclusion.on == "one" else []
    return not has_counterexample([*always, *individuals], order, conclusion)


def has_counterexample(true: Sequence[Told], order: list[str], false: Told) -> bool:
    """Whether an individual is all of this, and not the last."""

    def fits(values: dict[str, bool]) -> bool:
        newest = order[len(values) - 1] if values else ""
        for statement in true:
            decided = newest in statement.kinds and statement.kinds <= values.keys()
            if decided and not eval(statement.code, {"__builtins__": {}}, values):
                return False
        if newest in false.kinds and false.kinds <= values.keys():
            return not eval(false.code, {"__builtins__": {}}, values)
        return True

    def search(values: dict[str, bool]) -> bool:
        if not fits(values):
            return False
        if len(values) == len(order):
            return True
        kind = order[len(values)]
        return any(search({**values, kind: value}) for value in (True, False))

    return search({})
