"""Attacks of a model's code on a real sandbox, in random order, for as long as it may take.

``python -m perf.soak.attacks 20 3 FOLDER ""`` runs both lists again and again
for 20 minutes with the seed 3, and once with 0 minutes. ``python -m perf.soak outbreaks`` runs it
as root and as a normal user, and `perf.soak.attacks_viewer` too. Each
attempt is an episode of the tool ``python``. It fails if something of the host was reached, if
more than the limits was held, if the episode would not be graded, if Keju raised an error, or if
anything is left behind.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from keju.config.arms import SandboxSettings as Settings
from keju.solvers.notebook.cells import render_listing
from keju.solvers.notebook.episode import PythonToolbox
from keju.solvers.notebook.workspaces import Workspace, Workspaces
from keju.solvers.sandbox.output import CellResult
from keju.solvers.sandbox.sandbox import Sandbox
from keju.solvers.sandbox.supervisor_process import read_processes
from keju.solvers.toolbox import ToolsLost

LISTS = tuple(
    Path(__file__).with_name(name) for name in ("attacks_sandbox.txt", "attacks_sandbox_2.txt")
)
SIZES: dict[str, Any] = {
    **{"memory": "400MiB", "max_file_bytes": "64MiB", "max_work_bytes": "128MiB"},
    **{"scratch_bytes": "40MiB", "processes": 96, "open_files": 512, "cell_timeout": 20},
}
BEYOND = 1000
"""MiB that no attempt may hold: the limits above, and what may be taken between two looks."""
LISTED = 150
"""How often a folder is listed while its code works against it."""
SLOWEST = 90.0
"""Seconds that an episode may take, the start of kernels on a busy machine included."""
GROWTH = 500
"""MiB by which Keju itself may grow during all attempts."""

# The first cell of each attempt.
PRELUDE = """
def got(*what): __import__("os").write(2, b""); print("<<mark>> got", *what)
def took(mib): print("<<mark>> took", int(mib))
"""


class SandboxAttack(NamedTuple):
    """An attempt: its cells, and how they may end."""

    name: str
    about: str
    cells: tuple[str, ...]
    expects: str = "alive"


def attacks() -> list[SandboxAttack]:
    """Both lists, in their order."""
    attack_list = []
    for part in "\n".join(path.read_text("utf-8") for path in LISTS).split("\n>> ")[1:]:
        head, _, body = part.partition("\n")
        name, _, about = head.partition(": ")
        expects = "alive"
        if body.startswith("expects: "):
            line, _, body = body.partition("\n")
            expects = line.removeprefix("expects: ")
        attack_list.append(SandboxAttack(name, about, tuple(body.split("\n----\n")), expects))
    return attack_list


class Host(NamedTuple):
    """What the attempts try to reach, and what was reached of it."""

    words: dict[str, str]
    sleeper: subprocess.Popen[bytes]
    visits: list[str]


@contextmanager
def host(folder: Path) -> Iterator[Host]:
    """Make a secret file, listening sockets and a process in `folder`."""
    name = f"host-{secrets.token_hex(6)}"
    secret = folder / f"{name}-secret"
    secret.write_text(f"secret of the host {name}")
    secret.chmod(0o644)
    os.environ["HOST_API_KEY"] = variable = f"key-{secrets.token_hex(8)}"
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(36000)", name])
    visits: list[str] = []
    listening = [
        socket.create_server(("0.0.0.0", 0)),
        _unix(str(folder / "host.sock")),
        _unix(f"\0{name}"),
    ]
    for listener in listening:
        threading.Thread(target=_accept, args=(listener, visits), daemon=True).start()
    words = {
        **{"name": name, "secret": str(secret), "folder": str(folder), "variable": variable},
        **{"pid": str(sleeper.pid), "keju": str(os.getpid()), "prefix": sys.prefix},
        **{"port": str(listening[0].getsockname()[1]), "socket": str(folder / "host.sock")},
        **{"abstract": name, "address": _address(), "mark": secrets.token_hex(8)},
        **{"target": f"target-{secrets.token_hex(6)}", "sleep": str(50_000 + os.getpid() % 40_000)},
    }
    try:
        yield Host(words, sleeper, visits)
    finally:
        sleeper.kill()
        sleeper.wait()
        for listener in listening:
            listener.close()


def _unix(place: str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(place)
    server.listen()
    return server


def _accept(listening: socket.socket, visits: list[str]) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listening.accept()
            visits.append(str(listening.getsockname()))
            connection.close()


def _address() -> str:
    """An address of this machine that is not loopback; loopback where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.1"


class _RecordingToolbox(PythonToolbox):
    """The tool, and the results of its cells as Keju has them."""

    def __init__(self, bench: Workspace) -> None:
        super().__init__(bench)
        self.results: list[CellResult] = []
        run = bench.run

        async def run_and_record(code: str) -> CellResult:
            self.results.append(await run(code))
            return self.results[-1]

        bench.run = run_and_record  # type: ignore[method-assign]


