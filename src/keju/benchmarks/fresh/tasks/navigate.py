"""``Take 3 steps. Turn around. Take 3 steps.``: whether some steps lead back to the start.

There are two kinds of published walks. In one you always face forward and walk to any side; in the
other you walk straight on and turn. In fresh walks both answers are equally likely; 42 % of the
published ones lead back. Walks that lead back are as random as the others. Directions are drawn,
and accepted with the probability that random step sizes in these directions lead back. Then such
sizes are drawn.
"""

from __future__ import annotations

import random
import re
from functools import cache
from typing import NamedTuple

from keju.benchmarks.fresh.task import OPTIONS, FreshQuestion, FreshTask, Language, scale_size

FACING_SIZES = {2: 12, 3: 31, 4: 28, 5: 15, 6: 16, 7: 8, 8: 9, 9: 3}
TURNING_SIZES = {3: 13, 4: 27, 5: 26, 6: 16, 7: 24, 8: 15, 9: 7}
"""Published walks by their number of instructions."""
STEPS = 10
"""The maximum number of steps in an instruction."""
WALKED = 0.64
"""The share of steps among the instructions of a walk with turns."""

SIDES = ("forward", "right", "backward", "left")
"""In clockwise order: the index of a side is its number of quarter turns."""
TURNS = {"right": 1, "around": 2, "left": 3}


class NavigateWords(NamedTuple):
    """The texts of a language, and the pattern of an instruction."""

    question: str
    facing: str
    gap: str
    step: str
    sides: dict[str, str]
    turns: dict[str, str]
    answers: tuple[str, str]
    instruction: re.Pattern[str]


WORDS: dict[Language, NavigateWords] = {
    "en": NavigateWords(
        "If you follow these instructions, do you return to the starting point? ",
        "Always face forward.", " ", "Take {size} step{s}{side}.",
        {"": "", **{side: f" {side}" for side in SIDES}},
        {"right": "Turn right.", "around": "Turn around.", "left": "Turn left."},
        ("No", "Yes"),
        # Take 1 step. Take 3 steps left. Turn around.
        re.compile(r"(?:Take (?P<size>\d+) steps?(?: (?P<side>\w+))?|Turn \w+)\. ?"),
    ),
    "zh": NavigateWords(
        "按照下面的指示走，你会回到起点吗？", "始终面朝前方。", "", "{side}走 {size} 步。",
        {"": "", "forward": "向前", "right": "向右", "backward": "向后", "left": "向左"},
        {"right": "右转。", "around": "向后转。", "left": "左转。"},
        ("否", "是"),
        # 走 1 步。向左走 3 步。向后转。
        re.compile(r"(?:(?P<side>向.)?走 (?P<size>\d+) 步|(?:右|向后|左)转)。"),
    ),
}  # fmt: skip


class Walk(NamedTuple):
    """An instruction is a side and a number of steps, or a turn and no steps."""

    facing: bool
    instructions: list[tuple[str, int]]
    returns: bool


class Navigate(FreshTask):
    """A problem is a `Walk`."""

    subset = "navigate"
    languages = ("en", "zh")

    def invent(self, draw: random.Random, difficulty: float) -> Walk:
        facing, returns = draw.random() < 0.5, draw.random() < 0.5
        sizes = FACING_SIZES if facing else TURNING_SIZES
        (published,) = draw.choices(list(sizes), list(sizes.values()))
        size = _walk_size(published, difficulty, easiest_size=min(sizes) + 1)
        while True:
            moves, headings = (_draw_facing_plan if facing else _draw_turning_plan)(draw, size)
            steps = (_draw_steps_back if returns else _draw_steps_away)(draw, headings)
            if steps:
                turns, remaining_steps = () if facing else TURNS, iter(steps)
                instructions = [
                    (move, 0 if move in turns else next(remaining_steps)) for move in moves
                ]
                return Walk(facing, instructions, returns)

    def write(self, problem: Walk, language: Language) -> FreshQuestion:
        words = WORDS[language]
        sentences = [words.facing] if problem.facing else []
        for move, size in problem.instructions:
            s, side = "" if size == 1 else "s", words.sides.get(move)
            step = words.step.format(size=size, s=s, side=side)
            sentences.append(step if size else words.turns[move])
        no, yes = words.answers
        text = f"{words.question}{words.gap.join(sentences)}\n{OPTIONS[language]}\n- {yes}\n- {no}"
        return FreshQuestion(text, words.answers[problem.returns])

    def solve(self, text: str) -> str | None:
        for language, words in WORDS.items():
            no, yes = words.answers
            ending = f"\n{OPTIONS[language]}\n- {yes}\n- {no}"
            if text.startswith(words.question) and text.endswith(ending):
                returns = _returns_to_start(
                    text.removeprefix(words.question).removesuffix(ending), words
                )
                return None if returns is None else words.answers[returns]
        return None


