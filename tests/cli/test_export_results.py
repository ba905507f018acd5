"""``keju export``: results as Markdown, LaTeX, YAML for the hub, and for experiment trackers."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from keju.errors import KejuError, UsageError
from keju.interop.hub import eval_results
from keju.interop.trackers import metrics_of
from keju.reporting.tables import latex, markdown
from keju.results.schema import Results
from keju.runs.manifest import Manifest
from tests.cli.conftest import Keju
from tests.reporting.documents import entry, results
from tests.runs10.cases import RUNS

pytestmark = pytest.mark.slow

EVIL = "a|b`c`</td><script>\n# \\input{/etc/passwd} $x^2$ [y](javascript:z) _*~% & {}\x1b[2J=1+1"


def evil() -> Any:
    hostile = entry()
    hostile["subsets"][0]["name"] = EVIL
    hostile["subsets"][1]["name"] = "[5pt]"
    hostile["warnings"] = [EVIL]
    return results(benchmarks=[hostile], model=EVIL)


@pytest.fixture
def run(keju: Keju) -> str:
    ran = keju("eval", "-m", "scripted", "--datasets", "demo", "--limit", "10", "-q",
               "--run-id", "r", "--protocol", "letters")  # fmt: skip
    assert ran.code == 0
    return "r"


def cells(line: str) -> list[str]:
    """The cells of a row of Markdown, as a reader sees them."""
    cell_texts = [cell.strip().strip("*") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    return [html.unescape(re.sub(r"\\(.)", r"\1", cell)) for cell in cell_texts]


def test_markdown_has_value_interval_and_n(keju: Keju, run: str, tmp_path: Path) -> None:
    assert keju("export", run, "--format", "markdown", "-o", "r.md").code == 0
    text = (tmp_path / "r.md").read_text()
    assert keju("export", run, "--format", "markdown").out == text
    stored = json.loads((tmp_path / "runs" / "r" / "results.json").read_bytes())["benchmarks"][0]
    rows = {row[0]: row[1:] for row in map(cells, re.findall(r"^\|.*\|$", text, re.MULTILINE))}
    for subset in stored["subsets"]:
        low, high = (100 * end for end in subset["ci95"])
        value = f"{100 * subset['accuracy']:.2f} %"
        assert rows[subset["name"]] == [value, f"{low:.2f}–{high:.2f}", str(subset["n"])]


def test_nothing_in_a_name_leaves_its_cell_of_markdown() -> None:
    text = markdown(evil())
    assert "<script>" not in text
    assert "\x1b" not in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(cells(line)) for line in table} == {4}
    assert any(row[0].startswith("a|b`c`</td><script> # \\input") for row in map(cells, table))
    assert not re.search(r"^# ", text, re.MULTILINE)
    assert re.search(r"(?<!\\)\[y\]", text) is None


def test_nothing_in_a_name_is_a_command_of_latex() -> None:
    text = latex(evil())
    assert r"\input" not in text
    assert r"\textbackslash{}input\{/etc/passwd\}" in text
    assert r"\toprule" in text
    lines = text.splitlines()
    assert not any(line.startswith(("[", "*")) for line in lines)
    body = [line for line in lines if line.endswith(r" \\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {3}
    assert "\x1b" not in text


def test_latex_compiles(tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    packages = r"\usepackage{booktabs}\usepackage{textcomp}\usepackage[T1]{fontenc}"
    page = rf"\documentclass{{article}}{packages}\begin{{document}}{latex(evil())}\end{{document}}"
    (tmp_path / "t.tex").write_text(page)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_warnings_go_with_the_numbers() -> None:
    text = results(benchmarks=[entry() | {"warnings": ["mind the gap"]}])
    assert "mind the gap" in markdown(text)
    assert "mind the gap" in latex(text)


def test_the_hub_gets_one_entry_for_each_exam() -> None:
    yaml_text, notices = eval_results(results(), Manifest(config={}))
    (row,) = yaml.safe_load(yaml_text)
    assert row["dataset"] == {"id": "lukaemon/bbh", "task_id": "bbh"}
    assert row["value"] == 51.2
    assert "protocol evalscope@7; reader paper" in row["notes"]
    assert "95 % interval 38.00–64.00" in row["notes"]
    assert [notice.code for notice in notices] == []
    hub = pytest.importorskip("huggingface_hub")
    (parsed,) = hub.parse_eval_result_entries([row])
    assert (parsed.dataset_id, parsed.value) == ("lukaemon/bbh", 51.2)


def test_a_part_of_an_exam_is_called_a_part() -> None:
    yaml_text, notices = eval_results(results(), Manifest(config={"limit": 10}))
    assert "part of the questions" in yaml_text
    assert [notice.code for notice in notices] == ["hub_part"]


def test_what_has_no_place_on_the_hub(keju: Keju, run: str) -> None:
    ran = keju("export", run, "--format", "hub-yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "demo has no data set on the hub" in ran.err
    unscored = entry(metrics={"macro_accuracy": {"value": None, "ci95": None, "n": 0}})
    with pytest.raises(UsageError, match="no score to report"):
        eval_results(results(benchmarks=[unscored]), Manifest(config={}))


def test_texts_go_with_tables_alone(keju: Keju, run: str) -> None:
    assert "holds no texts" in keju("export", run, "--format", "latex", "--full-text").err


@pytest.mark.parametrize(
    ("name", "other_mean"),
    [("mmlu_pro", "macro_14"), ("ceval", "average")],
)
def test_a_mean_with_two_names_is_shown_once(
    keju: Keju, tmp_path: Path, name: str, other_mean: str
) -> None:
    RUNS.lay(RUNS[name], tmp_path, "http://127.0.0.1:9/v1")
    stored = json.loads((tmp_path / "runs" / name / "results.json").read_bytes())
    metrics = stored["benchmarks"][0]["metrics"]
    assert metrics[other_mean]["value"] == metrics["macro_accuracy"]["value"]
    assert keju("export", name, "--format", "markdown", "-o", "r.md").code == 0
    table = re.findall(r"^\|.*\|$", (tmp_path / "r.md").read_text(), re.MULTILINE)
    assert sum("mean of the 14" in line or "mean over sub" in line for line in table) == 1
    assert keju("report", name, "-o", "r.html").code == 0
    names = re.findall(r'<code class="soft">(\w+)</code>', (tmp_path / "r.html").read_text())
    assert "macro_accuracy" in names
    assert other_mean not in names
    numbers = metrics_of(msgspec.convert(stored, Results))
    assert f"{name}/macro_accuracy" in numbers
    assert f"{name}/{other_mean}" not in numbers
    scored = keju("score", name, "--json").json  # the key of earlier versions stays
    assert other_mean in scored["benchmarks"][0]["metrics"]


def test_numbers_have_names_that_trackers_take() -> None:
    numbers = metrics_of(evil())
    assert numbers["bbh/macro_accuracy"] == 0.512
    assert numbers["bbh/macro_accuracy_low"] == 0.38
    assert numbers["bbh/outcomes/error"] == 6
    assert all(re.fullmatch(r"[\w\- /]+", name) for name in numbers)
    assert sum(name.startswith("bbh/subsets/") for name in numbers) == 2


@pytest.mark.parametrize("tracker", ["wandb", "mlflow"])
def test_a_tracker_that_is_missing_is_one_line(
    keju: Keju, run: str, monkeypatch: pytest.MonkeyPatch, tracker: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, tracker, None)
    ran = keju("export", run, "--format", tracker, "-o", "there")
    assert ran.code == 2
    assert f"keju[{tracker}]" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.filterwarnings("ignore")
def test_wandb_gets_an_offline_run(
    keju: Keju, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="needs keju[wandb]")
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "data"))
    ran = keju("export", run, "--format", "wandb", "-o", "there", "--json")
    assert ran.code == 0, ran.err
    (folder,) = (tmp_path / "there" / "wandb").glob("offline-run-*")
    (stored,) = folder.glob("*.wandb")
    assert b"demo/accuracy" in stored.read_bytes()
    assert Path(ran.json["place"]).resolve() == folder


@pytest.mark.filterwarnings("ignore")
def test_mlflow_gets_a_run_in_a_folder(
    keju: Keju, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs keju[mlflow]")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    ran = keju("export", run, "--format", "mlflow", "-o", "there")
    assert ran.code == 0, ran.err
    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "there").as_uri())
    experiment = client.get_experiment_by_name("keju")
    (tracked_run,) = client.search_runs([experiment.experiment_id])
    stored = json.loads((tmp_path / "runs" / "r" / "results.json").read_bytes())["benchmarks"][0]
    assert tracked_run.data.metrics["demo/accuracy"] == stored["metrics"]["accuracy"]["value"]
    assert tracked_run.data.params["model"] == "scripted"
    assert "api_key" not in tracked_run.data.params


def test_python_writes_the_same(run: str, tmp_path: Path) -> None:
    import keju

    assert keju.export("r", "t.tex").read_text().startswith("% \\usepackage")
    with pytest.raises(KejuError, match="unknown format 'odt'"):
        keju.export("r", "t", format="odt")


@pytest.mark.parametrize("name", ["one.md", "one.tex"])
def test_a_page_of_results_is_not_counted_in_rows(keju: Keju, name: str) -> None:
    keju("eval", "--model", "scripted", "--datasets", "demo", "--run-id", "one", "-q")
    assert keju("export", "one", "-o", name).err == f"keju: wrote {name}\n"


@pytest.mark.parametrize(
    "command",
    [
        ("export", "-o", "a/b/one.csv"),
        ("plot", "-o", "a/b/one.svg"),
        ("report", "-o", "a/b/one.html"),
    ],
)
def test_a_folder_that_is_made_is_said(keju: Keju, command: tuple[str, ...]) -> None:
    keju("eval", "--model", "scripted", "--datasets", "demo", "--run-id", "one", "-q")
    sentence = "keju: the folder a/b was not there, and was made\n"
    assert sentence in keju(command[0], "one", *command[1:]).err
    assert sentence not in keju(command[0], "one", *command[1:]).err
