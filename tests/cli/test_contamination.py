"""``keju compare --contamination``: a published exam against fresh questions of its kinds."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from keju import contamination, task
from keju.benchmarks.bbh.metadata import ERRATA
from keju.benchmarks.kit import Erratum, fingerprint
from keju.benchmarks.prepare import prepare_exams
from keju.config import TaskConfig
from keju.models.scripted import ScriptedModel
from keju.task import FinishedTask
from keju.types import Request
from tests.cli.conftest import Keju

pytestmark = pytest.mark.slow

SUBSETS = ["word_sorting", "temporal_sequences", "object_counting"]
LEARNT = 0.4


@pytest.fixture
def published(keju: Keju) -> Path:
    """A folder in BBH's layout that nothing tells from the published one."""
    words = [word for subset in SUBSETS for word in ("--subset", subset)]
    assert keju("fresh", *words, "--seed", "1", "-n", "80", "-o", "data").code == 0
    Path("data/fresh.json").unlink()
    return Path("data")


def evaluate(
    monkeypatch: pytest.MonkeyPatch,
    run_id: str,
    dataset: str,
    *,
    accuracy: float,
    learnt: float = 0.0,
    args: dict[str, Any] | None = None,
    **task_settings: Any,
) -> FinishedTask:
    """A model of this accuracy that knows a share of the questions by heart."""
    settings = {"few_shot_num": 0, "subset_list": SUBSETS} | (args or {})
    config = TaskConfig(
        model=task_settings.pop("model", "scripted"), datasets=[dataset], dataset_args={dataset: settings},
        run_id=run_id, **task_settings,
    )  # fmt: skip
    samples_by_text = {
        exam.render(sample).text: sample
        for exam, _ in prepare_exams(config)
        for sample in exam.samples
    }

    def script(request: Request) -> str:
        sample = samples_by_text[request.prompt.text]
        fates = sha256(sample.id.encode()).digest()
        by_heart, skilled = (int.from_bytes(part) / 2**64 for part in (fates[:8], fates[8:16]))
        right = by_heart < learnt or skilled < accuracy
        wrong = "(A)" if sample.target != "(A)" else "(B)"
        return f"So the answer is {sample.target if right else wrong}."

    monkeypatch.setattr(task, "make_model", lambda _: ScriptedModel(script=script))
    return task.run_exams(config, report=False)


FRESH = {"seed": 7, "n": 200}


