"""A language model inside this process: the embedded one, or a GGUF file of the user's."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from keju.config import TaskConfig
from keju.config.strict import explain
from keju.errors import ConfigError, DataError, EndpointError, MissingExtra
from keju.models import weights
from keju.models.base import Model
from keju.models.gguf import Gguf, read_gguf, template_hash
from keju.models.llama import LlamaServer, Loading, available_cores, runtime_version
from keju.models.llama_calls import Caller, check_extra_fields
from keju.types import Fault, Prefix, Prompt, Reply, Request, Sampling

DEFAULT_CONTEXT = 4096
"""Tokens a slot, unless the model was trained on fewer."""
DEFAULT_SLOTS = 1
"""One reply at a time is computed in the same way whenever it is asked for. With more, what
shares a batch depends on time, and so does the last bit of the arithmetic."""
EMBEDDED = "embedded"
GGUF_PREFIX = "gguf:"
TRIAL = Prompt(Prefix(), "Answer with one letter, A or B.\nAnswer:")
TRIAL_LABELS = "AB"
TRIAL_SECONDS = 600.0
"""A large model may take long over its first token."""


class LlamaSettings(BaseModel):
    """What ``model_args`` may say about a model that llama.cpp runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    n_ctx: PositiveInt | None = None
    """Context of each slot in tokens; 4096 by default, or what the model was trained on."""
    slots: PositiveInt = DEFAULT_SLOTS
    """Requests worked on at once, faster where replies are long; each slot stays on one prefix."""
    threads: PositiveInt | None = None
    """Threads of the arithmetic; by default one for each core this process may use."""
    n_gpu_layers: int = Field(default=-1, ge=-1)
    """Layers on the GPU where the runtime has one; -1 for all."""
    chat_template: str | None = None
    """A template in Jinja, or the path of a file with one, instead of the model's own."""
    prefix_reuse: bool = True
    """Keep what is computed for a prompt and use it for the next that begins alike."""
    flash_attention: bool = False
    """Faster attention, whose rounding depends on what else is in the batch."""
    label_space: bool = False
    """Count `` A`` with a space before it as a spelling of the label ``A``."""


def make(config: TaskConfig) -> LlamaModel:
    """The model that `config` names, not yet loaded; a KejuError says what is wrong or missing."""
    settings = read_settings(config)
    if find_spec("xllamacpp") is None:
        raise MissingExtra(f"model '{config.model}'", "local")
    name = config.model.strip()
    if name == EMBEDDED:
        return LlamaModel(name, weights.locate(weights.EMBEDDED, os.environ), settings)
    path = name.removeprefix(GGUF_PREFIX)
    if not path:
        raise ConfigError(f"model '{name}' names no file after '{GGUF_PREFIX}'")
    return LlamaModel(name, Path(path).expanduser(), settings)


def read_settings(config: TaskConfig) -> LlamaSettings:
    """Check ``model_args``; ConfigError names the nearest key."""
    given: dict[str, Any] = {key.replace("-", "_"): v for key, v in config.model_args.items()}
    try:
        return LlamaSettings(**given)
    except ValidationError as error:
        raise ConfigError(f"model_args: {explain(error, LlamaSettings)}") from None


