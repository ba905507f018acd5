"""``--metrics-port`` and ``--otel``: the numbers of a run, and that neither can end it."""

from __future__ import annotations

import re
import socket
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju, Ran
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan

pytestmark = pytest.mark.slow

KEY = "sk-a-key-that-nobody-sees"
SECRET_REPLY = "Zeppelin. The answer is (A)."


def eval_words(endpoint: FaultyEndpoint, *flags: str) -> list[str]:
    words = ["eval", "-m", "m", "--api-url", endpoint.url, "--api-key", KEY, "--datasets", "demo"]
    words += ["--limit", "4", "--retry-interval", "0.001", "--run-id", "r"]
    return [*words, "--eval-batch-size", "4", "--price", "input=1,output=2", *flags]


class Metrics(dict[str, float]):
    """The lines of a page of metrics by name and labels."""

    def __init__(self, text: str) -> None:
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        shape = re.compile(r'[a-z_]+\{([a-z]+="(\\.|[^"\\])*",?)*\} [0-9.e+-]+')
        assert all(shape.fullmatch(line) for line in lines), lines
        super().__init__((name, float(value)) for name, value in (w.rsplit(" ", 1) for w in lines))

    def sum(self, name: str, **labels: str) -> float:
        """Over all lines of a metric that have these labels."""
        label_texts = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            value
            for line, value in self.items()
            if line.startswith(name + "{") and all(label_text in line for label_text in label_texts)
        )


def test_prometheus_sees_what_the_run_does(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint looks at the metrics itself, when it is asked the last questions."""
    pages: list[str] = []
    call_counts: Counter[str] = Counter()
    port = free_port()

    def answer(question: EndpointRequest) -> str:
        call_counts["n"] += 1
        if call_counts["n"] == 20:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
                assert page.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                pages.append(page.read().decode())
            wrong = urllib.request.Request(
                f"http://127.0.0.1:{port}/metrics", headers={"Host": "evil.example"}
            )
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(wrong)
        return SECRET_REPLY

    with FaultyEndpoint(Plan(key=KEY, answers=answer, first_faults=("500",))) as endpoint:
        ran = keju(*eval_words(endpoint, "--metrics-port", str(port), "--json"))
    assert ran.code == 0, ran.err
    assert f"http://127.0.0.1:{port}/metrics" in ran.err
    metrics = Metrics(pages[0])
    labels = {"run": "r", "exam": "demo", "endpoint": endpoint.url, "model": "m", "stage": "exam"}
    replies = metrics.sum("keju_request_seconds_count", **labels)
    faults = metrics.sum("keju_faults_total", **labels, kind="server")
    assert replies == metrics.sum("keju_requests_total", **labels) > faults > 0
    assert metrics.sum("keju_request_seconds_bucket", **labels, le="+Inf") == replies
    assert metrics.sum("keju_retries_total", **labels) == replies - faults > 0
    assert 1 <= metrics.sum("keju_in_flight", run="r", endpoint=endpoint.url) <= 4
    graded = metrics.sum("keju_samples_total", run="r", exam="demo")
    assert 0 < graded <= replies - faults
    assert metrics.sum("keju_samples_wanted", exam="demo") == ran.json["benchmarks"][0]["n"]
    tokens = [metrics.sum("keju_tokens_total", **labels, type=kind) for kind in ("input", "output")]
    assert metrics.sum("keju_cost_total", **labels) == pytest.approx(
        (tokens[0] + 2 * tokens[1]) / 1e6
    )
    assert KEY not in pages[0]
    assert "Zeppelin" not in pages[0]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound_socket:
        return int(bound_socket.getsockname()[1])


def test_a_port_that_is_taken_is_said_and_the_run_goes_on(keju: Keju) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as bound_socket,
        FaultyEndpoint(Plan(key=KEY)) as endpoint,
    ):
        port = str(bound_socket.getsockname()[1])
        ran = keju(*eval_words(endpoint, "--metrics-port", port))
        assert ran.code == 0
        assert ran.err.count("--metrics-port") == 1
        assert keju(*eval_words(endpoint, "--metrics-port", "70000")).code == 2


class Collector:
    """Takes OTLP over HTTP."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: list[Any] = []
        self.raw = b""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(self.path, body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def take(self, path: str, body: bytes) -> None:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
            ExportMetricsServiceRequest,
        )
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        self.raw += body
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        elif path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.metrics += [
                    metric for scope in resource.scope_metrics for metric in scope.metrics
                ]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    receiver = Collector()
    place = f"http://127.0.0.1:{receiver.server.server_port}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", place)
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


