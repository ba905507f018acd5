"""The manifest of a run: all that determines its numbers, and never a secret.

`Manifest` is ``manifest.json`` as a type. `ManifestFile` is the manifest of a run that is being
written: it knows what an earlier session wrote. What may differ says `keju.runs.sameness`.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
from msgspec import UNSET, UnsetType

from keju.config import JudgeConfig, Price, TaskConfig
from keju.config.address import parse_address
from keju.config.serving import redact_command
from keju.errors import DataError, Notice, UsageError
from keju.files import read_json, write_json, wrong_shape
from keju.redaction import masked
from keju.runs.journal import FILE
from keju.types import FaultKind

MANIFEST = "manifest.json"
SCHEMA = 1
PACKAGES = ("keju", "mcp", "msgspec", "pydantic", "pyreqwest", "uvloop")
PLACES = ("api_url", "endpoints", "serve", "model_args")
"""Settings of where a model is and how it is set up: another one may take longer questions."""
FIXED_FACTS = {
    name: Notice(f"fact_{name}")
    for name in (
        "sha256",
        "chat_template_hash",
        "dtype",
        "attention",
        "flash_attention",
        "label_space",
        "api_version",
    )
}
"""Facts of a model that its replies depend on, each with its name; one run has one of each."""
TOOLS_HASH = "tools_hash"
LIMITS = "limits"
"""What `Manifest.arms` has of an arm without tools: its limits of a question, since version 1.1."""
"""The fact of an arm that tells its tools from others of the same names."""
COMMANDS = ("replace", "resume", "events", "metrics_port", "otel", "executor", "ray")
"""Settings that say what a command does with a run, who follows it and who works on it, and nothing
about the run."""
NEVER = sys.maxsize
"""The place in a journal from which scores are believed, where none of them are."""


class StoredProtocol(msgspec.Struct):
    """Which protocol asked."""

    name: str = ""
    version: str | int = ""


class StoredData(msgspec.Struct):
    """Which files the questions came from."""

    version: str = ""
    files: dict[str, str] = {}
    """Relative path to SHA-256."""
    notes: list[str] = []


class StoredExam(msgspec.Struct, kw_only=True):
    """One exam of a run: what was asked, how, and how it was read."""

    name: str
    protocol: StoredProtocol = msgspec.field(default_factory=StoredProtocol)
    readers: dict[str, int | str] = {}
    """Name to version, the headline's reader first."""
    settings: dict[str, Any] = {}
    filters: dict[str, Any] = {}
    sampling: dict[str, Any] = {}
    samples: int = 0
    samples_of: dict[str, int] | UnsetType = UNSET
    """By arm, where the exam's own settings ask for several: `samples` are those of all."""
    epochs: int = 1
    grading: int = 1
    """The version of the order of judgement; see `keju.benchmarks.grading`."""
    data: StoredData = msgspec.field(default_factory=StoredData)


