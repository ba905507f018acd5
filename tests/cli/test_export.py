"""``keju export``: tables that other programs read, and submissions that a site takes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from keju.files import natural_key
from keju.models.scripted import ScriptedModel
from keju.runs.journal import Journal, Records
from keju.runs.run import JudgedReadings, write_grades
from keju.types import Answer, Fault, Reading, Reply, Request, Score
from tests.cli.conftest import Keju

pytestmark = pytest.mark.slow

SIZE = 12


def hard(request: Request) -> Reply:
    """A reply with everything that is hard to put into a cell."""
    letter = "A" if "Question" in request.prompt.text else "B"
    return Reply(
        text=f'She said "So,\r\nwhat?", 科举\nSo the answer is ({letter}).',
        reasoning="hm, let me see",
        finish="stop",
        seconds=0.25,
    )


@pytest.fixture
def run(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=hard))
    ran = keju(
        "eval", "-m", "scripted", "--datasets", "demo", "-q", "--run-id", "r", "--repeats", "2",
        "--dataset-args", f'{{"demo": {{"size": {SIZE}, "subset_list": ["word_sorting"]}}}}',
    )  # fmt: skip
    assert ran.code == 0
    return "r"


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_has_a_row_for_each_sample_and_epoch_in_the_exams_order(keju: Keju, run: str) -> None:
    ran = keju("export", run)
    assert (ran.code, ran.err) == (0, "")
    rows = rows_of(ran.out)
    assert len(rows) == 2 * SIZE
    assert [(row["index"], row["epoch"]) for row in rows] == [
        (str(index), str(epoch)) for index in range(SIZE) for epoch in range(2)
    ]
    first_row = rows[0]
    assert first_row["run"] == run
    assert first_row["benchmark"] == "demo"
    assert first_row["subset"] == "word_sorting"
    assert first_row["id"] == "demo_word_sorting_0"
    assert first_row["answer"] == "A"
    assert first_row["tier"] == "strict"
    assert first_row["outcome"] in ("correct", "incorrect")
    assert first_row["score"] == ("1.0" if first_row["target"] == "A" else "0.0")
    assert first_row["finish"] == "stop"
    assert first_row["seconds"] == "0.25"
    assert first_row["attempts"] == "1"
    assert first_row["error"] == ""


def test_texts_are_left_out_unless_asked_for(keju: Keju, run: str) -> None:
    plain = keju("export", run).out
    assert "科举" not in plain
    assert "Question" not in plain
    rows = rows_of(keju("export", run, "--full-text").out)
    assert rows[0]["reply"] == 'She said "So,\r\nwhat?", 科举\nSo the answer is (A).'
    assert rows[0]["reasoning"] == "hm, let me see"
    assert json.loads(rows[0]["choices"])
    assert rows[0]["question"]


def test_csv_is_rfc_4180(keju: Keju, run: str, tmp_path: Path) -> None:
    assert keju("export", run, "--full-text", "-o", "r.csv").code == 0
    raw = (tmp_path / "r.csv").read_bytes()
    assert raw.endswith(b"\r\n")
    assert not raw.startswith(b"\xef\xbb\xbf")
    assert b'""So,\r\nwhat?""' in raw
    assert len(rows_of(raw.decode())) == 2 * SIZE
    assert not list(tmp_path.glob("*.partial"))


def test_jsonl_and_parquet_hold_the_same_rows(keju: Keju, run: str, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    lines = keju("export", run, "--format", "jsonl", "--full-text").out.splitlines()
    ran = keju("export", run, "--format", "parquet", "-o", "it's.parquet", "--full-text", "--json")
    assert ran.json["rows"] == 2 * SIZE
    with duckdb.connect() as database:
        table = database.execute("SELECT * FROM read_parquet('it''s.parquet')")
        names = [column[0] for column in table.description]
        stored = [dict(zip(names, row, strict=True)) for row in table.fetchall()]
    assert stored == [json.loads(line) for line in lines]
    assert names == ran.json["columns"]


def test_ids_sort_by_number_where_the_exam_cannot_be_loaded(
    keju: Keju, run: str, tmp_path: Path
) -> None:
    manifest = tmp_path / "runs" / run / "manifest.json"
    facts = json.loads(manifest.read_text())
    facts["config"]["datasets"], facts["config"]["dataset_args"] = ["bbh"], {}
    facts["config"]["data_dir"] = "nowhere"
    manifest.write_text(json.dumps(facts))
    ran = keju("export", run)
    assert ran.code == 0
    assert "goes without subsets and questions" in ran.err
    rows = rows_of(ran.out)
    assert [row["id"] for row in rows[::2]] == [f"demo_word_sorting_{i}" for i in range(SIZE)]
    assert {row["subset"] for row in rows} == {""}


def test_natural_order() -> None:
    names = ["q10", "q2", "a1b10", "a1b9", "q"]
    assert sorted(names, key=natural_key) == ["a1b9", "a1b10", "q", "q2", "q10"]


def test_an_error_never_replaces_a_reply_and_has_no_score(
    keju: Keju, run: str, tmp_path: Path
) -> None:
    folder = tmp_path / "runs" / run
    records = list(Records(folder))
    failed = Reply(error=Fault("server", "it broke", 500))
    error = (Reading("marker", Answer(reason="server"), Score(0.0, "error")),)
    (folder / "records.jsonl").unlink()
    with Journal(folder) as journal:
        journal.append(records[:-1])
        journal.append([_changed(records[0], failed, error), _changed(records[-1], failed, error)])
    rows = {(row["id"], int(row["epoch"])): row for row in rows_of(keju("export", run).out)}
    assert len(rows) == len(records)
    assert rows[records[0].id, records[0].epoch]["error"] == ""
    error_row = rows[records[-1].id, records[-1].epoch]
    assert (error_row["outcome"], error_row["score"], error_row["error"]) == ("error", "", "server")
    assert error_row["error_message"] == "it broke"


def _changed(record: Any, reply: Reply, readings: tuple[Reading, ...]) -> Any:
    import msgspec

    return msgspec.structs.replace(record, reply=reply, readings=readings)


def test_judged_scores_are_the_ones_exported(keju: Keju, run: str, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / run
    record = next(iter(Records(folder)))
    judged = Reading("marker", Answer("free text"), Score(0.5, "correct", "judge"))
    write_grades(
        folder, [JudgedReadings(record.bench, record.id, record.hash, (judged,), record.epoch)]
    )
    rows = {(row["id"], int(row["epoch"])): row for row in rows_of(keju("export", run).out)}
    row = rows[record.id, record.epoch]
    assert (row["answer"], row["score"], row["grader"]) == ("free text", "0.5", "judge")
    assert sum(row["grader"] == "judge" for row in rows.values()) == 1


# --- submissions -----------------------------------------------------------------------------

TEST_ROWS = 12_342


@pytest.fixture
def sit_ceval(keju: Keju, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sit C-Eval's test split: every reply is B, but one subject's are not understood."""

    def answer(request: Request) -> str:
        return "我不知道" if "注册会计师" in request.prompt.text[:200] else "答案：B"

    def evaluate(*flags: str) -> None:
        monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=answer))
        ran = keju(
            "eval", "-m", "scripted", "--datasets", "ceval", "-q", "--no-report", "--run-id", "c",
            "--dataset-args", '{"ceval": {"split": "test", "few_shot_num": 0}}',
            "--reader", "robust", "--data-dir", str(data_dir), *flags,
        )  # fmt: skip
        assert ran.code == 0, ran.err

    return evaluate


