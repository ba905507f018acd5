"""``<path d="M 1.00,2.00 L 3.00,9.00"/> draws a`` line: the figure that an SVG path draws.

There are ten families of figures, which are equally likely. The published questions about
rectangles also offer `trapezoid`, those about circles `ellipse`, and have these broader names as
targets; both are true. Fresh questions offer only one true name: their trapezoids are not
rectangles, their ellipses not circles. Above difficulty 1 figures have more corners and arcs, and
their strokes are shuffled.
"""

from __future__ import annotations

import random
import re
from itertools import pairwise
from math import cos, hypot, pi, radians, sin
from typing import NamedTuple

from keju.benchmarks.fresh.task import (
    FreshQuestion,
    FreshTask,
    Language,
    add_options,
    find_label,
    scale_size,
    split_options,
)
from keju.benchmarks.fresh.tasks.shapes_solver import (
    Arc,
    Point,
    Stroke,
    find_names,
    polygon_name,
    read_path,
)

FIGURES = ("circle", "ellipse", "kite", "line", "rectangle", "sector", "trapezoid", "triangle")
CORNERS = (5, 6, 7, 8)
"""Corners of the published polygons, apart from triangles and figures with four corners."""
FAMILIES: tuple[tuple[int, tuple[str, ...]], ...] = (
    (1, ("line",)), (3, ("triangle",)), (2, ("circle", "ellipse")), (4, ("sector",)),
    (4, ("kite",)), (4, ("rectangle", "trapezoid")),
    *((corners, (polygon_name(corners),)) for corners in CORNERS),
)  # fmt: skip
"""The size of each family (about the published number of strokes), and the figures in it."""
BROADER = {"circle": "ellipse", "rectangle": "trapezoid"}
"""Every circle is an ellipse, every rectangle a trapezoid."""
ELEVEN_OPTIONS, WHOLE_NUMBERS, NO_LIFTS, LIFTS = 0.2, 0.2, 0.4, 0.5
"""Shares of questions with eleven options instead of ten, in whole numbers, and drawn without
lifting the pen; then the chance of lifting it after a stroke in the other questions."""
QUESTION = re.compile(r'This SVG path element <path d="(?P<path>[^"]+)"/> draws a')
WIDTH, BENT = 100.0, 0.12
"""The width of the picture, and the minimum sine of an angle between sides."""


class Drawing(NamedTuple):
    """Strokes in drawing order, and the names to choose from."""

    strokes: list[Stroke]
    lifts: list[bool]
    """Whether the pen is lifted and set down again before a stroke."""
    options: list[str]
    answer: int


class GeometricShapes(FreshTask):
    """A problem is a `Drawing`."""

    subset = "geometric_shapes"

    def invent(self, draw: random.Random, difficulty: float) -> Drawing:
        max_corners = max(3, round(CORNERS[-1] * difficulty))
        family = draw.choice([names for size, names in FAMILIES if size <= max_corners])
        name = draw.choice(family)
        corners = next((n for n in CORNERS if polygon_name(n) == name), 0)
        if corners and difficulty > 1:
            corners = round(draw.uniform(corners - 0.5, corners + 0.5) * difficulty)
            name = polygon_name(corners)
        strokes = _draw_figure(draw, name, corners, difficulty)
        if draw.random() < difficulty - 1:
            strokes = [_maybe_reverse(draw, stroke) for stroke in strokes]
            draw.shuffle(strokes)
        lift_share = 0 if draw.random() < NO_LIFTS else LIFTS
        options = _draw_wrong_names(draw, name, corners)
        answer = draw.randrange(len(options) + 1)
        options.insert(answer, name)
        return Drawing(strokes, [draw.random() < lift_share for _ in strokes], options, answer)

    def write(self, problem: Drawing, language: Language) -> FreshQuestion:
        parts, pen = [], (-1.0, -1.0)
        for stroke, lifted in zip(problem.strokes, problem.lifts, strict=True):
            if lifted or pen != stroke.start:
                parts.append(f"M {_point_text(stroke.start)}")
            if stroke.arc is None:
                parts.append(f"L {_point_text(stroke.end)}")
            else:
                rx, ry, turn, large, sweep = stroke.arc
                shape = f"{rx:.2f},{ry:.2f} {turn:.2f} {large:d},{sweep:d}"
                parts.append(f"A {shape} {_point_text(stroke.end)}")
            pen = stroke.end
        text = f'This SVG path element <path d="{" ".join(parts)}"/> draws a'
        return add_options(text, problem.options, problem.answer, language)

    def solve(self, text: str) -> str | None:
        question, options = split_options(text)
        match = QUESTION.fullmatch(question)
        strokes = read_path(match["path"]) if match else None
        if not strokes:
            return None
        true_names = [name for name in find_names(strokes) if name in options]
        if len(true_names) == 2 and BROADER.get(true_names[0]) == true_names[1]:
            return find_label(
                options, true_names[1]
            )  # both are true; the target is the broader one
        return find_label(options, true_names[0]) if len(true_names) == 1 else None


