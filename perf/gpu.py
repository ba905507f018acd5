"""Choosing among labels on a GPU: shared prefixes against whole prompts, in one run.

    python -m perf.gpu --data-dir DIR [--shapes 1b 7b] [--exams ceval mmlu_pro]
        [--real FILE.gguf] [--out FILE.json]

Needs one CUDA device, torch and transformers, the data of C-Eval and MMLU-Pro, and no network.
Where lm-eval can be imported its ``hf`` backend answers the same questions in the same run.
Weights are random (speed does not depend on what they say) in the shapes of public models, in
bfloat16; the prompts are real ones. The tokenizer is a byte-level BPE trained on the exams' own
text with a vocabulary that gives the lengths of Qwen's: prefixes of 448 tokens and questions
of 81 on average for C-Eval, five worked examples, answer only.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import importlib.util
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from keju.models.hf.encode import EncodedRequest, RequestEncoder
from keju.models.hf.forms import supports_row_attention
from keju.models.hf.generation import TextGenerator
from keju.models.hf.load import Checkpoint
from keju.models.hf.model import HFModel
from keju.models.hf.replica import DeviceReplica
from keju.models.hf.scoring import LabelScorer, PrefixStore, group_by_prefix
from keju.models.hf.settings import HFSettings, Reuse
from keju.models.hf.worker import GPU_ROWS, TREE_ROWS, PassSize, tokens_per_pass
from keju.types import Reply, Request, Sampling
from perf import continuations, gpu_peer
from perf.gpu_exams import EXAMS, SHAPES, build, load_exams, train_tokenizer
from perf.gpu_report import Measured, agreement, show, values_of
from perf.gpu_truth import against_float32, answer_all, with_real_weights

GENERATED = 48
SCORED, SCORED_PRECISELY = 512, 64
"""Questions of each shape whose continuations are scored, for speed and for equal choices."""
PEER_BATCHES = (32, 64)


def main() -> None:
    """Measure, print a table for each shape, write all figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m perf.gpu", description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--exams", nargs="*", default=list(EXAMS), choices=EXAMS)
    parser.add_argument("--real", type=Path, help="a GGUF: are its answers the same in all ways?")
    parser.add_argument("--limit", type=int, help="questions of each exam (for a quick look)")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("perf.gpu needs a CUDA device, and torch sees none")
    ceilings = measure_ceilings()
    exams = load_exams(args.data_dir, args.limit)
    chosen_exams = {name: exams[name] for name in args.exams}
    report = {"device": torch.cuda.get_device_name(), "ceilings": ceilings, "shapes": {}}
    if args.real is not None:
        report["real"] = with_real_weights(args.real, exams["ceval"])
    tokenizer = train_tokenizer(args.data_dir)
    for shape in args.shapes:
        report["shapes"][shape] = measure_shape(shape, chosen_exams, tokenizer, ceilings)
        if args.out is not None:
            args.out.write_text(json.dumps(report, indent=1))


# How it is measured


def measure_ceilings() -> dict[str, float]:
    """What the device does at best: bytes copied and bf16 operations a second."""
    rates = {"bytes_per_second": _copy_rate(), "flop_per_second": _product_rate()}
    copy, product = (value / 1e12 for value in rates.values())
    print(f"ceilings: copy {copy:.2f} TB/s, bf16 product {product:.0f} TFLOP/s")
    return rates


def _copy_rate() -> float:
    source = torch.empty(2**31, dtype=torch.uint8, device="cuda").random_(0, 255)
    target = torch.empty_like(source)
    return 2 * 2**31 / timed(lambda: target.copy_(source), 10)


def _product_rate() -> float:
    left_matrix, right = (
        torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in "ab"
    )
    return 2 * 8192**3 / timed(lambda: left_matrix @ right, 10)


