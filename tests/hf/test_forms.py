"""A shared prefix computed once gives what whole prompts give."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-hf")
pytest.importorskip("transformers", reason="transformers is not installed: make test-hf")

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AttentionInterface

from keju.errors import ConfigError
from keju.models.hf import attention, forms
from keju.models.hf.attention import (
    PackedPass,
    PrefixBranch,
    SegmentBounds,
    attend_in_parts,
    attend_rows,
    dense_mask,
    pack,
    use_attention,
)
from keju.models.hf.forms import best_form, form_agrees, supports_row_attention
from keju.models.hf.replica import DeviceReplica, NextTokenScores
from tests.hf.tiny import Tiny, build

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")
TOKENS = st.lists(st.integers(5, 449), min_size=1, max_size=9)
BRANCHES = st.lists(
    st.tuples(TOKENS, st.lists(TOKENS, min_size=1, max_size=4)), min_size=1, max_size=3
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(prefixes_and_questions=BRANCHES)
def test_tree_and_cache_equal_whole_prompts(
    tiny: Tiny, prefixes_and_questions: list[tuple[list[int], list[list[int]]]]
) -> None:
    replica = DeviceReplica(tiny.net, CPU)
    branches = [PrefixBranch(prefix, questions) for prefix, questions in prefixes_and_questions]
    rows = [[*b.prefix, *q] for b in branches for q in b.questions]
    plain = replica.run_plain(rows).logits
    cached = [
        replica.continue_rows(replica.run_prefix(b.prefix), len(b.prefix), b.questions)[0].logits
        for b in branches
    ]
    torch.testing.assert_close(replica.run_tree(branches).logits, plain, atol=2e-4, rtol=1e-4)
    torch.testing.assert_close(torch.cat(cached), plain, atol=2e-4, rtol=1e-4)
    replica.close()


def test_whole_prompts_are_what_the_network_itself_gives(tiny: Tiny) -> None:
    rows = [[7, 8, 9, 10], [11, 12], [13, 14, 15, 16, 17, 18]]
    with torch.no_grad():
        truth = torch.stack([tiny.net(torch.tensor([row])).logits[0, -1] for row in rows])
    replica = DeviceReplica(tiny.net, CPU)
    torch.testing.assert_close(replica.run_plain(rows).logits, truth, atol=2e-4, rtol=1e-4)
    replica.close()
    with torch.no_grad():
        assert tiny.net(torch.tensor([rows[0]])).logits.shape[1] == 4


def test_a_kept_prefix_serves_questions_that_share_less_of_it(tiny: Tiny) -> None:
    replica = DeviceReplica(tiny.net, CPU)
    prefix_cache = replica.run_prefix([7, 8, 9, 10, 11])
    read, _ = replica.continue_rows(prefix_cache, 3, [[20, 21], [22]])
    plain = replica.run_plain([[7, 8, 9, 20, 21], [7, 8, 9, 22]])
    torch.testing.assert_close(read.logits, plain.logits, atol=2e-4, rtol=1e-4)
    replica.close()


def test_positions_and_mask_of_a_packed_tree() -> None:
    packed = pack([PrefixBranch([1, 2], [[3], [4, 5]]), PrefixBranch([6], [[7]])], CPU)
    assert packed.tokens.tolist() == [[1, 2, 6, 3, 4, 5, 7]]
    assert packed.positions.tolist() == [[0, 1, 0, 2, 2, 3, 1]]
    assert packed.last_positions.tolist() == [3, 5, 6]
    sees = [
        [place for place, is_visible in enumerate(row) if is_visible]
        for row in dense_mask(packed).tolist()
    ]
    assert sees == [[0], [0, 1], [2], [0, 1, 3], [0, 1, 4], [0, 1, 4, 5], [2, 6]]


def reference_flash(
    query: Any,
    key: Any,
    value: Any,
    asking: SegmentBounds,
    key_bounds: SegmentBounds,
    scaling: float | None,
    *,
    causal: bool = False,
) -> tuple[Any, Any]:
    """What the kernel computes, segment by segment in plain arithmetic."""
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    outs, weights = [], []
    groups = query.shape[1] // key.shape[1]
    key, value = (part.repeat_interleave(groups, 1) for part in (key, value))
    ends = list(zip(asking.ends.tolist(), key_bounds.ends.tolist(), strict=True))
    for (q0, k0), (q1, k1) in itertools.pairwise(ends):
        scores = torch.einsum("qhd,khd->hqk", query[q0:q1], key[k0:k1]) * scale
        if causal:
            unseen = torch.ones(q1 - q0, k1 - k0, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(unseen, -torch.inf)
        outs.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1), value[k0:k1]))
        weights.append(scores.logsumexp(-1))
    return torch.cat(outs), torch.cat(weights, 1)


def test_the_two_parts_add_up_to_the_masked_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "flash_segments", reference_flash)
    packed = pack(
        [PrefixBranch([1, 2, 3], [[4], [5, 6]]), PrefixBranch([7], [[8, 9], [10, 11, 12]])], CPU
    )
    torch.manual_seed(0)
    query = torch.randn(12, 4, 8)
    key, value = torch.randn(12, 2, 8), torch.randn(12, 2, 8)
    parts = attend_in_parts(query, key, value, packed, 0.3)
    masked = torch.nn.functional.scaled_dot_product_attention(
        query.transpose(0, 1),
        key.transpose(0, 1),
        value.transpose(0, 1),
        attn_mask=dense_mask(packed),
        scale=0.3,
        enable_gqa=True,
    ).transpose(0, 1)
    torch.testing.assert_close(parts, masked)


def test_the_form_is_found_out_by_trying(tiny: Tiny) -> None:
    replica = DeviceReplica(tiny.net, CPU)
    assert best_form(replica, "auto") == "cache"
    assert best_form(replica, "tree") == "tree"
    assert best_form(replica, "off") == "off"
    replica.close()


class Wrong(DeviceReplica):
    """A replica whose cache form is off, as that of an unknown architecture may be."""

    def continue_rows(self, *args: Any, **options: Any) -> tuple[NextTokenScores, Any]:
        read, cache = super().continue_rows(*args, **options)
        return NextTokenScores(read.logits + 1.0, read.hidden), cache


class Failing(DeviceReplica):
    """A replica of an architecture that has no cache of keys and values."""

    def continue_rows(self, *args: Any, **options: Any) -> tuple[NextTokenScores, Any]:
        raise AttributeError("no keys")


@pytest.mark.parametrize("kind", [Wrong, Failing])
def test_a_form_that_gives_something_else_is_not_taken(
    tiny: Tiny, kind: type[DeviceReplica]
) -> None:
    replica = kind(tiny.net, CPU)
    assert not form_agrees(replica, "cache")
    assert best_form(replica, "auto") == "off"
    with pytest.raises(ConfigError, match="prefix_reuse 'cache' gives other results"):
        best_form(replica, "cache")
    replica.close()


def test_the_tree_is_first_choice_where_the_kernels_are(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "has_kernels", lambda _: True)
    replica = DeviceReplica(tiny.net, CPU)
    assert best_form(replica, "auto") == "tree"
    replica.close()


def test_own_steps_are_allowed_where_they_give_the_same(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = DeviceReplica(tiny.net, CPU)
    assert supports_row_attention(replica)
    assert not replica.uses_row_attention, "a trial changes nothing"
    monkeypatch.setattr(tiny.net.config, "layer_types", ["sliding_attention"], raising=False)
    assert not supports_row_attention(replica)
    assert best_form(replica, "auto") == "cache"
    assert not form_agrees(replica, "tree")
    replica.close()


def test_attention_with_extras_is_refused(tiny: Tiny) -> None:
    with use_attention(tiny.net, attend_rows(torch.ones(1, 1, dtype=torch.bool))):
        name = tiny.net.config._attn_implementation
        attend = AttentionInterface._global_mapping[name]
        part = torch.ones(1, 4, 1, 8)
        out, _ = attend(None, part, part, part, None, sliding_window=None)
        assert torch.equal(out, part.transpose(1, 2))
        with pytest.raises(NotImplementedError, match="softcap"):
            attend(None, part, part, part, None, softcap=30.0)
    assert tiny.net.config._attn_implementation == "sdpa"


def test_label_logits_are_finer_than_the_dtype() -> None:
    coarse = build(seed=3)
    net = coarse.net.to(torch.bfloat16)
    replica = DeviceReplica(net, CPU)
    read = replica.run_plain([[7, 8, 9], [10, 11]])
    rows, ids = torch.tensor([0, 1, 1]), torch.tensor([5, 6, 7])
    exact = replica.exact_logits(read, rows, ids)
    truth = (read.hidden[rows].double() * net.lm_head.weight[ids].double()).sum(-1)
    torch.testing.assert_close(exact.double(), truth, atol=1e-4, rtol=1e-4)
    assert not torch.equal(exact, read.logits[rows, ids])
    scaled = NextTokenScores(read.logits * 0.5, read.hidden)
    assert torch.equal(replica.exact_logits(scaled, rows, ids), scaled.logits[rows, ids])
    replica.close()


def test_packing_counts_what_the_kernels_need() -> None:
    packed: PackedPass = pack([PrefixBranch([1, 2], [[3], [4, 5]]), PrefixBranch([6], [[7]])], CPU)
    assert packed.prefix_count == 3
    assert packed.segments.ends.tolist() == [0, 2, 3, 4, 6, 7]
    assert packed.segments.longest == 2
    assert packed.prefixes.ends.tolist() == [0, 2, 3]
    assert packed.question_groups.ends.tolist() == [0, 3, 4]
    assert packed.segments.ends.dtype == torch.int32
