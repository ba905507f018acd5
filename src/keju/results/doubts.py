"""Find faults of an endpoint that make the score of an exam doubtful.

Results list them as notices. Commands that use the score elsewhere (``keju compare``,
``keju gate``, ``keju audit``) repeat them with the name of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain

from keju.errors import Notice
from keju.runs.manifest import Manifest
from keju.scores.exam_scores import ExamScores


def declared_names(manifest: Manifest) -> set[str]:
    """Return the model names that endpoints may report according to the settings of the run."""
    endpoints = chain.from_iterable(session.endpoints or () for session in manifest.sessions)
    return {name for endpoint in endpoints for name in endpoint.declared}


def doubts_of(job: ExamScores, manifest: Manifest | None = None) -> list[Notice]:
    """Return the notices that follow from all replies of a job; predictions have no manifest."""
    asked_by_keju = manifest is not None and manifest.imported is not True
    declared = declared_names(manifest) if manifest else set()
    notices = [*job.checks.notices(check_model=asked_by_keju, declared=declared)]
    if all(notice.code != "other_model" for notice in notices):
        notices += several_models(job, declared)
    return notices


def several_models(job: ExamScores, declared: Collection[str]) -> Iterator[Notice]:
    """Yield a notice if replies came from several models; it lists their names."""
    names = Counter(
        {name: n for name, n in job.reported_names.items() if n and name not in declared}
    )
    if len(names) > 1:
        counts = ", ".join(f"{name} ({count})" for name, count in names.most_common())
        yield Notice("reported_models", {"models": len(names), "counts": counts})