class LlamaModel(Model):
    """Runs a GGUF file with llama.cpp, in worker threads of this process.

    A call that is given up (a timeout, Ctrl-C) is stopped at its next token; what its slot
    computes until then is finished in the background.
    """

    def __init__(self, name: str, path: Path, settings: LlamaSettings | None = None) -> None:
        """Read the header of the file; DataError or ConfigError if it cannot be used."""
        self.name = name
        self.settings = settings or LlamaSettings()
        self.slots = self.settings.slots
        self.file: Gguf = read_gguf(path)
        self.context = _context(self.file, self.settings.n_ctx)
        self.chat_template = _template(self.settings.chat_template) or self.file.chat_template
        self._caller: Caller | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._open: set[threading.Event] = set()
        self._facts: dict[str, Any] = {}

    async def start(self) -> None:
        """Load the weights; EndpointError if llama.cpp cannot."""
        if self._caller is None:
            await asyncio.to_thread(self._load)

    async def preflight(self, sampling: Sampling) -> None:
        """Refuse settings that would do nothing, and let the model say one token."""
        check_extra_fields(sampling)
        if sampling.form == "chat" and not self.chat_template:
            raise ConfigError(
                f"model '{self.name}' has no chat template: take a protocol in completion form "
                "(--api completions where the protocol allows it), or give model_args.chat_template"
            )
        trial = msgspec.structs.replace(sampling, max_tokens=1)
        labels = TRIAL_LABELS if sampling.decode == "labels" else ""
        request = Request(TRIAL, trial, hash="", labels=labels)
        reply = await self.ask(request, timeout=TRIAL_SECONDS)
        if reply.error is not None:
            raise EndpointError(f"model '{self.name}' cannot answer: {reply.error.message}")

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one attempt in a worker thread."""
        if self._caller is None or self._pool is None:
            await self.start()
        assert self._caller is not None
        assert self._pool is not None
        started = perf_counter()
        stop = threading.Event()
        self._open.add(stop)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                return await loop.run_in_executor(self._pool, self._caller.answer, request, stop)
        except TimeoutError:
            fault = Fault("timeout", f"no reply within {timeout:g} s")
            return Reply(seconds=perf_counter() - started, error=fault)
        finally:
            stop.set()
            self._open.discard(stop)

    async def close(self) -> None:
        """Stop what is running and let go of the weights."""
        for stop in self._open:
            stop.set()
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)
        self._caller = None

    def facts(self) -> dict[str, Any]:
        """The file, the runtime, and every setting that determines the replies."""
        return {
            "name": self.name,
            "backend": "llama.cpp",
            "file": self.file.path.name,
            "bytes": self.file.size,
            "architecture": self.file.architecture,
            "quantisation": self.file.quantisation,
            "context": self.context,
            "slots": self.slots,
            "prefix_reuse": self.settings.prefix_reuse,
            "flash_attention": self.settings.flash_attention,
            "label_space": self.settings.label_space,
            "chat_template_hash": template_hash(self.chat_template) or None,
        } | self._facts

    def _load(self) -> None:
        settings = self.settings
        digest = weights.checksum(self.file.path, os.environ)
        known = weights.EMBEDDED
        if self.name == EMBEDDED and digest != known.sha256:
            raise DataError(f"{self.file.path} is not the published file: {known.command}")
        threads = settings.threads or available_cores()
        server = LlamaServer(
            Loading(
                path=self.file.path,
                alias=self.name,
                context=self.context,
                slots=settings.slots,
                threads=threads,
                gpu_layers=settings.n_gpu_layers,
                chat_template=_template(settings.chat_template) or "",
                prefix_reuse=settings.prefix_reuse,
                flash_attention=settings.flash_attention,
            )
        )
        self._caller = Caller(server, self.name, self.file.vocabulary, space=settings.label_space)
        self._pool = ThreadPoolExecutor(settings.slots, thread_name_prefix="keju-llama")
        self._facts = {"sha256": digest, "threads": threads, "xllamacpp": runtime_version()}


def _context(file: Gguf, asked: int | None) -> int:
    trained = file.context or DEFAULT_CONTEXT
    if asked is None:
        return min(DEFAULT_CONTEXT, trained)
    if file.context and asked > file.context:
        raise ConfigError(
            f"model_args.n_ctx: {asked} is more than the {file.context} tokens that "
            f"{file.path.name} was trained on"
        )
    return asked


def _template(given: str | None) -> str | None:
    """A chat template from the text itself or from the file it names."""
    if given is None or "{" in given:
        return given
    try:
        return Path(given).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text"
        raise ConfigError(f"model_args.chat_template: cannot read {given}: {reason}") from None
