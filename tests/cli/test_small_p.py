"""Differences that are beyond all doubt: no command writes a p of 0."""

from __future__ import annotations

import html
import json
import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from keju.models.scripted import ScriptedModel
from keju.types import Request
from keju.viewer.app import make_app
from keju.viewer.run_index import RunIndex
from tests.cli.conftest import Keju

EACH = 520
# A p of 0: ``p 0``, ``p = 0.0``, ``p 0.000``; not ``p 0.03``.
ZERO = re.compile(r"\bp\s*(?:=|is)?\s*0(?:\.0*)?(?![\d.])")


def _always(reply: str) -> ScriptedModel:
    """A model that gives one reply to every question."""

    def answer(_: Request) -> str:
        return reply

    return ScriptedModel(script=answer)


def _return_model(model: ScriptedModel, _: object) -> ScriptedModel:
    return model


@pytest.fixture
def runs(keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs on the same questions: one always right, one always wrong."""
    folder = tmp_path / "quiz"
    folder.mkdir()
    rows = [f"Question {n}?,one,two,A,{subset}" for subset in ("x", "y") for n in range(EACH)]
    (folder / "q.csv").write_text("\n".join(["question,A,B,answer,subset", *rows]))
    for name, letter in (("right", "A"), ("wrong", "B")):
        model = _always(f"The answer is ({letter}).")
        monkeypatch.setattr("keju.task.make_model", partial(_return_model, model))
        flags = ("-q", "--no-report", "--run-id", name)
        ran = keju("eval", "-m", "scripted", "--datasets", "./quiz", *flags)
        assert ran.code == 0, ran.err
    return tmp_path / "runs"


def ps(document: Any, path: str = "") -> dict[str, float]:
    """All p of a document by their place."""
    if isinstance(document, list):
        return {k: v for n, item in enumerate(document) for k, v in ps(item, f"{path}/{n}").items()}
    if not isinstance(document, dict):
        return {}
    p_values: dict[str, float] = {}
    for key, value in document.items():
        is_p = key in {"p", "p_fail", "p_holm", "p_adjusted", "p_fail_holm"}
        if is_p and value is not None:
            p_values[f"{path}/{key}"] = value
        p_values |= ps(value, f"{path}/{key}")
    return p_values


def test_no_p_is_0(keju: Keju, runs: Path, tmp_path: Path) -> None:
    compared = keju("compare", "right", "wrong", "--json").json
    gated = keju("gate", "wrong", "--baseline", "right", "--margin", "0.05", "--json").json
    alone = keju("gate", "wrong", "--at-least", "0.9", "--json").json
    for document in (compared, gated, alone, keju("audit", "wrong", "--json").json):
        assert all(0 < p <= 1 for p in ps(document).values()), ps(document)
    (pair,) = compared["comparisons"]
    n = 2 * EACH
    assert pair["p"] == 1e-300
    assert pair["p_log10"] == pytest.approx((1 - n) * math.log10(2))
    for row in pair["subsets"]:
        assert row["p_adjusted"] >= row["p"]
        assert row["p_log10"] == pytest.approx((1 - EACH) * math.log10(2))
    gate = gated["gates"][0]
    assert gate["p_fail_log10"] < -100
    assert gate["p_fail"] == pytest.approx(10 ** gate["p_fail_log10"])
    assert alone["gates"][0]["p_fail_log10"] == pytest.approx(n * math.log10(0.1))
    pages = [
        keju("compare", "right", "wrong").out,
        keju("compare", "right", "wrong", "--language", "zh").out,
        keju("gate", "wrong", "--baseline", "right", "--margin", "0.05").out,
        keju("gate", "wrong", "--at-least", "0.9").out,
        keju("audit", "wrong").out,
        keju("export", "wrong", "--format", "markdown").out,
    ]
    assert keju("compare", "right", "wrong", "-o", "c.html").code == 0
    assert keju("report", "wrong", "-o", "r.html").code == 0
    pages += [(tmp_path / name).read_text("utf-8") for name in ("c.html", "r.html")]
    app = make_app(RunIndex(runs))
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        response = client.get("/compare", params={"run": ["right", "wrong"]})
        assert response.status_code == 200
        pages.append(response.text)
    for page in pages:
        text = html.unescape(
            re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]+>", " ", page, flags=re.S)
        )
        assert ZERO.search(text) is None, ZERO.search(text)
    assert "< 0.001" in pages[0]
    json.dumps(compared, allow_nan=False)
