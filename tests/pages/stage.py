"""What the pages assume: endpoints, programs, runs and files, in a folder for each page."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from keju.config.load import merge
from tests.pages.blocks import ROOT, Block, blocks_of
from tests.pages.warm import CLIENT
from tests.solvers.mcp.conftest import PROGRAM
from tests.support.local_model import real_weights
from tests.support.replies import EndpointRequest

LOGS = ROOT / "tests" / "interop" / "imports" / "fixtures"
RECORDED = "golden/bbh/code-davinci-002_cot_predictions.jsonl.gz"
CALCULATOR = {"name": "calc", "command": sys.executable, "args": ["-I", str(PROGRAM)]}
TIMEOUT = 240

PROGRAMS = {
    # Installs what lies here, without a registry; everything else is marked as outside.
    "pip": f"""#!/bin/sh
[ "$1" = install ] || exit 64
shift; [ "$1" = -e ] && shift
place=./$1; [ "$1" = . ] && place={ROOT}
exec {sys.executable} -m pip install --quiet --no-deps --no-build-isolation --no-index \\
    --disable-pip-version-check --target "$PYTHONPATH" "$place"
""",
    "python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
    "mcp-server-calculator": f"#!/bin/sh\nexec {sys.executable} -I {PROGRAM} --tools calculate\n",
    "npx": f'#!/bin/sh\nexec {sys.executable} -I {PROGRAM} -- "$@"\n',
    # A `tail -f` that ends with the run that it follows.
    "tail": '#!/bin/sh\nuntil grep -qs run_finished "$2"; do sleep 0.1; done; cat "$2"\n',
    # `keju view` serves until Ctrl-C: that comes as soon as its first page was seen.
    "keju": f"""#!/bin/sh
