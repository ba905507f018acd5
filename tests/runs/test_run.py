"""A stored run: which of its records count, for every command alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keju
from keju.benchmarks.samples import DigestTable
from keju.config import TaskConfig
from keju.engine.job import make_jobs
from keju.engine.resume import recall
from keju.runs.journal import FILE, Journal, Records
from keju.runs.run import JudgedReadings, Run, list_runs, open_run, select_counting, write_grades
from keju.scores.stored_replies import ExamRequests, iter_stored_replies
from keju.task import run_exams
from keju.types import Answer, Fault, Reading, Record, Reply, Score

ERROR, FINAL = Fault("server", "down"), Fault("context_length", "too long")
ONE, OTHER = "1" * 32, "f" * 32


def record(text: str | Fault, hash_: str = ONE, sample_id: str = "q1", epoch: int = 0) -> Record:
    reply = Reply(error=text) if isinstance(text, Fault) else Reply(text)
    return Record(bench="b", id=sample_id, epoch=epoch, hash=hash_, reply=reply)


def error_kind(reply: Reply) -> str:
    return reply.text if reply.error is None else reply.error.kind


@pytest.mark.parametrize(
    ("lines", "by_hash", "by_key"),
    [
        (["A"], "A", "A"),
        ([ERROR, "A"], "A", "A"),
        (["A", ERROR], "A", "A"),
        ([ERROR, FINAL], "context_length", "context_length"),
        ([FINAL, ERROR], "server", "server"),
        (["A", "B", ERROR], "A", "B"),
        ([ERROR, "A", FINAL, "B"], "A", "B"),
    ],
)
def test_the_rule(lines: list[str | Fault], by_hash: str, by_key: str) -> None:
    placed = list(enumerate(map(record, lines)))
    for keyed, expected in ((False, by_hash), (True, by_key)):
        *_, (number, start, last_record) = select_counting(
            placed, DigestTable(), by_key=keyed, grow=True
        )
        assert number == 0
        assert last_record is placed[start][1]
        assert error_kind(last_record.reply) == expected


def test_only_records_of_todays_requests_count() -> None:
    placed = list(enumerate([record("A"), record("B", OTHER)]))
    table = DigestTable([bytes.fromhex(OTHER)])
    assert [(number, start) for number, start, _ in select_counting(placed, table)] == [(0, 1)]


@given(st.lists(st.binary(min_size=1, max_size=2), max_size=3000))
def test_a_table_numbers_digests_as_a_dict_would(parts: list[bytes]) -> None:
    digests = [part.ljust(16, b"\0") for part in parts]
    table, numbers = DigestTable(), dict[bytes, int]()
    for digest in digests:
        assert table.add(digest) == numbers.setdefault(digest, len(numbers))
    assert len(table) == len(numbers)
    assert all(table.find(digest) == number for digest, number in numbers.items())
    assert table.find(b"\xff" * 16) == -1


@pytest.mark.slow
def test_a_table_grows() -> None:
    digests = [number.to_bytes(16) for number in range(5000)]
    table = DigestTable(digests)
    assert [table.find(digest) for digest in digests] == list(range(5000))


def test_each_question_is_given_once_with_its_grade(tmp_path: Path) -> None:
    lines = [record(ERROR), record("old", OTHER, "q2"), record("A"), record("B", "2" * 32, "q2")]
    with Journal(tmp_path) as journal:
        journal.append(lines)
    reading = Reading("r", Answer("A"), Score(1.0, "correct", "judge"))
    write_grades(tmp_path, [JudgedReadings("b", "q1", ONE, (reading,))])
    answers = [answer for _, answer in Run(tmp_path).answers()]
    assert [(answer.id, answer.reply.text) for answer in answers] == [("q1", "A"), ("q2", "B")]
    assert [answer.readings for answer in answers] == [(reading,), ()]


def test_runs_are_public(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"model": "scripted", "datasets": ["demo"]}
    for name in ("first", "second"):
        run_exams(
            TaskConfig(**settings, work_dir=str(tmp_path), run_id=name, limit=2), report=False
        )
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("[]")
    assert [run.id for run in keju.list_runs(str(tmp_path))] == ["first", "second"]
    run = keju.open_run("first", str(tmp_path))
    assert run.manifest.complete
    assert run.config().limit == 2
    assert run.results()["run"] == "first"
    assert len(list(run.answers())) == len(list(run.records)) == 12
    with pytest.raises(keju.UsageError, match=r"no run 'frist' .*did you mean 'first'"):
        open_run("frist", str(tmp_path))
    assert [run.id for run in list_runs(str(tmp_path / "nowhere"))] == []


def test_an_error_after_a_kept_one_is_asked_again(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"model": "scripted", "datasets": ["demo"]}
    config = TaskConfig(**settings, work_dir=str(tmp_path), run_id="r", limit=1)
    folder = run_exams(config, report=False).folder
    first_record, *later_records = Records(folder)
    (folder / FILE).unlink()
    with Journal(folder) as journal:
        for fault in (FINAL, ERROR):
            journal.append([msgspec.structs.replace(first_record, reply=Reply(error=fault))])
        journal.append(later_records)
    requests = ExamRequests(make_jobs(config))
    assert recall(requests, folder / FILE).count == len(later_records)
    replies = {
        reply.unit: reply.record.reply for reply in iter_stored_replies(Run(folder), requests)
    }
    assert [error_kind(r) for r in replies.values() if r.error is not None] == ["server"]
