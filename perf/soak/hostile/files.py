"""Hostile files: exams, predictions, settings, run folders, journals, logs of other tools."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import socket
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from perf.soak.case import Case
from perf.soak.hostile.judge import active_content, attacked, damaged_lines

CODES = (0, 2, 3, 4, 5)
SECONDS = 300.0
WRITTEN = ("runs/r/results.json", "runs/r/report.html")
Row = dict[str, Any]
Build = Callable[[Path], None]
"""Writes the files of an attack into an empty folder."""
PLAIN: Row = {"question": "2 + 2?", "A": "4", "B": "5", "answer": "A"}
SHELL = "x$(touch canary)`touch canary`;touch canary|touch canary&\ntouch canary"
TEXTS = {
    "a path": "../../../outside",
    "an absolute path": "/tmp/outside/../../etc/passwd",
    "a shell": SHELL,
    "a terminal": "\x1b[2J\x1b]52;c;cm0=\x07\x9b31m\u202e",
    "HTML": "</script></style></textarea><img src=x onerror=pwned()><svg/onload=pwned()>",
    "an attribute": "\" onmouseover=pwned() x='javascript:pwned()",
    "a formula": "=cmd|' /C calc'!A0",
    "a template": "{{7*7}}{% raw %}{0.__class__}{question.__init__.__globals__}${HOME}%(x)s%n",
    "NUL": "a\0b",
    "an empty text": "",
    "blanks": " \t\u00a0\u3000 ",
    "a dot": ".",
    "two dots": "..",
    "a long text": "w" * 100_000,
    "a name of Windows": "CON.txt:stream",
    "line ends": "a\r\nb\u2028c\x85d",
    "combining characters": "e\u0301" * 500,
    "a lone surrogate": "\ud800x",
    "Markdown": "[x](javascript:pwned()) ![y](http://127.0.0.1:9/z) `|` | --- |\n# h",
    "LaTeX": "\\input{/etc/passwd}\\write18{touch canary}$\\href{a}{b}$&%#_",
}
"""Texts that mean more than text somewhere."""
FIELDS = ("question", "A", "answer", "subset", "id", "group", "explanation", "country")
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 10**400, 1e308, "", [], [[]], {}, {"a": {"b": []}}, ["A", 5, None]),
    *("A" * 10**6, float("nan"), float("inf"), 2**63, [None] * 1000),
)
"""Values none of which belongs in a field of a question."""


def cases() -> list[Case]:
    """Return every attack with files."""
    made = [Case(f"exam: {name}", _exam(build)) for name, build in EXAMS.items()]
    for field in FIELDS:
        rows = [PLAIN | {"id": f"q{n}", field: text} for n, text in enumerate(TEXTS.values())]
        made.append(Case(f"exam: hostile texts as {field}", _rows_one_by_one(rows)))
    for field in (*FIELDS, "choices"):
        odd = [PLAIN | {"id": f"q{n}", field: value} for n, value in enumerate(VALUES)]
        made.append(Case(f"exam: every wrong type as {field}", _rows_one_by_one(odd)))
    made += [Case(f"command: {name}", _commands(build, words)) for name, (build, words) in FILES.items()]
    made += [Case(f"run folder: {name}", _run_folder(change)) for name, change in RUNS.items()]
    made += [Case(f"placeholder: {name}", _placeholder(text)) for name, text in TEXTS.items()]
    return made


def _exam(build: Build) -> Callable[[Path], str]:
    """Return an attack with an exam in the folder ``input``: it is shown, asked and exported."""

    def run(folder: Path) -> str:
        place = folder / "work/input"
        place.mkdir(parents=True)
        build(place)
        return _examined(folder)

    return run


def _examined(folder: Path, *, exports: bool = True) -> str:
    words = "eval --model scripted --datasets ./input --work-dir runs --run-id r --json".split()
    made = attacked(folder, *words, codes=CODES, seconds=SECONDS)
    if made.problem or made.ended.code in (2, 5):
        return made.problem
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
        import csv

        csv.field_size_limit(2**28)
        with table.open(newline="", encoding="utf-8") as stream:
            for row in csv.reader(stream):
                for cell in row:
                    if cell.startswith(("=", "@", "+cmd", "-cmd")):
                        return f"a formula in the table: {cell[:50]}"
    return attacked(folder, "score", "r", "--work-dir", "runs", codes=CODES, seconds=SECONDS).problem


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


def _write(name: str, data: bytes | str | Callable[[], bytes | str]) -> Build:
    """Write one file; what is large is made when it is needed."""

    def build(place: Path) -> None:
        made = data() if callable(data) else data
        _put(place / name, made.encode() if isinstance(made, str) else made)

    return build


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _both(*builds: Build) -> Build:
    def build(place: Path) -> None:
        for each in builds:
            each(place)

    return build


def _lines(*rows: Row) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


GOOD = _lines(PLAIN | {"id": "a"}, PLAIN | {"id": "b"})
CSV = "question,A,B,answer\n2 + 2?,4,5,A\n"
_ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))


def _zip(*entries: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return stream.getvalue()


def _fifo(name: str) -> Build:
    return lambda place: os.mkfifo(place / name)


def _socket(name: str) -> Build:
    def build(place: Path) -> None:
        here = os.getcwd()
        plug = socket.socket(socket.AF_UNIX)
        with suppress(OSError):
            plug.bind(os.path.relpath(place / name, here))
        plug.close()

    return build


def _link(name: str, target: str) -> Build:
    return lambda place: (place / name).symlink_to(target)


def _changing(name: str) -> Build:
    """Write a file that other threads make shorter and longer while it is read."""

    def build(place: Path) -> None:
        path = place / name
        path.write_text(GOOD * 2000)

        def change() -> None:
            due = time.monotonic() + 6
            while time.monotonic() < due and path.parent.exists():
                with suppress(OSError):
                    path.write_text(GOOD[: len(GOOD) // 3])
                    path.write_text(_lines(*[PLAIN | {"id": str(n)} for n in range(3000)]))
                time.sleep(0.002)

        threading.Thread(target=change, daemon=True).start()

    return build


def _parquet(rows: list[Row], times: int = 1, **options: Any) -> Build:
    def build(place: Path) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            return _put(place / "q.parquet", b"PAR1")
        return pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows * times), place / "q.parquet", **options)

    return build


EXAMS: dict[str, Build] = {
    "an empty folder": lambda place: None,
    "an empty file": _write("q.jsonl", b""),
    "CSV: a gzip bomb of blank lines": _write("q.csv.gz", lambda: gzip.compress(b"\n" * 2**28)),
    "CSV: a gzip bomb of commas": _write("q.csv.gz", lambda: gzip.compress(b"," * 2**28)),
    "CSV: a row without an end": _write("q.csv", lambda: b'question,A,B,answer\n"' + b"x" * 70 * 2**20),
    "CSV: 100,000 columns": _write("q.csv", "question,answer" + ",c" * 100_000 + "\n"),
    "CSV: columns twice": _write("q.csv", "question,question,A,A,answer\n1,2,3,4,A\n"),
    "CSV: NUL bytes": _write("q.csv", CSV.encode() + b"a\0b,c\0,d,A\n"),
    "CSV: UTF-16": _write("q.csv", CSV.encode("utf-16")),
    "CSV: invalid UTF-8": _write("q.csv", CSV.encode() + b"\xff\xfe,\x80,\xc0,A\n"),
    "CSV: a byte order mark": _write("q.csv", b"\xef\xbb\xbf" + CSV.encode()),
    "CSV: line ends of all kinds": _write("q.csv", b"question,A,B,answer\r2?,4,5,A\r\n3?,1,2,B\n\r"),
    "CSV: rows of all lengths": _write("q.csv", CSV + "a\na,b\na,b,c\na,b,c,A,e,f,g\n,,,\n"),
    "CSV: quotes that never close": _write("q.csv", CSV + '"a,b\n"c""d",e,"f,A\n'),
    "CSV: formulas in the head": _write("q.csv", "=1+1,question,A,B,answer\n=2,2?,4,5,A\n"),
    "TSV in place of CSV": _write("q.csv", CSV.replace(",", "\t")),
    "JSON: 100,000 nested arrays": _write("q.json", b"[" * 100_000),
    "JSON Lines: 100,000 nested arrays": _write("q.jsonl", b'{"question":' + b"[" * 100_000 + b"\n"),
    "JSON Lines: 900 nested arrays in a field": _write("q.jsonl", _lines(PLAIN)[:-2] + ',"x":' + "[" * 900 + "]" * 900 + "}\n"),
    "JSON: a number of 1,000,000 digits": _write("q.json", b'[{"question":' + b"9" * 10**6 + b"}]"),
    "JSON: NaN and infinity": _write("q.json", b'[{"question":NaN,"answer":-Infinity}]'),
    "JSON: a gzip of 12,000,000 empty lists": _write("q.json.gz", lambda: gzip.compress(b"[" + b"[]," * 12_000_000 + b"1]")),
    "JSON Lines: a gzip of 12,000,000 empty lists": _write("q.jsonl.gz", lambda: gzip.compress(b'{"question":[' + b"[]," * 12_000_000 + b"1]}\n")),
    "JSON: a text": _write("q.json", b'"x"'),
    "JSON: keys twice": _write("q.json", b'[{"question":"a","question":"b","answer":"1","answer":"2"}]'),
    "JSON Lines: a line of 70 MiB": _write("q.jsonl", lambda: b'{"question": "' + b"x" * 70 * 2**20),
    "JSON Lines: two rows in a line": _write("q.jsonl", GOOD.replace("\n", "") + "\n"),
    "JSON Lines: cut": _write("q.jsonl", GOOD[:-9]),
    "JSON Lines: a gzip bomb": _write("q.jsonl.gz", lambda: gzip.compress(b'{"question": "' + b" " * 2**28)),
    "JSON Lines: gzip, cut": _write("q.jsonl.gz", gzip.compress(GOOD.encode())[:-9]),
    "JSON Lines: gzip of 3,000 members": _write("q.jsonl.gz", gzip.compress(b"\n") * 3000 + gzip.compress(GOOD.encode())),
    "JSON Lines: gzip in name only": _write("q.jsonl.gz", GOOD),
    "JSON Lines: ids twice": _write("q.jsonl", _lines(PLAIN | {"id": "a"}) * 2),
    "JSON Lines: ids that are alike after cleaning": _write("q.jsonl", _lines(*[PLAIN | {"id": i} for i in ("a/b", "a_b", "a\\b", "A/B", "a b", "a:b", "é", "e\u0301")])),
    "JSON Lines: subsets that are alike after cleaning": _write("q.jsonl", _lines(*[PLAIN | {"id": i, "subset": i} for i in ("a/b", "a_b", "A/B", "../a", "..", "a\0b", "")])),
    "YAML: aliases that grow to 9^11 values": _write("q.yaml", _ALIASES),
    "YAML: an alias to itself": _write("q.yaml", "&a [*a, *a]"),
    "YAML: a mapping that holds itself": _write("q.yaml", "- &a {question: *a, answer: *a}"),
    "YAML: tags of Python": _write("q.yaml", "!!python/object/apply:os.system ['touch canary']"),
    "YAML: merged keys without an end": _write("q.yaml", "- &a {question: x, <<: *a}"),
    "YAML: 20,000 nested lists": _write("q.yaml", "[" * 20_000),
    "YAML: 5,000 nested mappings": _write("q.yaml", "".join(" " * n + "a:\n" for n in range(2000))),
    "YAML: numbers in base 60": _write("q.yaml", "- {question: 1:2:3:4:5, answer: 190:20:30, id: 0o17}"),
    "YAML: a number of 1,000,000 digits": _write("q.yaml", "- question: " + "9" * 10**6),
    "YAML: keys that are lists": _write("q.yaml", "- {? [a, b] : c, question: x, answer: y}"),
    "YAML: several documents": _write("q.yaml", "---\n- question: a\n---\n- question: b\n..."),
    "exam.yaml: aliases that grow": _both(_write("q.jsonl", GOOD), _write("exam.yaml", _ALIASES)),
    "exam.yaml: questions from outside": _both(_write("q.jsonl", GOOD), _write("exam.yaml", "questions: [../../../../etc/passwd, /etc/shadow]")),
    "exam.yaml: a name from outside": _both(_write("q.jsonl", GOOD), _write("exam.yaml", "name: ../../outside")),
    "exam.yaml: templates with attributes": _both(_write("q.jsonl", GOOD), _write("exam.yaml", 'template: "{question.__class__.__mro__} {0} {choices[0]} {question!r:>99999999}"')),
    "exam.yaml: a template of Jinja": _both(_write("q.jsonl", GOOD), _write("exam.yaml", 'template: "{{7*7}} {question} {% for a in b %}"')),
    "exam.yaml: a pattern that takes for ever": _both(_write("q.jsonl", GOOD), _write("exam.yaml", "reader: {regex: '(a+)+$'}")),
    "exam.yaml: a pattern that takes much memory": _both(_write("q.jsonl", GOOD), _write("exam.yaml", "reader: {regex: '((a{1,999}){1,999}){1,999}'}")),
    "exam.yaml: a huge max_tokens": _both(_write("q.jsonl", GOOD), _write("exam.yaml", "max_tokens: 1" + "0" * 300)),
    "exam.yaml: a FIFO": _both(_write("q.jsonl", GOOD), _fifo("exam.yaml")),
    "exam.yaml: a folder": _both(_write("q.jsonl", GOOD), lambda place: (place / "exam.yaml").mkdir()),
    "exam.yaml: a link to a secret": _both(_write("q.jsonl", GOOD), _link("exam.yaml", "/etc/passwd")),
    "a FIFO as questions": _fifo("q.jsonl"),
    "a socket as questions": _socket("q.jsonl"),
    "a link to /dev/zero as questions": _link("q.jsonl", "/dev/zero"),
    "a link to /dev/tty as questions": _link("q.csv", "/dev/tty"),
    "a link to itself as questions": _link("q.jsonl", "q.jsonl"),
    "a link to nothing as questions": _link("q.jsonl", "gone.jsonl"),
    "a link to /proc/self/mem as questions": _link("q.json", "/proc/self/mem"),
    "a folder as questions": lambda place: (place / "q.jsonl").mkdir(),
    "questions that change while they are read": _changing("q.jsonl"),
    "few_shot that changes while it is read": _both(_write("q.jsonl", GOOD), _changing("few_shot.jsonl")),
    "2,000 files": lambda place: [_put(place / f"s{n}.jsonl", GOOD.replace('"id": "', f'"id": "{n}').encode()) for n in range(500)] and None,
    "a file name with escapes": lambda place: _put(place / "\x1b[2Jq\u202e.jsonl", GOOD.encode()),
    "a file name with HTML": lambda place: [_put(place / f"<img src=x onerror=pwned()>{n}.jsonl", GOOD.replace('"id": "', f'"id": "{n}').encode()) for n in range(2)] and None,
    "a file name that is no text": lambda place: [_put(Path(os.fsdecode(os.fsencode(str(place)) + b"/\xff\xfe%d.jsonl" % n)), GOOD.replace('"id": "', f'"id": "{n}').encode()) for n in range(2)] and None,
    "Parquet: not Parquet": _write("q.parquet", b"PAR1" + b"\xff" * 5000 + b"PAR1"),
    "Parquet: a good head, then nothing": _write("q.parquet", b"PAR1\0\0\0\0PAR1"),
    "Parquet: rows that unpack to 384 MiB": _parquet([{"question": "x" * 2**17, "answer": "y"}], 3072, compression="zstd"),
    "Parquet: nested columns": _parquet([{"question": {"a": [{"b": 1}]}, "answer": [[1]], "choices": [["a"]]}]),
    "ZIP in place of JSON Lines": _write("q.jsonl", _zip(("../../outside", b"x"))),
    "xz in place of JSON Lines": _write("q.jsonl.xz", lzma.compress(GOOD.encode())),
    "an ELF program as questions": _write("q.csv", b"\x7fELF" + bytes(range(256)) * 100),
    "2,000 options": _write("q.jsonl", _lines({"question": "x", "choices": [str(n) for n in range(2000)], "answer": "5"})),
    "a question of 40 MiB": _write("q.jsonl", lambda: _lines(PLAIN | {"question": "q" * 40 * 2**20})),
    "few_shot of 20 MiB": _both(_write("q.jsonl", GOOD), _write("few_shot.jsonl", lambda: _lines(PLAIN | {"id": "s", "question": "q" * 20 * 2**20}))),
}
"""Exams by what is wrong with them."""


def _commands(build: Build, commands: tuple[str, ...]) -> Callable[[Path], str]:
    def run(folder: Path) -> str:
        place = folder / "work/input"
        place.mkdir(parents=True)
        build(place)
        for words in commands:
            if problem := attacked(folder, *words.split(), codes=CODES, seconds=SECONDS).problem:
                return problem
        return ""

    return run


SCORE = ("score --datasets demo --predictions input/p.jsonl --json",)
EVAL = ("eval --config input/c.yaml --work-dir runs --json",)
IMPORT = ("import input --work-dir runs",)
LM = {"doc_id": 0, "doc": {"question": "x"}, "target": "A", "resps": [["A"]], "filtered_resps": ["A"], "arguments": []}
EVALSCOPE = {"index": 0, "model": "m", "model_output": {"choices": [{"message": {"content": "A"}}]}}
INSPECT = {"version": 2, "status": "success", "eval": {"task": "x", "model": "m"}, "samples": []}
VERIFIERS = {"completion": [{"role": "assistant", "content": "A"}], "reward": 1.0, "answer": "A", "prompt": []}
PREDICTION = {"id": "demo_object_counting_0", "output": "(A)"}


def _predictions(**changes: Any) -> Build:
    return _write("p.jsonl", _lines(PREDICTION | changes))


def _tar(*entries: tuple[str, bytes, str]) -> bytes:
    """Return a tar file of (name, kind, target) entries."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, kind, target in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            data = b"x" if kind == tarfile.REGTYPE else b""
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


