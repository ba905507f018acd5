"""Where settings come from: a file, the environment, overrides and flags, made one `TaskConfig`.

The nearer to the command line, the stronger: flags, then overrides (``-s key.sub=value``), then
the environment (``KEJU_<FIELD>``, then ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``), then the file,
then defaults. Mappings merge key by key, so a flag that sets the temperature leaves the file's
token limit alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from pydantic import AliasChoices, BaseModel

from keju.config import TaskConfig
from keju.config.strict import model_of
from keju.config.text import document, mapping, scalar
from keju.errors import ConfigError, did_you_mean

PREFIX: Final = "KEJU_"
OTHER_VARIABLES: Final = ("KEJU_CACHE_DIR", "KEJU_DEBUG")
"""Variables of Keju that are no setting of a task."""
TEST_PREFIX: Final = "KEJU_TEST_"
SHARED: Final = {"api_key": "OPENAI_API_KEY", "api_url": "OPENAI_BASE_URL"}
"""What the environment may also hold under the names that other programs use."""
LOCAL_MODELS: Final = ("scripted", "embedded")
LOCAL_KINDS: Final = ("replay", "gguf", "hf")
"""Models that need no endpoint: by name, and by what stands before a colon."""

MANIFEST: Final = "manifest.json"
"""The file of a run's folder that holds its configuration."""
ENVIRONMENT: Final = "the environment"

Layer = dict[str, Any]


