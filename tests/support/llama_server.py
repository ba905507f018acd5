"""The server of llama.cpp in a process of its own: a real OpenAI-compatible endpoint for tests.

Run as a module it loads a GGUF file, prints its address as one JSON line and serves until
SIGTERM. `LlamaEndpoint` starts and ends such a process.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

REPOSITORY = Path(__file__).resolve().parents[2]
ENDING_SECONDS = 30.0


class LlamaEndpoint:
    """A running server; `url` is the base of its routes."""

    def __init__(
        self, model: Path, *, key: str, alias: str, context: int = 4096, slots: int = 2
    ) -> None:
        command = [sys.executable, "-m", "tests.support.llama_server", "--model", str(model)]
        command += ["--key", key, "--alias", alias]
        command += ["--context", str(context), "--slots", str(slots)]
        self._process = subprocess.Popen(
            command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server did not start: {self._process.stderr.read()}")
        self.url = f"{json.loads(line)['address']}/v1"

    def end(self) -> int:
        """Send SIGTERM and return the exit code."""
        self._process.terminate()
        try:
            self._process.communicate(timeout=ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        return self._process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()


def serve(words: list[str] | None = None) -> None:
    """Load the model, tell the address, and wait for SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--context", type=int, default=4096, help="tokens of each slot")
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(words)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import importlib

    runtime = importlib.import_module("xllamacpp")
    parameters = runtime.CommonParams()
    parameters.model.path = options.model
    parameters.model_alias = {options.alias}
    parameters.api_keys = [options.key]
    parameters.port = options.port
    parameters.n_parallel = options.slots
    parameters.n_ctx = options.context * options.slots
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options.threads
    parameters.flash_attn_type = runtime.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    parameters.warmup = False
    parameters.verbosity = 0
    server = runtime.Server(parameters)
    print(json.dumps({"address": server.listening_address}), flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    os._exit(0)


if __name__ == "__main__":
    serve()
