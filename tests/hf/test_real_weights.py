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

pytestmark = pytest.mark.slow

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
    return as_requests(exam, kinds=4, rows_per_subset=8)


@pytest.fixture(scope="module")
def many_questions(data_dir: Path) -> list[Request]:
    """Enough to speak of a share: generated ones, and C-Eval with five worked examples."""
    demo, _ = prepare_exam("demo", {"protocol": "letters"})
    form = {"protocol": "tutorial", "form": "base"}
    ceval, _ = prepare_exam("ceval", form, data_dir=str(data_dir))
    return [
        *as_requests(demo, kinds=6, rows_per_subset=15),
        *as_requests(ceval, kinds=4, rows_per_subset=8),
    ]


def as_requests(exam: Exam, *, kinds: int, rows_per_subset: int) -> list[Request]:
    sampling = Sampling(form="completion", decode="labels")
    rows = [
        row
        for subset in exam.subsets[:kinds]
        for row in range(subset.start, min(subset.stop, subset.start + rows_per_subset))
    ]
    samples = [exam.samples[row] for row in rows]
    return [Request(exam.render(s), sampling, s.id, s.labels) for s in samples]


def values(model: Model, requests: Sequence[Request]) -> list[dict[str, float]]:
    async def ask() -> list[Reply]:
        await model.start()
        try:
            places = asyncio.Semaphore(model.slots or 2)

            async def ask_one(request: Request) -> Reply:
                async with places:
                    return await model.ask(request, timeout=600)

            return await asyncio.gather(*map(ask_one, requests))
        finally:
            await model.close()

    label_values = []
    for reply in asyncio.run(ask()):
        assert reply.error is None, reply.error
        assert reply.label_logprobs
        label_values.append(reply.label_logprobs)
    return label_values


def hf(checkpoint: Checkpoint, **settings: Any) -> HFModel:
    return HFModel("hf:smollm2", HFSettings(**settings), checkpoint=checkpoint)


def best(shares: dict[str, float]) -> str:
    return max(shares, key=shares.__getitem__)


@pytest.fixture(scope="module")
def separate_values(checkpoint: Checkpoint, questions: list[Request]) -> list[dict[str, float]]:
    """The values with nothing shared."""
    return values(hf(checkpoint, prefix_reuse="off"), questions)


def test_the_weights_are_dequantised(checkpoint: Checkpoint) -> None:
    assert checkpoint.dtype == torch.float32
    assert {p.dtype for p in checkpoint.net.parameters()} == {torch.float32}
    assert checkpoint.chat_template is not None


@pytest.mark.parametrize("form", ["cache", "tree"])
def test_reuse_gives_the_same_labels_and_values(
    checkpoint: Checkpoint,
    questions: list[Request],
    separate_values: list[dict[str, float]],
    form: str,
) -> None:
    shared = values(hf(checkpoint, prefix_reuse=form), questions)
    assert [best(shared_row) for shared_row in shared] == [
        best(shared_row) for shared_row in separate_values
    ]
    for shared_row, separate_row in zip(shared, separate_values, strict=True):
        assert shared_row == pytest.approx(separate_row, abs=1e-4)


def test_values_are_probabilities(separate_values: list[dict[str, float]]) -> None:
    for shares in separate_values:
        assert 0 < sum(map(math.exp, shares.values())) <= 1 + 1e-6


def check_agreement(
    keju_values: list[dict[str, float]], reference_values: list[dict[str, float]]
) -> None:
    """At least 95 % of the labels equal, and where they differ, nearly a tie."""
    margins = [
        max(
            keju_row[best(keju_row)] - keju_row[best(reference_row)],
            reference_row[best(reference_row)] - reference_row[best(keju_row)],
        )
        for keju_row, reference_row in zip(keju_values, reference_values, strict=True)
        if best(keju_row) != best(reference_row)
    ]
    assert len(margins) <= 0.05 * len(keju_values), margins
    assert all(margin < NEAR_TIE for margin in margins), margins


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
    keju_values = values(hf(checkpoint), requests)
    for request, shares in zip(requests, keju_values, strict=True):
        text, lm_eval_values = request.prompt.text, {}
        before = checkpoint.tokenizer(text)["input_ids"]
        for label in request.labels:
            tokens = checkpoint.tokenizer(f"{text} {label}")["input_ids"]
            with torch.no_grad():
                logits = checkpoint.net(torch.tensor([tokens])).logits[0]
            logs = torch.log_softmax(logits.float(), -1)
            lm_eval_values[label] = sum(
                float(logs[n - 1, tokens[n]]) for n in range(len(before), len(tokens))
            )
        assert shares == pytest.approx(lm_eval_values, abs=1e-4)


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

    for text, llama_tokens in zip(texts, asyncio.run(tokens()), strict=True):
        assert checkpoint.tokenizer(text, add_special_tokens=False)["input_ids"] == llama_tokens, (
            text
        )


def test_without_quantised_arithmetic_llama_cpp_gives_the_same_values(
    smollm2: Path, tmp_path: Path, questions: list[Request], separate_values: list[dict[str, float]]
) -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed: pip install 'keju[local]'")
    from keju.models.llama.model import LlamaModel
    from tests.support.float_gguf import write_float32

    file = tmp_path / "float32.gguf"
    write_float32(smollm2, file)
    sample_slice = slice(None, None, 3)
    llama_values = values(LlamaModel("gguf:float32", file), questions[sample_slice])
    for hf_row, llama_row in zip(separate_values[sample_slice], llama_values, strict=True):
        assert hf_row == pytest.approx(llama_row, abs=SAME_WEIGHTS)
    assert [best(row_values) for row_values in llama_values] == [
        best(row_values) for row_values in separate_values[sample_slice]
    ]


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
