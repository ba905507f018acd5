"""Ctrl-C: a model in this process is not waited for, and nothing is lost or asked for twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from keju.models.scripted import ScriptedModel
from keju.types import Reply, Request
from tests.cli.conftest import Keju

EVAL = (
    "eval", "-m", "scripted", "--datasets", "demo", "--limit", "1", "--eval-batch-size", "1",
    "--no-report", "--run-id", "r",
)  # fmt: skip
QUESTIONS, INTERRUPTED_AT, LONG = 6, 4, 20.0


@pytest.mark.parametrize("quits", [True, False])
def test_the_first_interrupt_breaks_off_the_reply_of_a_local_model(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, quits: bool
) -> None:
    """One at an endpoint is waited for, and kept; its second attempt would be paid for."""
    asked_hashes: list[str] = []
    usual = ScriptedModel.ask

    async def ask(self: ScriptedModel, request: Request, *, timeout: float) -> Reply:
        asked_hashes.append(request.hash)
        if len(asked_hashes) == INTERRUPTED_AT:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(LONG if quits else 0.05)
        return await usual(self, request, timeout=timeout)

    monkeypatch.setattr(ScriptedModel, "ask", ask)
    monkeypatch.setattr(ScriptedModel, "quits", quits)
    stopped = keju(*EVAL)
    assert stopped.code == 130
    assert ("1 reply in progress is broken off" in stopped.err) is quits
    assert ("press Ctrl-C again to stop at once" in stopped.err) is not quits
    journal = Path("runs/r/records.jsonl")
    kept_lines = INTERRUPTED_AT - 1 if quits else INTERRUPTED_AT
    assert len(journal.read_text().splitlines()) == kept_lines
    resumed = keju(*EVAL, "--resume")
    assert resumed.code == 0, resumed.err
    ids = [json.loads(line)["id"] for line in journal.read_text().splitlines()]
    assert len(ids) == len(set(ids)) == QUESTIONS
    assert (len(asked_hashes), len(set(asked_hashes))) == (QUESTIONS + quits, QUESTIONS)


def test_an_interrupt_before_the_first_answer_warns_of_no_numbers(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(self: ScriptedModel, request: Request, *, timeout: float) -> Reply:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(LONG)
        return Reply()

    monkeypatch.setattr(ScriptedModel, "ask", ask)
    monkeypatch.setattr(ScriptedModel, "quits", True)
    stopped = keju(*EVAL, "--json")
    assert stopped.code == 130
    entry = stopped.json["benchmarks"][0]
    assert (entry["n"], stopped.json["complete"]) == (0, False)
    assert "replies_missing" not in {notice["code"] for notice in entry["notices"]}
    message = (
        "keju: interrupted; resume with:\n  keju eval --config runs/r/manifest.json --resume\n"
    )
    assert stopped.err.endswith(message)
    assert "warning" not in stopped.err
