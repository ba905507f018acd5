"""Optional parts of Keju and the kinds of model it can examine, as ``list`` and ``doctor`` show."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True)
class Extra:
    """An optional part: what it brings and how to get it."""

    name: str
    modules: tuple[str, ...]
    about: str

    @property
    def missing(self) -> list[str]:
        """The modules that are not installed."""
        return [module for module in self.modules if find_spec(module) is None]

    @property
    def installed(self) -> bool:
        """Whether everything it needs is there."""
        return not self.missing

    @property
    def remedy(self) -> str:
        """What to type."""
        return f"pip install 'keju[{self.name}]'"


@dataclass(frozen=True)
class ModelKind:
    """One way to name a model."""

    spelling: str
    about: str
    extra: Extra | None = None


LOCAL = Extra("local", ("xllamacpp",), "models inside this process (GGUF)")
HF = Extra("hf", ("transformers", "torch"), "checkpoints through transformers")

EXTRAS = (
    Extra("data", ("duckdb", "huggingface_hub"), "Parquet files and downloads from hubs"),
    LOCAL,
    HF,
    Extra("logs", ("zstandard",), "logs of other tools that are packed with Zstandard"),
)

MODEL_KINDS = (
    ModelKind("NAME", "a model at an OpenAI-compatible endpoint; give --api-url"),
    ModelKind("scripted", "answers by rule, without any model: for trying things out"),
    ModelKind("replay:RUN", "the stored replies of a run"),
    ModelKind("embedded", "a small model inside this process", LOCAL),
    ModelKind("gguf:PATH", "a GGUF file of your own", LOCAL),
    ModelKind("hf:NAME", "a transformers checkpoint, by hub name or folder", HF),
)
