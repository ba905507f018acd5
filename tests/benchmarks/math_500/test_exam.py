"""MATH-500: its questions, its prompts, its readers and the recorded verdicts."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.math_500.exam import SUBJECTS
from keju.benchmarks.math_500.minerva import MinervaReader
from keju.benchmarks.prepare import prepare_exam
from keju.results.score import score_predictions
from keju.types import Sample

SAMPLE = Sample(id="q", subset="all", index=0, text="What?", target="1")


@pytest.fixture(scope="module")
def exam(data_dir: Path) -> Exam:
    return prepare_exam("math_500", data_dir=str(data_dir))[0]


def rows_of(data_dir: Path) -> list[dict[str, Any]]:
    path = data_dir / "recorded" / "math" / "qwen2.5-math_predictions.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture
def own_exam(data_dir: Path, tmp_path: Path) -> Path:
    """The recorded questions as an exam of the user's own."""
    folder = tmp_path / "own"
    folder.mkdir()
    shutil.copyfile(data_dir / "recorded" / "math" / "questions.jsonl", folder / "questions.jsonl")
    (folder / "exam.yaml").write_text("kind: math\n")
    return folder


def test_the_questions_have_their_subjects(exam: Exam) -> None:
    assert {subset.name: len(subset) for subset in exam.subsets} == SUBJECTS
    assert exam.warnings == ()


def test_aliases_choose_their_protocols(data_dir: Path) -> None:
    for alias, protocol in (("math500", "qwen"), ("minerva_math500", "lm-eval")):
        exam, _ = prepare_exam(alias, data_dir=str(data_dir))
        assert (exam.benchmark, exam.protocol.name) == ("math_500", protocol)


def test_prompts(data_dir: Path, exam: Exam) -> None:
    sample = exam.samples[0]
    prompt = exam.render(sample)
    (system,) = prompt.prefix.messages
    assert system.content == (
        "Please reason step by step, and put your final answer within \\boxed{}."
    )
    assert prompt.prefix.lead + prompt.tail == sample.text
    simple, _ = prepare_exam("math_500", data_dir=str(data_dir), protocol="simple-evals")
    tail = simple.render(sample).prefix.lead + simple.render(sample).tail
    assert tail.startswith("Solve the following math problem step by step. The last line of")
    assert "Answer: $ANSWER (without quotes)" in tail
    assert tail.endswith('"Answer:", and you do not need to use a \\boxed command.')


def test_rows_are_found_by_id_and_by_their_place_in_the_file(exam: Exam) -> None:
    name = exam.locate({"index": 0})
    assert name == "test/precalculus/807.json"
    assert exam.locate({"unique_id": name}) == exam.locate({"id": name}) == name


@pytest.mark.parametrize(
    ("text", "target", "right"),
    [
        ("Final Answer: The final answer is $[2,5)$. I hope it is correct.", "[2,5)", True),
        ("Final Answer: The final answer is $x = 24$. I hope it is correct.", "24", True),
        ("Final Answer: The final answer is 12 inches. I hope it is correct.", "12", True),
        ("Final Answer: The final answer is $\\frac12$. I hope it is correct.", "0.5", True),
        ("Final Answer: The final answer is $3$. I hope it is correct.", "4", False),
        ("The final answer is $3$. I hope it is correct.", "3", None),
        ("Final Answer: The final answer is $3$\nI hope it is correct.", "3", None),
    ],
)
def test_minerva(text: str, target: str, right: bool | None) -> None:
    reader, sample = MinervaReader(), msgspec.structs.replace(SAMPLE, target=target)
    value = reader.read(text, sample).value
    assert (None if value is None else reader.matches(value, sample)) is right


def test_the_verdict_on_each_recorded_reply(data_dir: Path, own_exam: Path) -> None:
    """Every verdict of Qwen2.5-Math's grader: 351 right, 49 wrong, no difference."""
    golden = json.loads(
        (data_dir / "recorded" / "math" / "qwen2.5-math_golden.json").read_text("utf-8")
    )
    exam, _ = prepare_exam(str(own_exam))
    samples = {sample.id: sample for sample in exam.samples}
    reader, right = exam.readers["qwen"], set()
    for row in rows_of(data_dir):
        sample = samples[row["id"]]
        value = reader.read(row["output"], sample).value
        if value is not None and reader.matches(value, sample):
            right.add((row["id"], row["epoch"]))
    assert right == {(name, epoch) for name, epoch in golden["correct"]}
    assert len(right) == 351


def test_score_reads_all_repeats(data_dir: Path, own_exam: Path) -> None:
    path = data_dir / "recorded" / "math" / "qwen2.5-math_predictions.jsonl.gz"
    results = score_predictions(str(own_exam), path, readers=["qwen", "robust"])
    qwen, robust = results.benchmarks
    assert (qwen.outcomes["correct"], qwen.outcomes["incorrect"], qwen.repeats) == (351, 49, 8)
    assert {"pass@8", "majority_vote"} <= qwen.metrics.keys()
    # One reply says 10000 where the target is 10{,}000: equal for Keju, not for the published rule.
    assert robust.outcomes["correct"] == 352


def test_a_judge_is_missing_where_the_published_rule_asks_a_model(
    data_dir: Path, own_exam: Path
) -> None:
    path = data_dir / "recorded" / "math" / "qwen2.5-math_predictions.jsonl.gz"
    (entry,) = score_predictions(str(own_exam), path, readers=["simple-evals"]).benchmarks
    codes = [notice.code for notice in entry.notices]
    assert codes[0] == "reader_finds_nothing"
    assert "equality_by_rule" in codes


def test_robust_reads_labelled_replies(data_dir: Path, own_exam: Path) -> None:
    """The labels were written twice, before anyone saw what the reader reads."""
    labels = json.loads(Path(__file__).with_name("labels.json").read_text("utf-8"))
    outputs = {(row["id"], row["epoch"]): row["output"] for row in rows_of(data_dir)}
    exam, _ = prepare_exam(str(own_exam))
    samples = {sample.id: sample for sample in exam.samples}
    reader, misread = exam.readers["robust"], []
    for label in labels:
        sample = msgspec.structs.replace(samples[label["id"]], target=label["label"])
        value = reader.read(outputs[label["id"], label["epoch"]], sample).value
        if value is None or not reader.matches(value, sample):
            misread.append((label, value))
    assert len(labels) >= 60
    assert misread == []
