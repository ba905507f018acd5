"""The steps of the action, as ``action.yml`` has them, in an empty folder and without GitHub."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.action.github import REPOSITORY, TOKEN, GitHub
from tests.cli.test_sweep import SERVER, act, questions
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan

FOLDER = Path(__file__).parents[2] / "action"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text("utf-8"))
KEY = "sk-the-key-of-the-endpoint-42"
EXPRESSION = re.compile(r"\$\{\{ ([\w.-]+) \}\}")
QUESTIONS = 40


class Job(NamedTuple):
    """What a job left behind."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str


class Runner:
    """Runs the steps of the action as a runner of GitHub does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        program = folder / "bin" / "keju"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m keju "$@"\n')
        program.chmod(0o755)
        python = program.with_name("python")
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)

    def run(
        self,
        github: GitHub | None,
        event: dict[str, Any] | None = None,
        event_name: str = "pull_request",
        **inputs: str,
    ) -> Job:
        """Run all steps but the installation; ``api_key`` sets the input ``api-key``."""
        given = {name: str(row.get("default", "")) for name, row in ACTION["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        given["github-token"] = inputs.get("github_token", TOKEN)
        files = {name: self.folder / name for name in ("output", "summary", "event.json")}
        files["output"].write_text("")
        files["summary"].write_text("")
        files["event.json"].write_text(json.dumps(pull() if event is None else event))
        environ = {
            "PATH": os.pathsep.join((str(self.folder / "bin"), os.environ["PATH"])),
            "HOME": str(self.folder),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "PYTHONDONTWRITEBYTECODE": "1",
            "RUNNER_TEMP": str(self.folder / "temp"),
            "GITHUB_ACTION_PATH": str(FOLDER),
            "GITHUB_API_URL": github.url if github else "http://127.0.0.1:9",
            "GITHUB_EVENT_NAME": event_name,
            "GITHUB_EVENT_PATH": str(files["event.json"]),
            "GITHUB_OUTPUT": str(files["output"]),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_RUN_ID": "77",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_SHA": "0" * 40,
            "GITHUB_STEP_SUMMARY": str(files["summary"]),
            "CHECK_RETRY_SECONDS": "0",
        }
        log, code, outputs = "", 0, dict[str, str]()
        for step in ACTION["runs"]["steps"]:
            if "run" not in step or step["name"] == "install":
                continue
            if step["name"] == "comment" and not outputs.get("verdict"):
                continue
            values = {name: _fill(str(text), given, outputs) for name, text in step["env"].items()}
            ran = subprocess.run(
                ["bash", "-e", "-c", step["run"]],
                env=environ | values,
                cwd=self.work,
                capture_output=True,
                text=True,
                check=False,
            )
            log += ran.stdout + ran.stderr
            outputs = dict(line.split("=", 1) for line in files["output"].read_text().splitlines())
            code = ran.returncode
            if code:
                break
        return Job(code, log, outputs, files["summary"].read_text("utf-8"))


def _fill(text: str, inputs: dict[str, str], outputs: dict[str, str]) -> str:
    """A text of ``action.yml`` with the inputs and the outputs of its steps."""
    known = {f"inputs.{name}": value for name, value in inputs.items()}
    known |= {f"steps.evaluate.outputs.{name}": value for name, value in outputs.items()}
    return EXPRESSION.sub(lambda match: known[match[1]], text)


def pull(repository: str = REPOSITORY) -> dict[str, Any]:
    """The event of a pull request from a repository."""
    head = {"repo": {"full_name": repository}, "sha": "1" * 40}
    return {"pull_request": {"number": 7, "head": head}}


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub() as running:
        yield running


def write_quiz(runner: Runner) -> None:
    rows = [f'"Is question {n} easy?",yes,no,A' for n in range(QUESTIONS)]
    (runner.work / "quiz.csv").write_text("question,A,B,answer\n" + "\n".join(rows) + "\n")


def commands(url: str) -> str:
    return (
        f"eval --model m --api-url {url} --datasets ./quiz.csv --run-id pr --quiet\n"
        "gate pr --at-least 0.5"
    )


def files_of(job: Job) -> dict[str, str]:
    folder = Path(job.outputs["folder"])
    return {file.name: file.read_text("utf-8") for file in folder.iterdir()}


@pytest.mark.parametrize(
    ("right", "verdict", "code"),
    [(QUESTIONS, "pass", 0), (0, "fail", 1), (QUESTIONS // 2, "inconclusive", 3)],
)
def test_a_gate_sets_the_check_and_posts_one_comment(
    runner: Runner, github: GitHub, right: int, verdict: str, code: int
) -> None:
    def answer(request: EndpointRequest) -> str:
        found = re.search(r"question (\d+) easy", request.text)
        return "ANSWER: A" if found and int(found[1]) < right else "ANSWER: B"

    write_quiz(runner)
    with FaultyEndpoint(Plan(answers=answer, key=KEY)) as served:
        job = runner.run(github, command=commands(served.url), api_key=KEY)
    assert (job.outputs["verdict"], job.code) == (verdict, code), job.log
    (comment,) = github.comments
    assert f"## Keju: {verdict}" in comment["body"]
    assert f"### Keju gate: {verdict}" in comment["body"]
    assert "/someone/server/actions/runs/77" in comment["body"]
    assert f"## Keju: {verdict}" in job.summary
    assert {"gate-2.md", "gate-2.xml", "report-1.html", "comment.md"} <= files_of(job).keys()
    for text in (job.log, job.summary, comment["body"], *files_of(job).values()):
        assert KEY not in text
        assert TOKEN not in text


def test_an_mcp_run_says_which_tool_earns_its_tokens(runner: Runner, github: GitHub) -> None:
    (runner.work / "exam").mkdir()
    lines = [json.dumps(row) for row in questions()]
    (runner.work / "exam" / "questions.jsonl").write_text("\n".join(lines) + "\n")
    server = SERVER | {"tools": {"allow": ["lookup", "ping", "save"]}}
    with FaultyEndpoint(Plan(answers=act)) as served:
        settings = {"model": "m", "api_url": served.url, "datasets": ["./exam"]}
        sweep = settings | {"arms": "each tool left out", "servers": [server]}
        (runner.work / "tools.json").write_text(json.dumps(sweep))
        job = runner.run(github, command="keju run -c tools.json --run-id pr", api_key=KEY)
    assert (job.code, job.outputs["verdict"]) == (0, "pass"), job.log
    (comment,) = github.comments
    assert re.search(r"\*\*`lookup` earns its \d+ tokens: -40.0 points without it", comment["body"])
    assert re.search(r"^\| ping \| \+0.0 \|.*\| nothing lost without it \|$", comment["body"], re.M)
    assert "| exam · without-lookup | 40.0 % |" in comment["body"]


def test_an_endpoint_that_is_down_is_no_failed_gate(runner: Runner, github: GitHub) -> None:
    write_quiz(runner)
    lines = commands("http://127.0.0.1:9/v1").splitlines()
    job = runner.run(github, command="\n".join([lines[0], lines[1]]), api_key=KEY)
    assert (job.outputs["verdict"], job.code) == ("endpoint", 5), job.log
    assert "the endpoint did not answer" in job.log
    assert "gate" not in "".join(files_of(job))  # the second command did not run
    assert "## Keju: endpoint" in github.comments[0]["body"]


def test_a_fork_without_secrets_is_not_asked_about(runner: Runner) -> None:
    write_quiz(runner)
    fork = pull("fork/server")
    with (
        FaultyEndpoint(Plan(answers=lambda _: "ANSWER: A")) as served,
        GitHub(writable=False) as github,
    ):
        job = runner.run(github, fork, command=commands(served.url))
        strict = runner.run(github, fork, command=commands(served.url), without_key="fail")
        assert served.stats.requests == 0
    assert (job.code, job.outputs["verdict"]) == (0, "skipped")
    assert "forks have no secrets" in job.summary
    assert "no comment could be posted: GitHub answered 403 (forks have a token" in job.log
    assert strict.code == 1


def test_code_of_a_fork_never_runs_with_the_key(runner: Runner, github: GitHub) -> None:
    write_quiz(runner)
    fork = pull("fork/server")
    with FaultyEndpoint(Plan(answers=lambda _: "ANSWER: A")) as served:
        how = {"command": commands(served.url), "api_key": KEY}
        job = runner.run(github, fork, "pull_request_target", **how)
        assert served.stats.requests == 0
    assert (job.code, job.outputs["verdict"]) == (2, "error")
    assert "use pull\\_request" in job.summary


@pytest.mark.parametrize("fork_commit", ["base", "fork"])
def test_a_fork_in_a_subfolder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fork_commit: str
) -> None:
    """The root holds the base; only another commit below it is a reason to refuse."""
    monkeypatch.syspath_prepend(FOLDER)
    script = importlib.import_module("run_keju")
    (tmp_path / "pr" / ".git").mkdir(parents=True)
    (tmp_path / "event.json").write_text(json.dumps(pull("fork/server")))
    monkeypatch.chdir(tmp_path)
    commits = {tmp_path: "base", tmp_path / "pr": fork_commit}
    monkeypatch.setattr(script, "commit_of", commits.__getitem__)
    environ = {
        "GITHUB_EVENT_NAME": "pull_request_target",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_SHA": "base",
    }
    assert bool(script.refuse_foreign_code(environ, True)) == (fork_commit == "fork")
    assert script.refuse_foreign_code(environ, False) == ""


def comment(runner: Runner, github: GitHub | None, text: str = "text", **more: str) -> str:
    """Run only the script that posts the comment; return its output."""
    (runner.folder / "comment.md").write_text(text)
    (runner.folder / "event.json").write_text(json.dumps(pull()))
    environ = {
        "GITHUB_API_URL": github.url if github else "http://127.0.0.1:9",
        "GITHUB_EVENT_PATH": str(runner.folder / "event.json"),
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_TOKEN": TOKEN,
        "CHECK_FOLDER": str(runner.folder),
        "CHECK_RETRY_SECONDS": "0",
    }
    script = [sys.executable, str(FOLDER / "comment.py")]
    ran = subprocess.run(script, env=environ | more, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert TOKEN not in ran.stdout + ran.stderr
    return ran.stdout


def test_the_comment_is_updated_and_no_other_one_is(runner: Runner, github: GitHub) -> None:
    for number in range(130):
        github.add(f"comment {number}", kind="User")
    assert "comment posted" in comment(runner, github, "first")
    assert "comment updated" in comment(runner, github, "second")
    assert len(github.comments) == 131
    assert "second" in github.comments[-1]["body"]
    assert "first" not in github.comments[-1]["body"]
    assert "comment posted" in comment(runner, github, "other", CHECK_TITLE="Another test")
    # Somebody who copies the marker does not get the result.
    github.comments[130]["user"]["type"] = "User"
    assert "comment posted" in comment(runner, github, "third")
    assert "second" in github.comments[130]["body"]


def test_faults_of_github_do_not_decide(runner: Runner, github: GitHub) -> None:
    github.faults = [502, 500]
    assert "comment posted" in comment(runner, github)
    assert github.methods == ["GET", "GET", "GET", "POST"]
    github.faults = [500] * 3
    assert "no comment could be posted: GitHub answered 500" in comment(runner, github)
    assert "GitHub did not answer" in comment(runner, None)
    assert "there is no token" in comment(runner, github, GITHUB_TOKEN="")
    assert len(github.comments) == 1
    assert "comment updated" in comment(runner, github, "line\n" * 30_000)
    assert len(github.comments[0]["body"]) < 65_536


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("", "is empty"),
        ("view", "does not begin with one of"),
        ("run -c 'x", "No closing quotation"),
    ],
)
def test_a_command_that_means_nothing_is_one_line(
    runner: Runner, github: GitHub, command: str, line: str
) -> None:
    job = runner.run(github, command=command, api_key=KEY)
    assert (job.code, job.outputs["verdict"]) == (2, "error")
    assert line in job.summary


def test_texts_cannot_break_the_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    import comment_text

    hostile = "a|b\n<img src=x> @someone `c` [x](http://y) #1"
    entry = {"name": hostile, "headline": "accuracy", "outcomes": {"correct": 1}, "n": 1}
    entry |= {"metrics": {"accuracy": {"value": 1.0, "ci95": [0.5, 1.0]}}}
    text = comment_text.describe({"benchmarks": [entry]}, "<b>problem</b>")
    (row,) = (line for line in text.splitlines() if "100.0 %" in line)
    assert len(re.findall(r"(?<!\\)\|", row)) == 8
    assert "<" not in text.replace("&lt;", "")
    assert "@someone" not in text
    assert "\\[x\\](http" in row
