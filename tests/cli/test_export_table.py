"""``keju export RUN... --table``: a row for each model, a column for each exam, for a paper."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from keju.reporting.paper_table import make_paper_table, paper_latex, paper_markdown, paper_rows
from tests.cli.conftest import Keju
from tests.reporting.documents import entry, results

QUIZ = "question,A,B,answer\n" + "".join(f"Question {n}?,x,y,A\n" for n in range(10))


@pytest.fixture
def runs(keju: Keju, tmp_path: Path) -> None:
    """Two runs of the demo exam, and one of an own exam."""
    (tmp_path / "quiz.csv").write_text(QUIZ)
    for name, exam, protocol in (("a", "demo", ()), ("b", "demo", ()), ("q", "quiz.csv", ())):
        words = ("eval", "-m", "scripted", "--datasets", exam, "-q", "--run-id", name)
        assert keju(*words, *protocol, "--limit", "10").code == 0


def accuracy(run: str) -> str:
    stored = json.loads(Path("runs", run, "results.json").read_bytes())["benchmarks"][0]
    return f"{100 * stored['metrics'][stored['headline']]['value']:.2f}"


def read_csv(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))


@pytest.mark.usefixtures("runs")
def test_one_row_for_each_model_and_one_column_for_each_exam(keju: Keju) -> None:
    ran = keju("export", "a", "b", "q", "--table", "csv")
    assert read_csv(ran.out) == [
        ["model", "Keju demo", "quiz"],
        ["scripted (a)", accuracy("a"), accuracy("q")],
        ["scripted (b)", accuracy("b"), ""],
    ]
    assert "Keju demo: accuracy" in ran.err  # a CSV file has no room for notes
    one_row = read_csv(keju("export", "a", "q", "--table", "csv").out)
    assert one_row[1:] == [["scripted", accuracy("a"), accuracy("q")]]


@pytest.mark.usefixtures("runs")
def test_intervals_are_optional(keju: Keju) -> None:
    header, row = read_csv(keju("export", "a", "--table", "csv", "--intervals").out)
    assert header == ["model", "Keju demo", "Keju demo low", "Keju demo high"]
    assert float(row[2]) < float(row[1]) < float(row[3])
    assert f"{row[1]} \\[{row[2]}, {row[3]}\\]" in (
        keju("export", "a", "--table", "md", "--intervals").out
    )
    assert "\\[" not in keju("export", "a", "--table", "md").out


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(("file", "form"), [("t.tex", "latex"), ("t.md", "md")])
def test_the_name_of_the_file_implies_the_table(keju: Keju, file: str, form: str) -> None:
    assert keju("export", "a", "b", "-o", file).code == 0
    text = Path(file).read_text()
    assert text == keju("export", "a", "b", "--table", form).out
    assert "keju " not in text.lower().replace("keju demo", "")
    older = keju("export", "a", "--format", {"md": "markdown"}.get(form, form)).out
    assert "boolean" in older  # every subset
    assert "keju audit" not in older


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("a b", "several runs go into one table: keju export a b --table csv"),
        ("a b -o x.csv", "several runs go into one table"),
        ("a --table md -o t.tex", "the file of --table md should end in .md, not t.tex"),
        ("a --table md --format csv", "--table and --format cannot be used together"),
        ("a --intervals", "--intervals works with --table only"),
        ("a --table md --full-text", "--full-text has no effect on a table"),
        ("a --table html", "'html' is not one of 'md', 'latex', 'csv'"),
        ("a nothing --table md", "no run 'nothing'"),
    ],
)
def test_what_a_table_cannot_be_is_refused(keju: Keju, words: str, message: str) -> None:
    ran = keju("export", *words.split())
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_the_paper_table_of_a_published_exam_names_the_metric_and_every_warning_once() -> None:
    document = entry()
    table = make_paper_table([results(benchmarks=[document], model="lab/qwen-7b")], "en")
    assert table.columns == ["BBH"]
    assert table.rows[0].name == "qwen-7b"
    (metric,) = table.metrics
    assert metric.startswith("BBH: ")
    assert "(the paper's metric)" in metric
    for note in table.notes:
        assert "keju " not in note
    assert "论文采用的指标" in make_paper_table([results(benchmarks=[document])], "zh").metrics[0]


def test_names_are_data_in_every_format() -> None:
    evil = results(model="=cmd|x & <b>_{%")
    table = make_paper_table([evil], "en")
    assert "<b>" not in paper_markdown(table, "en", intervals=True)
    assert r"\_\{\%" in paper_latex(table, "en", intervals=True)
    assert paper_rows(table, intervals=False)[1][0] == table.rows[0].name


@pytest.mark.usefixtures("runs")
def test_the_latex_table_compiles(keju: Keju, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    body = keju("export", "a", "b", "q", "--table", "latex", "--intervals").out
    packages = r"\usepackage{booktabs}\usepackage{textcomp}\usepackage[T1]{fontenc}"
    page = rf"\documentclass{{article}}{packages}\begin{{document}}{body}\end{{document}}"
    (tmp_path / "t.tex").write_text(page)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0
