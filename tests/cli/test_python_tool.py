"""``--tools python``: one more arm on any exam, with the kernel of notebooks as its tool."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju
from tests.support.calculations import NOT_KNOWN, SUBSET, expression_in
from tests.support.endpoint import FaultyEndpoint
from tests.support.local_model import real_weights
from tests.support.replies import EndpointRequest, Plan
from tests.support.tools import calling, results_in

pytestmark = [pytest.mark.usefixtures("_a_sandbox"), pytest.mark.slow]


def exam(size: int, **settings: Any) -> tuple[str, ...]:
    """Real questions of BBH, without worked examples."""
    exam_args = {"bbh": {"subset_list": [SUBSET], "few_shot_num": 0, **settings}}
    return ("--datasets", "bbh", "--limit", str(size), "--dataset-args", json.dumps(exam_args))


def programs(request: EndpointRequest) -> Any:
    """Solves arithmetic only by a program."""
    results, expression = results_in(request), expression_in(request)
    if not expression:
        return "OK"
    if results:
        return f"So the answer is {results[-1].strip()}."
    code = f"value = {expression}\nvalue"
    return calling(("python", {"code": code})) if "tools" in request.body else NOT_KNOWN


def test_python_solves_what_the_model_cannot(keju: Keju, data_dir: Path) -> None:
    with FaultyEndpoint(Plan(answers=programs)) as served:
        model_flags = ("--model", "m", "--api-url", served.url, "--data-dir", str(data_dir))
        ran = keju("eval", *model_flags, *exam(6), "--tools", "python", "--run-id", "r", "--json")
    assert ran.code == 0, ran.err
    outcomes = {entry["arm"]: entry["outcomes"]["correct"] for entry in ran.json["benchmarks"]}
    assert outcomes == {"baseline": 0, "python": 6}
    (pair,) = ran.json["comparisons"]
    assert (pair["arm_only"], pair["base_only"]) == (6, 0)
    assert pair["p"] == pytest.approx(2 * 0.5**6)
    (tool,) = ran.json["benchmarks"][1]["tools"]["tools"]
    assert (tool["name"], tool["kinds"], tool["samples"]) == ("python", {"ok": 6}, 6)
    sources = json.loads(Path("runs/r/manifest.json").read_text())["arms"]["python"]["sources"]
    assert (sources["sandbox"]["backend"], sources["sandbox"]["network"]) == ("bwrap", "none")


def test_the_embedded_model_sits_both_arms_to_the_end(keju: Keju, data_dir: Path) -> None:
    real_weights()
    short = ("--generation-config", "max_tokens=16", "--data-dir", str(data_dir), "--run-id", "r")
    acts = ("--tools", "python", "--agent", "protocol=text,max_iterations=2")
    ran = keju("eval", "--model", "embedded", *exam(1), *acts, *short)
    assert ran.code == 0, ran.err
    results = json.loads(Path("runs/r/results.json").read_text())
    assert [(entry["arm"], entry["n"]) for entry in results["benchmarks"]] == [
        ("baseline", 1),
        ("python", 1),
    ]
    assert results["benchmarks"][1]["outcomes"]["error"] == 0
    assert re.search(r"^bbh · python against baseline +\d", ran.out, re.MULTILINE)
    assert results["comparisons"][0]["n"] == 1
