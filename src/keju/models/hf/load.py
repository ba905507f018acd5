"""Loads a checkpoint, and reports every problem in one line."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from keju.bounds import read_text
from keju.errors import ConfigError, EndpointError, KejuError
from keju.models.base import one_line
from keju.models.gguf import read_gguf
from keju.models.hf.settings import HFSettings

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
ENDLESS = 10**9
"""Tokenizers without a limit give a larger number."""
DEFAULT_CONTEXT = 2048
"""The context if neither the checkpoint nor its tokenizer has one."""
DIGITS_APART = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell"})
"""Tokenizer rules of GGUF files in which every digit is a word and the other text is split like in
GPT-2. transformers would use another rule."""


@dataclass(frozen=True)
class Checkpoint:
    """A loaded model and its tokenizer."""

    net: Any
    tokenizer: Any
    devices: tuple[torch.device, ...]
    dtype: torch.dtype
    context: int
    """The most tokens of prompt and reply together."""
    eos: frozenset[int]
    chat_template: str | None


def _read_tokenizer_kind(settings: HFSettings, source: str) -> str:
    """Return the kind of tokenizer in the header of a GGUF file."""
    from transformers.utils import cached_file

    file = cached_file(
        source,
        settings.gguf_file,
        revision=settings.revision,
        local_files_only=settings.offline,
    )
    return read_gguf(Path(str(file))).words


def load(settings: HFSettings) -> Checkpoint:
    """Load the checkpoint of `settings`; raise EndpointError or ConfigError with the reason."""
    devices = choose_devices(settings.device)
    dtype = choose_dtype(settings.dtype, devices[0])
    source = locate_checkpoint(settings)
    with _silence_transformers(), _explain_errors(settings):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        options: dict[str, Any] = {
            "trust_remote_code": settings.trust_remote_code,
            "revision": settings.revision,
            "gguf_file": settings.gguf_file,
            "local_files_only": settings.offline or None,
        }
        load_options = {name: value for name, value in options.items() if value is not None}
        # Detect a truncated file by its header, before transformers reads it.
        words = _read_tokenizer_kind(settings, source) if settings.gguf_file is not None else ""
        tokenizer = AutoTokenizer.from_pretrained(source, **load_options)
        if words in DIGITS_APART:
            from tokenizers import pre_tokenizers

            tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Digits(individual_digits=True),
                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
                ]
            )
        if settings.attn_implementation is not None:
            load_options["attn_implementation"] = settings.attn_implementation
        net, report = AutoModelForCausalLM.from_pretrained(
            source,
            dtype=dtype,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **load_options,
        )
    # Refuse weights of which transformers had to initialise some.
    for kind in ("missing_keys", "mismatched_keys"):
        keys = sorted(key if isinstance(key, str) else key[0] for key in report.get(kind) or ())
        if keys:
            raise EndpointError(f"hf_{kind}", name=settings.name, key=keys[0], many=len(keys))
    return make_checkpoint(net.eval(), tokenizer, settings, devices)


def make_checkpoint(
    net: Any, tokenizer: Any, settings: HFSettings, devices: tuple[torch.device, ...]
) -> Checkpoint:
    """Return a model in memory together with its metadata."""
    return Checkpoint(
        net=net,
        tokenizer=tokenizer,
        devices=devices,
        dtype=next(net.parameters()).dtype,
        context=context_length(net.config, tokenizer, settings.max_length),
        eos=end_tokens(net, tokenizer),
        chat_template=read_template(settings.chat_template) or tokenizer.chat_template,
    )


def choose_devices(name: str) -> tuple[torch.device, ...]:
    """Return the devices to use, each with a copy of the weights."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto" and not gpus:
        return (torch.device("mps" if torch.backends.mps.is_available() else "cpu"),)
    if name in ("auto", "cuda") and gpus:
        return tuple(torch.device("cuda", number) for number in range(gpus))
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError("hf_device", name=name) from None
    if device.type == "cuda" and (device.index or 0) >= gpus:
        available = f"{gpus} GPUs" if gpus else "no GPU (or a torch built without CUDA)"
        raise ConfigError("hf_device_absent", name=name, seen=available)
    return (device,)


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """Return the requested dtype; by default bfloat16 on a GPU, where it is fast, and float32
    elsewhere."""
    if name == "auto":
        name = "bfloat16" if device.type == "cuda" else "float32"
    return DTYPES[name]


