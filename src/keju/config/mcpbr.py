"""Config files of ``keju run``: mcpbr's format, and Keju's own format with a list of arms.

Keys of mcpbr that have a meaning in Keju become settings of a task. All other known keys of mcpbr
are reported as keys without effect. Unknown keys are refused. The format with arms may contain any
setting of `TaskConfig`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from keju.config.address import SHORT_NAMES
from keju.config.arms import ServerSettings, expand_all
from keju.config.load import Layer, canonical, merge
from keju.config.strict import document
from keju.config.sweep import read_sweep
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
    *("sandbox", "extends", "servers", *SERVERS),
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
"""mcpbr's keys that Keju does not use."""
KEY_VARIABLE: Final = "api_key_var"
OF_MODEL: Final = {
    "name": "model",
    "api_url": "api_url",
    "generation": "generation_config",
    KEY_VARIABLE: "api_key",
}
"""Keys of the mapping ``model``, and the matching settings."""
SHORT: Final = frozenset(name.partition(":")[2] for name in SHORT_NAMES)


class TranslatedConfig(NamedTuple):
    """A config file of ``keju run`` as settings of a task."""

    layer: Layer
    notices: tuple[Notice, ...] = ()
    strategy: str | None = None
    """How questions are chosen, if the file says so in mcpbr's way."""


def read_run_file(
    path: Path,
    environ: Mapping[str, str],
    benchmark: str | None,
    idle: Collection[str] = (),
) -> TranslatedConfig:
    """Return the settings in a file. `benchmark` replaces the file's own exam.

    `idle` are settings that will not be used, such as the address if the command line names a local
    model. Their variables may be unset.
    """
    content = _with_parents(path, ())  # its errors already name the file
    try:
        return translate(content, environ, benchmark, idle)
    except ConfigError as error:
        raise ConfigError("config_from", origin=str(path), problem=error) from None


def _with_parents(path: Path, extending_files: tuple[Path, ...]) -> dict[str, Any]:
    """Return the content of a file merged over the files that it extends."""
    content = document(path)
    parents = content.pop("extends", [])
    merged: Layer = {}
    for name in [parents] if isinstance(parents, str) else parents:
        parent = (path.parent / str(name)).resolve()
        if parent in extending_files or parent == path.resolve():
            raise ConfigError("run_file_circle", path=parent)
        merged = merge(merged, _with_parents(parent, (*extending_files, path.resolve())))
    return merge(merged, content)


def translate(
    content: Mapping[str, Any],
    environ: Mapping[str, str],
    benchmark: str | None = None,
    idle: Collection[str] = (),
) -> TranslatedConfig:
    """Translate the content of a file into settings."""
    content = {str(key).replace("-", "_"): value for key, value in content.items()}
    _refuse_unknown(content)
    # Variables of servers are expanded when a server is started.
    unexpanded_keys = {*SERVERS, "servers", "arms", "model", *idle}
    settings = {
        k: v if k in unexpanded_keys else expand_all(v, environ) for k, v in content.items()
    }
    if {"benchmark", "datasets"} <= settings.keys():
        raise ConfigError("config_two_spellings", origin="", path="benchmark")
    file_exam = settings.pop("benchmark", None)
    unused = _drop_other_exams(settings, benchmark) if benchmark else []
    if benchmark:
        settings.pop("datasets", None)
    exam = benchmark or file_exam
    layer: Layer = {"datasets": [exam]} if exam is not None else {}
    layer = merge(layer, _read_model(settings, environ, idle))
    layer = merge(layer, _read_arms(settings))
    args = {EXAM_ARGS[key]: settings.pop(key) for key in EXAM_ARGS if key in settings}
    if args and exam is not None:
        layer["dataset_args"] = {str(exam): _without_none(args)}
    strategy = _read_strategy(settings)
    if isinstance(settings.get("budget"), int | float):
        layer["budget"] = {"cost": settings.pop("budget")}
    idle_keys = sorted(key for key in settings if _is_idle(key, settings[key]))
    for key in idle_keys:
        del settings[key]
    layer = merge(layer, _read_renamed(settings))
    layer = merge(layer, canonical(_without_none(settings)))
    keys_by_notice = {"run_file_idle": idle_keys, "run_file_other_exam": unused}
    notices = [
        Notice(code, {"keys": ", ".join(keys)}) for code, keys in keys_by_notice.items() if keys
    ]
    return TranslatedConfig(layer, tuple(notices), strategy)


def _without_none(settings: Mapping[str, Any]) -> Layer:
    return {key: value for key, value in settings.items() if value is not None}


def _read_strategy(settings: Layer) -> str | None:
    """Remove mcpbr's way of choosing questions from `settings` and return it."""
    strategy: str | None = settings.pop("sampling_strategy", None)
    if strategy is not None and strategy not in STRATEGIES:
        hint = did_you_mean(str(strategy), STRATEGIES)
        raise ConfigError("run_file_strategy", strategy=strategy, hint=hint)
    return strategy


