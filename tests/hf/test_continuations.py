"""Log-probabilities of given texts, against whole texts through the network one at a time."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-hf")
pytest.importorskip("transformers", reason="transformers is not installed: make test-hf")

import torch

from keju.models.continuations import rolling_windows
from keju.models.hf import forest
from keju.models.hf.continuation_scoring import group_trees
from keju.models.hf.forest import (
    ScoredRow,
    ScoredTree,
    attend_levels,
    forest_mask,
    grow_trees,
    pack_forest,
)
from keju.models.hf.replica import DeviceReplica
from keju.models.hf.scoring import PrefixStore
from keju.types import Continuation, ContinuationScore, Prefix, Prompt, Reply, Request, Sampling
from tests.hf.test_forms import reference_flash
from tests.hf.tiny import CORPUS, Tiny, ask_all, build, model

pytestmark = pytest.mark.slow

SAMPLING = Sampling(form="completion", decode="continuations")
FORMS = ["tree", "cache", "off"]
CPU = torch.device("cpu")


def request(*parts: Continuation, name: str = "h") -> Request:
    prompt = Prompt(Prefix(), parts[0].context)
    return Request(prompt, SAMPLING, name, continuations=parts)


def questions() -> list[Request]:
    """Shared examples, contexts of their own, different contexts of one text, and no context."""
    shared = CORPUS[0] * 3
    requests = []
    for row in range(5):
        context = f"{shared}Which one is {'very ' * row}red, number {row}?\nanswer ~"
        options = (" the fox", " the lazy dog", " A", " B", " the fox jumps over it")
        requests.append(request(*(Continuation(context, text) for text in options), name=f"s{row}"))
    for row in range(3):
        context = f"{CORPUS[row]} and {'so ' * row}then ~ "
        words = ("a fox", "jumps", "dog. ", " two")
        requests.append(request(*(Continuation(context, text) for text in words), name=f"o{row}"))
    requests.append(
        request(
            Continuation("The fox was quicker than the dog because the fox", " is quick."),
            Continuation("The fox was quicker than the dog because the dog", " is quick."),
            Continuation("", " is quick."),
        )
    )
    requests.append(request(Continuation("", CORPUS[2] * 4, rolling=True)))
    requests.append(request(Continuation("<|begin|>So", " what?"), Continuation("  ", "x")))
    return requests


def truth(tiny: Tiny, part: Continuation, length: int = 1024) -> ContinuationScore:
    """Straight from the network, by the rules of lm-eval: one text at a time."""
    encode = tiny.tokenizer.encode
    begin = tiny.tokenizer.bos_token_id

    def tokens_of(text: str) -> list[int]:
        special = not text.startswith(tiny.tokenizer.bos_token)
        return list(encode(text, add_special_tokens=special))

    if part.rolling:
        windows = list(rolling_windows(tokens_of(part.text), begin, length))
    elif part.context == "":
        windows = [([begin], list(encode(part.text, add_special_tokens=False)))]
    else:
        context = part.context.rstrip()
        whole = part.context + part.text
        before = tokens_of(context)
        windows = [(before, tokens_of(whole)[len(before) :])]
    total, greedy, count = 0.0, True, 0
    for before, scored in windows:
        read = [*before, *scored][-(length + 1) :][:-1]
        with torch.no_grad():
            logs = tiny.net(torch.tensor([read])).logits[0].log_softmax(-1)[-len(scored) :]
        total += float(logs.gather(1, torch.tensor(scored)[:, None]).sum())
        greedy &= bool((logs.argmax(-1) == torch.tensor(scored)).all())
        count += len(scored)
    return ContinuationScore(total, greedy, count)


def check(tiny: Tiny, requests: list[Request], replies: list[Reply], length: int = 1024) -> None:
    for asked, reply in zip(requests, replies, strict=True):
        assert reply.error is None, reply.error
        assert reply.continuations is not None
        for part, score in zip(asked.continuations, reply.continuations, strict=True):
            expected = truth(tiny, part, length)
            assert score.logprob == pytest.approx(expected.logprob, abs=2e-4 * expected.tokens)
            assert (score.greedy, score.tokens) == (expected.greedy, expected.tokens)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_what_the_network_gives(tiny: Tiny, form: str) -> None:
    requests = questions()
    replies = ask_all(model(tiny, prefix_reuse=form, batch_size=3), requests)
    check(tiny, requests, replies)
    first = replies[0]
    assert first.continuations is not None
    values = [score.logprob for score in first.continuations]
    best = values.index(max(values))
    assert first.text == requests[0].continuations[best].text.strip()


@pytest.mark.parametrize("form", FORMS)
def test_texts_longer_than_the_context_lose_their_beginning_or_get_windows(
    tiny: Tiny, form: str
) -> None:
    requests = [
        request(*(Continuation(CORPUS[0] * 3, text) for text in (" the fox", " A", " lazy dog"))),
        request(Continuation("", CORPUS[0] * 4, rolling=True)),
        request(Continuation("So", " it ends. " * 60)),
    ]
    *replies, long = ask_all(model(tiny, prefix_reuse=form, max_length=40), requests)
    check(tiny, requests[:2], replies, 40)
    assert long.error is not None
    assert long.error.kind == "context_length"


def test_a_greedy_continuation_is_found(tiny: Tiny) -> None:
    context = "The quick brown fox"
    tokens = tiny.tokenizer.encode(context)
    with torch.no_grad():
        best = int(tiny.net(torch.tensor([tokens])).logits[0, -1].argmax())
    text = tiny.tokenizer.decode([best])
    if tiny.tokenizer.encode(context + text) != [*tokens, best]:
        pytest.skip("the most likely token merges with the context")
    (reply,) = ask_all(model(tiny), [request(Continuation(context, text))])
    assert reply.continuations is not None
    assert reply.continuations[0].greedy


def test_usage_tells_what_was_shared(tiny: Tiny) -> None:
    requests = questions()[:5]
    computed = {}
    for form in FORMS:
        replies = ask_all(model(tiny, prefix_reuse=form), requests)
        computed[form] = sum(reply.usage.input - reply.usage.cached for reply in replies)
    whole = sum(
        len(tiny.tokenizer.encode(part.context + part.text)) - 1
        for asked in requests
        for part in asked.continuations
    )
    assert computed["tree"] <= computed["cache"] < whole / 5


def test_a_text_that_leaves_no_token_is_a_fault(tiny: Tiny) -> None:
    (reply,) = ask_all(model(tiny), [request(Continuation("So", ""))])
    assert reply.error is not None
    assert "adds no tokens" in reply.error.message


@pytest.mark.parametrize("form", FORMS)
def test_out_of_memory_halves_the_pass(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    tried: list[int] = []

    class Limited(DeviceReplica):
        def run_rows(self, rows: Any, places: Any) -> Any:
            return super().run_rows(rows, self._check(places))

        def run_trees(self, tokens: Any, positions: Any, places: Any, *rest: Any) -> Any:
            return super().run_trees(tokens, positions, self._check(places), *rest)

        def _check(self, places: Any) -> Any:
            tried.append(len(places))
            if len(places) > 60:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return places

    monkeypatch.setattr("keju.models.hf.worker.DeviceReplica", Limited)
    requests = questions()[:9]
    replies = ask_all(model(tiny, prefix_reuse=form, batch_size=64), requests)
    check(tiny, requests, replies)
    assert max(tried) > 60, "the test must run out of memory"


def row(number: int, tokens: list[int], scored: int) -> ScoredRow:
    return ScoredRow(number, tokens, [1] * scored)


def test_rows_join_a_tree_where_that_saves_tokens() -> None:
    rows = [
        row(0, [1, 2, 3, 4, 5, 6], 2),
        row(1, [1, 2, 3, 4, 7], 1),
        row(2, [1, 9, 9, 9], 1),
        row(3, [8, 8], 1),
        row(4, [1, 2, 3, 4, 5, 6], 1),
    ]
    trees = grow_trees(rows)
    assert [[row.number for row in tree.rows] for tree in trees] == [[0, 1, 4], [2], [3]]
    assert trees[0].tokens == [1, 2, 3, 4]
    assert trees[0].branches == [[5, 6], [7], [5, 6]]
    assert trees[0].limit == 3
    assert trees[2].limit == 1


def forest_of(seed: int) -> list[ScoredTree]:
    """Trees with and without a shared prefix, with and without branches."""
    draw = random.Random(seed)

    def tokens(count: int) -> list[int]:
        return [draw.randrange(5, 450) for _ in range(count)]

    trees = []
    for _ in range(3):
        prefix = tokens(draw.choice([0, 36, 50]))
        for _ in range(draw.randint(1, 3)):
            context = prefix + tokens(draw.randint(1, 9))
            texts = [tokens(draw.randint(1, 6)) for _ in range(draw.randint(1, 4))]
            rows = [
                ScoredRow(number, [*context, *text][:-1], text) for number, text in enumerate(texts)
            ]
            trees += grow_trees(rows)
    return trees


@pytest.mark.parametrize("seed", range(4))
def test_the_levels_of_a_forest_add_up_to_the_masked_attention(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(forest, "flash_segments", reference_flash)
    replica = DeviceReplica(tiny.net, CPU)
    groups = group_trees(forest_of(seed), PrefixStore(replica))
    packed = pack_forest(groups, CPU)
    count = packed.tokens.shape[1]
    torch.manual_seed(seed)
    query = torch.randn(count, 4, 8)
    key, value = torch.randn(count, 2, 8), torch.randn(count, 2, 8)
    parts = attend_levels(query, key, value, packed, 0.3)
    masked = torch.nn.functional.scaled_dot_product_attention(
        query.transpose(0, 1),
        key.transpose(0, 1),
        value.transpose(0, 1),
        attn_mask=forest_mask(packed),
        scale=0.3,
        enable_gqa=True,
    ).transpose(0, 1)
    torch.testing.assert_close(parts, masked)
    whole = sum(tree.length for group in groups for tree in group)
    saved = sum((len(group) - 1) * group[0].shared for group in groups)
    assert count == whole - saved
    replica.close()


def test_windows_score_each_token_once() -> None:
    for count, length in itertools.product((0, 1, 4, 5, 9, 17), (1, 2, 4)):
        tokens = list(range(count))
        windows = list(rolling_windows(tokens, -1, length))
        assert [token for _, scored in windows for token in scored] == tokens
        assert all(len(before) + len(scored) <= length + 1 for before, scored in windows)
        for before, scored in windows[1:]:
            assert len(before) + len(scored) == length + 1
            assert [*before, *scored] == list(range(before[0], scored[-1] + 1))


def test_an_architecture_with_windows_is_scored_text_by_text() -> None:
    tiny = build(seed=1, layer_types=["sliding_attention"] * 3, sliding_window=900)
    requests = questions()[:2]
    replies = ask_all(model(tiny), requests)
    check(tiny, requests, replies)
    assert all(reply.usage.cached == 0 for reply in replies)
