"""How fast continuations are scored, with lm-eval's own loglikelihood next to it.

    python -m perf.continuations [--model DIR_OR_GGUF] [--questions N] [--shape NAME] [--dtype T]

Needs torch, transformers and lm-eval (``pip install lm-eval==0.4.13``). The questions have the
shapes of HellaSwag without examples, of HellaSwag with ten examples that are drawn for each
question, and of MMLU with five fixed examples for each subject; their words are drawn. Both tools
get the same texts, one after the other in one process, each with the better of its batch sizes. On
a CPU the weights are the embedded model's, dequantised to float32, and processor time is compared;
on a GPU it is wall time.

The bound is the ratio of the tokens that each has to compute. lm-eval computes every context again
for each continuation, except for those of one token, which it reads from one pass.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from keju.models.hf.load import Checkpoint, choose_devices, load
from keju.models.hf.model import HFModel
from keju.models.hf.settings import HFSettings
from keju.types import Continuation, Prefix, Prompt, Reply, Request, Sampling
from perf.hf_cpu import settings_of
from perf.measure import cpu

SAMPLING = Sampling(form="completion", decode="continuations")
LEAST_CPU = 1.5
LEAST_GPU = {"hellaswag-0": 2.0, "hellaswag-10": 3.3, "mmlu-5": 6.0}
"""The least ratio of the speeds, if the bound by token counts is not lower."""
TOLERANCE = 2e-4
"""Largest difference of a sum of log-probabilities in float32, for each hundred of its size."""
VOCABULARY = (
    "the a man woman child dog car house river then slowly quickly walks runs opens closes takes "
    "gives red blue green large small old new before after while because under over into water "
    "music paper table window garden kitchen street school morning evening camera screen ball"
)
WORDS = VOCABULARY.split()

Texts = list[tuple[str, str]]
"""The context and the text of each continuation of a question."""


class Timed(NamedTuple):
    """One way through all questions."""

    seconds: float
    values: list[list[float]]
    computed: int


def draw_words(draw: random.Random, least: int, most: int) -> str:
    """A sentence of drawn words."""
    return " ".join(draw.choices(WORDS, k=draw.randint(least, most)))


def hellaswag(count: int, shots: int, draw: random.Random) -> list[Texts]:
    """Contexts of about 60 words with four endings of about 25; examples drawn for each."""
    pool = [f"{draw_words(draw, 45, 65)} {draw_words(draw, 20, 30)}." for _ in range(200)]
    questions = []
    for _ in range(count):
        examples = [f"{example}\n\n" for example in draw.sample(pool, shots)]
        context = "".join(examples) + draw_words(draw, 45, 65)
        questions.append([(context, f" {draw_words(draw, 20, 30)}.") for _ in range(4)])
    return questions


def mmlu(count: int, draw: random.Random) -> list[Texts]:
    """Questions of about 80 words on five fixed examples for each subject, answered by letter."""

    def ask() -> str:
        options = "".join(f"{letter}. {draw_words(draw, 4, 12)}\n" for letter in "ABCD")
        return f"{draw_words(draw, 25, 60)}?\n{options}Answer:"

    questions: list[Texts] = []
    examples = ""
    for number in range(count):
        if number % 50 == 0:
            examples = "".join(f"{ask()} {draw.choice('ABCD')}\n\n" for _ in range(5))
        context = examples + ask()
        questions.append([(context, f" {letter}") for letter in "ABCD"])
    return questions


SHAPES: dict[str, Callable[[int, random.Random], list[Texts]]] = {
    "hellaswag-0": lambda count, draw: hellaswag(count, 0, draw),
    "hellaswag-10": lambda count, draw: hellaswag(count, 10, draw),
    "mmlu-5": mmlu,
}


def by_keju(
    checkpoint: Checkpoint, questions: Sequence[Texts], clock: Callable[[], float]
) -> Timed:
    """Score all questions as a run does; only the asking is timed."""
    requests = [
        Request(
            Prompt(Prefix(), texts[0][0]),
            SAMPLING,
            str(number),
            continuations=tuple(Continuation(*text) for text in texts),
        )
        for number, texts in enumerate(questions)
    ]

    async def work() -> tuple[float, list[Reply]]:
        model = HFModel("hf:measured", HFSettings(), checkpoint=checkpoint)
        await model.start()
        await asyncio.gather(*(model.ask(r, timeout=3600) for r in requests[:2]))
        before = clock()
        replies = await asyncio.gather(*(model.ask(r, timeout=3600) for r in requests))
        seconds = clock() - before
        await model.close()
        return seconds, replies

    seconds, replies = asyncio.run(work())
    for reply in replies:
        if reply.error is not None:
            raise SystemExit(f"not measured: {reply.error.message}")
    values = [[score.logprob for score in reply.continuations or ()] for reply in replies]
    return Timed(seconds, values, sum(r.usage.input - r.usage.cached for r in replies))


def by_lm_eval(
    checkpoint: Checkpoint, questions: Sequence[Texts], clock: Callable[[], float], batch: int
) -> Timed:
    """The same by lm-eval's own code with one batch size."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    peer = HFLM(pretrained=checkpoint.net, tokenizer=checkpoint.tokenizer, batch_size=batch)
    pairs = [pair for texts in questions for pair in texts]
    instances = [Instance("loglikelihood", {}, pair, n) for n, pair in enumerate(pairs)]
    peer.loglikelihood(instances[:8], disable_tqdm=True)  # as Keju, after a warm-up
    before = clock()
    flat = iter(peer.loglikelihood(instances, disable_tqdm=True))
    seconds = clock() - before
    values = [[next(flat)[0] for _ in texts] for texts in questions]
    passes = {
        (*context, *text[:-1]) for context, text in (peer._encode_pair(*pair) for pair in pairs)
    }
    return Timed(seconds, values, sum(map(len, passes)))


