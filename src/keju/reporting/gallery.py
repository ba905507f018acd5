"""Select the answers that a report shows, in one pass and reproducibly."""

from __future__ import annotations

import hashlib
from bisect import insort
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from keju.benchmarks.samples import hash_digest
from keju.files import natural_key
from keju.reporting.arms import transcript
from keju.reporting.format import Labels, printable, without_canary
from keju.results.schema import ResultEntry
from keju.scores.stored_replies import ExamRequests
from keju.types import LABELS, Prefix, Record, Sample

FAILURES_SHOWN = 200
SUCCESSES_SHOWN = 20
TEXT_LIMIT = 4_000
"""The number of characters of a question, a reply or its reasoning that are shown."""
TAIL = 1_200
"""The number of these characters that come from the end, where the answer usually is."""
STRAY_QUOTA = 20
"""The number of answers kept of a subset that is missing in the results."""

Bucket = TypeVar("Bucket", bound=Hashable)


class TextExcerpt(NamedTuple):
    """A text with its middle cut out."""

    head: str
    left_out: int = 0
    tail: str = ""

    @property
    def length(self) -> int:
        """The number of characters of the whole text."""
        return len(self.head) + self.left_out + len(self.tail)


class SentPrompt(NamedTuple):
    """A prompt as it was sent: the part that all questions of a subset share, and the question."""

    prefix: Prefix
    role: str
    """``user``, or ``text`` for a text completion."""
    tail: TextExcerpt
    cue: str
    as_recorded: bool
    """Whether the reply answers exactly this prompt."""

    @property
    def shared(self) -> list[tuple[str, str]]:
        """The turns that all questions of the subset share, with their roles."""
        turns: list[tuple[str, str]] = [(m.role, m.content) for m in self.prefix.messages]
        return [*turns, (self.role, self.prefix.lead)] if self.prefix.lead else turns


Render = Callable[[Record, Sample], SentPrompt | None]


def renderer(requests: ExamRequests) -> Render:
    """Return a function that renders the prompts of a run as Keju would send them today."""
    jobs = {(job.exam.benchmark, job.arm): job for job in requests.jobs}

    def render(record: Record, sample: Sample) -> SentPrompt | None:
        job = jobs.get((record.bench, record.arm))
        if job is None:
            return None
        prompt = job.exam.render(sample)
        role = "text" if job.sampling.form == "completion" else "user"
        is_recorded = requests.by_hash.find(hash_digest(record.hash)) >= 0
        return SentPrompt(prompt.prefix, role, excerpt(prompt.tail), prompt.cue, is_recorded)

    return render


class ShownAnswer(NamedTuple):
    """One answer to show: the record with its texts cut, and the question if it is known."""

    subset: str
    record: Record
    question: TextExcerpt | None
    choices: tuple[str, ...]
    reply: TextExcerpt
    reasoning: TextExcerpt
    reasoning_length: int
    steps: tuple[tuple[tuple[str, ...], TextExcerpt, bool], ...] = ()
    """The transcript of a model that used tools: titles, text, and whether the step failed."""
    prompt: SentPrompt | None = None
    """None if the data is not available."""

    @property
    def texts(self) -> tuple[TextExcerpt, ...]:
        """All texts that may be cut."""
        return (*filter(None, [self.question]), self.reply, self.reasoning)

    @property
    def outcome(self) -> str:
        """The outcome according to the reader of the headline."""
        return self.record.readings[0].score.outcome if self.record.readings else "error"


class AnswerGallery(NamedTuple):
    """The selected answers: failures, and a sample of the correct ones."""

    failures: list[ShownAnswer]
    successes: list[ShownAnswer]


_Key = tuple[str, str, int, str]
_Bucket = tuple[str, str]


class _BucketSample:
    """Keeps, for each bucket, the answers whose keys have the smallest hashes."""

    def __init__(self, quotas: Mapping[_Bucket, int]) -> None:
        self._quotas = quotas
        self._candidates: dict[_Bucket, list[tuple[bytes, _Key, ShownAnswer]]] = {}

    def offer(self, bucket: _Bucket, key: _Key, make: Callable[[], ShownAnswer]) -> None:
        """Keep the answer if its hash is among the smallest of its bucket; then call `make`."""
        quota = self._quotas.get(bucket, STRAY_QUOTA)
        candidates = self._candidates.setdefault(bucket, [])
        rank = hashlib.blake2b(repr(key).encode("utf-8", "replace"), digest_size=8).digest()
        if len(candidates) < quota or (candidates and (rank, key) < candidates[-1][:2]):
            insort(candidates, (rank, key, make()), key=_by_rank)
            del candidates[quota:]

    def select(self, limit: int) -> list[ShownAnswer]:
        """Return at most `limit` answers, those with the smallest hashes."""
        return [
            case for _, _, case in sorted(chain(*self._candidates.values()), key=_by_rank)[:limit]
        ]


def _by_rank(candidate: tuple[bytes, _Key, ShownAnswer]) -> tuple[bytes, _Key]:
    return candidate[:2]


