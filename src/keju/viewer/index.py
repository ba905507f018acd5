"""Where the replies of a journal stand, and what became of them: a few bytes a reply.

One pass over the journal makes the index; after that only the bytes that were written since are
read, so that it is never out of date and needs no file of its own. What only filters need is in
`Details`, which takes a pass of its own. Which record of a question counts says the rule in
`keju.runs.run`; questions are told apart by their keys, since the requests of today are not
known before the exam's data is loaded.
"""

from __future__ import annotations

import math
import stat
import threading
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from keju.runs.journal import FILE, Records, open_journal
from keju.runs.run import GRADES, Counting, enter_grades
from keju.types import BROKEN_FINISHES, Outcome, Record, Sample, Tier
from keju.viewer.blocks import blocks

_BATCH: Final = 1 << 20
"""Bytes of the journal that are read at once."""
_MOST_SEEN: Final = 20_000
"""Readings that are remembered as they are written."""
FEW_KEYS: Final = 1 << 17
"""Keys that are numbered by a dictionary: about a hundred bytes each."""
_LARGEST, _LONGEST_TIME = (1 << 32) - 1, 1e9
"""The most tokens and seconds of a reply that are sorted and filtered as such."""
_CALL: Final = b'"calls":[{'
"""What the transcript of a model that called a tool holds."""


class Part(NamedTuple):
    """An exam of a run, in one of its arms."""

    exam: str
    arm: str = ""

    @property
    def name(self) -> str:
        """As pages and addresses have it, e.g. ``bbh`` or ``bbh/calculator``."""
        return f"{self.exam}/{self.arm}" if self.arm else self.exam


class Kind(NamedTuple):
    """What the readers make of a reply; a run has few kinds of replies."""

    outcome: Outcome
    """As the headline's reader says, like the score and the tier."""
    score: float
    tier: Tier
    differ: bool
    """Whether the readers do not agree on the outcome."""


# What the index needs of a line; msgspec passes over all that is not named here.


class _Answer(msgspec.Struct, frozen=True, gc=False):
    tier: Tier = ""


class _Score(msgspec.Struct, frozen=True, gc=False):
    value: float
    outcome: Outcome


class _Reading(msgspec.Struct, frozen=True, gc=False):
    score: _Score
    answer: _Answer = _Answer()


class _Fault(msgspec.Struct, frozen=True, gc=False):
    kind: str


class _Ending(msgspec.Struct, frozen=True, gc=False):
    finish: str = ""
    error: _Fault | None = None


class _Line(msgspec.Struct, frozen=True, gc=False):
    bench: str
    id: str
    hash: str
    reply: _Ending
    epoch: int = 0
    arm: str = ""
    readings: msgspec.Raw = msgspec.Raw(b"[]")


class _Grade(msgspec.Struct, frozen=True, gc=False):
    hash: str
    readings: msgspec.Raw


class _Usage(msgspec.Struct, frozen=True, gc=False):
    output: int = 0


class _Episode(msgspec.Struct, frozen=True, gc=False):
    turns: msgspec.Raw


class _Reply(msgspec.Struct, frozen=True, gc=False):
    text: str = ""
    usage: _Usage = _Usage()
    seconds: float = 0.0
    episode: _Episode | None = None


class _Detail(msgspec.Struct, frozen=True, gc=False):
    bench: str
    id: str
    reply: _Reply


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_detail = msgspec.json.Decoder(_Detail).decode
_decode_grade = msgspec.json.Decoder(_Grade).decode
_decode_readings = msgspec.json.Decoder(tuple[_Reading, ...]).decode
Decoded = TypeVar("Decoded")


