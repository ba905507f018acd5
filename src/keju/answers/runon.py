"""Run-on: a model that answers and then goes on to invent the next question."""

from __future__ import annotations


def cut_run_on(text: str, starts: tuple[str, ...]) -> tuple[str, bool]:
    """Cut `text` before the first line that begins with one of `starts`.

    A reply that opens with such a line repeats its own question and is not cut there. Returns the
    text that is left and whether anything was cut.
    """
    opening = len(text) - len(text.lstrip()) if text[:1].isspace() else 0
    found = [text.find("\n" + start, opening) for start in starts]
    cuts = [position for position in found if position >= 0]
    return (text[: min(cuts)], True) if cuts else (text, False)
