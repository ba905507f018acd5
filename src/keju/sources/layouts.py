"""Where each benchmark's tables lie: in official folders, in hub snapshots, in archives.

A benchmark's room asks for a logical table (``snarks``, ``validation``, ``val/law``, ``v1.5``).
The layouts below are data: the paths, without suffix, at which that table may lie, best first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

HubName = Literal["huggingface", "modelscope"]
HUB_NAMES: tuple[HubName, ...] = ("huggingface", "modelscope")

SUFFIXES = (
    ".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".csv.gz", ".parquet",
)  # fmt: skip
"""What a table's file may end in, the plainest first."""

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")
"""How hubs number the parts of a table: ``test-00000-of-00001.parquet``."""


@dataclass(frozen=True)
class HubRepo:
    """A data set on a hub and the revision that is asked for."""

    repo: str
    revision: str


@dataclass(frozen=True)
class Companions:
    """Official files that no hub carries, at a pinned commit of their repository on GitHub."""

    repo: str
    commit: str
    names: tuple[str, ...]
    needed_for: str
    """What cannot be done without them, for the message when they are out of reach."""


@dataclass(frozen=True)
class Layout:
    """Everything Keju knows about the files of one benchmark."""

    tables: tuple[str, ...]
    stems: tuple[str, ...]
    """Templates with ``{table}``, or ``{split}`` and ``{subject}`` of a table ``split/subject``."""
    own_stems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tables whose files have names of their own."""
    optional: frozenset[str] = frozenset()
    """Tables that a complete folder may lack."""
    archives: tuple[str, ...] = ()
    """Zip files that may hold the tables."""
    texts: tuple[str, ...] = ()
    """Plain files that belong to a complete folder."""
    folders: tuple[str, ...] = ()
    """Other names its folder goes by below a data directory."""
    hubs: Mapping[HubName, HubRepo] = field(default_factory=dict)
    companions: Companions | None = None

    def stems_of(self, table: str) -> list[str]:
        """The paths, without suffix, at which `table` may lie, best first."""
        if table in self.own_stems:
            return list(self.own_stems[table])
        split, _, subject = table.partition("/")
        fitting = [s for s in self.stems if subject or "{subject}" not in s]
        return [s.format(table=table, split=split, subject=subject) for s in fitting]

    def wants(self, path: str) -> bool:
        """Whether `path` of a repository is one of the files that the tables are read from."""
        return path in self._wanted_files or stem_of(path) in self._wanted_stems

    @cached_property
    def _wanted_stems(self) -> frozenset[str]:
        return frozenset(stem for table in self.tables for stem in self.stems_of(table))

    @cached_property
    def _wanted_files(self) -> frozenset[str]:
        return frozenset((*self.archives, *self.texts))


def suffix_of(path: str) -> str:
    """The suffix that makes `path` a table; empty if it is none."""
    return next((suffix for suffix in SUFFIXES if path.endswith(suffix)), "")


def stem_of(path: str) -> str | None:
    """`path` without suffix and part number; None if it is no table."""
    suffix = suffix_of(path)
    return _SHARD.sub("", path.removesuffix(suffix)) if suffix else None


def matching(stem: str, names: Iterable[str]) -> list[list[str]]:
    """The files among `names` that are the table `stem`: one list of parts for each suffix."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        if stem_of(name) == stem:
            found.setdefault(suffix_of(name), []).append(name)
    return [found[suffix] for suffix in SUFFIXES if suffix in found]


def missing_parts(names: list[str]) -> int:
    """How many parts of a table that is split into numbered parts are not among `names`."""
    numbers = [_SHARD.search(name.removesuffix(suffix_of(name))) for name in names]
    totals = [int(match[2]) for match in numbers if match]
    return max(totals) - len(names) if totals else 0


BBH_SUBSETS = (
    "boolean_expressions", "causal_judgement", "date_understanding", "disambiguation_qa",
    "dyck_languages", "formal_fallacies", "geometric_shapes", "hyperbaton",
    "logical_deduction_five_objects", "logical_deduction_seven_objects",
    "logical_deduction_three_objects", "movie_recommendation", "multistep_arithmetic_two",
    "navigate", "object_counting", "penguins_in_a_table", "reasoning_about_colored_objects",
    "ruin_names", "salient_translation_error_detection", "snarks", "sports_understanding",
    "temporal_sequences", "tracking_shuffled_objects_five_objects",
    "tracking_shuffled_objects_seven_objects", "tracking_shuffled_objects_three_objects",
    "web_of_lies", "word_sorting",
)  # fmt: skip
"""Suzgun et al. 2022."""

