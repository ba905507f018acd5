"""Write with a model of transformers, alone and by Keju."""

from __future__ import annotations

import torch

from keju.types import Request
from tests.hf.tiny import Tiny


def alone(tiny: Tiny, request: Request, limit: int) -> list[int]:
    """Greedy tokens by transformers' own loop, for one prompt."""
    tokens = tiny.tokenizer(request.prompt.text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        generated = tiny.net.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            max_new_tokens=limit,
            do_sample=False,
            pad_token_id=tiny.tokenizer.eos_token_id,
        )
    new: list[int] = generated[0, tokens.shape[1] :].tolist()
    return new


def written(tiny: Tiny, tokens: list[int]) -> str:
    text: str = tiny.tokenizer.decode(
        tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return text
