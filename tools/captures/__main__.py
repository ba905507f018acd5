"""``python -m tools.captures DATA_DIR [NAME...]``: capture the terminal with tmux, from real runs.

Models that stand in for real ones answer the complete exams of DATA_DIR over HTTP. Keju evaluates
them, and each command is typed into a terminal of 80×24 and of 120×40, in English and in Chinese.
What the screen then shows is written to ``docs/pictures/terminal``.

The name ``pictures`` stands for the pictures of the READMEs and of the documentation. They need
Chromium and a Chinese font.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

from keju.cli.common import load_exam
from tools.captures.standin import StandInModels

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures" / "terminal"
SIZES = ((80, 24), (120, 40))
LANGUAGES = ("en", "zh")
PATIENCE = 600
"""The number of seconds that a command may take."""
MODES = ("answer-only", "cot")


def _modes_args(mode: str) -> str:
    return f'{{"ceval": {{"mode": "{mode}", "form": "chat"}}}}'


SETUP = (
    "eval --model acme-7b-bf16 --datasets bbh --run-id bf16",
    "eval --model acme-7b-int8 --datasets bbh --run-id int8",
    "eval --model acme-7b-int4 --datasets bbh --run-id int4",
    "eval --model acme-7b-chat --datasets bbh --run-id chat",
    "eval --model acme-7b-bf16 --datasets bbh mmlu_pro --run-id both-bf16",
    "eval --model acme-7b-int4 --datasets bbh mmlu_pro --run-id both-int4",
    *(
        f"eval --model acme-7b --datasets ceval --protocol official --run-id {mode} "
        f"--dataset-args {shlex.quote(_modes_args(mode))}"
        for mode in MODES
    ),
)
"""The runs that the captured commands need."""
CAPTURES = {
    "eval-one-exam": "keju eval --model acme-7b-bf16 --datasets bbh",
    "eval-two-exams": "keju eval --model acme-7b-bf16 --datasets bbh mmlu_pro",
    "score": "keju score chat",
    "compare-three-runs": "keju compare bf16 int8 int4",
    "compare-two-exams": "keju compare both-bf16 both-int4",
    "gate": "keju gate both-int4 --baseline both-bf16 --margin 0.01",
    "audit": "keju audit chat",
    "mcp": "keju run -c examples/mcp/arms.yaml",
    "modes": "keju modes answer-only cot",
    "plan": "keju plan bbh --mde 0.02",
    "demo": "keju eval --config examples/demo.yaml",
}


PICTURES = "pictures"
DEMO = "eval --config examples/demo.yaml"
ALONE = {"eval-one-exam", "eval-two-exams", "mcp", "demo"}
"""The captures that need no runs."""


class Size(NamedTuple):
    """The size of a terminal."""

    columns: int
    rows: int


def main() -> None:
    """Make all captures, or those that are named."""
    data_dir, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, _endpoint(data_dir) as url:
        home = Path(folder)
        environment = _environment(url, Path(data_dir).absolute())
        shutil.copytree(ROOT / "examples", home / "base" / "examples")
        chosen = names or [*CAPTURES, PICTURES]
        for words in SETUP if set(chosen) - ALONE else ():
            command = [sys.executable, "-m", "keju", *shlex.split(words), "-q", "--json"]
            subprocess.run(
                command,
                cwd=home / "base",
                env=environment,
                check=True,
                stdout=subprocess.DEVNULL,
            )
        FOLDER.mkdir(parents=True, exist_ok=True)
        if PICTURES in chosen:
            demo = shutil.copytree(home / "base", home / PICTURES)
            command = [sys.executable, "-m", "keju", *shlex.split(DEMO), "-q", "--json"]
            subprocess.run(
                command, cwd=demo, env=environment, check=True, stdout=subprocess.DEVNULL
            )
            _make_pictures(home / "base" / "runs", next((demo / "demo").iterdir()))
        for name in [name for name in chosen if name != PICTURES]:
            for size in map(Size._make, SIZES):
                for language in LANGUAGES:
                    place = shutil.copytree(home / "base", home / f"{name}-{size}-{language}")
                    text = _capture(CAPTURES[name], size, place, environment, language)
                    file = FOLDER / f"{name}.{size.columns}x{size.rows}.{language}.txt"
                    file.write_text(text, "utf-8")
                    print(file.relative_to(ROOT), flush=True)


def _make_pictures(runs: Path, demo: Path) -> None:
    from tools.captures.pictures import SUFFIXES, draw_terminal, take_pictures

    for language, suffix in SUFFIXES.items():
        capture = FOLDER / f"demo.80x24.{language}.txt"
        draw_terminal(capture, FOLDER.parent / f"terminal{suffix}.svg")
    take_pictures(runs, demo, "both-bf16", FOLDER.parent)


@contextmanager
def _endpoint(data_dir: str) -> Iterator[str]:
    """Run the endpoint of the models, which know the exams of `data_dir`."""
    exams = [load_exam(name, data_dir=data_dir) for name in ("bbh", "mmlu_pro")]
    exams += [
        load_exam(
            "ceval",
            data_dir=data_dir,
            protocol="official",
            dataset_args={"ceval": {"mode": mode, "form": "chat"}},
        )
        for mode in MODES
    ]
    models = StandInModels(exams)
    with FaultyEndpoint(Plan(answers=models, tokens=models.tokens)) as endpoint:
        yield endpoint.url


def _environment(url: str, data_dir: Path) -> dict[str, str]:
    """Return the environment of a user who has set the address, the key and the data once."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    python_path = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return python_path | {
        "PATH": path,
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "none",
        "KEJU_DATA_DIR": str(data_dir),
    }