# --- drawing -----------------------------------------------------------------------------------


def _walk_size(published: int, difficulty: float, *, easiest_size: int) -> int:
    """Return the number of instructions; easy walks approach `easiest_size`, as shorter walks are
    few."""
    if difficulty < 1:
        return round(easiest_size + (published - easiest_size) * difficulty)
    return scale_size(published, difficulty, least=2)


def _draw_facing_plan(draw: random.Random, size: int) -> tuple[list[str], list[int]]:
    """Draw the move of each instruction, and the direction of its steps."""
    headings = [draw.randrange(len(SIDES)) for _ in range(size)]
    return [SIDES[heading] for heading in headings], headings


def _draw_turning_plan(draw: random.Random, size: int) -> tuple[list[str], list[int]]:
    """Draw the same with turns; steps straight on have no side."""
    moves, headings, heading = [], [], 0
    for _ in range(size):
        if draw.random() < WALKED:
            moves.append("")
            headings.append(heading)
        else:
            turn = draw.choice(list(TURNS))
            moves.append(turn)
            heading = (heading + TURNS[turn]) % len(SIDES)
    return moves, headings


def _draw_steps_away(draw: random.Random, headings: list[int]) -> list[int]:
    """Draw random steps; none if they happen to lead back."""
    steps, sums = [draw.randint(1, STEPS) for _ in headings], [0] * len(SIDES)
    for heading, size in zip(headings, steps, strict=True):
        sums[heading] += size
    return [] if sums[0] == sums[2] and sums[1] == sums[3] else steps


def _draw_steps_back(draw: random.Random, headings: list[int]) -> list[int]:
    """Draw steps that lead back; return none with the probability that corrects for the directions.

    A step of x in one direction counts as x, one in the opposite direction as 11 - x. Steps lead
    back if their counts add up to 11 for each step of the latter kind, like dice with a known sum.
    """
    counts = [headings.count(side) for side in range(len(SIDES))]
    size = len(headings)
    likely = _return_chance(counts[0] + counts[2], counts[2]) * _return_chance(
        counts[1] + counts[3], counts[3]
    )
    if size < 2 or draw.random() >= likely / _return_chance(size, size // 2):
        return []
    remaining_dice = [counts[0] + counts[2], counts[1] + counts[3]]
    sums = [(STEPS + 1) * counts[2], (STEPS + 1) * counts[3]]
    steps = []
    for heading in headings:
        axis = heading % 2
        place = draw.randrange(_count_ways(remaining_dice[axis], sums[axis]))
        remaining_dice[axis] -= 1
        for value in range(1, STEPS + 1):
            ways = _count_ways(remaining_dice[axis], sums[axis] - value)
            if place < ways:
                break
            place -= ways
        sums[axis] -= value
        steps.append(value if heading < 2 else STEPS + 1 - value)
    return steps


@cache
def _count_ways(dice: int, total: int) -> int:
    """Return the number of ways in which dice with `STEPS` sides show a sum."""
    if not dice:
        return int(total == 0)
    if not dice <= total <= STEPS * dice:
        return 0
    return sum(_count_ways(dice - 1, total - value) for value in range(1, STEPS + 1))


@cache
def _return_chance(steps: int, backward: int) -> float:
    """Return the chance that steps along one axis lead back, given how many go backward."""
    return _count_ways(steps, (STEPS + 1) * backward) / float(STEPS) ** steps


# --- solving -----------------------------------------------------------------------------------


def _returns_to_start(text: str, words: NavigateWords) -> bool | None:
    """Whether a walk leads back; None if an instruction is not understood."""
    facing = text.startswith(words.facing)
    place = len(words.facing) + len(words.gap) if facing else 0
    turns = {phrase: turn for turn, phrase in words.turns.items()}
    sides = {phrase.strip(): side for side, phrase in words.sides.items()}
    x = y = heading = 0
    while match := words.instruction.match(text, place):
        place = match.end()
        if turn := turns.get(match[0].strip()):
            heading += TURNS[turn]
            continue
        side, size = sides.get(match["side"] or ""), int(match["size"] or 0)
        # An instruction names a side exactly if the walk has no turns.
        if side is None or not size or facing != bool(side):
            return None
        towards = SIDES.index(side) if side else heading % len(SIDES)
        x += size * (0, 1, 0, -1)[towards]
        y += size * (1, 0, -1, 0)[towards]
    return x == y == 0 if place == len(text) > 0 else None
