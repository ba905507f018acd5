"""The manifest of a run: all settings that determine its numbers, and never a secret.

`Manifest` is ``manifest.json`` as a type. `ManifestFile` is the manifest of a run that is being
written, and has the manifest of earlier sessions. `keju.runs.resume_compat` has the rule for what
may differ.
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
from keju.files import explain_shape, read_json, write_json
from keju.redaction import mask_secrets
from keju.runs.journal import FILE
from keju.types import FaultKind

MANIFEST = "manifest.json"
SCHEMA = 1
PACKAGES = ("keju", "mcp", "msgspec", "pydantic", "pyreqwest", "uvloop")
PLACES = ("api_url", "endpoints", "serve", "model_args")
"""Settings of where a model is and how it is set up. A change may allow longer questions."""
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
"""Facts of a model that its replies depend on, with their names. They stay the same during a
run."""
TOOLS_HASH = "tools_hash"
"""The fact of an arm that tells its tools from others of the same names."""
LIMITS = "limits"
"""The key in `Manifest.arms` for the limits of a question without tools, since version 1.1."""
COMMANDS = ("replace", "resume", "events", "metrics_port", "otel", "executor", "ray")
"""Settings of a command that say nothing about the run: how it resumes, its followers and
executor."""
NEVER = sys.maxsize
"""The place in a journal from which scores are trusted, where none of them are."""


class StoredProtocol(msgspec.Struct):
    """The protocol that asked."""

    name: str = ""
    version: str | int = ""


class StoredData(msgspec.Struct):
    """The files that the questions came from."""

    version: str = ""
    files: dict[str, str] = {}
    """Relative path to SHA-256."""
    notes: list[str] = []


class StoredExam(msgspec.Struct, kw_only=True):
    """One exam of a run: its questions, its protocol and its readers."""

    name: str
    protocol: StoredProtocol = msgspec.field(default_factory=StoredProtocol)
    readers: dict[str, int | str] = {}
    """Name to version, the headline's reader first."""
    settings: dict[str, Any] = {}
    filters: dict[str, Any] = {}
    sampling: dict[str, Any] = {}
    samples: int = 0
    samples_of: dict[str, int] | UnsetType = UNSET
    """By arm, where the exam's settings ask for several. `samples` is then the sum of all arms."""
    epochs: int = 1
    grading: int = 1
    """The version of the order of judgement; see `keju.benchmarks.grading`."""
    data: StoredData = msgspec.field(default_factory=StoredData)


