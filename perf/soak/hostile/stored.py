"""Hostile run folders: a stored run that someone changed, and every command that reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from perf.soak.case import Case
from perf.soak.hostile.judge import active_content, attacked
from perf.soak.hostile.writing import (
    CODES,
    SECONDS,
    Build,
    Row,
    fifo,
    link,
    unix_socket,
    write_file,
)


def cases() -> list[Case]:
    """Return every attack with a stored run."""
    return [Case(f"run folder: {name}", _run_folder(change)) for name, change in RUNS.items()]


def _stored_run(folder: Path) -> str:
    words = [
        "eval",
        "--model",
        "scripted",
        "--datasets",
        "demo",
        "--total",
        "4",
        "--work-dir",
        "runs",
        "--run-id",
        "r",
    ]
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
            attack_run = attacked(folder, *words.split(), codes=CODES, seconds=SECONDS)
            if attack_run.problem:
                return attack_run.problem
        return active_content(folder / "work/page.html")

    return run


def _edit(name: str, edit: Callable[[bytes], bytes]) -> Build:
    return lambda place: write_file(place / name, edit((place / name).read_bytes()))


def _replace(name: str, build: Build) -> Build:
    def change(place: Path) -> None:
        (place / name).unlink()
        build(place)

    return change


def _each_line(edit: Callable[[Row], Row]) -> Build:
    def changed(data: bytes) -> bytes:
        return b"".join(
            json.dumps(edit(json.loads(line))).encode() + b"\n" for line in data.splitlines()
        )

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
        last_record = json.loads(data.splitlines()[-1])
        rows = (json.dumps(row).encode() for row in _every_value(last_record, value))
        return data + b"\n".join(rows) + b"\n"

    return _edit("records.jsonl", changed)


def _manifest_with(value: Any) -> Build:
    """Change every value of the manifest's first level."""
    return _edit(
        "manifest.json", lambda data: json.dumps(dict.fromkeys(json.loads(data), value)).encode()
    )


RUNS: dict[str, Build] = {
    "journal: a link": _replace("records.jsonl", link("records.jsonl", "/etc/passwd")),
    "journal: a FIFO": _replace("records.jsonl", fifo("records.jsonl")),
    "journal: /dev/zero": _replace("records.jsonl", link("records.jsonl", "/dev/zero")),
    "journal: a folder": _replace("records.jsonl", lambda place: (place / "records.jsonl").mkdir()),
    "journal: a socket": _replace("records.jsonl", unix_socket("records.jsonl")),
    "journal: empty": _edit("records.jsonl", lambda _: b""),
    "journal: cut in the last line": _edit("records.jsonl", lambda data: data[:-30]),
    "journal: cut in the first line": _edit("records.jsonl", lambda data: data[30:]),
    "journal: NUL bytes inside": _edit(
        "records.jsonl", lambda data: data.replace(b"\n", b"\n" + b"\0" * 4096 + b"\n", 2)
    ),
    "journal: CRLF": _edit("records.jsonl", lambda data: data.replace(b"\n", b"\r\n")),
    "journal: every line twice": _edit("records.jsonl", lambda data: data * 2),
    "journal: lines in another order": _edit(
        "records.jsonl", lambda data: b"\n".join(reversed(data.splitlines())) + b"\n"
    ),
    "journal: 100,000 nested arrays": _edit(
        "records.jsonl", lambda data: data + b"[" * 100_000 + b"\n"
    ),
    "journal: invalid UTF-8": _edit(
        "records.jsonl", lambda data: data.replace(b"text", b"te\xff\xfet")
    ),
    "journal: another version": _each_line(lambda row: row | {"v": 99, "schema": 99}),
    "journal: null in every field": _records_with(None),
    "journal: a list in every field": _records_with([[]]),
    "journal: a huge number in every field": _records_with(10**400),
    "journal: -1 in every field": _records_with(-1),
    "journal: a hostile text in every field": _records_with(
        "../../outside\x1b[2J</script><img src=x onerror=pwned()>"
    ),
    "journal: an object in every field": _records_with({"a": {"b": {}}}),
    "manifest: null in every field": _manifest_with(None),
    "manifest: a list in every field": _manifest_with([]),
    "manifest: a text in every field": _manifest_with(
        "../../outside\x1b[2J<img src=x onerror=pwned()>"
    ),
    "manifest: a huge number in every field": _manifest_with(10**400),
    "manifest: an object in every field": _manifest_with({}),
    "manifest: a link": _replace("manifest.json", link("manifest.json", "/etc/passwd")),
    "manifest: a FIFO": _replace("manifest.json", fifo("manifest.json")),
    "manifest: gone": lambda place: (place / "manifest.json").unlink(),
    "manifest: 100,000 nested arrays": _edit("manifest.json", lambda _: b"[" * 100_000),
    "manifest: the run id leads outside": _edit(
        "manifest.json", lambda data: data.replace(b'"r"', b'"../../outside"')
    ),
    "manifest: another model that is a program": _edit(
        "manifest.json", lambda data: data.replace(b'"scripted"', b'"$(touch canary)"')
    ),
    "manifest: the exam is a path": _edit(
        "manifest.json", lambda data: data.replace(b'"demo"', b'"../../../etc/passwd"')
    ),
    "results: not JSON": _edit("results.json", lambda _: b"{"),
    "results: a FIFO": _replace("results.json", fifo("results.json")),
    "results: a link": _replace("results.json", link("results.json", "../../../home/results")),
    "report: a link": _replace("report.html", link("report.html", "../../../home/report")),
    "verdicts: nonsense": lambda place: write_file(place / "verdicts.jsonl", b'{"a":\n[1]\n\0\n'),
    "verdicts: a link": link("verdicts.jsonl", "/etc/passwd"),
}
"""Changes of a stored run, by what they do."""
