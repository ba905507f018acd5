"""``--metrics-port N``: the runs of this process as Prometheus metrics, on loopback alone.

The text format (version 0.0.4) is written here; nothing is to be installed. Counters are those of
this process and begin at 0. A port that is taken is said, and the run goes on without.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from keju.engine.display import Notes, Progress
from keju.engine.job import Job
from keju.engine.limits import compute_cost
from keju.engine.watching import Attempt, Follower, SessionFacts, Watcher
from keju.errors import KejuError, Notice
from keju.types import Record

HOST = "127.0.0.1"
PATH = "/metrics"
CONTENT = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 120.0, 300.0, 600.0)
"""Seconds of a request."""
OWN_NAMES = ("127.0.0.1", "localhost")
"""What this machine calls itself; a page of somebody else's calls it by another name."""

Labels = tuple[tuple[str, str], ...]


class Family(NamedTuple):
    """One metric: its name, its kind, and what it is."""

    name: str
    kind: str
    help: str


REQUESTS = Family("keju_requests_total", "counter", "Requests that were sent, failed ones too.")
RETRIES = Family("keju_retries_total", "counter", "Requests that repeat a failed one.")
FAULTS = Family("keju_faults_total", "counter", "Requests that gave no reply, by kind of fault.")
TOKENS = Family("keju_tokens_total", "counter", "Tokens as the endpoint counts them, by type.")
COST = Family("keju_cost_total", "counter", "Money, where a price is set.")
SECONDS = Family("keju_request_seconds", "histogram", "Seconds from a request to its end.")
SAMPLES = Family("keju_samples_total", "counter", "Answers that are in the journal, by outcome.")
WANTED = Family("keju_samples_wanted", "gauge", "Answers that the whole run has.")
DONE = Family("keju_samples_done", "gauge", "Answers that it has so far, earlier sessions' too.")
SCORE = Family("keju_score", "gauge", "Mean score so far, as the headline's reader says.")
FLYING = Family("keju_in_flight", "gauge", "Requests that wait for their reply.")
FAMILIES = (
    REQUESTS, RETRIES, FAULTS, TOKENS, COST, SECONDS, SAMPLES, WANTED, DONE, SCORE, FLYING,
)  # fmt: skip


class Histogram:
    """Counts of seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def see(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds


class Metrics(Watcher):
    """The counts of all runs of this process, and the port that shows them."""

    name = "--metrics-port"

    def __init__(self, port: int, notes: Notes) -> None:
        """`notes` is told the address, or why there is none."""
        self._lock = threading.Lock()
        self._values: dict[Family, defaultdict[Labels, float]] = {
            family: defaultdict(float) for family in FAMILIES
        }
        self._seconds: defaultdict[Labels, Histogram] = defaultdict(Histogram)
        self._flying: list[Callable[[], Iterator[tuple[Labels, float]]]] = []
        self._server: ThreadingHTTPServer | None = None
        try:
            self._server = _serve(port, self.text)
        except (OSError, OverflowError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            notes.warn(Notice("metrics_port", {"port": port, "problem": problem}).said)
            return
        address = f"http://{HOST}:{self._server.server_port}{PATH}"
        notes.note(Notice("metrics_at", {"address": address}).said)

    def follow(self, session: SessionFacts) -> Follower:
        """Count a session."""
        return _Counted(self, session)

    def close(self) -> None:
        """Close the port."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def add(self, family: Family, labels: Labels, amount: float = 1.0) -> None:
        """Count something."""
        with self._lock:
            self._values[family][labels] += amount

    def put(self, family: Family, labels: Labels, value: float) -> None:
        """Say how something stands."""
        with self._lock:
            self._values[family][labels] = value

    def took(self, labels: Labels, seconds: float) -> None:
        """Count the seconds of a request."""
        with self._lock:
            self._seconds[labels].see(seconds)

    def flying(self, of: Callable[[], Iterator[tuple[Labels, float]]]) -> None:
        """Ask `of` what is in flight whenever somebody looks."""
        self._flying.append(of)

    def text(self) -> str:
        """All metrics in the text format."""
        with self._lock:
            self._values[FLYING].clear()
            for of in self._flying:
                for labels, number in of():
                    self._values[FLYING][labels] += number
            lines = [line for family in FAMILIES for line in self._lines(family)]
        return "\n".join(lines) + "\n"

    def _lines(self, family: Family) -> Iterator[str]:
        yield f"# HELP {family.name} {family.help}"
        yield f"# TYPE {family.name} {family.kind}"
        for labels, value in self._values[family].items():
            yield f"{family.name}{_braces(labels)} {_number(value)}"
        for labels, own in self._seconds.items() if family is SECONDS else ():
            below = 0
            for end, count in zip((*BUCKETS, "+Inf"), own.counts, strict=True):
                below += count
                yield f"{family.name}_bucket{_braces((*labels, ('le', str(end))))} {below}"
            yield f"{family.name}_sum{_braces(labels)} {_number(own.sum)}"
            yield f"{family.name}_count{_braces(labels)} {below}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 9))


