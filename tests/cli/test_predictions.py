"""``keju score --predictions``: every setting counts or is refused, every row is what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju, Ran

DATA = Path(__file__).parent.parent / "runs01" / "data"
SNARKS = {"subset": "snarks", "index": 0}
LAW = {"subject": "law", "output": "A"}
FIRST = "So the answer is (A). Or (B)."


def score(keju: Keju, tmp_path: Path, name: str, rows: Any, *flags: str) -> Ran:
    """Score rows, or the bytes of a file, as predictions of an exam."""
    lines = rows if isinstance(rows, bytes) else "\n".join(map(json.dumps, rows)).encode()
    (tmp_path / "p.jsonl").write_bytes(lines)
    words = ("--datasets", name, "--predictions", "p.jsonl", "--data-dir", str(DATA), "--json")
    return keju("score", *words, *flags)


def outcome(ran: Ran) -> str:
    (entry,) = ran.json["benchmarks"]
    (name,) = (name for name, count in entry["outcomes"].items() if count)
    return f"{entry['reader']} {name}"


def test_filters_and_reader_of_the_settings_count(keju: Keju, tmp_path: Path) -> None:
    rows = [SNARKS | {"output": "So the answer is (A). ### So the answer is (E)."}]
    for reader in ("paper", "robust"):
        settings: dict[str, Any] = {"reader": [reader], "filters": {"regex": r"(.*?)###"}}
        words = ("--dataset-args", json.dumps({"bbh": settings}))
        assert outcome(score(keju, tmp_path, "bbh", rows, *words)) == f"{reader} incorrect"
        settings = {"reader": [reader], "filters": {"remove_until": "###"}}
        words = ("--dataset-args", json.dumps({"bbh": settings}))
        assert outcome(score(keju, tmp_path, "bbh", rows, *words)) == f"{reader} correct"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reader": ["zzz"]}, "bbh has no reader 'zzz'"),
        ({"reader": []}, "reader: "),
        ({"system_prompt": "Be brief."}, "system_prompt refused: it shapes what is asked"),
        ({"prompt_template": "{question}"}, "prompt_template refused: it shapes what is asked"),
        ({"few_shot_num": 0}, "few_shot_num refused: it shapes what is asked"),
        ({"shuffle": True}, "shuffle refused: it shapes what is asked"),
        ({"filters": {"regex": ""}}, "filters.regex: "),
        ({"filters": {"remove_until": ""}}, "filters.remove_until: "),
        ({"filters": {"regexp": "x"}}, "did you mean 'regex'?"),
    ],
)
def test_a_setting_without_effect_on_outputs_is_refused(
    settings: dict[str, Any], message: str, keju: Keju, tmp_path: Path
) -> None:
    words = ("--dataset-args", json.dumps({"bbh": settings}))
    ran = score(keju, tmp_path, "bbh", [SNARKS | {"output": FIRST}], *words)
    assert message in ran.err
    assert (ran.code, ran.json["error"]["exit_code"], len(ran.err.splitlines())) == (2, 2, 1)


def test_readers_that_are_given_twice_are_refused(keju: Keju, tmp_path: Path) -> None:
    words = ("--dataset-args", '{"bbh": {"reader": "paper"}}', "--reader", "robust")
    ran = score(keju, tmp_path, "bbh", [SNARKS | {"output": FIRST}], *words)
    assert "readers are given twice" in ran.err
    assert ran.code == 2


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("ceval", LAW | {"id": 1.9}, "line 1: 'id' should be a whole number"),
        ("ceval", LAW | {"id": True}, "line 1: 'id' should be a whole number"),
        ("ceval", LAW | {"id": None}, "line 1: 'id' should be a whole number"),
        ("ceval", LAW | {"id": [1]}, "line 1: 'id' should be a whole number"),
        ("ceval", LAW | {"id": {}}, "line 1: 'id' should be a whole number"),
        ("ceval", LAW | {"id": "one"}, "line 1: 'id' should be a whole number"),
        ("ceval", LAW | {"index": 0.0}, "line 1: 'index' should be a whole number"),
        ("ceval", LAW | {"subject": [], "id": 0}, "line 1: ceval has no question"),
        (
            "ceval",
            LAW | {"id": "ceval_logic_val_0"},
            "line 1: the keys contradict each other: question 'ceval_logic_val_0' has another "
            "subject than 'law'",
        ),
        (
            "bbh",
            {"id": "bbh_snarks_0", "subset": "date_understanding", "index": 0, "output": "x"},
            "has another subset than 'date_understanding'",
        ),
        (
            "bbh",
            {"id": "bbh_snarks_0", "subset": "snarks", "index": 1, "output": "x"},
            "has another index than '1'",
        ),
        ("bbh", SNARKS | {"output": "x", "target": ["(A)"]}, "line 1: 'target' should be a text"),
        ("bbh", SNARKS | {"output": "x", "answer": True}, "line 1: 'answer' should be a text"),
        ("bbh", SNARKS | {"output": "x", "finish_reason": 5}, "'finish_reason' should be a text"),
        ("bbh", SNARKS | {"output": ["x"]}, "line 1: the row needs an 'output'"),
    ],
)
def test_a_row_that_is_not_what_it_says_is_refused(
    name: str, row: dict[str, Any], message: str, keju: Keju, tmp_path: Path
) -> None:
    words = ("--dataset-args", '{"ceval": {"subset_list": ["law", "logic"]}}')
    ran = score(keju, tmp_path, name, [row], *(words if name == "ceval" else ()))
    assert message in ran.err
    assert (ran.code, ran.json["error"]["exit_code"], len(ran.err.splitlines())) == (2, 2, 1)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b'{"subset":"snarks","index":0,"output":"a","output":"b"}', "'output' is given twice"),
        (b'{"subset":"snarks","index":0,"output":"\xff"}', "line 1: not UTF-8 at byte"),
        (b'{"subset":"snarks","index":0,"output":' + b"[" * 99999, "line 1: nested too deep"),
        (b'\n{"subset":"snarks","index":' + b"1" * 5000 + b"}", "line 2: a number has too many"),
        (b"[1]", "line 1: no JSON object"),
        ('{"subset":"snarks"}'.encode("utf-16"), "line 1: not UTF-8 at byte 1"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(
    lines: bytes, message: str, keju: Keju, tmp_path: Path
) -> None:
    ran = score(keju, tmp_path, "bbh", lines)
    assert message in ran.err
    assert (ran.code, ran.json["error"]["exit_code"], len(ran.err.splitlines())) == (2, 2, 1)


def test_a_mark_at_the_beginning_of_predictions_is_passed_over(keju: Keju, tmp_path: Path) -> None:
    line = json.dumps(SNARKS | {"output": FIRST}).encode()
    assert score(keju, tmp_path, "bbh", b"\xef\xbb\xbf" + line).json["benchmarks"][0]["n"] == 1
