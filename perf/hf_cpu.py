"""What sharing a prefix saves on a CPU: C-Eval, five worked examples, answer only.

    python -m perf.hf_cpu --data-dir DIR [--subjects N] [--each N] [--model DIR_OR_GGUF]

Needs torch and transformers. The weights are the embedded model's, dequantised to float32, unless
another checkpoint is named. All questions of some subjects go through the model twice, with the
prefix computed once and with whole prompts; the ratio is that of the processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from keju.benchmarks.prepare import prepare_exam
from keju.models import weights
from keju.models.hf.load import Checkpoint, load
from keju.models.hf.model import HFModel
from keju.models.hf.settings import GGUF, HFSettings, Reuse
from keju.types import Reply, Request
from perf.gpu_exams import as_requests
from perf.measure import cpu

LEAST_RATIO = 4.0
"""The processor time with whole prompts is at least so many times that with shared prefixes."""
TOLERANCE = 1e-4
"""Largest difference of a log-probability in float32."""


class ScoredWay(NamedTuple):
    """One way through all questions."""

    cpu: float
    computed: int
    """Tokens that went through the network."""
    values: list[dict[str, float]]


def main() -> int:
    """Print both ways and their ratio; 1 if it is too small or the answers differ."""
    parser = argparse.ArgumentParser(prog="python -m perf.hf_cpu", description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--subjects", type=int, default=3)
    parser.add_argument("--each", type=int, default=1000, help="at most so many of each subject")
    parser.add_argument("--model", help="a folder with a checkpoint, or a GGUF file")
    args = parser.parse_args()
    requests = questions(args.data_dir, args.subjects, args.each)
    checkpoint = load(settings_of(args.model))
    print(f"{len(requests)} questions of {args.subjects} subjects, {checkpoint.dtype}")
    shared = evaluate(checkpoint, requests, "cache")
    separate = evaluate(checkpoint, requests, "off")
    return compare(shared, separate)


def questions(data_dir: str, subjects: int, rows_per_subject: int) -> list[Request]:
    """The first questions of the first subjects of C-Eval's validation split."""
    exam, _ = prepare_exam("ceval", {"protocol": "tutorial", "form": "base"}, data_dir=data_dir)
    rows = [
        row
        for subset in exam.subsets[:subjects]
        for row in range(subset.start, min(subset.stop, subset.start + rows_per_subject))
    ]
    return as_requests(exam, rows)


def settings_of(model: str | None) -> HFSettings:
    """The named checkpoint, or the embedded weights."""
    place = Path(model).expanduser() if model else weights.locate_file(weights.EMBEDDED, os.environ)
    if place.suffix == GGUF:
        return HFSettings(name=str(place.parent), gguf_file=place.name, device="cpu")
    return HFSettings(name=str(place), device="cpu")


def evaluate(checkpoint: Checkpoint, requests: Sequence[Request], form: Reuse) -> ScoredWay:
    """Ask everything through the model as a run does; only the asking is timed."""

    async def work() -> tuple[float, list[Reply]]:
        model = HFModel("hf:measured", HFSettings(prefix_reuse=form), checkpoint=checkpoint)
        await model.start()
        before = cpu()
        replies = await asyncio.gather(*(model.ask(r, timeout=3600) for r in requests))
        seconds = cpu() - before
        await model.close()
        return seconds, replies

    seconds, replies = asyncio.run(work())
    computed = sum(reply.usage.input - reply.usage.cached for reply in replies)
    print(f"{form:>6}: {seconds:.1f} s of CPU, {computed} tokens computed", flush=True)
    return ScoredWay(seconds, computed, [reply.label_logprobs or {} for reply in replies])


def compare(shared: ScoredWay, separate: ScoredWay) -> int:
    """Print the ratio, and how far the answers are apart."""
    pairs = list(zip(shared.values, separate.values, strict=True))
    equal = sum(
        max(shared_values, key=shared_values.__getitem__)
        == max(separate_values, key=separate_values.__getitem__)
        for shared_values, separate_values in pairs
    )
    widest = max(
        abs(shared_values[label] - separate_values[label])
        for shared_values, separate_values in pairs
        for label in shared_values
    )
    ratio = separate.cpu / shared.cpu
    print(
        f"CPU {ratio:.2f} times less (at least {LEAST_RATIO:g}), tokens "
        f"{separate.computed / shared.computed:.2f} times fewer; labels equal on {equal} of "
        f"{len(pairs)}; widest difference of a log-probability {widest:.1e}"
    )
    return 0 if ratio >= LEAST_RATIO and equal == len(pairs) and widest <= TOLERANCE else 1


if __name__ == "__main__":
    raise SystemExit(main())
