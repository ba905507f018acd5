"""Large sequences of samples that use little memory, and the selection of questions.

`LazySamples` make each sample on access. `DigestTable` numbers samples and records by 16-byte
digests. `select` and `restrict` choose rows of an exam.
"""

from __future__ import annotations

import copy
import hashlib
import heapq
import math
import random
from abc import abstractmethod
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import Literal, overload

from keju.benchmarks.base import Exam, Subset
from keju.benchmarks.choices import permute, shuffle_order
from keju.files import SpooledSequence
from keju.types import Sample

CACHE_SIZE = 512
"""Samples kept in the cache: more than are usually in flight."""
DIGEST = 16
"""Bytes of the digest of a request, a key or an id."""

SelectionMethod = Literal["first", "random", "stratified"]


class LazySamples(Sequence[Sample]):
    """A sequence that makes each sample with `make` when it is accessed.

    It caches recent samples, because Keju uses a question twice: to ask it and to grade its reply.
    """

    @abstractmethod
    def make(self, index: int) -> Sample:
        """Return the sample at `index`, which is at least 0 and below the length."""

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return [self.make(i) for i in range(*index.indices(len(self)))]
        if (sample := self._cache.get(index)) is None:
            if not 0 <= index < len(self):
                raise IndexError(index)
            if len(self._cache) >= CACHE_SIZE:
                self._cache.clear()
            sample = self._cache[index] = self.make(index)
        return sample

    def __iter__(self) -> Iterator[Sample]:
        return map(self.make, range(len(self)))

    @cached_property
    def _cache(self) -> dict[int, Sample]:
        return {}


class ChosenSamples(LazySamples):
    """Selected rows of another sequence, in a given order; four bytes of memory per row."""

    def __init__(self, samples: Sequence[Sample], rows: Sequence[int]) -> None:
        self._samples = samples
        self._rows = rows if isinstance(rows, range) else array("I", rows)

    def __len__(self) -> int:
        return len(self._rows)

    def make(self, index: int) -> Sample:
        return self._samples[self._rows[index]]


class ShuffledSamples(LazySamples):
    """Samples with shuffled options; each order depends only on the seed and the sample."""

    def __init__(self, samples: Sequence[Sample], seed: int) -> None:
        self._samples = samples
        self._seed = seed

    def __len__(self) -> int:
        return len(self._samples)

    def make(self, index: int) -> Sample:
        sample = self._samples[index]
        return permute(sample, shuffle_order(len(sample.choices), self._seed, sample.id))


class SpooledSamples(LazySamples):
    """Samples in a temporary file of this process; eight bytes of memory per sample.

    The file is a copy: edits to the exam's files during a run have no effect.
    """

    def __init__(self) -> None:
        self._stored: SpooledSequence[Sample] = SpooledSequence(Sample)

    def append(self, sample: Sample) -> None:
        """Append one sample."""
        self._stored.append(sample)

    def __len__(self) -> int:
        return len(self._stored)

    def make(self, index: int) -> Sample:
        return self._stored[index]


# --- digests ------------------------------------------------------------------------------------


def hash_digest(text: str) -> bytes:
    """Return the digest that a record's hash encodes; other texts are hashed."""
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    return digest if len(digest) == DIGEST else text_digest(text)


