"""Texts of logs that once took the square of their length to read: such a test never ended."""

from __future__ import annotations

from keju.interop.imports.opencompass import extract_free_form
from keju.interop.imports.verifiers_log import _find_exam_task
from keju.reporting.format import without_canary

LONG = 400_000


def test_blanks_between_words_of_opencompass() -> None:
    assert extract_free_form("a" + " " * LONG + "b, c ,d") == "a b c d"
    assert extract_free_form("1, 2") == "1, 2"


def test_slashes_in_the_id_of_an_environment() -> None:
    assert (
        _find_exam_task("OWNER/keju-demo@0.1.2")
        == _find_exam_task("demo")
        == _find_exam_task("keju_demo")
    )
    assert _find_exam_task("a/" * LONG + "demo") == _find_exam_task("demo")
    _find_exam_task("a/" * LONG + "\n\n")


def test_lines_that_repeat_the_word_canary() -> None:
    line = "canary " * (LONG // 4)
    guid = "26b5c67b-86bc-4bd1-90a3-3a2f8b1b2c6d"
    assert without_canary(line) == line
    assert without_canary(f"a\n{line}{guid}\nb") == "a\nb"
    assert without_canary(f"a\nCANARY GUID\n{guid} canary\nb") == f"a\n{guid} canary\nb"
