"""Whether all ways on a GPU give the same answers: against float32, and with real weights."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from keju.models.hf.encode import EncodedRequest, RequestEncoder
from keju.models.hf.load import Checkpoint, load
from keju.models.hf.replica import DeviceReplica
from keju.models.hf.scoring import LabelScorer, PrefixStore
from keju.models.hf.settings import HFSettings, Reuse
from keju.models.hf.worker import TREE_ROWS, PassSize, choose_batch
from keju.types import Reply, Request
from perf import gpu_peer
from perf.gpu_report import Measured, Values, agreement, values_of

REFERENCE_ROWS = 200
"""Questions computed in float32 as well, to tell which of two answers rounding has changed."""
FLOAT32_TOKENS = 4096
"""Of a packed pass in float32, for which there is no kernel that skips masked blocks."""
REAL_BATCH = 16
"""Questions at once for the peers with real weights: in float32 a whole softmax is large."""


def answer_all(
    scorer: LabelScorer, requests: Sequence[EncodedRequest], size: PassSize
) -> list[Reply]:
    """Answer everything, in the passes that a run would choose."""
    waiting = list(requests)
    replies: dict[int, Reply] = {}
    while waiting:
        chosen = choose_batch(waiting, size, settled=True)
        replies |= {id(i): reply for finished in scorer.run(chosen) for i, reply in finished}
        waiting = [item for item in waiting if id(item) not in replies]
    return [replies[id(item)] for item in requests]


def _answer(scorer: LabelScorer, items: Sequence[EncodedRequest], form: Reuse) -> Values:
    size = PassSize(TREE_ROWS, FLOAT32_TOKENS, form)
    return values_of(answer_all(scorer, items, size))


def against_float32(
    checkpoint: Checkpoint, items: Sequence[EncodedRequest], ways: Sequence[Measured]
) -> dict[str, Any]:
    """Which way is nearer to the answers of full precision, on some of the questions."""
    step = max(1, len(items) // REFERENCE_ROWS)
    chosen = items[::step]
    checkpoint.net.float()
    replica = DeviceReplica(checkpoint.net, checkpoint.devices[0])
    store = PrefixStore(replica)
    truth = _answer(LabelScorer(replica, "off", 8, store), chosen, "off")
    forms: tuple[Reuse, ...] = ("tree", "cache")
    exact = {form: _answer(LabelScorer(replica, form, 8, store), chosen, form) for form in forms}
    replica.close()
    checkpoint.net.to(torch.bfloat16)
    torch.cuda.empty_cache()
    figures: dict[str, Any] = {}
    for form, values in exact.items():
        equal, margin, _ = agreement(truth, values)
        figures[f"{form}, both in float32"] = {"labels_equal": equal, "margin": margin}
        print(f"   float32 on {len(chosen)}: {form} against whole prompts: equal {equal:.2%}")
    for way in ways:
        equal, margin, _ = agreement(truth, way.values[::step])
        error = statistics.mean(
            abs(exact_values[label] - approximate[label])
            for exact_values, approximate in zip(truth, way.values[::step], strict=True)
            for label in exact_values
        )
        figures[way.name] = {"labels_equal": equal, "margin": margin, "mean_error": error}
        print(
            f"   against float32 on {len(chosen)}: {way.name:<26} equal {equal:.2%}, widest margin "
            f"{margin:.3f}, mean error {error:.4f}"
        )
    return figures


def with_real_weights(file: Path, requests: Sequence[Request]) -> dict[str, Any]:
    """Do the peers and all three forms choose the same labels with the weights of `file`?"""
    figures: dict[str, Any] = {}
    for dtype in ("float32", "bfloat16"):
        settings = HFSettings(name=str(file.parent), gguf_file=file.name, dtype=dtype)
        checkpoint = load(settings)
        checkpoint.net.to(checkpoint.devices[0])
        items = [
            i for i in RequestEncoder(checkpoint).encode(requests) if isinstance(i, EncodedRequest)
        ]
        print(f"\n== {file.name} in {dtype}: {len(items)} questions", flush=True)
        peers = gpu_peer.peers(checkpoint, items, requests)
        answers = {peer.name: peer.answer(REAL_BATCH, None) for peer in peers}
        replica = DeviceReplica(checkpoint.net, checkpoint.devices[0])
        forms: tuple[Reuse, ...] = ("off", "cache", "tree")
        for form in forms:
            scorer = LabelScorer(replica, form, REAL_BATCH, PrefixStore(replica))
            answers[form] = _answer(scorer, items, form)
        replica.close()
        figures[dtype] = _compared(answers, peers[-1].name)
        del checkpoint, replica
        torch.cuda.empty_cache()
    return figures


def _compared(answers: dict[str, Values], reference: str) -> dict[str, Any]:
    """Every way against one of them: labels, and the widest difference of a log-probability."""
    figures = {}
    truth = answers.pop(reference)
    for name, values in answers.items():
        equal, margin, _ = agreement(truth, values)
        widest = max(
            abs(exact[label] - approximate[label])
            for exact, approximate in zip(truth, values, strict=True)
            for label in exact
        )
        figures[name] = {"labels_equal": equal, "margin": margin, "widest_difference": widest}
        print(
            f"   {name} against {reference}: equal {equal:.2%}, margin of a difference "
            f"{margin:.4f}, widest difference of a value {widest:.5f}",
            flush=True,
        )
    return figures
