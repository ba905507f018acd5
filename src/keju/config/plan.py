"""A plan: every one of several models sits every one of several exams.

A plan is a task file with `models` in place of `model`. All other settings hold for every pair;
the entry of a model or an exam says what it has otherwise. The nearer to the command line, the
stronger: flags, ``-s``, the entry of the model, that of the exam, the environment, the rest of the
file.

    plan: weekly
    models:
      - {model: small, api_url: "http://localhost:8000/v1"}
      - {model: large, api_url: "https://there/v1", api_key_var: THERE_KEY, eval_batch_size: 8}
    datasets: [bbh, {dataset: mmlu_pro, limit: 20}]

A key goes only where it was said: those of the whole plan, and of the environment, to models
without an address of their own.
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

from keju.config.address import parse_address, provider_of
from keju.config.endpoints import PLACES
from keju.config.exams import beside, meant, not_run
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
"""The key that makes a task file a plan."""
OF_ENTRY: Final = ("name", "run_budget")
"""Keys of an entry that are no settings of a task."""
OWN_KEYS: Final = ("plan", MODELS, "run_budget", "api_key_var")
"""Keys of a plan that a task does not have."""
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
"""Settings of a task that the entry of an exam may have; all its others are `dataset_args`."""
CHOICES: Final = ("limit", "total", "ids")
"""Ways to choose questions, of which a task has one."""
SECRETS: Final = ("api_key", "headers")
"""What goes to the plan's own address alone."""
REFUSED: Final = (
    "model", "run_id", "replace", "failed_of", "until_decided", "use_cache", *PLACES, *SECRETS,
)  # fmt: skip
"""Settings that a command cannot give to all runs of a plan at once."""
NOWHERE: Final = ("model", "run_id", "replace", "failed_of", "until_decided", "ids", "use_cache")
"""Settings that a plan has no place for outside its entries."""
LONGEST_LABEL: Final = 40
NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_LABEL - 1}}}")
"""The name of a plan, as a folder has it."""
_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")
"""What no name of a folder has: ``/`` and the blanks in ``my model/v2``."""


class Pair(NamedTuple):
    """One model and one exam: a run of its own."""

    model: str
    """The name of the model's entry."""
    exam: str
    """The name of the exam's entry."""
    run: str
    """The id of the run: it depends on the names of the plan and of both entries alone."""
    config: TaskConfig


class PaceLimits(StrictSettings):
    """Requests and tokens a minute."""

    rpm: Rate | None = None
    tpm: Rate | None = None


@dataclass(frozen=True, kw_only=True)
class PlanConfig:
    """All pairs of a plan, and what holds for the whole."""

    name: str
    pairs: tuple[Pair, ...]
    budget: Budget
    """Over all runs."""
    pace: PaceLimits
    """Of each endpoint, over all models there."""
    own_pace: Mapping[str, PaceLimits]
    """By model: what its own entry says, over all its runs."""
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
        """Settings that all pairs have alike, such as the folder of the runs."""
        return self.pairs[0].config


class Entry(NamedTuple):
    """A model or an exam of a plan."""

    label: str
    target: str
    """The name of the model or data set."""
    layer: Layer
    run_budget: Layer


def is_plan(path: str | Path) -> bool:
    """Whether a file of settings is a plan; one that cannot be read is refused elsewhere."""
    try:
        return MODELS in document(Path(path))
    except ConfigError:
        return False


