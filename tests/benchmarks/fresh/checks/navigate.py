"""A walk in the plane of complex numbers: to turn is to multiply by a power of i."""

from __future__ import annotations

import re

SIDES = {
    "forward": 1j,
    "前": 1j,
    "backward": -1j,
    "后": -1j,
    "left": -1,
    "左": -1,
    "right": 1,
    "右": 1,
}
TURNS = {"left": 1j, "左": 1j, "right": -1j, "右": -1j, "around": -1, "向后": -1}


def answer(text: str) -> str:
    """Whether the sum of all steps is nothing."""
    english = text.startswith("If")
    body = re.split(r"\n", re.split(r"[?？]", text, maxsplit=1)[1])[0]
    place, ahead = 0j, 1j
    for sentence in re.findall(r"[^.。]+", body):
        if (number := re.search(r"\d+", sentence)) is not None:
            side = re.search(r"forward|backward|left|right|(?<=向)[前后左右]", sentence)
            place += int(number[0]) * (SIDES[side[0]] if side else ahead)
        elif turn := re.search(r"(?<=Turn )\w+|.+(?=转)", sentence):
            ahead *= TURNS[turn[0]]
        else:
            assert sentence.strip() in ("Always face forward", "始终面朝前方")
    return (("Yes", "No") if english else ("是", "否"))[place != 0]
