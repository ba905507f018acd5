"""Fresh BBH as a benchmark: its settings, and the exam generated from a seed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from pydantic import field_validator

from keju import messages
from keju.benchmarks.base import Benchmark, Exam, Mean, Subset
from keju.benchmarks.bbh.exam import (
    FREE_FORM,
    MULTIPLE_CHOICE,
    BBHExam,
    check_final_line,
    parse_options,
)
from keju.benchmarks.bbh.exam import load_examples as bbh_examples
from keju.benchmarks.bbh.exam import manifest_settings as bbh_settings
from keju.benchmarks.bbh.metadata import CHOICE_SUBSETS, SUBSETS
from keju.benchmarks.bbh.protocols import BBHArgs
from keju.benchmarks.bbh.readers import READERS
from keju.benchmarks.fresh.making import VERSION, make_questions
from keju.benchmarks.fresh.protocols import CHINESE_PROTOCOLS, PROTOCOLS
from keju.benchmarks.fresh.task import Language
from keju.benchmarks.fresh.tasks import TASKS
from keju.benchmarks.fresh.worked import MARKS
from keju.benchmarks.kit import Questions, Setup, choose_protocol
from keju.benchmarks.prepare import prepare
from keju.benchmarks.samples import SpooledSamples
from keju.benchmarks.wording import Wording
from keju.config import DatasetArgs
from keju.config.strict import InvalidValue, Seed, Whole
from keju.errors import ConfigError
from keju.files import WrittenNumber
from keju.sources.folder import DataFolder
from keju.types import Sample

NAME = "fresh_bbh"
EASIEST, HARDEST = 0.25, 4.0
"""The range of difficulties; the published questions have 1."""
DEFAULT_SIZE = 50
SHOT_SEED = -(2**62)
"""The seed of drawn worked examples."""


class FreshArgs(BBHArgs):
    """Settings of fresh exams."""

    size_setting: ClassVar[str] = "n"

    seed: Seed | None = None
    """The seed of the questions; the task's seed by default."""
    n: Whole = DEFAULT_SIZE
    """Questions of each subset; ``limit`` selects from them."""
    difficulty: float | list[float] = 1.0
    """The size of the problems relative to the published ones, from 0.25 to 4. Several values make
    several exams, each an arm of the run."""
    lang: Language = "en"
    """Their language: ``en`` or ``zh``."""

    @field_validator("difficulty", mode="before")
    @classmethod
    def _within_range(cls, setting: Any) -> float | list[float]:
        values = setting if isinstance(setting, list) and setting else [setting]
        for value in values:
            if type(value) not in (int, float, WrittenNumber) or not EASIEST <= value <= HARDEST:
                # A text such as "0.5" is not a number.
                shown_value = json.dumps(value, default=str, ensure_ascii=False)
                raise InvalidValue(
                    "fresh.difficulty", least=EASIEST, most=HARDEST, value=shown_value
                )
        if len({arm_name(value) for value in values}) < len(values):
            raise InvalidValue("fresh.difficulty_twice", values=[*map(str, values)])
        return [*map(float, values)] if isinstance(setting, list) else float(setting)

    def exams(self, exam_settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return one exam for each difficulty in a list."""
        if not isinstance(self.difficulty, list):
            return super().exams(exam_settings)
        flat_settings = dict(exam_settings) | exam_settings.get("extra_params", {})
        flat_settings.pop("extra_params", None)
        return {arm_name(value): flat_settings | {"difficulty": value} for value in self.difficulty}


def arm_name(difficulty: float) -> str:
    """Return ``difficulty-0.5``: the name of the arm for one of several difficulties."""
    return f"difficulty-{difficulty:g}"


class FreshExam(BBHExam):
    """Questions drawn from one seed at one difficulty."""

    def means(self) -> Sequence[Mean]:
        """Return the mean over all subsets available in the language."""
        names = subset_names(self.settings["lang"])
        return (Mean("macro_accuracy", "mean of the subsets", tuple((name,) for name in names)),)

    def chance(self, sample: Sample) -> float:
        """Return BBH's chance; 0 for numbers, brackets and orders of words."""
        return super().chance(sample) or 0.0

    def locate(self, row: Mapping[str, Any]) -> str:
        if isinstance(row.get("id"), str):
            return str(row["id"])
        subset = self.subset_named(row["subset"]) or row["subset"]
        exam_settings = self.settings
        return sample_id(
            subset, row["index"], seed=exam_settings["seed"], difficulty=exam_settings["difficulty"]
        )


def sample_id(subset: str, index: int, *, seed: int, difficulty: float) -> str:
    """Return ``fresh_bbh_navigate_s7_d1.5_0``, which is the same in every language."""
    return f"{NAME}_{subset}_s{seed}_d{difficulty:g}_{index}"


def subset_names(language: Language) -> list[str]:
    """Return the subsets available in a language, in BBH's order."""
    return [name for name, task in TASKS.items() if language in task.languages]


def choose_language(subsets: Sequence[str], is_requested: bool, language: Language) -> list[str]:
    """Return the `subsets` available in a language; ConfigError if a requested one is not."""
    available = subset_names(language)
    for subset in subsets if is_requested else ():
        if subset not in available:
            values = {"subset": subset, "lang": language, "subsets": available}
            raise ConfigError("fresh.no_language", **values)
    return [subset for subset in subsets if subset in available]


def make_exam(args: DatasetArgs, folder: DataFolder, seed: int) -> Exam:
    """Return the exam for the settings, in their language; `seed` is the task's."""
    assert isinstance(args, FreshArgs)
    if isinstance(args.difficulty, list):
        raise ConfigError("fresh.one_difficulty")
    name = choose_protocol(FRESH_BBH, args.protocol).name
    protocol = (CHINESE_PROTOCOLS if args.lang == "zh" else PROTOCOLS)[name]
    exam_seed = seed if args.seed is None else args.seed
    exam = prepare(FRESH_BBH, args, folder, exam_seed, protocol)
    exam.difficulty = args.difficulty
    exam.varied = {"lang": ("prompt_template", "protocol version")}
    return exam


def make_exam_questions(setup: Setup) -> Questions:
    """Return the questions of the selected subsets, generated once and stored in a file.

    Each subset has a SHA-256 of its questions and targets, like a file. Its name contains all
    settings that determine them. So the digest for a name changes only if the generator changes.
    """
    assert isinstance(setup.args, FreshArgs)
    check_final_line(setup)
    args, samples, seed = setup.args, SpooledSamples(), setup.seed
    assert isinstance(args.difficulty, float)
    ranges: list[Subset] = []
    files: dict[str, str] = {}
    for name in choose_language(setup.subsets, args.subset_list is not None, args.lang):
        start, choice, digest = len(samples), name in CHOICE_SUBSETS, sha256()
        drawn_questions = make_questions(
            TASKS[name], args.n, seed=seed, difficulty=args.difficulty, language=args.lang
        )
        for index, question in enumerate(drawn_questions):
            digest.update(f"{question.text}\0{question.target}\0".encode())
            sample = Sample(
                id=sample_id(name, index, seed=seed, difficulty=args.difficulty),
                subset=name,
                index=index,
                text=question.text,
                target=question.target,
                choices=parse_options(question.text) if choice else (),
                metadata=MULTIPLE_CHOICE if choice else FREE_FORM,
            )
            samples.append(sample)
        ranges.append(Subset(name, start, len(samples)))
        file = f"{name}, {args.n} of seed {seed} at {args.difficulty:g} in {args.lang}"
        files[file] = digest.hexdigest()
    total_digest = sha256("".join(files.values()).encode()).hexdigest()
    version = f"generator {VERSION}, sha256 {total_digest}"
    return Questions(samples=samples, subsets=ranges, files=files, version=version)


def load_examples(setup: Setup) -> Mapping[str, str]:
    """Return the worked examples of the selected subsets."""
    assert isinstance(setup.args, FreshArgs)
    subsets = choose_language(setup.subsets, False, setup.args.lang)
    if getattr(setup.protocol, "drawn", False):
        return {name: draw_examples(name, setup) for name in subsets}
    return bbh_examples(replace(setup, subsets=subsets))


def draw_examples(subset: str, setup: Setup) -> str:
    """Return worked examples as hard as the questions, from a separate seed; none repeats a
    question."""
    args, task = setup.args, TASKS[subset]
    assert isinstance(args, FreshArgs)
    assert isinstance(args.difficulty, float)
    difficulty, language = args.difficulty, args.lang
    draw = partial(make_questions, task, difficulty=difficulty, language=language)
    question_texts = {question.text for question in draw(n=args.n, seed=setup.seed)}
    pool_size = args.n + setup.shots
    candidates = draw(n=min(pool_size, task.space(difficulty) or pool_size), seed=SHOT_SEED)
    shots = [
        *islice(
            (candidate for candidate in candidates if candidate.text not in question_texts),
            setup.shots,
        )
    ]
    if len(shots) < setup.shots:
        values = {"subset": subset, "difficulty": f"{difficulty:g}", "n": args.n}
        raise ConfigError("fresh.too_few_shots", shots=setup.shots, **values)
    marks, gap = MARKS[language], " " if language == "en" else ""
    return "\n\n".join(
        f"{marks.question}{shot.text}\n{marks.answer}{gap}{shot.target}" for shot in shots
    )


def manifest_settings(setup: Setup, wording: Wording) -> dict[str, Any]:
    """Return the settings that shaped questions and prompts, for the manifest."""
    assert isinstance(setup.args, FreshArgs)
    fresh_settings = {
        "seed": setup.seed,
        "difficulty": setup.args.difficulty,
        "lang": setup.args.lang,
    }
    return bbh_settings(setup, wording) | fresh_settings | {"generator": VERSION}


messages.add_folder(Path(__file__).parent / "texts")

FRESH_BBH = Benchmark(
    name=NAME,
    title="Fresh BBH",
    about=messages.text_of("about_exam_fresh_bbh", {}),
    aliases=("fresh-bbh",),
    fresh_of="bbh",
    subset_names=tuple(TASKS),
    subset_about={name: SUBSETS[name].about for name in TASKS},
    protocols=PROTOCOLS,
    readers=READERS,
    Args=FreshArgs,
    grows="n",
    exam=FreshExam,
    make=make_exam,
    questions=make_exam_questions,
    examples=load_examples,
    refused={
        "few_shot_random": "the worked examples are fixed",
        "shuffle_choices": "options are part of the question's text",
        "local_path": "the questions are drawn from a seed",
    },
    settings=manifest_settings,
)
