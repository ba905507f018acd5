"""The throughput of an earlier run of the same exams, as a forecast of time."""

from __future__ import annotations

from typing import Any, NamedTuple

from keju.config import TaskConfig
from keju.config.address import strip_credentials
from keju.runs.manifest import Manifest, StoredExam, StoredSession, to_stored_types
from keju.runs.run import list_runs

RELIABLE_REPLIES = 10
"""The number of replies that give a reliable pace. A pace of fewer is used if there is no other,
with a note for the user."""
SETTINGS = ("eval_batch_size", "model_args", "executor", "rpm", "tpm", "arms")
"""Settings of a task that make it faster or slower."""


class SessionThroughput(NamedTuple):
    """The replies and the duration of a session of a stored run."""

    run: str
    replies: int
    seconds: float

    def forecast(self, requests: int) -> float:
        """Return the seconds that `requests` requests take at this pace."""
        return requests * self.seconds / self.replies


def find_earlier_pace(
    config: TaskConfig, exams: list[StoredExam], in_flight: int
) -> SessionThroughput | None:
    """Return the pace of the newest comparable run in the work folder, or None.

    A pace of few replies counts only if no run has more.

    A comparable run has the same model at the same address, the same exams with the same prompts,
    and the same number of requests in flight. The number of questions may differ if they kept all
    slots busy. An interrupted session has no pace, because its count misses the replies that it
    broke off, which include the long ones.
    """
    if config.endpoints or config.serve is not None:
        return None
    address = strip_credentials(config.api_url) if config.api_url else ""
    exam_settings, task_settings = (
        _exam_settings(to_stored_types(exams)),
        config.model_dump(mode="json"),
    )
    rough_pace: SessionThroughput | None = None
    for run in reversed(list_runs(config.work_dir)):
        manifest = run.manifest
        is_same_model = manifest.model == config.model.strip() and not manifest.imported
        if (
            not is_same_model
            or _exam_settings(manifest.benchmarks) != exam_settings
            or not _has_same_settings(manifest, task_settings)
        ):
            continue
        for session in manifest.sessions[-1:] if manifest.complete else ():
            replies = session.requests - session.retries
            was_busy = replies >= 2 * in_flight and session.seconds > 0
            if was_busy and session.ended and _session_address(session) == address:
                pace = SessionThroughput(manifest.run, replies, session.seconds)
                if replies >= RELIABLE_REPLIES:
                    return pace
                rough_pace = rough_pace or pace
    return rough_pace


def _exam_settings(exams: list[StoredExam]) -> list[Any]:
    """Return the settings of exams that affect the length of prompts and replies."""
    return [(exam.name, exam.protocol.name, exam.settings, exam.sampling) for exam in exams]


def _has_same_settings(manifest: Manifest, task_settings: dict[str, Any]) -> bool:
    fields = TaskConfig.model_fields
    for name in SETTINGS:
        default = fields[name].get_default(call_default_factory=True)
        if manifest.config.get(name, default) != task_settings[name]:
            return False
    return True


def _session_address(session: StoredSession) -> str:
    return strip_credentials(session.endpoint) if session.endpoint else ""
