"""Networks of other kinds: the fastest way that is right for each, and the same answers."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-hf")
pytest.importorskip("transformers", reason="transformers is not installed: make test-hf")

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from keju.models.hf.forms import best_form, form_agrees, supports_row_attention
from keju.models.hf.replica import DeviceReplica
from tests.hf.tiny import Tiny, ask_all, build_tokenizer, label_requests, model, text_requests
from tests.support.hf_writing import alone, written

pytestmark = pytest.mark.slow

ROPE = {
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 1024,
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2": ("tree", ROPE),
    "qwen3": ("tree", ROPE),
    "mistral": ("tree", ROPE | {"sliding_window": None}),
    "mistral with a window": ("cache", ROPE | {"sliding_window": 24}),
    "gemma2": ("cache", ROPE | {"sliding_window": 24, "query_pre_attn_scalar": 16}),
    "gemma3_text": ("cache", ROPE | {"sliding_window": 24, "query_pre_attn_scalar": 16}),
    "phi3": ("tree", ROPE | {"pad_token_id": 0, "sliding_window": None}),
    "gpt2": ("tree", {"n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 1024}),
    "gpt_neox": ("tree", ROPE),
    "granite": ("tree", ROPE | {"logits_scaling": 4.0, "residual_multiplier": 0.5}),
    "mixtral": ("tree", ROPE | {"num_local_experts": 4, "sliding_window": None}),
    "mamba": ("off", {"hidden_size": 48, "num_hidden_layers": 3, "state_size": 8}),
}
"""Architecture, the best form where the kernels are, and a small shape."""


def network(name: str) -> Tiny:
    tokenizer = build_tokenizer()
    common = {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "initializer_range": 0.15,
    }
    config = AutoConfig.for_model(name.split()[0], **common | KINDS[name][1])
    torch.manual_seed(1)
    return Tiny(AutoModelForCausalLM.from_config(config).eval(), tokenizer)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_labels_and_replies_are_those_of_the_network(name: str) -> None:
    tiny = network(name)
    replica = DeviceReplica(tiny.net, torch.device("cpu"))
    tree, row_attention = form_agrees(replica, "tree"), supports_row_attention(replica)
    form = "tree" if tree else best_form(replica, "auto")
    replica.close()
    assert form == KINDS[name][0]
    assert row_attention == (form == "tree") or tiny.net.config._attn_implementation != "sdpa"

    requests = label_requests()
    for reply, request in zip(
        ask_all(model(tiny, prefix_reuse=form), requests), requests, strict=True
    ):
        tokens = tiny.tokenizer(request.prompt.text)["input_ids"]
        with torch.no_grad():
            logs = tiny.net(torch.tensor([tokens])).logits[0, -1].log_softmax(-1)
        assert reply.label_ids is not None
        expected = {label: float(logs[ids[0]]) for label, ids in reply.label_ids.items()}
        assert reply.label_logprobs == pytest.approx(expected, abs=1e-3)

    text_only = text_requests(count=3)
    replies = ask_all(model(tiny, batch_size=4), text_only)
    assert [r.error for r in replies if r.error] == []
    assert [r.raw or r.text for r in replies] == [
        written(tiny, alone(tiny, r, 12)) for r in text_only
    ]
