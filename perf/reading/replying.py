"""The embedded model's replies to prompts, many at a time on a GPU: `perf.reading.asking`.

``python replying.py MODEL.gguf PROMPTS.jsonl OUT.jsonl`` runs the embedded model's weights in
float32 with transformers; Keju need not be installed there. The texts are not shown.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

LONGEST = 256
"""Tokens of a reply."""
CONTEXT = 4096
BATCH = 64
SEED = 20261117


def load(path: Path) -> tuple[Any, Any]:
    """The tokenizer, with digits apart as the model was trained, and the network."""
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    template = GGUFReader(path).fields["tokenizer.chat_template"]
    tokenizer.chat_template = bytes(template.parts[template.data[0]]).decode()
    tokenizer.padding_side = "left"
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    net = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )
    return tokenizer, net.to("cuda").eval()


def as_text(row: dict[str, Any], tokenizer: Any) -> str:
    """A prompt as the model sees it."""
    if row["turns"] is None:
        return str(row["prompt"])
    turns = [{"role": role, "content": text} for role, text in row["turns"]]
    return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))


def reply(batch: list[dict[str, Any]], tokenizer: Any, net: Any) -> list[str]:
    """The replies to prompts of one temperature, each up to its stop sequences."""
    words = [as_text(row, tokenizer) for row in batch]
    tokens = tokenizer(words, return_tensors="pt", padding=True, add_special_tokens=False)
    heat = batch[0]["temperature"]
    sampling = {"do_sample": True, "temperature": heat, "top_k": 0, "top_p": 1.0} if heat else {}
    torch.manual_seed(SEED)
    ends = [tokenizer.convert_tokens_to_ids(end) for end in ("<|im_end|>", "<|endoftext|>")]
    with torch.inference_mode():
        output = net.generate(
            **tokens.to("cuda"),
            max_new_tokens=LONGEST,
            eos_token_id=ends,
            pad_token_id=tokenizer.pad_token_id,
            **({"do_sample": False} | sampling),
        )
    texts = tokenizer.batch_decode(
        output[:, tokens["input_ids"].shape[1] :], skip_special_tokens=True
    )
    for place, row in enumerate(batch):
        for stop in row["stop"]:
            texts[place] = texts[place].partition(stop)[0]
    return list(texts)


def main(model: Path, prompts: Path, out: Path) -> None:
    """Answer all prompts that fit into the context; replies that say nothing are left out."""
    tokenizer, net = load(model)
    rows = [json.loads(line) for line in prompts.read_text().splitlines()]
    sizes = {row["key"]: len(tokenizer(as_text(row, tokenizer))["input_ids"]) for row in rows}
    fitting = [row for row in rows if sizes[row["key"]] + LONGEST <= CONTEXT]
    fitting.sort(key=lambda row: (row["temperature"], sizes[row["key"]]))
    texts: dict[str, str] = {}
    for heat in sorted({row["temperature"] for row in fitting}):
        same_heat = [row for row in fitting if row["temperature"] == heat]
        for start in range(0, len(same_heat), BATCH):
            batch = same_heat[start : start + BATCH]
            for row, text in zip(batch, reply(batch, tokenizer, net), strict=True):
                texts[row["key"]] = text.strip()
    with out.open("w") as stream:
        for row in rows:
            if texts.get(row["key"]):
                written_row = {name: row[name] for name in ("key", "benchmark", "protocol", "args")}
                written_row["text"] = texts[row["key"]]
                print(json.dumps(written_row, ensure_ascii=False), file=stream)
    print(prompts.name, len(rows), "prompts,", sum(map(bool, texts.values())), "replies")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