_CAPSULE = {"question": "Q?", "ideal": "A", "distractors": ["B"], "question_id": "q1", "capsule_uuid": "c", "data_folder": "CapsuleFolder-c.zip", "eval_mode": "str_verifier"}
FILES: dict[str, tuple[Build, tuple[str, ...]]] = {
    "predictions: an empty file": (_write("p.jsonl", b""), SCORE),
    "predictions: every wrong type as output": (_write("p.jsonl", _lines(*[PREDICTION | {"output": value} for value in VALUES])), SCORE),
    "predictions: every wrong type as id": (_write("p.jsonl", _lines(*[PREDICTION | {"id": value} for value in VALUES])), SCORE),
    "predictions: hostile texts as id": (_write("p.jsonl", _lines(*[PREDICTION | {"id": text} for text in TEXTS.values()])), SCORE),
    "predictions: hostile texts as output": (_write("p.jsonl", _lines(*[PREDICTION | {"id": f"demo_object_counting_{n % 3}", "epoch": n // 3, "output": text} for n, text in enumerate(TEXTS.values())])), SCORE),
    "predictions: an epoch of 10 to the power of 400": (_predictions(epoch=10**400), SCORE),
    "predictions: an index that is not a number": (_predictions(index=float("nan"), subset="../x"), SCORE),
    "predictions: choices of all types": (_write("p.jsonl", _lines(*[PREDICTION | {"choices": value, "answer": value} for value in VALUES])), SCORE),
    "predictions: 100,000 nested arrays": (_write("p.jsonl", b'{"id": ' + b"[" * 100_000 + b"\n"), SCORE),
    "predictions: a gzip bomb": (_write("p.jsonl", lambda: gzip.compress(b" " * 2**28)), SCORE),
    "predictions: a gzip bomb by name": (_write("p.jsonl.gz", lambda: gzip.compress(b" " * 2**28)), ("score --datasets demo --predictions input/p.jsonl.gz",)),
    "predictions: a FIFO": (_fifo("p.jsonl"), SCORE),
    "predictions: /dev/zero": (_link("p.jsonl", "/dev/zero"), SCORE),
    "predictions: a folder": (lambda place: (place / "p.jsonl").mkdir(), SCORE),
    "predictions: they change while they are read": (_changing("p.jsonl"), SCORE),
    "settings: an empty file": (_write("c.yaml", b""), EVAL),
    "settings: a list": (_write("c.yaml", b"[1, 2]"), EVAL),
    "settings: aliases that grow to 9^11 values": (_write("c.yaml", _ALIASES), EVAL),
    "settings: an alias to itself": (_write("c.yaml", "model: &a [*a]"), EVAL),
    "settings: tags of Python": (_write("c.yaml", "model: !!python/object/apply:os.system ['touch canary']"), EVAL),
    "settings: 20,000 nested lists": (_write("c.yaml", "model: " + "[" * 20_000), EVAL),
    "settings: every wrong type": (_write("c.yaml", "model: {a: 1}\ndatasets: 5\nlimit: x\nseed: 1e400\nprice: []\nbudget: nan\n"), EVAL),
    "settings: NUL and escapes": (_write("c.yaml", "model: \"\\0\\e[2J\"\ndatasets: [\"\\0\"]\nrun_id: \"\\0\""), EVAL),
    "settings: a run id from outside": (_write("c.yaml", "model: scripted\ndatasets: [demo]\nlimit: 1\nrun_id: ../../outside"), EVAL),
    "settings: a run id of 5,000 characters": (_write("c.yaml", "model: scripted\ndatasets: [demo]\nlimit: 1\nrun_id: " + "r" * 5000), EVAL),
    "settings: numbers beyond all bounds": (_write("c.yaml", "model: scripted\ndatasets: [demo]\nlimit: 1" + "0" * 300 + "\nseed: -1" + "0" * 300 + "\ntimeout: .inf\neval_batch_size: 999999999999"), EVAL),
    "settings: a variable in every place": (_write("c.yaml", "model: ${NOPE:-$(touch canary)}\ndatasets: ['${HOME}']\n"), EVAL),
    "settings: 20 MiB": (_write("c.yaml", lambda: b"# " + b"x" * 20 * 2**20), EVAL),
    "settings: a FIFO": (_fifo("c.yaml"), EVAL),
    "settings: /dev/zero": (_link("c.yaml", "/dev/zero"), EVAL),
    "settings: /dev/stdin": (_link("c.yaml", "/dev/stdin"), EVAL),
    "settings: UTF-16": (_write("c.yaml", "model: scripted\ndatasets: [demo]\n".encode("utf-16")), EVAL),
    "settings of servers: hostile texts": (_write("c.yaml", json.dumps({"datasets": ["demo"], "model": "scripted", "arms": [{"name": text, "servers": [{"name": text, "command": text, "args": [text], "env": {text: text}}]} for text in TEXTS.values()]})), ("run -c input/c.yaml --work-dir runs", "mcp check -c input/c.yaml")),
    "log of lm-eval: every wrong type": (_write("samples_bbh_x_2026-01-01T00-00-00.1.jsonl", _lines(*[LM | {key: value} for key in LM for value in VALUES if key not in ("doc_id", "resps")])), IMPORT),
    "log of lm-eval: every wrong type, one by one": (lambda place: [_put(place / f"{n}/samples_demo_2026-01-01T00-00-00.1.jsonl", _lines(LM | {"resps": value}).encode()) for n, value in enumerate(VALUES)] and None, tuple(f"import input/{n} --work-dir runs" for n in range(len(VALUES)))),
    "log of lm-eval: a task from outside": (_write("samples_..%2f..%2foutside_2026-01-01T00-00-00.1.jsonl", _lines(LM)), IMPORT),
    "log of EvalScope: every wrong type": (_write("predictions/m/demo_default.jsonl", _lines(EVALSCOPE, *[EVALSCOPE | {"model_output": value, "index": n} for n, value in enumerate(VALUES)])), IMPORT),
    "log of EvalScope: hostile names": (_write("predictions/..m/\x1b[2J<img src=x onerror=pwned()>.jsonl", _lines(EVALSCOPE | {"model": "../../outside\x1b[2J"})), IMPORT),
    "log of Inspect: every wrong type": (_write("a.json", json.dumps(INSPECT | {"samples": [{"id": value, "epoch": value, "output": value, "scores": value, "target": value} for value in VALUES[:8]]})), IMPORT),
    "log of Inspect: an archive with a bomb": (_write("a.eval", lambda: _zip(("header.json", json.dumps(INSPECT).encode()), ("samples/1.json", b" " * 2**29))), IMPORT),
    "log of Inspect: an archive with paths outside": (_write("a.eval", _zip(("header.json", json.dumps(INSPECT).encode()), ("samples/../../../outside.json", b"{}"))), IMPORT),
    "log of Inspect: an archive with 250,000 entries": (_write("a.eval", lambda: _zip(*[(f"samples/{n}.json", b"{}") for n in range(250_000)])), IMPORT),
    "log of Inspect: a damaged archive": (_write("a.eval", _zip(("header.json", b"{}"))[:-30]), IMPORT),
    "log of Inspect: 50,000 nested arrays": (_write("a.json", '{"eval": {"task": 1}, "status": ' + "[" * 50_000), IMPORT),
    "log of verifiers: every wrong type": (_both(_write("metadata.json", b'{"env_id": "demo", "model": "m"}'), _write("results.jsonl", _lines(VERIFIERS, *[VERIFIERS | {"completion": value, "reward": value} for value in VALUES]))), IMPORT),
    "log of verifiers: hostile metadata": (_both(_write("metadata.json", json.dumps({"env_id": "../../outside", "model": SHELL}).encode()), _write("results.jsonl", _lines(VERIFIERS))), IMPORT),
    "log of OpenCompass: every wrong type": (_write("predictions/m/bbh-x.json", json.dumps({str(n): {"prediction": value, "gold": value, "origin_prompt": value} for n, value in enumerate(VALUES)})), IMPORT),
    "log: YAML settings with aliases": (_both(_write("predictions/m/demo_default.jsonl", _lines(EVALSCOPE)), _write("configs/task_config.yaml", _ALIASES)), IMPORT),
    "log: a link to itself": (_both(_write("predictions/m/demo_default.jsonl", _lines(EVALSCOPE)), _link("loop", ".")), IMPORT),
    "log: a FIFO": (_fifo("samples_demo_2026-01-01T00-00-00.1.jsonl"), IMPORT),
    "BixBench: ids and capsules from outside": (_write("bixbench/BixBench.jsonl", _lines(*[_CAPSULE | {"question_id": text, "capsule_uuid": text, "data_folder": text} for text in TEXTS.values()])), ("show bixbench --data-dir input", "stats bixbench --data-dir input")),
    "list of runs: folders of all kinds": (_both(_write("a/manifest.json", b"{"), _write("b/manifest.json", b"[]"), _write("c/manifest.json", b"\0" * 100), _fifo("manifest.json"), _link("loop", "."), _write("\x1b[2J/manifest.json", b"{}")), ("list runs --work-dir input", "list runs --work-dir input --json")),
}
"""Files by what is wrong with them, and the commands that read them."""
for _name, _entries in {
    "leads outside": (("../../outside", tarfile.REGTYPE, ""),),
    "is absolute": (("/tmp/outside-of-keju", tarfile.REGTYPE, ""),),
    "is a link outside": (("a", tarfile.SYMTYPE, "/etc"), ("a/passwd", tarfile.REGTYPE, "")),
    "is a hard link outside": (("a", tarfile.LNKTYPE, "/etc/passwd"),),
    "is a device": (("a", tarfile.CHRTYPE, ""),),
    "is a FIFO": (("a", tarfile.FIFOTYPE, ""),),
    "has escapes": (("\x1b[2J\x07", tarfile.REGTYPE, ""),),
}.items():
    for _form, _pack in {"tar": bytes, "tar.gz": gzip.compress, "tar.xz": lzma.compress, "tar.bz2": bz2.compress}.items():
        FILES[f"archive: {_form} whose entry {_name}"] = (
            _write(f"bbh.{_form}", _pack(_tar(*_entries))),
            (f"stats bbh --data-dir input/bbh.{_form}", "data verify bbh --data-dir input"),
        )


def _stored_run(folder: Path) -> str:
    words = "eval --model scripted --datasets demo --total 4 --work-dir runs --run-id r".split()
    return attacked(folder, *words, codes=(0,), seconds=SECONDS).problem


AFTER = (
    "score r --work-dir runs --json",
    "report r --work-dir runs -o page.html",
    "export r --work-dir runs --format csv -o t.csv",
    "audit r --work-dir runs",
    "show r --work-dir runs",
    "compare r r --work-dir runs",
    "list runs --work-dir runs",
    "eval --model scripted --datasets demo --total 4 --work-dir runs --run-id r",
)
"""Commands that read a stored run."""


def _run_folder(change: Build) -> Callable[[Path], str]:
    def run(folder: Path) -> str:
        if problem := _stored_run(folder):
            return problem
        place = folder / "work/runs/r"
        change(place)
        for words in AFTER:
            made = attacked(folder, *words.split(), codes=CODES, seconds=SECONDS)
            if made.problem:
                return made.problem
        return active_content(folder / "work/page.html")

    return run


def _edit(name: str, edit: Callable[[bytes], bytes]) -> Build:
    return lambda place: _put(place / name, edit((place / name).read_bytes()))


def _replace(name: str, build: Build) -> Build:
    def change(place: Path) -> None:
        (place / name).unlink()
        build(place)

    return change


def _each_line(edit: Callable[[Row], Row]) -> Build:
    def changed(data: bytes) -> bytes:
        return b"".join(json.dumps(edit(json.loads(line))).encode() + b"\n" for line in data.splitlines())

    return _edit("records.jsonl", changed)


def _every_value(document: Any, value: Any) -> Iterator[Any]:
    """Yield copies of a document, each with one of its values replaced."""
    if isinstance(document, dict):
        for name, below in document.items():
            yield document | {name: value}
            for changed in _every_value(below, value):
                yield document | {name: changed}
    elif isinstance(document, list) and document:
        for changed in _every_value(document[0], value):
            yield [changed, *document[1:]]


def _records_with(value: Any) -> Build:
    """Change the journal: each value of the last record, replaced in a line of its own."""

    def changed(data: bytes) -> bytes:
        last = json.loads(data.splitlines()[-1])
        rows = (json.dumps(row).encode() for row in _every_value(last, value))
        return data + b"\n".join(rows) + b"\n"

    return _edit("records.jsonl", changed)


def _manifest_with(value: Any) -> Build:
    """Change every value of the manifest's first level."""
    return _edit("manifest.json", lambda data: json.dumps({n: value for n in json.loads(data)}).encode())


RUNS: dict[str, Build] = {
    "journal: a link": _replace("records.jsonl", _link("records.jsonl", "/etc/passwd")),
    "journal: a FIFO": _replace("records.jsonl", _fifo("records.jsonl")),
    "journal: /dev/zero": _replace("records.jsonl", _link("records.jsonl", "/dev/zero")),
    "journal: a folder": _replace("records.jsonl", lambda place: (place / "records.jsonl").mkdir()),
    "journal: a socket": _replace("records.jsonl", _socket("records.jsonl")),
    "journal: empty": _edit("records.jsonl", lambda data: b""),
    "journal: cut in the last line": _edit("records.jsonl", lambda data: data[:-30]),
    "journal: cut in the first line": _edit("records.jsonl", lambda data: data[30:]),
    "journal: NUL bytes inside": _edit("records.jsonl", lambda data: data.replace(b"\n", b"\n" + b"\0" * 4096 + b"\n", 2)),
    "journal: CRLF": _edit("records.jsonl", lambda data: data.replace(b"\n", b"\r\n")),
    "journal: every line twice": _edit("records.jsonl", lambda data: data * 2),
    "journal: lines in another order": _edit("records.jsonl", lambda data: b"\n".join(reversed(data.splitlines())) + b"\n"),
    "journal: 100,000 nested arrays": _edit("records.jsonl", lambda data: data + b"[" * 100_000 + b"\n"),
    "journal: invalid UTF-8": _edit("records.jsonl", lambda data: data.replace(b"text", b"te\xff\xfet")),
    "journal: another version": _each_line(lambda row: row | {"v": 99, "schema": 99}),
    "journal: null in every field": _records_with(None),
    "journal: a list in every field": _records_with([[]]),
    "journal: a huge number in every field": _records_with(10**400),
    "journal: -1 in every field": _records_with(-1),
    "journal: a hostile text in every field": _records_with("../../outside\x1b[2J</script><img src=x onerror=pwned()>"),
    "journal: an object in every field": _records_with({"a": {"b": {}}}),
    "manifest: null in every field": _manifest_with(None),
    "manifest: a list in every field": _manifest_with([]),
    "manifest: a text in every field": _manifest_with("../../outside\x1b[2J<img src=x onerror=pwned()>"),
    "manifest: a huge number in every field": _manifest_with(10**400),
    "manifest: an object in every field": _manifest_with({}),
    "manifest: a link": _replace("manifest.json", _link("manifest.json", "/etc/passwd")),
    "manifest: a FIFO": _replace("manifest.json", _fifo("manifest.json")),
    "manifest: gone": lambda place: (place / "manifest.json").unlink(),
    "manifest: 100,000 nested arrays": _edit("manifest.json", lambda data: b"[" * 100_000),
    "manifest: the run id leads outside": _edit("manifest.json", lambda data: data.replace(b'"r"', b'"../../outside"')),
    "manifest: another model that is a program": _edit("manifest.json", lambda data: data.replace(b'"scripted"', b'"$(touch canary)"')),
    "manifest: the exam is a path": _edit("manifest.json", lambda data: data.replace(b'"demo"', b'"../../../etc/passwd"')),
    "results: not JSON": _edit("results.json", lambda data: b"{"),
    "results: a FIFO": _replace("results.json", _fifo("results.json")),
    "results: a link": _replace("results.json", _link("results.json", "../../../home/results")),
    "report: a link": _replace("report.html", _link("report.html", "../../../home/report")),
    "verdicts: nonsense": lambda place: _put(place / "verdicts.jsonl", b'{"a":\n[1]\n\0\n'),
    "verdicts: a link": _link("verdicts.jsonl", "/etc/passwd"),
}
"""Changes of a stored run, by what they do."""


def _placeholder(text: str) -> Callable[[Path], str]:
    """Return an attack with an id that reaches every placeholder of an MCP server's settings."""

    def run(folder: Path) -> str:
        import sys

        from perf.soak.hostile import mcp_server

        script = str(Path(mcp_server.__file__))
        place = folder / "work/input"
        place.mkdir(parents=True)
        (place / "q.jsonl").write_text(_lines(PLAIN | {"id": text, "subset": text}))
        setup = "echo {instance_id} \"{instance_id}\" '{instance_id}' {workdir} > /dev/null"
        server = {
            "name": "calc",
            "command": "bash",
            "args": ["-c", f'echo "{{instance_id}}" >&2; exec {sys.executable} {script} ignores_signals'],
            "env": {"ID": "{instance_id}"},
            "setup_command": setup,
            "scope": "sample",
        }
        arms = [{"name": "tools", "servers": [server]}]
        settings = {"datasets": ["./input"], "model": "scripted", "arms": arms}
        (folder / "work/arms.yaml").write_text(json.dumps(settings))
        words = "run -c arms.yaml --work-dir runs --run-id r --json".split()
        return attacked(folder, *words, codes=CODES, seconds=SECONDS).problem

    return run
