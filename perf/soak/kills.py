"""Kills at aimed moments: nothing is lost, doubled or torn, and the exit code is right.

A case is a chain: a command is killed `KILLS` times, each time at another moment, and then let be.
A run that is complete cannot be killed any more, and a command may be done before its moment comes.
Moments are aimed at from outside: a delay, so many bytes in a journal, or the appearance of a file
that is about to take another's place.
"""

from __future__ import annotations

import functools
import json
import random
import shutil
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan, draw

from perf.measure import ROOT
from perf.soak.case import Case, CommandResult
from perf.soak.zygote import Moment, keju

KILLS: Final = 5
ATTEMPTS: Final = 8
SEED: Final = 3
QUESTIONS: Final = 160
IN_FLIGHT: Final = 4
LATENCY: Final = 0.02
DATA: Final = ROOT / "tests" / "runs01" / "data"
SIGNALS: Final = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
INTERRUPTED: Final = 130
PARTS_OF_RUN: Final = ("manifest.json", "results.json", "report.html", "grades.jsonl")


class KillAttack(NamedTuple):
    """A command that is killed again and again."""

    name: str
    argv: tuple[str, ...]
    """``@URL`` stands for the endpoint."""
    journal: str = ""
    """The journal that it writes; empty where it only reads a run."""
    written_file: str = ""
    """The file that it makes, beside the run's own."""
    chains: int = 20


MODEL: Final = ("--model", "m", "--api-url", "@URL", "--datasets", "demo", "--dataset-args")
EXAM: Final = json.dumps({"demo": {"size": QUESTIONS, "subset_list": ["boolean_expressions"]}})
EVAL_WORDS: Final = (
    *("eval", *MODEL, EXAM, "--work-dir", ".", "--run-id", "r", "--quiet", "--json"),
    *("--eval-batch-size", str(IN_FLIGHT)),
)
OPEN: Final = (
    *("eval", "--model", "m", "--api-url", "@URL", "--datasets", "bixbench", "--data-dir"),
    *(str(DATA), "--dataset-args", '{"bixbench": {"answer_mode": "open"}}'),
    *("--work-dir", ".", "--run-id", "r", "--quiet", "--json"),
)
JUDGING: Final = json.dumps(
    {"model": "judge", "api_url": "@URL", "eval_batch_size": IN_FLIGHT, "repeats": 9}
)
ATTACKS: Final = (
    KillAttack("eval", EVAL_WORDS, "records.jsonl", chains=55),
    KillAttack("judge", ("judge", "r", "--judge", JUDGING, "--json"), "verdicts.jsonl", chains=25),
    KillAttack("score", ("score", "r", "--json"), chains=15),
    KillAttack(
        "export", ("export", "r", "-o", "out.csv", "--full-text"), written_file="out.csv", chains=15
    ),
    KillAttack("report", ("report", "r"), written_file="r/report.html", chains=15),
)


def cases() -> list[Case]:
    """Chains of kills of every command."""
    return [
        Case(f"{attack.name}, chain {number}", functools.partial(_chain, attack, number))
        for attack in ATTACKS
        for number in range(attack.chains)
    ]


def answer(request: EndpointRequest) -> str:
    """What the candidate or the judge says; always the same to the same prompt."""
    chance = draw(request.text)
    if request.body["model"] == "judge":
        return f"<grade>{'correct' if chance < 0.5 else 'incorrect'}</grade>"
    return f"So the answer is ({'AB'[chance < 0.5]}). <answer>{chance:.3f}</answer>"


class Reference(NamedTuple):
    """What a command leaves where nobody disturbs it."""

    folder: Path
    document: str
    written_bytes: bytes
    journalled: int
    """Bytes of the journal in the end."""


_lock = threading.Lock()
_killed: Counter[str] = Counter()


def summary() -> str:
    """How many kills met a command that was still at work, by command."""
    parts = ", ".join(f"{attack.name} {_killed[attack.name]}" for attack in ATTACKS)
    return f"{_killed.total()} kills: {parts}"


@functools.cache
def _place() -> Path:
    return Path(tempfile.mkdtemp(prefix="keju-soak-"))


def reference(attack: KillAttack) -> Reference:
    """The folder before the command, what it prints, and the file it makes."""
    with _lock:
        return _reference(attack)


@functools.cache
def _reference(attack: KillAttack) -> Reference:
    before, after = _place() / attack.name / "before", _place() / attack.name / "after"
    before.mkdir(parents=True)
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        if attack.name != "eval":
            words = OPEN if attack.name == "judge" else EVAL_WORDS
            process = keju(before, *_words(words, endpoint))
            assert process.code in (0, 3), process
        shutil.copytree(before, after)
        process = keju(after, *_words(attack.argv, endpoint))
        assert process.code in (0, 3), process
    written_bytes = (after / attack.written_file).read_bytes() if attack.written_file else b""
    numbers = _numbers(process.out) if "--json" in attack.argv else ""
    size = (after / "r" / attack.journal).stat().st_size if attack.journal else 0
    return Reference(before, numbers, written_bytes, size)


def _words(argv: tuple[str, ...], endpoint: FaultyEndpoint) -> list[str]:
    return [word.replace("@URL", endpoint.url) for word in argv]


