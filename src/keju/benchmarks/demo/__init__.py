"""Keju's small demo exam: generated questions with certain answers, without data files.

The kinds follow the algorithmic tasks of BIG-Bench Hard. Each question is generated from the seed
on access, so an exam of a million questions takes no memory.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from keju import messages
from keju.answers.kinds import Choice
from keju.answers.labels import read_label
from keju.answers.reader import Reader
from keju.answers.robust import RobustReader
from keju.answers.segments import find_segments, last_line
from keju.answers.wordings import ANSWER_IS
from keju.benchmarks.base import Benchmark, Mean, Protocol, Subset, by_name
from keju.benchmarks.choices import LabelStyle, format_choices
from keju.benchmarks.demo.questions import KINDS, DemoQuestion
from keju.benchmarks.kit import Questions, Setup
from keju.benchmarks.samples import LazySamples
from keju.benchmarks.wording import Wording, words
from keju.config import DatasetArgs
from keju.errors import ConfigError
from keju.types import LABELS, Answer, Sample

SHOTS = 3
MARKER = "the answer is"
# `So the answer is: (B)`.
_MARKER = re.compile(r"the answer is\s{0,3}:?", re.IGNORECASE)
INSTRUCTION = "Answer each question with the letter of the right option."
CLOSING_REQUEST = f"Finish with a line 'So {MARKER} (X)', where X is the letter."
QUESTION_FORM = "Question: {question}\nOptions:\n{choices}"
STYLE: LabelStyle = "(A) text"
DEFAULT_SIZE = 20


class DemoArgs(DatasetArgs):
    """Settings of the demo exam."""

    size_setting: ClassVar[str] = "size"

    size: int = DEFAULT_SIZE
    """Questions of each kind."""


class GeneratedSamples(LazySamples):
    """The questions; each is generated from the seed and its number."""

    def __init__(self, kinds: Sequence[str], size: int, seed: int) -> None:
        self._kinds = kinds
        self._size = size
        self._seed = seed
        self._draw = random.Random()

    def __len__(self) -> int:
        return len(self._kinds) * self._size

    def make(self, index: int) -> Sample:
        kind, row = self._kinds[index // self._size], index % self._size
        question = generate(kind, f"{self._seed}:{row}", self._draw)
        return Sample(
            id=f"demo_{kind}_{row}",
            subset=kind,
            index=row,
            text=question.text,
            target=LABELS[question.answer],
            choices=question.choices,
        )


def generate(kind: str, seed: str, draw: random.Random) -> DemoQuestion:
    """Return the question of a kind for a seed. It reseeds `draw`, which is cheaper than a new
    generator."""
    draw.seed(f"{kind}:{seed}")
    return KINDS[kind](draw)


class MarkerReader(Reader):
    """Reads the label after the last ``the answer is``, or the one that begins the last line."""

    name = "marker"
    about = "about_reader_demo_marker"

    def read(self, text: str, sample: Sample) -> Answer:
        segments = find_segments(text, _MARKER)
        segment = segments[-1].text if segments else last_line(text)
        label, reason = read_label(segment, sample.labels, sample.choices)
        if label is None:
            # Without any label in the last line, the marker is missing; otherwise the fault is
            # another one.
            silent = not segments and reason in ("", "no_label")
            return Answer(reason="no_marker" if silent else reason)
        return Answer(label, "strict" if segments else "fallback")


def make_questions(setup: Setup) -> Questions:
    """Return the questions of the selected kinds."""
    assert isinstance(setup.args, DemoArgs)
    size = setup.args.size
    if size < 1:
        raise ConfigError("value_at_least", name="dataset_args.demo: size", least=1)
    return Questions(
        samples=GeneratedSamples(setup.subsets, size, setup.seed),
        subsets=[Subset(k, row * size, (row + 1) * size) for row, k in enumerate(setup.subsets)],
        version="generated-1",
    )


def make_examples(setup: Setup) -> dict[str, str]:
    """Return the worked examples of each kind, drawn from separate seeds."""
    texts, draw = {}, random.Random()
    for kind in setup.subsets:
        questions = [generate(kind, f"shot:{number}", draw) for number in range(SHOTS)]
        texts[kind] = "".join(
            f"{QUESTION_FORM.format(question=q.text, choices=format_choices(q.choices, STYLE))}\n"
            f"So {MARKER} ({LABELS[q.answer]}) {q.choices[q.answer]}\n\n"
            for q in questions
        )
    return texts


def _make_wording(call: str) -> Wording:
    return Wording(
        head=INSTRUCTION + "\n\n{examples}",
        question=f"{QUESTION_FORM}\n{call}",
        words=words(STYLE),
        tail_is_whole=True,
    )


ABOUT = "generated reasoning questions with certain answers; needs no data"
messages.add_folder(Path(__file__).parent / "texts")

DEMO = Benchmark(
    name="demo",
    title="Keju demo",
    about=ABOUT,
    readers=by_name(MarkerReader(), RobustReader(Choice(), strict=ANSWER_IS)),
    subset_names=tuple(KINDS),
    averages=(Mean("macro_accuracy", "mean of the kinds", tuple((kind,) for kind in KINDS)),),
    Args=DemoArgs,
    grows="size",
    questions=make_questions,
    examples=make_examples,
    refused=dict.fromkeys(
        (
            "few_shot_num", "few_shot_random", "prompt_template", "few_shot_prompt_template",
            "system_prompt", "local_path", "shuffle_choices",
        ), ""
    ),
    settings=lambda setup, _: {"size": getattr(setup.args, "size", 0), "seed": setup.seed},
    default_protocol="text",
    protocols=by_name(
        Protocol(
            name="letters",
            version="1",
            reader="marker",
            about="3-shot, the likeliest option letter by log-probability",
            decode="labels",
            form="completion",
            shots=SHOTS,
            wording=_make_wording(f"So {MARKER} ("),
        ),
        Protocol(
            name="text",
            version="1",
            reader="marker",
            about="3-shot, the letter after 'the answer is'",
            max_tokens=64,
            shots=SHOTS,
            wording=_make_wording(CLOSING_REQUEST),
        ),
    ),
)  # fmt: skip
