"""A small exam of Keju's own: generated questions with certain answers, no data needed.

The kinds follow the algorithmic tasks of BIG-Bench Hard. Every question is generated from the
seed when it is looked at, so an exam of a million questions takes no memory.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from keju.answers.kinds import Choice
from keju.answers.robust import RobustReader
from keju.benchmarks.base import Benchmark, DataFacts, Exam, Mean, Protocol, Reader, Subset
from keju.benchmarks.demo.questions import KINDS, Question
from keju.benchmarks.samples import LazySamples
from keju.config import DatasetArgs
from keju.errors import ConfigError, did_you_mean
from keju.sources.folder import DataFolder
from keju.types import LABELS, Prefix, Prompt, Sample

SHOTS = 3
MARKER = "the answer is"
# `So the answer is: (B)`.
_MARKER = re.compile(r"the answer is\s{0,3}:?", re.IGNORECASE)
INSTRUCTION = "Answer each question with the letter of the right option."
CALL = f"Finish with a line 'So {MARKER} (X)', where X is the letter."
DEFAULT_SIZE = 20


class DemoArgs(DatasetArgs):
    """Settings of the demo exam."""

    size: int = DEFAULT_SIZE
    """Questions of each kind."""


class Generated(LazySamples):
    """The questions, each generated from the seed and its number."""

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


def generate(kind: str, seed: str, draw: random.Random) -> Question:
    """The question of a kind that belongs to a seed; `draw` is seeded anew, which is cheaper
    than a generator of its own."""
    draw.seed(f"{kind}:{seed}")
    return KINDS[kind](draw)


class DemoExam(Exam):
    """The generated questions under one of the two protocols."""

    benchmark = "demo"
    readers: Mapping[str, Reader] = {
        "marker": RobustReader(Choice(), strict=_MARKER, name="marker")
    }
    data = DataFacts({}, version="generated-1")

    def __init__(self, protocol: Protocol, kinds: Sequence[str], args: DemoArgs, seed: int) -> None:
        self.protocol = protocol
        self.samples = Generated(kinds, args.size, seed)
        self.subsets = tuple(
            Subset(kind, row * args.size, (row + 1) * args.size) for row, kind in enumerate(kinds)
        )
        self.settings = {"size": args.size, "seed": seed}
        self._prefixes = {kind: Prefix(lead=_worked_examples(kind)) for kind in kinds}

    def render(self, sample: Sample) -> Prompt:
        asked = _ask(sample.text, sample.choices)
        tail = f"{asked}\nSo {MARKER} (" if self.protocol.decode == "labels" else f"{asked}\n{CALL}"
        return Prompt(self._prefixes[sample.subset], tail)

    def means(self) -> Sequence[Mean]:
        return (Mean("macro_accuracy", "mean of the kinds", tuple((kind,) for kind in KINDS)),)


class Demo(Benchmark):
    """Generated questions of six kinds."""

    name = "demo"
    title = "Keju demo"
    about = "generated reasoning questions with certain answers; needs no data"
    protocols: ClassVar[Mapping[str, Protocol]] = {
        "letters": Protocol(
            name="letters",
            version="1",
            reader="marker",
            about="3-shot, the likeliest option letter by log-probability",
            decode="labels",
            form="completion",
        ),
        "text": Protocol(
            name="text",
            version="1",
            reader="marker",
            about="3-shot, the letter after 'the answer is'",
            max_tokens=64,
        ),
    }
    default_protocol = "text"
    reader_names = ("marker",)
    subset_names = tuple(KINDS)
    Args = DemoArgs
    needs_data = False

    def prepare(self, args: DatasetArgs, folder: DataFolder, *, seed: int) -> Exam:
        assert isinstance(args, DemoArgs)
        if args.size < 1:
            raise ConfigError("dataset_args.demo: size must be at least 1")
        for setting in _REFUSED:
            if getattr(args, setting) not in (None, False):
                raise ConfigError(f"dataset_args.demo: the demo exam has no '{setting}'")
        kinds = args.subset_list if args.subset_list is not None else list(KINDS)
        for kind in kinds:
            if kind not in KINDS:
                raise ConfigError(f"demo has no subset '{kind}'{did_you_mean(kind, KINDS)}")
        if not kinds:
            raise ConfigError("dataset_args.demo: subset_list selects nothing")
        return DemoExam(self.protocols[str(args.protocol)], kinds, args, seed)


_REFUSED = (
    "few_shot_num", "few_shot_random", "prompt_template", "few_shot_prompt_template",
    "system_prompt", "local_path", "shuffle_choices",
)  # fmt: skip


def _worked_examples(kind: str) -> str:
    blocks, draw = [], random.Random()
    for number in range(SHOTS):
        question = generate(kind, f"shot:{number}", draw)
        right = f"({LABELS[question.answer]}) {question.choices[question.answer]}"
        blocks.append(f"{_ask(question.text, question.choices)}\nSo {MARKER} {right}\n\n")
    return f"{INSTRUCTION}\n\n{''.join(blocks)}"


def _ask(text: str, choices: Sequence[str]) -> str:
    options = "\n".join(f"({LABELS[i]}) {choice}" for i, choice in enumerate(choices))
    return f"Question: {text}\nOptions:\n{options}"
