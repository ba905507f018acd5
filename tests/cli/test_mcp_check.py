"""``keju mcp check``."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Keju
from tests.solvers.mcp.conftest import PROGRAM

pytestmark = pytest.mark.slow

CALCULATOR = Path(__file__).parents[2] / "examples" / "mcp" / "calculator.py"


def config(folder: Path, *args: str, **settings: object) -> str:
    server = {"name": "s", "command": sys.executable, "args": ["-I", str(PROGRAM), *args]}
    path = folder / "config.json"
    path.write_text(json.dumps({"benchmark": "demo", "mcp_server": server | settings}))
    return str(path)


def test_servers_are_started_and_their_tools_listed(keju: Keju, tmp_path: Path) -> None:
    file = config(tmp_path, tools={"allow": ["calculate", "echo"]})
    ran = keju("mcp", "check", "-c", file)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("s (arm mcp, stdio): support 1.2, protocol 2025-11-25, ready in ")
    assert "calculate   expression: string   Compute an arithmetic expression." in ran.out
    assert "not offered: arguments, count, crash" in ran.out
    (server,) = keju("mcp", "check", "-c", file, "--json").json["servers"]
    assert [tool["offered_as"] for tool in server["tools"]] == ["s__calculate", "s__echo"]
    assert server["tools"][1]["parameters"]["required"] == ["text"]
    assert server["tokens"]["how"] == "estimate"
    assert server["tokens"]["value"] == sum(tool["tokens"] for tool in server["tools"]) > 50


def test_a_stand_in_counts_the_definitions_as_the_check_estimates_them(
    keju: Keju, tmp_path: Path
) -> None:
    file = config(tmp_path, tools={"allow": ["calculate", "echo"]})
    (server,) = keju("mcp", "check", "-c", file, "--json").json["servers"]
    cost = server["tokens"]["value"]
    sentence = f"the definitions of the tools take about {cost} tokens of each request"
    assert sentence in keju("mcp", "check", "-c", file).out
    ran = keju("run", "-c", file, "--model", "scripted", "-n", "1", "-q")
    sentence = (
        f"the definitions of the tools take {cost} tokens of each request (as the model counts"
    )
    assert sentence in " ".join(ran.out.split()), ran


def test_it_is_said_in_chinese_too(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEJU_LANGUAGE", "zh")
    file = config(tmp_path, tools={"allow": ["calculate", "fail"]})
    ran = keju("mcp", "check", "-c", file, "--call", "fail")
    assert ran.out.startswith("s（实验组 mcp，stdio）：support 1.2，协议 2025-11-25，")
    assert "calculate   expression: string" in ran.out
    assert "未提供：arguments、count" in ran.out
    assert "个词元（估计：每词元 4 个字符；" in ran.out
    assert "\ns__fail：工具报错，用时 " in ran.out
    assert (ran.code, ran.err) == (2, "keju: 错误：调用的结果为：工具报错\n")


def test_instructions_are_printed(keju: Keju, tmp_path: Path) -> None:
    file = config(
        tmp_path, "--instructions", "Add  twice.\nTOKEN-123456", env={"T": "TOKEN-123456"}
    )
    sentence = "its instructions, which the model is not given: Add twice. ***\n"
    assert sentence in keju("mcp", "check", "-c", file).out
    (server,) = keju("mcp", "check", "-c", file, "--json").json["servers"]
    assert server["instructions"] == "Add  twice.\n***"


def test_one_call_may_be_made(keju: Keju, tmp_path: Path) -> None:
    file, arguments = config(tmp_path), '{"expression": "2 * (3 + 4)"}'
    for tool in ("calculate", "s__calculate"):
        ran = keju("mcp", "check", "-c", file, "--call", tool, arguments, "--json")
        assert ran.code == 0, ran.err
        assert ran.json["call"]["text"] == "14"
    ran = keju("mcp", "check", "-c", file, "--call", "fail")
    assert (ran.code, ran.err) == (2, "keju: error: the call ended with: tool_error\n")
    assert ran.out.endswith("RuntimeError: it went wrong\n")
    ran = keju("mcp", "check", "-c", file, "--call", "calcul")
    assert ran.code == 2
    assert "no server has a tool 'calcul' (did you mean 'calculate'?)" in ran.err
    assert keju("mcp", "check", "-c", file, "--call", "echo", "{").code == 2


@pytest.mark.parametrize(
    ("arguments", "english", "chinese"),
    [
        ("{}", "the argument 'expression' is missing", "缺少参数“expression”"),
        (
            '{"expression": 5}',
            "the argument 'expression' should be: string",
            "参数“expression”的类型应为：string",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_told_in_plain_words(
    keju: Keju, tmp_path: Path, arguments: str, english: str, chinese: str
) -> None:
    """And what the server says of them, which is what a model reads, stays as it is."""
    (tmp_path / "server.py").write_text(CALCULATOR.read_text("utf-8"), "utf-8")
    arm = {"name": "own", "servers": [{"name": "s", "command": "{python}", "args": ["server.py"]}]}
    (tmp_path / "own.json").write_text(json.dumps({"benchmark": "demo", "arms": [arm]}))
    call = ("mcp", "check", "-c", "own.json", "--call", "calculate", arguments)
    server_text = keju(*call, "--json").json["call"]["text"]
    assert "validation error" in server_text
    for language, head, words in (
        ("en", "a model that calls it like this gets this reply from the server:", english),
        ("zh", "模型这样调用时，服务器会告诉它：", chinese),
    ):
        ran = keju(*call, "--language", language)
        assert ran.code == 2
        assert ran.out.endswith(f"\n{words}\n{head}\n{server_text}\n")


@pytest.mark.parametrize(
    "program",
    [
        "import json\njson.loads('{')\n",
        "raise ExceptionGroup('several', [ValueError('one'), KeyError('two')])\n",
        "def deep(n):\n    deep(n - 1) if n else print(1 / 0)\n" + "deep(200)\n",
    ],
)
def test_of_a_servers_traceback_the_exception_is_told(
    keju: Keju, tmp_path: Path, program: str
) -> None:
    (tmp_path / "server.py").write_text(program)
    arm = {"name": "own", "servers": [{"name": "s", "command": "{python}", "args": ["server.py"]}]}
    (tmp_path / "own.json").write_text(json.dumps({"benchmark": "demo", "arms": [arm]}))
    ran = keju("mcp", "check", "-c", "own.json")
    assert ran.code == 2
    assert re.search(
        r"its last words: (json\S*Error: |ExceptionGroup: several |ZeroDivisionError: )", ran.err
    )
    assert "File" not in ran.err


def test_what_is_wrong_is_one_line(keju: Keju, tmp_path: Path) -> None:
    ran = keju("mcp", "check", "-c", config(tmp_path, "--die"))
    assert ran.code == 2
    assert (
        "MCP server 's' ended with exit code 4 before it was ready; its last words: server started"
        in ran.err
    )
    assert ran.err.count("\n") == 1
    ran = keju("mcp", "check")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "give a config file: -c FILE; mcpbr's, or one with a list of arms" in ran.err
    (tmp_path / "none.yaml").write_text("benchmark: demo\n")
    assert "names no MCP server" in keju("mcp", "check", "-c", "none.yaml").err


SMALL = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {"tools": [{"name": "t", "inputSchema": SCHEMA}]}
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "plain", "version": VERSION}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def small(folder: Path, schema: object, version: str) -> None:
    """A server with one tool, in ``server.py``."""
    text = SMALL.replace("SCHEMA", repr(schema)).replace("VERSION", repr(version))
    (folder / "server.py").write_text(text)


def test_a_server_without_a_version_has_no_gap_in_its_line(keju: Keju, tmp_path: Path) -> None:
    small(tmp_path, {"type": "object"}, "")
    server = {"command": "{python}", "args": ["server.py"], "name": "s"}
    Path("c.yaml").write_text(json.dumps({"mcp_server": server}))
    ran = keju("mcp", "check", "-c", "c.yaml")
    assert ran.out.startswith("s (arm mcp, stdio): plain, protocol 2025-11-25, ready in "), ran.err


def test_no_key_of_a_model_is_asked_for(keju: Keju, tmp_path: Path) -> None:
    file = Path(config(tmp_path))
    model = {"name": "${NAME}", "api_url": "${ADDRESS}", "api_key_var": "OWN_KEY"}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"model": model}))
    assert keju("mcp", "check", "-c", str(file)).code == 0


def test_a_schema_that_is_none_is_said_in_one_line(keju: Keju, tmp_path: Path) -> None:
    small(tmp_path, "text", "1")
    server = {"command": sys.executable, "args": ["server.py"], "name": "s"}
    file = tmp_path / "c.yaml"
    file.write_text(json.dumps({"mcp_server": server}))
    ran = keju("mcp", "check", "-c", str(file))
    assert ran.code == 2
    sentence = "MCP server 's' breaks the protocol of MCP (tools.0.inputSchema: it should be a "
    assert f"{sentence}JSON object)" in ran.err
    chinese = keju("mcp", "check", "-c", str(file), "--language", "zh").err
    assert "不遵守 MCP 协议（tools.0.inputSchema：" in chinese
    assert not re.search("原文|[A-Za-z]{3,} [A-Za-z]{3,}", chinese), chinese
    assert "pydantic" not in ran.err
    assert ran.err.count("\n") == 1


def test_a_server_that_hangs_is_not_said_to_have_a_log(keju: Keju, tmp_path: Path) -> None:
    server = {"command": "sleep", "args": [60], "startup_timeout_ms": 300}
    file = tmp_path / "c.yaml"
    file.write_text(json.dumps({"mcp_server": server}))
    ran = keju("mcp", "check", "-c", str(file))
    assert ran.code == 2
    assert "was not ready after 0.3 s: raise startup_timeout_ms if it needs longer" in ran.err


def arms_file(path: Path, *args: str, **fields: object) -> str:
    """A file of two arms, the second with a server that is started with `args`."""
    path.parent.mkdir(exist_ok=True)
    server = {"name": "s", "command": "{python}", "args": args} | fields
    arms = [{"name": "plain"}, {"name": "tooled", "servers": [server]}]
    models = {"model": "scripted"} if path.stem != "plan" else {"models": ["scripted"]}
    path.write_text(json.dumps({**models, "datasets": ["demo"], "limit": 1, "arms": arms}))
    return str(path.relative_to(Path.cwd()))


@pytest.mark.parametrize("stem", ["arms", "plan"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_script_that_is_missing_is_named_before_anything_starts(
    keju: Keju, tmp_path: Path, stem: str, language: str
) -> None:
    folder = tmp_path / "sub"
    file = arms_file(folder / f"{stem}.json", "-I", "server.py")
    commands: list[tuple[str, ...]] = [
        ("mcp", "check", "-c", file),
        ("eval", "-c", file, "--dry-run"),
        ("eval", "-c", file, "-q", "--no-report"),
    ]
    messages = {
        "en": f"arm 'tooled': the file server.py of MCP server 's' is missing: Keju looks in "
        f"the current folder ({tmp_path}), then in the folder of the config file",
        "zh": f"实验组“tooled”：MCP 服务器“s”的文件 server.py 不存在：先在当前文件夹（{tmp_path}）",
    }
    for command in commands:
        ran = keju("--language", language, *command)
        assert (ran.code, messages[language] in ran.err) == (2, True), ran
    assert not list(tmp_path.glob("runs/*/records.jsonl"))
    small(folder, {"type": "object"}, "1")
    for command in commands:
        assert keju("--language", language, *command).code == 0


@pytest.mark.parametrize(
    ("args", "fields"),
    [
        (["-m", "no.server.py"], {}),
        (["${HERE}/server.py"], {}),
        (["{workdir}/server.py"], {}),
        (["serve", "server.py"], {}),
        (["server.py"], {"command": sys.executable, "setup_command": "exit 1"}),
        (["server.py"], {"command": "env"}),
    ],
)
def test_what_may_be_no_script_is_left_to_the_program(
    keju: Keju,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    args: list[str],
    fields: dict[str, object],
) -> None:
    monkeypatch.setenv("HERE", str(tmp_path))
    ran = keju("mcp", "check", "-c", arms_file(tmp_path / "arms.json", *args, **fields))
    assert (ran.code, "is looked for" in ran.err) == (2, False), ran


def test_a_script_in_a_folder_of_its_own_is_looked_for_there_alone(
    keju: Keju, tmp_path: Path
) -> None:
    small(tmp_path, {"type": "object"}, "1")
    (tmp_path / "other").mkdir()
    file = arms_file(tmp_path / "arms.json", "server.py", cwd="other")
    ran = keju("mcp", "check", "-c", file)
    message = "arm 'tooled': the file other/server.py of MCP server 's' is missing\n"
    assert (ran.code, ran.err.endswith(message)) == (2, True), ran