def load_plan(
    source: str | Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    exam_name: Callable[[str], str],
    idle: Callable[[object], Collection[str]] = lambda _: (),
) -> PlanConfig:
    """A plan, whole and checked; ConfigError says which entry is wrong.

    `exam_name` gives the name of an exam, whatever it is called in the file. The other parameters
    are those of `keju.config.load.load`.
    """
    environ = os.environ if environ is None else environ
    content = dict(source) if isinstance(source, Mapping) else document(Path(source))
    above = merge(from_overrides(overrides), canonical(flags or {}))
    if refused := next((key for key in REFUSED if key in above), None):
        raise ConfigError("plan_flag", name=refused, flag=refused.replace("_", "-"))
    own = {key: content.pop(key) for key in OWN_KEYS if key in content}
    listed = content.pop("datasets", None)
    common = canonical(content, "" if isinstance(source, Mapping) else str(source))
    if not isinstance(source, Mapping):
        common = with_neighbours(common, Path(source).parent)
        listed = _with_neighbours(listed, Path(source).parent)
    if refused := next((key for key in NOWHERE if key in common), None):
        raise ConfigError("plan_setting", name=refused)
    around = from_environment(environ)
    exams = _exams(listed, above.pop("datasets", around.get("datasets")), exam_name)
    common["dataset_args"] = _args_by_exam(common, exams)
    models, name = _models(own[MODELS], environ), _plan_name(own.get("plan"), source)
    budget = {**common.pop("budget", {}), **above.pop("budget", {})}
    common["run_budget"] = own.get("run_budget") or {}
    if own.get("api_key_var") is not None:
        common["api_key"] = _key(own["api_key_var"], environ, "api_key_var")
    pairs = [
        Pair(
            model.label,
            exam.label,
            f"{name}--{_slug(model.label)}--{_slug(exam.label)}",
            _task(common, model, exam, above, environ, idle),
        )
        for model in models
        for exam in exams
    ]
    _refuse_twice(MODELS, [_slug(model.label) for model in models])
    _refuse_twice("datasets", [_slug(exam.label) for exam in exams])
    pairs = [
        pair._replace(config=pair.config.model_copy(update={"run_id": pair.run})) for pair in pairs
    ]
    return PlanConfig(
        name=name,
        pairs=tuple(pairs),
        budget=_checked_budget(budget, pairs),
        pace=_pace(around | common | above),
        own_pace={model.label: _pace(model.layer) for model in models},
        resume=pairs[0].config.resume,
    )


def _pace(layer: Mapping[str, Any]) -> PaceLimits:
    return PaceLimits(**{key: layer[key] for key in PaceLimits.model_fields if key in layer})


def _plan_name(given: Any, source: str | Path | Mapping[str, Any]) -> str:
    """What a plan is called: as it says itself, or as its file."""
    if given is None:
        given = "plan" if isinstance(source, Mapping) else _slug(Path(source).stem)
    if not isinstance(given, str) or NAME.fullmatch(given) is None:
        raise ConfigError("plan_name", longest=LONGEST_LABEL)
    return given


def _models(listed: Any, environ: Mapping[str, str]) -> list[Entry]:
    """The models: a name, or a mapping of settings."""
    if not isinstance(listed, list) or not listed:
        raise ConfigError("plan_list", name=MODELS)
    entries = []
    for place, each in enumerate(listed):
        given = {"model": each} if isinstance(each, str) else each
        where = f"{MODELS}.{place}"
        if not isinstance(given, dict) or not isinstance(given.get("model"), str):
            raise ConfigError("plan_entry_form", where=where, name="model")
        own = {key: given[key] for key in (*OF_ENTRY, "api_key_var") if key in given}
        rest = {key: value for key, value in given.items() if key not in own}
        layer = canonical(rest, where)
        for key in layer:
            if key not in OF_MODEL:
                hint = did_you_mean(key, [*OF_MODEL, *OF_ENTRY, "api_key_var"])
                raise ConfigError("plan_entry_setting", where=where, name=key, hint=hint)
        if own.get("api_key_var") is not None:
            layer["api_key"] = _key(own["api_key_var"], environ, f"{where}.api_key_var")
        label = str(own.get("name") or given["model"])
        entries.append(Entry(label, given["model"], layer, own.get("run_budget") or {}))
    return entries


def _key(variable: object, environ: Mapping[str, str], where: str) -> str:
    """The key in the variable that an entry names."""
    name = variable_name(str(variable), where)
    if not (key := environ.get(name)):
        raise ConfigError("plan_no_key", where=where, variable=name)
    return key


def _with_neighbours(listed: Any, folder: Path) -> Any:
    """The list of exams with those that are found in `folder` and not in the current one."""

    def found(entry: Any) -> Any:
        if isinstance(entry, str):
            return beside(entry, folder)
        if isinstance(entry, dict) and isinstance(entry.get("dataset"), str):
            return entry | {"dataset": beside(entry["dataset"], folder)}
        return entry

    return [found(entry) for entry in listed] if isinstance(listed, list) else listed


def _exams(listed: Any, named: Any, exam_name: Callable[[str], str]) -> list[Entry]:
    """The exams: a name, or a mapping of settings; of these the `named` ones where any are."""
    if not isinstance(listed, list | None) or not (listed or named):
        raise ConfigError("plan_list", name="datasets")
    entries: list[Entry] = []
    for place, each in enumerate(listed or []):
        given = {"dataset": each} if isinstance(each, str) else each
        where = f"datasets.{place}"
        if not isinstance(given, dict) or not isinstance(given.get("dataset"), str):
            raise ConfigError("plan_entry_form", where=where, name="dataset")
        target = given["dataset"]
        own = {key: given[key] for key in (*OF_ENTRY, "dataset") if key in given}
        spelled = {str(k).replace("-", "_"): v for k, v in given.items() if k not in own}
        layer = {key: value for key, value in spelled.items() if key in OF_EXAM}
        args = {key: value for key, value in spelled.items() if key not in OF_EXAM}
        layer |= {"dataset_args": {target: args}} if args else {}
        label = str(own.get("name") or exam_name(target))
        entries.append(Entry(label, target, layer, own.get("run_budget") or {}))
    if named is None:
        return entries
    chosen = []
    for name in [named] if isinstance(named, str) else named:
        target = meant(name, [each.target for each in entries])
        found = [each for each in entries if name == each.label or each.target == target]
        chosen += found or [Entry(exam_name(name), name, {}, {})]
    return chosen


