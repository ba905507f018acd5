"""The edge of the command line: help, versions, exit codes, broken pipes, internal errors."""

from __future__ import annotations

import importlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from keju import __version__
from keju.cli import COMMANDS, common, main
from keju.cli.command import COMMANDS as DECLARED
from keju.errors import Interrupted, RunIncomplete
from keju.messages.wrapping import cells
from tests.cli.conftest import Keju
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

pytestmark = pytest.mark.slow

HEAVY = "{'typer', 'rich', 'pydantic', 'yaml', 'msgspec', 'pyreqwest'}"


def python(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run Python as a user would, without the settings of whoever runs the tests."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KEJU_", "OPENAI_"))}
    return subprocess.run([sys.executable, *argv], capture_output=True, text=True, env=clean)


def test_help_names_every_command_and_imports_nothing_heavy() -> None:
    code = f"import sys; from keju.cli import main; main(['--help-all']); assert not {HEAVY} & set(sys.modules)"
    ran = python("-c", code)
    assert ran.returncode == 0, ran.stderr
    for command in COMMANDS:
        assert re.search(
            rf"^  {command.name} +{re.escape(command.help)}$", ran.stdout, re.MULTILINE
        )


def test_version_and_module(keju: Keju) -> None:
    assert keju("--version").out == f"keju {__version__}\n"
    ran = python("-m", "keju", "--version")
    assert (ran.returncode, ran.stdout) == (0, f"keju {__version__}\n")


def test_alone_it_says_what_it_is_and_what_to_try(keju: Keju) -> None:
    ran = keju()
    assert (ran.code, ran.err) == (0, "")
    assert "examines language models" in ran.out
    steps = [line.strip() for line in ran.out.splitlines() if line.startswith("  keju ")]
    assert len(steps) == 3
    assert keju(*shlex.split(steps[0])[1:], "--limit", "2").code == 0
    assert keju(*shlex.split(steps[2])[1:]).code == 0


def test_eval_alone_says_what_it_needs(keju: Keju) -> None:
    ran = keju("eval")
    assert (ran.code, ran.out) == (2, "")
    *_, last_line = ran.err.splitlines()
    assert last_line.startswith("keju: error: 'model' is required")
    steps = [line.strip() for line in ran.err.splitlines() if line.startswith("  keju eval ")]
    assert len(steps) == 3
    assert keju(*shlex.split(steps[0])[1:], "--limit", "2").code == 0
    assert "keju eval --model" not in keju("eval", "--limit", "3").err


def all_commands() -> list[tuple[str, ...]]:
    """The words of every command, those of groups included."""
    for entry in COMMANDS:
        importlib.import_module(entry.module)
    return [tuple(name.split()) for name in DECLARED]


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_help_of_each_command_teaches_by_example(words: tuple[str, ...], keju: Keju) -> None:
    ran = keju(*words, "--help")
    assert ran.code == 0
    assert ran.err == ""
    examples = ran.out.partition("Examples:")[2]
    assert f"keju {words[0]}" in examples
    assert "--json" in ran.out


@pytest.mark.parametrize("group", ["data", "model", "init"])
def test_help_of_a_group_has_an_example_of_each_command(group: str, keju: Keju) -> None:
    examples = keju(group, "--help").out.partition("Examples:")[2].splitlines()
    words = [words for words in all_commands() if words[0] == group]
    assert [tuple(line.split()[1:3]) for line in examples if line] == words


@pytest.mark.parametrize("words", ["eval", "data", "data pull"])
def test_help_of_a_command_imports_nothing_heavy(words: str) -> None:
    code = (
        "import sys; from keju.cli import main; main([*sys.argv[1].split(), '--help']);"
        f"assert not {HEAVY} & set(sys.modules)"
    )
    ran = python("-c", code, words)
    assert ran.returncode == 0, ran.stderr
    assert f"Usage: keju {words}" in ran.stdout


