"""``--otel``: a span for each request and client metrics, by the GenAI conventions.

OpenTelemetry's usual variables set the destination: OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER,
OTEL_EXPORTER_OTLP_ENDPOINT and so on. Providers that a program has already set stay. Texts of
prompts and replies, including stop sequences, are never sent.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from importlib import metadata
from typing import Any
from urllib.parse import urlsplit

from keju.config.address import ANTHROPIC, find_provider
from keju.errors import KejuError, MissingExtra, Notice, UsageError
from keju.progress.watching import Follower, RequestAttempt, SessionOutline, Watcher
from keju.types import Reply, Request

try:
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
except ImportError:
    raise MissingExtra("--otel", "otel") from None

SCOPE = "keju"
LAST_WAIT = 5.0
"""The most seconds that the end of a run waits for a collector."""
SECONDS_BUCKETS = [0.01 * 2**n for n in range(14)]
TOKEN_BUCKETS = [4**n for n in range(14)]
"""Bucket boundaries that the conventions recommend."""
OTHER_NAMES = {"otlp": "otlp_proto_http"}
"""Entry points of exporters whose name differs from that in the variables."""


class Telemetry(Watcher):
    """Sends spans and metrics of all runs of this process."""

    name = "--otel"

    def __init__(self, say: Callable[[Notice], None]) -> None:
        """Raise UsageError if a variable names an exporter that is not installed."""
        self._close_functions: list[Callable[[], Any]] = []
        self._complaints = _ExporterLogHandler(say)
        version = metadata.version("keju")
        self.tracer = self._make_trace_provider().get_tracer(SCOPE, version)
        meter = self._make_meter_provider().get_meter(SCOPE, version)
        self.seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=SECONDS_BUCKETS,
        )
        self.tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKEN_BUCKETS,
        )
        logging.getLogger("opentelemetry").addHandler(self._complaints)

    def _make_trace_provider(self) -> Any:
        current_provider = trace.get_tracer_provider()
        if isinstance(current_provider, TracerProvider):
            self._close_functions.append(current_provider.force_flush)
            return current_provider
        provider = TracerProvider(resource=_make_resource(), shutdown_on_exit=False)
        for exporter in _load_exporters("traces"):
            provider.add_span_processor(BatchSpanProcessor(exporter()))
        self._close_functions.append(provider.shutdown)
        return provider

    def _make_meter_provider(self) -> Any:
        current_provider = metrics.get_meter_provider()
        if isinstance(current_provider, MeterProvider):
            self._close_functions.append(current_provider.force_flush)
            return current_provider
        readers = [
            PeriodicExportingMetricReader(exporter_class())
            for exporter_class in _load_exporters("metrics")
        ]
        provider = MeterProvider(readers, resource=_make_resource(), shutdown_on_exit=False)
        self._close_functions.append(provider.shutdown)
        return provider

    def follow(self, session: SessionOutline) -> Follower:
        """Return the follower of a session."""
        return _SpanFollower(self, session)

    def close(self) -> None:
        """Send the remaining data. This does not wait long for a collector that does not answer."""
        thread = threading.Thread(
            target=lambda: [close() for close in self._close_functions], daemon=True
        )
        thread.start()
        thread.join(LAST_WAIT)
        logging.getLogger("opentelemetry").removeHandler(self._complaints)
        self._complaints.close()


def _make_resource() -> Any:
    has_service_name = "OTEL_SERVICE_NAME" in os.environ
    has_service_name = has_service_name or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return Resource.create({} if has_service_name else {"service.name": SCOPE})


def _load_exporters(signal: str) -> list[Any]:
    """Return the exporters in the variables; OTLP over HTTP by default."""
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    exporter_classes = []
    for name in (os.environ.get(variable) or "otlp").split(","):
        name = name.strip()
        if name == "none":
            continue
        entry = OTHER_NAMES.get(name, name)
        protocol = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL")
        protocol = protocol or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        if name == "otlp" and protocol == "grpc":
            entry = "otlp_proto_grpc"
        group = f"opentelemetry_{signal}_exporter"
        points = metadata.entry_points(group=group, name=entry)
        if not points:
            raise UsageError("otel_exporter", variable=variable, name=name)
        exporter_classes.append(next(iter(points)).load())
    return exporter_classes


class _ExporterLogHandler(logging.Handler):
    """Reports the first log record of OpenTelemetry, and keeps all others from the terminal."""

    def __init__(self, say: Callable[[Notice], None]) -> None:
        super().__init__(logging.WARNING)
        self._say: Callable[[Notice], None] | None = say

    def emit(self, record: logging.LogRecord) -> None:
        say, self._say = self._say, None
        if say is not None:
            say(Notice("otel_failed", {"problem": record.getMessage().splitlines()[0][:300]}))


class _SpanFollower(Follower):
    """The spans of one session, below a span of the session itself."""

    def __init__(self, telemetry: Telemetry, session: SessionOutline) -> None:
        self._telemetry = telemetry
        provider = "anthropic" if find_provider(session.model) is ANTHROPIC else "openai"
        self._run_attributes = {"keju.run": session.run, "keju.stage": session.stage}
        self._provider = provider
        self._span = telemetry.tracer.start_span(
            f"keju {session.stage} {session.run}",
            attributes={**self._run_attributes, "gen_ai.request.model": session.model},
        )
        self._parent = trace.set_span_in_context(self._span)

    def attempted(self, attempt: RequestAttempt) -> None:
        sampling = attempt.request.sampling
        operation = "chat" if sampling.form == "chat" else "text_completion"
        shared = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": self._provider if attempt.endpoint else SCOPE,
            "gen_ai.request.model": attempt.model,
            **_server_attributes(attempt.endpoint),
        }
        fault, reply = attempt.reply.error, attempt.reply
        if fault is not None:
            shared["error.type"] = str(fault.status or fault.kind)
        elif reply.model:
            shared["gen_ai.response.model"] = reply.model
        attributes: dict[str, Any] = {
            **shared,
            **self._run_attributes,
            "keju.attempt": attempt.number,
        }
        if attempt.job is not None:
            attributes |= {"keju.exam": attempt.job.exam.benchmark, "keju.arm": attempt.job.arm}
        attributes |= _request_attributes(attempt.request) | _reply_attributes(reply)
        began = int(attempt.began * 1e9)
        span = self._telemetry.tracer.start_span(
            f"{operation} {attempt.model}",
            context=self._parent,
            kind=trace.SpanKind.CLIENT,
            attributes=attributes,
            start_time=began,
        )
        if fault is not None:
            span.set_status(trace.StatusCode.ERROR)
        span.end(began + int(attempt.seconds * 1e9))
        self._telemetry.seconds.record(attempt.seconds, shared)
        if fault is None:
            for kind in ("input", "output"):
                tokens = getattr(reply.usage, kind)
                self._telemetry.tokens.record(tokens, {**shared, "gen_ai.token.type": kind})

    def ended(self, stop: KejuError | None) -> None:
        if stop is not None:
            self._span.set_status(trace.StatusCode.ERROR)
            self._span.set_attribute("error.type", type(stop).__name__)
        self._span.end()


def _server_attributes(endpoint: str) -> dict[str, Any]:
    if not endpoint:
        return {}
    parts = urlsplit(endpoint)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"server.address": parts.hostname or "", "server.port": port}


def _request_attributes(request: Request) -> dict[str, Any]:
    """Return the sampling of a request as attributes."""
    sampling, extra = request.sampling, request.sampling.extra
    sampling_values = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": request.seed,
        "top_k": extra.get("top_k"),
        "frequency_penalty": extra.get("frequency_penalty"),
        "presence_penalty": extra.get("presence_penalty"),
    }
    return {f"gen_ai.request.{name}": v for name, v in sampling_values.items() if v is not None} | {
        "keju.request.hash": request.hash
    }


def _reply_attributes(reply: Reply) -> dict[str, Any]:
    """Return the facts of a reply as attributes, without its text."""
    if reply.error is not None:
        return {}
    usage = reply.usage
    counts = {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read.input_tokens": usage.cached,
        "cache_creation.input_tokens": usage.written,
        "reasoning.output_tokens": usage.reasoning,
    }
    attributes: dict[str, Any] = {f"gen_ai.usage.{name}": n for name, n in counts.items() if n}
    if reply.finish:
        attributes["gen_ai.response.finish_reasons"] = (reply.finish,)
    if reply.request_id:
        attributes["gen_ai.response.id"] = reply.request_id
    return attributes