async def attempt(attack: SandboxAttack, workspaces: Workspaces, target: Host) -> list[str]:
    """Run one attempt as an episode; return what went wrong."""
    wrong: list[str] = []
    texts: list[str] = []
    started = time.monotonic()
    visits = len(target.visits)
    try:
        async with workspaces.episode() as bench:
            box = _RecordingToolbox(bench)
            for cell in (PRELUDE, *attack.cells):
                for name, value in target.words.items():
                    cell = cell.replace(f"<<{name}>>", value)
                texts.append((await box.call("python", {"code": cell})).text)
            for _ in range(LISTED if attack.expects == "list" else 2):
                with suppress(OSError):
                    texts.append(render_listing(await bench.tree()))
            results = box.results
        json.dumps(box.facts())
    except ToolsLost as loss:
        return [f"not graded: {loss.message}"]
    except Exception as error:
        return [f"error of Keju: {error!r}"]
    wrong += _wrong_endings(attack, results, texts, target)
    if target.sleeper.poll() is not None:
        wrong.append("a process of the host was ended")
    if len(target.visits) > visits:
        wrong.append(f"a socket of the host was reached: {target.visits[-1]}")
    if (seconds := time.monotonic() - started) > SLOWEST + 20 * len(attack.cells):
        wrong.append(f"took {seconds:.0f} s")
    return [*dict.fromkeys(wrong), *_orphans(target)]


def _wrong_endings(
    attack: SandboxAttack, results: list[CellResult], texts: list[str], target: Host
) -> Iterator[str]:
    """What the attempt reported, and whether it ended as it may."""
    mark, secret = target.words["mark"], f"secret of the host {target.words['name']}"
    for text in (*texts, *(result.text for result in results)):
        for line in text.splitlines():
            if f"{mark} got" in line or secret in line or target.words["variable"] in line:
                yield f"reached: {line[:200]}"
            duration = re.search(rf"{mark} took (\d+)", line)  # ``3f… took 640``
            if duration and int(duration[1]) > BEYOND:
                yield f"held {duration[1]} MiB"
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text):  # what could drive a terminal
            yield f"a control character in {text[:80]!r}"
        if f"{target.words['name']}-secret" in text and attack.expects == "list":
            yield "the host's folder was listed"
    endings = {"dead" for result in results if result.died}
    endings |= {"late" for result in results if result.timed_out}
    expected_endings = set(attack.expects.split(", "))
    if (
        expected_endings & {"alive", "list"}
        and results[-1].died
        and "still here" not in results[-1].text
    ):
        yield f"the kernel died: {results[-1].died}, {results[-1].text[-300:]!r}"
    if expected_endings <= {"dead", "late"} and not endings & expected_endings:
        yield f"ended as {sorted(endings)} {results[-1].text[-200:]!r}"


def _orphans(target: Host) -> Iterator[str]:
    """Processes of an episode that is over."""
    marker = b"sleep\0" + target.words["sleep"].encode()
    for pid in read_processes():
        with suppress(OSError):
            if marker in Path(f"/proc/{pid}/cmdline").read_bytes():
                yield f"process {pid} is left"


async def rounds(
    minutes: float, seed: int, names: list[str], folder: Path, read_only: list[str], once: bool
) -> dict[str, list[str]]:
    """Run the attempts in random order until time is up; what went wrong, by attempt."""
    settings = Settings.model_validate({**SIZES, "read_only": read_only})
    chosen = [candidate for candidate in attacks() if not names or candidate.name in names]
    order = random.Random(seed)
    problems: dict[str, list[str]] = {candidate.name: [] for candidate in chosen}
    end = time.monotonic() + 60 * minutes
    with host(folder) as target:
        workspaces = Workspaces(Sandbox(settings, concurrency=2))
        await workspaces.open()
        grown = _peak()
        try:
            while True:
                for attack in order.sample(chosen, len(chosen)):
                    started = time.monotonic()
                    wrong = await attempt(attack, workspaces, target)
                    problems[attack.name] += wrong
                    word = "; ".join(wrong) or "held"
                    print(f"{attack.name} {time.monotonic() - started:.1f} s: {word}", flush=True)
                    if time.monotonic() > end and not once:
                        return problems
                if once or time.monotonic() > end:
                    return problems
        finally:
            await workspaces.close()
            if (growth := _peak() - grown) > GROWTH:
                problems["keju"] = [f"Keju grew by {growth} MiB"]
            roots = [str(root) for root in workspaces.sandbox.supervisor._roots if root.exists()]
            if roots:
                problems["folders"] = [f"left: {roots}"]


def _peak() -> int:
    """The most MiB of memory that this process has had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Run with minutes, seed, a folder, readable folders (joined by ``:``) and names."""
    minutes, seed, folder, readable, *names = sys.argv[1:]
    readable_paths = [path for path in readable.split(":") if path]
    problems_by_attack = asyncio.run(
        rounds(float(minutes), int(seed), names, Path(folder), readable_paths, minutes == "0")
    )
    wrong = {
        name: list(dict.fromkeys(problems))
        for name, problems in problems_by_attack.items()
        if problems
    }
    print(json.dumps(wrong, indent=1))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
