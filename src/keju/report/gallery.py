"""Which answers a report shows: a bounded, repeatable choice made in one pass over the records."""

from __future__ import annotations

import hashlib
from bisect import insort
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from keju.benchmarks.samples import hash_digest
from keju.engine.resume import JobRequests
from keju.files import natural_key
from keju.report.arms import transcript
from keju.report.format import Labels, printable, without_canary
from keju.results.schema import Entry
from keju.types import LABELS, Prefix, Record, Sample

FAILURES_SHOWN = 200
SUCCESSES_SHOWN = 20
TEXT_LIMIT = 4_000
"""Characters of a question, a reply or its reasoning that are shown."""
TAIL = 1_200
"""Of these, how many come from the end, where the answer usually stands."""
STRAY_QUOTA = 20
"""Answers kept of a subset that the results do not know."""

K = TypeVar("K", bound=Hashable)


class Excerpt(NamedTuple):
    """A text cut in its middle."""

    head: str
    left_out: int = 0
    tail: str = ""

    @property
    def length(self) -> int:
        """Characters of the whole text."""
        return len(self.head) + self.left_out + len(self.tail)


class Sent(NamedTuple):
    """A prompt as it was sent: what all questions of a subset share, and a question's own part."""

    prefix: Prefix
    role: str
    """``user``, or ``text`` where a text is continued."""
    own: Excerpt
    cue: str
    as_recorded: bool
    """Whether it is the very prompt that the reply answers."""

    @property
    def shared(self) -> list[tuple[str, str]]:
        """The turns that all questions of the subset share, with their roles."""
        turns: list[tuple[str, str]] = [(m.role, m.content) for m in self.prefix.messages]
        return [*turns, (self.role, self.prefix.lead)] if self.prefix.lead else turns


Render = Callable[[Record, Sample], Sent | None]


def renderer(requests: JobRequests) -> Render:
    """Renders the prompts of a run's questions as they would be sent today."""
    jobs = {(job.exam.benchmark, job.arm): job for job in requests.jobs}

    def render(record: Record, sample: Sample) -> Sent | None:
        job = jobs.get((record.bench, record.arm))
        if job is None:
            return None
        prompt = job.exam.render(sample)
        role = "text" if job.sampling.form == "completion" else "user"
        known = requests.by_hash.find(hash_digest(record.hash)) >= 0
        return Sent(prompt.prefix, role, excerpt(prompt.tail), prompt.cue, known)

    return render


class Case(NamedTuple):
    """One answer to be shown: the record with its texts cut, and the question where it is known."""

    subset: str
    record: Record
    question: Excerpt | None
    choices: tuple[str, ...]
    reply: Excerpt
    reasoning: Excerpt
    reasoning_length: int
    steps: tuple[tuple[tuple[str, ...], Excerpt, bool], ...] = ()
    """The transcript of a model that acted: titles, text and whether it failed."""
    prompt: Sent | None = None
    """None where the data is not at hand."""

    @property
    def texts(self) -> tuple[Excerpt, ...]:
        """All its texts that may be cut."""
        return (*filter(None, [self.question]), self.reply, self.reasoning)

    @property
    def outcome(self) -> str:
        """What the headline's reader made of it."""
        return self.record.readings[0].score.outcome if self.record.readings else "error"


class Gallery(NamedTuple):
    """The answers chosen: those that were not correct, and a sample of the correct ones."""

    failures: list[Case]
    successes: list[Case]


_Key = tuple[str, str, int, str]
_Bucket = tuple[str, str]


class _Draw:
    """Keeps, for each bucket, the answers whose keys have the smallest hashes."""

    def __init__(self, quotas: Mapping[_Bucket, int]) -> None:
        self._quotas = quotas
        self._kept: dict[_Bucket, list[tuple[bytes, _Key, Case]]] = {}

    def offer(self, bucket: _Bucket, key: _Key, make: Callable[[], Case]) -> None:
        """Take the answer if it is among the bucket's first; `make` is called only then."""
        quota = self._quotas.get(bucket, STRAY_QUOTA)
        kept = self._kept.setdefault(bucket, [])
        rank = hashlib.blake2b(repr(key).encode("utf-8", "replace"), digest_size=8).digest()
        if len(kept) < quota or (kept and (rank, key) < kept[-1][:2]):
            insort(kept, (rank, key, make()), key=_by_rank)
            del kept[quota:]

    def chosen(self, most: int) -> list[Case]:
        """At most `most` answers, those with the smallest hashes."""
        return [case for _, _, case in sorted(chain(*self._kept.values()), key=_by_rank)[:most]]


def _by_rank(held: tuple[bytes, _Key, Case]) -> tuple[bytes, _Key]:
    return held[:2]