def locate_checkpoint(settings: HFSettings) -> str:
    """Return the folder or repository to load; raise ConfigError if a local folder is missing."""
    name = settings.name
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if name.startswith((".", "~")) or name.count("/") > 1 or folder.is_absolute():
            raise ConfigError("hf_no_folder", name=name, folder=folder)
        return name
    if settings.revision is not None:
        raise ConfigError("hf_revision", folder=folder)
    if settings.gguf_file is not None and not (folder / settings.gguf_file).is_file():
        raise ConfigError("hf_no_file", name=name, path=folder / settings.gguf_file)
    if settings.gguf_file is None and not (folder / "config.json").is_file():
        raise ConfigError("hf_no_config", name=name, folder=folder)
    return str(folder)


def context_length(config: Any, tokenizer: Any, requested: int | None) -> int:
    """Return the context length of the checkpoint, or `requested`, which must not exceed it."""
    text = config.get_text_config()
    names = ("max_position_embeddings", "n_positions")
    limits = [getattr(text, name, None) for name in names]
    positions = [int(limit) for limit in limits if limit and 0 < limit < ENDLESS]
    if requested is not None:
        # A config may extend its positions by scaling its rotary embedding: 4 × 8192 positions.
        rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None)
        rope = rope if isinstance(rope, dict) else {}
        factor, original = rope.get("factor"), rope.get("original_max_position_embeddings")
        stretched = int(factor * original) if factor and original else 0
        longest = max(positions[0], stretched) if positions else requested
        if requested > longest:
            raise ConfigError("hf_max_length", wish=requested, most=longest)
        return requested
    if positions:
        return positions[0]
    limit = getattr(tokenizer, "model_max_length", None)
    return int(limit) if limit and limit < ENDLESS else DEFAULT_CONTEXT


def end_tokens(net: Any, tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end a reply."""
    tokens: set[int] = set()
    generation = getattr(net, "generation_config", None)
    for value in (getattr(generation, "eos_token_id", None), tokenizer.eos_token_id):
        if value is not None:
            tokens.update(value if isinstance(value, list | tuple) else [value])
    return frozenset(tokens)


def read_template(setting: str | None) -> str | None:
    """Return a chat template from the text itself or from the file that it names."""
    if setting is None or "{" in setting or "\n" in setting:
        return setting
    try:
        return read_text(Path(setting).expanduser())
    except (OSError, UnicodeDecodeError):
        raise ConfigError("hf_chat_template", setting=setting) from None


def digest(text: str) -> str:
    """Return a short hash for the manifest."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@contextlib.contextmanager
def _silence_transformers() -> Iterator[None]:
    """Keep progress bars and advice of transformers off the terminal.

    Only a closed stderr silences the progress bar of the GGUF reader.
    """
    from transformers.utils import logging

    previous = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with Path(os.devnull).open("w") as sink, contextlib.redirect_stderr(sink):
            yield
    finally:
        logging.set_verbosity(previous)


@contextlib.contextmanager
def _explain_errors(settings: HFSettings) -> Iterator[None]:
    """Turn the errors of transformers into one line that says what to do."""
    try:
        yield
    except KejuError:
        raise
    except Exception as error:
        cause = one_line(str(error)) or type(error).__name__
        if isinstance(error, torch.OutOfMemoryError):
            code = "hf_too_large"
        elif isinstance(error, ImportError):
            code = "hf_needs_more"
        elif "trust_remote_code" in str(error):
            code = "hf_own_code"
        elif isinstance(error, OSError) and not Path(settings.name).expanduser().is_dir():
            code = "hf_not_fetched"
        elif type(error).__name__ == "SafetensorError":
            code = "hf_damaged"
        else:
            code = "hf_not_loaded"
        raise EndpointError(code, name=settings.name, cause=cause) from None
