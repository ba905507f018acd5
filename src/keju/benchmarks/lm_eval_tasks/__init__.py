"""The tasks of lm-eval: prompts, filters, scores and aggregation are lm-eval's own objects.

`find` returns the benchmark of a task, a group or a YAML file without importing lm-eval, so that
stored runs can be shown without it. The modules:

    catalog    the names of all tasks, cached on disk; loads one task or group
    sources    the data of a task: files of the user, or the cache of ``datasets``
    requests   the requests of a task, built once in the order of its documents and cached on disk
    pipelines  a pipeline of filters as a reader
    exam       the requests as questions, and the scores of their replies
    metrics    the metrics of the scores, aggregated by lm-eval, with Keju's intervals
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

from keju import messages
from keju.benchmarks.base import Benchmark, Protocol, by_name
from keju.benchmarks.lm_eval_tasks.catalog import list_names as list_names
from keju.benchmarks.lm_eval_tasks.exam import LmEvalArgs, LmEvalExam, make
from keju.benchmarks.lm_eval_tasks.pipelines import UnloadedReader
from keju.benchmarks.lm_eval_tasks.sources import find_folder
from keju.config.exams import LM_EVAL
from keju.errors import ConfigError

messages.add_folder(Path(__file__).parent / "texts")

PLAIN = Protocol(
    name="lm-eval",
    version="1",
    reader="lm-eval",
    about="lm-eval's prompt as a text to continue, without a chat template",
    form="completion",
    templates=False,
)
CHAT = Protocol(
    name="lm-eval-chat",
    version="1",
    reader="lm-eval",
    about="lm-eval's prompt as a conversation, as with --apply_chat_template",
    form="chat",
    templates=False,
)


def find(name: str) -> Benchmark:
    """Return the benchmark called ``lm_eval:NAME``; the task itself is loaded with the exam."""
    task = name.removeprefix(LM_EVAL).strip()
    if not task:
        raise ConfigError("lm_eval.no_name")
    return _make_benchmark(task)


@cache
def _make_benchmark(task: str) -> Benchmark:
    short_name = Path(task).stem if task.endswith((".yaml", ".yml")) else task
    return Benchmark(
        name=f"{LM_EVAL}{short_name}",
        title=f"{short_name} (lm-eval)",
        about=f"the task or group '{short_name}' of lm-eval",
        protocols=by_name(PLAIN, CHAT),
        readers=by_name(UnloadedReader()),
        Args=LmEvalArgs,
        exam=LmEvalExam,
        find_folder=find_folder,
        make=partial(make, task),
    )
