"""A path is walked along its edges; figures with four corners are told by angles and diagonals."""

from __future__ import annotations

from cmath import phase
from math import pi

GREEK = {
    3: "triangle", 5: "pentagon", 6: "hexagon", 7: "heptagon", 8: "octagon", 9: "nonagon",
    10: "decagon", 11: "hendecagon", 12: "dodecagon",
}  # fmt: skip
DEGREE = pi / 180


def answer(text: str) -> str:
    """The label of the figure's name."""
    path = text.split('"')[1]
    name = figure(path)
    (line,) = [line for line in text.splitlines()[2:] if line[4:] == name]
    return line[:3]


def figure(path: str) -> str:
    """What a path draws."""
    words = path.split()
    edges: list[frozenset[complex]] = []
    pen = 0j
    for at, word in enumerate(words):
        if word in "ML":
            to = point(words[at + 1])
        elif word == "A":
            to = point(words[at + 4])
        else:
            continue
        if word != "M":
            edges.append(frozenset((pen, to)))
        pen = to
    arcs = [words[at + 1].split(",") for at, word in enumerate(words) if word == "A"]
    if arcs and len(arcs) == len(edges):
        return "circle" if all(rx == ry for rx, ry in arcs) else "ellipse"
    if arcs:
        return "sector"
    ends = {p for p in set().union(*edges) if sum(p in edge for edge in edges) == 1}
    if ends:
        return "line"
    if len(edges) != 4:
        return GREEK.get(len(edges), f"{len(edges)}-gon")
    return four(walk(edges))


def point(text: str) -> complex:
    """A point as a number: ``3.00,4.00`` is 3+4j."""
    x, y = text.split(",")
    return complex(float(x), float(y))


def walk(edges: list[frozenset[complex]]) -> list[complex]:
    """Corners in the order in which one meets them."""
    remaining = edges[1:]
    corners = list(edges[0])
    while remaining:
        edge = next(edge for edge in remaining if corners[-1] in edge)
        remaining.remove(edge)
        corners += edge - {corners[-1]}
    return corners[:-1]


def four(corners: list[complex]) -> str:
    """The name of a figure with four corners."""
    a, b, c, d = corners
    angles = [
        abs(phase((corners[n - 2] - corners[n - 1]) / (corners[n] - corners[n - 1])))
        for n in range(4)
    ]
    if all(abs(angle - pi / 2) < DEGREE for angle in angles):
        return "rectangle"
    # The axis of a kite stands on the middle of the other diagonal, at a right angle.
    for tip, side, far, last_corner in ((a, b, c, d), (b, c, d, a)):
        middle = (side + last_corner) / 2
        slant = ((far - tip) * (side - last_corner).conjugate()).real
        if abs(slant) < abs(far - tip) * 0.1 and near(middle, tip, far):
            return "kite"
    # Angles on one leg of a trapezoid make half a turn.
    assert any(abs(angles[n] + angles[n - 1] - pi) < DEGREE for n in range(4))
    return "trapezoid"


def near(middle: complex, tip: complex, far: complex) -> bool:
    """Whether a point lies on the line through two others."""
    return abs(((middle - tip) / (far - tip)).imag) * abs(far - tip) < 0.05
