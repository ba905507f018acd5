"""How long the viewer needs for the first page of a long run, and for a filter; and the report."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from perf.measure import Row, cpu, in_child

RECORDS = 100_000
LIMIT = 1.5
"""Times a bare pass over the journal that the first page may take."""
FILTERS = {
    "outcome": "failures",
    "length": "by length",
    "text": "by text",
    "where": "by a condition in SQL",
}
SAMPLES = 12_032
RUNS = 200
RUNS_LIMIT = 1.0
"""Seconds that the first page of a folder of `RUNS` runs may take."""
ROUNDS = 3


def measure() -> Iterator[Row]:
    """Processor time of pages, in a new process, against a bare pass of msgspec over the file."""
    for words, title in ((0, "short"), (200, "long")):
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "stored"
            in_child(store, folder=str(run), words=words)
            timings_by_round = [in_child(look, folder=str(run)).value for _ in range(ROUNDS)]
        best = {
            name: min(timings[name] for timings in timings_by_round) for name in timings_by_round[0]
        }
        row_title = f"viewer: first page, {RECORDS:,} {title} replies"
        ratio, limit = best["page"] / best["bare"], f"{LIMIT:g}x of {best['bare']:.3f} s bare"
        yield Row(row_title, f"{best['page']:.3f} s", limit, ratio, ratio <= LIMIT)
        for name, about in FILTERS.items():
            yield Row(f"viewer: {about}, {RECORDS:,} {title} replies", f"{best[name]:.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        in_child(store_runs, folder=folder)
        seconds = min(in_child(look_at_runs, folder=folder).value for _ in range(ROUNDS))
    row_title = f"viewer: first page of a folder of {RUNS} runs, start included"
    limit = f"{RUNS_LIMIT:g} s"
    yield Row(row_title, f"{seconds:.2f} s", limit, seconds / RUNS_LIMIT, seconds <= RUNS_LIMIT)
    with tempfile.TemporaryDirectory() as folder:
        seconds = in_child(report, folder=folder).value
    yield Row(f"report: {SAMPLES:,} answers", f"{seconds:.2f} s")


def store_runs(folder: str) -> None:
    """Evaluate the built-in exam as many times as the folder has runs, each with another seed."""
    from keju.config import TaskConfig
    from keju.task import run_exams

    for number in range(RUNS):
        name = {"run_id": f"run-{number}", "work_dir": folder, "seed": number + 1, "limit": 5}
        config = TaskConfig(model="scripted", datasets=["demo"], **name)  # type: ignore[arg-type]
        run_exams(config)


def look_at_runs(folder: str) -> float:
    """Seconds of CPU until the first page is made, with all imports."""
    started = cpu()
    from starlette.requests import Request

    from keju.viewer.pages import ViewerPages
    from keju.viewer.run_index import RunIndex

    scope = {"type": "http", "method": "GET", "headers": [], "path_params": {}}
    ViewerPages(RunIndex(Path(folder))).runs(Request(scope | {"query_string": b""}))
    return cpu() - started


def store(folder: str, words: int) -> None:
    """Write a run whose replies have so many words."""
    from tests.viewer.runs import record, write

    from keju.types import Outcome

    draw = random.Random(1)
    outcomes: tuple[Outcome, ...] = ("correct", "correct", "correct", "incorrect", "unparsed")
    vocabulary = [f"word{number}" for number in range(3_000)]
    texts = [" ".join(draw.choices(vocabulary, k=words)) for _ in range(500)]
    write(
        Path(folder),
        [
            record(
                number, draw.choice(outcomes), other="correct", text=draw.choice(texts) + " (B)."
            )
            for number in range(RECORDS)
        ],
    )


def look(folder: str) -> dict[str, float]:
    """Seconds of CPU: a bare pass, the first page of the run, and pages with a filter."""
    import msgspec
    from starlette.requests import Request

    from keju.types import Record
    from keju.viewer.pages import ViewerPages
    from keju.viewer.run_index import RunIndex

    decode = msgspec.json.Decoder(Record).decode
    started = cpu()
    with Path(folder, "records.jsonl").open("rb", buffering=1 << 20) as lines:
        for line in lines:
            decode(line)
    timings = {"bare": cpu() - started}
    pages = ViewerPages(RunIndex(Path(folder).parent))
    for name, query in (
        ("page", ""),
        ("details", "least=1"),  # what filters need is read behind the first page
        ("outcome", "outcome=failed&page=3"),
        ("length", "least=100&sort=longest"),
        ("text", "text=word77"),
        ("import", "where=false"),  # DuckDB is loaded once
        ("where", "where=seconds+%3E+50000+and+outcome+%3D+%27incorrect%27"),
    ):
        started = cpu()
        scope = {"type": "http", "method": "GET", "headers": [], "path_params": {"run": "stored"}}
        request = Request(scope | {"query_string": query.encode()})
        (pages.samples if query else pages.run)(request)
        timings[name] = cpu() - started
    return timings


def report(folder: str) -> float:
    """Seconds of CPU that the page of a large run takes."""
    from tests.reporting.documents import MANIFEST, document, record, results

    from keju.reporting.html import write_report

    answers = (
        (None, record(number, "incorrect" if number % 3 else "correct", text="So it goes. " * 100))
        for number in range(SAMPLES)
    )
    typed = results(*document()["benchmarks"])
    started = cpu()
    write_report(typed, answers, Path(folder) / "report.html", manifest=MANIFEST)
    return cpu() - started
