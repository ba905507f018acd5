"""Config files of ``keju run``: mcpbr's own, and Keju's form with a list of arms.

Keys of mcpbr that have a meaning here become settings of a task; every other key that mcpbr knows
is named as one without effect; what neither knows is refused. The form with arms may hold any
setting of `TaskConfig` beside them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from keju.config.address import SHORT_NAMES
from keju.config.arms import Server, expand_all
from keju.config.load import Layer, canonical, merge
from keju.config.strict import document
from keju.config.task import TaskConfig
from keju.errors import ConfigError, Notice, did_you_mean

BASELINE: Final = "baseline"
WITH_SERVER: Final = "mcp"
SERVERS: Final = ("mcp_server", "mcp_server_a", "mcp_server_b")
STRATEGIES: Final = ("sequential", "random", "stratified")

RENAMED: Final = {
    "sample_size": "total",
    "task_ids": "ids",
    "max_concurrent": "eval_batch_size",
    "output_dir": "work_dir",
    "rate_limit_rpm": "rpm",
    "timeout_seconds": "agent.timeout_seconds",
    "max_iterations": "agent.max_iterations",
    "arm_order": "agent.arm_order",
    "random_seed": "seed",
    "global_seed": "seed",
}
"""Keys that are settings of a task under another name."""
EXAM_ARGS: Final = {"filter_category": "subset_list", "agent_prompt": "prompt_template"}
"""Keys that are settings of the exam."""
READ_HERE: Final = (
    *("benchmark", "model", "provider", "comparison_mode", "sampling_strategy", "budget"),
    *("sandbox", "extends", *SERVERS),
)
WITHOUT_EFFECT: Final = (
    "agent_harness", "audit_enabled", "audit_log_file", "cache_dir", "cache_enabled",
    "checkpoint_interval", "cloud_storage", "continue_on_error", "custom_metrics",
    "cybergym_level", "data_retention_days", "dataset", "deterministic_mode", "disable_logs",
    "enable_profiling", "eval_timeout_seconds", "exclude_result_fields", "filter_difficulty",
    "filter_tags", "github_token", "infrastructure", "max_failures", "notify_discord_webhook",
    "notify_email", "notify_slack_webhook", "prompt_security", "rate_limit_strategy",
    "record_environment", "redaction_level", "resume_from_checkpoint", "sandbox",
    "slack_bot_token", "slack_channel", "stratify_field", "thinking_budget",
    "use_prebuilt_images", "volumes", "wandb_enabled", "wandb_project",
)  # fmt: skip
"""Keys of mcpbr that Keju knows and has no use for."""
KEY_VARIABLE: Final = "api_key_var"
OF_MODEL: Final = {
    "name": "model",
    "api_url": "api_url",
    "generation": "generation_config",
    KEY_VARIABLE: "api_key",
}
"""Keys of the mapping ``model``, and the settings that they are."""
SHORT: Final = frozenset(name.partition(":")[2] for name in SHORT_NAMES)


class Translated(NamedTuple):
    """A config file of ``keju run`` as settings of a task."""

    layer: Layer
    notices: tuple[Notice, ...] = ()
    strategy: str | None = None
    """Which questions a number of them is made of, where the file says it as mcpbr does."""


def read_run_file(
    path: Path,
    environ: Mapping[str, str],
    benchmark: str | None,
    idle: Collection[str] = (),
) -> Translated:
    """The settings in a file, `benchmark` in place of the file's own where it is given.

    `idle` are settings that will not count, as the address where the command line names a local
    model: their variables need not be set.
    """
    content = _with_parents(path, ())  # whose errors name the file themselves
    try:
        return translate(content, environ, benchmark, idle)
    except ConfigError as error:
        raise ConfigError("config_from", origin=str(path), problem=error) from None


def _with_parents(path: Path, below: tuple[Path, ...]) -> dict[str, Any]:
    """The content of a file over that of the files that it extends."""
    content = document(path)
    parents = content.pop("extends", [])
    merged: Layer = {}
    for name in [parents] if isinstance(parents, str) else parents:
        parent = (path.parent / str(name)).resolve()
        if parent in below or parent == path.resolve():
            raise ConfigError("run_file_circle", path=parent)
        merged = merge(merged, _with_parents(parent, (*below, path.resolve())))
    return merge(merged, content)


def translate(
    content: Mapping[str, Any],
    environ: Mapping[str, str],
    benchmark: str | None = None,
    idle: Collection[str] = (),
) -> Translated:
    """The settings that the content of a file means."""
    content = {str(key).replace("-", "_"): value for key, value in content.items()}
    _refuse_unknown(content)
    # Variables of servers are filled in when a server is started.
    kept = {*SERVERS, "arms", "model", *idle}
    given = {k: v if k in kept else expand_all(v, environ) for k, v in content.items()}
    if {"benchmark", "datasets"} <= given.keys():
        raise ConfigError("config_two_spellings", origin="", path="benchmark")
    own = given.pop("benchmark", None)
    unused = _args_of_others(given, benchmark) if benchmark else []
    if benchmark:
        given.pop("datasets", None)
    exam = benchmark or own
    layer: Layer = {"datasets": [exam]} if exam is not None else {}
    layer = merge(layer, _model(given, environ, idle))
    layer = merge(layer, _arms(given))
    args = {EXAM_ARGS[key]: given.pop(key) for key in EXAM_ARGS if key in given}
    if args and exam is not None:
        layer["dataset_args"] = {str(exam): {k: v for k, v in args.items() if v is not None}}
    strategy = given.pop("sampling_strategy", None)
    if strategy is not None and strategy not in STRATEGIES:
        hint = did_you_mean(str(strategy), STRATEGIES)
        raise ConfigError("run_file_strategy", strategy=strategy, hint=hint)
    if isinstance(given.get("budget"), int | float):
        layer["budget"] = {"cost": given.pop("budget")}
    idle_keys = sorted(key for key in given if _is_idle(key, given[key]))
    for key in idle_keys:
        del given[key]
    for key, setting in RENAMED.items():
        value = given.pop(key, None)
        for part in reversed(setting.split(".")):
            value = {part: value} if value is not None else None
        layer = merge(layer, value or {})
    layer = merge(layer, canonical({k: v for k, v in given.items() if v is not None}))
    told = {"run_file_idle": idle_keys, "run_file_other_exam": unused}
    notices = [Notice(code, {"keys": ", ".join(keys)}) for code, keys in told.items() if keys]
    return Translated(layer, tuple(notices), strategy)


def _args_of_others(given: dict[str, Any], benchmark: str) -> list[str]:
    """Take the settings of other exams than the one that is sat out of `given`; their names."""
    args = given.get("dataset_args")
    others = [name for name in args if name != benchmark] if isinstance(args, Mapping) else []
    if others:
        given["dataset_args"] = {k: v for k, v in given["dataset_args"].items() if k == benchmark}
    return [f"dataset_args.{name}" for name in others]


def _refuse_unknown(content: Mapping[str, Any]) -> None:
    own = [*READ_HERE, *RENAMED, *EXAM_ARGS, *TaskConfig.model_fields]
    for key in content:
        if key not in own and key not in WITHOUT_EFFECT:
            hint = did_you_mean(key, [*own, *WITHOUT_EFFECT])
            raise ConfigError("config_unknown_key", origin="", path=key, hint=hint, more="")


def _is_idle(key: str, value: Any) -> bool:
    """Whether a key has no effect here; `sandbox` is also a setting of Keju's own."""
    if key == "sandbox":
        return isinstance(value, dict) and "level" in value
    return key in WITHOUT_EFFECT


