"""``keju`` as a process: closed streams, signals at any moment, a disk that is full."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.endpoint import FaultyEndpoint
from tests.support.processes import environment, wait_for_records
from tests.support.replies import Plan

pytestmark = pytest.mark.slow

KEJU = (sys.executable, "-m", "keju")
RUN = ("--work-dir", "runs", "--run-id", "r", "--json", "--quiet")
SCRIPTED = ("eval", "--model", "scripted", "--datasets", "demo", "--limit", "2", *RUN)
STREAMS = ("stdout", "stderr")
RESUME = "keju eval --config runs/r/manifest.json --resume"


def shell(folder: Path, line: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell, ``"$@"`` being Keju with these words."""
    return subprocess.run(
        ["bash", "-c", line, "bash", *KEJU, *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_run_needs_no_standard_streams(closed: str, tmp_path: Path) -> None:
    ran = shell(tmp_path, f'"$@" {closed}', *SCRIPTED)
    assert (ran.returncode, ran.stderr) == (0, "")
    results = json.loads((tmp_path / "runs" / "r" / "results.json").read_text())
    if ">&-" not in closed.replace("2>&-", ""):
        assert json.loads(ran.stdout)["benchmarks"] == results["benchmarks"]
    lines = (tmp_path / "runs" / "r" / "records.jsonl").read_text().splitlines()
    assert len(lines) == results["benchmarks"][0]["n"]
    assert all(json.loads(line)["bench"] == "demo" for line in lines)


@pytest.mark.parametrize("closed", ["stderr", "stdout", "stdout stderr"])
def test_a_run_whose_output_nobody_reads_any_more_is_finished(closed: str, tmp_path: Path) -> None:
    """As ``keju eval ... 2>&1 | head -3`` leaves it: work and files first, then the broken pipe."""
    words = ("eval", "--model", "scripted", "--datasets", "demo", *RUN[:4])

    def run(*flags: str) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        streams = {name: writer if name in closed else subprocess.DEVNULL for name in STREAMS}
        command, variables = [*KEJU, *words, *flags], environment()
        ran = subprocess.run(command, cwd=tmp_path, env=variables, timeout=120, **streams)  # type: ignore[call-overload]
        os.close(writer)
        assert ran.returncode == 141

    folder = tmp_path / "runs" / "r"
    run("--limit", "2")
    assert json.loads((folder / "results.json").read_text())["complete"]
    assert (folder / "report.html").is_file()
    run("--limit", "3", "--resume")  # the last one counts
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert json.loads((folder / "results.json").read_text())["benchmarks"][0]["n"] == len(lines)


@pytest.mark.parametrize("words", [("list", "benchmarks"), ("evl",)])
def test_other_commands_need_none_either(words: tuple[str, ...], tmp_path: Path) -> None:
    ran = shell(tmp_path, '"$@" >&- 2>&-', *words)
    assert (ran.returncode, ran.stderr) == (2 if words == ("evl",) else 0, "")


def start(endpoint: FaultyEndpoint, folder: Path, *prefix: str) -> subprocess.Popen[str]:
    """A run of 40 questions that lasts until it is told to stop."""
    settings = {"demo": {"size": 40, "subset_list": ["boolean_expressions"]}}
    words = ("eval", "--model", "m", "--api-url", endpoint.url, "--datasets", "demo")
    exam = ("--dataset-args", json.dumps(settings), "--eval-batch-size", "4")
    return subprocess.Popen(
        [*prefix, *KEJU, *words, *exam, *RUN],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def document(out: str) -> dict[str, Any]:
    """The one document on stdout."""
    results: dict[str, Any] = json.loads(out)
    return results


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_what_is_in_flight_finish_and_says_how_to_resume(
    number: int, tmp_path: Path
) -> None:
    journal = tmp_path / "runs" / "r" / "records.jsonl"
    with FaultyEndpoint(Plan(latency=0.3)) as endpoint:
        child = start(endpoint, tmp_path)
        wait_for_records(journal, 5, child)
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
        answered = endpoint.stats.answered - 1  # the preflight
    assert child.returncode == 130
    last_lines = ["keju: interrupted; resume with:", f"  {RESUME}"]
    assert err.splitlines()[-2:] == last_lines
    assert document(out)["complete"] is False
    assert len(journal.read_text().splitlines()) == answered


def test_a_run_under_nohup_does_not_hear_the_terminal_close(tmp_path: Path) -> None:
    journal = tmp_path / "runs" / "r" / "records.jsonl"
    with FaultyEndpoint(Plan(latency=0.05)) as endpoint:
        child = start(endpoint, tmp_path, "nohup")
        wait_for_records(journal, 5, child)
        child.send_signal(signal.SIGHUP)
        out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert document(out)["benchmarks"][0]["n"] == 40


@pytest.mark.parametrize(
    ("number", "place"),
    [
        (signal.SIGINT, "keju.config.load"),
        (signal.SIGTERM, "keju.engine.session"),
        (signal.SIGHUP, "asyncio"),
    ],
)
def test_a_signal_during_imports_is_heard_though_a_destructor_swallows_it(
    number: int, place: str, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SWALLOWED.format(place=place, number=int(number)))
    path = os.pathsep.join((str(tmp_path), environment()["PYTHONPATH"]))
    with FaultyEndpoint(Plan(latency=0.2)) as endpoint:
        words = ("eval", "--model", "m", "--api-url", endpoint.url, "--datasets", "demo", *RUN)
        ran = subprocess.run(
            [*KEJU, *words],
            cwd=tmp_path,
            env=environment() | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=60,
        )
        request_count = endpoint.stats.requests
    assert ran.returncode == 130
    assert "interrupted" in ran.stderr
    assert request_count <= 1  # the preflight at most


INTERRUPTED = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {place!r} and not hasattr(sys, "once"):
            sys.once = True
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
"""
"""Sends one Ctrl-C when a module is looked for, however early that is."""


@pytest.mark.parametrize(
    "place", ["keju.cli", "keju.cli.common", "keju.errors", "keju.messages", "keju.signals"]
)
def test_ctrl_c_before_anything_listens_is_one_line_and_one_document(
    place: str, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED.format(place=place))
    path = os.pathsep.join((str(tmp_path), environment()["PYTHONPATH"]))
    ran = subprocess.run(
        [*KEJU, "list", "benchmarks", "--json"],
        cwd=tmp_path,
        env=environment() | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 130
    assert ran.stderr == "keju: interrupted\n"
    assert document(ran.stdout)["error"]["exit_code"] == 130


def run_exam(folder: Path, endpoint: FaultyEndpoint, line: str, samples: int = 200) -> Any:
    """A run below a limit of the shell; how it ended."""
    settings = {"demo": {"size": samples, "subset_list": ["boolean_expressions"]}}
    words = ("eval", "--model", "m", "--api-url", endpoint.url, "--datasets", "demo")
    return shell(folder, line, *words, "--dataset-args", json.dumps(settings), *RUN)


@pytest.mark.parametrize("blocks", [16, 60])
def test_a_full_disk_stops_the_run_where_it_can_be_resumed(blocks: int, tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers="So the answer is (A). " * 40)) as endpoint:
        full = run_exam(tmp_path, endpoint, f'trap "" XFSZ; ulimit -f {blocks}; exec "$@"')
        assert full.returncode == 4, full.stderr
        assert "no space left for runs/r/records.jsonl" in full.stderr
        assert f"resume with:\n  {RESUME}\n" in full.stderr
        saved = len((tmp_path / "runs" / "r" / "records.jsonl").read_bytes().splitlines())
        results = document(full.stdout)
        assert results["complete"] is False
        assert results["benchmarks"][0]["n"] == saved
        resumed = run_exam(tmp_path, endpoint, '"$@"')
    assert resumed.returncode == 0
    assert document(resumed.stdout)["benchmarks"][0]["n"] == 200


def test_a_disk_that_is_full_from_the_beginning(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan()) as endpoint:
        ran = run_exam(tmp_path, endpoint, 'trap "" XFSZ; ulimit -f 0; exec "$@"', 4)
    assert ran.returncode == 4
    assert "cannot write runs/r/manifest.json: File too large" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert "resume with" not in ran.stderr  # nothing is there to be resumed


def disturbed(folder: Path, disturb: Callable[[Path], object]) -> tuple[int, str, str]:
    """A run whose folder somebody changes; how it ended."""
    run = folder / "runs" / "r"
    with FaultyEndpoint(Plan(latency=0.1)) as endpoint:
        child = start(endpoint, folder)
        wait_for_records(run / "records.jsonl", 8, child)
        disturb(run)
        out, err = child.communicate(timeout=60)
    return child.returncode, out, err


def test_a_folder_that_is_removed_stays_removed(tmp_path: Path) -> None:
    code, out, err = disturbed(tmp_path, shutil.rmtree)
    assert code == 4
    assert "runs/r/records.jsonl was removed or replaced while the run was going on" in err
    assert document(out)["complete"] is False
    assert not (tmp_path / "runs" / "r").exists()


def test_a_folder_that_is_moved_keeps_what_it_had(tmp_path: Path) -> None:
    code, _, err = disturbed(tmp_path, lambda run: run.rename(run.with_name("moved")))
    assert code == 4
    assert "was removed or replaced" in err
    assert not (tmp_path / "runs" / "r").exists()


def test_a_journal_that_somebody_cuts_is_never_complete(tmp_path: Path) -> None:
    def cut(run: Path) -> None:
        lines = (run / "records.jsonl").read_bytes().splitlines(keepends=True)
        os.truncate(run / "records.jsonl", sum(map(len, lines[:3])))

    code, out, err = disturbed(tmp_path, cut)
    assert code == 4
    assert "records.jsonl was changed by another program" in err
    assert "--resume" in err
    assert document(out)["complete"] is False
    assert not (tmp_path / "runs" / "r" / "results.json").exists()


SWALLOWED = """
import os, sys

class Swallow:
    def __del__(self):
        os.kill(os.getpid(), {number})
        for _ in range(1000): pass

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "{place}":
            sys.meta_path.remove(self)
            Swallow()

sys.unraisablehook = lambda _: None
sys.meta_path.insert(0, Finder())
"""
"""A module that is found at the start: it sends a signal from a destructor in an import."""


@pytest.mark.parametrize("library", ["ray", "pyreqwest"])
def test_the_exit_code_stands_where_a_library_aborts_an_interpreter_that_shuts_down(
    library: str, tmp_path: Path
) -> None:
    """Ray's core once did, after the run had said how it is resumed."""
    script = f"""
import atexit, os, sys, types
sys.modules["{library}"] = types.ModuleType("{library}")
atexit.register(os.abort)
from keju.cli.common import leave
print("said")
leave(130)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (130, "said\n")


@pytest.mark.parametrize(
    ("flags", "line_text"),
    [
        ((), "runs at http://127.0.0.1:"),
        (("--language", "zh-CN"), "runs：http://127.0.0.1:"),
        (("--json",), '"address": "http://127.0.0.1:'),
    ],
)
def test_a_pipe_gets_the_address_of_the_pages_while_they_are_served(
    flags: tuple[str, ...], line_text: str, tmp_path: Path
) -> None:
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    (tmp_path / "runs").mkdir()
    words = (*KEJU, "view", "runs", "--no-browser", "--port", "0", *flags)
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            line = next(line for line in process.stdout if "http" in line)
            assert process.poll() is None
        finally:
            process.send_signal(signal.SIGINT)
    assert line_text in line


def test_what_is_not_comparable_is_said_once_where_both_streams_are_read_together(
    tmp_path: Path,
) -> None:
    for run, size in (("one", 2), ("two", 3)):
        words = ("eval", "-m", "scripted", "--datasets", "demo", "-q", "--no-report")
        run_flags = ("--run-id", run, "--dataset-args", f"demo.size={size}")
        assert shell(tmp_path, '"$@"', *words, *run_flags).returncode == 0
    for line, said_on_stderr in (('"$@" 2>&1', 0), ('"$@"', 1)):
        for language, sentence in (("en", "not comparable, and"), ("zh", "不可比较，")):
            ran = shell(tmp_path, line, "compare", "one", "two", "--language", language)
            assert (ran.returncode, ran.stdout.count(sentence)) == (3, 1), ran
            assert ran.stderr.count(sentence) == said_on_stderr, ran


@pytest.mark.parametrize(
    ("flags", "names"), [(("--language", "zh"), {}), ((), {"KEJU_LANGUAGE": "zh_CN"})]
)
def test_pages_are_served_in_the_language_of_the_command(
    flags: tuple[str, ...], names: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    (tmp_path / "runs").mkdir()
    words = (*KEJU, "view", "runs", "--no-browser", "--port", "0", "--json", *flags)
    variables = environment() | names
    with subprocess.Popen(
        words, cwd=tmp_path, env=variables, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            line = next(line for line in process.stdout if "http" in line)
            address = line.split('"')[3]
            with urllib.request.urlopen(address, timeout=20) as page:
                assert b'<html lang="zh-CN">' in page.read()
        finally:
            process.send_signal(signal.SIGINT)
