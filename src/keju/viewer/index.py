"""Where the replies of a journal are, and their outcomes, in a few bytes per reply.

One pass over the journal builds the index. Later passes read only the new bytes, so that the index
is always up to date and needs no file. `ReplyDetails` contains the values that only filters need,
and takes a separate pass. The rule in `keju.runs.run` decides which record of a question counts.
Questions are identified by their keys, because the request hashes are unknown until the exam's data
is loaded.
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
from keju.runs.run import GRADES, RecordSelection, enter_grades
from keju.types import BROKEN_FINISHES, Outcome, Record, Sample, Tier
from keju.viewer.blocks import blocks

_BATCH: Final = 1 << 20
"""The number of bytes of the journal that are read at once."""
_MAX_CACHED_READINGS: Final = 20_000
"""The number of different readings that are cached."""
FEW_KEYS: Final = 1 << 17
"""Up to this number, keys are stored in a dictionary, which takes about a hundred bytes per key."""
_MAX_TOKENS, _MAX_SECONDS = (1 << 32) - 1, 1e9
"""The maximum number of tokens and seconds of a reply for sorting and filtering."""
_CALL_MARK: Final = b'"calls":[{'
"""Bytes in the transcript of a model that called a tool."""


class ExamArm(NamedTuple):
    """An exam of a run, in one of its arms."""

    exam: str
    arm: str = ""

    @property
    def name(self) -> str:
        """The name on pages and in addresses, e.g. ``demo`` or ``demo/calculator``."""
        return f"{self.exam}/{self.arm}" if self.arm else self.exam


class ReplyKind(NamedTuple):
    """The result of the readers for a reply; a run has only a few kinds of replies."""

    outcome: Outcome
    """According to the reader of the headline, like the score and the tier."""
    score: float
    tier: Tier
    differ: bool
    """Whether the readers disagree on the outcome."""


# The fields of a line that the index needs; msgspec skips all other fields.


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


class _EpisodeEnding(msgspec.Struct, frozen=True, gc=False):
    finish: str = ""
    error: _Fault | None = None


class _JournalLine(msgspec.Struct, frozen=True, gc=False):
    bench: str
    id: str
    hash: str
    reply: _EpisodeEnding
    epoch: int = 0
    arm: str = ""
    readings: msgspec.Raw = msgspec.Raw(b"[]")


class _Grade(msgspec.Struct, frozen=True, gc=False):
    hash: str
    readings: msgspec.Raw


class _Usage(msgspec.Struct, frozen=True, gc=False):
    output: int = 0


class _StoredEpisode(msgspec.Struct, frozen=True, gc=False):
    turns: msgspec.Raw


class _Reply(msgspec.Struct, frozen=True, gc=False):
    text: str = ""
    usage: _Usage = _Usage()
    seconds: float = 0.0
    episode: _StoredEpisode | None = None


class _Detail(msgspec.Struct, frozen=True, gc=False):
    bench: str
    id: str
    reply: _Reply


_decode_line = msgspec.json.Decoder(_JournalLine).decode
_decode_detail = msgspec.json.Decoder(_Detail).decode
_decode_grade = msgspec.json.Decoder(_Grade).decode
_decode_readings = msgspec.json.Decoder(tuple[_Reading, ...]).decode
Decoded = TypeVar("Decoded")


class ReplyIndex:
    """The replies of a run that count, numbered in the order in which questions were answered.

    A line that is not a record counts as damaged. Checksums are verified when a reply is shown.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self.generation = 0
        """Increases when the journal is read again from its beginning."""
        self._reset()

    def _reset(self) -> None:
        self.generation += 1
        self._rule = RecordSelection(by_key=True)
        self._numbers = QuestionKeys()
        self._file_identity: tuple[object, ...] = ()
        self._judge_readings: dict[str, bytes] = {}
        self._parts: _NumberedKeys[tuple[str, str]] = _NumberedKeys()
        self._kinds: _NumberedKeys[ReplyKind] = _NumberedKeys()
        self._kind_numbers: dict[bytes, int] = {}
        self.end = 0
        """The end of the last line that was read."""
        self.damaged = 0
        """The number of lines that could not be read."""
        self.starts = array("q")
        """The position of the line in the journal."""
        self.part = array("I")
        """An index into `parts`."""
        self.kind = array("I")
        """An index into `kinds`."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def parts(self) -> list[ExamArm]:
        """The exams and arms that have replies."""
        return [ExamArm(*names) for names in self._parts]

    @property
    def kinds(self) -> list[ReplyKind]:
        """The kinds of replies of the run."""
        return list(self._kinds)

    def refresh(self) -> None:
        """Read new lines, or everything if the journal or its grades were replaced."""
        with self._lock:
            path = self.folder / FILE
            identity = _identity(path, self.folder / GRADES)
            size = _size_of(path)
            if identity != self._file_identity or size < self.end:
                self._reset()
                self._file_identity = identity
                self._judge_readings = _read_grades(self.folder / GRADES)
            if size > self.end:
                for lines, starts, block_end in _read_batches(
                    path, self.end, _decode_line, self._count_damaged
                ):
                    self._add(lines, starts)
                    self.end = block_end

    def _count_damaged(self, line: bytes) -> None:
        self.damaged += not line.startswith(b'{"kind":')

    def _add(self, lines: list[_JournalLine], starts: list[int]) -> None:
        """Add the lines of a batch that count."""
        numbers, rule = self._numbers, self._rule
        size = len(self)
        keys = [hash((line.bench, line.id, line.arm, line.epoch)) for line in lines]
        replies = [line.reply for line in lines]
        failed = [reply.error is not None or reply.finish in BROKEN_FINISHES for reply in replies]
        replacements: dict[int, int] = {}
        if numbers.add_all_new(keys):  # the usual batch: only new questions
            rule.begin(failed)
        else:
            for position, (key, is_failed) in enumerate(zip(keys, failed, strict=True)):
                number = numbers.add(key)
                if rule.counts_now(number, is_failed):
                    replacements[number] = position
            lines = [lines[position] for position in replacements.values()]
            starts = [starts[position] for position in replacements.values()]
        columns: tuple[tuple[Any, list[int]], ...] = (
            (self.starts, starts),
            (self.part, [self._parts[line.bench, line.arm] for line in lines]),
            (self.kind, self._kinds_of(lines)),
        )
        new_count = len(numbers) - size
        for column, values in columns:
            column.extend(values[:new_count])
            for number, value in zip(replacements, values, strict=False):
                column[number] = value

    def _kinds_of(self, lines: list[_JournalLine]) -> list[int]:
        """Return the kinds of lines, according to their readings or the judges' readings."""
        readings_json = [bytes(line.readings) for line in lines]
        if self._judge_readings:
            pairs = zip(lines, readings_json, strict=True)
            readings_json = [
                self._judge_readings.get(line.hash, line_readings) for line, line_readings in pairs
            ]
        kind_numbers = self._kind_numbers
        if len(kind_numbers) > _MAX_CACHED_READINGS:
            kind_numbers.clear()
        for unique_readings in dict.fromkeys(readings_json):
            if unique_readings not in kind_numbers:
                kind_numbers[unique_readings] = self._kinds[_decode_kind(unique_readings)]
        return [kind_numbers[encoded] for encoded in readings_json]

    def find(self, part: ExamArm, sample_id: str, epoch: int) -> int:
        """Return the number of a question, or -1 if it has no reply."""
        return self._numbers.find(hash((part.exam, sample_id, part.arm, epoch)))

    def lines(self) -> LineNumbers:
        """Return the mapping of line positions to numbers."""
        return LineNumbers(self.starts[: len(self)])

    def records(self, numbers: Iterable[int]) -> list[Record]:
        """Return the records of these numbers, with the judges' grades."""
        records = Records(self.folder).at(self.starts[number] for number in numbers)
        return list(enter_grades(self.folder, records))

    def counts(self) -> Counter[tuple[ExamArm, ReplyKind]]:
        """Return the number of replies by part and kind."""
        parts, kinds = self.parts, self.kinds
        pairs = Counter(zip(self.part, self.kind, strict=False))
        return Counter({(parts[p], kinds[k]): n for (p, k), n in pairs.items()})