def load(
    file: str | Path | None = None,
    overrides: Sequence[str] = (),
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> TaskConfig:
    """Merge all sources into one checked configuration; ConfigError says which source is wrong.

    `flags` holds fields of `TaskConfig` as far as they were given; `environ` is the process's own
    environment unless another is passed. Relative paths in a file are relative to the current
    directory. The manifest of a run outranks the environment: what is resumed is that run.
    """
    environ = os.environ if environ is None else environ
    stored = (str(file), from_file(Path(file)) if file is not None else {})
    around = (ENVIRONMENT, from_environment(environ))
    resumes = file is not None and Path(file).name == MANIFEST
    sources = [
        *((around, stored) if resumes else (stored, around)),
        ("-s", from_overrides(overrides)),
        ("", canonical(flags or {})),
    ]
    merged: Layer = {}
    origins: dict[str, str] = {}
    for origin, layer in sources:
        merged = merge(merged, layer)
        origins |= dict.fromkeys(layer, origin)
    if is_local(merged.get("model")):
        _forget_endpoint(merged, origins)
    try:
        return TaskConfig(**merged)
    except ConfigError as error:
        raise ConfigError(_with_origin(str(error), origins)) from None


def merge(below: Layer, above: Mapping[str, Any]) -> Layer:
    """Return `below` with `above` laid over it; mappings merge key by key, lists replace."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        both = isinstance(under, dict) and isinstance(value, Mapping)
        merged[key] = merge(under, value) if both and under is not None else value
    return merged


def from_file(path: Path) -> Layer:
    """The settings in a YAML or JSON file, or in the manifest of a run, which is then resumed."""
    content = document(path)
    if path.name == MANIFEST and isinstance(content.get("config"), dict):
        folder = path.absolute().parent
        place = {"work_dir": str(folder.parent), "run_id": folder.name}
        return canonical(content["config"] | place, str(path))
    return canonical(content, str(path))


def from_environment(environ: Mapping[str, str]) -> Layer:
    """The settings given as ``KEJU_<FIELD>``; an unknown variable is refused by its nearest name.

    OPENAI_API_KEY and OPENAI_BASE_URL count too, below them. An empty variable counts as not
    set. A list is written with commas.
    """
    valid = {PREFIX + name.upper(): name for name in scalar_fields()}
    layer: Layer = {field: environ[name] for field, name in SHARED.items() if environ.get(name)}
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable.startswith(TEST_PREFIX):
            continue
        if variable in OTHER_VARIABLES or not value:
            continue
        if variable not in valid:
            raise ConfigError(_unknown_variable(variable, [*valid, *OTHER_VARIABLES]))
        name = valid[variable]
        layer[name] = value.split(",") if _is_list(name) else value
    return layer


def scalar_fields() -> list[str]:
    """The fields of `TaskConfig` that one environment variable can hold."""
    return [name for name in TaskConfig.model_fields if not _is_nested(name)]


def from_overrides(overrides: Sequence[str]) -> Layer:
    """The settings given as ``key.sub=value``, later ones over earlier ones."""
    layer: Layer = {}
    for override in overrides:
        path, equals, text = override.partition("=")
        if not equals or not all(part.strip() for part in path.split(".")):
            raise ConfigError(f"-s {override}: expected KEY=VALUE or KEY.SUB=VALUE")
        value = scalar(text, f"-s {path}")
        for part in reversed(path.split(".")):
            value = {part.strip(): value}
        layer = merge(layer, canonical(value, "-s"))
    return layer


def from_flags(texts: Mapping[str, str]) -> Layer:
    """Parse the flags that hold a mapping, by field; each as JSON or as ``key=value,key=value``."""
    return {
        field: mapping(text, f"--{field.replace('_', '-')}", plain=field == "headers")
        for field, text in texts.items()
    }


def canonical(data: Mapping[str, Any], origin: str = "") -> Layer:
    """Spell all keys of a layer as `TaskConfig` does, so that layers merge where they meet.

    `origin` stands before what is wrong: the file or flag that the layer came from.
    """
    layer = _canonical(data, TaskConfig, origin, ())
    arguments = layer.get("dataset_args")
    if isinstance(arguments, dict):
        layer["dataset_args"] = {
            name: {k.replace("-", "_"): v for k, v in args.items()}
            if isinstance(args, dict)
            else args
            for name, args in arguments.items()
        }
    return layer


def data_dir(flag: str | None, environ: Mapping[str, str] | None = None) -> str | None:
    """The data folder of commands that take no whole configuration."""
    return flag or _variable("data_dir", environ)


def of_run(config: Mapping[str, Any], flag: str | None = None) -> TaskConfig:
    """The settings in a run's manifest; its own data folder counts unless a flag names another."""
    stored: Layer = dict(config)
    stored["data_dir"] = flag or stored.get("data_dir") or data_dir(None)
    return TaskConfig(**stored)


def work_dir(flag: str | None, environ: Mapping[str, str] | None = None) -> Path:
    """The folder of runs, for commands that take no whole configuration."""
    default = str(TaskConfig.model_fields["work_dir"].default)
    return Path(flag or _variable("work_dir", environ) or default)


def is_local(model: object) -> bool:
    """Whether a model string names a model that needs no endpoint."""
    if not isinstance(model, str):
        return False
    kind, colon, _ = model.partition(":")
    return model in LOCAL_MODELS or (bool(colon) and kind in LOCAL_KINDS)


def _variable(field: str, environ: Mapping[str, str] | None) -> str | None:
    value: str | None = from_environment(os.environ if environ is None else environ).get(field)
    return value


def _canonical(
    data: Mapping[str, Any], model: type[BaseModel], origin: str, path: tuple[str, ...]
) -> Layer:
    spellings = dict(_spellings(model))
    start = f"{origin}: " if origin else ""
    layer: Layer = {}
    for key, value in data.items():
        name = spellings.get(str(key).replace("-", "_"))
        where = ".".join((*path, str(key)))
        if name is None:
            hint = did_you_mean(str(key), model.model_fields)
            raise ConfigError(f"{start}unknown key '{where}'{hint}")
        if name in layer:
            raise ConfigError(f"{start}'{where}' is given twice, in two spellings")
        inner = model_of(model.model_fields[name].annotation)
        nested = inner is not None and isinstance(value, Mapping)
        layer[name] = _canonical(value, inner, origin, (*path, name)) if nested and inner else value
    return layer


def _spellings(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        yield name, name
        if isinstance(field.validation_alias, AliasChoices):
            yield from ((str(alias), name) for alias in field.validation_alias.choices)


def _is_nested(name: str) -> bool:
    annotation = TaskConfig.model_fields[name].annotation
    if model_of(annotation) is not None:
        return True
    return any(get_origin(part) is dict for part in (annotation, *get_args(annotation)))


def _is_list(name: str) -> bool:
    annotation = TaskConfig.model_fields[name].annotation
    return any(get_origin(part) is list for part in (annotation, *get_args(annotation)))


def _unknown_variable(variable: str, valid: Sequence[str]) -> str:
    field = variable.removeprefix(PREFIX).lower()
    if field in TaskConfig.model_fields:
        return f"{variable}: '{field}' is a mapping; give it in a file or by its flag"
    return f"unknown environment variable {variable}{did_you_mean(variable, valid)}"


def _forget_endpoint(merged: Layer, origins: Mapping[str, str]) -> None:
    """A local model needs no endpoint, so one that is only in the environment is not meant."""
    for field in SHARED:
        if origins.get(field) == ENVIRONMENT:
            del merged[field]


def _with_origin(message: str, origins: Mapping[str, str]) -> str:
    """Say where a refused value came from, or how to give one that is missing."""
    missing = re.match(r"'(\w+)' is required", message)
    if missing:
        flag = missing[1].replace("_", "-")
        variable = PREFIX + missing[1].upper()
        return f"{message}: give --{flag}, '{missing[1]}:' in a file, or {variable}"
    named = re.match(r"(\w+)[.:]", message)
    origin = origins.get(named[1], "") if named else ""
    if named and origin == ENVIRONMENT:
        return f"{PREFIX}{named[1].upper()}: {message}"
    return f"{origin}: {message}" if origin else message