def test_help_is_as_wide_as_the_terminal(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (70, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = keju("eval", "--help-all").out.partition("Examples:")[0].splitlines()
        assert max(map(len, lines)) == width


def test_help_needs_no_unicode() -> None:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KEJU_", "OPENAI_"))}
    command = [sys.executable, "-m", "keju", "list", "--help"]
    ran = subprocess.run(command, capture_output=True, env=clean | {"PYTHONIOENCODING": "ascii"})
    assert ran.returncode == 0
    assert b"| --benchmark NAME  " in ran.stdout


def test_no_command_has_too_many_flags(keju: Keju) -> None:
    for words in all_commands():
        options = re.findall(r"^│ +--[a-z]", keju(*words, "--help").out, re.MULTILINE)
        assert len(options) <= 70, words


def test_wrong_option_in_a_process_of_its_own_is_one_line() -> None:
    ran = python("-m", "keju", "eval", "--limti", "3")
    assert ran.returncode == 2
    assert ran.stderr == (
        "keju: error: unknown option --limti (did you mean '--limit'?); see 'keju eval --help'\n"
    )


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = (
        f"{sys.executable} -m keju eval --help | head -n 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    )
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert ran.stdout.strip() in ("0", str(common.BROKEN_PIPE))


def test_broken_pipe_is_quiet(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keju.cli.help.overview", _raise(BrokenPipeError()))
    ran = keju("--help")
    assert (ran.code, ran.err) == (common.BROKEN_PIPE, "")


@pytest.mark.parametrize(
    ("error", "code"),
    [(Interrupted("stopped"), 130), (RunIncomplete("half"), 4), (KeyboardInterrupt(), 130)],
)
def test_exit_codes_of_the_contract(
    error: BaseException, code: int, keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keju.cli.help.overview", _raise(error))
    ran = keju("--help")
    assert ran.code == code
    assert len(ran.err.splitlines()) == 1


def test_an_interrupt_inside_a_command_is_said(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keju.config.load.load", _raise(KeyboardInterrupt()))
    ran = keju("eval", "--model", "x")
    assert (ran.code, ran.out, ran.err) == (130, "", "keju: interrupted\n")


def test_an_interrupt_while_the_endpoint_is_silent_is_said() -> None:
    with FaultyEndpoint(Plan(faults={"stall": 1.0})) as endpoint:
        words = ["eval", "-m", "x", "--api-url", endpoint.url, "--datasets", "demo", "-q"]
        running = subprocess.Popen(
            [sys.executable, "-m", "keju", *words], stderr=subprocess.PIPE, text=True
        )
        while not endpoint.stats.in_flight and running.poll() is None:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    message, command = err.splitlines()
    assert message == "keju: interrupted before the first question; resume with:"
    assert command.startswith("  keju eval --config runs/")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["--help"], ["eval", "--help"], ["list", "benchmarks"]])
def test_a_full_disk_is_one_line(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "keju", *words], stdout=full, stderr=subprocess.PIPE, text=True
        )
        assert ran.returncode == 2
        assert ran.stderr == "keju: error: cannot write the output: No space left on device\n"
        mute = subprocess.run([sys.executable, "-m", "keju", *words], stdout=full, stderr=full)
        assert mute.returncode == 2


def test_credentials_of_a_url_are_in_no_internal_error(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://user:marked-1@h/v1?key=marked-2"
    monkeypatch.setattr("keju.config.load.load", _raise(RuntimeError(f"broken at {url}")))
    ran = keju("eval", "--model", "x", f"--api-url={url}")
    assert ran.code == 70
    assert "broken at http://h/v1;" in ran.err
    details = Path(ran.err.split()[-1])
    assert "marked" not in ran.err + details.read_text()
    details.unlink()


def test_internal_error_is_one_line_with_the_details_in_a_file(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-marked-secret"
    monkeypatch.setattr("keju.config.load.load", _raise(RuntimeError(f"broken with {secret}")))
    ran = keju("eval", "--model", "x", "--api-key", secret)
    assert ran.code == 70
    line = re.fullmatch(
        r"keju: error: internal error: RuntimeError: broken with \*\*\*; details in (\S+)\n",
        ran.err,
    )
    assert line is not None
    details = Path(line[1])
    assert "Traceback" in details.read_text()
    assert secret not in details.read_text()
    details.unlink()


@pytest.mark.parametrize("variable", ["KEJU_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"])
def test_no_key_of_the_environment_is_in_an_internal_error(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "sk-marked-secret")
    monkeypatch.setattr("keju.config.load.load", _raise(RuntimeError("with sk-marked-secret")))
    ran = keju("eval", "--model", "x")
    details = Path(ran.err.split()[-1])
    assert "marked" not in ran.err + details.read_text()
    details.unlink()


def test_debug_shows_the_traceback(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEJU_DEBUG", "1")
    ran = keju("evl")
    assert ran.code == 2
    assert "Traceback" in ran.err
    assert ran.err.endswith("(did you mean 'eval'?); see 'keju --help'\n")


def test_process_ends_at_once_after_the_http_client_was_used() -> None:
    code = (
        "import atexit, sys, types; atexit.register(print, 'shutdown');"
        "sys.modules['pyreqwest'] = types.ModuleType('pyreqwest'); sys.argv = ['keju', '--version'];"
        "from keju.cli import main; main()"
    )
    ran = python("-c", code)
    assert (ran.returncode, ran.stdout) == (0, f"keju {__version__}\n")


def test_main_takes_arguments_and_returns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out


def _raise(error: BaseException) -> object:
    def raising(*_: object, **__: object) -> NoReturn:
        raise error

    return raising


def test_a_refusal_is_one_document_under_json(keju: Keju) -> None:
    closed = ("eval", "-m", "m", "--api-url", "http://127.0.0.1:9/v1", "--datasets", "demo")
    for argv, code, name in (
        (("eval", "--json"), 2, "config_missing"),
        (("nonsense", "--json"), 2, "cli_unknown_command"),
        (("score", "absent", "--json"), 2, "run_none"),
        (("list", "runs", "--lim", "--json"), 2, "cli_unknown_option"),
        ((*closed, "--attempts", "1", "--json"), 5, "endpoint_unreachable"),
    ):
        ran = keju(*argv)
        assert ran.code == code, argv
        error = ran.json["error"]
        assert (error["code"], error["exit_code"]) == (name, code), argv
        assert ran.err.endswith(f"keju: error: {error['message']}\n")


def test_what_was_not_asked_for_as_json_leaves_stdout_empty(keju: Keju) -> None:
    assert keju("score", "absent").out == ""
    assert keju("score", "--", "--json").out == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_errors_are_broken_between_words_on_a_terminal(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("eval", "-m", "nonsense", "--datasets", "demo")
    full_error = keju(*words).err
    assert full_error.count("\n") == 1
    monkeypatch.setenv("COLUMNS", "60")
    for language in ("en", "zh"):
        screen = Terminal()
        monkeypatch.setattr("sys.stderr", screen)
        assert keju(*words, "--language", language).code == 2
        assert all(cells(line) <= 60 for line in screen.getvalue().splitlines())
        if language == "en":
            assert screen.getvalue().split() == full_error.split()


def test_the_command_that_resumes_a_run_can_be_pasted_from_a_terminal(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    demo = ("-m", "scripted", "--datasets", "demo", "--work-dir", "my runs of this week")
    ran = keju("eval", *demo, "--run-id", "one", "--budget", "requests=3", "-q", "--no-report")
    assert ran.code == 4
    command_text = screen.getvalue().partition("resume with:\n")[2].replace("\\\n", " ")
    assert shlex.split(command_text)[:2] == ["keju", "eval"]
    assert all(len(line) <= 60 for line in screen.getvalue().splitlines())


@pytest.mark.parametrize("tag", ["zh", "zh-CN", "zh_CN", "zh_CN.UTF-8", "zh-Hans"])
def test_a_tag_of_a_language_is_its_language(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, tag: str
) -> None:
    words = ("eval", "-m", "scripted", "--datasets", "demo", "--limit", "1", "-q")
    for ran in (
        keju(*words, "--language", tag),
        keju(*words, f"--language={tag}"),
        keju("--language", tag, *words),
    ):
        assert (ran.code, "接下来可以" in ran.out) == (0, True), ran
    monkeypatch.setenv("KEJU_LANGUAGE", tag)
    assert "接下来可以" in keju(*words).out
    assert "next:" in keju(*words, "--language", "en-US").out
    assert "“fr”" in keju(*words, "--language", "fr").err
