"""The method of lm-eval's ``hf`` backend, written down to be measured against.

One forward pass a question with its whole prompt, batches of equal size after sorting by length
(longest first), padded on the right, the output head and a log-softmax over every position, and
the label values read off one by one (lm-evaluation-harness 0.4, `HFLM._loglikelihood_tokens`; a
question's one-token continuations share a pass there too). It is its method, not its code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from keju.models.hf.encode import Item

NAME = "lm-eval's method"
BATCH_SIZES = (32, 64)
"""The best of these counts for the peer."""


def run(net: Any, items: Sequence[Item], batch_size: int) -> list[dict[str, float]]:
    """The label values of every item, in their order."""
    order = sorted(range(len(items)), key=lambda place: -len(items[place].tokens))
    values: dict[int, dict[str, float]] = {}
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        longest = max(len(items[place].tokens) for place in places)
        rows = [[*items[p].tokens, *[0] * (longest - len(items[p].tokens))] for p in places]
        with torch.no_grad():
            logits = net(torch.tensor(rows, device=net.device)).logits
            logs = torch.nn.functional.log_softmax(logits, dim=-1)
        for row, place in enumerate(places):
            item = items[place]
            last = logs[row, len(item.tokens) - 1]
            values[place] = {label: float(last[ids[0]]) for label, ids in item.labels.items()}
        del logits, logs
    return [values[place] for place in range(len(items))]
