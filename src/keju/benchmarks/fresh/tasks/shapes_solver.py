"""Names the figure that an SVG path draws, by its geometry.

Coordinates are rounded to hundredths; lengths that should be equal differ by a few of them.
"""

from __future__ import annotations

import re
from math import acos, cos, dist, hypot, isclose, pi, radians, sin, sqrt
from typing import NamedTuple

Point = tuple[float, float]

TOLERANCE = 0.04
"""What rounding may do to a length."""
ARC_TOLERANCE = 0.15
"""What it may do to the centre of an arc, as a share of its radius: most near a half."""
HALF_TOLERANCE = 0.025
"""What rounding may do to the chord of half an ellipse, which goes through the centre."""
POLYGONS = {
    3: "triangle", 5: "pentagon", 6: "hexagon", 7: "heptagon", 8: "octagon", 9: "nonagon",
    10: "decagon", 11: "hendecagon", 12: "dodecagon",
}  # fmt: skip
"""Those with four corners have names of their own, those with more are called ``13-gon``."""

NUMBER = r"-?\d+(?:\.\d+)?"
PATH = re.compile(
    rf"(?P<command>[ML]) (?P<x>{NUMBER}),(?P<y>{NUMBER})"
    rf"|A (?P<rx>{NUMBER}),(?P<ry>{NUMBER}) (?P<turn>{NUMBER}) (?P<large>[01]),(?P<sweep>[01]) "
    rf"(?P<to_x>{NUMBER}),(?P<to_y>{NUMBER})"
)  # M 5.41,37.88 L 1.69,19.06; A 28.25,28.25 317.18 0,1 20.40,19.91


class Arc(NamedTuple):
    """A part of an ellipse, as SVG has it."""

    rx: float
    ry: float
    turn: float
    large: bool
    sweep: bool


class Stroke(NamedTuple):
    """A line, or an arc, from one point to another."""

    start: Point
    end: Point
    arc: Arc | None = None


def read_path(text: str) -> list[Stroke] | None:
    """The strokes of a path; None where it holds anything else."""
    if PATH.sub("", text).strip():
        return None
    strokes: list[Stroke] = []
    pen: Point | None = None
    for found in PATH.finditer(text):
        if found["command"]:
            to, arc = (float(found["x"]), float(found["y"])), None
        else:
            to = (float(found["to_x"]), float(found["to_y"]))
            arc = Arc(
                float(found["rx"]), float(found["ry"]), float(found["turn"]),
                found["large"] == "1", found["sweep"] == "1",
            )  # fmt: skip
        if found["command"] != "M":
            if pen is None:
                return None
            strokes.append(Stroke(pen, to, arc))
        pen = to
    return strokes


def names_of(strokes: list[Stroke]) -> list[str]:
    """All names that are true of a figure, the narrower before the broader; none where unknown."""
    order = _around(strokes)
    arcs = [stroke for stroke in strokes if stroke.arc is not None]
    if order is None:
        return ["line"] if not arcs and _straight(strokes) else []
    if not arcs:
        corners = len(order)
        return _four(order) if corners == 4 else [name_of_polygon(corners)] if corners > 2 else []
    if len(arcs) == len(strokes):
        return _round(strokes)
    return ["sector"] if _is_sector(strokes, arcs) else []


def name_of_polygon(corners: int) -> str:
    """``hexagon`` for six corners."""
    return POLYGONS.get(corners, f"{corners}-gon")


def _around(strokes: list[Stroke]) -> list[Point] | None:
    """The corners of a closed figure one after the other, in whatever order it was drawn.

    None where it is not closed: where not every point joins two strokes, or parts do not meet.
    """
    beside: dict[Point, list[Point]] = {}
    for stroke in strokes:
        beside.setdefault(stroke.start, []).append(stroke.end)
        beside.setdefault(stroke.end, []).append(stroke.start)
    if len(strokes) < 2 or any(len(points) != 2 for points in beside.values()):
        return None
    start = strokes[0].start
    order, before, here = [start], start, beside[start][0]
    while here != start:
        order.append(here)
        one, two = beside[here]
        before, here = here, two if one == before else one
    return order if len(order) == len(strokes) else None


def _straight(strokes: list[Stroke]) -> bool:
    """Whether strokes lie on one line and cover it without a gap or a bend back."""
    points = sorted({point for stroke in strokes for point in (stroke.start, stroke.end)})
    if len(points) != len(strokes) + 1:
        return False
    length = dist(points[0], points[-1])
    drawn = sum(dist(stroke.start, stroke.end) for stroke in strokes)
    return isclose(length, drawn, abs_tol=TOLERANCE / 2)


