"""Checks over all replies of a job, for faults of an endpoint that no single reply shows.

Each check looks at the replies in the order in which they are entered. It keeps only counters, so
memory does not grow with the number of questions. A check that finds a fault gives a notice for the
results. A notice never stops a run. A session asks for the notices while it runs
(`ReplyChecks.new_notices`), so that a fault is reported before all replies are paid for.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, ClassVar
from zlib import crc32

from keju.errors import Notice
from keju.scores.shift_check import ShiftTest, make_placed_answer
from keju.types import CUT, Reading, Reply

if TYPE_CHECKING:
    from keju.scores.exam_scores import ExamScores

MIN_REPLIES = 10
"""The fewest replies that allow a conclusion about all of them."""
ENOUGH_REPLIES = 500
"""The number of replies that are enough to judge a whole exam."""
SHORT_TEXT = 20
"""Characters of a reply that contains little more than a label."""
LONG_TEXT = 200
"""Characters of a sampled reply that is unlikely to come twice."""
MOST_REPLIES = 0.9
"""The share of replies with a fault that in principle affects all of them."""
SHARE = 0.01
"""The share of replies above which a fault of single replies is reported."""
SHOWN_TEXT = 60
"""Characters of a reply that a notice shows."""


class ReplyCheck:
    """One check. It sees every reply that is not an error."""

    def __init__(self, job: ExamScores) -> None:
        self.job = job

    @classmethod
    def applies(cls, _job: ExamScores, /) -> bool:
        """Whether the check can find a fault in the replies of a job."""
        return True

    def see(self, unit: int, reply: Reply, reading: Reading, at: float) -> None:
        """Count one reply. `reading` is the headline reader's, `at` the time of its record."""

    def notices(self) -> Iterator[Notice]:
        """Yield notices about the replies so far."""
        yield from ()


class SameReplyCheck(ReplyCheck):
    """The endpoint gives the same reply to different questions.

    The most frequent texts are counted with the algorithm of Misra and Gries. So any number of
    different texts takes the same memory. A count is at most one part in `COUNTED` too low.
    """

    COUNTED: ClassVar = 64

    def __init__(self, job: ExamScores) -> None:
        super().__init__(job)
        self.replies = self.correct_count = 0
        self._counts: dict[int, int] = {}
        self._texts: dict[int, str] = {}

    def see(self, unit: int, reply: Reply, reading: Reading, at: float) -> None:
        """Count the text of a question's first reply, or its log-probabilities."""
        if unit % self.job.epochs:
            return
        values = reply.label_logprobs
        content = reply.text if values is None else tuple(values.items()) if len(values) > 1 else ()
        if not content:
            return
        key = hash(content)
        self.replies += 1
        self.correct_count += reading.score.outcome == "correct"
        counts = self._counts
        if key in counts:
            counts[key] += 1
        elif len(counts) < self.COUNTED:
            counts[key] = 1
            self._texts[key] = reply.text[: 4 * SHOWN_TEXT] or reading.answer.value or ""
        else:
            self._counts = {
                counted_key: count - 1 for counted_key, count in counts.items() if count > 1
            }
            self._texts = {counted_key: self._texts[counted_key] for counted_key in self._counts}

    @property
    def _enough_labels(self) -> float:
        """The number of replies that must be one label, since a weak model may prefer it at
        first."""
        return max(2 * MIN_REPLIES, min(ENOUGH_REPLIES, MOST_REPLIES * len(self.job.exam.samples)))

    def notices(self) -> Iterator[Notice]:
        """Yield the most frequent text, unless it is the right answer to nearly all questions."""
        if (
            not self._counts
            or self.replies < MIN_REPLIES
            or self.correct_count > MOST_REPLIES * self.replies
        ):
            return
        key, frequency = max(self._counts.items(), key=lambda item: item[1])
        text = _shorten(self._texts[key])
        is_short = len(text) <= SHORT_TEXT
        required_count = self.replies if is_short else MOST_REPLIES * self.replies
        if frequency >= required_count and not (is_short and self.replies < self._enough_labels):
            yield Notice("same_reply", {"part": frequency, "whole": self.replies, "text": text})


