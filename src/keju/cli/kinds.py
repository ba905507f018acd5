"""Optional parts of Keju, as ``doctor`` shows them."""

from __future__ import annotations

from keju.models.registry import KINDS, Extra

EXTRAS = (
    Extra("data", ("duckdb", "huggingface_hub"), "Parquet files and downloads from hubs"),
    *dict.fromkeys(kind.extra for kind in KINDS if kind.extra is not None),
    Extra("logs", ("zstandard",), "logs of other tools that are packed with Zstandard"),
)