def _four(corners: list[Point]) -> list[str]:
    """Names of a figure with four corners."""
    one, two, three, four = corners
    sides = [dist(one, two), dist(two, three), dist(three, four), dist(four, one)]
    equal = [isclose(sides[n], sides[n - 1], abs_tol=TOLERANCE) for n in range(4)]
    opposite = all(isclose(sides[n], sides[n + 2], abs_tol=TOLERANCE) for n in range(2))
    diagonals = isclose(dist(one, three), dist(two, four), abs_tol=TOLERANCE)
    names = ["rectangle"] if opposite and diagonals else []
    names += ["kite"] if (equal[0] and equal[2]) or (equal[1] and equal[3]) else []
    if _parallel(one, two, four, three) or _parallel(two, three, one, four):
        names.append("trapezoid")
    return names


def _parallel(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether a line from a to b and one from c to d have one direction."""
    (ux, uy), (vx, vy) = (b[0] - a[0], b[1] - a[1]), (d[0] - c[0], d[1] - c[1])
    longer = max(hypot(ux, uy), hypot(vx, vy))
    return abs(ux * vy - uy * vx) / longer < TOLERANCE


def _round(strokes: list[Stroke]) -> list[str]:
    """Names of arcs that make a whole turn about one centre."""
    pieces = [_centre_and_angle(stroke) for stroke in strokes]
    arcs = {(stroke.arc.rx, stroke.arc.ry) for stroke in strokes if stroke.arc}
    whole = isclose(sum(angle for _, angle in pieces), 2 * pi, abs_tol=ARC_TOLERANCE)
    if len(arcs) != 1 or not whole:
        return []
    rx, ry = arcs.pop()
    if any(dist(centre, pieces[0][0]) > ARC_TOLERANCE * max(rx, ry) for centre, _ in pieces):
        return []
    return ["circle", "ellipse"] if rx == ry else ["ellipse"]


def _is_sector(strokes: list[Stroke], arcs: list[Stroke]) -> bool:
    """Two straight sides from the centre of a circle, and a part of that circle."""
    sides = [stroke for stroke in strokes if stroke.arc is None]
    if len(sides) != 2:
        return False
    shared = {sides[0].start, sides[0].end} & {sides[1].start, sides[1].end}
    if len(shared) != 1:
        return False
    (tip,) = shared
    for stroke in arcs:
        centre, _ = _centre_and_angle(stroke)
        assert stroke.arc is not None
        rx, ry = stroke.arc.rx, stroke.arc.ry
        if rx != ry or dist(centre, tip) > ARC_TOLERANCE * rx:
            return False
        if any(abs(dist(tip, end) - rx) > TOLERANCE for end in (stroke.start, stroke.end)):
            return False
    return True


def _centre_and_angle(stroke: Stroke) -> tuple[Point, float]:
    """The centre of an arc, and the angle that it takes of the whole ellipse.

    The ellipse is turned and squeezed to a circle of radius one, where a chord of length c has
    its centre sqrt(1 - c²/4) beside its middle; the flags say on which side.
    """
    assert stroke.arc is not None
    arc, turn = stroke.arc, radians(stroke.arc.turn)
    flat = [
        ((x * cos(turn) + y * sin(turn)) / arc.rx, (y * cos(turn) - x * sin(turn)) / arc.ry)
        for x, y in (stroke.start, stroke.end)
    ]
    (x1, y1), (x2, y2) = flat
    chord = dist(*flat)
    if not chord:
        return stroke.start, 0.0
    if abs(2 - chord) * min(arc.rx, arc.ry) < HALF_TOLERANCE:
        chord = 2.0
    aside = sqrt(max(0.0, 1 - chord**2 / 4)) * (-1 if arc.large == arc.sweep else 1) / chord
    u = (x1 + x2) / 2 - aside * (y2 - y1)
    v = (y1 + y2) / 2 + aside * (x2 - x1)
    angle = acos(max(-1.0, 1 - chord**2 / 2))
    x, y = u * arc.rx, v * arc.ry
    centre = (x * cos(turn) - y * sin(turn), x * sin(turn) + y * cos(turn))
    return centre, 2 * pi - angle if arc.large else angle
