"""A custom exam made ready to sit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keju.benchmarks.base import DataFacts, Exam, Mean, Protocol, Reader, Subset
from keju.benchmarks.custom.data import FIELDS
from keju.benchmarks.custom.prompts import EXAMPLES, Asked, Wording, prefix_of, render, split
from keju.benchmarks.custom.readers import LETTER
from keju.types import Prefix, Prompt, Sample


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
        clustered: bool,
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
        self.errata = {}
        if protocol.reader == LETTER:
            self.beside = LETTER
        self.clustered = clustered
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
        name, index = row["subset"], row["index"]
        for subset in self.subsets:
            if subset.name == name and isinstance(index, int) and 0 <= index < len(subset):
                sample: Sample = self.samples[subset.start + index]
                if sample.index == index:
                    return sample.id
        return super().locate(row)