def _braces(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class _Counted(Follower):
    """The counts of one session."""

    def __init__(self, metrics: Metrics, session: SessionFacts) -> None:
        self._metrics = metrics
        self._session = session
        self._own: dict[tuple[str, str, str], Labels] = {}
        self._named: Labels = (("run", session.run), ("stage", session.stage))
        metrics.flying(self._in_flight)
        for job in session.jobs:
            metrics.put(WANTED, self._of(job), job.units)
            metrics.put(DONE, self._of(job), job.tallies[0].done)

    def _of(self, job: Job | None) -> Labels:
        exam, arm = (job.exam.benchmark, job.arm) if job is not None else ("", "")
        return (*self._named, ("exam", exam), ("arm", arm))

    def _in_flight(self) -> Iterator[tuple[Labels, float]]:
        for endpoint, number in self._session.in_flight().items():
            yield (*self._named, ("endpoint", endpoint)), number

    def attempted(self, attempt: Attempt) -> None:
        job, metrics = attempt.job, self._metrics
        key = (attempt.endpoint, *((job.exam.benchmark, job.arm) if job is not None else ("", "")))
        labels = self._own.get(key)
        if labels is None:
            labels = (*self._of(job), ("endpoint", attempt.endpoint), ("model", attempt.model))
            self._own[key] = labels
        fault, usage = attempt.reply.error, attempt.reply.usage
        if fault is None or fault.sent:
            metrics.add(REQUESTS, labels)
        if attempt.number > 1:
            metrics.add(RETRIES, labels)
        metrics.took(labels, attempt.seconds)
        if fault is not None:
            metrics.add(FAULTS, (*labels, ("kind", fault.kind)))
            return
        for kind in ("input", "output", "cached", "reasoning"):
            if tokens := getattr(usage, kind):
                metrics.add(TOKENS, (*labels, ("type", kind)), tokens)
        if self._session.price is not None:
            metrics.add(COST, labels, compute_cost(usage, self._session.price))

    def answered(self, job: Job, unit: int, record: Record) -> None:
        labels, outcome = self._of(job), record.readings[0].score.outcome
        self._metrics.add(SAMPLES, (*labels, ("outcome", outcome)))

    def progressed(self, progress: Progress) -> None:
        for job in self._session.jobs:
            tally, labels = job.tallies[0], self._of(job)
            self._metrics.put(DONE, labels, tally.done)
            if graded := tally.graded:
                self._metrics.put(SCORE, labels, tally.total / graded)

    def ended(self, stop: KejuError | None) -> None:
        """Its counts stay."""


def _serve(port: int, text: Callable[[], str]) -> ThreadingHTTPServer:
    """Answer GET on a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "keju", ""

        def do_GET(self) -> None:
            host = (self.headers.get("Host") or "").rpartition(":")[0]
            known = self.path.partition("?")[0] == PATH
            status = 403 if host not in OWN_NAMES else 200 if known else 404
            body = text().encode() if status == 200 else b""
            self.send_response(status)
            headers: Mapping[str, str] = {"Content-Type": CONTENT, "Content-Length": str(len(body))}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Somebody who went away before the answer is nobody's business."""

    server = Server((HOST, port), Handler)
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    return server
