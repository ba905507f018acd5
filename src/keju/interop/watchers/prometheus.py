"""``--metrics-port N``: Prometheus metrics of the runs of this process, on loopback only.

This module writes the text format (version 0.0.4) itself, without a further package. Counters
belong to this process and begin at 0. If the port is in use, Keju reports it, and the run
continues.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from keju.errors import KejuError, Notice
from keju.progress.display import NotePrinter, Progress
from keju.progress.watching import Follower, RequestAttempt, SessionOutline, Watcher
from keju.scores.exam_scores import ExamScores
from keju.scores.usage import compute_cost
from keju.types import Record

HOST = "127.0.0.1"
PATH = "/metrics"
CONTENT = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 120.0, 300.0, 600.0)
"""Buckets of request times, in seconds."""
LOOPBACK_NAMES = ("127.0.0.1", "localhost")
"""Names of this machine. A request from another site's page has another host name."""

Labels = tuple[tuple[str, str], ...]


class MetricFamily(NamedTuple):
    """One metric: its name, type and description."""

    name: str
    kind: str
    help: str


REQUESTS = MetricFamily(
    "keju_requests_total", "counter", "Requests that were sent, failed ones too."
)
RETRIES = MetricFamily("keju_retries_total", "counter", "Requests that repeat a failed one.")
FAULTS = MetricFamily(
    "keju_faults_total", "counter", "Requests that gave no reply, by kind of fault."
)
TOKENS = MetricFamily(
    "keju_tokens_total", "counter", "Tokens as the endpoint counts them, by type."
)
COST = MetricFamily("keju_cost_total", "counter", "Money, where a price is set.")
SECONDS = MetricFamily("keju_request_seconds", "histogram", "Seconds from a request to its end.")
SAMPLES = MetricFamily(
    "keju_samples_total", "counter", "Answers that are in the journal, by outcome."
)
WANTED = MetricFamily("keju_samples_wanted", "gauge", "Answers that the whole run has.")
DONE = MetricFamily(
    "keju_samples_done", "gauge", "Answers that it has so far, earlier sessions' too."
)
SCORE = MetricFamily("keju_score", "gauge", "Mean score so far, as the headline's reader says.")
IN_FLIGHT = MetricFamily("keju_in_flight", "gauge", "Requests that wait for their reply.")
FAMILIES = (
    REQUESTS, RETRIES, FAULTS, TOKENS, COST, SECONDS, SAMPLES, WANTED, DONE, SCORE, IN_FLIGHT,
)  # fmt: skip


class SecondsHistogram:
    """A histogram of times."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        """Add one time."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds


