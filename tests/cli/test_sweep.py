"""``arms: each tool left out``: ten tools, of which three help by known amounts."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from keju.config import TaskConfig
from keju.config.arms import ServerSettings
from keju.config.sweep import sweep_arms
from keju.errors import ConfigError
from keju.reporting.summary import render_summary
from keju.results.schema import from_document
from keju.viewer.app import make_app
from keju.viewer.run_index import RunIndex
from tests.cli.conftest import Keju, Ran
from tests.support import ten_tools
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan
from tests.support.tools import calling, results_in

SERVER: dict[str, Any] = {
    "name": "co",
    "command": sys.executable,
    "args": ["-I", str(Path(ten_tools.__file__)), "--folder", "{workdir}"],
}
CODES, WEIGHTS, SAVES, GUESSES = 24, 12, 12, 12
"""Questions that need `lookup`, `convert` or `save`, and questions that need no tool."""
SMALL_SET = CODES + WEIGHTS + SAVES + GUESSES


def questions(times: int = 1) -> list[dict[str, Any]]:
    """Questions of three kinds; each tool helps in a known number of them."""
    kinds: list[tuple[str, int, str, Callable[[int], str]]] = [
        ("code", CODES, "Which code has item {}?", ten_tools.code_of),
        ("weight", WEIGHTS, "How many ounces are {} pounds?", lambda n: str(n * 16)),
        ("guess", GUESSES, "What is {} plus 0?", str),
    ]
    rows: list[dict[str, Any]] = [
        {"id": f"{kind}{n}", "question": text.format(n), "answer": answer(n), "category": kind}
        for kind, count, text, answer in kinds
        for n in range(1, count * times + 1)
    ]
    # Without an answer, the assertion is the score.
    return rows + [
        {"id": f"s{n}", "question": f"Save {n} as n.", "category": "save"}
        | {"expect": {"tools": ["save"]}}
        for n in range(1, SAVES * times + 1)
    ]


def act(request: EndpointRequest) -> Any:
    """Use the tool that a question needs, if it is offered; also call `ping`, which is no help."""
    names = {t["function"]["name"] for t in request.body.get("tools", [])}
    results = results_in(request)
    words = request.text.replace("?", " ").split()
    number = int(next(filter(str.isdigit, words), "0"))
    if "plus 0" in request.text:
        return f"ANSWER: {number}"
    needed: tuple[str, Any] = ("co__convert", {"pounds": number})
    if "code" in request.text:
        needed = "co__lookup", {"item": number}
    if "Save" in request.text:
        needed = "co__save", {"name": "n", "value": str(number)}
    if needed[0] not in names:
        return "ANSWER: I do not know"
    if results:
        return f"ANSWER: {results[-1]}"
    return calling(*([("co__ping", {})] if "co__ping" in names else []), needed)


def write(served: FaultyEndpoint, content: list[dict[str, Any]], **more: Any) -> None:
    Path("exam").mkdir(exist_ok=True)
    Path("exam/questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in content))
    settings: dict[str, Any] = {"model": "m", "api_url": served.url, "datasets": ["./exam"]}
    settings |= {"arms": "each tool left out", "servers": [SERVER]}
    Path("sweep.json").write_text(json.dumps(settings | more))


@pytest.fixture(scope="module")
def served() -> Iterator[FaultyEndpoint]:
    with FaultyEndpoint(Plan(answers=act)) as running:
        yield running


def bonett_price(won: int, lost: int, n: int) -> tuple[float, float]:
    """The interval, written down a second time."""
    z, first, second = 1.959963984540054, (won + 1) / (n + 2), (lost + 1) / (n + 2)
    half = z * math.sqrt((first + second - (first - second) ** 2) / (n + 2))
    return max(-1.0, first - second - half), min(1.0, first - second + half)


def in_json(keju: Keju, *flags: str) -> tuple[Ran, dict[str, Any], dict[str, Any]]:
    """Run the sweep; return its table and its rows by tool."""
    ran = keju("run", "-c", "sweep.json", "--run-id", "r", "--json", *flags)
    assert ran.code == 0, ran.err
    (sweep,) = ran.json["sweeps"]
    return ran, sweep, {row["tool"]: row for row in sweep["rows"]}


def test_each_tool_left_out_gives_its_known_effect(keju: Keju, served: FaultyEndpoint) -> None:
    write(served, questions())
    ran, sweep, rows = in_json(keju)
    _, repeated, _ = in_json(keju)
    assert repeated == sweep
    assert (sweep["base"], sweep["questions"], len(rows)) == ("all-tools", SMALL_SET, 10)
    lost = {"lookup": CODES, "convert": WEIGHTS, "save": SAVES}
    for tool, row in rows.items():
        count = lost.get(tool, 0)
        assert row["difference"] == pytest.approx(-count / SMALL_SET), tool
        assert row["ci95"] == pytest.approx(bonett_price(0, count, SMALL_SET)), tool
        # Holm over ten tools: the smallest of the exact p-values 2 / 2^n counts ten times
        assert row["verdict"] == ("earns" if count else "small"), tool
        assert row["n"] == SMALL_SET, tool
    assert rows["lookup"]["p_holm"] == pytest.approx(10 * 2 / 2**CODES)
    assert rows["convert"]["p_holm"] == pytest.approx(9 * 2 / 2**WEIGHTS)
    calls = {tool: row.get("calls", 0) for tool, row in rows.items()}
    assert calls == dict.fromkeys(ten_tools.USELESS, 0) | lost | {"ping": SMALL_SET - GUESSES}
    tokens = rows["lookup"]["tokens"]
    assert sweep["sentence"].startswith(
        f"`lookup` earns its {tokens} tokens: -40.0 points without it; "
    )
    assert "nothing is lost without `list_labels`, `get_weather`" in sweep["sentence"]
    # two requests for questions that need a tool, one for the others
    requests = (2 * (SMALL_SET - GUESSES) + GUESSES) / SMALL_SET
    assert rows["lookup"]["tokens_per_question"] == pytest.approx(tokens * requests, abs=0.05)
    assert "11 arms × 60 questions" in ran.err


def test_tables_and_sentence_are_in_every_display(keju: Keju, served: FaultyEndpoint) -> None:
    write(served, questions())
    assert keju("run", "-c", "sweep.json", "--run-id", "r", "-q").code == 0
    results = from_document(json.loads(Path("runs/r/results.json").read_text("utf-8")))
    for width in (80, 130):
        screen = io.StringIO()
        render_summary(results, file=screen, width=width)
        lines = [line.strip() for line in screen.getvalue().splitlines() if line.strip()]
        assert lines[0].startswith("`lookup` earns its"), width
        assert max(map(len, screen.getvalue().splitlines())) <= width
        (row,) = (line for line in lines if line.startswith("list_labels "))
        assert "+0.0" in row
        assert "nothing lost without it" in row
    assert "p (Holm)" in keju("score", "r").out
    assert "`lookup` 值得它的" in keju("score", "r", "--language", "zh").out
    report = Path("runs/r/report.html").read_text("utf-8")
    page = (
        TestClient(make_app(RunIndex(Path("runs"))), base_url="http://127.0.0.1")
        .get("/runs/r")
        .text
    )
    for text in (report, page):
        assert "earns its tokens" in text
        assert "Which tool earns its tokens?" in text
        assert "nothing is lost without `list_labels`" in text
    assert "去掉后 -40.0 个百分点" in report


def test_each_tool_alone_is_compared_with_no_tools(keju: Keju, served: FaultyEndpoint) -> None:
    write(served, questions(), arms="each tool alone")
    _, sweep, rows = in_json(keju)
    assert (sweep["base"], len(rows)) == ("no-tools", 10)
    assert rows["lookup"]["ci95"] == pytest.approx(bonett_price(CODES, 0, SMALL_SET))
    assert [rows[tool]["verdict"] for tool in ("lookup", "save", "describe")] == [
        "earns",
        "earns",
        "small",
    ]
    assert "`lookup` alone earns its" in sweep["sentence"]


def sequential_e_value(wins: int, losses: int) -> float:
    """The evidence of `keju.stats.sequential` with its prior of 5, written down a second time."""

    def beta(a: int, b: int) -> float:
        return math.factorial(a - 1) * math.factorial(b - 1) / math.factorial(a + b - 1)

    return 2.0 ** (wins + losses) * beta(wins + 5, losses + 5) / beta(5, 5)


def test_only_open_arms_are_asked_more(keju: Keju, served: FaultyEndpoint) -> None:
    write(served, questions(times=4), budget={"requests": 700})
    stopped = keju("run", "-c", "sweep.json", "--run-id", "r", "--json")
    assert stopped.code == 4, stopped.err
    write(served, questions(times=4))
    ran, sweep, rows = in_json(keju)
    stops = {entry["arm"]: entry["stopping"] for entry in ran.json["benchmarks"]}
    asked = {arm: stop["asked"] for arm, stop in stops.items()}
    # 20 of the first 50 questions need `lookup`, and 20 of the first 100 need `convert`, or `save`
    expected = dict.fromkeys((f"without-{tool}" for tool in ten_tools.USELESS), 150)
    expected |= {"without-lookup": 50, "without-convert": 100, "without-save": 100}
    assert asked == expected | {"all-tools": 150}
    p = 1 / sequential_e_value(0, 20)
    assert stops["without-lookup"]["p"] == pytest.approx(p)
    assert rows["lookup"]["p_holm"] == pytest.approx(10 * p)
    n, t = 152, 150  # with one question won and one lost
    rho2 = (-2 * math.log(0.05) + math.log(-2 * math.log(0.05) + 1)) / 1000
    factor = math.sqrt(2 * (n * rho2 + 1) / (n * rho2) * math.log(math.sqrt(n * rho2 + 1) / 0.05))
    half = factor * math.sqrt(n / (n - 1) * 2) / n
    assert rows["ping"]["ci95"] == pytest.approx((-half, half))
    assert rows["ping"]["n"] == t
    assert sweep["questions"] == 4 * SMALL_SET
    # A run in one go gives the same.
    write(served, questions(times=4))
    whole = keju("run", "-c", "sweep.json", "--run-id", "whole", "--json")
    drop = {"seconds_p50", "seconds"}
    tables = [
        [{key: row[key] for key in row if key not in drop} for row in document["sweeps"][0]["rows"]]
        for document in (ran.json, whole.json)
    ]
    assert tables[0] == tables[1]


@pytest.mark.usefixtures("_a_sandbox")
def test_a_state_is_never_right_without_the_tool_that_changes_it(
    keju: Keju, served: FaultyEndpoint
) -> None:
    """Each server has one tool, so an arm may have no server with a folder."""
    saver = SERVER | {"scope": "sample", "tools": {"allow": ["save"]}}
    pinger = SERVER | {"name": "other", "tools": {"allow": ["ping"]}}
    check = {"verify": {"command": "grep -q . {workdir}/n.txt"}}
    rows = [row | check for row in questions() if row["category"] == "save"]
    write(served, rows, servers=[saver, pinger])
    ran, _, by_tool = in_json(keju)
    states = {e["arm"]: e["metrics"]["state"]["value"] for e in ran.json["benchmarks"]}
    assert states == {"all-tools": 1, "without-save": 0, "without-ping": 1}
    assert by_tool["save"]["ci95"] == pytest.approx(bonett_price(0, SAVES, SAVES))
    (pair,) = (p for p in ran.json["comparisons"] if p["arm"] == "without-save")
    (state,) = (change for change in pair["assertions"] if change["name"] == "state")
    assert state["ci95"] == pytest.approx(bonett_price(0, SAVES, SAVES))


def test_a_dry_run_announces_the_cost_and_asks_nothing(keju: Keju) -> None:
    with FaultyEndpoint(Plan(answers=act)) as endpoint:
        write(endpoint, questions(), price={"input": 1, "output": 2}, agent={"max_iterations": 3})
        ran = keju("run", "-c", "sweep.json", "--dry-run", "--json")
        shown = keju("run", "-c", "sweep.json", "--dry-run")
        assert endpoint.stats.requests == 0
    cost = ran.json["sweep"]
    assert (cost["tools"], cost["arms"], cost["questions"], cost["episodes"]) == (10, 11, 60, 660)
    # each definition is in all arms but one; every question is counted with one request
    prompts = ran.json["prompt_tokens_estimate"]
    definitions = cost["definition_tokens_estimate"]
    assert cost["input_tokens_estimate"] == prompts + SMALL_SET * 10 * definitions
    assert cost["input_cost_estimate"] == pytest.approx(
        cost["input_tokens_estimate"] / 1e6, abs=1e-4
    )
    assert cost["most_requests"] == 4
    assert "11 arms × 60 questions, 660 episodes at most" in shown.err
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {"servers": [SERVER | {"tools": {"allow": ["ping"]}}]},
            "needs at least 2 tools, and there is 1",
        ),
        ({"servers": [SERVER, SERVER | {"name": "again"}]}, "tools with different names"),
        ({"arms": "each tool left uot"}, "did you mean 'each tool left out'?"),
        ({"servers": []}, "needs a list of MCP servers under 'servers'"),
        ({"arms": [{"name": "a"}]}, "'servers' belongs to 'arms: each tool left out'"),
        ({"mcp_server": SERVER}, "not both"),
        ({"shard": "1/2"}, "shard asks a part of it"),
        ({"until_ci": 0.05}, "do not work with several arms"),
    ],
)
def test_what_has_no_meaning_is_refused(
    keju: Keju, served: FaultyEndpoint, change: dict[str, Any], line: str
) -> None:
    write(served, questions(), **change)
    before = served.stats.requests
    ran = keju("run", "-c", "sweep.json")
    assert (ran.code, served.stats.requests) == (2, before)
    assert line in " ".join(ran.err.split())
    assert "Traceback" not in ran.err


def test_the_number_of_tools_is_limited() -> None:
    server = ServerSettings(name="s", command="x")
    names = [f"tool{n}" for n in range(41)]
    assert len(sweep_arms("left_out", [server], [names[:40]])) == 41
    with pytest.raises(ConfigError, match="at most 40 tools, and there are 41"):
        sweep_arms("left_out", [server], [names])
    with pytest.raises(ConfigError, match="tools with different names"):
        sweep_arms("alone", [server], [["a/b", "a:b"]])
    other = server.model_copy(update={"name": "other"})
    arms = sweep_arms("left_out", [server, other], [["one"], ["two", "three"]])
    offered = [[s.tools.allow for s in arm.servers] for arm in arms]
    assert offered == [[None, None], [None], [None, ["three"]], [None, ["two"]]]


def test_arms_of_one_part_are_no_comparison_tool_by_tool(
    keju: Keju, served: FaultyEndpoint
) -> None:
    write(served, questions())
    assert "needs all of them" in keju("run", "-c", "sweep.json", "-M").err
    with pytest.raises(ConfigError, match="for the files of keju run"):
        TaskConfig(model="m", datasets=["./exam"], arms="each tool left out")  # type: ignore[arg-type]
