"""Where settings come from: a file, the environment, overrides and flags, made one `TaskConfig`.

The nearer to the command line, the stronger: flags, then overrides (``-s key.sub=value``), then
the environment (``KEJU_<FIELD>``, then ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` or what the
model's provider reads), then the file, then defaults. Mappings merge key by key, so a flag that
sets the temperature leaves the file's token limit alone. Who names another model does not mean the
weaker sources' settings that such a model has no use for: with ``--model embedded`` the address in
the file is left out, and that is said.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from typing import Any, Final, get_origin

from pydantic import AliasChoices, BaseModel

from keju.config.address import provider_of
from keju.config.endpoints import PLACES, as_endpoints
from keju.config.exams import beside
from keju.config.strict import alternatives, document, model_of, scalar
from keju.config.task import DatasetArgs, GenerationConfig, TaskConfig
from keju.errors import ConfigError, Notice, did_you_mean
from keju.files import typed_path

PREFIX: Final = "KEJU_"
OTHER_VARIABLES: Final = ("KEJU_CACHE_DIR", "KEJU_CORES", "KEJU_DEBUG")
"""Variables of Keju that are not settings of a task."""
TEST_PREFIX: Final = "KEJU_TEST_"
OF_ENDPOINT: Final = ("api_key", "api_url")
"""What the environment may also hold under the names that other programs use."""

MANIFEST: Final = "manifest.json"
"""The file of a run's folder that holds its configuration."""
ENVIRONMENT: Final = "the environment"
AMBIENT: Final = frozenset((ENVIRONMENT, name) for name in OF_ENDPOINT)
"""What a local model is spared without a word: nobody takes a key out of the environment for it."""

OTHER_NAMES: Final = {
    **dict.fromkeys(("benchmark", "benchmarks", "exam", "exams", "task", "tasks"), "datasets"),
    **dict.fromkeys(("base_url", "url", "endpoint"), "api_url"),
    **dict.fromkeys(("num_samples", "max_samples", "num_examples"), "limit"),
    **dict.fromkeys(("batch_size", "concurrency", "num_concurrent", "workers"), "eval_batch_size"),
    **dict.fromkeys(("output", "output_dir", "output_path"), "work_dir"),
    **dict.fromkeys(("num_fewshot", "fewshot", "shots"), "dataset_args.NAME.few_shot_num"),
    **dict.fromkeys(
        ("subset", "subsets", "category", "categories", "subject", "subjects", "subtask"),
        "dataset_args.NAME.subset_list",
    ),
    **{
        name: f"generation_config.{name}"
        for name in GenerationConfig.model_fields
        if name != "seed"
    },
}
"""What other tools call a setting, or where it stands here."""

Layer = dict[str, Any]
Source = tuple[str, Layer]
"""Where a layer came from, and the layer."""


def inner_place(name: str) -> str | None:
    """Where a setting inside another one stands: ``agent.max_iterations`` for its last word.

    None for a name that no setting has, or that stands outermost.
    """
    if name in TaskConfig.model_fields or name in OTHER_NAMES:
        return other if "." in (other := OTHER_NAMES.get(name, "")) else None
    if name in DatasetArgs.model_fields:
        return f"dataset_args.NAME.{name}"
    for outer, field in TaskConfig.model_fields.items():
        inner = model_of(field.annotation)
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
    read: Callable[[Path], Layer] | None = None,
) -> TaskConfig:
    """Merge all sources into one checked configuration; ConfigError says which source is wrong.

    `flags` holds fields of `TaskConfig` as far as they were given; `environ` is the process's own
    environment unless another is passed. Relative paths in a file are relative to the current
    directory; exams and the files of a server's command are found beside the file too. The
    manifest of a run outranks the environment: what is resumed is that run.
    `idle` tells which settings do nothing for a model (`keju.models.registry.idle_settings`); `say`
    is told what counts for nothing: one of two values, or a setting that the model has no use for;
    `read` is how a file in another form than Keju's own is read.
    """
    environ = os.environ if environ is None else environ
    stored: tuple[str, Layer] = (str(file), {})
    if file is not None:
        stored = (str(file), with_neighbours((read or from_file)(Path(file)), Path(file).parent))
    resumes = file is not None and Path(file).name == MANIFEST
    above = [("-s", from_overrides(overrides)), ("", canonical(flags or {}))]
    around = (ENVIRONMENT, from_environment(environ))
    ranked = [*above[::-1], *((stored, around) if resumes else (around, stored))]
    model = next((layer["model"] for _, layer in ranked if "model" in layer), "")
    around = (ENVIRONMENT, of_provider(model, environ) | around[1])
    below = [around, stored] if resumes else [stored, around]
    commanded = any("model" in layer for _, layer in above)
    (second, loser), (first, winner) = _without_idle(below, model, idle(model), commanded, say)
    merged: Layer = {}
    origins: dict[str, str] = {}
    for name in sorted(winner.keys() & loser.keys()):
        if str(winner[name]) != str(loser[name]) and name != "api_key":
            say(Notice("config_outranked", {"name": name, "above": first, "below": second}).said)
    for name, other in permutations(PLACES, 2):
        if name in winner and other in loser:
            values = {"name": name, "above": first, "other": other, "below": second}
            say(Notice("config_place_outranked", values).said)
    for origin, layer in [(second, loser), (first, winner), *above]:
        if any(name in layer for name in PLACES):
            merged = {name: value for name, value in merged.items() if name not in PLACES}
        merged = merge(merged, layer)
        origins |= dict.fromkeys(layer, origin)
    if isinstance(merged.get("data_dir"), str):
        merged = with_neighbours(merged, Path(merged["data_dir"]), exams_only=True)
    try:
        return TaskConfig(**merged)
    except ConfigError as error:
        raise _with_origin(error, origins) from None


