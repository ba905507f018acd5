"""Loads settings from a file, the environment, overrides and flags into one `TaskConfig`.

A source closer to the command line wins. The order, from the strongest:

1. flags
2. overrides (``-s key.sub=value``)
3. the environment: ``KEJU_<FIELD>``, then the variables of the model's provider, such as
   ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``
4. the file
5. defaults

Mappings merge key by key, so a flag that sets the temperature keeps the file's token limit.

If a stronger source names another model, Keju drops the weaker sources' settings that this model
does not use, and reports them. For example, ``--model embedded`` drops the address in the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from typing import Any, Final, get_origin

from pydantic import AliasChoices, BaseModel

from keju.config.address import find_provider
from keju.config.endpoints import PLACES, as_endpoints
from keju.config.exams import find_in_folder
from keju.config.strict import document, find_settings_class, parse_yaml, union_members
from keju.config.task import DatasetArgs, GenerationConfig, TaskConfig
from keju.errors import ConfigError, Notice, did_you_mean
from keju.files import typed_path

PREFIX: Final = "KEJU_"
OTHER_VARIABLES: Final = (
    "KEJU_BASELINE_API_KEY", "KEJU_CACHE_DIR", "KEJU_CORES", "KEJU_DEBUG",
)  # fmt: skip
"""Keju's variables that are not settings of a task."""
TEST_PREFIX: Final = "KEJU_TEST_"
OF_ENDPOINT: Final = ("api_key", "api_url")
"""Settings that the environment may also hold under other programs' names."""

MANIFEST: Final = "manifest.json"
"""The file in a run's folder that holds its configuration."""
ENVIRONMENT: Final = "the environment"
AMBIENT: Final = frozenset((ENVIRONMENT, name) for name in OF_ENDPOINT)
"""Settings that are dropped without a message for a local model: keys usually stay in the
environment."""

OTHER_NAMES: Final = {
    **dict.fromkeys(("benchmark", "benchmarks", "exam", "exams", "task", "tasks"), "datasets"),
    **dict.fromkeys(("base_url", "url", "endpoint"), "api_url"),
    **dict.fromkeys(
        ("num_samples", "max_samples", "num_examples", "n", "n_samples", "num_questions"), "limit"
    ),
    **dict.fromkeys(
        ("batch_size", "batch", "concurrency", "num_concurrent", "workers", "parallel", "threads"),
        "eval_batch_size",
    ),
    **dict.fromkeys(("epochs", "num_repeats", "num_runs", "trials"), "repeats"),
    **dict.fromkeys(("output", "output_dir", "output_path"), "work_dir"),
    **dict.fromkeys(("num_fewshot", "fewshot", "shots"), "dataset_args.NAME.few_shot_num"),
    **dict.fromkeys(
        ("subset", "subsets", "category", "categories", "subject", "subjects", "subtask"),
        "dataset_args.NAME.subset_list",
    ),
    "temp": "generation_config.temperature",
    **{
        name: f"generation_config.{name}"
        for name in GenerationConfig.model_fields
        if name != "seed"
    },
}
"""Other tools' names of settings, and settings that have another place in Keju."""

Layer = dict[str, Any]
Source = tuple[str, Layer]
"""The origin of a layer, and the layer."""


def find_setting_path(name: str) -> str | None:
    """Return the full path of an inner setting: ``agent.max_iterations`` for its last word.

    Return None for an unknown name and for an outermost setting.
    """
    if name in TaskConfig.model_fields or name in OTHER_NAMES:
        return other_name if "." in (other_name := OTHER_NAMES.get(name, "")) else None
    if name in DatasetArgs.model_fields:
        return f"dataset_args.NAME.{name}"
    for outer, field in TaskConfig.model_fields.items():
        inner = find_settings_class(field.annotation)
        if get_origin(field.annotation) is not list and inner and name in inner.model_fields:
            return f"{outer}.{name}"
    return None


