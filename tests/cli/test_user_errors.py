"""Sixty errors of users: each message says what is wrong and what to type, on one line.

A case is the words after ``keju``, what is wrong, and what the message tells the user to type.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Keju

EVAL = "eval -m scripted --datasets"
DEMO = f"{EVAL} demo"
CASES: list[tuple[str, str, str]] = [
    # Commands
    ("summary", "unknown command 'summary'", "keju show RUN"),
    ("results", "unknown command 'results'", "keju list runs"),
    ("leaderboard", "unknown command 'leaderboard'", "keju view"),
    ("evel -m scripted --datasets demo", "unknown command 'evel'", "'eval'"),
    ("help evaluate", "unknown command 'evaluate'", "keju eval"),
    ("list benchmark", "'benchmark' is not one of", "'benchmarks'"),
    # Flags and values
    ("eval -m scripted", "'datasets' is required", "--datasets"),
    ("eval --datasets demo", "'model' is required", "--model"),
    (f"{DEMO} --limt 5", "unknown option --limt", "'--limit'"),
    (f"{DEMO} --num-samples 5", "unknown option --num-samples", "'--limit'"),
    (f"{DEMO} --batch-size 5", "unknown option --batch-size", "'--eval-batch-size'"),
    (f"{DEMO} --max-new-tokens 5", "unknown option --max-new-tokens", "'--max-tokens'"),
    (f"{DEMO} --num-fewshot 5", "unknown option --num-fewshot", "'--few-shot'"),
    (f"{DEMO} --temp 1", "--temp", "--temperature 1"),
    (f"{DEMO} --num-questions 5", "unknown option --num-questions", "'--limit'"),
    (f"{DEMO} --epochs 5", "unknown option --epochs", "'--repeats'"),
    (f"{DEMO} --parallel 5", "unknown option --parallel", "'--eval-batch-size'"),
    (f"{DEMO} --top-k 5", "unknown option --top-k", "--generation-config top_k=5"),
    (f"{DEMO} --shuffle true", "unknown option --shuffle", "--dataset-args demo.shuffle=true"),
    (f"{DEMO} --limit", "--limit", "needs a value"),
    (f"{DEMO} --limit x", "not 'x'", "--limit needs a number"),
    (f"{DEMO} --limit=-1", "limit", "a whole number of at least 1, or a share"),
    (f"{DEMO} --limit 2 --total 4", "limit and total", "cannot be used together"),
    (f"{DEMO} --temperature hot", "not 'hot'", "--temperature needs a number"),
    (f"{DEMO} --temperature=-1", "temperature", "greater than or equal to 0"),
    (f"{DEMO} --concurrency 0", "eval_batch_size", "greater than 0"),
    (f"{DEMO} --generation-config temperature", "values", "--generation-config KEY=VALUE"),
    (f"{DEMO} --judge qwen", "takes settings with values", "--judge KEY=VALUE"),
    (f"{DEMO} --name x --run-id y", "cannot be used together", "keep one of them"),
    (f"{DEMO} --name demo", "is the name of an exam", "such as demo-1"),
    (f"{DEMO} --name x --tools pyhton", "'pyhton' is not one of", "'python'"),
    ("eval scripted demo", "belongs to no option", "--model scripted --datasets demo"),
    ("eval demo -m scripted", "belongs to no option", "--datasets demo"),
    ("eval -c missing.yaml", "cannot read missing.yaml", "No such file"),
    ("eval -c bad.yaml", "unknown key 'modle'", "'model'"),
    (f"{DEMO} --resume --run-id never", "no run 'never'", "valid: a"),
    # Exams
    (f"{EVAL} dem", "unknown benchmark 'dem'", "'demo'"),
    (f"{EVAL} demo:word_sorting", "it is a subset", "demo.subset_list=[word_sorting]"),
    (f"{DEMO} --subset word_sort", "no subset 'word_sort'", "'word_sorting'"),
    (f"{DEMO} --few-shot 3", "no setting 'few_shot_num'", "leave it out"),
    (f"{DEMO} --protocol tex", "no protocol 'tex'", "'text'"),
    (f"{DEMO} --reader robst", "no reader 'robst'", "'robust'"),
    (f"{DEMO} --dataset-args demo.subset=x", "unknown key 'subset'", "'subset_list'"),
    (f"{DEMO} --dataset-args bbh.limit=1", "'bbh', which is not run", "valid: demo"),
    (f"{EVAL} bbh", "no data for bbh", "keju data pull bbh"),
    ("show nothing", "unknown benchmark 'nothing'", "./nothing"),
    ("show demo --index 999", "no question 999", "--index goes from 0 to 19"),
    ("plan demo --mde 3", "the difference must be above 0", "a point is 0.01"),
    # Own questions
    (f"{EVAL} quizz.csv", "no exam at quizz.csv", "'quiz.csv'"),
    (f"{EVAL} quiz", "unknown benchmark 'quiz'", "./quiz"),
    (f"{EVAL} letter.csv", "the answer is the letter B", "Fill in its options"),
    (f"{EVAL} several.csv", "several right answers", "Keep one letter"),
    (f"{EVAL} neither.csv", "neither a letter from A to B nor the text", "Correct the answer"),
    (f"{EVAL} misspelt.csv", "does not know the column anwser", "call it answer"),
    (f"{EVAL} rivals.csv", "could all be 'answer'", "rename all but one"),
    (f"{EVAL} latin.csv", "the encoding is unclear", "'CSV UTF-8'"),
    (f"{EVAL} nameless.csv", "'question' is missing", "Rename the field of the questions"),
    (f"{EVAL} open.csv", "a quote that is opened", "Close it"),
    (f"{EVAL} notes.docx", "does not read files like notes.docx", "save the questions as CSV"),
    (f"{EVAL} bbh --data-dir DATA", "DATA is not a folder", "keju data pull"),
    ("init exam missing.csv", "no exam at missing.csv", "a file of questions"),
    # Endpoints
    ("eval -m gpt-x --datasets demo", "needs the address of its endpoint", "--api-url"),
    ("eval -m x --api-url localhost:1/v1 --datasets demo", "must begin with http://", "e.g. http"),
    # Stored runs
    ("show a --sample nothing", "no reply to 'nothing'", "'keju show a' lists ids"),
    ("compare a", "no arms to compare", "name a second run"),
    ("compare a nothing", "no run 'nothing'", "valid: a"),
    ("compare --modes a a", "does not include ceval", "name two runs of it"),
    ("gate a", "nothing to decide", "--baseline with its --margin"),
    ("gate a --baseline a --margin 5", "not 5", "between 0 and 1"),
    ("view nothing", "no run nothing", "name a folder with runs"),
    ("view a nothing", "no run nothing", "valid: a"),
    ("export a a2", "several runs go into one table", "keju export a a2 --table csv"),
    ("export a -o a.docx", "does not know this suffix", ".md, .tex"),
    ("export a --table docx", "'docx' is not one of", "'md', 'latex', 'csv'"),
    ("report a -o a.pdf", "as HTML, not as 'a.pdf'", "ends in .html"),
    ("judge a", "no judge is named", "--model NAME"),
    ("score --datasets demo", "give a RUN", "--predictions FILE"),
]
TABLES = {
    "quiz.csv": b"question,answer\nq?,a\nr?,b\n",
    "letter.csv": b"question,A,B,answer\nq?,x,y,A\nr?,,,B\n",
    "several.csv": b"question,A,B,answer\nq?,x,y,AB\n",
    "neither.csv": b"question,A,B,answer\nq?,x,y,z\n",
    "misspelt.csv": b"question,anwser\nq?,x\n",
    "rivals.csv": b"question,gold,label\nq?,x,y\n",
    "latin.csv": "question,answer\nWo ist Köln?,Rhein\n".encode("cp1252"),
    "nameless.csv": b"Frage,Antwort\nq?,x\n",
    "open.csv": b'question,answer\n"q?,x\n',
    "notes.docx": b"",
    "bad.yaml": b"modle: x\n",
}


def test_there_are_at_least_sixty_errors() -> None:
    assert len({words for words, *_ in CASES}) >= 60


@pytest.mark.parametrize(("words", "wrong", "remedy"), CASES, ids=[words for words, *_ in CASES])
def test_an_error_says_what_is_wrong_and_what_to_type(
    keju: Keju, tmp_path: Path, words: str, wrong: str, remedy: str
) -> None:
    for name, content in TABLES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "quiz").mkdir()
    if {"a", "--resume"} & set(words.split()):
        ran = keju(*DEMO.split(), "--limit", "1", "-q", "--run-id", "a")
        assert ran.code == 0, ran.err
    ran = keju(*words.split())
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert line.startswith("keju: error: ")
    assert wrong in line
    assert remedy in line
    chinese = keju("--language", "zh", *words.split())
    assert chinese.code == 2
    assert "错误：" in chinese.err


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("eval -m scripted --datasets quiz.csv --dry-run", "What is 2+2?"),
        ("eval -m scripted --datasets QUIZ.CSV --dry-run", "separated by ;"),
        ("show quiz.csv", "What is 2+2?"),
        ("show bigbench-hard --help", "Usage: keju show"),
        ("help eval", "Usage: keju eval"),
        ("eval -m scripted --datasets Demo --limit 1 --dry-run", "dry run"),
        ("eval -m scripted --datasets demo --max-tokens 64 --dry-run", "dry run"),
    ],
)
def test_keju_does_what_was_meant(keju: Keju, tmp_path: Path, words: str, printed: str) -> None:
    text = "Question;A;B;Answer\nWhat is 2+2?;3;4;4\n"
    (tmp_path / "quiz.csv").write_text(text)
    (tmp_path / "QUIZ.CSV").write_text(text)
    ran = keju(*words.split())
    assert (ran.code, printed in ran.out) == (0, True), ran.err
