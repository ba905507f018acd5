"""One round of the part scale: endpoints, runs, what happens to them, and what came of it."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from keju.runs.journal import Records
from perf.exam import data_dir
from perf.soak.case import CommandResult, environment
from perf.soak.fleet import NOISE, Post, odd_replies, some_order
from perf.soak.killed_run import Kill, KilledRun
from perf.soak.ledger import Calm, Entries, broken_attempts, given_twice, problems
from perf.soak.witness import FAULTS, NAME, Order, garbage_out

if TYPE_CHECKING:
    from tests.cluster.conftest import Raylets

SIZE: Final = 300
"""Questions of a round, about."""
SLOTS: Final = 3
"""Requests in flight at an endpoint."""
LONGEST: Final = 240.0
"""Seconds after which a round hangs; none needs a fifth of it."""
PATIENCE: Final = 60.0
"""Seconds that a run waits for endpoints that are down, unless it is to give up."""
SIGNALS: Final = (Kill(0, signal.SIGKILL), Kill(0, signal.SIGINT), Kill(0, signal.SIGTERM))


class RoundExam(NamedTuple):
    """The questions of a round, as words of a command."""

    title: str
    words: tuple[str, ...]


def exam_of(seed: int, size: int, *, real: bool = True) -> RoundExam:
    """BBH where its data is at hand, else generated questions."""
    folder = data_dir() if real else None
    if folder is not None and (folder / "bbh").is_dir():
        data_words = ("--datasets", "bbh", "--data-dir", str(folder), "--total", str(size))
        return RoundExam("BBH", (*data_words, "--sample", "random", "--seed", str(seed)))
    settings = json.dumps({"demo": {"size": size // 6}})
    return RoundExam(
        "demo", ("--datasets", "demo", "--dataset-args", settings, "--seed", str(seed))
    )


@dataclass
class Report:
    """What a round was like."""

    title: str
    questions: int = 0
    signals: Counter[str] = field(default_factory=Counter)
    """Signals that met Keju at work, and what else was killed, by name."""
    exits: Counter[int] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    """Faults by kind, as the endpoints wrote them down."""
    requests: int = 0
    replies: int = 0
    """True answers that were given."""
    records: int = 0
    errors: int = 0
    """Records of faults; their questions were asked again."""
    twice: int = 0
    """True answers that are in no record: what a kill cost."""
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, report: Report) -> None:
        """Add the counts of another one."""
        for name in ("signals", "exits", "faults"):
            getattr(self, name).update(getattr(report, name))
        for name in ("questions", "requests", "replies", "records", "errors", "twice", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(report, name))
        self.violations += report.violations

    def line(self) -> str:
        """It in one line."""
        kills = ", ".join(f"{name} {count}" for name, count in sorted(self.signals.items()))
        verdict = "; ".join(self.violations) or "ok"
        return (
            f"{self.title}, {self.questions} questions: killed: {kills or 'nothing'}; "
            f"{self.faults.total()} faults, {self.requests} requests, {self.replies} replies, "
            f"{self.records} records, {self.seconds:.0f} s: {verdict}"
        )


class Place:
    """What all rounds share: odd replies, a calm endpoint, a cluster where there is one."""

    def __init__(self, folder: Path, ray: Path | None, raylets: Raylets | None = None) -> None:
        """`raylets` are those of somebody else, who ends them."""
        self.folder = folder
        self.garbage = folder / "garbage.json"
        garbage_out(self.garbage, odd_replies())
        self.calm = Post(folder, "calm")
        self.calm.start()
        self.ray = ray
        self._raylets, self._borrowed = raylets, raylets is not None

    def raylets(self) -> Raylets:
        """The cluster, with three nodes."""
        from tests.cluster.conftest import Raylets

        assert self.ray is not None
        if self._raylets is None:
            around = {"PYTHONPATH": environment()["PYTHONPATH"]}
            self._raylets = Raylets(str(self.ray), around=around)
        while len(self._raylets.alive()) < 3:
            self._raylets.add()
        return self._raylets

    def close(self) -> None:
        """End all of it."""
        self.calm.end()
        if self._raylets is not None and not self._borrowed:
            self._raylets.close()


class Round:
    """One round: endpoints, runs, what is to happen, and what came of it."""

    def __init__(
        self, place: Place, kind: str, seed: str, *, size: int = SIZE, real: bool = True
    ) -> None:
        self.place, self.kind = place, kind
        self.chance = random.Random(f"{seed} {kind}")
        self.exam = exam_of(self.chance.randrange(10**6), size, real=real)
        self.size = size // 6 * 6 if self.exam.title == "demo" else size
        self.folder = Path(tempfile.mkdtemp(prefix="round-", dir=place.folder))
        self.report = Report(f"{kind}, {self.exam.title}")
        self.posts: list[Post] = []
        self.killed_runs: list[KilledRun] = []
        self.give_up_after = PATIENCE
        self.slots = SLOTS
        self.allowed = 0
        """True answers that may be in no record, beside what kills of Keju and endpoints cost."""
        self._events: list[tuple[int, Callable[[], None]]] = []
        self._later: list[tuple[float, Callable[[], None]]] = []

    # What is there

    def new_post(self, place: int, *, fast: float = 0.03) -> Post:
        """One more endpoint, at work; the first is the fastest."""
        latency = json.dumps({fast * (1 + place): 0.9, 0.3: 0.1})
        seed = str(self.chance.randrange(10**6))
        words = ("--noise", str(NOISE), "--seed", seed, "--garbage", str(self.place.garbage))
        post = Post(self.folder, f"endpoint-{place}", *words, "--latency", latency)
        self.posts.append(post)
        return post

    def words(self, run: str, *flags: str, python: str = sys.executable) -> list[str]:
        """The command that runs the exam."""
        return [
            *(python, "-m", "keju", "eval", "--model", NAME, *self.exam.words, *flags),
            *("--work-dir", ".", "--run-id", run, "--json", "--quiet", "--no-report"),
            *("--timeout", "2", "--retry-interval", "0.05", "--attempts", "6"),
            *("--eval-batch-size", str(self.slots), "--error-limit", "0"),
            *("--give-up-after", str(self.give_up_after)),
        ]

    def evaluate(
        self,
        run: str,
        words: Sequence[str] | Callable[[int], Sequence[str]],
        kills: Sequence[Kill],
        around: dict[str, str] | None = None,
        other_pids: Callable[[], Sequence[int]] = lambda: (),
    ) -> KilledRun:
        """A run by a command, or by one for each start; see `KilledRun`."""
        make = words if callable(words) else lambda _: words
        killed_run = KilledRun(make, self.folder / run, around or environment(), kills, other_pids)
        self.killed_runs.append(killed_run)
        return killed_run

    def some_kills(self, records: int, count: int) -> list[Kill]:
        """Kills of Keju between the first record and the last but a tenth."""
        kills = []
        for _ in range(count):
            kind = self.chance.choice(SIGNALS)
            times = 2 if kind.signal == signal.SIGINT and self.chance.random() < 0.3 else 1
            kills.append(Kill(self.chance.randrange(1, records * 9 // 10), kind.signal, times))
        return kills

    # What happens

    def at(self, records: int, act: Callable[[], None]) -> None:
        """Do something when the runs have so many records."""
        self._events.append((records, act))
        self._events.sort(key=lambda event: event[0])

    def in_seconds(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something soon."""
        self._later.append((time.monotonic() + seconds, act))

    def some_weather(
        self, count: int, kinds: Sequence[str] = FAULTS, *, deaths: bool = True
    ) -> None:
        """Orders and deaths at moments of their own."""
        for _ in range(count):
            post = self.chance.randrange(len(self.posts))
            dies = deaths and self.chance.random() < 0.25
            order, seconds = some_order(self.chance, kinds), 0.1 + self.chance.random()
            act = self._death(post, seconds) if dies else self.trouble(post, order)
            self.at(self.chance.randrange(self.size * 9 // 10), act)

    def _death(self, number: int, seconds: float) -> Callable[[], None]:
        def act() -> None:
            self.posts[number].kill()
            self.in_seconds(seconds, self.posts[number].start)
            self.calm_names(number)

        return act

    def trouble(self, number: int, order: Order) -> Callable[[], None]:
        """Have an endpoint misbehave for a while."""

        def act() -> None:
            if order.kind == "other" and number == 0:
                return  # one always tells the right name, or the name is what most of them say
            if order.kind == "other":
                self.posts[0].order(Order())
            self.calm_names(number)
            self.posts[number].order(order)

        return act

    def calm_names(self, number: int) -> None:
        """While the first endpoint may be missed, nobody tells another name: it would count."""
        if number == 0:
            for post in self.posts[1:]:
                post.order(Order())

    def blackout(self) -> None:
        """All endpoints die, for longer than the run waits."""
        for number in range(len(self.posts)):
            self._death(number, self.give_up_after + 2)()

    def play(self) -> None:
        """Let the runs go on until all are over, and everything happen at its moment."""
        until = time.monotonic() + LONGEST
        while not all(killed_run.over for killed_run in self.killed_runs):
            for killed_run in self.killed_runs:
                if not killed_run.over:
                    killed_run.step()
            records = sum(killed_run.records for killed_run in self.killed_runs)
            while self._events and self._events[0][0] <= records:
                self._events.pop(0)[1]()
            now = time.monotonic()
            for event in [later for later in self._later if later[0] <= now]:
                self._later.remove(event)
                event[1]()
            if now > until:
                self.report.violations.append(f"not over after {LONGEST:.0f} s")
                break
            time.sleep(0.005)
        self.report.violations += [run.problem for run in self.killed_runs if run.problem]

    # What came of it

    def calm(self) -> Calm:
        """The same exam at an endpoint that nobody disturbs."""
        words = self.words("calm", "--api-url", self.place.calm.url)
        process = self.command(*words[1:])
        assert process.code == 0, process
        return Calm.of(self.folder / "calm", json.loads(process.out))

    def command(self, *words: str) -> CommandResult:
        """Run one command to its end."""
        ran = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        process = CommandResult(ran.returncode, ran.stdout, ran.stderr)
        if process.broken:
            self.report.violations.append(process.broken)
        return process

    def check(self, run: str, document: dict[str, Any] | None) -> None:
        """Hold the ledgers against the records of a finished run, and count."""
        report, ledgers = self.report, {post.url: post.entries() for post in self.posts}
        folders = [self.folder / run]
        for killed_run in self.killed_runs:
            report.signals.update(killed_run.signals)
            report.exits.update(killed_run.ends)
        if deaths := sum(post.deaths for post in self.posts):
            report.signals["endpoint"] += deaths
        calm = self.calm()
        report.questions = len(calm.records)
        report.records = sum(1 for _ in Records(self.folder / run))
        for entries in ledgers.values():
            report.faults.update(entries.faults)
            report.faults.update({"other model": entries.wrong_answers, "refuse": entries.refusals})
            report.requests += entries.requests.total()
            report.replies += entries.true_answers.total()
        if document is None:
            return
        report.violations += problems(self.folder / run, calm, ledgers, document)
        report.twice = given_twice(folders, ledgers.values())
        report.errors = report.records - (report.replies - report.twice)
        allowed_repeats = (
            self.allowed + self._cost_of_kills(ledgers.values()) + broken_attempts(folders)
        )
        if report.twice > allowed_repeats:
            report.violations.append(
                f"{report.twice} answers given for nothing, {allowed_repeats} at most"
            )

    def _cost_of_kills(self, ledgers: Iterable[Entries]) -> int:
        """True answers that kills may have cost: what was in flight."""
        hard = sum(killed_run.hard_kills for killed_run in self.killed_runs)
        shut = sum(post.deaths for post in self.posts) + sum(ledger.refusals for ledger in ledgers)
        return self.slots * (hard * len(self.posts) + shut * len(self.killed_runs))

    def close(self) -> None:
        """End everything; what was written stays where something went wrong."""
        for killed_run in self.killed_runs:
            killed_run.end()
        for post in self.posts:
            post.end()
        if not self.report.violations:
            shutil.rmtree(self.folder, ignore_errors=True)
