"""Assertions about tools, order, arguments, calls and state, from the file to every display."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju
from tests.support import ten_tools
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan
from tests.support.tools import calling, results_in

PROGRAM = Path(ten_tools.__file__)
NUMBER = 20
SERVER = {
    "name": "co",
    "command": sys.executable,
    "args": ["-I", str(PROGRAM), "--folder", "{workdir}"],
    "scope": "sample",
}
CHECK = """\
import os, pathlib, sys
folder, name = sys.argv[1:]
assert os.environ["KEJU_WORKDIR"] == folder
file = pathlib.Path(folder, name + ".txt")
sys.exit(0 if file.exists() and file.read_text() == "v" + name[1:] else "wrong state")
"""


def wilson(right: int, n: int) -> tuple[float, float]:
    """Wilson's interval, written down a second time.

    With one wrong answer its upper end is the share that gives one or more with 5 %.
    """
    z, p = 1.959963984540054, right / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return middle - half, 1 + math.log(0.95) / n if n - right == 1 else middle + half


def rows() -> list[dict[str, Any]]:
    """Twenty questions about codes, and twenty that save a file and have no answer."""
    looks = [
        {
            "id": f"look{i}",
            "question": f"Which code has item {i}?",
            "answer": ten_tools.code_of(i),
            "category": "look",
            "expect": {
                "tools": ["lookup"],
                "not": ["list_labels"],
                "order": ["ping", "lookup"],
                "arguments": {"lookup": {"item": i}},
                "schema": {"lookup": {"required": ["item"], "maxProperties": 1}},
                "max_calls": 2,
            },
        }
        for i in range(NUMBER)
    ]
    saves = [
        {
            "id": f"n{i}",
            "question": f"Save the value v{i} under the name n{i}.",
            "category": "save",
            "expect": {"tools": ["co__save"]},
            "verify": {"command": "python check.py {workdir} {instance_id}"},
        }
        for i in range(NUMBER)
    ]
    return looks + saves


def act(request: EndpointRequest) -> Any:
    """What the model does: it makes a known mistake in a known number of questions.

    ========  ====================================================
    look 0-3  calls list_labels too (2 assertions fail: not, max_calls)
    look 4-5  asks for the wrong item (arguments; the answer is wrong)
    look 6    does not ping first (order)
    save 0-4  saves a wrong value (state)
    save 5    calls no tool (tools, state)
    ========  ====================================================
    """
    names = {t["function"]["name"].split("__")[1] for t in request.body.get("tools", [])}
    results = results_in(request)
    number = int("".join(filter(str.isdigit, request.text.split("?")[0].split("name")[-1])) or 0)
    if "Which code" in request.text:
        if not names:
            return "ANSWER: I do not know"
        if results:
            return f"ANSWER: {results[-1]}"
        calls: list[tuple[str, Any]] = [] if number == 6 else [("co__ping", {})]
        calls += [("co__list_labels", {})] if number < 4 else []
        return calling(*calls, ("co__lookup", {"item": number + 1 if number in (4, 5) else number}))
    if results or not names or number == 5:
        return "ANSWER: done"
    value = "wrong" if number < 5 else f"v{number}"
    return calling(("co__save", {"name": f"n{number}", "value": value}))


def write(served: FaultyEndpoint, content: list[dict[str, Any]], **more: Any) -> None:
    Path("exam").mkdir(exist_ok=True)
    Path("exam/questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in content))
    Path("exam/check.py").write_text(CHECK)
    arms = [{"name": "baseline"}, {"name": "tools", "servers": [SERVER]}]
    settings = {"model": "m", "api_url": served.url, "datasets": ["./exam"], "arms": arms}
    Path("arms.json").write_text(json.dumps(settings | more))


@pytest.mark.usefixtures("_a_sandbox")
def test_each_assertion_is_a_score_with_an_interval(keju: Keju) -> None:
    with FaultyEndpoint(Plan(answers=act)) as served:
        write(served, rows())
        ran = keju("run", "-c", "arms.json", "--run-id", "r", "--json")
    assert ran.code == 0, ran.err
    baseline, tools = ran.json["benchmarks"]
    expected = {
        "answer": 18, "expect_tools": 39, "expect_not": 16, "expect_order": 19,
        "expect_arguments": 18, "expect_max_calls": 16, "state": 14,
    }  # fmt: skip
    for name, right in expected.items():
        n = 40 if name == "expect_tools" else 20
        metric = tools["metrics"][name]
        assert (metric["n"], metric["value"]) == (n, pytest.approx(right / n)), name
        assert metric["ci95"] == pytest.approx(wilson(right, n)), name
    # The whole: the answers of 20 questions, and all assertions of the 20 without an answer.
    whole = tools["metrics"]["accuracy"]
    assert (whole["n"], whole["value"]) == (40, pytest.approx(32 / 40))
    # Without tools there are no calls, and nothing is changed.
    assert baseline["metrics"]["accuracy"]["value"] == 0
    assert baseline["metrics"]["expect_tools"]["value"] == 0
    assert baseline["metrics"]["expect_not"]["value"] == 1
    assert baseline["metrics"]["state"]["value"] == 0
    # Scoring the stored run again gives the same, and runs nothing.
    Path("exam/check.py").unlink()
    again = keju("score", "runs/r", "--json")
    assert again.code == 0, again.err
    assert again.json["benchmarks"][1]["metrics"] == tools["metrics"]


def better(request: EndpointRequest) -> Any:
    """The same model after a change: it saves the right value everywhere."""
    reply = act(request)
    if isinstance(reply, str) or "Save the value" not in request.text:
        return reply
    number = int("".join(filter(str.isdigit, request.text.split("name")[-1].split(".")[0])))
    return calling(("co__save", {"name": f"n{number}", "value": f"v{number}"}))


@pytest.mark.usefixtures("_a_sandbox")
def test_assertions_are_in_compare_gate_report_and_viewer(keju: Keju) -> None:
    for name, model in (("old", act), ("new", better)):
        with FaultyEndpoint(Plan(answers=model)) as served:
            write(served, rows())
            assert keju("run", "-c", "arms.json", "--run-id", name, "-q").code == 0
    compared = keju("compare", "old", "new", "--json").json["comparisons"]
    assert "assertions" not in compared[0]  # the arms without tools
    changes = {change["name"]: change for change in compared[1]["assertions"]}
    state = changes["state"]
    # 5 of 20 questions change, all for the better: 14 right before, 19 after.
    assert (state["n"], state["base_rate"], state["arm_rate"]) == (20, 0.7, 0.95)
    assert (state["difference"], state["p"]) == (pytest.approx(0.25), pytest.approx(2 / 2**5))
    # Bonett and Price: (b + 1) / (n + 2) for each direction.
    gained, lost, n = (5 + 1) / 22, (0 + 1) / 22, 22
    middle = gained - lost
    half = 1.959963984540054 * math.sqrt((gained + lost - middle**2) / n)
    assert state["ci95"] == pytest.approx([middle - half, middle + half])
    assert changes["expect_order"]["difference"] == 0
    text = keju("compare", "old", "new", "--verbose").out
    assert "exam · new · tools against old · tools" in text
    assert "number of calls" in text
    gate = keju("gate", "new", "--baseline", "old", "--margin", "0.1", "--json")
    rows_of_gate = gate.json["gates"]
    assert [len(row.get("assertions", ())) for row in rows_of_gate] == [0, 7]
    assert rows_of_gate[1]["assertions"][6]["arm_rate"] == 0.95
    markdown = keju("gate", "new", "--baseline", "old", "--margin", "0.1", "--markdown", "g.md")
    assert markdown.code in (0, 3), markdown.err
    assert "| state | 20 | 70.0 % | 95.0 % | +25.0 |" in Path("g.md").read_text("utf-8")
    page = Path("runs/old/report.html").read_text("utf-8")
    assert "forbidden tools not called" in page
    assert "the state is wrong" in page
    shown = keju("show", "old", "--sample", "n3").out
    assert "--- state check ---\nthe state is wrong\nwrong state" in shown


@pytest.mark.usefixtures("_a_sandbox")
def test_an_id_is_data_for_a_check_and_never_code(keju: Keju) -> None:
    evil = "n1; touch /workspace/OUCH; $(touch OUCH) `touch OUCH`"
    row = rows()[-1] | {"id": evil}
    row["verify"] = {"command": ["python", "check.py", "{workdir}", "{instance_id}"]}
    with FaultyEndpoint(Plan(answers=lambda _: "ANSWER: done")) as served:
        write(served, [row, *rows()[:1]])
        Path("exam/check.py").write_text(
            "import os, sys\nassert not os.path.exists('/workspace/OUCH')\n"
            f"assert sys.argv[2] == {evil!r} == os.environ['KEJU_INSTANCE_ID']\n"
            "assert not [name for name in os.environ if 'KEY' in name]\n"
        )
        ran = keju("run", "-c", "arms.json", "--run-id", "r", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["benchmarks"][1]["metrics"]["state"]["value"] == 1
    assert not list(Path().rglob("OUCH"))


@pytest.mark.usefixtures("_a_sandbox")
def test_a_check_that_does_not_end_is_no_grade(keju: Keju) -> None:
    saves = rows()[NUMBER : NUMBER + 2]
    for row in saves:
        row["verify"] |= {"timeout_seconds": 0.3}
    with FaultyEndpoint(Plan(answers=act)) as served:
        write(served, saves)
        Path("exam/check.py").write_text("import time\ntime.sleep(60)\n")
        ran = keju("run", "-c", "arms.json", "--run-id", "r", "--json")
    assert ran.json["benchmarks"][1]["outcomes"]["ungraded"] == 2
    assert "state" not in ran.json["benchmarks"][1]["metrics"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"expect": {"tool": ["a"]}}, "unknown key 'expect.tool' (did you mean 'tools'?)"),
    ({"expect": {"tools": [1]}}, "'expect.tools' should be a list of names of tools"),
    ({"expect": {}}, "'expect' asserts nothing"),
    ({"expect": ["a"]}, "'expect' should be a mapping"),
    ({"expect": {"tools": ["a"], "not": ["a"]}}, "'a' is in 'expect.not' and in 'expect.tools'"),
    ({"expect": {"tools": ["a", "b"], "max_calls": 1}}, "need 2 calls"),
    ({"expect": {"max_calls": -1}}, "'expect.max_calls' should be a whole number"),
    ({"expect": {"arguments": {"a": 7}}}, "'expect.arguments' should be a mapping from tools"),
    ({"expect": {"schema": {"a": {"type": "nothing"}}}}, "is not a JSON Schema"),
    ({"expect": {"schema": {"a": {"$ref": "http://127.0.0.1:9/x"}}}}, "is not a JSON Schema"),
    ({"expect": {"schema": {"a": {"pattern": "(a)\\1"}}}}, "is not a JSON Schema"),
    ({"expect": {"tools": ["a"], "score": "state"}}, "'expect.score' names 'state'"),
    ({"expect": {"tools": ["a"]}, "expected_tools": ["a"]}, "keep one of them"),
    ({"verify": {"comand": "x"}}, "'verify' should be a mapping with a 'command'"),
    ({"verify": {"command": "a && b"}}, "'&&' would be an argument"),
    ({"verify": {"command": "a 'b"}}, "cannot be split into words"),
    ({"verify": {"command": "a", "timeout_seconds": 0}}, "should be more than 0"),
]


@pytest.mark.parametrize(("fields", "problem"), WRONG)
def test_assertions_without_a_meaning_are_refused(
    keju: Keju, fields: dict[str, Any], problem: str
) -> None:
    row = {"question": "Q?", "answer": "A"} | fields
    Path("exam.jsonl").write_text(json.dumps(row))
    ran = keju("show", "exam.jsonl")
    assert ran.code == 2
    assert problem in ran.err, ran.err
    assert "exam.jsonl, row 1" in ran.err


def test_a_run_that_cannot_check_them_is_refused(keju: Keju) -> None:
    with FaultyEndpoint(Plan(answers=act)) as served:
        write(served, rows()[:1])
        arms = [{"name": "tools", "servers": [SERVER]}]
        write(served, [rows()[0] | {"expect": {"tools": ["lokup"]}}], arms=arms)
        ran = keju("run", "-c", "arms.json")
        assert ran.code == 2
        assert "names the tool 'lokup', which no arm has (did you mean 'lookup'?)" in ran.err
        write(served, rows()[:1], arms=[{"name": "baseline"}])
        assert "no arm has tools" in keju("run", "-c", "arms.json").err
        shared = {key: SERVER[key] for key in ("name", "command", "args")}
        write(served, rows()[-1:], arms=[{"name": "tools", "servers": [shared]}])
        ran = keju("run", "-c", "arms.json")
        assert ran.code == 2
        assert "set scope: sample" in ran.err
        lost = rows()[-1] | {"verify": {"command": "python lost.py {workdir}"}}
        write(served, [lost], arms=arms)
        ran = keju("run", "-c", "arms.json")
        assert ran.code == 2
        assert "'verify' runs lost.py, which is not in" in ran.err
        assert not served.stats.requests


def test_a_csv_file_has_expected_tools(keju: Keju) -> None:
    table = 'question,answer,expected_tools\nWhich code has item 3?,K03736,"ping, lookup"\n'
    Path("q.csv").write_text(table)
    arms = [{"name": "tools", "servers": [SERVER | {"scope": "run"}]}]
    with FaultyEndpoint(Plan(answers=act)) as served:
        Path("arms.json").write_text(
            json.dumps({"model": "m", "api_url": served.url, "datasets": ["q.csv"], "arms": arms})
        )
        ran = keju("run", "-c", "arms.json", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["benchmarks"][0]["metrics"]["expect_tools"]["value"] == 1


def test_numbers_of_a_yaml_file_are_numbers(keju: Keju) -> None:
    Path("q.yaml").write_text(
        "- question: Which code has item 3?\n  answer: 0123\n"
        "  expect: {arguments: {lookup: {item: 3}}, max_calls: 2, score: all}\n"
    )
    shown = keju("show", "q.yaml", "--json").json
    assert shown["target"] == "0123"
    expect = shown["metadata"]["expect"]
    assert expect["arguments"] == {"lookup": {"item": 3}}
    assert expect["score"] == ["answer", "arguments", "max_calls"]
