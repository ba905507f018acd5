"""What the GPU benchmark asks, and of whom: real prompts, random weights in public shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from keju.benchmarks.base import Exam
from keju.benchmarks.prepare import prepare_exam
from keju.models.hf.load import Checkpoint, make_checkpoint
from keju.models.hf.settings import HFSettings
from keju.types import Request, Sampling

VOCABULARY = 16_000
SHAPES: dict[str, dict[str, Any]] = {
    "1b": {  # Llama-3.2-1B
        "model_type": "llama",
        "vocab_size": 128_256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "tie_word_embeddings": True,
    },
    "7b": {  # Qwen2.5-7B
        "model_type": "qwen2",
        "vocab_size": 152_064,
        "hidden_size": 3584,
        "intermediate_size": 18_944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "tie_word_embeddings": False,
    },
}
EXAMS = ("ceval", "mmlu_pro")
CONTEXT = 8192
MMLU_PRO_EACH = 40
"""Questions of each MMLU-Pro category, in the form of label requests."""


def load_exams(data_dir: str, limit: int | None) -> dict[str, list[Request]]:
    """Label requests of both exams, from their real questions."""
    ceval, _ = prepare_exam("ceval", {"protocol": "tutorial", "form": "base"}, data_dir=data_dir)
    pro, _ = prepare_exam("mmlu_pro", {}, data_dir=data_dir)
    ceval_rows = range(len(ceval.samples))
    pro_rows = [
        row
        for subset in pro.subsets
        for row in range(subset.start, min(subset.stop, subset.start + MMLU_PRO_EACH))
    ]
    return {
        "ceval": as_requests(ceval, ceval_rows)[:limit],
        "mmlu_pro": as_requests(pro, pro_rows)[:limit],
    }


def as_requests(exam: Exam, rows: Sequence[int]) -> list[Request]:
    """Questions of an exam, asked for the likeliest label after the prompt."""
    sampling = Sampling(form="completion", decode="labels")
    samples = [exam.samples[row] for row in rows]
    return [Request(exam.render(s), sampling, s.id, s.labels) for s in samples]


def train_tokenizer(data_dir: str) -> Any:
    """A tokenizer whose lengths are Qwen's on these exams."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    test, _ = prepare_exam(
        "ceval", {"protocol": "tutorial", "form": "base", "split": "test"}, data_dir=data_dir
    )
    pro, _ = prepare_exam("mmlu_pro", {}, data_dir=data_dir)
    corpus = [test.render(sample).tail for sample in test.samples]
    corpus += ["\n".join((sample.text, *sample.choices)) for sample in pro.samples]
    words = Regex(
        r"'(?:s|t|re|ve|m|ll|d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(words, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    plain.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    plain.train_from_iterator(corpus, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<|end|>")


def build(shape: str, tokenizer: Any) -> Checkpoint:
    """A network of random weights on the device."""
    from transformers import AutoConfig, AutoModelForCausalLM

    fields = dict(SHAPES[shape])
    config = AutoConfig.for_model(
        fields.pop("model_type"),
        max_position_embeddings=CONTEXT,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=None,
        **fields,
    )
    torch.manual_seed(0)
    with torch.device("cuda"):
        net = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    return make_checkpoint(net, tokenizer, HFSettings(), (torch.device("cuda", 0),))