class PromptTokensCheck(ReplyCheck):
    """The endpoint's count of prompt tokens stays the same while the prompts get longer.

    Only some prompts of a large exam are measured. The check uses the prompts with the highest
    number of tokens. On a server that reads whole prompts, these are few and have similar lengths.
    """

    MEASURED: ClassVar = 2000
    FEWEST: ClassVar = 5
    SPREAD: ClassVar = 400
    """Bytes between the shortest and the longest prompt with the same number of tokens."""
    RATIO: ClassVar = 1.2
    LEAST_SHARE: ClassVar = 0.05
    SAME_SPREAD: ClassVar = 100
    """The same for a count that never changes, since prompts with equal examples differ by
    little."""

    def __init__(self, job: ExamScores) -> None:
        super().__init__(job)
        self._step = max(1, len(job.exam.samples) // self.MEASURED)
        self.prompts = self.tokens = self.capped = self.shortest = self.longest = 0

    @classmethod
    def applies(cls, job: ExamScores, /) -> bool:
        """Whether a reply's count of tokens refers to one prompt."""
        return not job.acts

    def see(self, unit: int, reply: Reply, reading: Reading, at: float) -> None:
        """Compare the count of tokens with the length of the prompt, for some questions."""
        sample_index, epoch = divmod(unit, self.job.epochs)
        tokens = reply.usage.input
        if epoch or sample_index % self._step or not tokens or reply.episode is not None:
            return
        self.prompts += 1
        if tokens < self.tokens:
            return
        prompt = self.job.exam.render(self.job.exam.samples[sample_index])
        texts = [message.content for message in prompt.prefix.messages]
        size = sum(len(text.encode("utf-8", "replace")) for text in (*texts, prompt.text))
        if tokens > self.tokens:
            self.tokens, self.capped, self.shortest, self.longest = tokens, 0, size, size
        self.capped += 1
        self.shortest, self.longest = min(self.shortest, size), max(self.longest, size)

    def notices(self) -> Iterator[Notice]:
        """Yield the number of tokens at which the count ends."""
        is_frequent = self.capped >= max(self.FEWEST, self.LEAST_SHARE * self.prompts)
        spread = self.longest - self.shortest
        is_capped = spread >= self.SPREAD and self.longest >= self.RATIO * self.shortest
        is_constant = self.capped == self.prompts >= 2 * MIN_REPLIES and spread >= self.SAME_SPREAD
        if is_frequent and (is_capped or is_constant):
            yield Notice(
                "prompt_tokens_capped",
                {
                    "tokens": self.tokens,
                    "shortest": self.shortest,
                    "longest": self.longest,
                    "part": self.capped,
                    "whole": self.prompts,
                },
            )


class SeveralChoicesCheck(ReplyCheck):
    """The endpoint returns several choices for one request."""

    def __init__(self, job: ExamScores) -> None:
        super().__init__(job)
        self.replies = self.affected = self.max_choices = 0

    def see(self, unit: int, reply: Reply, reading: Reading, at: float) -> None:
        """Count a reply with more than one choice."""
        self.replies += 1
        if reply.choices > 1:
            self.affected += 1
            self.max_choices = max(self.max_choices, reply.choices)

    def notices(self) -> Iterator[Notice]:
        """Yield how many replies have several choices."""
        if self.affected:
            values = {"part": self.affected, "whole": self.replies, "most": self.max_choices}
            yield Notice("several_choices", values)


class LabelLogprobsCheck(ReplyCheck):
    """The log-probabilities of labels are not numbers, are above 0, or are equal for two labels."""

    def __init__(self, job: ExamScores) -> None:
        super().__init__(job)
        self.replies = self.ties = 0
        self.issues: Counter[str] = Counter()

    @classmethod
    def applies(cls, job: ExamScores, /) -> bool:
        """Whether log-probabilities are compared."""
        return job.sampling.decode != "generate"

    def see(self, unit: int, reply: Reply, reading: Reading, at: float) -> None:
        """Count the faults of a reply's log-probabilities."""
        self.replies += 1
        self.ties += reading.answer.reason == "tie"
        if reply.logprob_issue:
            self.issues[reply.logprob_issue] += 1

    def notices(self) -> Iterator[Notice]:
        """Yield one notice for each kind of fault."""
        for issue, part in sorted(self.issues.items()):
            yield Notice(f"logprobs_{issue}", {"part": part, "whole": self.replies})
        if self.ties > SHARE * self.replies:
            yield Notice("logprobs_tied", {"part": self.ties, "whole": self.replies})


class EqualRepeatsCheck(ReplyCheck):
    """Repeats of a question have the same text although they are sampled."""

    ALMOST_ALL: ClassVar = 0.95

    def __init__(self, job: ExamScores) -> None:
        super().__init__(job)
        self._first_checksums = array("I", bytes(4 * len(job.exam.samples)))
        """By sample: a checksum of its first text, 0 where there is none."""
        self.pairs = self.equal = self.long_pairs = self.long_equal = self.wrong = 0

    @classmethod
    def applies(cls, job: ExamScores, /) -> bool:
        """Whether questions are repeated with a temperature above 0."""
        return job.epochs > 1 and bool(job.sampling.temperature) and not job.acts

    def see(self, unit: int, reply: Reply, reading: Reading, at: float) -> None:
        """Compare a reply with the first one to the same question."""
        if reply.compared or not reply.text:
            return
        sample_index, text = unit // self.job.epochs, reply.text
        checksum = crc32(text.encode("utf-8", "replace")) or 1
        first_checksum = self._first_checksums[sample_index]
        if not first_checksum:
            self._first_checksums[sample_index] = checksum
            return
        is_equal, is_long = checksum == first_checksum, len(text) >= LONG_TEXT
        self.pairs += 1
        self.equal += is_equal
        self.long_pairs += is_long
        self.long_equal += is_long and is_equal
        self.wrong += reading.score.outcome != "correct"

    def notices(self) -> Iterator[Notice]:
        """Yield a notice if repeats add nothing.

        Short replies may be equal because the model is sure of its answer. So all of them must be
        equal, and some of them wrong.
        """
        are_long = (
            self.long_pairs >= MIN_REPLIES and self.long_equal >= self.ALMOST_ALL * self.long_pairs
        )
        are_all = self.pairs >= MIN_REPLIES and self.equal == self.pairs and self.wrong > 0
        if are_long or are_all:
            temperature = self.job.sampling.temperature
            values = {"part": self.equal, "whole": self.pairs, "temperature": temperature}
            yield Notice("equal_repeats", values)


class ReplyFieldCheck(ReplyCheck):
    """Replies have no text, because the endpoint puts it in another field."""

    def __init__(self, job: ExamScores) -> None:
        super().__init__(job)
        self.replies = 0
        self.fields: Counter[str] = Counter()

    @classmethod
    def applies(cls, job: ExamScores, /) -> bool:
        """Whether a reply should have a text."""
        return job.sampling.decode == "generate" and not job.acts

    def see(self, unit: int, reply: Reply, reading: Reading, at: float) -> None:
        """Count a reply without text by the field that is not empty."""
        self.replies += 1
        if reply.text and not reply.text.isspace():
            return
        if reply.finish == CUT or reply.refused or reply.raw:
            return  # cut off while it reasoned, or refused: other notices report that
        if reply.tool_calls:
            self.fields["tool_calls"] += 1
        elif reply.reasoning:
            self.fields["reasoning"] += 1

    def notices(self) -> Iterator[Notice]:
        """Yield the fields that contain the texts."""
        for field, part in sorted(self.fields.items()):
            if part > SHARE * self.replies:
                values = {"part": part, "whole": self.replies, "share": part / self.replies}
                yield Notice(f"replies_in_{field}", values)


class ServerLimitCheck(ReplyCheck):
    """The endpoint cuts replies at a limit that Keju did not send."""

    FEWEST: ClassVar = 5
    MOST_TOKENS: ClassVar = 1024
    """A longer reply may have filled the context of a model."""

    def __init__(self, job: ExamScores) -> None:
        super().__init__(job)
        self.replies = 0
        self._lengths: Counter[int] = Counter()

    @classmethod
    def applies(cls, job: ExamScores, /) -> bool:
        """Whether the endpoint decides the length of a reply."""
        return job.token_limit is None and job.sampling.decode == "generate" and not job.acts

    def see(self, unit: int, reply: Reply, reading: Reading, at: float) -> None:
        """Count the length of a reply that was cut off."""
        self.replies += 1
        if reply.finish == CUT and 0 < reply.usage.output <= self.MOST_TOKENS:
            self._lengths[reply.usage.output] += 1

    def notices(self) -> Iterator[Notice]:
        """Yield the limit at which most replies end."""
        tokens, part = max(self._lengths.items(), key=lambda item: item[1], default=(0, 0))
        if part >= max(self.FEWEST, self.replies / 2):
            values = {"part": part, "whole": self.replies, "tokens": tokens}
            yield Notice("server_token_limit", values)


class ShiftedRepliesCheck(ReplyCheck):
    """Replies are recorded for other questions than those that they answer."""

    def __init__(self, job: ExamScores) -> None:
        super().__init__(job)
        self._shift = ShiftTest()

    def see(self, unit: int, reply: Reply, reading: Reading, at: float) -> None:
        """Store the first answers, to compare them with other questions."""
        sample_index, epoch = divmod(unit, self.job.epochs)
        if epoch or self._shift.is_full:
            return
        sample = self.job.exam.samples[sample_index]
        if sample.target:
            is_right = reading.score.outcome == "correct"
            value = reading.answer.value
            answer = make_placed_answer(sample.subset, sample.target, value, is_right=is_right)
            self._shift.add(at - reply.seconds, at, answer)

    def notices(self) -> Iterator[Notice]:
        """Yield how many answers fit another question."""
        if (fit := self._shift.fit()) is not None:
            yield Notice("replies_shifted", fit._asdict())


CHECKS: tuple[type[ReplyCheck], ...] = (
    SameReplyCheck,
    ShiftedRepliesCheck,
    PromptTokensCheck,
    ServerLimitCheck,
    ReplyFieldCheck,
    SeveralChoicesCheck,
    LabelLogprobsCheck,
    EqualRepeatsCheck,
)
"""All checks, in the order in which results list their notices."""


class ReplyChecks:
    """The checks of one job."""

    FIRST_LOOK: ClassVar = 8
    """Replies after which a running session looks at the checks for the first time."""

    def __init__(self, job: ExamScores) -> None:
        self._job = job
        self._checks = [check(job) for check in CHECKS if check.applies(job)]
        self._reply_count = 0
        self._next_look = self.FIRST_LOOK
        self._reported: set[str] = set()

    def see(self, unit: int, reply: Reply, reading: Reading, at: float = 0.0) -> None:
        """Let every check see a reply that is not an error."""
        self._reply_count += 1
        for check in self._checks:
            check.see(unit, reply, reading, at)

    def notices(
        self, *, check_model: bool = True, declared: Collection[str] = ()
    ) -> Iterator[Notice]:
        """Yield the notices of all checks.

        `check_model` is true if Keju sent the requests. `declared` are names that the settings
        allow endpoints to report for the model.
        """
        if check_model:
            yield from _find_other_models(self._job, declared)
        for check in self._checks:
            yield from check.notices()

    def new_notices(self) -> list[Notice]:
        """Return the notices that were not returned before. It rarely looks, so that it is
        cheap."""
        if self._reply_count < self._next_look:
            return []
        while self._next_look <= self._reply_count:
            self._next_look *= 2
        notices = [
            notice
            for notice in self.notices(check_model=False)
            if notice.code not in self._reported
        ]
        self._reported.update(notice.code for notice in notices)
        return notices


def _shorten(text: str) -> str:
    """Return the beginning of a text in one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_TEXT else line[:SHOWN_TEXT] + "…"


# --- names of models ----------------------------------------------------------------------------

# Suffixes that do not make the name of a model another name: `-2024-08-06`, `-20241022`, `-0613`,
# `-001`, `-latest`, `:latest`, `:free`, `@20240620`, `.gguf`.
_SUFFIX = re.compile(
    r"(?:[-@_.](?:20\d\d-?[01]\d-?[0-3]\d|[01]\d[0-3]\d|00\d|latest|0)|:[a-z0-9._-]+|\.gguf)\Z"
)


def is_same_model(requested: str, reported: str) -> bool:
    """Whether an endpoint's name for its model is only another spelling of the requested one.

    Folders before a name, dates and tags after it, the file extension and upper case do not count:
    ``openai/gpt-4o`` equals ``gpt-4o-2024-08-06``, but not ``gpt-4o-mini``.
    """
    return _normalize_name(requested) == _normalize_name(reported)


def _normalize_name(name: str) -> str:
    """Return a name without the parts that may differ between two spellings of it."""
    bare_name = name.strip().rstrip("/").rpartition("/")[2].casefold()
    while (shorter := _SUFFIX.sub("", bare_name)) != bare_name and shorter:
        bare_name = shorter
    return bare_name


def _find_other_models(job: ExamScores, declared: Collection[str]) -> Iterator[Notice]:
    """Yield a notice if replies come from another model than the requested one, by its name."""
    if not job.model:
        return
    other_names = {
        name: part
        for name, part in job.reported_names.most_common()
        if part > 0 and name not in declared and not is_same_model(job.model, name)
    }
    if other_names:
        values = {
            "asked": job.model,
            "reported": next(iter(other_names)),
            "names": len(other_names),
            "part": sum(other_names.values()),
            "whole": sum(job.reported_names.values()),
        }
        yield Notice("other_model", values)
