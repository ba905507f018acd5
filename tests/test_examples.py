"""Every example runs: exams, a script, a notebook, a plug-in, arms with tools, a gate in CI."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from keju import TaskConfig, run_task
from keju.cli import main
from keju.models.scripted import ScriptedModel
from keju.types import Request
from tests.support.endpoint import FaultyEndpoint
from tests.support.local_model import real_weights
from tests.support.plugin import Plugin, install
from tests.support.replies import EndpointRequest, Plan
from tests.support.tools import calling, results_in

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"
GSM8K, SUMMARIES = EXAMPLES / "gsm8k.py", EXAMPLES / "summaries.py"
LONGEST = {GSM8K: 45, SUMMARIES: 50}


@pytest.mark.parametrize("path", LONGEST, ids=lambda path: path.stem)
def test_an_exam_is_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= LONGEST[path]


def evaluate(
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
    strict, flexible = evaluate(GSM8K, answer, tmp_path, monkeypatch, dataset_args=args)
    assert (strict["name"], strict["protocol"], strict["n"]) == ("gsm8k", "cot", 4)
    assert (strict["reader"], strict["outcomes"]["correct"]) == ("strict", 1)
    assert (flexible["reader"], flexible["outcomes"]["correct"]) == ("flexible", 2)
    assert flexible["outcomes"]["unparsed"] == 2


def test_a_grader_gives_several_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: Request) -> str:
        return "Vell: storm on Monday" if "harbour" in request.prompt.text else "Orsk " * 50

    (entry,) = evaluate(SUMMARIES, answer, tmp_path, monkeypatch)
    metrics = entry["metrics"]
    assert metrics["facts"]["value"] == pytest.approx((3 / 4 + 1 / 4) / 2)
    assert metrics["brevity"]["value"] == pytest.approx((1 + 25 / 50) / 2)
    assert metrics["score"]["value"] == pytest.approx((3 / 4 + 1 / 8) / 2)
    for name in ("score", "facts", "brevity"):
        assert metrics[name]["ci95"] is None
        assert metrics[name]["withheld"] == "few_questions"
    assert entry["outcomes"]["correct"] == 1


def test_several_numbers_survive_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate(SUMMARIES, lambda _: "Vell, May", tmp_path, monkeypatch)
    again = evaluate(SUMMARIES, lambda _: pytest.fail("asked again"), tmp_path, monkeypatch)
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


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder beside the examples, without settings of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith(("KEJU_", "OPENAI_")):
            monkeypatch.delenv(name)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_script_sits_two_models_and_decides(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = str(EXAMPLES / "first.py")
    monkeypatch.setattr(sys, "argv", [script])
    runpy.run_path(script)
    shown = capsys.readouterr().out
    assert "may take its place: " in shown
    assert shown.count(" gold ") > 5
    assert (here / "difference.svg").read_text().startswith("<svg ")


def test_the_script_asks_an_endpoint(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = str(EXAMPLES / "first.py")
    with FaultyEndpoint(Plan(answers="no idea")) as endpoint:
        monkeypatch.setattr(sys, "argv", [script, "m", endpoint.url])
        runpy.run_path(script)
        assert endpoint.stats.requests >= 30
    assert "may take its place: inconclusive" in capsys.readouterr().out


@pytest.mark.slow
def test_the_notebook_runs_in_a_kernel(here: Path) -> None:
    """A kernel has a loop of its own running, which a script has not."""
    nbformat = pytest.importorskip("nbformat")
    manager = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(EXAMPLES / "first.ipynb", as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs for cell in cells)
    shown = ""

    def note(message: dict[str, Any]) -> None:
        nonlocal shown
        shown += json.dumps(message["content"])

    with manager.run_kernel(cwd=str(here)) as client:
        for cell in cells:
            reply = client.execute_interactive(cell.source, timeout=120, output_hook=note)
            assert reply["content"]["status"] == "ok", reply["content"]
    assert "text/html" in shown
    assert "a tie, not ranked" in shown
    assert (here / "difference.svg").exists()


def test_the_folder_is_an_exam(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: Request) -> str:
        text = request.prompt.text
        assert text.count("What is the capital of ") == 2  # the worked example comes first
        right = dict(re.findall(r"([A-D])\) (Paris|Lisbon|Canberra|Wellington|Lima|Ottawa)", text))
        return f"ANSWER: {next(iter(right))}"

    (entry,) = evaluate(EXAMPLES / "capitals", answer, here, monkeypatch)
    assert (entry["name"], entry["n"], entry["outcomes"]["correct"]) == ("capitals", 6, 6)
    assert [subset["name"] for subset in entry["subsets"]] == ["europe", "oceania", "america"]


@pytest.mark.slow
def test_the_plugin_is_found_once_it_is_installed(here: Path) -> None:
    pytest.importorskip("hatchling")
    pytest.importorskip("pip")
    install(EXAMPLES / "plugin", here / "installed")
    plugin = Plugin(here, here / "installed")
    words = ("--model", "scripted", "--datasets", "riddles", "--quiet", "--json")
    ran = plugin.run("-m", "keju", "eval", *words, cwd=here)
    assert ran.returncode == 0, ran.stderr
    (entry,) = json.loads(ran.stdout)["benchmarks"]
    assert (entry["name"], entry["n"]) == ("riddles", 50)


def calculates(asked: EndpointRequest) -> Any:
    """Knows no sum by itself, and trusts what a tool says."""
    tools = [tool["function"]["name"] for tool in asked.body.get("tools", [])]
    results = results_in(asked)
    if results:
        return f"So the answer is {results[-1]}."
    found = re.findall(r"(\(\(.*\)\)) =", asked.text)
    return calling((tools[0], {"expression": found[-1]})) if tools else "So the answer is 1."


ARMS = ("run", "-c", "examples/mcp/arms.yaml", "-q", "--json")


@pytest.mark.slow
def test_arms_run_without_a_key_and_without_an_endpoint(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """On a machine that has nothing but Keju: no program ``python``, no model."""
    pytest.importorskip("mcp")
    monkeypatch.setenv("PATH", str(here))
    assert main([*ARMS, "--run-id", "arms"]) == 0
    entries = {e["arm"]: e for e in json.loads(capfd.readouterr().out)["benchmarks"]}
    right = {arm: entry["outcomes"].get("correct", 0) for arm, entry in entries.items()}
    assert right == {"baseline": 0, "calculator": 20, "placebo": 0}
    used = entries["calculator"]["tools"]
    assert (used["calls"], used["failed"], used["schema_tokens_from"]) == (20, 0, "endpoint")
    assert entries["placebo"]["tools"]["failed"] == 20
    assert all(not entry["warnings"] for entry in entries.values())
    assert main(["compare", "arms"]) == 0
    shown = capfd.readouterr().out
    assert "calculator helps: +100.0 points over baseline on 20 questions" in shown
    assert "warning" not in shown


@pytest.mark.slow
def test_the_arms_of_a_model_at_an_endpoint(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mcp")
    with FaultyEndpoint(Plan(answers=calculates)) as endpoint:
        assert main([*ARMS, "--model", "m", "--api-url", endpoint.url, "-n", "8"]) == 0
    results = json.loads(capfd.readouterr().out)
    right = {entry["arm"]: entry["outcomes"]["correct"] for entry in results["benchmarks"]}
    assert (results["model"], right["calculator"]) == ("m", 8)
    assert right["baseline"] <= 1
    assert right["placebo"] <= 1


@pytest.mark.slow
def test_a_model_is_compared_with_its_quantised_copy(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """There is one file of weights here, so it is compared with itself: no question may differ."""
    for name in ("full.gguf", "q4.gguf"):
        (here / name).symlink_to(real_weights())
    few = "dataset_args.demo.subset_list=[boolean_expressions, object_counting]"
    words = ("--limit", "1", "-s", few, "-s", "model_args.threads=1", "--quiet")
    assert main(["eval", "--config", "examples/quantised.yaml", *words]) == 0
    capfd.readouterr()
    pair = ("quantised--full--demo", "quantised--q4--demo")
    assert main(["compare", *pair, "--json"]) == 0
    (found,) = json.loads(capfd.readouterr().out)["comparisons"]
    assert (found["n"], found["difference"]) == (2, 0)


WORKFLOW = EXAMPLES / "ci" / "gate.yml"
INSTALLS = "install"
"""The step that needs a package registry; what it installs runs the tests already."""


@pytest.fixture
def programs(here: Path) -> dict[str, str]:
    """The variables of a runner, with ``keju`` on its path."""
    program = here / "bin" / "keju"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m keju "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join((str(program.parent), os.environ["PATH"]))
    return {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(here / "summary.md")}


@pytest.mark.slow
@pytest.mark.parametrize(("said", "code"), [("So the answer is (A).", 0), ("no idea", 1)])
def test_the_workflow_lets_a_candidate_pass_or_not(
    said: str, code: int, here: Path, programs: dict[str, str]
) -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    steps = [step for step in workflow["jobs"]["gate"]["steps"] if "run" in step]
    assert steps.pop(0)["name"] == INSTALLS

    def answer(asked: EndpointRequest) -> str:
        return (
            said if asked.body["model"] == workflow["env"]["CANDIDATE"] else "So the answer is (A)."
        )

    codes = []
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        given = {**programs, **workflow["env"], "MODEL_URL": endpoint.url, "OPENAI_API_KEY": "k"}
        for step in steps:
            ran = subprocess.run(
                ["bash", "-e", "-c", step["run"]], env=given, cwd=here, check=False
            )
            codes.append(ran.returncode)
    assert codes == [0, 0, code, 0]
    assert ("pass" if code == 0 else "fail") in (here / "summary.md").read_text()
    assert (here / "gate.xml").exists()


SERVING = EXAMPLES / "ci" / "serving.yml"


@pytest.mark.slow
@pytest.mark.parametrize("code", [0, 1])
def test_the_workflow_accepts_a_new_server_or_not(
    code: int, here: Path, programs: dict[str, str], data_dir: Path
) -> None:
    workflow = yaml.safe_load(SERVING.read_text())
    (job,) = workflow["jobs"].values()
    steps = [step for step in job["steps"] if "run" in step]
    assert steps.pop(0)["name"] == INSTALLS
    rows = (data_dir / "gsm8k" / "test.jsonl").read_text("utf-8").splitlines()
    golds = {row["question"]: row["answer"].split()[-1] for row in map(json.loads, rows)}

    def right(asked: EndpointRequest) -> str:
        question = asked.text.rpartition("Q: ")[2].partition("\nA:")[0].strip()
        return f"The answer is {golds.get(question, '0')}."

    with (
        FaultyEndpoint(Plan(answers=right if code == 0 else lambda _: "no idea")) as new,
        FaultyEndpoint(Plan(answers=right)) as old,
    ):
        urls = {"NEW_URL": new.url, "OLD_URL": old.url, "KEJU_DATA_DIR": str(data_dir)}
        keys = {"OPENAI_API_KEY": "k", "KEJU_BASELINE_API_KEY": "l"}
        given = {**programs, **workflow["env"], **urls, **keys}
        codes = [
            subprocess.run(["bash", "-e", "-c", step["run"]], env=given, cwd=here, check=False)
            for step in steps
        ]
    assert [done.returncode for done in codes] == [code, 0]
    assert ("pass" if code == 0 else "fail") in (here / "summary.md").read_text()
    assert (here / "gate.xml").exists()
