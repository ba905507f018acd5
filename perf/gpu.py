"""Choosing among labels on a GPU: shared prefixes against whole prompts, in one run.

    python -m perf.gpu --data-dir DIR [--shapes 1b 7b] [--exams ceval mmlu_pro] [--out FILE.json]

Needs one CUDA device, torch and transformers, the data of C-Eval and MMLU-Pro, and no network.
Weights are random (speed does not depend on what they say) in the shapes of public models, in
bfloat16; the prompts are real ones. The tokenizer is a byte-level BPE trained on the exams' own
text with a vocabulary that gives the lengths of Qwen's: prefixes of 448 tokens and questions
of 81 on average for C-Eval, five worked examples, answer only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from keju.models.hf.encode import Encoder, Item
from keju.models.hf.forms import allows_own_steps
from keju.models.hf.generating import Writer
from keju.models.hf.load import Checkpoint
from keju.models.hf.model import HFModel
from keju.models.hf.pool import Size, choose
from keju.models.hf.prefixes import PrefixStore, by_prefix
from keju.models.hf.replica import Replica
from keju.models.hf.scoring import LabelScorer
from keju.models.hf.settings import HFSettings, Reuse
from keju.models.hf.worker import GPU_ROWS, TREE_ROWS, pass_tokens
from keju.types import Reply, Request, Sampling
from perf import gpu_peer
from perf.gpu_exams import EXAMS, SHAPES, build, load_exams, train_tokenizer

REFERENCE_ROWS = 200
"""Questions computed in float32 as well, to tell which of two answers rounding has changed."""
NEAR_TIE = 0.25
"""Labels closer than this may change places: five times the mean error of a log-probability in
bfloat16, as measured against float32 in the same run."""
FLOAT32_TOKENS = 4096
"""Of a packed pass in float32, for which there is no kernel that skips masked blocks."""
GENERATED = 48

Values = list[dict[str, float]]


class Measured(NamedTuple):
    """One way to answer all questions."""

    name: str
    seconds: float
    tokens: int
    """Tokens that went through the network."""
    values: Values


def main() -> None:
    """Measure, print a table for each shape, write all figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m perf.gpu", description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--exams", nargs="*", default=list(EXAMS), choices=EXAMS)
    parser.add_argument("--limit", type=int, help="questions of each exam (for a quick look)")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("perf.gpu needs a CUDA device, and torch sees none")
    ceilings = measure_ceilings()
    exams = load_exams(given.data_dir, given.limit)
    asked = {name: exams[name] for name in given.exams}
    tokenizer = train_tokenizer(given.data_dir)
    report = {"device": torch.cuda.get_device_name(), "ceilings": ceilings, "shapes": {}}
    for shape in given.shapes:
        report["shapes"][shape] = measure_shape(shape, asked, tokenizer, ceilings)
        if given.out is not None:
            given.out.write_text(json.dumps(report, indent=1))


# How it is measured


def measure_ceilings() -> dict[str, float]:
    """What the device does at best: bytes copied and bf16 operations a second."""
    found = {"bytes_per_second": _copy_rate(), "flop_per_second": _product_rate()}
    copy, product = (value / 1e12 for value in found.values())
    print(f"ceilings: copy {copy:.2f} TB/s, bf16 product {product:.0f} TFLOP/s")
    return found


def _copy_rate() -> float:
    source = torch.empty(2**31, dtype=torch.uint8, device="cuda").random_(0, 255)
    target = torch.empty_like(source)
    return 2 * 2**31 / timed(lambda: target.copy_(source), 10)


def _product_rate() -> float:
    left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in "ab")
    return 2 * 8192**3 / timed(lambda: left @ right, 10)


