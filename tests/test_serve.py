"""Servers that Keju starts: llama.cpp's own, and stand-ins that die when they are told to."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from keju.config import TaskConfig
from keju.config.serving import redact_command
from keju.errors import ConfigError
from keju.runs.journal import FILE
from tests.cli.conftest import Keju, keju
from tests.support.local_model import real_weights

pytestmark = pytest.mark.slow

__all__ = ["keju"]
ROOT = Path(__file__).parent.parent
KEY = "sk-of-the-server"
FAKE = "-m tests.support.endpoint --port {port} --text A"


@pytest.fixture
def mark() -> Iterator[str]:
    """A word in the command lines of all processes of a test; nothing of them may be left."""
    word = f"mark-{uuid4().hex}"
    yield word
    until(lambda: not processes(word))


def processes(*named: str) -> list[int]:
    """The processes with these words in their command line, but for Keju's own."""
    wanted = {word.encode() for word in named}
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if wanted <= {*words} and b"--serve" not in words:
                found.append(int(place.name))
    return found


def until(condition: Callable[[], Any], child: subprocess.Popen[str] | None = None) -> None:
    """Wait for something, as long as a child runs."""
    end = time.monotonic() + 90
    while not condition():
        assert child is None or child.poll() is None, child.communicate()
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def python(words: str, mark: str) -> str:
    """A command that starts another process, which nobody ends, and becomes a Python program."""
    own, other = shlex.quote(sys.executable), f"-c 'import time; time.sleep(600)' {mark}"
    line = f"cd {shlex.quote(str(ROOT))}; setsid {own} {other} & exec {own} {words} # {mark}"
    return f"bash -c {shlex.quote(line)}"


def llama(mark: str) -> str:
    model = shlex.quote(str(real_weights()))
    words = f"-m tests.support.llama_server --model {model} --alias {mark} --threads 1 --slots 1"
    return python(f"{words} --key ${{SERVER_KEY}} --context 1024 --port {{port}}", mark)


def arguments(command: str, folder: Path, *more: str, size: int = 6) -> list[str]:
    exam = {"demo": {"size": size, "subset_list": ["boolean_expressions"]}}
    return [
        *("eval", "-m", "m", "--serve", command, "--datasets", "demo"),
        *("-s", "generation_config.max_tokens=2"),
        *("--dataset-args", json.dumps(exam), "--work-dir", str(folder), "--run-id", "r"),
        *("--json", "--eval-batch-size", "2", "--retry-interval", "0.1", *more),
    ]


def begin(command: str, folder: Path, *more: str, size: int = 6) -> subprocess.Popen[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KEJU_", "OPENAI_"))}
    clean |= {"SERVER_KEY": KEY, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    words = [sys.executable, "-m", "keju", *arguments(command, folder, *more, size=size)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, env=clean, text=True, cwd=ROOT, **pipes)  # type: ignore[call-overload, no-any-return]


def answers(folder: Path) -> int:
    journal = folder / "r" / FILE
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def manifest(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "r" / "manifest.json").read_text())
    return document


def servers(folder: Path) -> list[int]:
    """The process of the server of a run, by the port in its command line."""
    address = manifest(folder)["endpoint"]["endpoint"]
    return processes(address.rpartition(":")[2].partition("/")[0], "--port")


def test_llamas_server_dies_is_started_again_and_ends_with_ctrl_c(
    tmp_path: Path, mark: str
) -> None:
    command = llama(mark)
    child = begin(command, tmp_path, size=60)
    until(lambda: answers(tmp_path) >= 1, child)
    os.kill(servers(tmp_path)[0], signal.SIGKILL)
    known = answers(tmp_path)
    until(lambda: answers(tmp_path) > known, child)
    assert len(processes(mark)) >= 2
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=90)
    assert child.returncode == 130, err
    assert "started once more" in err
    assert answers(tmp_path) < 60
    stored = manifest(tmp_path)
    assert stored["config"]["serve"] == command
    told = {"command": command, "starts": 2, "log": "server.log"}
    assert stored["sessions"][-1]["server"] == told
    assert KEY not in json.dumps(stored)
    assert "api_url" not in stored["config"]


def test_nothing_of_llamas_server_is_left_by_a_kill(tmp_path: Path, mark: str) -> None:
    child = begin(llama(mark), tmp_path, size=60)
    until(lambda: answers(tmp_path) >= 1, child)
    assert len(processes(mark)) >= 2
    child.kill()
    child.communicate(timeout=60)
    until(lambda: not processes(mark))


def test_ctrl_c_while_the_server_starts(tmp_path: Path, mark: str) -> None:
    child = begin(python(f"-c 'import time; time.sleep(600)' {mark} {{port}}", mark), tmp_path)
    until(lambda: processes(mark), child)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode == 130


