"""llama.cpp inside this process, through xllamacpp.

The runtime is llama.cpp's own server. It listens on a loopback address, guarded by a key of its
own, and is asked there like any endpoint: calls from inside the process were no faster (docs/
performance.md).
"""

from __future__ import annotations

import http.client
import importlib
import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from keju.errors import EndpointError, Hint, MissingExtra

PASSIVE = ("OMP_WAIT_POLICY", "passive")
"""Idle threads of OpenMP would otherwise spin and burn the cores; read when it is loaded."""


class LlamaServer:
    """A loaded model, and where it listens."""

    def __init__(
        self,
        path: Path,
        *,
        alias: str,
        context: int,
        slots: int,
        threads: int,
        gpu_layers: int,
        chat_template: str,
        prefix_reuse: bool,
        flash_attention: bool,
    ) -> None:
        """Load the weights; `context` is that of each slot. EndpointError where that fails."""
        self.key = secrets.token_urlsafe(32)
        runtime = _runtime()
        attention = "ENABLED" if flash_attention else "DISABLED"
        settings = {
            "model_alias": {alias},
            "n_parallel": slots,
            "n_ctx": context * slots,
            "kv_unified": False,
            "n_gpu_layers": gpu_layers,
            "fit_params": False,
            "warmup": False,
            "verbosity": 0,
            "cache_prompt": prefix_reuse,
            "cache_ram_mib": 0,
            # A question goes to the slot that has half of its words, else to the one unused for
            # longest: by llama.cpp's own tenth the words of a chat template alone would let one
            # subset push another out of its slot.
            "slot_prompt_similarity": 0.5,
            "flash_attn_type": runtime.llama_flash_attn_type[f"LLAMA_FLASH_ATTN_TYPE_{attention}"],
            "port": 0,  # any that is free
            "api_keys": [self.key],
            "ui": False,
            "endpoint_slots": False,
        }
        try:
            parameters = runtime.CommonParams()
            parameters.model.path = str(path)
            parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
            for name, value in settings.items():
                setattr(parameters, name, value)
            if chat_template:
                parameters.chat_template = chat_template
            self.native = runtime.Server(parameters)
        except (RuntimeError, ValueError, OSError) as error:
            code = "llama_template_not_loaded" if chat_template else "llama_not_loaded"
            raise EndpointError(code, path=path, problem=error) from None
        self.address: str = self.native.listening_address

    def release(self) -> None:
        """Let go of the weights as soon as llama.cpp has left a reply that nobody waits for.

        Its end waits for the batch in work, a long prompt's for many seconds, and keeps the whole
        interpreter standing meanwhile: no signal would be heard. So a thread first waits for a
        token of its own, which comes when llama.cpp is free again. The thread keeps an interpreter
        that ends by itself; a command ends without it.
        """
        native_servers, address, key = [self.native], urlsplit(self.address), self.key
        del self.native

        def wait() -> None:
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            with suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection(address.hostname or "", address.port)
                body = '{"prompt": "a", "n_predict": 1}'
                connection.request("POST", "/completion", body, headers)
                connection.getresponse().read()
                connection.close()
            native_servers.clear()

        threading.Thread(target=wait, name="keju-llama-release").start()


def _runtime() -> Any:
    """The module xllamacpp; it comes with the extra ``local``."""
    os.environ.setdefault(*PASSIVE)
    try:
        return importlib.import_module("xllamacpp")
    except ImportError:
        raise MissingExtra(Hint("extra_for_inside"), "local") from None


def runtime_version() -> str:
    """The version of xllamacpp, whose last part is the build of llama.cpp."""
    return str(_runtime().__version__)


def available_cores() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