def load(
    file: str | Path | None = None,
    overrides: Sequence[str] = (),
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    idle: Callable[[object], Collection[str]] = lambda _: (),
    say: Callable[[str], None] = lambda _: None,
    read_config: Callable[[Path], Layer] | None = None,
) -> TaskConfig:
    """Merge all sources into one checked configuration.

    `flags` holds the fields of `TaskConfig` that were set. `environ` is the process's own
    environment by default. `idle` returns the settings that a model does not use
    (`keju.models.registry.settings_without_effect`). `say` gets a message about each value that is
    not used. `read_config` reads files in another format than Keju's own.

    Relative paths in a file are relative to the current directory. Exams and the files of a
    server's command are also looked up next to the file. The manifest of a run is stronger than the
    environment, because that run is resumed.

    Raise ConfigError with the source that is wrong.
    """
    environ = os.environ if environ is None else environ
    stored: Source = (str(file), _read_file(Path(file), read_config) if file is not None else {})
    resumes = file is not None and Path(file).name == MANIFEST
    command_line = [("-s", from_overrides(overrides)), ("", canonical(flags or {}))]
    environment = (ENVIRONMENT, from_environment(environ))
    ranked = [*command_line[::-1], *((stored, environment) if resumes else (environment, stored))]
    model = next((layer["model"] for _, layer in ranked if "model" in layer), "")
    environment = (ENVIRONMENT, from_provider(model, environ) | environment[1])
    lower_sources = [environment, stored] if resumes else [stored, environment]
    is_model_on_command_line = any("model" in layer for _, layer in command_line)
    weaker, stronger = _remove_idle_settings(
        lower_sources, model, idle(model), is_model_on_command_line, say
    )
    for notice in _outranked_settings(weaker, stronger):
        say(notice.message)
    merged = _merge_sources([weaker, stronger, *command_line])
    try:
        return TaskConfig(**merged)
    except ConfigError as error:
        sources = weaker, stronger, *command_line
        origins = {name: origin for origin, layer in sources for name in layer}
        raise _with_origin(error, origins) from None


def _read_file(path: Path, read_config: Callable[[Path], Layer] | None) -> Layer:
    """Return the settings in a file, with the exams and server files next to it."""
    return with_neighbours((read_config or from_file)(path), path.parent)


def _outranked_settings(weaker: Source, stronger: Source) -> Iterator[Notice]:
    """Yield a notice about each setting of a source that another source replaces."""
    (below, weaker_layer), (above, stronger_layer) = weaker, stronger
    for name in sorted(stronger_layer.keys() & weaker_layer.keys()):
        if str(stronger_layer[name]) != str(weaker_layer[name]) and name != "api_key":
            yield Notice("config_outranked", {"name": name, "above": above, "below": below})
    for name, weaker_name in permutations(PLACES, 2):
        if name in stronger_layer and weaker_name in weaker_layer:
            values = {"name": name, "above": above, "other": weaker_name, "below": below}
            yield Notice("config_place_outranked", values)


def _merge_sources(sources: Sequence[Source]) -> Layer:
    """Merge the layers, weakest first. A place of a model replaces every other place."""
    merged: Layer = {}
    for _, layer in sources:
        if any(name in layer for name in PLACES):
            merged = {name: value for name, value in merged.items() if name not in PLACES}
        merged = merge(merged, layer)
    if isinstance(merged.get("data_dir"), str):
        merged = with_neighbours(merged, Path(merged["data_dir"]), exams_only=True)
    return merged


def _remove_idle_settings(
    sources: Sequence[Source],
    model: object,
    idle: Collection[str],
    is_model_on_command_line: bool,
    say: Callable[[str], None],
) -> list[Source]:
    """Return the sources below the command line, weakest first, without unused settings.

    A source that names the model itself keeps all its settings: they were meant for this model, and
    a wrong one is refused later. The environment always loses settings that the model does not use,
    because it serves many models.
    """
    filtered_sources = []
    for position, (origin, layer) in enumerate(sources):
        is_outranked = is_model_on_command_line or any(
            "model" in stronger_layer for _, stronger_layer in sources[position + 1 :]
        )
        if is_outranked or origin == ENVIRONMENT:
            remaining_layer, idle_names = _remove_settings(layer, idle)
            if reported_names := [name for name in idle_names if (origin, name) not in AMBIENT]:
                values = {"names": reported_names, "below": origin, "model": model}
                say(Notice("config_left_out", values).message)
            layer = remaining_layer
        filtered_sources.append((origin, layer))
    return filtered_sources


