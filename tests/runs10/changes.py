"""What later versions say differently about the runs of 1.0, and which fault of 1.0 is the reason.

A number of a stored run never changes without a row here and a row in docs/changed-results.md.
"""

from __future__ import annotations

from tests.support.recorded_runs import Change

_GRADED = "n counted questions whose replies have no grade; they are in `ungraded` now"
_CAUSE = "a reply that a limit of time has cut got the advice to raise max_tokens"

CHANGES: tuple[Change, ...] = (
    Change("errors", "*/benchmarks/0/n", _GRADED),
    Change("errors", "*/benchmarks/0/subsets/*/n", _GRADED),
    Change("limits", "*/benchmarks/1/notices/0", _CAUSE),
    Change("limits", "*/benchmarks/1/warnings/0", _CAUSE),
)
