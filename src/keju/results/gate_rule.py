"""The stopping rule of a gate with two endpoints: both runs stop when the verdict is sure.

Both runs ask the same questions in the same order, and after each block they wait for each other at
a `Meeting`. Then both look at the same pairs and come to the same result. If one of them ends for
another reason, the other one stops at its next wait, and both can be resumed.

A verdict is sure when no set of all questions that fits those asked so far would lead to another
one (`keju.stats.curtail`).
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

from keju.errors import ConfigError, Interrupted, RunIncomplete, UsageError
from keju.results.metrics import cluster_of, read_items
from keju.results.scored_exam import ScoredExam, mismatches, scored_exam_of
from keju.runs.manifest import Manifest, StoredStop
from keju.scores.exam_scores import ExamScores
from keju.scores.stopping import LOOK_AGAIN, Pause, StoppingRule
from keju.stats.curtail import DOUBT, FullVerdict, sure_verdict_of_graded
from keju.stats.estimate import MOST_UNGRADED
from keju.stats.gate import LEVEL, Verdict

if TYPE_CHECKING:
    from keju.judges import GradingStage

Side = Literal["candidate", "baseline"]
SIDES: Final[tuple[Side, Side]] = ("candidate", "baseline")
LAST_LOOKS: Final = (100, 300)
"""The last looks are where a hundredth and a three-hundredth of the questions are left."""
RIGHT_OR_WRONG: Final = frozenset({-1.0, 0.0, 1.0})


class Meeting:
    """Where two runs in two threads leave what the other one needs, and wait for it."""

    def __init__(self, margin: float, run_names: Mapping[Side, str]) -> None:
        self.margin = margin
        self.run_names = run_names
        self._lock = threading.Lock()
        self._news: dict[tuple[Side, Hashable], Any] = {}
        self._left: set[Side] = set()
        self._interrupted = threading.Event()

    def post(self, side: Side, key: Hashable, value: object) -> None:
        """Leave something for the other side."""
        with self._lock:
            self._news[side, key] = value

    def is_posted(self, side: Side, key: Hashable) -> bool:
        """Whether a side has posted something. Raise RunIncomplete if it has left."""
        with self._lock:
            if (side, key) in self._news:
                return True
            if side in self._left:
                raise RunIncomplete("gate_other_ended", run=self.run_names[side])
        return False

    def take(self, side: Side, key: Hashable) -> Any:
        """Return what a side has posted."""
        with self._lock:
            return self._news[side, key]

    def wait(self, side: Side, key: Hashable) -> Any:
        """Return what a side posts, when it does. The thread waits."""
        while not self.is_posted(side, key):
            if self._interrupted.wait(LOOK_AGAIN):
                raise Interrupted("interrupted")
        return self.take(side, key)

    def leave(self, side: Side) -> None:
        """Note that a side has ended and posts nothing more."""
        with self._lock:
            self._left.add(side)

    def interrupt(self) -> None:
        """Interrupt the threads that wait here."""
        self._interrupted.set()

    def make_rule(
        self,
        side: Side,
        jobs: Sequence[ExamScores],
        manifest: Manifest,
        stage: GradingStage | None,
    ) -> GateRule | None:
        """Return the rule of one side, or None if answers are graded only at the end.

        Raise UsageError, before anything is asked, if the two runs are not comparable.
        """
        partner = SIDES[side == SIDES[0]]
        for job in jobs:
            if not any(sample.target for sample in job.exam.samples):
                raise ConfigError("gate_without_gold", name=job.exam.benchmark)
        scored_exams = [scored_exam_of(job, manifest) for job in jobs]
        self.post(
            side, "exams", [(scored_exam, _digest(scored_exam)) for scored_exam in scored_exams]
        )
        for own_exam, (other_exam, digest) in zip(
            scored_exams, self.wait(partner, "exams"), strict=True
        ):
            self._check_comparable(own_exam, other_exam)
            if _digest(own_exam) != digest:
                raise UsageError("gate_other_questions", name=own_exam.exam.benchmark)
        seed = int(manifest.config.get("seed") or 0)
        return GateRule(self, side, partner, jobs, seed) if stage is None else None

    def _check_comparable(self, own_exam: ScoredExam, other_exam: ScoredExam) -> None:
        worst_mismatch = next(iter(mismatches(own_exam, other_exam)), None)
        if worst_mismatch is not None and worst_mismatch.decisive:
            code, values = worst_mismatch.told(
                "gate_unlike", run=own_exam.name, baseline=other_exam.name
            )
            raise UsageError(code, **values, hint="")


def _digest(scored_exam: ScoredExam) -> str:
    """Return a digest of the questions and of their right answers, in order."""
    digest = sha256()
    for sample in scored_exam.exam.samples:
        digest.update(f"{sample.id}\0{sample.target}\0".encode())
    return digest.hexdigest()


class _Pairs:
    """The pairs of one exam that both sides have a score for, so far."""

    def __init__(self, job: ExamScores) -> None:
        self.exam = job.exam
        self.seen = 0
        self.left_out = 0
        self.differences: list[float] = []
        """The candidate's scores minus the baseline's."""
        self.sums: dict[str, float] = {}
        """The sums of the differences, by cluster."""

    def add(self, positions: Sequence[int], candidate: Scores, baseline: Scores) -> None:
        """Add the questions of a block."""
        self.seen += len(positions)
        for position in positions:
            score, base_score = candidate[position], baseline[position]
            if score is None or base_score is None:
                self.left_out += 1
                continue
            difference = round(score - base_score, 9)
            self.differences.append(difference)
            if self.exam.clustered:
                cluster = cluster_of(self.exam, position)
                self.sums[cluster] = self.sums.get(cluster, 0.0) + difference

    @property
    def wins(self) -> int:
        return sum(difference > 0 for difference in self.differences)

    @property
    def losses(self) -> int:
        return sum(difference < 0 for difference in self.differences)

    @property
    def mean(self) -> float | None:
        return sum(self.differences) / len(self.differences) if self.differences else None


Scores = Mapping[int, float | None]
"""By the position of the question; None without a grade."""


class GateRule(StoppingRule):
    """Stops both runs of a gate when it is sure what all questions would say."""

    def __init__(
        self,
        meeting: Meeting,
        side: Side,
        partner: Side,
        jobs: Sequence[ExamScores],
        seed: int,
    ) -> None:
        self._meeting, self._side, self._partner, self._seed = meeting, side, partner, seed
        self._pairs = {job: _Pairs(job) for job in jobs}
        self._full: dict[tuple[ExamScores, int], FullVerdict] = {}
        self.level = LEVEL / len(jobs)
        """With several exams the gate corrects their p (Holm). At this level none needs that."""

    def usable_samples(self, job: ExamScores) -> Sequence[int]:
        """Return all samples."""
        return range(len(job.exam.samples))

    def looks(self, job: ExamScores, ends: list[int]) -> list[int]:
        """Return the usual looks, and two near the end, where much is sure at last."""
        if job.exam.clustered or not ends:
            return ends
        size = ends[-1]
        late_looks = {size - max(1, size // part) for part in LAST_LOOKS}
        return sorted({*ends, *(look for look in late_looks if look > ends[0])})

    def pauses(self, job: ExamScores, seen_samples: Sequence[int]) -> Iterator[Pause]:
        """Leave the scores of the latest block for the other side, and wait for its scores."""
        start = self._pairs[job].seen
        scores = {
            position: next(iter(read_items(job.exam, job.tallies[0], [position]).states))[1].share
            for position in seen_samples[start:]
        }
        key = job.exam.benchmark, len(seen_samples)
        self._meeting.post(self._side, key, scores)
        if not self._meeting.is_posted(self._partner, key):
            yield Pause(lambda: self._meeting.is_posted(self._partner, key))

    def evaluate(
        self, job: ExamScores, seen_samples: Sequence[int], total_samples: int, looks: int
    ) -> StoredStop:
        """Return the state of the rule, which is met if the verdict is sure before the end."""
        pairs, key = self._pairs[job], (job.exam.benchmark, len(seen_samples))
        candidate, baseline = (self._meeting.take(side, key) for side in SIDES)
        pairs.add(seen_samples[pairs.seen :], candidate, baseline)
        verdict = None
        if len(seen_samples) < total_samples:
            verdict = self._find_sure_verdict(job, pairs, total_samples)
        return StoredStop(
            rule="gate",
            met=verdict is not None,
            asked=len(seen_samples),
            whole=total_samples,
            looks=looks,
            seed=self._seed,
            level=DOUBT,
            value=pairs.mean,
            interval=None,
            goal=self._meeting.margin,
            partner=self._meeting.run_names[self._partner],
            verdict="" if verdict is None or verdict == "inconclusive" else verdict,
            wins=pairs.wins,
            losses=pairs.losses,
            left_out=pairs.left_out,
        )

    def _find_sure_verdict(
        self, job: ExamScores, pairs: _Pairs, total_samples: int
    ) -> Verdict | None:
        if not pairs.differences or pairs.left_out > MOST_UNGRADED * pairs.seen:
            return None
        margin, size = self._meeting.margin, total_samples - pairs.left_out
        if job.exam.clustered:
            clusters = {cluster_of(job.exam, position) for position in range(total_samples)}
            average_size = size / len(clusters)
            cluster_means = [total / average_size for total in pairs.sums.values()]
            return sure_verdict_of_graded(cluster_means, len(clusters), margin, self.level)
        if not RIGHT_OR_WRONG.issuperset(pairs.differences):
            return sure_verdict_of_graded(pairs.differences, size, margin, self.level)
        full = self._full.setdefault((job, size), FullVerdict(size, margin, self.level))
        return full.sure_verdict(pairs.wins, pairs.losses, len(pairs.differences))


def sure_verdict_of(
    run_exam: ScoredExam, base_exam: ScoredExam, margin: float
) -> StoredStop | None:
    """Return how the gate stopped these two runs early, if its verdict still holds for them.

    It holds for the same margin and reader, as long as the data are unchanged.
    """
    stop, base_stop = run_exam.job.stopping, base_exam.job.stopping
    if stop is None or base_stop is None or stop.rule != "gate" or not (stop.met and stop.early):
        return None
    is_pair = stop.partner == base_exam.name and base_stop.partner == run_exam.name
    is_unchanged = not (run_exam.changed_file or base_exam.changed_file)
    is_first_reader = run_exam.place == base_exam.place == 0
    same_state = (stop.asked, stop.goal, stop.verdict) == (
        base_stop.asked,
        margin,
        base_stop.verdict,
    )
    return stop if is_pair and is_unchanged and is_first_reader and same_state else None