def timed(work: Callable[[], object], times: int) -> float:
    """Median seconds of some work on the device, after a warm-up."""
    work()
    work()
    taken = []
    for _ in range(times):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def measure_shape(
    shape: str, exams: dict[str, list[Request]], tokenizer: Any, ceilings: dict[str, float]
) -> dict[str, Any]:
    """All ways of asking, for one shape of network."""
    checkpoint = build(shape, tokenizer)
    parameters = sum(p.numel() for p in checkpoint.net.parameters())
    print(
        f"\n== {shape}: {parameters / 1e9:.2f} B parameters, random weights, bfloat16", flush=True
    )
    report: dict[str, Any] = {"parameters": parameters}
    encoder = Encoder(checkpoint)
    for name, requests in exams.items():
        items = [item for item in encoder.encode(requests) if isinstance(item, Item)]
        describe(name, items)
        ways = measure_ways(checkpoint, items, requests)
        report[name] = show(ways, items, checkpoint.net, ceilings)
        if name == "ceval":
            report["float32"] = against_float32(checkpoint, items, ways)
    report["generation"] = measure_generation(checkpoint, next(iter(exams.values())), encoder)
    del checkpoint
    torch.cuda.empty_cache()
    return report


def describe(name: str, items: Sequence[Item]) -> None:
    groups = by_prefix(items)
    prefix = statistics.mean(min(i.shared for i in group) for group in groups)
    own = statistics.mean(len(i.tokens) - i.shared for i in items)
    whole = sum(len(item.tokens) for item in items)
    print(
        f"-- {name}: {len(items)} questions, {len(groups)} prefixes of {prefix:.0f} tokens, "
        f"questions of {own:.0f}; {whole} tokens with every prefix",
        flush=True,
    )


def measure_ways(
    checkpoint: Checkpoint, items: Sequence[Item], requests: Sequence[Request]
) -> list[Measured]:
    """The peer's best, and the three forms; each after a warm-up on some of the questions."""
    ways = [measure_peer(checkpoint.net, items)]
    forms: tuple[Reuse, ...] = ("off", "cache", "tree")
    for form in forms:
        ways.append(measure_form(checkpoint, items, form))
        print(f"   {ways[-1].name}: {len(items) / ways[-1].seconds:.1f} questions/s", flush=True)
    ways.append(measure_whole_path(checkpoint, requests))
    return ways


def measure_peer(net: Any, items: Sequence[Item]) -> Measured:
    """The best batch size of the peer, with torch's own choice of kernels, run twice."""
    torch.backends.cuda.enable_cudnn_sdp(True)
    runs: dict[int, Measured] = {}
    for size in gpu_peer.BATCH_SIZES:
        try:
            runs[size] = _time_peer(net, items, size)
        except torch.OutOfMemoryError:
            print(f"   {gpu_peer.NAME}, batches of {size}: out of memory", flush=True)
        torch.cuda.empty_cache()
    best = min(runs, key=lambda size: runs[size].seconds)
    again = _time_peer(net, items, best)
    torch.cuda.empty_cache()
    for size, run in runs.items():
        equal, margin, _ = agreement(again.values, run.values)
        print(f"   its batches of {size} against {best}: {equal:.2%} equal, margin {margin:.3f}")
    return min(again, runs[best], key=lambda run: run.seconds)


def _time_peer(net: Any, items: Sequence[Item], size: int) -> Measured:
    gpu_peer.run(net, items[: 2 * size], size)
    torch.cuda.synchronize()
    start = time.perf_counter()
    values = gpu_peer.run(net, items, size)
    seconds = time.perf_counter() - start
    tokens = sum(len(item.tokens) for item in items)
    name = f"{gpu_peer.NAME}, {size}"
    print(f"   {name}: {len(items) / seconds:.1f} questions/s", flush=True)
    return Measured(name, seconds, tokens, values)


