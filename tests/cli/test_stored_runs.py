"""Commands on stored runs: the same replies count for all, and what cannot be read is shown."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import threading
from pathlib import Path

import pytest

from keju.models.scripted import ScriptedModel
from keju.runs.journal import FILE, Records
from keju.runs.run import Run
from keju.types import Request
from tests.cli.conftest import Keju

pytestmark = pytest.mark.slow


def at_temperature(request: Request) -> str:
    return f"So the answer is (A). EndpointRequest at {request.sampling.temperature}."


def test_all_commands_take_the_same_replies(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 0.1 let a run go on at another temperature: its own replies are still in force."""
    monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=at_temperature))
    base = ("eval", "-m", "scripted", "--datasets", "demo", "-q", "--limit", "2")
    warm = ("--run-id", "warm", "--generation-config", "temperature=0.7")
    cool = ("--run-id", "r", "--generation-config", "temperature=0")
    for settings in (warm, cool):
        ran = keju(*base, *settings)
        assert ran.code == 0, ran.err
    folder = tmp_path / "runs" / "r"
    with (folder / FILE).open("ab") as journal:
        journal.write((tmp_path / "runs" / "warm" / FILE).read_bytes())
    assert keju(*base, *cool).code == 0
    assert len(list(Records(folder))) == 24
    page = (folder / "report.html").read_text()
    assert "EndpointRequest at 0.0" in page
    assert "EndpointRequest at 0.7" not in page
    assert keju("report", "r", "-o", "again.html").code == 0
    assert "EndpointRequest at 0.7" not in (tmp_path / "again.html").read_text()
    rows = list(csv.DictReader(io.StringIO(keju("export", "r", "--full-text").out)))
    assert len(rows) == 12
    assert all("EndpointRequest at 0.0" in row["reply"] for row in rows)
    scored = keju("score", "r", "--json").json["benchmarks"][0]
    assert scored["metrics"] == Run(folder).results()["benchmarks"][0]["metrics"]


def test_unreadable_lines_are_shown_by_every_command(keju: Keju, tmp_path: Path) -> None:
    base = ("-m", "scripted", "--datasets", "demo", "--run-id", "r", "--limit", "2")
    assert keju("eval", *base, "-q").code == 0
    journal = tmp_path / "runs" / "r" / FILE
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[0] = lines[0].replace(b'"reply":{"text":"', b'"reply":{"text":"\xff')
    lines[1] = b"not JSON\n"
    journal.write_bytes(b"".join(lines))
    sentence = "2 lines of the journal cannot be read"
    scored = keju("score", "r", "--json")
    assert scored.code == 0
    (entry,) = scored.json["benchmarks"]
    assert any(sentence in warning for warning in entry["warnings"])
    assert {"code": "damaged_lines", "values": {"lines": 2}} in entry["notices"]
    assert entry["n"] == 10
    for command in (("export", "r", "-o", "r.csv"), ("report", "r", "-o", "r.html")):
        ran = keju(*command)
        assert (ran.code, ran.err.count(sentence)) == (0, 1)
    judged = keju("judge", "r", "--model", "scripted", "--json")
    assert judged.code in (0, 4), judged.err
    assert sentence in judged.err
    resumed = keju("eval", *base, "--resume", "--json")
    assert resumed.code == 0
    assert "2 journal lines were unreadable and are asked again" in resumed.err
    (entry,) = resumed.json["benchmarks"]
    assert entry["n"] == 12
    assert not any(sentence in warning for warning in entry["warnings"]), "nothing is missing"


def test_predictions_are_scored_in_any_order_and_from_a_pipe(keju: Keju, tmp_path: Path) -> None:
    rows = [{"subset": "word_sorting", "index": i, "output": "(A)"} for i in (5, 0, 3)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "p.jsonl").write_text(text)
    scored = keju("score", "--datasets", "demo", "--predictions", "p.jsonl", "--json")
    assert scored.code == 0, scored.err
    assert scored.json["benchmarks"][0]["n"] == 3
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(text,))
    writer.start()
    piped = keju("score", "--datasets", "demo", "--predictions", "pipe", "--json")
    writer.join()
    assert piped.json["benchmarks"] == scored.json["benchmarks"]


@pytest.mark.parametrize(
    "command",
    [
        ("score", "r", "--json"),
        ("score", "r", "--reader", "marker", "--json"),
        ("export", "r"),
        ("export", "r", "--format", "jsonl", "--full-text"),
        ("report", "r"),
        ("list", "runs"),
        ("eval", "-c", "runs/r/manifest.json", "--resume", "-q"),
        ("eval", "-m", "replay:r", "--datasets", "demo", "--limit", "1", "-q"),
        ("eval", "-m", "scripted", "--datasets", "demo", "--use-cache", "r", "--limit", "1", "-q"),
    ],
)
@pytest.mark.parametrize("damage", [b"\xff", b"\0", b"\xed\xa0\x80"])
def test_a_byte_that_is_no_text_in_a_journal_is_no_internal_error(
    command: tuple[str, ...], damage: bytes, keju: Keju, tmp_path: Path
) -> None:
    run = ("eval", "-m", "scripted", "--datasets", "demo", "-q", "--run-id", "r", "--limit", "1")
    assert keju(*run).code == 0
    journal = tmp_path / "runs" / "r" / "records.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"text":"', b'"text":"' + damage, 1))
    ran = keju(*command)
    assert ran.code in (0, 4, 5)  # 5: a replay has no reply to this request
    assert "internal error" not in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_run_without_replies_is_not_warned_of_numbers_that_are_of_a_part(
    keju: Keju, language: str
) -> None:
    for name, kept_lines in (("none", 0), ("some", 4)):
        ran = keju("eval", "-m", "scripted", "--datasets", "demo", "--run-id", name, "-q")
        assert ran.code == 0, ran.err
        records = Path("runs", name, "records.jsonl")
        records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:kept_lines]))
        audited = keju("audit", name, "--json").json["exams"][0]
        assert [notice["code"] for notice in audited["notices"]].count("replies_missing") == bool(
            kept_lines
        )
        outputs = {}
        for command in (("audit", name), ("gate", name, "--at-least", "0.5")):
            ran = keju("--language", language, *command)
            outputs[command[0]] = ran.out + ran.err
        no_reply_words = {"en": ("warning: ", "no answers yet"), "zh": ("警告：", "尚无回答")}[
            language
        ]
        assert (no_reply_words[1] in outputs["audit"]) == (not kept_lines)
        if not kept_lines:
            assert no_reply_words[0] not in outputs["audit"]
            assert not re.search(r"\b0 (of \d+ repl|条)", outputs["gate"])
            assert "has no replies yet" in outputs["gate"] or "还没有回复" in outputs["gate"]
    assert keju("export", "none", "-o", "none.csv").code == 2
    assert "replies are there" in keju("export", "some", "-o", "some.csv").err
