"""The manifest: all that determines a run's numbers, and never a secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from keju.config import TaskConfig
from keju.config.address import parse_address
from keju.engine.job import Job
from keju.engine.loop import Engine
from keju.errors import UsageError
from keju.files import read_json, write_json
from keju.runs.folder import MANIFEST, environment, now
from keju.types import FaultKind

SCHEMA = 1


class Ledger(Protocol):
    """Where a sitting writes down whom it asked and what that took."""

    def keep_endpoint(self) -> None:
        """Nothing had to be asked: what was known of the endpoint stays."""

    def note_endpoint(self, facts: dict[str, Any]) -> None:
        """The endpoint is ready, and this is known of it."""

    def note_session(self, session: dict[str, Any]) -> None:
        """Record what this sitting has taken and spent so far."""

    @property
    def seconds(self) -> float:
        """How long all sittings took."""


class Sessions:
    """The sittings of a run; the last one is this process's own and grows."""

    def __init__(self, earlier: list[dict[str, Any]]) -> None:
        self.entries = earlier
        self._own: dict[str, Any] | None = None

    def note(self, session: dict[str, Any]) -> None:
        """Replace what is known of this process's sitting."""
        if self._own is None:
            self._own = {}
            self.entries.append(self._own)
        self._own |= session

    @property
    def seconds(self) -> float:
        """How long all sittings took."""
        return float(sum(session["seconds"] for session in self.entries))


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
        described = _as_stored([_describe(job) for job in jobs])
        _refuse_other_data(folder.name, earlier.get("benchmarks", ()), described)
        self._sessions = Sessions(earlier.get("sessions", []))
        self.document: dict[str, Any] = {
            "schema": SCHEMA,
            "run": folder.name,
            "model": config.model,
            "created": earlier.get("created", now()),
            "complete": False,
            "config": _storable(config, folder.name),
            "benchmarks": described,
            "endpoint": {},
            "environment": environment(),
            "sessions": self._sessions.entries,
        }
        for kept in ("judges", "imported", "origin"):
            if kept in earlier:
                self.document[kept] = earlier[kept]

    @property
    def trusted(self) -> bool:
        """Whether stored scores were made by the same readers of the same protocols."""
        return self.before is not None and _grading(self.before) == _grading(self.document)

    @property
    def differences(self) -> list[str]:
        """What an earlier sitting of this run did otherwise, so that its replies do not fit."""
        if self.before is None:
            return []
        told = []
        earlier = {exam["name"]: exam for exam in self.before["benchmarks"]}
        for exam in self.document["benchmarks"]:
            before = earlier.pop(exam["name"], None)
            if before is None:
                told.append(f"{exam['name']} is new")
                continue
            told += [
                f"{exam['name']}: another {key}"
                for key in ("protocol", "sampling", "settings", "data")
                if before.get(key) != exam.get(key)
            ]
        return told + [f"{name} is left out" for name in earlier]

    @property
    def ask_again(self) -> frozenset[FaultKind]:
        """Errors that were final, and may not be with the model's settings as they are now."""
        if self.before is None:
            return frozenset()
        before, now = self.before.get("config", {}), self.document["config"]
        same = all(before.get(key) == now.get(key) for key in ("api_url", "model_args"))
        return frozenset() if same else frozenset({"context_length"})

    @property
    def seconds(self) -> float:
        """How long all sittings took."""
        return self._sessions.seconds

    def keep_endpoint(self) -> None:
        """Take over what an earlier sitting knew of the endpoint."""
        self.document["endpoint"] = (self.before or {}).get("endpoint", {})

    def note_endpoint(self, facts: dict[str, Any]) -> None:
        """Write down what is known of the endpoint, before the first question.

        A local model must be the very file that earlier replies came from, used in the same way.
        """
        known = (self.before or {}).get("endpoint") or {}
        for fact, title in _OF_LOCAL_MODELS.items():
            if fact in known and fact in facts and facts[fact] != known[fact]:
                raise UsageError(
                    f"run '{self.path.parent.name}' was made with {title} under the same name; "
                    "choose another --run-id"
                )
        self.document["endpoint"] = facts
        self.write()

    def note_session(self, session: dict[str, Any]) -> None:
        """Record what this sitting has taken and spent so far, so that a kill leaves a trace."""
        self._sessions.note(session)
        self.write()

    def finish(self, *, complete: bool) -> None:
        """Write the end of this sitting."""
        self.document["complete"] = complete
        self.write()

    def write(self) -> None:
        """Write it to the run's folder."""
        write_json(self.path, self.document)


def describe_session(started: str, engine: Engine, *, ended: bool) -> dict[str, Any]:
    """One sitting as manifests write it; one that was killed has not `ended`.

    What was in flight when it was killed has been sent, and is sent again on resume.
    """
    spent = engine.spending
    described: dict[str, Any] = {
        "started": started,
        "seconds": round(engine.seconds, 3),
        "ended": ended,
        "in_flight": engine.in_flight,
        "requests": spent.requests,
        "retries": engine.retries,
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
        "filters": job.filters.model_dump(exclude_none=True) if job.filters else {},
        "sampling": msgspec.to_builtins(job.sampling),
        "samples": len(exam.samples),
        "epochs": job.epochs,
        "data": {
            "version": exam.data.version,
            "files": dict(exam.data.files),
            "notes": list(exam.data.notes),
        },
    }


def _as_stored(described: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In the types that come back from the file, so that old and new can be compared."""
    stored: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(described))
    return stored


def _refuse_other_data(
    run: str, before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]
) -> None:
    """One run is about one set of questions: a file that changed would change its golds too."""
    known = {exam["name"]: exam["data"]["files"] for exam in before}
    for exam in now:
        files = known.get(exam["name"], {})
        for name, digest in exam["data"]["files"].items():
            if files.get(name, digest) != digest:
                raise UsageError(
                    f"run '{run}' was made with other data: {exam['name']} has another {name} "
                    "now; give the same --data-dir, or choose another --run-id"
                )


def _grading(document: dict[str, Any]) -> list[Any]:
    """What stored scores depend on beside the replies."""
    return [
        (list(exam["readers"].items()), *(exam.get(key) for key in _GRADING_KEYS))
        for exam in document["benchmarks"]
    ]


_OF_LOCAL_MODELS = {
    "sha256": "other weights",
    "chat_template_hash": "another chat template",
    "dtype": "another dtype",
    "attention": "another attention",
    "flash_attention": "another flash_attention",
    "label_space": "another label_space",
}
"""Facts of a model in this process that its replies depend on."""
_GRADING_KEYS = ("name", "protocol", "settings", "filters")
_PATHS = ("data_dir", "ca_file")


def _storable(config: TaskConfig, run_id: str) -> dict[str, Any]:
    """The settings as a manifest keeps them: no secret, and paths that hold from any folder."""
    dumped = config.model_copy(update={"run_id": run_id}).model_dump(
        mode="json", exclude_defaults=True
    )
    dumped["seed"] = config.seed
    for settings in (dumped, dumped.get("judge") or {}):
        settings.get("generation_config", {}).pop("extra_headers", None)
        if settings.get("api_url"):
            settings["api_url"] = parse_address(settings["api_url"]).shown
    for name in _PATHS:
        if dumped.get(name):
            dumped[name] = str(Path(dumped[name]).absolute())
    for args in dumped.get("dataset_args", {}).values():
        if args.get("local_path"):
            args["local_path"] = str(Path(args["local_path"]).absolute())
    return dumped
