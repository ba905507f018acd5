"""Trees of texts that share their beginnings, packed into one sequence or into one row each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from keju.models.hf.attention import Attend, SegmentBounds, flash_segments, has_kernels
from keju.models.labels import common_length


@dataclass(frozen=True)
class ScoredRow:
    """The tokens that a model reads to score a continuation, and the tokens that it scores."""

    number: int
    """The index of the continuation in its request."""
    tokens: list[int]
    targets: list[int]
    """The token after each of the last tokens."""

    @property
    def unscored(self) -> int:
        """The number of tokens before the first one whose next token is scored."""
        return len(self.tokens) - len(self.targets)


@dataclass(eq=False)
class ScoredTree:
    """Rows with a common beginning: a trunk, and a branch for each row, which may be empty."""

    rows: list[ScoredRow]
    tokens: list[int]
    """The trunk."""
    shared: int = 0
    """Number of leading tokens of the trunk that other trees share."""
    branches: list[Sequence[int]] = field(default_factory=list)

    @property
    def limit(self) -> int:
        """The most leading tokens that a shared prefix may have. A token of the trunk must
        remain, and all positions that are scored."""
        return min(len(self.tokens) - 1, *(row.unscored for row in self.rows))

    @property
    def length(self) -> int:
        """The number of its tokens."""
        return len(self.tokens) + sum(map(len, self.branches))

    @property
    def scored(self) -> int:
        """The number of tokens that are scored."""
        return sum(len(row.targets) for row in self.rows)

    def places(self, start: int, starts: Sequence[int]) -> list[list[int]]:
        """Return for each row the index of every position that is scored.

        `start` is the index of the first token of the trunk in the pass, and `starts` are those of
        the branches.
        """
        trunk = len(self.tokens)
        return [
            [
                start + place if place < trunk else branch_start + place - trunk
                for place in range(row.unscored, len(row.tokens))
            ]
            for row, branch_start in zip(self.rows, starts, strict=True)
        ]


def grow_trees(rows: Sequence[ScoredRow]) -> list[ScoredTree]:
    """Return rows as trees. A row joins a tree if fewer tokens are computed then."""
    trees: list[ScoredTree] = []
    for row in rows:
        for tree in trees:
            common = common_length(row.tokens, tree.tokens)
            lost = (len(tree.tokens) - common) * (len(tree.rows) - 1)
            if common > lost:
                tree.rows.append(row)
                tree.tokens = tree.tokens[:common]
                break
        else:
            trees.append(ScoredTree([row], row.tokens))
    for tree in trees:
        tree.branches = [row.tokens[len(tree.tokens) :] for row in tree.rows]
    return trees


@dataclass(frozen=True)
class LevelReach:
    """The part of a higher level of their trees that the tokens of one level see."""

    asking: slice
    seen: slice
    queries: SegmentBounds
    """The asking tokens below each node of the higher level together."""
    keys: SegmentBounds


@dataclass(frozen=True)
class PackedForest:
    """One pass over trees of at most three levels: prefixes, trunks, branches."""

    tokens: torch.Tensor
    positions: torch.Tensor
    places: list[list[list[int]]]
    """For each tree and row: the indices of the positions that are scored."""
    segments: SegmentBounds
    """All nodes; each token sees the earlier ones of its node."""
    reaches: tuple[LevelReach, ...]
    lengths: tuple[int, ...]
    parents: tuple[int, ...]
    """For each node the number of its parent, or -1."""


@dataclass(eq=False)
class _Node:
    tokens: Sequence[int]
    position: int
    parent: int
    """The number of its parent in the level above."""


def pack_forest(groups: Sequence[Sequence[ScoredTree]], device: torch.device) -> PackedForest:
    """Lay trees out as one sequence, level by level. The trees of a group share their prefix."""
    levels: list[list[_Node]] = [[], [], []]
    trunks: list[tuple[ScoredTree, int, int]] = []
    """Each tree with the level of its trunk and its number there."""
    for group in groups:
        shared = group[0].shared
        if shared:
            levels[0].append(_Node(group[0].tokens[:shared], 0, -1))
        for tree in group:
            level = 1 if shared else 0
            parent = len(levels[0]) - 1 if shared else -1
            levels[level].append(_Node(tree.tokens[shared:], shared, parent))
            trunks.append((tree, level, len(levels[level]) - 1))
    grown: dict[int, list[tuple[int, int]]] = {}
    for level in (1, 0):  # branches of a trunk are one level below it, in the order of the trunks
        for number, (tree, trunk_level, trunk) in enumerate(trunks):
            if trunk_level == level:
                below = levels[level + 1]
                grown[number] = []
                for branch in tree.branches:
                    grown[number].append((level + 1, len(below)))
                    if branch:
                        below.append(_Node(branch, len(tree.tokens), trunk))
    return _lay_out(levels, trunks, grown, device)


def _lay_out(
    levels: list[list[_Node]],
    trunks: Sequence[tuple[ScoredTree, int, int]],
    grown: dict[int, list[tuple[int, int]]],
    device: torch.device,
) -> PackedForest:
    """Return the pass of nodes by level. The children of a node must follow one another."""
    order = [_sorted_by_parent(level) for level in levels]
    for depth in (1, 2):
        new = {old: place for place, old in enumerate(order[depth - 1])}
        for node in levels[depth]:
            node.parent = new[node.parent]
        order[depth] = _sorted_by_parent(levels[depth])
    sorted_levels = [
        [level[old] for old in places] for level, places in zip(levels, order, strict=True)
    ]
    nodes = [node for level in sorted_levels for node in level]
    ends = [0, *itertools.accumulate(len(node.tokens) for node in nodes)]
    firsts = [0, *itertools.accumulate(map(len, sorted_levels))]
    starts = [
        {old: ends[firsts[depth] + place] for place, old in enumerate(places)}
        for depth, places in enumerate(order)
    ]
    places = [
        tree.places(
            starts[level][trunk] - tree.shared,
            [starts[depth].get(branch, 0) for depth, branch in grown[number]],
        )
        for number, (tree, level, trunk) in enumerate(trunks)
    ]
    tokens = list(itertools.chain.from_iterable(node.tokens for node in nodes))
    positions = list(
        itertools.chain.from_iterable(
            range(node.position, node.position + len(node.tokens)) for node in nodes
        )
    )
    lengths = [len(node.tokens) for node in nodes]
    return PackedForest(
        tokens=torch.tensor(tokens).to(device, non_blocking=True)[None],
        positions=torch.tensor(positions).to(device, non_blocking=True)[None],
        places=places,
        segments=SegmentBounds.of(lengths, device),
        reaches=tuple(_find_reaches(sorted_levels, device)),
        lengths=tuple(lengths),
        parents=tuple(
            -1 if node.parent < 0 else firsts[depth - 1] + node.parent
            for depth, level in enumerate(sorted_levels)
            for node in level
        ),
    )


def _sorted_by_parent(level: Sequence[_Node]) -> list[int]:
    return sorted(range(len(level)), key=lambda number: level[number].parent)


def _find_reaches(levels: Sequence[Sequence[_Node]], device: torch.device) -> list[LevelReach]:
    """Return what each level sees of the levels above it."""
    counts = [[len(node.tokens) for node in level] for level in levels]
    bounds = [0, *itertools.accumulate(map(sum, counts))]
    reaches = []
    for depth in (1, 2):
        # The tokens of this level below each node of a level above it, for one level at a time.
        ancestors, above = [node.parent for node in levels[depth]], depth - 1
        while above >= 0 and ancestors:
            asking = [0] * len(levels[above])
            for ancestor, count in zip(ancestors, counts[depth], strict=True):
                asking[ancestor] += count
            if -1 in ancestors:
                break
            reaches.append(
                LevelReach(
                    slice(bounds[depth], bounds[depth + 1]),
                    slice(bounds[above], bounds[above + 1]),
                    SegmentBounds.of(asking, device),
                    SegmentBounds.of(counts[above], device),
                )
            )
            ancestors = [levels[above][ancestor].parent for ancestor in ancestors]
            above -= 1
    return reaches


def forest_mask(packed: PackedForest) -> torch.Tensor:
    """Return which token sees which as a full matrix, for devices without the kernels."""
    lengths = torch.tensor(packed.lengths)
    node = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    sees = torch.eye(len(lengths), dtype=torch.bool)
    for number, parent in enumerate(packed.parents):  # parents precede their children
        if parent >= 0:
            sees[number] |= sees[parent]
    position = torch.arange(len(node))
    earlier = position <= position[:, None]
    return (sees[node][:, node] & earlier).to(packed.tokens.device)


def attend_forest(packed: PackedForest) -> Attend:
    """Return the attention of packed trees."""
    masks: list[torch.Tensor] = []

    def attend(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float | None
    ) -> torch.Tensor:
        if has_kernels(query):
            q, k, v = (part[0].transpose(0, 1) for part in (query, key, value))
            return attend_levels(q, k, v, packed, scaling).transpose(0, 1)[None]
        if not masks:
            masks.append(forest_mask(packed))
        return attend_masked(masks[0])(query, key, value, scaling)

    return attend


def attend_masked(mask: torch.Tensor) -> Attend:
    """Return the attention in which `mask` marks what each token sees."""

    def attend(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float | None
    ) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            scale=scaling,
            enable_gqa=query.shape[1] != key.shape[1],
        )

    return attend


def attend_levels(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    packed: PackedForest,
    scaling: float | None,
) -> torch.Tensor:
    """Return the attention of packed trees; tensors are (tokens, heads, dimension).

    What a token sees in its own node and in each node above is computed apart and added up by
    weights in float32.
    """
    out, weight = flash_segments(
        query, key, value, packed.segments, packed.segments, scaling, causal=True
    )
    for reach in packed.reaches:
        over, over_weight = flash_segments(
            query[reach.asking],
            key[reach.seen],
            value[reach.seen],
            reach.queries,
            reach.keys,
            scaling,
        )
        own_weight = weight[:, reach.asking]
        share = torch.sigmoid(over_weight - own_weight).T[..., None]
        combined = over * share
        combined.addcmul_(out[reach.asking], 1 - share)
        out[reach.asking] = combined
        weight[:, reach.asking] = torch.logaddexp(own_weight, over_weight)
    return out


@dataclass(frozen=True)
class PackedRows:
    """One pass with a row for each tree, after a kept prefix of all of them."""

    tokens: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    """(rows, 1, tokens, prefix and tokens): what each token sees."""
    places: list[list[list[int]]]


def pack_rows(trees: Sequence[ScoredTree], length: int, device: torch.device) -> PackedRows:
    """Lay trees out in rows without the first `length` tokens, which are in the kept prefix."""
    width = max(tree.length for tree in trees) - length
    tokens = torch.zeros(len(trees), width, dtype=torch.long)
    positions = torch.zeros(len(trees), width, dtype=torch.long)
    mask = torch.eye(width, dtype=torch.bool).repeat(len(trees), 1, 1)
    places = []
    for row, tree in enumerate(trees):
        trunk = len(tree.tokens) - length
        starts, end = [], trunk
        for branch in tree.branches:
            starts.append(row * width + end)
            end += len(branch)
        flat = [*tree.tokens[length:], *itertools.chain.from_iterable(tree.branches)]
        tokens[row, :end] = torch.tensor(flat)
        positions[row, :trunk] = torch.arange(length, len(tree.tokens))
        mask[row, :trunk, :trunk] = torch.ones(trunk, trunk, dtype=torch.bool).tril()
        mask[row, trunk:end, :trunk] = True
        for branch, start in zip(tree.branches, starts, strict=True):
            place, size = start - row * width, len(branch)
            positions[row, place : place + size] = torch.arange(size) + len(tree.tokens)
            mask[row, place : place + size, place : place + size] = torch.ones(
                size, size, dtype=torch.bool
            ).tril()
        places.append(tree.places(row * width - length, starts))
    seen_prefix = torch.ones(len(trees), width, length, dtype=torch.bool)
    return PackedRows(
        tokens=tokens.to(device),
        positions=positions.to(device),
        mask=torch.cat([seen_prefix, mask], dim=-1)[:, None].to(device),
        places=places,
    )
