"""A matrix: runs of several models on several exams.

A matrix is a task file with `models` instead of `model`. All other settings hold for every pair.
The entry of a model or an exam can override them.

A source closer to the command line wins. From the strongest: flags, ``-s``, the entry of the model,
the entry of the exam, the environment, the rest of the file.

  plan: weekly
  models:
    - {model: small, api_url: "http://localhost:8000/v1"}
    - {model: large, api_url: "https://there/v1", api_key_var: THERE_KEY, eval_batch_size: 8}
  datasets: [demo, {dataset: NAME, limit: 20}]

The keys of the whole matrix and of the environment are sent only to models without their own
address.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from keju.config.address import find_provider, parse_address
from keju.config.endpoints import PLACES
from keju.config.exams import find_in_folder, resolve_name, unknown_exam_error
from keju.config.load import (
    Layer,
    canonical,
    from_environment,
    from_overrides,
    load,
    merge,
    with_neighbours,
)
from keju.config.strict import Rate, StrictSettings, document, variable_name
from keju.config.task import Budget, TaskConfig
from keju.errors import ConfigError, did_you_mean

MODELS: Final = "models"
"""The key that makes a task file a matrix."""
OF_ENTRY: Final = ("name", "run_budget")
"""Keys of an entry that are not settings of a task."""
OWN_KEYS: Final = ("plan", MODELS, "run_budget", "api_key_var")
"""Keys of a matrix that a task does not have."""
OF_MODEL: Final = (
    "model", "api_url", "endpoints", "api_key", "api", "headers", "ca_file", "model_args",
    "generation_config", "eval_batch_size", "timeout", "attempts", "retry_interval", "rpm", "tpm",
    "give_up_after", "error_limit", "price", "use_cache", "serve",
)  # fmt: skip
"""Settings of a task that the entry of a model may have."""
OF_EXAM: Final = (
    "protocol", "reader", "limit", "total", "ids", "sample", "repeats", "rotate_options", "seed",
    "until_ci", "judge",
)  # fmt: skip
"""Settings of a task that the entry of an exam may have. All its other keys are `dataset_args`."""
CHOICES: Final = ("limit", "total", "ids")
"""Ways to choose questions. A task uses only one."""
SECRETS: Final = ("api_key", "headers")
"""Settings that are sent only to the matrix's own address."""
REFUSED: Final = (
    "model", "run_id", "replace", "failed_of", "until_decided", "use_cache", "sweep", *PLACES,
    *SECRETS,
)  # fmt: skip
"""Settings that a command line cannot give to all runs of a matrix."""
NOWHERE: Final = (
    "model", "run_id", "replace", "failed_of", "until_decided", "ids", "use_cache", "sweep",
)  # fmt: skip
"""Settings that a matrix accepts only in its entries."""
LONGEST_LABEL: Final = 40
NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_LABEL - 1}}}")
"""The name of a matrix, which is also the name of a folder."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
"""Characters that folder names do not have: ``/`` and the spaces in ``my model/v2``."""


class MatrixPair(NamedTuple):
    """One model and one exam. Each pair is a separate run."""

    model: str
    """The name of the model's entry."""
    exam: str
    """The name of the exam's entry."""
    run: str
    """The id of the run. It depends only on the names of the matrix and of both entries."""
    config: TaskConfig


class MinuteLimits(StrictSettings):
    """Requests and tokens a minute."""

    rpm: Rate | None = None
    tpm: Rate | None = None


@dataclass(frozen=True, kw_only=True)
class MatrixConfig:
    """All pairs of a matrix, and the settings of the whole matrix."""

    name: str
    pairs: tuple[MatrixPair, ...]
    budget: Budget
    """Limits over all runs."""
    pace: MinuteLimits
    """Limits of each endpoint, over all models at this endpoint."""
    own_pace: Mapping[str, MinuteLimits]
    """Limits of each model's own entry, over all its runs."""
    resume: bool = False

    @property
    def models(self) -> list[str]:
        """The names of the models, in the order of the file."""
        return list(dict.fromkeys(pair.model for pair in self.pairs))

    @property
    def exams(self) -> list[str]:
        """The names of the exams, in the order of the file."""
        return list(dict.fromkeys(pair.exam for pair in self.pairs))

    @property
    def task(self) -> TaskConfig:
        """Settings that are the same for all pairs, such as the folder of the runs."""
        return self.pairs[0].config


