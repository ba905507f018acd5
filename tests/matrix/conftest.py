"""Small exams whose answers stand in the question, and endpoints that know some of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import keju as keju
from tests.support.replies import EndpointRequest, Plan

SIZE = 40
PREFLIGHT = 1
"""Requests of a run that are no question."""


class Asking:
    """What endpoints were asked, by model; the preflight apart."""

    def __init__(self) -> None:
        self.questions: Counter[str] = Counter()

    def answer(self, request: EndpointRequest) -> str:
        """The model ``good…`` is right, ``poor…`` is right in one of four."""
        model = request.body["model"]
        if "What is" not in request.text:
            return "OK"
        self.questions[model] += 1
        number = int(request.text.rpartition("What is ")[2].split()[0])
        is_correct = model.startswith("good") or number % 4 == 0
        return f"The answer is ({'A' if is_correct else 'B'})."

    def plan(self, **settings: Any) -> Plan:
        """How an endpoint behaves."""
        return Plan(answers=self.answer, **settings)


@pytest.fixture
def asking() -> Asking:
    return Asking()


WritePlan = Callable[..., str]


@pytest.fixture
def exams(tmp_path: Path) -> list[str]:
    """Four folders of questions; the right answer is always A."""
    folders = []
    for name in ("north", "east", "south", "west"):
        folder = tmp_path / "exams" / name
        folder.mkdir(parents=True)
        rows = (
            {
                "id": f"{name}-{n}",
                "question": f"What is {n} in {name}?",
                "choices": ["this", "that"],
            }
            | {"answer": "A"}
            for n in range(SIZE)
        )
        (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        folders.append(str(folder))
    return folders


@pytest.fixture
def write_plan(tmp_path: Path, exams: list[str]) -> WritePlan:
    """Writes ``plan.yaml`` with these settings; the exams are the four by default."""

    def write(**settings: Any) -> str:
        path = tmp_path / "plan.yaml"
        path.write_text(yaml.safe_dump({"datasets": exams, "retry_interval": 0.01} | settings))
        return str(path)

    return write
