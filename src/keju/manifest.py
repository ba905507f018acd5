"""The manifest: all that determines a run's numbers, and never a secret."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from keju.config import TaskConfig
from keju.engine.job import Job
from keju.engine.limits import Spending
from keju.errors import UsageError
from keju.runs import MANIFEST, environment, now, read_json, write_json

SCHEMA = 1


class Ledger(Protocol):
    """Where a sitting writes down whom it asked and what that took."""

    def keep_endpoint(self) -> None:
        """Nothing had to be asked: what was known of the endpoint stays."""

    def note_endpoint(self, facts: dict[str, Any]) -> None:
        """The endpoint is ready, and this is known of it."""

    def add_session(self, started: str, seconds: float, retries: int, spent: Spending) -> None:
        """Record what one sitting took and spent."""


class Manifest:
    """A run's manifest, kept up to date over all its sittings."""

    def __init__(self, folder: Path, config: TaskConfig, jobs: Sequence[Job]) -> None:
        self.path = folder / MANIFEST
        self.before = read_json(self.path) if self.path.is_file() else None
        """What an earlier sitting wrote."""
        if self.before and self.before.get("model") != config.model:
            raise UsageError(
                f"run '{folder.name}' belongs to model '{self.before.get('model')}', "
                f"not '{config.model}'; choose another --run-id"
            )
        earlier = self.before or {}
        dumped = config.model_copy(update={"run_id": folder.name}).model_dump(
            mode="json", exclude_defaults=True
        )
        dumped["seed"] = config.seed
        for settings in (dumped, dumped.get("judge", {})):
            settings.get("generation_config", {}).pop("extra_headers", None)
        self.document: dict[str, Any] = {
            "schema": SCHEMA,
            "run": folder.name,
            "model": config.model,
            "created": earlier.get("created", now()),
            "complete": False,
            "config": dumped,
            "benchmarks": [_describe(job) for job in jobs],
            "endpoint": {},
            "environment": environment(),
            "sessions": earlier.get("sessions", []),
        }
        if "judges" in earlier:
            self.document["judges"] = earlier["judges"]

    @property
    def trusted(self) -> bool:
        """Whether stored scores were made by the same readers of the same protocols."""
        return self.before is not None and _grading(self.before) == _grading(self.document)

    @property
    def seconds(self) -> float:
        """How long all sittings took."""
        return float(sum(session["seconds"] for session in self.document["sessions"]))

    def keep_endpoint(self) -> None:
        """Take over what an earlier sitting knew of the endpoint."""
        self.document["endpoint"] = (self.before or {}).get("endpoint", {})

    def note_endpoint(self, facts: dict[str, Any]) -> None:
        """Write down what is known of the endpoint, before the first question."""
        self.document["endpoint"] = facts
        self.write()

    def add_session(self, started: str, seconds: float, retries: int, spent: Spending) -> None:
        """Record what one sitting took and spent."""
        self.document["sessions"].append(session(started, seconds, retries, spent))

    def write(self) -> None:
        """Write it to the run's folder."""
        write_json(self.path, self.document)


def session(started: str, seconds: float, retries: int, spent: Spending) -> dict[str, Any]:
    """One sitting as manifests write it."""
    described: dict[str, Any] = {
        "started": started,
        "seconds": round(seconds, 3),
        "requests": spent.requests,
        "retries": retries,
        "input_tokens": spent.input,
        "output_tokens": spent.output,
    }
    cost = spent.cost(spent.price)
    return described | ({} if cost is None else {"cost": cost})


def _describe(job: Job) -> dict[str, Any]:
    exam = job.exam
    return {
        "name": exam.benchmark,
        "protocol": {"name": exam.protocol.name, "version": exam.protocol.version},
        "readers": {reader.name: reader.version for reader in job.readers},
        "settings": dict(exam.settings),
        "sampling": msgspec.to_builtins(job.sampling),
        "samples": len(exam.samples),
        "epochs": job.epochs,
        "data": {
            "version": exam.data.version,
            "files": dict(exam.data.files),
            "notes": list(exam.data.notes),
        },
    }


def _grading(document: dict[str, Any]) -> list[Any]:
    return [
        (exam["name"], exam["protocol"], list(exam["readers"].items()), exam.get("settings"))
        for exam in document["benchmarks"]
    ]
