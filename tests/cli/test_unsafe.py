"""Code without a sandbox: only where it was asked for, and every record and result says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keju.runs.journal import Records
from tests.cli.conftest import Keju
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan
from tests.support.tools import calling, results_in

pytestmark = pytest.mark.slow

EXAM = {"demo": {"size": 1, "subset_list": ["boolean_expressions"]}}


def counting(request: EndpointRequest) -> Any:
    if not results_in(request) and "tools" in request.body:
        return calling(("python", {"code": "print(6 * 7)"}))
    return "So the answer is True."


def words(endpoint: FaultyEndpoint, *flags: str) -> list[str]:
    return [
        *("eval", "--model", "m", "--api-url", endpoint.url, "--datasets", "demo", "--run-id", "r"),
        *("--dataset-args", json.dumps(EXAM), "--tools", "python", "--json", "--quiet", *flags),
    ]


def test_every_record_and_result_says_that_there_was_no_sandbox(keju: Keju, tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=counting)) as endpoint:
        ran = keju(*words(endpoint, "--unsafe-no-sandbox"))
    assert ran.code == 0, ran.err
    records = [record for record in Records(tmp_path / "runs" / "r") if record.arm == "python"]
    (kernel,) = [record.reply.episode.facts["kernel"] for record in records if record.reply.episode]
    assert (kernel["unsafe"], kernel["backend"], kernel["cells"]) == (True, "none", 1)
    notice_codes = {
        e["arm"]: [notice["code"] for notice in e["notices"]] for e in ran.json["benchmarks"]
    }
    assert "no_sandbox" in notice_codes["python"]
    assert "no_sandbox" not in notice_codes["baseline"]
    assert "--unsafe-no-sandbox" in (tmp_path / "runs" / "r" / "report.html").read_text("utf-8")
    rescored = keju("score", "r", "--json").json["benchmarks"]
    assert ["no_sandbox" in [n["code"] for n in e["notices"]] for e in rescored] == [
        e["arm"] == "python" for e in rescored
    ]


@pytest.mark.parametrize("setting", ["backend=none", "backend=bwrap,unsafe=true"])
def test_no_sandbox_is_never_a_side_effect(setting: str, keju: Keju) -> None:
    with FaultyEndpoint(Plan(answers=counting)) as endpoint:
        ran = keju(*words(endpoint, "--sandbox", setting))
    assert ran.code == 2
    assert "--unsafe-no-sandbox" in ran.err
    assert endpoint.stats.attempts == {}


def test_without_a_backend_that_works_nothing_is_asked(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'no user namespaces' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with FaultyEndpoint(Plan(answers=counting)) as endpoint:
        ran = keju(*words(endpoint))
    assert ran.code == 2
    assert "no user namespaces" in ran.err
    assert "mend that, name another sandbox.backend" in ran.err
    assert "install bubblewrap" not in ran.err  # it is there
    assert endpoint.stats.attempts == {}


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--sandbox", "memory=1"], "memory: must be at least 64 MiB"),
        (["--sandbox", "backend=docker"], "docker is not installed); mend that"),
        (["--tools", "pyton"], "invalid value for '--tools': 'pyton' is not one of 'python'"),
    ],
)
def test_a_setting_that_cannot_work_is_named_as_it_was_written(
    flags: list[str], problem: str, keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with FaultyEndpoint(Plan(answers=counting)) as endpoint:
        ran = keju(*words(endpoint, *flags))
    assert (ran.code, endpoint.stats.attempts) == (2, {})
    assert problem in ran.err
    assert "bubblewrap" not in ran.err


def test_docker_without_an_engine_says_what_docker_says(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\necho 'Cannot connect to the daemon' >&2\nexit 1\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with FaultyEndpoint(Plan(answers=counting)) as endpoint:
        ran = keju(*words(endpoint, "--sandbox", "backend=docker,image=x"))
    assert ran.code == 2
    assert "docker has no engine that answers: Cannot connect to the daemon" in ran.err
    assert "bubblewrap" not in ran.err
