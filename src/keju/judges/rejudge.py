"""The settings of a judge that grades a stored run, the first time or again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keju.config import Budget, GenerationConfig, JudgeConfig, Price, TaskConfig
from keju.config.load import canonical
from keju.config.strict import StrictSettings
from keju.engine.job import make_jobs
from keju.errors import ConfigError

_OF_ONE_JUDGE = (
    "strategy", "continuous", "repeats", "second", "labelled", "budget", "price",
    "generation_config",
)  # fmt: skip
"""Settings of a judge that mean nothing to another one."""
_MAPPINGS: dict[str, type[StrictSettings]] = {
    "budget": Budget,
    "price": Price,
    "generation_config": GenerationConfig,
}


def complete_settings(stored: TaskConfig, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings to lay over those of a `stored` run, where `given` ones are to count.

    Without a judge of the run's own they begin with the one that its exams name. Where it is and
    the limits of asking it pass from one judge to another; whatever else was set up for one does
    not, and a key does not pass to another address. ConfigError if a judge is named and not to be
    asked.
    """
    given = canonical({"judge": given})["judge"]
    if "model" in given and given.get("strategy") == "rule":
        raise ConfigError("strategy 'rule' asks no judge: leave out the strategy or the model")
    if stored.judge is None:
        judges = [job.exam.judge for job in make_jobs(stored)] if "model" not in given else [None]
        if judges[0] is None or any(judge != judges[0] for judge in judges):
            return dict(given)
        return judges[0].model_dump(mode="json", exclude_defaults=True) | dict(given)
    if given.get("api_url", stored.judge.api_url) != stored.judge.api_url:
        given = {"api_key_var": _unset("api_key_var")} | dict(given)
    if given.get("model", stored.judge.model) == stored.judge.model:
        asks_again = "model" in given and stored.judge.strategy == "rule"
        return ({"strategy": _unset("strategy")} if asks_again else {}) | dict(given)
    fresh = {name: _unset(name) for name in _OF_ONE_JUDGE}
    parts = {
        name: _checked(settings, name, given[name])
        for name, settings in _MAPPINGS.items()
        if isinstance(given.get(name), Mapping)
    }
    return fresh | dict(given) | parts


def _unset(name: str) -> Any:
    return JudgeConfig.model_fields[name].default


def _checked(settings: type[StrictSettings], name: str, given: Mapping[str, Any]) -> Any:
    """The `given` part as an object: it replaces a stored one, where a mapping would merge."""
    try:
        return settings(**given)
    except ConfigError as error:
        raise ConfigError(f"judge.{name}: {error}") from None
