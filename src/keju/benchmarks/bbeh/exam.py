"""BBEH and BBEH mini as benchmarks: their files, protocols and means.

The full set has one file per task. Its authors report the harmonic mean over tasks, with one
percentage point added to each task, because a task may have no right answer. The mini set has 20
questions of each task in one file; its authors report the mean over questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from keju import messages
from keju.answers.kinds import Text
from keju.answers.robust import RobustReader
from keju.benchmarks.base import Benchmark, Exam, Protocol, Scores, by_name, graded_values
from keju.benchmarks.bbeh.readers import BBEHOfficialReader, matches_target
from keju.benchmarks.kit import Question, Setup
from keju.benchmarks.wording import Wording, words
from keju.errors import DataError
from keju.sources.folder import HubName, HubRepo, Layout
from keju.stats.estimate import Estimate

TASKS = (
    "boardgame_qa", "boolean_expressions", "buggy_tables", "causal_understanding",
    "disambiguation_qa", "dyck_languages", "geometric_shapes", "hyperbaton", "linguini",
    "movie_recommendation", "multistep_arithmetic", "nycc", "object_counting",
    "object_properties", "sarc_triples", "shuffled_objects", "spatial_reasoning", "sportqa",
    "temporal_sequence", "time_arithmetic", "web_of_lies", "word_sorting", "zebra_puzzles",
)  # fmt: skip
ROWS = dict.fromkeys(TASKS, 200) | {"disambiguation_qa": 120}
MINI_ROWS = 460
TABLES = {task: f"benchmark_tasks/bbeh_{task}/task" for task in TASKS}
MINI_TABLE = "mini/data"
HARMONIC_TITLE = "harmonic mean over tasks, one point added to each"
ADDED = 0.01
"""Added to the accuracy of each task before the harmonic mean, as published: one point."""
HARMONIC = "harmonic_mean"


class BBEHExam(Exam):
    """The full set: the authors' mean in addition to the usual metrics."""

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        """Return the harmonic mean over the tasks that have a grade."""
        accuracies = []
        for subset in self.subsets:
            values = [
                value
                for index in range(subset.start, subset.stop)
                for value in graded_values(scores, scores.values, index)[0]
            ]
            if values:
                accuracies.append(sum(values) / len(values))
        if not accuracies:
            return {}
        mean = len(accuracies) / sum(1 / (accuracy + ADDED) for accuracy in accuracies)
        partial = len(accuracies) < len(TASKS)
        value = min(1.0, mean)
        return {
            HARMONIC: Estimate(value, None, len(accuracies), title=HARMONIC_TITLE, partial=partial)
        }


def read_examples(setup: Setup, table: str) -> Iterator[tuple[str, str]]:
    """Yield question and target of each row of a table."""
    for number, row in enumerate(setup.folder.rows(table), 1):
        if not isinstance(row.get("input"), str) or not isinstance(row.get("target"), str):
            raise DataError("bbeh.row", where=f"{setup.folder.name_of(table)}, row {number}")
        yield row["input"], row["target"]


def make_questions(setup: Setup) -> Iterator[Question]:
    """Yield the questions of the selected tasks."""
    for task in setup.subsets:
        for text, target in read_examples(setup, TABLES[task]):
            yield Question(text, target, subset=task)


def make_mini_questions(setup: Setup) -> Iterator[Question]:
    """Yield the questions of the mini set, which names no tasks."""
    for text, target in read_examples(setup, MINI_TABLE):
        yield Question(text, target)


INSTRUCTION = (
    'Think step by step, and when you provide the final answer, please use the prefix "The answer '
    'is:" without any modification, and provide the answer directly, with no formatting, no '
    'bolding, and no markup. For instance: "The answer is: 42" or "The answer is: yes". If the '
    "question is multiple choice with a single correct answer, the final answer must only be the "
    'letter corresponding to the correct answer. For example, "The answer is: (a)"'
)
"""The instruction of the paper's appendix."""
# OpenCompass has no blank after the prefix.
OPENCOMPASS_INSTRUCTION = INSTRUCTION.replace('is:" without', 'is:"without')


# `The final answer is: `, in any case, with or without the colon.
ANNOUNCEMENT = re.compile(r"(?i)answer is\s*+:?")


class PublishedText(Text):
    """Announced texts, compared by the authors' rule."""

    def same(self, value: str, target: str) -> bool:
        return matches_target(value, target)


PROTOCOLS = by_name(
    Protocol(
        name="official",
        version="1",
        reader="official",
        about="The paper: the question, then the instruction to end with 'The answer is: X'",
        wording=Wording(question=f"{{question}}\n\n{INSTRUCTION}.", words=words()),
        shot_choices=(0,),
    ),
    Protocol(
        name="opencompass",
        version="1",
        reader="official",
        about="OpenCompass bbeh_gen: the instruction first, then 'Q: … A: '",
        max_tokens=8192,
        wording=Wording(
            question=f"{OPENCOMPASS_INSTRUCTION}\n\nQ: {{question}}\nA: ", words=words()
        ),
        shot_choices=(0,),
    ),
)
READERS = by_name(BBEHOfficialReader(), RobustReader(PublishedText(), strict=ANNOUNCEMENT))
HUBS: Mapping[HubName, HubRepo] = {"huggingface": HubRepo("BBEH/bbeh", "main")}
CHECKSUMS = Path(__file__).with_name("checksums.txt")

messages.add_folder(Path(__file__).parent / "texts")


NO_SHOTS = dict.fromkeys(("few_shot_num", "few_shot_random", "shuffle_choices"), "")

BBEH = Benchmark(
    name="bbeh",
    title="BBEH",
    about=messages.text_of("about_exam_bbeh", {}),
    aliases=("bigbench-extra-hard", "big_bench_extra_hard"),
    layout=Layout(
        tables=tuple(TABLES.values()),
        stems=("{table}",),
        rows={TABLES[task]: ROWS[task] for task in TASKS},
        hubs=HUBS,
        checksums=CHECKSUMS,
    ),
    rows=ROWS,
    subset_names=TASKS,
    subset_aliases={f"bbeh_{task}": task for task in TASKS},
    questions=make_questions,
    exam=BBEHExam,
    protocols={p.name: replace(p, headline=HARMONIC) for p in PROTOCOLS.values()},
    readers=READERS,
    refused=NO_SHOTS,
)
"""BBEH: 4,520 questions of 23 tasks, Apache-2.0."""

BBEH_MINI = Benchmark(
    name="bbeh_mini",
    title="BBEH mini",
    about=messages.text_of("about_exam_bbeh_mini", {}),
    aliases=("bbeh-mini",),
    layout=Layout(
        tables=(MINI_TABLE,),
        stems=("{table}", "data"),
        rows={MINI_TABLE: MINI_ROWS},
        folders=("bbeh",),
        hubs=HUBS,
        checksums=CHECKSUMS,
    ),
    rows={"all": MINI_ROWS},
    questions=make_mini_questions,
    protocols=PROTOCOLS,
    readers=READERS,
    refused=NO_SHOTS,
)
"""BBEH mini: 460 questions, 20 of each task."""
