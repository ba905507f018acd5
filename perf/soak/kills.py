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
from perf.soak.case import Case, Ended
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


class Attack(NamedTuple):
    """A command that is killed again and again."""

    name: str
    argv: tuple[str, ...]
    """``@URL`` stands for the endpoint."""
    journal: str = ""
    """The journal that it writes; empty where it only reads a run."""
    made: str = ""
    """The file that it makes, beside the run's own."""
    chains: int = 20


MODEL: Final = ("--model", "m", "--api-url", "@URL", "--datasets", "demo", "--dataset-args")
EXAM: Final = json.dumps({"demo": {"size": QUESTIONS, "subset_list": ["boolean_expressions"]}})
SITTING: Final = (
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
    Attack("eval", SITTING, "records.jsonl", chains=55),
    Attack("judge", ("judge", "r", "--judge", JUDGING, "--json"), "verdicts.jsonl", chains=25),
    Attack("score", ("score", "r", "--json"), chains=15),
    Attack("export", ("export", "r", "-o", "out.csv", "--full-text"), made="out.csv", chains=15),
    Attack("report", ("report", "r"), made="r/report.html", chains=15),
)


def cases() -> list[Case]:
    """Chains of kills of every command."""
    return [
        Case(f"{attack.name}, chain {number}", functools.partial(_chain, attack, number))
        for attack in ATTACKS
        for number in range(attack.chains)
    ]


def answer(asked: EndpointRequest) -> str:
    """What the candidate or the judge says; always the same to the same prompt."""
    chance = draw(asked.text)
    if asked.body["model"] == "judge":
        return f"<grade>{'correct' if chance < 0.5 else 'incorrect'}</grade>"
    return f"So the answer is ({'AB'[chance < 0.5]}). <answer>{chance:.3f}</answer>"


class Reference(NamedTuple):
    """What a command leaves where nobody disturbs it."""

    folder: Path
    document: str
    made: bytes
    journalled: int
    """Bytes of the journal in the end."""


_lock = threading.Lock()
_killed: Counter[str] = Counter()


def told() -> str:
    """How many kills met a command that was still at work, by command."""
    parts = ", ".join(f"{attack.name} {_killed[attack.name]}" for attack in ATTACKS)
    return f"{_killed.total()} kills: {parts}"


@functools.cache
def _place() -> Path:
    return Path(tempfile.mkdtemp(prefix="keju-soak-"))


def reference(attack: Attack) -> Reference:
    """The folder before the command, what it prints, and the file it makes."""
    with _lock:
        return _reference(attack)


@functools.cache
def _reference(attack: Attack) -> Reference:
    before, after = _place() / attack.name / "before", _place() / attack.name / "after"
    before.mkdir(parents=True)
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        if attack.name != "eval":
            sitting = OPEN if attack.name == "judge" else SITTING
            ended = keju(before, *_words(sitting, endpoint))
            assert ended.code in (0, 3), ended
        shutil.copytree(before, after)
        ended = keju(after, *_words(attack.argv, endpoint))
        assert ended.code in (0, 3), ended
    made = (after / attack.made).read_bytes() if attack.made else b""
    numbers = _numbers(ended.out) if "--json" in attack.argv else ""
    size = (after / "r" / attack.journal).stat().st_size if attack.journal else 0
    return Reference(before, numbers, made, size)


def _words(argv: tuple[str, ...], endpoint: FaultyEndpoint) -> list[str]:
    return [word.replace("@URL", endpoint.url) for word in argv]


def _numbers(out: str) -> str:
    """What must be the same however often a command was killed."""
    results: dict[str, Any] = json.loads(out)
    keys = ("name", "reader", "n", "metrics", "outcomes", "subsets")
    entries = results.get("benchmarks", ())
    return json.dumps([{key: entry[key] for key in keys} for entry in entries], sort_keys=True)


