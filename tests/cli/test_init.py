"""``keju init`` writes working files: a plug-in that installs and passes its test, and a task that runs."""

from __future__ import annotations

import json
import re
import shlex
from importlib import resources
from pathlib import Path

import pytest

from keju.config.load import load
from tests.cli.conftest import Keju, keju
from tests.support.plugin import Plugin, install

pytestmark = pytest.mark.slow

__all__ = ["keju"]

NAME = "chess-endgames"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Plugin:
    pytest.importorskip("hatchling")
    pytest.importorskip("pip")
    from keju.cli.init import write_benchmark

    folder = tmp_path_factory.mktemp("plugin")
    source, installed = folder / "source", folder / "installed"
    write_benchmark(NAME, source)
    install(source, installed)
    return Plugin(source, installed)


def test_the_plugin_passes_its_own_test(plugin: Plugin) -> None:
    ran = plugin.run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=plugin.source)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "5 passed" in ran.stdout


def test_the_plugin_is_listed_shown_and_sat(plugin: Plugin) -> None:
    ran = plugin.run("-m", "keju", "list", "benchmarks", "--json")
    names = [row["name"] for row in json.loads(ran.stdout)["benchmarks"]]
    assert names[-1] == NAME
    shown_exam = plugin.run("-m", "keju", "show", NAME, "--subset", "words", "--index", "1")
    assert "ANSWER: X" in shown_exam.stdout
    ran = plugin.run("-m", "keju", "eval", "-m", "scripted", "--datasets", NAME, "-q", "--json")
    assert ran.returncode == 0, ran.stderr
    (entry,) = json.loads(ran.stdout)["benchmarks"]
    assert (entry["name"], entry["n"], len(entry["subsets"])) == (NAME, 4, 2)


def test_settings_that_the_plugin_does_not_take_are_refused(plugin: Plugin) -> None:
    args = json.dumps({NAME: {"few_shot_num": 2}})
    ran = plugin.run("-m", "keju", "show", NAME, "--dataset-args", args)
    assert (ran.returncode, "few_shot_num refused: there are no worked examples" in ran.stderr) == (
        2,
        True,
    )


BROKEN = {
    "import nothing_of_that_name": "cannot be loaded: ModuleNotFoundError",
    "class Chess: pass": "is not a keju.Benchmark",
    "Chess = print": "is not a keju.Benchmark",
    "": "cannot be loaded: AttributeError",
}


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_plugin_is_named_in_one_line_and_harms_nothing_else(
    tmp_path: Path, content: str
) -> None:
    info = tmp_path / "keju_chess-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: keju-chess\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[keju.benchmarks]\nchess = chess_exam:Chess\n")
    (tmp_path / "chess_exam.py").write_text(content + "\n")
    broken = Plugin(tmp_path / "source", tmp_path)
    ran = broken.run("-m", "keju", "show", "chess")
    assert ran.returncode == 2
    (line,) = (line for line in ran.stderr.splitlines() if line)
    assert line.startswith("keju: error: the plug-in 'chess' (chess_exam:Chess)")
    assert BROKEN[content] in line
    assert broken.run("-m", "keju", "show", "demo").returncode == 0
    assert "'chess' cannot be loaded" in broken.run("-m", "keju", "list", "benchmarks").stderr


def test_init_says_what_it_wrote(keju: Keju, tmp_path: Path) -> None:
    ran = keju("init", "benchmark", "chess", "--json")
    assert ran.code == 0
    assert len(ran.json["files"]) == 5
    assert all((tmp_path / file).is_file() for file in ran.json["files"])
    assert "@" not in (tmp_path / "chess" / "pyproject.toml").read_text()


def test_the_configuration_runs_as_it_stands(keju: Keju, tmp_path: Path) -> None:
    assert keju("init", "config", "-o", "task.yaml").code == 0
    text = (tmp_path / "task.yaml").read_text()
    assert "keju eval -c task.yaml" in text
    config = load(tmp_path / "task.yaml", environ={})
    assert (config.model, config.datasets, config.limit) == ("scripted", ["demo"], 10)
    assert keju("eval", "-c", "task.yaml", "-q").code == 0


def test_every_commented_key_of_the_configuration_is_a_valid_one(tmp_path: Path) -> None:
    from keju.cli.init import write_config

    lines = write_config(tmp_path / "task.yaml").read_text().splitlines()
    keys = [line[2:].partition(":")[0] for line in lines if line.startswith("# ") and ": " in line]
    commented_keys = [
        key for key in keys if key.isidentifier() and key == key.lower() and key != "gguf"
    ]
    assert {"api_url", "repeats", "rotate_options", "budget", "run_id"} <= set(commented_keys)
    from keju.config import TaskConfig

    assert set(commented_keys) <= set(TaskConfig.model_fields)