def timed(work: Callable[[], object], times: int) -> float:
    """Median seconds of some work on the device, after a warm-up."""
    work()
    work()
    timings = []
    for _ in range(times):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        timings.append(time.perf_counter() - start)
    return statistics.median(timings)


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
    encoder = RequestEncoder(checkpoint)
    for name, requests in exams.items():
        items = [item for item in encoder.encode(requests) if isinstance(item, EncodedRequest)]
        describe(name, items)
        ways = measure_ways(checkpoint, items, requests)
        report[name] = show(ways, items, checkpoint.net, ceilings)
        if name == "ceval":
            report["float32"] = against_float32(checkpoint, items, ways)
    report["generation"] = measure_generation(checkpoint, next(iter(exams.values())), encoder)
    report["continuations"] = measure_continuations(checkpoint)
    del checkpoint
    torch.cuda.empty_cache()
    return report


def measure_continuations(checkpoint: Checkpoint) -> dict[str, Any]:
    """Continuations next to lm-eval: speed in bfloat16, and in float32 the choices of a few."""
    if importlib.util.find_spec("lm_eval") is None:
        print("continuations: not measured, lm-eval is not installed")
        return {}
    report = {}
    for shape in continuations.SHAPES:
        speed = continuations.measure(checkpoint, shape, SCORED, PEER_BATCHES)
        report[shape] = {"bfloat16": speed._asdict()}
    precise = dataclasses.replace(checkpoint, net=checkpoint.net.float(), dtype=torch.float32)
    for shape in continuations.SHAPES:
        choices = continuations.measure(precise, shape, SCORED_PRECISELY, PEER_BATCHES[:1])
        report[shape]["float32"] = choices._asdict()
    checkpoint.net.to(torch.bfloat16)
    return report


def describe(name: str, items: Sequence[EncodedRequest]) -> None:
    groups = group_by_prefix(items)
    prefix = statistics.mean(min(i.shared for i in group) for group in groups)
    question_tokens = statistics.mean(len(i.tokens) - i.shared for i in items)
    total_tokens = sum(len(item.tokens) for item in items)
    print(
        f"-- {name}: {len(items)} questions, {len(groups)} prefixes of {prefix:.0f} tokens, "
        f"questions of {question_tokens:.0f}; {total_tokens} tokens with every prefix",
        flush=True,
    )


def measure_ways(
    checkpoint: Checkpoint, items: Sequence[EncodedRequest], requests: Sequence[Request]
) -> list[Measured]:
    """The fastest peer, the others, and the three forms; each after a warm-up."""
    peers = gpu_peer.peers(checkpoint, items, requests)
    ways = sorted((measure_peer(peer) for peer in peers), key=lambda way: way.seconds)
    forms: tuple[Reuse, ...] = ("off", "cache", "tree")
    for form in forms:
        ways.append(measure_form(checkpoint, items, form))
        print(f"   {ways[-1].name}: {len(items) / ways[-1].seconds:.1f} questions/s", flush=True)
    ways.append(measure_whole_path(checkpoint, requests))
    return ways


def measure_peer(peer: gpu_peer.PeerTool) -> Measured:
    """The best batch size of a peer, with torch's own choice of kernels, run twice."""
    torch.backends.cuda.enable_cudnn_sdp(True)
    runs: dict[int, Measured] = {}
    for size in gpu_peer.BATCH_SIZES:
        try:
            runs[size] = _time_peer(peer, size)
        except torch.OutOfMemoryError:
            print(f"   {peer.name}, batches of {size}: out of memory", flush=True)
        torch.cuda.empty_cache()
    best = min(runs, key=lambda size: runs[size].seconds)
    second_run = _time_peer(peer, best)
    torch.cuda.empty_cache()
    for size, run in runs.items():
        equal, margin, _ = agreement(second_run.values, run.values)
        print(f"   its batches of {size} against {best}: {equal:.2%} equal, margin {margin:.3f}")
    return min(second_run, runs[best], key=lambda run: run.seconds)


