"""Which questions go into a pass together."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-hf")
pytest.importorskip("transformers", reason="transformers is not installed: make test-hf")

from keju.models.hf.encode import EncodedRequest
from keju.models.hf.worker import PassQueue, PassSize, choose_batch
from keju.types import Prefix, Prompt, Request, Sampling
from tests.hf.tiny import LABELS, TEXT

pytestmark = pytest.mark.slow

TREE = PassSize(rows=1000, tokens=100, form="tree")


def items(
    prefix: Prefix, count: int, *, shared: int, own_tokens: int, sampling: Sampling = LABELS
) -> list[EncodedRequest]:
    return [
        EncodedRequest(
            Request(Prompt(prefix, str(n)), sampling, "h", "AB"),
            [1] * (shared + own_tokens),
            shared,
            {},
        )
        for n in range(count)
    ]


def test_whole_groups_fill_a_pass() -> None:
    first_group, second_group, third = (
        items(Prefix(lead=name), 4, shared=10, own_tokens=10) for name in ("a", "b", "c")
    )
    assert choose_batch([*first_group, *second_group, *third], TREE, settled=False) == [
        *first_group,
        *second_group,
    ]


def test_a_pass_waits_for_more_until_the_pool_is_quiet() -> None:
    small_group = items(Prefix(lead="a"), 2, shared=10, own_tokens=10)
    assert choose_batch(small_group, TREE, settled=False) == []
    assert choose_batch(small_group, TREE, settled=True) == small_group


def test_a_group_larger_than_a_pass_is_split() -> None:
    large_group = items(Prefix(lead="a"), 30, shared=10, own_tokens=10)
    assert choose_batch(large_group, TREE, settled=True) == large_group[:9]


def test_the_group_that_still_grows_stays_behind() -> None:
    complete = items(Prefix(lead="a"), 5, shared=10, own_tokens=10)
    growing = items(Prefix(lead="b"), 1, shared=10, own_tokens=10)
    assert choose_batch([*complete, *growing], TREE, settled=True) == complete


def test_a_question_longer_than_a_pass_still_goes() -> None:
    (long,) = items(Prefix(lead="a"), 1, shared=50, own_tokens=500)
    assert choose_batch([long], TREE, settled=True) == [long]


def test_rows_limit_a_pass_too() -> None:
    large_group = items(Prefix(lead="a"), 8, shared=10, own_tokens=1)
    assert (
        choose_batch(large_group, PassSize(rows=3, tokens=100, form="tree"), settled=True)
        == large_group[:3]
    )


def test_kinds_do_not_mix() -> None:
    labels = items(Prefix(lead="a"), 2, shared=10, own_tokens=10)
    texts = items(Prefix(lead="a"), 2, shared=10, own_tokens=10, sampling=TEXT)
    chosen = choose_batch(
        [*texts, *labels], PassSize(rows=8, tokens=100, form="cache"), settled=True
    )
    assert chosen == texts


def test_one_prefix_at_a_time_for_the_cache() -> None:
    first_group, second_group = (
        items(Prefix(lead=name), 3, shared=10, own_tokens=10) for name in "ab"
    )
    size = PassSize(rows=8, tokens=100, form="cache")
    assert choose_batch([*first_group, *second_group], size, settled=False) == first_group


def test_threads_are_let_go_when_the_pool_closes() -> None:
    pool = PassQueue()
    passes: list[list[EncodedRequest]] = []
    thread = threading.Thread(target=lambda: passes.append(pool.take(TREE)))
    thread.start()
    pool.close()
    thread.join(10)
    assert passes == [[]]


def test_refill_takes_only_the_same_sampling() -> None:
    pool = PassQueue()
    texts = items(Prefix(lead="a"), 3, shared=10, own_tokens=10, sampling=TEXT)
    pool.put([*items(Prefix(lead="a"), 2, shared=10, own_tokens=10), *texts])
    assert pool.refill(TEXT, 2) == texts[:2]
    assert pool.refill(TEXT, 2) == texts[2:]
