"""What determines the numbers of a local checkpoint, for the manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from keju.models.hf.generating import DEFAULT_TOKENS
from keju.models.hf.load import Checkpoint, digest
from keju.models.hf.settings import HFSettings

PLACES = ("_name_or_path", "transformers_version")
"""Fields of a config that say where it came from and not what it is."""

HASHED_VALUES = 64
"""Of each tensor, spread evenly over it."""

if TYPE_CHECKING:
    from keju.models.hf.worker import Worker


def describe(
    name: str, settings: HFSettings, checkpoint: Checkpoint, workers: Sequence[Worker]
) -> dict[str, Any]:
    """Versions, precision, devices, templates and how prefixes are shared."""
    import tokenizers
    import transformers

    config = checkpoint.net.config
    template = checkpoint.chat_template
    facts: dict[str, Any] = {
        "name": name,
        "backend": "transformers",
        "architecture": type(checkpoint.net).__name__,
        "parameters": sum(p.numel() for p in checkpoint.net.parameters()),
        "sha256": _weights_hash(checkpoint.net),
        "dtype": str(checkpoint.dtype).removeprefix("torch."),
        "devices": [_device(device) for device in checkpoint.devices],
        "attention": config.get_text_config()._attn_implementation,
        "prefix_reuse": sorted({worker.form for worker in workers}),
        "batch_rows": workers[0].scorer.rows if workers else None,
        "batch_tokens": workers[0].tokens if workers and workers[0].form == "tree" else None,
        "context": checkpoint.context,
        "default_max_tokens": DEFAULT_TOKENS,
        "label_space": settings.label_space,
        "chat_template_hash": digest(template) if template else None,
        "config_hash": _config_hash(config),
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


def _config_hash(config: Any) -> str:
    """A hash of the architecture's settings, wherever the checkpoint lies."""
    fields = {k: v for k, v in config.to_dict().items() if k not in PLACES}
    return digest(json.dumps(fields, sort_keys=True, default=str))


def _weights_hash(net: Any) -> str:
    """A hash over some values of every tensor: cheap, and other weights give another one."""
    seen = hashlib.sha256()
    for name, part in sorted(net.state_dict().items()):
        flat = part.reshape(-1)
        some = flat[:: max(1, flat.numel() // HASHED_VALUES)][:HASHED_VALUES]
        seen.update(f"{name} {tuple(part.shape)} {some.double().tolist()}\n".encode())
    return seen.hexdigest()


def _device(device: torch.device) -> str:
    if device.type == "cuda":
        return f"{device} {torch.cuda.get_device_name(device)}"
    return f"{device}, {torch.get_num_threads()} threads" if device.type == "cpu" else str(device)
