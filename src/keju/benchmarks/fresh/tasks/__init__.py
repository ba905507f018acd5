"""The tasks of fresh exams, one file for each family of subsets."""

from __future__ import annotations

from keju.benchmarks.fresh.task import FreshTask
from keju.benchmarks.fresh.tasks.boolean_expressions import BooleanExpressions
from keju.benchmarks.fresh.tasks.date_understanding import DateUnderstanding
from keju.benchmarks.fresh.tasks.dyck_languages import DyckLanguages
from keju.benchmarks.fresh.tasks.formal_fallacies import FormalFallacies
from keju.benchmarks.fresh.tasks.geometric_shapes import GeometricShapes
from keju.benchmarks.fresh.tasks.hyperbaton import Hyperbaton
from keju.benchmarks.fresh.tasks.logical_deduction import LogicalDeduction
from keju.benchmarks.fresh.tasks.multistep_arithmetic_two import MultistepArithmeticTwo
from keju.benchmarks.fresh.tasks.navigate import Navigate
from keju.benchmarks.fresh.tasks.object_counting import ObjectCounting
from keju.benchmarks.fresh.tasks.penguins_in_a_table import PenguinsInATable
from keju.benchmarks.fresh.tasks.reasoning_about_colored_objects import ReasoningAboutColoredObjects
from keju.benchmarks.fresh.tasks.temporal_sequences import TemporalSequences
from keju.benchmarks.fresh.tasks.tracking_shuffled_objects import TrackingShuffledObjects
from keju.benchmarks.fresh.tasks.web_of_lies import WebOfLies
from keju.benchmarks.fresh.tasks.word_sorting import WordSorting

ALL: tuple[FreshTask, ...] = (
    TemporalSequences(),
    DateUnderstanding(),
    TrackingShuffledObjects("three", 3),
    PenguinsInATable(),
    GeometricShapes(),
    TrackingShuffledObjects("seven", 7),
    TrackingShuffledObjects("five", 5),
    LogicalDeduction("three", 3),
    Hyperbaton(),
    LogicalDeduction("five", 5),
    LogicalDeduction("seven", 7),
    ReasoningAboutColoredObjects(),
    MultistepArithmeticTwo(),
    Navigate(),
    DyckLanguages(),
    WordSorting(),
    BooleanExpressions(),
    ObjectCounting(),
    FormalFallacies(),
    WebOfLies(),
)

TASKS: dict[str, FreshTask] = {task.subset: task for task in ALL}
"""By subset, in the order of BBH's facts."""
