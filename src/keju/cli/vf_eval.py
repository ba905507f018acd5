"""``keju vf-eval``: the command line of the verifiers environment `bixbench`, for any benchmark."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from keju.cli import options
from keju.cli.arguments import StrictCommand
from keju.cli.output import note, print_json, print_lines
from keju.config import load as settings
from keju.errors import ConfigError, EndpointError

if TYPE_CHECKING:
    from keju.config import DatasetArgs, TaskConfig
    from keju.engine.job import Job
    from keju.task import Finished

app = options.new_app()

DEFAULT_MODEL = "gpt-4.1-mini"
DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY_VAR = "OPENAI_API_KEY"
DEFAULT_EXAMPLES, DEFAULT_ROLLOUTS = 5, 3
ALL = -1
"""What verifiers' ``vf-eval`` sets where nothing else is said."""

SPLIT = "train"
"""The only split of BixBench."""
RUN = "Run"

HELP = (
    "Sit a benchmark as verifiers' vf-eval does: a few examples, several rollouts of each, and "
    "the mean reward.\n\n"
    "Without -m and -b the model is " + DEFAULT_MODEL + " at the endpoint of OPENAI_BASE_URL, or "
    "at OpenAI. Open answers are judged where the judge's key is set, and compared exactly where "
    "it is not."
)
EXAMPLES = options.examples(
    "keju vf-eval bixbench -m NAME -b http://localhost:8000/v1 -n 20 -r 1 -s",
    'keju vf-eval bixbench -a \'{"answer_mode": "open", "max_episodes": 8}\' -s',
    'keju vf-eval bixbench -a \'{"question_source": "hypothesis", "with_refusal": true}\'',
)