def test_a_memory_is_found(keju: Keju, published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate(monkeypatch, "old", "bbh", accuracy=0.5, learnt=LEARNT, data_dir=str(published))
    evaluate(monkeypatch, "new", "fresh_bbh", accuracy=0.5, learnt=0.0, args=FRESH)
    ran = keju("compare", "--contamination", "old", "new", "--json")
    assert ran.code == 0, ran.err
    document = ran.json
    assert (document["verdict"], document["exam"], document["fresh_exam"]) == (
        "higher",
        "bbh",
        "fresh_bbh",
    )
    assert {row["name"] for row in document["subsets"]} == set(SUBSETS)
    assert {(row["published_n"], row["fresh_n"]) for row in document["subsets"]} == {(80, 200)}
    assert document["difference"] == pytest.approx(document["published"] - document["fresh"])
    assert document["ci95"][0] < document["difference"] < document["ci95"][1]
    assert document["p"] < 0.001
    assert all(row["p_adjusted"] >= row["p"] for row in document["subsets"])
    low, high = document["by_heart"]
    assert low < LEARNT < high
    report = keju("compare", "--contamination", "old", "new")
    assert "points higher on published bbh" in report.out
    assert "not why" in report.out
    assert contamination("old", "new").p == document["p"]
    assert keju("compare", "--contamination", "old", "new", "-o", "page.html").code == 0
    page = Path("page.html").read_text()
    assert "points higher on published bbh" in page
    assert "在已发表的 bbh 上" in page
    assert page.count('class="plot"') == len(SUBSETS)


def test_no_memory_is_no_alarm_and_that_is_not_called_innocence(
    keju: Keju, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(monkeypatch, "old", "bbh", accuracy=0.5, data_dir=str(published))
    evaluate(monkeypatch, "new", "fresh_bbh", accuracy=0.5, args=FRESH)
    assert keju("compare", "--contamination", "old", "new", "--json").json["verdict"] == "not shown"
    monkeypatch.setenv("KEJU_LANGUAGE", "zh")
    chinese_output = keju("compare", "--contamination", "old", "new").out
    assert "未能表明" in chinese_output
    assert "模型仍可能见过" in chinese_output


def test_a_folder_of_fresh_questions_serves_as_well(
    keju: Keju, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [word for subset in SUBSETS for word in ("--subset", subset)]
    assert keju("fresh", *words, "--seed", "7", "-n", "90", "-o", "newdata").code == 0
    evaluate(monkeypatch, "old", "bbh", accuracy=0.5, learnt=LEARNT, data_dir=str(published))
    evaluate(monkeypatch, "new", "bbh", accuracy=0.5, data_dir="newdata")
    document = keju("compare", "--contamination", "old", "new", "--json").json
    assert document["verdict"] == "higher"
    turned = keju("compare", "--contamination", "new", "old")
    assert turned.code == 2
    assert "a published exam first" in turned.err


def test_of_several_difficulties_the_published_one_counts(
    keju: Keju, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(monkeypatch, "old", "bbh", accuracy=0.5, data_dir=str(published))
    evaluate(monkeypatch, "levels", "fresh_bbh", accuracy=0.5, args=FRESH | {"difficulty": [1, 2]})
    document = keju("compare", "--contamination", "old", "levels", "--json").json
    assert [row["fresh_n"] for row in document["subsets"]] == [200, 200, 200]
    evaluate(monkeypatch, "hard", "fresh_bbh", accuracy=0.5, args=FRESH | {"difficulty": 2})
    refusal = keju("compare", "--contamination", "old", "hard")
    assert refusal.code == 2
    assert "difficulty 1" in refusal.err


@pytest.mark.parametrize(
    ("run_settings", "field"),
    [
        ({"protocol": "mcpbr"}, "protocol"),
        ({"model": "scripted "}, "model"),
        ({"args": {"few_shot_num": 3}}, "few_shot_num"),
        ({"args": {"system_prompt": "Be brief."}}, "system_prompt"),
        ({"args": {"lang": "zh", "subset_list": ["object_counting"]}}, "lang"),
    ],
)
def test_what_is_put_otherwise_is_not_compared(
    keju: Keju,
    published: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_settings: dict[str, Any],
    field: str,
) -> None:
    evaluate(monkeypatch, "old", "bbh", accuracy=0.5, data_dir=str(published))
    args = {"n": 20, "seed": 7} | run_settings.get("args", {})
    evaluate(monkeypatch, "new", "fresh_bbh", accuracy=0.5, **run_settings | {"args": args})
    ran = keju("compare", "--contamination", "old", "new", "--json")
    assert ran.code == 3
    assert ran.json["verdict"] == "not comparable"
    assert ran.json["unlike"][0]["field"] == field


def test_only_subsets_of_both_are_compared_and_the_others_named(
    keju: Keju, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = {"subset_list": SUBSETS[:2]}
    evaluate(monkeypatch, "old", "bbh", accuracy=0.5, data_dir=str(published), args=args)
    evaluate(monkeypatch, "new", "fresh_bbh", accuracy=0.5, args=FRESH)
    document = keju("compare", "--contamination", "old", "new", "--json").json
    assert len(document["subsets"]) == 2
    assert document["uncompared"] == ["object_counting"]
    evaluate(
        monkeypatch, "other", "fresh_bbh", accuracy=0.5, args={"n": 5, "subset_list": SUBSETS[2:]}
    )
    ran = keju("compare", "--contamination", "old", "other", "--json")
    assert (ran.code, ran.json["verdict"]) == (3, "nothing")
    assert "no subset has scores on both sides" in ran.err


def test_faulty_questions_are_left_out_and_counted_where_subsets_are_compared(
    keju: Keju, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for subset in SUBSETS[:2]:
        rows = json.loads((published / f"bbh/{subset}.json").read_text())["examples"]
        for place in (3, 4):
            erratum = Erratum(fingerprint(rows[place]["input"], rows[place]["target"]), "wrong")
            monkeypatch.setitem(ERRATA, f"bbh_{subset}_{place}", erratum)
    evaluate(monkeypatch, "old", "bbh", accuracy=0.5, data_dir=str(published))
    evaluate(
        monkeypatch, "new", "fresh_bbh", accuracy=0.5, args=FRESH | {"subset_list": SUBSETS[1:]}
    )
    document = keju("compare", "--contamination", "old", "new", "--json").json
    counts = {row["name"]: row["published_n"] for row in document["subsets"]}
    assert counts == {"temporal_sequences": 78, "object_counting": 80}
    assert document["faulty"] == 2, "two more are in a subset that is not compared"


def test_wrong_uses_are_refused(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate(monkeypatch, "new", "fresh_bbh", accuracy=0.5, args={"n": 5})
    for words in (("new",), ("new", "new", "new"), ("new", "new")):
        ran = keju("compare", "--contamination", *words)
        assert ran.code == 2
        assert "--contamination takes" in ran.err
    ran = keju("compare", "--contamination", "new", "new", "--datasets", "bbh")
    assert ran.code == 2
    assert json.loads(keju("list", "runs", "--json").out)
