"""``<path d="M 1.00,2.00 L 3.00,9.00"/> draws a`` line: which figure does an SVG path draw?

Ten families of figures, each as often as any other. The published questions on rectangles offer
`trapezoid` too, those on circles `ellipse`, and hold these broader names for right; both are true.
Fresh questions offer one true name only: their trapezoids are no rectangles, their ellipses no
circles. Beyond difficulty 1 figures have more corners and arcs, and strokes come in any order.
"""

from __future__ import annotations

import random
import re
from itertools import pairwise
from math import cos, hypot, pi, radians, sin
from typing import NamedTuple

from keju.benchmarks.fresh.task import (
    Language,
    Question,
    Task,
    label_of,
    scaled,
    split_options,
    with_options,
)
from keju.benchmarks.fresh.tasks.shapes_solver import (
    Arc,
    Point,
    Stroke,
    name_of_polygon,
    names_of,
    read_path,
)

FIGURES = ("circle", "ellipse", "kite", "line", "rectangle", "sector", "trapezoid", "triangle")
CORNERS = (5, 6, 7, 8)
"""Of the published polygons beside triangles and figures with four corners."""
FAMILIES: tuple[tuple[int, tuple[str, ...]], ...] = (
    (1, ("line",)), (3, ("triangle",)), (2, ("circle", "ellipse")), (4, ("sector",)),
    (4, ("kite",)), (4, ("rectangle", "trapezoid")),
    *((corners, (name_of_polygon(corners),)) for corners in CORNERS),
)  # fmt: skip
"""How large a family is, about its strokes as published, and the figures in it."""
BROADER = {"circle": "ellipse", "rectangle": "trapezoid"}
"""Every circle is an ellipse, every rectangle a trapezoid."""
ELEVEN_OPTIONS, WHOLE_NUMBERS, NO_LIFTS, LIFTS = 0.2, 0.2, 0.4, 0.5
"""Shares of questions with eleven options instead of ten, in whole numbers, and drawn without
lifting the pen; how often it is lifted after a stroke otherwise."""
ASKED = re.compile(r'This SVG path element <path d="(?P<path>[^"]+)"/> draws a')
WIDTH, BENT = 100.0, 0.12
"""Of the picture; the least sine of an angle between sides."""


class Drawing(NamedTuple):
    """Strokes in the order in which they are drawn, and names to choose from."""

    strokes: list[Stroke]
    lifts: list[bool]
    """Whether the pen is lifted and set down again before a stroke."""
    options: list[str]
    answer: int


class GeometricShapes(Task):
    """A problem is a `Drawing`."""

    subset = "geometric_shapes"

    def invent(self, draw: random.Random, difficulty: float) -> Drawing:
        most = max(3, round(CORNERS[-1] * difficulty))
        family = draw.choice([names for size, names in FAMILIES if size <= most])
        name = draw.choice(family)
        corners = next((n for n in CORNERS if name_of_polygon(n) == name), 0)
        if corners and difficulty > 1:
            corners = round(draw.uniform(corners - 0.5, corners + 0.5) * difficulty)
            name = name_of_polygon(corners)
        strokes = _figure(draw, name, corners, difficulty)
        if draw.random() < difficulty - 1:
            strokes = [_turned_round(draw, stroke) for stroke in strokes]
            draw.shuffle(strokes)
        lifted = 0 if draw.random() < NO_LIFTS else LIFTS
        options = _wrong(draw, name, corners)
        answer = draw.randrange(len(options) + 1)
        options.insert(answer, name)
        return Drawing(strokes, [draw.random() < lifted for _ in strokes], options, answer)

    def write(self, problem: Drawing, language: Language) -> Question:
        parts, pen = [], (-1.0, -1.0)
        for stroke, lifted in zip(problem.strokes, problem.lifts, strict=True):
            if lifted or pen != stroke.start:
                parts.append(f"M {_shown(stroke.start)}")
            if stroke.arc is None:
                parts.append(f"L {_shown(stroke.end)}")
            else:
                rx, ry, turn, large, sweep = stroke.arc
                shape = f"{rx:.2f},{ry:.2f} {turn:.2f} {large:d},{sweep:d}"
                parts.append(f"A {shape} {_shown(stroke.end)}")
            pen = stroke.end
        text = f'This SVG path element <path d="{" ".join(parts)}"/> draws a'
        return with_options(text, problem.options, problem.answer, language)

    def solve(self, text: str) -> str | None:
        asked, options = split_options(text)
        found = ASKED.fullmatch(asked)
        strokes = read_path(found["path"]) if found else None
        if not strokes:
            return None
        true = [name for name in names_of(strokes) if name in options]
        if len(true) == 2 and BROADER.get(true[0]) == true[1]:
            return label_of(options, true[1])  # both are true; the broader one was published
        return label_of(options, true[0]) if len(true) == 1 else None


