"""A small C-Eval made for the tests: two subjects, line breaks of both kinds inside fields."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.ceval import CEVAL
from keju.sources.folder import DataFolder

OPTIONS = ["id", "question", "A", "B", "C", "D"]
SHOT_LOGIC = ["0", "一加一等于____。", "一", "二", "三", "四", "B", "1. 一加一是二。\r\n2. 选二。"]
SHOT_LAW = ["0", "宪法是____。", "根本法", "诗", "歌", "画", "A", "1. 宪法是根本法。"]
VAL_LOGIC = [
    ["0", "雨后____？\r\n看图。", "天晴", "下雪", "刮风\r\n不停", "打雷", "A"],
    ["1", " 猫是____。", "动物", "植物", "动物", "石头", "C"],
]
VAL_LAW = [["0", "法官属于____。", "司法", "立法", "行政", "监察", "A"]]


def write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def numbered(shot: list[str]) -> list[list[str]]:
    """Five worked examples: the one given and four that differ from it by their number."""
    return [shot, *([str(i), f"例{i}", *shot[2:]] for i in range(1, 5))]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The folder of the small data set: logic and law."""
    dev_header = [*OPTIONS, "answer", "explanation"]
    write(tmp_path / "dev" / "logic_dev.csv", dev_header, numbered(SHOT_LOGIC))
    write(tmp_path / "dev" / "law_dev.csv", dev_header, numbered(SHOT_LAW))
    write(tmp_path / "val" / "logic_val.csv", [*OPTIONS, "answer"], VAL_LOGIC)
    write(tmp_path / "val" / "law_val.csv", [*OPTIONS, "answer"], VAL_LAW)
    write(tmp_path / "test" / "logic_test.csv", OPTIONS, [row[:6] for row in VAL_LOGIC])
    write(tmp_path / "test" / "law_test.csv", OPTIONS, [row[:6] for row in VAL_LAW])
    return tmp_path


@pytest.fixture
def evaluate(small: Path) -> Callable[..., Exam]:
    """Make an exam of the small data set with the given settings."""

    def make(**settings: Any) -> Exam:
        args = CEVAL.Args(**{"subset_list": ["logic", "law"]} | settings)
        return CEVAL.prepare(args, DataFolder(small, CEVAL.layout), seed=42)

    return make


@pytest.fixture(scope="session")
def real(data_dir: Path) -> Callable[..., Exam]:
    """Make an exam of the real data with the given settings."""

    def make(**settings: Any) -> Exam:
        return CEVAL.prepare(
            CEVAL.Args(**settings), DataFolder(data_dir / "ceval", CEVAL.layout), seed=42
        )

    return make
