"""Settings and files of local models: whatever is wrong is one line with what to do."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from keju.config import TaskConfig
from keju.errors import ConfigError, DataError, EndpointError, KejuError, MissingExtra
from keju.models import weights
from keju.models.llama import model as embedded
from keju.models.llama.model import LlamaModel, LlamaSettings, check_extra_fields, read_settings
from keju.models.registry import make_model
from keju.types import Sampling
from tests.support.local_model import real_weights, small_gguf


def config(model: str, **model_args: Any) -> TaskConfig:
    return TaskConfig(model=model, datasets=["demo"], model_args=model_args)


def one_line(error: KejuError) -> str:
    assert "\n" not in str(error)
    return str(error)


def test_unknown_and_impossible_settings() -> None:
    with pytest.raises(ConfigError, match=r"model_args: .*did you mean 'n_ctx'") as caught:
        read_settings(config("embedded", nctx=512))
    one_line(caught.value)
    with pytest.raises(ConfigError, match="slots"):
        read_settings(config("embedded", slots=0))
    assert read_settings(config("embedded", **{"n-ctx": 512})).n_ctx == 512


def test_a_context_beyond_what_the_model_was_trained_on(tmp_path: Path) -> None:
    file = small_gguf(tmp_path / "m.gguf")
    assert LlamaModel("gguf:m", file).context == 512
    with pytest.raises(ConfigError, match="more than the 512 tokens"):
        LlamaModel("gguf:m", file, LlamaSettings(n_ctx=1024))


def test_a_missing_runtime_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> Any:
        return None if name == "xllamacpp" else importlib.util.find_spec(name)

    monkeypatch.setattr(embedded, "find_spec", without)
    with pytest.raises(MissingExtra, match=r"keju\[local\]"):
        make_model(config("embedded"))


def test_missing_weights_name_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_weights()
    monkeypatch.setenv("KEJU_CACHE_DIR", str(tmp_path))
    absent = dataclasses.replace(weights.EMBEDDED, package="keju-no-such-package")
    monkeypatch.setattr(weights, "EMBEDDED", absent)
    with pytest.raises(DataError, match="keju model pull smollm2"):
        make_model(config("embedded"))


def test_other_weights_under_the_name_embedded_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEJU_CACHE_DIR", str(tmp_path))
    model = LlamaModel("embedded", small_gguf(tmp_path / "m.gguf"))
    with pytest.raises(DataError, match="not the published file"):
        asyncio.run(model.start())


def test_files_that_are_no_models(tmp_path: Path) -> None:
    real_weights()
    for path, why in ((tmp_path / "no.gguf", "No such file"), (Path(__file__), "not a GGUF")):
        with pytest.raises(DataError, match=why) as caught:
            make_model(config(f"gguf:{path}"))
        one_line(caught.value)
    with pytest.raises(ConfigError, match="names no file"):
        make_model(config("gguf:"))


def test_what_llama_cpp_cannot_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_weights()
    monkeypatch.setenv("KEJU_CACHE_DIR", str(tmp_path))
    model = LlamaModel("gguf:m", small_gguf(tmp_path / "m.gguf", architecture="unheard-of"))
    with pytest.raises(EndpointError, match=r"llama\.cpp cannot load") as caught:
        asyncio.run(model.start())
    one_line(caught.value)


def test_a_chat_without_a_template(tmp_path: Path) -> None:
    model = LlamaModel("gguf:m", small_gguf(tmp_path / "m.gguf"))
    with pytest.raises(ConfigError, match="has no chat template") as caught:
        asyncio.run(model.preflight(Sampling()))
    assert "model_args.chat_template" in one_line(caught.value)


def test_a_template_from_text_or_file(tmp_path: Path) -> None:
    file = small_gguf(tmp_path / "m.gguf", template="own")
    named = tmp_path / "t.jinja"
    named.write_text("{{ from_file }}")
    for given, expected in ((None, "own"), ("{{ x }}", "{{ x }}"), (str(named), "{{ from_file }}")):
        model = LlamaModel("gguf:m", file, LlamaSettings(chat_template=given))
        assert model.chat_template == expected
    with pytest.raises(ConfigError, match=r"cannot read nowhere\.jinja"):
        LlamaModel("gguf:m", file, LlamaSettings(chat_template="nowhere.jinja"))


def test_fields_that_would_do_nothing_are_refused() -> None:
    check_extra_fields(Sampling(extra={"top_k": 5, "repetition_penalty": 1.1}))
    with pytest.raises(ConfigError, match="did you mean 'top_k'"):
        check_extra_fields(Sampling(extra={"topk": 5}))
    with pytest.raises(ConfigError, match="cannot set 'messages'"):
        check_extra_fields(Sampling(extra={"messages": []}))