def _shown(point: Point) -> str:
    return f"{point[0]:.2f},{point[1]:.2f}"


# --- options -----------------------------------------------------------------------------------


def _wrong(draw: random.Random, name: str, corners: int) -> list[str]:
    """Names that are not true of the figure; of polygons those with nearly as many corners."""
    first = max(CORNERS[0], corners - draw.randrange(len(CORNERS))) if corners > 8 else CORNERS[0]
    polygons = [name_of_polygon(n) for n in range(first, first + len(CORNERS))]
    names = [n for n in (*FIGURES, *polygons) if n not in (name, BROADER.get(name))]
    return draw.sample(names, 10 if draw.random() < ELEVEN_OPTIONS else 9)


# --- figures -----------------------------------------------------------------------------------


def _figure(draw: random.Random, name: str, corners: int, difficulty: float) -> list[Stroke]:
    """The strokes of a figure, one after the other."""
    whole = draw.random() < WHOLE_NUMBERS
    match name:
        case "line":
            return _line(draw, scaled(1, difficulty, least=1), whole=whole)
        case "circle" | "ellipse":
            pieces = scaled(2, difficulty, least=2)
            return _ellipse(draw, pieces, circle=name == "circle", whole=whole)
        case "sector":
            return _sector(draw, scaled(1, difficulty, least=1), whole=whole)
        case "kite" | "rectangle" | "trapezoid":
            return _closed(_four(draw, name, whole=whole))
        case _:
            return _closed(_polygon(draw, corners or 3, whole=whole))


def _closed(points: list[Point]) -> list[Stroke]:
    """Lines from point to point and back to the first."""
    return [Stroke(a, b) for a, b in zip(points, [*points[1:], points[0]], strict=True)]


def _turned_round(draw: random.Random, stroke: Stroke) -> Stroke:
    """A stroke as it is, or drawn from its end to its start."""
    if draw.random() < 0.5:
        return stroke
    arc = stroke.arc and stroke.arc._replace(sweep=not stroke.arc.sweep)
    return Stroke(stroke.end, stroke.start, arc)


def _rounded(x: float, y: float) -> Point:
    return round(x, 2), round(y, 2)


def _line(draw: random.Random, pieces: int, *, whole: bool) -> list[Stroke]:
    """A line in pieces that are long enough to be seen as straight."""
    while True:
        x1, y1, x2, y2 = (_coordinate(draw, whole=whole) for _ in range(4))
        if hypot(x2 - x1, y2 - y1) > 5 * pieces:
            break
    cuts = [0.0, *(draw.uniform(n - 0.3, n + 0.3) / pieces for n in range(1, pieces)), 1.0]
    points = [_rounded(x1 + cut * (x2 - x1), y1 + cut * (y2 - y1)) for cut in cuts]
    return [Stroke(a, b) for a, b in pairwise(points)]


def _coordinate(draw: random.Random, *, whole: bool) -> float:
    return float(draw.randint(1, 99)) if whole else draw.uniform(0, WIDTH)


def _polygon(draw: random.Random, corners: int, *, whole: bool) -> list[Point]:
    """Corners about a middle, at any distance from it; no angle is nearly straight or flat."""
    while True:
        reach = draw.uniform(12 if corners < 9 else 30, 48)
        x, y = (draw.uniform(reach, WIDTH - reach) for _ in range(2))
        start, points = draw.uniform(0, 2 * pi), []
        for number in range(corners):
            angle = start + 2 * pi * (number + draw.uniform(-0.3, 0.3)) / corners
            far = reach * draw.uniform(0.45, 1)
            points.append(_rounded(x + far * cos(angle), y + far * sin(angle)))
        if whole:
            points = [(float(round(px)), float(round(py))) for px, py in points]
        if len(set(points)) == corners and all(
            _bent(points[n - 2], points[n - 1], points[n]) for n in range(corners)
        ):
            return points