def _chain(attack: Attack, number: int, folder: Path) -> str:
    known = reference(attack)
    chance = random.Random(f"{SEED} {attack.name} {number}")
    shutil.copytree(known.folder, folder, dirs_exist_ok=True)
    before = _contents(folder)
    journal = folder / "r" / attack.journal if attack.journal else None
    with FaultyEndpoint(Plan(answers=answer, latency=LATENCY)) as endpoint:
        words = _words(attack.argv, endpoint)
        asked = endpoint.stats
        kills = 0
        for _ in range(ATTEMPTS):
            if kills == KILLS:
                break
            written = _lines(journal)
            how = _moment(attack, folder, known.journalled, chance)
            ended = keju(folder, *words, moment=how)
            if ended.code not in (0, 3):
                kills += 1
                with _lock:
                    _killed[attack.name] += 1
            if problem := ended.broken or _ending(ended, how):
                return f"{how}: {problem}"
            lines = _lines(journal)
            if lines[: len(written)] != written:
                return f"{how}: lines of {attack.journal} were lost"
            if attack.made and (folder / attack.made).exists():
                content = (folder / attack.made).read_bytes()
                if content not in (known.made, before.get(attack.made)):
                    return f"{how}: {attack.made} is torn"
            if not journal and (changed := _changes(before, folder, attack)):
                return f"{how}: a command that reads changed {changed}"
        ended = keju(folder, *words)
        repeated = sum(asked.attempts.values()) - len(_lines(journal))
    if ended.code not in (0, 3):
        return f"after {kills} kills exit {ended.code}: {ended.err[:300]!r}"
    if "--json" in attack.argv and _numbers(ended.out) != known.document:
        return f"after {kills} kills other numbers: {ended.out[:300]}"
    if attack.made and (folder / attack.made).read_bytes() != known.made:
        return f"after {kills} kills another {attack.made}"
    if left := [str(path) for path in folder.rglob(".*.part")]:
        return f"after {kills} kills there is still {left}"
    return _loss(attack, journal, repeated, kills)


def _loss(attack: Attack, journal: Path | None, repeated: int, kills: int) -> str:
    """What was doubled, or asked more often than a kill can explain; empty if nothing was."""
    if journal is None:
        return ""
    hashes = Counter(json.loads(line)["hash"] for line in _lines(journal))
    if attack.name == "eval" and len(hashes) != QUESTIONS:
        return f"{len(hashes)} of {QUESTIONS} questions have a record"
    if twice := [name for name, many in hashes.items() if many > 1]:
        return f"{len(twice)} records are there twice"
    # Each start knocks once, and a kill costs what is in flight.
    most = (kills + 1) * 2 + kills * IN_FLIGHT
    return f"{repeated} requests were sent again, {most} at most" if repeated > most else ""


def _moment(attack: Attack, folder: Path, journalled: int, chance: random.Random) -> Moment:
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
    if attack.made:
        made = folder / attack.made
        part = f"{made.parent}/.{made.name}."
        kinds += [lambda: Moment(int(number), part, 0, chance.random() * 0.004)] * 2
    return chance.choice(kinds)()


def _ending(ended: Ended, how: Moment) -> str:
    """What is wrong with how a killed command ended; empty if nothing is."""
    if ended.code in (0, 3):
        return ""  # it was done before
    expected = -signal.SIGKILL if how.signal == signal.SIGKILL else INTERRUPTED
    if ended.code != expected:
        return f"exit {ended.code} instead of {expected}: {ended.err[:300]!r}"
    told = ended.err.strip().splitlines()
    if expected == INTERRUPTED and not any("interrupted" in line for line in told):
        return f"interrupted without a word: {ended.err[:300]!r}"
    return ""


def _lines(journal: Path | None) -> list[bytes]:
    """The whole lines of a journal."""
    if journal is None or not journal.exists():
        return []
    return [line for line in journal.read_bytes().splitlines(keepends=True) if line[-1:] == b"\n"]


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _changes(before: dict[str, bytes], folder: Path, attack: Attack) -> list[str]:
    """The files of a run that a command that only reads has changed."""
    now = _contents(folder)
    return [name for name, own in before.items() if name != attack.made and now.get(name) != own]
