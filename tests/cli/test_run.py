"""``keju run``: mcpbr's page, arms side by side, and servers that break down during a run."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju, Ran
from tests.solvers.mcp.conftest import PROGRAM
from tests.support import anthropic_server
from tests.support.anthropic_server import AnthropicServer, tool_use
from tests.support.calculations import NOT_KNOWN, SUBSET, calculates, expression_in
from tests.support.endpoint import FaultyEndpoint
from tests.support.mcp_server import compute
from tests.support.processes import environment
from tests.support.replies import EndpointRequest, Plan
from tests.support.tools import calling, results_in

CALCULATOR = {"name": "calc", "command": sys.executable, "args": ["-I", str(PROGRAM)]}


@contextmanager
def serve(answers: Callable[[EndpointRequest], Any], **plan: Any) -> Iterator[FaultyEndpoint]:
    with FaultyEndpoint(Plan(answers=answers, **plan)) as running:
        yield running


def write(folder: Path, served: FaultyEndpoint, **content: Any) -> str:
    """A config file in the current folder for the model at an endpoint."""
    base = {"benchmark": "bigbench-hard", "model": "m", "api_url": served.url}
    path = folder / "config.yaml"
    path.write_text(json.dumps(base | content), "utf-8")
    return str(path)


def arms(*names: str) -> list[dict[str, Any]]:
    """A baseline, the calculator and its placebo, as far as they are named."""
    arms_by_name: dict[str, dict[str, Any]] = {
        "baseline": {"name": "baseline"},
        "calc": {"name": "calc", "servers": [CALCULATOR | {"tools": {"allow": ["calculate"]}}]},
        "placebo": {"name": "placebo", "servers": [CALCULATOR], "stub_tools": True},
    }
    return [arms_by_name[name] for name in names]


# --- the page -----------------------------------------------------------------------------------


@pytest.fixture
def npx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called npx that starts the server of the tests, whatever package it is given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "npx"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {PROGRAM} -- "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return program


def commands_of(page: str) -> list[list[str]]:
    """Every command line of a page, for Keju."""
    blocks = re.findall(r"```bash\n(.*?)```", page.replace("> ", ""), re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    command_lines = [shlex.split(line) for line in lines if line.startswith("mcpbr run")]
    return [words[1:] for words in command_lines]


def test_every_command_of_mcpbr_s_page(
    keju: Keju, seeds: Path, data_dir: Path, npx: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (seeds / "mcpbr-bigbench-hard.md").read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    Path("config.yaml").write_text(text, "utf-8")
    commands = commands_of(page)
    assert len(commands) == 7

    def answer(body: dict[str, Any], number: int) -> Any:
        """Calls a tool where it has any, once, and then answers."""
        if "tools" in body and len(body["messages"]) == 1:
            return [tool_use("mcpbr__echo", {"text": "x"}, f"toolu_{number}")]
        return "Thinking.\nTrue"

    ran: list[Ran] = []
    with AnthropicServer(anthropic_server.AnthropicPlan(answer)) as served:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", served.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", anthropic_server.KEY)
        monkeypatch.setenv("KEJU_DATA_DIR", str(data_dir))
        for words in commands:
            ran.append(keju(*words, "--json") if "-v" not in words else keju(*words))
    for words, outcome in zip(commands, ran, strict=True):
        assert outcome.code == 0, (words, outcome.err)
    sizes = [r.json["benchmarks"][0]["n"] for r in ran if r.out.startswith("{")]
    assert sizes == [20, 10, 20, 10, 10, 2]
    assert {entry["arm"] for entry in ran[0].json["benchmarks"]} == {"baseline", "mcp"}
    filtered = {subset["name"] for subset in ran[3].json["benchmarks"][0]["subsets"]}
    assert filtered == {"boolean_expressions", "date_understanding"}
    assert "spread over 3 subsets in proportion" in ran[0].err
    assert "bbh_boolean_expressions_0  baseline: " in ran[5].out
    document = json.loads(Path("results.json").read_text("utf-8"))
    assert list(document) == ["metadata", "summary", "tasks"]
    assert list(document["summary"]) == ["baseline", "mcp", "paired"]
    assert document["metadata"]["mcp_server"]["command"] == "npx"
    assert len(document["tasks"]) == 100
    first_task = document["tasks"][0]
    assert first_task["instance_id"] == "bbh_boolean_expressions_0"
    with_tools = first_task["mcp"]
    assert (with_tools["agent_answer"], with_tools["extracted"]) == ("Thinking.\nTrue", "true")
    assert with_tools["resolved"] is (with_tools["target"] == "True")
    assert (with_tools["tool_calls"], first_task["baseline"]["tool_calls"]) == (1, 0)
    assert ran[0].json["model"] == document["metadata"]["model"] == "anthropic:claude-sonnet-5-5"
    # Every arm gets the same prompt, and only one of them gets tools.
    exam_bodies = [
        body for body in served.bodies if "Solve the following" in str(body["messages"][0])
    ]
    first_turns = [body for body in exam_bodies if len(body["messages"]) == 1]
    prompts = Counter(json.dumps(body["messages"]) for body in first_turns if "tools" in body)
    baseline_prompts = Counter(
        json.dumps(body["messages"]) for body in first_turns if "tools" not in body
    )
    assert prompts == baseline_prompts
    assert len(prompts) >= 100


def test_a_local_model_needs_nothing_of_the_file_s_endpoint(keju: Keju) -> None:
    model = {"name": "${NAME}", "api_url": "http://${HOST}/v1", "api_key_var": "OWN_KEY"}
    content = {"benchmark": "demo", "model": model, "provider": "other"}
    Path("config.yaml").write_text(json.dumps(content))
    ran = keju("run", "-c", "config.yaml", "--model", "scripted", "-n", "2", "--json")
    assert ran.code == 0, ran.err
    assert "api_url, api_key of config.yaml left out: no effect on model 'scripted'\n" in ran.err
    refusal = keju("run", "-c", "config.yaml", "-n", "2")
    assert (refusal.code, "variable NAME is not set" in refusal.err) == (2, True)
    model_flags = ("--model", "scripted", "--api-url", "http://h/v1")
    refusal = keju("run", "-c", "config.yaml", "-n", "2", *model_flags)
    assert (refusal.code, "api_url has no effect on model" in refusal.err) == (2, True)


def test_another_benchmark_leaves_out_the_settings_of_the_file_s_own(keju: Keju) -> None:
    for key, value in {"datasets": ["demo"], "benchmark": "demo"}.items():
        content = {key: value, "dataset_args": {"demo": {"size": 2}}, "model": "scripted"}
        Path("config.yaml").write_text(json.dumps(content))
        ran = keju("run", "-c", "config.yaml", "--benchmark", "fresh_bbh", "-n", "2", "--json")
        assert ran.code == 0, ran.err
        assert [entry["name"] for entry in ran.json["benchmarks"]] == ["fresh_bbh"]
        assert "left out, since another benchmark is run: dataset_args.demo\n" in ran.err
    both_keys = {"datasets": ["demo"], "benchmark": "demo", "model": "scripted"}
    Path("config.yaml").write_text(json.dumps(both_keys))
    assert "'benchmark' is given twice" in keju("run", "-c", "config.yaml").err


def test_tools_that_a_model_may_not_see_are_told_before_the_first_question(keju: Keju) -> None:
    with serve(calculates) as served:
        content = {"benchmark": "demo", "arms": arms("baseline", "calc", "placebo")}
        file = write(Path(), served, **content)
        ran = keju("run", "-c", file, "-n", "2")
        texts = keju("run", "-c", file, "-n", "2", "-s", "agent.protocol=text", "--json")
    warning = "warning: the endpoint counts as many tokens with tools as without"
    before_warning, _, after_warning = ran.err.partition(warning)
    assert "2/6" not in before_warning
    assert "-s agent.protocol=text (in a file: agent: {protocol: text})" in after_warning
    assert warning not in after_warning
    assert warning not in texts.err
    assert texts.json["settings"]["agent"]["protocol"] == "text"


# --- arms side by side --------------------------------------------------------------------------


def test_a_calculator_helps_and_its_placebo_does_not(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    with serve(calculates) as served:
        file = write(
            tmp_path,
            served,
            arms=arms("baseline", "calc", "placebo"),
            filter_category=[SUBSET],
            data_dir=str(data_dir),
        )
        ran = keju("run", "-c", file, "-n", "12", "-o", "out.json", "--json")
    assert ran.code == 0, ran.err
    by_arm = {entry["arm"]: entry["outcomes"] for entry in ran.json["benchmarks"]}
    assert {arm: counts["correct"] for arm, counts in by_arm.items()} == {
        "baseline": 0,
        "calc": 12,
        "placebo": 0,
    }
    pairs = {(pair["base"], pair["arm"]): pair for pair in ran.json["comparisons"]}
    helped = pairs["baseline", "calc"]
    assert (helped["arm_only"], helped["base_only"], helped["difference"]) == (12, 0, 1.0)
    assert helped["p"] == pytest.approx(2 * 0.5**12)  # exact McNemar: twelve of twelve
    assert (pairs["baseline", "placebo"]["difference"], pairs["baseline", "placebo"]["p"]) == (0, 1)
    document = json.loads(Path("out.json").read_text())
    summary = document["summary"]
    assert (summary["calc"]["resolved"], summary["calc"]["rate"]) == (12, 1.0)
    tool_use = summary["calc"]["tool_stats"]
    assert (tool_use["calls"], tool_use["coverage"], tool_use["with_calls"]) == (12, 1.0, 12)
    assert tool_use["tools"]["calc__calculate"]["kinds"] == {"ok": 12}
    assert tool_use["schema_tokens"] > 0
    placebo = summary["placebo"]["tool_stats"]
    assert placebo["tools"]["calc__calculate"]["kinds"] == {"tool_error": 12}
    assert placebo["coverage"] == 1 / 16
    stored = {entry["arm"]: entry.get("tools") for entry in ran.json["benchmarks"]}
    assert (stored["baseline"], stored["calc"]["calls"]) == (None, 12)
    rescored = keju("score", next(Path("runs").iterdir()).name, "--json").json
    assert {entry["arm"]: entry.get("tools") for entry in rescored["benchmarks"]} == stored
    task = document["tasks"][0]
    assert task["calc"]["tool_usage"] == {"calc__calculate": 1}
    assert (task["calc"]["iterations"], task["calc"]["stop_reason"]) == (2, "final")
    assert task["placebo"]["tool_failures"] == {"calc__calculate": 1}
    manifest = json.loads(next(Path("runs").glob("*/manifest.json")).read_text())
    assert manifest["arms"]["calc"]["sources"]["calc"]["server"] == "support"
    assert manifest["sessions"][-1]["tools"]["calc"]["calc"]["restarts"] == 0


def half_calculates(request: EndpointRequest) -> Any:
    """Alone it knows multiples of three; with a calculator it loses the minus of small numbers."""
    expression, results = expression_in(request), results_in(request)
    names = [t["function"]["name"] for t in request.body.get("tools", [])]
    if not expression:
        return "OK"
    if names and not results:
        return calling((names[0], {"expression": expression}))
    value = compute(expression)
    if results and re.fullmatch(r"-?\d+", results[-1]):
        return f"It computes.\n{abs(value) if -20 <= value < 0 else value}"
    return f"I know it.\n{value}" if value % 3 == 0 else NOT_KNOWN


def test_effect_interval_and_p_are_those_computed_by_hand(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    """The first 40 questions of the subset, counted by hand from its rows:

    24 only with the calculator, 2 only without it, 10 both ways, 4 in neither; so the effect is
    22/40, and exact McNemar's p is 2 (1 + 26 + 325) / 2^26.
    """
    rows = json.loads((data_dir / "bbh" / "bbh" / f"{SUBSET}.json").read_text())["examples"]
    targets = [int(row["target"]) for row in rows[:40]]
    alone = [target % 3 == 0 for target in targets]
    with_it = [not -20 <= target < 0 for target in targets]
    table = Counter(zip(with_it, alone, strict=True))
    assert [table[True, False], table[False, True], table[True, True]] == [24, 2, 10]
    with serve(half_calculates) as served:
        content = {"filter_category": [SUBSET], "data_dir": str(data_dir)}
        file = write(tmp_path, served, arms=arms("baseline", "calc", "placebo"), **content)
        ran = keju("run", "-c", file, "-n", "40", "--json")
        output = keju("score", next(Path("runs").iterdir()).name).out
    assert ran.code == 0, ran.err
    pairs = {(pair["base"], pair["arm"]): pair for pair in ran.json["comparisons"]}
    helped, no_effect = pairs["baseline", "calc"], pairs["baseline", "placebo"]
    counts = [helped[name] for name in ("n", "arm_only", "base_only", "both", "neither")]
    assert counts == [40, 24, 2, 10, 4]
    assert helped["difference"] == pytest.approx(22 / 40)
    assert helped["p"] == pytest.approx(704 / 2**26)
    # Bonett and Price: one more of each kind, of 42; 22/42 ± 1.96 sqrt((28/42 - (22/42)²) / 42)
    half = 1.959964 * ((28 / 42 - (22 / 42) ** 2) / 42) ** 0.5
    assert helped["ci95"] == pytest.approx([22 / 42 - half, 22 / 42 + half], abs=1e-6)
    assert helped["ci95"] == pytest.approx([0.3344, 0.7132], abs=1e-4)
    assert (no_effect["difference"], no_effect["p"], no_effect["arm_only"]) == (0, 1, 0)
    half_width = 1.959964 * (2 / 42 / 42) ** 0.5
    assert no_effect["ci95"] == pytest.approx([-half_width, half_width], abs=1e-6)
    assert "calc helps" in output


TWO_SERVERS = [
    CALCULATOR | {"name": side, "env": {"SIDE": side.upper()}} for side in ("left", "right")
]


def test_two_servers_of_one_arm_with_tools_of_equal_names(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    def answers(request: EndpointRequest) -> Any:
        assert "Ask both sides" not in json.dumps(request.body)
        if "tools" not in request.body or not expression_in(request):
            return "OK"
        if results := results_in(request):
            return " and ".join(results)
        return calling(*((f"{side}__variable", {"text": "SIDE"}) for side in ("right", "left")))

    instructions = ["--instructions", "Ask both sides."]
    left_server, right = TWO_SERVERS
    servers = [left_server | {"args": [*left_server["args"], *instructions]}, right]
    with serve(answers) as served:
        settings: dict[str, Any] = {"data_dir": str(data_dir), "filter_category": [SUBSET]}
        settings["arms"] = [{"name": "none"}, {"name": "both", "servers": servers}]
        file = write(tmp_path, served, **settings)
        ran = keju("run", "-c", file, "-n", "3", "-o", "out.json", "--json")
    assert ran.code == 0, ran.err
    tasks = json.loads(Path("out.json").read_text())["tasks"]
    assert [task["both"]["agent_answer"] for task in tasks] == ["RIGHT and LEFT"] * 3
    baseline, entry = ran.json["benchmarks"]
    calls = {tool["name"]: tool["calls"] for tool in entry["tools"]["tools"] if tool["calls"]}
    assert calls == {"left__variable": 3, "right__variable": 3}
    manifest = json.loads(next(Path("runs").glob("*/manifest.json")).read_text())
    sources = manifest["arms"]["both"]["sources"]
    assert sources["left"]["instructions"] == "Ask both sides."
    assert "instructions" not in sources["right"]
    # The model is not told: its prompts are the same in both arms, and the results say so.
    codes = [
        [notice["code"] for notice in result_entry["notices"]] for result_entry in (baseline, entry)
    ]
    assert ["server_instructions_untold" in result_entry for result_entry in codes] == [False, True]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("same", "same"), "named twice: same"),
        (("a.b", "a_b"), "two tools of one arm are called 'a_b__calculate'"),
    ],
)
def test_tools_that_would_be_called_alike_are_refused(
    keju: Keju, tmp_path: Path, data_dir: Path, names: tuple[str, str], words: str
) -> None:
    with serve(calculates) as served:
        arm = {"name": "both", "servers": [CALCULATOR | {"name": name} for name in names]}
        file = write(tmp_path, served, arms=[arm], data_dir=str(data_dir))
        ran = keju("run", "-c", file, "-n", "1")
        assert served.stats.requests == 0
    assert (ran.code, words in ran.err) == (2, True), ran.err


def test_a_run_gets_the_name_that_the_command_gives(keju: Keju, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("model: scripted\ndatasets: [demo]\nlimit: 1\n")
    assert keju("run", "-c", "a.yaml", "--name", "wednesday", "-q").code == 0
    assert (tmp_path / "runs" / "wednesday" / "report.html").is_file()
    ran = keju("run", "-c", "a.yaml", "--name", "bbh")
    assert (ran.code, "is the name of an exam" in ran.err) == (2, True)
    ran = keju("run", "-c", "a.yaml", "--name", "x", "--run-id", "y")
    assert (ran.code, "keep one of them" in ran.err) == (2, True)


def test_one_arm_alone(keju: Keju, tmp_path: Path, data_dir: Path) -> None:
    with serve(calculates) as served:
        settings = {"data_dir": str(data_dir), "filter_category": [SUBSET], "sample_size": 2}
        file = write(tmp_path, served, mcp_server=CALCULATOR, **settings)
        arms_by_flag = {
            flag: [
                entry["arm"] for entry in keju("run", "-c", file, flag, "--json").json["benchmarks"]
            ]
            for flag in ("-M", "-B")
        }
        assert arms_by_flag == {"-M": ["mcp"], "-B": ["baseline"]}
        assert keju("run", "-c", file, "-M", "-B").code == 2


def test_which_questions_a_number_takes(keju: Keju, tmp_path: Path, data_dir: Path) -> None:
    with serve(lambda _: "x") as served:
        file = write(tmp_path, served, data_dir=str(data_dir), sample_size=60)

        def subsets(*flags: str) -> dict[str, int]:
            ran = keju("run", "-c", file, "--json", *flags)
            assert ran.code == 0, ran.err
            (entry,) = ran.json["benchmarks"]
            return {subset["name"]: subset["n"] for subset in entry["subsets"]}

        assert len(subsets()) == 27
        assert subsets("--sampling-strategy", "sequential") == {"boolean_expressions": 60}
        counts = subsets("--sampling-strategy", "random", "--random-seed", "5")
        assert sum(counts.values()) == 60
        assert len(counts) > 10


# --- servers that break down --------------------------------------------------------------------


def test_one_crashing_call_among_41_questions(keju: Keju, tmp_path: Path, data_dir: Path) -> None:
    numbers: dict[str, int] = {}

    def answers(request: EndpointRequest) -> Any:
        if not expression_in(request):
            return "OK"
        number = numbers.setdefault(request.text, len(numbers))
        if results_in(request):
            return f"{results_in(request)[-1]} is {number}"
        return calling(("calc__crash_on", {"n": number}))

    with serve(answers) as served:
        settings = {"data_dir": str(data_dir), "filter_category": [SUBSET], "max_concurrent": 41}
        file = write(tmp_path, served, mcp_server=CALCULATOR, error_limit=0.5, **settings)
        ran = keju("run", "-c", file, "-n", "41", "-M", "-o", "out.json", "--json")
    assert ran.code == 0, ran.err
    tasks = [task["mcp"] for task in json.loads(Path("out.json").read_text())["tasks"]]
    lost_tasks = [task for task in tasks if task["outcome"] == "error"]
    assert [task["stop_reason"] for task in lost_tasks] == ["server_lost"]
    assert "ended during a call of crash_on (twice)" in lost_tasks[0]["error"]
    assert (lost_tasks[0]["tool_calls"], lost_tasks[0]["tool_failures"]) == (
        1,
        {"calc__crash_on": 1},
    )
    tool_use = ran.json["benchmarks"][0]["tools"]
    assert (tool_use["calls"], tool_use["failed"], tool_use["with_calls"]) == (41, 1, 41)
    (row,) = [tool for tool in tool_use["tools"] if tool["calls"]]
    assert row["kinds"] == {"ok": 40, "server_crash": 1}
    answered = {task["agent_answer"] for task in tasks if task["outcome"] != "error"}
    assert answered == {f"{n} is {n}" for n in range(41) if n != 13}


def test_a_server_that_ends_too_often_leaves_the_run_incomplete(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    def answers(request: EndpointRequest) -> Any:
        return calling(("calc__crash", {})) if expression_in(request) else "OK"

    with serve(answers) as served:
        server = CALCULATOR | {"max_restarts": 1}
        settings = {"data_dir": str(data_dir), "filter_category": [SUBSET], "sample_size": 6}
        file = write(tmp_path, served, mcp_server=server, **settings)
        flags = ("-M", "--run-id", "r", "-o", "out.json")
        ran = keju("run", "-c", file, *flags)
        rerun = keju("run", "-c", file, *flags)
    assert (ran.code, rerun.code) == (4, 4)
    assert "6 tools: " in ran.err
    assert "tools were offered, but only" not in ran.out + ran.err
    arm = json.loads(Path("out.json").read_text())["summary"]["mcp"]
    assert arm["tool_stats"]["tools"]["calc__crash"]["kinds"] == {"server_crash": 6}
    sessions = json.loads(Path("runs/r/manifest.json").read_text())["sessions"]
    restarts = [session["tools"]["mcp"]["calc"]["restarts"] for session in sessions]
    assert len(restarts) == 2
    assert arm["servers"]["calc"]["restarts"] == sum(restarts) > restarts[-1]


def test_the_definitions_cost_what_the_check_has_said(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    with serve(calculates) as served:
        settings = {"data_dir": str(data_dir), "filter_category": [SUBSET], "sample_size": 1}
        file = write(tmp_path, served, arms=arms("calc"), **settings)
        (server,) = keju("mcp", "check", "-c", file, "--json").json["servers"]
        (entry,) = keju("run", "-c", file, "--json").json["benchmarks"]
    assert entry["tools"]["schema_tokens_from"] == "estimate"
    assert entry["tools"]["schema_tokens"] == server["tokens"]["value"]


def test_a_server_that_does_not_start_costs_no_request(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    with serve(lambda _: "x") as served:
        server = CALCULATOR | {"args": [*CALCULATOR["args"], "--die"]}
        ran = keju("run", "-c", write(tmp_path, served, mcp_server=server, data_dir=str(data_dir)))
        assert served.stats.requests == 0
    assert ran.code == 2
    assert (
        "MCP server 'calc' ended with exit code 4 before it was ready; its last words:" in ran.err
    )


def test_endpoint_faults_in_the_middle_of_episodes(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    faults = {"429": 0.1, "500": 0.1, "drop": 0.05, "malformed": 0.05}
    with serve(calculates, faults=faults) as served:
        settings = {"data_dir": str(data_dir), "filter_category": [SUBSET], "retry_interval": 0.01}
        settings |= {"attempts": 20}
        file = write(tmp_path, served, arms=arms("baseline", "calc"), **settings)
        ran = keju("run", "-c", file, "-n", "40", "--json")
    assert ran.code == 0, ran.err
    correct = {entry["arm"]: entry["outcomes"]["correct"] for entry in ran.json["benchmarks"]}
    assert correct == {"baseline": 0, "calc": 40}


def test_nothing_is_left_after_kill_9(tmp_path: Path, data_dir: Path) -> None:
    def answers(request: EndpointRequest) -> Any:
        return calling(("calc__sleep", {"n": 60})) if expression_in(request) else "OK"

    folder = tmp_path / "started"
    folder.mkdir()
    with serve(answers) as served:
        server = CALCULATOR | {"args": [*CALCULATOR["args"], "{workdir}", str(folder)]}
        server["setup_command"] = f"echo {{workdir}} > {folder}/workdir"
        settings = {"data_dir": str(data_dir), "filter_category": [SUBSET]}
        file = write(tmp_path, served, mcp_server=server, **settings)
        words = [sys.executable, "-m", "keju", "run", "-c", file, "-n", "4", "-M", "--quiet"]
        process = subprocess.Popen(words, cwd=tmp_path, env=environment())
        for _ in range(600):
            if (folder / "workdir").exists() and _processes(str(folder)):
                break
            time.sleep(0.1)
        time.sleep(1)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        for _ in range(300):
            if not _processes(str(folder)):
                break
            time.sleep(0.1)
    assert _processes(str(folder)) == []
    for _ in range(100):
        if not Path((folder / "workdir").read_text().strip()).exists():
            break
        time.sleep(0.1)
    assert not Path((folder / "workdir").read_text().strip()).exists()


def _processes(word: str) -> list[int]:
    """The processes that have this word among their arguments."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words and PROGRAM.name.encode() in b" ".join(words):
            pids.append(int(entry.name))
    return pids


