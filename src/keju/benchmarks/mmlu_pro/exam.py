"""MMLU-Pro made ready to sit."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from keju.benchmarks.base import Benchmark, DataFacts, Exam, Mean, Protocol, Scores, Subset
from keju.benchmarks.choices import permuted, shuffle_order
from keju.benchmarks.mmlu_pro import data, readers
from keju.benchmarks.mmlu_pro.data import CATEGORIES, Row
from keju.benchmarks.mmlu_pro.prompts import Form
from keju.benchmarks.mmlu_pro.protocols import (
    EVALSCOPE,
    PROTOCOLS,
    form_of,
    protocol_of,
    shot_count,
)
from keju.benchmarks.published import count_warnings
from keju.config import DatasetArgs
from keju.errors import DataError, Notice
from keju.stats.estimate import Estimate
from keju.types import Message, Prefix, Prompt, Sample

if TYPE_CHECKING:
    from keju.sources.folder import DataFolder


class MMLUProExam(Exam):
    """The test questions of the chosen categories, in published order."""

    benchmark = "mmlu_pro"

    def __init__(
        self,
        *,
        protocol: Protocol,
        form: Form,
        samples: Sequence[Sample],
        subsets: Sequence[Subset],
        facts: DataFacts,
        errata: Mapping[str, str],
        settings: Mapping[str, Any],
        warnings: Sequence[Notice] = (),
    ) -> None:
        self.protocol = protocol
        self.samples = samples
        self.subsets = subsets
        self.readers = readers.readers_of(protocol.name)
        self.data = facts
        self.errata = errata
        self.settings = settings
        self.warnings = warnings
        self._form = form
        system = settings.get("system_prompt")
        turns = (Message("system", system),) if system else ()
        self._prefixes = {s.name: Prefix(turns, form.lead(s.name)) for s in subsets}

    def render(self, sample: Sample) -> Prompt:
        return Prompt(self._prefixes[sample.subset], self._form.tail(sample))

    def means(self) -> Sequence[Mean]:
        tasks = tuple((category,) for category in CATEGORIES)
        title = "mean of the 14 categories"
        return Mean("macro_accuracy", title, tasks), Mean("macro_14", title, tasks)

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        from keju.benchmarks.mmlu_pro.guessing import expected_with_guess

        metric = expected_with_guess(self, scores)
        return {"accuracy_expected_with_guess": metric} if metric else {}

    def joint_metrics(
        self, answers: Mapping[str, Sequence[str | None]], targets: Sequence[str]
    ) -> Mapping[str, Mapping[str, Estimate]]:
        """The accuracy of the authors' scoring script, which guesses with one stream for both."""
        from keju.benchmarks.mmlu_pro.guessing import official_guess_metrics

        if "l1" not in answers or "l2" not in answers:
            return {}
        return official_guess_metrics(answers["l1"], answers["l2"], targets)

    def locate(self, row: Mapping[str, Any]) -> str:
        if "question_id" not in row and isinstance(row.get("id"), str):
            return str(row["id"])
        return data.sample_id(row["question_id"])


class MMLUPro(Benchmark):
    """MMLU-Pro (Wang et al. 2024): up to ten options, reasoning before the letter."""

    name: ClassVar[str] = "mmlu_pro"
    title: ClassVar[str] = "MMLU-Pro"
    about: ClassVar[str] = "12,032 multiple-choice questions with up to ten options, 14 categories"
    aliases: ClassVar[tuple[str, ...]] = ("mmlu-pro",)
    protocols: ClassVar[Mapping[str, Protocol]] = PROTOCOLS
    default_protocol: ClassVar[str] = EVALSCOPE
    reader_names: ClassVar[tuple[str, ...]] = readers.NAMES
    subset_names: ClassVar[tuple[str, ...]] = tuple(CATEGORIES)

    def subset_name(self, given: str) -> str | None:
        return data.category_of(given)

    def prepare(self, args: DatasetArgs, folder: DataFolder, *, seed: int) -> MMLUProExam:
        protocol = protocol_of(args)
        count = shot_count(args)
        categories = data.chosen_categories(args.subset_list)
        rows = data.read_rows(folder, data.TEST)
        questions = data.by_category(rows, categories)
        _refuse_gaps(questions, folder)
        shots = _shots(folder, categories, count, seed if args.few_shot_random else None)
        samples, subsets = _samples(questions, seed if args.shuffle_choices else None)
        chosen = [row for found in questions.values() for row in found]
        notes = data.notes_on(chosen, questions)
        return MMLUProExam(
            protocol=protocol,
            form=form_of(protocol, args, shots),
            samples=samples,
            subsets=subsets,
            facts=DataFacts(dict(folder.hashes), notes=(*notes, *folder.notes)),
            errata={data.sample_id(row.question_id): row.fault for row in chosen if row.fault},
            settings=_settings(args, count),
            warnings=count_warnings(data.counts_of(questions)),
        )


def _refuse_gaps(questions: Mapping[str, Sequence[Row]], folder: DataFolder) -> None:
    empty = [category for category, rows in questions.items() if not rows]
    if empty:
        raise DataError(
            f"{folder.name_of(data.TEST)} holds no rows of {', '.join(empty)};"
            " name the categories to ask in subset_list"
        )


def _shots(
    folder: DataFolder, categories: Sequence[str], count: int, seed: int | None
) -> dict[str, list[Row]]:
    """The worked examples of each category: the first of the pool, or a draw with `seed`."""
    if not count:
        return {category: [] for category in categories}
    pool = data.by_category(data.read_rows(folder, data.POOL), categories)
    for category, rows in pool.items():
        if len(rows) < count:
            raise DataError(
                f"{folder.name_of(data.POOL)} holds {len(rows)} rows of {category}: set"
                f" few_shot_num to at most {len(rows)}"
            )
    if seed is None:
        return {category: rows[:count] for category, rows in pool.items()}
    return {
        category: random.Random(f"{seed}:mmlu_pro:{category}").sample(rows, count)
        for category, rows in pool.items()
    }


def _samples(
    questions: Mapping[str, Sequence[Row]], seed: int | None
) -> tuple[tuple[Sample, ...], tuple[Subset, ...]]:
    """The questions one category after the other, their options permuted with `seed` if given."""
    samples: list[Sample] = []
    subsets: list[Subset] = []
    for category, rows in questions.items():
        start = len(samples)
        found = (data.as_sample(row, index) for index, row in enumerate(rows))
        samples.extend(found if seed is None else (_shuffled(s, seed) for s in found))
        subsets.append(Subset(category, start, len(samples)))
    return tuple(samples), tuple(subsets)


def _shuffled(sample: Sample, seed: int) -> Sample:
    return permuted(sample, shuffle_order(len(sample.choices), seed, sample.id))


def _settings(args: DatasetArgs, count: int) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "few_shot_num": count,
        "few_shot_random": args.few_shot_random,
        "shuffle_choices": args.shuffle_choices,
    }
    for name in ("prompt_template", "few_shot_prompt_template", "system_prompt"):
        if getattr(args, name):
            settings[name] = getattr(args, name)
    return settings
