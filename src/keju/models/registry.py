"""The table of all kinds of models. A new backend is a module and one row here.

Other packages add kinds through the entry point group ``keju.models``. The entry point's name is
the part before the colon of a model's name, and its object is a `ModelKind`.
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
from keju.errors import ConfigError, MissingExtra, Notice, TranslatableText, find_nearest
from keju.models.base import Model
from keju.redaction import find_secrets, has_masked
from keju.types import Sampling

ENTRY_POINTS = "keju.models"
EMBEDDED: Final = "embedded"
DEFAULT_TEMPERATURE: Final = 0.0
OF_ENDPOINTS = (
    "api_url", "endpoints", "serve", "api_key", "ca_file", "headers",
    "generation_config.extra_headers",
)  # fmt: skip
"""Settings that have no meaning for a model without an endpoint."""


@dataclass(frozen=True)
class OptionalExtra:
    """An optional extra of Keju: its modules and how to install it."""

    name: str
    modules: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """The modules that are not installed."""
        return [module for module in self.modules if not _is_installed(module)]

    @property
    def installed(self) -> bool:
        """Whether all its modules are installed."""
        return not self.missing

    @property
    def remedy(self) -> str:
        """The command that installs it."""
        return f"pip install 'keju[{self.name}]'"


def _is_installed(module: str) -> bool:
    """Whether a module can be imported; for ``a.b`` this needs ``a``."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@dataclass(frozen=True, kw_only=True)
class ModelKind:
    """One way to name a model, and how it is made."""

    name: str
    """The whole name of the model, or the part before its colon."""
    argument: str = ""
    """The part after the colon, as ``keju list models`` writes it; empty without a colon."""
    about: str
    factory: str
    """``module:function``: takes the `TaskConfig` and returns the model, not yet started."""
    local: bool = True
    """Whether it needs no endpoint, so that settings of endpoints are refused."""
    takes_args: bool = False
    """Whether it accepts ``model_args``; otherwise they are refused."""
    fit: str = ""
    """``module:function`` for an API with special sampling rules. It takes the `TaskConfig` and the
    requested sampling, and returns the sampling to send with notices for the results."""
    names_itself: bool = False
    """Whether results use the name that the model gives itself instead of the requested name."""
    extra: OptionalExtra | None = None
    continuations: bool = False
    """Whether it gives log-probabilities of given texts (``decode: continuations``)."""

    @property
    def spelling(self) -> str:
        """How it is written, e.g. ``gguf:PATH``."""
        return ":".join(filter(None, (self.name, self.argument)))


LOCAL = OptionalExtra("local", ("xllamacpp",))
HF = OptionalExtra("hf", ("transformers", "torch"))

ENDPOINT = ModelKind(
    name="",
    argument="NAME",
    about="a model at an OpenAI-compatible endpoint; give --api-url",
    factory="keju.models.openai.client:make",
    local=False,
    continuations=True,
)
"""The kind of every name that belongs to no other kind."""

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
        continuations=True,
    ),
    ModelKind(
        name="replay",
        argument="RUN",
        about="the stored replies of a run",
        factory="keju.runs.replay:make",
        fit="keju.runs.replay:fit",
        names_itself=True,
        continuations=True,
    ),
    ModelKind(
        name=EMBEDDED,
        about="a small model inside this process",
        factory="keju.models.llama.model:make",
        continuations=True,
        takes_args=True,
        extra=LOCAL,
    ),
    ModelKind(
        name="gguf",
        argument="PATH",
        about="your own GGUF file",
        factory="keju.models.llama.model:make",
        continuations=True,
        takes_args=True,
        extra=LOCAL,
    ),
    ModelKind(
        name="hf",
        argument="NAME",
        about="a transformers checkpoint, by hub name or folder",
        factory="keju.models.hf:make",
        continuations=True,
        takes_args=True,
        extra=HF,
    ),
)


@cache
def _plugin_entry_points() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


def all_kinds() -> list[ModelKind]:
    """Return all kinds of models, Keju's own first."""
    keju_names = {kind.name for kind in KINDS}
    return [
        *KINDS,
        *(
            _load_plugin(point)
            for name, point in _plugin_entry_points().items()
            if name not in keju_names
        ),
    ]


def kind_of(model: str) -> ModelKind:
    """Return the kind of model for a name; a name of no known kind is at an endpoint."""
    kind_name, colon, _ = model.strip().partition(":")
    for kind in KINDS:
        if kind.name == kind_name and bool(kind.argument) == bool(colon):
            return kind
    # Names such as qwen:7b have a colon too, so plug-ins are only looked up for names with one.
    return (
        _load_plugin(_plugin_entry_points()[kind_name])
        if colon and kind_name in _plugin_entry_points()
        else ENDPOINT
    )


def _nearest_kind(name: str) -> str | None:
    """Return a name such as ``gguf:a`` with the nearest kind of model before the colon."""
    kind_name, _, argument = name.partition(":")
    with_colon = [kind.name for kind in KINDS if kind.name and kind.argument]
    suggestion = find_nearest(kind_name, [*with_colon, *_plugin_entry_points()])
    return f"{suggestion}:{argument}" if suggestion else None


