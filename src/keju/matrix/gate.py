"""A gate with two endpoints: a candidate and its baseline are asked the same questions together.

Both are ordinary runs, ``NAME-candidate`` and ``NAME-baseline``, and each has a thread, as the runs
of a plan have. They stop together when the verdict is sure (`keju.results.gate_rule`). Then the
ordinary gate decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from keju.config import Budget, TaskConfig
from keju.config.matrix import MatrixConfig, MatrixPair, MinuteLimits
from keju.engine.run_sharing import RunSharing
from keju.errors import Interrupted, KejuError, TranslatableText
from keju.interop.watchers import watch_runs
from keju.matrix.session import MatrixRun, MatrixSession, reusable_count
from keju.messages import label_text
from keju.reporting.board import Board
from keju.results.gate import GateResult, gate
from keju.results.gate_rule import SIDES, Meeting, Side
from keju.results.schema import SCHEMA
from keju.runs.manifest import MANIFEST, Manifest, StoredSession
from keju.runs.run_ids import find_unfinished_pair, make_run_id

OTHER_ENDED: Final = "gate_other_ended"
"""The error of a run that stopped because the other one did."""


class AskedQuestions(msgspec.Struct, frozen=True):
    """How much of one exam both runs asked."""

    exam: str
    asked_count: int = msgspec.field(name="asked")
    total_count: int = msgspec.field(name="whole")


class SpentOnRun(msgspec.Struct, frozen=True):
    """The requests, tokens, money and time of all sessions of one run."""

    run: str
    model: str
    requests: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    seconds: float


class FinishedGate(NamedTuple):
    """The outcome of a gate with two endpoints."""

    run_names: Mapping[Side, str]
    work_dir: Path
    result: GateResult | None
    """None if a run did not get far enough for a verdict."""
    error: KejuError | None
    asked_questions: list[AskedQuestions]
    spending: dict[Side, SpentOnRun]

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        if self.error is not None:
            return self.error.exit_code
        return 0 if self.result is None else self.result.exit_code

    @property
    def document(self) -> dict[str, Any]:
        """The plain document, as ``--json`` prints it."""
        if self.result is not None:
            document = self.result.document
        else:
            document = {
                "schema": SCHEMA,
                "run": self.run_names["candidate"],
                "baseline": self.run_names["baseline"],
                "verdict": None,
                "gates": [],
                "notices": [],
                "warnings": [],
                "next": [],
            }
        return document | {
            "complete": self.error is None,
            "asked": msgspec.to_builtins(self.asked_questions),
            "spent": msgspec.to_builtins(self.spending),
        }


def run_gate(
    configs: Mapping[Side, TaskConfig],
    margin: float,
    *,
    board: Board | None = None,
    report: bool = True,
) -> FinishedGate:
    """Ask both endpoints until the verdict is sure, and decide.

    The same call continues runs that were interrupted. Runs that are complete and named are not
    asked again.
    """
    candidate = configs["candidate"]
    name = candidate.run_id
    if name is None:
        exams = make_run_id(candidate.model, candidate.datasets)
        name = find_unfinished_pair(configs.items(), f"gate-{exams}")
    run_names: dict[Side, str] = {side: f"{name}-{side}" for side in SIDES}
    named_configs: dict[Side, TaskConfig] = {
        side: configs[side].model_copy(update={"run_id": run_names[side], "budget": Budget()})
        for side in SIDES
    }
    error = None
    if not _is_decided(named_configs, margin):
        error = _ask_both(name, candidate, named_configs, margin, board or Board(), report=report)
    work_dir = Path(candidate.work_dir)
    manifests = {side: _read_manifest(work_dir / run_names[side]) for side in SIDES}
    result = None
    if error is None:
        sources = {side: str(work_dir / run_names[side]) for side in SIDES}
        result = gate(
            sources["candidate"],
            baseline=sources["baseline"],
            margin=margin,
            data_dir=candidate.data_dir,
            work_dir=candidate.work_dir,
        )
    return FinishedGate(
        run_names,
        work_dir,
        result,
        error,
        _count_asked(manifests["candidate"]),
        {side: _add_up(run_names[side], manifest) for side, manifest in manifests.items()},
    )


def _is_decided(configs: Mapping[Side, TaskConfig], margin: float) -> bool:
    """Return whether both runs are complete, and asked enough for this margin."""
    for config in configs.values():
        if reusable_count(config) is None:
            return False
        stopped = Manifest.read(Path(config.work_dir, config.run_id or "")).stopped or {}
        if any(stop.early and stop.goal != margin for stop in stopped.values()):
            return False
    return True


def _ask_both(
    name: str,
    settings: TaskConfig,
    configs: Mapping[Side, TaskConfig],
    margin: float,
    board: Board,
    *,
    report: bool,
) -> KejuError | None:
    """Ask both endpoints. Return the error that ended it early, or None.

    `settings` belong to the command: the budget covers both runs.
    """
    exams = " ".join(settings.datasets)
    pace = MinuteLimits(rpm=settings.rpm, tpm=settings.tpm)
    plan = MatrixConfig(
        name=name,
        pairs=tuple(
            MatrixPair(side, exams, config.run_id or "", config) for side, config in configs.items()
        ),
        budget=settings.budget,
        pace=pace,
        own_pace={side: MinuteLimits() for side in configs},
    )
    run_names: dict[Side, str] = {side: config.run_id or "" for side, config in configs.items()}
    with watch_runs(settings, board):
        session = GateSession(plan, board, Meeting(margin, run_names), report=report)
        session.run()
    return _find_error(session)


def _find_error(session: GateSession) -> KejuError | None:
    """Return the error that ended a session early: an interrupt, or the cause.

    A run that stopped only because the other one had ended is not the cause.
    """
    if session.interrupted:
        return Interrupted("interrupted")
    ended = [work for work in session.works if work.state != "complete"]
    errors = [(work, work.error) for work in ended if work.error is not None]
    for work, error in sorted(errors, key=lambda pair: _is_consequence(pair[1])):
        side = TranslatableText(f"gate_{work.pair.model}")
        return type(error)("gate_side_ended", side=side, run=work.pair.run, problem=error)
    return None


def _is_consequence(error: KejuError) -> bool:
    """Whether a run ended only because the other one had ended."""
    return error.code == OTHER_ENDED or isinstance(error, Interrupted)


class GateSession(MatrixSession):
    """The two runs of a gate, which begin at once and wait for each other."""

    def __init__(
        self, config: MatrixConfig, board: Board, meeting: Meeting, *, report: bool
    ) -> None:
        """Create a session. The time of earlier sessions counts as well."""
        self._meeting = meeting
        folders = [Path(pair.config.work_dir, pair.run) for pair in config.pairs]
        spans = [_sum_seconds(_read_manifest(folder)) for folder in folders]
        super().__init__(config, board, report=report, seconds=max(spans))

    @property
    def _title(self) -> str:
        candidate, baseline = (pair.config.model for pair in self.config.pairs)
        return label_text(
            "gate.title", gate=self.config.name, candidate=candidate, baseline=baseline
        )

    def _name_queue(self, pair: MatrixPair) -> str:
        """Return a queue for each run, so that none waits for the other to end."""
        return pair.run

    def _find_reusable(self, work: MatrixRun) -> int | None:
        """Open both runs, since the other one needs the scores of a complete one."""
        return None

    def _share_with(self, work: MatrixRun) -> RunSharing:
        side = _side_of(work)
        return super()._share_with(work)._replace(make_rule=partial(self._meeting.make_rule, side))

    def _note_end(self, work: MatrixRun) -> None:
        """Let the other run stop as well, if this one did not come to an end."""
        self._meeting.leave(_side_of(work))
        if work.state != "complete":
            for other_work in self.works:
                if other_work is not work:
                    other_work.remote.interrupt()

    def _interrupt(self) -> None:
        super()._interrupt()
        self._meeting.interrupt()


def _side_of(work: MatrixRun) -> Side:
    return "candidate" if work.pair.model == "candidate" else "baseline"


def _read_manifest(folder: Path) -> Manifest | None:
    return Manifest.read(folder) if (folder / MANIFEST).is_file() else None


def _sessions(manifest: Manifest | None) -> list[StoredSession]:
    return [] if manifest is None else manifest.sessions


def _sum_seconds(manifest: Manifest | None) -> float:
    return sum(session.seconds for session in _sessions(manifest))


def _count_asked(manifest: Manifest | None) -> list[AskedQuestions]:
    """Return how many questions of each exam were asked; nothing while a run is incomplete."""
    if manifest is None or not manifest.complete:
        return []
    stopped = manifest.stopped or {}
    return [
        AskedQuestions(
            exam.name,
            stopped[exam.name].asked if exam.name in stopped else exam.samples,
            exam.samples,
        )
        for exam in manifest.benchmarks
    ]


def _add_up(run: str, manifest: Manifest | None) -> SpentOnRun:
    sessions = _sessions(manifest)
    costs = [session.cost for session in sessions if isinstance(session.cost, float)]
    return SpentOnRun(
        run=run,
        model=manifest.model if manifest is not None else "",
        requests=sum(session.requests for session in sessions),
        input_tokens=sum(session.input_tokens for session in sessions),
        output_tokens=sum(session.output_tokens for session in sessions),
        cost=sum(costs) if costs else None,
        seconds=round(_sum_seconds(manifest), 1),
    )
