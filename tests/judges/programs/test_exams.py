"""Exams whose answers are programs, from the command line: runs, resumed runs and own exams."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from keju.runs.journal import VERDICTS, Records
from tests.cli.conftest import Keju, keju
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan

__all__ = ["keju"]

needs_sandbox = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
QUESTIONS = (
    ("double", "Return twice the number.", "def check(candidate):\n    assert candidate(4) == 8\n"),
    ("square", "Return the square.", "assert square(3) == 9\nassert square(-2) == 4\n"),
    (
        "half",
        "Return half of the number.",
        "def check(candidate):\n    assert candidate(3) == 1.5\n",
    ),
)
PROGRAMS = {
    "double": "Sure:\n```python\ndef double(x):\n    return x + x\n```\nThat is it.",
    "square": "def square(x):\n    return x * abs(x)\n",
    "half": "```\nimport os\nos._exit(3)\ndef half(x): pass\n```",
}


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "exam.yaml").write_text("grader: python\n")
    rows = [
        {"id": name, "question": text, "tests": tests, "entry_point": name}
        for name, text, tests in QUESTIONS
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def answer(request: EndpointRequest) -> Any:
    prompt = json.dumps(request.body)
    return next((reply for name, reply in PROGRAMS.items() if f"`{name}`" in prompt), "ready")


def eval_flags(endpoint: FaultyEndpoint, exam: Path, *flags: str) -> list[str]:
    names = ["--datasets", str(exam), "--run-id", "r", "--json", "--quiet", "--no-report"]
    return ["eval", "--model", "m", "--api-url", endpoint.url, *names, *flags]


@needs_sandbox
def test_a_run_grades_programs_and_never_runs_one_twice(
    keju: Keju, exam: Path, tmp_path: Path
) -> None:
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        ran = keju(*eval_flags(endpoint, exam))
        assert ran.code == 0, ran.err
        (entry,) = ran.json["benchmarks"]
        assert entry["metrics"]["pass@1"]["value"] == pytest.approx(1 / 3)
        assert (entry["outcomes"]["correct"], entry["outcomes"]["incorrect"]) == (1, 2)
        run = tmp_path / "runs" / "r"
        verdicts = [json.loads(record.reply.text) for record in Records(run, VERDICTS)]
        assert sorted(verdict["outcome"] for verdict in verdicts) == ["ended", "passed", "wrong"]
        stored = (run / VERDICTS).read_bytes()
        again = keju(*eval_flags(endpoint, exam, "--resume"))
        assert again.code == 0, again.err
    assert (run / VERDICTS).read_bytes() == stored
    assert again.json["benchmarks"][0]["metrics"]["pass@1"] == entry["metrics"]["pass@1"]
    scored = keju("score", "r", "--json")
    assert (run / VERDICTS).read_bytes() == stored
    assert scored.json["benchmarks"][0]["outcomes"] == entry["outcomes"]


@needs_sandbox
def test_another_reader_runs_only_programs_that_are_new(
    keju: Keju, exam: Path, tmp_path: Path
) -> None:
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        assert keju(*eval_flags(endpoint, exam)).code == 0
    run = tmp_path / "runs" / "r"
    before = len(list(Records(run, VERDICTS)))
    scored = keju("score", "r", "--reader", "whole", "--json")
    assert scored.code == 0, scored.err
    (entry,) = scored.json["benchmarks"]
    assert entry["outcomes"]["correct"] == 0
    assert len(list(Records(run, VERDICTS))) == before + 2


def test_without_a_sandbox_a_run_is_refused(
    keju: Keju, exam: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        ran = keju(*eval_flags(endpoint, exam))
        assert ran.code == 2
        assert "bubblewrap" in ran.err or "bwrap" in ran.err
        assert endpoint.stats.requests == 0
    replies = tmp_path / "replies.jsonl"
    replies.write_text(json.dumps({"id": "double", "output": PROGRAMS["double"]}) + "\n")
    flags = ("--datasets", str(exam), "--predictions", str(replies), "--json")
    assert keju("score", *flags).code == 2


def test_without_a_sandbox_on_request(keju: Keju, exam: Path, tmp_path: Path) -> None:
    replies = tmp_path / "replies.jsonl"
    rows = [{"id": name, "output": reply} for name, reply in PROGRAMS.items()]
    replies.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ("--datasets", str(exam), "--predictions", str(replies), "--json", "--jobs", "2")
    ran = keju("score", *flags, "--unsafe-no-sandbox")
    (entry,) = ran.json["benchmarks"]
    assert entry["outcomes"]["correct"] == 1
    assert "programs_without_sandbox" in [notice["code"] for notice in entry["notices"]]


def test_rows_without_tests_are_refused(keju: Keju, exam: Path) -> None:
    (exam / "rows.jsonl").write_text('{"question": "Do it.", "entry_point": "f"}\n')
    ran = keju("show", str(exam))
    assert ran.code == 2
    assert "'tests'" in ran.err


@needs_sandbox
@pytest.mark.parametrize(
    ("name", "folder", "figures"),
    [
        ("humaneval", "humaneval", {"base_pass": "pass@1"}),
        ("mbpp_plus", "mbpp", {"base_pass": "pass@1", "plus_pass": "plus_pass@1"}),
    ],
)
def test_recorded_programs_get_their_verdicts(
    name: str, folder: str, figures: dict[str, str], data_dir: Path, tmp_path: Path, keju: Keju
) -> None:
    """A part of the recorded rows; `keju verify` grades all of them."""
    recorded = data_dir / "recorded" / folder
    golden = json.loads((recorded / "qwen2.5-coder-1.5b-base_golden.json").read_text())
    file = recorded / "qwen2.5-coder-1.5b-base_predictions.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()][:40]
    replies = tmp_path / "replies.jsonl"
    replies.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ("--datasets", name, "--predictions", str(replies), "--data-dir", str(data_dir))
    ran = keju("score", *flags, "--reader", "evalplus", "--json")
    (entry,) = ran.json["benchmarks"]
    for key, metric in figures.items():
        expected = sum(row["task_id"] in golden[key] for row in rows)
        assert entry["metrics"][metric]["value"] == pytest.approx(expected / len(rows))


@needs_sandbox
def test_ctrl_c_keeps_the_verdicts_and_the_same_command_goes_on(exam: Path, tmp_path: Path) -> None:
    journal = tmp_path / "runs" / "r" / VERDICTS
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        flags = eval_flags(endpoint, exam, "--jobs", "1")
        command = [sys.executable, "-c", "from keju.cli import main; import sys; sys.exit(main())"]
        process = subprocess.Popen(
            [*command, *flags], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and not (journal.is_file() and journal.read_bytes()):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        kept = len(list(Records(journal.parent, VERDICTS)))
        assert 0 < kept < len(QUESTIONS)
        resumed = subprocess.run([*command, *flags, "--resume"], cwd=tmp_path, capture_output=True)
        assert resumed.returncode == 0, resumed.stderr
    (entry,) = json.loads(resumed.stdout)["benchmarks"]
    assert (entry["outcomes"]["correct"], entry["outcomes"]["incorrect"]) == (1, 2)
    hashes = [record.hash for record in Records(journal.parent, VERDICTS)]
    assert len(hashes) == len(set(hashes)) == len(QUESTIONS)
