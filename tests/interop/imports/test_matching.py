"""Rows find their questions by the strongest key they have, and none is dropped in silence."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.prepare import prepare_exam
from keju.benchmarks.samples import restrict
from keju.interop.imports.log import LogRow, LogRows
from keju.interop.imports.matching import (
    QuestionMatcher,
    QuestionTexts,
    collapse_whitespace,
    question_texts,
)
from keju.types import Reply, Sample
from tests.interop.imports.conftest import DATA, Import, exam_of


def matcher(name: str, *subsets: str) -> QuestionMatcher:
    """The questions of the data made for these tests."""
    args: dict[str, Any] = {"few_shot_num": 0, "subset_list": list(subsets)}
    return QuestionMatcher(prepare_exam(name, args, data_dir=str(DATA))[0])


def row(**fields: Any) -> LogRow:
    """A row of a log."""
    return LogRow(where="log, line 1", reply=Reply("ANSWER: A"), **fields)


LOAVES = "A baker sells 7 loaves a day. How many does he sell in 12 days?"
LOAVES_OPTIONS = ("74", "77", "82", "84", "86", "91", "96", "98", "104", "112")
SQUARE = "A square garden has an area of 169 square paces. How long is its side?"


@pytest.mark.parametrize(
    ("fields", "index"),
    [
        ({"keys": {"question_id": 9003}}, 2),
        ({"keys": {"question_id": "9003"}, "question": SQUARE}, 2),
        ({"keys": {"question_id": 9003}, "question": LOAVES}, 0),
        ({"keys": {"question_id": 7}, "question": LOAVES}, 0),
        ({"subset": "Math", "index": 2, "question": SQUARE}, 2),
        ({"subset": "math", "index": 0, "question": SQUARE}, 2),
        ({"question": f"  {SQUARE}\n"}, 2),
        ({"prompt": f"Question: {SQUARE}\nANSWER: C\n\nQuestion: {LOAVES}"}, 0),
        ({"keys": {"question_id": 7}}, None),
        ({"subset": "math", "index": 0, "question": "Another question?"}, None),
        ({"subset": "math", "index": 0}, None),
        ({}, None),
    ],
)
def test_a_row_is_matched_by_the_strongest_key(fields: dict[str, Any], index: int | None) -> None:
    match = matcher("mmlu_pro", "math", "history").match(row(**fields))
    assert match.place == index
    assert bool(match.reason) is (index is None)


def test_recorded_choices_give_the_order() -> None:
    options = tuple(reversed(LOAVES_OPTIONS))
    match = matcher("mmlu_pro", "math").match(row(question=LOAVES, choices=options))
    assert match.order == (9, 8, 7, 6, 5, 4, 3, 2, 1, 0)


def test_leading_blanks_of_options_do_not_matter() -> None:
    options = tuple(f" {option}" for option in LOAVES_OPTIONS)
    match = matcher("mmlu_pro", "math").match(row(question=LOAVES, choices=options))
    assert (match.place, match.order) == (0, ())


@pytest.mark.parametrize("style", ["{}) {}", "{}. {}", "({}) {}", "{}: {}", "{} {}"])
def test_labelled_lines_of_the_prompt_give_the_order(style: str) -> None:
    options = ("13", "11", "14", "12")
    lines = "\n".join(style.format(*pair) for pair in zip("ABCD", options, strict=True))
    prompt = f"Question: {LOAVES}\nA) 13\nB) 84\n\nQuestion: {SQUARE}\n{lines}\nAnswer:"
    match = matcher("mmlu_pro", "math").match(row(prompt=prompt))
    assert (match.place, match.order) == (2, (2, 0, 3, 1))


def test_options_of_another_question_are_no_match() -> None:
    match = matcher("mmlu_pro", "math").match(row(question=SQUARE, choices=("1", "2", "3", "4")))
    assert match.place is None
    assert match.reason == "import_other_options"


def test_a_question_without_its_options_is_found_in_a_prompt_around_it() -> None:
    """As inspect_evals stores BBH: instructions, the question, and the options apart."""
    stem = "Today is 11/30/2033. What was the date yesterday in MM/DD/YYYY?"
    prompt = f"Infer the date.\n\nQUESTION: {stem}\nOPTIONS:"
    match = matcher("bbh", "date_understanding").match(
        row(
            keys={"question_id": "date_understanding_006"},
            subset="date_understanding",
            question=prompt,
            choices=("12/01/2033", "11/28/2033", "11/29/2033"),
        )
    )
    assert (match.place, match.order) == (5, ())


def test_rows_without_a_question_are_listed(imported: Import, log: Callable[[str], Path]) -> None:
    folder = log("lm-eval/bbh")
    samples = next(folder.glob("samples_*boolean*"))
    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    rows[1]["doc"]["input"] = "True and True is"
    samples.write_text("".join(json.dumps(r) + "\n" for r in rows))
    document = imported(folder)
    exam = exam_of(document, "bbh")
    assert (exam["rows"], exam["matched"]) == (12, 11)
    (row,) = exam["unmatched"]
    assert (row["where"], row["reason"]) == (f"{samples.name}, line 2", "no such question")
    warnings = document["results"]["benchmarks"][0]["warnings"]
    assert any("of the log" in warning and warning.startswith("1 row ") for warning in warnings)


def test_rows_of_other_tasks_are_listed(imported: Import, log: Callable[[str], Path]) -> None:
    folder = log("lm-eval/bbh")
    samples = next(folder.glob("samples_*boolean*"))
    samples.rename(folder / "samples_hellaswag_2026-01-01T00-00-00.jsonl")
    document = imported(folder)
    assert exam_of(document, "bbh")["rows"] == 6
    assert len(document["unmatched"]) == 6
    assert "Keju has no exam for its task" in document["unmatched"][0]["reason"]


def test_another_gold_answer_is_told(imported: Import, log: Callable[[str], Path]) -> None:
    folder = log("lm-eval/bbh")
    samples = next(folder.glob("samples_*boolean*"))
    samples.write_text(samples.read_text().replace('"target": "False"', '"target": "True"', 2))
    exam = exam_of(imported(folder), "bbh")
    assert exam["other_gold"] == [
        {"id": "bbh_boolean_expressions_0", "log": "True", "data": "False"}
    ]


def question(number: int, text: str) -> Sample:
    return Sample(id=str(number), subset="s", index=number, text=text, target="A")


def test_questions_inside_a_text_are_those_whose_text_stands_there() -> None:
    """Many begin alike, some are short, some hold their options; a plain search finds the same."""
    draw = random.Random(1)
    stems = [
        f"Which of the following {draw.choice('abc') * draw.randrange(1, 90)}?" for _ in "1" * 90
    ]
    stems += ["Why?", "", "Which of the following", *stems[:5]]
    texts = [stem + "\nOptions:\n(A) one" * (number % 3 == 0) for number, stem in enumerate(stems)]
    samples = [question(number, text) for number, text in enumerate(texts)]
    index = QuestionTexts(samples)
    for _ in range(40):
        haystack = collapse_whitespace(
            " ".join(draw.choices([*texts, "Why not", "So: Which of the"], k=4))
        )
        inside = {
            n
            for n, sample in enumerate(samples)
            if any(form in haystack for form in question_texts(sample))
        }
        assert index.find_contained(haystack) == inside
        text = collapse_whitespace(draw.choice(texts))
        assert index.find_exact(text) == [
            n for n, sample in enumerate(samples) if text in question_texts(sample)
        ]


def test_a_row_is_found_by_its_position_where_questions_are_left_out() -> None:
    args = {"few_shot_num": 0, "subset_list": ["math"]}
    exam = prepare_exam("mmlu_pro", args, data_dir=str(DATA))[0]
    part = restrict(exam, [1, 2])
    match = QuestionMatcher(part).match(row(subset="math", index=2, question=SQUARE))
    assert part.samples[match.place or 0].id == exam.samples[2].id


def test_numbers_that_no_question_has_are_no_match() -> None:
    rows = LogRows([row(keys={"question_id": 10**30}, index=-(10**30), question="Another?")])
    match = matcher("mmlu_pro", "math").match(rows[0])
    assert (match.place, match.reason) == (None, "import_no_question")
