"""Attacks of an endpoint on ``keju eval``: hostile first, then good, so that nothing is lost."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from perf.soak.case import Case
from perf.soak.hostile.bodies import ANTHROPIC_FIELDS, BODIES, ODD, OPENAI_FIELDS, fields
from perf.soak.hostile.judge import KEY, active_content, attacked, damaged_lines
from perf.soak.hostile.peer import Attack, HostileServer
from perf.soak.hostile.replies import WIRE

QUESTIONS = 4
SECONDS = 300.0
"""Seconds in which a command ends: it gives up after 2 s, and a machine may be busy."""
CODES = (0, 3, 4, 5)
"""Exit codes of a run: complete, without grades, incomplete, endpoint."""
FINAL_ERROR = b'"error":{"kind":"context_length"'
"""Part of a stored record that is not asked again: the run stays incomplete, with exit code 4."""
FLAGS = ("--datasets", "demo", "--work-dir", "runs", "--run-id", "r", "--json")
PACE = "--timeout 2 --attempts 2 --retry-interval 0.02 --give-up-after 2 --eval-batch-size 3"


def cases() -> list[Case]:
    """Return every attack: over plain HTTP, over the client for proxies, and on both APIs."""
    attack_cases = [*_cases("openai", WIRE | BODIES), *_cases("proxy", WIRE)]
    attack_cases += _cases("openai", fields(OPENAI_FIELDS), len(ODD))
    attack_cases += _cases("anthropic", BODIES)
    attack_cases += _cases("anthropic", fields(ANTHROPIC_FIELDS), len(ODD))
    return attack_cases


def _cases(way: str, attacks: dict[str, Attack], questions: int = QUESTIONS) -> Iterator[Case]:
    for name, attack in attacks.items():
        yield Case(f"{way}: {name}", _runner(way, name, attack, questions))


def _runner(way: str, name: str, attack: Attack, questions: int) -> Callable[[Path], str]:
    # The first request is the preflight: some attacks begin with it, others after it.
    start = zlib.crc32(f"{way}{name}".encode()) % 3 if questions == QUESTIONS else 1

    def run(folder: Path) -> str:
        with HostileServer(attack, start) as server:
            environ = {"NO_PROXY": "", "HTTP_PROXY": f"http://127.0.0.1:{server.port}"}
            host = "model.test" if way == "proxy" else f"127.0.0.1:{server.port}"
            path = "" if way == "anthropic" else "/v1"
            model = "anthropic:m" if way == "anthropic" else "m"
            argv = ["eval", "--model", model, "--api-url", f"http://{host}{path}"]
            argv += ["--api-key", KEY, "--total", str(questions), *FLAGS, *PACE.split()]
            environ = environ if way == "proxy" else {}
            first_run = attacked(folder, *argv, codes=CODES, environ=environ, seconds=SECONDS)
            problem = first_run.problem or _stored(folder, first_run.process.out)
            if problem:
                return problem
            journal = folder / "work/runs/r/records.jsonl"
            before = journal.read_bytes() if journal.exists() else b""
            server.is_hostile = False
            final = before.count(FINAL_ERROR)
            codes = (4,) if final else (0, 3)
            second_run = attacked(folder, *argv, codes=codes, environ=environ, seconds=SECONDS)
            if second_run.problem:
                return f"resumed: {second_run.problem}"
            if not journal.read_bytes().startswith(before.rpartition(b"\n")[0]):
                return "resumed: stored replies were lost"
            entry = json.loads(second_run.process.out)["benchmarks"][0]
            count = sum(entry["outcomes"].values())
            if count != questions or entry["outcomes"]["error"] != final:
                return f"resumed: {count} of {questions} questions, {entry['outcomes']}"
        return ""

    return run


def _stored(folder: Path, out: str) -> str:
    """Return what is wrong with what a command stored and printed."""
    run = folder / "work/runs/r"
    if out.strip():
        try:
            json.loads(out)
        except ValueError:
            return "what it printed is no JSON"
    return damaged_lines(run / "records.jsonl") or active_content(run / "report.html")
