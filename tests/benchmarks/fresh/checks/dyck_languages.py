"""Neighbours that form a pair are struck out until none is left; what remains is mirrored."""

from __future__ import annotations


def answer(text: str) -> str:
    """The brackets that close a sequence."""
    sequence = text.replace("：", ": ").rpartition(": ")[2].replace(" ", "")
    before = ""
    while before != sequence:
        before = sequence
        for pair in ("()", "[]", "{}", "<>"):
            sequence = sequence.replace(pair, "")
    assert sequence
    assert set(sequence) <= set("([{<")
    return " ".join(sequence[::-1].translate(str.maketrans("([{<", ")]}>")))
