"""What an import leaves behind is a run: it can be scored, reported and exported."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from keju.runs.journal import Records
from tests.cli.conftest import Keju
from tests.interop.imports.conftest import DATA, FIXTURES, Import, exam_of
from tests.support.killed import killed_in

pytestmark = pytest.mark.slow

LOGS = [
    "evalscope", "lm-eval/bbh", "lm-eval/mmlu_pro", "lm-eval/ceval", "inspect/bbh.eval",
    "inspect/mmlu-pro.eval", "inspect/mmlu-pro-with-an-error.json", "opencompass/chat",
    "opencompass/base", "opencompass/split", "opencompass/repeats", "verifiers-0.3", "verifiers-0.4",
]  # fmt: skip


@pytest.mark.parametrize("path", LOGS)
def test_scoring_the_run_again_gives_the_same(path: str, imported: Import, keju: Keju) -> None:
    results = imported(path)["results"]
    ran = keju("score", "runs/r", "--json")
    assert ran.code == 0, ran.err
    rescored = ran.json["benchmarks"]
    for before, after in zip(results["benchmarks"], rescored, strict=True):
        for key in ("name", "protocol", "reader", "n", "outcomes", "metrics"):
            assert after[key] == before[key]


@pytest.mark.parametrize("path", LOGS)
def test_the_run_can_be_reported_and_exported(
    path: str, imported: Import, keju: Keju, tmp_path: Path
) -> None:
    document = imported(path)
    assert keju("report", "runs/r", "-o", "other.html").code == 0
    assert "<html" in (tmp_path / "other.html").read_text()
    ran = keju("export", "runs/r")
    assert ran.code == 0
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert len(rows) == sum(exam["matched"] for exam in document["benchmarks"])
    assert all(row["subset"] for row in rows)


def test_the_order_of_options_counts_when_a_run_is_scored_again(
    imported: Import, keju: Keju, tmp_path: Path
) -> None:
    imported("inspect/mmlu-pro.eval")
    records = list(Records(tmp_path / "runs" / "r"))
    record = next(record for record in records if record.id == "mmlu_pro_9001")
    assert record.order == (8, 3, 1, 4, 7, 0, 9, 6, 2, 5)
    assert record.target == "B"
    assert record.reply.text.endswith("ANSWER: B")
    document = keju("score", "runs/r", "--reader", "evalscope,robust", "--json").json
    evalscope, robust = (entry["metrics"]["accuracy"] for entry in document["benchmarks"])
    assert evalscope["value"] == pytest.approx(6 / 9)
    assert robust["value"] > 1 / 2
    assert all(row["target"] for row in document["disagreements"])


def test_another_reader_takes_the_place_of_the_equivalent_one(imported: Import, keju: Keju) -> None:
    imported("lm-eval/mmlu_pro")
    document = keju("score", "runs/r", "--reader", "l2", "--json").json
    assert [entry["reader"] for entry in document["benchmarks"]] == ["l2"]


def test_readers_and_protocol_can_be_chosen(imported: Import) -> None:
    document = imported("inspect/bbh.eval", "--protocol", "paper", "--reader", "paper,robust")
    exam = exam_of(document, "bbh")
    assert (exam["protocol"], exam["reader"]) == ("paper", "paper")
    assert list(exam["keju_accuracy"]) == ["paper", "robust"]


def test_the_manifest_says_where_the_replies_come_from(imported: Import, tmp_path: Path) -> None:
    document = imported("lm-eval/bbh")
    manifest = json.loads((tmp_path / "runs" / "r" / "manifest.json").read_text())
    assert manifest["imported"] is True
    assert manifest["complete"] is True
    assert manifest["model"] == "tiny-chat"
    origin = manifest["origin"]
    assert (origin["tool"], origin["version"]) == ("lm-eval", "0.4.13")
    assert origin["reported"] == {"bbh": {"exact_match,get-answer": pytest.approx(1 / 3)}}
    assert origin["files"] == document["files"]
    assert len(origin["files"]) == 3
    assert (origin["rows"], origin["unmatched"]) == (12, 0)
    stored = json.loads((tmp_path / "runs" / "r" / "import.json").read_text())
    assert stored == {key: value for key, value in document.items() if key != "results"}


def test_the_first_questions_of_each_subset_are_a_limit(
    imported: Import, log: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = log("lm-eval/bbh")
    for samples in folder.glob("samples_*.jsonl"):
        samples.write_text("".join(samples.read_text().splitlines(keepends=True)[:2]))
    document = imported(folder)
    manifest = json.loads((tmp_path / "runs" / "r" / "manifest.json").read_text())
    assert manifest["config"]["limit"] == 2
    subsets = document["results"]["benchmarks"][0]["subsets"]
    assert [(s["n"], s["population"]) for s in subsets] == [(2, 6), (2, 6)]


def test_the_table_shows_both_figures_and_the_rows_that_differ(keju: Keju) -> None:
    ran = keju("import", str(FIXTURES / "lm-eval/bbh"), "--data-dir", str(DATA), "--run-id", "r")
    assert ran.code == 0
    assert "lm-eval 0.4.13, model tiny-chat" in ran.out
    assert ran.out.count("33.33 %") == 3
    assert "bbh: the tool and Keju differ on 4 rows" in ran.out
    assert "It follows at once. So the answer is (B)" in ran.out
    assert "wrote runs/r" in ran.out


@pytest.mark.parametrize("place", ["ManifestFile", "write_outputs", "write_json"])
def test_an_import_that_is_killed_leaves_nothing_and_can_be_repeated(
    place: str, imported: Import, tmp_path: Path
) -> None:
    words = ("import", str(FIXTURES / "lm-eval/bbh"), "--data-dir", str(DATA), "--run-id", "r")
    assert killed_in("keju.interop.imports.building", place, *words) == 9
    assert not (tmp_path / "runs/r/manifest.json").exists()
    assert imported("lm-eval/bbh")["folder"] == "runs/r"
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["r"]


def test_a_run_that_exists_is_not_written_over(imported: Import, keju: Keju) -> None:
    imported("verifiers-0.3")
    place = str(FIXTURES / "verifiers-0.3")
    ran = keju("import", place, "--data-dir", str(DATA), "--run-id", "r")
    assert ran.code == 2
    assert "choose another --run-id" in ran.err
