"""Exams in folders, made for the tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.prepare import prepare_exam

Files = Mapping[str, str | bytes]
Lay = Callable[[Files], Path]


@pytest.fixture
def write_quiz(tmp_path: Path) -> Lay:
    """Write the files of an exam called ``quiz`` and return its folder."""

    def write_files(files: Files) -> Path:
        folder = tmp_path / "quiz"
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            (folder / name).write_bytes(data)
        return folder

    return write_files


def prepare(path: Path, args: dict[str, Any] | None = None, **options: Any) -> Exam:
    exam, _ = prepare_exam(str(path), args, **options)
    return exam


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


CAPITALS = """\
question,A,B,C,D,answer,category
Capital of France?,Paris,Rome,Bonn,,A,europe
Capital of Peru?,Lima,Quito,La Paz,Bogotá,Lima,america
Capital of Italy?,Paris,Rome,,,b,europe
"""
SHOTS = lines(
    {"question": "Capital of Spain?", "choices": ["Madrid", "Lisbon"], "answer": "Madrid",
     "explanation": "Lisbon is in Portugal.", "category": "europe"},
    {"question": "Capital of Cuba?", "choices": ["Havana", "Lima"], "answer": "A",
     "category": "america"},
    {"question": "Capital of Malta?", "choices": ["Rome", "Valletta"], "answer": "B",
     "category": "europe"},
)  # fmt: skip
