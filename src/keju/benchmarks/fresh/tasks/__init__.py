"""The tasks of fresh exams, one file for each family of subsets."""

from __future__ import annotations

from keju.benchmarks.fresh.task import Task
from keju.benchmarks.fresh.tasks.boolean_expressions import BooleanExpressions

TASKS: dict[str, Task] = {task.subset: task for task in (BooleanExpressions(),)}
"""By subset, in BBH's order."""
