"""``keju plan``: the number of questions for a decision, and their cost."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from keju.cli.command import command
from keju.cli.common import CommandOutput, args_of, is_brief, note, session_output
from keju.cli.options import EXAMS, MODEL, PACE
from keju.errors import UsageError

if TYPE_CHECKING:
    from keju.results.plan import Plan


@command(
    "plan",
    "keju plan mmlu_pro --mde 0.03",
    "keju plan bbh --max-cost 5 --price input=0.5,output=1.5 --pilot tuesday",
    "keju plan bbh --pilot tuesday --baseline monday --margin 0.01",
    "keju plan ceval --limit 5 --model NAME --api-url http://localhost:8000/v1",
    sets={
        MODEL: "model api_url api_key generation_config",
        EXAMS: "dataset_args protocol repeats seed data_dir",
        PACE: "eval_batch_size price",
    },
)
def plan(
    name: str,
    mde: float | None,
    max_cost: float | None,
    questions: float | None,
    pilot: str | None,
    baseline: str | None,
    margin: float | None,
    discordance: float | None,
    work_dir: str | None,
    quiet: bool,
    verbose: bool,
    **settings: Any,
) -> CommandOutput:
    """Compute how many questions show a difference, fit a budget or decide a gate, and their cost.

    Forecasts come from a pilot: a stored run (--pilot), or 30 random questions that are asked now
    if you give --model. Without a pilot they are estimates from the lengths of the prompts. With
    --baseline and --margin the pilot is the run that 'keju gate' does not decide yet.
    """
    from keju.config.load import load
    from keju.models.registry import settings_without_effect
    from keju.reporting.plan import render_plan
    from keju.reporting.plan_summary import render_plan_summary
    from keju.results.plan import PILOT
    from keju.results.plan import plan as make_plan

    if settings.get("model"):
        if pilot:
            raise UsageError("plan_pilot_and_model")
        from keju.reporting.live import make_display
        from keju.task import run_exams

        pilot_settings = {
            "datasets": [name],
            "total": PILOT,
            "sample": "random",
            "order": "random",
            "work_dir": work_dir,
        }
        task_settings = {
            key: value for key, value in pilot_settings.items() if value is not None
        } | settings
        task = load(flags=task_settings, idle=settings_without_effect, say=note)
        finished = run_exams(task, display=make_display(quiet=quiet), report=False)
        if finished.exit_code:
            return session_output(finished)
        pilot = str(finished.folder)
    elif any(key in settings for key in ("api_url", "api_key", "generation_config")):
        raise UsageError("plan_endpoint_without_model")
    shared_names = {"repeats", "price", "protocol", "data_dir", "seed"} & settings.keys()
    plan_result = make_plan(
        name,
        mde=mde,
        max_cost=max_cost,
        limit=questions,
        pilot=pilot,
        baseline=baseline,
        margin=margin,
        discordance=discordance,
        work_dir=work_dir,
        at_once=settings.get("eval_batch_size", 32),
        dataset_args=args_of(name, settings.get("dataset_args", {})),
        **{key: settings[key] for key in shared_names},
    )
    size = f"--limit {questions:g}" if questions is not None else f"--total {plan_result.questions}"
    step = _next_step(
        plan_result, f"--datasets {shlex.quote(name)} {size}", pilot, baseline, work_dir
    )

    def show() -> None:
        if not is_brief(verbose):
            render_plan(plan_result, step)
        if sys.stdout.isatty():
            render_plan_summary(plan_result, step)

    return CommandOutput(plan_result, show)


def _next_step(
    plan_result: Plan,
    exam_flags: str,
    pilot: str | None,
    baseline: str | None,
    work_dir: str | None,
) -> str:
    """Return the command that asks the questions, or for a gate, the gate command."""
    if plan_result.margin is not None and pilot and baseline:
        words = [
            "keju",
            "gate",
            pilot,
            "--baseline",
            baseline,
            "--margin",
            f"{plan_result.margin:g}",
        ]
        return shlex.join([*words, *(["--work-dir", work_dir] if work_dir else [])])
    if plan_result.questions == plan_result.whole:
        return ""
    return f"keju eval --protocol {plan_result.protocol} {exam_flags} --sample random …"
