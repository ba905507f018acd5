"""Sequences of many samples in little memory, and which of an exam's questions are asked.

`LazySamples` make each sample when it is looked at, `DigestTable` numbers samples and records by
16-byte digests, `select` and `restrict` choose rows of an exam.
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
from keju.benchmarks.choices import permuted, shuffle_order
from keju.files import Spool
from keju.types import Sample

KEPT = 512
"""Samples that are kept after they were made: more than are usually in flight."""
DIGEST = 16
"""Bytes of a request's hash, of a key's and of an id's."""

How = Literal["first", "random", "stratified"]


class LazySamples(Sequence[Sample]):
    """A sequence of samples of which each is made by `make` when it is asked for.

    The last few are kept: a question is looked at when it is asked, and again when it is answered.
    """

    @abstractmethod
    def make(self, index: int) -> Sample:
        """The sample at `index`, which is at least 0 and below the length."""

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return [self.make(i) for i in range(*index.indices(len(self)))]
        if (sample := self._recent.get(index)) is None:
            if not 0 <= index < len(self):
                raise IndexError(index)
            if len(self._recent) >= KEPT:
                self._recent.clear()
            sample = self._recent[index] = self.make(index)
        return sample

    def __iter__(self) -> Iterator[Sample]:
        return map(self.make, range(len(self)))

    @cached_property
    def _recent(self) -> dict[int, Sample]:
        return {}


class ChosenSamples(LazySamples):
    """Some rows of other samples, in an order of their own: four bytes a row."""

    def __init__(self, samples: Sequence[Sample], rows: Sequence[int]) -> None:
        self._samples = samples
        self._rows = rows if isinstance(rows, range) else array("I", rows)

    def __len__(self) -> int:
        return len(self._rows)

    def make(self, index: int) -> Sample:
        return self._samples[self._rows[index]]


class ShuffledSamples(LazySamples):
    """Samples with their options permuted; each order depends on seed and sample alone."""

    def __init__(self, samples: Sequence[Sample], seed: int) -> None:
        self._samples = samples
        self._seed = seed

    def __len__(self) -> int:
        return len(self._samples)

    def make(self, index: int) -> Sample:
        sample = self._samples[index]
        return permuted(sample, shuffle_order(len(sample.choices), self._seed, sample.id))


class StoredSamples(LazySamples):
    """Samples in a temporary file of this process: eight bytes of memory a sample.

    It is a copy: whoever edits the exam's own files while it is sat changes nothing.
    """

    def __init__(self) -> None:
        self._stored: Spool[Sample] = Spool(Sample)

    def append(self, sample: Sample) -> None:
        """Add one sample at the end."""
        self._stored.append(sample)

    def __len__(self) -> int:
        return len(self._stored)

    def make(self, index: int) -> Sample:
        return self._stored[index]


# --- digests ------------------------------------------------------------------------------------


def hash_digest(text: str) -> bytes:
    """The digest that a record's hash spells; another text than 32 hex digits gets its own."""
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    return digest if len(digest) == DIGEST else text_digest(text)


