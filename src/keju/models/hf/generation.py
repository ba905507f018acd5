"""Writes replies: in a batch that is refilled as its rows finish, or one reply at a time if the
network has no cache of keys and values."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch

from keju.answers.segments import as_reply
from keju.models.base import seed_of
from keju.models.hf.encode import EncodedRequest
from keju.models.hf.load import Checkpoint
from keju.models.hf.replica import (
    DeviceReplica,
    GrowingLayer,
    KeysValues,
    NextTokenScores,
    make_cache,
    reserve,
)
from keju.models.hf.scoring import (
    TOO_LARGE,
    PrefixStore,
    SharedPrefix,
    group_by_prefix,
    is_out_of_memory,
    release,
    saved_tokens,
    sort_by_length,
)
from keju.types import Fault, Reply, Request, Sampling, Usage


def random_of(request: Request) -> random.Random:
    """Return a random generator for each request, so that the composition of a batch has no
    effect."""
    seed = seed_of(request)
    return random.Random(f"{seed}:{request.hash}") if seed is not None else random.Random()


def draw(logits: torch.Tensor, sampling: Sampling, chance: Sequence[float]) -> list[int]:
    """Return the next token of each row of `logits`; `chance` holds one number in [0, 1) per row.

    Without a temperature, or at 0, it is the most likely token.
    """
    if not sampling.temperature:
        return list(logits.argmax(-1).tolist())
    shares = torch.softmax(logits / sampling.temperature, -1)
    shares, ids = shares.sort(dim=-1, descending=True, stable=True)
    # Which of the sorted tokens may be drawn; the most likely token always may.
    eligible = torch.ones_like(shares, dtype=torch.bool)
    if sampling.top_p is not None:
        eligible &= shares.cumsum(-1) - shares < sampling.top_p
    top_k, min_p = sampling.extra.get("top_k"), sampling.extra.get("min_p")
    if top_k is not None and top_k > 0:
        eligible[:, top_k:] = False
    if min_p is not None:
        eligible &= shares >= min_p * shares[:, :1]
    eligible[:, 0] = True
    shares = torch.where(eligible, shares, 0.0)
    totals = shares.cumsum(-1)
    thresholds = torch.tensor(chance, device=logits.device, dtype=totals.dtype)[:, None]
    drawn = torch.searchsorted(totals, thresholds * totals[:, -1:], right=True)
    drawn = torch.minimum(drawn, eligible.sum(-1, keepdim=True) - 1)
    return list(ids.gather(-1, drawn)[:, 0].tolist())


@dataclass(eq=False, slots=True)
class ReplyInProgress:
    """One unfinished reply."""

    item: EncodedRequest
    limit: int
    """Tokens it may have."""
    cached: int
    generator: random.Random
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    finish: str = ""
    handed_out: bool = False
    """Whether its reply has been handed out."""

    @property
    def length(self) -> int:
        """Number of its tokens in the cache: all but the one drawn last."""
        return len(self.item.tokens) + len(self.tokens) - 1


class RunningBatch:
    """Rows of different lengths in one batch; shorter ones are padded on the left.

    Rows have no gaps, so distances in the cache equal distances between tokens.
    """

    def __init__(self, device: torch.device) -> None:
        self.rows: list[ReplyInProgress] = []
        self._device = device
        self._cache: Any = None
        self._filled = 0

    def join(self, rows: Sequence[ReplyInProgress], layers: KeysValues) -> None:
        """Add new rows; `layers` hold each one's tokens from the left, then padding."""
        device = layers[0][0].device
        new_width = max(row.length for row in rows)
        missing = new_width - torch.tensor([row.length for row in rows], device=device)
        source = (torch.arange(new_width, device=device) - missing[:, None]).clamp(min=0)

        def align(part: torch.Tensor) -> torch.Tensor:
            """Move every row's tokens to the right end."""
            index = source[:, None, :, None].expand(-1, part.shape[1], -1, part.shape[3])
            return part.gather(2, index)

        aligned_layers = [(align(keys), align(values)) for keys, values in layers]
        if not self.rows:
            self._replace_rows([*rows], aligned_layers, new_width)
            return
        width = max(self._filled, new_width)

        def join(present: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
            """Return both, stacked, with room on the left up to `width` places."""
            pad = torch.nn.functional.pad
            return torch.cat([pad(p, (0, 0, width - p.shape[2], 0)) for p in (present, new)])

        joined_layers = [
            (join(keys, new_keys), join(values, new_values))
            for (keys, values), (new_keys, new_values) in zip(
                self._parts(), aligned_layers, strict=True
            )
        ]
        self._replace_rows([*self.rows, *rows], joined_layers, width)

    def keep(self, rows: Sequence[ReplyInProgress]) -> None:
        """Drop all other rows, and padding that is no longer needed."""
        if len(rows) == len(self.rows):
            return
        if not rows:
            self.rows, self._cache, self._filled = [], None, 0
            return
        kept_ids = {id(row) for row in rows}
        indices = [index for index, row in enumerate(self.rows) if id(row) in kept_ids]
        index = torch.tensor(indices, device=self._device)
        staying = [self.rows[index] for index in indices]
        width = max(row.length for row in staying)
        layers = [
            (k[index, :, self._filled - width :], v[index, :, self._filled - width :])
            for k, v in self._parts()
        ]
        self._replace_rows(staying, layers, width)

    def inputs(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Any]:
        """Return the last tokens, their positions, the mask, and the cache."""
        tokens = torch.tensor([row.tokens[-1] for row in self.rows], device=self._device)
        lengths = torch.tensor([row.length for row in self.rows], device=self._device)
        room = reserve(self._cache, self._filled + 1)
        positions = torch.arange(room, device=self._device)
        mask = (positions >= (self._filled - lengths)[:, None]) & (positions <= self._filled)
        self._filled += 1
        return tokens, lengths, mask, self._cache

    def _parts(self) -> KeysValues:
        return [layer.parts() for layer in self._cache.layers]

    def _replace_rows(self, rows: list[ReplyInProgress], layers: KeysValues, width: int) -> None:
        self.rows, self._filled = rows, width
        self._cache = make_cache(layers, GrowingLayer)


DEFAULT_TOKENS = 2048
"""The token limit of a reply if neither the user nor the protocol sets one."""
LOOK_AGAIN = 8
"""Number of steps after which a batch that is not full looks for new questions."""
REFILL_SHARE = 0.25
"""Share of finished rows at which the batch is rebuilt."""
PREFILL_ROWS = 16

Refill = Callable[[int], Sequence[EncodedRequest]]
Done = Callable[[EncodedRequest, Reply], None]


class TextGenerator:
    """Generates text on one replica."""

    def __init__(
        self,
        replica: DeviceReplica,
        checkpoint: Checkpoint,
        store: PrefixStore,
        *,
        rows: int,
        reuse: bool,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.rows = rows
        """Replies written at once; smaller after memory ran out."""
        self._replica = replica
        self._checkpoint = checkpoint
        self._store = store
        self._reuse = reuse
        self._stopping = stopping

    def run(self, items: Sequence[EncodedRequest], refill: Refill, report_reply: Done) -> None:
        """Write replies to `items` and to the items that `refill` returns, until there are no more.

        All have the same sampling. `report_reply` is called for each item as soon as its reply is
        finished.
        """
        waiting = list(items)
        batch = RunningBatch(self._replica.device)
        steps = 0
        while (waiting or batch.rows) and not self._stopping():
            steps += 1
            try:
                self._fill(batch, waiting, report_reply)
                if batch.rows:
                    self._draw(batch.rows, self._replica.run_step(*batch.inputs()))
                finished = self._finish(batch, report_reply)
                if finished >= REFILL_SHARE * len(batch.rows) or steps % LOOK_AGAIN == 0:
                    batch.keep([row for row in batch.rows if not row.finish])
                    room = self.rows - len(batch.rows) - len(waiting)
                    waiting += refill(room) if room > 0 else ()
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                # Unfinished replies start again, in batches of half the size.
                self._finish(batch, report_reply)
                waiting[:0] = [row.item for row in batch.rows if not row.finish]
                batch.keep([])
                self._store.clear()
                release(self._replica.device)
                if self.rows == 1:
                    report_reply(waiting.pop(0), Reply(error=Fault("bad_request", TOO_LARGE)))
                self.rows = max(1, min(self.rows, len(waiting)) // 2)

    # Taking up questions

    def _fill(self, batch: RunningBatch, waiting: list[EncodedRequest], report_reply: Done) -> None:
        """Read the prompts of waiting questions while there is room for them."""
        while waiting and len(batch.rows) < self.rows:
            room = min(self.rows - len(batch.rows), PREFILL_ROWS)
            items = sort_by_length(group_by_prefix(waiting)[0])[:room]
            self._read_prompts(batch, items)
            # They leave the queue only now, because memory may have run out before.
            batch_ids = {id(item) for item in items}
            waiting[:] = [item for item in waiting if id(item) not in batch_ids]
            self._finish(batch, report_reply)

    def _read_prompts(self, batch: RunningBatch, items: Sequence[EncodedRequest]) -> None:
        """Add `items` to the batch; at the end the memory of the separate prompts is free."""
        start = perf_counter()
        for item in items:
            item.started = start
        shared = SharedPrefix([], 0, fresh=False)
        if self._reuse and min(item.shared for item in items) > 0:
            shared = self._store.shared_prefix(items)
        tails = [item.tokens[shared.length :] for item in items]
        result, layers = self._replica.continue_rows(shared.cache, shared.length, tails, keep=True)
        saved = saved_tokens(len(items), shared.length, shared.fresh)
        rows = [
            ReplyInProgress(item, self._limit(item), cached, random_of(item.request))
            for item, cached in zip(items, saved, strict=True)
        ]
        self._draw(rows, result)
        batch.join(rows, layers)

    def _limit(self, item: EncodedRequest) -> int:
        """Return the most tokens of a reply: the requested limit, within the context."""
        limit = item.request.sampling.max_tokens or DEFAULT_TOKENS
        return min(limit, self._checkpoint.context - len(item.tokens))

    # Going on

    def _draw(self, rows: Sequence[ReplyInProgress], result: NextTokenScores) -> None:
        """Draw the next token of each row and update which rows are finished."""
        sampling = rows[0].item.request.sampling
        tokens = draw(result.logits, sampling, [row.generator.random() for row in rows])
        now = perf_counter()
        for row, token in zip(rows, tokens, strict=True):
            row.tokens.append(token)
            if not row.finish:
                self._update_finish(row, now)

    def _update_finish(self, row: ReplyInProgress, now: float) -> None:
        """Decide whether a row is finished."""
        stops = row.item.request.sampling.stop
        if row.tokens[-1] in self._checkpoint.eos:
            row.finish = "stop"
            row.text = self._decode(row.tokens[:-1])
        elif stops and (cut := self._text_before_stop(row.tokens, stops)) is not None:
            row.finish, row.text = "stop", cut
        elif len(row.tokens) >= row.limit:
            row.finish = "length"
            row.text = self._decode(row.tokens)
        elif now - row.item.started > row.item.timeout:
            row.finish = "timeout"

    def _text_before_stop(self, tokens: list[int], stops: tuple[str, ...]) -> str | None:
        """Return the text before the first stop string; None if there is none.

        A token has at least one byte, so only the last tokens can hold a new stop string.
        """
        window = max(len(stop.encode()) for stop in stops) + 4
        recent = self._decode(tokens[-window:])
        if not any(stop in recent for stop in stops):
            return None
        text = self._decode(tokens)
        ends = [position for position in map(text.find, stops) if position >= 0]
        return text[: min(ends)] if ends else None

    def _decode(self, tokens: list[int]) -> str:
        decode = self._checkpoint.tokenizer.decode
        return str(decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    # Coming to an end

    def _finish(self, batch: RunningBatch, report_reply: Done) -> int:
        """Hand out finished replies; return how many finished rows are still in the batch."""
        finished = [row for row in batch.rows if row.finish]
        for row in finished:
            if not row.handed_out:
                row.handed_out = True
                report_reply(row.item, reply_of(row))
        return len(finished)


def reply_of(row: ReplyInProgress) -> Reply:
    """Return the reply of a finished row."""
    seconds = perf_counter() - row.item.started
    if row.finish == "timeout":
        message = f"no complete reply within {row.item.timeout:g} s"
        return Reply(seconds=seconds, error=Fault("timeout", message))
    usage = Usage(len(row.item.tokens), len(row.tokens), row.cached)
    return as_reply(row.text, finish=row.finish, usage=usage, seconds=seconds)


class TransformersGenerator(TextGenerator):
    """Runs the network through transformers (for state-space and hybrid networks); Keju draws the
    tokens and decides when to stop."""

    def run(self, items: Sequence[EncodedRequest], refill: Refill, report_reply: Done) -> None:
        """Write replies to `items`; no more items are added, because batches would not be
        faster."""
        for item in items:
            if self._stopping():
                return
            try:
                report_reply(item, self._write(item))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                release(self._replica.device)
                report_reply(item, Reply(error=Fault("bad_request", TOO_LARGE)))

    def _write(self, item: EncodedRequest) -> Reply:
        """Return one reply. Keju draws each token and forces transformers to use it."""
        from transformers import LogitsProcessorList, StoppingCriteriaList

        item.started = perf_counter()
        row = ReplyInProgress(item, self._limit(item), 0, random_of(item.request))

        def force(_tokens: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
            """Draw a token and allow no other."""
            (token,) = draw(logits.float(), item.request.sampling, [row.generator.random()])
            row.tokens.append(token)
            self._update_finish(row, perf_counter())
            forced_logits = torch.full_like(logits, -torch.inf)
            forced_logits[:, token] = 0.0
            return forced_logits

        def is_ended(tokens: torch.Tensor, *_: Any) -> torch.Tensor:
            """Whether the reply is complete, for each row of transformers."""
            return torch.tensor([bool(row.finish) or self._stopping()] * len(tokens))

        prompt = torch.tensor([item.tokens], device=self._replica.device)
        with torch.inference_mode():
            self._replica.net.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=row.limit,
                do_sample=False,
                num_beams=1,
                eos_token_id=None,
                pad_token_id=0,
                logits_processor=LogitsProcessorList([force]),
                stopping_criteria=StoppingCriteriaList([is_ended]),
            )
        return reply_of(row)
