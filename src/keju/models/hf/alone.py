"""Writing replies one at a time, for networks whose memory is no cache of keys and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import torch

from keju.models.hf.encode import Item
from keju.models.hf.generating import Done, Refill, Writer, reply_of
from keju.models.hf.memory import TOO_LARGE, is_out_of_memory, release
from keju.models.hf.running import Row
from keju.models.hf.sampling import dice, draw
from keju.types import Fault, Reply


class LoneWriter(Writer):
    """Lets transformers run the network (state-space and hybrid ones); draws and ends by itself."""

    def run(self, items: Sequence[Item], refill: Refill, done: Done) -> None:
        """Write replies to `items`; more are not taken up, since nothing is gained by it."""
        for item in items:
            if self._stopping():
                return
            try:
                done(item, self._write(item))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                release(self._replica.device)
                done(item, Reply(error=Fault("bad_request", TOO_LARGE)))

    def _write(self, item: Item) -> Reply:
        item.started = perf_counter()
        row = Row(item, self._limit(item), 0, dice(item.request))

        def force(_tokens: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
            """Draw a token and leave transformers no other."""
            (token,) = draw(logits.float(), item.request.sampling, [row.dice.random()])
            row.written.append(token)
            self._look(row, perf_counter())
            only = torch.full_like(logits, -torch.inf)
            only[:, token] = 0.0
            return only

        def ended(tokens: torch.Tensor, *_: Any) -> torch.Tensor:
            return torch.tensor([bool(row.finish) or self._stopping()] * len(tokens))

        self._generate(item.tokens, row.limit, force, ended)
        return reply_of(row)

    def _generate(
        self,
        tokens: Sequence[int],
        limit: int,
        force: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        ended: Callable[..., torch.Tensor],
    ) -> None:
        from transformers import LogitsProcessorList, StoppingCriteriaList

        prompt = torch.tensor([list(tokens)], device=self._replica.device)
        with torch.inference_mode():
            self._replica.net.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=limit,
                do_sample=False,
                num_beams=1,
                eos_token_id=None,
                pad_token_id=0,
                logits_processor=LogitsProcessorList([force]),
                stopping_criteria=StoppingCriteriaList([ended]),
            )
