"""The kinds of models, in one table: a new backend is its module and one row here.

Packages of others add kinds through the entry point group ``keju.models``: the entry point's name
is what stands before the colon of a model's name, its object is a `ModelKind`.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from pydantic import SecretStr

from keju.config import TaskConfig
from keju.config.address import SHORT_NAMES
from keju.errors import ConfigError, Hint, MissingExtra, Notice, nearest
from keju.models.base import Model
from keju.redaction import has_masked, secrets_in
from keju.types import Sampling

ENTRY_POINTS = "keju.models"
EMBEDDED: Final = "embedded"
DEFAULT_TEMPERATURE: Final = 0.0
OF_ENDPOINTS = (
    "api_url", "endpoints", "serve", "api_key", "ca_file", "headers",
    "generation_config.extra_headers",
)  # fmt: skip
"""Settings that mean nothing to a model without an endpoint."""


@dataclass(frozen=True)
class Extra:
    """An optional part of Keju: what it brings and how to get it."""

    name: str
    modules: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """The modules that are not installed."""
        return [module for module in self.modules if not _is_there(module)]

    @property
    def installed(self) -> bool:
        """Whether everything it needs is there."""
        return not self.missing

    @property
    def remedy(self) -> str:
        """What to type."""
        return f"pip install 'keju[{self.name}]'"


def _is_there(module: str) -> bool:
    """Whether a module can be imported; that of ``a.b`` needs ``a``."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@dataclass(frozen=True, kw_only=True)
class ModelKind:
    """One way to name a model, and what comes of it."""

    name: str
    """The whole name of the model, or what stands before its colon."""
    argument: str = ""
    """What stands after the colon, as ``keju list models`` writes it; empty without a colon."""
    about: str
    factory: str
    """``module:function``; it takes the `TaskConfig` and returns the model, not yet started."""
    local: bool = True
    """It needs no endpoint, so the settings of endpoints are refused."""
    takes_args: bool = False
    """``model_args`` are its settings; otherwise they are refused."""
    fit: str = ""
    """``module:function`` of a kind whose API has sampling of its own: it takes the `TaskConfig`
    and the sampling as asked for, and returns it as it is sent, with notices for the results."""
    names_itself: bool = False
    """Results bear the name that the model gives itself, not the one it was asked for by."""
    extra: Extra | None = None

    @property
    def spelling(self) -> str:
        """How it is written, e.g. ``gguf:PATH``."""
        return ":".join(filter(None, (self.name, self.argument)))


LOCAL = Extra("local", ("xllamacpp",))
HF = Extra("hf", ("transformers", "torch"))

ENDPOINT = ModelKind(
    name="",
    argument="NAME",
    about="a model at an OpenAI-compatible endpoint; give --api-url",
    factory="keju.models.openai.client:make",
    local=False,
)
"""What any name is that no other kind claims."""

KINDS = (
    ENDPOINT,
    ModelKind(
        name="anthropic",
        argument="NAME",
        about="a model of Anthropic's Messages API, by id or as sonnet, opus, haiku; its key is "
        "in ANTHROPIC_API_KEY",
        factory="keju.models.anthropic.client:make",
        local=False,
        takes_args=True,
        fit="keju.models.anthropic.sampling:fit",
    ),
    ModelKind(
        name="scripted",
        about="guesses, without any model, often in a form that is no answer, so that it scores "
        "below chance: for trying things out",
        factory="keju.models.scripted:make",
    ),
    ModelKind(
        name="replay",
        argument="RUN",
        about="the stored replies of a run",
        factory="keju.runs.replay:make",
        fit="keju.runs.replay:fit",
        names_itself=True,
    ),
    ModelKind(
        name=EMBEDDED,
        about="a small model inside this process",
        factory="keju.models.llama.model:make",
        takes_args=True,
        extra=LOCAL,
    ),
    ModelKind(
        name="gguf",
        argument="PATH",
        about="a GGUF file of your own",
        factory="keju.models.llama.model:make",
        takes_args=True,
        extra=LOCAL,
    ),
    ModelKind(
        name="hf",
        argument="NAME",
        about="a transformers checkpoint, by hub name or folder",
        factory="keju.models.hf:make",
        takes_args=True,
        extra=HF,
    ),
)


@cache
def _plugins() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


def all_kinds() -> list[ModelKind]:
    """All kinds of models, Keju's own first."""
    own = {kind.name for kind in KINDS}
    return [*KINDS, *(_load(point) for name, point in _plugins().items() if name not in own)]


def kind_of(model: str) -> ModelKind:
    """The kind of model that a name stands for; one that no kind claims is at an endpoint."""
    before, colon, _ = model.strip().partition(":")
    for kind in KINDS:
        if kind.name == before and bool(kind.argument) == bool(colon):
            return kind
    # Names such as qwen:7b have a colon too, so plug-ins are looked up only for those with one.
    return _load(_plugins()[before]) if colon and before in _plugins() else ENDPOINT


