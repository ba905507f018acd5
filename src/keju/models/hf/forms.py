"""Which ways of sharing a prefix a checkpoint allows, found out by trying them."""

from __future__ import annotations

import torch

from keju.errors import ConfigError
from keju.models.hf.memory import is_out_of_memory
from keju.models.hf.replica import Read, Replica
from keju.models.hf.settings import Reuse
from keju.models.hf.tree import Branch, has_kernels

PREFIX_LENGTH = 24
QUESTION_LENGTHS = (7, 3, 12)
TOLERANCE = {torch.float32: 1e-3, torch.float16: 3e-2, torch.bfloat16: 2e-1}
"""Allowed difference of logits (root mean square) as a share of their spread. Rounding in
bfloat16 gives 0.02 to 0.05, a token that sees too much or too little about 1."""
FULL = "full_attention"


def best_form(replica: Replica, asked: Reuse) -> Reuse:
    """The fastest form that gives what plain passes give; ConfigError if the asked one does not.

    On a device without the kernels the tree computes every masked block, so the cache is better.
    """
    if asked == "off":
        return "off"
    if asked != "auto":
        if not agrees(replica, asked):
            raise ConfigError(
                f"model_args: prefix_reuse '{asked}' gives other results than whole prompts with "
                "this architecture: leave it out, or take 'off'"
            )
        return asked
    sample = torch.empty(1, 8, dtype=replica.dtype, device=replica.device)
    forms: tuple[Reuse, ...] = ("tree", "cache") if has_kernels(sample) else ("cache",)
    return next((form for form in forms if agrees(replica, form)), "off")


def agrees(replica: Replica, form: Reuse) -> bool:
    """Whether a form gives the logits of plain passes on a few arbitrary tokens.

    A window or chunk that these tokens do not fill would not show: the tree has neither, so
    layers that are not of full attention rule it out.
    """
    config = replica.net.config.get_text_config()
    layers = getattr(config, "layer_types", None) or ()
    if form == "tree" and any(kind != FULL for kind in layers):
        return False
    vocabulary = config.vocab_size
    dice = torch.Generator().manual_seed(0)

    def tokens(count: int) -> list[int]:
        drawn: list[int] = torch.randint(vocabulary, (count,), generator=dice).tolist()
        return drawn

    prefixes = [tokens(PREFIX_LENGTH), tokens(PREFIX_LENGTH // 2)]
    questions = [[tokens(length) for length in QUESTION_LENGTHS] for _ in prefixes]
    rows = [[*p, *q] for p, own in zip(prefixes, questions, strict=True) for q in own]
    plain = replica.plain(rows).logits
    try:
        if form == "tree":
            branches = [Branch(p, own) for p, own in zip(prefixes, questions, strict=True)]
            shared = replica.tree(branches).logits
        else:
            shared = torch.cat(
                [
                    _cached(replica, p, own).logits
                    for p, own in zip(prefixes, questions, strict=True)
                ]
            )
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return False
    off = (shared - plain).square().mean().sqrt()
    return bool(off <= TOLERANCE[replica.dtype] * plain.std())


def _cached(replica: Replica, prefix: list[int], questions: list[list[int]]) -> Read:
    read, _ = replica.after(replica.prefix(prefix), len(prefix), questions)
    return read
