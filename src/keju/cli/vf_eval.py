"""``keju vf-eval``: the command line of the verifiers environment `bixbench`, for any benchmark."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from keju.cli.command import command
from keju.cli.common import CommandOutput, note, print_lines, remark, session_output
from keju.errors import ConfigError, EndpointError
from keju.messages import label_text

if TYPE_CHECKING:
    from keju.config import DatasetArgs, JudgeConfig, TaskConfig
    from keju.results.schema import ResultEntry
    from keju.scores.exam_scores import ExamScores

DEFAULT_MODEL = "gpt-4.1-mini"
DEFAULT_PRICE = (0.4, 1.6)
"""Dollars for a million tokens of the default judge, read and written (April 2025)."""
LONG_ANSWER, VERDICT_TOKENS, CHARACTERS_PER_TOKEN = 400, 200, 3
"""The characters of a long answer and the tokens of a long verdict, for an estimate of the cost."""
DEFAULT_EXAMPLES = 5
ALL = -1
"""The defaults of verifiers' ``vf-eval``."""


class RewardSummary(NamedTuple):
    """The scores of all rollouts in one line."""

    avg: float | None
    std: float | None
    """The population standard deviation of single scores."""
    n: int
    ungraded: int
    errors: int


@command(
    "vf-eval",
    "keju vf-eval bixbench -m NAME -b http://localhost:8000/v1 -n 20 -r 1 -s",
    'keju vf-eval bixbench -a \'{"answer_mode": "open", "max_episodes": 8}\' -s',
    'keju vf-eval bixbench -a \'{"question_source": "hypothesis", "with_refusal": true}\'',
    sets="model api_url rollouts concurrency temperature max_tokens run_id replace seed data_dir "
    "capsules agent sandbox unsafe_no_sandbox work_dir",
)
def vf_eval(
    env: str,
    env_args: str | None,
    key_var: str | None,
    examples: int | None,
    save: bool,
    without_judge: bool,
    verbose: bool,
    **settings: Any,
) -> CommandOutput:
    """Evaluate a model as verifiers' vf-eval does: some examples, several rollouts, a mean reward.

    Without -m and -b the model is gpt-4.1-mini at the endpoint of OPENAI_BASE_URL, or at OpenAI.
    A judge grades open answers that no rule decides if its key is set: gpt-4.1-mini, or the one
    that -a names. --no-judge turns it off. Without a key they are compared exactly. Without the
    data for its tools an agentic mode asks for several replies in a row without tools.
    """
    from keju.config.address import find_provider, parse_address
    from keju.files import typed_path
    from keju.reporting.live import make_display
    from keju.scores.exams import make_scores
    from keju.task import run_exams

    config, args = _configure(env, env_args, key_var, examples, settings, without_judge)
    (job,) = make_scores(config)
    if job.exam.notebook is not None:
        config, args, job = _replace_missing_tools(config, args, job)
    note(_describe_size(config, job))
    if config.judge is not None:
        note(_describe_judge(config.judge, job))
    try:
        finished = run_exams(config, display=make_display())
    except EndpointError as error:
        if config.api_key is None and error.code == "endpoint_wants_key":
            variable = key_var or find_provider(config.model).key_variable
            raise EndpointError("cli_key_variable", problem=error, variable=variable) from None
        raise
    summary: dict[str, Any] = {
        "env": job.exam.benchmark,
        "model": config.model,
        "provider": parse_address(config.api_url).display_url if config.api_url else "local",
        "episodes": len(job.exam.samples),
        "rollouts": config.repeats,
        **args.labels,
    }
    rewards = rewards_of(finished.results.benchmarks[0], finished.folder)
    summary_keys = ("env", "model", "provider", "split", "episodes", "mode", "answer_mode")
    lines = [" ".join(f"{key}={summary[key]}" for key in summary_keys if key in summary)]
    lines += [*reward_lines(rewards)] if save else []
    folder = label_text("next.folder", folder=typed_path(finished.folder))
    output = session_output(
        finished,
        lambda: print_lines(*lines, folder),
        verbose=verbose,
        show_last=lambda: print_lines(*(lines if sys.stdout.isatty() else ())),
    )
    extra = {"vf_eval": summary | {"reward": rewards._asdict()}}
    return output._replace(document=output.document | extra)


