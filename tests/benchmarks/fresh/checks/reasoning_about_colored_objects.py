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
    scene, _, question = story.rpartition(". ")
    objects = laid_out(scene)
    word = find(objects, question.rstrip("?").split())
    (line,) = [option for option in options if option.split(") ", 1)[1] == word]
    return line[:3]


def laid_out(scene: str) -> list[dict[str, Any]]:
    """One dictionary a thing, in their order; ``two red cups`` are two of them."""
    object_texts = scene.split(", ", 1)[1]
    object_texts = (
        object_texts.split(": ")[1] if ": " in object_texts else object_texts.split(" ", 2)[2]
    )
    objects: list[dict[str, Any]] = []
    for part in object_texts.replace(", and ", ", ").replace(" and ", ", ").split(", "):
        number, colour, name = part.split(" ", 2)
        count = 1 if number in ("a", "an") else WORDS.split().index(number)
        objects += [{"colour": colour, "name": single(name)}] * count
    return objects


def single(name: str) -> str:
    """A name without its plural: ``pairs of gloves`` is ``pair of gloves``."""
    head_noun, *modifiers = name.split(" of ")
    for plural, singular in (("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("ss", "ss"), ("s", "")):
        if head_noun.endswith(plural):
            head_noun = head_noun[: -len(plural)] + singular
            break
    return " of ".join([head_noun, *modifiers])


def fits(item: dict[str, Any], words: list[str]) -> bool:
    """Whether a thing is what the words say: ``red items``, ``lunch boxes``."""
    if len(words) == 2 and words[1] in NOUNS:
        return bool(item["colour"] == words[0])
    return bool(item["name"] == single(" ".join(words)))


def find(objects: list[dict[str, Any]], words: list[str]) -> str:
    """The word that answers a question, given by its words."""
    colours = [item["colour"] for item in objects]
    if words[0] == "If":
        removed_words = words[words.index("the") + 1 : words.index("from")]
        counted = words[words.index("many") + 1 : words.index("remain")]
        remaining = [t for t in objects if not fits(t, removed_words)]
        return number(sum(fits(item, counted) for item in remaining))
    if words[0] == "Is":
        (item,) = [item for item in objects if fits(item, words[2:-1])]
        return "yes" if item["colour"] == words[-1] else "no"
    if words[:2] == ["What", "color"]:
        (item,) = [item for item in objects if fits(item, words[4:])]
        return str(item["colour"])
    if "neither" in words:
        return number(sum(colour not in (words[-3], words[-1]) for colour in colours))
    for end, place in (("left-most", 0), ("right-most", -1)):
        if end in words:
            return str(colours[place])
    last_article = len(words) - 1 - words[::-1].index("the")
    (place,) = [at for at, item in enumerate(objects) if fits(item, words[last_article + 1 :])]
    if "furthest" in words:
        distance = [abs(at - place) for at in range(len(objects))]
        assert distance.count(max(distance)) == 1
        return str(colours[distance.index(max(distance))])
    is_left = "left" in words
    if "directly" in words:
        return str(colours[place - 1 if is_left else place + 1])
    banned = words[2].removeprefix("non-")
    neighbours = [c for at, c in enumerate(colours) if (at < place if is_left else at > place)]
    return number(sum(colour != banned for colour in neighbours))


def number(count: int) -> str:
    """A number as a word."""
    return WORDS.split()[count]