def _remove_settings(layer: Layer, names: Collection[str]) -> tuple[Layer, list[str]]:
    """Return a layer without some settings, such as ``agent.max_cost``, and their names."""
    remaining_layer, removed_names = dict(layer), []
    for name in names:
        key, _, inner = name.partition(".")
        if inner and isinstance(remaining_layer.get(key), Mapping):
            inner_layer, inner_names = _remove_settings(dict(remaining_layer[key]), (inner,))
            remaining_layer[key] = inner_layer
            removed_names += [name] if inner_names else []
        elif not inner and key in remaining_layer:
            removed_names += [name] if remaining_layer.pop(key) else []
    return remaining_layer, removed_names


def _with_origin(error: ConfigError, origins: Mapping[str, str]) -> ConfigError:
    """Return the error with the source of the refused value, or with how to set a missing one."""
    field, _, inner_path = str(error.values.get("path", "")).partition(".")
    variable = PREFIX + field.upper()
    if error.code == "config_required":
        flag = field.replace("_", "-")
        values = {"problem": error, "field": field, "flag": flag, "variable": variable}
        return error if inner_path else ConfigError("config_missing", **values)
    origin = origins.get(field, "")
    if not origin or error.code == "config_unknown_key":
        return error
    return ConfigError(
        "config_from", origin=variable if origin == ENVIRONMENT else origin, problem=error
    )


def merge(weaker: Layer, stronger: Mapping[str, Any]) -> Layer:
    """Return `weaker` updated with `stronger`. Mappings merge; lists replace."""
    merged = dict(weaker)
    for key, value in stronger.items():
        weaker_value = merged.get(key)
        are_mappings = isinstance(weaker_value, dict) and isinstance(value, Mapping)
        merged[key] = (
            merge(weaker_value, value) if are_mappings and weaker_value is not None else value
        )
    return merged


def from_file(path: Path) -> Layer:
    """Return the settings in a YAML or JSON file, or in the manifest of a run to resume."""
    content = document(path)
    if path.name == MANIFEST and isinstance(content.get("config"), dict):
        folder = path.absolute().parent
        place = {"work_dir": typed_path(folder.parent), "run_id": folder.name}
        return canonical(content["config"] | place, str(path))
    return canonical(content, str(path))


def with_neighbours(layer: Layer, folder: Path, *, exams_only: bool = False) -> Layer:
    """Return `layer` with exams and server files resolved against `folder`.

    A path changes only if it does not exist in the current directory. So a config file works from
    any directory. `exams_only` leaves the servers as they are, because a data folder holds no
    programs.
    """

    def find_file(text: Any) -> Any:
        """Resolve a path such as ``calculator.py`` or ``./serve``; ``serve`` is a command."""
        path = Path(text) if isinstance(text, str) and "\0" not in text else Path()
        is_path_like = "/" in str(text) or path.suffix
        with suppress(OSError):
            if is_path_like and not path.exists() and (folder / path).is_file():
                return str((folder / path).absolute())
        return text

    def resolve_server(settings: Any) -> Any:
        if not isinstance(settings, dict) or settings.get("cwd") is not None:
            return settings
        settings = dict(settings)
        if isinstance(settings.get("args"), list):
            settings["args"] = [find_file(text) for text in settings["args"]]
        if "/" in str(settings.get("command")):
            settings["command"] = find_file(settings["command"])
        return settings

    def resolve_arm(arm_settings: Any) -> Any:
        if not isinstance(arm_settings, dict) or not isinstance(arm_settings.get("servers"), list):
            return arm_settings
        return arm_settings | {
            "servers": [resolve_server(server) for server in arm_settings["servers"]]
        }

    layer = dict(layer)
    if isinstance(layer.get("arms"), list) and not exams_only:
        layer["arms"] = [resolve_arm(arm) for arm in layer["arms"]]
    if isinstance(exams := layer.get("datasets"), str):
        layer["datasets"] = find_in_folder(exams, folder)
    elif isinstance(exams, list):
        layer["datasets"] = [find_in_folder(e, folder) if isinstance(e, str) else e for e in exams]
    if isinstance(args := layer.get("dataset_args"), dict):
        layer["dataset_args"] = {
            find_in_folder(str(name), folder): exam_settings for name, exam_settings in args.items()
        }
    return layer