def test_a_submission_is_the_official_json(keju: Keju, sit_ceval: Any, tmp_path: Path) -> None:
    sit_ceval()
    ran = keju("export", "c", "--format", "submission", "-o", "s.json", "--json")
    assert ran.code == 0
    document = json.loads((tmp_path / "s.json").read_text("utf-8"))
    assert len(document) == 52
    assert sum(map(len, document.values())) == TEST_ROWS == ran.json["rows"]
    for rows in document.values():
        assert list(rows) == [str(number) for number in range(len(rows))]
    letters = {letter for rows in document.values() for letter in rows.values()}
    assert letters <= {"B", ""}
    missing = ran.json["missing"]
    missing_lines = [line.strip() for line in ran.err.splitlines() if line.startswith("  ")]
    assert missing
    assert missing_lines == missing
    assert sum(not letter for rows in document.values() for letter in rows.values()) == len(missing)


def test_a_filled_letter_is_asked_for_and_recorded(
    keju: Keju, sit_ceval: Any, tmp_path: Path
) -> None:
    sit_ceval("--limit", "2")
    refusal = keju("export", "c", "--format", "submission")
    assert refusal.code == 2
    assert "a submission needs all 52 subjects" in refusal.err
    ran = keju("export", "c", "--format", "submission", "--partial", "--fill", "C")
    assert ran.code == 0
    letters = [letter for rows in ran.json.values() for letter in rows.values()]
    assert set(letters) <= {"B", "C"}
    (line,) = (tmp_path / "runs" / "c" / "exports.jsonl").read_text().splitlines()
    facts = json.loads(line)
    assert (facts["fill"], facts["partial"]) == ("C", True)
    assert len(facts["missing"]) == letters.count("C")
    assert keju("export", "c", "--format", "submission", "--fill", "E").code == 2


def test_other_exams_have_no_submission(keju: Keju, run: str) -> None:
    ran = keju("export", run, "--format", "submission")
    assert (ran.code, ran.out) == (2, "")
    assert "only ceval has a submission format; this run has demo" in ran.err


@pytest.mark.parametrize("sign", [*"=+-@\t\r\n", "\uff1d", "\uff20"])
def test_a_cell_of_csv_is_never_a_formula(
    sign: str, keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'{sign}HYPERLINK("http://127.0.0.1","x")'
    script = ScriptedModel(script=lambda _: Reply(text=text, finish="stop"))
    monkeypatch.setattr("keju.task.make_model", lambda _: script)
    run = ("eval", "-m", "scripted", "--datasets", "demo", "-q", "--run-id", "r", "--limit", "1")
    assert keju(*run).code == 0
    replies = {row["reply"] for row in rows_of(keju("export", "r", "--full-text").out)}
    assert replies == {f"'{text}"}
    lines = keju("export", "r", "--full-text", "--format", "jsonl").out.splitlines()
    assert {json.loads(line)["reply"] for line in lines} == {text}


@pytest.mark.parametrize("number", ["-5", "+3", "-.5", "-1e-3", "-12,000.5", "+7%"])
def test_a_number_of_csv_stays_a_number(
    number: str, keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = ScriptedModel(script=lambda _: Reply(text=number, finish="stop"))
    monkeypatch.setattr("keju.task.make_model", lambda _: script)
    run = ("eval", "-m", "scripted", "--datasets", "demo", "-q", "--run-id", "r", "--limit", "1")
    assert keju(*run).code == 0
    replies = {row["reply"] for row in rows_of(keju("export", "r", "--full-text").out)}
    assert replies == {number}


def test_a_form_that_no_run_has_is_refused_with_those_that_there_are(keju: Keju) -> None:
    for form, hint in {"cvs": "did you mean 'csv'", "bbh-csv": "'ceval-csv'", "": "csv"}.items():
        refusal = keju("export", "r", f"--format={form}")
        assert refusal.code == 2
        assert f"'{form}' is not one of" in refusal.err
        assert hint in refusal.err
