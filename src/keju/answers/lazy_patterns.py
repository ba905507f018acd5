"""Regular expressions that are compiled when they are first used.

Keju has hundreds of patterns for the ways in which models write answers. Compiling all of them
takes longer than a small run, and most runs use few of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

_NAMES = tuple(name for name in dir(re.Pattern) if not name.startswith("_"))
"""The methods and attributes of a compiled pattern."""


class LazyPattern:
    """A pattern that is compiled when one of its methods is first used."""

    def __init__(self, text: str | Callable[[], str], flags: int) -> None:
        self._text = text
        self._flags = flags
        if isinstance(text, str):
            self.pattern = text

    def __getattr__(self, name: str) -> Any:
        """Compile the pattern. After that, its methods are plain attributes of this object."""
        if name not in _NAMES:
            raise AttributeError(name)
        compiled = self._compile()
        self.__dict__.update({known: getattr(compiled, known) for known in _NAMES})
        return getattr(compiled, name)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, int]]:
        compiled = self._compile()
        return re.compile, (compiled.pattern, compiled.flags)

    def _compile(self) -> re.Pattern[str]:
        return re.compile(self._text if isinstance(self._text, str) else self._text(), self._flags)


def lazy_pattern(text: str | Callable[[], str], flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when it is first used. `text` may be a function."""
    return cast("re.Pattern[str]", LazyPattern(text, flags))