def nearest_spelling(model: str) -> str | None:
    """Return the correct name of a model that needs no address if `model` is close to it; else
    None.

    ``embeded`` and ``smollm2``, the weights of the embedded model, are ``embedded``; ``gguf:a`` is
    ``gguf:a``; ``sonnet`` is ``anthropic:sonnet``; ``small.gguf``, a file, is ``gguf:small.gguf``.
    """
    from keju.models import weights

    name = model.strip()
    if ":" in name:
        return _nearest_kind(name)
    if name.endswith(".gguf"):
        return f"gguf:{name}"
    if Path(name, "config.json").is_file():
        return f"hf:{name}"
    if name.startswith("claude-"):
        return f"anthropic:{name}"
    spelling_of = {kind.name: kind.spelling for kind in KINDS if kind.name}
    spelling_of |= {short.partition(":")[2]: short for short in SHORT_NAMES}
    spelling_of |= dict.fromkeys(weights.ALL_WEIGHTS, EMBEDDED)
    suggestion = find_nearest(name, spelling_of)
    return spelling_of[suggestion] if suggestion else None


def is_local(model: object) -> bool:
    """Whether a model string names a model that needs no endpoint."""
    return isinstance(model, str) and kind_of(model).local


def settings_without_effect(model: object) -> tuple[str, ...]:
    """Return the settings that would do nothing for a model of this name."""
    if not isinstance(model, str) or not model.strip():
        return ()
    kind = kind_of(model)
    return (() if kind.takes_args else ("model_args",)) + (OF_ENDPOINTS if kind.local else ())


def make_model(config: TaskConfig) -> Model:
    """Return the model, not yet started; raise ConfigError in one line if it cannot be made.

    If it has several endpoints, return the model at the first one.
    """
    return make_models(config)[0]


def make_models(config: TaskConfig) -> list[Model]:
    """Return the model at each of its endpoints, or the only model."""
    return [_make_model(task) for task in endpoint_tasks(config)]


def _make_model(config: TaskConfig) -> Model:
    name = config.model.strip()
    if not name:
        raise ConfigError("model_empty")
    kind = kind_of(name)
    for setting in settings_without_effect(name):
        if attrgetter(setting)(config):
            raise ConfigError("model_no_effect", setting=setting, name=name)
    fields = [config.generation_config.extra_body, config.model_args, config.dataset_args]
    if has_masked(fields):
        raise ConfigError("secret_not_stored")
    try:
        model = cast(Model, _load_function(kind.factory)(config))
        if (redact := getattr(model, "redact", None)) is not None:
            redact.add(find_secrets(fields))
        return model
    except ModuleNotFoundError:
        if kind.extra is None:
            raise
        raise MissingExtra(
            TranslatableText("extra_for_model", name=config.model), kind.extra.name
        ) from None


def endpoint_tasks(config: TaskConfig) -> list[TaskConfig]:
    """Return the task at each of its endpoints, or the task itself if it has at most one address.

    Raises ConfigError for an endpoint without its key, or with a model of another kind.
    """
    if not config.endpoints or is_local(config.model):
        return [config]
    tasks = []
    for index, endpoint in enumerate(config.endpoints):
        endpoint_settings: dict[str, Any] = {"api_url": endpoint.url, "endpoints": []}
        if endpoint.model is not None:
            endpoint_settings["model"] = endpoint.model
            if kind_of(endpoint.model) is not kind_of(config.model):
                names = {"place": index, "name": endpoint.model, "model": config.model}
                raise ConfigError("endpoint_other_kind", **names)
        if variable := endpoint.api_key_var:
            if not os.environ.get(variable):
                raise ConfigError("endpoint_key_unset", url=endpoint.display_url, variable=variable)
            endpoint_settings["api_key"] = SecretStr(os.environ[variable])
        tasks.append(config.model_copy(update=endpoint_settings))
    return tasks


def fit_sampling(config: TaskConfig, requested: Sampling) -> tuple[Sampling, tuple[Notice, ...]]:
    """Return the sampling to send to the model, and notices for the results.

    The temperature is None in `requested` if no setting names one. It is then 0, unless the kind of
    model does not support it. Raises ConfigError for settings that the model refuses.
    """
    kind = kind_of(config.model)
    if requested.decode == "continuations" and not kind.continuations:
        raise ConfigError("continuations_unsupported", model=config.model.strip())
    if kind.fit:
        return cast(
            tuple[Sampling, tuple[Notice, ...]], _load_function(kind.fit)(config, requested)
        )
    temperature = DEFAULT_TEMPERATURE if requested.temperature is None else requested.temperature
    return msgspec.structs.replace(requested, temperature=temperature), ()


def _load_function(path: str) -> Callable[..., Any]:
    """Return the function that ``module:function`` names."""
    module, _, function = path.partition(":")
    return cast(Callable[..., Any], getattr(importlib.import_module(module), function))


def model_name(config: TaskConfig) -> str:
    """Return the name for results and for the hash of every request."""
    name = config.model.strip()
    return make_model(config).name if name and kind_of(name).names_itself else name


def _load_plugin(point: metadata.EntryPoint) -> ModelKind:
    """Load the kind of an entry point; raise ConfigError with the broken plug-in and the
    problem."""
    where = TranslatableText("place_plugin", name=point.name, value=point.value)
    try:
        kind = point.load()
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise ConfigError("model_kind_not_loaded", where=where, problem=problem) from None
    if not isinstance(kind, ModelKind):
        raise ConfigError("model_no_kind", where=where)
    return kind
