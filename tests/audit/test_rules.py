"""What relaxed rules and several attempts are worth: 50 answers that were written for the tests.

The runs of `examples/referee` hold three attempts at 50 invented questions. `ACCEPTED` is the count
by hand: which of the answers of the first run each relaxation accepts, by the number of the
question. The strict rules accept the last 30 questions of the first run and none of the first 20.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.bixbench.data import VERIFIED_IDS
from tests.cli.conftest import Keju, keju
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

__all__ = ["keju"]

REFEREE = Path(__file__).parents[2] / "examples" / "referee"
DATA = ("--data-dir", str(REFEREE / "data"))
ACCEPTED: dict[str, set[int]] = {
    "rounding": {3, 16, 18},  # 10.64% is 10.6%, 3.54% is 3.5%, 0.2628 is 0.26
    "percent": {5, 12},  # 0.35 for 35%, 25% for (0.2,0.3)
    "hundredfold": {4},  # 10.0 for 0.1
    "one_percent": {1, 3},  # 2101 for 2118, 10.64% for 10.6%
    "last_digit": {2, 3, 16, 18},  # 0 for 2; others by one unit of the last digit
    "three_percent": {16, 17, 18},  # 3.54% for 3.5%, 2.61 for 2.68, 0.2628 for 0.26
    "last_number": {9},  # We found 412 of them
    "any_number": {10, 15},  # 30/41 (≈ 0.7317, or 73.2%), between 4 and 5.5
    "key_in_answer": {6, 9},  # The gene is CDKN1A, We found 412 of them
    "part_of_key": {7, 8},  # 5 for 4,550, IL6 for IL-6
    "nearest_option": {1, 13, 16, 20},  # nearer to the key than to every wrong option
}
NEVER = {11, 14, 19}
"""Questions of the first run that no relaxation accepts."""
LATER = {6, 11, 14, 19}
"""Questions that the strict rules accept in the second or the third run."""


def audit_rules(keju: Keju, *flags: str) -> dict[str, Any]:
    ran = keju("audit", "one", *DATA, "--work-dir", str(REFEREE / "runs"), *flags, "--json")
    assert ran.code == 0, ran.err
    rules: dict[str, Any] = ran.json["exams"][0]["rules"]
    return rules


def test_the_table_equals_a_count_by_hand(keju: Keju) -> None:
    rules = audit_rules(keju)
    rows = {row["rule"]: row for row in rules["rows"]}
    assert (rules["answers"], rules["questions"], rules["attempts"]) == (50, 50, 1)
    assert list(rows) == ["strict", *ACCEPTED, "all"]
    assert (rows["strict"]["right"], rows["strict"]["accuracy"]) == (30, 0.6)
    for name, numbers in ACCEPTED.items():
        assert (name, rows[name]["added"]) == (name, len(numbers))
        assert rows[name]["points"] == pytest.approx(2.0 * len(numbers))
    all_accepted = set().union(*ACCEPTED.values())
    assert all_accepted == set(range(1, 21)) - NEVER
    assert (rows["all"]["right"], rows["all"]["points"]) == (47, pytest.approx(34.0))


def test_right_in_any_run_is_counted_next_to_one_run(keju: Keju) -> None:
    others = [flag for name in ("two", "three") for flag in ("--beside", f"{REFEREE}/runs/{name}")]
    rules = audit_rules(keju, *others)
    rows = {row["rule"]: row for row in rules["rows"]}
    assert rules["attempts"] == 3
    assert (rows["strict"]["right"], rows["strict"]["right_in_any"]) == (30, 34)
    for name, numbers in ACCEPTED.items():
        assert (name, rows[name]["right_in_any"]) == (name, 30 + len(numbers | LATER))
    assert (rows["all"]["right"], rows["all"]["right_in_any"]) == (47, 50)


def test_the_reader_of_tolerant_rules_takes_named_switches(keju: Keju, tmp_path: Path) -> None:
    records = (REFEREE / "runs" / "one" / "records.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line.split("\t")[0]) for line in records]
    answers = tmp_path / "answers.jsonl"
    lines = (
        {"question_id": row["id"], "output": row["reply"]["text"]} for row in rows if "id" in row
    )
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    for switches, right in ((["one_percent"], 32), ([], 30), ("all", 47)):
        args = {"answer_mode": "open", "data_version": "verified-50", "relaxations": switches}
        ran = keju(
            *("score", "--datasets", "bixbench", "--predictions", str(answers), *DATA),
            *("--reader", "strict,tolerant", "--dataset-args", json.dumps({"bixbench": args})),
            "--json",
        )
        assert ran.code == 0, ran.err
        counts = {e["reader"]: e["outcomes"]["correct"] for e in ran.json["benchmarks"]}
        assert counts == {"strict": 30, "tolerant": right}


def test_repeats_of_one_run_are_attempts(keju: Keju, tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers="CDKN1A")) as endpoint:
        args = {"bixbench": {"answer_mode": "open", "data_version": "verified-50"}}
        common = ("--work-dir", str(tmp_path), *DATA)
        ran = keju(
            *("eval", "--model", "m", "--api-url", endpoint.url, "--datasets", "bixbench"),
            *("--dataset-args", json.dumps(args), "--repeats", "2", "--run-id", "r", *common),
        )
    assert ran.code == 0, ran.err
    rules = keju("audit", "r", *common, "--json").json["exams"][0]["rules"]
    assert (rules["attempts"], rules["answers"], rules["questions"]) == (2, 100, 50)
    assert (rules["rows"][0]["right"], rules["rows"][0]["right_in_any"]) == (2, 1)
    assert rules["rows"][0]["accuracy"] == pytest.approx(1 / 50)


def test_both_languages_print_the_table(keju: Keju) -> None:
    flags = (*DATA, "--work-dir", str(REFEREE / "runs"), "--verbose")
    english = keju("audit", "one", *flags).out
    assert "one_percent          32 (64" in english
    assert "within 1 % of the key" in english
    assert "与标准答案相差不超过 1 %" in keju("audit", "one", *flags, "--language", "zh").out


def test_the_questions_have_published_ids() -> None:
    lines = (REFEREE / "data" / "bixbench" / "BixBench-Verified-50.jsonl").read_text("utf-8")
    assert [json.loads(line)["question_id"] for line in lines.splitlines()] == list(VERIFIED_IDS)
