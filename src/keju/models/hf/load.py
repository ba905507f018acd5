"""Loading a checkpoint; whatever can be wrong with it is said in one line."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from keju.errors import ConfigError, EndpointError, KejuError
from keju.models.gguf import read_gguf
from keju.models.hf.settings import HFSettings

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
ENDLESS = 10**9
"""Tokenizers write a larger number where they know of no limit."""
DEFAULT_CONTEXT = 2048
"""Where neither the checkpoint nor its tokenizer tells one."""
LONGEST_CAUSE = 300


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


def load(settings: HFSettings) -> Checkpoint:
    """Load what `settings` name; EndpointError or ConfigError says why it cannot be done."""
    devices = choose_devices(settings.device)
    dtype = choose_dtype(settings.dtype, devices[0])
    place = locate(settings)
    with _quiet(), _explained(settings):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        common: dict[str, Any] = {"trust_remote_code": settings.trust_remote_code}
        if settings.revision is not None:
            common["revision"] = settings.revision
        if settings.gguf_file is not None:
            common["gguf_file"] = settings.gguf_file
        if settings.offline:
            common["local_files_only"] = True
        header = read_gguf(_gguf(place, settings)) if settings.gguf_file is not None else None
        tokenizer = AutoTokenizer.from_pretrained(place, **common)
        if header is not None:
            cut_as_named(tokenizer, header.words)
        if settings.attn_implementation is not None:
            common["attn_implementation"] = settings.attn_implementation
        net, report = AutoModelForCausalLM.from_pretrained(
            place, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True, **common
        )
    _check_whole(settings.name, report)
    return assemble(net.eval(), tokenizer, settings, devices)


def _check_whole(name: str, report: dict[str, Any]) -> None:
    """Refuse weights of which transformers had to make some up."""
    for kind, told in (
        ("missing_keys", "are missing from the checkpoint"),
        ("mismatched_keys", "have another shape than the config says"),
    ):
        keys = sorted(key if isinstance(key, str) else key[0] for key in report.get(kind) or ())
        if keys:
            raise EndpointError(
                f"model 'hf:{name}' cannot be loaded: weights {told} and would be random: "
                f"{keys[0]} ({len(keys)} in all)"
            )


def _gguf(place: str, settings: HFSettings) -> Path:
    """The GGUF file on this machine, in a folder or in the hub's cache."""
    from transformers.utils import cached_file

    found = cached_file(
        place,
        settings.gguf_file,
        revision=settings.revision,
        local_files_only=settings.offline,
    )
    return Path(str(found))


