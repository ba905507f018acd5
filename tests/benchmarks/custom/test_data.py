"""Questions in every format give the same exam; wrong rows are named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from keju.errors import DataError
from tests.benchmarks.custom.conftest import CAPITALS, Lay, lines, prepare

ROWS = [
    {"question": "2 + 2?", "choices": ["3", "4"], "answer": "4", "subset": "sums", "id": 7},
    {"question": "3 + 3?", "choices": ["6", "9"], "answer": "a", "subset": "sums", "id": 8},
]
YAML = """\
- {question: "2 + 2?", choices: [3, 4], answer: 4, subset: sums, id: 7}
- {question: "3 + 3?", options: ["6", "9"], target: A, category: sums, id: 8}
"""
CSV = """\
id,question,choices,answer,subset
7,2 + 2?,"[""3"", ""4""]",4,sums
8,3 + 3?,"[6, 9]",A,sums
"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.jsonl", lines(*ROWS)),
        ("q.jsonl.gz", gzip.compress(lines(*ROWS).encode(), mtime=0)),
        ("q.json", json.dumps(ROWS)),
        ("q.json", json.dumps({"questions": ROWS})),
        ("q.yaml", YAML),
        ("q.yml", "questions:\n" + YAML),
        ("q.csv", CSV),
        ("q.csv", "\ufeff" + CSV.replace("\n", "\r\n")),
    ],
)
def test_every_format_gives_the_same_exam(write_quiz: Lay, name: str, content: str | bytes) -> None:
    exam = prepare(write_quiz({name: content}))
    rows = [(s.id, s.subset, s.index, s.text, s.choices, s.target) for s in exam.samples]
    assert rows == [
        ("7", "sums", 0, "2 + 2?", ("3", "4"), "B"),
        ("8", "sums", 1, "3 + 3?", ("6", "9"), "A"),
    ]
    assert set(exam.data.files) == {name}
    assert exam.benchmark == "quiz"


def test_lettered_columns_and_subsets_in_the_order_of_their_first_row(write_quiz: Lay) -> None:
    exam = prepare(write_quiz({"capitals.csv": CAPITALS}))
    assert [(s.id, s.target, len(s.choices)) for s in exam.samples] == [
        ("quiz_europe_0", "A", 3),
        ("quiz_europe_1", "B", 2),
        ("quiz_america_0", "A", 4),
    ]
    assert [(s.name, s.start, s.stop) for s in exam.subsets] == [
        ("europe", 0, 2),
        ("america", 2, 3),
    ]


def test_files_are_subsets_where_rows_name_none(write_quiz: Lay) -> None:
    row = {"question": "1 + 1?", "answer": 2}
    exam = prepare(
        write_quiz({"b.jsonl": lines(row), "a.jsonl": lines(row, row), "notes.txt": "x"})
    )
    assert [(s.name, len(s)) for s in exam.subsets] == [("a", 2), ("b", 1)]
    assert [s.id for s in exam.samples] == ["quiz_a_0", "quiz_a_1", "quiz_b_0"]


def test_one_file_is_an_exam_too(write_quiz: Lay) -> None:
    folder = write_quiz({"capitals.csv": CAPITALS, "other.csv": "broken"})
    exam = prepare(folder / "capitals.csv")
    assert (exam.benchmark, len(exam.samples)) == ("capitals", 3)


def test_groups_cluster_and_unknown_answers_are_allowed(write_quiz: Lay) -> None:
    rows = [{"question": f"{n}?", "group": "g", "answer": ""} for n in range(3)]
    exam = prepare(write_quiz({"q.jsonl": lines(*rows)}))
    assert exam.clustered
    assert {s.group for s in exam.samples} == {"g"}
    assert {s.target for s in exam.samples} == {""}


def row(**fields: object) -> str:
    return lines({"question": "q?", **fields})


