"""The log-probabilities of continuations on one replica."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import torch

from keju.models.continuations import make_reply, make_score
from keju.models.hf.attention import use_attention
from keju.models.hf.encode import EncodedRequest
from keju.models.hf.forest import (
    ScoredRow,
    ScoredTree,
    attend_forest,
    attend_masked,
    grow_trees,
    pack_forest,
    pack_rows,
)
from keju.models.hf.forms import TOLERANCE, only_full_attention, random_tokens
from keju.models.hf.replica import DeviceReplica, NextTokenScores
from keju.models.hf.scoring import TOO_LARGE, PrefixStore, is_out_of_memory, release, saved_tokens
from keju.models.hf.settings import Reuse
from keju.models.labels import common_length
from keju.types import Fault, Reply, Usage

LEAST_SHARED = 32
"""Number of leading tokens that trees must share so that they are computed once for all."""
KEPT_SHARE = 0.7
"""A tree joins a group only if this share of the group's prefix remains."""
CPU_PLACES = 2048
"""Scored positions of a pass: each needs a number for every token of the vocabulary."""
LOGIT_BYTES = 12
"""Bytes for each of these numbers: as the model gives it, as float32, and of its exponential."""
LOGIT_SHARE = 0.2
"""Share of the free memory that these numbers may use."""

RowScore = tuple[list[float], bool]
"""The log-probabilities of the tokens of a row, and whether all of them are the most likely."""


@dataclass(eq=False)
class _PendingRequest:
    """A request of which some rows are not scored yet."""

    item: EncodedRequest
    missing: int
    values: dict[int, list[float]] = field(default_factory=dict)
    greedy: dict[int, bool] = field(default_factory=dict)
    tokens: int = 0
    cached: int = 0
    fault: Fault | None = None

    def enter(self, tree: ScoredTree, scores: Sequence[RowScore] | Fault, cached: int) -> None:
        """Enter the scores of a tree."""
        self.missing -= 1
        self.tokens += tree.length
        self.cached += cached
        if isinstance(scores, Fault):
            self.fault = scores
            return
        for row, (values, greedy) in zip(tree.rows, scores, strict=True):
            self.values.setdefault(row.number, []).extend(values)
            self.greedy[row.number] = self.greedy.get(row.number, True) and greedy

    def reply(self, seconds: float) -> Reply:
        """Return the reply, when nothing is missing."""
        if self.fault is not None:
            return Reply(seconds=seconds, error=self.fault)
        parts = self.item.request.continuations
        scores = [
            make_score(self.values.get(number, ()), self.greedy.get(number, True))
            for number in range(len(parts))
        ]
        return make_reply(parts, scores, Usage(self.tokens, 0, self.cached), seconds)