class StoredEndpoint(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The counts of one endpoint in a session."""

    address: str
    """Without credentials; with the model's name there, if that differs."""
    requests: int = 0
    replies: int = 0
    moved: int = 0
    """Questions that went from it to another endpoint."""
    outages: int = 0
    """How often it went down."""
    down_seconds: float = 0.0
    input_tokens: int = 0
    cached_tokens: int = 0
    """The part of the input that came from its prefix cache."""
    output_tokens: int = 0
    seconds: float = 0.0
    """The duration of all replies."""
    reported: str = ""
    """The name of its model at the end."""
    declared: list[str] = []
    """Further names that its settings allow it to report."""
    other_models: dict[str, int] = {}
    """Other names that it reported, and how many replies were not used because of that."""
    odd_wait: str = ""
    """A Retry-After that it sent and that Keju ignored: too long, or not readable."""
    lost: Notice | None = None
    """The reason why it could not be used any more, or not at all."""


class StoredSession(msgspec.Struct, kw_only=True):
    """The counts of one process. A process that was killed has not `ended`.

    Requests in flight when it was killed have been sent, and are sent again on resume.
    """

    started: str = ""
    endpoint: str = ""
    """Its address, without credentials; empty for a model in this process."""
    models: dict[str, int] = {}
    """The names that the endpoint reported for its model, and the number of replies with each."""
    seconds: float = 0.0
    ended: bool = False
    in_flight: int = 0
    requests: int = 0
    retries: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | UnsetType = UNSET
    cluster: dict[str, Any] | UnsetType = UNSET
    """Where a cluster worked on it: the number of actors, nodes, and lost actors."""
    episodes_begun: int | UnsetType = UNSET
    """Where models act: the episodes whose first reply came, and those that ended. An episode that
    a kill interrupted starts again on resume."""
    episodes_finished: int | UnsetType = UNSET
    endpoints: list[StoredEndpoint] | UnsetType = UNSET
    """The counts of each endpoint; not set for a model in this process and on a cluster."""
    server: dict[str, Any] | UnsetType = UNSET
    """Where Keju started it: the command without keys, the number of starts, and the log file."""
    tools: dict[str, Any] | UnsetType = UNSET
    """Events of the tools of each arm that are in no transcript: starts, restarts."""


class StoredStop(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How a rule ended one exam, at a look between two blocks of questions.

    The questions are in a random order that has every subset in proportion at every look.
    """

    rule: Literal["until_ci", "until_decided", "sweep", "gate"]
    met: bool
    """Whether its condition was met. Otherwise all questions were asked."""
    asked: int
    """Questions that the last look used."""
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
    """The requested half-width, or the margin of the gate."""
    metric: str = ""
    baseline: str = ""
    partner: str = ""
    """The other run of a gate with two endpoints, which stopped at the same question."""
    verdict: Literal["", "pass", "fail"] = ""
    """The verdict of the gate about all questions, if it was sure."""
    wins: int | None = None
    """Questions on which the model scored more than the baseline."""
    losses: int | None = None
    left_out: int | None = None
    """Questions without a grade in one of the two runs."""
    e_value: float | None = None
    """The evidence at the last look; 1 / level decides."""
    p: float | None = None
    """Valid after any look."""

    @property
    def early(self) -> bool:
        """Whether some questions were not asked."""
        return self.asked < self.whole

    @property
    def notice(self) -> Notice:
        """The notice of when and why the exam ended."""
        values: dict[str, Any] = {"asked": self.asked, "whole": self.whole, "looks": self.looks}
        if self.interval is not None:
            values |= {"low": 100 * self.interval[0], "high": 100 * self.interval[1]}
        value = self.value or 0.0
        if self.rule == "until_ci":
            values |= {"metric": self.metric, "goal": 100 * (self.goal or 0.0)}
            return Notice("until_ci_met" if self.met else "until_ci_missed", values)
        if self.rule == "gate":
            values |= {"partner": self.partner}
            return Notice(f"gate_stopped_{self.verdict}" if self.met else "gate_asked_all", values)
        values |= {"baseline": self.baseline, "points": 100 * value, "p": self.p or 0.0}
        if self.rule == "sweep":
            return Notice("sweep_ended" if self.baseline else "sweep_baseline_ended", values)
        if not self.met:
            return Notice("until_undecided", values)
        return Notice("until_better" if value > 0 else "until_worse", values)


class StoredJudge(msgspec.Struct):
    """A judge of the run: its endpoint and its sessions."""

    endpoint: dict[str, Any] = {}
    sessions: list[StoredSession] = []


class _StoredConfig(msgspec.Struct):
    """The stored settings that other modules read. A file that a person wrote is checked."""

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
    """The tools of each arm, as far as they describe themselves; limits without tools."""
    judges: dict[str, StoredJudge] | UnsetType = UNSET
    """By the judge's model."""
    graded_by: dict[str, Any] | UnsetType = UNSET
    """The settings of the judge whose verdicts count, where the task names none or another."""
    stopped: dict[str, StoredStop] | UnsetType = UNSET
    """By exam: how a rule ended it, where one did."""
    read_anew: int = 0
    """Bytes of the journal whose stored scores are not trusted: other readers or settings made
    them."""
    imported: bool | UnsetType = UNSET
    origin: dict[str, Any] | UnsetType = UNSET
    """The tool and files that an imported run comes from."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the manifest of the run in `folder`. Raise DataError if it cannot be read."""
        path = folder / MANIFEST
        try:
            manifest = msgspec.convert(read_json(path), cls)
            msgspec.convert(manifest.config, _StoredConfig)
            return manifest
        except msgspec.ValidationError as error:
            raise DataError("manifest_damaged", path=path, problem=explain_shape(error)) from None

    def as_dict(self) -> dict[str, Any]:
        """Return the manifest as its file has it."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document

    @property
    def expected_replies(self) -> int:
        """The number of replies of a complete run; fewer where a rule ended an exam."""
        stopped: Mapping[str, StoredStop] = self.stopped or {}
        asked_counts = {name: stopping.asked for name, stopping in stopped.items()}
        return sum(
            asked_counts.get(exam.name, exam.samples) * exam.epochs for exam in self.benchmarks
        )

    @property
    def judge(self) -> dict[str, Any] | None:
        """The settings of the judge whose verdicts count."""
        return self.graded_by or self.config.get("judge")

    @property
    def price(self) -> Price | None:
        """The price that the run was started with."""
        settings = self.config.get("price")
        return Price(**settings) if settings else None

    def find_trusted_start(self, exams: Sequence[StoredExam]) -> int:
        """Return the place in the journal from which stored scores are those that `exams` would
        give."""
        stored_readings = {exam.name: _reading_settings(exam) for exam in self.benchmarks}
        today = {exam.name: _reading_settings(exam) for exam in to_stored_types(exams)}
        is_unchanged = all(
            reading_settings == stored_readings.get(name, reading_settings)
            for name, reading_settings in today.items()
        )
        return self.read_anew if is_unchanged else NEVER


def to_stored_types(exams: Sequence[StoredExam]) -> list[StoredExam]:
    """Return `exams` with the types that come back from the file, where a tuple becomes a list."""
    return msgspec.json.decode(msgspec.json.encode(exams), type=list[StoredExam])


def _reading_settings(exam: StoredExam) -> tuple[Any, ...]:
    """Return all settings that decide how a reply is read and scored."""
    return list(exam.readers.items()), exam.grading, exam.protocol, exam.settings, exam.filters


class SessionLog:
    """The log of the sessions of a run or of one of its judges."""

    def __init__(self, entry: Manifest | StoredJudge, write: Callable[[], None]) -> None:
        self._entry = entry
        self._current: StoredSession | None = None
        self.write = write
        """Writes the manifest to the run's folder."""

    @property
    def seconds(self) -> float:
        """The seconds of all sessions."""
        return sum(session.seconds for session in self._entry.sessions)

    @property
    def total_spent(self) -> dict[str, int]:
        """Requests and tokens that are not in the lines of the journal but count."""
        return {}

    def note_endpoint(self, facts: dict[str, Any]) -> None:
        """Store the facts about the endpoint, before the first question."""
        self._entry.endpoint = facts
        self.write()

    def note_arm(self, arm: str, facts: dict[str, Any]) -> None:
        """Store the facts about an arm's tools, before the first question. A judge has no arms."""

    def note_session(self, session: StoredSession) -> None:
        """Store the counts of the session so far, so that they survive a kill."""
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
        """Create the manifest of a session.

        `graded_by` is the judge whose verdicts count, if it is not the one of `config`. `home` is
        the final folder, if the files are written to another one first.
        """
        self.path = folder / MANIFEST
        self.home = home or folder
        self.before = Manifest.read(folder) if self.path.is_file() else None
        """The manifest of earlier sessions."""
        before = self.before or Manifest(created=format_now())
        stored_exams = to_stored_types(exams)
        self.trusted_from = before.find_trusted_start(stored_exams)
        """The place in the journal from which stored scores are trusted."""
        journal = folder / FILE
        size = journal.stat().st_size if journal.is_file() else 0
        imported = before.imported is True
        self.manifest = msgspec.structs.replace(
            before,
            schema=SCHEMA,
            run=folder.name,
            model=config.model,
            complete=False,
            # An imported run keeps its description, since Keju's settings did not apply.
            config=before.config if imported else make_storable(config, folder.name),
            benchmarks=before.benchmarks if imported else stored_exams,
            environment=describe_environment(),
            sessions=[*before.sessions],
            graded_by=UNSET if graded_by is None else _storable_judge(config, graded_by),
            read_anew=size if self.trusted_from == NEVER else self.trusted_from,
        )
        # A folder that was removed during the run is not created again, since its records are gone.
        write = partial(write_json, self.path, self.manifest, make_folder=False)
        super().__init__(self.manifest, write)

    @property
    def total_spent(self) -> dict[str, int]:
        """The requests and tokens of all sessions, including episodes without a line."""
        sessions = self.manifest.sessions
        return {
            "requests": sum(session.requests for session in sessions),
            "input": sum(session.input_tokens for session in sessions),
            "output": sum(session.output_tokens for session in sessions),
        }

    @property
    def interrupted_episodes(self) -> int:
        """Episodes that earlier sessions began and did not finish. They were started again."""
        sessions = [
            session for session in self.manifest.sessions if session.episodes_begun is not UNSET
        ]
        return sum(
            (session.episodes_begun or 0) - (session.episodes_finished or 0) for session in sessions
        )

    @property
    def ask_again(self) -> frozenset[FaultKind]:
        """Errors that were final, but may not be with the model's present settings."""
        if self.before is None:
            return frozenset()
        before, today = self.before.config, self.manifest.config
        same = all(before.get(key) == today.get(key) for key in PLACES)
        return frozenset() if same else frozenset({"context_length"})

    def note_endpoint(self, facts: dict[str, Any]) -> None:
        """Store the facts about the endpoint, before the first question.

        A local model must be the same file as for earlier replies, used in the same way.
        """
        stored = self.manifest.endpoint
        for fact, words in FIXED_FACTS.items():
            if fact in stored and fact in facts and facts[fact] != stored[fact]:
                name = self.path.parent.name
                raise UsageError("run_made_with_other", name=name, fact=words)
        super().note_endpoint(facts)

    def note_arm(self, arm: str, facts: dict[str, Any]) -> None:
        """Store the facts about an arm's tools. Raise UsageError if they differ from earlier
        ones."""
        stored = self.manifest.arms or {}
        if stored.get(arm, facts).get(TOOLS_HASH) != facts.get(TOOLS_HASH):
            raise UsageError("arm_other_tools", arm=arm, run=self.path.parent.name)
        self.manifest.arms = stored | {arm: facts}
        self.write()

    def judge_log(self, model: str) -> SessionLog:
        """Return the log for the sessions of a judge."""
        judges = {} if self.manifest.judges is UNSET else self.manifest.judges
        self.manifest.judges = judges
        return SessionLog(judges.setdefault(model, StoredJudge()), self.write)

    def finish(self, *, complete: bool) -> None:
        """Store the end of the session."""
        self.manifest.complete = complete
        self.write()


def describe_environment() -> dict[str, Any]:
    """Return the versions of the software that takes part in a run."""
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


def format_now() -> str:
    """Return the time in the form of manifests."""
    return current_time(UTC).isoformat(timespec="seconds")


def current_time(zone: tzinfo | None = None) -> datetime:
    """Return the local time, or the time in a zone. Raise UsageError if the clock shows an
    impossible date."""
    try:
        return datetime.now(zone)
    except (
        ValueError,
        OverflowError,
        OSError,
    ):  # the year 10000, which Python's calendar does not have
        raise UsageError("clock_impossible") from None


def _storable_judge(config: TaskConfig, judge: JudgeConfig) -> dict[str, Any]:
    settings: dict[str, Any] = make_storable(config.model_copy(update={"judge": judge}), "")[
        "judge"
    ]
    return settings


def make_storable(config: TaskConfig, run_id: str) -> dict[str, Any]:
    """Return the settings as a manifest stores them: without secrets, and with absolute paths."""
    settings_dump = config.model_copy(update={"run_id": run_id}).model_dump(
        mode="json", exclude_defaults=True
    )
    settings_dump["seed"] = config.seed
    if "repeats" in config.model_fields_set:  # 1 is not the default of every protocol
        settings_dump["repeats"] = config.repeats
    for name in COMMANDS:
        settings_dump.pop(name, None)
    for settings in (settings_dump, settings_dump.get("judge") or {}):
        settings.get("generation_config", {}).pop("extra_headers", None)
        if settings.get("api_url"):
            settings["api_url"] = parse_address(settings["api_url"]).display_url
    if config.serve is not None:
        settings_dump["serve"] = redact_command(config.serve)
    for endpoint in settings_dump.get("endpoints", ()):
        endpoint["url"] = parse_address(endpoint["url"]).display_url
    paths = [(settings_dump, "data_dir"), (settings_dump, "ca_file")]
    paths += [(args, "local_path") for args in settings_dump.get("dataset_args", {}).values()]
    for settings, name in paths:
        if settings.get(name):
            settings[name] = str(Path(settings[name]).absolute())
    if (baseline := settings_dump.get("until_decided")) and not _is_id(baseline, config.work_dir):
        settings_dump["until_decided"] = str(Path(baseline).absolute())
    stored: dict[str, Any] = mask_secrets(settings_dump)
    return stored


def _is_id(baseline: str, work_dir: str) -> bool:
    """Whether a baseline is the id of a run, even if the folder of an exam has the same name."""
    path = Path(baseline)
    if (path / MANIFEST).is_file() or path.is_file():
        return False
    return not path.exists() or (Path(work_dir) / path / MANIFEST).is_file()
