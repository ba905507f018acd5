"""GSM8K: its questions, its prompts and its readers."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.gsm8k.readers import find_answer_field, first_number, make_readers
from keju.benchmarks.prepare import prepare_exam
from keju.benchmarks.samples import restrict
from keju.errors import ConfigError, DataError
from keju.results.score import score_predictions
from keju.types import Sample

SAMPLE = Sample(id="gsm8k_all_0", subset="all", index=0, text="How many?", target="1234")


@pytest.fixture(scope="module")
def exam(data_dir: Path) -> Exam:
    return prepare_exam("gsm8k", data_dir=str(data_dir))[0]


def prompt_text(exam: Exam, place: int) -> str:
    prompt = exam.render(exam.samples[place])
    return prompt.prefix.lead + prompt.tail


def test_the_aliases_of_other_tools_choose_their_protocols(data_dir: Path) -> None:
    for alias, protocol in (
        ("gsm8k", "lm-eval"),
        ("gsm8k_cot", "lm-eval-cot"),
        ("gsm8k_cot_zeroshot", "lm-eval-cot-zeroshot"),
        ("gsm", "zeroeval"),
    ):
        exam, _ = prepare_exam(alias, data_dir=str(data_dir))
        assert (exam.benchmark, exam.protocol.name, len(exam.samples)) == ("gsm8k", protocol, 1319)


def test_a_part_of_the_exam_has_the_prompts_of_the_whole(exam: Exam) -> None:
    part = restrict(exam, [7, 300, 1318])
    texts = [prompt_text(part, place) for place in range(3)]
    assert texts == [prompt_text(exam, place) for place in (7, 300, 1318)]
    assert all(text.count("Question: ") == 6 for text in texts)
    assert len({text.partition("\n")[0] for text in texts}) == 3, "each draws its own examples"
    assert texts[0].endswith(f"Question: {exam.samples[7].text}\nAnswer:")


def test_the_number_of_worked_examples_can_be_chosen(data_dir: Path) -> None:
    bare, _ = prepare_exam("gsm8k", {"few_shot_num": 0}, data_dir=str(data_dir))
    assert prompt_text(bare, 0) == f"Question: {bare.samples[0].text}\nAnswer:"
    shared, _ = prepare_exam(
        "gsm8k", {"few_shot_num": 2, "few_shot_random": True}, data_dir=str(data_dir)
    )
    assert shared.render(shared.samples[0]).prefix is shared.render(shared.samples[1]).prefix
    for args, protocol in (({"few_shot_num": 9}, "lm-eval-cot"), ({"few_shot_num": 1}, "zeroeval")):
        with pytest.raises(ConfigError, match="few_shot_num"):
            prepare_exam("gsm8k", args, data_dir=str(data_dir), protocol=protocol)
    with pytest.raises(ConfigError, match="7473"):
        prepare_exam("gsm8k", {"few_shot_num": 7474}, data_dir=str(data_dir))


def test_zeroeval_asks_for_a_json_object(data_dir: Path) -> None:
    exam, _ = prepare_exam("gsm8k", data_dir=str(data_dir), protocol="zeroeval")
    text = prompt_text(exam, 0)
    assert text.startswith(f"\n## Question: \n\n{exam.samples[0].text}\n\n\n## Instruction \n")
    assert text.endswith('```json\n{\n    "reasoning": "___",\n    "answer": "___"\n}\n```\n')


def test_rows_without_a_final_answer_are_refused(tmp_path: Path) -> None:
    for row, message in (
        ({"question": "1 + 1?", "answer": "two"}, "has no number after '####'"),
        ({"question": "", "answer": "#### 2"}, "'question' is empty"),
        ({"prompt": "1 + 1?", "answer": "#### 2"}, "expected a column named question"),
    ):
        (tmp_path / "test.jsonl").write_text(json.dumps(row))
        with pytest.raises(DataError, match=message):
            prepare_exam("gsm8k", {"local_path": str(tmp_path), "few_shot_num": 0})


@pytest.mark.parametrize(
    ("reader", "protocol", "text", "value", "right"),
    [
        ("strict-match", "lm-eval", "so 5.\n#### 1,234.", "1,234.", True),
        ("strict-match", "lm-eval", "#### $1,234", None, False),
        ("strict-match", "lm-eval", "The answer is 1234.", None, False),
        ("strict-match", "lm-eval-cot", "The answer is 1234.", "1234", True),
        ("strict-match", "lm-eval-cot", "The answer is $1234.", None, False),
        ("flexible-extract", "lm-eval", "from 7 to $1,234.", "$1,234.", True),
        ("flexible-extract", "lm-eval", "1234 for 5 days", "5", False),
        ("flexible-extract", "lm-eval", "It is 1234...", "1234...", False),
        ("flexible-extract", "lm-eval", "no idea", None, False),
        ("zeroeval", "zeroeval", '{"reasoning": "x", "answer": "1,234 eggs"}', "1,234 eggs", True),
        ("zeroeval", "zeroeval", '{"answer": 1234.0}', "1234.0", True),
        ("zeroeval", "zeroeval", '{"reasoning": "say "hi"", "answer": "1234"}', "1234", True),
        ("zeroeval", "zeroeval", '{"answer": "2468/2"}', "2468/2", True),
        ("zeroeval", "zeroeval", '{"answer": "(2000 + 468)/2"}', "(2000 + 468)/2", True),
        ("zeroeval", "zeroeval", '{"reasoning": NaN, "answer": 1234}', "1234", True),
        ("zeroeval", "zeroeval", "I cannot tell", None, False),
        ("zeroeval", "zeroeval", "So $\\boxed{1234}$ eggs.\nAnswer: $\\boxed{1234}$", "1234", True),
        ("zeroeval", "zeroeval", "\\boxed{1234} is the number of eggs in the basket", None, False),
        ("zeroeval", "zeroeval", "The result is $\\boxed{1,234}$", None, False),
        ("robust", "lm-eval", "#### 1,234", "1,234", True),
        ("robust", "lm-eval-cot", "The answer is $1,234.00.", "1,234.00", True),
        ("robust", "zeroeval", '{"reasoning": "7", "answer": "$1,234"}', "1,234", True),
        ("robust", "zeroeval", '{"reasoning": "Answer: 7 for 8", "answer": 1234}', "1234", True),
        ("robust", "zeroeval", '{"answer": "1000 + 234 = 1234"}', "1234", True),
        ("robust", "zeroeval", '{"answer": "2468/2"}', "1234", True),
        ("robust", "zeroeval", '{"answer": "20/7"}', "20/7", False),
        ("robust", "zeroeval", '{"answer": "2:00 pm"}', "2", False),
        ("robust", "zeroeval", '{"answer": {"red": 4, "blue": 6}}', None, False),
    ],
)
def test_readers(reader: str, protocol: str, text: str, value: str | None, right: bool) -> None:
    chosen = make_readers(protocol)[reader]
    answer = chosen.read(text, SAMPLE)
    assert answer.value == value
    assert (value is not None and chosen.matches(value, SAMPLE)) is right


def test_hostile_replies_take_linear_time() -> None:
    hostile = ("{" * 200_000, '"answer": ' * 20_000, "$" * 200_000, "1," * 100_000, "1/" * 100_000)
    start = time.process_time()
    for text in hostile:
        for reader in make_readers("lm-eval").values():
            answer = reader.read(text, SAMPLE)
            if answer.value is not None:
                reader.matches(answer.value, SAMPLE)
        find_answer_field(text)
        first_number(text)
    assert time.process_time() - start < 5


def right_rows(data_dir: Path, name: str, reader: str) -> list[int]:
    path = data_dir / "recorded" / "gsm8k" / f"{name}_predictions.jsonl.gz"
    exam, _ = prepare_exam("gsm8k", {"few_shot_num": 0}, data_dir=str(data_dir))
    chosen, right = exam.readers[reader], []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            sample = exam.samples[row["index"]]
            value = chosen.read(row["output"], sample).value
            if value is not None and chosen.matches(value, sample):
                right.append(row["index"])
    return right


@pytest.mark.parametrize(
    ("name", "count"), [("openai-6b_finetuning", 286), ("openai-175b_verification", 742)]
)
def test_recorded_solutions_have_their_recorded_verdicts(
    data_dir: Path, name: str, count: int
) -> None:
    path = data_dir / "recorded" / "gsm8k" / f"{name}_golden.json"
    golden: dict[str, Any] = json.loads(path.read_text("utf-8"))
    right = right_rows(data_dir, name, "flexible-extract")
    assert (right, len(right)) == (golden["correct_rows"], count)
    assert right_rows(data_dir, name, "strict-match") == []


@pytest.mark.parametrize(
    "name",
    [
        "Llama-3.1-405B-Inst_at_sambanova",
        "Llama-3.1-405B-Instruct-Turbo",  # published as Llama-3.1-405B-Inst-fp8@together
        "Meta-Llama-3.1-8B-Instruct",
        "gemma-2-2b-it",
        "gpt-4o-mini-2024-07-18",
    ],
)
def test_recorded_replies_have_the_published_accuracy(data_dir: Path, name: str) -> None:
    folder = data_dir / "recorded" / "gsm8k"
    results = score_predictions(
        "gsm8k",
        folder / f"zeroeval-{name}_predictions.jsonl.gz",
        protocol="zeroeval",
        data_dir=str(data_dir),
    )
    golden = json.loads((folder / f"zeroeval-{name}_golden.json").read_text("utf-8"))
    entry = results.benchmarks[0]
    assert entry.reader == "zeroeval"
    accuracy = entry.metrics["accuracy"].value
    published = "95.91" if golden["summary"] is None else golden["summary"]["Acc"]
    assert f"{100 * (accuracy or 0):.2f}" == published


def test_robust_reads_labelled_replies(data_dir: Path) -> None:
    """The labels were written twice, before anyone saw what the reader reads."""
    labels = json.loads(Path(__file__).with_name("labels.json").read_text("utf-8"))
    outputs: dict[str, dict[int, str]] = {}
    for name in {label["set"] for label in labels}:
        path = data_dir / "recorded" / "gsm8k" / f"{name}_predictions.jsonl.gz"
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            outputs[name] = {row["index"]: row["output"] for row in map(json.loads, lines)}
    misread = []
    for label in labels:
        protocol = "zeroeval" if label["set"].startswith("zeroeval") else "lm-eval"
        chosen = make_readers(protocol)["robust"]
        sample = msgspec.structs.replace(SAMPLE, target=label["label"] or "0")
        value = chosen.read(outputs[label["set"]][label["index"]], sample).value
        if not (value is not None and chosen.matches(value, sample)) and value != label["label"]:
            misread.append((label, value))
    assert len(labels) >= 60
    assert misread == []
