"""``keju gate`` without a run: asks the endpoints of a candidate and of its baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from keju.cli.command import COMMANDS, rebuild_command
from keju.cli.common import CommandOutput, note, print_sentences, remark
from keju.cli.gate import show_gate, write_exports
from keju.errors import UsageError
from keju.messages import current_language, label_text

if TYPE_CHECKING:
    from keju.config import TaskConfig
    from keju.matrix.gate import FinishedGate
    from keju.results.gate_rule import Side

PLACES = ("api_url", "endpoints", "serve")
SECRETS = ("api_key", "headers")


@dataclass(frozen=True, kw_only=True)
class EndpointOptions:
    """The options of the command that are not settings of the candidate."""

    margin: float | None
    baseline_url: list[str] | None
    baseline_model: str | None
    baseline_api_key: str | None
    baseline_price: str | None
    max_cost: float | None
    config: str | None
    overrides: list[str] | None
    no_report: bool
    quiet: bool
    verbose: bool
    junit: str | None
    markdown: str | None
    badge: str | None


def gate_endpoints(options: EndpointOptions, settings: dict[str, Any]) -> CommandOutput:
    """Ask both endpoints, and decide."""
    margin = options.margin
    if not (settings or options.config):
        raise UsageError("gate_nothing_asked")
    if margin is None:
        raise UsageError("gate_margin_missing")
    if not 0 < margin < 1:
        raise UsageError("gate_share", flag="--margin", value=margin)
    resume_command = _resume_command(options, settings)
    configs = _load_sides(options, settings)
    from keju.matrix.gate import run_gate
    from keju.reporting.board import make_board

    finished = run_gate(
        configs, margin, board=make_board(quiet=options.quiet), report=not options.no_report
    )
    if finished.result is not None:
        exports = {name: getattr(options, name) for name in ("junit", "markdown", "badge")}
        write_exports(finished.result, exports)
    problem = ""
    if finished.error is not None:
        problem = finished.error.message
        if finished.error.exit_code != UsageError.exit_code:
            problem += label_text("resume_with", command=resume_command)
    return CommandOutput(
        finished.document,
        lambda: _show(finished, verbose=options.verbose),
        problem,
        finished.exit_code,
    )


def _load_sides(options: EndpointOptions, settings: dict[str, Any]) -> dict[Side, TaskConfig]:
    """Return the settings of both sides. They differ only in the model and where it is."""
    from keju.config.load import load, merge
    from keju.models.registry import is_local, settings_without_effect

    if options.max_cost is not None:
        settings = merge(settings, {"budget": {"cost": options.max_cost}})

    def load_side(flags: dict[str, Any]) -> TaskConfig:
        return load(
            options.config, options.overrides or (), flags, idle=settings_without_effect, say=note
        )

    candidate = load_side(settings)
    _refuse_other_settings(candidate)
    if options.baseline_url is None and options.baseline_model is None:
        raise UsageError("gate_baseline_missing")
    base_flags = dict(settings)
    base_model = options.baseline_model or candidate.model
    base_flags["model"] = base_model
    if options.baseline_url is not None:
        base_flags = _without(base_flags, PLACES) | {"api_url": options.baseline_url}
    if is_local(base_model):
        if options.baseline_url is not None:
            raise UsageError("model_no_effect", setting="--baseline-url", name=base_model)
        base_flags = _without(base_flags, (*PLACES, *SECRETS, "ca_file"))
    if options.baseline_api_key is not None:
        base_flags["api_key"] = options.baseline_api_key
    if options.baseline_price is not None:
        from keju.config.strict import parse_mapping

        base_flags["price"] = parse_mapping(options.baseline_price, "--baseline-price")
    baseline = load_side(base_flags)
    if options.baseline_api_key is None:
        baseline = _without_secrets_of(candidate, baseline)
    if baseline.model == candidate.model and _addresses(baseline) == _addresses(candidate):
        raise UsageError("gate_same_endpoint")
    return {"candidate": candidate, "baseline": baseline}


def _without(flags: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if name not in names}


def _refuse_other_settings(config: TaskConfig) -> None:
    """Raise UsageError for settings, from a file, that the two runs of a gate cannot have."""
    unusable = {
        "arms": config.arms,
        "serve": config.serve,
        "until_ci": config.until_ci,
        "until_decided": config.until_decided,
        "failed_of": config.failed_of,
        "shard": config.shard,
        "use_cache": config.use_cache,
        "resume": config.resume,
        "replace": config.replace,
        "executor": config.executor != "local",
    }
    for name, value in unusable.items():
        if value:
            raise UsageError("gate_setting", name=name)


def _addresses(config: TaskConfig) -> list[str]:
    if config.endpoints:
        return [endpoint.url for endpoint in config.endpoints]
    return [config.api_url] if config.api_url else []


def _hosts(config: TaskConfig) -> set[str | None]:
    return {urlsplit(url).hostname for url in _addresses(config)}


def _without_secrets_of(candidate: TaskConfig, baseline: TaskConfig) -> TaskConfig:
    """Return the baseline's settings without the candidate's key and headers, if it is at another
    host; a note says so."""
    if _hosts(baseline) <= _hosts(candidate):
        return baseline
    changes: dict[str, Any] = {}
    if baseline.api_key is not None and baseline.api_key == candidate.api_key:
        changes["api_key"] = None
    if baseline.headers and baseline.headers == candidate.headers:
        changes["headers"] = {}
    if baseline.generation_config.extra_headers:
        changes["generation_config"] = baseline.generation_config.model_copy(
            update={"extra_headers": {}}
        )
    if changes:
        remark(label_text("gate.key_kept"))
    return baseline.model_copy(update=changes)


def _resume_command(options: EndpointOptions, settings: Mapping[str, Any]) -> str:
    """Return the command that continues these runs."""
    from keju.config.address import strip_credentials

    values: dict[str, Any] = asdict(options)
    for name, row in COMMANDS["gate"].rows.items():
        if row.field and "." not in row.field:
            values[name] = settings.get(row.field)
    for name in ("api_url", "baseline_url"):
        if values[name]:
            values[name] = [strip_credentials(url) for url in values[name]]
    return rebuild_command("gate", values)


def _show(finished: FinishedGate, *, verbose: bool) -> None:
    """Print the verdict, and what was asked and run_spending."""
    from keju.reporting.format import Labels, compact, count, money

    if finished.result is not None:
        show_gate(finished.result, verbose=verbose)
    labels = Labels(current_language())
    lines = [
        labels(
            "gate.asked", exam=row.exam, asked=count(row.asked_count), whole=count(row.total_count)
        )
        for row in finished.asked_questions
        if finished.result is not None
    ]
    for side, run_spending in finished.spending.items():
        parts = [
            labels("gate.requests", n=run_spending.requests),
            labels(
                "gate.tokens", n=compact(run_spending.input_tokens + run_spending.output_tokens)
            ),
            *([] if run_spending.cost is None else [money(run_spending.cost)]),
            labels.duration(run_spending.seconds),
        ]
        text = labels("clause_separator").join(parts)
        lines.append(labels(f"gate.spent_{side}", run=run_spending.run, text=text))
    print_sentences("", *lines)
