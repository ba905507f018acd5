"""Short flags of ``keju eval`` and ``keju run``: ``--subset``, ``--few-shot``, ``--name``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keju.cli.common import split_names
from keju.errors import UsageError, quoted


def apply_shortcuts(
    settings: dict[str, Any],
    *,
    subset: Sequence[str] | None,
    few_shot: int | None,
    run_name: str | None,
    config: str | None,
    overrides: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the settings, including the values of the short flags."""
    from keju.config.load import merge

    settings = with_run_name(settings, run_name)
    exam_settings: dict[str, Any] = {}
    if few_shot is not None:
        exam_settings["few_shot_num"] = few_shot
    if subset:
        exam_settings["subset_list"] = [
            name for text in subset for name in split_names(text, "--subset")
        ]
    if not exam_settings:
        return settings
    exams = _find_exams(settings, config, overrides)
    if subset and len(exams) > 1:
        example = (
            f"--dataset-args '{exams[0]}.subset_list=[{','.join(exam_settings['subset_list'])}]'"
        )
        raise UsageError("cli_subset_of_which", exams=quoted(exams), example=example)
    return merge({"dataset_args": dict.fromkeys(exams, exam_settings)}, settings)


def with_run_name(settings: dict[str, Any], run_name: str | None) -> dict[str, Any]:
    """Return the settings with the value of ``--name``, if it is given, as the run's id."""
    if run_name is None:
        return settings
    if settings.get("run_id") is not None:
        raise UsageError("cli_same_flags", first="--name", second="--run-id")
    refuse_exam_name(run_name)
    return settings | {"run_id": run_name}


def refuse_exam_name(name: str) -> None:
    """Raise UsageError if an exam has this name: 'keju show' could not tell them apart."""
    from keju.benchmarks import registry

    if name in (*registry.names(), *registry.ALIASES):
        raise UsageError("cli_name_of_exam", name=name)


def _find_exams(
    settings: dict[str, Any], config: str | None, overrides: Sequence[str] | None
) -> list[str]:
    """Return the exams of the task, which the flags, a file or the environment may name."""
    from keju.config.load import load
    from keju.models.registry import settings_without_effect

    if exams := settings.get("datasets"):
        return list(exams)
    return list(load(config, overrides or (), settings, idle=settings_without_effect).datasets)
