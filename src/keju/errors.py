"""The errors of Keju, in one small tree.

    KejuError                  printed as one line, without a traceback
    ├── UsageError       (2)   the command or configuration cannot be carried out as given
    │   ├── ConfigError        a setting is unknown, impossible or contradicts another
    │   ├── DataError          a data file is missing, broken or not as expected
    │   │   └── WriteError     a file cannot be written; the run can be resumed
    │   └── MissingExtra       an optional part is not installed; names the part to install
    ├── RunIncomplete    (4)   the run stopped early and can be resumed
    ├── EndpointError    (5)   the endpoint or its key refuses to work
    └── Interrupted      (130) Ctrl-C; the state is saved

The number is the exit code of the command.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any

from keju.messages import Language, current_language, text_of

if TYPE_CHECKING:
    from keju.types import Notice as Notice
else:

    def __getattr__(name: str) -> Any:
        """Import `Notice`, a struct, on first use, since the help pages need no structs."""
        if name != "Notice":
            raise AttributeError(f"module 'keju.errors' has no attribute '{name}'")
        from keju.types import Notice

        return Notice


class KejuError(Exception):
    """An error that the user can understand and act on, in one clear line.

    `code` names the case in the catalogues of messages, and `values` fill its sentence. A sentence
    in place of a code is used as it is. ``str(error)`` is English.
    """

    exit_code = 2

    def __init__(self, code: str, /, **values: Any) -> None:
        super().__init__(text_of(code, values))
        self.code = code
        self.values = values

    def text(self, language: Language = "en") -> str:
        """Return the sentence in a language."""
        return text_of(self.code, self.values, language)

    @property
    def message(self) -> str:
        """The sentence in the language of the terminal."""
        return self.text(current_language())

    @property
    def said(self) -> str:  # The name of 1.0
        """The name of `message` in Keju 1.0; it still works, with a DeprecationWarning."""
        import warnings

        text = "KejuError.said is deprecated: use KejuError.message"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return self.message

    @property
    def notice(self) -> Notice:
        """The error in a form that a file can store."""
        from keju.types import Notice

        return Notice(
            self.code, {name: _to_plain_value(value) for name, value in self.values.items()}
        )


def _to_plain_value(value: Any) -> Any:
    """Return a value of an error as JSON has it, and an error among them as a notice."""
    if isinstance(value, KejuError):
        return value.notice
    if hasattr(value, "code"):  # a notice, whose values may be anything
        return KejuError(value.code, **value.values).notice
    if isinstance(value, list | tuple):
        return [_to_plain_value(item_value) for item_value in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


class UsageError(KejuError):
    """The command cannot be carried out as given."""


class ConfigError(UsageError):
    """A setting is unknown, impossible or contradicts another."""


class DataError(UsageError):
    """A data file is missing, broken or not as expected."""


class WriteError(DataError):
    """A file cannot be written, for example because the disk is full."""

    def incomplete(self) -> RunIncomplete:
        """Return the same error for a run, which stops there and can be resumed."""
        return RunIncomplete(self.code, **self.values)


class MissingExtra(UsageError):
    """An optional part of Keju is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__("missing_extra", what=what, extra=extra)


class RunIncomplete(KejuError):
    """The run stopped before its end. Its answers are saved and it can be resumed."""

    exit_code = 4


class Inconclusive(KejuError):
    """Too few answers were graded for a conclusion."""

    exit_code = 3


class EndpointError(KejuError):
    """The endpoint cannot be used: wrong address, key or model, or it stays down."""

    exit_code = 5


class Interrupted(KejuError):
    """The user pressed Ctrl-C; the state is saved."""

    exit_code = 130


def find_nearest(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name that is most similar to `name`, or None."""
    import difflib

    folded = {candidate.casefold().lstrip("-"): candidate for candidate in valid}
    close_matches = difflib.get_close_matches(name.casefold().lstrip("-"), folded, n=1, cutoff=0.6)
    return folded[close_matches[0]] if close_matches else None


class TranslatableText(str):
    """A part of a sentence that can be shown in other languages too."""

    code: str
    values: dict[str, Any]

    def __new__(cls, code: str, /, **values: Any) -> TranslatableText:
        """Return the English text. `code` is one of the catalogues."""
        hint = super().__new__(cls, text_of(code, values))
        hint.code, hint.values = code, values
        return hint

    def text(self, language: Language = "en") -> str:
        """Return the text in a language."""
        return text_of(self.code, self.values, language)


class FileLine(TranslatableText):
    """A line of a file. It is created without a catalogue, since every row of a file may have
    one."""

    def __new__(cls, where: object, line: int | None) -> FileLine:
        """Return the English text."""
        place = str.__new__(cls, f"{where}, line {line}")
        place.code, place.values = "file_place", {"where": where, "line": line}
        return place


def quoted(names: Iterable[str]) -> list[TranslatableText]:
    """Return names for a list in a sentence, each in the quotation marks of its language."""
    return [TranslatableText("quoted", name=name) for name in names]


def join_hints(code: str, parts: Iterable[str]) -> str:
    """Return parts of a sentence as one. The code ``joined_…`` has the separator of each
    language."""
    return reduce(
        lambda left_part, right_part: TranslatableText(code, first=left_part, rest=right_part),
        parts,
    )


def near_hint(name: str, valid: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest valid name, or "" if none is near."""
    near_name = find_nearest(name, valid)
    return TranslatableText("did_you_mean", name=near_name) if near_name else ""


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest valid name, or the list of valid ones."""
    names = sorted(valid) if isinstance(valid, set | frozenset) else list(valid)
    if hint := near_hint(name, names):
        return hint
    return TranslatableText("valid_names", names=names) if len(names) <= 30 else ""
