"""The documents of lm-eval's tasks for the tests: published rows, and rows in published shapes."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Splits = Mapping[str, Sequence[Row]]

COUNT = 8
"""The documents of each task."""
ANIMALS = ("cat", "dog", "horse", "owl", "goat", "frog", "crow", "hare", "wolf", "deer")


def read_jsonl(path: Path) -> list[Row]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return [json.loads(line) for line in text.split("\n") if line]


def read_csv(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return [dict(row) for row in csv.DictReader(file)]


def gsm8k(data: Path) -> Splits:
    folder = data / "gsm8k"
    test = read_jsonl(folder / "test.jsonl")[:COUNT]
    return {"test": test, "train": read_jsonl(folder / "train.jsonl.gz")[:40]}


def ifeval(data: Path) -> Splits:
    rows = read_jsonl(data / "ifeval" / "input_data.jsonl")
    known = [row for row in rows if len(row["instruction_id_list"]) == 1]
    keys = sorted({name for row in known[:COUNT] for one in row["kwargs"] for name in one})
    return {
        "train": [
            row | {"kwargs": [{key: one.get(key) for key in keys} for one in row["kwargs"]]}
            for row in known[:COUNT]
        ]
    }


def bbh(subset: str) -> Callable[[Path], Splits]:
    def read(data: Path) -> Splits:
        rows = json.loads((data / "bbh" / "bbh" / f"{subset}.json").read_text("utf-8"))["examples"]
        return {"test": rows[:COUNT]}

    return read


def minerva(data: Path) -> Splits:
    rows = read_jsonl(data / "math" / "MATH500.jsonl")[:COUNT]
    return {
        "test": [
            {"problem": row["Question"], "solution": row["solution"], "answer": row["Answer"]}
            for row in rows
        ]
    }


def aime24(data: Path) -> Splits:
    rows = read_jsonl(data / "aime" / "aime_2024.jsonl")[:COUNT]
    return {"train": [{"Problem": row["problem"], "Answer": int(row["answer"])} for row in rows]}


def aime25(data: Path) -> Splits:
    rows = read_jsonl(data / "aime" / "aime_2025.jsonl")[:COUNT]
    return {"test": [{"problem": row["question"], "answer": str(row["answer"])} for row in rows]}


def mmlu_pro(data: Path) -> Splits:
    folder = data / "mmlu_pro"
    test = [row for row in read_jsonl(folder / "test.jsonl.gz") if row["category"] == "biology"]
    return {"test": test[:COUNT], "validation": read_jsonl(folder / "validation.jsonl")}


def ceval(data: Path) -> Splits:
    folder = data / "ceval"
    return {
        "val": read_csv(folder / "val" / "law_val.csv")[:COUNT],
        "dev": read_csv(folder / "dev" / "law_dev.csv"),
    }


def cmmlu(subject: str) -> Callable[[Path], Splits]:
    def read(data: Path) -> Splits:
        folder = data / "cmmlu"
        test = read_csv(folder / "test" / f"{subject}.csv")
        return {"test": test[:COUNT], "dev": read_csv(folder / "dev" / f"{subject}.csv")}

    return read


def mmlu(subject: str, count: int = COUNT) -> Callable[[Path], Splits]:
    def write(_: Path) -> Splits:
        rows = [
            {
                "question": f" Which {ANIMALS[n % 10]} of {subject} has {n + 2} legs?",
                "choices": [f"the {n + step}th {subject} one" for step in range(4)],
                "answer": (n * 7 + len(subject)) % 4,
            }
            for n in range(count + 5)
        ]
        return {"test": rows[5:], "dev": rows[:5]}

    return write


def hellaswag(_: Path) -> Splits:
    rows = [
        {
            "activity_label": f"Feeding a {animal}",
            "ctx_a": f"A man stands next to a {animal} [title] with a bowl.",
            "ctx_b": "he" if number % 2 else "the animal",
            "endings": [
                f"eats  from the bowl of the {animal} and looks up.",
                "throws the bowl [step] into the sky and sings.",
                f"has never seen {number} bowls before.",
                "is a number between two other numbers.",
            ],
            "label": str(number % 4),
        }
        for number, animal in enumerate(ANIMALS)
    ]
    return {"validation": rows[:COUNT], "train": rows}


def arc(_: Path) -> Splits:
    rows = [
        {
            "question": f"Where does a {animal} usually sleep in winter?",
            "choices": {
                "text": ["in a warm place", "on the moon", f"in {number} rivers", "in a book"],
                "label": ["A", "B", "C", "D"] if number % 2 else ["1", "2", "3", "4"],
            },
            "answerKey": ("ABCD" if number % 2 else "1234")[number % 4],
        }
        for number, animal in enumerate(ANIMALS)
    ]
    return {"test": rows[:COUNT], "train": rows, "validation": rows}


def winogrande(_: Path) -> Splits:
    rows = [
        {
            "sentence": f"The {a} could not catch the {b} because the _ was {number} times faster.",
            "option1": a,
            "option2": b,
            "answer": str(1 + number % 2),
        }
        for number, (a, b) in enumerate(pairwise(ANIMALS))
    ]
    return {"validation": rows[:COUNT], "train": rows}


def piqa(_: Path) -> Splits:
    rows = [
        {
            "goal": f"To wash a {animal},",
            "sol1": "use warm water and a soft brush.",
            "sol2": f"use {number} stones and hot sand.",
            "label": number % 2,
        }
        for number, animal in enumerate(ANIMALS)
    ]
    return {"validation": rows[:COUNT], "train": rows}


def boolq(_: Path) -> Splits:
    rows = [
        {
            "passage": f"The {animal} is an animal with {number} spots. It sleeps at night.",
            "question": f"does the {animal} have {number + number % 2} spots",
            "label": (number + 1) % 2,
        }
        for number, animal in enumerate(ANIMALS)
    ]
    return {"validation": rows[:COUNT], "train": rows}


def copa(_: Path) -> Splits:
    rows = [
        {
            "premise": f"The {animal} was hungry.",
            "question": "cause" if number % 2 else "effect",
            "choice1": "It had not eaten.",
            "choice2": f"It counted {number} trees.",
            "label": number % 2,
        }
        for number, animal in enumerate(ANIMALS)
    ]
    return {"validation": rows[:COUNT], "train": rows}


def cola(_: Path) -> Splits:
    rows = [
        {
            "sentence": f"The {animal} sleeps." if number % 2 else f"Sleep the {animal} of.",
            "label": number % 2,
        }
        for number, animal in enumerate(ANIMALS)
    ]
    return {"validation": [*rows, *rows[:4]], "train": rows}


def mrpc(_: Path) -> Splits:
    rows = [
        {
            "sentence1": f"The {animal} runs home.",
            "sentence2": f"Home is where the {animal} runs." if number % 3 else "It rains.",
            "label": int(bool(number % 3)),
        }
        for number, animal in enumerate(ANIMALS)
    ]
    return {"validation": [*rows, *rows[:4]], "train": rows}


def lambada(_: Path) -> Splits:
    text = "The {a} met the {b} in the wood and said: I know you, you are the {b}"
    pairs = zip(ANIMALS, ANIMALS[2:], strict=False)
    return {"test": [{"text": text.format(a=a, b=b)} for a, b in pairs][:COUNT]}


def wikitext(_: Path) -> Splits:
    page = " = The {a} = \n\n The {a} ( or {b} ) is an animal . It 's {n} @,@ 000 years old . \n"
    rows = [
        {"page": page.format(a=a, b=b, n=number) * (1 + number)}
        for number, (a, b) in enumerate(zip(ANIMALS, ANIMALS[3:], strict=False))
    ]
    return {"test": rows[:4], "train": rows, "validation": rows}


def gpqa(_: Path) -> Splits:
    rows = [
        {
            "Question": f"How heavy is a {animal}?",
            "Correct Answer": f" {number} kg ",
            "Incorrect Answer 1": f"{number + 1}  kg [title] x",
            "Incorrect Answer 2": f"{number + 2} kg",
            "Incorrect Answer 3": f"{number + 3} kg",
        }
        for number, animal in enumerate(ANIMALS)
    ]
    return {"train": rows[:COUNT]}


def triviaqa(_: Path) -> Splits:
    rows = [
        {
            "question": f"What does a {animal} eat",
            "answer": {"aliases": ["grass", "The grass", "mice"]},
        }
        for animal in ANIMALS
    ]
    return {"validation": rows[:COUNT], "train": rows}


GENERATED: dict[str, Callable[[Path], Splits]] = {
    "gsm8k": gsm8k,
    "gsm8k_cot_zeroshot": gsm8k,
    "ifeval": ifeval,
    "bbh_cot_fewshot_navigate": bbh("navigate"),
    "bbh_zeroshot_word_sorting": bbh("word_sorting"),
    "minerva_math500": minerva,
    "aime24": aime24,
    "aime25": aime25,
    "mmlu_pro_biology": mmlu_pro,
    "gpqa_diamond_cot_zeroshot": gpqa,
    "triviaqa": triviaqa,
}
CHOSEN: dict[str, Callable[[Path], Splits]] = {
    "ceval-valid_law": ceval,
    "cmmlu_agronomy": cmmlu("agronomy"),
    "mmlu_anatomy": mmlu("anatomy"),
    "hellaswag": hellaswag,
    "arc_easy": arc,
    "arc_challenge": arc,
    "winogrande": winogrande,
    "piqa": piqa,
    "boolq": boolq,
    "copa": copa,
    "cola": cola,
    "mrpc": mrpc,
    "lambada_openai": lambada,
    "wikitext": wikitext,
}
TASKS = GENERATED | CHOSEN

GROUP = """\
group: weighted_animals
task:
  - mmlu_anatomy
  - group: pairs
    task:
      - winogrande
      - copa
    aggregate_metric_list:
      - metric: acc
        weight_by_size: false
aggregate_metric_list:
  - metric: acc
    weight_by_size: true
metadata:
  version: 7
"""
"""A group with a group in it: one weighted by size, one not."""


def write_data(top: Path, data: Path, names: Sequence[str]) -> Path:
    """Write the rows of tasks where Keju finds them; return the data directory."""
    for name in names:
        folder = top / "lm_eval" / name
        folder.mkdir(parents=True, exist_ok=True)
        for split, rows in TASKS[name](data).items():
            lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (folder / f"{split}.jsonl").write_text(lines, "utf-8")
    return top
