"""What the published data look like: rows of every table, SHA-256 of the official files.

The hashes are in ``checksums.txt``, in the format of ``sha256sum``: BBH at commit 9ee07bd of its
repository, C-Eval as released, BixBench v1.5 at revision f8cc3bd. MMLU-Pro's official Parquet
files have changed several times, so only its rows are counted.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from keju.sources.layouts import BBH_SUBSETS

_BBH_ROWS = 250
_BBH_SMALL = {"penguins_in_a_table": 146, "snarks": 178, "causal_judgement": 187}

_CEVAL_DEV = 5
_CEVAL_VAL_TEST = {
    "accountant": (49, 443), "advanced_mathematics": (19, 173), "art_studies": (33, 298),
    "basic_medicine": (19, 175), "business_administration": (33, 301),
    "chinese_language_and_literature": (23, 209), "civil_servant": (47, 429),
    "clinical_medicine": (22, 200), "college_chemistry": (24, 224),
    "college_economics": (55, 497), "college_physics": (19, 176),
    "college_programming": (37, 342), "computer_architecture": (21, 193),
    "computer_network": (19, 171), "discrete_mathematics": (16, 153),
    "education_science": (29, 270), "electrical_engineer": (37, 339),
    "environmental_impact_assessment_engineer": (31, 281), "fire_engineer": (31, 282),
    "high_school_biology": (19, 175), "high_school_chemistry": (19, 172),
    "high_school_chinese": (19, 178), "high_school_geography": (19, 178),
    "high_school_history": (20, 182), "high_school_mathematics": (18, 166),
    "high_school_physics": (19, 175), "high_school_politics": (19, 176),
    "ideological_and_moral_cultivation": (19, 172), "law": (24, 221),
    "legal_professional": (23, 215), "logic": (22, 204), "mao_zedong_thought": (24, 219),
    "marxism": (19, 179), "metrology_engineer": (24, 219), "middle_school_biology": (21, 192),
    "middle_school_chemistry": (20, 185), "middle_school_geography": (12, 108),
    "middle_school_history": (22, 207), "middle_school_mathematics": (19, 177),
    "middle_school_physics": (19, 178), "middle_school_politics": (21, 193),
    "modern_chinese_history": (23, 212), "operating_system": (19, 179), "physician": (49, 443),
    "plant_protection": (22, 199), "probability_and_statistics": (18, 166),
    "professional_tour_guide": (29, 266), "sports_science": (19, 180),
    "tax_accountant": (49, 443), "teacher_qualification": (44, 399),
    "urban_and_rural_planner": (46, 418), "veterinary_medicine": (23, 210),
}  # fmt: skip


def _ceval() -> dict[str, int]:
    counts = {f"dev/{subject}": _CEVAL_DEV for subject in _CEVAL_VAL_TEST}
    counts |= {f"val/{subject}": val for subject, (val, _) in _CEVAL_VAL_TEST.items()}
    return counts | {f"test/{subject}": test for subject, (_, test) in _CEVAL_VAL_TEST.items()}


ROWS: dict[str, dict[str, int]] = {
    "bbh": {subset: _BBH_SMALL.get(subset, _BBH_ROWS) for subset in BBH_SUBSETS},
    "mmlu_pro": {"test": 12032, "validation": 70},
    "ceval": _ceval(),
    "bixbench": {"v1.5": 205, "v1.0": 53},
}
"""Rows of each logical table as published."""

_SAME_FILE = {"BixBench.jsonl": "BixBench_v1.5.jsonl"}
"""Official files that go by two names."""


def rows(benchmark: str, table: str) -> int | None:
    """The published number of rows of a table, where it is known."""
    return ROWS.get(benchmark, {}).get(table)


def sha256(benchmark: str, name: str) -> str | None:
    """The hash of the official file called `name`, wherever in the folder it lies."""
    base = name.rpartition("/")[2]
    return _checksums().get((benchmark, _SAME_FILE.get(base, base)))


@cache
def _checksums() -> dict[tuple[str, str], str]:
    known: dict[tuple[str, str], str] = {}
    for line in Path(__file__).with_name("checksums.txt").read_text("utf-8").splitlines():
        digest, _, path = line.partition("  ")
        benchmark, _, rest = path.partition("/")
        known[benchmark, rest.rpartition("/")[2]] = digest
    return known
