"""The captures of the terminal in docs/pictures/terminal: short, whole, with the answer in sight."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keju.messages.wrapping import cells

FOLDER = Path(__file__).parents[1] / "docs" / "pictures" / "terminal"
SIZES = {"80x24": (80, 24), "120x40": (120, 40)}
LANGUAGES = ("en", "zh")
ANSWERS = {
    # name: (most lines of output, what must be on the screen in English, the same in Chinese)
    "eval-one-exam": (15, r"^ BBH   \d\d\.\d %   ± \d\.\d", r"^ BBH   \d\d\.\d %   ± \d\.\d"),
    "eval-two-exams": (10, r"^ MMLU-Pro .* \d\d\.\d % ", r"^ MMLU-Pro .* \d\d\.\d % "),
    "score": (15, r"^ BBH   \d\d\.\d %", r"^ BBH   \d\d\.\d %"),
    "compare-three-runs": (11, r"^ int4 is worse than bf16", "^ int4 比 bf16"),
    "compare-two-exams": (10, r"^ int4 is worse than bf16", "^ int4 比 bf16"),
    "gate": (
        10,
        r"^ FAIL  int4 is \d\.\d to \d\.\d points worse than bf16",
        "^ 未通过  int4 比 bf16 差",
    ),
    "audit": (22, r"^ About \d\.\d points are lost to the format, not", "^ 大约 .*失在格式上"),
    "mcp": (15, r"^ calculator helps: \+100\.0 points over baseline", "^ calculator 有帮助"),
    "modes": (23, r"^ \d+ of 52 subjects gain: ", "^ 52 个学科中有 .*提高："),
    "plan": (
        15,
        r"^ 5,588 questions of BBH show a difference of 2\.0 points",
        "^ BBH 的 5,588 道题",
    ),
    "demo": (15, r"^ fresh_bbh: accuracy falls with difficulty", "^ fresh_bbh：准确率随难度下降"),
}
CASES = [(name, size, language) for name in ANSWERS for size in SIZES for language in LANGUAGES]


@pytest.mark.parametrize(("name", "size", "language"), CASES)
def test_a_screen_shows_the_whole_answer(name: str, size: str, language: str) -> None:
    lines = (FOLDER / f"{name}.{size}.{language}.txt").read_text("utf-8").splitlines()
    columns, rows = SIZES[size]
    most, english, chinese = ANSWERS[name]
    command, *output = lines
    assert command.startswith("$ keju "), "the beginning has left the screen"
    assert len(lines) < rows
    assert len(output) <= most
    # A capture joins a line that wrapped, so that it is too long here.
    assert [line for line in lines if cells(line) > columns] == []
    cut_lines = [line for line in output if line.endswith("…") and "keju eval" not in line]
    assert cut_lines == []
    pattern = english if language == "en" else chinese
    head = output if name == "demo" else output[:5]  # a curve comes before its sentence
    assert any(re.search(pattern, line) for line in head), head
    assert not re.search(r"\bp 0\b(?!\.)", "\n".join(lines))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.name)
def test_percentages_of_a_screen_have_one_decimal(path: Path) -> None:
    assert re.findall(r"\d\.\d\d+ ?%", path.read_text("utf-8")) == []
