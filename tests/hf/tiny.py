"""A model small enough to compute twice: random weights, a tokenizer trained on a few lines."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

from keju.models.hf.settings import HFSettings
from keju.types import Message, Prefix, Prompt, Reply, Request, Sampling

CORPUS = [
    "Question: which of these is red? (A) grass (B) blood (C) snow (D) coal\nAnswer: B\n\n",
    "问题：下列哪一项是红色的？\nA: 草\nB: 血\nC: 雪\nD: 煤\n答案：B\n\n",
    "So the answer is (C). The quick brown fox jumps over the lazy dog: A, B, C and D.",
    "0 1 2 3 4 5 6 7 8 9 answer:A answer:B answer:C answer:D",
    *(f"{before} {label}" for before in "asdfghjklz" for label in "ABCD"),
    *(f"{before};{label}" for before in "qwertyuiop" for label in "ABCD"),
]
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ["<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
T = TypeVar("T")


class Tiny(NamedTuple):
    """A network and its tokenizer."""

    net: Any
    tokenizer: Any


def build(seed: int = 0, **changes: Any) -> Tiny:
    """A Llama of three layers whose replies depend visibly on every token it sees."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = build_tokenizer()
    torch.manual_seed(seed)
    shape = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 1024,
        "initializer_range": 0.2,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": None,
    }
    return Tiny(LlamaForCausalLM(LlamaConfig(**shape | changes)).eval(), tokenizer)


def build_tokenizer(template: str | None = TEMPLATE, extra_texts: Sequence[str] = ()) -> Any:
    """A byte-level BPE of a few hundred tokens that writes a beginning mark, as Llama's do."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    plain.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=480,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    plain.train_from_iterator([*CORPUS, *extra_texts], trainer)
    begin = plain.token_to_id("<|begin|>")
    plain.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A", special_tokens=[("<|begin|>", begin)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=plain,
        bos_token="<|begin|>",
        eos_token="<|end|>",
        chat_template=template,
    )


def model(tiny: Tiny, name: str = "hf:tiny", **settings: Any) -> Any:
    """An HFModel around a network in memory, on the CPU."""
    import torch

    from keju.models.hf.load import make_checkpoint
    from keju.models.hf.model import HFModel

    chosen = HFSettings(**settings)
    checkpoint = make_checkpoint(tiny.net, tiny.tokenizer, chosen, (torch.device("cpu"),))
    return HFModel(name, chosen, checkpoint=checkpoint)


def ask_all(model_object: Any, requests: Sequence[Request], timeout: float = 60.0) -> list[Reply]:
    """Start a model, ask everything at once, close it."""

    async def work() -> list[Reply]:
        await model_object.start()
        try:
            replies: list[Reply] = await asyncio.gather(
                *(model_object.ask(request, timeout=timeout) for request in requests)
            )
            return replies
        finally:
            await model_object.close()

    return run(work())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    return asyncio.run(work)


LABELS = Sampling(form="completion", decode="labels")
TEXT = Sampling(form="completion", decode="generate", max_tokens=12)
CHAT = Sampling(form="chat", decode="generate", max_tokens=12)

SHOTS = (
    Prefix(lead=CORPUS[0] * 2),
    Prefix(lead=CORPUS[1] * 3),
    Prefix(lead="Letters.\n"),
)
CHAT_SHOTS = Prefix(
    (Message("system", "Answer."), Message("user", "1 or 2?"), Message("assistant", "A")), "Q: "
)


def label_requests(sampling: Sampling = LABELS) -> list[Request]:
    """Questions of different lengths on three prefixes."""
    requests = []
    for number, prefix in enumerate(SHOTS):
        for row in range(7):
            tail = f"which of these is {'very ' * (row * number)}number {row}?\nanswer ~"
            requests.append(Request(Prompt(prefix, tail), sampling, f"{number}-{row}", "ABCD"))
    return requests


def text_requests(sampling: Sampling = TEXT, count: int = 5) -> list[Request]:
    """The same questions, to be answered in words."""
    return [
        Request(Prompt(prefix, f"question {row} {'more ' * row}\nAnswer:"), sampling, f"{n}-{row}")
        for n, prefix in enumerate(SHOTS)
        for row in range(count)
    ]
