"""Whether Keju takes the label that lm-eval takes: C-Eval `lm-eval`, zero-shot and 5-shot.

    python -m perf.lm_eval_labels --data-dir DIR [--subjects N] [--shots N]

Needs torch, transformers, xllamacpp and, for the figures of lm-eval's own code, lm-eval itself
(``pip install lm-eval==0.4.13``); without it, its rule is computed here: the log-probability of
``" A"`` behind the prompt, tokenised together. The weights are the embedded model's, dequantised:
for ``gguf:`` and for a llama.cpp server over HTTP as a GGUF file in float32. A last line tells of
the quantised file itself, with which llama.cpp also rounds what it computes to 8 bits.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tests.support.float_gguf import write_float32
from tests.support.llama_server import LlamaEndpoint

from keju.benchmarks.prepare import prepare_exam, resolve_sampling
from keju.config import TaskConfig
from keju.models import weights
from keju.models.base import Model
from keju.models.hf.load import Checkpoint, load
from keju.models.hf.model import HFModel
from keju.models.hf.settings import HFSettings
from keju.models.llama.model import LlamaModel
from keju.models.openai.client import OpenAIModel
from keju.types import Reply, Request

QUESTIONS = 62
NEAR_TIE = 0.05
"""Below this difference of the two best labels, rounding may decide."""
KEY = "sk-of-the-label-measurement"

Values = dict[str, float]


def requests_of(data_dir: str, shots: int, subjects: int) -> list[Request]:
    """The questions of the first subjects, as the protocol puts them."""
    args = {"protocol": "lm-eval", "few_shot_num": shots}
    exam, _ = prepare_exam("ceval", args, data_dir=data_dir)
    sampling = resolve_sampling(exam.protocol, TaskConfig(model="m", datasets=["ceval"]))
    samples = [s for part in exam.subsets[:subjects] for s in exam.samples[part.start : part.stop]]
    chosen = samples[:QUESTIONS]
    return [Request(exam.render(sample), sampling, sample.id, sample.labels) for sample in chosen]


def by_lm_eval(checkpoint: Checkpoint, requests: Sequence[Request]) -> list[Values]:
    """The log-probabilities that lm-eval compares."""
    pairs = [(r.prompt.text, f" {label}") for r in requests for label in r.labels]
    if importlib.util.find_spec("lm_eval"):
        from lm_eval.api.instance import Instance
        from lm_eval.models.huggingface import HFLM

        peer = HFLM(pretrained=checkpoint.net, tokenizer=checkpoint.tokenizer, batch_size=1)
        instances = [Instance("loglikelihood", {}, pair, n) for n, pair in enumerate(pairs)]
        flat = [value for value, _ in peer.loglikelihood(instances)]
    else:
        flat = [loglikelihood(checkpoint, *pair) for pair in pairs]
    rows = iter(flat)
    return [{label: next(rows) for label in request.labels} for request in requests]


def loglikelihood(checkpoint: Checkpoint, context: str, continuation: str) -> float:
    """The log-probability of a continuation, both tokenised together."""
    before = checkpoint.tokenizer(context)["input_ids"]
    tokens = checkpoint.tokenizer(context + continuation)["input_ids"]
    with torch.no_grad():
        logits: Any = checkpoint.net(torch.tensor([tokens])).logits[0]
    shares = torch.log_softmax(logits.float(), -1)
    return sum(float(shares[at - 1, tokens[at]]) for at in range(len(before), len(tokens)))


def by_keju(model: Model, requests: Sequence[Request]) -> list[Values]:
    """What a model of Keju's gives; an error ends the measurement."""

    async def ask() -> list[Reply]:
        await model.start()
        try:
            await model.preflight(requests[0].sampling)
            return [await model.ask(request, timeout=600) for request in requests]
        finally:
            await model.close()

    replies = asyncio.run(ask())
    for reply in replies:
        if reply.error is not None:
            raise SystemExit(f"not measured: {reply.error.message}")
    return [reply.label_logprobs or {} for reply in replies]


def best(values: Values) -> str:
    """The likeliest label, the first of equals."""
    return max(values, key=values.__getitem__) if values else "-"


def gap(values: Values) -> float:
    """How far the two best labels are apart."""
    best_value, next_value = sorted(values.values(), reverse=True)[:2]
    return best_value - next_value


def compare(
    name: str, lm_eval_values: list[Values], keju_values: list[Values], margin: float
) -> int:
    """Print the labels that differ; return how many do where lm-eval's are `least` apart."""
    pairs = list(zip(lm_eval_values, keju_values, strict=True))
    clear = [(a, b) for a, b in pairs if gap(a) > margin]
    wrong = [pair for pair in clear if best(pair[0]) != best(pair[1])]
    equal_count = sum(best(a) == best(b) for a, b in pairs)
    print(
        f"  {name:<6} {equal_count} of {len(pairs)} equal; {len(wrong)} of {len(clear)} differ",
        end=" ",
    )
    print(f"where the two best are more than {margin:g} apart")
    for number, (a, b) in enumerate(pairs):
        if best(a) != best(b):
            print(f"         question {number}: {best(a)} and {best(b)}, gap {gap(a):.4f}")
    return len(wrong)


def main() -> int:
    """Measure both numbers of worked examples."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--subjects", type=int, default=4)
    parser.add_argument("--shots", type=int, nargs="+", default=(0, 5))
    options = parser.parse_args()
    file = weights.locate_file(weights.EMBEDDED, os.environ)
    checkpoint = load(HFSettings(name=str(file.parent), gguf_file=file.name, device="cpu"))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        float32_file = Path(folder, "float32.gguf")
        write_float32(file, float32_file)
        for shots in options.shots:
            requests = requests_of(options.data_dir, shots, options.subjects)
            print(f"C-Eval lm-eval, {shots}-shot, {len(requests)} questions", flush=True)
            lm_eval_values = by_lm_eval(checkpoint, requests)
            hf = HFModel("hf:smollm2", HFSettings(), checkpoint=checkpoint)
            wrong += compare("hf", lm_eval_values, by_keju(hf, requests), 0.0)
            gguf = LlamaModel("gguf:float32", float32_file)
            wrong += compare("gguf", lm_eval_values, by_keju(gguf, requests), NEAR_TIE)
            with LlamaEndpoint(float32_file, key=KEY, alias="smollm2") as server:
                http = OpenAIModel("smollm2", api_url=server.url, api_key=KEY)
                wrong += compare("http", lm_eval_values, by_keju(http, requests), NEAR_TIE)
            quantised = LlamaModel("gguf:smollm2", file)
            compare("q4", lm_eval_values, by_keju(quantised, requests), NEAR_TIE)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