def _replace_missing_tools(
    config: TaskConfig, args: DatasetArgs, job: ExamScores
) -> tuple[TaskConfig, DatasetArgs, ExamScores]:
    """Return the run without tools if the data for them is missing, as the environment runs it."""
    from keju.scores.exams import make_scores

    name, task = job.exam.benchmark, job.exam.notebook
    assert task is not None
    try:
        task.check(job.exam.samples)
    except ConfigError as error:
        settings = args.settings_without_tools(config.dataset_args[name], error)
        if settings is None or config.capsules is not None:
            raise
    else:
        return config, args, job
    dataset_args = {**config.dataset_args, name: settings}
    config = config.model_copy(update={"dataset_args": dataset_args})
    (job,) = make_scores(config)
    remark(label_text("vf_eval.without_tools", exam=name, turns=job.exam.turns), "own_warning")
    return config, _check_settings(type(args), settings), job


def _describe_judge(judge: JudgeConfig, job: ExamScores) -> str:
    """Return the judge, and the most that its verdicts can cost, before the first one."""
    from keju.config.address import strip_credentials
    from keju.judges.exam import make_judge_sample
    from keju.judges.prompts import render

    kind: Literal["grade", "score"] = "score" if judge.continuous else "grade"
    characters = 0
    for sample in job.exam.samples:
        prompt = render(make_judge_sample(sample, "x" * LONG_ANSWER), kind)
        characters += len(prompt.tail) + sum(len(m.content) for m in prompt.prefix.messages)
    tokens = round(characters * job.epochs / CHARACTERS_PER_TOKEN / 100) * 100
    values = {
        "model": judge.model,
        "place": strip_credentials(judge.api_url or ""),
        "n": job.units,
        "tokens": f"{tokens:,}",
    }
    input_price, output_price = DEFAULT_PRICE
    if judge.price is not None:
        input_price, output_price = judge.price.input, judge.price.output
    elif judge.model != DEFAULT_MODEL:
        return label_text("vf_eval.judge_tokens", **values)
    cost = (tokens * input_price + job.units * VERDICT_TOKENS * output_price) / 1e6
    return label_text("vf_eval.judge_cost", cost=f"{cost:.4f}", **values)


def _describe_size(config: TaskConfig, job: ExamScores) -> str:
    """Return the size of the run in words, because vf-eval's defaults are small."""
    from keju.solvers.sandbox.memory import available_memory, memory_shares

    sample_count = len(job.exam.samples)
    total = sum(subset.population or len(subset) for subset in job.exam.subsets)
    unit, at_once = "requests", min(config.at_once, job.units)
    if job.exam.turns > 1:
        unit = "episodes"
    if job.exam.notebook is not None:
        unit = "episodes"
        at_once = memory_shares(config.sandbox.memory, at_once, available_memory())[1]
    return label_text(
        f"vf_eval.{unit}",
        exam=job.exam.benchmark,
        asked=sample_count,
        total=max(sample_count, total),
        rollouts=config.repeats,
        n=job.units,
        at_once=at_once,
    )


