"""Record the runs of this folder: ``python -m tests.audit.make SRC``, with `SRC` that of version 0.1.

Kept to show how the files came about: `keju eval` of version 0.1 ran the exams against the endpoint
of the tests, which said what `replies.py` holds, and the right answer in the protocol's own form to
every other question. `RUN/manifest.json` and `RUN/records.jsonl` are what it wrote, with the folder
of the machine as ``@ROOT@``. Do not run it with a later version: the stored scores are 0.1's.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from keju import Run
from keju.engine.job import make_jobs
from tests.audit.replies import WRITTEN, Written
from tests.support.endpoint import FaultyEndpoint
from tests.support.recorded_replies import KNOCK
from tests.support.replies import EndpointRequest, Plan

HERE = Path(__file__).parent
DATA = HERE.parent / "runs01" / "data"
SUBJECTS = ["college_physics", "high_school_physics", "law", "logic", "marxism", "accountant"]
RUNS: dict[str, tuple[str, ...]] = {
    "replies": (
        *("--datasets", "bbh", "mmlu_pro", "ceval", "bixbench"),
        *("custom:data/quiz", "custom:data/sums"),
        *("--dataset-args", json.dumps({"ceval": {"subset_list": SUBJECTS}})),
    ),
    "tags": ("--datasets", "bixbench", "--protocol", "official"),
    "lines": (
        "--datasets",
        "bbh",
        "--protocol",
        "mcpbr",
        "--limit",
        "1",
        "--generation-config",
        '{"stop": ["Q:"]}',
    ),
    "open": ("--datasets", "bixbench", "--dataset-args", '{"bixbench": {"answer_mode": "open"}}'),
}
"""The flags of each run."""
ELSEWHERE = {"bixbench-official": "tags", "bbh-mcpbr": "lines", "bixbench-open": "open"}
"""The runs of replies that are not for the first one."""


class Row(NamedTuple):
    """One question of the data, as far as replies use it."""

    exam: str
    question: str
    gold: str
    options: tuple[str, ...] = ()


def rows() -> Iterator[Row]:
    """All questions."""
    for path in sorted((DATA / "bbh" / "bbh").glob("*.json")):
        for example in json.loads(path.read_text("utf-8"))["examples"]:
            options = tuple(re.findall(r"^\([A-Z]\) (.*)$", example["input"], re.M))
            yield Row(
                f"bbh/{path.stem}",
                example["input"],
                example["target"].strip("()") if options else example["target"],
                options,
            )
    for line in (DATA / "mmlu_pro" / "test.jsonl").read_text("utf-8").splitlines():
        example = json.loads(line)
        yield Row("mmlu_pro", example["question"], example["answer"], tuple(example["options"]))
    for path in sorted((HERE / "data" / "ceval" / "val").glob("*.csv")):
        for example in csv.DictReader(path.open(encoding="utf-8")):
            yield Row(
                "ceval", example["question"], example["answer"], tuple(example[c] for c in "ABCD")
            )
    for line in (DATA / "bixbench" / "BixBench_v1.5.jsonl").read_text("utf-8").splitlines():
        example = json.loads(line)
        yield Row("bixbench", example["question"], example["ideal"])
    for example in csv.DictReader((DATA / "quiz" / "sums.csv").open(encoding="utf-8")):
        yield Row("quiz", example["question"], example["answer"], tuple(example[c] for c in "ABC"))
    for line in (HERE / "data" / "sums" / "rows.jsonl").read_text("utf-8").splitlines():
        example = json.loads(line)
        yield Row("sums", example["question"], example["answer"])


class Speaker:
    """What the model says: to each question that a written reply is for, that reply."""

    def __init__(self, run: str) -> None:
        self._run = run
        self.written_replies: dict[str, Written] = {}
        self._rows = list(rows())
        free = list(self._rows)
        for written in WRITTEN:
            exam, _, subset = written.exam.partition("/")
            if ELSEWHERE.get(exam, "replies") != run:
                continue
            exam = exam.partition("-")[0]
            name = exam + (f"/{subset}" if subset else "")
            candidates = [row for row in free if (row.exam + "/").startswith(name + "/")]
            if not subset and exam in ("bbh", "mmlu_pro"):  # with options
                candidates = [row for row in candidates if len(row.options) > 2]
            if run == "lines":  # which asks the first question of each subset
                firsts = {row.exam: row for row in reversed(self._rows)}.values()
                candidates = [row for row in candidates if row in firsts]
            free.remove(candidates[0])
            self.written_replies[candidates[0].question] = written

    def __call__(self, request: EndpointRequest) -> str | dict[str, Any]:
        if request.text == KNOCK:
            return "A"
        prompt = "\n".join(str(m["content"]) for m in request.body["messages"])
        places = [(prompt.rfind(row.question), row) for row in self._rows]
        row = max(places, key=lambda place: (place[0], len(place[1].question)))[1]
        labelled_options = re.findall(
            r"^\(?([A-Z])[).:、][ ]?(.*)$", prompt[prompt.rfind(row.question) :], re.M
        )
        if row.exam == "bixbench" and labelled_options:
            row = row._replace(
                gold=next(label for label, text in labelled_options if row.gold in text),
                options=tuple(text for _, text in labelled_options),
            )
        written = self.written_replies.get(row.question)
        if written is None:
            return _plain(row, self._run)
        words = _words(row, prompt)
        if isinstance(written.reply, str):
            return written.reply.format(**words)
        choice: dict[str, Any] = json.loads(json.dumps(written.reply))
        message = choice["message"]
        for key, value in message.items():
            message[key] = value.format(**words) if isinstance(value, str) else value
        return choice


def _plain(row: Row, run: str) -> str:
    """The right answer in the form that is asked for."""
    exam = row.exam.partition("/")[0]
    if exam == "bbh":
        gold = f"({row.gold})" if row.options else row.gold
        return gold if run == "lines" else f"Let me see. So the answer is {gold}."
    if exam == "bixbench":
        return f"<answer>{row.gold}</answer>" if run == "tags" else row.gold
    if exam == "ceval":
        return f"想一想就知道。\n\n答案：{row.gold}"
    return f"It is a sum.\n\nANSWER: {row.gold}"


def _words(row: Row, prompt: str) -> dict[str, str]:
    labels = "ABCDEFGHIJ"[: len(row.options)]
    place = labels.find(row.gold)
    wrong_place = (place + 1) % max(1, len(labels))
    form = "({}) {}" if row.exam.startswith("bbh") else "{}. {}"
    shots = re.findall(r"^Q: (?:.*\n)+?.*So the answer is .*$", prompt, re.M)
    return {
        "gold": row.gold,
        "wrong": labels[wrong_place : wrong_place + 1],
        "gold_small": row.gold.lower(),
        "gold_wide": "".join(chr(ord(c) + 0xFEE0) for c in row.gold),
        "gold_commas": ", ".join(row.gold.split()),
        "gold_negated": row.gold.lstrip("-") if row.gold.startswith("-") else f"-{row.gold}",
        "gold_text": row.options[place] if labels else "",
        "wrong_text": row.options[wrong_place] if labels else "",
        "question": row.question,
        "options": "\n".join(
            form.format(*label_and_text) for label_and_text in zip(labels, row.options, strict=True)
        ),
        "shots": "\n\n".join(shots[:3]),
    }


def record(run: str, source: str) -> None:
    """Sit the exams of one run with the version in `source`, and keep its folder."""
    speaker = Speaker(run)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KEJU_", "OPENAI_"))}
    with tempfile.TemporaryDirectory() as place, FaultyEndpoint(Plan(answers=speaker)) as endpoint:
        root = Path(place)
        shutil.copytree(DATA, root / "data")
        shutil.copytree(HERE / "data", root / "data", dirs_exist_ok=True)
        command = [sys.executable, "-m", "keju", "eval", "--model", "tiny", "--run-id", run]
        command += ["--api-url", endpoint.url, "--data-dir", "data", "-q", "--no-report"]
        command += ["--eval-batch-size", "1", *RUNS[run]]
        subprocess.run(command, cwd=root, env=clean | {"PYTHONPATH": source}, check=False)
        shutil.rmtree(HERE / run, ignore_errors=True)
        (HERE / run).mkdir()
        for name in ("manifest.json", "records.jsonl"):
            text = (root / "runs" / run / name).read_text("utf-8")
            (HERE / run / name).write_text(
                text.replace(str(root), "@ROOT@").replace(endpoint.url, "@ENDPOINT@"), "utf-8"
            )
        causes = _causes(speaker, copy_run(run, root / "again"))
    (HERE / run / "causes.json").write_text(
        json.dumps(causes, ensure_ascii=False, indent=1) + "\n", "utf-8"
    )


def copy_run(run: str, root: Path) -> Path:
    """Copy a recorded run and its data below `root`; return the run's folder."""
    shutil.copytree(DATA, root / "data")
    shutil.copytree(HERE / "data", root / "data", dirs_exist_ok=True)
    folder = root / "runs" / run
    folder.mkdir(parents=True)
    for name in ("manifest.json", "records.jsonl"):
        text = (HERE / run / name).read_text("utf-8")
        (folder / name).write_text(text.replace("@ROOT@", str(root)), "utf-8")
    return folder


def _causes(speaker: Speaker, folder: Path) -> dict[str, dict[str, str]]:
    """By id of a question: what the reply was written for, and its cause."""
    os.chdir(folder.parent.parent)
    samples = [s for job in make_jobs(Run(folder).config()) for s in job.exam.samples]
    return {
        sample.id: {"about": written.about, "cause": written.cause}
        for sample in samples
        for question, written in speaker.written_replies.items()
        if sample.text.strip().startswith(question.strip())
    }


if __name__ == "__main__":
    for run_name in RUNS:
        record(run_name, sys.argv[1])
