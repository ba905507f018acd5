"""A part of lm-eval's tasks sends the prompts of the whole run and gets its results."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval", reason="lm-eval is not installed: make test-lm-eval")

import keju
from keju.runs.journal import FILE, Records
from tests.lmeval.task_rows import ANIMALS, hellaswag
from tests.support.endpoint import FaultyEndpoint
from tests.support.processes import environment, finish, numbers, wait_for_records
from tests.support.replies import EndpointRequest, Plan, draw

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

ROWS = 48
NAME = "lm_eval:gsm8k"


def make_row(number: int) -> dict[str, str]:
    animal = ANIMALS[number % 10]
    question = f"A {animal} has {number} legs and gets {number % 7}. How many has it?"
    return {"question": question, "answer": f"They add up.\n#### {number + number % 7}"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    tables = {
        "gsm8k": {"test": range(ROWS), "train": range(100, 130)},
    }
    for task, splits in tables.items():
        for split, row_numbers in splits.items():
            path = folder / "lm_eval" / task / f"{split}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(make_row(n)) + "\n" for n in row_numbers))
    for split, rows in hellaswag(folder).items():
        path = folder / "lm_eval" / "hellaswag" / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def in_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEJU_CACHE_DIR", str(cache))


class Prompts:
    """Answers by the prompt alone, and counts the prompts."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, asked: EndpointRequest) -> str:
        self.counts[asked.text] += 1
        return f" It has some.\n#### {int(draw(asked.text) * 3) + 40}"

    @property
    def questions(self) -> set[str]:
        return {text for text in self.counts if "How many has it?" in text}


class Whole:
    """The whole run."""

    def __init__(self, data: Path, folder: Path) -> None:
        self.prompts = Prompts()
        with FaultyEndpoint(Plan(answers=self.prompts)) as endpoint:
            self.records = evaluate(endpoint, data, folder, "whole")


def evaluate(endpoint: FaultyEndpoint, data: Path, folder: Path, run: str, **more: Any) -> Any:
    config = {
        "model": "m",
        "api_url": endpoint.url,
        "datasets": [NAME],
        "data_dir": str(data),
        "offline": True,
        "work_dir": str(folder),
        "run_id": run,
    }
    keju.run_task(config | more, quiet=True)
    return outcomes(folder / run)


def outcomes(folder: Path) -> dict[str, Any]:
    """The request and the scores of each question."""
    return {
        record.id: (record.hash, [(one.reader, one.score) for one in record.readings])
        for record in Records(folder)
    }


