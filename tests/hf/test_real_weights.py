"""The embedded model's real weights, dequantised: reuse changes nothing but the time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-hf")
pytest.importorskip("transformers", reason="transformers is not installed: make test-hf")

import torch

from keju.benchmarks.base import Exam
from keju.benchmarks.prepare import prepare_exam, resolve_sampling
from keju.config import TaskConfig
from keju.models.base import Model
from keju.models.hf.load import Checkpoint, load
from keju.models.hf.model import HFModel
from keju.models.hf.settings import HFSettings
from keju.models.openai.client import OpenAIModel
from keju.types import Reply, Request, Sampling

SECONDS = 60.0
NEAR_TIE = 0.3
"""Log-probability: llama.cpp rounds activations to 8 bits, transformers does not."""
SAME_WEIGHTS = 0.01
"""Log-probability: where both compute in floating point, llama.cpp keeps its cache in 16 bits."""
KEY = "sk-of-the-agreement-test"


@pytest.fixture(scope="module")
def checkpoint(smollm2: Path) -> Checkpoint:
    return load(HFSettings(name=str(smollm2.parent), gguf_file=smollm2.name, device="cpu"))


@pytest.fixture(scope="module")
def questions() -> list[Request]:
    """Short questions with three worked examples each, asked for the likeliest letter."""
    exam, _ = prepare_exam("demo", {"protocol": "letters"})
    return as_requests(exam, kinds=4, each=8)


@pytest.fixture(scope="module")
def many_questions(data_dir: Path) -> list[Request]:
    """Enough to speak of a share: generated ones, and C-Eval with five worked examples."""
    demo, _ = prepare_exam("demo", {"protocol": "letters"})
    form = {"protocol": "tutorial", "form": "base"}
    ceval, _ = prepare_exam("ceval", form, data_dir=str(data_dir))
    return [*as_requests(demo, kinds=6, each=15), *as_requests(ceval, kinds=4, each=8)]


def as_requests(exam: Exam, *, kinds: int, each: int) -> list[Request]:
    sampling = Sampling(form="completion", decode="labels")
    rows = [
        row
        for subset in exam.subsets[:kinds]
        for row in range(subset.start, min(subset.stop, subset.start + each))
    ]
    samples = [exam.samples[row] for row in rows]
    return [Request(exam.render(s), sampling, s.id, s.labels) for s in samples]


def values(model: Model, requests: Sequence[Request]) -> list[dict[str, float]]:
    async def ask() -> list[Reply]:
        await model.start()
        try:
            places = asyncio.Semaphore(model.slots or 2)

            async def one(request: Request) -> Reply:
                async with places:
                    return await model.ask(request, timeout=600)

            return await asyncio.gather(*map(one, requests))
        finally:
            await model.close()

    found = []
    for reply in asyncio.run(ask()):
        assert reply.error is None, reply.error
        assert reply.label_logprobs
        found.append(reply.label_logprobs)
    return found


def hf(checkpoint: Checkpoint, **settings: Any) -> HFModel:
    return HFModel("hf:smollm2", HFSettings(**settings), checkpoint=checkpoint)


def best(shares: dict[str, float]) -> str:
    return max(shares, key=shares.__getitem__)


@pytest.fixture(scope="module")
def whole(checkpoint: Checkpoint, questions: list[Request]) -> list[dict[str, float]]:
    """The values with nothing shared."""
    return values(hf(checkpoint, prefix_reuse="off"), questions)


def test_the_weights_are_dequantised(checkpoint: Checkpoint) -> None:
    assert checkpoint.dtype == torch.float32
    assert {p.dtype for p in checkpoint.net.parameters()} == {torch.float32}
    assert checkpoint.chat_template is not None


@pytest.mark.parametrize("form", ["cache", "tree"])
def test_reuse_gives_the_same_labels_and_values(
    checkpoint: Checkpoint, questions: list[Request], whole: list[dict[str, float]], form: str
) -> None:
    shared = values(hf(checkpoint, prefix_reuse=form), questions)
    assert [best(one) for one in shared] == [best(one) for one in whole]
    for one, other in zip(shared, whole, strict=True):
        assert one == pytest.approx(other, abs=1e-4)


def test_values_are_probabilities(whole: list[dict[str, float]]) -> None:
    for shares in whole:
        assert 0 < sum(map(math.exp, shares.values())) <= 1 + 1e-6


def check_agreement(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> None:
    """At least 95 % of the labels equal, and where they differ, nearly a tie."""
    different = [
        max(one[best(one)] - one[best(other)], other[best(other)] - other[best(one)])
        for one, other in zip(ours, theirs, strict=True)
        if best(one) != best(other)
    ]
    assert len(different) <= 0.05 * len(ours), different
    assert all(margin < NEAR_TIE for margin in different), different


@pytest.fixture(scope="module")
def dequantised(checkpoint: Checkpoint, many_questions: list[Request]) -> list[dict[str, float]]:
    """What transformers makes of the many questions."""
    return values(hf(checkpoint), many_questions)


def test_ceval_as_lm_eval_puts_it_takes_the_label_of_lm_eval(
    checkpoint: Checkpoint, data_dir: Path
) -> None:
    """lm-eval compares the log-probabilities of ` A` to ` D`, tokenised with the prompt."""
    exam, _ = prepare_exam("ceval", {"protocol": "lm-eval"}, data_dir=str(data_dir))
    sampling = resolve_sampling(exam.protocol, TaskConfig(model="m", datasets=["ceval"]))
    samples = [exam.samples[part.start] for part in exam.subsets[:8]]
    requests = [Request(exam.render(s), sampling, s.id, s.labels) for s in samples]
    ours = values(hf(checkpoint), requests)
    for request, shares in zip(requests, ours, strict=True):
        text, theirs = request.prompt.text, {}
        before = checkpoint.tokenizer(text)["input_ids"]
        for label in request.labels:
            whole = checkpoint.tokenizer(f"{text} {label}")["input_ids"]
            with torch.no_grad():
                logits = checkpoint.net(torch.tensor([whole])).logits[0]
            logs = torch.log_softmax(logits.float(), -1)
            theirs[label] = sum(
                float(logs[n - 1, whole[n]]) for n in range(len(before), len(whole))
            )
        assert shares == pytest.approx(theirs, abs=1e-4)


def test_tokens_are_those_of_llama_cpp(
    smollm2: Path, checkpoint: Checkpoint, data_dir: Path
) -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed: pip install 'keju[local]'")
    from keju.models.llama.model import LlamaModel

    form = {"protocol": "tutorial", "form": "base"}
    exam, _ = prepare_exam("ceval", form, data_dir=str(data_dir))
    firsts = [exam.samples[subset.start] for subset in exam.subsets]
    texts = [exam.render(sample).text for sample in firsts]
    texts += [exam.render(sample).tail for sample in exam.samples]
    assert "\n\n5" in "".join(texts)
    model = LlamaModel("gguf:m", smollm2)

    async def tokens() -> list[list[int]]:
        await model.start()
        try:
            return [await model.tokenize(text, SECONDS) for text in texts]
        finally:
            await model.close()

    for text, theirs in zip(texts, asyncio.run(tokens()), strict=True):
        assert checkpoint.tokenizer(text, add_special_tokens=False)["input_ids"] == theirs, text


def test_without_quantised_arithmetic_llama_cpp_gives_the_same_values(
    smollm2: Path, tmp_path: Path, questions: list[Request], whole: list[dict[str, float]]
) -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed: pip install 'keju[local]'")
    from keju.models.llama.model import LlamaModel
    from tests.support.float_gguf import write_float32

    file = tmp_path / "float32.gguf"
    write_float32(smollm2, file)
    some = slice(None, None, 3)
    found = values(LlamaModel("gguf:float32", file), questions[some])
    for ours, theirs in zip(whole[some], found, strict=True):
        assert ours == pytest.approx(theirs, abs=SAME_WEIGHTS)
    assert [best(one) for one in found] == [best(one) for one in whole[some]]


def test_llama_cpp_in_process_agrees(
    smollm2: Path, many_questions: list[Request], dequantised: list[dict[str, float]]
) -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed: pip install 'keju[local]'")
    from keju.models.llama.model import LlamaModel

    check_agreement(dequantised, values(LlamaModel("gguf:smollm2", smollm2), many_questions))


def test_a_server_of_llama_cpp_agrees(
    smollm2: Path, many_questions: list[Request], dequantised: list[dict[str, float]]
) -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed: pip install 'keju[local]'")
    from tests.support.llama_server import LlamaEndpoint

    with LlamaEndpoint(smollm2, key=KEY, alias="smollm2") as server:
        model = OpenAIModel("smollm2", api_url=server.url, api_key=KEY)
        check_agreement(dequantised, values(model, many_questions))