def measure_form(checkpoint: Checkpoint, items: Sequence[Item], form: Reuse) -> Measured:
    """One form of Keju's scorer, passes chosen as in a run, tokens already there."""
    replica = Replica(checkpoint.net, checkpoint.devices[0])
    rows = TREE_ROWS if form == "tree" else GPU_ROWS
    tokens = pass_tokens(checkpoint.net.config, replica)
    size = Size(rows, tokens, form)

    def answer(asked: Sequence[Item]) -> list[Reply]:
        return answer_all(LabelScorer(replica, form, rows, PrefixStore(replica)), asked, size)

    answer(items[: len(items) // 4])
    taken = []
    for _ in range(1 if form == "off" else 3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        replies = answer(items)
        taken.append(time.perf_counter() - start)
    replica.close()
    torch.cuda.empty_cache()
    computed = sum(reply.usage.input - reply.usage.cached for reply in replies)
    names = {"off": "whole prompts", "cache": "prefix cache", "tree": "packed tree"}
    return Measured(names[form], statistics.median(taken), computed, values_of(replies))


def answer_all(scorer: LabelScorer, asked: Sequence[Item], size: Size) -> list[Reply]:
    """Answer everything, in the passes that a run would choose."""
    waiting = list(asked)
    replies: dict[int, Reply] = {}
    while waiting:
        chosen = choose(waiting, size, settled=True)
        replies |= {id(i): reply for done in scorer.run(chosen) for i, reply in done}
        waiting = [item for item in waiting if id(item) not in replies]
    return [replies[id(item)] for item in asked]


def measure_whole_path(checkpoint: Checkpoint, requests: Sequence[Request]) -> Measured:
    """Through `HFModel.ask`, tokenising included, as a run of `keju eval` does it."""
    model = HFModel("hf:random", HFSettings(), checkpoint=checkpoint)

    async def work() -> tuple[float, list[Reply]]:
        await model.start()
        room = asyncio.Semaphore(model.slots or 1)

        async def ask(request: Request) -> Reply:
            async with room:
                return await model.ask(request, timeout=600)

        await asyncio.gather(*map(ask, requests[:200]))
        start = time.perf_counter()
        replies = await asyncio.gather(*map(ask, requests))
        seconds = time.perf_counter() - start
        print(f"   facts: {json.dumps(model.facts())}")
        await model.close()
        return seconds, replies

    seconds, replies = asyncio.run(work())
    computed = sum(reply.usage.input - reply.usage.cached for reply in replies)
    return Measured("packed tree, whole path", seconds, computed, values_of(replies))


def measure_generation(
    checkpoint: Checkpoint, requests: Sequence[Request], encoder: Encoder
) -> dict[str, float]:
    """Greedy tokens a second over one prefix's questions after another."""
    sampling = Sampling(form="completion", max_tokens=GENERATED)
    asked = [Request(r.prompt, sampling, r.hash) for r in requests[: 2 * GPU_ROWS]]
    items = [item for item in encoder.encode(asked) if isinstance(item, Item)]
    replica = Replica(checkpoint.net, checkpoint.devices[0])
    replica.own_steps = allows_own_steps(replica)
    done: list[Reply] = []

    def write(count: int) -> None:
        writer = Writer(
            replica,
            checkpoint.tokenizer,
            PrefixStore(replica),
            eos=frozenset(),
            context=checkpoint.context,
            rows=GPU_ROWS,
            reuse=True,
        )
        writer.run(items[:count], lambda _: [], lambda _, reply: done.append(reply))

    write(GPU_ROWS // 4)
    done.clear()
    torch.cuda.synchronize()
    start = time.perf_counter()
    write(len(items))
    seconds = time.perf_counter() - start
    replica.close()
    tokens = sum(reply.usage.output for reply in done)
    own = "own" if replica.own_steps else "transformers'"
    print(
        f"-- generation: {len(done)} replies, {tokens / seconds:.0f} tokens/s, {GPU_ROWS} rows, "
        f"{own} attention",
        flush=True,
    )
    return {"tokens_per_second": tokens / seconds, "replies": len(done)}


# What it means


def values_of(replies: Sequence[Reply]) -> Values:
    faults = [reply.error for reply in replies if reply.error is not None]
    assert not faults, faults[0]
    return [reply.label_logprobs or {} for reply in replies]


def flop(config: Any, items: Sequence[Item], tokens: int, heads: int) -> float:
    """Operations of the products: projections for every token, attention over what it sees."""
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    attention = config.num_attention_heads * head_dim
    kept = config.num_key_value_heads * head_dim
    layer = config.hidden_size * (2 * attention + 2 * kept + 3 * config.intermediate_size)
    seen = statistics.mean(len(item.tokens) for item in items) / 2
    per_token: float = config.num_hidden_layers * (2 * layer + 4 * seen * attention)
    return float(tokens * per_token + heads * 2 * config.hidden_size * config.vocab_size)


def show(
    ways: Sequence[Measured], items: Sequence[Item], net: Any, ceilings: dict[str, float]
) -> dict[str, Any]:
    """Print one line a way; return the figures.

    The bound is the larger of two times: all products at the rate of a large one, and all weights
    read once at the rate of a copy.
    """
    config = net.config
    reading = sum(p.numel() * p.itemsize for p in net.parameters()) / ceilings["bytes_per_second"]
    peer = ways[0]
    figures = {}
    print(
        f"{'way':<26} {'questions/s':>11} {'against peer':>12} {'tokens/s':>9} "
        f"{'TFLOP/s':>8} {'of bound':>8} {'labels equal':>12} {'beyond a tie':>12} "
        f"{'widest margin':>13}"
    )
    for way in ways:
        heads = way.tokens if way is peer else len(items)
        work = flop(config, items, way.tokens, heads)
        equal, margin, beyond = agreement(peer.values, way.values)
        computing = work / ceilings["flop_per_second"]
        bound = max(computing, reading) / way.seconds
        figures[way.name] = {
            "questions_per_second": len(items) / way.seconds,
            "against_peer": peer.seconds / way.seconds,
            "tokens": way.tokens,
            "tokens_per_second": way.tokens / way.seconds,
            "flop_per_second": work / way.seconds,
            "of_flop_bound": computing / way.seconds,
            "of_bandwidth_bound": reading / way.seconds,
            "labels_equal": equal,
            "different_beyond_a_tie": beyond,
            "widest_margin_of_a_difference": margin,
        }
        print(
            f"{way.name:<26} {len(items) / way.seconds:>11.1f} {peer.seconds / way.seconds:>12.2f} "
            f"{way.tokens / way.seconds:>9.0f} {work / way.seconds / 1e12:>8.0f} {bound:>8.2f} "
            f"{equal:>12.2%} {beyond:>12} {margin:>13.3f}",
            flush=True,
        )
    return figures


def agreement(first: Values, second: Values) -> tuple[float, float, int]:
    """Share of equal labels; of the different ones the widest margin, and how many are no tie."""
    margins = []
    for one, other in zip(first, second, strict=True):
        ours, theirs = max(one, key=one.__getitem__), max(other, key=other.__getitem__)
        if ours != theirs:
            margins.append(max(one[ours] - one[theirs], other[theirs] - other[ours]))
    beyond = sum(margin > NEAR_TIE for margin in margins)
    return 1 - len(margins) / len(first), max(margins, default=0.0), beyond


def _answer(scorer: LabelScorer, items: Sequence[Item], form: Reuse) -> Values:
    size = Size(TREE_ROWS, FLOAT32_TOKENS, form)
    return values_of(answer_all(scorer, items, size))


def against_float32(
    checkpoint: Checkpoint, items: Sequence[Item], ways: Sequence[Measured]
) -> dict[str, Any]:
    """Which way is nearer to the answers of full precision, on some of the questions."""
    step = max(1, len(items) // REFERENCE_ROWS)
    chosen = items[::step]
    checkpoint.net.float()
    replica = Replica(checkpoint.net, checkpoint.devices[0])
    store = PrefixStore(replica)
    truth = _answer(LabelScorer(replica, "off", 8, store), chosen, "off")
    forms: tuple[Reuse, ...] = ("tree", "cache")
    exact = {form: _answer(LabelScorer(replica, form, 8, store), chosen, form) for form in forms}
    replica.close()
    checkpoint.net.to(torch.bfloat16)
    torch.cuda.empty_cache()
    found: dict[str, Any] = {}
    for form, values in exact.items():
        equal, margin, _ = agreement(truth, values)
        found[f"{form}, both in float32"] = {"labels_equal": equal, "margin": margin}
        print(f"   float32 on {len(chosen)}: {form} against whole prompts: equal {equal:.2%}")
    for way in ways:
        equal, margin, _ = agreement(truth, way.values[::step])
        error = statistics.mean(
            abs(one[label] - other[label])
            for one, other in zip(truth, way.values[::step], strict=True)
            for label in one
        )
        found[way.name] = {"labels_equal": equal, "margin": margin, "mean_error": error}
        print(
            f"   against float32 on {len(chosen)}: {way.name:<26} equal {equal:.2%}, widest margin "
            f"{margin:.3f}, mean error {error:.4f}"
        )
    return found


if __name__ == "__main__":
    main()
