"""``lovely small new bag``, not ``new lovely small bag``: the order of adjectives in English.

The order is opinion, size, age, shape, colour, origin, material, purpose. The published wrong order
is any other order of the same adjectives. Above difficulty 1 a class has several adjectives, in any
order among themselves, and fewer adjectives are misplaced.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from keju.benchmarks.fresh.task import (
    FreshQuestion,
    FreshTask,
    Language,
    add_options,
    scale_size,
    split_options,
)
from keju.types import LABELS

PUBLISHED_SIZES = {2: 21, 3: 48, 4: 82, 5: 57, 6: 32, 7: 10}
"""Published rows by their number of adjectives."""
QUESTION_TEXT = "Which sentence has the correct adjective order:"

FRESH_ADJECTIVES = (
    "charming dreadful elegant boring splendid ugly delightful annoying impressive dull pretty"
    " disgusting superb clumsy",
    "gigantic vast minuscule compact bulky oversized petite immense colossal average-size full-size"
    " pocket-size miniature sizeable",
    "antique modern medieval prehistoric century-old year-old vintage up-to-date day-old recent"
    " contemporary week-old month-old ageless",
    "oval round hexagonal cubic conical cylindrical oblong star-shaped heart-shaped curved"
    " pentagonal octagonal crescent-shaped diamond-shaped",
    "crimson violet beige turquoise maroon lilac cyan indigo scarlet khaki lavender navy mauve"
    " teal",
    "Norwegian Peruvian Kenyan Greek Canadian Moroccan Korean Swedish Cuban Dutch Chilean Irish"
    " Portuguese Nepalese",
    "marble velvet silk clay concrete bamboo denim cotton aluminium porcelain straw linen titanium"
    " granite",
    "cooking fishing racing sleeping camping swimming writing gardening hunting dancing painting"
    " sailing reading sewing",
)
"""Adjectives chosen by Keju, one class per line."""
PUBLISHED_ADJECTIVES = (
    "awful good lovely mysterious nice obnoxious repulsive ridiculous silly terrible wonderful",
    "big enormous huge large little massive medium-size midsize normal-size small tiny",
    "ancient archaic brand-new new old old-fashioned",
    "circular prismlike pyramidal rectangular spherical square triangular",
    "black blue brown gray green grey orange pink purple red tan white yellow",
    "American Bangladeshi Brazilian Chinese Congolese Egyptian Ethiopian Filipino German Indian"
    " Indonesian Iranian Japanese Mexican Nigerian Pakistani Russian Thai Turkish Vietnamese",
    "cardboard cloth fiberglass glass gold iron lead leather paper plastic rubber silver steel wood"
    " wool",
    "drinking driving eating exercise hiking smoking snorkeling typing walking whittling",
)
"""The adjectives of the published questions, where silver is a material."""
CLASSES = [words.split() for words in FRESH_ADJECTIVES]
CLASS_OF = {
    adjective: number
    for words in (FRESH_ADJECTIVES, PUBLISHED_ADJECTIVES)
    for number, adjectives in enumerate(words)
    for adjective in adjectives.split()
}
NOUNS = (
    "lamp", "bag", "table", "box", "tent", "coat", "boat", "bowl", "clock", "bench", "hat",
    "pillow", "tray", "helmet", "glove", "kettle", "blanket", "wagon", "drum", "mirror", "basket",
    "ladder", "jacket", "broom", "canoe", "cart", "rope", "stool", "bucket", "vase",
)  # fmt: skip


class Phrase(NamedTuple):
    """Adjectives as (class, index in it) in a right and a wrong order, before a noun."""

    right: list[tuple[int, int]]
    wrong: list[tuple[int, int]]
    noun: int
    answer: int


class Hyperbaton(FreshTask):
    """A problem is a `Phrase`."""

    subset = "hyperbaton"

    def invent(self, draw: random.Random, difficulty: float) -> Phrase:
        (size,) = draw.choices(list(PUBLISHED_SIZES), list(PUBLISHED_SIZES.values()))
        rounds, remainder = divmod(2 + scale_size(size - 2, difficulty, least=0), len(CLASSES))
        numbers = sorted(
            [*draw.sample(range(len(CLASSES)), remainder), *list(range(len(CLASSES))) * rounds]
        )
        right: list[tuple[int, int]] = []
        for number in sorted(set(numbers)):
            entries = draw.sample(range(len(CLASSES[number])), numbers.count(number))
            right += [(number, entry) for entry in entries]
        return Phrase(
            right=right,
            wrong=_draw_wrong_order(draw, right, difficulty),
            noun=draw.randrange(len(NOUNS)),
            answer=draw.randrange(2),
        )

    def write(self, problem: Phrase, language: Language) -> FreshQuestion:
        orders = [problem.right, problem.wrong][:: -1 if problem.answer else 1]
        options = [
            " ".join([*(CLASSES[number][entry] for number, entry in order), NOUNS[problem.noun]])
            for order in orders
        ]
        return add_options(QUESTION_TEXT, options, problem.answer, language)

    def solve(self, text: str) -> str | None:
        question, options = split_options(text)
        if question != QUESTION_TEXT:
            return None
        right = []
        for label, option in zip(LABELS, options, strict=False):
            *adjectives, _ = option.split()
            classes = [CLASS_OF.get(adjective) for adjective in adjectives]
            known_classes = [number for number in classes if number is not None]
            if len(known_classes) < len(classes):
                return None
            if known_classes == sorted(known_classes):
                right.append(f"({label})")
        return right[0] if len(right) == 1 else None


def _draw_wrong_order(
    draw: random.Random, right: list[tuple[int, int]], difficulty: float
) -> list[tuple[int, int]]:
    """Draw a wrong order, of all adjectives, or of some if the question is harder."""
    classes = [number for number, _ in right]
    moved_count = max(2, round(len(right) / max(1, difficulty)))
    while True:
        places = draw.sample(range(len(right)), moved_count)
        wrong = right.copy()
        for place, source in zip(sorted(places), places, strict=True):
            wrong[place] = right[source]
        if [number for number, _ in wrong] != classes:
            return wrong
