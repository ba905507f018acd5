"""Hostile exams: a folder of questions that is asked, scored and exported."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path

from perf.soak.case import Case
from perf.soak.hostile.judge import active_content, attacked, damaged_lines
from perf.soak.hostile.writing import (
    ALIASES,
    CODES,
    CSV,
    FIELDS,
    GOOD,
    PLAIN,
    SECONDS,
    TEXTS,
    VALUES,
    Build,
    Row,
    changing,
    combined,
    fifo,
    lines,
    link,
    parquet,
    unix_socket,
    with_ids,
    write,
    write_file,
    zipped,
)


def cases() -> list[Case]:
    """Return every attack with an exam."""
    attack_cases = [Case(f"exam: {name}", _exam(build)) for name, build in EXAMS.items()]
    for field in FIELDS:
        rows = [PLAIN | {"id": f"q{n}", field: text} for n, text in enumerate(TEXTS.values())]
        attack_cases.append(Case(f"exam: hostile texts as {field}", _rows_one_by_one(rows)))
    for field in (*FIELDS, "choices"):
        odd = [PLAIN | {"id": f"q{n}", field: value} for n, value in enumerate(VALUES)]
        attack_cases.append(Case(f"exam: every wrong type as {field}", _rows_one_by_one(odd)))
    return attack_cases


def _exam(build: Build) -> Callable[[Path], str]:
    """Return an attack with an exam in the folder ``input``: it is shown, asked and exported."""

    def run(folder: Path) -> str:
        place = folder / "work/input"
        place.mkdir(parents=True)
        build(place)
        return _examined(folder)

    return run


def _examined(folder: Path, *, exports: bool = True) -> str:
    words = [
        "eval",
        "--model",
        "scripted",
        "--datasets",
        "./input",
        "--work-dir",
        "runs",
        "--run-id",
        "r",
        "--json",
    ]
    attack_run = attacked(folder, *words, codes=CODES, seconds=SECONDS)
    if attack_run.problem or attack_run.process.code in (2, 5):
        return attack_run.problem
    run = folder / "work/runs/r"
    problem = damaged_lines(run / "records.jsonl") or active_content(run / "report.html")
    return problem or (_exported(folder) if exports else "")


def _exported(folder: Path) -> str:
    for form, name in (("csv", "t.csv"), ("markdown", "t.md"), ("latex", "t.tex")):
        words = f"export r --work-dir runs --format {form} -o {name}".split()
        words += ["--full-text"] if form == "csv" else []
        if problem := attacked(folder, *words, codes=CODES, seconds=SECONDS).problem:
            return problem
    table = folder / "work/t.csv"
    if table.exists():
        csv.field_size_limit(2**28)
        with table.open(newline="", encoding="utf-8") as stream:
            for row in csv.reader(stream):
                for cell in row:
                    if cell.startswith(("=", "@", "+cmd", "-cmd")):
                        return f"a formula in the table: {cell[:50]}"
    return attacked(
        folder, "score", "r", "--work-dir", "runs", codes=CODES, seconds=SECONDS
    ).problem


def _rows_one_by_one(rows: list[Row]) -> Callable[[Path], str]:
    """Return an attack with one exam for each row, so that one refusal hides no other."""

    def run(folder: Path) -> str:
        for number, row in enumerate(rows):
            place = folder / str(number)
            (place / "work/input").mkdir(parents=True)
            text = json.dumps(row) + "\n" + json.dumps(PLAIN | {"id": "last"}) + "\n"
            (place / "work/input/q.jsonl").write_text(text)
            if problem := _examined(place, exports=number % 10 == 3):
                return f"{str(row)[:120]!r}: {problem}"
        return ""

    return run


EXAMS: dict[str, Build] = {
    "an empty folder": lambda _: None,
    "an empty file": write("q.jsonl", b""),
    "CSV: a gzip bomb of blank lines": write("q.csv.gz", lambda: gzip.compress(b"\n" * 2**28)),
    "CSV: a gzip bomb of commas": write("q.csv.gz", lambda: gzip.compress(b"," * 2**28)),
    "CSV: a row without an end": write(
        "q.csv", lambda: b'question,A,B,answer\n"' + b"x" * 70 * 2**20
    ),
    "CSV: 100,000 columns": write("q.csv", "question,answer" + ",c" * 100_000 + "\n"),
    "CSV: columns twice": write("q.csv", "question,question,A,A,answer\n1,2,3,4,A\n"),
    "CSV: NUL bytes": write("q.csv", CSV.encode() + b"a\0b,c\0,d,A\n"),
    "CSV: UTF-16": write("q.csv", CSV.encode("utf-16")),
    "CSV: invalid UTF-8": write("q.csv", CSV.encode() + b"\xff\xfe,\x80,\xc0,A\n"),
    "CSV: a byte order mark": write("q.csv", b"\xef\xbb\xbf" + CSV.encode()),
    "CSV: line ends of all kinds": write("q.csv", b"question,A,B,answer\r2?,4,5,A\r\n3?,1,2,B\n\r"),
    "CSV: rows of all lengths": write("q.csv", CSV + "a\na,b\na,b,c\na,b,c,A,e,f,g\n,,,\n"),
    "CSV: quotes that never close": write("q.csv", CSV + '"a,b\n"c""d",e,"f,A\n'),
    "CSV: formulas in the head": write("q.csv", "=1+1,question,A,B,answer\n=2,2?,4,5,A\n"),
    "TSV in place of CSV": write("q.csv", CSV.replace(",", "\t")),
    "JSON: 100,000 nested arrays": write("q.json", b"[" * 100_000),
    "JSON Lines: 100,000 nested arrays": write("q.jsonl", b'{"question":' + b"[" * 100_000 + b"\n"),
    "JSON Lines: 900 nested arrays in a field": write(
        "q.jsonl", lines(PLAIN)[:-2] + ',"x":' + "[" * 900 + "]" * 900 + "}\n"
    ),
    "JSON: a number of 1,000,000 digits": write("q.json", b'[{"question":' + b"9" * 10**6 + b"}]"),
    "JSON: NaN and infinity": write("q.json", b'[{"question":NaN,"answer":-Infinity}]'),
    "JSON: a gzip of 12,000,000 empty lists": write(
        "q.json.gz", lambda: gzip.compress(b"[" + b"[]," * 12_000_000 + b"1]")
    ),
    "JSON Lines: a gzip of 12,000,000 empty lists": write(
        "q.jsonl.gz", lambda: gzip.compress(b'{"question":[' + b"[]," * 12_000_000 + b"1]}\n")
    ),
    "JSON: a text": write("q.json", b'"x"'),
    "JSON: keys twice": write(
        "q.json", b'[{"question":"a","question":"b","answer":"1","answer":"2"}]'
    ),
    "JSON Lines: a line of 70 MiB": write("q.jsonl", lambda: b'{"question": "' + b"x" * 70 * 2**20),
    "JSON Lines: two rows in a line": write("q.jsonl", GOOD.replace("\n", "") + "\n"),
    "JSON Lines: cut": write("q.jsonl", GOOD[:-9]),
    "JSON Lines: a gzip bomb": write(
        "q.jsonl.gz", lambda: gzip.compress(b'{"question": "' + b" " * 2**28)
    ),
    "JSON Lines: gzip, cut": write("q.jsonl.gz", gzip.compress(GOOD.encode())[:-9]),
    "JSON Lines: gzip of 3,000 members": write(
        "q.jsonl.gz", gzip.compress(b"\n") * 3000 + gzip.compress(GOOD.encode())
    ),
    "JSON Lines: gzip in name only": write("q.jsonl.gz", GOOD),
    "JSON Lines: ids twice": write("q.jsonl", lines(PLAIN | {"id": "a"}) * 2),
    "JSON Lines: ids that are alike after cleaning": write(
        "q.jsonl",
        lines(
            *[
                PLAIN | {"id": i}
                for i in ("a/b", "a_b", "a\\b", "A/B", "a b", "a:b", "é", "e\u0301")
            ]
        ),
    ),
    "JSON Lines: subsets that are alike after cleaning": write(
        "q.jsonl",
        lines(
            *[
                PLAIN | {"id": i, "subset": i}
                for i in ("a/b", "a_b", "A/B", "../a", "..", "a\0b", "")
            ]
        ),
    ),
    "YAML: aliases that grow to 9^11 values": write("q.yaml", ALIASES),
    "YAML: an alias to itself": write("q.yaml", "&a [*a, *a]"),
    "YAML: a mapping that holds itself": write("q.yaml", "- &a {question: *a, answer: *a}"),
    "YAML: tags of Python": write("q.yaml", "!!python/object/apply:os.system ['touch canary']"),
    "YAML: merged keys without an end": write("q.yaml", "- &a {question: x, <<: *a}"),
    "YAML: 20,000 nested lists": write("q.yaml", "[" * 20_000),
    "YAML: 5,000 nested mappings": write("q.yaml", "".join(" " * n + "a:\n" for n in range(2000))),
    "YAML: numbers in base 60": write(
        "q.yaml", "- {question: 1:2:3:4:5, answer: 190:20:30, id: 0o17}"
    ),
    "YAML: a number of 1,000,000 digits": write("q.yaml", "- question: " + "9" * 10**6),
    "YAML: keys that are lists": write("q.yaml", "- {? [a, b] : c, question: x, answer: y}"),
    "YAML: several documents": write("q.yaml", "---\n- question: a\n---\n- question: b\n..."),
    "exam.yaml: aliases that grow": combined(write("q.jsonl", GOOD), write("exam.yaml", ALIASES)),
    "exam.yaml: questions from outside": combined(
        write("q.jsonl", GOOD),
        write("exam.yaml", "questions: [../../../../etc/passwd, /etc/shadow]"),
    ),
    "exam.yaml: a name from outside": combined(
        write("q.jsonl", GOOD), write("exam.yaml", "name: ../../outside")
    ),
    "exam.yaml: templates with attributes": combined(
        write("q.jsonl", GOOD),
        write(
            "exam.yaml",
            'template: "{question.__class__.__mro__} {0} {choices[0]} {question!r:>99999999}"',
        ),
    ),
    "exam.yaml: a template of Jinja": combined(
        write("q.jsonl", GOOD),
        write("exam.yaml", 'template: "{{7*7}} {question} {% for a in b %}"'),
    ),
    "exam.yaml: a pattern that takes for ever": combined(
        write("q.jsonl", GOOD), write("exam.yaml", "reader: {regex: '(a+)+$'}")
    ),
    "exam.yaml: a pattern that takes much memory": combined(
        write("q.jsonl", GOOD),
        write("exam.yaml", "reader: {regex: '((a{1,999}){1,999}){1,999}'}"),
    ),
    "exam.yaml: a huge max_tokens": combined(
        write("q.jsonl", GOOD), write("exam.yaml", "max_tokens: 1" + "0" * 300)
    ),
    "exam.yaml: a FIFO": combined(write("q.jsonl", GOOD), fifo("exam.yaml")),
    "exam.yaml: a folder": combined(
        write("q.jsonl", GOOD), lambda place: (place / "exam.yaml").mkdir()
    ),
    "exam.yaml: a link to a secret": combined(
        write("q.jsonl", GOOD), link("exam.yaml", "/etc/passwd")
    ),
    "a FIFO as questions": fifo("q.jsonl"),
    "a socket as questions": unix_socket("q.jsonl"),
    "a link to /dev/zero as questions": link("q.jsonl", "/dev/zero"),
    "a link to /dev/tty as questions": link("q.csv", "/dev/tty"),
    "a link to itself as questions": link("q.jsonl", "q.jsonl"),
    "a link to nothing as questions": link("q.jsonl", "gone.jsonl"),
    "a link to /proc/self/mem as questions": link("q.json", "/proc/self/mem"),
    "a folder as questions": lambda place: (place / "q.jsonl").mkdir(),
    "questions that change while they are read": changing("q.jsonl"),
    "few_shot that changes while it is read": combined(
        write("q.jsonl", GOOD), changing("few_shot.jsonl")
    ),
    "500 files": combined(*[write(f"s{n}.jsonl", with_ids(n)) for n in range(500)]),
    "a file name with escapes": lambda place: write_file(
        place / "\x1b[2Jq\u202e.jsonl", GOOD.encode()
    ),
    "a file name with HTML": combined(
        *[write(f"<img src=x onerror=pwned()>{n}.jsonl", with_ids(n)) for n in range(2)]
    ),
    "a file name that is no text": combined(
        *[write(os.fsdecode(b"\xff\xfe%d.jsonl" % n), with_ids(n)) for n in range(2)]
    ),
    "Parquet: not Parquet": write("q.parquet", b"PAR1" + b"\xff" * 5000 + b"PAR1"),
    "Parquet: a good head, then nothing": write("q.parquet", b"PAR1\0\0\0\0PAR1"),
    "Parquet: rows that unpack to 384 MiB": parquet(
        [{"question": "x" * 2**17, "answer": "y"}], 3072, compression="zstd"
    ),
    "Parquet: nested columns": parquet(
        [{"question": {"a": [{"b": 1}]}, "answer": [[1]], "choices": [["a"]]}]
    ),
    "ZIP in place of JSON Lines": write("q.jsonl", zipped(("../../outside", b"x"))),
    "xz in place of JSON Lines": write("q.jsonl.xz", lzma.compress(GOOD.encode())),
    "an ELF program as questions": write("q.csv", b"\x7fELF" + bytes(range(256)) * 100),
    "2,000 options": write(
        "q.jsonl",
        lines({"question": "x", "choices": [str(n) for n in range(2000)], "answer": "5"}),
    ),
    "a question of 40 MiB": write("q.jsonl", lambda: lines(PLAIN | {"question": "q" * 40 * 2**20})),
    "few_shot of 20 MiB": combined(
        write("q.jsonl", GOOD),
        write("few_shot.jsonl", lambda: lines(PLAIN | {"id": "s", "question": "q" * 20 * 2**20})),
    ),
}
"""Exams by what is wrong with them."""
