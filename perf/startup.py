"""How soon something happens: the help texts, and the first question of a run."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from perf.exam import bbh
from perf.measure import (
    ROOT,
    NotMeasured,
    Row,
    alternate,
    environment_of_children,
    run,
    within,
)
from perf.nginx import REPLY

KEJU = (sys.executable, "-m", "keju")
ROUNDS = 5
HELP_LIMIT, REQUEST_LIMIT = 0.25, 1.0
HELP_ROUNDS, HELP_RATIO = 10, 1.3
LIBRARIES = (sys.executable, "-c", "import typer, rich")
"""What help is held against: importing the libraries of the command line."""
QUESTION_BYTES = 400
"""A body of at least this size is a question; what the preflight sends is shorter."""


def measure() -> Iterator[Row]:
    """CPU of help, and of a run up to the moment when a question arrives."""
    helping = statistics.median(run([*KEJU, "--help"]).cpu for _ in range(ROUNDS))
    yield within("startup: CPU of keju --help", helping, HELP_LIMIT, "s")
    sides = alternate(
        HELP_ROUNDS, lambda: run([*KEJU, "eval", "--help"]).cpu, lambda: run(LIBRARIES).cpu
    )
    limit = f"{HELP_RATIO:g}x of {sides.peer:.3g} s"
    yield Row(
        "startup: CPU of keju eval --help, to importing typer and rich",
        f"{sides.keju:.3g} s",
        limit,
        sides.ratio,
        sides.ratio <= HELP_RATIO,
    )
    exam = bbh()
    until_question = statistics.median(_until_first_question(exam.settings) for _ in range(ROUNDS))
    yield within(
        f"startup: CPU up to the first question, {exam.title}", until_question, REQUEST_LIMIT, "s"
    )


class _Door(ThreadingHTTPServer):
    """An endpoint that notes when the first question arrives; the caller is killed after that."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep quiet about the caller's end."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Caller)
        self.process: subprocess.Popen[bytes] | None = None
        self.cpu: float | None = None
        self.arrived = threading.Event()


class _Caller(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Door

    def do_GET(self) -> None:
        self._answer({"data": [{"id": "constant"}]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if len(body) >= QUESTION_BYTES and not self.server.arrived.is_set():
            assert self.server.process is not None
            self.server.cpu = cpu_of(self.server.process.pid)
            self.server.arrived.set()
        self._answer(REPLY)

    def _answer(self, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


def cpu_of(pid: int) -> float:
    """Seconds that all threads of another process have run so far."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _until_first_question(settings: dict[str, object]) -> float:
    with _Door() as door, tempfile.TemporaryDirectory() as folder:
        threading.Thread(target=door.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{door.server_address[1]}/v1"
        config = Path(folder, "task.json")
        config.write_text(
            json.dumps({**settings, "model": "constant", "api_url": url, "work_dir": folder})
        )
        door.process = subprocess.Popen(
            [*KEJU, "eval", "--config", str(config), "--eval-batch-size", "1"],
            cwd=ROOT,
            env=environment_of_children(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        door.arrived.wait(60)
        door.process.kill()
        door.process.wait()
        door.shutdown()
    if door.cpu is None:
        raise NotMeasured("no question arrived within a minute")
    return door.cpu