class QuestionKeys:
    """Numbers the keys of questions, given by their hashes, in the order of their first appearance.

    A few keys are in a dictionary, which is fast. Many keys are in a hash table with sixteen bytes
    per key. A slot of the table contains the number of a key plus 1, or 0 if it is free.
    """

    def __init__(self) -> None:
        self._numbers_by_key: dict[int, int] = {}
        self._met = array("q")
        self._slots = array("I")

    def __len__(self) -> int:
        return len(self._met) or len(self._numbers_by_key)

    def find(self, key: int) -> int:
        """Return the number of a key, or -1 if the key is unknown."""
        if not self._met:
            return self._numbers_by_key.get(key, -1)
        return self._slots[self._slot(key)] - 1

    def add(self, key: int) -> int:
        """Return the number of a key; a new key gets the next number."""
        if not self._met and len(self._numbers_by_key) < FEW_KEYS:
            return self._numbers_by_key.setdefault(key, len(self._numbers_by_key))
        slot = self._slot(key)
        if not self._slots[slot]:
            self._met.append(key)
            self._slots[slot] = len(self._met)
        return self._slots[slot] - 1

    def add_all_new(self, keys: list[int]) -> bool:
        """Number keys if all are new; otherwise return False, with some possibly numbered."""
        size = len(self) + len(keys)
        if size <= FEW_KEYS and not self._met:
            fresh = dict(zip(keys, range(len(self), size), strict=True))
            if len(fresh) < len(keys) or not self._numbers_by_key.keys().isdisjoint(fresh):
                return False
            self._numbers_by_key.update(fresh)
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
        """Return the slot of a key, or the free slot for it."""
        if 3 * (len(self) + 1) > 2 * len(self._slots):
            self._grow(len(self) + 1)
        slots, met, mask = self._slots, self._met, len(self._slots) - 1
        slot = key & mask
        while (end := slots[slot]) and met[end - 1] != key:
            slot = (slot + 1) & mask
        return slot

    def _grow(self, size: int) -> None:
        """Build a larger table with space for `size` keys and some more."""
        met = self._met or array("q", self._numbers_by_key)
        self._numbers_by_key, self._met = {}, array("q")
        self._slots = array("I", bytes(4 << (size * 3 // 2).bit_length()))
        mask = len(self._slots) - 1
        for number, key in enumerate(met, 1):
            slot = key & mask
            while self._slots[slot]:
                slot = (slot + 1) & mask
            self._slots[slot] = number
        self._met = met


class LineNumbers:
    """Maps the position of a line to its number.

    Nearly all numbers are in the order of their lines. The exceptions are replies that a later
    reply replaced, such as an error that was retried. They are stored separately.
    """

    def __init__(self, starts: array[int]) -> None:
        self._out_of_order: dict[int, int] = {}
        lowest_start = math.inf
        for number in range(len(starts) - 1, -1, -1):
            if starts[number] > lowest_start:
                self._out_of_order[starts[number]] = number
            else:
                lowest_start = starts[number]
        self._starts, self._numbers = starts, array("I")
        if self._out_of_order:
            moved_numbers = set(self._out_of_order.values())
            self._numbers.extend(n for n in range(len(starts)) if n not in moved_numbers)
            self._starts = array("q", (starts[n] for n in self._numbers))

    def find(self, start: int) -> int:
        """Return the number of a line, or -1 if it does not count."""
        place = bisect_left(self._starts, start)
        if place < len(self._starts) and self._starts[place] == start:
            return self._numbers[place] if self._out_of_order else place
        return self._out_of_order.get(start, -1)


Key = TypeVar("Key")


class _NumberedKeys(dict[Key, int]):
    """Numbers keys in the order of their first appearance."""

    def __missing__(self, key: Key) -> int:
        self[key] = len(self)
        return self[key]


def _decode_kind(readings: bytes) -> ReplyKind:
    """Return the kind of a reply from its encoded readings."""
    decoded = _decode_readings(readings)
    if not decoded:
        return ReplyKind("error", 0.0, "", False)
    headline_reading, *other_readings = decoded
    outcome = headline_reading.score.outcome
    differ = any(reading.score.outcome != outcome for reading in other_readings)
    # The journal of another program may contain any number.
    score = min(1.0, max(0.0, headline_reading.score.value))
    return ReplyKind(outcome, score, headline_reading.answer.tier, differ)


def _identity(*paths: Path) -> tuple[object, ...]:
    """Return values that identify a journal and its grades."""
    identity: list[object] = []
    for path in paths:
        with suppress(OSError):
            file_stat = path.stat()
            identity += [path.name, file_stat.st_ino, path.name == GRADES and file_stat.st_mtime_ns]
    return tuple(identity)


def _read_grades(path: Path) -> dict[str, bytes]:
    """Return the readings of the judges by the hash of the record."""
    grades: dict[str, bytes] = {}
    if _size_of(path):
        for lines, _, _ in _read_batches(path, 0, _decode_grade):
            grades |= {grade.hash: bytes(grade.readings) for grade in lines}
    return grades


def _size_of(path: Path) -> int:
    """Return the size of a journal, or 0 without one; raise DataError if it is not a file."""
    try:
        file_stat = path.lstat()
    except FileNotFoundError:
        return 0
    if not stat.S_ISREG(file_stat.st_mode):
        open_journal(path).close()  # raises an error with the reason
    return file_stat.st_size


Batch = tuple[list[Decoded], list[int], int]
"""Decoded lines, the position of each, and the end of the last one."""


def _read_batches(
    path: Path,
    end: int,
    decode: Callable[[bytes], Decoded],
    on_damage: Callable[[bytes], None] = lambda _: None,
) -> Iterator[Batch[Decoded]]:
    """Yield the whole lines of a journal from position `end` on; skip an incomplete last line."""
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


class ExamPosition(NamedTuple):
    """The place of a question in its exam."""

    subset: int
    """The number of its subset, starting at 1; 0 if it is unknown."""
    position: int


class ExamPlaces:
    """The places of an exam's questions by id, in about twenty bytes per question."""

    def __init__(self) -> None:
        self._numbers = QuestionKeys()
        self._subsets, self._positions = array("H"), array("I")

    def enter(self, samples: Sequence[Sample], subsets: Mapping[str, int]) -> None:
        """Add the questions of an exam, or of an arm that has different questions."""
        for position, sample in enumerate(samples):
            number = self._numbers.add(hash(sample.id))
            self._subsets[number : number + 1] = array("H", [subsets.get(sample.subset, 0)])
            self._positions[number : number + 1] = array("I", [position])

    def get(self, sample_id: str) -> ExamPosition | None:
        """Return the place of a question, or None if the exam does not have it."""
        number = self._numbers.find(hash(sample_id))
        return ExamPosition(self._subsets[number], self._positions[number]) if number >= 0 else None


Places = Mapping[str, ExamPlaces]
"""The places by exam."""
_UNKNOWN, _NOWHERE = ExamPosition(0, 0), ExamPlaces()


class ReplyDetails:
    """The values that only filters need: a row for each number of the index."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._lock = threading.Lock()
        self._reset(0)

    def _reset(self, generation: int) -> None:
        self._generation = generation
        self._end = 0
        self.subset = array("H")
        self.position = array("I")
        """The position of the question in its exam."""
        self.seconds = array("f")
        self.tokens = array("I")
        """The output tokens of the reply."""
        self.length = array("I")
        """The number of characters of the reply."""
        self.acted = bytearray()
        """Whether the model called a tool."""

    def refresh(self, index: ReplyIndex) -> None:
        """Read the lines that the index has read since the last call."""
        with self._lock:
            if index.generation != self._generation:
                self._reset(index.generation)
            size, end = len(index), index.end
            numbers = index.lines()
            for column in (self.subset, self.position, self.seconds, self.tokens, self.length):
                column.frombytes(bytes(column.itemsize * (size - len(column))))
            self.acted += bytes(size - len(self.acted))
            for lines, starts, block_end in _read_batches(
                index.folder / FILE, self._end, _decode_detail
            ):
                for line, start in zip(lines, starts, strict=True):
                    number = numbers.find(start)
                    if 0 <= number < size:
                        self._add(number, line)
                self._end = min(block_end, end)
                if block_end >= end:
                    break

    def _add(self, number: int, line: _Detail) -> None:
        place = self.places.get(line.bench, _NOWHERE).get(line.id) or _UNKNOWN
        self.subset[number], self.position[number] = place
        reply = line.reply
        self.seconds[number] = min(_MAX_SECONDS, max(0.0, reply.seconds))
        self.tokens[number] = min(_MAX_TOKENS, max(0, reply.usage.output))
        self.length[number] = len(reply.text)
        self.acted[number] = reply.episode is not None and _CALL_MARK in bytes(reply.episode.turns)
