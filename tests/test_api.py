"""What users of Python call: results that are a mapping, rows, frames, progress, loops."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import keju
from keju import Progress, RunResults, SampleRow
from keju.benchmarks import registry
from keju.reporting.live import display_for
from keju.runs.journal import Records
from tests.reporting.documents import results as document
from tests.support.endpoint import FaultyEndpoint
from tests.support.judged import candidate_or_verdict
from tests.support.judged import judged_config as judged_config
from tests.support.replies import EndpointRequest, Plan, draw

pytestmark = pytest.mark.slow


def answer(asked: EndpointRequest) -> str:
    return f"So the answer is ({'ABCD'[int(draw(asked.text) * 4)]})."


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers."""
    return Plan(answers=answer, latency=0.01)


def settings(folder: Path, **more: Any) -> dict[str, Any]:
    own = {"model": "scripted", "datasets": ["demo"], "limit": 3, "run_id": "r"}
    return own | {"work_dir": str(folder)} | more


@pytest.fixture
def run(tmp_path: Path) -> RunResults:
    return keju.run_task(settings(tmp_path))


def test_results_are_still_the_document(run: RunResults, tmp_path: Path) -> None:
    stored = json.loads((tmp_path / "r" / "results.json").read_bytes())
    assert run == stored
    assert isinstance(run, dict)
    assert json.loads(json.dumps(run)) == stored
    assert run["benchmarks"][0]["n"] == 18
    assert run.folder == tmp_path / "r"
    assert run.results.benchmarks[0].n == 18
    assert run.run.id == "r"
    again = pickle.loads(pickle.dumps(run))
    assert (again, again.run.id, again.results) == (run, "r", run.results)


def test_results_have_a_short_text_and_a_table(run: RunResults) -> None:
    assert repr(run).splitlines()[0] == "<results of scripted · Keju demo>"
    assert "Keju demo, text@1: " in repr(run)
    assert len(repr(run)) < 200
    html = run._repr_html_()
    assert html.count("<tr>") == 2
    assert "warning" not in html
    assert '<td style="text-align: left">Keju demo</td>' in html
    assert '<td style="text-align: right">18</td>' in html
    without_warnings = re.sub(r"<p>.*?</p>", "", html, flags=re.DOTALL)
    assert not re.search(r"\d\.\d\d %", without_warnings)
    assert keju.open_run("r", str(run.folder.parent))._repr_html_() == html


def test_nothing_in_a_name_reaches_the_page_as_markup() -> None:
    evil = '<script>alert(1)</script>"\x1b[2J'
    results = document(model=evil, run=evil)
    html = RunResults(results, Path("r"))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "\x1b" not in html
    assert "\x1b" not in repr(RunResults(results, Path("r")))


def test_samples_are_rows_in_the_order_of_the_exam(run: RunResults) -> None:
    samples = run.samples()
    rows = list(samples)
    assert len(rows) == 18
    assert all(isinstance(row, SampleRow) for row in rows)
    assert [row.id for row in samples] == [row.id for row in rows]
    assert rows[0].subset == "boolean_expressions"
    assert rows[0].question
    assert rows[0].reply.startswith("So the answer is")
    assert sum(row.correct for row in rows) == run["benchmarks"][0]["outcomes"]["correct"]
    failures = list(samples.failures)
    assert len(failures) == 18 - sum(row.correct for row in rows)
    assert [row.id for row in samples.failures.only(subset="word_sorting")] == [
        row.id for row in failures if row.subset == "word_sorting"
    ]


def test_frames_hold_what_an_export_holds(run: RunResults, tmp_path: Path) -> None:
    lines = keju.export(run.run, tmp_path / "rows.jsonl", full_text=True).read_bytes().splitlines()
    rows = [json.loads(line) for line in lines]
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    pytest.importorskip("duckdb")
    samples = run.samples()
    pandas, polars, duckdb = samples.to_pandas(), samples.to_polars(), samples.to_duckdb()
    assert list(pandas.columns) == polars.columns == duckdb.columns
    assert polars.columns[:6] == ["question", "reply", "answer", "target", "score", "outcome"]
    assert set(polars.columns) == set(rows[0])
    assert polars.rows(named=True) == rows
    assert [dict(zip(duckdb.columns, row, strict=True)) for row in duckdb.fetchall()] == rows
    assert [row.tolist() for _, row in pandas[["id", "outcome"]].iterrows()] == [
        [row["id"], row["outcome"]] for row in rows
    ]
    assert pandas["index"].dtype == "Int64"
    assert pandas["score"].mean() == pytest.approx(
        run["benchmarks"][0]["metrics"]["accuracy"]["value"]
    )
    assert "reply" not in samples.to_polars(full_text=False).columns
    nothing = samples.only(subset="no such subset")
    assert len(nothing.to_pandas()) == len(nothing.to_polars()) == 0


