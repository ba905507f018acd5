"""C-Eval made ready to sit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keju.benchmarks.base import DataFacts, Exam, Mean, Reader, Reference, Subset
from keju.benchmarks.ceval.prompts import CUE, Question, Writer
from keju.benchmarks.ceval.protocols import Setting
from keju.benchmarks.ceval.subjects import CATEGORIES, HARD, SUBJECTS, Split, find, members
from keju.errors import ConfigError, Notice
from keju.types import Prefix, Prompt, Sample

AVERAGE = "average"
HARD_MEAN = "hard"

_PUBLISHED_TEST = {
    ("GPT-4", 0): (0.664, 0.533),
    ("GPT-4", 5): (0.687, 0.549),
    ("ChatGPT", 0): (0.510, 0.367),
    ("ChatGPT", 5): (0.544, 0.414),
    ("LLaMA-65B", 0): (0.347, None),
    ("LLaMA-65B", 5): (0.388, None),
    ("ChatGLM-6B", 0): (0.389, None),
    ("ChatGLM-6B", 5): (0.345, None),
}
"""Answer-only on test: average and Hard, by model and worked examples (Huang et al. 2023)."""

_PUBLISHED_VAL = {
    ("GPT-4", 0): (0.667, None),
    ("GPT-4", 5): (0.699, None),
    ("ChatGPT", 0): (0.508, None),
    ("ChatGPT", 5): (0.535, None),
}
"""The same on val."""


class CEvalExam(Exam):
    """One split of C-Eval under one protocol."""

    benchmark = "ceval"

    def __init__(
        self,
        *,
        setting: Setting,
        split: Split,
        writer: Writer,
        prefixes: Mapping[str, Prefix],
        samples: Sequence[Sample],
        subsets: Sequence[Subset],
        readers: Mapping[str, Reader],
        data: DataFacts,
        errata: Mapping[str, str],
        settings: Mapping[str, Any],
        warnings: Sequence[Notice] = (),
    ) -> None:
        self.protocol = setting.protocol
        self.samples = samples
        self.subsets = subsets
        self.readers = readers
        self.data = data
        self.errata = errata
        self.settings = settings
        self.warnings = warnings
        self.references = published_references(setting, split)
        self.split = split
        self._writer = writer
        self._prefixes = prefixes
        prefilled = setting.protocol.name == "tutorial" and setting.form == "chat"
        self._cue = CUE if prefilled and setting.decode == "labels" else ""

    def render(self, sample: Sample) -> Prompt:
        title = SUBJECTS[sample.subset].chinese
        tail = self._writer.ask(title, Question(sample.text, sample.choices))
        return Prompt(self._prefixes[sample.subset], tail, self._cue)

    def means(self) -> Sequence[Mean]:
        """The official Average and its parts: every one an unweighted mean over subjects."""
        return (
            Mean(AVERAGE, "Average over subjects", _tasks(tuple(SUBJECTS))),
            *(Mean(name, name, _tasks(members(name)), group=True) for name in CATEGORIES),
            Mean(HARD_MEAN, "C-Eval Hard", _tasks(sorted(HARD)), group=True),
        )

    def locate(self, row: Mapping[str, Any]) -> str:
        """By ``subject`` (or ``subset``) and ``id`` (or ``index``), or by the sample id alone."""
        subject = row.get("subject", row.get("subset"))
        if subject is None:
            if isinstance(row.get("id"), str):
                return str(row["id"])
            raise KeyError("subject")
        number = row["id"] if "id" in row else row["index"]
        if isinstance(number, str) and number.startswith(f"{self.benchmark}_"):
            return number
        try:
            return sample_id(find(str(subject)).name, self.split, int(number))
        except (ConfigError, ValueError):
            return f"{self.benchmark}_{subject}_{self.split}_{number}"


def sample_id(subject: str, split: Split, number: int) -> str:
    """The id of a question: unique over subjects and splits."""
    return f"ceval_{subject}_{split}_{number}"


def _tasks(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple((name,) for name in names)


def published_references(setting: Setting, split: Split) -> tuple[Reference, ...]:
    """Published figures of the same split, mode and number of worked examples."""
    if setting.mode != "answer-only":
        return ()
    table: Mapping[tuple[str, int], tuple[float, float | None]]
    table = _PUBLISHED_TEST if split == "test" else _PUBLISHED_VAL
    return tuple(
        Reference(
            f"{model}, {setting.shots}-shot answer-only, {split}",
            {AVERAGE: average} | ({HARD_MEAN: hard} if hard is not None else {}),
        )
        for (model, shots), (average, hard) in table.items()
        if shots == setting.shots
    )
