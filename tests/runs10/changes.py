"""What later versions say differently about the runs of 1.0, and which fault of 1.0 is the reason.

A number of a stored run never changes without a row here and a row in docs/changed-results.md.
"""

from __future__ import annotations

from tests.support.recorded_runs import Change

CHANGES: tuple[Change, ...] = ()
