"""A custom exam made ready to sit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keju.benchmarks.base import DataFacts, Exam, Mean, Protocol, Reader, Subset
from keju.benchmarks.custom.data import Question
from keju.benchmarks.custom.prompts import EXAMPLES, Asked, Wording, prefix_of, render, split
from keju.benchmarks.custom.readers import ACCEPTED, LETTER
from keju.types import Prefix, Prompt, Sample

FIELDS = "fields"
"""Key of `Sample.metadata` that holds the other columns of the row, for templates."""


class CustomExam(Exam):
    """The questions of a folder under one protocol."""

    def __init__(
        self,
        *,
        name: str,
        protocol: Protocol,
        readers: Mapping[str, Reader],
        samples: Sequence[Sample],
        subsets: Sequence[Subset],
        wording: Wording,
        examples: Mapping[str, str],
        data: DataFacts,
        settings: Mapping[str, Any],
    ) -> None:
        self.benchmark = name
        self.protocol = protocol
        self.readers = readers
        self.samples = samples
        self.subsets = subsets
        self.data = data
        self.settings = settings
        if protocol.reader == LETTER:
            self.beside = LETTER
        self.clustered = any(sample.group for sample in samples)
        self._shared: dict[str, dict[str, str]] = {}
        self._parts: dict[str, tuple[Prefix, str]] = {}
        for subset in subsets:
            shared = {"subset": subset.name, EXAMPLES: examples[subset.name]}
            template = wording.whole if shared[EXAMPLES] else wording.question
            lead, tail = split(template, shared)
            self._shared[subset.name] = shared
            self._parts[subset.name] = prefix_of(lead, settings.get("system_prompt")), tail

    def render(self, sample: Sample) -> Prompt:
        prefix, tail = self._parts[sample.subset]
        asked = Asked(sample.text, sample.choices, sample.metadata.get(FIELDS, {}))
        return render(prefix, tail, asked, self._shared[sample.subset])

    def means(self) -> Sequence[Mean]:
        tasks = tuple((subset.name,) for subset in self.subsets)
        return (Mean("macro_accuracy", "mean over subsets", tasks),)

    def locate(self, row: Mapping[str, Any]) -> str:
        """By ``id``, or by ``subset`` and ``index``."""
        if isinstance(row.get("id"), str | int):
            return str(row["id"])
        subset, index = row["subset"], row["index"]
        for sample in self.samples:
            if sample.subset == subset and sample.index == index:
                return sample.id
        return super().locate(row)


def as_samples(
    name: str, questions: Sequence[Question]
) -> tuple[tuple[Sample, ...], tuple[Subset, ...]]:
    """The questions one subset after the other, subsets in the order of their first question."""
    by_subset: dict[str, list[Question]] = {}
    for question in questions:
        by_subset.setdefault(question.subset, []).append(question)
    samples: list[Sample] = []
    subsets: list[Subset] = []
    for subset, members in by_subset.items():
        start = len(samples)
        samples += [_sample(name, question, index) for index, question in enumerate(members)]
        subsets.append(Subset(subset, start, len(samples)))
    return tuple(samples), tuple(subsets)


def _sample(name: str, question: Question, index: int) -> Sample:
    metadata: dict[str, Any] = {}
    if question.fields:
        metadata[FIELDS] = dict(question.fields)
    if len(question.answers) > 1:
        metadata[ACCEPTED] = list(question.answers)
    return Sample(
        id=question.id or f"{name}_{question.subset}_{index}",
        subset=question.subset,
        index=index,
        text=question.text,
        target=question.answers[0] if question.answers else "",
        choices=question.choices,
        group=question.group,
        metadata=metadata,
    )
