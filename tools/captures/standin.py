"""Models that stand in for real ones: they know the gold answers and make mistakes on purpose.

Every reply depends only on the model's name and the question, so the runs can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.replies import EndpointRequest, draw

from keju.benchmarks.base import Exam
from keju.types import Sample

HARDEST, EASIEST = 0.42, 0.96
"""The share of right answers on the hardest and on the easiest subset."""


_THOUGHTS = "Let me think step by step. I compared all of them"
_REASONED = "一步一步"
"""What a Chinese prompt says that asks for a chain of thought."""


@dataclass(frozen=True)
class StandIn:
    """How a model answers."""

    disturbed: float = 0.0
    """The share of questions that it answers differently from the undisturbed model."""
    loss: float = 0.0
    """How much less often it is right on those."""
    cut: float = 0.0
    """The share of replies that the server cuts off."""
    other_words: float = 0.0
    """The share of replies that state the answer, but not in the requested form."""
    reasoned_gain: float = 0.0
    """How much more often it is right on some subsets if it may reason."""


MODELS: Mapping[str, StandIn] = {
    "acme-7b-bf16": StandIn(cut=0.02, other_words=0.006),
    "acme-7b-int8": StandIn(disturbed=0.05, cut=0.02, other_words=0.006),
    "acme-7b-int4": StandIn(disturbed=0.2, loss=0.28, cut=0.02, other_words=0.006),
    "acme-7b-chat": StandIn(cut=0.05, other_words=0.22),
    "acme-7b": StandIn(reasoned_gain=0.9),
}


class StandInModels:
    """The replies of all models to the questions of some exams."""

    def __init__(self, exams: Iterable[Exam]) -> None:
        self._samples: dict[str, Sample] = {}
        for exam in exams:
            for sample in exam.samples:
                self._samples[str(exam.render(sample).messages[-1].content)] = sample

    def __call__(self, request: EndpointRequest) -> str | dict[str, Any]:
        """Return the reply of the requested model."""
        sample = self._samples.get(request.text)
        if sample is None:  # Keju checks the endpoint with a question of its own
            return "A"
        name = str(request.body["model"])
        model = MODELS[name]
        form = draw(name if model.disturbed else "", sample.id, "form")
        if form < model.cut:
            text = "Let me think step by step. First I look at the facts of the question, and then"
            return {"message": {"role": "assistant", "content": text}, "finish_reason": "length"}
        prompt = str(request.body["messages"])
        answer = self._answer(name, model, sample, prompt)
        if form < model.cut + model.other_words:
            return f"{_THOUGHTS}, and I would go with {answer} here."
        return _stated(answer, request.text, is_reasoned=_REASONED in prompt)

    def tokens(self, request: EndpointRequest) -> dict[str, float]:
        """Return the log-probabilities of the labels, for protocols that compare them."""
        sample = self._samples.get(request.text)
        if sample is None:
            return {"A": -0.1, "B": -3.0}
        name = str(request.body["model"])
        answer = self._answer(name, MODELS[name], sample, str(request.body["messages"]))
        return {label: -0.1 if label == answer else -3.0 for label in sample.labels}

    def _answer(self, name: str, model: StandIn, sample: Sample, prompt: str) -> str:
        """Return the right answer as often as the model knows it, or else another one."""
        skill = HARDEST + (EASIEST - HARDEST) * draw(sample.subset)
        luck = draw(sample.id)
        if draw(name, sample.id, "disturbed") < model.disturbed:
            luck = draw(name, sample.id) + model.loss
        if _REASONED in prompt:
            skill += model.reasoned_gain * (draw(sample.subset, "reasons") - 0.4)
        return sample.target if luck < skill else _wrong(sample)


def _wrong(sample: Sample) -> str:
    """Return a wrong answer of the right kind."""
    others = [label for label in sample.labels if label != sample.target.strip("()")]
    if not others:
        swapped = {"Yes": "No", "No": "Yes", "yes": "no", "no": "yes", "True": "False"}
        return swapped.get(sample.target, f"{sample.target}7")
    label = others[int(draw(sample.id, "wrong") * len(others))]
    return f"({label})" if sample.target.startswith("(") else label


def _stated(answer: str, prompt: str, *, is_reasoned: bool) -> str:
    """Return a reply that states the answer in the form that the prompt asks for."""
    if "ANSWER:" in prompt:
        return f"{_THOUGHTS}.\nANSWER: {answer}"
    if "答案" in prompt:
        return f"逐项比较以后可以得出结论。\n所以答案是{answer}。" if is_reasoned else answer
    return f"{_THOUGHTS}. So the answer is {answer}."