# --- what is wrong, and what is missing ---------------------------------------------------------


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Two subsets of which one cannot be read, and a row without a target."""
    folder = tmp_path / "data" / "bbh" / "bbh"
    folder.mkdir(parents=True)
    examples = [{"input": "not True is", "target": "False"}, {"input": "not False is"}]
    (folder / "boolean_expressions.json").write_text(json.dumps({"examples": examples}))
    (folder / "navigate.json").write_text("{")
    return tmp_path / "data"


def test_a_subset_that_cannot_be_read_is_left_out_with_a_warning(
    keju: Keju, tmp_path: Path, rows: Path
) -> None:
    with serve(lambda _: "So:\nFalse") as served:
        subset_names = ["boolean_expressions", "navigate"]
        file = write(tmp_path, served, data_dir=str(rows), filter_category=subset_names)
        ran = keju("run", "-c", file, "-o", "out.json")
        alone = keju("run", "-c", file, "--filter-category", "navigate")
    assert ran.code == 0, ran.err
    assert "Failed to load BBH subtask navigate, which is left out" in ran.out + ran.err
    assert (alone.code, "navigate.json" in alone.err) == (2, True)
    document = json.loads(Path("out.json").read_text())
    graded_task, unlabelled_task = (task["baseline"] for task in document["tasks"])
    shown_fields = {key: graded_task[key] for key in ("resolved", "agent_answer", "target")}
    assert shown_fields == {"resolved": True, "agent_answer": "So:\nFalse", "target": "False"}
    assert (unlabelled_task["resolved"], unlabelled_task["error"]) == (
        False,
        "No target answer available",
    )
    assert (
        document["summary"]["baseline"]["scored"],
        document["summary"]["baseline"]["total"],
    ) == (1, 2)


@pytest.mark.parametrize(
    ("content", "flags", "problem"),
    [
        ({}, ["--filter-category", "boolean_expresions"], "did you mean 'boolean_expressions'"),
        (
            {"filter_category": ["zzz"]},
            [],
            "bbh has no subset 'zzz' (valid: temporal_sequences, disam",
        ),
        ({}, ["-t", "bbh_boolean_expressions_9999"], "bbh_boolean_expressions_9999"),
        ({"maxiterations": 3}, [], "unknown key 'maxiterations' (did you mean 'max_iterations'?)"),
        ({"mcp_server": {"command": "no-such-thing"}}, [], "'no-such-thing' is not found"),
        ({}, ["-o", "missing/out.json"], "there is no folder missing"),
        ({}, ["-n", "2", "-t", "bbh_navigate_1"], "-n and -t cannot be used together"),
        ({"benchmark": "bigbench-hardd"}, [], "did you mean 'bigbench-hard'"),
        ({}, ["-n", "0"], "error: -n must be at least 1, not 0"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(
    content: dict[str, Any],
    flags: list[str],
    problem: str,
    keju: Keju,
    tmp_path: Path,
    data_dir: Path,
) -> None:
    with serve(lambda _: "x") as served:
        file = write(tmp_path, served, **({"data_dir": str(data_dir)} | content))
        ran = keju("run", "-c", file, *flags)
        assert served.stats.requests == 0
    assert ran.code == 2
    assert problem in ran.err


def test_a_file_that_cannot_be_read_is_named_once(keju: Keju) -> None:
    Path("empty.yaml").write_text("")
    assert keju("run", "-c", "absent.yaml").err.startswith("keju: error: cannot read absent.yaml")
    assert keju("run", "-c", "empty.yaml").err.startswith("keju: error: empty.yaml, line 1: is em")


def test_keys_without_effect_are_named_and_secrets_are_nowhere(
    keju: Keju, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LICENCE_KEY", "s3cr3t-licence")

    def answers(request: EndpointRequest) -> Any:
        if not expression_in(request):
            return "OK"
        results = results_in(request)
        return results[0] if results else calling(("calc__variable", {"text": "LICENCE"}))

    with serve(answers) as served:
        env = {"LICENCE": "${LICENCE_KEY}", "OTHER": "an0ther-secret"}
        server = CALCULATOR | {"env": env, "args": [*CALCULATOR["args"], "--", "-k=${LICENCE_KEY}"]}
        settings = {"data_dir": str(data_dir), "thinking_budget": 2000, "filter_category": [SUBSET]}
        file = write(tmp_path, served, mcp_server=server, **settings)
        ran = keju("run", "-c", file, "-n", "2", "-M", "-o", "out.json", "-v")
        assert ran.code == 0, ran.err
    assert "no effect in Keju: thinking_budget" in ran.err
    files = [path for path in Path("runs").rglob("*") if path.is_file()] + [Path("out.json")]
    for path in files:
        assert b"s3cr3t" not in path.read_bytes(), path
        assert b"an0ther" not in path.read_bytes(), path
    assert "***" in Path("out.json").read_text()


def test_the_results_never_go_over_the_config_file(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    with serve(calculates) as served:
        file = write(tmp_path, served, data_dir=str(data_dir), mcp_server=CALCULATOR)
        before = Path(file).read_text()
        ran = keju("run", "-c", file, "-n", "1", "-o", "./config.yaml")
        assert served.stats.requests == 0
    assert (ran.code, Path(file).read_text()) == (2, before)
    assert "-o config.yaml is the config file itself" in ran.err
    assert ran.err.count("\n") == 1


def test_the_printed_command_resumes_a_run_whose_server_has_a_literal_secret(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    failing = [True]

    def answers(request: EndpointRequest) -> Any:
        if not expression_in(request) or not failing[0]:
            return "OK"
        return calling(("calc__crash", {}))

    with serve(answers) as served:
        server = CALCULATOR | {"env": {"MY_SECRET": "s3cr3t-value"}, "max_restarts": 1}
        settings = {"data_dir": str(data_dir), "filter_category": [SUBSET]}
        file = write(tmp_path, served, mcp_server=server, **settings)
        words = ["-n", "2", "-M", "--filter-category", SUBSET, "--price", "input=1,output=2"]
        first_run = keju("run", "-c", file, *words, "-q")
        assert first_run.code == 4
        command = shlex.split(first_run.err.partition("resume with:\n")[2].splitlines()[0])
        assert command[:2] == ["keju", "run"]
        failing[0] = False
        resumed = keju(*command[1:])
    assert resumed.code == 0, resumed.err
    assert len(list(Path("runs").iterdir())) == 1


def test_a_documented_file_of_mcpbr_with_a_data_set_and_a_budget(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    with serve(calculates) as served:
        settings = {"data_dir": str(data_dir), "filter_category": [SUBSET], "sample_size": 1}
        settings |= {"dataset": None, "budget": 50.0}
        file = write(tmp_path, served, mcp_server=CALCULATOR, **settings)
        refusal = keju("run", "-c", file)
        assert served.stats.requests == 0
        ran = keju("run", "-c", file, "--price", "input=1,output=2", "--json")
    assert refusal.code == 2
    assert "give --price input=X,output=Y, or 'price: {input: X, output: Y}' in" in refusal.err
    assert "no effect in Keju: dataset" in ran.err
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("content", [{}, {"arms": []}])
def test_a_run_without_servers_says_that_nothing_is_compared(
    content: dict[str, Any], keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    with serve(calculates) as served:
        file = write(tmp_path, served, data_dir=str(data_dir), **content)
        ran = keju("run", "-c", file, "-n", "1", "--filter-category", SUBSET)
        alone = keju("run", "-c", file, "-n", "1", "--filter-category", SUBSET, "-B")
    assert ran.err.count("nothing is compared, this is a plain exam in one arm") == 1
    assert "nothing is compared" not in alone.err


def test_a_run_with_arms_is_told_to_be_compared_arm_by_arm(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    """Nor with a run that has other arms."""
    with serve(calculates) as served:
        settings = {"data_dir": str(data_dir), "filter_category": [SUBSET], "sample_size": 1}
        alone = write(tmp_path, served, arms=arms("calc"), **settings)
        assert "keju compare" not in keju("run", "-c", alone, "--run-id", "alone").out
        both_arms = write(tmp_path, served, arms=arms("baseline", "calc"), **settings)
        lines = keju("run", "-c", both_arms, "--run-id", "both").out.splitlines()
    next_commands = [shlex.split(line, comments=True) for line in lines[lines.index("next:") + 1 :]]
    assert next_commands.pop(0) == ["keju", "view", "both"]
    assert next_commands[0] == ["keju", "compare", "both"]
    assert [command[1] for command in next_commands].count("compare") == 1
    assert keju(*next_commands[0][1:]).code == 0


def test_a_run_with_arms_is_shown_and_exported_step_by_step(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    with serve(calculates) as served:
        settings = {"data_dir": str(data_dir), "filter_category": [SUBSET], "sample_size": 1}
        file = write(tmp_path, served, arms=arms("calc", "baseline"), **settings)
        ran = keju("run", "-c", file, "--run-id", "r")
        changed = arms("calc", "baseline")
        changed[0]["servers"][0]["args"] = [*CALCULATOR["args"], "--lose", "x"]
        refusal = keju(
            "run", "-c", write(tmp_path, served, arms=changed, **settings), "--run-id", "r"
        )
    assert ran.code == 0, ran.err
    (line,) = [output_line for output_line in ran.out.splitlines() if "keju show" in output_line]
    words = shlex.split(line.partition("#")[0])[1:]
    output = keju(*words).out
    heading, call = output.index("--- reply in arm calc ---"), output.index("calc__calculate")
    assert heading < call < output.index("--- reply in arm baseline ---")
    assert output.count("It computes.") == 1
    assert "in arm calc" not in keju(*words, "--arm", "baseline").out
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEJU_LANGUAGE", "zh")
        chinese = keju(*words).out
    assert "--- 实验组 calc 的回复 ---\n--- 调用 calc__calculate ---" in chinese
    assert "mcpbr：读出 24 -> 正确，得分 1" in chinese
    assert "robust：读出 无（没有答案标记） -> 未读出答案，得分 0" in chinese
    assert "has no arm 'x' (it has: calc, baseline)" in keju(*words, "--arm", "x").err
    text = keju("export", "r", "--format", "jsonl", "--full-text").out
    rows = {row["arm"]: row for row in map(json.loads, text.splitlines())}
    assert (rows["calc"]["stop_reason"], rows["calc"]["tool_calls"]) == ("final", 1)
    assert len(json.loads(rows["calc"]["transcript"])) == 3
    assert rows["baseline"]["tool_calls"] is None
    assert refusal.code == 2
    assert "arm calc servers.0.args.2: stored none, asked --lose" in refusal.err
