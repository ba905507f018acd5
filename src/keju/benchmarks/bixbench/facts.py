"""What is known about BixBench apart from its files (Mitchener et al. 2025)."""

from __future__ import annotations

from collections.abc import Mapping

from keju.benchmarks.base import Reference

VERSIONS = ("1.5", "1.0")
HYPOTHESIS = "hypothesis"
"""The subset of the view that asks for the truth of each capsule's hypothesis."""

EVAL_MODES = ("str_verifier", "range_verifier", "llm_verifier")

IDEAL_IN_DOUBT = "independent audits dispute its key"
ERRATA: Mapping[str, Mapping[str, str]] = {
    "1.5": {
        "bix-53-q4": "asks for a number of pathways, while its key is the p-value 4.25E-04",
        "bix-13-q1": IDEAL_IN_DOUBT,
        "bix-36-q1": IDEAL_IN_DOUBT,
    },
    "1.0": {},
}
"""Question id to what is wrong with the question, by data version."""

REFERENCES: Mapping[str, tuple[Reference, ...]] = {
    "1.5": (Reference("gpt-4o, official zero-shot run without refusal", {"accuracy": 74 / 205}),),
    "1.0": (Reference("gpt-4o, official zero-shot run without refusal", {"accuracy": 95 / 296}),),
}
"""Recorded in Future-House/BixBench."""
