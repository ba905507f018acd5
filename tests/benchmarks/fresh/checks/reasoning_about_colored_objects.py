"""Things are laid out one by one as plain dictionaries; a question is answered by looking at each."""

from __future__ import annotations

from typing import Any

WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty twenty-one twenty-two twenty-three twenty-four"
)
NOUNS = {"thing", "things", "item", "items", "object", "objects"}


def answer(text: str) -> str:
    """The label of the option that is the answer's word."""
    lines = text.splitlines()
    story, options = lines[0], lines[2:]
    told, _, asked = story.rpartition(". ")
    things = laid_out(told)
    word = find(things, asked.rstrip("?").split())
    (line,) = [option for option in options if option.split(") ", 1)[1] == word]
    return line[:3]


def laid_out(told: str) -> list[dict[str, Any]]:
    """One dictionary a thing, in their order; ``two red cups`` are two of them."""
    listed = told.split(", ", 1)[1]
    listed = listed.split(": ")[1] if ": " in listed else listed.split(" ", 2)[2]
    things: list[dict[str, Any]] = []
    for part in listed.replace(", and ", ", ").replace(" and ", ", ").split(", "):
        number, colour, name = part.split(" ", 2)
        count = 1 if number in ("a", "an") else WORDS.split().index(number)
        things += [{"colour": colour, "name": single(name)}] * count
    return things


def single(name: str) -> str:
    """A name without its plural: ``pairs of gloves`` is ``pair of gloves``."""
    first, *rest = name.split(" of ")
    for many, one in (("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("ss", "ss"), ("s", "")):
        if first.endswith(many):
            first = first[: -len(many)] + one
            break
    return " of ".join([first, *rest])


def fits(thing: dict[str, Any], words: list[str]) -> bool:
    """Whether a thing is what the words say: ``red items``, ``lunch boxes``."""
    if len(words) == 2 and words[1] in NOUNS:
        return bool(thing["colour"] == words[0])
    return bool(thing["name"] == single(" ".join(words)))


def find(things: list[dict[str, Any]], words: list[str]) -> str:
    """The word that answers a question, given by its words."""
    colours = [thing["colour"] for thing in things]
    if words[0] == "If":
        gone = words[words.index("the") + 1 : words.index("from")]
        counted = words[words.index("many") + 1 : words.index("remain")]
        kept = [t for t in things if not fits(t, gone)]
        return number(sum(fits(thing, counted) for thing in kept))
    if words[0] == "Is":
        (thing,) = [thing for thing in things if fits(thing, words[2:-1])]
        return "yes" if thing["colour"] == words[-1] else "no"
    if words[:2] == ["What", "color"]:
        (thing,) = [thing for thing in things if fits(thing, words[4:])]
        return str(thing["colour"])
    if "neither" in words:
        return number(sum(colour not in (words[-3], words[-1]) for colour in colours))
    for end, place in (("left-most", 0), ("right-most", -1)):
        if end in words:
            return str(colours[place])
    last = len(words) - 1 - words[::-1].index("the")
    (place,) = [at for at, thing in enumerate(things) if fits(thing, words[last + 1 :])]
    if "furthest" in words:
        distance = [abs(at - place) for at in range(len(things))]
        assert distance.count(max(distance)) == 1
        return str(colours[distance.index(max(distance))])
    left = "left" in words
    if "directly" in words:
        return str(colours[place - 1 if left else place + 1])
    banned = words[2].removeprefix("non-")
    beside = [c for at, c in enumerate(colours) if (at < place if left else at > place)]
    return number(sum(colour != banned for colour in beside))


def number(count: int) -> str:
    """A number as a word."""
    return WORDS.split()[count]
