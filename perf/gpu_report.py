"""What the figures of the GPU benchmark mean: bounds, agreement, and the table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from keju.models.hf.encode import EncodedRequest
from keju.types import Reply

NEAR_TIE = 0.25
"""Labels closer than this may change places: five times the mean error of a log-probability in
bfloat16, as measured against float32 in the same run."""

Values = list[dict[str, float]]


class Measured(NamedTuple):
    """One way to answer all questions."""

    name: str
    seconds: float
    tokens: int
    """Tokens that went through the network."""
    values: Values
    every_head: bool = False
    """Whether the output head was computed for every token, not for the last ones alone."""


def values_of(replies: Sequence[Reply]) -> Values:
    faults = [reply.error for reply in replies if reply.error is not None]
    assert not faults, faults[0]
    return [reply.label_logprobs or {} for reply in replies]


def flop(config: Any, items: Sequence[EncodedRequest], tokens: int, heads: int) -> float:
    """Operations of the products: projections for every token, attention over what it sees."""
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    attention = config.num_attention_heads * head_dim
    key_value_size = config.num_key_value_heads * head_dim
    layer = config.hidden_size * (2 * attention + 2 * key_value_size + 3 * config.intermediate_size)
    mean_context = statistics.mean(len(item.tokens) for item in items) / 2
    per_token: float = config.num_hidden_layers * (2 * layer + 4 * mean_context * attention)
    return float(tokens * per_token + heads * 2 * config.hidden_size * config.vocab_size)


def show(
    ways: Sequence[Measured], items: Sequence[EncodedRequest], net: Any, ceilings: dict[str, float]
) -> dict[str, Any]:
    """Print one line a way, against the first of them; return the figures.

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
        heads = way.tokens if way.every_head else len(items)
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


def agreement(values: Values, reference: Values) -> tuple[float, float, int]:
    """Share of equal labels; of the different ones the widest margin, and how many are no tie."""
    margins = []
    for value, reference_value in zip(values, reference, strict=True):
        label, reference_label = (
            max(value, key=value.__getitem__),
            max(reference_value, key=reference_value.__getitem__),
        )
        if label != reference_label:
            margins.append(
                max(
                    value[label] - value[reference_label],
                    reference_value[reference_label] - reference_value[label],
                )
            )
    beyond = sum(margin > NEAR_TIE for margin in margins)
    return 1 - len(margins) / len(values), max(margins, default=0.0), beyond