def _numbers(out: str) -> str:
    """What must be the same however often a command was killed."""
    results: dict[str, Any] = json.loads(out)
    keys = ("name", "reader", "n", "metrics", "outcomes", "subsets")
    entries = results.get("benchmarks", ())
    return json.dumps([{key: entry[key] for key in keys} for entry in entries], sort_keys=True)


def _chain(attack: KillAttack, number: int, folder: Path) -> str:
    expected = reference(attack)
    chance = random.Random(f"{SEED} {attack.name} {number}")
    shutil.copytree(expected.folder, folder, dirs_exist_ok=True)
    before = _contents(folder)
    journal = folder / "r" / attack.journal if attack.journal else None
    with FaultyEndpoint(Plan(answers=answer, latency=LATENCY)) as endpoint:
        words = _words(attack.argv, endpoint)
        stats = endpoint.stats
        kills = 0
        for _ in range(ATTEMPTS):
            if kills == KILLS:
                break
            written = _lines(journal)
            kill_moment = _moment(attack, folder, expected.journalled, chance)
            process = keju(folder, *words, moment=kill_moment)
            if process.code not in (0, 3):
                kills += 1
                with _lock:
                    _killed[attack.name] += 1
            if problem := process.broken or _ending(process, kill_moment):
                return f"{kill_moment}: {problem}"
            lines = _lines(journal)
            if lines[: len(written)] != written:
                return f"{kill_moment}: lines of {attack.journal} were lost"
            if attack.written_file and (folder / attack.written_file).exists():
                content = (folder / attack.written_file).read_bytes()
                if content not in (expected.written_bytes, before.get(attack.written_file)):
                    return f"{kill_moment}: {attack.written_file} is torn"
            if not journal and (changed := _changes(before, folder, attack)):
                return f"{kill_moment}: a command that reads changed {changed}"
        process = keju(folder, *words)
        repeated = sum(stats.attempts.values()) - len(_lines(journal))
    if process.code not in (0, 3):
        return f"after {kills} kills exit {process.code}: {process.err[:300]!r}"
    if "--json" in attack.argv and _numbers(process.out) != expected.document:
        return f"after {kills} kills other numbers: {process.out[:300]}"
    if (
        attack.written_file
        and (folder / attack.written_file).read_bytes() != expected.written_bytes
    ):
        return f"after {kills} kills another {attack.written_file}"
    if partial_files := [str(path) for path in folder.rglob(".*.part")]:
        return f"after {kills} kills there is still {partial_files}"
    return _loss(attack, journal, repeated, kills)


def _loss(attack: KillAttack, journal: Path | None, repeated: int, kills: int) -> str:
    """What was doubled, or asked more often than a kill can explain; empty if nothing was."""
    if journal is None:
        return ""
    hashes = Counter(json.loads(line)["hash"] for line in _lines(journal))
    if attack.name == "eval" and len(hashes) != QUESTIONS:
        return f"{len(hashes)} of {QUESTIONS} questions have a record"
    if twice := [name for name, count in hashes.items() if count > 1]:
        return f"{len(twice)} records are there twice"
    # Each start knocks once, and a kill costs what is in flight.
    allowed_repeats = (kills + 1) * 2 + kills * IN_FLIGHT
    return (
        f"{repeated} requests were sent again, {allowed_repeats} at most"
        if repeated > allowed_repeats
        else ""
    )


def _moment(attack: KillAttack, folder: Path, journalled: int, chance: random.Random) -> Moment:
    """When to kill, and how."""
    number = chance.choice(SIGNALS)
    kinds: list[Callable[[], Moment]] = [
        lambda: Moment(int(number), after=chance.random() * 0.4),
    ]
    if attack.journal:
        path = folder / "r" / attack.journal
        size = path.stat().st_size if path.exists() else 0
        grown = size + chance.randrange(1, max(2, (journalled - size) // 2))
        kinds += [lambda: Moment(int(number), str(path), grown, chance.random() * 0.01)] * 3
        part = f".{chance.choice(PARTS_OF_RUN)}."
        kinds += [lambda: Moment(int(number), f"{folder / 'r'}/{part}", 0, chance.random() * 0.002)]
    if attack.written_file:
        written_file = folder / attack.written_file
        part = f"{written_file.parent}/.{written_file.name}."
        kinds += [lambda: Moment(int(number), part, 0, chance.random() * 0.004)] * 2
    return chance.choice(kinds)()


def _ending(process: CommandResult, kill_moment: Moment) -> str:
    """What is wrong with how a killed command ended; empty if nothing is."""
    if process.code in (0, 3):
        return ""  # it was done before
    expected = -signal.SIGKILL if kill_moment.signal == signal.SIGKILL else INTERRUPTED
    if process.code != expected:
        return f"exit {process.code} instead of {expected}: {process.err[:300]!r}"
    err_lines = process.err.strip().splitlines()
    if expected == INTERRUPTED and not any("interrupted" in line for line in err_lines):
        return f"interrupted without a word: {process.err[:300]!r}"
    return ""


def _lines(journal: Path | None) -> list[bytes]:
    """The whole lines of a journal."""
    if journal is None or not journal.exists():
        return []
    return [line for line in journal.read_bytes().splitlines(keepends=True) if line[-1:] == b"\n"]


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _changes(before: dict[str, bytes], folder: Path, attack: KillAttack) -> list[str]:
    """The files of a run that a command that only reads has changed."""
    now = _contents(folder)
    return [
        name
        for name, content in before.items()
        if name != attack.written_file and now.get(name) != content
    ]
