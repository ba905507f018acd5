"""Fresh BBH as a benchmark: its settings, and the exam that they make out of a seed."""

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
    parse_options,
    refuse_final_line,
)
from keju.benchmarks.bbh.exam import examples as bbh_examples
from keju.benchmarks.bbh.exam import settings as bbh_settings
from keju.benchmarks.bbh.facts import ABOUT, CHOICE_SUBSETS
from keju.benchmarks.bbh.protocols import BBHArgs
from keju.benchmarks.bbh.readers import READERS
from keju.benchmarks.fresh.making import VERSION, make_questions
from keju.benchmarks.fresh.protocols import CHINESE_PROTOCOLS, PROTOCOLS
from keju.benchmarks.fresh.task import Language
from keju.benchmarks.fresh.tasks import TASKS
from keju.benchmarks.fresh.worked import MARKS
from keju.benchmarks.kit import Questions, Setup, choose_protocol
from keju.benchmarks.prepare import prepare
from keju.benchmarks.samples import StoredSamples
from keju.benchmarks.wording import Wording
from keju.config import DatasetArgs
from keju.config.strict import Invalid, Seed, Whole
from keju.errors import ConfigError
from keju.files import Written
from keju.sources.folder import DataFolder
from keju.types import Sample

NAME = "fresh_bbh"
EASIEST, HARDEST = 0.25, 4.0
"""The range of difficulties; 1 is that of the published questions."""
DEFAULT_SIZE = 50
SHOT_SEED = -(2**62)
"""Of worked examples that are drawn."""