@pytest.mark.parametrize("name", ["bbh", "mmlu-pro"])
def test_a_plugin_with_the_name_of_a_benchmark_is_refused_by_name(
    tmp_path: Path, name: str
) -> None:
    info = tmp_path / "keju_other-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: keju-other\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[keju.benchmarks]\n{name} = other:Exam\n")
    plugin = Plugin(tmp_path / "source", tmp_path)
    line = f"'{name}' is a benchmark of Keju's own and the name of a plug-in (other:Exam)"
    assert line in plugin.run("-m", "keju", "list", "benchmarks").stderr
    ran = plugin.run("-m", "keju", "show", name)
    assert (ran.returncode, line in ran.stderr) == (2, True)


def test_the_arms_are_accepted_and_run_as_they_stand(keju: Keju, tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    ran = keju("init", "arms", "-o", "my tools/arms.yaml", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["files"] == ["my tools/arms.yaml", "my tools/calculator.py"]
    assert "keju run -c arms.yaml" in (tmp_path / "my tools" / "arms.yaml").read_text()
    forecast = keju("eval", "-c", "my tools/arms.yaml", "--dry-run", "--json").json
    assert [row["arm"] for row in forecast["benchmarks"]] == ["baseline", "calculator", "placebo"]
    for step in ran.json["next"]:
        outcome = keju(*shlex.split(step)[1:])
        assert outcome.code == 0, outcome.err
    assert "calculator" in outcome.out
    repeated = keju("init", "arms", "-o", "my tools/arms.yaml")
    assert (repeated.code, "exists" in repeated.err) == (2, True)


def test_the_servers_of_the_arms_are_found_wherever_they_are_called_from(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mcp")
    assert keju("init", "arms", "-o", "tools/arms.yaml").code == 0
    (tmp_path / "elsewhere").mkdir()
    for place, file in (
        (".", "tools/arms.yaml"),
        ("tools", "arms.yaml"),
        ("elsewhere", "../tools/arms.yaml"),
    ):
        monkeypatch.chdir(tmp_path / place)
        ran = keju("mcp", "check", "-c", file)
        assert ran.code == 0, ran.err


def test_a_server_in_the_current_folder_comes_before_one_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So files of mcpbr, whose paths are those of the current folder, mean what they meant."""
    (tmp_path / "tools").mkdir()
    file = tmp_path / "tools" / "arms.yaml"
    server = {
        "name": "s",
        "command": "{python}",
        "args": ["serve", "a.py", "./b.py", "{workdir}/c.py"],
    }
    arms = [
        {"name": "bare"},
        {"name": "tools", "servers": [server, server | {"name": "t", "cwd": "."}]},
    ]
    file.write_text(json.dumps({"model": "scripted", "datasets": ["demo"], "arms": arms}))
    for name in ("serve", "a.py", "b.py"):
        (tmp_path / "tools" / name).touch()
    (tmp_path / "a.py").touch()
    monkeypatch.chdir(tmp_path)
    local_server, plain_server = load(file).arms[1].servers
    assert local_server.args == [
        "serve",
        "a.py",
        str(tmp_path / "tools" / "b.py"),
        "{workdir}/c.py",
    ]
    assert plain_server.args == server["args"]


def test_the_arms_that_are_commented_out_are_valid_ones(keju: Keju, tmp_path: Path) -> None:
    assert keju("init", "arms").code == 0
    lines = (tmp_path / "arms.yaml").read_text().splitlines()
    text = "\n".join(line.replace("#  ", "  ", 1) if line[:3] == "#  " else line for line in lines)
    (tmp_path / "all.yaml").write_text(re.sub("(?m)^  # ", "  ", text))
    config = load(tmp_path / "all.yaml", environ={"WEB_HEADERS": "{}"})
    assert [arm.name for arm in config.arms][-2:] == ["web", "python"]
    assert (config.agent.timeout_seconds, config.agent.max_tokens) == (180, 20000)


def test_the_server_is_that_of_the_examples() -> None:
    examples = Path(__file__).parents[2] / "examples" / "mcp" / "calculator.py"
    written = resources.files("keju.cli").joinpath("templates", "arms", "calculator.py.txt")
    assert written.read_text("utf-8") == examples.read_text("utf-8")
