"""llama.cpp inside this process, through xllamacpp.

The runtime is llama.cpp's own server. It listens on a loopback address, guarded by a key of its
own, and is asked there like any endpoint: calls from inside the process were no faster (docs/
performance.md).
"""

from __future__ import annotations

import importlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keju.errors import EndpointError, MissingExtra

PASSIVE = ("OMP_WAIT_POLICY", "passive")
"""Idle threads of OpenMP would otherwise spin and burn the cores; read when it is loaded."""


@dataclass(frozen=True, kw_only=True)
class Loading:
    """How a file is loaded."""

    path: Path
    alias: str
    context: int
    """Tokens of each slot."""
    slots: int
    threads: int
    gpu_layers: int
    chat_template: str = ""
    prefix_reuse: bool = True
    flash_attention: bool = False


class LlamaServer:
    """A loaded model, and where it listens."""

    def __init__(self, loading: Loading) -> None:
        """Load the weights; EndpointError in one line where that fails."""
        self.key = secrets.token_urlsafe(32)
        try:
            self.native = _runtime().Server(self._parameters(loading))
        except (RuntimeError, ValueError, OSError) as error:
            template = ", or model_args.chat_template" if loading.chat_template else ""
            raise EndpointError(
                f"llama.cpp cannot load {loading.path}: a damaged file, an architecture that "
                f"it does not know, too little memory for model_args.n_ctx × slots{template} "
                f"({error})"
            ) from None
        self.address: str = self.native.listening_address

    def _parameters(self, loading: Loading) -> Any:
        runtime = _runtime()
        parameters = runtime.CommonParams()
        parameters.model.path = str(loading.path)
        parameters.model_alias = {loading.alias}
        parameters.n_parallel = loading.slots
        parameters.n_ctx = loading.context * loading.slots
        parameters.kv_unified = False
        parameters.cpuparams.n_threads = loading.threads
        parameters.cpuparams_batch.n_threads = loading.threads
        parameters.n_gpu_layers = loading.gpu_layers
        parameters.fit_params = False
        parameters.warmup = False
        parameters.verbosity = 0
        parameters.cache_prompt = loading.prefix_reuse
        parameters.cache_ram_mib = 0
        kinds = runtime.llama_flash_attn_type
        parameters.flash_attn_type = (
            kinds.LLAMA_FLASH_ATTN_TYPE_ENABLED
            if loading.flash_attention
            else kinds.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
        if loading.chat_template:
            parameters.chat_template = loading.chat_template
        parameters.port = 0
        parameters.api_keys = [self.key]
        parameters.ui = parameters.endpoint_slots = False
        return parameters


def _runtime() -> Any:
    """The module xllamacpp; it comes with the extra ``local``."""
    os.environ.setdefault(*PASSIVE)
    try:
        return importlib.import_module("xllamacpp")
    except ImportError:
        raise MissingExtra("a model inside this process", "local") from None


def runtime_version() -> str:
    """The version of xllamacpp, whose last part is the build of llama.cpp."""
    return str(_runtime().__version__)


def available_cores() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