def device_clock(device: Any) -> Callable[[], float]:
    """Processor time on a CPU, and wall time after all work on a GPU."""
    if device.type == "cpu":
        return cpu

    import torch

    def clock() -> float:
        torch.cuda.synchronize(device)
        return perf_counter()

    return clock


class ShapeFigures(NamedTuple):
    """The figures of one shape."""

    ratio: float
    bound: float
    """The ratio of the tokens to compute."""
    keju_rate: float
    lm_eval_rate: float
    """Questions a second."""
    equal: int
    """Questions for which both choose the same continuation."""
    widest: float
    holds: bool
    """Whether Keju is fast enough and, in float32, as exact as it should be."""


def measure(checkpoint: Checkpoint, shape: str, count: int, batches: Sequence[int]) -> ShapeFigures:
    """Measure and print one shape."""
    import torch

    questions = SHAPES[shape](count, random.Random(7))
    device = checkpoint.devices[0]
    clock = device_clock(device)
    peers = [by_lm_eval(checkpoint, questions, clock, batch) for batch in batches]
    peer = min(peers, key=lambda timed: timed.seconds)
    keju = by_keju(checkpoint, questions, clock)
    ratio, bound = peer.seconds / keju.seconds, peer.computed / keju.computed
    wanted = LEAST_CPU if device.type == "cpu" else LEAST_GPU[shape]
    pairs = list(zip(peer.values, keju.values, strict=True))
    equal = sum(a.index(max(a)) == b.index(max(b)) for a, b in pairs)
    widest = max(
        abs(x - y) / max(1.0, abs(x) / 100) for a, b in pairs for x, y in zip(a, b, strict=True)
    )
    print(
        f"{shape}: {ratio:.2f} times lm-eval's speed (at least {min(wanted, bound):.2f}), bound by "
        f"tokens {bound:.2f}; {count / keju.seconds:.2f} and {count / peer.seconds:.2f} "
        f"questions/s, {keju.computed} and {peer.computed} tokens; equal choices {equal} of "
        f"{len(pairs)}, widest difference {widest:.1e}",
        flush=True,
    )
    is_exact = equal == len(pairs) and widest <= TOLERANCE
    holds = ratio >= min(wanted, bound) and (is_exact or checkpoint.dtype != torch.float32)
    rates = count / keju.seconds, count / peer.seconds
    return ShapeFigures(ratio, bound, *rates, equal, widest, holds)


def main() -> int:
    """Print each shape; 1 if one of them is too slow or differs."""
    parser = argparse.ArgumentParser(prog="python -m perf.continuations", description=__doc__)
    parser.add_argument("--model", help="a folder with a checkpoint, or a GGUF file")
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, action="append", help="batch sizes of lm-eval")
    args = parser.parse_args()
    changes = {"device": args.device, "dtype": args.dtype}
    checkpoint = load(settings_of(args.model).model_copy(update=changes))
    on_cpu = choose_devices(args.device)[0].type == "cpu"
    batches = args.batch or ((1, 8) if on_cpu else (32, 64))
    results = [
        measure(checkpoint, shape, args.questions, batches) for shape in args.shape or SHAPES
    ]
    return 0 if all(figures.holds for figures in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