def assemble(
    net: Any, tokenizer: Any, settings: HFSettings, devices: tuple[torch.device, ...]
) -> Checkpoint:
    """Put a model that is in memory beside what must be known of it."""
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
    """The devices to work on, each with a copy of the weights."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto" and not gpus:
        return (torch.device("mps" if torch.backends.mps.is_available() else "cpu"),)
    if name in ("auto", "cuda") and gpus:
        return tuple(torch.device("cuda", number) for number in range(gpus))
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(
            f"model_args: device '{name}' is none: take auto, cpu, cuda, cuda:N or mps"
        ) from None
    if device.type == "cuda" and (device.index or 0) >= gpus:
        seen = f"{gpus} GPUs" if gpus else "no GPU (or a torch built without CUDA)"
        raise ConfigError(f"model_args: device '{name}' is not there: torch sees {seen}")
    return (device,)


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """The asked dtype; else bfloat16 on a GPU, where it is fast, and float32 elsewhere."""
    if name == "auto":
        name = "bfloat16" if device.type == "cuda" else "float32"
    return DTYPES[name]


def locate(settings: HFSettings) -> str:
    """The folder or repository to load from; a folder that should be there must be."""
    name = settings.name
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if name.startswith((".", "~")) or name.count("/") > 1 or folder.is_absolute():
            raise ConfigError(f"model 'hf:{name}': there is no folder {folder}")
        return name
    if settings.revision is not None:
        raise ConfigError(
            f"model_args.revision: {folder} is a folder on this machine and has no revisions: "
            "leave it out"
        )
    if settings.gguf_file is not None and not (folder / settings.gguf_file).is_file():
        raise ConfigError(f"model 'hf:{name}': there is no file {folder / settings.gguf_file}")
    if settings.gguf_file is None and not (folder / "config.json").is_file():
        raise ConfigError(
            f"model 'hf:{name}': {folder} holds no config.json, so it is no checkpoint of "
            "transformers (for a GGUF file give model_args.gguf_file)"
        )
    return str(folder)


def context_length(config: Any, tokenizer: Any, asked: int | None) -> int:
    """The longest sequence the checkpoint was made for, or `asked`, which may not exceed it."""
    text = config.get_text_config()
    told = (
        getattr(text, "max_position_embeddings", None),
        getattr(text, "n_positions", None),
    )
    positions = [int(value) for value in told if value and 0 < value < ENDLESS]
    if asked is not None:
        most = max(positions[0], _stretched(text)) if positions else asked
        if asked > most:
            raise ConfigError(
                f"model_args.max_length: {asked} is more than the {most} positions "
                "that the checkpoint has"
            )
        return asked
    if positions:
        return positions[0]
    limit = getattr(tokenizer, "model_max_length", None)
    return int(limit) if limit and limit < ENDLESS else DEFAULT_CONTEXT


def _stretched(text: Any) -> int:
    """The positions that a config reaches by stretching its rotary embedding; 0 for none."""
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None)
    if not isinstance(rope, dict):
        return 0
    factor, original = rope.get("factor"), rope.get("original_max_position_embeddings")
    return int(factor * original) if factor and original else 0


def end_tokens(net: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a reply."""
    found: set[int] = set()
    generation = getattr(net, "generation_config", None)
    for value in (getattr(generation, "eos_token_id", None), tokenizer.eos_token_id):
        if value is not None:
            found.update(value if isinstance(value, list | tuple) else [value])
    return frozenset(found)


def read_template(given: str | None) -> str | None:
    """A chat template from the text itself or from the file it names."""
    if given is None or "{" in given or "\n" in given:
        return given
    try:
        return Path(given).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(
            f"model_args: chat_template is neither a template nor a readable file: {given}"
        ) from None


def digest(text: str) -> str:
    """A short hash for the manifest."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep progress bars and advice of transformers off the terminal.

    The reader of GGUF files has a bar of its own that only a closed stderr silences.
    """
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
            yield
    finally:
        logging.set_verbosity(before)


@contextlib.contextmanager
def _explained(settings: HFSettings) -> Iterator[None]:
    """Turn what transformers raises into one line with what to do."""
    name = f"model 'hf:{settings.name}'"
    try:
        yield
    except KejuError:
        raise
    except torch.OutOfMemoryError:
        raise EndpointError(
            f"{name} does not fit into memory: try another dtype or device"
        ) from None
    except ImportError as error:
        raise EndpointError(f"{name} needs more to be installed: {_line(error)}") from None
    except Exception as error:
        cause = _line(error)
        if "trust_remote_code" in str(error):
            raise EndpointError(
                f"{name} comes with Python code of its own; if you trust it, give "
                "model_args.trust_remote_code=true"
            ) from None
        if isinstance(error, OSError) and not Path(settings.name).expanduser().is_dir():
            raise EndpointError(
                f"{name} is no folder here and could not be fetched: check the name and the "
                f"network, or give the path of a folder ({cause})"
            ) from None
        if type(error).__name__ == "SafetensorError":
            cause = f"a file of its weights is cut short or damaged, fetch it again ({cause})"
        raise EndpointError(f"{name} cannot be loaded: {cause}") from None


def _line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST_CAUSE else text[: LONGEST_CAUSE - 1] + "…"


DIGITS_APART = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell"})
"""Ways in which every digit is a word of its own and the rest is cut as GPT-2 does."""


def cut_as_named(tokenizer: Any, words: str) -> None:
    """Let a converted `tokenizer` cut texts in the way that its file names, if Keju knows it."""
    if words not in DIGITS_APART:
        return
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
