"""Options that are named by their text, exactly as it was shown."""

from __future__ import annotations

from collections.abc import Sequence


def option_as_shown(segment: str, choices: Sequence[str], labels: str) -> str | None:
    """The label of the one choice that `segment` repeats letter for letter.

    Letter case counts, since some exams tell options apart by nothing else (``BB`` and ``Bb``).
    One full stop after the text is allowed for. None where no choice or more than one fits.
    """
    bare = segment.strip()
    ended = bare.removesuffix(".")
    found = [label for label, c in zip(labels, choices, strict=False) if c.strip() == bare]
    if not found and ended != bare:
        found = [label for label, c in zip(labels, choices, strict=False) if c.strip() == ended]
    return found[0] if len(found) == 1 else None


def flattened(text: str, choices: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """`text` and `choices` with the options of several lines written on one.

    What is announced ends with its line; only a flat option can be found there as a whole.
    """
    flat = tuple(" ".join(choice.split()) if "\n" in choice else choice for choice in choices)
    for choice, line in zip(choices, flat, strict=True):
        if choice is not line and choice.strip():
            text = text.replace(choice.strip(), line)
    return text, flat