def attributes(span: Any) -> dict[str, Any]:
    return {attribute.key: attribute.value for attribute in span.attributes}


def test_a_span_for_each_request_by_the_conventions(keju: Keju, collector: Collector) -> None:
    plan = Plan(key=KEY, answers=SECRET_REPLY, first_faults=("500",), model_name="m-2")
    with FaultyEndpoint(plan) as endpoint:
        ran = keju(*eval_words(endpoint, "--otel", "--json"))
    assert ran.code == 0, ran.err
    n = ran.json["benchmarks"][0]["n"]
    session = next(span for span in collector.spans if span.name == "keju exam r")
    requests = [span for span in collector.spans if span is not session]
    assert len(requests) == 2 * n
    assert {span.name for span in requests} == {"chat m"}
    assert {span.kind for span in requests} == {3}  # CLIENT
    assert {span.parent_span_id for span in requests} == {session.span_id}
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano > 0 for span in requests)
    failed: list[Any] = []
    answered: list[Any] = []
    for span in requests:
        fields = attributes(span)
        assert fields["gen_ai.operation.name"].string_value == "chat"
        assert fields["gen_ai.request.model"].string_value == "m"
        assert fields["server.address"].string_value == "127.0.0.1"
        assert fields["server.port"].int_value == endpoint.port
        assert fields["keju.exam"].string_value == "demo"
        (failed if "error.type" in fields else answered).append(fields)
    assert len(failed) == len(answered) == n
    assert {fields["error.type"].string_value for fields in failed} == {"500"}
    assert {fields["gen_ai.response.model"].string_value for fields in answered} == {"m-2"}
    usage = ran.json["benchmarks"][0]["usage"]
    input_tokens = sum(fields["gen_ai.usage.input_tokens"].int_value for fields in answered)
    assert input_tokens == usage["input_tokens"]
    metrics = {fields.name: fields for fields in collector.metrics}
    points = metrics["gen_ai.client.operation.duration"].histogram.data_points
    assert sum(point.count for point in points) == 2 * n
    token_points = metrics["gen_ai.client.token.usage"].histogram.data_points
    assert (
        sum(
            p.sum
            for p in token_points
            if attributes(p)["gen_ai.token.type"].string_value == "input"
        )
        == input_tokens
    )
    assert KEY.encode() not in collector.raw
    assert b"Zeppelin" not in collector.raw


@pytest.mark.slow
def test_a_collector_that_is_not_there_is_said_once(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with FaultyEndpoint(Plan(key=KEY)) as endpoint:
        ran: Ran = keju(*eval_words(endpoint, "--otel"))
        assert ran.code == 0
        assert ran.err.count("--otel") == 1
        assert "Traceback" not in ran.err
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", "pigeon")
        refusal = keju(*eval_words(endpoint, "--otel"))
        assert refusal.code == 2
        assert "OTEL_TRACES_EXPORTER=pigeon" in refusal.err
        assert len(refusal.err.splitlines()) == 1


def test_without_progress_a_port_that_is_taken_is_said_and_a_free_one_is_not(keju: Keju) -> None:
    with FaultyEndpoint(Plan(key=KEY)) as endpoint:
        used_port = endpoint.url.rpartition(":")[2].partition("/")[0]
        ran = keju(*eval_words(endpoint, "--metrics-port", used_port, "-q"))
        assert ran.code == 0
        assert ran.err.count(f"--metrics-port {used_port}") == 1
        free = keju(*eval_words(endpoint, "--metrics-port", "0", "-q", "--replace"))
        assert (free.code, "metrics" in free.err) == (0, False)


def test_nothing_of_it_is_stored_with_the_run(keju: Keju, tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(key=KEY)) as endpoint:
        assert keju(*eval_words(endpoint, "--metrics-port", "0", "-q")).code == 0
    assert "metrics_port" not in (tmp_path / "runs/r/manifest.json").read_text()