class MatrixEntry(NamedTuple):
    """A model or an exam of a matrix."""

    label: str
    target: str
    """The name of the model or data set."""
    layer: Layer
    run_budget: Layer


def is_matrix_file(path: str | Path) -> bool:
    """Whether a settings file is a matrix. A file that cannot be read is reported elsewhere."""
    try:
        return MODELS in document(Path(path))
    except ConfigError:
        return False


def load_matrix(
    source: str | Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    exam_name: Callable[[str], str],
    idle: Callable[[object], Collection[str]] = lambda _: (),
) -> MatrixConfig:
    """Load and check a matrix; ConfigError names the entry that is wrong.

    `exam_name` returns the canonical name of an exam. The other parameters are those of
    `keju.config.load.load`.
    """
    environ = os.environ if environ is None else environ
    command_line = merge(from_overrides(overrides), canonical(flags or {}))
    if refused := next((key for key in REFUSED if key in command_line), None):
        raise ConfigError("plan_flag", name=refused, flag=refused.replace("_", "-"))
    matrix_settings, listed_exams, common = _read_source(source)
    if refused := next((key for key in NOWHERE if key in common), None):
        raise ConfigError("plan_setting", name=refused)
    environment_settings = from_environment(environ)
    requested_exams = command_line.pop("datasets", environment_settings.get("datasets"))
    exams = _read_exams(listed_exams, requested_exams, exam_name)
    common["dataset_args"] = _args_by_exam(common, exams)
    models = _read_models(matrix_settings[MODELS], environ)
    name = _matrix_name(matrix_settings.get("plan"), source)
    budget = {**common.pop("budget", {}), **command_line.pop("budget", {})}
    common["run_budget"] = matrix_settings.get("run_budget") or {}
    if matrix_settings.get("api_key_var") is not None:
        common["api_key"] = _read_key(matrix_settings["api_key_var"], environ, "api_key_var")
    pairs = [
        MatrixPair(
            model.label,
            exam.label,
            f"{name}--{_slug(model.label)}--{_slug(exam.label)}",
            _make_task(common, model, exam, command_line, environ, idle),
        )
        for model in models
        for exam in exams
    ]
    _refuse_repeated(MODELS, [_slug(model.label) for model in models])
    _refuse_repeated("datasets", [_slug(exam.label) for exam in exams])
    pairs = [
        pair._replace(config=pair.config.model_copy(update={"run_id": pair.run})) for pair in pairs
    ]
    return MatrixConfig(
        name=name,
        pairs=tuple(pairs),
        budget=_check_budget(budget, pairs),
        pace=_pace_limits(environment_settings | common | command_line),
        own_pace={model.label: _pace_limits(model.layer) for model in models},
        resume=pairs[0].config.resume,
    )


def _read_source(source: str | Path | Mapping[str, Any]) -> tuple[Layer, Any, Layer]:
    """Return a matrix's own settings, its list of exams, and the settings that all runs share."""
    content = dict(source) if isinstance(source, Mapping) else document(Path(source))
    matrix_settings: Layer = {key: content.pop(key) for key in OWN_KEYS if key in content}
    listed_exams = content.pop("datasets", None)
    if isinstance(source, Mapping):
        return matrix_settings, listed_exams, canonical(content)
    folder = Path(source).parent
    common = with_neighbours(canonical(content, str(source)), folder)
    return matrix_settings, _resolve_exam_paths(listed_exams, folder), common


def _pace_limits(layer: Mapping[str, Any]) -> MinuteLimits:
    return MinuteLimits(**{key: layer[key] for key in MinuteLimits.model_fields if key in layer})


def _matrix_name(name: Any, source: str | Path | Mapping[str, Any]) -> str:
    """Return the name of a matrix, or else the name of its file."""
    if name is None:
        name = "plan" if isinstance(source, Mapping) else _slug(Path(source).stem)
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise ConfigError("plan_name", longest=LONGEST_LABEL)
    return name