@pytest.mark.parametrize(
    ("module", "method", "extra"),
    [
        ("pandas", "to_pandas", "frames"),
        ("polars", "to_polars", "frames"),
        ("duckdb", "to_duckdb", "data"),
    ],
)
def test_a_missing_library_is_one_line(
    run: RunResults, monkeypatch: pytest.MonkeyPatch, module: str, method: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(keju.MissingExtra, match=rf"keju\[{extra}\]"):
        getattr(run.samples(), method)()


def test_a_killed_run_has_results_rows_and_a_report(run: RunResults, tmp_path: Path) -> None:
    journal = run.folder / "records.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:10]) + lines[10][:40])
    (run.folder / "results.json").unlink()
    stored = keju.open_run(run.folder)
    results = stored.results()
    assert results.results.complete is False
    assert results["benchmarks"][0]["n"] == 10
    assert "not finished" in results._repr_html_() or "⚠" in results._repr_html_()
    assert len(list(stored.samples())) == 10
    page = keju.report(stored, tmp_path / "page.html")
    assert "10" in page.read_text()
    assert not (run.folder / "results.json").exists()


def test_rows_of_a_run_whose_data_is_gone(run: RunResults) -> None:
    manifest = run.folder / "manifest.json"
    facts = json.loads(manifest.read_text())
    facts["config"]["datasets"] = ["gone"]
    manifest.write_text(json.dumps(facts))
    samples = keju.open_run(run.folder).samples()
    assert {row.subset for row in samples} == {None}
    assert "unknown benchmark 'gone'" in str(samples.problem)


def test_the_function_is_there_whichever_rooms_were_imported() -> None:
    code = (
        "import keju; from keju import RunResults; import keju.reporting.html; keju.report('gone')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "no run 'gone'" in ran.stderr


def test_public_functions_on_a_stored_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BUILT_IN, "open", ("tests.support.open_exam:OPEN",))
    with FaultyEndpoint(Plan(answers=candidate_or_verdict)) as endpoint:
        keju.run_task(judged_config(tmp_path, endpoint.url, None))
        monkeypatch.setenv("KEJU_WORK_DIR", str(tmp_path))
        assert [run.id for run in keju.list_runs()] == ["r"]
        before = keju.score("r")
        judged = keju.judge("r", {"model": "judge", "api_url": endpoint.url})
    assert judged.results.benchmarks[0].judge is not None
    assert (
        judged["benchmarks"][0]["outcomes"]["correct"]
        > before["benchmarks"][0]["outcomes"]["correct"]
    )
    assert keju.open_run("r").results() == judged
    assert keju.report("r") == tmp_path / "r" / "report.html"
    with pytest.raises(keju.UsageError, match="unknown format 'pdf'"):
        keju.export("r", tmp_path / "x", format="pdf")


# Progress.


def test_a_callback_is_told_how_far_the_run_is(endpoint: FaultyEndpoint, tmp_path: Path) -> None:
    told: list[Progress] = []
    price = {"input": 1.0, "output": 1.0}
    own = settings(
        tmp_path, model="m", api_url=endpoint.url, price=price, limit=20, eval_batch_size=4
    )
    run = keju.run_task(own, progress=told.append)
    first, last = told[0], told[-1]
    assert (first.done, first.total) == (0, 120)
    assert (last.done, last.errors, last.left) == (120, 0, 0.0)
    assert last.right == run["benchmarks"][0]["outcomes"]["correct"]
    assert last.cost is not None
    assert [snapshot.done for snapshot in told] == sorted(snapshot.done for snapshot in told)


def test_a_callback_that_fails_is_named_and_costs_no_answer(tmp_path: Path) -> None:
    def fail(_: Progress) -> None:
        raise ValueError("no such bar")

    with pytest.warns(RuntimeWarning, match="ValueError: no such bar"):
        run = keju.run_task(settings(tmp_path), progress=fail)
    assert run.results.complete


def test_a_script_prints_the_score_and_the_folder(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = keju.run_task(settings(tmp_path))
    out, err = capfd.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert len(lines) <= 15
    value = run["benchmarks"][0]["metrics"]["accuracy"]["value"]
    assert f"{100 * value:.1f} %" in lines[0]
    assert str(run.folder) in out
    for silent in ({"quiet": True}, {"progress": False}):
        keju.run_task(settings(tmp_path), **silent)
        assert capfd.readouterr() == ("", "")
    keju.run_task(settings(tmp_path, run_id="s"), progress=True, quiet=True)
    assert capfd.readouterr() == ("", "")
    keju.run_task(settings(tmp_path, run_id="s2"), progress=True)
    assert "18 answers" in capfd.readouterr().err


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert type(display_for(None)).__name__ == "LiveDisplay"
    assert type(display_for(False)).__name__ == "Display"


# Loops.


def test_a_loop_goes_on_while_a_task_runs(endpoint: FaultyEndpoint, tmp_path: Path) -> None:
    threads: set[int] = set()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.005)

    async def main() -> list[RunResults]:
        beside = asyncio.create_task(tick())
        own = [
            settings(
                tmp_path, model="m", api_url=endpoint.url, run_id=name, limit=10, eval_batch_size=2
            )
            for name in ("first", "second")
        ]
        note = lambda _: threads.add(threading.get_ident())  # noqa: E731
        both = await asyncio.gather(*(keju.arun_task(each, progress=note) for each in own))
        beside.cancel()
        return both

    first, second = asyncio.run(main())
    assert first["benchmarks"][0]["metrics"] == second["benchmarks"][0]["metrics"]
    assert ticks > 5
    assert threads == {threading.get_ident()}


def test_a_task_that_is_cancelled_is_saved_and_can_go_on(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    own = settings(tmp_path, model="m", api_url=endpoint.url, limit=50, eval_batch_size=2)

    async def main() -> None:
        task = asyncio.create_task(keju.arun_task(own))
        while endpoint.stats.answered < 20:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    known = len(list(Records(tmp_path / "r")))
    assert 15 <= known < 200
    assert keju.open_run("r", str(tmp_path)).results().results.complete is False
    asked = endpoint.stats.requests
    assert keju.run_task(own).results.complete
    assert endpoint.stats.requests - asked <= 300 - known + 1


def test_errors_of_a_task_come_out_of_the_loop(tmp_path: Path) -> None:
    with pytest.raises(keju.ConfigError, match="did you mean 'demo'"):
        asyncio.run(keju.arun_task(settings(tmp_path, datasets=["demos"])))


def test_run_task_works_where_a_loop_runs(tmp_path: Path) -> None:
    async def main() -> RunResults:
        return keju.run_task(settings(tmp_path))

    assert asyncio.run(main()).results.complete


def test_a_notebook_shows_a_bar_and_a_table(tmp_path: Path) -> None:
    """In a real kernel, whose loop runs while a cell does."""
    client = pytest.importorskip("jupyter_client")
    pytest.importorskip("ipykernel")
    manager, kernel = client.manager.start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    shown: list[dict[str, Any]] = []
    cell = (
        f"import sys; sys.path.insert(0, {str(Path(keju.__file__).parents[1])!r})\n"
        f"import keju; keju.run_task({settings(tmp_path)!r})"
    )
    try:
        reply = kernel.execute_interactive(cell, timeout=60, output_hook=shown.append)
    finally:
        kernel.stop_channels()
        manager.shutdown_kernel(now=True)
        deadline = time.monotonic() + 10
        while manager.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
    assert reply["content"]["status"] == "ok", reply["content"]
    kinds = [message["msg_type"] for message in shown]
    bars = [m for m in shown if m["msg_type"] in ("display_data", "update_display_data")]
    assert "18/18" in bars[-1]["content"]["data"]["text/html"]
    (result,) = [m for m in shown if m["msg_type"] == "execute_result"]
    assert "<table>" in result["content"]["data"]["text/html"]
    assert "stream" not in kinds


def test_what_is_found_is_short_in_a_shell_and_a_table_in_a_notebook(
    run: RunResults, tmp_path: Path
) -> None:
    other = keju.run_task(settings(tmp_path, run_id="other"), progress=False)
    compared = keju.compare(run, other)
    found = {
        "compare": compared,
        "gate": keju.gate(other, baseline=run, margin=0.2),
        "plan": keju.plan("demo", pilot=run),
        "audit": keju.audit(run, beside=[other]),
    }
    for name, value in found.items():
        assert len(repr(value)) < 1_000, name
        assert "<table>" in value._repr_html_(), name
        assert "<script" not in value._repr_html_()
        tables = re.sub(r"<p>.*?</p>", "", value._repr_html_(), flags=re.DOTALL)
        assert not re.search(r"\d\.\d\d %", tables), name
    assert repr(compared) == compared.comparisons[0].conclusion.text()
    assert "data:image/svg+xml" in compared._repr_html_()
    gate_line, *_ = repr(found["gate"]).splitlines()
    assert gate_line.split(": ")[1] in ("pass", "fail", "inconclusive")
    rows = run.samples().failures
    titles = re.findall(r"<th[^>]*>([^<]*)</th>", rows._repr_html_())
    assert titles == ["question", "reply", "model&#x27;s answer", "right answer", "outcome", "id"]
    assert rows._repr_html_().count("<tr>") - 1 == min(20, len(list(rows)))
    for name in ("score", "report"):
        assert getattr(keju, name)(run)
