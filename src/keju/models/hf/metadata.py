"""Everything that determines the numbers of a local checkpoint, for the manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from keju.models.hf.generation import DEFAULT_TOKENS
from keju.models.hf.load import Checkpoint, digest
from keju.models.hf.settings import HFSettings

PLACES = ("_name_or_path", "transformers_version")
"""Fields of a config that describe its source and not its content."""

WORD = 8
"""Bytes of a tensor that are mixed together."""
CHUNK = 1 << 20
"""Words that are mixed at once; it bounds the memory and does not change the result."""
STEP, MIX = 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9
"""Odd numbers with bits everywhere; products with them wrap around at 64 bits."""

if TYPE_CHECKING:
    from keju.models.hf.worker import ReplicaWorker


def describe(
    name: str, settings: HFSettings, checkpoint: Checkpoint, workers: Sequence[ReplicaWorker]
) -> dict[str, Any]:
    """Return versions, precision, devices, templates and the way in which prefixes are shared."""
    import tokenizers
    import transformers

    config = checkpoint.net.config
    template = checkpoint.chat_template
    fields = {name: v for name, v in config.to_dict().items() if name not in PLACES}
    facts: dict[str, Any] = {
        "name": name,
        "backend": "transformers",
        "architecture": type(checkpoint.net).__name__,
        "parameters": sum(p.numel() for p in checkpoint.net.parameters()),
        "sha256": _weights_hash(checkpoint.net),
        "dtype": str(checkpoint.dtype).removeprefix("torch."),
        "devices": [_describe_device(device) for device in checkpoint.devices],
        "attention": config.get_text_config()._attn_implementation,
        "prefix_reuse": sorted({worker.form for worker in workers}),
        "batch_rows": workers[0].scorer.rows if workers else None,
        "batch_tokens": workers[0].tokens if workers and workers[0].form == "tree" else None,
        "context": checkpoint.context,
        "default_max_tokens": DEFAULT_TOKENS,
        "label_space": settings.label_space,
        "chat_template_hash": digest(template) if template else None,
        "config_hash": digest(json.dumps(fields, sort_keys=True, default=str)),
        "revision": settings.revision,
        "gguf_file": settings.gguf_file,
        "commit": getattr(config, "_commit_hash", None),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "float32_matmul": torch.get_float32_matmul_precision(),
        "versions": {
            "torch": str(torch.__version__),
            "transformers": transformers.__version__,
            "tokenizers": tokenizers.__version__,
            "cuda": torch.version.cuda,
        },
    }
    return {key: value for key, value in facts.items() if value is not None}


def _weights_hash(net: Any) -> str:
    """Return a hash over every value of every tensor and its position; equal on every device."""
    weights_digest = hashlib.sha256()
    for name, part in sorted(net.state_dict().items()):
        if isinstance(part, torch.Tensor):
            weights_digest.update(
                f"{name} {tuple(part.shape)} {part.dtype} {_checksum(part)}\n".encode()
            )
    return weights_digest.hexdigest()


def _checksum(part: torch.Tensor) -> tuple[int, list[int]]:
    """Return the sum of all words, each mixed with its position, and the bytes that do not fill a
    word.

    Sums of integers that wrap around are exact in any order of addition.
    """
    flat = part.detach().reshape(-1)
    if flat.device.type not in ("cpu", "cuda"):
        flat = flat.cpu()
    if flat.storage_offset() * flat.element_size() % WORD:
        flat = flat.clone()
    octets = flat.view(torch.uint8)
    full_bytes = len(octets) // WORD * WORD
    words = octets[:full_bytes].view(torch.int64)
    total = torch.zeros((), dtype=torch.int64, device=flat.device)
    for start in range(0, len(words), CHUNK):
        chunk = words[start : start + CHUNK]
        mixed = torch.arange(start, start + len(chunk), device=flat.device).mul_(STEP).add_(chunk)
        for _ in range(2):
            mixed.bitwise_xor_(mixed >> 31).mul_(MIX)
        total += mixed.bitwise_xor_(mixed >> 29).sum()
    return int(total), octets[full_bytes:].tolist()


def _describe_device(device: torch.device) -> str:
    if device.type == "cuda":
        return f"{device} {torch.cuda.get_device_name(device)}"
    return f"{device}, {torch.get_num_threads()} threads" if device.type == "cpu" else str(device)
