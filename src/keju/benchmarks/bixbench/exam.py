"""BixBench made ready to sit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from keju import messages
from keju.answers.thinking import split_any_thinking
from keju.benchmarks.base import DataFacts, Exam, Mean, Protocol, Reader, Reference, Scores, Subset
from keju.benchmarks.bixbench import open_answers, readers
from keju.benchmarks.bixbench.args import BixBenchArgs
from keju.benchmarks.bixbench.facts import HYPOTHESIS, REFERENCES
from keju.benchmarks.bixbench.prompts import Wording
from keju.benchmarks.bixbench.questions import Questions, sample_id
from keju.benchmarks.grading import REFUSAL
from keju.errors import Notice
from keju.stats.estimate import Estimate
from keju.types import Prompt, Reading, Reply, Sample

_LABEL_PREFIX = re.compile(r"\(([A-Z])\) ?")

EXACT_WARNING = Notice("bixbench.exact")
messages.add(
    "en",
    {
        "bixbench.exact": "no judge: open answers that no rule decides count as right only where "
        "they are the target's very text",
    },
)
messages.add(
    "zh",
    {"bixbench.exact": "没有评委：规则无法判定的开放题答案仅在与标准答案逐字相同时算对"},
)


class BixBenchExam(Exam):
    """One view of one version under one protocol."""

    benchmark = "bixbench"
    clustered = True

    def __init__(
        self,
        protocol: Protocol,
        args: BixBenchArgs,
        questions: Questions,
        wording: Wording,
        data: DataFacts,
        settings: Mapping[str, Any],
    ) -> None:
        self.protocol = protocol
        self.samples = questions.samples
        drawn = len(questions.samples) < questions.population
        self.subsets = (
            Subset(
                questions.subset,
                0,
                len(questions.samples),
                population=questions.population if drawn else 0,
            ),
        )
        self.readers = _readers(protocol, args)
        self.beside = "robust" if args.answer_mode == "mcq" else "tolerant"
        self.data = data
        self.errata = questions.errata
        self.settings = settings
        self.references = _references(args, data.version)
        self._exact = args.no_judge == "exact"
        self.warnings = questions.warnings
        if self._exact:
            self.warnings = (*questions.warnings, EXACT_WARNING)
        elif args.names_a_judge:
            self.judge = args.judge()
        self._open = self.open_answers = args.answer_mode == "open"
        self._any_thinking = args.use_think
        self._wording = wording

    @property
    def _is_hypothesis(self) -> bool:
        return self.subsets[0].name == HYPOTHESIS

    def render(self, sample: Sample) -> Prompt:
        return self._wording.render(sample)

    def means(self) -> Sequence[Mean]:
        return ()

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        if self._any_thinking and reply.error is None:
            reply = _without_thinking(reply)
        if self._open:
            return open_answers.grade_open(reply, sample, reader, exact=self._exact)
        return super().grade(reply, sample, reader)

    def chance(self, sample: Sample) -> float | None:
        """One over the options; a half for an open answer of true or false."""
        return 0.5 if self._open and self._is_hypothesis else super().chance(sample)

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        from keju.benchmarks.bixbench.metrics import extra_metrics

        return extra_metrics(self.samples, scores)

    def locate(self, row: Mapping[str, Any]) -> str:
        keys = ("capsule_uuid", "id") if self._is_hypothesis else ("question_id", "id")
        for key in keys:
            if isinstance(row.get(key), str):
                return sample_id(row[key])
        raise KeyError(keys[0])

    def as_recorded(self, sample: Sample, row: Mapping[str, Any], *, gold: bool) -> Sample:
        """With the options as they were shown: their labels, and which of them was a refusal."""
        recorded = dict(row)
        choices = row.get("choices")
        if isinstance(choices, list):
            recorded["choices"] = [
                _LABEL_PREFIX.sub("", choice, count=1) if isinstance(choice, str) else choice
                for choice in choices
            ]
        if gold and ("choices" in row or "target" in row):
            metadata = {k: v for k, v in sample.metadata.items() if k != REFUSAL}
            if row.get("unsure"):
                metadata[REFUSAL] = str(row["unsure"])
            sample = msgspec.structs.replace(sample, metadata=metadata, order=())
        return super().as_recorded(sample, recorded, gold=gold)


def _references(args: BixBenchArgs, version: str) -> Sequence[Reference]:
    """Published figures of the same questions, asked in the same way."""
    same_view = args.answer_mode == "mcq" and args.question_source == "mcq"
    every = version == "1.5" or args.all_questions
    return REFERENCES[version] if same_view and every and not args.with_refusal else ()


def _readers(protocol: Protocol, args: BixBenchArgs) -> Mapping[str, Reader]:
    if args.answer_mode == "mcq":
        return readers.readers()
    hypothesis = args.question_source == "hypothesis"
    return open_answers.readers(hypothesis=hypothesis, tags_required=protocol.name == "official")


def _without_thinking(reply: Reply) -> Reply:
    thought = split_any_thinking(reply.text)
    if not thought.reasoning:
        return reply
    return msgspec.structs.replace(
        reply, text=thought.text, reasoning=thought.reasoning, raw=reply.raw or reply.text
    )
