"""A run of a part of an exam's subsets: no mean over them passes for one over all."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Keju

PART = ("eval", "-m", "scripted", "--datasets", "bbh", "--limit", "4", "-q", "--run-id", "t2")


def _sit(keju: Keju, data_dir: Path, subsets: str = "", language: str = "en") -> str:
    chosen = ("--dataset-args", f"bbh.subset_list=[{subsets}]") if subsets else ()
    ran = keju("--language", language, *PART, "--data-dir", str(data_dir), *chosen)
    assert ran.code == 0, ran.err
    return ran.out


def test_a_mean_over_some_subsets_says_over_how_many(keju: Keju, data_dir: Path) -> None:
    out = _sit(keju, data_dir, "snarks,navigate")
    page = Path("runs/t2/report.html").read_text("utf-8")
    exports = [
        keju("export", "t2", "--format", export_format).out
        for export_format in ("markdown", "latex")
    ]
    for text in (out, page, *exports):
        assert "mean of 2 of 27 subsets" in text
        assert "mean of 27 subsets" not in text
        assert "expected on the whole set" not in text
        assert "expected on all questions of the 2 subsets asked" in text
    for text in (line for line in out.splitlines() if "of 27" in line):
        assert text.count("partial") == 2, text
    metrics = json.loads(Path("runs/t2/results.json").read_bytes())["benchmarks"][0]["metrics"]
    macro = metrics["macro_accuracy"]
    assert (macro["partial"], metrics["accuracy_whole_set"]["partial"]) == (True, True)
    assert (macro["tasks"], macro["tasks_published"]) == (2, 27)


def test_the_whole_exam_is_no_part(keju: Keju, data_dir: Path) -> None:
    out = _sit(keju, data_dir)
    assert "mean of 27 subsets" in out
    assert "expected on the whole set" in out
    assert "partial" not in out


def test_a_part_is_one_in_chinese_too(keju: Keju, data_dir: Path) -> None:
    out = _sit(keju, data_dir, "snarks,navigate", "zh")
    assert "27 项中只问了 2 项" in out
    assert "推算到全部题目" not in out


def test_an_exam_of_one_subset_is_whole(keju: Keju) -> None:
    Path("own").mkdir()
    rows = [{"question": f"{n}+1?", "answer": str(n + 1)} for n in range(4)]
    Path("own/test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = keju("eval", "-m", "scripted", "--datasets", "./own", "--limit", "2", "-q")
    assert ran.code == 0, ran.err
    assert "partial" not in ran.out
