"""Last lines that state an answer without any marker: ``= -50``, ``Total: 8``, a verdict.

Only a whole line counts, and only where nothing but an answer of the subset's kind is stated in it:
a letter is never taken out of prose.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from keju.answers.clean import DRESSING, clean_segment
from keju.benchmarks.bbh.facts import SUBSETS
from keju.types import Sample

Whole = Callable[[str, Sample], str | None]
"""The answer of a text that is nothing but an answer; None for any other text."""

_HEADING = re.compile(r"(?:#{1,6}|>|=>|→|⇒|∴)\s*+")
_OPENING = (
    r"(?:(?:so|therefore|thus|hence|consequently|finally|overall|ultimately|in conclusion"
    r"|in summary|in total|as a result|this means(?: that)?|we (?:can )?conclude that)\b"
    r"[,:]?\s{1,3})"
)
_NAMED = re.compile(
    rf"{_OPENING}{{0,2}}(?:the |my |our )?(?:(?:final|overall|grand|total|correct|sorted) )?"
    r"(?:result|total|output|conclusion|verdict|decision|count|sum|value|solution|choice"
    r"|selection|evaluation|list|words|order|sequence|sorted|number)"
    r"(?: (?:list|count|order|words|number|value|sequence|of (?:the )?(?:list|words|expression)))?"
    r"[*_]*+\s{0,2}(?:[:：=]|is\b:?|are\b:?|[-–—]\s)[*_]*+",
    re.IGNORECASE,
)
"""A noun that announces the outcome, with what follows it up to the answer."""

_COUNTED = re.compile(
    rf"{_OPENING}{{0,2}}(?:the )?(?:total )?number of [a-z ]{{1,40}}? is\b:?|"
    rf"{_OPENING}{{0,2}}(?:the )?(?:whole |entire |given |final )?expression "
    r"(?:is|evaluates to|simplifies to|equals|is equal to)\b:?",
    re.IGNORECASE,
)
_PREMISES = r"(?:,? (?:given|from|based on|by) (?:the|these|all the)[a-z ]{0,30} premises?,?)?"
_ADJECTIVE = r"(?:not )?(?:(?:deductively|logically) )?(?:valid|invalid|plausible|implausible)"
_VERDICT = re.compile(
    rf"{_OPENING}{{0,2}}(?:the|this) (?:given |above |whole )?(?:argument|deduction|reasoning"
    rf"|inference|syllogism|sentence|statement|claim|scenario){_PREMISES} is ({_ADJECTIVE})"
    rf"{_PREMISES}",
    re.IGNORECASE,
)


def stated(line: str, whole: Whole, sample: Sample) -> str | None:
    """The answer that the last line states, or None."""
    bare = clean_segment(line)
    heading = _HEADING.match(bare)
    if heading:
        bare = bare[heading.end() :].strip(DRESSING)
        if value := whole(bare, sample):
            return value
    for rest in _announced(bare, SUBSETS[sample.subset].kind):
        if value := whole(rest, sample):
            return value
    return None


def _announced(bare: str, kind: str) -> list[str]:
    """The parts of a last line that it announces as an outcome."""
    parts = []
    if kind in ("integer", "bool") and "=" in bare:
        parts.append(bare.rpartition("=")[2])
    if kind in ("integer", "bool") and (counted := _COUNTED.match(bare)):
        parts.append(bare[counted.end() :])
    if kind in ("valid", "yes_no") and (verdict := _VERDICT.fullmatch(bare)):
        parts.append(verdict[1])
    if named := _NAMED.match(bare):
        parts.append(bare[named.end() :])
    return parts
