"""A stream that claims to be a terminal."""

from __future__ import annotations

import io


class Terminal(io.StringIO):
    """Text that is written to a terminal."""

    def isatty(self) -> bool:
        """Always true, so that progress and colours are shown."""
        return True
