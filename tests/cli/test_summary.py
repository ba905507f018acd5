"""What the summary and the report of a run say, and what they leave out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from keju.benchmarks.ceval.metadata import SUBJECTS
from keju.models.scripted import ScriptedModel
from keju.reporting.format import UNKNOWN
from keju.runs.journal import FILE
from keju.runs.run import REPORT, RESULTS
from tests.cli.conftest import Keju
from tests.runs01.cases import HERE

DEMO = ("eval", "-m", "scripted", "--datasets", "demo", "--run-id", "r", "-q")


def test_a_run_that_was_killed_has_a_report_and_no_tables_of_nothing(
    keju: Keju, tmp_path: Path
) -> None:
    """A kill leaves the manifest and some lines of the journal, but no results."""
    assert keju(*DEMO, "--limit", "2").code == 0
    folder = tmp_path / "runs" / "r"
    lines = (folder / FILE).read_bytes().splitlines(keepends=True)
    first_line = next(line for line in lines if b"boolean_expressions" in line)
    for name in (RESULTS, REPORT):
        (folder / name).unlink()
    for journal, subset in ((first_line, "boolean_expressions"), (b"", "no answers yet")):
        (folder / FILE).write_bytes(journal)
        output = keju("score", "r").out
        assert subset in output
        assert "word_sorting" not in output
        assert ("chance" in output) is bool(journal)
        assert "The run is not complete" in output
        assert keju("report", "r").code == 0
        page = (folder / REPORT).read_text()
        assert subset in page
        assert "word_sorting</td>" not in page
        assert ("<table>" in page) is bool(journal)


def test_the_report_names_the_command_that_gives_what_it_cuts(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = "So it goes on. " * 1_000
    monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=lambda _: reply))
    assert keju(*DEMO, "--limit", "1").code == 0
    page = (tmp_path / "runs" / "r" / REPORT).read_text()
    assert reply not in page
    (command,) = re.findall(r"All of them, uncut:.*?<code>keju (.*?)</code>", page)
    rows = [json.loads(line) for line in keju(*command.split()).out.splitlines()]
    assert [row["reply"] for row in rows] == [reply] * 6


EXAM = """{"question": "1 + 1?", "choices": ["2", "3"], "answer": "A"}
{"question": "2 + 2?", "choices": ["4", "5"], "answer": "A"}
"""


def test_accuracies_of_several_exams_are_not_pooled_while_they_are_asked(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sums.jsonl").write_text(EXAM)
    model = ScriptedModel(script=lambda _: "The answer is (A).")
    monkeypatch.setattr("keju.task.make_model", lambda _: model)
    ran = keju("eval", "-m", "scripted", "--datasets", "demo", "./sums.jsonl", "--limit", "2")
    assert ran.code == 0, ran.err
    one_subset = ran.err.splitlines()[-1]
    assert "sums accuracy 100.0 %," in one_subset, "two questions have no interval"
    assert re.search(r", demo accuracy \d+\.\d % \(\d", one_subset)
    assert ", accuracy" not in one_subset


def test_several_exams_begin_with_one_table(keju: Keju, tmp_path: Path) -> None:
    (tmp_path / "sums.jsonl").write_text(EXAM)
    exams = ("--datasets", "demo", "./sums.jsonl", "--run-id", "r", "--limit", "2")
    ran = keju("eval", "-m", "scripted", *exams, "-q")
    assert ran.code == 0, ran.err
    entries = json.loads((tmp_path / "runs" / "r" / RESULTS).read_text())["benchmarks"]
    titles, _, *rows = ran.out.split("\n\n")[0].splitlines()
    assert re.split("  +", titles.strip()) == [
        *("exam", "protocol", "reader", "headline", "95 % interval", "n", "metric")
    ]
    page = (tmp_path / "runs" / "r" / REPORT).read_text()
    for entry, row in zip(entries, rows, strict=True):
        metric = entry["metrics"][entry["headline"]]
        ends = "–".join(f"{end * 100:.2f}" for end in metric["ci95"] or ()) or UNKNOWN
        figure = f"{metric['value'] * 100:.2f} %"
        name, _, _, *numbers, mean = re.split("  +", row.strip())
        assert [name, *numbers, mean] == [
            *(entry["name"], figure, ends, str(entry["n"]), entry["headline"])
        ]
    assert page.index('id="overview"') < page.index('id="result-0"')
    assert '<a href="#result-1">sums</a>' in page


def test_a_metric_that_equals_another_one_is_no_line_of_its_own(keju: Keju, tmp_path: Path) -> None:
    """All accuracies of one subset are one number."""
    output = "demo.subset_list=[word_sorting]"
    assert keju(*DEMO, "--limit", "3", "--dataset-args", output).code == 0
    score_output = keju("score", "r").out
    figure, also = score_output.splitlines()[1:3]
    value = figure.split(": ")[1].split(",")[0].split(" (")[0]
    assert also.strip().startswith(f"also {value}: mean of the kinds")
    assert "macro_accuracy" not in score_output
    assert "exam " not in score_output.splitlines()[0]


SUMS = """
from keju import Benchmark, Protocol, Question, Wording, by_name, pattern_reader