class Index:
    """The replies of a run that count, numbered in the order in which questions were answered.

    A line that is no record is counted as damaged. Checksums are checked where a reply is shown.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self.generation = 0
        """Grows where the journal is read anew from its beginning."""
        self._begin()

    def _begin(self) -> None:
        self.generation += 1
        self._rule = Counting(by_key=True)
        self._numbers = Keys()
        self._identity: tuple[object, ...] = ()
        self._judged: dict[str, bytes] = {}
        self._parts: _Numbered[tuple[str, str]] = _Numbered()
        self._kinds: _Numbered[Kind] = _Numbered()
        self._seen: dict[bytes, int] = {}
        self.end = 0
        """Where the last line ends that was read."""
        self.damaged = 0
        """Lines that could not be read."""
        self.starts = array("q")
        """Where the line begins."""
        self.part = array("I")
        """A place in `parts`."""
        self.kind = array("I")
        """A place in `kinds`."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def parts(self) -> list[Part]:
        """The exams and arms that have replies."""
        return [Part(*names) for names in self._parts]

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of replies that there are."""
        return list(self._kinds)

    def refresh(self) -> None:
        """Read what was written since; all anew where the journal or its grades were replaced."""
        with self._lock:
            path = self.folder / FILE
            identity = _identity(path, self.folder / GRADES)
            size = _size_of(path)
            if identity != self._identity or size < self.end:
                self._begin()
                self._identity = identity
                self._judged = _grades(self.folder / GRADES)
            if size > self.end:
                for lines, starts, read in _batches(path, self.end, _decode_line, self._damage):
                    self._enter(lines, starts)
                    self.end = read

    def _damage(self, line: bytes) -> None:
        self.damaged += not line.startswith(b'{"kind":')

    def _enter(self, lines: list[_Line], starts: list[int]) -> None:
        """Enter those lines of a batch that count."""
        numbers, rule = self._numbers, self._rule
        size = len(self)
        keys = [hash((line.bench, line.id, line.arm, line.epoch)) for line in lines]
        replies = [line.reply for line in lines]
        failed = [each.error is not None or each.finish in BROKEN_FINISHES for each in replies]
        again: dict[int, int] = {}
        if numbers.begin(keys):  # the usual batch: questions that were not met before
            rule.begin(failed)
        else:
            for position, (key, lost) in enumerate(zip(keys, failed, strict=True)):
                number = numbers.add(key)
                if rule.counts_now(number, lost):
                    again[number] = position
            lines = [lines[position] for position in again.values()]
            starts = [starts[position] for position in again.values()]
        columns: tuple[tuple[Any, list[int]], ...] = (
            (self.starts, starts),
            (self.part, [self._parts[line.bench, line.arm] for line in lines]),
            (self.kind, self._kinds_of(lines)),
        )
        new = len(numbers) - size
        for column, values in columns:
            column.extend(values[:new])
            for number, value in zip(again, values, strict=False):
                column[number] = value

    def _kinds_of(self, lines: list[_Line]) -> list[int]:
        """The kinds of some lines, by their readings or the judges' in their place."""
        written = [bytes(line.readings) for line in lines]
        if self._judged:
            pairs = zip(lines, written, strict=True)
            written = [self._judged.get(line.hash, own) for line, own in pairs]
        seen = self._seen
        if len(seen) > _MOST_SEEN:
            seen.clear()
        for each in dict.fromkeys(written):
            if each not in seen:
                seen[each] = self._kinds[_kind(each)]
        return [seen[each] for each in written]

    def find(self, part: Part, sample_id: str, epoch: int) -> int:
        """The number of a question; -1 where it has no reply."""
        return self._numbers.find(hash((part.exam, sample_id, part.arm, epoch)))

    def lines(self) -> Lines:
        """Which number has the line that begins at a place."""
        return Lines(self.starts[: len(self)])

    def records(self, numbers: Iterable[int]) -> list[Record]:
        """The records of these numbers, with the judges' grades entered."""
        records = Records(self.folder).at(self.starts[number] for number in numbers)
        return list(enter_grades(self.folder, records))

    def counts(self) -> Counter[tuple[Part, Kind]]:
        """How many replies there are, by part and kind."""
        parts, kinds = self.parts, self.kinds
        pairs = Counter(zip(self.part, self.kind, strict=False))
        return Counter({(parts[p], kinds[k]): n for (p, k), n in pairs.items()})


