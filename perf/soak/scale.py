"""Many endpoints, parts, servers and actors that fail, and runs that are killed, round by round.

A round lets one exam be sat in one of four ways: with several endpoints (``pool``), in parts that
are merged (``parts``), with a server that Keju starts (``served``), by actors of Ray (``ray``).
Endpoints misbehave, die and return, servers, actors and nodes are killed, and so is Keju itself,
all at moments counted in records and drawn from a seed. In the end the ledgers of the endpoints
are held against the records: nothing lost, doubled, mixed up, or scored because of a fault, and
the same results as those of a run that nobody disturbed.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from keju.runs.journal import Records
from perf.exam import data_dir
from perf.scaling import RAY
from perf.soak.case import Ended, environment
from perf.soak.fleet import NOISE, Post, odd_replies, some_order
from perf.soak.ledger import Calm, Entries, broken_attempts, given_twice, problems
from perf.soak.sitting import INCOMPLETE, Kill, Sitting
from perf.soak.witness import ATTEMPT_FAULTS, FAULTS, NAME, Order, garbage_out

if TYPE_CHECKING:
    from tests.cluster.conftest import Raylets

KINDS: Final = ("pool", "parts", "served", "ray")
SIZE: Final = 300
"""Questions of a round, about."""
SLOTS: Final = 3
"""Requests in flight at an endpoint."""
LONGEST: Final = 240.0
"""Seconds after which a round hangs; none needs a fifth of it."""
PATIENCE: Final = 60.0
"""Seconds that a run waits for endpoints that are down, unless it is to give up."""
SIGNALS: Final = (Kill(0, signal.SIGKILL), Kill(0, signal.SIGINT), Kill(0, signal.SIGTERM))
TOLD_BY_ACTOR: Final = 40
"""Answers that an actor may have been given and has not told yet: 16, or those of 0.2 seconds."""


class Exam(NamedTuple):
    """The questions of a round, as words of a command."""

    title: str
    words: tuple[str, ...]


def exam_of(seed: int, size: int, *, real: bool = True) -> Exam:
    """BBH where its data is at hand, else generated questions."""
    folder = data_dir() if real else None
    if folder is not None and (folder / "bbh").is_dir():
        given = ("--datasets", "bbh", "--data-dir", str(folder), "--total", str(size))
        return Exam("BBH", (*given, "--sample", "random", "--seed", str(seed)))
    settings = json.dumps({"demo": {"size": size // 6}})
    return Exam("demo", ("--datasets", "demo", "--dataset-args", settings, "--seed", str(seed)))


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

    def add(self, other: Report) -> None:
        """Add the counts of another one."""
        for name in ("signals", "exits", "faults"):
            getattr(self, name).update(getattr(other, name))
        for name in ("questions", "requests", "replies", "records", "errors", "twice", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.violations += other.violations

    def line(self) -> str:
        """It in one line."""
        kills = ", ".join(f"{name} {many}" for name, many in sorted(self.signals.items()))
        verdict = "; ".join(self.violations) or "ok"
        return (
            f"{self.title}, {self.questions} questions: killed: {kills or 'nothing'}; "
            f"{self.faults.total()} faults, {self.requests} requests, {self.replies} replies, "
            f"{self.records} records, {self.seconds:.0f} s: {verdict}"
        )


class Place:
    """What all rounds share: odd replies, a calm endpoint, a cluster where there is one."""

    def __init__(self, folder: Path, ray: Path | None) -> None:
        self.folder = folder
        self.garbage = folder / "garbage.json"
        garbage_out(self.garbage, odd_replies())
        self.calm = Post(folder, "calm")
        self.calm.start()
        self.ray = ray
        self._raylets: Raylets | None = None

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
        if self._raylets is not None:
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
        self.sittings: list[Sitting] = []
        self.give_up_after = PATIENCE
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

    def words(self, run: str, *more: str, python: str = sys.executable) -> list[str]:
        """The command that sits the exam."""
        return [
            *(python, "-m", "keju", "eval", "--model", NAME, *self.exam.words, *more),
            *("--work-dir", ".", "--run-id", run, "--json", "--quiet", "--no-report"),
            *("--timeout", "2", "--retry-interval", "0.05", "--attempts", "6"),
            *("--eval-batch-size", str(SLOTS), "--error-limit", "0"),
            *("--give-up-after", str(self.give_up_after)),
        ]

    def sit(self, run: str, *more: str, kills: Sequence[Kill] = ()) -> Sitting:
        """A run with these further words, to be killed."""
        words = self.words(run, *more)
        sitting = Sitting(lambda _: words, self.folder / run, environment(), kills)
        self.sittings.append(sitting)
        return sitting

    def urls(self) -> list[str]:
        """All endpoints, as words."""
        return [word for post in self.posts for word in ("--api-url", post.url)]

    def some_kills(self, most: int, many: int) -> list[Kill]:
        """Kills of Keju between the first record and the last but a tenth."""
        found = []
        for _ in range(many):
            kind = self.chance.choice(SIGNALS)
            times = 2 if kind.signal == signal.SIGINT and self.chance.random() < 0.3 else 1
            found.append(Kill(self.chance.randrange(1, most * 9 // 10), kind.signal, times))
        return found

    # What happens

    def at(self, records: int, act: Callable[[], None]) -> None:
        """Do something when the runs have so many records."""
        self._events.append((records, act))
        self._events.sort(key=lambda event: event[0])

    def some_weather(
        self, many: int, kinds: Sequence[str] = FAULTS, *, deaths: bool = True
    ) -> None:
        """Orders and deaths at moments of their own."""
        for _ in range(many):
            post = self.chance.randrange(len(self.posts))
            dies = deaths and self.chance.random() < 0.25
            order, seconds = some_order(self.chance, kinds), 0.1 + self.chance.random()
            act = self._death(post, seconds) if dies else self._trouble(post, order)
            self.at(self.chance.randrange(self.size * 9 // 10), act)

    def _death(self, number: int, seconds: float) -> Callable[[], None]:
        def act() -> None:
            self.posts[number].kill()
            self._later.append((time.monotonic() + seconds, self.posts[number].start))
            self.calm_names(number)

        return act

    def _trouble(self, number: int, order: Order) -> Callable[[], None]:
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
        while not all(sitting.over for sitting in self.sittings):
            for sitting in self.sittings:
                if not sitting.over:
                    sitting.step()
            records = sum(sitting.records for sitting in self.sittings)
            while self._events and self._events[0][0] <= records:
                self._events.pop(0)[1]()
            now = time.monotonic()
            for event in [each for each in self._later if each[0] <= now]:
                self._later.remove(event)
                event[1]()
            if now > until:
                self.report.violations.append(f"not over after {LONGEST:.0f} s")
                break
            time.sleep(0.005)
        self.report.violations += [each.problem for each in self.sittings if each.problem]

    # What came of it

    def calm(self) -> Calm:
        """The same exam at an endpoint that nobody disturbs."""
        words = self.words("calm", "--api-url", self.place.calm.url)
        ended = self.command(*words[1:])
        assert ended.code == 0, ended
        return Calm.of(self.folder / "calm", json.loads(ended.out))

    def command(self, *words: str) -> Ended:
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
        ended = Ended(ran.returncode, ran.stdout, ran.stderr)
        if ended.broken:
            self.report.violations.append(ended.broken)
        return ended

    def check(self, run: str, document: dict[str, Any] | None) -> None:
        """Hold the ledgers against the records of a finished run, and count."""
        report, ledgers = self.report, {post.url: post.entries() for post in self.posts}
        folders = [self.folder / run]
        for sitting in self.sittings:
            report.signals.update(sitting.signals)
            report.exits.update(sitting.ends)
        if deaths := sum(post.deaths for post in self.posts):
            report.signals["endpoint"] += deaths
        calm = self.calm()
        report.questions = len(calm.records)
        report.records = sum(1 for _ in Records(self.folder / run))
        for entries in ledgers.values():
            report.faults.update(entries.faults)
            report.faults.update({"other model": entries.others, "refuse": entries.refusals})
            report.requests += entries.asked.total()
            report.replies += entries.gave.total()
        if document is None:
            return
        report.violations += problems(self.folder / run, calm, ledgers, document)
        report.twice = given_twice(folders, ledgers.values())
        report.errors = report.records - (report.replies - report.twice)
        most = self.allowed + self._cost_of_kills(ledgers.values()) + broken_attempts(folders)
        if report.twice > most:
            report.violations.append(f"{report.twice} answers given for nothing, {most} at most")

    def _cost_of_kills(self, ledgers: Iterable[Entries]) -> int:
        """True answers that kills may have cost: what was in flight."""
        hard = sum(sitting.hard_kills for sitting in self.sittings)
        shut = sum(post.deaths for post in self.posts) + sum(each.refusals for each in ledgers)
        return SLOTS * (hard * len(self.posts) + shut * len(self.sittings))

    def close(self) -> None:
        """End everything; what was written stays where something went wrong."""
        for sitting in self.sittings:
            sitting.end()
        for post in self.posts:
            post.end()
        if not self.report.violations:
            shutil.rmtree(self.folder, ignore_errors=True)


def play_pool(it: Round) -> None:
    """Several endpoints of which each may fail, and sometimes all of them."""
    for place in range(it.chance.randrange(3, 6)):
        it.new_post(place).start()
    it.some_weather(10)
    if it.chance.random() < 0.3:
        it.give_up_after = 2.0
        it.at(it.chance.randrange(it.size // 2), it.blackout)
    kills = it.some_kills(it.size, it.chance.randrange(2, 6))
    sitting = it.sit("r", *it.urls(), kills=kills)
    it.play()
    it.check("r", sitting.document)


def play_parts(it: Round) -> None:
    """Three parts at once, then one run of them; sometimes before the last part is complete."""
    many = 3
    for place in range(3):
        it.new_post(place).start()
    it.some_weather(8)
    early, part = it.chance.random() < 0.4, it.size // many
    for number in range(1, many + 1):
        kills = it.some_kills(part, it.chance.randrange(1, 3))
        sitting = it.sit(f"part-{number}", *it.urls(), "--shard", f"{number}/{many}", kills=kills)
        sitting.abandoned = early and number == many
    it.play()
    if it.report.violations:
        return it.check("part-1", None)
    merged = _merge(it)
    missing = it.size - sum(sitting.replies for sitting in it.sittings)
    expected = INCOMPLETE if missing else 0
    if merged.code != expected:
        problem = f"merge ended with {merged.code}, not {expected}: {merged.err.strip()[-300:]}"
        it.report.violations.append(problem)
        return it.check("whole", None)
    document = json.loads(merged.out)
    if missing:
        kill = Kill(it.size - missing + it.chance.randrange(1, missing + 1), signal.SIGKILL)
        rest = it.sit("whole", *it.urls(), kills=[kill])
        it.play()
        document = rest.document
    return it.check("whole", document)


def _merge(it: Round) -> Ended:
    """Merge the parts; before, the same command is killed in the middle."""
    names = [sitting.run.name for sitting in it.sittings]
    words = ["-m", "keju", "merge", *names, "-o", "whole", "--work-dir", ".", "--json"]
    words += ["--no-report"]
    try:
        subprocess.run(
            [sys.executable, *words],
            cwd=it.folder,
            env=environment(),
            capture_output=True,
            timeout=0.2 + it.chance.random(),
            check=False,
        )
        shutil.rmtree(it.folder / "whole", ignore_errors=True)  # it was quicker
    except subprocess.TimeoutExpired:
        it.report.signals["merge"] += 1
    return it.command(*words)


def play_served(it: Round) -> None:
    """A server that Keju starts, which dies now and then, once or twice in a session."""
    post = it.new_post(0, fast=0.015)
    command = f"{shlex.join(post.words)} --port {{port}}"

    def kill_server() -> None:
        lives = post.entries().lives
        if lives and Path(f"/proc/{lives[-1]}").exists():
            post.deaths += 1
            os.kill(lives[-1], signal.SIGKILL)

    for _ in range(it.chance.randrange(1, 4)):
        it.at(it.chance.randrange(1, it.size * 9 // 10), kill_server)
    it.some_weather(6, (*ATTEMPT_FAULTS, "refuse"), deaths=False)
    kills = it.some_kills(it.size, it.chance.randrange(1, 4))
    sitting = it.sit("r", "--serve", command, kills=kills)
    it.play()
    it.check("r", sitting.document)


def play_ray(it: Round) -> None:
    """Actors on three nodes ask one endpoint; actors, nodes and the driver are killed."""
    from tests.cluster.conftest import with_signal

    raylets = it.place.raylets()
    it.new_post(0, fast=0.05).start()
    it.some_weather(5, ATTEMPT_FAULTS)

    def kill_actor() -> None:
        if actors := raylets.actors():
            it.report.signals["actor"] += 1
            with_signal(it.chance.choice(actors), signal.SIGKILL)

    def kill_node() -> None:
        if len(nodes := raylets.alive()) > 1:
            it.report.signals["node"] += 1
            raylets.kill_node(it.chance.choice(nodes))

    for act in (kill_actor, kill_actor, kill_node):
        it.at(it.chance.randrange(it.size // 10, it.size * 8 // 10), act)
    settings = json.dumps({"patience": 30, "resources": {"place": 1}})
    cluster = ("--executor", "ray", "--ray-address", raylets.address, "--ray", settings)
    plain = it.chance.randrange(2)
    """Every other start is without Ray: both are the same run."""

    def words(start: int) -> list[str]:
        more = cluster if start % 2 == plain else ()
        return it.words("r", *it.urls(), *more, python=str(it.place.ray))

    around = raylets.around | {"PYTHONPATH": environment()["PYTHONPATH"]}
    kills = it.some_kills(it.size, 2)
    sitting = Sitting(words, it.folder / "r", around, kills, lambda: raylets.actors())
    it.sittings.append(sitting)
    it.play()
    lost = it.report.signals["actor"] + it.report.signals["node"] + 3 * sitting.hard_kills
    it.allowed = TOLD_BY_ACTOR * lost
    it.check("r", sitting.document)


WAYS: Final = {"pool": play_pool, "parts": play_parts, "served": play_served, "ray": play_ray}


def play(place: Place, kind: str, seed: str, *, size: int = SIZE, real: bool = True) -> Report:
    """One round."""
    started, it = time.monotonic(), Round(place, kind, seed, size=size, real=real)
    try:
        WAYS[kind](it)
    finally:
        it.close()
        it.report.seconds = time.monotonic() - started
    return it.report


def ray_python() -> Path | None:
    """The Python of the environment that ``make test-ray`` builds, where it is there."""
    named = os.environ.get(RAY, Path.home() / ".cache/keju-bridges/ray")
    python = Path(named, "bin", "python")
    return python if python.is_file() else None


@contextmanager
def opened(ray: Path | None) -> Iterator[Place]:
    """A place for rounds; its folder stays where a round went wrong."""
    place = Place(Path(tempfile.mkdtemp(prefix="ks-", dir="/tmp")), ray)
    try:
        yield place
    finally:
        place.close()
        if not [*place.folder.glob("round-*")]:
            shutil.rmtree(place.folder, ignore_errors=True)


def soak(minutes: float, seed: int, only: int | None = None) -> int:
    """Rounds for so many minutes, or one of them; print a line for each, and what they were like.

    How many rounds something went wrong in.
    """
    ray, whole, wrong, number = ray_python(), Report("all"), 0, 0
    if ray is None:
        print(f"without Ray: {RAY} names no environment with it; make test-ray builds one")
    kinds = KINDS if ray is not None else KINDS[:-1]
    until = time.monotonic() + 60 * minutes
    with opened(ray) as place:
        while time.monotonic() < until:
            number = only if only is not None else number + 1
            report = play(place, kinds[number % len(kinds)], f"{seed} {number}")
            print(f"  {number}: {report.line()}", flush=True)
            if report.violations:
                print(f"     again: python -m perf.soak scale --seed {seed} --round {number}")
                wrong += 1
            whole.add(report)
            if only is not None:
                break
    rounds = 1 if only is not None else number
    print(table(whole, rounds), flush=True)
    return wrong


def table(whole: Report, rounds: int) -> str:
    """What all rounds were like, in rows."""
    rows: dict[str, Any] = {
        "rounds": rounds,
        "questions": whole.questions,
        **{f"killed: {name}": many for name, many in sorted(whole.signals.items())},
        **{f"exit code {code}": many for code, many in sorted(whole.exits.items())},
        **{f"fault: {name}": many for name, many in sorted(whole.faults.items())},
        "requests": whole.requests,
        "true answers given": whole.replies,
        "of them in no record": whole.twice,
        "records": whole.records,
        "of them errors, asked again": whole.errors,
        "violations": len(whole.violations),
    }
    width = max(map(len, rows))
    return "\n".join(f"  {name:<{width}} {value:>9,}" for name, value in rows.items())
