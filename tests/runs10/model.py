"""The model of the runs of 1.0: the model of all recorded runs, which can also call tools."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from tests.support.mcp_server import compute
from tests.support.recorded_replies import KNOCK, reply
from tests.support.replies import EndpointRequest, draw
from tests.support.tools import calling, results_in

# `((-5 + 9 * 4 - 0) * (4 + -7)) =`
_EXPRESSION = re.compile(r"(\(\(.*\)\)) =")
# `Which gene of the set 20 has the label 21?`
_LABEL = re.compile(r"label (\d+)\?")
# `(B) Gene K21`
_OPTION = re.compile(r"\(([A-E])\) Gene K(\d+)")


def answer(asked: EndpointRequest) -> str | dict[str, Any]:
    """Reply to a request, with a tool call where tools are offered and the question needs them."""
    name = str(asked.body.get("model"))
    if asked.text == KNOCK or name.startswith("judge"):
        return reply(asked)
    question = _question(asked)
    if asked.route == "chat" and asked.body.get("tools"):
        if _LABEL.search(question):
            return _analyse(asked, question)
        if _EXPRESSION.search(question):
            return _calculate(asked, question)
    expression = _EXPRESSION.findall(question)
    if expression and "tools" not in asked.body:
        right = draw(question, name, asked.body.get("seed")) < 0.5
        return f"So the answer is {compute(expression[-1]) if right else 1}."
    if "- Yes" in question:
        return f"So the answer is {'Yes' if draw(question, name) < 0.5 else 'No'}."
    if name == "tiny":
        return reply(asked)
    if draw(question, name) < 0.4:
        return "The answer is (B)."
    return reply(replace(asked, body=asked.body | {"seed": name}))


def _question(asked: EndpointRequest) -> str:
    """The first message of the user, or the text to continue."""
    if asked.route == "completion":
        return asked.text
    return str(next(m["content"] for m in asked.body["messages"] if m["role"] == "user"))


def _calculate(asked: EndpointRequest, question: str) -> str | dict[str, Any]:
    """Compute the last expression of a question with the tools.

    A model named `slow` falls asleep in some questions and never stops computing in others.
    """
    tools = {
        t["function"]["name"].rpartition("__")[2]: t["function"]["name"]
        for t in asked.body["tools"]
    }
    results, expression = results_in(asked), _EXPRESSION.findall(question)[-1]
    if asked.body.get("model") == "slow":
        chance = draw(expression)
        if chance < 0.25 and not results:
            return calling((tools["sleep"], {"n": 2}), text="I must rest first.")
        if chance > 0.4 and asked.body.get("tool_choice") != "none":
            return calling(
                (tools["calculate"], {"expression": "1 + 1"}), first_number=len(results) + 1
            )
    if results:
        return f"It computes. So the answer is {results[-1].strip()}."
    if "python" in tools:
        return calling((tools["python"], {"code": f"value = {expression}\nvalue"}))
    return calling((tools["calculate"], {"expression": expression}))


def _analyse(asked: EndpointRequest, question: str) -> str | dict[str, Any]:
    """Look up a gene in the table of a capsule and submit the option."""
    results = results_in(asked)
    label = int(_LABEL.findall(question)[-1])
    code = f"import csv\nnext(r['gene'] for r in csv.DictReader(open('genes.csv')) if r['label'] == '{label}')"
    turns = [calling(("list_workdir", {})), calling(("edit_cell", {"contents": code}))]
    if len(results) < len(turns):
        return turns[len(results)]
    gene = re.findall(r"K(\d+)", results[-1])[-1]
    options = {number: letter for letter, number in _OPTION.findall(question)}
    return calling(("submit_answer", {"answer": options.get(gene, "A")}))