SUMS = Benchmark(
    name="sums", title="Sums", about="additions", {more}
    questions=lambda setup: [
        Question(f"{{n}} + {{place}}?", str(n + place), subset=kind)
        for place, kind in enumerate("abc") for n in range(4)
    ],
    readers=by_name(pattern_reader("number", r"\\d+")),
    protocols=by_name(
        Protocol(name="plain", version="1", about="", reader="number", headline="macro_accuracy",
                 wording=Wording(question="{{question}}"))
    ),
)
"""


@pytest.mark.parametrize("kind", ["folder", "subsets told by the questions", "subsets declared"])
def test_a_part_of_the_subsets_is_called_partial_where_an_exam_declares_no_means(
    keju: Keju, tmp_path: Path, kind: str
) -> None:
    exam = "custom:quiz"
    if kind == "folder":
        (tmp_path / "quiz").mkdir()
        rows = [{"question": f"{n}?", "answer": str(n), "subset": "abc"[n % 3]} for n in range(12)]
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (tmp_path / "quiz" / "test.jsonl").write_text(lines)
    else:
        exam = "./sums.py"
        declared = 'subset_names=("a", "b", "c"),' if kind == "subsets declared" else ""
        (tmp_path / "sums.py").write_text(SUMS.format(more=declared))
    command = ("eval", "-m", "scripted", "--datasets", exam, "-q", "--no-report")
    for chosen, partial in ((["a", "b", "c"], False), (["a", "c"], True)):
        args = json.dumps({exam: {"subset_list": chosen}})
        ran = keju(*command, "--dataset-args", args, "--run-id", "".join(chosen))
        assert ran.code == 0, ran.err
        assert ("mean over subsets, of which 2 of 3 were asked" in ran.out) == partial
        (entry,) = json.loads(Path("runs", "".join(chosen), RESULTS).read_text())["benchmarks"]
        macro = entry["metrics"]["macro_accuracy"]
        assert macro.get("partial", False) == partial
        assert (macro["tasks"], macro.get("tasks_published")) == (
            len(chosen),
            3 if partial else None,
        )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_group_of_which_a_subset_was_not_asked_is_shown_as_partial(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    """It has the mean over its questions, no mean of subsets, and says why."""
    for subject in SUBJECTS:
        for split in ("val", "dev"):
            file = tmp_path / "data" / "ceval" / split / f"{subject}_{split}.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            rows = 5 if split == "dev" else 3 if subject == "marxism" else 6
            lines = [f"{n},{subject} {n}?,a,b,c,d,A,so" for n in range(rows)]
            head = "id,question,A,B,C,D,answer,explanation"
            file.write_text("\n".join([head, *lines]) + "\n", "utf-8")
    ceval = ("eval", "-m", "scripted", "--datasets", "ceval", "--data-dir", str(tmp_path / "data"))
    ran = keju(*ceval, "--total", "51", "--run-id", "r", "-q", "--json")
    assert ran.code == 0, ran.err
    (entry,) = ran.json["benchmarks"]
    groups = {row["name"]: row for row in entry["groups"]}
    assert [*groups] == ["STEM", "Social Science", "Humanities", "Other", "hard"]
    partial = [row for row in groups.values() if row.get("partial")]
    assert [row["name"] for row in partial] == ["Social Science"]
    for row in partial:
        assert row["accuracy"] is row["ci95"] is None
        assert row["n"] == sum(s["n"] for s in entry["subsets"] if s["name"] in row["subsets"]) > 0
        assert row["micro_accuracy"] is not None
        assert row["name"] not in entry["metrics"]
    monkeypatch.setenv("KEJU_LANGUAGE", language)
    output = keju("score", "r").out
    assert keju("report", "r", "--language", language).code == 0
    mark, why = {
        "en": (" (partial)", "partial: not all subsets of the group have a graded answer"),
        "zh": ("（部分）", "部分：该组并非所有子集都有已评分的回答"),
    }[language]
    for page in (output, (tmp_path / "runs" / "r" / REPORT).read_text("utf-8")):
        assert mark in page
        assert why in " ".join(page.split())


def test_means_of_one_value_and_one_title_are_named_once(keju: Keju) -> None:
    mmlu = ("eval", "-m", "scripted", "--datasets", "mmlu_pro", "--data-dir", str(HERE / "data"))
    output = keju(*mmlu, "--limit", "1", "--run-id", "r", "-q").out
    (line,) = [line for line in output.splitlines() if line.strip().startswith("also ")]
    titles = line.partition(": ")[2].split("; ")
    assert len(set(titles)) == len(titles) > 1


def test_the_list_of_runs_offers_to_go_on_with_one_that_is_not_finished(keju: Keju) -> None:
    assert keju(*DEMO, "--budget", "requests=3", "--eval-batch-size", "1").code == 4
    assert "keju eval --config runs/r/manifest.json --resume" in keju("list", "runs").err
    keju("eval", "--config", "runs/r/manifest.json", "--resume", "--budget", "requests=500", "-q")
    stderr = keju("list", "runs").err
    assert ("keju view r" in stderr, "--resume" in stderr) == (True, False)
