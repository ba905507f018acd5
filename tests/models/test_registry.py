"""One table of kinds, and entry points for those of others."""

from __future__ import annotations

from importlib import metadata

import pytest

from keju.config import TaskConfig
from keju.errors import ConfigError
from keju.models import registry
from keju.models.registry import ModelKind, is_local, kind_of, make_model, model_name
from keju.models.scripted import ScriptedModel

ECHO = ModelKind(
    name="echo", argument="TEXT", about="says it back", factory=f"{__name__}:make_echo"
)


def make_echo(config: TaskConfig) -> ScriptedModel:
    return ScriptedModel(config.model, script=config.model.partition(":")[2])


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        name: metadata.EntryPoint(name, f"{__name__}:{value}", registry.ENTRY_POINTS)
        for name, value in (("echo", "ECHO"), ("broken", "NOTHING"), ("wrong", "make_echo"))
    }
    monkeypatch.setattr(registry, "_plugin_entry_points", lambda: points)


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("gpt-x", "NAME"), ("qwen:7b", "NAME"), ("replay", "NAME"), ("scripted:x", "NAME"),
        ("scripted", "scripted"), ("replay:r", "replay:RUN"), (" embedded ", "embedded"),
        ("gguf:a:b", "gguf:PATH"), ("hf:org/x", "hf:NAME"),
    ],
)  # fmt: skip
def test_the_kind_of_a_name(name: str, spelling: str) -> None:
    assert kind_of(name).spelling == spelling
    assert is_local(name) is (spelling != "NAME")


def test_a_plug_in_is_a_kind_like_any_other(plugin: None) -> None:
    config = TaskConfig(model="echo:hello", datasets=["demo"])
    assert isinstance(make_model(config), ScriptedModel)
    assert model_name(config) == "echo:hello"
    assert is_local("echo:hello")
    assert not is_local("echo")
    with pytest.raises(ConfigError, match="api_url has no effect on model 'echo:hello'"):
        make_model(TaskConfig(model="echo:hello", datasets=["demo"], api_url="http://h/v1"))


def test_a_broken_plug_in_is_named(plugin: None) -> None:
    with pytest.raises(ConfigError, match=r"plug-in 'broken' .* cannot be loaded: AttributeError"):
        kind_of("broken:x")
    with pytest.raises(ConfigError, match=r"plug-in 'wrong' .* is not a keju"):
        kind_of("wrong:x")
