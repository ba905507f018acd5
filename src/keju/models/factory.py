"""From a configuration to the model it names."""

from __future__ import annotations

import importlib
from operator import attrgetter
from typing import cast

from keju.config import TaskConfig
from keju.errors import ConfigError, MissingExtra
from keju.models.base import Model

LOCAL = {"gguf": ("keju.models.embedded", "local"), "hf": ("keju.models.hf", "hf")}
"""Kind of a local model to the module that makes it, and the extra it needs."""

OF_ENDPOINTS = ("api_url", "api_key", "ca_file", "headers", "generation_config.extra_headers")
"""Settings that mean nothing to a model without an endpoint."""


def make_model(config: TaskConfig) -> Model:
    """Return the model, not yet started; ConfigError in one line if it cannot be made.

    A name is taken for one at an endpoint unless it is ``scripted``, ``embedded``, or begins
    with ``replay:``, ``gguf:`` or ``hf:``.
    """
    name = config.model.strip()
    if not name:
        raise ConfigError("model is empty: name one with --model")
    kind, colon, rest = name.partition(":")
    if name == "embedded" or (colon and kind in LOCAL):
        return _local("gguf" if name == "embedded" else kind, rest, config)
    if name == "scripted" or (colon and kind == "replay"):
        _refuse_settings(config, name, ("model_args", *OF_ENDPOINTS))
        if name == "scripted":
            return _scripted()
        return cast(Model, importlib.import_module("keju.runs.replay").make(config))
    return _endpoint(name, config)


def model_name(config: TaskConfig) -> str:
    """The name that stands in results and in the hash of every request.

    A replayed run goes by the name of the model that was recorded.
    """
    name = config.model.strip()
    return make_model(config).name if name.startswith("replay:") else name


def _endpoint(name: str, config: TaskConfig) -> Model:
    from keju.models.openai import PREFLIGHT_SECONDS, OpenAIModel

    _refuse_settings(config, name, ("model_args",))
    if not config.api_url:
        raise ConfigError(
            f"model '{name}' needs the address of its endpoint: give --api-url or set "
            "OPENAI_BASE_URL (or name a model that needs none: scripted, embedded, gguf:PATH, "
            "hf:NAME, replay:RUN)"
        )
    return OpenAIModel(
        name,
        api_url=config.api_url,
        api_key=config.api_key.get_secret_value() if config.api_key is not None else None,
        headers=config.headers | config.generation_config.extra_headers,
        ca_file=config.ca_file,
        preflight_timeout=min(config.timeout, PREFLIGHT_SECONDS),
    )


def _scripted() -> Model:
    from keju.models.scripted import ScriptedModel

    return ScriptedModel()


def _local(kind: str, what: str, config: TaskConfig) -> Model:
    """A local model, made by the ``make(config)`` of its module."""
    _refuse_settings(config, config.model, OF_ENDPOINTS)
    if kind != "gguf" and not what:
        raise ConfigError(f"model '{config.model}' names nothing after '{kind}:'")
    module, extra = LOCAL[kind]
    try:
        made = importlib.import_module(module).make(config)
    except ModuleNotFoundError:
        raise MissingExtra(f"model '{config.model}'", extra) from None
    return cast(Model, made)


def _refuse_settings(config: TaskConfig, name: str, settings: tuple[str, ...]) -> None:
    """A setting that would do nothing is an error."""
    for setting in settings:
        if attrgetter(setting)(config):
            raise ConfigError(f"{setting} has no effect on model '{name}': leave it out")