def _without_idle(
    below: Sequence[Source],
    model: object,
    idle: Collection[str],
    commanded: bool,
    say: Callable[[str], None],
) -> list[Source]:
    """The sources below the command line, the weaker first, without what the model has no use for.

    A source that names the model itself keeps it: there it was meant for this model, and is
    refused. `commanded` says that the command line names the model. The environment is meant for
    many models, so it loses it in any case.
    """
    kept = []
    for place, (origin, layer) in enumerate(below):
        outranked = commanded or any("model" in above for _, above in below[place + 1 :])
        if outranked or origin == ENVIRONMENT:
            rest, found = _without(layer, idle)
            if told := [name for name in found if (origin, name) not in AMBIENT]:
                values = {"names": told, "below": origin, "model": model}
                say(Notice("config_left_out", values).said)
            layer = rest
        kept.append((origin, layer))
    return kept


def _without(layer: Layer, names: Collection[str]) -> tuple[Layer, list[str]]:
    """A layer without some settings (``generation_config.extra_headers``), and which it had."""
    rest, found = dict(layer), []
    for name in names:
        key, _, inner = name.partition(".")
        if inner and isinstance(rest.get(key), Mapping):
            below, within = _without(dict(rest[key]), (inner,))
            rest[key] = below
            found += [name] if within else []
        elif not inner and key in rest:
            found += [name] if rest.pop(key) else []
    return rest, found


def _with_origin(error: ConfigError, origins: Mapping[str, str]) -> ConfigError:
    """The error with where the refused value came from, or how to give one that is missing."""
    field, _, below = str(error.values.get("path", "")).partition(".")
    variable = PREFIX + field.upper()
    if error.code == "config_required":
        flag = field.replace("_", "-")
        values = {"problem": error, "field": field, "flag": flag, "variable": variable}
        return error if below else ConfigError("config_missing", **values)
    origin = origins.get(field, "")
    if not origin or error.code == "config_unknown_key":
        return error
    return ConfigError(
        "config_from", origin=variable if origin == ENVIRONMENT else origin, problem=error
    )


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
        place = {"work_dir": typed_path(folder.parent), "run_id": folder.name}
        return canonical(content["config"] | place, str(path))
    return canonical(content, str(path))


def with_neighbours(layer: Layer, folder: Path, *, exams_only: bool = False) -> Layer:
    """Return `layer` with its exams and the files that start its MCP servers, found in `folder`
    where they are not in the current one, so that a file and what it names can be used from
    anywhere. With `exams_only` the servers stay as they are: a data folder holds no programs."""

    def found(text: Any) -> Any:
        """A path such as ``calculator.py`` or ``./serve``; ``serve`` alone is a program's word."""
        path = Path(text) if isinstance(text, str) and "\0" not in text else Path()
        named = "/" in str(text) or path.suffix
        with suppress(OSError):
            if named and not path.exists() and (folder / path).is_file():
                return str((folder / path).absolute())
        return text

    def server(own: Any) -> Any:
        if not isinstance(own, dict) or own.get("cwd") is not None:
            return own
        own = dict(own)
        if isinstance(own.get("args"), list):
            own["args"] = [found(text) for text in own["args"]]
        if "/" in str(own.get("command")):
            own["command"] = found(own["command"])
        return own

    def arm(own: Any) -> Any:
        if not isinstance(own, dict) or not isinstance(own.get("servers"), list):
            return own
        return own | {"servers": [server(each) for each in own["servers"]]}

    layer = dict(layer)
    if isinstance(layer.get("arms"), list) and not exams_only:
        layer["arms"] = [arm(own) for own in layer["arms"]]
    if isinstance(exams := layer.get("datasets"), str):
        layer["datasets"] = beside(exams, folder)
    elif isinstance(exams, list):
        layer["datasets"] = [beside(e, folder) if isinstance(e, str) else e for e in exams]
    if isinstance(args := layer.get("dataset_args"), dict):
        layer["dataset_args"] = {beside(str(name), folder): own for name, own in args.items()}
    return layer