CEVAL_SUBJECTS = (
    "accountant", "advanced_mathematics", "art_studies", "basic_medicine",
    "business_administration", "chinese_language_and_literature", "civil_servant",
    "clinical_medicine", "college_chemistry", "college_economics", "college_physics",
    "college_programming", "computer_architecture", "computer_network", "discrete_mathematics",
    "education_science", "electrical_engineer", "environmental_impact_assessment_engineer",
    "fire_engineer", "high_school_biology", "high_school_chemistry", "high_school_chinese",
    "high_school_geography", "high_school_history", "high_school_mathematics",
    "high_school_physics", "high_school_politics", "ideological_and_moral_cultivation", "law",
    "legal_professional", "logic", "mao_zedong_thought", "marxism", "metrology_engineer",
    "middle_school_biology", "middle_school_chemistry", "middle_school_geography",
    "middle_school_history", "middle_school_mathematics", "middle_school_physics",
    "middle_school_politics", "modern_chinese_history", "operating_system", "physician",
    "plant_protection", "probability_and_statistics", "professional_tour_guide",
    "sports_science", "tax_accountant", "teacher_qualification", "urban_and_rural_planner",
    "veterinary_medicine",
)  # fmt: skip
"""Huang et al. 2023."""

CEVAL_SPLITS = ("dev", "val", "test")

_BBH_PROMPTS = tuple(f"cot-prompts/{subset}.txt" for subset in BBH_SUBSETS)

LAYOUTS: dict[str, Layout] = {
    "bbh": Layout(
        tables=BBH_SUBSETS,
        stems=("bbh/{table}", "{table}", "{table}/test", "data/{table}", "data/{table}/test"),
        texts=_BBH_PROMPTS,
        folders=("BIG-Bench-Hard", "bigbench-hard"),
        hubs={
            "huggingface": HubRepo("lukaemon/bbh", "main"),
            "modelscope": HubRepo("evalscope/bbh", "master"),
        },
        companions=Companions(
            repo="suzgunmirac/BIG-Bench-Hard",
            commit="9ee07bd481feebf959a6b59d61ea57bdcf30964d",
            names=_BBH_PROMPTS,
            needed_for="prompts with worked examples",
        ),
    ),
    "mmlu_pro": Layout(
        tables=("test", "validation"),
        stems=("{table}", "data/{table}"),
        folders=("MMLU-Pro", "mmlu-pro"),
        hubs={
            "huggingface": HubRepo("TIGER-Lab/MMLU-Pro", "main"),
            "modelscope": HubRepo("TIGER-Lab/MMLU-Pro", "master"),
        },
    ),
    "ceval": Layout(
        tables=tuple(f"{split}/{name}" for split in CEVAL_SPLITS for name in CEVAL_SUBJECTS),
        stems=("{split}/{subject}_{split}", "{subject}/{split}", "data/{subject}/{split}"),
        archives=("ceval-exam.zip", "ceval.zip"),
        folders=("ceval-exam", "c-eval"),
        hubs={
            "huggingface": HubRepo("ceval/ceval-exam", "main"),
            "modelscope": HubRepo("evalscope/ceval", "master"),
        },
    ),
    "bixbench": Layout(
        tables=("v1.5", "v1.0"),
        stems=(),
        own_stems={
            "v1.5": ("BixBench_v1.5", "BixBench"),
            "v1.0": ("BixBench_v1.0_rebuilt", "BixBench_v1.0"),
        },
        optional=frozenset({"v1.0"}),
        folders=("BixBench",),
        hubs={
            "huggingface": HubRepo(
                "futurehouse/BixBench", "f8cc3bdcc6357c88b8c3648306522b9c422dc95a"
            ),
        },
    ),
}

BUILT_IN = frozenset({"demo"})
"""Benchmarks whose questions are generated: they need no folder."""
