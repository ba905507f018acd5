"""What is known about BixBench apart from its files (Mitchener et al. 2025)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from keju.benchmarks.base import Reference
from keju.benchmarks.kit import Erratum
from keju.sources.layouts import HubRepo, Layout

VERSIONS = ("1.5", "1.0")
HYPOTHESIS = "hypothesis"
"""The subset of the view that asks for the truth of each capsule's hypothesis."""

EVAL_MODES = ("str_verifier", "range_verifier", "llm_verifier")

ROWS: Mapping[str, int] = {"1.5": 205, "1.0": 53}
"""Rows of each version's file: questions of 1.5, capsules of 1.0."""

IDEAL_IN_DOUBT = "independent audits dispute its key"


ERRATA: Mapping[str, Mapping[str, Erratum]] = {
    "1.5": {
        "bix-53-q4": Erratum(
            "81cf5bf48be1",
            "asks for a number of pathways, while its key is the p-value 4.25E-04",
        ),
        "bix-13-q1": Erratum("1a3e14172739", IDEAL_IN_DOUBT),
        "bix-36-q1": Erratum("4ff4dcf3876d", IDEAL_IN_DOUBT),
    },
    "1.0": {},
}
"""Question id to what is wrong with the question, by data version."""

REFERENCES: Mapping[str, tuple[Reference, ...]] = {
    "1.5": (Reference("gpt-4o, official zero-shot run without refusal", {"accuracy": 74 / 205}),),
    "1.0": (Reference("gpt-4o, official zero-shot run without refusal", {"accuracy": 95 / 296}),),
}
"""Recorded in Future-House/BixBench."""

LAYOUT = Layout(
    tables=("v1.5", "v1.0"),
    stems=(),
    own_stems={
        "v1.5": ("BixBench_v1.5", "BixBench"),
        "v1.0": ("BixBench_v1.0_rebuilt", "BixBench_v1.0"),
    },
    optional=frozenset({"v1.0"}),
    folders=("BixBench",),
    hubs={
        "huggingface": HubRepo("futurehouse/BixBench", "f8cc3bdcc6357c88b8c3648306522b9c422dc95a")
    },
    rows={f"v{version}": rows for version, rows in ROWS.items()},
    checksums=Path(__file__).with_name("checksums.txt"),
)
"""Version 1.5 at revision f8cc3bd."""
