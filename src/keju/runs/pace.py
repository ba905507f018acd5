"""How fast an earlier run went that asked the same: the only honest forecast of time."""

from __future__ import annotations

from typing import Any, NamedTuple

from keju.config import TaskConfig
from keju.config.address import strip_credentials
from keju.runs.manifest import Manifest, StoredExam, StoredSession, as_stored
from keju.runs.run import list_runs

SURE = 10
"""Replies that tell a pace; fewer, of which whoever reads the forecast is told, tell a rough one
where there is no other."""
SETTINGS = ("eval_batch_size", "model_args", "executor", "rpm", "tpm", "arms")
"""Settings of a task that make it faster or slower."""


class Pace(NamedTuple):
    """What a session of a stored run took."""

    run: str
    replies: int
    seconds: float

    def forecast(self, requests: int) -> float:
        """Seconds that so many requests take at this pace."""
        return requests * self.seconds / self.replies


def earlier_pace(config: TaskConfig, exams: list[StoredExam], at_once: int) -> Pace | None:
    """The pace of the newest run in the work folder that is comparable; None where there is none.

    One of few replies counts where no other has more.

    Comparable are the same model at the same address with the same exams, put in the same way, and
    as many requests in flight. How many questions there were does not matter, as long as they kept
    all slots busy. A session that was interrupted tells no pace: the replies that it broke off, the
    long ones among them, are not in its count.
    """
    if config.endpoints or config.serve is not None:
        return None
    address = strip_credentials(config.api_url) if config.api_url else ""
    wanted, own = _put(as_stored(exams)), config.model_dump(mode="json")
    rough: Pace | None = None
    for run in reversed(list_runs(config.work_dir)):
        manifest = run.manifest
        same = manifest.model == config.model.strip() and not manifest.imported
        if not same or _put(manifest.benchmarks) != wanted or not _alike(manifest, own):
            continue
        for session in manifest.sessions[-1:] if manifest.complete else ():
            replies = session.requests - session.retries
            busy = replies >= 2 * at_once and session.seconds > 0
            if busy and session.ended and _address(session) == address:
                pace = Pace(manifest.run, replies, session.seconds)
                if replies >= SURE:
                    return pace
                rough = rough or pace
    return rough


def _put(exams: list[StoredExam]) -> list[Any]:
    """How exams are put, as far as it decides on the length of prompts and replies."""
    return [(exam.name, exam.protocol.name, exam.settings, exam.sampling) for exam in exams]


def _alike(manifest: Manifest, own: dict[str, Any]) -> bool:
    fields = TaskConfig.model_fields
    for name in SETTINGS:
        usual = fields[name].get_default(call_default_factory=True)
        if manifest.config.get(name, usual) != own[name]:
            return False
    return True


def _address(session: StoredSession) -> str:
    return strip_credentials(session.endpoint) if session.endpoint else ""
