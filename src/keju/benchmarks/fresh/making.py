"""Generate fresh questions in order: the same seed always gives the same exam.

Each question is drawn from the seed and a number. A question that repeats an earlier or a published
one is skipped. So a larger exam begins with the questions of a smaller one. Both checks use the
English text, so that every language has the same questions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from itertools import count

from keju.benchmarks.fresh.task import FreshQuestion, FreshTask, Language, split_options
from keju.benchmarks.samples import DigestTable
from keju.errors import ConfigError

VERSION = 1
"""Version of the generators; it increases when a seed gives different questions."""
PUBLISHED = "published.bin"
"""Eight bytes of the digest of each published question, in the order of the subsets."""
PUBLISHED_BYTES = 8
MOST_REPEATS = 1000
"""Draws in a row without a new question, after which Keju gives up."""
PATIENCE = 20
"""Draws in a row per question of a small space, enough to find also the last new question."""


def make_questions(
    task: FreshTask, n: int, *, seed: int, difficulty: float, language: Language = "en"
) -> Iterator[FreshQuestion]:
    """Yield the first `n` questions of a seed; ConfigError if there are fewer."""
    values = {"subset": task.subset, "difficulty": f"{difficulty:g}", "n": n}
    space = task.space(difficulty)
    if space is not None and n > space:
        raise ConfigError("fresh.too_many", most=space, **values)
    seen_questions, draw = DigestTable(size=n), random.Random()
    repeats = 0
    for number in count():
        if len(seen_questions) == n:
            return
        if repeats == max(MOST_REPEATS, PATIENCE * (space or 0)):
            raise ConfigError("fresh.too_many", most=len(seen_questions), **values)
        draw.seed(f"keju:{VERSION}:{task.subset}:{seed}:{difficulty:g}:{number}")
        problem = task.invent(draw, difficulty)
        question = task.write(problem, "en")
        digest, known_count = question_digest(question.text), len(seen_questions)
        if (
            digest[:PUBLISHED_BYTES] in published_digests()
            or seen_questions.add(digest) < known_count
        ):
            repeats += 1
            continue
        repeats = 0
        yield question if language == "en" else task.write(problem, language)


def question_digest(text: str) -> bytes:
    """Return a digest that does not depend on the order of the options."""
    head, options = split_options(text)
    normalized_text = "\n".join([head, *sorted(options)]).casefold()
    return blake2b(" ".join(normalized_text.split()).encode(), digest_size=16).digest()


@cache
def published_digests() -> frozenset[bytes]:
    """Return the first bytes of `question_digest` for all published questions."""
    content = files("keju.benchmarks.fresh").joinpath(PUBLISHED).read_bytes()
    size = PUBLISHED_BYTES
    return frozenset(content[start : start + size] for start in range(0, len(content), size))