class ContinuationScorer:
    """Scores continuations on one replica: in packed trees, in rows after a kept prefix, or each
    by itself."""

    def __init__(
        self, replica: DeviceReplica, form: Reuse, rows: int, tokens: int, store: PrefixStore
    ) -> None:
        self._replica = replica
        self._form = form
        self._rows = rows
        self._tokens = tokens
        self._store = store
        self._places = 0
        """The most scored positions of a pass; 0 before the first one."""

    def run(self, items: Sequence[EncodedRequest]) -> Iterator[list[tuple[EncodedRequest, Reply]]]:
        """Answer `items`, and yield each as soon as all its rows are scored."""
        if not self._places:
            self._prepare()
        owners: dict[int, _PendingRequest] = {}
        for item in items:
            pending = _PendingRequest(item, len(item.trees))
            owners |= {id(tree): pending for tree in item.trees}
        empty = [item for item in items if not item.trees]
        if empty:
            yield [(item, _PendingRequest(item, 0).reply(0.0)) for item in empty]
        for batch in self._batches([tree for item in items for tree in item.trees]):
            started = perf_counter()
            results = self._run_halving(batch)
            seconds = perf_counter() - started
            done = []
            for tree, scores, cached in results:
                pending = owners[id(tree)]
                pending.enter(tree, scores, cached)
                if not pending.missing:
                    done.append((pending.item, pending.reply(seconds)))
            yield done

    def _prepare(self) -> None:
        """Find the size of a pass, and whether trees give what whole texts give."""
        replica = self._replica
        self._places = CPU_PLACES
        if replica.device.type == "cuda":
            vocabulary = replica.net.config.get_text_config().vocab_size
            free, _ = torch.cuda.mem_get_info(replica.device)
            self._places = max(CPU_PLACES, int(free * LOGIT_SHARE) // (vocabulary * LOGIT_BYTES))
        if self._form != "off" and not trees_agree(self):
            self._form = "off"

    @property
    def form(self) -> Reuse:
        """How beginnings are shared."""
        return self._form

    def _batches(self, trees: Sequence[ScoredTree]) -> Iterator[list[ScoredTree]]:
        """Yield the trees of each pass. Rows of one pass are of similar length."""
        if self._form == "off":
            yield from self._cut(sorted(trees, key=lambda tree: tree.length), len)
            return
        groups = group_trees(trees, self._store)
        if self._form == "tree":
            ordered = [tree for group in groups for tree in group]
            yield from self._cut(ordered, lambda _: 0)
            return
        alone = [tree for group in groups if not group[0].shared for tree in group]
        for group in (alone, *(group for group in groups if group[0].shared)):
            yield from self._cut(sorted(group, key=lambda tree: tree.length), len)

    def _cut(
        self, trees: Sequence[ScoredTree], rows_of: Callable[[list[ScoredTree]], int]
    ) -> Iterator[list[ScoredTree]]:
        """Yield trees in batches that stay below the limits of a pass."""
        batch: list[ScoredTree] = []
        tokens = places = 0
        for tree in trees:
            size = tree.length - tree.shared
            full = tokens + size > self._tokens or places + tree.scored > self._places
            if batch and (full or rows_of(batch) >= self._rows):
                yield batch
                batch, tokens, places = [], 0, 0
            batch.append(tree)
            tokens, places = tokens + size, places + tree.scored
        if batch:
            yield batch

    def _run_halving(
        self, trees: Sequence[ScoredTree]
    ) -> list[tuple[ScoredTree, Sequence[RowScore] | Fault, int]]:
        """Run trees together, or halves of them if memory runs out. Later passes are smaller
        then."""
        try:
            scores, cached = self.score(trees)
            return list(zip(trees, scores, cached, strict=True))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        # Outside of the handler, because the error keeps the memory in use.
        if len(trees) == 1:
            return [(trees[0], Fault("bad_request", TOO_LARGE), 0)]
        half = len(trees) // 2
        self._rows = max(1, min(self._rows, half))
        self._tokens = max(1, self._tokens // 2)
        self._store.clear()
        release(self._replica.device)
        return [*self._run_halving(trees[:half]), *self._run_halving(trees[half:])]

    def score(self, trees: Sequence[ScoredTree]) -> tuple[list[list[RowScore]], list[int]]:
        """Return the scores of each tree's rows, and the tokens that it did not compute."""
        if self._form == "off":
            return self._score_apart(trees), [0] * len(trees)
        if self._form == "tree":
            return self._score_packed(trees)
        return self._score_rows(trees)

    def _score_apart(self, trees: Sequence[ScoredTree]) -> list[list[RowScore]]:
        rows = [row for tree in trees for row in tree.rows]
        width = max(len(row.tokens) for row in rows)
        places = [
            [number * width + place for place in range(row.unscored, len(row.tokens))]
            for number, row in enumerate(rows)
        ]
        flat, index = _index(places)
        result = self._replica.run_rows([row.tokens for row in rows], flat)
        scores = iter(self._read(result, rows, index))
        return [[next(scores) for _ in tree.rows] for tree in trees]

    def _score_rows(self, trees: Sequence[ScoredTree]) -> tuple[list[list[RowScore]], list[int]]:
        length, cache, saved = 0, None, [0] * len(trees)
        if all(tree.shared >= 1 for tree in trees):
            shared = self._store.shared_prefix(trees)
            length, cache = shared.length, shared.cache
            saved = saved_tokens(len(trees), length, shared.fresh)
        packed = pack_rows(trees, length, self._replica.device)
        flat, index = _index([row for tree in packed.places for row in tree])
        with use_attention(self._replica.net, attend_masked(packed.mask)):
            result = self._replica.run_trees(packed.tokens, packed.positions, flat, cache, length)
        return self._split(result, trees, index), saved

    def _score_packed(self, trees: Sequence[ScoredTree]) -> tuple[list[list[RowScore]], list[int]]:
        groups = _groups_of(trees)
        packed = pack_forest(groups, self._replica.device)
        flat, index = _index([row for tree in packed.places for row in tree])
        with use_attention(self._replica.net, attend_forest(packed)):
            result = self._replica.run_trees(packed.tokens, packed.positions, flat)
        saved = [
            count
            for group in groups
            for count in saved_tokens(len(group), group[0].shared, fresh=True)
        ]
        return self._split(result, trees, index), saved

    def _split(
        self, result: NextTokenScores, trees: Sequence[ScoredTree], index: Sequence[list[int]]
    ) -> list[list[RowScore]]:
        scores = iter(self._read(result, [row for tree in trees for row in tree.rows], index))
        return [[next(scores) for _ in tree.rows] for tree in trees]

    def _read(
        self, result: NextTokenScores, rows: Sequence[ScoredRow], index: Sequence[list[int]]
    ) -> list[RowScore]:
        """Return the scores of rows, copied from the device in one transfer."""
        device = result.logits.device
        places = torch.tensor([place for row in index for place in row], device=device)
        targets = torch.tensor([token for row in rows for token in row.targets], device=device)
        logits = self._replica.exact_logits(result, places, targets)
        values = logits - result.logits.logsumexp(-1)[places]
        best = (result.logits.argmax(-1)[places] == targets).to(values.dtype)
        flat_values, flat_best = torch.stack((values, best)).tolist()
        scores, start = [], 0
        for row in rows:
            end = start + len(row.targets)
            scores.append((flat_values[start:end], all(flat_best[start:end])))
            start = end
        return scores


def group_trees(trees: Sequence[ScoredTree], store: PrefixStore) -> list[list[ScoredTree]]:
    """Return trees in groups with a common beginning, the length of which each tree notes.

    Neighbours in the order of their tokens share most.
    """
    groups: list[list[ScoredTree]] = []
    length = 0
    for tree in sorted(trees, key=lambda tree: tree.tokens):
        common = 0
        if groups:
            common = min(common_length(groups[-1][0].tokens, tree.tokens), tree.limit)
            common = min(common, groups[-1][0].limit if len(groups[-1]) == 1 else length)
        stays = common >= LEAST_SHARED and (len(groups[-1]) == 1 or common >= KEPT_SHARE * length)
        if stays:
            groups[-1].append(tree)
            length = common
        else:
            _note_shared(groups, length, store)
            groups.append([tree])
            length = 0
    _note_shared(groups, length, store)
    return groups


def _note_shared(groups: list[list[ScoredTree]], length: int, store: PrefixStore) -> None:
    """Note the common beginning of the last group; a single tree may continue a kept prefix."""
    for tree in groups[-1] if groups else ():
        tree.shared = length
        if not length:
            common = min(store.longest_common(tree.tokens), tree.limit)
            tree.shared = common if common >= LEAST_SHARED else 0


def _groups_of(trees: Sequence[ScoredTree]) -> list[list[ScoredTree]]:
    """Return consecutive trees with the same shared beginning together."""
    groups: list[list[ScoredTree]] = []
    for tree in trees:
        length = tree.shared
        leader = groups[-1][0] if groups else None
        if (
            leader is not None
            and length
            and leader.shared == length
            and leader.tokens[:length] == tree.tokens[:length]
        ):
            groups[-1].append(tree)
        else:
            groups.append([tree])
    return groups


def _index(places: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Return all different places, and for each row the indices of its places among them."""
    numbers: dict[int, int] = {}
    index = [[numbers.setdefault(place, len(numbers)) for place in row] for row in places]
    return list(numbers), index


def trees_agree(scorer: ContinuationScorer) -> bool:
    """Whether the trees of a scorer give the log-probabilities of whole texts, on a few tokens."""
    replica = scorer._replica
    if not only_full_attention(replica):
        return False
    prefix = random_tokens(replica, LEAST_SHARED + 8, 0)
    trees = []
    for number in range(2):
        context = [*prefix, *random_tokens(replica, 5 + number, 1 + number)]
        texts = [random_tokens(replica, length, 3 + length) for length in (1, 4, 7)]
        rows = [ScoredRow(place, [*context, *text][:-1], text) for place, text in enumerate(texts)]
        trees += grow_trees(rows)
    for tree in trees:
        tree.shared = len(prefix)
    truth = scorer._score_apart(trees)
    try:
        scores, _ = scorer.score(trees)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return False
    finally:
        scorer._store.clear()
    expected, actual = (
        torch.tensor([value for tree in result for values, _ in tree for value in values])
        for result in (truth, scores)
    )
    difference = (actual - expected).square().mean().sqrt()
    return bool(difference <= TOLERANCE[replica.dtype] * max(1.0, float(expected.std())))
