r"""Patterns of users and exam files: regular expressions that take time linear in the text.

Python's own engine tries one way after the other: ``(a|aa)+$`` on forty letters takes for ever,
and nobody hears Ctrl-C meanwhile. RE2 follows all ways at once. A pattern is read by Python's
parser and written down again for RE2, so that ``\d``, ``\w``, ``\s``, ``.`` and ``$`` mean what
they mean in Python, beyond ASCII too; ``\b`` alone looks at ASCII letters, digits and ``_``. What
cannot be followed in one pass, such as a backreference, is refused by its name.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from keju.config.strict import Invalid
from keju.types import Notice

MOST_MEMORY = 64 << 20
r"""Bytes for one pattern; a larger one, such as ``(\w{900}){900}``, is refused."""
MOST_WORK = 100_000_000
"""Matches times characters of the text, about a second: each match may look at all that follows."""
END = 10_000
"""Characters at the end of a text that has too many matches for its length."""

_REFUSED = {
    "ASSERT": "pattern_lookaround",
    "ASSERT_NOT": "pattern_lookaround",
    "GROUPREF": "pattern_backreference",
    "GROUPREF_EXISTS": "pattern_conditional",
    "ATOMIC_GROUP": "pattern_atomic",
    "POSSESSIVE_REPEAT": "pattern_possessive",
}
"""Operations of Python's parser that need more than one pass."""
_PLACES = {
    "AT_BEGINNING": (r"\A", "(?m:^)"),
    "AT_BEGINNING_STRING": (r"\A", r"\A"),
    "AT_END": (r"(?:\n?\z)", "(?m:$)"),
    "AT_END_STRING": (r"\z", r"\z"),
    "AT_BOUNDARY": (r"\b", r"\b"),
    "AT_NON_BOUNDARY": (r"\B", r"\B"),
}
"""Places in RE2's words, without and with ``(?m)``."""
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d+",
    "CATEGORY_NOT_DIGIT": r"\D+",
    "CATEGORY_SPACE": r"\s+",
    "CATEGORY_NOT_SPACE": r"\S+",
    "CATEGORY_WORD": r"\w+",
    "CATEGORY_NOT_WORD": r"\W+",
}
"""Runs of a category of characters in Python's words."""


class Pattern:
    """A pattern that is safe to run on any text."""

    def __init__(self, pattern: str) -> None:
        """Raise ValueError, in one line, if it is no pattern or cannot be run in linear time."""
        import re2

        try:
            re.compile(pattern)
            parsed = importlib.import_module("re._parser").parse(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise Invalid("config_not_pattern", problem=error) from None
        options = re2.Options()
        options.log_errors, options.max_mem = False, MOST_MEMORY
        fold = "(?i)" if parsed.state.flags & re.IGNORECASE else ""
        try:
            self._engine = re2.compile(fold + _written(parsed, parsed.state.flags), options)
        except re2.error as error:
            problem = error.args[0].decode("utf-8", "replace").partition(":")[0]
            raise Invalid("config_not_pattern", problem=problem) from None
        except RecursionError as error:
            raise Invalid("config_not_pattern", problem=error) from None
        self._group = 1 if self._engine.groups else 0

    def first(self, text: str) -> str:
        """The first group, or all, of the first match; empty where there is none."""
        match = self._engine.search(text)
        return (match[self._group] if match is not None else None) or ""

    def every(self, text: str) -> list[str]:
        """The same of all matches; of too many for the length of the text those near its end."""
        most = MOST_WORK // (len(text) + 1) + 1
        matches = list(islice(self._engine.finditer(text), most + 1))
        if len(matches) > most:
            matches = list(self._engine.finditer(text[-END:]))
        return [match[self._group] or "" for match in matches]


compiled = lru_cache(maxsize=64)(Pattern)
"""`Pattern`, kept for the next call."""


def _written(sequence: Any, flags: int) -> str:
    """A sequence of parsed operations in RE2's words."""
    return "".join(_operation(str(name), argument, flags) for name, argument in sequence)


def _operation(name: str, argument: Any, flags: int) -> str:
    """One operation in RE2's words; ``(LITERAL, 97)`` is ``a``."""
    if name in _REFUSED:
        raise Invalid("config_pattern_construct", construct=Notice(_REFUSED[name]))
    if name == "LITERAL":
        return _sign(argument)
    if name == "NOT_LITERAL":
        return f"[^{_sign(argument)}]"
    if name == "ANY":
        return "(?s:.)" if flags & re.DOTALL else r"[^\n]"
    if name == "IN":
        return _set(argument, flags)
    if name == "AT":
        return _PLACES[str(argument)][bool(flags & re.MULTILINE)]
    if name == "BRANCH":
        return f"(?:{'|'.join(_written(way, flags) for way in argument[1])})"
    if name == "SUBPATTERN":
        group, added, removed, inner = argument
        written = _written(inner, (flags | added) & ~removed)
        if (added | removed) & re.IGNORECASE:
            written = f"(?{'-' * bool(removed & re.IGNORECASE)}i:{written})"
        return f"({written})" if group else f"(?:{written})"
    least, most, inner = argument  # MAX_REPEAT, MIN_REPEAT
    unbounded = most is importlib.import_module("re._constants").MAXREPEAT
    times = f"{{{least},{'' if unbounded else most}}}" + "?" * (name == "MIN_REPEAT")
    return f"(?:{_written(inner, flags)}){times}"


def _set(items: Iterable[tuple[Any, Any]], flags: int) -> str:
    r"""A set of characters: ``[^\d_]`` is ``[^`` with the ranges of all digits, and ``_]``."""
    negated, members = "", []
    for name, argument in items:
        if str(name) == "NEGATE":
            negated = "^"
        elif str(name) == "CATEGORY":
            ranges = _ranges(str(argument), flags & re.ASCII)
            members += [f"{_sign(first)}-{_sign(last)}" for first, last in ranges]
        elif str(name) == "RANGE":
            members.append(f"{_sign(argument[0])}-{_sign(argument[1])}")
        else:
            members.append(_sign(argument))
    return f"[{negated}{''.join(members)}]"


@cache
def _ranges(category: str, flags: int) -> list[tuple[int, int]]:
    """The characters of a category as Python sees it, from first to last: ``(48, 57)``."""
    every = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    runs = re.findall(_CATEGORIES[category], every, flags)
    return [(ord(run[0]), ord(run[-1])) for run in runs]


def _sign(point: int) -> str:
    """One character, safe inside and outside of a set."""
    return f"\\x{{{point:x}}}"
