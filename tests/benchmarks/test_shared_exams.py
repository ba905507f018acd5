"""Exams that several runs of one command need."""

from __future__ import annotations

from pathlib import Path

from keju.benchmarks.prepare import prepare_exam, share_prepared_exams


def test_an_exam_is_loaded_once_and_each_caller_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text('{"question": "1 + 1 =", "answer": "2"}\n')
    with share_prepared_exams():
        first, _ = prepare_exam(str(tmp_path))
        with share_prepared_exams():
            second, _ = prepare_exam(str(tmp_path))
        other, _ = prepare_exam(str(tmp_path), seed=7)
        second.warnings = ()
        second.arm = "tools"
    assert first.samples is second.samples
    assert first.samples is not other.samples
    assert first.arm == ""
    later, _ = prepare_exam(str(tmp_path))
    assert later.samples is not first.samples
