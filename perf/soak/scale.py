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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from keju.runs.run import RESULTS
from perf.scaling import RAY
from perf.soak.case import Ended, environment
from perf.soak.fleet import Post
from perf.soak.rounds import SIZE, Place, Report, Round
from perf.soak.sitting import INCOMPLETE, Kill
from perf.soak.witness import ATTEMPT_FAULTS, Order

if TYPE_CHECKING:
    from tests.cluster.conftest import Raylets

KINDS: Final = ("pool", "parts", "served", "ray")
TOLD_BY_ACTOR: Final = 40
"""Answers that an actor may have been given and has not told yet: 16, or those of 0.2 seconds."""


def urls_of(posts: Iterable[Post]) -> list[str]:
    """Endpoints, as words of a command."""
    return [word for post in posts for word in ("--api-url", post.url)]


def play_pool(it: Round) -> None:
    """Several endpoints of which each may fail, and sometimes all of them."""
    for place in range(it.chance.randrange(3, 6)):
        it.new_post(place).start()
    it.some_weather(10)
    for part in (4, 2):  # the first such reply takes an endpoint out, so there are never many
        it.at(it.size // part, it.trouble(1, Order("other", 15, 3.0)))
    if it.chance.random() < 0.3:
        it.give_up_after = 2.0
        it.at(it.chance.randrange(it.size // 2), it.blackout)
    kills = it.some_kills(it.size, it.chance.randrange(2, 6))
    seed = it.chance.random()

    def words(start: int) -> list[str]:
        """All endpoints at first, then any with the first among them: it is the same run."""
        chance, others = random.Random(f"{seed} {start}"), it.posts[1:]
        many = chance.randrange(len(others) + 1) if start else len(others)
        return it.words("r", *urls_of([it.posts[0], *chance.sample(others, many)]))

    sitting = it.evaluate("r", words, kills)
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
        run, kills = f"part-{number}", it.some_kills(part, it.chance.randrange(1, 3))
        words = it.words(run, *urls_of(it.posts), "--shard", f"{number}/{many}")
        sitting = it.evaluate(run, words, kills)
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
        rest = it.evaluate("whole", it.words("whole", *urls_of(it.posts)), [kill])
        it.play()
        document = rest.document
    return it.check("whole", document)


def _merge(it: Round) -> Ended:
    """Merge the parts; before, the same command is killed in the middle."""
    names = [sitting.run.name for sitting in it.sittings]
    words = ["-m", "keju", "merge", *names, "-o", "whole", "--work-dir", ".", "--json"]
    words += ["--no-report"]
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=it.folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as child:
        while child.poll() is None and not any(it.folder.glob("*whole*")):
            time.sleep(0.001)  # it has not begun to write
        time.sleep(it.chance.random() * 0.1)
        child.kill()
    whole = it.folder / "whole"
    it.report.signals["merge"] += child.returncode == -signal.SIGKILL
    if (whole / RESULTS).is_file():  # it was quicker
        shutil.rmtree(whole)
    ended = it.command(*words)
    if left := [path.name for path in it.folder.glob(".whole*")]:
        it.report.violations.append(f"merge left {left[0]}")
    return ended


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
    sitting = it.evaluate("r", it.words("r", "--serve", command), kills)
    it.play()
    it.check("r", sitting.document)


def play_ray(it: Round) -> None:
    """Actors on three nodes ask one endpoint; actors, nodes and the driver are killed."""
    from tests.cluster.conftest import with_signal

    raylets, python = it.place.raylets(), str(it.place.ray)
    it.slots = 12
    it.new_post(0, fast=0.05).start()
    it.some_weather(5, ATTEMPT_FAULTS)

    def kill(what: str, found: Callable[[], list[int]], act: Callable[[int], None]) -> None:
        if raylets.actors() and (processes := found()):
            it.report.signals[what] += 1
            act(it.chance.choice(processes))
        else:  # the session is without Ray, or has just begun
            it.in_seconds(0.2, lambda: kill(what, found, act))

    def kill_actor() -> None:
        kill("actor", raylets.actors, lambda pid: with_signal(pid, signal.SIGKILL))

    def kill_node() -> None:
        kill("node", lambda: raylets.alive()[1:], raylets.kill_node)

    for act in (kill_actor, kill_actor, kill_node):
        it.at(it.chance.randrange(it.size // 10, it.size * 7 // 10), act)
    settings = json.dumps({"patience": 30, "resources": {"place": 1}})
    cluster = ("--executor", "ray", "--ray-address", raylets.address, "--ray", settings)
    plain = it.chance.randrange(2)

    def words(start: int) -> list[str]:
        """Every other start is without Ray: it is the same run."""
        more = cluster if start % 2 != plain else ()
        return it.words("r", *urls_of(it.posts), *more, python=python)

    around = raylets.around | {"PYTHONPATH": environment()["PYTHONPATH"]}
    sitting = it.evaluate("r", words, it.some_kills(it.size, 2), around, raylets.actors)
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
def opened(ray: Path | None, raylets: Raylets | None = None) -> Iterator[Place]:
    """A place for rounds; its folder stays where a round went wrong."""
    place = Place(Path(tempfile.mkdtemp(prefix="kj-scale-", dir="/tmp")), ray, raylets)
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