def _read_renamed(settings: Layer) -> Layer:
    """Remove the settings with another name in Keju from `settings` and return them."""
    layer: Layer = {}
    for key, setting in RENAMED.items():
        value = settings.pop(key, None)
        for part in reversed(setting.split(".")) if value is not None else ():
            value = {part: value}
        layer = merge(layer, value or {})
    return layer


def _drop_other_exams(settings: dict[str, Any], benchmark: str) -> list[str]:
    """Remove the settings of other exams from `settings`, and return their names."""
    args = settings.get("dataset_args")
    other_exams = [name for name in args if name != benchmark] if isinstance(args, Mapping) else []
    if other_exams:
        settings["dataset_args"] = {
            k: v for k, v in settings["dataset_args"].items() if k == benchmark
        }
    return [f"dataset_args.{name}" for name in other_exams]


def _refuse_unknown(content: Mapping[str, Any]) -> None:
    accepted_keys = [*READ_HERE, *RENAMED, *EXAM_ARGS, *TaskConfig.model_fields]
    for key in content:
        if key not in accepted_keys and key not in WITHOUT_EFFECT:
            hint = did_you_mean(key, [*accepted_keys, *WITHOUT_EFFECT])
            raise ConfigError("config_unknown_key", origin="", path=key, hint=hint, more="")


def _is_idle(key: str, value: Any) -> bool:
    """Whether a key has no effect. `sandbox` is also one of Keju's own settings."""
    if key == "sandbox":
        return isinstance(value, dict) and "level" in value
    return key in WITHOUT_EFFECT


def _read_model(
    settings: dict[str, Any], environ: Mapping[str, str], idle: Collection[str]
) -> Layer:
    """Return the model and its address, given ``sonnet`` or a mapping with name and address."""
    provider, model = settings.pop("provider", None), settings.pop("model", None)
    model_settings = model if isinstance(model, Mapping) else {"name": model}
    layer: Layer = {}
    for key, value in model_settings.items():
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
    if provider not in (None, "anthropic", "openai") and "api_url" not in {*layer, *settings}:
        raise ConfigError("run_file_provider", provider=provider)
    return layer | {"model": find_model_name(str(model), provider)}


def find_model_name(model: str, provider: str | None = None) -> str:
    """Return Keju's name of a model. mcpbr uses Anthropic's names and short forms of them."""
    is_anthropic = provider == "anthropic" or (
        provider is None and (model in SHORT or model.startswith("claude-"))
    )
    return f"anthropic:{model}" if is_anthropic and not model.startswith("anthropic:") else model


def _read_arms(settings: dict[str, Any]) -> Layer:
    """Return the arms that mcpbr's keys describe: a server and the baseline, or two servers."""
    sweep_servers = settings.pop("servers", None)
    if isinstance(settings.get("arms"), str):
        return _read_sweep(settings, sweep_servers)
    if sweep_servers is not None:
        raise ConfigError("sweep_servers_alone")
    servers = {name: settings.pop(name, None) for name in SERVERS}
    is_comparison = settings.pop("comparison_mode", False)
    single_server, *server_pair = servers.values()
    if not is_comparison and not any(servers.values()):
        return {}
    if "arms" in settings:
        raise ConfigError("run_file_two_forms")
    if is_comparison and not (all(server_pair) and single_server is None):
        raise ConfigError("run_file_comparison")
    if not is_comparison and any(server_pair):
        raise ConfigError("run_file_one_server")
    arms = [
        {"name": WITH_SERVER if not is_comparison else key, "servers": [_check_server(key, server)]}
        for key, server in servers.items()
        if server
    ]
    return {"arms": arms if is_comparison else [{"name": BASELINE}, *arms]}


def _read_sweep(settings: dict[str, Any], servers: Any) -> Layer:
    """Return the arms of ``arms: each tool left out`` and its like, before their tools are known.

    The key ``servers`` lists the servers, or mcpbr's ``mcp_server`` is the only one.
    """
    single_server = settings.pop("mcp_server", None)
    if single_server is not None and servers is None:
        servers = [_check_server("mcp_server", single_server)]
    elif single_server is not None or any(settings.get(name) for name in SERVERS):
        raise ConfigError("run_file_two_forms")
    return read_sweep(settings.pop("arms"), servers)


def _check_server(key: str, server: Any) -> Any:
    if not isinstance(server, Mapping):
        raise ConfigError("run_file_server", key=key)
    server_settings = {"name": "mcpbr"} | dict(server)
    try:
        ServerSettings(**server_settings)  # errors name the file's key, not the key of an arm
    except ConfigError as error:
        raise ConfigError("config_from", origin=key, problem=error) from None
    return server_settings


def filter_arms(arms: list[Any], *, with_tools: bool) -> list[Any]:
    """Return the arms with tools, or those without (at least a baseline)."""

    def has_tools(arm: Any) -> bool:
        return isinstance(arm, Mapping) and bool(arm.get("servers") or arm.get("tools"))

    matching_arms = [arm for arm in arms if has_tools(arm) == with_tools]
    if not matching_arms and with_tools:
        raise ConfigError("run_no_tools")
    return matching_arms or [{"name": BASELINE}]
