"""What is known about BixBench apart from its files (Mitchener et al. 2025)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keju.benchmarks.base import Reference, ToolTask
from keju.benchmarks.bixbench.capsules import PULLED
from keju.benchmarks.facts import Figure, Golden, GoldenCheck, Recorded, Sitting
from keju.benchmarks.kit import Erratum
from keju.sources.folder import HubRepo, Layout

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
    capsules=PULLED,
    folders=("BixBench",),
    hubs={
        "huggingface": HubRepo("futurehouse/BixBench", "f8cc3bdcc6357c88b8c3648306522b9c422dc95a")
    },
    rows={f"v{version}": rows for version, rows in ROWS.items()},
    checksums=Path(__file__).with_name("checksums.txt"),
)
"""Version 1.5 at revision f8cc3bd."""

TOOL_TASKS = (
    ToolTask(tool="inspect", name="bixbench", protocol="environment"),
    ToolTask(
        tool="verifiers",
        name="bixbench",
        settings=(
            "answer_mode", "question_source", "add_tf_legend", "seed", "shuffle_options",
            "with_refusal", "use_think", "all_questions", "compat_shuffle", "data_version",
        ),
    ),
)  # fmt: skip
"""Its names in the logs of other tools."""

# --- official zero-shot runs, from raw outputs or, where none were kept, from letters -------------

GOLDEN_READER = "official"
PRINTED = 1e-12
"""The golden files have all digits of a share."""


def golden_settings(golden: Golden, rows: Sequence[Mapping[str, Any]]) -> Sitting:
    """How an official run was made: its version, and whether a refusal was offered."""
    version = golden["version"].removeprefix("v")
    args = {
        "data_version": version,
        "with_refusal": any(row.get("unsure") for row in rows),
    } | ({"all_questions": True} if version == "1.0" else {})
    return Sitting(args, readers=[GOLDEN_READER])


def golden_figures(golden: Golden, recorded: Recorded) -> Iterator[Figure]:
    """Counts, accuracy, precision and coverage."""
    counts, n = recorded.whole.outcomes, len(recorded.rows)
    correct, sure = counts["correct"], n - counts["refused"]
    precision = correct / sure if sure else None
    yield Figure("rows", golden["n"], n)
    yield Figure("correct", golden["recomputed_correct"], correct)
    yield Figure("refused", golden["refused"], counts["refused"])
    yield Figure("without a letter", golden["predicted_not_a_letter"], counts["unparsed"])
    yield Figure("accuracy", golden["recomputed_accuracy"], correct / n, PRINTED)
    yield Figure("precision", golden["recomputed_precision"], precision, PRINTED)
    yield Figure("coverage", golden["recomputed_coverage"], sure / n, PRINTED)
    if "predicted_equals_parsed_output" in golden:
        same = sum(
            answered.readings[GOLDEN_READER].answer.value == answered.row["predicted"]
            for answered in recorded.rows
        )
        yield Figure("letters as recorded", golden["predicted_equals_parsed_output"], same)


GOLDEN = GoldenCheck(settings=golden_settings, figures=golden_figures, letter="predicted")
