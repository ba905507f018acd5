"""Files that authors of MCP servers already have, and the first file for a new server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Keju
from tests.conftest import REPOSITORY
from tests.support import ten_tools

CALCULATOR = {
    "name": "calc",
    "command": sys.executable,
    "args": [str(REPOSITORY / "examples" / "mcp" / "calculator.py")],
}
EVALUATION = """\
<?xml version="1.0" encoding="UTF-8"?>
<evaluation>
  <qa_pair>
    <question>What is ((2 + 3) * 7)?</question>
    <answer>35</answer>
  </qa_pair>
  <qa_pair>
    <question>What is ((4 - 9) * 3), written &lt;plainly&gt;?</question>
    <answer>-15</answer>
  </qa_pair>
</evaluation>
"""
PROMPTFOO = """\
prompts: ["Which code has item {{ n }}?"]
tests:
  - vars: {n: 3}
    assert:
      - {type: equals, value: K03736}
      - {type: trajectory:tool-used, value: [lookup, ping]}
      - {type: not-trajectory:tool-used, value: list_labels}
      - {type: trajectory:tool-args-match, value: {name: lookup, args: {item: 3}}}
      - {type: trajectory:tool-sequence, value: {steps: [ping, lookup]}}
      - {type: trajectory:step-count, value: {type: tool, max: 3}}
"""


def test_an_evaluation_of_mcp_builder_runs(keju: Keju) -> None:
    """The scripted model can use a calculator, and cannot calculate."""
    Path("evaluation.xml").write_text(EVALUATION)
    arms = [{"name": "baseline"}, {"name": "calculator", "servers": [CALCULATOR]}]
    settings = {"model": "scripted", "datasets": ["./evaluation.xml"], "arms": arms}
    Path("arms.json").write_text(json.dumps(settings))
    ran = keju("run", "-c", "arms.json", "--json")
    assert ran.code == 0, ran.err
    scores = [entry["metrics"]["accuracy"]["value"] for entry in ran.json["benchmarks"]]
    assert scores == [0, 1]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('<!DOCTYPE a [<!ENTITY a "b">]><evaluation/>', "a document type (DOCTYPE)"),
        ("<evaluation><qa_pair><quest/></qa_pair></evaluation>", "evaluation/qa_pair/quest"),
        ("<evaluation><qa_pair></evaluation>", "is not XML"),
        ("<evaluation><qa_pair><answer>1</answer></qa_pair></evaluation>", "'question' is missing"),
        (
            "<evaluation><qa_pair><question>a</question><question>b</question></qa_pair>"
            "</evaluation>",
            "has two elements 'question'",
        ),
        ("<evaluation></evaluation>", "holds no rows"),
    ],
)
def test_another_form_is_refused_in_one_line(keju: Keju, content: str, problem: str) -> None:
    Path("evaluation.xml").write_text(content)
    ran = keju("show", "./evaluation.xml")
    assert ran.code == 2
    assert problem in ran.err, ran.err
    assert ran.err.count("\n") == 1


def test_tests_of_promptfoo_are_questions(keju: Keju) -> None:
    Path("promptfooconfig.yaml").write_text(PROMPTFOO)
    shown = keju("show", "promptfooconfig.yaml", "--json").json
    assert shown["input"][0]["content"].startswith("Which code has item 3?")
    assert shown["target"] == "K03736"
    assert shown["metadata"]["expect"] == {
        "tools": ["lookup", "ping"],
        "not": ["list_labels"],
        "arguments": {"lookup": {"item": 3}},
        "order": ["ping", "lookup"],
        "max_calls": 3,
        "score": ["answer", "tools", "not", "order", "arguments", "max_calls"],
    }
    for old, new, problem in (
        ("type: equals", "type: llm-rubric", "test 1: the assertion 'llm-rubric' has no meaning"),
        ("{n: 3}", "{n: [3, 4]}", "the prompt needs the variable 'n'"),
        ("{n: 3}", "{n: 3}\n    threshold: 0.5", "'threshold' of promptfoo has no meaning"),
        ("max: 3", "min: 3", "the value of 'trajectory:step-count' has no meaning"),
    ):
        Path("promptfooconfig.yaml").write_text(PROMPTFOO.replace(old, new))
        ran = keju("show", "promptfooconfig.yaml")
        assert ran.code == 2
        assert problem in ran.err, ran.err


def test_init_mcp_writes_a_first_test_of_a_server(keju: Keju) -> None:
    command = f"{sys.executable} -I {ten_tools.__file__}"
    ran = keju("init", "mcp", command, "-o", "tools/mcp.yaml", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["tools"][:3] == ["lookup", "convert", "save"]
    settings = yaml.safe_load(Path("tools/mcp.yaml").read_text())
    (server,) = settings["arms"][1]["servers"]
    assert (server["name"], server["args"]) == ("ten_tools", ["-I", ten_tools.__file__])
    questions = yaml.safe_load(Path("tools/mcp-questions.yaml").read_text())
    assert [q["expect"]["tools"] for q in questions][:2] == [["lookup"], ["convert"]]
    assert keju("mcp", "check", "-c", "tools/mcp.yaml").code == 0
    again = keju("init", "mcp", command, "-o", "tools/mcp.yaml")
    assert again.code == 2
    assert "exists" in again.err
    lost = keju("init", "mcp", "no-such-server", "-o", "other.yaml")
    assert lost.code == 2
    assert "no-such-server" in lost.err
    assert not Path("other.yaml").exists()