def _read_models(entries_in_file: Any, environ: Mapping[str, str]) -> list[MatrixEntry]:
    """Return the models of a matrix."""
    if not isinstance(entries_in_file, list) or not entries_in_file:
        raise ConfigError("plan_list", name=MODELS)
    return [
        _read_model(entry, f"{MODELS}.{place}", environ)
        for place, entry in enumerate(entries_in_file)
    ]


def _read_model(entry: Any, where: str, environ: Mapping[str, str]) -> MatrixEntry:
    """Return a model of a matrix: a name or a mapping of settings."""
    settings = {"model": entry} if isinstance(entry, str) else entry
    if not isinstance(settings, dict) or not isinstance(settings.get("model"), str):
        raise ConfigError("plan_entry_form", where=where, name="model")
    options = (*OF_ENTRY, "api_key_var")
    layer = canonical(_without(settings, options), where)
    for key in layer:
        if key not in OF_MODEL:
            hint = did_you_mean(key, [*OF_MODEL, *options])
            raise ConfigError("plan_entry_setting", where=where, name=key, hint=hint)
    if settings.get("api_key_var") is not None:
        layer["api_key"] = _read_key(settings["api_key_var"], environ, f"{where}.api_key_var")
    label = str(settings.get("name") or settings["model"])
    return MatrixEntry(label, settings["model"], layer, settings.get("run_budget") or {})


def _read_key(variable: object, environ: Mapping[str, str], where: str) -> str:
    """Return the key in the variable that an entry names."""
    name = variable_name(str(variable), where)
    if not (key := environ.get(name)):
        raise ConfigError("plan_no_key", where=where, variable=name)
    return key


def _resolve_exam_paths(exams: Any, folder: Path) -> Any:
    """Return the list of exams, resolved against `folder` if they are not in the current one."""

    def resolve_entry(entry: Any) -> Any:
        if isinstance(entry, str):
            return find_in_folder(entry, folder)
        if isinstance(entry, dict) and isinstance(entry.get("dataset"), str):
            return entry | {"dataset": find_in_folder(entry["dataset"], folder)}
        return entry

    return [resolve_entry(entry) for entry in exams] if isinstance(exams, list) else exams


def _read_exams(
    entries_in_file: Any, requested_exams: Any, exam_name: Callable[[str], str]
) -> list[MatrixEntry]:
    """Return the exams: a name or a mapping of settings each.

    If exams are requested by name, only these are returned.
    """
    if not isinstance(entries_in_file, list | None) or not (entries_in_file or requested_exams):
        raise ConfigError("plan_list", name="datasets")
    entries = [
        _read_exam(entry, f"datasets.{place}", exam_name)
        for place, entry in enumerate(entries_in_file or [])
    ]
    if requested_exams is None:
        return entries
    requested_entries = []
    for name in [requested_exams] if isinstance(requested_exams, str) else requested_exams:
        target = resolve_name(name, [exam.target for exam in entries])
        matches = [exam for exam in entries if name == exam.label or exam.target == target]
        requested_entries += matches or [MatrixEntry(exam_name(name), name, {}, {})]
    return requested_entries


def _read_exam(entry: Any, where: str, exam_name: Callable[[str], str]) -> MatrixEntry:
    """Return an exam of a matrix: a name or a mapping of settings."""
    settings = {"dataset": entry} if isinstance(entry, str) else entry
    if not isinstance(settings, dict) or not isinstance(settings.get("dataset"), str):
        raise ConfigError("plan_entry_form", where=where, name="dataset")
    target = settings["dataset"]
    layer: Layer = {}
    args: Layer = {}
    for key, value in _without(settings, (*OF_ENTRY, "dataset")).items():
        name = str(key).replace("-", "_")
        (layer if name in OF_EXAM else args)[name] = value
    if args:
        layer["dataset_args"] = {target: args}
    label = str(settings.get("name") or exam_name(target))
    return MatrixEntry(label, target, layer, settings.get("run_budget") or {})


