"""Name the figure that an SVG path draws, by its geometry.

Coordinates are rounded to hundredths, so lengths that should be equal differ by a few of them.
"""

from __future__ import annotations

import re
from math import acos, cos, dist, hypot, isclose, pi, radians, sin, sqrt
from typing import NamedTuple

Point = tuple[float, float]

TOLERANCE = 0.04
"""The effect of rounding on a length."""
ARC_TOLERANCE = 0.15
"""Its effect on the centre of an arc, as a share of the radius: largest near a half."""
HALF_TOLERANCE = 0.025
"""Its effect on the chord of half an ellipse, which goes through the centre."""
POLYGONS = {
    3: "triangle", 5: "pentagon", 6: "hexagon", 7: "heptagon", 8: "octagon", 9: "nonagon",
    10: "decagon", 11: "hendecagon", 12: "dodecagon",
}  # fmt: skip
"""Polygons with four corners have other names, larger ones names such as ``13-gon``."""

NUMBER = r"-?\d+(?:\.\d+)?"
PATH = re.compile(
    rf"(?P<command>[ML]) (?P<x>{NUMBER}),(?P<y>{NUMBER})"
    rf"|A (?P<rx>{NUMBER}),(?P<ry>{NUMBER}) (?P<turn>{NUMBER}) (?P<large>[01]),(?P<sweep>[01]) "
    rf"(?P<to_x>{NUMBER}),(?P<to_y>{NUMBER})"
)  # M 5.41,37.88 L 1.69,19.06; A 28.25,28.25 317.18 0,1 20.40,19.91


class Arc(NamedTuple):
    """A part of an ellipse, with the parameters of SVG."""

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
    """Return the strokes of a path; None if it contains anything else."""
    if PATH.sub("", text).strip():
        return None
    strokes: list[Stroke] = []
    pen: Point | None = None
    for match in PATH.finditer(text):
        if match["command"]:
            to, arc = (float(match["x"]), float(match["y"])), None
        else:
            to = (float(match["to_x"]), float(match["to_y"]))
            arc = Arc(
                float(match["rx"]), float(match["ry"]), float(match["turn"]),
                match["large"] == "1", match["sweep"] == "1",
            )  # fmt: skip
        if match["command"] != "M":
            if pen is None:
                return None
            strokes.append(Stroke(pen, to, arc))
        pen = to
    return strokes


def find_names(strokes: list[Stroke]) -> list[str]:
    """Return all true names of a figure, narrower ones first; empty if it is unknown."""
    order = _corners_in_order(strokes)
    arcs = [stroke for stroke in strokes if stroke.arc is not None]
    if order is None:
        return ["line"] if not arcs and _is_straight(strokes) else []
    if not arcs:
        corners = len(order)
        return (
            _names_of_four_corners(order)
            if corners == 4
            else [polygon_name(corners)]
            if corners > 2
            else []
        )
    if len(arcs) == len(strokes):
        return _names_of_round(strokes)
    return ["sector"] if _is_sector(strokes, arcs) else []


def polygon_name(corners: int) -> str:
    """Return ``hexagon`` for six corners."""
    return POLYGONS.get(corners, f"{corners}-gon")


def _corners_in_order(strokes: list[Stroke]) -> list[Point] | None:
    """Return the corners of a closed figure in sequence, in any drawing order.

    None if it is not closed: a point does not join exactly two strokes, or parts do not meet.
    """
    neighbours: dict[Point, list[Point]] = {}
    for stroke in strokes:
        neighbours.setdefault(stroke.start, []).append(stroke.end)
        neighbours.setdefault(stroke.end, []).append(stroke.start)
    if len(strokes) < 2 or any(len(points) != 2 for points in neighbours.values()):
        return None
    start = strokes[0].start
    order, previous, current = [start], start, neighbours[start][0]
    while current != start:
        order.append(current)
        left_neighbour, right_neighbour = neighbours[current]
        previous, current = (
            current,
            right_neighbour if left_neighbour == previous else left_neighbour,
        )
    return order if len(order) == len(strokes) else None


def _is_straight(strokes: list[Stroke]) -> bool:
    """Whether strokes are on one line and cover it without a gap or a bend back."""
    points = sorted({point for stroke in strokes for point in (stroke.start, stroke.end)})
    if len(points) != len(strokes) + 1:
        return False
    length = dist(points[0], points[-1])
    drawn = sum(dist(stroke.start, stroke.end) for stroke in strokes)
    return isclose(length, drawn, abs_tol=TOLERANCE / 2)


def _names_of_four_corners(corners: list[Point]) -> list[str]:
    """Return the names of a figure with four corners."""
    a, b, c, d = corners
    sides = [dist(a, b), dist(b, c), dist(c, d), dist(d, a)]
    are_equal = [isclose(sides[n], sides[n - 1], abs_tol=TOLERANCE) for n in range(4)]
    opposite = all(isclose(sides[n], sides[n + 2], abs_tol=TOLERANCE) for n in range(2))
    diagonals = isclose(dist(a, c), dist(b, d), abs_tol=TOLERANCE)
    names = ["rectangle"] if opposite and diagonals else []
    names += ["kite"] if (are_equal[0] and are_equal[2]) or (are_equal[1] and are_equal[3]) else []
    if _are_parallel(a, b, d, c) or _are_parallel(b, c, a, d):
        names.append("trapezoid")
    return names


def _are_parallel(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether the lines from a to b and from c to d are parallel."""
    (ux, uy), (vx, vy) = (b[0] - a[0], b[1] - a[1]), (d[0] - c[0], d[1] - c[1])
    longer_length = max(hypot(ux, uy), hypot(vx, vy))
    return abs(ux * vy - uy * vx) / longer_length < TOLERANCE


def _names_of_round(strokes: list[Stroke]) -> list[str]:
    """Return the names of arcs that make a full turn around one centre."""
    pieces = [_centre_and_angle(stroke) for stroke in strokes]
    arcs = {(stroke.arc.rx, stroke.arc.ry) for stroke in strokes if stroke.arc}
    is_full_turn = isclose(sum(angle for _, angle in pieces), 2 * pi, abs_tol=ARC_TOLERANCE)
    if len(arcs) != 1 or not is_full_turn:
        return []
    rx, ry = arcs.pop()
    if any(dist(centre, pieces[0][0]) > ARC_TOLERANCE * max(rx, ry) for centre, _ in pieces):
        return []
    return ["circle", "ellipse"] if rx == ry else ["ellipse"]


def _is_sector(strokes: list[Stroke], arcs: list[Stroke]) -> bool:
    """Whether two straight sides from a circle's centre and a part of the circle form a sector."""
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
    """Return the centre of an arc, and its angle.

    The ellipse is rotated and scaled to a circle of radius one. There the centre of a chord of
    length c is sqrt(1 - c²/4) away from its middle; the flags determine the side.
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
    offset = sqrt(max(0.0, 1 - chord**2 / 4)) * (-1 if arc.large == arc.sweep else 1) / chord
    u = (x1 + x2) / 2 - offset * (y2 - y1)
    v = (y1 + y2) / 2 + offset * (x2 - x1)
    angle = acos(max(-1.0, 1 - chord**2 / 2))
    x, y = u * arc.rx, v * arc.ry
    centre = (x * cos(turn) - y * sin(turn), x * sin(turn) + y * cos(turn))
    return centre, 2 * pi - angle if arc.large else angle