def _point_text(point: Point) -> str:
    return f"{point[0]:.2f},{point[1]:.2f}"


# --- options -----------------------------------------------------------------------------------


def _draw_wrong_names(draw: random.Random, name: str, corners: int) -> list[str]:
    """Draw names that are not true of the figure; polygons have nearly as many corners."""
    fewest_corners = (
        max(CORNERS[0], corners - draw.randrange(len(CORNERS))) if corners > 8 else CORNERS[0]
    )
    polygons = [polygon_name(n) for n in range(fewest_corners, fewest_corners + len(CORNERS))]
    names = [n for n in (*FIGURES, *polygons) if n not in (name, BROADER.get(name))]
    return draw.sample(names, 10 if draw.random() < ELEVEN_OPTIONS else 9)


# --- figures -----------------------------------------------------------------------------------


def _draw_figure(draw: random.Random, name: str, corners: int, difficulty: float) -> list[Stroke]:
    """Draw the strokes of a figure in sequence."""
    is_integral = draw.random() < WHOLE_NUMBERS
    match name:
        case "line":
            return _draw_line(draw, scale_size(1, difficulty, least=1), is_integral=is_integral)
        case "circle" | "ellipse":
            pieces = scale_size(2, difficulty, least=2)
            return _draw_ellipse(draw, pieces, circle=name == "circle", is_integral=is_integral)
        case "sector":
            return _draw_sector(draw, scale_size(1, difficulty, least=1), is_integral=is_integral)
        case "kite" | "rectangle" | "trapezoid":
            return _close_polygon(_draw_four_corners(draw, name, is_integral=is_integral))
        case _:
            return _close_polygon(_draw_polygon(draw, corners or 3, is_integral=is_integral))


def _close_polygon(points: list[Point]) -> list[Stroke]:
    """Return lines from point to point and back to the first."""
    return [Stroke(a, b) for a, b in zip(points, [*points[1:], points[0]], strict=True)]


def _maybe_reverse(draw: random.Random, stroke: Stroke) -> Stroke:
    """Return a stroke, or sometimes its reverse."""
    if draw.random() < 0.5:
        return stroke
    arc = stroke.arc and stroke.arc._replace(sweep=not stroke.arc.sweep)
    return Stroke(stroke.end, stroke.start, arc)


def _round_point(x: float, y: float) -> Point:
    return round(x, 2), round(y, 2)


def _draw_line(draw: random.Random, pieces: int, *, is_integral: bool) -> list[Stroke]:
    """Draw a line in pieces that are long enough to look straight."""
    while True:
        x1, y1, x2, y2 = (_draw_coordinate(draw, is_integral=is_integral) for _ in range(4))
        if hypot(x2 - x1, y2 - y1) > 5 * pieces:
            break
    cuts = [0.0, *(draw.uniform(n - 0.3, n + 0.3) / pieces for n in range(1, pieces)), 1.0]
    points = [_round_point(x1 + cut * (x2 - x1), y1 + cut * (y2 - y1)) for cut in cuts]
    return [Stroke(a, b) for a, b in pairwise(points)]


def _draw_coordinate(draw: random.Random, *, is_integral: bool) -> float:
    return float(draw.randint(1, 99)) if is_integral else draw.uniform(0, WIDTH)


def _draw_polygon(draw: random.Random, corners: int, *, is_integral: bool) -> list[Point]:
    """Draw corners around a centre at random distances; no angle is nearly straight or flat."""
    while True:
        reach = draw.uniform(12 if corners < 9 else 30, 48)
        x, y = (draw.uniform(reach, WIDTH - reach) for _ in range(2))
        start, points = draw.uniform(0, 2 * pi), []
        for number in range(corners):
            angle = start + 2 * pi * (number + draw.uniform(-0.3, 0.3)) / corners
            distance = reach * draw.uniform(0.45, 1)
            points.append(_round_point(x + distance * cos(angle), y + distance * sin(angle)))
        if is_integral:
            points = [(float(round(px)), float(round(py))) for px, py in points]
        if len(set(points)) == corners and all(
            _is_bent(points[n - 2], points[n - 1], points[n]) for n in range(corners)
        ):
            return points


