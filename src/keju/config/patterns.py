r"""Regular expressions from users and exam files, matched in time linear in the text.

Python's own engine tries alternatives one after the other. ``(a|aa)+$`` on forty letters takes
practically forever, and Ctrl-C does not work meanwhile. RE2 follows all alternatives at once.

Python's parser reads the pattern, and this module writes it again for RE2. So ``\d``, ``\w``,
``\s``, ``.`` and ``$`` mean the same as in Python, also beyond ASCII. Only ``\b`` differs: it knows
ASCII letters, digits and ``_``. Constructs that need more than one pass, such as a backreference,
are refused by name.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from keju.config.strict import InvalidValue
from keju.types import Notice

MOST_MEMORY = 64 << 20
r"""The most bytes for one pattern. A larger one, such as ``(\w{900}){900}``, is refused."""
MOST_WORK = 100_000_000
"""The most matches times characters, about one second of work: each match may scan the whole rest.
"""
END = 10_000
"""Characters at the end of a text that are searched if it has too many matches for its length."""

_REFUSED = {
    "ASSERT": "pattern_lookaround",
    "ASSERT_NOT": "pattern_lookaround",
    "GROUPREF": "pattern_backreference",
    "GROUPREF_EXISTS": "pattern_conditional",
    "ATOMIC_GROUP": "pattern_atomic",
    "POSSESSIVE_REPEAT": "pattern_possessive",
}
"""Operations of Python's parser that need more than one pass."""
_POSITIONS = {
    "AT_BEGINNING": (r"\A", "(?m:^)"),
    "AT_BEGINNING_STRING": (r"\A", r"\A"),
    "AT_END": (r"(?:\n?\z)", "(?m:$)"),
    "AT_END_STRING": (r"\z", r"\z"),
    "AT_BOUNDARY": (r"\b", r"\b"),
    "AT_NON_BOUNDARY": (r"\B", r"\B"),
}
"""Positions in RE2's syntax, without and with ``(?m)``."""
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d+",
    "CATEGORY_NOT_DIGIT": r"\D+",
    "CATEGORY_SPACE": r"\s+",
    "CATEGORY_NOT_SPACE": r"\S+",
    "CATEGORY_WORD": r"\w+",
    "CATEGORY_NOT_WORD": r"\W+",
}
"""Runs of a category of characters in Python's syntax."""


class SafePattern:
    """A pattern that is safe to use on any text."""

    def __init__(self, pattern: str) -> None:
        """Raise ValueError with one line if the pattern is invalid or cannot run in linear time."""
        import re2

        try:
            re.compile(pattern)
            parsed = importlib.import_module("re._parser").parse(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise InvalidValue("config_not_pattern", problem=error) from None
        options = re2.Options()
        options.log_errors, options.max_mem = False, MOST_MEMORY
        fold = "(?i)" if parsed.state.flags & re.IGNORECASE else ""
        try:
            self._engine = re2.compile(fold + _to_re2(parsed, parsed.state.flags), options)
        except re2.error as error:
            problem = error.args[0].decode("utf-8", "replace").partition(":")[0]
            raise InvalidValue("config_not_pattern", problem=problem) from None
        except RecursionError as error:
            raise InvalidValue("config_not_pattern", problem=error) from None
        self._group = 1 if self._engine.groups else 0

    def first_match(self, text: str) -> str:
        """Return the first group, or else the whole, of the first match; empty without a match."""
        match = self._engine.search(text)
        return (match[self._group] if match is not None else None) or ""

    def all_matches(self, text: str) -> list[str]:
        """Return the same for all matches. If there are too many, return those near the end of the
        text."""
        match_limit = MOST_WORK // (len(text) + 1) + 1
        matches = list(islice(self._engine.finditer(text), match_limit + 1))
        if len(matches) > match_limit:
            matches = list(self._engine.finditer(text[-END:]))
        return [match[self._group] or "" for match in matches]


compile_pattern = lru_cache(maxsize=64)(SafePattern)
"""`SafePattern` with a cache."""


def _to_re2(sequence: Any, flags: int) -> str:
    """Return a sequence of parsed operations in RE2's syntax."""
    return "".join(_operation_to_re2(str(name), argument, flags) for name, argument in sequence)


def _operation_to_re2(name: str, argument: Any, flags: int) -> str:
    """Return one operation in RE2's syntax; ``(LITERAL, 97)`` is ``a``."""
    if name in _REFUSED:
        raise InvalidValue("config_pattern_construct", construct=Notice(_REFUSED[name]))
    if name == "LITERAL":
        return _escape_character(argument)
    if name == "NOT_LITERAL":
        return f"[^{_escape_character(argument)}]"
    if name == "ANY":
        return "(?s:.)" if flags & re.DOTALL else r"[^\n]"
    if name == "IN":
        return _set_to_re2(argument, flags)
    if name == "AT":
        return _POSITIONS[str(argument)][bool(flags & re.MULTILINE)]
    if name == "BRANCH":
        return f"(?:{'|'.join(_to_re2(branch, flags) for branch in argument[1])})"
    if name == "SUBPATTERN":
        group, added, removed, inner = argument
        expression = _to_re2(inner, (flags | added) & ~removed)
        if (added | removed) & re.IGNORECASE:
            expression = f"(?{'-' * bool(removed & re.IGNORECASE)}i:{expression})"
        return f"({expression})" if group else f"(?:{expression})"
    minimum, maximum, inner = argument  # MAX_REPEAT, MIN_REPEAT
    unbounded = maximum is importlib.import_module("re._constants").MAXREPEAT
    times = f"{{{minimum},{'' if unbounded else maximum}}}" + "?" * (name == "MIN_REPEAT")
    return f"(?:{_to_re2(inner, flags)}){times}"


def _set_to_re2(elements: Iterable[tuple[Any, Any]], flags: int) -> str:
    r"""Return a set of characters: ``[^\d_]`` is ``[^``, the ranges of all digits, and ``_]``."""
    negated, members = "", []
    for name, argument in elements:
        if str(name) == "NEGATE":
            negated = "^"
        elif str(name) == "CATEGORY":
            ranges = _category_ranges(str(argument), flags & re.ASCII)
            members += [
                f"{_escape_character(start)}-{_escape_character(end)}" for start, end in ranges
            ]
        elif str(name) == "RANGE":
            members.append(f"{_escape_character(argument[0])}-{_escape_character(argument[1])}")
        else:
            members.append(_escape_character(argument))
    return f"[{negated}{''.join(members)}]"


@cache
def _category_ranges(category: str, flags: int) -> list[tuple[int, int]]:
    """Return the characters of a category in Python's sense, as ranges: ``(48, 57)``."""
    all_characters = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    runs = re.findall(_CATEGORIES[category], all_characters, flags)
    return [(ord(run[0]), ord(run[-1])) for run in runs]


def _escape_character(point: int) -> str:
    """Return one character, escaped for use inside and outside of a set."""
    return f"\\x{{{point:x}}}"