def text_digest(text: str) -> bytes:
    """The digest of any text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST).digest()


class DigestTable:
    """Numbers digests from 0 in the order in which they are added.

    Open addressing: each slot holds the number of a digest plus 1, or 0 where it is free. A million
    digests take 24 MB; a dict of them takes 150. `size` is the number of digests that are expected.
    """

    def __init__(self, digests: Iterable[bytes] = (), *, size: int = 0) -> None:
        self._digests = bytearray()
        self._slots = array("I", bytes(4 << max(10, (size * 3 // 2).bit_length())))
        for digest in digests:
            self.add(digest)

    def __len__(self) -> int:
        return len(self._digests) // DIGEST

    def find(self, digest: bytes) -> int:
        """The number of a digest; -1 if it is not in the table."""
        slots, digests, mask = self._slots, self._digests, len(self._slots) - 1
        slot = int.from_bytes(digest[:8]) & mask
        while (end := slots[slot]) and digests[(end - 1) * DIGEST : end * DIGEST] != digest:
            slot = (slot + 1) & mask
        return end - 1

    def add(self, digest: bytes) -> int:
        """The number of a digest, the next one if it is new."""
        slots, digests, mask = self._slots, self._digests, len(self._slots) - 1
        slot = int.from_bytes(digest[:8]) & mask
        while end := slots[slot]:
            if digests[(end - 1) * DIGEST : end * DIGEST] == digest:
                return end - 1
            slot = (slot + 1) & mask
        digests += digest
        slots[slot] = len(self)
        if 3 * len(self) > 2 * len(slots):  # nearly full, and slow
            self._grow()
        return len(self) - 1

    def _grow(self) -> None:
        """Begin a table of twice as many slots; the digests stay where they are."""
        digests = self._digests
        self._slots = slots = array("I", bytes(2 * self._slots.itemsize * len(self._slots)))
        mask = len(slots) - 1
        for number, start in enumerate(range(0, len(digests), DIGEST), 1):
            slot = int.from_bytes(digests[start : start + 8]) & mask
            while slots[slot]:
                slot = (slot + 1) & mask
            slots[slot] = number


# --- which questions are asked ------------------------------------------------------------------


def select(
    exam: Exam,
    limit: int | float | None,
    *,
    total: int | None = None,
    how: How = "first",
    shuffle: bool = False,
    seed: int,
) -> Exam:
    """Return `exam` with at most `limit` questions of each subset (or that share of each).

    With `total` there are so many in all, of each subset in proportion to its size. `first` keeps
    the order of the data, `random` draws with the seed, `stratified` draws so that the target
    answers keep their proportions. A larger limit keeps all that a smaller one drew.
    `shuffle` permutes each subset first.
    """
    if limit is None and total is None and not shuffle:
        return exam
    parts = parts_of_total([len(subset) for subset in exam.subsets], total) if total else None
    chosen: array[int] = array("I")
    subsets: list[Subset] = []
    for number, subset in enumerate(exam.subsets):
        rows: Sequence[int] = range(subset.start, subset.stop)
        draw = random.Random(f"{seed}:{exam.benchmark}:{subset.name}")
        if shuffle:
            draw.shuffle(shuffled := array("I", rows))
            rows = shuffled
        wanted = len(rows)
        if limit is not None:
            wanted = min(wanted, limit if isinstance(limit, int) else math.ceil(wanted * limit))
        if parts is not None:
            wanted = parts[number]
            if not wanted:
                continue
        start = len(chosen)
        if wanted == len(rows) or how == "first":
            chosen.extend(rows[:wanted])
        else:
            drawn = draw.sample(rows, len(rows))
            if how == "stratified":
                places = heapq.nsmallest(wanted, _places(drawn, exam.samples), key=itemgetter(0))
                drawn = [row for _, row in places]
            chosen.extend(sorted(drawn[:wanted]))
        subsets.append(Subset(subset.name, start, len(chosen), subset.title, len(rows)))
    drawn_exam = _with_rows(exam, chosen, subsets)
    drawn_exam.undrawn = {own.name for own in exam.subsets} - {own.name for own in subsets}
    return drawn_exam


def parts_of_total(sizes: Sequence[int], total: int) -> list[int]:
    """How many questions of each subset make `total` in all; a larger total takes none away.

    The k-th question of a subset of n stands at (k + 1/2) / n of the way, and the first of that
    order are taken: 10 of two subsets with 30 and 10 questions are 8 and 2.
    """
    places = heapq.merge(
        *([((k + 0.5) / n, number) for k in range(n)] for number, n in enumerate(sizes))
    )
    parts = [0] * len(sizes)
    for _, number in islice(places, total):
        parts[number] += 1
    return parts


def with_ids(exam: Exam, ids: Collection[str]) -> Exam:
    """Return `exam` with only the questions of these ids."""
    rows = [row for row, sample in enumerate(exam.samples) if sample.id in ids]
    return restrict(exam, rows)


def restrict(exam: Exam, rows: Sequence[int]) -> Exam:
    """Return `exam` with only these rows, which must ascend; subsets without any are left out."""
    if len(rows) == len(exam.samples):
        return exam
    subsets: list[Subset] = []
    start = 0
    for subset in exam.subsets:
        stop = bisect_left(rows, subset.stop)
        if stop > start:
            subsets.append(Subset(subset.name, start, stop, subset.title, len(subset)))
        start = stop
    return _with_rows(exam, rows, subsets)


def as_drawn(exam: Exam) -> Exam:
    """Return `exam` with subsets of which a random part was asked, if not all of it was."""
    drawn = copy.copy(exam)
    drawn.subsets = tuple(
        replace(subset, population=subset.population or len(subset)) for subset in exam.subsets
    )
    return drawn


def _with_rows(exam: Exam, rows: Sequence[int], subsets: Sequence[Subset]) -> Exam:
    chosen = copy.copy(exam)
    chosen.samples, chosen.subsets = ChosenSamples(exam.samples, rows), tuple(subsets)
    return chosen


def _places(rows: Sequence[int], samples: Sequence[Sample]) -> Iterator[tuple[float, int]]:
    """Places of rows; every beginning of the order that they give has each target in proportion.

    The k-th of n rows with the same target stands at (k + 1/2) / n of the way.
    """
    strata: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        strata[samples[row].target].append(row)
    for members in strata.values():
        for rank, row in enumerate(members):
            yield (rank + 0.5) / len(members), row
