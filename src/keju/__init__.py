"""Keju evaluates language models.

Each public name is imported when it is first used, so that ``import keju`` is fast:

    from keju import TaskConfig, run_task
    run_task(TaskConfig(model="NAME", api_url="http://localhost:8000/v1", datasets=["demo"]))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keju.answers.kinds import Choice, Number
    from keju.answers.reader import Reader
    from keju.answers.robust import RobustReader
    from keju.answers.wordings import ANSWER_COLON
    from keju.api import (
        Figure,
        Matrix,
        RunResults,
        StoredRun,
        arun_task,
        export,
        judge,
        list_runs,
        open_run,
        plot,
        report,
        run_matrix,
        run_task,
        score,
    )
    from keju.benchmarks.base import Benchmark, Exam, Mean, Protocol, Reference, Subset, by_name
    from keju.benchmarks.kit import Question, Questions, Setup, grader, pattern_reader, reader
    from keju.benchmarks.prepare import prepare_exam
    from keju.benchmarks.registry import find_benchmark
    from keju.benchmarks.wording import Wording, words
    from keju.config import DatasetArgs, GenerationConfig, TaskConfig
    from keju.errors import (
        ConfigError,
        DataError,
        EndpointError,
        Interrupted,
        KejuError,
        MissingExtra,
        RunIncomplete,
        UsageError,
    )
    from keju.models.base import Model
    from keju.models.registry import ModelKind
    from keju.progress.display import Progress
    from keju.results.audit import Audit, audit
    from keju.results.compare import Compared, compare
    from keju.results.contamination import Contamination, contamination
    from keju.results.gate import GateResult, gate
    from keju.results.plan import Plan, plan
    from keju.results.samples import SampleRow, Samples
    from keju.results.schema import Results
    from keju.runs.run import Run
    from keju.sources.folder import HubRepo, Layout
    from keju.types import Answer, Fault, Message, Prompt, Record, Reply, Request, Sample, Score

    __version__: str

__all__ = [
    "ANSWER_COLON",
    "Answer",
    "Audit",
    "Benchmark",
    "Choice",
    "Compared",
    "ConfigError",
    "Contamination",
    "DataError",
    "DatasetArgs",
    "EndpointError",
    "Exam",
    "Fault",
    "Figure",
    "GateResult",
    "GenerationConfig",
    "HubRepo",
    "Interrupted",
    "KejuError",
    "Layout",
    "Matrix",
    "Mean",
    "Message",
    "MissingExtra",
    "Model",
    "ModelKind",
    "Number",
    "Plan",
    "Progress",
    "Prompt",
    "Protocol",
    "Question",
    "Questions",
    "Reader",
    "Record",
    "Reference",
    "Reply",
    "Request",
    "Results",
    "RobustReader",
    "Run",
    "RunIncomplete",
    "RunResults",
    "Sample",
    "SampleRow",
    "Samples",
    "Score",
    "Setup",
    "StoredRun",
    "Subset",
    "TaskConfig",
    "UsageError",
    "Wording",
    "__version__",
    "arun_task",
    "audit",
    "by_name",
    "compare",
    "contamination",
    "export",
    "find_benchmark",
    "gate",
    "grader",
    "judge",
    "list_runs",
    "open_run",
    "pattern_reader",
    "plan",
    "plot",
    "prepare_exam",
    "reader",
    "report",
    "run_matrix",
    "run_task",
    "score",
    "words",
]

_HOMES = {
    "keju.answers.kinds": ("Choice", "Number"),
    "keju.answers.reader": ("Reader",),
    "keju.answers.robust": ("RobustReader",),
    "keju.answers.wordings": ("ANSWER_COLON",),
    "keju.benchmarks.base": (
        "Benchmark",
        "Exam",
        "Mean",
        "Protocol",
        "Reference",
        "Subset",
        "by_name",
    ),
    "keju.benchmarks.kit": ("Question", "Questions", "Setup", "grader", "pattern_reader", "reader"),
    "keju.benchmarks.prepare": ("prepare_exam",),
    "keju.benchmarks.registry": ("find_benchmark",),
    "keju.benchmarks.wording": ("Wording", "words"),
    "keju.sources.folder": ("HubRepo", "Layout"),
    "keju.config": ("DatasetArgs", "GenerationConfig", "TaskConfig"),
    "keju.errors": (
        "ConfigError",
        "DataError",
        "EndpointError",
        "Interrupted",
        "KejuError",
        "MissingExtra",
        "RunIncomplete",
        "UsageError",
    ),
    "keju.models.base": ("Model",),
    "keju.models.registry": ("ModelKind",),
    "keju.results.compare": ("Compared", "compare"),
    "keju.results.contamination": ("Contamination", "contamination"),
    "keju.results.gate": ("GateResult", "gate"),
    "keju.api": (
        "Figure",
        "Matrix",
        "RunResults",
        "StoredRun",
        "arun_task",
        "export",
        "judge",
        "list_runs",
        "open_run",
        "plot",
        "report",
        "run_matrix",
        "run_task",
        "score",
    ),
    "keju.progress.display": ("Progress",),
    "keju.results.plan": ("Plan", "plan"),
    "keju.results.samples": ("SampleRow", "Samples"),
    "keju.results.schema": ("Results",),
    "keju.runs.run": ("Run",),
    "keju.results.audit": ("Audit", "audit"),
    "keju.types": (
        "Answer",
        "Fault",
        "Message",
        "Prompt",
        "Record",
        "Reply",
        "Request",
        "Sample",
        "Score",
    ),
}

_OLD_NAMES = {"run_plan": "run_matrix"}
"""Names of Keju 1.0, which still work."""


def __getattr__(name: str) -> Any:
    import importlib

    if name in _OLD_NAMES:
        import warnings

        text = f"keju.{name} is deprecated: use keju.{_OLD_NAMES[name]}"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(__name__), _OLD_NAMES[name])

    if name == "__version__":
        from importlib.metadata import version

        return version("keju")
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'keju' has no attribute '{name}'")


def __dir__() -> list[str]:
    return list(__all__)