[ "$1" = view ] && exec {sys.executable} {ROOT / "tests" / "pages" / "visit.py"} "$@"
[ -e "$PYTHONPATH/keju" ] && exec {sys.executable} -m keju "$@"  # the page has installed Keju
exec keju-warm "$@"
""",
}


@dataclass(frozen=True)
class House:
    """What all pages share."""

    folder: Path
    socket: Path
    """Where `tests.pages.warm` listens."""
    data: Path
    openai: tuple[str, ...]
    """Endpoints that answer like OpenAI's; several, since an address may be named once only."""
    anthropic: str
    mcp: str
    """An MCP server over HTTP."""

    def environ(self, site: Path) -> dict[str, str]:
        """The variables of a user who has keys and data, and no other settings."""
        dropped = ("KEJU_", "OPENAI_", "ANTHROPIC_", "LC_", "LANG", "PYTEST", "COV_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
        return kept | {
            "PATH": os.pathsep.join((str(self.folder / "bin"), os.environ["PATH"])),
            "PYTHONPATH": str(site),
            "PYTHONDONTWRITEBYTECODE": "1",
            "KEJU_DATA_DIR": str(self.data),
            "KEJU_CACHE_DIR": str(self.folder / "cache"),
            "KEJU_LIMIT": "2",
            "OPENAI_API_KEY": "EMPTY",
            "ANTHROPIC_API_KEY": "EMPTY",
            "ANTHROPIC_BASE_URL": self.anthropic,
            **dict.fromkeys(("MY_KEY", "JUDGE_KEY", "SECOND_KEY"), "EMPTY"),
            "WEB_HEADERS": "{}",
        }

    def programs(self) -> None:
        """Put the programs on PATH."""
        place = self.folder / "bin"
        place.mkdir()
        own = CLIENT.format(python=sys.executable, socket=str(self.socket))
        for name, text in (PROGRAMS | {"keju-warm": own}).items():
            (place / name).write_text(text)
            (place / name).chmod(0o755)

    def run(self, name: str) -> Path:
        """A stored run with one of the names that pages use; made when it is first asked for."""
        words = next((w for names, w in RUNS.items() if name in names.split()), None)
        assert words is not None, name
        place = self.folder / "runs" / name
        if not place.exists():
            common = ("--work-dir", str(self.folder / "runs"), "--run-id", name, "--quiet")
            command = [
                "keju",
                "eval",
                "--model",
                "NAME",
                "--api-url",
                self.openai[0],
                *words,
                *common,
            ]
            nothing = self.folder / "site"
            nothing.mkdir(exist_ok=True)
            environ = self.environ(nothing)
            del environ["KEJU_LIMIT"]
            done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        return place


def fresh(**settings: Any) -> tuple[str, ...]:
    """The words for fresh questions."""
    args = {"fresh_bbh": {"few_shot_num": 0, "seed": 7, "n": 4} | settings}
    return ("--datasets", "fresh_bbh", "--dataset-args", json.dumps(args), "--limit", "4")


ARMS = [{"name": "baseline"}, {"name": "python", "servers": [CALCULATOR]}]
RUNS = {
    # So many questions, all answered alike, that a gate with a margin of a point can decide.
    "monday tuesday wednesday": ("--datasets", "bbh", "--limit", "12"),
    "with-tools": ("--datasets", "bbh", "--limit", "1", "-s", f"arms={json.dumps(ARMS)}"),
    "old-run": ("--datasets", "mmlu_pro", "--limit", "20"),
    "published": ("--datasets", "bbh", "--dataset-args", '{"bbh": {"few_shot_num": 0}}'),
    "fresh": fresh(),
    "curve": fresh(difficulty=[1, 2]),
    "open": ("--datasets", "bixbench", "--limit", "2"),
}
"""The stored runs that pages speak of, and the words that make them."""


class Stage:
    """The folder in which the blocks of one page run, one after the other."""

    def __init__(self, house: House, folder: Path, blocks: list[Block]) -> None:
        self.house = house
        self.folder = folder
        self.blocks = blocks
        site = folder / ".site"
        site.mkdir()
        self.environ = house.environ(site)
        page = blocks[0].page.relative_to(ROOT)
        self.page = str(page).partition(".")[0].removeprefix("docs/")
        for name, target in {"DATA": house.data, "examples": ROOT / "examples"}.items():
            (folder / name).symlink_to(target)
        text = "".join(block.code for block in blocks)
        made = re.findall(r"(?:--run-id|-o) ([\w-]+)(?![\w.-])", text)
        for name in " ".join(RUNS).split():
            if name not in made and re.search(rf"(?<![\w-]){name}(?![\w.-])", text):
                self.run(name)
        if self.page in PREPARED:
            PREPARED[self.page](self)
        if re.search(r"\bRUN\b", text):
            self.run("tuesday", "RUN")
        for block in blocks:
            if block.file and block.kind in ("yaml", "python"):
                self.write(block.file, block)

    def run(self, name: str, called: str = "") -> None:
        """Bring a stored run here."""
        place = self.folder / "runs" / (called or name)
        if not place.exists():
            shutil.copytree(self.house.run(name), place)

    def local(self, code: str) -> str:
        """The code with addresses that answer, in place of ``http://localhost:8000/v1``, ``URL``."""
        text = "".join(block.code for block in self.blocks)
        address = r"https?://[\w.-]+(?::\d+)?(?=/v1\b)"
        places = list(dict.fromkeys(re.findall(address, text)))

        def answering(found: re.Match[str]) -> str:
            return self.house.openai[places.index(found[0])].removesuffix("/v1")

        code = re.sub(address, answering, code)
        code = re.sub(r"http://127.0.0.1:8000/mcp", self.house.mcp, code)
        return re.sub(r"(?<=--api-url )URL\b", self.house.openai[0], code)

    def write(self, name: str, block: Block) -> None:
        """Write a file of the page; keys of a YAML file are added to what stands there."""
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        code = self.local(block.code)
        if block.kind == "yaml" and place.exists():
            code = json.dumps(merge(yaml.safe_load(place.read_text()), yaml.safe_load(code)))
        place.write_text(code, "utf-8")

    def shell(self, code: str) -> str:
        """Run commands of a shell, all of which must end with 0; what they print."""
        return self._run("bash", "-e", "-c", f"{self.local(code)}\nwait\n")

    def python(self, code: str) -> str:
        """Run Python, as a file of its own."""
        return self._run(sys.executable, "-c", self.local(code))

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, f"exit code {done.returncode}: {done.stdout[-2000:]}"
        assert "Traceback (most recent call last)" not in done.stdout
        return done.stdout


class Oracle:
    """The model behind the endpoint: it knows the answers of BBH and grades whatever it is shown."""

    def __init__(self, data: Path) -> None:
        self.answers: dict[str, str] = {}
        for path in (data / "bbh" / "bbh").glob("*.json"):
            for row in json.loads(path.read_text("utf-8"))["examples"]:
                self.answers[row["input"].strip()] = row["target"]

    def __call__(self, asked: EndpointRequest) -> str:
        text = asked.text
        if "<grade>" in text:
            return "<grade>correct</grade>"
        question = re.split(r"(?:^|\n)Q: ", text)[-1].partition("\nA: Let's")[0].strip()
        return f"So the answer is {self.answers.get(question, '(A)')}."


def _task(stage: Stage, **settings: Any) -> None:
    task = {"model": "NAME", "api_url": stage.house.openai[0], "datasets": ["demo"]}
    (stage.folder / "task.yaml").write_text(json.dumps(task | settings))


def _exam(stage: Stage) -> None:
    (stage.folder / "task.yaml").write_text("datasets: [demo]")


def _address(stage: Stage) -> None:
    stage.environ["OPENAI_BASE_URL"] = stage.house.openai[0]


def _predictions(stage: Stage) -> None:
    recorded = (stage.house.data / RECORDED).read_bytes()
    (stage.folder / "other.jsonl").write_bytes(gzip.decompress(recorded))


def _scored(stage: Stage) -> None:
    stage.run("tuesday", "ID")
    (stage.folder / "out.jsonl.gz").symlink_to(stage.house.data / RECORDED)


def _providers(stage: Stage) -> None:
    """The recorded replies of one model at two providers."""
    names = {
        "sambanova": "Llama-3.1-405B-Inst_at_sambanova",
        "turbo": "Llama-3.1-405B-Instruct-Turbo",
    }
    for name, model in names.items():
        recorded = (
            stage.house.data / "recorded" / "gsm8k" / f"zeroeval-{model}_predictions.jsonl.gz"
        )
        (stage.folder / f"{name}.jsonl.gz").symlink_to(recorded)


def _log_of_lm_eval(stage: Stage) -> None:
    (stage.folder / "data").symlink_to(LOGS / "data")
    (stage.folder / "results").mkdir()
    (stage.folder / "results" / "tiny-chat").symlink_to(LOGS / "lm-eval" / "bbh")


def _sources(stage: Stage) -> None:
    """Two models' predictions, and a log of EvalScope whose questions are those of the real data."""
    for name, model in {"a": "Meta-Llama-3_1-8B-Instruct", "b": "Mistral-7B-v0.1"}.items():
        recorded = stage.house.data / "golden" / "mmlu_pro" / f"{model}_predictions.jsonl.gz"
        (stage.folder / f"{name}.jsonl.gz").symlink_to(recorded)
    log = stage.folder / "outputs" / "20260101_120000"
    shutil.copytree(LOGS / "evalscope", log)
    subset = "boolean_expressions"
    for path in log.rglob("*.json*"):
        if subset not in path.name and path.name != "bbh.json":
            path.unlink()
    config = log / "configs" / "task_config.yaml"
    settings = yaml.safe_load(config.read_text())
    args = {"bbh": {"subset_list": [subset], "few_shot_num": 3}}
    config.write_text(yaml.safe_dump(settings | {"datasets": ["bbh"], "dataset_args": args}))
    place = Path("bbh") / "bbh" / f"{subset}.json"
    invented = json.loads((LOGS / "data" / place).read_text())["examples"]
    real = json.loads((stage.house.data / place).read_text())["examples"]
    for path in log.rglob(f"*_{subset}.jsonl"):
        text = path.read_text()
        for before, after in zip(invented, real, strict=False):
            text = text.replace(json.dumps(before["input"])[1:-1], json.dumps(after["input"])[1:-1])
        path.write_text(text)


def _capitals(stage: Stage) -> None:
    folder = stage.folder / "capitals"
    folder.mkdir()
    for block in blocks_of(stage.blocks[0].page):
        if block.kind == "csv":
            (folder / "europe.csv").write_text(block.code)
        if block.kind == "json":
            row = block.code.replace(', "category": "europe"', "")
            (folder / "few_shot.jsonl").write_text(row + row.replace('"it"', '"again"'))


def _graded(stage: Stage) -> None:
    stage.run("open", "RUN")
    _task(stage, datasets=["bixbench"])
    records = (stage.folder / "runs" / "RUN" / "records.jsonl").read_text().splitlines()
    ids = [json.loads(line).get("id") for line in records]
    rows = [{"id": i, "answer": "42", "correct": n % 2 == 0} for n, i in enumerate(ids) if i]
    (stage.folder / "graded.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _weights(stage: Stage) -> None:
    place = stage.folder / "models" / "qwen3-8b-q4_k_m.gguf"
    place.parent.mkdir()
    place.symlink_to(real_weights())
    _exam(stage)
    del stage.environ["KEJU_LIMIT"]
    stage.environ["KEJU_TOTAL"] = "1"


def _unlimited(stage: Stage) -> None:
    """Nothing beside what the page itself says of numbers."""
    del stage.environ["KEJU_LIMIT"]


def _exports(stage: Stage) -> None:
    _unlimited(stage)
    _log_of_lm_eval(stage)


def _web_tools(stage: Stage) -> None:
    _unlimited(stage)
    parts = urlsplit(stage.house.mcp)
    for _ in range(600):
        try:
            socket.create_connection((parts.hostname, parts.port)).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the MCP server did not start")


def _weekly(stage: Stage) -> None:
    _task(stage)
    plan = {"models": ["scripted"], "datasets": ["demo"]}
    (stage.folder / "weekly.yaml").write_text(json.dumps(plan))
    stage.shell("keju eval --config weekly.yaml --quiet")


PREPARED: dict[str, Callable[[Stage], None]] = {
    "compare": _sources,
    "configuration": _task,
    "exams": _unlimited,  # a submission has all questions
    "examples/README": _unlimited,  # so many questions that a gate can decide
    "exports": _exports,
    "fresh": lambda stage: stage.run("curve", "RUN"),
    "gate": _unlimited,
    "judges": _graded,
    "many-models": _task,
    "mcp": _web_tools,
    "models": _weights,
    "own-questions": _capitals,
    "planning": _unlimited,
    "results": _scored,
    "serving": _providers,
    "viewer": _weekly,
    "which-number": _predictions,
    "why-low": _predictions,
}
"""What a page assumes beside runs and addresses, by its name."""
