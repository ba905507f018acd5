"""llama.cpp inside this process, through xllamacpp.

The runtime is llama.cpp's own server. It listens on a loopback address with a random key and gets
HTTP requests like any endpoint. Calls from inside the process were not faster
(docs/performance.md).
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

from keju.errors import EndpointError, MissingExtra, TranslatableText

PASSIVE = ("OMP_WAIT_POLICY", "passive")
"""Without it, idle threads of OpenMP spin and use the cores; it is read when OpenMP is loaded."""


class LlamaServer:
    """A loaded model and its address."""

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
        """Load the weights; `context` is for each slot. Raises EndpointError on failure."""
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
            # A question goes to the slot with half of its tokens, or to the least recently used
            # slot. With llama.cpp's default of a tenth, the tokens of a chat template alone would
            # let one subset push another out of its slot.
            "slot_prompt_similarity": 0.5,
            "flash_attn_type": runtime.llama_flash_attn_type[f"LLAMA_FLASH_ATTN_TYPE_{attention}"],
            "port": 0,  # any free port
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
        """Release the weights as soon as llama.cpp has stopped an abandoned reply.

        Its shutdown waits for the current batch, for a long prompt many seconds, and blocks the
        whole interpreter meanwhile, so signals would not be handled. So a thread first requests one
        token, which arrives when llama.cpp is free again. An interpreter that ends by itself waits
        for the thread; a command does not.
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
    """Return the module xllamacpp; it comes with the extra ``local``."""
    os.environ.setdefault(*PASSIVE)
    try:
        return importlib.import_module("xllamacpp")
    except ImportError:
        raise MissingExtra(TranslatableText("extra_for_inside"), "local") from None


def runtime_version() -> str:
    """Return the version of xllamacpp, whose last part is the build of llama.cpp."""
    return str(_runtime().__version__)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