class FreshArgs(BBHArgs):
    """Settings of fresh exams."""

    size_setting: ClassVar[str] = "n"

    seed: Seed | None = None
    """What the questions are drawn from; the task's seed by default."""
    n: Whole = DEFAULT_SIZE
    """Questions of each subset; ``limit`` selects from them."""
    difficulty: float | list[float] = 1.0
    """How large the problems are beside the published ones, from 0.25 to 4; several values are
    several exams, each an arm of the run."""
    lang: Language = "en"
    """Their language: ``en`` or ``zh``."""

    @field_validator("difficulty", mode="before")
    @classmethod
    def _within_range(cls, given: Any) -> float | list[float]:
        values = given if isinstance(given, list) and given else [given]
        for value in values:
            if type(value) not in (int, float, Written) or not EASIEST <= value <= HARDEST:
                told = json.dumps(value, default=str, ensure_ascii=False)  # "0.5" is no number
                raise Invalid("fresh.difficulty", least=EASIEST, most=HARDEST, value=told)
        if len({arm_name(value) for value in values}) < len(values):
            raise Invalid("fresh.difficulty_twice", values=[*map(str, values)])
        return [*map(float, values)] if isinstance(given, list) else float(given)

    def exams(self, own: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """One for each difficulty of a list."""
        if not isinstance(self.difficulty, list):
            return super().exams(own)
        plain = dict(own) | own.get("extra_params", {})
        plain.pop("extra_params", None)
        return {arm_name(value): plain | {"difficulty": value} for value in self.difficulty}


def arm_name(difficulty: float) -> str:
    """``difficulty-0.5``: the arm of one difficulty among several."""
    return f"difficulty-{difficulty:g}"


class FreshExam(BBHExam):
    """Questions that were drawn from one seed, at one difficulty."""

    def means(self) -> Sequence[Mean]:
        """The mean over all subsets that there are in the language."""
        names = subset_names(self.settings["lang"])
        return (Mean("macro_accuracy", "mean of the subsets", tuple((name,) for name in names)),)

    def chance(self, sample: Sample) -> float:
        """As BBH's; nobody hits a number, brackets or an order of words by chance."""
        return super().chance(sample) or 0.0

    def locate(self, row: Mapping[str, Any]) -> str:
        if isinstance(row.get("id"), str):
            return str(row["id"])
        subset = self.subset_named(row["subset"]) or row["subset"]
        own = self.settings
        return sample_id(subset, row["index"], seed=own["seed"], difficulty=own["difficulty"])


def sample_id(subset: str, index: int, *, seed: int, difficulty: float) -> str:
    """``fresh_bbh_navigate_s7_d1.5_0``; the same in every language, as the question is."""
    return f"{NAME}_{subset}_s{seed}_d{difficulty:g}_{index}"


def subset_names(language: Language) -> list[str]:
    """The subsets that there are in a language, in BBH's order."""
    return [name for name, task in TASKS.items() if language in task.languages]


def choose_language(subsets: Sequence[str], wanted: bool, language: Language) -> list[str]:
    """Those of `subsets` that are there in a language; one that is `wanted` must be."""
    there = subset_names(language)
    for subset in subsets if wanted else ():
        if subset not in there:
            values = {"subset": subset, "lang": language, "subsets": there}
            raise ConfigError("fresh.no_language", **values)
    return [subset for subset in subsets if subset in there]


def make_exam(args: DatasetArgs, folder: DataFolder, seed: int) -> Exam:
    """The exam of some settings, in their language; `seed` is the task's."""
    assert isinstance(args, FreshArgs)
    if isinstance(args.difficulty, list):
        raise ConfigError("fresh.one_difficulty")
    name = choose_protocol(FRESH_BBH, args.protocol).name
    protocol = (CHINESE_PROTOCOLS if args.lang == "zh" else PROTOCOLS)[name]
    own_seed = seed if args.seed is None else args.seed
    exam = prepare(FRESH_BBH, args, folder, own_seed, protocol)
    exam.difficulty = args.difficulty
    exam.varied = {"lang": ("prompt_template", "protocol version")}
    return exam


def questions(setup: Setup) -> Questions:
    """The questions of the chosen subsets, drawn once and kept in a file.

    Each subset has a SHA-256 of its questions and targets, as if it was a file. Its name has all
    that they depend on, so that only a generator that has changed gives another digest to a name.
    """
    assert isinstance(setup.args, FreshArgs)
    refuse_final_line(setup)
    args, samples, seed = setup.args, StoredSamples(), setup.seed
    assert isinstance(args.difficulty, float)
    ranges: list[Subset] = []
    files: dict[str, str] = {}
    for name in choose_language(setup.subsets, args.subset_list is not None, args.lang):
        start, choice, digest = len(samples), name in CHOICE_SUBSETS, sha256()
        made = make_questions(
            TASKS[name], args.n, seed=seed, difficulty=args.difficulty, language=args.lang
        )
        for index, question in enumerate(made):
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
    whole = sha256("".join(files.values()).encode()).hexdigest()
    version = f"generator {VERSION}, sha256 {whole}"
    return Questions(samples=samples, subsets=ranges, files=files, version=version)


def examples(setup: Setup) -> Mapping[str, str]:
    """The worked examples of the chosen subsets."""
    assert isinstance(setup.args, FreshArgs)
    subsets = choose_language(setup.subsets, False, setup.args.lang)
    if getattr(setup.protocol, "drawn", False):
        return {name: draw_examples(name, setup) for name in subsets}
    return bbh_examples(replace(setup, subsets=subsets))


def draw_examples(subset: str, setup: Setup) -> str:
    """Worked examples as hard as the questions, from a seed of their own; none is a question."""
    args, task = setup.args, TASKS[subset]
    assert isinstance(args, FreshArgs)
    assert isinstance(args.difficulty, float)
    difficulty, language = args.difficulty, args.lang
    draw = partial(make_questions, task, difficulty=difficulty, language=language)
    asked = {question.text for question in draw(n=args.n, seed=setup.seed)}
    most = args.n + setup.shots
    others = draw(n=min(most, task.space(difficulty) or most), seed=SHOT_SEED)
    shots = [*islice((each for each in others if each.text not in asked), setup.shots)]
    if len(shots) < setup.shots:
        values = {"subset": subset, "difficulty": f"{difficulty:g}", "n": args.n}
        raise ConfigError("fresh.too_few_shots", shots=setup.shots, **values)
    marks, gap = MARKS[language], " " if language == "en" else ""
    return "\n\n".join(
        f"{marks.question}{shot.text}\n{marks.answer}{gap}{shot.target}" for shot in shots
    )


def settings(setup: Setup, wording: Wording) -> dict[str, Any]:
    """What shaped questions and prompts, for the manifest."""
    assert isinstance(setup.args, FreshArgs)
    own = {"seed": setup.seed, "difficulty": setup.args.difficulty, "lang": setup.args.lang}
    return bbh_settings(setup, wording) | own | {"generator": VERSION}


messages.add_folder(Path(__file__).parent / "texts")

FRESH_BBH = Benchmark(
    name=NAME,
    title="Fresh BBH",
    about=messages.text_of("about_exam_fresh_bbh", {}),
    aliases=("fresh-bbh",),
    fresh_of="bbh",
    subset_names=tuple(TASKS),
    subset_about={name: ABOUT[name] for name in TASKS},
    protocols=PROTOCOLS,
    readers=READERS,
    Args=FreshArgs,
    grows="n",
    exam=FreshExam,
    make=make_exam,
    questions=questions,
    examples=examples,
    refused={
        "few_shot_random": "the worked examples are fixed",
        "shuffle_choices": "options stand in the question's text",
        "local_path": "the questions are drawn from a seed",
    },
    settings=settings,
)
