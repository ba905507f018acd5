"""A model that works in a notebook, and small capsules for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.bixbench.conftest import flat, write
from tests.support.replies import EndpointRequest, Raw
from tests.support.tools import calling, results_in

ROWS = [
    flat("bix-1-q1", "42", ["41", "40", "39"], question="What is the sum of column a?"),
    flat("bix-1-q2", "(13.5,14.5)", ["(1,2)", "(3,4)", "(5,6)"], eval_mode="range_verifier",
         question="What is the mean of column a?"),
    flat("bix-2-q1", "beta", ["alpha", "gamma", "delta"], question="Which gene is second?"),
]  # fmt: skip


SUM = "import csv\nrows = list(csv.DictReader(open('table.csv')))"


class Model:
    """A scripted model: an episode is a list of turns, chosen by the question."""

    def __init__(self) -> None:
        self.script: Callable[[str, list[str]], Any] = analyst
        self.refuses: Callable[[str, list[str]], bool] | None = None
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: EndpointRequest) -> Any:
        self.bodies.append(request.body)
        return self.script(question_in(request), results_in(request))

    def raw(self, request: EndpointRequest, attempt: int) -> Raw | None:
        """A refusal of the endpoint."""
        data = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}"
        if self.refuses is None or not self.refuses(question_in(request), results_in(request)):
            return None
        return Raw(data=data)


def question_in(request: EndpointRequest) -> str:
    return str(next(m["content"] for m in request.body["messages"] if m["role"] == "user"))


def analyst(question: str, results: list[str]) -> Any:
    """Looks at the data in three cells and submits what it computed."""
    turns = [
        calling(("list_workdir", {})),
        calling(("edit_cell", {"contents": SUM})),
        calling(
            ("edit_cell", {"contents": "values = [int(row['a']) for row in rows]; len(values)"})
        ),
        calling(("edit_cell", {"contents": conclusion(question)})),
    ]
    if len(results) < len(turns):
        return turns[len(results)]
    computed = results[-1].splitlines()[-1].strip("'")
    if "<hypothesis>" in question:
        computed = "False"
    if "(A)" in question:
        options = [line for line in question.splitlines() if line[:1] == "(" and line[2:3] == ")"]
        expected_value = "13.5" if "mean" in question else computed
        computed = next(line[1] for line in options if expected_value in line)
    return calling(("submit_answer", {"answer": computed}))


def conclusion(question: str) -> str:
    if "mean" in question:
        return "sum(values) / len(values)"
    return "rows[1]['gene']" if "gene" in question else "sum(values)"


def make_data(folder: Path) -> None:
    """Three questions about two capsules."""
    for short in ("bix-1", "bix-2"):
        capsule = folder / "capsules" / short
        (capsule / "Data").mkdir(parents=True)
        (capsule / "Notebook").mkdir()
        (capsule / "Data" / "table.csv").write_text("gene,a\nalpha,10\nbeta,12\ngamma,20\n")
        (capsule / "Notebook" / "solution.ipynb").write_text("{}")
    write(folder / "BixBench_v1.5.jsonl", ROWS)
