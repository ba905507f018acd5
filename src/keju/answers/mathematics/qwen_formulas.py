r"""Formulas as Qwen2.5-Math's grader reads them, by the LaTeX grammar of sympy.

This grammar differs from that of answers in `parsing`, and verdicts depend on the differences:

- The longest beginning of a text that is a formula counts: ``1,-2`` is 1, and ``12_8`` is 12.
- ``1\frac{1}{2}`` is a product, ``7:5`` a quotient, ``1/2x`` is ``1/(2x)``.
- ``n(n+1)`` is a function of ``n+1``; words are products of letters; ``\cosx`` is a symbol.
- π, e and i are symbols, so ``2\pi`` does not equal ``6.2832``.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache

from keju.answers.mathematics.equivalence import TOLERANCE, is_close
from keju.answers.mathematics.notation import MOST_CHARACTERS
from keju.answers.mathematics.parsing import Node, TokenReader, Unparsable, negate, number
from keju.answers.mathematics.values import Undefined, exact_value, symbols_of, values_of

# `1,000.5`, `\frac`, `\{`, `dx`, `x`, `+`: one token; the last group is a sign.
_TOKEN = re.compile(
    r"\s+|(\d*(?:,\d{3})*\.\d+|\d+(?:,\d{3})*|\\[A-Za-z]+|\\.|d(?:[A-Za-z]|\\[A-Za-z]+)"
    r"|[A-Za-z]|[-+*/^_=<>!:,;'|&()\[\]{}])",
)
_ADDITION = frozenset("+-")
_MULTIPLICATION = frozenset({"*", "\\cdot", "\\times"})
_DIVISION = frozenset({"/", ":", "\\div"})
_RELATIONS = {
    "=": "=", "<": "<", ">": ">", "\\lt": "<", "\\gt": ">", "\\le": "<=", "\\leq": "<=",
    "\\ge": ">=", "\\geq": ">=", "\\neq": "!=",
}  # fmt: skip
_SIGNS = _ADDITION | _MULTIPLICATION | _DIVISION | _RELATIONS.keys() | set("^_!,;'&)]}|")
_GROUPS = {"(": ")", "[": "]", "{": "}", "\\{": "\\}"}
_BLANKS = frozenset({"\\,", "\\:", "\\;", "\\!", "\\ ", "\\quad", "\\qquad"})
_CLOSINGS = frozenset({"\\}", "\\rfloor", "\\rceil"})
_ROUNDING = {"\\lfloor": ("\\rfloor", "floor"), "\\lceil": ("\\rceil", "ceil")}
_FUNCTIONS = {
    f"\\{name}": name
    for name in (
        *("sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan"),
        *("sinh", "cosh", "tanh", "log", "ln", "lg", "exp"),
    )
}
_TEN = Node("number", value=Fraction(10))
_FEWEST_DIGITS = 9


def split(text: str) -> list[str]:
    """Return the tokens of a formula. Raise `Unparsable` at a character that has no meaning."""
    tokens, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise Unparsable(text[place])
        if match[1] and match[1] not in _BLANKS:
            tokens.append(match[1])
        place = match.end()
    return tokens


@lru_cache(maxsize=256)
def parse_formula(text: str) -> Node:
    """Return the tree of the longest beginning that is a formula, or raise `Unparsable`."""
    if len(text) > MOST_CHARACTERS:
        raise Unparsable("length")
    tokens = split(text.replace("\\\\", "\\"))
    return _FormulaParser(tokens).read_relation()


class _FormulaParser(TokenReader):
    """A recursive descent over the tokens of one formula."""

    def read_relation(self) -> Node:
        """Return an expression, or two with a relation between them."""
        left = self.read_sum()
        if self.peek() not in _RELATIONS:
            return left
        sign = _RELATIONS[self.take()]
        right = self.read_sum()
        if self.peek() in _RELATIONS:
            raise Unparsable("chain")
        return Node("relation", (left, right), (sign,))

    def read_sum(self) -> Node:
        """Return a sum of products."""
        terms = [self.read_product()]
        while self.peek() in _ADDITION:
            sign, term = self.take(), self.read_product()
            terms.append(negate(term) if sign == "-" else term)
        return terms[0] if len(terms) == 1 else Node("sum", tuple(terms))

    def read_product(self) -> Node:
        """Return factors with signs between them, from left to right."""
        node = self.read_signed()
        while self.peek() in _MULTIPLICATION or self.peek() in _DIVISION:
            kind = "quotient" if self.take() in _DIVISION else "product"
            node = Node(kind, (node, self.read_signed()))
        return node

    def read_signed(self) -> Node:
        """Return factors without a sign between them, after any signs."""
        negative = False
        while self.peek() in _ADDITION:
            negative ^= self.take() == "-"
        node = self.read_power()
        while self.begins_factor():
            node = Node("product", (node, self.read_power()))
        return negate(node) if negative else node

    def begins_factor(self) -> bool:
        """Whether the next token begins a factor."""
        token = self.peek()
        return bool(token) and token not in _SIGNS and token not in _CLOSINGS

    def read_power(self) -> Node:
        """Return a primary expression with its exponents and factorials."""
        node = self.read_primary()
        while self.peek() in ("^", "!"):
            if self.take() == "!":
                node = Node("function", (node,), "factorial")
            else:
                node = Node("power", (node, self.nested(self.read_atom)))
        return node

    def read_atom(self) -> Node:
        """Return the content of braces, or one number, symbol or command."""
        if self.peek() == "{" or self.peek()[:1].isalnum() or self.peek()[:1] in ("\\", "."):
            return self.read_primary()
        raise Unparsable(self.peek())

    def read_primary(self) -> Node:
        """Return a number, a symbol, a function, a command with its arguments, or a group."""
        token = self.take()
        if token in _GROUPS:
            node = self.nested(self.read_sum)
            self.expect(_GROUPS[token])
            return node
        if token == "|":
            node = self.nested(self.read_sum)
            self.expect("|")
            return Node("function", (node,), "abs")
        if token[0].isdigit() or (token[0] in ".," and len(token) > 1):
            return number(token.replace(",", ""))
        if token in _SIGNS or token in _CLOSINGS or (token[0] == "\\" and not token[1:].isalpha()):
            raise Unparsable(token)
        return self.read_command(token)

    def read_command(self, token: str) -> Node:
        """Return what a letter or a command begins."""
        if token in _FUNCTIONS:
            return self.read_function(_FUNCTIONS[token])
        if token in ("\\frac", "\\binom"):
            items = (self.read_braces(), self.read_braces())
            is_fraction = token == "\\frac"
            return Node("quotient", items) if is_fraction else Node("function", items, "binomial")
        if token == "\\sqrt":
            return self.read_root()
        if token in _ROUNDING:
            closing, name = _ROUNDING[token]
            node = self.nested(self.read_sum)
            self.expect(closing)
            return Node("function", (node,), name)
        return self.read_symbol(token)

    def read_braces(self) -> Node:
        """Return the content of braces."""
        self.expect("{")
        node = self.nested(self.read_sum)
        self.expect("}")
        return node

    def read_root(self) -> Node:
        """Return ``\\sqrt{2}`` or ``\\sqrt[3]{2}``."""
        degree: tuple[Node, ...] = ()
        if self.peek() == "[":
            self.take()
            degree = (self.nested(self.read_sum),)
            self.expect("]")
        return Node("function", (self.read_braces(), *degree), "sqrt")

    def read_symbol(self, name: str) -> Node:
        """Return a symbol with its index, or a function with its argument: ``f(x)``."""
        while self.peek() in ("_", "'"):
            if self.take() == "_":
                name = f"{name}_{self.nested(self.read_atom)}"
            else:
                name += "'"
        if self.peek() != "(":
            return Node("symbol", value=f"\\{name}" if name in ("e", "i") else name)
        self.take()
        argument = self.nested(self.read_sum)
        self.expect(")")
        values = ",".join(f"{row[0]:.{_FEWEST_DIGITS}g}" for row in values_of((argument,)))
        return Node("symbol", value=f"{name}({values})")

    def read_function(self, name: str) -> Node:
        """Return a function with its argument: ``\\sin^2x``, ``\\log_{2}8``."""
        base: tuple[Node, ...] = (_TEN,) if name in ("log", "lg") else ()
        exponent: Node | None = None
        while self.peek() in ("_", "^"):
            if self.take() == "_":
                self.split_base()
                base = (self.nested(self.read_atom),)
            else:
                exponent = self.nested(self.read_atom)
        name = "log" if name == "lg" else name
        argument = self.nested(self.read_argument)
        if exponent == Node("number", value=Fraction(-1)):
            return Node("function", (argument,), f"arc{name}")
        node = Node("function", (argument, *base), name)
        return node if exponent is None else Node("power", (node, exponent))

    def split_base(self) -> None:
        """Make the first digit a base if nothing else follows: ``\\log_28``."""
        token = self.peek()
        if token.isdecimal() and len(token) > 1 and self.place + 1 == len(self.tokens):
            self.tokens[self.place :] = [token[0], token[1:]]

    def read_argument(self) -> Node:
        """Return a bracket, or factors up to the next function."""
        if self.peek() == "(":
            return self.read_primary()
        node = self.read_signed_power()
        while self.begins_factor() and self.peek() not in _FUNCTIONS:
            node = Node("product", (node, self.read_power()))
        return node

    def read_signed_power(self) -> Node:
        """Return a power after any signs."""
        negative = False
        while self.peek() in _ADDITION:
            negative ^= self.take() == "-"
        node = self.read_power()
        return negate(node) if negative else node


# `{1,2}`: a set without nested brackets.
_SET = re.compile(r"\{([^{}()\[\]\\]+,[^{}()\[\]\\]*)\}")


def is_same_set(value: str, target: str) -> bool:
    """Return whether two texts are sets with the same items in any order."""
    sets = [_SET.fullmatch(text) for text in (value, target)]
    items = [{item.strip() for item in match[1].split(",")} for match in sets if match]
    return len(items) == 2 and items[0] == items[1]


def is_same_formula(value: str, target: str, tolerance: float) -> bool:
    """Return whether two formulas are equal; `tolerance` is for numbers without symbols."""
    if is_same_set(value, target):
        return True
    try:
        lhs, rhs = parse_formula(value), parse_formula(target)
        if lhs.kind == rhs.kind == "relation":
            lhs, rhs = (Node("sum", (node.items[0], negate(node.items[1]))) for node in (lhs, rhs))
            return _is_same(lhs, rhs) or _is_same(lhs, negate(rhs))
        return _is_same(lhs, rhs, tolerance)
    except (Unparsable, Undefined, RecursionError):
        return False


def _is_same(lhs: Node, rhs: Node, tolerance: float = TOLERANCE) -> bool:
    """Return whether two expressions have the same values; symbols need exact ones."""
    if lhs == rhs:
        return True
    exact = exact_value(lhs), exact_value(rhs)
    if exact[0] is not None and exact[1] is not None:
        return math.isclose(exact[0], exact[1], rel_tol=tolerance)
    if symbols_of(lhs) or symbols_of(rhs):
        tolerance = TOLERANCE
    rows = values_of((lhs, rhs))
    return bool(rows) and all(is_close(a, b, tolerance) for a, b in rows)