@pytest.fixture(scope="module")
def whole(data: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEJU_CACHE_DIR", str(cache))
        yield Whole(data, tmp_path_factory.mktemp("whole"))


def test_a_limit_asks_the_first_questions_of_the_whole(
    whole: Whole, data: Path, tmp_path: Path
) -> None:
    prompts = Prompts()
    with FaultyEndpoint(Plan(answers=prompts)) as endpoint:
        records = evaluate(endpoint, data, tmp_path, "part", limit=5)
    assert records == {f"gsm8k_{n}": whole.records[f"gsm8k_{n}"] for n in range(5)}
    assert prompts.questions <= whole.prompts.questions


def test_shards_together_are_the_whole(whole: Whole, data: Path, tmp_path: Path) -> None:
    prompts = Prompts()
    records: dict[str, Any] = {}
    with FaultyEndpoint(Plan(answers=prompts)) as endpoint:
        for shard in ("1/2", "2/2"):
            run = f"part{shard[0]}"
            part = evaluate(endpoint, data, tmp_path, run, shard=shard)
            assert len(part) == ROWS // 2
            records |= part
    assert records == whole.records
    assert prompts.questions == whole.prompts.questions


def test_two_endpoints_give_the_whole(whole: Whole, data: Path, tmp_path: Path) -> None:
    first, second = Prompts(), Prompts()
    with (
        FaultyEndpoint(Plan(answers=first)) as one,
        FaultyEndpoint(Plan(answers=second)) as two,
    ):
        records = evaluate(one, data, tmp_path, "two", api_url=[one.url, two.url])
    assert records == whole.records
    assert first.questions | second.questions == whole.prompts.questions
    assert first.questions
    assert second.questions


def test_a_run_that_was_killed_continues_to_the_whole(
    whole: Whole, data: Path, cache: Path, tmp_path: Path
) -> None:
    prompts = Prompts()
    with FaultyEndpoint(Plan(answers=prompts, latency=0.05)) as endpoint:
        command = [
            *(sys.executable, "-m", "keju", "eval", "--model", "m", "--api-url", endpoint.url),
            *("--datasets", NAME, "--data-dir", str(data), "--offline", "--json", "--quiet"),
            *("--work-dir", str(tmp_path), "--run-id", "r", "--eval-batch-size", "4"),
        ]
        place = environment() | {"KEJU_CACHE_DIR": str(cache)}
        child = subprocess.Popen(command, env=place, stdout=subprocess.DEVNULL)
        wait_for_records(tmp_path / "r" / FILE, 10, child)
        child.send_signal(signal.SIGKILL)
        child.wait()
        interrupted = len(outcomes(tmp_path / "r"))
        done = subprocess.run(command, env=place, capture_output=True, check=True)
    assert 10 < interrupted < ROWS
    assert json.loads(done.stdout)
    assert outcomes(tmp_path / "r") == whole.records
    assert prompts.questions == whole.prompts.questions


def test_the_cache_can_be_deleted(whole: Whole, cache: Path, tmp_path: Path) -> None:
    prompts = [*(cache / "lm_eval" / "prompts").glob("gsm8k-*.json")]
    assert len(prompts) == 1
    place = environment() | {"KEJU_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "keju", "rm", "--lm-eval-cache"]
    subprocess.run(command, env=place, check=True, capture_output=True, cwd=tmp_path)
    assert not prompts[0].exists()
    assert [*cache.rglob("*.json")] == []


def test_other_examples_are_drawn_with_another_seed(data: Path) -> None:
    from keju.benchmarks.prepare import prepare_exam

    texts = []
    for seed in (1234, 7):
        exam, _ = prepare_exam(NAME, {"fewshot_seed": seed}, data_dir=str(data), offline=True)
        texts.append([exam.render(sample).text for sample in exam.samples])
    assert texts[0] != texts[1]
    assert [text.rpartition("Question:")[2] for text in texts[0]] == [
        text.rpartition("Question:")[2] for text in texts[1]
    ]


def test_continuations_are_scored_by_any_model_that_has_them(data: Path, tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "model": "scripted",
        "datasets": ["lm_eval:hellaswag"],
        "data_dir": str(data),
    }
    config |= {"work_dir": str(tmp_path), "run_id": "r", "offline": True}
    first = keju.run_task(config, quiet=True)
    assert first is not None
    again = finish(
        [*(sys.executable, "-m", "keju", "score", "r", "--work-dir", str(tmp_path), "--json")]
    )
    document = json.loads((tmp_path / "r" / "results.json").read_text())
    assert numbers(again) == numbers(document)
    assert {"acc", "acc_norm"} <= document["benchmarks"][0]["metrics"].keys()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("lm_eval:gsm8kk", "did you mean 'gsm8k'"),
        ("lm_eval:humaneval", "without a sandbox"),
        ("lm_eval:sciq", "lm_eval/sciq/test.jsonl"),
        ("lm_eval:./no.yaml", "no.yaml: no such file"),
    ],
)
def test_errors_are_one_line(name: str, part: str, data: Path) -> None:
    from keju.benchmarks.prepare import prepare_exam
    from keju.errors import UsageError

    with pytest.raises(UsageError) as caught:
        prepare_exam(name, {}, data_dir=str(data), offline=True)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