def near_name(model: str) -> str | None:
    """How a model that needs no address is written, where `model` is nearly one; else None.

    ``embeded`` and ``smollm2``, the weights of the embedded model, are ``embedded``; ``gguff:a`` is
    ``gguf:a``; ``sonnet`` is ``anthropic:sonnet``; ``small.gguf``, a file, is ``gguf:small.gguf``.
    """
    from keju.models import weights

    name = model.strip()
    before, colon, after = name.partition(":")
    if colon:
        with_colon = [kind.name for kind in KINDS if kind.name and kind.argument]
        near = nearest(before, [*with_colon, *_plugins()])
        return f"{near}:{after}" if near else None
    if name.endswith(".gguf"):
        return f"gguf:{name}"
    if Path(name, "config.json").is_file():
        return f"hf:{name}"
    if name.startswith("claude-"):
        return f"anthropic:{name}"
    meant = {kind.name: kind.spelling for kind in KINDS if kind.name}
    meant |= {short.partition(":")[2]: short for short in SHORT_NAMES}
    meant |= dict.fromkeys(weights.KNOWN, EMBEDDED)
    near = nearest(name, meant)
    return meant[near] if near else None


def is_local(model: object) -> bool:
    """Whether a model string names a model that needs no endpoint."""
    return isinstance(model, str) and kind_of(model).local


def idle_settings(model: object) -> tuple[str, ...]:
    """The settings that would do nothing for a model of this name."""
    if not isinstance(model, str) or not model.strip():
        return ()
    kind = kind_of(model)
    return (() if kind.takes_args else ("model_args",)) + (OF_ENDPOINTS if kind.local else ())


def make_model(config: TaskConfig) -> Model:
    """The model, not yet started; ConfigError in one line if it cannot be made.

    Where it is at several endpoints, the one at the first of them.
    """
    return make_models(config)[0]


def make_models(config: TaskConfig) -> list[Model]:
    """The model at each of its endpoints, or the only one there is."""
    return [_make_model(task) for task in endpoint_tasks(config)]


def _make_model(config: TaskConfig) -> Model:
    name = config.model.strip()
    if not name:
        raise ConfigError("model_empty")
    kind = kind_of(name)
    for setting in idle_settings(name):
        if attrgetter(setting)(config):
            raise ConfigError("model_no_effect", setting=setting, name=name)
    fields = [config.generation_config.extra_body, config.model_args, config.dataset_args]
    if has_masked(fields):
        raise ConfigError("secret_not_stored")
    try:
        model = cast(Model, _function(kind.factory)(config))
        if (redact := getattr(model, "redact", None)) is not None:
            redact.add(secrets_in(fields))
        return model
    except ModuleNotFoundError:
        if kind.extra is None:
            raise
        raise MissingExtra(Hint("extra_for_model", name=config.model), kind.extra.name) from None


def endpoint_tasks(config: TaskConfig) -> list[TaskConfig]:
    """The task at each of its endpoints; the task itself where it has at most one address.

    ConfigError for an endpoint whose key is not there, or whose model is of another kind.
    """
    if not config.endpoints or is_local(config.model):
        return [config]
    tasks = []
    for place, endpoint in enumerate(config.endpoints):
        own: dict[str, Any] = {"api_url": endpoint.url, "endpoints": []}
        if endpoint.model is not None:
            own["model"] = endpoint.model
            if kind_of(endpoint.model) is not kind_of(config.model):
                names = {"place": place, "name": endpoint.model, "model": config.model}
                raise ConfigError("endpoint_other_kind", **names)
        if variable := endpoint.api_key_var:
            if not os.environ.get(variable):
                raise ConfigError("endpoint_key_unset", url=endpoint.display_url, variable=variable)
            own["api_key"] = SecretStr(os.environ[variable])
        tasks.append(config.model_copy(update=own))
    return tasks


def fit_sampling(config: TaskConfig, asked: Sampling) -> tuple[Sampling, tuple[Notice, ...]]:
    """Sampling as the model is sent it, and what results must say of it.

    A temperature that nobody asked for, which is None in `asked`, is 0 unless the kind of model
    has no place for one. ConfigError for what the model refuses.
    """
    kind = kind_of(config.model)
    if kind.fit:
        return cast(tuple[Sampling, tuple[Notice, ...]], _function(kind.fit)(config, asked))
    usual = DEFAULT_TEMPERATURE if asked.temperature is None else asked.temperature
    return msgspec.structs.replace(asked, temperature=usual), ()


def _function(place: str) -> Callable[..., Any]:
    """What ``module:function`` names."""
    module, _, function = place.partition(":")
    return cast(Callable[..., Any], getattr(importlib.import_module(module), function))


def model_name(config: TaskConfig) -> str:
    """The name that stands in results and in the hash of every request."""
    name = config.model.strip()
    return make_model(config).name if name and kind_of(name).names_itself else name


def _load(point: metadata.EntryPoint) -> ModelKind:
    """The kind behind an entry point; ConfigError says which plug-in is broken, and how."""
    where = Hint("place_plugin", name=point.name, value=point.value)
    try:
        kind = point.load()
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise ConfigError("model_kind_not_loaded", where=where, problem=problem) from None
    if not isinstance(kind, ModelKind):
        raise ConfigError("model_no_kind", where=where)
    return kind