def from_environment(environ: Mapping[str, str]) -> Layer:
    """The settings given as ``KEJU_<FIELD>``; an unknown variable is refused by its nearest name.

    An empty variable counts as not set. A list is written with commas; a mapping cannot be given
    in a variable.
    """
    kinds = {
        PREFIX + name.upper(): {get_origin(kind) or kind for kind in alternatives(field.annotation)}
        for name, field in TaskConfig.model_fields.items()
        if model_of(field.annotation) is None
    }
    valid = [variable for variable, kind in kinds.items() if dict not in kind]
    layer: Layer = {}
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable.startswith(TEST_PREFIX):
            continue
        if variable in OTHER_VARIABLES or not value:
            continue
        name = variable.removeprefix(PREFIX).lower()
        if variable in valid:
            layer[name] = value.split(",") if list in kinds[variable] else value
        elif name in TaskConfig.model_fields:
            raise ConfigError("config_variable_mapping", variable=variable, field=name)
        else:
            hint = did_you_mean(variable, [*valid, *OTHER_VARIABLES])
            raise ConfigError("config_unknown_variable", variable=variable, hint=hint)
    return layer


def of_provider(model: object, environ: Mapping[str, str]) -> Layer:
    """The key and the address that the environment holds for other programs of a provider."""
    provider = provider_of(model)
    variables = zip(OF_ENDPOINT, (provider.key_variable, provider.url_variable), strict=True)
    return {field: environ[name] for field, name in variables if environ.get(name)}


def from_overrides(overrides: Sequence[str]) -> Layer:
    """The settings given as ``key.sub=value``, later ones over earlier ones."""
    layer: Layer = {}
    for override in overrides:
        path, equals, text = override.partition("=")
        if not equals or not all(part.strip() for part in path.split(".")):
            raise ConfigError("config_override_form", override=override)
        value = scalar(text, f"-s {path}")
        for part in reversed(path.split(".")):
            value = {part.strip(): value}
        layer = merge(layer, canonical(value, "-s"))
    return layer


def canonical(data: Mapping[str, Any], origin: str = "") -> Layer:
    """Spell all keys of a layer as `TaskConfig` does, so that layers merge where they meet.

    `origin` stands before what is wrong: the file or flag that the layer came from.
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
    spellings = {name: name for name in model.model_fields}
    for name, field in model.model_fields.items():
        if isinstance(field.validation_alias, AliasChoices):
            spellings |= {str(alias): name for alias in field.validation_alias.choices}
    layer: Layer = {}
    for key, value in data.items():
        known = spellings.get(str(key).replace("-", "_"))
        where = ".".join((*path, str(key)))
        if known is None:
            other = OTHER_NAMES.get(where.replace("-", "_"))
            hint = did_you_mean(other or str(key), [other] if other else model.model_fields)
            raise ConfigError("config_unknown_key", origin=origin, path=where, hint=hint, more="")
        if known in layer:
            raise ConfigError("config_two_spellings", origin=origin, path=where)
        inner = model_of(model.model_fields[known].annotation)
        if inner is not None and isinstance(value, Mapping):
            value = _canonical(value, inner, origin, (*path, known))
        layer[known] = value
    return layer


def data_folder(flag: str | None, environ: Mapping[str, str] | None = None) -> str | None:
    """The data folder of commands that take no whole configuration."""
    return flag or from_environment(os.environ if environ is None else environ).get("data_dir")


def runs_folder(flag: str | None, environ: Mapping[str, str] | None = None) -> Path:
    """The folder of runs, for commands that take no whole configuration."""
    around = from_environment(os.environ if environ is None else environ)
    return Path(flag or around.get("work_dir") or TaskConfig.model_fields["work_dir"].default)


def of_run(config: Mapping[str, Any], flag: str | None = None) -> TaskConfig:
    """The settings in a run's manifest; its own data folder counts unless a flag names another."""
    stored: Layer = dict(config)
    stored["data_dir"] = flag or stored.get("data_dir") or data_folder(None)
    return TaskConfig(**stored)
