"""The questions of the recorded runs: made up by arithmetic, in the layouts of the benchmarks.

None of them is a published one. `write` lays them out below a folder; `make.py` calls it once,
and what it wrote is committed, because a run is tied to the digests of its files.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROWS = 3
"""Rows of a BBH subset and of an MMLU-Pro category."""
SHOTS = 5
"""Worked examples of a C-Eval subject and of an MMLU-Pro category."""
CHOICE = (
    "temporal_sequences", "disambiguation_qa", "date_understanding",
    "tracking_shuffled_objects_three_objects", "penguins_in_a_table", "geometric_shapes", "snarks",
    "ruin_names", "tracking_shuffled_objects_seven_objects",
    "tracking_shuffled_objects_five_objects", "logical_deduction_three_objects", "hyperbaton",
    "logical_deduction_five_objects", "logical_deduction_seven_objects", "movie_recommendation",
    "salient_translation_error_detection", "reasoning_about_colored_objects",
)  # fmt: skip
YES_NO = ("navigate", "causal_judgement", "web_of_lies")
CATEGORIES = (
    "computer science", "math", "chemistry", "engineering", "law", "biology", "health", "physics",
    "business", "philosophy", "economics", "other", "psychology", "history",
)  # fmt: skip
SUBJECTS = ("college_physics", "high_school_physics", "law", "logic", "marxism", "accountant")
OPTIONS = ("A", "B", "C", "D")


def write(folder: Path) -> None:
    """Write the data of all exams below `folder`."""
    _bbh(folder / "bbh")
    _mmlu_pro(folder / "mmlu_pro")
    _ceval(folder / "ceval")
    _bixbench(folder / "bixbench")
    _quiz(folder / "quiz")


def _bbh(folder: Path) -> None:
    for name, rows in bbh_rows().items():
        document = {"canary": "made up for tests", "examples": rows[:ROWS]}
        _text(folder / "bbh" / f"{name}.json", json.dumps(document, indent=1) + "\n")
        shots = [
            f"Q: {row['input']}\nA: Let's think step by step.\n"
            f"That is plain to see. So the answer is {row['target']}."
            for row in rows[ROWS:]
        ]
        head = f"Worked examples made up for tests.\n-----\nA task called {name}.\n\n"
        _text(folder / "cot-prompts" / f"{name}.txt", head + "\n\n".join(shots))


def bbh_rows() -> dict[str, list[dict[str, str]]]:
    """The rows of all 27 subsets; those after the first `ROWS` are the worked examples."""
    found: dict[str, list[dict[str, str]]] = {}
    for number, name in enumerate(CHOICE):
        found[name] = [_choice(number + 2, 10 * number + n) for n in range(ROWS + 3)]
    for number, name in enumerate(YES_NO):
        found[name] = [_parity(10 * number + n, "Yes", "No") for n in range(ROWS + 3)]
    numbers = range(ROWS + 3)
    found["sports_understanding"] = [_parity(50 + n, "yes", "no") for n in numbers]
    found["formal_fallacies"] = [_parity(70 + n, "valid", "invalid") for n in numbers]
    found["boolean_expressions"] = [
        {"input": f"not not ( {n % 2 == 0} ) is", "target": str(n % 2 == 0)} for n in numbers
    ]
    found["multistep_arithmetic_two"] = [
        {"input": f"(({n} - 9) * (2 + {n})) =", "target": str((n - 9) * (2 + n))} for n in numbers
    ]
    found["object_counting"] = [
        {"input": f"I have {n} pears and {n + 4} plums. How much fruit?", "target": str(2 * n + 4)}
        for n in numbers
    ]
    opening = "([{<[("
    closing = dict(zip("([{<", ")]}>", strict=True))
    found["dyck_languages"] = [
        {
            "input": f"Complete the sequence. Input: {' '.join(opening[: n + 1])}",
            "target": " ".join(closing[sign] for sign in reversed(opening[: n + 1])),
        }
        for n in numbers
    ]
    words = ["walnut", "amber", "kettle", "zephyr", "ladder", "bridge", "fennel", "otter"]
    found["word_sorting"] = [
        {
            "input": f"Sort the words: List: {' '.join(words[n : n + 3])}",
            "target": " ".join(sorted(words[n : n + 3])),
        }
        for n in numbers
    ]
    return found


def _choice(size: int, number: int) -> dict[str, str]:
    size = min(size, 7)
    gold = number % size
    options = [f"({'ABCDEFG'[at]}) the number {number + at}" for at in range(size)]
    text = f"Which number is {number} plus {gold}?\nOptions:\n" + "\n".join(options)
    return {"input": text, "target": f"({'ABCDEFG'[gold]})"}


def _parity(number: int, even: str, odd: str) -> dict[str, str]:
    return {"input": f"Is {number} an even number?", "target": odd if number % 2 else even}


def _mmlu_pro(folder: Path) -> None:
    _lines(folder / "test.jsonl", _pro_rows(ROWS, first=1000))
    _lines(folder / "validation.jsonl", _pro_rows(SHOTS, first=1, worked=True))


def _pro_rows(each: int, *, first: int, worked: bool = False) -> Iterable[dict[str, Any]]:
    for at, category in enumerate(CATEGORIES):
        for n in range(each):
            number = first + at * each + n
            size = 4 + (at + n) % 7
            gold = (number * 7) % size
            letter = "ABCDEFGHIJ"[gold]
            thought = f"A: Let's think step by step. It is so. The answer is ({letter})."
            yield {
                "question_id": number,
                "question": f"In {category}, what is {number} plus {gold}?",
                "options": [f"the value {number + option}" for option in range(size)],
                "answer": letter,
                "answer_index": gold,
                "cot_content": thought if worked else "",
                "category": category,
                "src": "made up for tests",
            }


def _ceval(folder: Path) -> None:
    head = ["id", "question", *OPTIONS]
    for at, subject in enumerate(SUBJECTS):
        rows = [_ceval_row(100 * at + n) for n in range(4 + SHOTS)]
        shots = [[str(n), *row[1:], "1. 加起来就是。"] for n, row in enumerate(rows[4:])]
        asked = [[str(n), *row[1:]] for n, row in enumerate(rows[:4])]
        _table(folder / "dev" / f"{subject}_dev.csv", [*head, "answer", "explanation"], shots)
        _table(folder / "val" / f"{subject}_val.csv", [*head, "answer"], asked)


def _ceval_row(number: int) -> list[str]:
    gold = number % 4
    return [
        str(number),
        f"{number}加{gold}等于____。",
        *(f"数{number + n}" for n in range(4)),
        OPTIONS[gold],
    ]


def _bixbench(folder: Path) -> None:
    rows = []
    for capsule in range(5):
        for question in range(3):
            number = 10 * capsule + question
            rows.append(
                {
                    "id": f"row-{number}",
                    "tag": "bixbench",
                    "version": "1.5",
                    "question": f"Which gene of the set {number} has the label {number + 1}?",
                    "ideal": f"Gene K{number + 1}",
                    "distractors": [f"Gene K{number + n}" for n in (2, 3, 4)],
                    "canary": "made up for tests",
                    "capsule_uuid": f"uuid-{capsule}",
                    "short_id": f"bix-{capsule}",
                    "question_id": f"bix-{capsule}-q{question}",
                    "hypothesis": f"Set {capsule} has labels.",
                    "result": "it has",
                    "answer": True,
                    "categories": "Genomics",
                    "paper": "",
                    "data_folder": "",
                    "eval_mode": "llm_verifier",
                }
            )
    _lines(folder / "BixBench_v1.5.jsonl", rows)


def _quiz(folder: Path) -> None:
    text = "question,A,B,C,answer,category,group\n"
    for n in range(12):
        values = ",".join(str(n + at) for at in range(3))
        kind = "small" if n < 6 else "large"
        text += f"What is {n} plus {n % 3}?,{values},{'ABC'[n % 3]},{kind},pair {n // 2}\n"
    _text(folder / "sums.csv", text)
    _lines(
        folder / "few_shot.jsonl",
        [{"question": "What is 40 plus 1?", "choices": ["40", "41", "42"], "answer": "B"}],
    )
    _text(
        folder / "exam.yaml",
        "name: quiz\ntitle: Small sums\nsystem_prompt: You are a clerk.\nfew_shot: 1\n",
    )


def _text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="\n")


def _lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    _text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _table(path: Path, head: list[str], rows: list[list[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
