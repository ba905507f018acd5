"""Fresh questions in their order: the same seed gives the same exam, wherever and however often.

Question after question is drawn from the seed and its number. One that was there before, or that
is one of the published questions, is left out; so an exam of more questions begins with those of a
smaller one. Both are decided on the English text, so that every language has the same questions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from itertools import count

from keju.benchmarks.fresh.task import Language, Question, Task, split_options
from keju.benchmarks.samples import DigestTable
from keju.errors import ConfigError

VERSION = 1
"""Of the generators: a change that gives other questions to a seed raises it."""
PUBLISHED = "published.bin"
"""Eight bytes of the digest of every published question, subset after subset."""
PUBLISHED_BYTES = 8
MOST_REPEATS = 1000
"""Draws in a row that give nothing new, after which there is nothing more to be had."""
PATIENCE = 20
"""Draws in a row for each question of a small space: the last one left is found, too."""


def make_questions(
    task: Task, n: int, *, seed: int, difficulty: float, language: Language = "en"
) -> Iterator[Question]:
    """The first `n` questions of a seed; ConfigError where there are not so many."""
    values = {"subset": task.subset, "difficulty": f"{difficulty:g}", "n": n}
    space = task.space(difficulty)
    if space is not None and n > space:
        raise ConfigError("fresh.too_many", most=space, **values)
    seen, draw = DigestTable(size=n), random.Random()
    repeats = 0
    for number in count():
        if len(seen) == n:
            return
        if repeats == max(MOST_REPEATS, PATIENCE * (space or 0)):
            raise ConfigError("fresh.too_many", most=len(seen), **values)
        draw.seed(f"keju:{VERSION}:{task.subset}:{seed}:{difficulty:g}:{number}")
        problem = task.invent(draw, difficulty)
        question = task.write(problem, "en")
        digest, known = digest_of(question.text), len(seen)
        if digest[:PUBLISHED_BYTES] in published() or seen.add(digest) < known:
            repeats += 1
            continue
        repeats = 0
        yield question if language == "en" else task.write(problem, language)


def digest_of(text: str) -> bytes:
    """A digest that the order of the options does not change."""
    head, options = split_options(text)
    plain = "\n".join([head, *sorted(options)]).casefold()
    return blake2b(" ".join(plain.split()).encode(), digest_size=16).digest()


@cache
def published() -> frozenset[bytes]:
    """What `digest_of` gives the published questions, the first bytes of it."""
    content = files("keju.benchmarks.fresh").joinpath(PUBLISHED).read_bytes()
    size = PUBLISHED_BYTES
    return frozenset(content[at : at + size] for at in range(0, len(content), size))