class StoredEndpoint(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What one endpoint was asked and told in a session."""

    address: str
    """Without credentials; with the model's name there, where that is another one."""
    requests: int = 0
    replies: int = 0
    moved: int = 0
    """Questions that went from it to another endpoint."""
    outages: int = 0
    """How often it did not answer any more."""
    down_seconds: float = 0.0
    input_tokens: int = 0
    cached_tokens: int = 0
    """The part of the input that came from its prefix cache."""
    output_tokens: int = 0
    seconds: float = 0.0
    """What all replies took."""
    reported: str = ""
    """What it called its model at the end."""
    declared: list[str] = []
    """Names that its settings let it report beside those of the others."""
    other_models: dict[str, int] = {}
    """Other names that it reported, and how many replies were not used because of that."""
    odd_wait: str = ""
    """A Retry-After that it sent and that Keju did not keep: too long, or not readable."""
    lost: Notice | None = None
    """Why it could not be used any more, or not at all."""


class StoredSession(msgspec.Struct, kw_only=True):
    """What one process took and spent; one that was killed has not `ended`.

    What was in flight when it was killed has been sent, and is sent again on resume.
    """

    started: str = ""
    endpoint: str = ""
    """Its address, without credentials; empty for a model in this process."""
    models: dict[str, int] = {}
    """What the endpoint called its model, and in how many replies."""
    seconds: float = 0.0
    ended: bool = False
    in_flight: int = 0
    requests: int = 0
    retries: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | UnsetType = UNSET
    cluster: dict[str, Any] | UnsetType = UNSET
    """Where a cluster worked on it: how many actors on how many nodes, and how many were lost."""
    episodes_begun: int | UnsetType = UNSET
    """Where models act: the episodes whose first reply came, and those that came to their end. One
    that a kill broke off starts again on resume."""
    episodes_finished: int | UnsetType = UNSET
    endpoints: list[StoredEndpoint] | UnsetType = UNSET
    """What each was asked and told; none for a model in this process and on a cluster."""
    server: dict[str, Any] | UnsetType = UNSET
    """Where Keju started it: the command without keys, how often, and the file with its log."""
    tools: dict[str, Any] | UnsetType = UNSET
    """What happened to the tools of each arm that no transcript tells: starts, restarts."""


class Stopping(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How a rule ended the asking of one exam: at a look that came between two blocks of questions.

    The questions are in a random order that has every subset in proportion at every look.
    """

    rule: Literal["until_ci", "until_decided"]
    met: bool
    """Whether its condition was met; else there was nothing left to ask."""
    asked: int
    """Questions that the last look saw."""
    whole: int
    """Questions that could have been asked."""
    looks: int
    seed: int
    level: float
    """How often the rule may err, whenever it stops."""
    value: float | None
    """The headline, or the difference from the baseline."""
    interval: tuple[float, float] | None
    """Its interval, which holds at all looks at once."""
    goal: float | None = None
    """The half-width that was asked for."""
    metric: str = ""
    baseline: str = ""
    wins: int | None = None
    """Questions on which the model scored more than the baseline."""
    losses: int | None = None
    left_out: int | None = None
    """Questions that lack a grade here or there."""
    e_value: float | None = None
    """The evidence at the last look; 1 / level decides."""
    p: float | None = None
    """Valid after any look."""

    @property
    def early(self) -> bool:
        """Whether questions were left unasked."""
        return self.asked < self.whole

    @property
    def notice(self) -> Notice:
        """When and why the asking ended."""
        values: dict[str, Any] = {"asked": self.asked, "whole": self.whole, "looks": self.looks}
        if self.interval is not None:
            values |= {"low": 100 * self.interval[0], "high": 100 * self.interval[1]}
        value = self.value or 0.0
        if self.rule == "until_ci":
            values |= {"metric": self.metric, "goal": 100 * (self.goal or 0.0)}
            return Notice("until_ci_met" if self.met else "until_ci_missed", values)
        values |= {"baseline": self.baseline, "points": 100 * value, "p": self.p or 0.0}
        if not self.met:
            return Notice("until_undecided", values)
        return Notice("until_better" if value > 0 else "until_worse", values)


class StoredJudge(msgspec.Struct):
    """A judge of the run: its endpoint and its sessions."""

    endpoint: dict[str, Any] = {}
    sessions: list[StoredSession] = []


class _StoredConfig(msgspec.Struct):
    """What other modules read of the stored settings; a file that someone else made is checked."""

    arms: list[dict[str, Any]] | None = None
    judge: dict[str, Any] | None = None
    price: dict[str, Any] | None = None


class Manifest(msgspec.Struct, kw_only=True):
    """``manifest.json``. Keys that are not set are not written."""

    schema: int = SCHEMA
    run: str = ""
    model: str = ""
    created: str = ""
    complete: bool = False
    config: dict[str, Any] = {}
    """The fields of `TaskConfig` that are not its defaults."""
    benchmarks: list[StoredExam] = []
    endpoint: dict[str, Any] = {}
    environment: dict[str, Any] = {}
    sessions: list[StoredSession] = []
    arms: dict[str, Any] | UnsetType = UNSET
    """What the tools of each arm are, as far as they say so themselves; limits without tools."""
    judges: dict[str, StoredJudge] | UnsetType = UNSET
    """By the judge's model."""
    graded_by: dict[str, Any] | UnsetType = UNSET
    """The settings of the judge whose verdicts count, where the task names none or another."""
    stopped: dict[str, Stopping] | UnsetType = UNSET
    """By exam: how a rule ended the asking, where one did."""
    read_anew: int = 0
    """Bytes of the journal whose stored scores other readers or settings made: not believed."""
    imported: bool | UnsetType = UNSET
    origin: dict[str, Any] | UnsetType = UNSET
    """The tool and files that an imported run comes from."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The manifest of the run in `folder`; DataError if it cannot be read."""
        path = folder / MANIFEST
        try:
            manifest = msgspec.convert(read_json(path), cls)
            msgspec.convert(manifest.config, _StoredConfig)
            return manifest
        except msgspec.ValidationError as error:
            raise DataError("manifest_damaged", path=path, problem=wrong_shape(error)) from None

    def as_dict(self) -> dict[str, Any]:
        """The manifest as its file has it."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document

    @property
    def wanted(self) -> int:
        """How many replies a complete run has; fewer where a rule ended the asking."""
        stopped: Mapping[str, Stopping] = self.stopped or {}
        asked = {name: own.asked for name, own in stopped.items()}
        return sum(asked.get(exam.name, exam.samples) * exam.epochs for exam in self.benchmarks)

    @property
    def judge(self) -> dict[str, Any] | None:
        """The settings of the judge whose verdicts count."""
        return self.graded_by or self.config.get("judge")

    @property
    def price(self) -> Price | None:
        """The price that the run was started with."""
        asked = self.config.get("price")
        return Price(**asked) if asked else None

    def believed_from(self, exams: Sequence[StoredExam]) -> int:
        """The place in the journal from which stored scores are those that `exams` would give."""
        stored = {exam.name: _reading(exam) for exam in self.benchmarks}
        today = {exam.name: _reading(exam) for exam in as_stored(exams)}
        alike = all(own == stored.get(name, own) for name, own in today.items())
        return self.read_anew if alike else NEVER


def as_stored(exams: Sequence[StoredExam]) -> list[StoredExam]:
    """`exams` in the types that come back from the file: a tuple of settings is a list there."""
    return msgspec.json.decode(msgspec.json.encode(exams), type=list[StoredExam])


def _reading(exam: StoredExam) -> tuple[Any, ...]:
    """All that decides what is read out of a reply, and what that is worth."""
    return list(exam.readers.items()), exam.grading, exam.protocol, exam.settings, exam.filters


class SessionLog:
    """Where a session writes whom it asked and what that took: for the run or for a judge of it."""

    def __init__(self, entry: Manifest | StoredJudge, write: Callable[[], None]) -> None:
        self._entry = entry
        self._current: StoredSession | None = None
        self.write = write
        """Writes the manifest to the run's folder."""

    @property
    def seconds(self) -> float:
        """How long all sessions took."""
        return sum(session.seconds for session in self._entry.sessions)

    @property
    def spent(self) -> dict[str, int]:
        """What has been spent beside the lines of the journal, as far as it counts."""
        return {}

    def note_endpoint(self, facts: dict[str, Any]) -> None:
        """Write what is known of the endpoint, before the first question."""
        self._entry.endpoint = facts
        self.write()

    def note_arm(self, arm: str, facts: dict[str, Any]) -> None:
        """Write what is known of an arm's tools, before the first question; a judge has none."""

    def note_session(self, session: StoredSession) -> None:
        """Write what the session has taken and spent so far, so that a kill leaves a trace."""
        if self._current is not None:
            self._entry.sessions.pop()
        self._entry.sessions.append(session)
        self._current = session
        self.write()


class ManifestFile(SessionLog):
    """The manifest of a run that is being written, kept up to date over all its sessions."""

    def __init__(
        self,
        folder: Path,
        config: TaskConfig,
        exams: Sequence[StoredExam],
        *,
        graded_by: JudgeConfig | None = None,
        home: Path | None = None,
    ) -> None:
        """`graded_by` is the judge whose verdicts count, where it is not that of `config`.

        `home` is where the folder will be once all is written, where that is elsewhere.
        """
        self.path = folder / MANIFEST
        self.home = home or folder
        self.before = Manifest.read(folder) if self.path.is_file() else None
        """What an earlier session wrote."""
        before = self.before or Manifest(created=now())
        described = as_stored(exams)
        self.believed_from = before.believed_from(described)
        """The place in the journal from which stored scores are believed."""
        journal = folder / FILE
        size = journal.stat().st_size if journal.is_file() else 0
        imported = before.imported is True
        self.manifest = msgspec.structs.replace(
            before,
            schema=SCHEMA,
            run=folder.name,
            model=config.model,
            complete=False,
            # What another tool asked stays described as it was; Keju's settings were not in force.
            config=before.config if imported else storable(config, folder.name),
            benchmarks=before.benchmarks if imported else described,
            environment=environment(),
            sessions=[*before.sessions],
            graded_by=UNSET if graded_by is None else _storable_judge(config, graded_by),
            read_anew=size if self.believed_from == NEVER else self.believed_from,
        )
        # A folder that was removed during the run is not made again: its records are gone.
        write = partial(write_json, self.path, self.manifest, make_folder=False)
        super().__init__(self.manifest, write)

    @property
    def spent(self) -> dict[str, int]:
        """What all sessions have sent and been sent, also for episodes that have no line."""
        sessions = self.manifest.sessions
        return {
            "requests": sum(session.requests for session in sessions),
            "input": sum(session.input_tokens for session in sessions),
            "output": sum(session.output_tokens for session in sessions),
        }

    @property
    def broken_off(self) -> int:
        """Episodes that earlier sessions began and did not finish; they were begun again."""
        told = [s for s in self.manifest.sessions if s.episodes_begun is not UNSET]
        return sum((s.episodes_begun or 0) - (s.episodes_finished or 0) for s in told)

    @property
    def ask_again(self) -> frozenset[FaultKind]:
        """Errors that were final, and may not be with the model's settings as they are now."""
        if self.before is None:
            return frozenset()
        before, today = self.before.config, self.manifest.config
        same = all(before.get(key) == today.get(key) for key in PLACES)
        return frozenset() if same else frozenset({"context_length"})

    def note_endpoint(self, facts: dict[str, Any]) -> None:
        """Write what is known of the endpoint, before the first question.

        A local model must be the very file that earlier replies came from, used in the same way.
        """
        stored = self.manifest.endpoint
        for fact, words in FIXED_FACTS.items():
            if fact in stored and fact in facts and facts[fact] != stored[fact]:
                name = self.path.parent.name
                raise UsageError("run_made_with_other", name=name, fact=words)
        super().note_endpoint(facts)

    def note_arm(self, arm: str, facts: dict[str, Any]) -> None:
        """Write what is known of an arm's tools; UsageError if they were others before."""
        stored = self.manifest.arms or {}
        if stored.get(arm, facts).get(TOOLS_HASH) != facts.get(TOOLS_HASH):
            raise UsageError("arm_other_tools", arm=arm, run=self.path.parent.name)
        self.manifest.arms = stored | {arm: facts}
        self.write()

    def judge_log(self, model: str) -> SessionLog:
        """Where the sessions of a judge are written."""
        judges = {} if self.manifest.judges is UNSET else self.manifest.judges
        self.manifest.judges = judges
        return SessionLog(judges.setdefault(model, StoredJudge()), self.write)

    def finish(self, *, complete: bool) -> None:
        """Write the end of the session."""
        self.manifest.complete = complete
        self.write()


def environment() -> dict[str, Any]:
    """Versions of what takes part in a run."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
        "packages": versions,
    }


def now() -> str:
    """The time as manifests write it."""
    return this_moment(UTC).isoformat(timespec="seconds")


def this_moment(zone: tzinfo | None = None) -> datetime:
    """Return the time, here or in a zone; UsageError if the clock shows an impossible date."""
    try:
        return datetime.now(zone)
    except (ValueError, OverflowError, OSError):  # the year 10000, which no calendar of Python has
        raise UsageError("clock_impossible") from None


def _storable_judge(config: TaskConfig, judge: JudgeConfig) -> dict[str, Any]:
    settings: dict[str, Any] = storable(config.model_copy(update={"judge": judge}), "")["judge"]
    return settings


def storable(config: TaskConfig, run_id: str) -> dict[str, Any]:
    """The settings as a manifest keeps them: no secret, and paths that hold from any folder."""
    dumped = config.model_copy(update={"run_id": run_id}).model_dump(
        mode="json", exclude_defaults=True
    )
    dumped["seed"] = config.seed
    for name in COMMANDS:
        dumped.pop(name, None)
    for settings in (dumped, dumped.get("judge") or {}):
        settings.get("generation_config", {}).pop("extra_headers", None)
        if settings.get("api_url"):
            settings["api_url"] = parse_address(settings["api_url"]).display_url
    if config.serve is not None:
        dumped["serve"] = redact_command(config.serve)
    for endpoint in dumped.get("endpoints", ()):
        endpoint["url"] = parse_address(endpoint["url"]).display_url
    paths = [(dumped, "data_dir"), (dumped, "ca_file")]
    paths += [(args, "local_path") for args in dumped.get("dataset_args", {}).values()]
    for settings, name in paths:
        if settings.get(name):
            settings[name] = str(Path(settings[name]).absolute())
    if (baseline := dumped.get("until_decided")) and not _is_id(baseline, config.work_dir):
        dumped["until_decided"] = str(Path(baseline).absolute())
    stored: dict[str, Any] = masked(dumped)
    return stored


def _is_id(baseline: str, work_dir: str) -> bool:
    """Whether a baseline goes by the id of its run, whose name the folder of an exam may have."""
    path = Path(baseline)
    if (path / MANIFEST).is_file() or path.is_file():
        return False
    return not path.exists() or (Path(work_dir) / path / MANIFEST).is_file()
