"""The examples are exams: they are shown, sat, scored and exported like Keju's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keju import TaskConfig, run_task
from keju.cli import main
from keju.models.scripted import ScriptedModel
from keju.types import Request

EXAMPLES = Path(__file__).parents[1] / "examples"
GSM8K, SUMMARIES = EXAMPLES / "gsm8k.py", EXAMPLES / "summaries.py"
LONGEST = {GSM8K: 45, SUMMARIES: 50}


@pytest.mark.parametrize("path", LONGEST, ids=lambda path: path.stem)
def test_an_exam_is_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= LONGEST[path]


def sit(
    path: Path,
    answer: Callable[[Request], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    **config: Any,
) -> list[dict[str, Any]]:
    """The entries of the results, as ``results.json`` has them."""
    monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=answer))
    run_task(
        TaskConfig(
            model="scripted",
            datasets=[str(path)],
            data_dir=str(EXAMPLES / "data"),
            work_dir=str(tmp_path),
            run_id="example",
            **config,
        )
    )
    entries: list[dict[str, Any]]
    entries = json.loads((tmp_path / "example" / "results.json").read_bytes())["benchmarks"]
    return entries


def test_gsm8k_is_read_in_two_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: Request) -> str:
        text = request.prompt.text
        assert text.count("Question: ") == 9
        assert text.endswith("\nAnswer:")
        if "pencils each" in text:
            return "3 * 12 - 7 = 29\n#### 29"
        if "Omar" in text:
            return "He has $1200."
        return "no idea"

    args = {str(GSM8K): {"reader": ["strict", "flexible"]}}
    strict, flexible = sit(GSM8K, answer, tmp_path, monkeypatch, dataset_args=args)
    assert (strict["name"], strict["protocol"], strict["n"]) == ("gsm8k", "cot", 4)
    assert (strict["reader"], strict["outcomes"]["correct"]) == ("strict", 1)
    assert (flexible["reader"], flexible["outcomes"]["correct"]) == ("flexible", 2)
    assert flexible["outcomes"]["unparsed"] == 2


def test_a_grader_gives_several_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: Request) -> str:
        return "Vell: storm on Monday" if "harbour" in request.prompt.text else "Orsk " * 50

    (entry,) = sit(SUMMARIES, answer, tmp_path, monkeypatch)
    metrics = entry["metrics"]
    assert metrics["facts"]["value"] == pytest.approx((3 / 4 + 1 / 4) / 2)
    assert metrics["brevity"]["value"] == pytest.approx((1 + 25 / 50) / 2)
    assert metrics["score"]["value"] == pytest.approx((3 / 4 + 1 / 8) / 2)
    for name in ("score", "facts", "brevity"):
        assert metrics[name]["ci95"] is None
        assert metrics[name]["withheld"] == "few_questions"
    assert entry["outcomes"]["correct"] == 1


def test_several_numbers_survive_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sit(SUMMARIES, lambda _: "Vell, May", tmp_path, monkeypatch)
    again = sit(SUMMARIES, lambda _: pytest.fail("asked again"), tmp_path, monkeypatch)
    assert first[0]["metrics"] == again[0]["metrics"]


def test_the_demo_has_a_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `make demo` runs it, with a model that knows nothing."""
    monkeypatch.chdir(tmp_path)
    words = ("--config", str(EXAMPLES / "demo.yaml"), "--model", "scripted", "--run-id", "demo")
    assert main(["eval", *words, "-q", "--json"]) == 0
    results = json.loads(Path("demo/demo/results.json").read_text())
    (curve,) = results["curves"]
    assert [point["n"] for point in curve["points"]] == [60, 60, 60]
    assert curve["points"][-1]["difficulty"] == 1
