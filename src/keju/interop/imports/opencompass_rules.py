"""How OpenCompass 0.5 decides on a reply, for logs that were written without its verdicts.

Each rule is that of the dataset's standard configuration, faults included. What a rule gives is
believed only where it adds up to the figure that the log reports.
"""

from __future__ import annotations

import re

from keju.benchmarks.bbh.facts import CHOICE_SUBSETS

_CHOICE_MARKER = "answer is "
_FREE_MARKER = re.compile(r"answer is\s*:?\s*", re.IGNORECASE)
_BRACKETED = re.compile(r"\(([A-Z])")
_CAPITAL = re.compile(r"[A-Z]")
_BOLD = re.compile(r"\*\*(.*?)\*\*")
_WORD = re.compile(r"(yes|no|true|false)\b", re.IGNORECASE)
_LISTED_NUMBERS = re.compile(r"\d\s*,\s*\d")
_COMMA = re.compile(r"\s*,\s*")
_ANSWER_COLON = re.compile(r"ANSWER\s*:\s*([A-P])", re.IGNORECASE)
DIRECT_GOLD = re.compile(r"([A-P])\. (.*)", re.DOTALL)
"""MMLU-Pro without chain of thought: the gold answer is the option with its label."""


def decide(benchmark: str, subset: str, said: str, gold: str) -> bool | None:
    """Whether `said` is right by OpenCompass's rule; None where Keju knows none."""
    if benchmark == "bbh" and subset in CHOICE_SUBSETS:
        return choice_of(said) == choice_of(gold)
    if benchmark == "bbh":
        return free_form(said).casefold() == free_form(gold).casefold()
    if benchmark == "ceval":
        return first_capital(said) == gold
    if benchmark == "mmlu_pro":
        direct = DIRECT_GOLD.fullmatch(gold)
        return after_colon(said) == gold if direct is None else is_option(said, *direct.groups())
    return None


def choice_of(text: str) -> str:
    """The first label after the first marker: one in brackets, else any capital."""
    pieces = text.split(_CHOICE_MARKER)
    part = pieces[1].strip() if len(pieces) > 1 else text
    if bracketed := _BRACKETED.search(part):
        return bracketed[1]
    capital = _CAPITAL.search(part)
    return capital[0] if capital else part


def free_form(text: str) -> str:
    """The line after the last marker without full stop, bold type and commas between words."""
    pieces = _FREE_MARKER.split(text)
    part = pieces[-1].strip() if len(pieces) > 1 else text
    line = part.split("\n")[0].strip()
    line = line.removesuffix(".").strip()
    if bold := _BOLD.search(line):
        line = bold[1].strip()
    if word := _WORD.match(line):
        return word[1]
    if not _LISTED_NUMBERS.search(line):
        line = _COMMA.sub(" ", line)
    return " ".join(line.split())


def first_capital(text: str) -> str:
    """The first capital letter of any script."""
    return next((letter for letter in text if letter.isupper()), "")


def after_colon(text: str) -> str:
    """The letter after the first ``ANSWER:``, in the case in which it stands."""
    found = _ANSWER_COLON.search(text)
    return found[1] if found else ""


def is_option(text: str, label: str, option: str) -> bool:
    """Whether the first line is the label or the option; one that holds ``. `` is never met."""
    line = text.split("\n")[0].strip()
    return ". " not in option and line in (label, option.strip())
