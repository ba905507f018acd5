"""Keju's prompts are those of lm-eval's own package, byte for byte."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.prepare import prepare_exam
from keju.benchmarks.samples import restrict
from tests.lmeval.conftest import LmEvalPrompts

COUNT = 40


def read_rows(path: Path) -> list[dict[str, Any]]:
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    return [json.loads(line) for line in content.decode().split("\n") if line]


def prompt_texts(exam: Exam) -> list[str]:
    prompts = [exam.render(sample) for sample in exam.samples]
    assert not any(prompt.prefix.messages for prompt in prompts)
    return [prompt.prefix.lead + prompt.tail for prompt in prompts]


def first_prompts(name: str, protocol: str, data_dir: Path, args: dict[str, Any]) -> list[str]:
    exam, _ = prepare_exam(name, args, data_dir=str(data_dir), protocol=protocol)
    return prompt_texts(restrict(exam, range(min(COUNT, len(exam.samples)))))


@pytest.fixture(scope="module")
def gsm8k_splits(data_dir: Path) -> dict[str, list[dict[str, Any]]]:
    folder = data_dir / "gsm8k"
    return {
        "test": read_rows(folder / "test.jsonl"),
        "train": read_rows(folder / "train.jsonl.gz"),
    }


@pytest.mark.parametrize(
    ("config", "protocol"),
    [
        ("gsm8k/gsm8k.yaml", "lm-eval"),
        ("gsm8k/gsm8k-cot.yaml", "lm-eval-cot"),
        ("gsm8k/gsm8k-cot-zeroshot.yaml", "lm-eval-cot-zeroshot"),
    ],
)
def test_gsm8k(
    config: str,
    protocol: str,
    gsm8k_splits: dict[str, list[dict[str, Any]]],
    data_dir: Path,
    lm_eval_prompts: LmEvalPrompts,
) -> None:
    expected = lm_eval_prompts(config, gsm8k_splits, COUNT)
    assert first_prompts("gsm8k", protocol, data_dir, {}) == expected


def test_ifeval(data_dir: Path, lm_eval_prompts: LmEvalPrompts) -> None:
    rows = read_rows(data_dir / "ifeval" / "input_data.jsonl")[:COUNT]
    splits = {"train": [{"key": row["key"], "prompt": row["prompt"]} for row in rows]}
    expected = lm_eval_prompts("ifeval/ifeval.yaml", splits, COUNT)
    assert first_prompts("ifeval", "lm-eval", data_dir, {}) == expected


def test_humaneval(data_dir: Path, lm_eval_prompts: LmEvalPrompts) -> None:
    splits = {"test": read_rows(data_dir / "humaneval" / "HumanEval.jsonl.gz")}
    expected = lm_eval_prompts("humaneval/humaneval.yaml", splits, COUNT)
    assert first_prompts("humaneval", "lm-eval", data_dir, {}) == expected


def make_mbpp_row(number: int) -> dict[str, Any]:
    """A row in the form of the hub's data set evalplus/mbppplus."""
    name = f"add_{number}"
    return {
        "task_id": number,
        "prompt": f"Write a function to add {number}, as in {{x}} + {number}.",
        "code": f"\ndef {name}(x):\n  return x + {number} \n",
        "source_file": "written",
        "test_imports": [],
        "test_list": [f"assert {name}({x}) == {x + number}" for x in range(3)],
        "test": f"for x in range(9):\n    assert {name}(x) == x + {number}\n",
    }


def test_mbpp_plus(tmp_path: Path, lm_eval_prompts: LmEvalPrompts) -> None:
    rows = [make_mbpp_row(number) for number in range(COUNT)]
    folder = tmp_path / "mbpp_plus"
    folder.mkdir()
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = lm_eval_prompts("mbpp/mbpp_plus.yaml", {"test": rows}, COUNT)
    assert first_prompts("mbpp_plus", "lm-eval", tmp_path, {}) == expected


def test_minerva_math500(data_dir: Path, lm_eval_prompts: LmEvalPrompts) -> None:
    rows = read_rows(data_dir / "math" / "MATH500.jsonl")
    documents = [
        {"problem": row["Question"], "solution": row["solution"], "answer": row["Answer"]}
        for row in rows
    ]
    expected = lm_eval_prompts("minerva_math/minerva_math500.yaml", {"test": documents}, 500)
    exam, _ = prepare_exam("minerva_math500", data_dir=str(data_dir))
    prompts = dict(
        zip((sample.metadata["row"] for sample in exam.samples), prompt_texts(exam), strict=True)
    )
    assert [prompts[row] for row in range(500)] == expected


def test_aime24(tmp_path: Path, lm_eval_prompts: LmEvalPrompts) -> None:
    rows = [{"Problem": f"Find ${n}^2$.\n", "Answer": n * n} for n in range(1, 31)]
    lines = "\n".join(map(json.dumps, rows))
    (tmp_path / "aime_2024.jsonl").write_text(lines)
    expected = lm_eval_prompts("aime/aime24.yaml", {"train": rows}, 30)
    exam, _ = prepare_exam("aime", {"local_path": str(tmp_path)}, protocol="lm-eval")
    assert prompt_texts(exam) == expected