def test_one_that_dies_twice_ends_the_run_which_can_be_resumed(tmp_path: Path, mark: str) -> None:
    command = python(f"{FAKE} --latency 0.1", mark)
    child = begin(command, tmp_path, size=30)
    until(lambda: answers(tmp_path) >= 2, child)
    first = servers(tmp_path)
    os.kill(first[0], signal.SIGKILL)
    until(lambda: servers(tmp_path) not in ([], first), child)
    known = answers(tmp_path)
    until(lambda: answers(tmp_path) > known + 2, child)
    os.kill(servers(tmp_path)[0], signal.SIGKILL)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 4, err
    assert "a second time" in err
    assert "--resume" in err
    again = begin(command, tmp_path, "--resume", size=30)
    out, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    (entry,) = json.loads(out)["benchmarks"]
    assert (entry["n"], entry["outcomes"]["error"]) == (30, 0)
    starts = [session["server"]["starts"] for session in manifest(tmp_path)["sessions"]]
    assert starts == [2, 1]


@pytest.mark.parametrize("more", [(), ("-q",)], ids=["shown", "quiet"])
def test_one_that_ends_before_it_answers_shows_its_last_words(
    more: tuple[str, ...], tmp_path: Path, mark: str
) -> None:
    words = "import os, sys; print('no GPU for', os.environ['SERVER_KEY'], sys.argv); sys.exit(7)"
    child = begin(python(f'-c "{words}" {mark} {{port}} ${{SERVER_KEY}}', mark), tmp_path, *more)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 5
    assert "no GPU for [redacted]" in err
    assert "exit code 7" in err
    assert ("starting the server" in err) == (not more)
    assert KEY not in err
    assert not (tmp_path / "r").exists()


def test_one_that_never_answers(tmp_path: Path, mark: str) -> None:
    command = python(f"-c 'import time; time.sleep(600)' {mark} {{port}}", mark)
    child = begin(command, tmp_path, "--give-up-after", "1")
    _, err = child.communicate(timeout=60)
    assert (child.returncode, "did not answer within 1 s" in err) == (5, True)


def test_what_is_refused(keju: Keju) -> None:
    def refused(*words: str, command: str = "true --port {port}", model: str = "m") -> str:
        ran = keju("eval", "-m", model, "--datasets", "demo", "--serve", command, *words)
        assert (ran.code, ran.out) == (2, "")
        return ran.err

    assert "api_url and serve" in refused("--api-url", "http://127.0.0.1:9/v1")
    two = ("--api-url", "http://127.0.0.1:9/v1", "--api-url", "http://127.0.0.1:10/v1")
    assert "api_url and serve" in refused(*two)
    assert "{port}" in refused(command="vllm serve m")
    assert "quote" in refused(command="vllm serve 'm --port {port}")
    assert "'no-such-server' is not found" in refused(command="no-such-server --port {port}")
    assert "NO_SUCH_KEY" in refused(command="true --api-key ${NO_SUCH_KEY} --port {port}")
    assert "no effect" in refused(model="scripted")
    assert "judge.api_url" in refused("--judge", "model=j")
    assert "executor ray" in refused("--executor", "ray")
    assert "without its key" in refused(command="true --api-key '***' --port {port}")
    Path("plan.yaml").write_text(
        "models:\n- {model: a, serve: 'true {port}'}\n- scripted\ndatasets: [demo]\n"
    )
    plan = keju("eval", "-c", "plan.yaml")
    assert (plan.code, "serve is for one run" in plan.err) == (2, True)
    dry = keju(
        *("eval", "-m", "m", "--datasets", "demo", "--dry-run", "--json"),
        *("--serve", "true --api-key sk-1234567 --port {port}"),
    )
    assert dry.json["serve"] == "true --api-key '***' --port '{port}'"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("vllm serve m --port {port}", "vllm serve m --port {port}"),
        ("s --tokenizer t --max-tokens 5 {port}", "s --tokenizer t --max-tokens 5 {port}"),
        ("s --api-key=sk-1 {port}", "s '--api-key=***' '{port}'"),
        ("env HF_TOKEN=hf_1 s {port}", "env 'HF_TOKEN=***' s '{port}'"),
        ("s --hf-token ${HF} {port}", "s --hf-token ${HF} {port}"),
        ("s --key --port {port}", "s --key --port {port}"),
    ],
)
def test_keys_in_a_command_are_not_stored(command: str, shown: str) -> None:
    assert redact_command(command) == shown


def test_a_command_is_checked_in_python_too() -> None:
    with pytest.raises(ConfigError, match="port"):
        TaskConfig(model="m", datasets=["demo"], serve="vllm serve m")
