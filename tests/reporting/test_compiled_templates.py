"""Compiled templates next to the templates."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2 import DictLoader, Environment

from keju.reporting.compiled_templates import CompiledTemplates


def render(folder: Path, text: str) -> str:
    compiled = CompiledTemplates()
    compiled.directory = str(folder)
    environment = Environment(loader=DictLoader({"page": text}), bytecode_cache=compiled)
    return environment.get_template("page").render(n=1)


def test_a_changed_template_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert render(tmp_path, "{{ n }} run") == "1 run"
    (stored,) = tmp_path.iterdir()
    before = stored.stat().st_mtime_ns
    assert render(tmp_path, "{{ n }} run") == "1 run"
    assert stored.stat().st_mtime_ns == before
    assert render(tmp_path, "{{ n + 1 }} runs") == "2 runs"


def test_nothing_is_stored_where_python_stores_no_compiled_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert render(tmp_path, "text") == "text"
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert render(tmp_path / "absent", "text") == "text"
    assert not list(tmp_path.iterdir())
