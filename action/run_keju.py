"""Run Keju's commands for a pull request and write one Markdown comment about them.

Settings come from the environment (see ``action.yml``). Only Keju gets the key. The key never
appears in the log, and a file that contains it is not uploaded. This file needs only Python.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from comment_text import describe, escape

VERDICTS = {0: "pass", 1: "fail", 3: "inconclusive", 4: "incomplete", 5: "endpoint"}
"""What the exit codes of Keju mean; any other code is an error."""
HIDDEN = "***"
SHORTEST_SECRET = 4
ALLOWED = ("audit", "compare", "eval", "gate", "mcp", "run", "score", "verify")
"""Commands that a job may contain: they end by themselves and write no files elsewhere."""


def main() -> int:
    """Run the commands; return 0, because the last step of the action sets the check."""
    environ = os.environ
    folder = Path(environ["RUNNER_TEMP"], "keju")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    key = environ.get("CHECK_KEY", "").strip()
    notes = list(platform_notes())
    for note in notes:
        print(f"::notice title=Keju::{note}")
    problem = refuse_foreign_code(environ, bool(key))
    commands: list[list[str]] = []
    if not problem:
        try:
            commands = list(read_commands(environ.get("CHECK_COMMAND", "")))
        except ValueError as error:
            problem = str(error)
    if problem:
        return finish(folder, "error", [f"**{escape(problem)}**"], notes)
    if not key and is_from_fork(environ) and environ.get("CHECK_WITHOUT_KEY") != "run":
        text = "Nothing was asked: pull requests from forks have no secrets, so there is no key."
        return finish(folder, "skipped", [text], notes)
    verdict, parts = run_all(commands, folder, key)
    withhold_secrets(folder, key)
    return finish(folder, verdict, parts, notes)


def run_all(commands: Sequence[list[str]], folder: Path, key: str) -> tuple[str, list[str]]:
    """Run the commands in order until one does not pass; return the verdict and the Markdown."""
    parts: list[str] = []
    code = 0
    for number, words in enumerate(commands, 1):
        code, text = run_command(words, number, folder, key)
        parts.append(hide(text, key))
        if code:
            break
    return VERDICTS.get(code, "error"), parts


def run_command(words: list[str], number: int, folder: Path, key: str) -> tuple[int, str]:
    """Run one command; return its exit code and the Markdown about it."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if name != "GITHUB_TOKEN" and not name.startswith(("CHECK_", "ACTIONS_"))
    }
    if key:
        environ[os.environ.get("CHECK_KEY_VARIABLE") or "OPENAI_API_KEY"] = key
    markdown = folder / f"gate-{number}.md"
    extra = ["--json"]
    if words[0] in ("eval", "run") and not {"-q", "--quiet"} & {*words}:
        extra.append("--quiet")
    if words[0] == "gate" and "--baseline-url" not in words:
        extra += ["--markdown", str(markdown), "--junit", str(folder / f"gate-{number}.xml")]
    print(hide(f"::group::keju {shlex.join(words)}", key), flush=True)
    try:
        ran = subprocess.run(
            ["keju", *words, *extra], env=environ, capture_output=True, encoding="utf-8",
            errors="replace", check=False,
        )  # fmt: skip
    except (OSError, ValueError) as error:  # keju is not installed; a variable named `A=B`
        print("::endgroup::", flush=True)
        return 2, f"keju could not be started: {error}"
    print(hide(ran.stderr, key).replace("::", ": :"), end="")
    print("::endgroup::", flush=True)
    text = hide(ran.stdout, key)
    (folder / f"{number}-{words[0]}.json").write_text(text, "utf-8")
    document = read_document(text)
    keep_report(document, folder, number)
    if markdown.is_file():
        return ran.returncode, markdown.read_text("utf-8")
    problem = last_line(ran.stderr) if ran.returncode else ""
    return ran.returncode, describe(document, problem)


def read_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each line; raise ValueError for a line that is no command of Keju."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines:
        raise ValueError("the input 'command' is empty: give a line such as run -c tools.yaml")
    for line in lines:
        words = shlex.split(line)
        if words[0] == "keju":
            words = words[1:]
        if not words or words[0] not in ALLOWED:
            raise ValueError(f"'{line}' does not begin with one of {', '.join(ALLOWED)}")
        yield words


