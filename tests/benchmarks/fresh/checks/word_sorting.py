"""Words one after the other, each put before the first that it does not come after."""

from __future__ import annotations


def answer(text: str) -> str:
    """The words of a list in their order."""
    ordered: list[str] = []
    for word in text.rpartition("List:")[2].split():
        place = 0
        while place < len(ordered) and before(ordered[place], word):
            place += 1
        ordered.insert(place, word)
    return " ".join(ordered)


def before(left_word: str, right_word: str) -> bool:
    """Whether a word comes before another: letter by letter, a part before the whole."""
    for left_letter, right_letter in zip(left_word, right_word, strict=False):
        if left_letter != right_letter:
            return ord(left_letter) < ord(right_letter)
    return len(left_word) < len(right_word)