def text_digest(text: str) -> bytes:
    """Return the digest of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST).digest()


class DigestTable:
    """Numbers digests from 0 in the order of insertion.

    The table uses open addressing: each slot holds the number of a digest plus 1, or 0 if it is
    free. A million digests take 24 MB; a dict of them takes 150. `size` is the expected number of
    digests.
    """

    def __init__(self, digests: Iterable[bytes] = (), *, size: int = 0) -> None:
        self._digests = bytearray()
        self._slots = array("I", bytes(4 << max(10, (size * 3 // 2).bit_length())))
        for digest in digests:
            self.add(digest)

    def __len__(self) -> int:
        return len(self._digests) // DIGEST

    def find(self, digest: bytes) -> int:
        """Return the number of a digest, or -1 if it is not in the table."""
        slots, digests, mask = self._slots, self._digests, len(self._slots) - 1
        slot = int.from_bytes(digest[:8]) & mask
        while (end := slots[slot]) and digests[(end - 1) * DIGEST : end * DIGEST] != digest:
            slot = (slot + 1) & mask
        return end - 1

    def add(self, digest: bytes) -> int:
        """Add a digest if it is new, and return its number."""
        slots, digests, mask = self._slots, self._digests, len(self._slots) - 1
        slot = int.from_bytes(digest[:8]) & mask
        while end := slots[slot]:
            if digests[(end - 1) * DIGEST : end * DIGEST] == digest:
                return end - 1
            slot = (slot + 1) & mask
        digests += digest
        slots[slot] = len(self)
        if 3 * len(self) > 2 * len(slots):  # nearly full: lookups become slow
            self._grow()
        return len(self) - 1

    def _grow(self) -> None:
        """Double the slots; the digests keep their numbers."""
        digests = self._digests
        self._slots = slots = array("I", bytes(2 * self._slots.itemsize * len(self._slots)))
        mask = len(slots) - 1
        for number, start in enumerate(range(0, len(digests), DIGEST), 1):
            slot = int.from_bytes(digests[start : start + 8]) & mask
            while slots[slot]:
                slot = (slot + 1) & mask
            slots[slot] = number


# --- selection of questions ----------------------------------------------------------------------


def select(
    exam: Exam,
    limit: int | float | None,
    *,
    total: int | None = None,
    method: SelectionMethod = "first",
    shuffle: bool = False,
    seed: int,
) -> Exam:
    """Return `exam` with at most `limit` questions (or that share) of each subset.

    `total` limits the number of questions over all subsets; each subset gets a part in proportion
    to its size. `first` keeps the order of the data, `random` draws with the seed, and `stratified`
    draws so that the target answers keep their proportions. A larger limit keeps all questions that
    a smaller one drew. `shuffle` permutes each subset first.
    """
    if limit is None and total is None and not shuffle:
        return exam
    subset_counts = split_total([len(subset) for subset in exam.subsets], total) if total else None
    selected_rows: array[int] = array("I")
    subsets: list[Subset] = []
    for number, subset in enumerate(exam.subsets):
        rows: Sequence[int] = range(subset.start, subset.stop)
        draw = random.Random(f"{seed}:{exam.benchmark}:{subset.name}")
        if shuffle:
            draw.shuffle(shuffled := array("I", rows))
            rows = shuffled
        count = subset_counts[number] if subset_counts else _limit_count(len(rows), limit)
        if subset_counts and not count:
            continue
        start = len(selected_rows)
        strata = exam.samples if method == "stratified" else None
        is_first = count == len(rows) or method == "first"
        selected_rows.extend(rows[:count] if is_first else _draw_rows(rows, count, draw, strata))
        subsets.append(Subset(subset.name, start, len(selected_rows), subset.title, len(rows)))
    drawn_exam = _select_rows(exam, selected_rows, subsets)
    drawn_exam.undrawn = {subset.name for subset in exam.subsets} - {
        subset.name for subset in subsets
    }
    return drawn_exam


def _limit_count(size: int, limit: int | float | None) -> int:
    """Return how many questions of a subset a limit keeps; a float is a share."""
    if limit is None:
        return size
    return min(size, limit if isinstance(limit, int) else math.ceil(size * limit))


def _draw_rows(
    rows: Sequence[int], count: int, draw: random.Random, strata: Sequence[Sample] | None
) -> list[int]:
    """Draw some rows; with `strata`, the target answers keep their proportions."""
    drawn = draw.sample(rows, len(rows))
    if strata is not None:
        ranked_rows = heapq.nsmallest(
            count, _stratified_positions(drawn, strata), key=itemgetter(0)
        )
        drawn = [row for _, row in ranked_rows]
    return sorted(drawn[:count])


def split_total(sizes: Sequence[int], total: int) -> list[int]:
    """Split `total` over subsets of these sizes; a larger total never takes a question away.

    The k-th question of a subset of n has the position (k + 1/2) / n. The `total` lowest positions
    are taken. For example, subsets of 30 and 10 questions give 8 and 2 for a total of 10.
    """
    places = heapq.merge(
        *([((k + 0.5) / n, number) for k in range(n)] for number, n in enumerate(sizes))
    )
    counts = [0] * len(sizes)
    for _, number in islice(places, total):
        counts[number] += 1
    return counts


def restrict_to_ids(exam: Exam, ids: Collection[str]) -> Exam:
    """Return `exam` with only the questions with these ids."""
    rows = [row for row, sample in enumerate(exam.samples) if sample.id in ids]
    return restrict(exam, rows)


def restrict(exam: Exam, rows: Sequence[int]) -> Exam:
    """Return `exam` with only these rows, in ascending order; empty subsets are removed."""
    if len(rows) == len(exam.samples):
        return exam
    subsets: list[Subset] = []
    start = 0
    for subset in exam.subsets:
        stop = bisect_left(rows, subset.stop)
        if stop > start:
            subsets.append(Subset(subset.name, start, stop, subset.title, len(subset)))
        start = stop
    return _select_rows(exam, rows, subsets)


def mark_as_drawn(exam: Exam) -> Exam:
    """Return `exam` with its subsets marked as random draws, unless they already are."""
    drawn = copy.copy(exam)
    drawn.subsets = tuple(
        replace(subset, population=subset.population or len(subset)) for subset in exam.subsets
    )
    return drawn


def _select_rows(exam: Exam, rows: Sequence[int], subsets: Sequence[Subset]) -> Exam:
    restricted_exam = copy.copy(exam)
    restricted_exam.samples, restricted_exam.subsets = (
        ChosenSamples(exam.samples, rows),
        tuple(subsets),
    )
    return restricted_exam


def _stratified_positions(
    rows: Sequence[int], samples: Sequence[Sample]
) -> Iterator[tuple[float, int]]:
    """Yield each row with a position; every beginning of the sorted order is stratified by target.

    The k-th of n rows with the same target has the position (k + 1/2) / n.
    """
    strata: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        strata[samples[row].target].append(row)
    for members in strata.values():
        for rank, row in enumerate(members):
            yield (rank + 0.5) / len(members), row
