"""Options named by their text, exactly as shown."""

from __future__ import annotations

import pytest

from keju.answers.option_text import flattened, option_as_shown

CHOICES = ("BB", "Bb", "ends. ", "twice", "twice", "so on...")


@pytest.mark.parametrize(
    ("segment", "label"),
    [
        ("Bb", "B"),
        (" BB. ", "A"),
        ("ends.", "C"),
        ("ends..", "C"),
        ("so on...", "F"),
        ("so on....", "F"),
        ("bb", None),
        ("ends", None),
        ("twice", None),
        ("", None),
    ],
)
def test_the_text_letter_for_letter(segment: str, label: str | None) -> None:
    assert option_as_shown(segment, CHOICES, "ABCDEF") == label


def test_options_of_several_lines_are_flattened_in_both() -> None:
    text, choices = flattened("It is x\n  y then.\nz", ("x\n  y\n", "z"))
    assert text == "It is x y then.\nz"
    assert choices == ("x y", "z")