class Metrics(Watcher):
    """The counters of all runs of this process, and the port that serves them."""

    name = "--metrics-port"

    def __init__(self, port: int, notes: NotePrinter) -> None:
        """Open the port. `notes` gets the address, or the reason why there is none."""
        self._lock = threading.Lock()
        self._values: dict[MetricFamily, defaultdict[Labels, float]] = {
            family: defaultdict(float) for family in FAMILIES
        }
        self._seconds: defaultdict[Labels, SecondsHistogram] = defaultdict(SecondsHistogram)
        self._in_flight_counters: list[Callable[[], Iterator[tuple[Labels, float]]]] = []
        self._server: ThreadingHTTPServer | None = None
        try:
            self._server = _serve(port, self.text)
        except (OSError, OverflowError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            notes.warn(Notice("metrics_port", {"port": port, "problem": problem}).message)
            return
        address = f"http://{HOST}:{self._server.server_port}{PATH}"
        notes.note(Notice("metrics_at", {"address": address}).message)

    def follow(self, session: SessionOutline) -> Follower:
        """Return the follower of a session."""
        return _CountingFollower(self, session)

    def close(self) -> None:
        """Close the port."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def add(self, family: MetricFamily, labels: Labels, amount: float = 1.0) -> None:
        """Add to a counter."""
        with self._lock:
            self._values[family][labels] += amount

    def set(self, family: MetricFamily, labels: Labels, value: float) -> None:
        """Set a gauge."""
        with self._lock:
            self._values[family][labels] = value

    def observe_seconds(self, labels: Labels, seconds: float) -> None:
        """Add the time of a request."""
        with self._lock:
            self._seconds[labels].add(seconds)

    def add_in_flight_counter(self, counter: Callable[[], Iterator[tuple[Labels, float]]]) -> None:
        """Add a function that returns the requests in flight. It is called for each scrape."""
        self._in_flight_counters.append(counter)

    def text(self) -> str:
        """Return all metrics in the text format."""
        with self._lock:
            self._values[IN_FLIGHT].clear()
            for counter in self._in_flight_counters:
                for labels, number in counter():
                    self._values[IN_FLIGHT][labels] += number
            lines = [line for family in FAMILIES for line in self._render_lines(family)]
        return "\n".join(lines) + "\n"

    def _render_lines(self, family: MetricFamily) -> Iterator[str]:
        yield f"# HELP {family.name} {family.help}"
        yield f"# TYPE {family.name} {family.kind}"
        for labels, value in self._values[family].items():
            yield f"{family.name}{_format_labels(labels)} {_format_number(value)}"
        for labels, histogram in self._seconds.items() if family is SECONDS else ():
            cumulative_count = 0
            for end, count in zip((*BUCKETS, "+Inf"), histogram.counts, strict=True):
                cumulative_count += count
                bucket_labels = _format_labels((*labels, ("le", str(end))))
                yield f"{family.name}_bucket{bucket_labels} {cumulative_count}"
            yield f"{family.name}_sum{_format_labels(labels)} {_format_number(histogram.sum)}"
            yield f"{family.name}_count{_format_labels(labels)} {cumulative_count}"


def _format_number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 9))


def _format_labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escape_label(value)}"' for name, value in labels) + "}"


def _escape_label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class _CountingFollower(Follower):
    """The counters of one session."""

    def __init__(self, metrics: Metrics, session: SessionOutline) -> None:
        self._metrics = metrics
        self._session = session
        self._labels_by_endpoint: dict[tuple[str, str, str], Labels] = {}
        self._run_labels: Labels = (("run", session.run), ("stage", session.stage))
        metrics.add_in_flight_counter(self._in_flight)
        for job in session.jobs:
            metrics.set(WANTED, self._labels_of(job), job.units)
            metrics.set(DONE, self._labels_of(job), job.tallies[0].done)

    def _labels_of(self, job: ExamScores | None) -> Labels:
        exam, arm = (job.exam.benchmark, job.arm) if job is not None else ("", "")
        return (*self._run_labels, ("exam", exam), ("arm", arm))

    def _in_flight(self) -> Iterator[tuple[Labels, float]]:
        for endpoint, number in self._session.in_flight().items():
            yield (*self._run_labels, ("endpoint", endpoint)), number

    def attempted(self, attempt: RequestAttempt) -> None:
        job, metrics = attempt.job, self._metrics
        key = (attempt.endpoint, *((job.exam.benchmark, job.arm) if job is not None else ("", "")))
        labels = self._labels_by_endpoint.get(key)
        if labels is None:
            labels = (
                *self._labels_of(job),
                ("endpoint", attempt.endpoint),
                ("model", attempt.model),
            )
            self._labels_by_endpoint[key] = labels
        fault, usage = attempt.reply.error, attempt.reply.usage
        if fault is None or fault.sent:
            metrics.add(REQUESTS, labels)
        if attempt.number > 1:
            metrics.add(RETRIES, labels)
        metrics.observe_seconds(labels, attempt.seconds)
        if fault is not None:
            metrics.add(FAULTS, (*labels, ("kind", fault.kind)))
            return
        for kind in ("input", "output", "cached", "reasoning"):
            if tokens := getattr(usage, kind):
                metrics.add(TOKENS, (*labels, ("type", kind)), tokens)
        if self._session.price is not None:
            metrics.add(COST, labels, compute_cost(usage, self._session.price))

    def answered(self, job: ExamScores, unit: int, record: Record) -> None:
        labels, outcome = self._labels_of(job), record.readings[0].score.outcome
        self._metrics.add(SAMPLES, (*labels, ("outcome", outcome)))

    def progressed(self, progress: Progress) -> None:
        for job in self._session.jobs:
            tally, labels = job.tallies[0], self._labels_of(job)
            self._metrics.set(DONE, labels, tally.done)
            if graded := tally.graded:
                self._metrics.set(SCORE, labels, tally.total / graded)

    def ended(self, stop: KejuError | None) -> None:
        """Keep the counters."""


def _serve(port: int, text: Callable[[], str]) -> ThreadingHTTPServer:
    """Answer GET requests in a separate thread."""

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "keju", ""

        def do_GET(self) -> None:
            host = (self.headers.get("Host") or "").rpartition(":")[0]
            is_metrics_path = self.path.partition("?")[0] == PATH
            status = 403 if host not in LOOPBACK_NAMES else 200 if is_metrics_path else 404
            body = text().encode() if status == 200 else b""
            self.send_response(status)
            headers: Mapping[str, str] = {"Content-Type": CONTENT, "Content-Length": str(len(body))}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Write no log."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Ignore clients that closed the connection early."""

    server = Server((HOST, port), Handler)
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    return server
