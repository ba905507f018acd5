"""A model that returns the replies in the journal of a stored run."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

from keju.benchmarks.samples import DigestTable, hash_digest
from keju.config import TaskConfig
from keju.errors import ConfigError, DataError, Notice, UsageError
from keju.models.base import Model
from keju.models.registry import fit_sampling, kind_of
from keju.runs.journal import FILE, Records
from keju.runs.manifest import Manifest
from keju.runs.run import select_counting, suggest_runs
from keju.types import Fault, Reply, Request, Sampling


def make(config: TaskConfig) -> ReplayModel:
    """Return the model of ``replay:RUN``, where RUN is a folder or an id below the folder of
    runs."""
    run = config.model.strip().partition(":")[2]
    for candidate in (Path(run).expanduser(), Path(config.work_dir) / run) if run else ():
        if (candidate / FILE).is_file() or candidate.is_file():
            return ReplayModel(candidate)
    hint = suggest_runs(run, Path(config.work_dir))
    raise ConfigError("replay_no_run", name=run, work_dir=config.work_dir, hint=hint)


def fit(config: TaskConfig, requested: Sampling) -> tuple[Sampling, tuple[Notice, ...]]:
    """Return the sampling that the recorded model got, since it is part of a request's hash."""
    stored = make(config)
    name = "" if kind_of(stored.name).names_itself else stored.name
    recorded_settings = {"model": name, "model_args": stored.model_args}
    return fit_sampling(config.model_copy(update=recorded_settings), requested)


class ReplayModel(Model):
    """Answers a request with the reply that counts in the journal. Errors are not repeated.

    Its name is the recorded model's, since the name is part of a request's hash. Only the positions
    of the records are kept in memory.
    """

    acts = True

    def __init__(self, path: Path | str) -> None:
        path = Path(path)
        folder, file = (path, FILE) if path.is_dir() else (path.parent, path.name)
        self._run = folder.name
        self._records = Records(folder, file)
        self._table: DigestTable | None = None
        self._starts = array("q")
        try:
            manifest = Manifest.read(folder)
        except DataError:
            manifest = Manifest()
        self.name = manifest.model or f"replay:{self._run}"
        self.model_args: dict[str, Any] = manifest.config.get("model_args", {})
        """The settings of the recorded model."""

    async def start(self) -> None:
        """Index the journal. Raise DataError if it is missing or broken."""
        if self._table is not None:
            return
        table, path = DigestTable(), self._records.path
        try:
            for number, start, record in select_counting(
                self._records.iter_with_positions(), table, grow=True
            ):
                position = start if record.reply.error is None else -1
                self._starts[number : number + 1] = array("q", [position])
        except UsageError as error:
            raise DataError("replay_cannot", path=path, problem=error) from None
        if not self._starts and self._records.damaged:
            raise DataError("replay_no_records", path=path)
        self._table = table

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Return the recorded reply, or a fault if the request was never answered."""
        await self.start()
        assert self._table is not None
        number = self._table.find(hash_digest(request.hash))
        if number < 0 or self._starts[number] < 0:
            message = f"the stored run {self._run} holds no reply to this request"
            return Reply(error=Fault("not_found", message))
        (record,) = self._records.at([self._starts[number]])
        return record.reply

    def facts(self) -> dict[str, Any]:
        """Return the model's name and the run of the replies."""
        return {"name": self.name, "replayed_from": self._run}