def _capture(
    command: str, size: Size, folder: Path, environment: dict[str, str], language: str
) -> str:
    """Return what a terminal shows after a command. A line that wrapped is joined again."""
    done = folder / ".done"
    settings = environment | {
        "PS1": "$ ",
        "KEJU_LANGUAGE": language,
        "PROMPT_COMMAND": f"echo >> {shlex.quote(str(done))}",
    }
    assignments = [f"{name}={value}" for name, value in settings.items()]
    shell = ["env", "-i", "TERM=screen-256color", *assignments, "bash", "--norc", "--noprofile"]
    socket = f"captures-{os.getpid()}-{time.monotonic_ns()}"
    tmux = ["tmux", "-L", socket, "-f", os.devnull]
    screen = ["-x", str(size.columns), "-y", str(size.rows)]
    start = ["new-session", "-d", "-s", "s", *screen, "-c", str(folder), shlex.join(shell)]
    subprocess.run([*tmux, *start], check=True)
    try:
        _wait_for_prompts(done, 1)
        for number, words in enumerate(("clear", command), 2):
            subprocess.run([*tmux, "send-keys", "-t", "s", words, "Enter"], check=True)
            _wait_for_prompts(done, number)
        capture = [*tmux, "capture-pane", "-t", "s", "-p", "-J"]
        output = subprocess.run(capture, check=True, capture_output=True, text=True).stdout
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    return _without_last_prompt(output.splitlines())


def _wait_for_prompts(done: Path, number: int) -> None:
    """Wait until the shell has shown its prompt so many times."""
    deadline = time.monotonic() + PATIENCE
    while not done.exists() or len(done.read_text().splitlines()) < number:
        if time.monotonic() > deadline:
            raise SystemExit(f"a command took more than {PATIENCE} s")
        time.sleep(0.1)
    time.sleep(0.3)  # the terminal draws what was written


def _without_last_prompt(lines: Sequence[str]) -> str:
    """Return the screen without trailing blanks and without the prompt at its end."""
    stripped = [line.rstrip() for line in lines]
    while stripped and stripped[-1] in ("", "$"):
        stripped.pop()
    return "\n".join(stripped) + "\n"


main()
