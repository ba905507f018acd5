"""What is published about C-Eval apart from its subjects: its files (Huang et al. 2023)."""

from __future__ import annotations

from pathlib import Path

from keju.benchmarks.ceval.subjects import SUBJECTS, Split
from keju.sources.layouts import HubRepo, Layout

SPLITS: tuple[Split, ...] = ("dev", "val", "test")

LAYOUT = Layout(
    tables=tuple(f"{split}/{name}" for split in SPLITS for name in sorted(SUBJECTS)),
    stems=("{split}/{subject}_{split}", "{subject}/{split}", "data/{subject}/{split}"),
    archives=("ceval-exam.zip", "ceval.zip"),
    folders=("ceval-exam", "c-eval"),
    hubs={
        "huggingface": HubRepo("ceval/ceval-exam", "main"),
        "modelscope": HubRepo("evalscope/ceval", "master"),
    },
    rows={f"{split}/{name}": s.rows(split) for split in SPLITS for name, s in SUBJECTS.items()},
    checksums=Path(__file__).with_name("checksums.txt"),
)
"""The files as released."""

SUBJECT_ALIASES = {
    alias: subject.name
    for subject in SUBJECTS.values()
    for alias in (subject.english, subject.chinese)
}
"""English and Chinese names of the subjects."""
