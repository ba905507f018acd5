"""``keju data`` as a user meets it: exit codes, one JSON document, one line for what is wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from keju.cli import main
from tests.sources.hub import COMMIT, TOKEN, LoopbackHub

pytestmark = pytest.mark.slow

MMLU = "TIGER-Lab/MMLU-Pro"
FILES = {"data/test.jsonl": b'{"question_id": 1}\n', "data/validation.jsonl": b"{}\n"}


@pytest.fixture(autouse=True)
def own_environment(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All hubs are on loopback, all caches are new, no folder of the tester's is seen."""
    monkeypatch.delenv("KEJU_DATA_DIR", raising=False)
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(capsys.readouterr().out)
    return loaded


@pytest.mark.parametrize("hub_name", ["huggingface", "modelscope"])
def test_pull_then_path_then_verify(
    hub: LoopbackHub, capsys: pytest.CaptureFixture[str], hub_name: str
) -> None:
    hub.repos[MMLU] = FILES
    assert main(["data", "pull", "mmlu-pro", "--from", hub_name, "--json"]) == 0
    pulled = document(capsys)
    assert (pulled["name"], pulled["hub"], pulled["repo"]) == ("mmlu_pro", hub_name, MMLU)
    assert set(pulled["files"]) == set(FILES)
    if hub_name == "huggingface":
        assert pulled["commit"] == COMMIT

    assert main(["data", "path", "mmlu_pro"]) == 0
    assert capsys.readouterr().out.strip() == pulled["path"]

    assert main(["data", "verify", "mmlu_pro"]) == 2
    captured = capsys.readouterr()
    assert "12,032" in captured.out
    assert captured.err == "keju: error: mmlu_pro: 2 changed (test, validation)\n"


def test_offline_may_be_set_in_the_environment(
    hub: LoopbackHub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.repos[MMLU] = FILES
    for variable in ("KEJU_OFFLINE", "HF_HUB_OFFLINE"):
        with monkeypatch.context() as context:
            context.setenv(variable, "1")
            assert main(["data", "pull", "mmlu_pro"]) == 2
            assert "offline" in capsys.readouterr().err.lower()
    assert hub.asked == []


def test_pull_offline_never_asks(hub: LoopbackHub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.repos[MMLU] = FILES
    assert main(["data", "pull", "mmlu_pro", "--offline"]) == 2
    assert "not in the cache" in capsys.readouterr().err
    assert hub.asked == []
    assert main(["data", "pull", "mmlu_pro"]) == 0
    hub.asked.clear()
    assert main(["data", "pull", "mmlu_pro", "--offline"]) == 0
    assert hub.asked == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pull", "bhb"], "did you mean 'bbh'"),
        (["pull", "bbh", "--from", "elsewhere"], "elsewhere"),
        (["pull", "mmlu_pro"], "does not exist on"),
        (["pull", "demo"], "generated"),
        (["path", "bbh"], "keju data pull bbh"),
        (["path", "demo"], "built in"),
        (["verify"], "--all"),
        (["verify", "bbh", "--all"], "--all"),
        (["verify", "--all"], "no benchmark's data was found"),
        (["verify", "bbh", "--local-path", "/no/such"], "does not exist"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", *arguments]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert len(errors) == 1
    assert words in errors[0]


def test_a_gated_data_set_keeps_the_token_out_of_sight(
    hub: LoopbackHub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.repos[MMLU] = FILES
    hub.gated.add(MMLU)
    assert main(["data", "pull", "mmlu_pro"]) == 2
    assert "HF_TOKEN" in capsys.readouterr().err
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert main(["data", "pull", "mmlu_pro", "--json"]) == 0
    captured = capsys.readouterr()
    assert TOKEN not in captured.out + captured.err


def test_list_shows_where_everything_is(
    data_dir: Path, capsys: pytest.CaptureFixture[str], hub: LoopbackHub
) -> None:
    assert main(["data", "list", "--data-dir", str(data_dir), "--json"]) == 0
    found = {entry["name"]: entry for entry in document(capsys)["benchmarks"]}
    assert (found["bbh"]["files"], found["bbh"]["rows"]) == (54, 6511)
    assert found["ceval"]["path"] == str(data_dir / "ceval")
    assert found["demo"] == {"name": "demo", "origin": "built in"}
    assert main(["data", "list"]) == 0
    assert "keju data pull NAME" in capsys.readouterr().out
    assert hub.asked == []


def test_verify_all_real_data(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "verify", "--all", "--data-dir", str(data_dir), "--json"]) == 0
    whole = document(capsys)
    assert whole["sound"] is True
    rows = {entry["name"]: entry["rows"] for entry in whole["benchmarks"]}
    assert rows == {
        "bbh": 6511,
        "mmlu_pro": 12102,
        "ceval": 13948,
        "bixbench": 258,
        "gsm8k": 8792,
        "math_500": 500,
        "aime": 60,
        "ifeval": 541,
        "humaneval": 164,
        "mbpp_plus": 399,
    }

    copy = shutil.copytree(data_dir / "ceval", tmp_path / "ceval")
    (copy / "val/law_val.csv").unlink()
    assert main(["data", "verify", "ceval", "--data-dir", str(tmp_path), "--json"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["sound"] is False
    assert captured.err == "keju: error: ceval: 155 ok, 1 missing (val/law)\n"


@pytest.mark.parametrize("hub_name", ["huggingface"])
def test_capsules_are_pulled_only_where_asked_for(
    hub: LoopbackHub, capsys: pytest.CaptureFixture[str], hub_name: str
) -> None:
    questions = {"BixBench.jsonl": b"{}\n", "CapsuleFolder-1.zip": b"PK", "extra.zip": b"PK"}
    hub.repos["futurehouse/BixBench"] = questions
    words = ["data", "pull", "bixbench", "--from", hub_name, "--revision", COMMIT, "--json"]
    assert main(words) == 0
    assert set(document(capsys)["files"]) == {"BixBench.jsonl"}
    assert main([*words, "--capsules"]) == 0
    pulled = document(capsys)
    assert set(pulled["files"]) == {"BixBench.jsonl", "CapsuleFolder-1.zip"}
    assert (Path(pulled["path"]) / "CapsuleFolder-1.zip").read_bytes() == b"PK"
    assert main(["data", "pull", "bbh", "--capsules"]) == 2
    assert "--capsules has no effect on 'bbh'" in capsys.readouterr().err


def test_a_version_with_a_data_set_of_its_own_is_pulled_next_to_the_others(
    hub: LoopbackHub, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.repos["futurehouse/BixBench"] = {"BixBench.jsonl": b"{}\n"}
    hub.repos["phylobio/BixBench-Verified-50"] = {"BixBench-Verified-50.jsonl": b"{}\n"}
    for words in (["bixbench", "--revision", COMMIT], ["bixbench_verified_50"]):
        assert main(["data", "pull", *words]) == 0
    capsys.readouterr()
    places = []
    for name in ("bixbench", "bixbench_verified_50"):
        assert main(["data", "path", name]) == 0
        places.append(Path(capsys.readouterr().out.strip()))
    assert [[file.name for file in place.glob("*.jsonl")] for place in places] == [
        ["BixBench.jsonl"],
        ["BixBench-Verified-50.jsonl"],
    ]