def choose(
    answers: Iterable[tuple[Sample | None, Record]],
    entries: Sequence[ResultEntry],
    *labels: Labels,
    render: Render | None = None,
) -> AnswerGallery:
    """Select the answers to show; each record comes with its question if that is known.

    Transcripts get a title in each language; `render` returns the prompts. Memory depends on the
    quotas, not on the number of records.
    """
    correct_counts: dict[_Bucket, int] = {}  # according to the results of the first reader
    failure_counts: dict[_Bucket, int] = {}
    for entry in entries:
        for row in entry.subsets:
            number = row.outcomes["correct"]
            correct_counts.setdefault((entry.name, row.name), number)
            failure_counts.setdefault((entry.name, row.name), sum(row.outcomes.values()) - number)
    failure_draw = _BucketSample(share_out(FAILURES_SHOWN, failure_counts))
    correct_draw = _BucketSample(share_out(SUCCESSES_SHOWN, correct_counts))
    for sample, record in answers:
        key = (record.bench, record.id, record.epoch, record.arm)
        # If the question is not available, the id contains the subset: ``demo_word_sorting_3``.
        name = record.id.removeprefix(f"{record.bench}_").rpartition("_")[0]
        subset = sample.subset if sample else name if (record.bench, name) in correct_counts else ""
        correct = bool(record.readings) and record.readings[0].score.outcome == "correct"
        (correct_draw if correct else failure_draw).offer(
            (record.bench, subset),
            key,
            partial(case_of, record, sample, subset, *labels, render=render),
        )
    places = {bucket: place for place, bucket in enumerate(correct_counts)}

    def order(case: ShownAnswer) -> tuple[object, ...]:
        """Sort by benchmark and subset as in the results, then by id."""
        record = case.record
        place = places.get((record.bench, case.subset), len(places))
        return place, case.subset, natural_key(record.id), record.epoch, record.arm

    return AnswerGallery(
        sorted(failure_draw.select(FAILURES_SHOWN), key=order),
        sorted(correct_draw.select(SUCCESSES_SHOWN), key=order),
    )


def share_out(total: int, demands: Mapping[Bucket, int]) -> dict[Bucket, int]:
    """Split `total` evenly over the keys; a key never gets more than its demand."""
    shares = dict.fromkeys(demands, 0)
    remaining = min(total, sum(demands.values()))
    unfilled = [key for key, demand in demands.items() if demand > 0]
    while remaining > 0:
        portion = max(1, remaining // len(unfilled))
        for key in unfilled[: remaining if portion == 1 else None]:
            share = min(portion, demands[key] - shares[key], remaining)
            shares[key] += share
            remaining -= share
        unfilled = [key for key in unfilled if demands[key] > shares[key]]
    return shares


def excerpt(text: str, limit: int = TEXT_LIMIT) -> TextExcerpt:
    """Return `text` without canaries, control characters, and its middle if it is long."""
    text = printable(without_canary(text))
    if len(text) <= limit:
        return TextExcerpt(text)
    return TextExcerpt(text[: limit - TAIL], len(text) - limit, text[len(text) - TAIL :])


def _contains_choices(text: str, choices: Sequence[str]) -> bool:
    """Return whether a question contains its options with their labels: ``(A) yes``, ``A. yes``.

    The words alone are not enough: ``not True and False is`` lists neither True nor False.
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
) -> ShownAnswer:
    """Return an answer with its texts cut and its options in the order that the model saw."""
    reply = record.reply
    short_reply = replace(reply, text="", reasoning="", raw="", tool_calls=(), episode=None)
    return ShownAnswer(
        subset=subset,
        record=replace(record, reply=short_reply),  # without its long texts a record is small
        question=excerpt(sample.text, limit) if sample else None,
        choices=tuple(map(_join_excerpt, _choices_in_order(record, sample))),
        reply=excerpt(reply.text, limit),
        reasoning=excerpt(reply.reasoning, limit),
        reasoning_length=len(reply.reasoning),
        steps=_steps(record, labels, limit),
        prompt=render(record, sample) if render is not None and sample is not None else None,
    )


def _choices_in_order(record: Record, sample: Sample | None) -> tuple[str, ...]:
    """Return the options as the model saw them; empty if the question contains them."""
    choices = sample.choices if sample else ()
    if sample is None or _contains_choices(sample.text, choices):
        return ()
    size = len(record.order)
    original_order = sample.order or tuple(range(len(choices)))
    if not choices or not size or size != len(original_order) or record.order == original_order:
        return choices
    by_origin = dict(zip(original_order, choices[:size], strict=True))
    return (*(by_origin[origin] for origin in record.order), *choices[size:])


def _join_excerpt(choice: str) -> str:
    """Return an option on a page; a long one without its middle."""
    cut = excerpt(choice, TAIL * 2)
    return f"{cut.head} … {cut.tail}" if cut.left_out else cut.head


def _steps(
    record: Record, labels: Sequence[Labels], limit: int
) -> tuple[tuple[tuple[str, ...], TextExcerpt, bool], ...]:
    """Return the transcript of a model that used tools, with titles in each language."""
    episode = record.reply.episode
    if episode is None:
        return ()
    transcripts = [list(transcript(episode, language_labels)) for language_labels in labels]
    return tuple(
        (tuple(version.title for version in step), excerpt(step[0].text, limit), step[0].failed)
        for step in zip(*transcripts, strict=True)
    )
