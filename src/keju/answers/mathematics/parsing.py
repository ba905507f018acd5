"""Read a mathematical answer as a tree of nodes.

The grammar is that of answers, not of all LaTeX: sums, products, powers, fractions, roots and
common functions; tuples, intervals, sets, unions, lists and matrices; relations; numbers with
units, per cent, degrees or a base; texts. Everything else is `Unparsable`. The parser never goes
back, and its depth is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from keju.answers.mathematics.notation import (
    MOST_CHARACTERS,
    TEXT_COMMAND,
    clean,
    tokenize,
)

MOST_DEPTH = 40
"""The deepest nesting of braces and brackets."""
MOST_DIGITS = 400
"""The longest number, in digits."""


class Unparsable(ValueError):
    """A text that is not an answer in this grammar."""


class Node(NamedTuple):
    """A part of an answer."""

    kind: str
    """For example ``number``, ``symbol``, ``sum``, ``tuple``, ``relation``, ``text``."""
    items: tuple[Node, ...] = ()
    value: Any = None
    """The value of a number, the name of a symbol or function, the brackets of a tuple."""


FUNCTIONS = frozenset(
    """
    sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln exp
    """.split()  # noqa: SIM905
)
SYMBOL_COMMANDS = frozenset(
    """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi
    rho sigma tau phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell
    """.split()  # noqa: SIM905
)
CONSTANTS = {"\\pi": "pi", "\\infty": "inf", "\\emptyset": "empty", "\\R": "reals"}
WORD_CONSTANTS = {"pi": "pi", "infinity": "inf", "infty": "inf", "inf": "inf"}
SEPARATOR_WORDS = frozenset({"and", "or"})
SHORT_UNITS = frozenset(
    """
    cm mm km kg mg ml lb lbs ft in yd mi mph kph sq deg sec min hr hrs units unit
    """.split()  # noqa: SIM905
)
RELATIONS = frozenset({"=", "<", ">", "\\le", "\\ge", "\\ne", "\\in", "\\approx", "\\equiv", ":"})
SET_OPERATORS = frozenset({"\\cup", "\\cap", "\\setminus"})
MULTIPLICATIONS = frozenset({"*", "\\cdot", "\\times"})
DIVISIONS = frozenset({"/", "\\div"})
CLOSING = frozenset(
    {")", "]", "}", "\\}", "|", "\\rangle", "\\rfloor", "\\rceil", "\\end", "&", "\\\\"}
)
PAIRS = {"(": ")", "[": "]", "\\{": "\\}", "\\langle": "\\rangle"}
ROUNDING = {"\\lfloor": ("\\rfloor", "floor"), "\\lceil": ("\\rceil", "ceil")}
TEXT_MARK = "\0"
"""Begins a token that is the text of ``\\text{…}``."""

MINUS_ONE = Node("number", value=Fraction(-1))


def number(text: str) -> Node:
    """Return the node of a number in digits."""
    if len(text) > MOST_DIGITS:
        raise Unparsable("number")
    return Node("number", value=Fraction(text))


def negate(node: Node) -> Node:
    """Return the negative of a node."""
    if node.kind == "number":
        return Node("number", value=-node.value)
    return Node("product", (MINUS_ONE, node))


class TokenReader:
    """The place in a list of tokens, and how deep the brackets around it are."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.place = 0
        self.depth = 0

    def peek(self, ahead: int = 0) -> str:
        """Return the next token; empty at the end."""
        place = self.place + ahead
        return self.tokens[place] if place < len(self.tokens) else ""

    def take(self) -> str:
        """Return the next token and go on."""
        token = self.peek()
        if not token:
            raise Unparsable("end")
        self.place += 1
        return token

    def expect(self, token: str) -> None:
        """Go on if the next token is `token`."""
        if self.take() != token:
            raise Unparsable(token)

    def nested(self, read: Callable[[], Node]) -> Node:
        """Call `read` one level deeper."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise Unparsable("depth")
        node = read()
        self.depth -= 1
        return node


@lru_cache(maxsize=256)
def parse(text: str, *, split_commas: bool = False) -> Node:
    """Return the tree of an answer. Raise `Unparsable` if it is none in this grammar."""
    if len(text) > MOST_CHARACTERS:
        raise Unparsable("length")
    cleaned = clean(text, split_commas=split_commas).rstrip(".;")
    texts: list[str] = []

    def mark(match: Any) -> str:
        texts.append(match[1].strip())
        return f" {TEXT_MARK} "

    tokens = tokenize(TEXT_COMMAND.sub(mark, cleaned))
    stored = iter(texts)
    marked = [TEXT_MARK + next(stored) if token == TEXT_MARK else token for token in tokens]
    parser = _AnswerParser([token for token in marked if token != TEXT_MARK])
    return parser.read_all()


class _AnswerParser(TokenReader):
    """A recursive descent over the tokens of one answer."""

    # --- lists and relations ---

    def read_all(self) -> Node:
        """Return the whole answer."""
        if not self.tokens:
            raise Unparsable("empty")
        node = self.read_list()
        if self.place < len(self.tokens):
            raise Unparsable(self.peek())
        return node

    def read_list(self) -> Node:
        """Return one item, or a list of items with commas, ``and`` or ``or`` between them."""
        items = [self.read_relation()]
        while self.skip_separators():
            if not self.peek() or self.peek() in CLOSING:
                break
            items.append(self.read_relation())
        return items[0] if len(items) == 1 else Node("list", tuple(items))

    def skip_separators(self) -> bool:
        """Skip ``,``, ``;``, ``and``; return whether there was one."""
        start = self.place
        while self.peek() in (",", ";") or self.peek().removeprefix(TEXT_MARK) in SEPARATOR_WORDS:
            self.place += 1
        return self.place > start

    def read_relation(self) -> Node:
        """Return an expression, or several with relations between them."""
        items, signs = [self.read_union()], []
        while self.peek() in RELATIONS:
            signs.append(self.take())
            items.append(self.read_union())
        return items[0] if not signs else Node("relation", tuple(items), tuple(signs))

    def read_union(self) -> Node:
        """Return a sum, or sets with operators between them."""
        node = self.read_sum()
        while self.peek() in SET_OPERATORS:
            sign = self.take()
            node = Node("union", (node, self.read_sum()), sign)
        return node

    # --- arithmetic ---

    def read_sum(self) -> Node:
        """Return a sum of products."""
        terms = [self.read_signed_product()]
        while self.peek() in ("+", "-", "\\pm", "\\mp"):
            if self.peek() in ("\\pm", "\\mp"):
                self.take()
                left = terms[0] if len(terms) == 1 else Node("sum", tuple(terms))
                terms = [Node("either", (left, self.read_product()))]
                continue
            terms.append(self.read_signed_product())
        return terms[0] if len(terms) == 1 else Node("sum", tuple(terms))

    def read_signed_product(self) -> Node:
        """Return a product with the signs before it."""
        negative = False
        while self.peek() in ("+", "-"):
            negative ^= self.take() == "-"
        if self.peek() in ("\\pm", "\\mp"):
            self.take()
            zero = Node("number", value=Fraction(0))
            return Node("either", (zero, self.read_product()))
        product = self.read_product()
        return negate(product) if negative else product

    def read_product(self) -> Node:
        """Return a product of powers; factors may follow each other without a sign."""
        node = self.read_power()
        is_literal = self.is_digits(-1)
        while True:
            token = self.peek()
            if token in MULTIPLICATIONS:
                self.take()
                node = Node("product", (node, self.read_factor_after_sign()))
            elif token in DIVISIONS:
                self.take()
                node = Node("quotient", (node, self.read_factor_after_sign()))
            elif self.begins_factor(token):
                node = self.read_adjacent(node, is_literal=is_literal)
                if node.kind == "unit":
                    return node
            else:
                return node
            is_literal = False

    def read_factor_after_sign(self) -> Node:
        """Return the factor after a sign of multiplication or division: ``-3`` in ``2 * -3``."""
        if self.peek() == "-":
            self.take()
            return negate(self.read_power())
        return self.read_power()

    def read_adjacent(self, node: Node, *, is_literal: bool) -> Node:
        """Return `node` with the factor that follows directly: ``2x``, ``1\\frac14``, ``5 cm``."""
        token = self.peek()
        if self.is_unit(token):
            return self.read_unit(node)
        if is_literal and token[0].isdigit():
            return Node("sum", (node, self.read_plain_fraction()))
        begins_fraction = token == "\\frac"
        factor = self.read_power()
        if is_literal and begins_fraction and _is_proper_fraction(factor):
            return Node("sum", (node, factor))
        if token[0].isdigit():
            raise Unparsable("two numbers")
        return Node("product", (node, factor))

    def read_plain_fraction(self) -> Node:
        """Return the fraction of a mixed number: ``1/4`` in ``1 1/4``."""
        numerator = number(self.take())
        self.expect("/")
        if not self.is_digits(0):
            raise Unparsable("fraction")
        fraction = Node("quotient", (numerator, number(self.take())))
        if not _is_proper_fraction(fraction):
            raise Unparsable("two numbers")
        return fraction

    def is_digits(self, ahead: int) -> bool:
        """Whether the token at a distance is a whole number."""
        return self.place + ahead >= 0 and self.peek(ahead).isdecimal()

    def is_unit(self, token: str) -> bool:
        """Whether a token after a number is the name of a unit."""
        if token[0] == TEXT_MARK:
            return token.removeprefix(TEXT_MARK) not in SEPARATOR_WORDS
        return token.isalpha() and (token in SHORT_UNITS or _is_word(token))

    def read_unit(self, node: Node) -> Node:
        """Return a number with the unit that follows: ``5 square feet``, ``5 cm^2``."""
        words: list[str] = []
        while token := self.peek():
            if self.begins_factor(token) and (self.is_unit(token) or token.isalpha()):
                words.append(self.take().removeprefix(TEXT_MARK))
            elif token == "^" and words:
                self.take()
                words.append(self.read_raw())
            elif token == "/" and words:
                words.append(self.take())
            else:
                break
        return Node("unit", (node,), " ".join(words).strip().casefold())

    def read_power(self) -> Node:
        """Return a primary expression with what follows it: ``!``, ``^2``, ``%``, ``^\\circ``."""
        node = self.read_primary()
        while self.peek() in ("^", "!", "%", "\\%", "'", "**") or self.is_double_star():
            token = self.take()
            if token == "!":
                node = Node("function", (node,), "factorial")
            elif token in ("%", "\\%"):
                node = Node("percent", (node,))
            elif token == "'":
                node = Node("function", (node,), "prime")
            else:
                node = self.read_exponent(node, is_double=token == "*")
        return node

    def is_double_star(self) -> bool:
        """Whether ``**`` follows."""
        return self.peek() == "*" and self.peek(1) == "*"

    def read_exponent(self, node: Node, *, is_double: bool) -> Node:
        """Return a power, or an angle in degrees, after the sign of the power."""
        if is_double:
            self.expect("*")
        if self.is_circle():
            return Node("degrees", (node,))
        exponent = self.nested(self.read_argument)
        return Node("power", (node, exponent))

    def is_circle(self) -> bool:
        """Skip ``\\circ`` or ``{\\circ}``; return whether it was there."""
        if self.peek() == "\\circ":
            self.place += 1
            return True
        if (self.peek(), self.peek(1), self.peek(2)) == ("{", "\\circ", "}"):
            self.place += 3
            return True
        return False

    def read_argument(self) -> Node:
        """Return the argument of a command or exponent: a group, or one token with its sign."""
        if self.peek() == "{":
            return self.read_group("{", "}")
        if self.peek() in ("-", "+"):
            return negate(self.read_argument()) if self.take() == "-" else self.read_argument()
        return self.read_primary()

    def read_raw(self) -> str:
        """Return the text of a group or of one token: the base in ``12_{8}``."""
        if self.peek() != "{":
            return self.take()
        self.take()
        parts: list[str] = []
        while self.peek() != "}":
            parts.append(self.take().removeprefix(TEXT_MARK))
        self.take()
        return "".join(parts)

    # --- primary expressions ---

    def begins_factor(self, token: str) -> bool:
        """Whether a token begins a factor that may follow another without a sign."""
        if not token or token in CLOSING or token in RELATIONS or token in SET_OPERATORS:
            return False
        if token[0] == TEXT_MARK or token.isalnum():
            return token.removeprefix(TEXT_MARK) not in SEPARATOR_WORDS
        if token[0] == ".":
            return len(token) > 1
        return token in ("(", "[", "{", "\\{") or (
            token[0] == "\\"
            and token[1:].isalpha()
            and token not in ("\\pm", "\\mp", "\\cdot", "\\times", "\\div")
        )

    def read_primary(self) -> Node:
        """Return a number, a symbol, a word, a command with its arguments, or a bracket."""
        token = self.take()
        if token[0].isdigit() or (token[0] == "." and len(token) > 1):
            return self.read_number(token)
        if token[0] == TEXT_MARK:
            return self.read_text(token.removeprefix(TEXT_MARK))
        if token.isalpha():
            return self.read_word(token)
        if token == "|":
            return self.read_bars()
        if token == "{":
            self.place -= 1
            return self.read_group("{", "}")
        if token in PAIRS:
            return self.read_bracket(token)
        return self.read_command(token)

    def read_number(self, token: str) -> Node:
        """Return a number, perhaps with a base: ``12_8``."""
        if self.peek() == "_":
            self.take()
            base = self.read_raw()
            if not base.isdecimal() or len(base) > 3:
                raise Unparsable("base")
            return Node("based", value=(token, base))
        return number(token)

    def read_text(self, text: str) -> Node:
        """Return a text with the words that follow it."""
        words = [text]
        while self.peek() and (self.peek()[0] == TEXT_MARK or self.peek().isalpha()):
            words.append(self.take().removeprefix(TEXT_MARK))
        return Node("text", value=" ".join(words).strip().casefold())

    def read_word(self, token: str) -> Node:
        """Return letters: a function, a constant, a text, or symbols multiplied."""
        if token in FUNCTIONS:
            return self.read_function(token)
        if token == "sqrt" or (token == "abs" and self.peek() == "("):
            return Node("function", (self.nested(self.read_argument),), token)
        if token in WORD_CONSTANTS:
            return Node("constant", value=WORD_CONSTANTS[token])
        if _is_word(token):
            return self.read_text(token)
        symbols = [Node("symbol", value=letter) for letter in token]
        symbols[-1] = self.read_symbol(token[-1])
        return symbols[0] if len(symbols) == 1 else Node("product", tuple(symbols))

    def read_symbol(self, name: str) -> Node:
        """Return a symbol with its subscript."""
        if self.peek() == "_":
            self.take()
            name = f"{name}_{self.read_raw()}"
        return Node("symbol", value=name)

    def read_function(self, name: str) -> Node:
        """Return a function with its argument: ``\\sin^2 x``, ``\\log_2 8``."""
        base: tuple[Node, ...] = ()
        exponent: Node | None = None
        while self.peek() in ("_", "^"):
            if self.take() == "_":
                base = (self.nested(self.read_argument),)
            else:
                exponent = self.nested(self.read_argument)
        argument = self.nested(self.read_function_argument)
        if exponent == MINUS_ONE:
            return Node("function", (argument,), f"arc{name}")
        node = Node("function", (argument, *base), name)
        return node if exponent is None else Node("power", (node, exponent))

    def read_function_argument(self) -> Node:
        """Return the argument of a function: a bracket, or factors up to the next function."""
        if self.peek() in ("(", "[", "{"):
            return self.read_power()
        node = self.read_power()
        while self.begins_factor(self.peek()) and not self.begins_function(self.peek()):
            node = Node("product", (node, self.read_power()))
        return node

    def begins_function(self, token: str) -> bool:
        """Whether a token is the name of a function, or a text."""
        return token.removeprefix("\\") in FUNCTIONS or token[0] == TEXT_MARK or token == "("

    def read_group(self, opening: str, closing: str) -> Node:
        """Return the content of braces."""
        self.expect(opening)
        node = self.nested(self.read_list)
        self.expect(closing)
        return node

    def read_bracket(self, opening: str) -> Node:
        """Return a bracket: an expression, a tuple, an interval or a set."""
        if opening == "\\{" and self.peek() == "\\}":
            self.take()
            return Node("constant", value="empty")
        node = self.nested(self.read_list)
        closing = self.take()
        items = node.items if node.kind == "list" else (node,)
        if opening == "\\{":
            if closing != "\\}":
                raise Unparsable("set")
            return Node("set", items)
        if closing not in (")", "]", "\\rangle"):
            raise Unparsable("bracket")
        if node.kind == "list":
            is_vector = opening == "\\langle"
            return Node("tuple", items, "()" if is_vector else opening + closing)
        return node

    def read_bars(self) -> Node:
        """Return an absolute value."""
        node = self.nested(self.read_sum)
        self.expect("|")
        return Node("function", (node,), "abs")

    def read_command(self, token: str) -> Node:
        """Return a LaTeX command with its arguments."""
        name = token[1:]
        if name in FUNCTIONS:
            return self.read_function(name)
        if token in CONSTANTS:
            return Node("constant", value=CONSTANTS[token])
        if name in SYMBOL_COMMANDS:
            return self.read_symbol(name)
        if token in ROUNDING:
            closing, function = ROUNDING[token]
            node = self.nested(self.read_sum)
            self.expect(closing)
            return Node("function", (node,), function)
        read = COMMANDS.get(name)
        if read is None:
            raise Unparsable(token)
        return read(self)

    def read_fraction(self) -> Node:
        """Return ``\\frac{1}{2}``, ``\\frac12`` or ``\\frac1{72}``."""
        self.split_digits()
        numerator = self.nested(self.read_argument)
        self.split_digits()
        return Node("quotient", (numerator, self.nested(self.read_argument)))

    def split_digits(self) -> None:
        """Make the first digit of the next number a separate token."""
        token = self.peek()
        if token.isdecimal() and len(token) > 1:
            self.tokens[self.place : self.place + 1] = [token[0], token[1:]]

    def read_binomial(self) -> Node:
        """Return ``\\binom{5}{2}``."""
        upper = self.nested(self.read_argument)
        return Node("function", (upper, self.nested(self.read_argument)), "binomial")

    def read_root(self) -> Node:
        """Return ``\\sqrt{2}``, ``\\sqrt[3]{2}`` or ``\\sqrt2``."""
        degree: tuple[Node, ...] = ()
        if self.peek() == "[":
            self.take()
            degree = (self.nested(self.read_sum),)
            self.expect("]")
        return Node("function", (self.nested(self.read_argument), *degree), "sqrt")

    def read_wrapped(self) -> Node:
        """Return the content of a command that changes only the look: ``\\boxed{5}``."""
        return self.nested(self.read_argument)

    def read_blackboard(self) -> Node:
        """Return a set of numbers: ``\\mathbb{R}``."""
        name = self.read_raw()
        return Node("constant", value="reals") if name == "R" else Node("symbol", value=name)

    def read_decorated(self) -> Node:
        """Return a symbol with a mark above it, ``\\overline{AB}``, as a symbol."""
        return Node("symbol", value=f"overline {self.read_raw()}")

    def read_matrix(self) -> Node:
        """Return ``\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}``."""
        name = self.read_raw()
        if not name.endswith(("matrix", "array")):
            raise Unparsable(name)
        if name == "array":
            self.read_raw()
        rows: list[list[Node]] = [[]]
        while self.peek() != "\\end":
            if self.peek() == "\\\\":
                self.take()
                rows.append([])
            elif self.peek() == "&":
                self.take()
            else:
                rows[-1].append(self.nested(self.read_sum))
        self.take()
        self.read_raw()
        full_rows = [row for row in rows if row]
        if not full_rows or len({len(row) for row in full_rows}) > 1:
            raise Unparsable("matrix")
        items = tuple(node for row in full_rows for node in row)
        kind = "determinant" if name == "vmatrix" else "matrix"
        return Node(kind, items, len(full_rows[0]))


COMMANDS: Mapping[str, Callable[[_AnswerParser], Node]] = {
    "frac": _AnswerParser.read_fraction,
    "binom": _AnswerParser.read_binomial,
    "sqrt": _AnswerParser.read_root,
    "boxed": _AnswerParser.read_wrapped,
    "fbox": _AnswerParser.read_wrapped,
    "mathbb": _AnswerParser.read_blackboard,
    "overline": _AnswerParser.read_decorated,
    "vec": _AnswerParser.read_decorated,
    "overrightarrow": _AnswerParser.read_decorated,
    "begin": _AnswerParser.read_matrix,
}


def _is_word(token: str) -> bool:
    """Whether letters are a word and not symbols multiplied: ``yes``, ``Evelyn``; not ``abc``."""
    return len(token) > 3 or token.casefold() in ("yes", "no", "odd", "red", "all", "day")


def _is_proper_fraction(node: Node) -> bool:
    """Whether a node is a fraction of two whole numbers, the smaller one above: ``\\frac14``."""
    if node.kind != "quotient" or any(item.kind != "number" for item in node.items):
        return False
    upper, lower = (item.value for item in node.items)
    return bool(0 < upper < lower and upper.denominator == lower.denominator == 1)
