"""What later versions say differently about the runs of 1.0, and which fault of 1.0 is the reason.

A number of a stored run never changes without a row here and a row in docs/changed-results.md.
"""

from __future__ import annotations

from tests.support.recorded_runs import Change

_GRADED = "n counted questions whose replies have no grade; they are in `ungraded` now"
_CAUSE = "a reply that a limit of time has cut got the advice to raise max_tokens"
_UNEQUAL = "intervals of clusters of unequal size were too narrow"
_ADJUSTED = "it was made from McNemar's mid-p and could be below the exact `p` next to it"

_REPLAYED = "repeated worked examples without their questions were not recognised"

_VERSION = "it is the version that wrote the results"
_SEVERAL_VERSIONS = "counts one more: a run that two versions have written says so"
_ONE_DECIMAL = "sentences have one decimal; the numbers next to them are exact"

CHANGES: tuple[Change, ...] = (
    Change("*", "/results/version", _VERSION),
    Change("*", "/version", _VERSION),
    Change("errors", "*/benchmarks/0/n", _GRADED),
    Change("errors", "*/benchmarks/0/subsets/*/n", _GRADED),
    Change("imported", "/results/benchmarks/2/signs/replayed_examples", _REPLAYED),
    Change("imported", "/*/signs", _REPLAYED),
    Change("limits", "*/benchmarks/1/notices/0", _CAUSE),
    Change("limits", "*/benchmarks/1/warnings/0", _CAUSE),
    Change("notebook", "*/benchmarks/0/*ci95/?", _UNEQUAL),
    Change("notebook", "*/benchmarks/0/metrics/*/n_eff", _UNEQUAL),
    Change("matrix", "*/cells/*/warnings", _SEVERAL_VERSIONS),
    Change("matrix*", "*/comparisons/*/conclusion", _ONE_DECIMAL),
    Change("*large*", "/results/comparisons/*/subsets/*/p_adjusted", _ADJUSTED),
)

ENDS = {
    "makes more, and every run must be sat anew with it": "makes more; run every model again with it"
}
"""How sentences ended in 1.0, and how they end today."""


def reworded(warning: str) -> str:
    """How a warning of 1.0 begins today."""
    for before, now in ENDS.items():
        if warning.endswith(before):
            return warning.removesuffix(before) + now
    return warning
