"""BBH made ready to sit: prompts, means, and what is known about the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keju.benchmarks.base import DataFacts, Exam, Mean, Protocol, Subset
from keju.benchmarks.bbh.facts import MEANS, REFERENCES, SUBSETS, TWO_VALUED, fault_of
from keju.benchmarks.bbh.prompts import Wording
from keju.benchmarks.bbh.readers import READERS, evalscope_target
from keju.errors import Notice
from keju.types import Prompt, Sample


class BBHExam(Exam):
    """The chosen subsets under one protocol."""

    benchmark = "bbh"
    readers = READERS
    references = REFERENCES

    def __init__(
        self,
        protocol: Protocol,
        samples: Sequence[Sample],
        subsets: Sequence[Subset],
        wordings: Mapping[str, Wording],
        data: DataFacts,
        settings: Mapping[str, Any],
        warnings: Sequence[Notice] = (),
    ) -> None:
        self.protocol = protocol
        self.samples = samples
        self.subsets = subsets
        self.data = data
        self.settings = settings
        self.warnings = warnings
        self.errata = {sample.id: fault for sample in samples if (fault := fault_of(sample))}
        self._wordings = wordings

    def render(self, sample: Sample) -> Prompt:
        return self._wordings[sample.subset].render(sample.text)

    def means(self) -> Sequence[Mean]:
        return MEANS

    def chance(self, sample: Sample) -> float | None:
        """One over the options; a half where two answers are possible.

        A question that lost its options leaves nothing to guess from.
        """
        if SUBSETS[sample.subset].kind in TWO_VALUED:
            return 0.5
        return super().chance(sample) if len(sample.choices) > 1 else None

    def describe(self, sample: Sample) -> dict[str, Any]:
        """As EvalScope shows it: the options stand in the question and are not repeated."""
        document = super().describe(sample)
        document.pop("choices", None)
        if self.protocol.name == "evalscope":
            document["target"] = evalscope_target(sample)
        return document
