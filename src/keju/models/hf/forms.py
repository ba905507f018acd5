"""Finds the ways of sharing a prefix that a checkpoint supports, by trying them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from keju.errors import ConfigError
from keju.models.hf.attention import PrefixBranch, has_kernels
from keju.models.hf.replica import DeviceReplica, GrowingLayer, NextTokenScores, make_cache, reserve
from keju.models.hf.scoring import is_out_of_memory
from keju.models.hf.settings import Reuse

PREFIX_LENGTH = 24
QUESTION_LENGTHS = (7, 3, 12)
TOLERANCE = {torch.float32: 1e-3, torch.float16: 3e-2, torch.bfloat16: 2e-1}
"""Allowed difference of logits (root mean square) as a share of their standard deviation. Rounding
in bfloat16 gives 0.02 to 0.05, and a token that sees too much or too little gives about 1."""
FULL = "full_attention"


def best_form(replica: DeviceReplica, reuse: Reuse) -> Reuse:
    """Return the fastest form with the results of plain passes; raise ConfigError if the requested
    form differs.

    On a device without the kernels the tree computes every masked block, so the cache is better.
    """
    if reuse == "off":
        return "off"
    if reuse != "auto":
        if not form_agrees(replica, reuse):
            raise ConfigError("hf_prefix_reuse", reuse=reuse)
        return reuse
    sample = torch.empty(1, 8, dtype=replica.dtype, device=replica.device)
    forms: tuple[Reuse, ...] = ("tree", "cache") if has_kernels(sample) else ("cache",)
    return next((form for form in forms if form_agrees(replica, form)), "off")


def form_agrees(replica: DeviceReplica, form: Reuse) -> bool:
    """Whether a form gives the logits of plain passes on a few arbitrary tokens."""
    if form == "tree" and not only_full_attention(replica):
        return False
    prefixes = [
        random_tokens(replica, PREFIX_LENGTH, 0),
        random_tokens(replica, PREFIX_LENGTH // 2, 1),
    ]
    questions = [
        [
            random_tokens(replica, length, 2 + number)
            for number, length in enumerate(QUESTION_LENGTHS)
        ]
        for _ in prefixes
    ]
    pairs = list(zip(prefixes, questions, strict=True))
    plain = replica.run_plain(
        [[*prefix, *question] for prefix, group in pairs for question in group]
    )

    def run_form() -> torch.Tensor:
        if form == "tree":
            return replica.run_tree([PrefixBranch(prefix, group) for prefix, group in pairs]).logits
        reads = [
            replica.continue_rows(replica.run_prefix(prefix), len(prefix), group)[0]
            for prefix, group in pairs
        ]
        return torch.cat([result.logits for result in reads])

    return _agree(replica, plain, run_form)


def supports_row_attention(replica: DeviceReplica) -> bool:
    """Whether steps of a running batch may use Keju's attention, which never copies keys."""
    config = replica.net.config.get_text_config()
    if config._attn_implementation != "sdpa" or not only_full_attention(replica):
        return False
    rows = [
        random_tokens(replica, length, number) for number, length in enumerate(QUESTION_LENGTHS)
    ]
    plain = replica.run_plain(rows)

    def run_steps() -> torch.Tensor:
        replica.uses_row_attention = True
        longest = max(map(len, rows)) - 1
        reads = []
        for row in rows:
            _, layers = replica.continue_rows([], 0, [row[:-1]], keep=True)
            cache = make_cache(layers, GrowingLayer)
            room = reserve(cache, longest + 1)
            mask = torch.arange(room, device=replica.device)[None] < len(row)
            last_token = torch.tensor([row[-1]], device=replica.device)
            position = torch.tensor([len(row) - 1], device=replica.device)
            reads.append(replica.run_step(last_token, position, mask, cache).logits)
        return torch.cat(reads)

    try:
        return _agree(replica, plain, run_steps)
    finally:
        replica.uses_row_attention = False


def only_full_attention(replica: DeviceReplica) -> bool:
    """Whether no layer uses a window or chunks.

    The few tokens of a trial would not fill such a window, so a trial cannot detect it.
    """
    config = replica.net.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or ()
    return all(kind == FULL for kind in kinds)


def _agree(
    replica: DeviceReplica, plain: NextTokenScores, trial: Callable[[], torch.Tensor]
) -> bool:
    """Whether a trial gives the logits of a plain pass up to rounding; False if the trial fails."""
    try:
        logits = trial()
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return False
    difference = (logits - plain.logits).square().mean().sqrt()
    return bool(difference <= TOLERANCE[replica.dtype] * plain.logits.std())


def random_tokens(replica: DeviceReplica, count: int, seed: int) -> list[int]:
    """Return arbitrary tokens, the same for the same seed."""
    vocabulary = replica.net.config.get_text_config().vocab_size
    generator = torch.Generator().manual_seed(seed)
    return list(torch.randint(vocabulary, (count,), generator=generator).tolist())