Env = Annotated[str, typer.Argument(metavar="ENV", help="A benchmark, e.g. bixbench.")]
EnvArgs = Annotated[
    str | None,
    typer.Option("--env-args", "-a", metavar="JSON", help="Its settings.", rich_help_panel=RUN),
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="NAME", help="The model.", rich_help_panel=RUN),
]
BaseUrl = Annotated[
    str | None,
    typer.Option("--api-base-url", "-b", metavar="URL", help="Its endpoint.", rich_help_panel=RUN),
]
KeyVar = Annotated[
    str | None,
    typer.Option(
        "--api-key-var",
        "-k",
        metavar="NAME",
        help=f"Environment variable that holds the key; {DEFAULT_KEY_VAR} by default.",
        rich_help_panel=RUN,
    ),
]
Examples = Annotated[
    int | None,
    typer.Option(
        "--num-examples",
        "-n",
        metavar="N",
        help=f"Examples of each subset, {ALL} for all; {DEFAULT_EXAMPLES} by default, or as many "
        "as max_episodes says.",
        rich_help_panel=RUN,
    ),
]
Rollouts = Annotated[
    int,
    typer.Option(
        "--rollouts-per-example", "-r", metavar="R", help="Rollouts each.", rich_help_panel=RUN
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--max-concurrent", "-c", metavar="C", help="Requests at once.", rich_help_panel=RUN
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        "-T",
        metavar="T",
        help="Sampling temperature; the protocol's own by default.",
        rich_help_panel=RUN,
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", "-t", metavar="N", help="Longest reply.", rich_help_panel=RUN),
]
Save = Annotated[
    bool,
    typer.Option(
        "--save-results",
        "-s",
        help="Print the mean reward. The run is saved in any case.",
        rich_help_panel=options.OUTPUT,
    ),
]
RunId = Annotated[
    str | None,
    typer.Option(
        metavar="ID", help="Name of the run; one that exists is resumed.", rich_help_panel=RUN
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="S",
        help="Seed of the order of options and of whatever is drawn.",
        rich_help_panel=RUN,
    ),
]


class Rewards(NamedTuple):
    """The scores of all rollouts in one line."""

    avg: float | None
    std: float | None
    """Population standard deviation of single scores."""
    n: int
    ungraded: int
    errors: int


@app.command(cls=StrictCommand, help=HELP, epilog=EXAMPLES)
def vf_eval(
    env: Env,
    env_args: EnvArgs = None,
    model: ModelName = None,
    api_url: BaseUrl = None,
    key_var: KeyVar = None,
    examples: Examples = None,
    rollouts: Rollouts = DEFAULT_ROLLOUTS,
    concurrency: Concurrency = None,
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    save: Save = False,
    data_dir: options.DataDir = None,
    work_dir: options.WorkDir = None,
    run_id: RunId = None,
    seed: Seed = None,
    as_json: options.Json = False,
) -> int:
    """Build the configuration, sit the exam, print the lines of ``vf-eval``."""
    given = {
        "model": model,
        "api_url": api_url,
        "repeats": rollouts,
        "eval_batch_size": concurrency,
        "data_dir": data_dir,
        "work_dir": work_dir,
        "run_id": run_id,
        "seed": seed,
        "generation_config": _present({"temperature": temperature, "max_tokens": max_tokens}),
    }
    config, args = _configure(env, env_args, key_var, examples, _present(given))
    return _run(config, args, key_var, save=save, as_json=as_json)


def _configure(
    env: str, text: str | None, key_var: str | None, examples: int | None, given: dict[str, Any]
) -> tuple[TaskConfig, DatasetArgs]:
    """The configuration that the flags describe, and the benchmark's own settings in it."""
    from keju.benchmarks import registry
    from keju.benchmarks.bixbench.args import arrange_judge
    from keju.config.text import mapping

    benchmark = registry.get(env)
    own = mapping(text, "-a") if text is not None else {}
    own = {key.replace("-", "_"): value for key, value in own.items()}
    args = _checked(benchmark.Args, own)
    judge, own, warning = arrange_judge(args, own, os.environ)
    if warning:
        note(f"keju: warning: {warning}")
    flags = given | {"datasets": [benchmark.name], "dataset_args": {benchmark.name: own}}
    if judge is not None:
        flags["judge"] = judge.model_dump(exclude_defaults=True)
    limit = _limit(examples, own)
    if limit is not None:
        flags["limit"] = limit
    environ = dict(os.environ)
    if key_var is not None:
        flags |= _present({"api_key": environ.get(key_var) or None})
        environ.pop(DEFAULT_KEY_VAR, None)
        environ.pop("KEJU_API_KEY", None)
    _default_endpoint(flags, environ)
    return settings.load(flags=flags, environ=environ), _checked(benchmark.Args, own)


def _checked(kind: type[DatasetArgs], own: dict[str, Any]) -> DatasetArgs:
    try:
        return kind(**own)
    except ConfigError as error:
        raise ConfigError(f"-a: {error}") from None


def _limit(examples: int | None, own: Mapping[str, Any]) -> int | None:
    """How many examples are kept of each subset; None for all that the settings leave."""
    if examples is None:
        return None if own.get("max_episodes") is not None else DEFAULT_EXAMPLES
    if examples < 1 and examples != ALL:
        raise ConfigError(f"-n must be at least 1, or {ALL} for all, not {examples}")
    return None if examples == ALL else examples


def _default_endpoint(flags: dict[str, Any], environ: Mapping[str, str]) -> None:
    """Fill in what ``vf-eval`` assumes where neither a flag nor the environment says it."""
    if "model" not in flags and not environ.get("KEJU_MODEL"):
        flags["model"] = DEFAULT_MODEL
    named = any(environ.get(variable) for variable in ("KEJU_API_URL", "OPENAI_BASE_URL"))
    model = flags.get("model") or environ.get("KEJU_MODEL")
    if "api_url" not in flags and not named and not settings.is_local(model):
        flags["api_url"] = DEFAULT_URL


def _run(
    config: TaskConfig, args: DatasetArgs, key_var: str | None, *, save: bool, as_json: bool
) -> int:
    from keju.engine.job import make_jobs
    from keju.report.live import make_display
    from keju.task import run_exams

    (job,) = make_jobs(config)
    note(_effective(job, config))
    try:
        finished = run_exams(config, display=make_display(sys.stderr))
    except EndpointError as error:
        variable = key_var or DEFAULT_KEY_VAR
        if config.api_key is None and "wants a key" in str(error):
            raise EndpointError(f"{error}; -k: the variable {variable} is not set") from None
        raise
    summary = _summary(job, config, args)
    _print(finished, summary, save=save, as_json=as_json)
    if finished.exit_code:
        note(f"keju: error: {finished.told}")
    return finished.exit_code


def _effective(job: Job, config: TaskConfig) -> str:
    """What is about to be asked: defaults of vf-eval are small, so the numbers are shown."""
    examples = len(job.exam.samples)
    total = sum(subset.population or len(subset) for subset in job.exam.subsets)
    of = f" of {total}" if total > examples else ""
    return (
        f"{job.exam.benchmark}: {examples}{of} examples x {config.repeats} rollouts = "
        f"{job.units} requests, at most {config.eval_batch_size} at once"
    )


def _summary(job: Job, config: TaskConfig, args: DatasetArgs) -> dict[str, Any]:
    """The fields of the line that ``vf-eval`` prints about a run."""
    from keju.config.address import parse_address

    summary: dict[str, Any] = {
        "env": job.exam.benchmark,
        "model": config.model,
        "provider": parse_address(config.api_url).shown if config.api_url else "local",
        "episodes": len(job.exam.samples),
        "rollouts": config.repeats,
    }
    if hasattr(args, "answer_mode") and hasattr(args, "mode"):
        summary |= {"split": SPLIT, "mode": args.mode, "answer_mode": args.answer_mode}
    return summary


def _print(finished: Finished, summary: dict[str, Any], *, save: bool, as_json: bool) -> None:
    rewards = rewards_of(finished.results["benchmarks"][0], finished.folder)
    if as_json:
        print_json(finished.results | {"vf_eval": summary | {"reward": rewards._asdict()}})
        return
    from keju.report.terminal import render_results

    render_results(finished.results)
    shown = ("env", "model", "provider", "split", "episodes", "mode", "answer_mode")
    print_lines(" ".join(f"{key}={summary[key]}" for key in shown if key in summary))
    if save:
        print_lines(*reward_lines(rewards))
    print_lines(f"run folder: {finished.folder}")


def reward_lines(rewards: Rewards) -> list[str]:
    """The mean reward as ``vf-eval`` prints it, and what it leaves out."""
    if rewards.avg is None or rewards.std is None:
        lines = ["reward/avg=null std=null"]
    else:
        lines = [f"reward/avg={rewards.avg:.2f} std={rewards.std:.2f}"]
    if rewards.ungraded or rewards.errors:
        lines.append(
            f"without a reward: {rewards.ungraded} ungraded, {rewards.errors} errors "
            f"(the mean is over {rewards.n})"
        )
    return lines


def rewards_of(entry: Mapping[str, Any], folder: Path) -> Rewards:
    """The rewards of a run: the exam's own metric, or else the scores in its journal."""
    metric = entry["metrics"].get("reward")
    counts = entry["outcomes"]
    if metric is not None:
        avg, std, n = metric["value"], metric["std"], metric["answers"]
    else:
        scores = _journal_scores(folder, entry["name"])
        avg, std, n = _mean_and_std(scores)
    return Rewards(avg, std, n, counts["ungraded"], counts["error"])


def _journal_scores(folder: Path, bench: str) -> list[float]:
    """The headline's score of each rollout that has a grade; the last record of each counts."""
    from keju.runs.journal import read_records

    last = {
        (record.id, record.epoch): record.readings[0].score
        for record in read_records(folder)
        if record.bench == bench and record.readings
    }
    return [s.value for s in last.values() if s.outcome not in ("ungraded", "error")]


def _mean_and_std(scores: list[float]) -> tuple[float | None, float | None, int]:
    if not scores:
        return None, None, 0
    mean = math.fsum(scores) / len(scores)
    squares = math.fsum((score - mean) ** 2 for score in scores)
    return mean, math.sqrt(squares / len(scores)), len(scores)


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given."""
    return {key: value for key, value in fields.items() if value is not None and value != {}}
