"""Many endpoints, parts, servers and actors that fail, and runs that are killed, round by round.

A round runs one exam in one of four ways: with several endpoints (``pool``), in parts that
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
from perf.soak.case import CommandResult, environment
from perf.soak.fleet import Post
from perf.soak.killed_run import INCOMPLETE, Kill
from perf.soak.rounds import SIZE, Place, Report, Round
from perf.soak.witness import ATTEMPT_FAULTS, Order

if TYPE_CHECKING:
    from tests.cluster.conftest import Raylets

KINDS: Final = ("pool", "parts", "served", "ray")
TOLD_BY_ACTOR: Final = 40
"""Answers that an actor may have been given and has not told yet: 16, or those of 0.2 seconds."""


def urls_of(posts: Iterable[Post]) -> list[str]:
    """Endpoints, as words of a command."""
    return [word for post in posts for word in ("--api-url", post.url)]


def play_pool(round_: Round) -> None:
    """Several endpoints of which each may fail, and sometimes all of them."""
    for place in range(round_.chance.randrange(3, 6)):
        round_.new_post(place).start()
    round_.some_weather(10)
    for part in (4, 2):  # the first such reply takes an endpoint out, so there are never many
        round_.at(round_.size // part, round_.trouble(1, Order("other", 15, 3.0)))
    if round_.chance.random() < 0.3:
        round_.give_up_after = 2.0
        round_.at(round_.chance.randrange(round_.size // 2), round_.blackout)
    kills = round_.some_kills(round_.size, round_.chance.randrange(2, 6))
    seed = round_.chance.random()

    def words(start: int) -> list[str]:
        """All endpoints at first, then any with the first among them: it is the same run."""
        chance, other_posts = random.Random(f"{seed} {start}"), round_.posts[1:]
        count = chance.randrange(len(other_posts) + 1) if start else len(other_posts)
        return round_.words("r", *urls_of([round_.posts[0], *chance.sample(other_posts, count)]))

    killed_run = round_.evaluate("r", words, kills)
    round_.play()
    round_.check("r", killed_run.document)


def play_parts(round_: Round) -> None:
    """Three parts at once, then one run of them; sometimes before the last part is complete."""
    part_count = 3
    for place in range(3):
        round_.new_post(place).start()
    round_.some_weather(8)
    early, part = round_.chance.random() < 0.4, round_.size // part_count
    for number in range(1, part_count + 1):
        run, kills = f"part-{number}", round_.some_kills(part, round_.chance.randrange(1, 3))
        words = round_.words(run, *urls_of(round_.posts), "--shard", f"{number}/{part_count}")
        killed_run = round_.evaluate(run, words, kills)
        killed_run.abandoned = early and number == part_count
    round_.play()
    if round_.report.violations:
        return round_.check("part-1", None)
    merged = _merge(round_)
    missing = round_.size - sum(killed_run.replies for killed_run in round_.killed_runs)
    expected = INCOMPLETE if missing else 0
    if merged.code != expected:
        problem = f"merge ended with {merged.code}, not {expected}: {merged.err.strip()[-300:]}"
        round_.report.violations.append(problem)
        return round_.check("whole", None)
    document = json.loads(merged.out)
    if missing:
        kill = Kill(round_.size - missing + round_.chance.randrange(1, missing + 1), signal.SIGKILL)
        final_run = round_.evaluate("whole", round_.words("whole", *urls_of(round_.posts)), [kill])
        round_.play()
        document = final_run.document
    return round_.check("whole", document)


def _merge(round_: Round) -> CommandResult:
    """Merge the parts; before, the same command is killed in the middle."""
    names = [killed_run.run.name for killed_run in round_.killed_runs]
    words = ["-m", "keju", "merge", *names, "-o", "whole", "--work-dir", ".", "--json"]
    words += ["--no-report"]
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=round_.folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as child:
        while child.poll() is None and not any(round_.folder.glob("*whole*")):
            time.sleep(0.001)  # it has not begun to write
        time.sleep(round_.chance.random() * 0.1)
        child.kill()
    merged_folder = round_.folder / "whole"
    round_.report.signals["merge"] += child.returncode == -signal.SIGKILL
    if (merged_folder / RESULTS).is_file():  # it was quicker
        shutil.rmtree(merged_folder)
    process = round_.command(*words)
    if partial_files := [path.name for path in round_.folder.glob(".whole*")]:
        round_.report.violations.append(f"merge left {partial_files[0]}")
    return process


def play_served(round_: Round) -> None:
    """A server that Keju starts, which dies now and then, once or twice in a session."""
    post = round_.new_post(0, fast=0.015)
    command = f"{shlex.join(post.words)} --port {{port}}"

    def kill_server() -> None:
        lives = post.entries().lives
        if lives and Path(f"/proc/{lives[-1]}").exists():
            post.deaths += 1
            os.kill(lives[-1], signal.SIGKILL)

    for _ in range(round_.chance.randrange(1, 4)):
        round_.at(round_.chance.randrange(1, round_.size * 9 // 10), kill_server)
    round_.some_weather(6, (*ATTEMPT_FAULTS, "refuse"), deaths=False)
    kills = round_.some_kills(round_.size, round_.chance.randrange(1, 4))
    killed_run = round_.evaluate("r", round_.words("r", "--serve", command), kills)
    round_.play()
    round_.check("r", killed_run.document)


def play_ray(round_: Round) -> None:
    """Actors on three nodes ask one endpoint; actors, nodes and the driver are killed."""
    from tests.cluster.conftest import with_signal

    raylets, python = round_.place.raylets(), str(round_.place.ray)
    round_.slots = 12
    round_.new_post(0, fast=0.05).start()
    round_.some_weather(5, ATTEMPT_FAULTS)

    def kill(
        victim_kind: str, find_pids: Callable[[], list[int]], act: Callable[[int], None]
    ) -> None:
        if raylets.actors() and (processes := find_pids()):
            round_.report.signals[victim_kind] += 1
            act(round_.chance.choice(processes))
        else:  # the session is without Ray, or has just begun
            round_.in_seconds(0.2, lambda: kill(victim_kind, find_pids, act))

    def kill_actor() -> None:
        kill("actor", raylets.actors, lambda pid: with_signal(pid, signal.SIGKILL))

    def kill_node() -> None:
        kill("node", lambda: raylets.alive()[1:], raylets.kill_node)

    for act in (kill_actor, kill_actor, kill_node):
        round_.at(round_.chance.randrange(round_.size // 10, round_.size * 7 // 10), act)
    settings = json.dumps({"patience": 30, "resources": {"place": 1}})
    cluster = ("--executor", "ray", "--ray-address", raylets.address, "--ray", settings)
    plain = round_.chance.randrange(2)

    def words(start: int) -> list[str]:
        """Every other start is without Ray: it is the same run."""
        cluster_flags = cluster if start % 2 != plain else ()
        return round_.words("r", *urls_of(round_.posts), *cluster_flags, python=python)

    around = raylets.around | {"PYTHONPATH": environment()["PYTHONPATH"]}
    killed_run = round_.evaluate(
        "r", words, round_.some_kills(round_.size, 2), around, raylets.actors
    )
    round_.play()
    allowed_losses = (
        round_.report.signals["actor"] + round_.report.signals["node"] + 3 * killed_run.hard_kills
    )
    round_.allowed = TOLD_BY_ACTOR * allowed_losses
    round_.check("r", killed_run.document)


WAYS: Final = {"pool": play_pool, "parts": play_parts, "served": play_served, "ray": play_ray}


def play(place: Place, kind: str, seed: str, *, size: int = SIZE, real: bool = True) -> Report:
    """One round."""
    started, round_ = time.monotonic(), Round(place, kind, seed, size=size, real=real)
    try:
        WAYS[kind](round_)
    finally:
        round_.close()
        round_.report.seconds = time.monotonic() - started
    return round_.report


def ray_python() -> Path | None:
    """The Python of the environment that ``make test-ray`` builds, where it is there."""
    ray_home = os.environ.get(RAY, Path.home() / ".cache/keju-bridges/ray")
    python = Path(ray_home, "bin", "python")
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


def soak(minutes: float, seed: int, only_round: int | None = None) -> int:
    """Rounds for so many minutes, or one of them; print a line for each, and what they were like.

    How many rounds something went wrong in.
    """
    ray, overall, wrong, number = ray_python(), Report("all"), 0, 0
    if ray is None:
        print(f"without Ray: {RAY} names no environment with it; make test-ray builds one")
    kinds = KINDS if ray is not None else KINDS[:-1]
    until = time.monotonic() + 60 * minutes
    with opened(ray) as place:
        while time.monotonic() < until:
            number = only_round if only_round is not None else number + 1
            report = play(place, kinds[number % len(kinds)], f"{seed} {number}")
            print(f"  {number}: {report.line()}", flush=True)
            if report.violations:
                print(f"     again: python -m perf.soak scale --seed {seed} --round {number}")
                wrong += 1
            overall.add(report)
            if only_round is not None:
                break
    rounds = 1 if only_round is not None else number
    print(table(overall, rounds), flush=True)
    return wrong


def table(overall: Report, rounds: int) -> str:
    """What all rounds were like, in rows."""
    rows: dict[str, Any] = {
        "rounds": rounds,
        "questions": overall.questions,
        **{f"killed: {name}": count for name, count in sorted(overall.signals.items())},
        **{f"exit code {code}": count for code, count in sorted(overall.exits.items())},
        **{f"fault: {name}": count for name, count in sorted(overall.faults.items())},
        "requests": overall.requests,
        "true answers given": overall.replies,
        "of them in no record": overall.twice,
        "records": overall.records,
        "of them errors, asked again": overall.errors,
        "violations": len(overall.violations),
    }
    width = max(map(len, rows))
    return "\n".join(f"  {name:<{width}} {value:>9,}" for name, value in rows.items())
