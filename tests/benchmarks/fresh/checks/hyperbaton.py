"""Every pair of adjectives is looked at: the right phrase has none whose first should be second."""

from __future__ import annotations

from itertools import combinations

DICTIONARY = """
purpose: camping, cooking, dancing, fishing, gardening, hunting, painting, racing, reading, sailing,
 sewing, sleeping, swimming, writing
material: aluminium, bamboo, clay, concrete, cotton, denim, granite, linen, marble, porcelain, silk,
 straw, titanium, velvet
origin: Canadian, Chilean, Cuban, Dutch, Greek, Irish, Kenyan, Korean, Moroccan, Nepalese, Norwegian,
 Peruvian, Portuguese, Swedish
colour: beige, crimson, cyan, indigo, khaki, lavender, lilac, maroon, mauve, navy, scarlet, teal,
 turquoise, violet
shape: conical, crescent-shaped, cubic, curved, cylindrical, diamond-shaped, heart-shaped, hexagonal,
 oblong, octagonal, oval, pentagonal, round, star-shaped
age: ageless, antique, century-old, contemporary, day-old, medieval, modern, month-old, prehistoric,
 recent, up-to-date, vintage, week-old, year-old
size: average-size, bulky, colossal, compact, full-size, gigantic, immense, miniature, minuscule,
 oversized, petite, pocket-size, sizeable, vast
opinion: annoying, boring, charming, clumsy, delightful, disgusting, dreadful, dull, elegant,
 impressive, pretty, splendid, superb, ugly
"""
CLOSENESS: dict[str, int] = {}
"""How near to the noun an adjective stands: a purpose is next to it."""
for distance, entry in enumerate(DICTIONARY.replace("\n ", " ").strip().splitlines()):
    for word in entry.partition(": ")[2].split(", "):
        CLOSENESS[word] = distance


def answer(text: str) -> str:
    """The label of the phrase without a pair in the wrong order."""
    faults = {}
    for line in text.splitlines()[2:]:
        label, *adjectives, _noun = line.split()
        faults[label] = sum(
            CLOSENESS[left_adjective] < CLOSENESS[right_adjective]
            for left_adjective, right_adjective in combinations(adjectives, 2)
        )
    (right,) = [label for label, count in faults.items() if not count]
    return right