def read_event(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the event that started the job; an empty one if there is none."""
    path = environ.get("GITHUB_EVENT_PATH", "")
    try:
        event = json.loads(Path(path).read_text("utf-8")) if path else {}
    except (OSError, ValueError):
        return {}
    return event if isinstance(event, dict) else {}


def is_from_fork(environ: Mapping[str, str]) -> bool:
    """Whether the pull request comes from another repository."""
    pull = read_event(environ).get("pull_request") or {}
    head = ((pull.get("head") or {}).get("repo") or {}).get("full_name")
    return bool(pull) and head != environ.get("GITHUB_REPOSITORY")


def refuse_foreign_code(environ: Mapping[str, str], has_key: bool) -> str:
    """Return why nothing may run: the code of a fork is checked out, and there is a key."""
    if environ.get("GITHUB_EVENT_NAME") != "pull_request_target" or not is_from_fork(environ):
        return ""
    if not has_key:
        return ""
    checkouts = {Path.cwd(), *(git.parent for git in Path.cwd().rglob(".git"))}
    if all(commit_of(folder) == environ.get("GITHUB_SHA") for folder in checkouts):
        return ""
    return (
        "code of a fork is checked out in pull_request_target, where it could read the key: "
        "use pull_request"
    )


def commit_of(folder: Path) -> str:
    """Return the commit that is checked out in a folder; empty if git cannot tell."""
    command = ["git", "rev-parse", "HEAD"]
    git = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return git.stdout.strip() if git.returncode == 0 else ""


def platform_notes() -> Iterator[str]:
    """Yield one line about what cannot run on this machine."""
    parts = "models' code, notebooks and state checks ('verify')"
    if platform.system() == "Windows":
        yield f"on Windows {parts} cannot run; gates and MCP servers can. Use ubuntu-latest for all"
    elif shutil.which("bwrap") is None:
        yield f"without bubblewrap {parts} cannot run; sudo apt-get install bubblewrap adds it"


def read_document(text: str) -> dict[str, Any]:
    """Return the document that a command printed; an empty one if it printed none."""
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def keep_report(document: Mapping[str, Any], folder: Path, number: int) -> None:
    """Copy the report of a run next to the other files that are uploaded."""
    place = document.get("folder")
    report = Path(place, "report.html") if isinstance(place, str) and place else None
    if report is not None and report.is_file():
        shutil.copyfile(report, folder / f"report-{number}.html")


def last_line(text: str) -> str:
    """Return the last line of an error that is not empty."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def hide(text: str, key: str) -> str:
    """Return a text without the key."""
    return text.replace(key, HIDDEN) if len(key) >= SHORTEST_SECRET else text


def withhold_secrets(folder: Path, key: str) -> None:
    """Remove files that contain the key, so that they are not uploaded."""
    for file in folder.iterdir() if len(key) >= SHORTEST_SECRET else ():
        if key.encode() in file.read_bytes():
            file.unlink()
            print(f"::warning title=Keju::{file.name} contained the key and was removed")


def finish(folder: Path, verdict: str, parts: Iterable[str], notes: Iterable[str]) -> int:
    """Write the comment, the summary of the job and the outputs of the step."""
    title = " ".join(os.environ.get("CHECK_TITLE", "Keju").split()) or "Keju"
    lines = [f"## {escape(title)}: {verdict}", "", *(part.rstrip() + "\n" for part in parts)]
    lines += [f"_{escape(note)}_\n" for note in notes]
    text = "\n".join(lines).rstrip() + "\n"
    (folder / "comment.md").write_text(text, "utf-8")
    append("GITHUB_STEP_SUMMARY", text)
    artifact = re.sub(r"[^A-Za-z0-9_-]+", "-", title).strip("-").lower() or "keju"
    append("GITHUB_OUTPUT", f"verdict={verdict}\nfolder={folder}\nartifact={artifact}-report\n")
    print(f"Keju: {verdict}")
    return 0


def append(variable: str, text: str) -> None:
    """Add a text to a file of the job."""
    if path := os.environ.get(variable):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main())
