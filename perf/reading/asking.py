"""Write the prompts of the later sets of the embedded model's replies.

``python -m perf.reading.asking DATA OUT`` writes ``OUT/SET.jsonl`` with the prompts of
`ASKED_EXAMS`: sets to tune readers on, and sets to report them on. They ask questions of which no
earlier set holds a reply, with other protocols and seeds. `perf.reading.replying` has them
answered. The repository holds keys and labels; the log names the texts by their hash.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from perf.reading.labels import rows_of
from perf.reading.replies import exam_of

FIRST = "embedded"
SETS = ("embedded-tuning", "embedded-second", "embedded-third")
SEED = 20261117


@dataclass(frozen=True)
class PromptSet:
    """One way in which questions are put, and to how many questions of each subset."""

    name: str
    benchmark: str
    protocol: str
    per_subset: int
    args: Mapping[str, Any] = field(default_factory=dict)
    temperature: float = 0.0


ASKED_EXAMS = (
    PromptSet("zero-shot", "bbh", "evalscope", 4, {"few_shot_num": 0}),
    PromptSet("zero-shot-sampled", "bbh", "evalscope", 3, {"few_shot_num": 0}, 0.7),
    PromptSet("three-shot", "bbh", "evalscope", 3),
    PromptSet("paper", "bbh", "paper", 3),
    PromptSet("answer-only", "bbh", "answer-only", 3),
    PromptSet("mcpbr", "bbh", "mcpbr", 3, {}, 0.7),
    PromptSet("zero-shot", "mmlu_pro", "evalscope", 4, {"few_shot_num": 0}),
    PromptSet("zero-shot-sampled", "mmlu_pro", "evalscope", 3, {"few_shot_num": 0}, 0.7),
    PromptSet("three-shot", "mmlu_pro", "evalscope", 3, {"few_shot_num": 3}),
    PromptSet("official", "mmlu_pro", "official", 3),
    PromptSet("official-api", "mmlu_pro", "official-api", 3, {}, 0.7),
    PromptSet("zero-shot", "ceval", "evalscope", 1, {"few_shot_num": 0}),
    PromptSet("two-shot", "ceval", "evalscope", 1, {"few_shot_num": 2}, 0.7),
    PromptSet("opencompass", "ceval", "opencompass", 1, {"few_shot_num": 2}),
    PromptSet("thought", "ceval", "tutorial", 1, {"mode": "cot", "few_shot_num": 0}),
)


def prompts(data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every prompt, after the set that it belongs to; no question of the first set, none twice."""
    used_ids = {row.key.rpartition("/")[2] for row in rows_of(FIRST)}
    for name in SETS:
        for asked_exam in ASKED_EXAMS:
            exam = exam_of(asked_exam.benchmark, asked_exam.protocol, data, **asked_exam.args)
            free: dict[str, list[Any]] = {}
            for sample in exam.samples:
                if sample.id not in used_ids:
                    free.setdefault(sample.subset, []).append(sample)
            dice = random.Random(f"{SEED} {name} {asked_exam.benchmark} {asked_exam.name}")
            for sample in (
                candidate
                for candidates in free.values()
                for candidate in dice.sample(candidates, asked_exam.per_subset)
            ):
                used_ids.add(sample.id)
                prompt = exam.render(sample)
                turns = [[turn.role, turn.content] for turn in prompt.messages]
                yield (
                    name,
                    {
                        "key": f"{name}/{asked_exam.name}/{sample.id}",
                        "benchmark": asked_exam.benchmark,
                        "protocol": asked_exam.protocol,
                        "args": asked_exam.args,
                        "temperature": asked_exam.temperature,
                        "stop": exam.protocol.stop,
                        "turns": turns if exam.protocol.form == "chat" else None,
                        "prompt": prompt.text,
                    },
                )


def main(data: Path, out: Path) -> None:
    """Write the prompts of all sets."""
    rows: dict[str, list[bytes]] = {}
    for name, prompt in prompts(data):
        rows.setdefault(name, []).append(msgspec.json.encode(prompt))
    for name, lines in rows.items():
        (out / f"{name}.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
        print(name, len(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