def _configure(
    env: str,
    text: str | None,
    key_var: str | None,
    examples: int | None,
    flags: dict[str, Any],
    without_judge: bool,
) -> tuple[TaskConfig, DatasetArgs]:
    """Return the configuration from the flags, and the benchmark's own settings in it."""
    from keju.benchmarks import registry
    from keju.config.load import load
    from keju.config.strict import parse_mapping
    from keju.models.registry import settings_without_effect

    benchmark = registry.get(env)
    exam_settings = parse_mapping(text, "-a") if text is not None else {}
    exam_settings = {key.replace("-", "_"): value for key, value in exam_settings.items()}
    args = _check_settings(benchmark.Args, exam_settings)
    judge, exam_settings, warning = args.arrange_judge(
        exam_settings, {} if without_judge else os.environ, ask_default=True
    )
    if warning and not without_judge:
        remark(warning, "own_warning")
    flags |= {"datasets": [benchmark.name], "dataset_args": {benchmark.name: exam_settings}}
    if judge is not None:
        flags["judge"] = judge.model_dump(exclude_defaults=True)
    if (limit := _example_limit(examples, exam_settings)) is not None:
        flags["limit"] = limit
    environ = _choose_model(flags, key_var)
    config = load(flags=flags, environ=environ, idle=settings_without_effect)
    return config, _check_settings(benchmark.Args, exam_settings)


def _example_limit(examples: int | None, exam_settings: dict[str, Any]) -> int | None:
    """Return the number of examples of each subset; None for all."""
    if examples is None and exam_settings.get("max_episodes") is None:
        return DEFAULT_EXAMPLES
    if examples is not None and examples < 1 and examples != ALL:
        raise ConfigError("cli_examples", all=ALL, examples=examples)
    return None if examples == ALL else examples


def _choose_model(flags: dict[str, Any], key_var: str | None) -> dict[str, str]:
    """Complete `flags` with vf-eval's model, address and key; return the environment to load with.

    Its defaults hold if neither a flag nor the environment sets them.
    """
    from keju.config.address import find_provider
    from keju.models.registry import is_local

    environ = dict(os.environ)
    model = flags.get("model") or environ.get("KEJU_MODEL") or DEFAULT_MODEL
    provider = find_provider(model)
    if key_var is not None:
        if environ.get(key_var):
            flags["api_key"] = environ[key_var]
        environ.pop(provider.key_variable, None)
        environ.pop("KEJU_API_KEY", None)
    if not environ.get("KEJU_MODEL"):
        flags["model"] = model
    url = environ.get("KEJU_API_URL") or environ.get(provider.url_variable)
    if "api_url" not in flags and not url and not is_local(model):
        flags["api_url"] = provider.home
    return environ


def _check_settings(kind: type[DatasetArgs], exam_settings: dict[str, Any]) -> DatasetArgs:
    try:
        return kind(**exam_settings)
    except ConfigError as error:
        raise ConfigError("config_from", origin="-a", problem=error) from None


def reward_lines(rewards: RewardSummary) -> list[str]:
    """Return the mean reward in ``vf-eval``'s format, and the number of replies without one."""
    lines = ["reward/avg=null std=null"]
    if rewards.avg is not None and rewards.std is not None:
        lines = [f"reward/avg={rewards.avg:.2f} std={rewards.std:.2f}"]
    if rewards.ungraded or rewards.errors:
        values = {"ungraded": rewards.ungraded, "errors": rewards.errors, "n": rewards.n}
        lines.append(label_text("vf_eval.without", **values))
    return lines


def rewards_of(entry: ResultEntry, folder: Path) -> RewardSummary:
    """Return the rewards of a run: the exam's own metric, or else the scores in its journal.

    In the journal, the last record of each rollout counts. Records without a grade are left out.
    """
    from keju.runs.run import Run
    from keju.scores.stored_replies import iter_graded_records
    from keju.types import UNSCORED

    metric, counts = entry.metrics.get("reward"), entry.outcomes
    avg = std = None
    if metric is not None:
        avg, std, n = metric.value, metric.details["std"], metric.details["answers"]
    else:
        graded_scores = [
            record.readings[0].score
            for record in iter_graded_records(Run(folder))
            if record.bench == entry.name and record.readings
        ]
        scores = [s.value for s in graded_scores if s.outcome not in UNSCORED]
        n = len(scores)
        if scores and entry.metrics["accuracy"].value is not None:
            mean = avg = math.fsum(scores) / n
            std = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / n)
    return RewardSummary(avg, std, n, counts["ungraded"], counts["error"])