def from_environment(environ: Mapping[str, str]) -> Layer:
    """Return the settings in ``KEJU_<FIELD>`` variables.

    An empty variable counts as not set. A list is written with commas. Raise ConfigError for an
    unknown variable, with the nearest name, and for a setting that is a mapping.
    """
    layer: Layer = {}
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable.startswith(TEST_PREFIX):
            continue
        if variable in OTHER_VARIABLES or not value:
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in TaskConfig.model_fields or not variable.isupper():
            valid = [PREFIX + field.upper() for field in TaskConfig.model_fields if _kinds(field)]
            hint = did_you_mean(variable, [*valid, *OTHER_VARIABLES])
            raise ConfigError("config_unknown_variable", variable=variable, hint=hint)
        kinds = _kinds(name)
        if not kinds:
            raise ConfigError("config_variable_mapping", variable=variable, field=name)
        layer[name] = value.split(",") if list in kinds else value
    return layer


def _kinds(field_name: str) -> set[Any]:
    """Return the types of a setting; an empty set if it is a mapping, which no variable holds."""
    annotation = TaskConfig.model_fields[field_name].annotation
    kinds = {get_origin(kind) or kind for kind in union_members(annotation)}
    return set() if dict in kinds or find_settings_class(annotation) else kinds


def from_provider(model: object, environ: Mapping[str, str]) -> Layer:
    """Return the key and the address from the variables of the model's provider."""
    provider = find_provider(model)
    variables = zip(OF_ENDPOINT, (provider.key_variable, provider.url_variable), strict=True)
    return {field: environ[name] for field, name in variables if environ.get(name)}


def from_overrides(overrides: Sequence[str]) -> Layer:
    """Return the settings in ``key.sub=value`` texts; later ones win."""
    layer: Layer = {}
    for override in overrides:
        path, equals, text = override.partition("=")
        if not equals or not all(part.strip() for part in path.split(".")):
            raise ConfigError("config_override_form", override=override)
        value = parse_yaml(text, f"-s {path}")
        for part in reversed(path.split(".")):
            value = {part.strip(): value}
        layer = merge(layer, canonical(value, "-s"))
    return layer


def canonical(data: Mapping[str, Any], origin: str = "") -> Layer:
    """Return a layer with all keys spelled as in `TaskConfig`, so that layers can merge.

    `origin` is the file or flag of the layer; error messages begin with it.
    """
    layer = as_endpoints(_canonical(data, TaskConfig, f"{origin}: " if origin else "", ()))
    arguments = layer.get("dataset_args")
    if isinstance(arguments, dict):
        layer["dataset_args"] = {
            name: {k.replace("-", "_"): v for k, v in args.items()}
            if isinstance(args, dict)
            else args
            for name, args in arguments.items()
        }
    return layer


def _canonical(
    data: Mapping[str, Any], model: type[BaseModel], origin: str, path: tuple[str, ...]
) -> Layer:
    spellings = _spellings(model)
    layer: Layer = {}
    for key, value in data.items():
        field_name = spellings.get(str(key).replace("-", "_"))
        where = ".".join((*path, str(key)))
        if field_name is None:
            other_name = OTHER_NAMES.get(where.replace("-", "_"))
            hint = did_you_mean(
                other_name or str(key), [other_name] if other_name else model.model_fields
            )
            raise ConfigError("config_unknown_key", origin=origin, path=where, hint=hint, more="")
        if field_name in layer:
            raise ConfigError("config_two_spellings", origin=origin, path=where)
        if isinstance(value, Mapping):
            inner = find_settings_class(model.model_fields[field_name].annotation)
            value = _canonical(value, inner, origin, (*path, field_name)) if inner else value
        layer[field_name] = value
    return layer


def _spellings(model: type[BaseModel]) -> dict[str, str]:
    """Return the name of each field by its own spelling and by its aliases."""
    spellings = {name: name for name in model.model_fields}
    for name, field in model.model_fields.items():
        if isinstance(field.validation_alias, AliasChoices):
            spellings |= {str(alias): name for alias in field.validation_alias.choices}
    return spellings


def data_folder(flag: str | None, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the data folder for commands without a full configuration."""
    return flag or from_environment(os.environ if environ is None else environ).get("data_dir")


def runs_folder(flag: str | None, environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of runs for commands without a full configuration."""
    environment_settings = from_environment(os.environ if environ is None else environ)
    return Path(
        flag or environment_settings.get("work_dir") or TaskConfig.model_fields["work_dir"].default
    )


def load_run_config(config: Mapping[str, Any], flag: str | None = None) -> TaskConfig:
    """Return the settings in a run's manifest. A flag may replace its data folder."""
    stored: Layer = dict(config)
    stored["data_dir"] = flag or stored.get("data_dir") or data_folder(None)
    return TaskConfig(**stored)
