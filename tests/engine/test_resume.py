"""What is taken from a stored journal as it stands, and what is read anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from keju import run_task
from keju.config import TaskConfig
from keju.engine.job import Job, make_jobs
from keju.engine.resume import ReusedUnits, recall
from keju.runs.journal import FILE, Journal, Records
from keju.runs.manifest import NEVER
from keju.scores.stored_replies import ExamRequests
from keju.task import run_exams
from tests.benchmarks.bixbench.conftest import FLAT, write
from tests.support.endpoint import FaultyEndpoint


def stored(folder: Path, **extra_settings: Any) -> tuple[TaskConfig, Path]:
    settings: dict[str, Any] = {"model": "scripted", "datasets": ["demo"], "work_dir": str(folder)}
    config = TaskConfig(**settings, run_id="r", **extra_settings)
    return config, run_exams(config, report=False).folder


def rewrite(run: Path, **changes: Any) -> None:
    """Change the first record of a journal."""
    first_record, *other_records = Records(run)
    lines = [msgspec.structs.replace(first_record, **changes), *other_records]
    (run / "records.jsonl").unlink()
    with Journal(run) as journal:
        journal.append(lines)


def recalled_jobs(config: TaskConfig, run: Path, *, trusted: bool) -> tuple[list[Job], ReusedUnits]:
    jobs = make_jobs(config)
    return jobs, recall(ExamRequests(jobs), run / FILE, trusted_from=0 if trusted else NEVER)


def wrongly_correct(run: Path) -> dict[str, Any]:
    """The first record with a stored score that its reply does not earn."""
    first_record = next(iter(Records(run)))
    reading, *other_readings = first_record.readings
    earned = reading.score.outcome == "correct"
    score = msgspec.structs.replace(
        reading.score, value=0.0 if earned else 1.0, outcome="incorrect" if earned else "correct"
    )
    return {"readings": (msgspec.structs.replace(reading, score=score), *other_readings)}


def test_stored_scores_are_taken_where_they_are_trusted(tmp_path: Path) -> None:
    config, run = stored(tmp_path)
    honest = recalled_jobs(config, run, trusted=True)[0][0].tallies[0].total
    rewrite(run, **wrongly_correct(run))
    assert abs(recalled_jobs(config, run, trusted=True)[0][0].tallies[0].total - honest) == 1
    assert recalled_jobs(config, run, trusted=False)[0][0].tallies[0].total == honest


def test_a_record_of_another_target_is_read_anew(tmp_path: Path) -> None:
    config, run = stored(tmp_path)
    honest = recalled_jobs(config, run, trusted=True)[0][0].tallies[0].total
    rewrite(run, target="Z", **wrongly_correct(run))
    jobs, recalled = recalled_jobs(config, run, trusted=True)
    assert jobs[0].tallies[0].total == honest
    assert recalled.count == jobs[0].units


def test_every_repeat_is_found_again(tmp_path: Path) -> None:
    config, run = stored(tmp_path, repeats=3)
    jobs, recalled = recalled_jobs(config, run, trusted=True)
    assert recalled.count == jobs[0].units == 3 * len(jobs[0].exam.samples)


def test_settings_that_grade_otherwise_leave_no_stored_score_standing(tmp_path: Path) -> None:
    """The same prompts and readers; only what is made of an undecided answer is another."""
    (tmp_path / "bixbench").mkdir()
    write(tmp_path / "bixbench" / "BixBench_v1.5.jsonl", FLAT)

    def outcomes(**settings: Any) -> tuple[int, int, int]:
        args = {"answer_mode": "open", "subset_list": ["v1.5"], **settings}
        results = run_task(
            {
                "model": "scripted",
                "datasets": ["bixbench"],
                "dataset_args": {"bixbench": args},
                "data_dir": str(tmp_path),
                "work_dir": str(tmp_path),
                "run_id": "r",
            }
        )
        outcome_counts = results["benchmarks"][0]["outcomes"]
        return outcome_counts["correct"], outcome_counts["incorrect"], outcome_counts["ungraded"]

    undecided = outcomes(no_judge="ungraded")
    exact = outcomes()
    assert undecided[2] > 0
    assert exact[2] == 0
    assert outcomes(no_judge="ungraded") == undecided
    assert len((tmp_path / "r" / "records.jsonl").read_text().splitlines()) == len(FLAT)


def test_copied_replies_keep_their_origin_and_are_never_charged(tmp_path: Path) -> None:
    def units(run: str, size: int, **extra_settings: Any) -> int:
        settings = {"model": "m", "api_url": endpoint.url, "datasets": ["demo"]}
        args = {"dataset_args": {"demo": {"size": size}}, "work_dir": str(tmp_path)}
        entry = run_task({**settings, **args, "run_id": run, **extra_settings})["benchmarks"][0]
        return sum(entry["outcomes"].values())

    with FaultyEndpoint() as endpoint:
        assert units("first", 2) == 12
        assert units("copy", 2, use_cache="first") == 12
        assert units("copy-of-it", 2, use_cache="copy") == 12
        budget = {"requests": 6}
        for run in ("copy", "copy-of-it"):
            assert units(run, 3, budget=budget) == 18
    for run, origins in {"first": [""] * 12, "copy": ["first"] * 12 + [""] * 6}.items():
        assert [record.origin for record in Records(tmp_path / run)] == origins
    assert next(iter(Records(tmp_path / "copy-of-it"))).origin == "first"
