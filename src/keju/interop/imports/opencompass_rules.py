"""How OpenCompass 0.5 decides on a reply, for logs that were written without its verdicts.

Each rule is that of the dataset's standard configuration, faults included. What a rule gives is
believed only where it adds up to the figure that the log reports.
"""

from __future__ import annotations

import re

_CHOICE_MARKER = "answer is "
_FREE_MARKER = re.compile(r"answer is\s*:?\s*", re.IGNORECASE)  # "So the answer is: "
_BRACKETED = re.compile(r"\(([A-Z])")  # "(B) two cells" gives B
_CAPITAL = re.compile(r"[A-Z]")
_BOLD = re.compile(r"\*\*(.*?)\*\*")  # "**two cells**" gives two cells
_WORD = re.compile(r"(yes|no|true|false)\b", re.IGNORECASE)  # "Yes, it is" gives Yes
_LISTED_NUMBERS = re.compile(r"\d\s*,\s*\d")  # "3, 5"
_COMMA = re.compile(r"\s*,\s*")
_ANSWER_COLON = re.compile(r"ANSWER\s*:\s*([A-P])", re.IGNORECASE)  # "Answer: B" gives B
DIRECT_GOLD = re.compile(r"([A-P])\. (.*)", re.DOTALL)
"""``B. two cells``: without chain of thought the gold answer is the option with its label."""


def decide(rule: str, reply: str, gold: str) -> bool | None:
    """Whether `reply` is right by the rule of that name; None where Keju knows none."""
    if rule == "choice":
        return choice_of(reply) == choice_of(gold)
    if rule == "free form":
        return free_form(reply).casefold() == free_form(gold).casefold()
    if rule == "capital":
        # The first capital letter of any script.
        return next((letter for letter in reply if letter.isupper()), "") == gold
    if rule == "colon":
        direct = DIRECT_GOLD.fullmatch(gold)
        if direct is not None:
            return is_option(reply, *direct.groups())
        match = _ANSWER_COLON.search(reply)
        return (match[1] if match else "") == gold
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


def is_option(text: str, label: str, option: str) -> bool:
    """Whether the first line is the label or the option; one that holds ``. `` is never met."""
    line = text.split("\n")[0].strip()
    return ". " not in option and line in (label, option.strip())