def _time_peer(peer: gpu_peer.PeerTool, size: int) -> Measured:
    peer.answer(size, 2 * size)
    torch.cuda.synchronize()
    start = time.perf_counter()
    values = peer.answer(size, None)
    seconds = time.perf_counter() - start
    name = f"{peer.name}, {size}"
    print(f"   {name}: {len(values) / seconds:.1f} questions/s", flush=True)
    return Measured(name, seconds, peer.tokens, values, every_head=True)


def measure_form(checkpoint: Checkpoint, items: Sequence[EncodedRequest], form: Reuse) -> Measured:
    """One form of Keju's scorer, passes chosen as in a run, tokens already there."""
    replica = DeviceReplica(checkpoint.net, checkpoint.devices[0])
    rows = TREE_ROWS if form == "tree" else GPU_ROWS
    tokens = tokens_per_pass(checkpoint.net.config, replica)
    size = PassSize(rows, tokens, form)

    def answer(requests: Sequence[EncodedRequest]) -> list[Reply]:
        return answer_all(LabelScorer(replica, form, rows, PrefixStore(replica)), requests, size)

    answer(items[: len(items) // 4])
    timings = []
    for _ in range(1 if form == "off" else 3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        replies = answer(items)
        timings.append(time.perf_counter() - start)
    replica.close()
    torch.cuda.empty_cache()
    computed = sum(reply.usage.input - reply.usage.cached for reply in replies)
    names = {"off": "whole prompts", "cache": "prefix cache", "tree": "packed tree"}
    return Measured(names[form], statistics.median(timings), computed, values_of(replies))


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
    checkpoint: Checkpoint, requests: Sequence[Request], encoder: RequestEncoder
) -> dict[str, float]:
    """Greedy tokens a second over one prefix's questions after another."""
    sampling = Sampling(form="completion", max_tokens=GENERATED)
    greedy_requests = [Request(r.prompt, sampling, r.hash) for r in requests[: 2 * GPU_ROWS]]
    items = [item for item in encoder.encode(greedy_requests) if isinstance(item, EncodedRequest)]
    replica = DeviceReplica(checkpoint.net, checkpoint.devices[0])
    replica.uses_row_attention = supports_row_attention(replica)
    replies: list[Reply] = []

    def write(count: int) -> None:
        writer = TextGenerator(
            replica,
            dataclasses.replace(checkpoint, eos=frozenset()),
            PrefixStore(replica),
            rows=GPU_ROWS,
            reuse=True,
        )
        writer.run(items[:count], lambda _: [], lambda _, reply: replies.append(reply))

    write(GPU_ROWS // 4)
    replies.clear()
    torch.cuda.synchronize()
    start = time.perf_counter()
    write(len(items))
    seconds = time.perf_counter() - start
    replica.close()
    tokens = sum(reply.usage.output for reply in replies)
    implementation = "own" if replica.uses_row_attention else "transformers'"
    print(
        f"-- generation: {len(replies)} replies, {tokens / seconds:.0f} tokens/s, {GPU_ROWS} rows, "
        f"{implementation} attention",
        flush=True,
    )
    figures = {"tokens_per_second": tokens / seconds, "replies": len(replies)}
    if importlib.util.find_spec("lm_eval") is not None:
        figures["lm_eval_tokens_per_second"] = max(
            _lm_eval_tokens(checkpoint, greedy_requests, size) for size in gpu_peer.BATCH_SIZES
        )
    return figures


def _lm_eval_tokens(checkpoint: Checkpoint, requests: Sequence[Request], size: int) -> float:
    """Tokens a second of lm-eval itself, tokenising included; the better of two runs."""
    rates = []
    for _ in range(2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        tokens = gpu_peer.write_by_lm_eval(checkpoint, requests, size, GENERATED)
        torch.cuda.synchronize()
        rates.append(tokens / (time.perf_counter() - start))
    print(f"   lm-eval, batches of {size}: {max(rates):.0f} tokens/s", flush=True)
    return max(rates)


if __name__ == "__main__":
    main()
