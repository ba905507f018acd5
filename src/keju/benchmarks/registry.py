"""Find a benchmark by name: Keju's own benchmarks, and plug-ins through entry points."""

from __future__ import annotations

import importlib.util
import shlex
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from keju.errors import ConfigError, TranslatableText, did_you_mean, near_hint

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark

ENTRY_POINTS = "keju.benchmarks"

BUILT_IN: dict[str, tuple[str, ...]] = {
    "bbh": ("keju.benchmarks.bbh:BBH", "bigbench-hard"),
    "mmlu_pro": ("keju.benchmarks.mmlu_pro:MMLU_PRO", "mmlu-pro"),
    "ceval": ("keju.benchmarks.ceval:CEVAL", "c-eval"),
    "bixbench": ("keju.benchmarks.bixbench:BIXBENCH", "bixbench_verified_50"),
    "gsm8k": ("keju.benchmarks.gsm8k:GSM8K", "gsm8k_cot", "gsm8k_cot_zeroshot", "gsm"),
    "math_500": (
        "keju.benchmarks.math_500:MATH_500",
        "math500",
        "math-500",
        "minerva_math500",
    ),
    "aime": ("keju.benchmarks.aime:AIME", "aime24", "aime25", "aime2024", "aime2025"),
    "fresh_bbh": ("keju.benchmarks.fresh:FRESH_BBH", "fresh-bbh"),
    "ifeval": ("keju.benchmarks.ifeval:IFEVAL", "if-eval", "instruction_following_eval"),
    "humaneval": (
        "keju.benchmarks.humaneval:HUMANEVAL",
        "human_eval",
        "openai_humaneval",
        "humaneval_plus",
    ),
    "mbpp_plus": ("keju.benchmarks.mbpp_plus:MBPP_PLUS", "mbpp-plus", "mbppplus", "mbpp+"),
    "gpqa": (
        "keju.benchmarks.gpqa:GPQA",
        "gpqa_diamond",
        "gpqa_main",
        "gpqa_extended",
        "gpqa_diamond_cot_zeroshot",
    ),
    "mmlu": ("keju.benchmarks.mmlu:MMLU",),
    "cmmlu": ("keju.benchmarks.cmmlu:CMMLU", "c-mmlu"),
    "bbeh": ("keju.benchmarks.bbeh:BBEH", "bigbench-extra-hard", "big_bench_extra_hard"),
    "bbeh_mini": ("keju.benchmarks.bbeh:BBEH_MINI", "bbeh-mini"),
    "demo": ("keju.benchmarks.demo:DEMO",),
}
"""One line per exam: its name, the place of its `Benchmark`, and the benchmark's aliases. Keju can
look up a name without importing any exam."""
ALIASES = {alias: name for name, (_, *aliases) in BUILT_IN.items() for alias in aliases}


@cache
def _plugins() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


def names() -> list[str]:
    """Return the names of all benchmarks, Keju's own first."""
    return [*BUILT_IN, *sorted(set(_plugins()) - set(BUILT_IN))]


def known_spelling(name: str) -> str:
    """Return the name in lower case if only the capitals differ from a known name."""
    known_names = (*names(), *ALIASES)
    return name.lower() if name not in known_names and name.lower() in known_names else name


def get(name: str) -> Benchmark:
    """Return the benchmark called `name` (or an alias of it); ConfigError names the nearest.

    Capitals do not matter: ``MMLU-Pro`` is ``mmlu_pro``.

    A name with a path separator, or ``custom:PATH``, is an exam of the user's own: a folder or file
    of questions, or a Python file that makes a `Benchmark`. ``lm_eval:NAME`` is a task of lm-eval.
    """
    # Imports all settings, which help does not need.
    from keju.config.exams import LM_EVAL, is_path, path_of

    if name.startswith(LM_EVAL):
        from keju.benchmarks import lm_eval_tasks

        return lm_eval_tasks.find(name)
    if is_path(name):
        return _load_path(path_of(name))
    name = known_spelling(name)
    canonical_name = ALIASES.get(name, name)
    for candidate_name in (name, canonical_name):
        is_taken = candidate_name in BUILT_IN or candidate_name in ALIASES
        if is_taken and candidate_name in _plugins():
            plugin = _plugins()[candidate_name].value
            raise ConfigError("registry_taken", name=candidate_name, plugin=plugin)
    if canonical_name in BUILT_IN:
        module, _, attribute = BUILT_IN[canonical_name][0].partition(":")
        benchmark: Benchmark = getattr(importlib.import_module(module), attribute)
        return benchmark
    if canonical_name in _plugins():
        return _load_plugin(_plugins()[canonical_name])
    raise ConfigError("unknown_benchmark", name=name, hint=_suggest(name))


