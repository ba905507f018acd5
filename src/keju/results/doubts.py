"""Faults of an endpoint that make the number of a sitting doubtful.

Results list them as notices. Whoever uses the number elsewhere (``keju compare``, ``keju gate``,
``keju audit``) repeats them with the name of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain

from keju.engine.job import Job
from keju.errors import Notice
from keju.runs.manifest import Manifest


def declared_names(manifest: Manifest) -> set[str]:
    """Return the names that settings let endpoints of a run report for its model."""
    endpoints = chain.from_iterable(session.endpoints or () for session in manifest.sessions)
    return {name for endpoint in endpoints for name in endpoint.declared}


def doubts_of(job: Job, manifest: Manifest | None = None) -> list[Notice]:
    """Return what all replies of a job together show; a file of predictions has no manifest."""
    asked = manifest is not None and manifest.imported is not True
    declared = declared_names(manifest) if manifest else set()
    found = [*job.checks.notices(check_model=asked, declared=declared)]
    if all(notice.code != "other_model" for notice in found):
        found += several_models(job, declared)
    return found


def several_models(job: Job, declared: Collection[str]) -> Iterator[Notice]:
    """Yield that replies came from several models, by their names."""
    names = Counter(
        {name: n for name, n in job.reported_names.items() if n and name not in declared}
    )
    if len(names) > 1:
        counts = ", ".join(f"{name} ({many})" for name, many in names.most_common())
        yield Notice("reported_models", {"models": len(names), "counts": counts})