class Keys:
    """Numbers the keys of questions, given by their hashes, in the order in which they are met.

    Few are in a dictionary, which is fast; many in a table of sixteen bytes each, where a slot
    holds the number of a key plus 1, or 0 where it is free.
    """

    def __init__(self) -> None:
        self._few: dict[int, int] = {}
        self._met = array("q")
        self._slots = array("I")

    def __len__(self) -> int:
        return len(self._met) or len(self._few)

    def find(self, key: int) -> int:
        """The number of a key; -1 if it was not met."""
        if not self._met:
            return self._few.get(key, -1)
        return self._slots[self._slot(key)] - 1

    def add(self, key: int) -> int:
        """The number of a key, the next one if it is new."""
        if not self._met and len(self._few) < FEW_KEYS:
            return self._few.setdefault(key, len(self._few))
        slot = self._slot(key)
        if not self._slots[slot]:
            self._met.append(key)
            self._slots[slot] = len(self._met)
        return self._slots[slot] - 1

    def begin(self, keys: list[int]) -> bool:
        """Number keys that are all new; False if some of them are not, and may be numbered."""
        size = len(self) + len(keys)
        if size <= FEW_KEYS and not self._met:
            fresh = dict(zip(keys, range(len(self), size), strict=True))
            if len(fresh) < len(keys) or not self._few.keys().isdisjoint(fresh):
                return False
            self._few.update(fresh)
            return True
        if 3 * size > 2 * len(self._slots):
            self._grow(size)
        slots, met, mask = self._slots, self._met, len(self._slots) - 1
        for key in keys:
            slot = key & mask
            while end := slots[slot]:
                if met[end - 1] == key:
                    return False
                slot = (slot + 1) & mask
            met.append(key)
            slots[slot] = len(met)
        return True

    def _slot(self, key: int) -> int:
        """Where a key is, or would be."""
        if 3 * (len(self) + 1) > 2 * len(self._slots):
            self._grow(len(self) + 1)
        slots, met, mask = self._slots, self._met, len(self._slots) - 1
        slot = key & mask
        while (end := slots[slot]) and met[end - 1] != key:
            slot = (slot + 1) & mask
        return slot

    def _grow(self, size: int) -> None:
        """Begin a table with room for so many keys, and for some more."""
        met = self._met or array("q", self._few)
        self._few, self._met = {}, array("q")
        self._slots = array("I", bytes(4 << (size * 3 // 2).bit_length()))
        mask = len(self._slots) - 1
        for number, key in enumerate(met, 1):
            slot = key & mask
            while self._slots[slot]:
                slot = (slot + 1) & mask
            self._slots[slot] = number
        self._met = met


class Lines:
    """Which number has the line that begins at a place.

    Nearly all numbers ascend with their lines; those whose reply was replaced by a later one, as
    an error that was asked again, are kept apart.
    """

    def __init__(self, starts: array[int]) -> None:
        self._apart: dict[int, int] = {}
        least = math.inf
        for number in range(len(starts) - 1, -1, -1):
            if starts[number] > least:
                self._apart[starts[number]] = number
            else:
                least = starts[number]
        self._starts, self._numbers = starts, array("I")
        if self._apart:
            kept = set(self._apart.values())
            self._numbers.extend(n for n in range(len(starts)) if n not in kept)
            self._starts = array("q", (starts[n] for n in self._numbers))

    def find(self, start: int) -> int:
        """The number of a line; -1 where it does not count."""
        place = bisect_left(self._starts, start)
        if place < len(self._starts) and self._starts[place] == start:
            return self._numbers[place] if self._apart else place
        return self._apart.get(start, -1)


Key = TypeVar("Key")


class _Numbered(dict[Key, int]):
    """Numbers things in the order in which they are met."""

    def __missing__(self, key: Key) -> int:
        self[key] = len(self)
        return self[key]


def _kind(readings: bytes) -> Kind:
    """What readings, as they are written, make of a reply."""
    decoded = _decode_readings(readings)
    if not decoded:
        return Kind("error", 0.0, "", False)
    first, *others = decoded
    outcome = first.score.outcome
    differ = any(other.score.outcome != outcome for other in others)
    # A journal that someone else made may hold any number.
    score = min(1.0, max(0.0, first.score.value))
    return Kind(outcome, score, first.answer.tier, differ)


def _identity(*paths: Path) -> tuple[object, ...]:
    """What tells a journal, and the grades beside it, from others."""
    identity: list[object] = []
    for path in paths:
        with suppress(OSError):
            there = path.stat()
            identity += [path.name, there.st_ino, path.name == GRADES and there.st_mtime_ns]
    return tuple(identity)


def _grades(path: Path) -> dict[str, bytes]:
    """What judges made of the answers, by the hash of the record."""
    grades: dict[str, bytes] = {}
    if _size_of(path):
        for lines, _, _ in _batches(path, 0, _decode_grade):
            grades |= {grade.hash: bytes(grade.readings) for grade in lines}
    return grades


def _size_of(path: Path) -> int:
    """The bytes of a journal, 0 where there is none; DataError if it is a link or no file."""
    try:
        known = path.lstat()
    except FileNotFoundError:
        return 0
    if not stat.S_ISREG(known.st_mode):
        open_journal(path).close()  # says what is wrong with it
    return known.st_size


Batch = tuple[list[Decoded], list[int], int]
"""Decoded lines, where each begins, and where the last one ends."""


def _batches(
    path: Path,
    end: int,
    decode: Callable[[bytes], Decoded],
    on_damage: Callable[[bytes], None] = lambda _: None,
) -> Iterator[Batch[Decoded]]:
    """The whole lines of a journal from the place `end` on; a torn last line is left for later."""
    for block in blocks(path, end, _BATCH):
        if not block.data:
            on_damage(b"")
            yield [], [], block.end
            continue
        lines = block.data[:-1].split(b"\n")
        starts = list(accumulate((len(line) + 1 for line in lines[:-1]), initial=block.start))
        try:
            decoded = [decode(line) for line in lines]
        except (ValueError, RecursionError):
            decoded, all_starts, starts = [], starts, []
            for line, start in zip(lines, all_starts, strict=True):
                try:
                    decoded.append(decode(line))
                    starts.append(start)
                except (ValueError, RecursionError):
                    on_damage(line)
        yield decoded, starts, block.end


class Place(NamedTuple):
    """Where a question stands in its exam."""

    subset: int
    """The number of its subset, from 1; 0 where it is not known."""
    position: int


class ExamPlaces:
    """The places of an exam's questions by their ids: some twenty bytes each."""

    def __init__(self) -> None:
        self._numbers = Keys()
        self._subsets, self._positions = array("H"), array("I")

    def enter(self, samples: Sequence[Sample], subsets: Mapping[str, int]) -> None:
        """Enter the questions of an exam, or of an arm of it that asks others."""
        for position, sample in enumerate(samples):
            number = self._numbers.add(hash(sample.id))
            self._subsets[number : number + 1] = array("H", [subsets.get(sample.subset, 0)])
            self._positions[number : number + 1] = array("I", [position])

    def get(self, sample_id: str) -> Place | None:
        """Where a question stands; None where the exam does not have it."""
        number = self._numbers.find(hash(sample_id))
        return Place(self._subsets[number], self._positions[number]) if number >= 0 else None


Places = Mapping[str, ExamPlaces]
"""By exam."""
_UNKNOWN, _NOWHERE = Place(0, 0), ExamPlaces()


class Details:
    """What filters need beside the index: a row for each of its numbers."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._lock = threading.Lock()
        self._begin(0)

    def _begin(self, generation: int) -> None:
        self._generation = generation
        self._end = 0
        self.subset = array("H")
        self.position = array("I")
        """Where the question stands in its exam."""
        self.seconds = array("f")
        self.tokens = array("I")
        """Of the reply."""
        self.length = array("I")
        """Characters of the reply."""
        self.acted = bytearray()
        """Whether the model called a tool."""

    def refresh(self, index: Index) -> None:
        """Read what the index has read since."""
        with self._lock:
            if index.generation != self._generation:
                self._begin(index.generation)
            size, end = len(index), index.end
            numbers = index.lines()
            for column in (self.subset, self.position, self.seconds, self.tokens, self.length):
                column.frombytes(bytes(column.itemsize * (size - len(column))))
            self.acted += bytes(size - len(self.acted))
            for lines, starts, read in _batches(index.folder / FILE, self._end, _decode_detail):
                for line, start in zip(lines, starts, strict=True):
                    number = numbers.find(start)
                    if 0 <= number < size:
                        self._enter(number, line)
                self._end = min(read, end)
                if read >= end:
                    break

    def _enter(self, number: int, line: _Detail) -> None:
        place = self.places.get(line.bench, _NOWHERE).get(line.id) or _UNKNOWN
        self.subset[number], self.position[number] = place
        reply = line.reply
        self.seconds[number] = min(_LONGEST_TIME, max(0.0, reply.seconds))
        self.tokens[number] = min(_LARGEST, max(0, reply.usage.output))
        self.length[number] = len(reply.text)
        self.acted[number] = reply.episode is not None and _CALL in bytes(reply.episode.turns)
