"""AIME: written questions and replies, years as subsets, repeats and what they cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.prepare import prepare_exam
from keju.config import TaskConfig
from keju.errors import DataError
from keju.runs.manifest import make_storable
from keju.scores.exams import make_scores

QUESTIONS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("questions.json").read_text("utf-8")
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty written questions as the years 2024 (``problem``) and 2025 (``question``)."""
    (tmp_path / "aime").mkdir()
    for year, rows, key in (
        ("2024", QUESTIONS[:12], "problem"),
        ("2025", QUESTIONS[12:], "question"),
    ):
        lines = [json.dumps({key: row["problem"], "answer": row["answer"]}) for row in rows]
        (tmp_path / "aime" / f"aime_{year}.jsonl").write_text("\n".join(lines))
    return tmp_path


@pytest.fixture
def exam(folder: Path) -> Exam:
    return prepare_exam("aime", data_dir=str(folder))[0]


@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_written_replies(exam: Exam, place: int) -> None:
    question, sample = QUESTIONS[place], exam.samples[place]
    assert sample.text == question["problem"]
    boxed = exam.readers["boxed"].read(question["reply"], sample).value
    assert boxed == question["boxed"]
    for name in ("lm-eval", "robust"):
        reader = exam.readers[name]
        value = reader.read(question["reply"], sample).value
        assert (value is not None and reader.matches(value, sample)) is question[name], name


def test_a_year_is_a_subset_and_more_come_by_file(folder: Path) -> None:
    for alias, years in (("aime24", ["2024"]), ("aime2025", ["2025"]), ("aime", ["2024", "2025"])):
        exam, _ = prepare_exam(alias, data_dir=str(folder))
        assert (exam.benchmark, [subset.name for subset in exam.subsets]) == ("aime", years)
    (folder / "aime" / "aime_2031.jsonl").write_text('{"Problem": "Find $1+1$.", "Answer": 2}\n')
    exam, _ = prepare_exam("aime", {"subset_list": ["2031"]}, data_dir=str(folder))
    assert [(sample.text, sample.target) for sample in exam.samples] == [("Find $1+1$.", "2")]


def test_settings_of_the_user_replace_those_of_an_alias(folder: Path) -> None:
    exam, _ = prepare_exam("aime24", {"subset_list": ["2025"]}, data_dir=str(folder))
    assert [subset.name for subset in exam.subsets] == ["2025"]


def test_answers_are_whole_numbers(tmp_path: Path) -> None:
    for answer in ("1000", "-1", "x", "1/2"):
        (tmp_path / "aime_2024.jsonl").write_text(json.dumps({"problem": "?", "answer": answer}))
        with pytest.raises(DataError, match="whole number from 0 to 999"):
            prepare_exam("aime", {"local_path": str(tmp_path)})


def test_prompts(folder: Path, exam: Exam) -> None:
    prompt = exam.render(exam.samples[0])
    text = QUESTIONS[0]["problem"]
    assert prompt.prefix.lead + prompt.tail == (
        f"{text}\nPlease reason step by step, and put your final answer within \\boxed{{}}."
    )
    lm_eval, _ = prepare_exam("aime", data_dir=str(folder), protocol="lm-eval")
    prompt = lm_eval.render(lm_eval.samples[0])
    assert prompt.prefix.lead + prompt.tail == f"Question: {text}\nAnswer:"


def config(folder: Path, **settings: Any) -> TaskConfig:
    url = "http://127.0.0.1:9/v1"
    return TaskConfig(model="m", api_url=url, datasets=["aime"], data_dir=str(folder), **settings)


def test_every_question_is_asked_four_times_unless_the_user_says_so(folder: Path) -> None:
    (scores,) = make_scores(config(folder))
    assert (scores.epochs, scores.units) == (4, 80)
    (scores,) = make_scores(config(folder, repeats=1))
    assert scores.epochs == 1
    (scores,) = make_scores(config(folder, protocol="lm-eval"))
    assert scores.epochs == 1
    stored = make_storable(config(folder, repeats=1), "run")
    assert stored["repeats"] == 1, "a resumed run must not fall back to four"
    assert "repeats" not in make_storable(config(folder), "run")


def test_a_hint_says_what_so_few_questions_show_and_what_repeats_cost(folder: Path) -> None:
    (scores,) = make_scores(config(folder, repeats=32, dataset_args={"aime": {"limit": 5}}))
    (hint,) = (notice for notice in scores.exam.hints if notice.code == "aime.few_questions")
    assert (hint.values["n"], hint.values["requests"], hint.values["many_requests"]) == (
        10, 320, 320,
    )  # fmt: skip
    assert "few questions (10), 32 repeats of each: 320 requests" in hint.text()
    assert "±31 points" in hint.text()
