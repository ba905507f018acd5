"""Tables as teachers save them: one command evaluates them, and a line says how they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju

QUIZ = """\
Question;A;B;C;D;Answer
What is 2+2?;3;4;5;6;B
Capital of Italy?;Paris;Rome;Bonn;Oslo;Rome
What is the chemical symbol of gold?;;;;;Au
"""
QUIZ_ZH = """\
题目,选项A,选项B,答案
中国的首都是哪里？,北京,上海,A
金的化学符号是什么？,Au,Ag,Au
"""
EVAL = ("eval", "-m", "scripted", "--datasets")
KINDS = "2 multiple-choice questions, 1 free-text question, each kind is a separate subset"
COLUMNS = "columns question = Question, answer = Answer"


def reading_of(stderr: str) -> str:
    """Return the line that says how a table is read."""
    (line,) = (line for line in stderr.splitlines() if " is read as: " in line)
    return line.partition(" is read as: ")[2]


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("quiz.csv", QUIZ.encode(), "; separated by ;"),
        ("quiz.csv", b"\xef\xbb\xbf" + QUIZ.replace("\n", "\r\n").encode(), "; separated by ;"),
        ("quiz.csv", QUIZ.encode("utf-16"), "; separated by ;; encoded as UTF-16"),
        ("quiz.csv", b"sep=;\r\n" + QUIZ.encode(), "; separated by ;"),
        ("quiz.csv", QUIZ.replace(";", ",").encode(), ""),
        ("QUIZ.CSV", QUIZ.replace(";", "|").encode(), "; separated by |"),
        ("quiz.tsv", QUIZ.replace(";", "\t").encode(), "; separated by tabs"),
        ("quiz.csv", QUIZ.replace("\n", ";;\n").encode() + b";;;;;;;\n", "; separated by ;"),
    ],
)
def test_a_table_is_evaluated_by_one_command(
    keju: Keju, tmp_path: Path, name: str, content: bytes, form: str
) -> None:
    (tmp_path / name).write_bytes(content)
    ran = keju(*EVAL, name, "--json")
    assert ran.code == 0, ran.err
    assert reading_of(ran.err) == f"{KINDS}; {COLUMNS}{form}"
    (entry,) = ran.json["benchmarks"]
    assert [(s["name"], s["n"]) for s in entry["subsets"]] == [
        ("multiple-choice", 2),
        ("free-text", 1),
    ]
    guess = entry["metrics"]["chance"]["value"]
    assert guess == pytest.approx(sum(row["n"] * row["chance"] for row in entry["subsets"]) / 3)
    assert entry["subsets"][1]["chance"] == 0
    shown = keju("show", name, "--subset", "multiple-choice", "--index", "1").out
    assert "target: B" in shown
    chinese = keju(*EVAL, name, "--dry-run", "--language", "zh")
    assert "读取方式：2 道选择题，1 道问答题，两类各成一个子集" in chinese.out


def test_a_chinese_table_in_gb18030(keju: Keju, tmp_path: Path) -> None:
    (tmp_path / "quiz.csv").write_bytes(QUIZ_ZH.encode("gb18030"))
    ran = keju(*EVAL, "quiz.csv", "--json")
    assert ran.code == 0, ran.err
    columns = "question = 题目, answer = 答案, A = 选项A, B = 选项B"
    form = "encoded as GB18030; instructions in Chinese"
    expected = f"2 multiple-choice questions; columns {columns}; {form}"
    assert reading_of(ran.err) == expected
    shown = keju("show", "quiz.csv").out
    assert "请先思考" in shown
    assert "ANSWER" not in shown


def score_outputs(keju: Keju, table: str, **outputs: str) -> dict[str, Any]:
    rows = [{"id": key, "output": text} for key, text in outputs.items()]
    Path("p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = keju("score", "--datasets", table, "--predictions", "p.jsonl", "--json")
    assert ran.code == 0, ran.err
    by_name = {entry["reader"]: entry for entry in ran.json["benchmarks"]}
    return {s["name"]: s["outcomes"] for s in by_name["robust"]["subsets"]}


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("The symbol of gold is Au.", "correct"),
        ("ANSWER: The chemical symbol of gold is Au", "correct"),
        ("ANSWER: Au", "correct"),
        ("The symbol of gold is not Au.", "incorrect"),
        ("ANSWER: Au or Ag", "incorrect"),
    ],
)
def test_a_whole_sentence_counts_if_it_states_the_answer(
    keju: Keju, tmp_path: Path, reply: str, outcome: str
) -> None:
    (tmp_path / "quiz.csv").write_text(QUIZ)
    outputs = {
        "quiz_multiple-choice_0": "ANSWER: B",
        "quiz_multiple-choice_1": "ANSWER: A",
        "quiz_free-text_0": reply,
    }
    outcomes = score_outputs(keju, "quiz.csv", **outputs)
    assert outcomes["free-text"][outcome] == 1
    choice = outcomes["multiple-choice"]
    assert (choice["correct"], choice["incorrect"]) == (1, 1)


def test_subsets_of_both_kinds_are_divided_and_others_keep_their_names(
    keju: Keju, tmp_path: Path
) -> None:
    rows = "question,A,B,answer,category\nq1?,x,y,A,art\nq2?,,,z,art\nq3?,x,y,B,sport\n"
    (tmp_path / "quiz.csv").write_text(rows)
    (tmp_path / "few.csv").write_text(rows)
    ran = keju(*EVAL, "quiz.csv", "--json")
    names = [s["name"] for s in ran.json["benchmarks"][0]["subsets"]]
    assert names == ["art-multiple-choice", "art-free-text", "sport"]
    kinds = "2 multiple-choice questions (art-multiple-choice, sport), "
    assert kinds + "1 free-text question (art-free-text)" in reading_of(ran.err)


def test_a_table_without_answers_says_so(keju: Keju, tmp_path: Path) -> None:
    (tmp_path / "quiz.csv").write_text("question,answer;note\nq?,x;y\n")
    ran = keju(*EVAL, "quiz.csv", "--dry-run")
    assert "no right answers, so replies are stored and not graded" in ran.out


def test_worked_examples_of_each_kind_go_to_their_questions(keju: Keju, tmp_path: Path) -> None:
    (tmp_path / "quiz").mkdir()
    (tmp_path / "quiz" / "q.csv").write_text(QUIZ)
    shots = "question,A,B,answer\n1+1?,2,3,A\nSymbol of iron?,,,Fe\n"
    (tmp_path / "quiz" / "few_shot.csv").write_text(shots)
    free = keju("show", "./quiz", "--subset", "free-text").out
    choice = keju("show", "./quiz", "--subset", "multiple-choice").out
    assert ("Symbol of iron?" in free, "1+1?" in free) == (True, False)
    assert ("Symbol of iron?" in choice, "1+1?" in choice) == (False, True)


@pytest.mark.parametrize(
    ("header", "answer", "target"),
    [
        ("question,A,B,C,answer", "b", "B"),
        ("question,A,B,C,answer", "(B)", "B"),
        ("question,A,B,C,answer", "B.", "B"),
        ("question,A,B,C,answer", "Ｂ", "B"),
        ("question,A,B,C,answer", "B) Rome", "B"),
        ("question,A,B,C,answer", "选项B", "B"),
        ("question,A,B,C,answer", "rome", "B"),
        ("question,Option 1,Option 2,Option 3,Correct Answer", "2", "B"),
        ("question,choice0,choice1,choice2,answer", "1", "B"),
    ],
)
def test_the_right_option_is_written_in_usual_ways(
    keju: Keju, tmp_path: Path, header: str, answer: str, target: str
) -> None:
    (tmp_path / "quiz.csv").write_text(f"{header}\nCapital of Italy?,Paris,Rome,Bonn,{answer}\n")
    ran = keju("show", "quiz.csv")
    assert (ran.code, f"target: {target}" in ran.out) == (0, True), ran.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('question,A,B,answer\nq?,x,y,"A,B"\n', "several right answers"),
        ("question,A,B,answer\nq?,x,y,AB\n", "several right answers"),
        ("question,A,B,answer\nq?,x,y,A) y\n", "neither a letter from A to B nor the text"),
        ("question,A,B,answer\nq?,x,y,C\n", "neither a letter from A to B nor the text"),
        ("question,1,2,answer\nq?,2,1,2\n", "is a letter and the text of option A"),
        ("question,A,B,answer\nq?,,,B\nr?,x,y,A\n", "row 1: the answer is the letter B, but the"),
        ("question,A,B,answer\nq?,x,,A\n", "1 option"),
        ("question,A,A,answer\nq?,x,y,A\n", "several columns are called A"),
        ("question,answer,key\nq?,x\n", "row 1: no value for column key"),
        ("question,answer\nq?,x,y\n", "row 1: more values than columns"),
        ("question,answer,\nq?,x,y\n", "row 1: a value in a column without a name"),
        ("Frage,Antwort\nq?,x\n", "'question' is missing; found: Frage, Antwort"),
        ("question,Solution,Answer Key\nq?,x,y\n", "Solution, Answer Key could all be 'answer'"),
        ("question;x,question\nq?,x;y\n", "the separator is unclear: , or ; would fit"),
    ],
)
def test_an_ambiguous_table_is_refused_with_what_to_change(
    keju: Keju, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "quiz.csv").write_text(text)
    ran = keju(*EVAL, "quiz.csv")
    assert ran.code == 2, ran.out
    assert len(ran.err.splitlines()) == 1
    assert message in ran.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("encoding", ["cp1252", "cp949", "shift-jis"])
def test_a_text_in_another_encoding_is_never_read_as_chinese(
    keju: Keju, tmp_path: Path, encoding: str
) -> None:
    texts = {
        "cp1252": "Wo liegt Köln? Gehört Düsseldorf dazu?,Rhein",
        "cp949": "프랑스의 수도는 어디입니까 그리고 독일의 수도는,파리",
        "shift-jis": "フランスの首都はどこですか,パリ",
    }
    content = f"question,answer\n{texts[encoding]}\n".encode(encoding)
    (tmp_path / "quiz.csv").write_bytes(content)
    ran = keju(*EVAL, "quiz.csv")
    assert (ran.code, "the encoding is unclear" in ran.err) == (2, True)
    (tmp_path / "quiz").mkdir()
    (tmp_path / "quiz" / "exam.yaml").write_text(f"encoding: {encoding}")
    (tmp_path / "quiz" / "q.csv").write_bytes(content)
    ran = keju("show", "./quiz", "--json")
    assert ran.code == 0, ran.err
    assert texts[encoding].partition(",")[0] in json.dumps(ran.json, ensure_ascii=False)


def test_init_exam_writes_the_guess_and_the_same_exam_follows(keju: Keju, tmp_path: Path) -> None:
    (tmp_path / "quiz.csv").write_text(QUIZ)
    assert keju("init", "exam", "quiz.csv").code == 0
    text = (tmp_path / "quiz" / "exam.yaml").read_text()
    for line in ("kind: mixed", "  question: Question", "  answer: Answer", 'separator: ";"'):
        assert line in text
    ran = keju(*EVAL, "./quiz", "--json")
    assert (ran.code, "is read as" in ran.err) == (0, False)
    questions = [keju("show", name, "--json").json for name in ("quiz.csv", "./quiz")]
    assert questions[0] == questions[1]
    again = keju("init", "exam", "quiz.csv")
    assert (again.code, "exam.yaml" in again.err) == (2, True)


def test_a_wrong_guess_is_corrected_in_the_exam_file(keju: Keju, tmp_path: Path) -> None:
    (tmp_path / "quiz.csv").write_text("Frage,x,y,Antwort\nHauptstadt von Italien?,Rom,Bonn,y\n")
    assert keju("show", "quiz.csv").code == 2
    (tmp_path / "quiz").mkdir()
    (tmp_path / "quiz.csv").rename(tmp_path / "quiz" / "quiz.csv")
    columns = "columns: {question: Frage, answer: Antwort, A: x, B: y}\n"
    (tmp_path / "quiz" / "exam.yaml").write_text(columns)
    ran = keju("show", "./quiz")
    assert ran.code == 2
    assert "the answer 'y' is neither a letter" in ran.err
    (tmp_path / "quiz" / "exam.yaml").write_text(columns.replace("Antwort", "Antwrt"))
    assert "'answer' from the column 'Antwrt', which does not exist (did you mean 'Antwort'?)" in (
        keju("show", "./quiz").err
    )


# --- XLSX ----------------------------------------------------------------------------------------


def write_workbook(path: Path, *rows: list[Any]) -> Any:
    """Write the rows into the sheet ``Quiz``, and return the workbook for changes."""
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra data")
    workbook = openpyxl.Workbook()
    workbook.active.title = "Quiz"
    for row in rows:
        workbook.active.append(row)
    workbook.save(path)
    return workbook


XLSX_ROWS = (
    ["Question", "A", "B", "C", "Answer"],
    ["2+2?", 3, 4.0, 5, "B"],
    ["Half of all?", 0.5, 0.25, 1, "50%"],
    ["Symbol of gold?", None, None, None, "Au"],
)


def test_an_xlsx_file_is_read_as_it_is_shown(keju: Keju, tmp_path: Path) -> None:
    workbook = write_workbook(tmp_path / "quiz.xlsx", *XLSX_ROWS)
    workbook.active["B3"].number_format = "0%"
    workbook.save(tmp_path / "quiz.xlsx")
    ran = keju(*EVAL, "quiz.xlsx", "--json")
    assert ran.code == 0, ran.err
    assert reading_of(ran.err) == f"{KINDS}; {COLUMNS}; sheet Quiz"
    shown = keju("show", "quiz.xlsx", "--subset", "multiple-choice", "--index", "1").out
    assert ("A) 50%\n" in shown, "target: A" in shown) == (True, True)
    assert keju("init", "exam", "quiz.xlsx").code == 0
    assert "sheet: Quiz" in (tmp_path / "quiz" / "exam.yaml").read_text()
    assert keju(*EVAL, "./quiz", "-q").code == 0


def test_what_an_xlsx_file_cannot_say_is_one_line(keju: Keju, tmp_path: Path) -> None:
    from datetime import date

    def refuse(message: str, *rows: list[Any]) -> None:
        write_workbook(tmp_path / "quiz.xlsx", *rows)
        refuse_file(message)

    def refuse_file(message: str) -> None:
        ran = keju(*EVAL, "quiz.xlsx")
        assert (ran.code, len(ran.err.splitlines())) == (2, 1)
        assert message in ran.err

    header = ["question", "answer"]
    refuse("cell B2 holds a formula without a stored result", header, ["1+1?", "=1+1"])
    refuse("cell B2 holds a date", header, ["1/2?", date(2024, 2, 1)])
    refuse("cell B2 holds the error #REF!", header, ["1+1?", "#REF!"])
    refuse(
        "the names of the columns are in row 3. Delete the 2", ["Quiz"], [None], header, ["q", 1]
    )
    workbook = write_workbook(tmp_path / "quiz.xlsx", header, ["1+1?", 2], ["2+2?", 4])
    workbook.active.merge_cells("B2:B3")
    workbook.save(tmp_path / "quiz.xlsx")
    refuse_file("the cells B2:B3 are merged. Unmerge them")
    workbook = write_workbook(tmp_path / "quiz.xlsx", header, ["1+1?", 2])
    workbook.create_sheet("Other").append(header)
    workbook.save(tmp_path / "quiz.xlsx")
    refuse_file("several sheets with questions: Quiz, Other")
    (tmp_path / "quiz.xlsx").write_bytes(b"PK no workbook")
    refuse_file("is not an XLSX file that can be read")