def _is_bent(a: Point, b: Point, c: Point) -> bool:
    """Whether the path from a over b to c has a clear turn at b."""
    (ux, uy), (vx, vy) = (b[0] - a[0], b[1] - a[1]), (c[0] - b[0], c[1] - b[1])
    return abs(ux * vy - uy * vx) > BENT * hypot(ux, uy) * hypot(vx, vy)


def _draw_four_corners(draw: random.Random, name: str, *, is_integral: bool) -> list[Point]:
    """Draw a figure with four corners of this name, and of no other name of that kind."""
    length = draw.randint(6, 28) if is_integral else draw.uniform(6, 28)
    second_length = length * draw.choice((draw.uniform(0.3, 0.75), draw.uniform(1.35, 2)))
    if name == "kite":  # the tip, a side, the far tip, the other side
        half = draw.uniform(0.3, 0.9) * min(length, second_length)
        points = [(0.0, 0.0), (half, length), (0.0, length + second_length), (-half, length)]
    elif name == "rectangle":
        points = [(0.0, 0.0), (length, 0.0), (length, second_length), (0.0, second_length)]
    else:  # the upper side is shifted; the other two are never parallel
        shift, height = draw.uniform(-0.5, 0.5) * length, draw.uniform(0.5, 1.2) * length
        points = [(0.0, 0.0), (length, 0.0), (shift + second_length, height), (shift, height)]
    return _place_points(draw, points, is_integral=is_integral)


def _place_points(draw: random.Random, points: list[Point], *, is_integral: bool) -> list[Point]:
    """Rotate and move points into the picture; with whole numbers they stay upright."""
    if is_integral:
        right, down = draw.randint(30, 40), draw.randint(2, 15)
        return [(float(right + round(px)), float(down + round(py))) for px, py in points]
    turn = draw.uniform(0, 2 * pi)
    rotated_points = [
        (px * cos(turn) - py * sin(turn), px * sin(turn) + py * cos(turn)) for px, py in points
    ]
    low = [min(point[axis] for point in rotated_points) for axis in range(2)]
    high = [max(point[axis] for point in rotated_points) for axis in range(2)]
    x, y = (draw.uniform(-low[axis], WIDTH - high[axis]) for axis in range(2))
    return [_round_point(px + x, py + y) for px, py in rotated_points]


def _draw_ellipse(
    draw: random.Random, pieces: int, *, circle: bool, is_integral: bool
) -> list[Stroke]:
    """Draw a full turn in arcs: two halves as published, or more and shorter ones."""
    rx = float(draw.randint(4, 32)) if is_integral else round(draw.uniform(4, 32), 2)
    ry = (
        rx
        if circle
        else round(rx * draw.choice((draw.uniform(0.4, 0.8), draw.uniform(1.25, 1.5))), 2)
    )
    turn = 0.0 if is_integral else round(draw.uniform(0, 360), 2)
    reach = max(rx, ry) + 1
    x, y = (draw.uniform(reach, WIDTH - reach) for _ in range(2))
    if is_integral:
        x, y = round(x), round(y)
    start = 0.0 if is_integral or pieces == 2 else draw.uniform(0, 2 * pi)
    jitter = 0.0 if pieces == 2 else 0.2
    angles = [start + 2 * pi * (n + draw.uniform(-jitter, jitter)) / pieces for n in range(pieces)]
    points = []
    for angle in angles:
        u, v, phi = rx * cos(angle), -ry * sin(angle), radians(turn)
        points.append(
            _round_point(x + u * cos(phi) - v * sin(phi), y + u * sin(phi) + v * cos(phi))
        )
    arc = Arc(rx, ry, turn, pieces == 2, False)
    return [stroke._replace(arc=arc) for stroke in _close_polygon(points)]


def _draw_sector(draw: random.Random, pieces: int, *, is_integral: bool) -> list[Stroke]:
    """Draw a line from the centre to the rim, arcs along it, and a line back."""
    radius = float(draw.randint(9, 30)) if is_integral else round(draw.uniform(9, 30), 2)
    x, y = (draw.uniform(radius, WIDTH - radius) for _ in range(2))
    middle = (float(round(x)), float(round(y))) if is_integral else _round_point(x, y)
    start, angle = draw.uniform(0, 2 * pi), draw.uniform(0.6, 2.9)
    rim = [
        _round_point(middle[0] + radius * cos(rim_angle), middle[1] + radius * sin(rim_angle))
        for rim_angle in (start + angle * n / pieces for n in range(pieces + 1))
    ]
    arc = Arc(radius, radius, 0.0 if is_integral else round(draw.uniform(0, 360), 2), False, True)
    along = [Stroke(a, b, arc) for a, b in pairwise(rim)]
    return [Stroke(middle, rim[0]), *along, Stroke(rim[-1], middle)]