GOOD = {"question": "q?", "choices": ["x", "y"], "answer": "A"}
BAD: dict[str, tuple[str, str | bytes, str]] = {
    "no question": (
        "q.jsonl",
        lines(GOOD, {"choices": ["x", "y"]}),
        "row 2: 'question' is missing",
    ),
    "blank": ("q.jsonl", lines({"question": "  "}), "row 1: 'question' is missing"),
    "list as question": ("q.jsonl", lines({"question": ["x"]}), "'question' should be a text"),
    "answer unknown": (
        "q.jsonl",
        row(choices=["x", "y"], answer="z"),
        "row 1: the answer 'z' is ne",
    ),
    "letter too far": ("q.jsonl", row(choices=["x", "y"], answer="C"), "from A to B nor the text"),
    "two right": ("q.jsonl", row(choices=["x", "x"], answer="x"), "the text of several options"),
    "letter or text": ("q.jsonl", row(choices=["B", "A"], answer="A"), "a letter and the text of"),
    "many answers": (
        "q.jsonl",
        row(choices=["x", "y"], answer=["A", "B"]),
        "several right answers",
    ),
    "one option": ("q.jsonl", row(choices=["x"], answer="A"), "1 option; between 2 and 26"),
    "too many": ("q.jsonl", row(choices=[f"o{i}" for i in range(27)]), "27 options"),
    "empty option": ("q.jsonl", row(choices=["x", " "], answer="A"), "option 2 is empty"),
    "options text": ("q.jsonl", row(choices="x|y", answer="A"), "'choices' should be a list"),
    "truth value": ("q.jsonl", row(answer=True), "'answer' is a truth value"),
    "letter without options": (
        "q.jsonl",
        lines(GOOD, {"question": "r?", "answer": "B"}),
        "row 2: the answer is the letter B, but the question has no options",
    ),
    "id twice": (
        "q.jsonl",
        lines({**GOOD, "id": 1}, {**GOOD, "id": 1}),
        "row 2: id '1' is that of",
    ),
    "bad json": ("q.jsonl", '{"question": \n', "q.jsonl, line 1"),
    "bad json doc": ("q.json", "[", "q.json is not valid JSON"),
    "no rows": ("q.json", "[]", "q.json holds no rows"),
    "no list": ("q.json", '"x"', "holds no list of rows"),
    "bad yaml": ("q.yaml", "- question: [\n- x: 1\n", "q.yaml, line"),
    "yaml text": ("q.yaml", "words", "q.yaml holds no list of rows"),
    "csv cells": ("q.csv", "question,answer\nq?\n", "row 1: no value for column answer"),
    "csv quotes": ("q.csv", "question,answer\nq?,a,b\n", "more values than columns"),
    "csv open quote": (
        "q.csv",
        'question,answer\n"one\nmore?",a\nq?,"b\nr?,c\n',
        "q.csv, line 4: a quote that is opened in the row that begins here is not closed",
    ),
    "csv open quote in a question": (
        "q.csv",
        'question,answer\n"q?,b\nr?,c\n',
        "q.csv, line 2: a quote that is opened",
    ),
    "csv gap": ("q.csv", "question,A,B,C,answer\nq?,x,,z,A\n", "row 1: option B is empty"),
    "not utf-8": ("q.csv", b"question,answer\n\xff,x\n", "the encoding is unclear"),
    "gzip": ("q.jsonl.gz", b"nothing", "not a whole gzip file"),
    "parquet": ("q.parquet", b"nothing", "Parquet"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_row_is_named_with_its_file(write_quiz: Lay, name: str) -> None:
    file, content, message = BAD[name]
    with pytest.raises(DataError) as error:
        prepare(write_quiz({file: content}))
    assert message in str(error.value)
    assert file in str(error.value)
    assert "\n" not in str(error.value)


def test_folders_that_are_no_exam_are_refused(write_quiz: Lay, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no exam at"):
        prepare(tmp_path / "absent")
    with pytest.raises(DataError, match="holds no questions: expected a CSV"):
        prepare(write_quiz({"notes.txt": "x", "few_shot.jsonl": ""}))
    twins = {"q.jsonl": lines(GOOD), "q.csv": CSV}
    with pytest.raises(DataError, match=r"q\.csv and q\.jsonl have the same name"):
        prepare(write_quiz(twins))
    assert prepare(write_quiz({**twins, "exam.yaml": "questions: q.csv"})).samples[0].id == "7"


def test_a_name_that_is_taken_is_refused(write_quiz: Lay) -> None:
    folder = write_quiz({"q.jsonl": lines(GOOD), "exam.yaml": "name: bbh"})
    with pytest.raises(DataError, match="'bbh' is a benchmark already; set another name"):
        prepare(folder)


FILES = {
    "nme: x": "unknown key 'nme' (did you mean 'name'?)",
    "name: a b": "name: ",
    "kind: essay": "kind: ",
    "reader: best": "reader: expected letter, robust, exact, number, qwen or simple-evals",
    "reader: {marker: x, regex: y}": "give either 'marker' or 'regex'",
    "reader: {regex: '('}": "not a regular expression",
    "reader: {regex: '(a)\\1'}": "cannot hold a backreference",
    "reader: {mark: x}": "reader: expected letter",
    "reader: number": "reader 'number' is not for questions with options",
    "few_shot: -1": "few_shot: expected a number",
    "few_shot: absent.csv": "holds no table 'absent.csv'",
    "questions: absent.csv": "holds no table 'absent.csv'",
    "language: fr": "language: ",
    "max_tokens: 0": "max_tokens: ",
    "[": "exam.yaml",
    "": "exam.yaml, line 1: is empty",
}


@pytest.mark.parametrize("content", FILES)
def test_a_wrong_exam_file_is_told_in_one_line(write_quiz: Lay, content: str) -> None:
    with pytest.raises(DataError) as error:
        prepare(write_quiz({"q.jsonl": lines(GOOD), "exam.yaml": content}))
    assert FILES[content] in str(error.value)
    assert "\n" not in str(error.value)