def choose(
    answers: Iterable[tuple[Sample | None, Record]],
    entries: Sequence[Entry],
    *labels: Labels,
    render: Render | None = None,
) -> Gallery:
    """Draw what to show from the records that count, each after its question where it is known.

    Transcripts have a title in each language; `render` gives the prompts. Memory depends on the
    quotas, not on the number of records.
    """
    rights: dict[_Bucket, int] = {}  # by the first reader's results
    failures: dict[_Bucket, int] = {}
    for entry in entries:
        for row in entry.subsets:
            number = row.outcomes["correct"]
            rights.setdefault((entry.name, row.name), number)
            failures.setdefault((entry.name, row.name), sum(row.outcomes.values()) - number)
    failed = _Draw(share_out(FAILURES_SHOWN, failures))
    right = _Draw(share_out(SUCCESSES_SHOWN, rights))
    for sample, record in answers:
        key = (record.bench, record.id, record.epoch, record.arm)
        # Where the question is not at hand its subset is in the id, e.g. ``bbh_snarks_3``.
        name = record.id.removeprefix(f"{record.bench}_").rpartition("_")[0]
        subset = sample.subset if sample else name if (record.bench, name) in rights else ""
        correct = bool(record.readings) and record.readings[0].score.outcome == "correct"
        (right if correct else failed).offer(
            (record.bench, subset),
            key,
            partial(case_of, record, sample, subset, *labels, render=render),
        )
    places = {bucket: place for place, bucket in enumerate(rights)}

    def order(case: Case) -> tuple[object, ...]:
        """Benchmark and subset as in the results, then the id."""
        record = case.record
        place = places.get((record.bench, case.subset), len(places))
        return place, case.subset, natural_key(record.id), record.epoch, record.arm

    return Gallery(
        sorted(failed.chosen(FAILURES_SHOWN), key=order),
        sorted(right.chosen(SUCCESSES_SHOWN), key=order),
    )


def share_out(total: int, wants: Mapping[K, int]) -> dict[K, int]:
    """Split `total` evenly over the keys; what one does not need goes to the others."""
    shares = dict.fromkeys(wants, 0)
    left = min(total, sum(wants.values()))
    hungry = [key for key, want in wants.items() if want > 0]
    while left > 0:
        portion = max(1, left // len(hungry))
        for key in hungry[: left if portion == 1 else None]:
            share = min(portion, wants[key] - shares[key], left)
            shares[key] += share
            left -= share
        hungry = [key for key in hungry if wants[key] > shares[key]]
    return shares


def excerpt(text: str, limit: int = TEXT_LIMIT) -> Excerpt:
    """`text` made fit to be shown: no canary lines, no control characters, cut in its middle."""
    text = printable(without_canary(text))
    if len(text) <= limit:
        return Excerpt(text)
    return Excerpt(text[: limit - TAIL], len(text) - limit, text[len(text) - TAIL :])


def _lists(text: str, choices: Sequence[str]) -> bool:
    """Whether a question holds its options itself, each behind its label: ``(A) yes``, ``A. yes``.

    That the words occur is not enough: ``not True and False is`` lists neither True nor False.
    """
    return all(
        any(f"{label}{mark}{choice}" in text for mark in (") ", ". ", ": ", "、"))
        for label, choice in zip(LABELS, choices, strict=False)
    )


def case_of(
    record: Record,
    sample: Sample | None,
    subset: str,
    *labels: Labels,
    limit: int = TEXT_LIMIT,
    render: Render | None = None,
) -> Case:
    """An answer with its texts cut, and its options in the order in which the model saw them."""
    reply = record.reply
    bare = replace(reply, text="", reasoning="", raw="", tool_calls=(), episode=None)
    episode = reply.episode
    told = [list(transcript(episode, own)) for own in labels] if episode is not None else []
    choices = sample.choices if sample else ()
    if sample and _lists(sample.text, choices):
        choices = ()
    size = len(record.order)
    before = (sample and sample.order) or tuple(range(len(choices)))
    if choices and size and size == len(before) and record.order != before:
        by_origin = dict(zip(before, choices[:size], strict=True))
        choices = (*(by_origin[origin] for origin in record.order), *choices[size:])
    cuts = (excerpt(choice, TAIL * 2) for choice in choices)
    return Case(
        subset=subset,
        record=replace(record, reply=bare),  # without its long texts keeping it is cheap
        question=excerpt(sample.text, limit) if sample else None,
        choices=tuple(f"{cut.head} … {cut.tail}" if cut.left_out else cut.head for cut in cuts),
        reply=excerpt(reply.text, limit),
        reasoning=excerpt(reply.reasoning, limit),
        reasoning_length=len(reply.reasoning),
        steps=tuple(
            (tuple(each.title for each in step), excerpt(step[0].text, limit), step[0].failed)
            for step in zip(*told, strict=True)
        ),
        prompt=render(record, sample) if render is not None and sample is not None else None,
    )