def _bent(a: Point, b: Point, c: Point) -> bool:
    """Whether the way from a over b to c makes a clear turn at b."""
    (ux, uy), (vx, vy) = (b[0] - a[0], b[1] - a[1]), (c[0] - b[0], c[1] - b[1])
    return abs(ux * vy - uy * vx) > BENT * hypot(ux, uy) * hypot(vx, vy)


def _four(draw: random.Random, name: str, *, whole: bool) -> list[Point]:
    """A figure with four corners that has the name, and is no other one of that kind."""
    length = draw.randint(6, 28) if whole else draw.uniform(6, 28)
    other = length * draw.choice((draw.uniform(0.3, 0.75), draw.uniform(1.35, 2)))
    if name == "kite":  # the tip, a side, the far tip, the other side
        half = draw.uniform(0.3, 0.9) * min(length, other)
        points = [(0.0, 0.0), (half, length), (0.0, length + other), (-half, length)]
    elif name == "rectangle":
        points = [(0.0, 0.0), (length, 0.0), (length, other), (0.0, other)]
    else:  # the upper side is shifted; the two others are never parallel
        shift, height = draw.uniform(-0.5, 0.5) * length, draw.uniform(0.5, 1.2) * length
        points = [(0.0, 0.0), (length, 0.0), (shift + other, height), (shift, height)]
    return _placed(draw, points, whole=whole)


def _placed(draw: random.Random, points: list[Point], *, whole: bool) -> list[Point]:
    """Points turned and moved into the picture; upright on whole numbers, or at any angle."""
    if whole:
        right, down = draw.randint(30, 40), draw.randint(2, 15)
        return [(float(right + round(px)), float(down + round(py))) for px, py in points]
    turn = draw.uniform(0, 2 * pi)
    turned = [
        (px * cos(turn) - py * sin(turn), px * sin(turn) + py * cos(turn)) for px, py in points
    ]
    low = [min(point[axis] for point in turned) for axis in range(2)]
    high = [max(point[axis] for point in turned) for axis in range(2)]
    x, y = (draw.uniform(-low[axis], WIDTH - high[axis]) for axis in range(2))
    return [_rounded(px + x, py + y) for px, py in turned]


def _ellipse(draw: random.Random, pieces: int, *, circle: bool, whole: bool) -> list[Stroke]:
    """A whole turn in arcs: two halves as published, or more and shorter ones."""
    rx = float(draw.randint(4, 32)) if whole else round(draw.uniform(4, 32), 2)
    ry = (
        rx
        if circle
        else round(rx * draw.choice((draw.uniform(0.4, 0.8), draw.uniform(1.25, 1.5))), 2)
    )
    turn = 0.0 if whole else round(draw.uniform(0, 360), 2)
    reach = max(rx, ry) + 1
    x, y = (draw.uniform(reach, WIDTH - reach) for _ in range(2))
    if whole:
        x, y = round(x), round(y)
    start = 0.0 if whole or pieces == 2 else draw.uniform(0, 2 * pi)
    jitter = 0.0 if pieces == 2 else 0.2
    angles = [start + 2 * pi * (n + draw.uniform(-jitter, jitter)) / pieces for n in range(pieces)]
    points = []
    for angle in angles:
        u, v, phi = rx * cos(angle), -ry * sin(angle), radians(turn)
        points.append(_rounded(x + u * cos(phi) - v * sin(phi), y + u * sin(phi) + v * cos(phi)))
    arc = Arc(rx, ry, turn, pieces == 2, False)
    return [stroke._replace(arc=arc) for stroke in _closed(points)]


def _sector(draw: random.Random, pieces: int, *, whole: bool) -> list[Stroke]:
    """From the middle to the rim, along it in arcs, and back."""
    radius = float(draw.randint(9, 30)) if whole else round(draw.uniform(9, 30), 2)
    x, y = (draw.uniform(radius, WIDTH - radius) for _ in range(2))
    middle = (float(round(x)), float(round(y))) if whole else _rounded(x, y)
    start, angle = draw.uniform(0, 2 * pi), draw.uniform(0.6, 2.9)
    rim = [
        _rounded(middle[0] + radius * cos(at), middle[1] + radius * sin(at))
        for at in (start + angle * n / pieces for n in range(pieces + 1))
    ]
    arc = Arc(radius, radius, 0.0 if whole else round(draw.uniform(0, 360), 2), False, True)
    along = [Stroke(a, b, arc) for a, b in pairwise(rim)]
    return [Stroke(middle, rim[0]), *along, Stroke(rim[-1], middle)]
