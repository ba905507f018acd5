"""What Keju is measured against on a GPU: lm-eval's ``hf`` backend, and its method by itself."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from keju.models.hf.encode import EncodedRequest
from keju.models.hf.load import Checkpoint
from keju.types import Request
from perf.gpu_report import Values

BATCH_SIZES = (32, 64)
"""The best of these counts for the peer."""


class PeerTool(NamedTuple):
    """Somebody else's way to answer the same questions."""

    name: str
    tokens: int
    """That all questions together are long."""
    answer: Callable[[int, int | None], Values]
    """With a batch size, for the first so many questions (None: all)."""


def peers(
    checkpoint: Checkpoint, items: Sequence[EncodedRequest], requests: Sequence[Request]
) -> list[PeerTool]:
    """The real tool where it is installed, and its method where tokens are already there."""
    tokens = sum(len(item.tokens) for item in items)
    net = checkpoint.net
    tools = [
        PeerTool(
            "lm-eval's method", tokens, lambda size, count: by_method(net, items[:count], size)
        )
    ]
    if importlib.util.find_spec("lm_eval") is not None:
        name = f"lm-eval {importlib.metadata.version('lm_eval')}"
        tools.append(
            PeerTool(
                name, tokens, lambda size, count: by_lm_eval(checkpoint, requests[:count], size)
            )
        )
    return tools


def by_lm_eval(checkpoint: Checkpoint, requests: Sequence[Request], batch_size: int) -> Values:
    """Through `HFLM.loglikelihood`, tokenising included, as a run of ``lm_eval`` does it."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    peer = HFLM(pretrained=checkpoint.net, tokenizer=checkpoint.tokenizer, batch_size=batch_size)
    instances = [
        Instance("loglikelihood", {}, (request.prompt.text, label), place)
        for request in requests
        for place, label in enumerate(request.labels)
    ]
    scores = iter(peer.loglikelihood(instances, disable_tqdm=True))
    return [{label: next(scores)[0] for label in request.labels} for request in requests]


def write_by_lm_eval(
    checkpoint: Checkpoint, requests: Sequence[Request], batch_size: int, tokens: int
) -> int:
    """Through `HFLM.generate_until`, greedily; return how many tokens it was asked for, at most."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    peer = HFLM(pretrained=checkpoint.net, tokenizer=checkpoint.tokenizer, batch_size=batch_size)
    instances = [
        Instance(
            "generate_until",
            {},
            (request.prompt.text, {"until": [], "max_gen_toks": tokens, "do_sample": False}),
            0,
        )
        for request in requests
    ]
    texts = peer.generate_until(instances, disable_tqdm=True)
    return tokens * len(texts)


def by_method(net: Any, items: Sequence[EncodedRequest], batch_size: int) -> Values:
    """Its method, written down anew: the label values of every item, in their order.

    One forward pass a question with its whole prompt, batches of equal size after sorting by
    length (longest first), padded on the right, the output head and a log-softmax over every
    position, and the label values read off one by one (lm-evaluation-harness 0.4,
    `HFLM._loglikelihood_tokens`; a question's one-token continuations share a pass there too).
    """
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
            last_logs = logs[row, len(item.tokens) - 1]
            values[place] = {label: float(last_logs[ids[0]]) for label, ids in item.labels.items()}
        del logits, logs
    return [values[place] for place in range(len(items))]
