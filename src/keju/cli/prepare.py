"""Making one exam ready for the commands that look at questions without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keju.cli.output import note
from keju.config import load as settings
from keju.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark, Exam

FLAG = "--dataset-args"


def exam_for(
    name: str,
    *,
    dataset_args: str | None,
    data_dir: str | None,
    protocol: str | None,
    seed: int,
) -> Exam:
    """Load the benchmark `name` as the flags say; `dataset_args` is the text of that flag."""
    from keju.benchmarks.prepare import prepare_exam

    exam, _ = prepare_exam(
        name,
        own_args(name, dataset_args),
        data_dir=settings.data_dir(data_dir),
        protocol=protocol,
        seed=seed,
    )
    return exam


def own_args(name: str, text: str | None) -> dict[str, Any]:
    """The settings of one benchmark out of the text of ``--dataset-args``."""
    from keju.benchmarks import registry

    known = registry.get(name).name
    layer = settings.from_flags({"dataset_args": text} if text else {})
    args = settings.canonical(layer, FLAG).get("dataset_args", {})
    for other, own in args.items():
        if other not in (name, known):
            hint = did_you_mean(other, [known])
            raise ConfigError(f"{FLAG} names '{other}', which is not asked for{hint}")
        if not isinstance(own, dict):
            raise ConfigError(f"{FLAG}: the settings of '{other}' must be a mapping")
    merged: dict[str, Any] = settings.merge(args.get(name, {}), args.get(known, {}))
    return merged


def all_benchmarks() -> list[Benchmark]:
    """Every benchmark that can be loaded; a broken plug-in is named and left out."""
    from keju.benchmarks import registry

    found = []
    for name in registry.names():
        try:
            found.append(registry.get(name))
        except Exception as error:
            note(f"keju: benchmark '{name}' cannot be loaded: {type(error).__name__}: {error}")
    return found
