"""What is handed to a judge: the options as they were seen, and the answer as it was read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from keju.benchmarks.choices import restore_order
from keju.config import TaskConfig
from keju.engine.job import Job, make_jobs
from keju.judges.exam import submit
from keju.judges.prompts import ANSWER
from keju.runs.journal import Records
from keju.stored_tasks import judge_run
from keju.task import run_exams
from keju.types import Answer, Fault, Reading, Record, Reply, Sample, Score
from tests.support.endpoint import FaultyEndpoint
from tests.support.judged import benchmark_entry, judged_config
from tests.support.replies import Plan

EXAM = {"demo": {"size": 20, "subset_list": ["object_counting"]}}


def job_of(tmp_path: Path, **filters: str) -> Job:
    """A job of the demo exam, or of the open one where there are filters."""
    task = TaskConfig(
        model="scripted", datasets=["demo"], dataset_args=EXAM, work_dir=str(tmp_path)
    )
    if filters:
        args = {"open": {"filters": filters}}
        task = TaskConfig(model="scripted", datasets=["open"], dataset_args=args)
    return make_jobs(task)[0]


def handed(job: Job, text: str, strategy: str, order: tuple[int, ...] = ()) -> list[Sample]:
    reply = Reply(text=text, finish="stop")
    readings = job.grade(0, reply, order)
    record = Record(bench="b", id="i", hash="h", order=order, reply=reply, readings=readings)
    submission = submit(job, 0, record, strategy)
    return [] if submission is None else [submission.question]


def reversed_order(sample: Sample) -> tuple[int, ...]:
    return tuple(reversed(sample.order or range(len(sample.choices))))


def test_options_are_judged_in_the_order_in_which_they_were_shown(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    sample = job.exam.samples[0]
    order = reversed_order(sample)
    reordered = restore_order(sample, order)
    assert reordered.target != sample.target
    assert handed(job, f"The answer is ({reordered.target}).", "llm_recall", order) == []
    (question,) = handed(job, f"The answer is ({sample.target}).", "llm_recall", order)
    assert (question.choices, question.target) == (reordered.choices, reordered.target)


def test_recall_lowers_no_score_of_a_run_with_permuted_options(tmp_path: Path) -> None:
    task = TaskConfig(
        model="scripted", datasets=["demo"], dataset_args=EXAM, work_dir=str(tmp_path), run_id="r"
    )
    run_exams(task, report=False)
    samples = {sample.id: sample for sample in make_jobs(task)[0].exam.samples}
    lines = []
    for record in Records(tmp_path / "r"):
        reordered = restore_order(samples[record.id], reversed_order(samples[record.id]))
        reply = Reply(text=f"The answer is ({reordered.target}).", finish="stop")
        changed = msgspec.structs.replace(record, order=reordered.order, reply=reply)
        lines.append(msgspec.json.encode(changed) + b"\n")
    (tmp_path / "r" / "records.jsonl").write_bytes(b"".join(lines))
    with FaultyEndpoint(Plan(answers="<grade>incorrect</grade>")) as judge:
        settings = {"model": "j", "api_url": judge.url}
        judged = task.model_copy(update={"judge": judged_config(tmp_path, "", settings).judge})
        benchmark = benchmark_entry(judge_run(judged, tmp_path / "r", report=False).document)
    assert benchmark["outcomes"]["correct"] == len(lines) == 20


@pytest.mark.usefixtures("open_exam")
def test_an_open_answer_is_handed_in_as_it_was_read(tmp_path: Path) -> None:
    job = job_of(tmp_path, remove_until="FINAL:")
    (question,) = handed(job, "It may be 5 or 7. FINAL: eleven ", "llm_recall")
    assert question.metadata[ANSWER] == "eleven"
    assert handed(job, "It may be 5. FINAL: ", "llm") == []


def test_a_closed_answer_is_handed_in_without_what_no_reader_sees(tmp_path: Path) -> None:
    (question,) = handed(job_of(tmp_path), "<think>(A)?</think> the first one", "llm_recall")
    assert question.metadata[ANSWER] == "the first one"


def test_only_texts_with_a_target_can_be_judged(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    sample = job.exam.samples[0]
    incorrect_readings = (Reading("r", Answer("x"), Score(0.0, "incorrect")),) * len(job.readers)

    def is_handed_in(reply: Reply) -> bool:
        record = Record(bench="b", id="i", hash="h", reply=reply, readings=incorrect_readings)
        return submit(job, 0, record, "llm") is not None

    assert is_handed_in(Reply(text="a"))
    assert not is_handed_in(Reply(text=" \n"))
    assert not is_handed_in(Reply(text="a", error=Fault("server", "x")))
    assert not is_handed_in(Reply(text="A", label_logprobs={"A": -0.1}))
    job.exam.samples = [msgspec.structs.replace(sample, target="")]
    assert not is_handed_in(Reply(text="a"))
