"""Writing replies: a batch that is refilled as its rows finish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from keju.answers.thinking import split_thinking
from keju.models.hf.encode import Item
from keju.models.hf.memory import TOO_LARGE, is_out_of_memory, release
from keju.models.hf.prefixes import PrefixStore, by_prefix
from keju.models.hf.replica import Read, Replica
from keju.models.hf.running import Row, RunningBatch
from keju.models.hf.sampling import dice, draw
from keju.types import Fault, Reply, Usage

DEFAULT_TOKENS = 2048
"""The longest reply where neither the user nor the protocol sets a limit."""
LOOK_AGAIN = 8
"""Steps after which a batch that is not full looks for new questions."""
REFILL_SHARE = 0.25
"""Share of finished rows at which the batch is made up anew."""
PREFILL_ROWS = 16

Refill = Callable[[int], Sequence[Item]]
Done = Callable[[Item, Reply], None]


class Writer:
    """Generates text on one replica."""

    def __init__(
        self,
        replica: Replica,
        tokenizer: Any,
        store: PrefixStore,
        *,
        eos: frozenset[int],
        context: int,
        rows: int,
        reuse: bool,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.rows = rows
        """Replies written at once; smaller after memory ran out."""
        self._replica = replica
        self._tokenizer = tokenizer
        self._store = store
        self._eos = eos
        self._context = context
        self._reuse = reuse
        self._stopping = stopping

    def run(self, items: Sequence[Item], refill: Refill, done: Done) -> None:
        """Write replies to `items` and to whatever `refill` gives, until there is no more.

        All have the same sampling. `done` is called for each as soon as it is finished.
        """
        waiting = list(items)
        batch = RunningBatch(self._replica.device)
        steps = 0
        while (waiting or batch.rows) and not self._stopping():
            steps += 1
            try:
                self._fill(batch, waiting, done)
                if batch.rows:
                    self._step(batch)
                finished = self._finish(batch, done)
                if finished >= REFILL_SHARE * len(batch.rows) or steps % LOOK_AGAIN == 0:
                    batch.keep([row for row in batch.rows if not row.finish])
                    room = self.rows - len(batch.rows) - len(waiting)
                    waiting += refill(room) if room > 0 else ()
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self._shrink(batch, waiting, done)

    # Taking up questions

    def _fill(self, batch: RunningBatch, waiting: list[Item], done: Done) -> None:
        """Read the prompts of waiting questions as far as there is room for them."""
        while waiting and len(batch.rows) < self.rows:
            room = min(self.rows - len(batch.rows), PREFILL_ROWS)
            group = by_prefix(waiting)[0]
            chosen = sorted(group, key=lambda item: len(item.tokens))[:room]
            self._read_prompts(batch, chosen)
            taken = {id(item) for item in chosen}
            waiting[:] = [item for item in waiting if id(item) not in taken]
            self._finish(batch, done)

    def _read_prompts(self, batch: RunningBatch, items: Sequence[Item]) -> None:
        start = perf_counter()
        for item in items:
            item.started = start
        length, cached, prefix = 0, [0] * len(items), []
        if self._reuse and min(item.shared for item in items) > 0:
            shared = self._store.share(items)
            prefix, length = shared.cache, shared.length
            cached = [length if number or not shared.fresh else 0 for number in range(len(items))]
        tails = [item.tokens[length:] for item in items]
        read, layers = self._replica.after(prefix, length, tails, keep=True)
        rows = [
            Row(item, self._limit(item), saved, dice(item.request))
            for item, saved in zip(items, cached, strict=True)
        ]
        self._draw(rows, read)
        batch.join(rows, layers)

    def _limit(self, item: Item) -> int:
        asked = item.request.sampling.max_tokens or DEFAULT_TOKENS
        return min(asked, self._context - len(item.tokens))

    # Going on

    def _step(self, batch: RunningBatch) -> None:
        self._draw(batch.rows, self._replica.step(*batch.inputs()))

    def _draw(self, rows: Sequence[Row], read: Read) -> None:
        sampling = rows[0].item.request.sampling
        tokens = draw(read.logits, sampling, [row.dice.random() for row in rows])
        now = perf_counter()
        for row, token in zip(rows, tokens, strict=True):
            row.written.append(token)
            if not row.finish:
                self._look(row, now)

    def _look(self, row: Row, now: float) -> None:
        """Decide whether a row is finished."""
        stops = row.item.request.sampling.stop
        if row.written[-1] in self._eos:
            row.finish = "stop"
            row.text = self._decode(row.written[:-1])
        elif stops and (cut := self._stopped(row.written, stops)) is not None:
            row.finish, row.text = "stop", cut
        elif len(row.written) >= row.limit:
            row.finish = "length"
            row.text = self._decode(row.written)
        elif now - row.item.started > row.item.timeout:
            row.finish = "timeout"

    def _stopped(self, written: list[int], stops: tuple[str, ...]) -> str | None:
        """The text before the first stop string; None while there is none.

        A token has at least one byte, so only so many of the last ones can hold a new stop string.
        """
        window = max(len(stop.encode()) for stop in stops) + 4
        recent = self._decode(written[-window:])
        if not any(stop in recent for stop in stops):
            return None
        text = self._decode(written)
        ends = [place for place in map(text.find, stops) if place >= 0]
        return text[: min(ends)] if ends else None

    def _decode(self, tokens: list[int]) -> str:
        text: str = self._tokenizer.decode(
            tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text

    # Coming to an end

    def _finish(self, batch: RunningBatch, done: Done) -> int:
        """Hand out what is finished; return how many finished rows the batch still carries."""
        finished = [row for row in batch.rows if row.finish]
        for row in finished:
            if not row.told:
                row.told = True
                done(row.item, reply_of(row))
        return len(finished)

    def _shrink(self, batch: RunningBatch, waiting: list[Item], done: Done) -> None:
        """After memory ran out: begin what was under way again, in batches of half the size."""
        self._finish(batch, done)
        waiting[:0] = [row.item for row in batch.rows if not row.finish]
        batch.keep([])
        self._store.clear()
        release(self._replica.device)
        if self.rows == 1:
            done(waiting.pop(0), Reply(error=Fault("bad_request", TOO_LARGE)))
        self.rows = max(1, min(self.rows, len(waiting)) // 2)


def reply_of(row: Row) -> Reply:
    """The reply of a finished row."""
    seconds = perf_counter() - row.item.started
    if row.finish == "timeout":
        message = f"no complete reply within {row.item.timeout:g} s"
        return Reply(seconds=seconds, error=Fault("timeout", message))
    thought = split_thinking(row.text)
    return Reply(
        text=thought.text,
        reasoning=thought.reasoning,
        finish=row.finish,
        usage=Usage(len(row.item.tokens), len(row.written), row.cached),
        seconds=seconds,
        raw=row.text if thought.text is not row.text else "",
    )
