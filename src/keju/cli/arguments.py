"""How arguments are read: several values after one flag, and clear words for a missing value."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from typer.core import TyperCommand

from keju.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    import typer


class StrictCommand(TyperCommand):
    """A command that never takes the next flag for a value (``--model --limit 5``)."""

    several: ClassVar[tuple[str, ...]] = ()
    """Flags that take all values up to the next flag."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Check that every flag has its value, spread repeated values, and parse."""
        valued, known = self._flags()
        for flag, value in pairwise([*args, ""]):
            if flag == "--":
                break
            if flag in valued and (not value or value in known):
                raise UsageError(f"{flag} needs a value")
        return super().parse_args(ctx, spread(args, self.several))

    def _flags(self) -> tuple[set[str], set[str]]:
        valued: set[str] = set()
        known: set[str] = {"-h", "--help"}
        for param in self.params:
            names = {name for name in (*param.opts, *param.secondary_opts) if name[:1] == "-"}
            known |= names
            if not getattr(param, "is_flag", False):
                valued |= names
        return valued, known


def spread(args: Sequence[str], several: Container[str]) -> list[str]:
    """Rewrite ``--datasets a b`` as ``--datasets a --datasets b`` for the flags in `several`."""
    result: list[str] = []
    open_flag, wants_value = "", False
    for arg in args:
        if arg.startswith("-"):
            open_flag = arg.partition("=")[0] if arg.partition("=")[0] in several else ""
            wants_value = open_flag == arg
        elif open_flag and not wants_value:
            result.append(open_flag)
        else:
            wants_value = False
        result.append(arg)
    return result