def _load_path(path: Path) -> Benchmark:
    """Return the exam in a folder, a file of questions, or a Python file."""
    from keju.benchmarks.custom import custom_exam

    if (plugin := plugin_name(path)) is not None:
        raise ConfigError("benchmark_is_package", path=shlex.quote(str(path)), name=plugin)
    if path.suffix == ".py":
        return _load_file(path)
    return custom_exam(path, [*names(), *ALIASES])


def _load_plugin(point: metadata.EntryPoint) -> Benchmark:
    """Return the benchmark of an entry point of another package."""
    from keju.benchmarks.base import Benchmark

    where = TranslatableText("place_plugin", name=point.name, value=point.value)
    try:
        loaded_object = point.load()
    except Exception as error:
        kind = type(error).__name__
        raise ConfigError("registry_not_loaded", where=where, kind=kind, problem=error) from None
    if not isinstance(loaded_object, Benchmark):
        raise ConfigError("registry_no_benchmark", where=where)
    return loaded_object


def _suggest(name: str) -> str:
    """Suggest a meaning for an unknown name: an exam, a subset of one, a file or folder."""
    places = [Path(name), *(file.parent for file in sorted(Path().glob("*/pyproject.toml")))]
    for place in places:
        if plugin_name(place) == name:
            return TranslatableText("benchmark_not_installed", place=shlex.quote(f"./{place}"))
    if Path(name).is_file() and Path(name).suffix not in ("", ".py"):
        return TranslatableText("benchmark_unread_file", path=name)
    if Path(name).exists():
        return TranslatableText("benchmark_at_path", path=f"./{name}")
    known_names = [*names(), *ALIASES]
    exam, colon, subset = name.partition(":")
    if colon and exam in known_names:
        return TranslatableText("benchmark_subset", exam=exam, subset=subset)
    if longer_name := next(
        (n for n in known_names if n.startswith((f"{name}_", f"{name}-"))), None
    ):
        return TranslatableText("benchmark_not_same", name=name, other=longer_name)
    if hint := near_hint(name, known_names):
        return hint
    for exam_name in BUILT_IN:
        if name in get(exam_name).subset_names:
            return TranslatableText("benchmark_subset", exam=exam_name, subset=name)
    return TranslatableText("benchmark_own", name=name, hint=did_you_mean(name, known_names))


def plugin_name(folder: Path) -> str | None:
    """Return the benchmark that the package in a folder provides after installation, or None."""
    try:
        with (folder / "pyproject.toml").open("rb") as file:
            project = tomllib.load(file).get("project", {})
        points = project.get("entry-points", {}).get(ENTRY_POINTS, {})
    except (OSError, ValueError, AttributeError):
        return None
    return next(iter(points), None) if isinstance(points, dict) else None


find_benchmark = get
"""The public name of `get`."""


@cache
def _load_file(path: Path) -> Benchmark:
    """Return the only benchmark that a Python file makes; ConfigError if the file is invalid."""
    from keju.benchmarks.base import Benchmark

    spec = importlib.util.spec_from_file_location(f"keju_exam_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError("registry_no_file", path=path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(
            "registry_not_loaded", where=path, kind=type(error).__name__, problem=error
        ) from None
    benchmarks = [value for value in vars(module).values() if isinstance(value, Benchmark)]
    if len(benchmarks) != 1:
        raise ConfigError("registry_makes", path=path, n=len(benchmarks))
    return benchmarks[0]