def _model(given: dict[str, Any], environ: Mapping[str, str], idle: Collection[str]) -> Layer:
    """Which model is asked, and where: ``sonnet``, or a mapping with its name and address."""
    provider, model = given.pop("provider", None), given.pop("model", None)
    named = model if isinstance(model, Mapping) else {"name": model}
    layer: Layer = {}
    for key, value in named.items():
        setting = OF_MODEL.get(str(key))
        if setting is None:
            hint = did_you_mean(str(key), OF_MODEL)
            values = {"origin": "", "path": f"model.{key}", "hint": hint, "more": ""}
            raise ConfigError("config_unknown_key", **values)
        if setting not in idle:
            value = expand_all(value, environ)
            if key == KEY_VARIABLE:
                if not environ.get(str(value)):
                    raise ConfigError("server_variable_unset", variable=value)
                value = environ[str(value)]
        layer[setting] = value
    model = layer.pop("model", None)
    if model is None or "model" in idle:
        return layer
    if provider not in (None, "anthropic", "openai") and "api_url" not in {*layer, *given}:
        raise ConfigError("run_file_provider", provider=provider)
    return layer | {"model": model_of_provider(str(model), provider)}


def model_of_provider(model: str, provider: str | None = None) -> str:
    """The name of a model as Keju knows it: mcpbr's are Anthropic's own, or short names of them."""
    theirs = provider == "anthropic" or (
        provider is None and (model in SHORT or model.startswith("claude-"))
    )
    return f"anthropic:{model}" if theirs and not model.startswith("anthropic:") else model


def _arms(given: dict[str, Any]) -> Layer:
    """The arms that mcpbr's keys mean: a server and the baseline, or two servers."""
    servers = {name: given.pop(name, None) for name in SERVERS}
    compares = given.pop("comparison_mode", False)
    one, *two = servers.values()
    if not compares and not any(servers.values()):
        return {}
    if "arms" in given:
        raise ConfigError("run_file_two_forms")
    if compares and not (all(two) and one is None):
        raise ConfigError("run_file_comparison")
    if not compares and any(two):
        raise ConfigError("run_file_one_server")
    arms = [
        {"name": WITH_SERVER if not compares else key, "servers": [_named(key, server)]}
        for key, server in servers.items()
        if server
    ]
    return {"arms": arms if compares else [{"name": BASELINE}, *arms]}


def _named(key: str, server: Any) -> Any:
    if not isinstance(server, Mapping):
        raise ConfigError("run_file_server", key=key)
    named = {"name": "mcpbr"} | dict(server)
    try:
        Server(**named)  # what is wrong is said by the file's own key, not by that of an arm
    except ConfigError as error:
        raise ConfigError("config_from", origin=key, problem=error) from None
    return named


def only_arms(arms: list[Any], *, with_tools: bool) -> list[Any]:
    """The arms with tools, or those without; where there is none without, a baseline."""

    def acts(arm: Any) -> bool:
        return isinstance(arm, Mapping) and bool(arm.get("servers") or arm.get("tools"))

    kept = [arm for arm in arms if acts(arm) == with_tools]
    if not kept and with_tools:
        raise ConfigError("run_no_tools")
    return kept or [{"name": BASELINE}]