def _without(layer: Layer, names: Collection[str]) -> Layer:
    return {key: value for key, value in layer.items() if key not in names}


def _make_task(
    common: Layer,
    model: MatrixEntry,
    exam: MatrixEntry,
    command_line: Layer,
    environ: Mapping[str, str],
    idle: Callable[[object], Collection[str]],
) -> TaskConfig:
    """Return the settings of one pair."""
    has_address = any(place in model.layer for place in PLACES)
    unshared = {*OWN_KEYS, "dataset_args", *((*SECRETS, *PLACES) if has_address else ())}
    if any(choice in exam.layer for choice in CHOICES):
        unshared |= {*CHOICES}
        environ = {k: v for k, v in environ.items() if k not in ("KEJU_LIMIT", "KEJU_TOTAL")}
    shared_settings = _without(common, unshared)
    args = common.get("dataset_args", {}).get(exam.target)
    shared_settings |= {"dataset_args": {exam.target: args}} if args else {}
    entry = merge(merge(exam.layer, model.layer), {"model": model.target})
    budget = merge(merge(common["run_budget"], exam.run_budget), model.run_budget)
    entry |= {"datasets": [exam.target], **({"budget": budget} if budget else {})}
    if any(choice in command_line for choice in CHOICES):
        shared_settings, entry = _without(shared_settings, CHOICES), _without(entry, CHOICES)
    if has_address:
        environ = _without_keys(model, environ)
    try:
        # Shared settings that a model does not use are left out. `model_args` are kept and refused
        # later, because no model of the matrix may use them.
        config = load(
            "",
            flags=merge(entry, command_line),
            environ=environ,
            idle=lambda model_name: [name for name in idle(model_name) if name != "model_args"],
            read_config=lambda _: shared_settings,
        )
        if config.serve is not None:
            raise ConfigError("serve_not_in_plans")
        return config
    except ConfigError as error:
        raise ConfigError("plan_pair", model=model.label, exam=exam.label, problem=error) from None


def _without_keys(model: MatrixEntry, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a model with its own address, without keys of other hosts."""
    provider = find_provider(model.target)
    address = model.layer.get("api_url")
    is_provider_host = isinstance(address, str) and _host(address) == _host(provider.home)
    hidden = {provider.url_variable, "KEJU_API_URL", "KEJU_API_KEY"}
    hidden |= set() if is_provider_host else {provider.key_variable}
    return {name: value for name, value in environ.items() if name not in hidden}


def _host(address: str) -> str | None:
    return urlsplit(parse_address(address).base).hostname


def _args_by_exam(common: Layer, exams: Sequence[MatrixEntry]) -> dict[str, Layer]:
    """Return `dataset_args` by exam; ConfigError if a name is not one of the matrix's exams."""
    names = [exam.target for exam in exams]
    by_exam: dict[str, Layer] = {}
    for name, args in common.get("dataset_args", {}).items():
        if (exam := resolve_name(name, names)) is None:
            raise unknown_exam_error(name, names)
        by_exam[exam] = by_exam.get(exam, {}) | (args or {})
    return by_exam


def _refuse_repeated(setting: str, names: Sequence[str]) -> None:
    """Raise ConfigError if two entries would use the same folder."""
    folded = Counter(name.casefold() for name in names)
    if repeated_name := next((name for name in names if folded[name.casefold()] > 1), None):
        raise ConfigError("plan_twice", setting=setting, name=repeated_name)


def _check_budget(settings: Layer, pairs: Sequence[MatrixPair]) -> Budget:
    budget = Budget(**settings)
    for pair in pairs:
        if budget.cost is not None and pair.config.price is None:
            raise ConfigError("config_cost_without_price", path=f"budget.cost ({pair.model})")
    return budget


def _slug(label: str) -> str:
    """Return a folder name for a label. A long label keeps its beginning and gets a digest."""
    slug = _UNSAFE.sub("-", label).strip("-.") or "x"
    if len(slug) <= LONGEST_LABEL:
        return slug
    digest = hashlib.blake2b(label.encode(), digest_size=4).hexdigest()
    return f"{slug[: LONGEST_LABEL - 9].rstrip('-.')}-{digest}"
