"""Exams in folders of the user's own, as commands compare, list, plan and set them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from keju.models.scripted import ScriptedModel
from keju.reporting.format import Labels
from keju.results.schema import from_document
from keju.types import Request
from keju.viewer.leaderboard import leaderboards
from keju.viewer.run_index import RunIndex
from keju.viewer.summary import run_summaries
from tests.cli.conftest import Keju

ROWS = """\
question,answer,subset
Capital of France?,Paris,europe
Capital of Spain?,Madrid,europe
Capital of Chile?,Santiago,america
Capital of Peru?,Lima,america
"""
SHOTS = """\
question,answer,subset
Capital of Italy?,Rome,europe
Capital of Malta?,Valletta,europe
Capital of Cuba?,Havana,america
"""


@pytest.fixture
def cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An exam of two subsets in the folder ``cap`` below the working folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "cap"
    folder.mkdir()
    (folder / "q.csv").write_text(ROWS)
    return folder


def evaluate(keju: Keju, run: str, *flags: str) -> None:
    ran = keju("eval", "-m", "scripted", "--datasets", "./cap", "-q", "--run-id", run, *flags)
    assert ran.code == 0, ran.err


EUROPE = ("--dataset-args", "cap.subset_list=[europe]")


@pytest.mark.parametrize("shots", ["", SHOTS])
def test_a_part_of_the_subsets_is_compared_with_the_whole(
    keju: Keju, cap: Path, shots: str
) -> None:
    if shots:
        (cap / "few_shot.csv").write_text(shots)
    evaluate(keju, "whole")
    evaluate(keju, "part", *EUROPE)
    document = json.loads(keju("compare", "whole", "part", "--json").out)
    assert document["comparable"]
    assert document["comparisons"][0]["n"] == 2
    assert "few_shot_num" not in [
        mismatch["field"] for mismatch in document["comparisons"][0]["unlike"]
    ]
    assert keju("diff", "whole", "part").code == 0
    assert "not comparable" not in keju("gate", "part", "--baseline", "whole", "--margin", "1").out


def test_other_worked_examples_on_the_subsets_of_both_are_not_comparable(
    keju: Keju, cap: Path
) -> None:
    (cap / "few_shot.csv").write_text(SHOTS)
    evaluate(keju, "whole")
    evaluate(keju, "part", *EUROPE, "--set", "dataset_args.cap.few_shot_num=1")
    ran = keju("compare", "whole", "part", "--json")
    assert not json.loads(ran.out)["comparable"]
    assert "few_shot_num" in ran.err


def test_a_run_that_would_shrink_names_the_subsets_that_it_lacks(keju: Keju, cap: Path) -> None:
    evaluate(keju, "r")
    ran = keju("eval", "-m", "scripted", "--datasets", "./cap", "--run-id", "r", *EUROPE)
    assert ran.code != 0
    assert "subset_list" in ran.err
    assert "few_shot_num" not in ran.err


def test_the_tables_of_the_viewer_name_other_subsets_alone(keju: Keju, cap: Path) -> None:
    evaluate(keju, "whole")
    evaluate(keju, "part", *EUROPE)
    run_index, labels = RunIndex(Path("runs")), Labels("en")
    run_index.refresh()
    summaries = [
        run_summary for stored in run_index for run_summary in run_summaries(stored, labels)
    ]
    ((_, tables),) = leaderboards(summaries, labels)
    assert len(tables) == 2
    differing_fields = [name for name, _ in tables[0].differing]
    assert "subset_list" in differing_fields
    assert "few_shot_num" not in differing_fields


def test_the_subsets_of_a_folder_are_listed_with_a_command_that_works(
    keju: Keju, cap: Path
) -> None:
    cap.rename("my caps")
    subsets = keju("list", "subsets", "--benchmark", "./my caps", "--json").json["subsets"]
    assert [(row["subset"], row["questions"]) for row in subsets] == [("europe", 2), ("america", 2)]
    next_steps = keju("list", "subsets", "--benchmark", "./my caps").err
    step = next(line for line in next_steps.splitlines() if "keju eval" in line)
    _, *words = shlex.split(step)
    assert keju(*words, "--run-id", "r", "-q").code == 0
    assert from_document(json.loads(Path("runs/r/results.json").read_text())).benchmarks[0].n == 2


def test_a_gate_on_an_exam_at_a_path_is_planned(keju: Keju, cap: Path) -> None:
    evaluate(keju, "p1")
    evaluate(keju, "p3")
    gate = ("--pilot", "p3", "--baseline", "p1", "--margin", "0.05")
    ran = keju("plan", "./cap", *gate, "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["exam"], ran.json["baseline"]) == ("cap", "p1")


def test_a_plan_says_of_each_number_which_questions_it_is_about(keju: Keju, cap: Path) -> None:
    plan = ("plan", "./cap", "--mde", "0.1")
    ran = keju(*plan)
    output = " ".join((ran.out + ran.err).split())
    assert "For this very set of questions, and no others like them, 4 questions show the" in output
    assert (
        "for questions like these in general, 231 would show this difference, and there" in output
    )
    ran = keju(*plan, "--language", "zh")
    output = "".join((ran.out + ran.err).split())
    assert "若只论这套题本身，不论同类题目，4题即可显示这一差异" in output
    assert "若论同类题目，需要231题才能显示这一差异，而共有4题" in output


@pytest.mark.parametrize("key", ["cap", "capitals"])
def test_settings_go_by_the_name_of_the_folder_or_of_the_exam(
    keju: Keju, cap: Path, key: str
) -> None:
    (cap / "exam.yaml").write_text("name: capitals\n")
    chosen = ("--dataset-args", f"{key}.subset_list=[america]")
    evaluate(keju, "r", *chosen)
    assert from_document(json.loads(Path("runs/r/results.json").read_text())).benchmarks[0].n == 2
    assert "Chile" in keju("show", "./cap", *chosen).out


def test_a_name_that_two_exams_have_is_refused_with_names_that_can_be_typed(
    keju: Keju, cap: Path
) -> None:
    (cap / "exam.yaml").write_text("name: more\n")
    other_folder = Path("more")
    other_folder.mkdir()
    (other_folder / "q.csv").write_text(ROWS)
    (other_folder / "exam.yaml").write_text("name: others\n")
    eval_both = ("eval", "-m", "scripted", "--datasets", "./cap", "./more", "--dataset-args")
    ran = keju(*eval_both, "more.limit=1")
    assert ran.code == 2
    assert "dataset_args names 'more', which is not run (valid: cap, others)" in ran.err
    assert keju(*eval_both, '{"cap": {"limit": 1}, "others": {"limit": 1}}', "-q").code == 0


def test_a_file_needs_no_folder_in_its_name(keju: Keju, cap: Path) -> None:
    (cap / "q.csv").rename("sums.csv")
    words = ("eval", "-m", "scripted", "--datasets", "sums.csv", "--dataset-args", "sums.limit=1")
    ran = keju(*words, "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["benchmarks"][0]["name"], ran.json["benchmarks"][0]["n"]) == ("sums", 2)
    ran = keju("eval", "-m", "scripted", "--datasets", "summs.csv")
    assert (ran.code, "no exam at summs.csv" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("exam_file", "args", "message"),
    [
        ("", '{"cap": {"few_shot_num": 2}}', "the exam has none: put them into a file few_shot"),
        ("", '{"cap": {"reader": {"marker": "X"}}}', "dataset_args.cap: reader: expected names"),
        ("template: '{qestion}'", "{}", "exam.yaml: template: unknown placeholder '{qestion}'"),
        ("", '{"cap": {"prompt_template": "{qestion}"}}', "error: prompt_template: unknown"),
        ("reader: leter", "{}", "'regex' (did you mean 'letter'?)"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_what_to_write(
    keju: Keju, cap: Path, exam_file: str, args: str, message: str
) -> None:
    if exam_file:
        (cap / "exam.yaml").write_text(exam_file)
    ran = keju("eval", "-m", "scripted", "--datasets", "./cap", "--dataset-args", args)
    assert ran.code == 2
    assert message in ran.err


FREE = "question,answer\n"


@pytest.mark.parametrize(
    ("file", "text", "messages"),
    [
        ("own/q.txt", "Who?", ("own/q.txt", "should end in", ".csv", ".jsonl", ".yaml")),
        ("own/q.csv", "quesiton,answer\nWho?,Ann\n", ("found: quesiton, answer", "'quesiton'")),
        ("own/q.csv", "text,answer\nWho?,Ann\n", ("'question' is missing; found: text, answer",)),
    ],
)
def test_files_that_are_no_exam_are_told_what_is_wrong_and_what_to_do(
    keju: Keju, tmp_path: Path, file: str, text: str, messages: tuple[str, ...]
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / file).write_text(text)
    name = "./own" if file.endswith(".csv") else f"./{file}"
    ran = keju("eval", "-m", "scripted", "--datasets", name, "--dry-run")
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert all(words in ran.err for words in messages), ran.err
    chinese = keju("eval", "-m", "scripted", "--datasets", name, "--dry-run", "--language", "zh")
    assert (chinese.code, chinese.err == ran.err) == (2, False)


@pytest.mark.parametrize(
    ("columns", "reading"),
    [
        ("question,a,b,c,answer", "A–C = a–c"),
        ("question,A,B,c,answer", "C = c"),
        ("question,option_a,optionB,answer", "A = option_a, B = optionB"),
        ("question,Choice_1,Choice_2,answer", "A = Choice_1, B = Choice_2"),
        ("question,opt0,opt1,answer", "A = opt0, B = opt1"),
        ("question,a,b,gold", "answer = gold, A = a, B = b"),
        (
            "题目,选项A,选项B,答案",
            "question = 题目, answer = 答案, A = 选项A, B = 选项B; instructions in Chinese",
        ),
        ("Question,A,B,Answer", "question = Question, answer = Answer"),
        ("question,A,B,TARGET", "answer = TARGET"),
        ("question,A,B,label", "answer = label"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "yaml"])
def test_columns_with_usual_other_names_are_read_and_named(
    keju: Keju, tmp_path: Path, ending: str, columns: str, reading: str
) -> None:
    write_row(tmp_path / f"own.{ending}", columns)
    ran = keju("eval", "-m", "scripted", "--datasets", f"own.{ending}", "--run-id", "r")
    assert ran.code == 0, ran.err
    assert f"own is read as: 1 multiple-choice question; columns {reading}\n" in ran.err


def write_row(file: Path, columns: str) -> None:
    """Write a table of one row, whose last value is the right answer A."""
    keys = columns.split(",")
    cells = ["A" if key == keys[-1] else f"text {n}" for n, key in enumerate(keys)]
    row = json.dumps(dict(zip(keys, cells, strict=True)))
    texts = {".csv": f"{columns}\n{','.join(cells)}\n", ".jsonl": f"{row}\n"}
    file.write_text(texts.get(file.suffix, f"[{row}]"))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "yaml"])
def test_a_column_that_misses_a_name_narrowly_is_refused_with_the_name(
    keju: Keju, tmp_path: Path, ending: str
) -> None:
    write_row(tmp_path / f"own.{ending}", "question,anwser")
    eval_words = ("eval", "-m", "scripted", "--datasets", f"./own.{ending}", "--run-id", "r")
    ran = keju(*eval_words)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert f"own.{ending}, row 1: Keju does not know the column anwser: call it answer" in ran.err
    assert "请依次改名为：answer。" in keju(*eval_words, "--language", "zh").err
    assert not (tmp_path / "runs" / "r").exists()


def test_two_columns_for_one_meaning_are_refused(keju: Keju, tmp_path: Path) -> None:
    write_row(tmp_path / "own.csv", "question,gold,label")
    ran = keju("eval", "-m", "scripted", "--datasets", "own.csv")
    assert (ran.code, "gold, label could all be 'answer'; rename" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("columns", "template"),
    [
        ("question,answer,explanation,id,source,notes,Notes,label,gold", ""),
        ("question,A,B,answer,a,option_a,Answer,correct", ""),
        ("question,choices,answer,a,b", ""),
        ("question,target,a", ""),
        ("question,answer,option_a,answer_type", ""),
        ("question,answer_type,optional", ""),
        ("question,a,b,answer", "{question} {a} or {b}"),
        ("question,label", "{question} ({label})"),
    ],
)
def test_other_columns_are_allowed_without_a_word(
    keju: Keju, tmp_path: Path, columns: str, template: str
) -> None:
    row = {key: f"text {n}" for n, key in enumerate(columns.split(","))}
    full_row: dict[str, object] = {**row, "choices": ["x", row.get("answer")]}
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "q.json").write_text(json.dumps([full_row if "choices" in row else row]))
    if "A" in row:
        (tmp_path / "own" / "q.json").write_text(json.dumps([{**row, "answer": "A"}]))
    exam_args = json.dumps({"own": {"prompt_template": template}}) if template else "{}"
    eval_words = ("eval", "-m", "scripted", "--datasets", "./own", "--dry-run")
    ran = keju(*eval_words, "--dataset-args", exam_args)
    assert ran.code == 0, ran.err
    assert "column" not in ran.out + ran.err
    if template:
        (tmp_path / "own" / "exam.yaml").write_text(json.dumps({"template": template}))
        assert keju(*eval_words).code == 0


def test_columns_of_worked_examples_may_have_other_names_too(keju: Keju, cap: Path) -> None:
    (cap / "few_shot.csv").write_text(SHOTS.replace("answer", "Answer"))
    ran = keju("eval", "-m", "scripted", "--datasets", "./cap", "--dry-run")
    assert ran.code == 0
    assert "Capital of Italy?\n\nANSWER: Rome" in ran.out


def test_a_kind_that_the_exam_file_says_is_named(keju: Keju, cap: Path) -> None:
    (cap / "exam.yaml").write_text("kind: choice")
    ran = keju("eval", "-m", "scripted", "--datasets", "./cap", "--dry-run")
    assert (ran.code, "the exam is of kind 'choice'" in ran.err) == (2, True)


@pytest.mark.parametrize("flags", [("--dry-run",), ("--run-id", "r")])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("Who?,Ann\n2+2?,4\nWhere?,here\n", "1 of 3 right answers (33.33 %) are numbers"),
        (
            "Who?,Ann\nWhere?,here\nWho?,Ann\nWho?,Ann\n",
            "2 questions repeat another word for word, and are asked and counted again; the first "
            "is own.csv, row 3, the same as own.csv, row 1",
        ),
    ],
)
def test_what_could_mislead_about_questions_is_said_before_they_are_asked(
    keju: Keju, tmp_path: Path, rows: str, message: str, flags: tuple[str, ...]
) -> None:
    (tmp_path / "own.csv").write_text(FREE + rows)
    ran = keju("eval", "-m", "scripted", "--datasets", "./own.csv", *flags)
    assert ran.code == 0
    assert [line for line in (ran.out + ran.err).splitlines() if message in line]


@pytest.mark.parametrize(
    "text",
    [
        FREE + "2+2?,4\n3+3?,6\n",
        FREE + "Who?,Ann\nWhere?,here\n",
        "question,answer,country\nCapital?,Paris,France\nCapital?,Rome,Italy\n",
        "question,A,B,answer\nWhich?,1,2,A\nWhich?,3,4,B\n",
    ],
)
def test_nothing_is_said_of_questions_that_differ_and_answers_of_one_kind(
    keju: Keju, tmp_path: Path, text: str
) -> None:
    (tmp_path / "own.csv").write_text(text)
    ran = keju("eval", "-m", "scripted", "--datasets", "./own.csv", "--dry-run")
    assert "everything is in place" in ran.out + ran.err
    assert "repeat" not in ran.out + ran.err
    assert "numbers" not in ran.out + ran.err


def test_a_free_answer_that_another_reader_finds_right_is_listed(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: Request) -> str:
        return "2 + 2 = 4" if "2+2" in request.prompt.tail else "ANSWER: Madrid"

    monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=answer))
    (tmp_path / "own.csv").write_text(FREE + "2+2?,4\nCapital of Spain?,Madrid\n")
    keju("eval", "-m", "scripted", "--datasets", "./own.csv", "-q", "--run-id", "r")
    (exam,) = keju("audit", "r", "--json").json["exams"]
    (finding,) = exam["findings"]
    assert (finding["target"], finding["outcomes"]["robust"]) == ("4", "incorrect")
    assert finding["outcomes"]["number"] == "correct"
    assert "no reply is suspect" not in keju("audit", "r").out


def test_a_prompt_that_was_never_sent_is_not_shown(keju: Keju, cap: Path) -> None:
    evaluate(keju, "old", "--repeats", "2")
    (cap / "q.csv").write_text(ROWS.replace("Capital of Spain?", "Capital of Austria?"))
    edited, unchanged = "cap_europe_1", "cap_europe_0"
    stored = ("show", "old", "--sample")
    for language, message in (
        ("en", "the data has changed since the run (q.csv): the prompt as it was sent cannot be"),
        ("zh", "数据在运行之后有改动（q.csv）：无法显示当时发送的提示词"),
    ):
        output = keju(*stored, edited, "--language", language)
        assert (output.code, message in output.err) == (0, True), output.err
        assert "Austria" not in output.out
        assert "target: Madrid" in output.out or language == "zh"
    document = keju(*stored, edited, "--json").json
    assert document["prompt"] is None
    assert [reply.get("epoch", 0) for reply in document["replies"]] == [0, 1]
    unchanged_output = keju(*stored, unchanged)
    assert "Capital of France?" in unchanged_output.out
    assert not unchanged_output.err, "this question is what it was"


def test_a_question_that_is_gone_is_told_so(keju: Keju, cap: Path) -> None:
    evaluate(keju, "old")
    (cap / "q.csv").write_text("".join(ROWS.splitlines(keepends=True)[:-1]))
    output = keju("show", "old", "--sample", "cap_america_1")
    assert (output.code, "the data has changed since the run" in output.err) == (0, True), (
        output.err
    )


def test_a_prompt_of_another_version_is_that_of_the_same_data(keju: Keju, cap: Path) -> None:
    evaluate(keju, "old")
    journal = Path("runs", "old", "records.jsonl")
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    for number, row in enumerate(rows):
        row["hash"] = f"{number:032x}"
        del row["crc"]  # 0.1 wrote none
    journal.write_text("".join(json.dumps(row) + "\n" for row in rows))
    output = keju("show", "old", "--sample", "cap_europe_1")
    assert (output.code, "Capital of Spain?" in output.out, output.err) == (0, True, "")


def test_a_folder_does_not_hide_the_run_of_its_name(keju: Keju, cap: Path) -> None:
    evaluate(keju, "cap")
    evaluate(keju, "other", "--seed", "7")
    for words in (
        ("compare", "cap", "other"),
        ("compare", "other", "cap", "--datasets", "cap"),
        ("diff", "cap", "cap"),
        ("report", "cap", "other", "-o", "both.html"),
        ("audit", "other", "--beside", "cap"),
    ):
        ran = keju(*words)
        assert ran.code == 0, (words, ran.err)
    gate = keju("gate", "cap", "--at-least", "0.1", "--json")
    assert gate.json["run"] == "cap", gate.err
    evaluate(keju, "until", "--until-decided", "cap")
    manifest = Path("runs", "until", "manifest.json")
    assert json.loads(manifest.read_text())["config"]["until_decided"] == "cap"
    resumed = keju("eval", "-c", str(manifest))
    assert resumed.code == 0, resumed.err


def test_a_source_at_a_path_goes_before_the_run_of_its_name(keju: Keju, cap: Path) -> None:
    evaluate(keju, "cap")
    evaluate(keju, "preds")
    Path("preds").write_text('{"id": "cap_europe_0", "output": "ANSWER: Paris"}\n')
    document = keju("compare", "cap", "preds", "--datasets", "./cap", "--json").json
    assert document["comparisons"][0]["n"] == 1, "the file was read, as its exam is named"
    assert keju("compare", "cap", "preds").code == 0, "without an exam it can only be the run"
    (Path("empty")).mkdir()
    assert keju("compare", "cap", "empty").code == 2
