"""IFEval as a benchmark: its prompts, its grader with four numbers, and its recorded verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keju import messages
from keju.answers.reader import Reader
from keju.benchmarks.base import Benchmark, Exam, Protocol, Scores, by_name, graded_values
from keju.benchmarks.ifeval.checkers import CHECKS, check_loosely, check_strictly
from keju.benchmarks.kit import Question, Setup
from keju.benchmarks.metadata import (
    Golden,
    GoldenCheck,
    GradedRecording,
    RecordedFigure,
    RecordingSetup,
)
from keju.benchmarks.wording import Wording, words
from keju.errors import DataError, did_you_mean
from keju.sources.folder import HubRepo, Layout
from keju.stats.estimate import Estimate, QuestionRepeats, mean_of_items
from keju.types import Answer, Sample

TABLE = "input_data"
INSTRUCTIONS = "instructions"
"""The key of `Sample.metadata` with the instructions: pairs of a name and its arguments."""
FOLLOWED = "followed"
"""The target of every prompt: its instructions, and not a text, decide."""


class InstructionVerdicts:
    """The strict and the loose verdict on each instruction of a prompt."""

    def __init__(self, reply: str, sample: Sample) -> None:
        instructions = sample.metadata[INSTRUCTIONS]
        self.strict = [check_strictly(name, values, reply) for name, values in instructions]
        self.loose = [check_loosely(name, values, reply) for name, values in instructions]

    def scores(self) -> dict[str, float]:
        """Return the four numbers; those of instructions are shares of the prompt's own."""
        return {
            "prompt_strict": float(all(self.strict)),
            "prompt_loose": float(all(self.loose)),
            "instruction_strict": sum(self.strict) / len(self.strict),
            "instruction_loose": sum(self.loose) / len(self.loose),
        }


class InstructionReader(Reader):
    """Takes the whole reply, which the checks of its instructions grade."""

    name = "official"
    about = "ifeval.about_reader_official"
    marked = False

    def __init__(self, name: str = name, about: str = about) -> None:
        self.name, self.about = name, about

    def read(self, text: str, sample: Sample) -> Answer:
        return Answer(text, "strict") if text.strip() else Answer(reason="empty")

    def matches(self, value: str, sample: Sample) -> bool:
        return all(InstructionVerdicts(value, sample).strict)

    def worth(self, value: str, sample: Sample) -> Mapping[str, float]:
        return InstructionVerdicts(value, sample).scores()


@dataclass(kw_only=True, eq=False)
class InstructionExam(Exam):
    """The prompts. A share of instructions counts each instruction once, not each prompt."""

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        return {
            name: mean_of_items(self._instructions(scores, name), clustered=True)
            for name in scores.parts
            if name.startswith("instruction")
        }

    def _instructions(self, scores: Scores, name: str) -> Iterator[QuestionRepeats]:
        for index, sample in enumerate(self.samples):
            values, ungraded = graded_values(scores, scores.parts[name], index)
            count = len(sample.metadata[INSTRUCTIONS])
            followed = [round(value * count) for value in values]
            for place in range(count):
                passed = [float(place < number) for number in followed]
                yield QuestionRepeats(sample.id, passed, ungraded)

    def locate(self, row: Mapping[str, Any]) -> str:
        if "key" not in row and isinstance(row.get("id"), str):
            return str(row["id"])
        return f"ifeval_{row['key']}"


def make_questions(setup: Setup) -> Iterator[Question]:
    """Yield the prompts; the files of hubs list every argument, mostly without a value."""
    for number, row in enumerate(setup.folder.rows(TABLE), 1):
        names, arguments = row["instruction_id_list"], row["kwargs"]
        for name in names:
            if name not in CHECKS:
                hint = did_you_mean(name, CHECKS)
                raise DataError("ifeval.unknown_check", number=number, name=name, hint=hint)
        values = [
            {key: value for key, value in row_arguments.items() if value is not None}
            for row_arguments in arguments
        ]
        instructions = [*zip(names, values, strict=True)]
        metadata = {"key": row["key"], INSTRUCTIONS: instructions}
        yield Question(row["prompt"], FOLLOWED, id=f"ifeval_{row['key']}", metadata=metadata)


def golden_figures(golden: Golden, recorded: GradedRecording) -> Iterator[RecordedFigure]:
    """Yield the prompts that pass and the rows with other verdicts than the published ones."""
    rows = [row for row in recorded.rows if golden["rows"].get(str(row.row["key"])) is not None]
    published = [golden["rows"][str(row.row["key"])] for row in rows]
    verdicts = [InstructionVerdicts(row.row["output"], row.sample) for row in rows]
    yield RecordedFigure("prompts", sum(map(bool, golden["rows"].values())), len(rows))
    for place, name in enumerate(("strict", "loose")):
        actual = [getattr(verdict, name) for verdict in verdicts]
        expected = [row[place] for row in published]
        yield RecordedFigure(f"prompts {name}", sum(map(all, expected)), sum(map(all, actual)))
        yield RecordedFigure(f"instructions {name}", sum(map(sum, expected)), sum(map(sum, actual)))
        different = sum(a != b for a, b in zip(actual, expected, strict=True))
        yield RecordedFigure(f"other verdicts {name}", 0, different)


def _protocol(name: str, version: str, about: str, max_tokens: int | None = None) -> Protocol:
    wording = Wording(question="{question}", words=words())
    return Protocol(
        name=name, version=version, reader="official", about=about, headline="prompt_strict",
        max_tokens=max_tokens, shot_choices=(0,), wording=wording,
    )  # fmt: skip


messages.add_folder(Path(__file__).parent / "texts")

IFEVAL = Benchmark(
    name="ifeval",
    title="IFEval",
    about=messages.text_of("about_exam_ifeval", {}),
    aliases=("if-eval", "instruction_following_eval"),
    layout=Layout(
        tables=(TABLE,),
        own_stems={TABLE: (TABLE, f"data/{TABLE}", f"ifeval_{TABLE}", "train", "data/train")},
        hubs={
            "huggingface": HubRepo("google/IFEval", "main"),
            "modelscope": HubRepo("opencompass/ifeval", "master"),
        },
        rows={TABLE: 541},
        checksums=Path(__file__).with_name("checksums.txt"),
    ),
    rows={"all": 541},
    questions=make_questions,
    exam=InstructionExam,
    refused=dict.fromkeys(("few_shot_num", "few_shot_random", "shuffle_choices"), ""),
    readers=by_name(InstructionReader(), InstructionReader("robust", "ifeval.about_reader_robust")),
    protocols=by_name(
        _protocol("official", "1", "the prompt and nothing else; 25 checks, strict and loose"),
        _protocol("lm-eval", "4.0", "lm-evaluation-harness 0.4.13: at most 1,280 tokens", 1280),
    ),
    golden=GoldenCheck(
        settings=lambda *_: RecordingSetup({}, None, ["official"]),
        figures=golden_figures,
        recorded_gold=False,
    ),
)
"""IFEval (Zhou et al. 2023): instructions that a program can check."""