def _task(
    common: Layer,
    model: Entry,
    exam: Entry,
    above: Layer,
    environ: Mapping[str, str],
    idle: Callable[[object], Collection[str]],
) -> TaskConfig:
    """The settings of one pair."""
    own_place = any(place in model.layer for place in PLACES)
    below = {key: value for key, value in common.items() if key not in (*OWN_KEYS, "dataset_args")}
    if own_place:
        below = {key: value for key, value in below.items() if key not in (*SECRETS, *PLACES)}
    args = common.get("dataset_args", {}).get(exam.target)
    below |= {"dataset_args": {exam.target: args}} if args else {}
    if any(choice in exam.layer for choice in CHOICES):
        below = {key: value for key, value in below.items() if key not in CHOICES}
        environ = {k: v for k, v in environ.items() if k not in ("KEJU_LIMIT", "KEJU_TOTAL")}
    entry = merge(merge(exam.layer, model.layer), {"model": model.target})
    budget = merge(merge(common["run_budget"], exam.run_budget), model.run_budget)
    entry |= {"datasets": [exam.target], **({"budget": budget} if budget else {})}
    if any(choice in above for choice in CHOICES):
        below, entry = (
            {key: value for key, value in layer.items() if key not in CHOICES}
            for layer in (below, entry)
        )
    if own_place:
        environ = _without_keys(model, environ)
    try:
        # What is common to all models is left out where one has no use for it. `model_args` are
        # not, since that may be so for every model of the plan: they are refused.
        config = load(
            "",
            flags=merge(entry, above),
            environ=environ,
            idle=lambda each: [name for name in idle(each) if name != "model_args"],
            read=lambda _: below,
        )
        if config.serve is not None:
            raise ConfigError("serve_not_in_plans")
        return config
    except ConfigError as error:
        raise ConfigError("plan_pair", model=model.label, exam=exam.label, problem=error) from None


def _without_keys(model: Entry, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a model with an address of its own: no key that is of another host."""
    provider = provider_of(model.target)
    address = model.layer.get("api_url")
    theirs = isinstance(address, str) and _host(address) == _host(provider.home)
    hidden = {provider.url_variable, "KEJU_API_URL", "KEJU_API_KEY"}
    hidden |= set() if theirs else {provider.key_variable}
    return {name: value for name, value in environ.items() if name not in hidden}


def _host(address: str) -> str | None:
    return urlsplit(parse_address(address).base).hostname


def _args_by_exam(common: Layer, exams: Sequence[Entry]) -> dict[str, Layer]:
    """The settings in `dataset_args` by the exams as they are sat; ConfigError where one is not."""
    names = [exam.target for exam in exams]
    by_exam: dict[str, Layer] = {}
    for name, args in common.get("dataset_args", {}).items():
        if (exam := meant(name, names)) is None:
            raise not_run(name, names)
        by_exam[exam] = by_exam.get(exam, {}) | (args or {})
    return by_exam


def _refuse_twice(setting: str, names: Sequence[str]) -> None:
    """ConfigError where two entries would have one folder."""
    folded = Counter(name.casefold() for name in names)
    if twice := next((name for name in names if folded[name.casefold()] > 1), None):
        raise ConfigError("plan_twice", setting=setting, name=twice)


def _checked_budget(given: Layer, pairs: Sequence[Pair]) -> Budget:
    budget = Budget(**given)
    for pair in pairs:
        if budget.cost is not None and pair.config.price is None:
            raise ConfigError("config_cost_without_price", path=f"budget.cost ({pair.model})")
    return budget


def _slug(label: str) -> str:
    """A name that a folder can have; one that is long keeps its beginning and a digest."""
    slug = _ODD.sub("-", label).strip("-.") or "x"
    if len(slug) <= LONGEST_LABEL:
        return slug
    digest = hashlib.blake2b(label.encode(), digest_size=4).hexdigest()
    return f"{slug[: LONGEST_LABEL - 9].rstrip('-.')}-{digest}"
