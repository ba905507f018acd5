"""llama.cpp inside this process, through xllamacpp: bytes in, bytes out.

The runtime is the server of llama.cpp, so bodies and replies have OpenAI's shape. Its calls
block and leave the interpreter free; a call is streamed, so that it can be stopped between two
tokens. The tokenizer and the chat template are reached over the loopback address on which the
server listens, guarded by a key of its own.
"""

from __future__ import annotations

import http.client
import importlib
import os
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from keju.errors import EndpointError, MissingExtra
from keju.types import Form

PASSIVE = ("OMP_WAIT_POLICY", "passive")
"""Idle threads of OpenMP would otherwise spin and burn the cores; read when it is loaded."""
LOOPBACK_SECONDS = 60.0


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
    """A loaded model."""

    def __init__(self, loading: Loading) -> None:
        """Load the weights; EndpointError in one line where that fails."""
        self._key = secrets.token_urlsafe(32)
        try:
            self.native = _runtime().Server(self._parameters(loading))
        except (RuntimeError, ValueError, OSError) as error:
            template = ", or model_args.chat_template" if loading.chat_template else ""
            raise EndpointError(
                f"llama.cpp cannot load {loading.path}: a damaged file, an architecture that "
                f"it does not know, too little memory for model_args.n_ctx × slots{template} "
                f"({error})"
            ) from None
        address = urlsplit(self.native.listening_address)
        self._host, self._port = address.hostname or "", address.port or 0

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
        parameters.api_keys = [self._key]
        parameters.ui = parameters.endpoint_slots = False
        return parameters

    def complete(self, form: Form, body: bytes, stop: threading.Event) -> list[bytes]:
        """Make one call and return its chunks in order; it ends early once `stop` is set."""
        chunks: list[bytes] = []

        def take(chunk: bytes) -> bool:
            chunks.append(chunk)
            return stop.is_set()

        if not stop.is_set():
            chat = form == "chat"
            handle = self.native.handle_chat_completions if chat else self.native.handle_completions
            handle(body, take)
        return chunks

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """The tokens of `text`; `special` adds what the model wants at the beginning."""
        fields = {"content": text, "add_special": special, "parse_special": True}
        tokens: list[int] = self._post("/tokenize", fields)["tokens"]
        return tokens

    def render(self, messages: list[dict[str, str]], options: dict[str, Any]) -> str:
        """A conversation as the text that the model continues; ValueError if it cannot be."""
        fields: dict[str, Any] = {"messages": messages}
        if options:
            fields["chat_template_kwargs"] = options
        return str(self._post("/apply-template", fields)["prompt"])

    def _post(self, route: str, fields: dict[str, Any]) -> Any:
        """Ask the loopback address; never through a proxy."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=LOOPBACK_SECONDS)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.request("POST", route, msgspec.json.encode(fields), headers)
            reply = connection.getresponse()
            document = msgspec.json.decode(reply.read())
        finally:
            connection.close()
        if reply.status != http.client.OK:
            raise ValueError(document.get("error", {}).get("message", f"status {reply.status}"))
        return document


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
