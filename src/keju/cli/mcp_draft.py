"""The first test of an MCP server: its arms, and one question to fill in for each of its tools."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from keju.errors import UsageError
from keju.messages import printable

if TYPE_CHECKING:
    from keju.config.arms import ServerSettings

ARM: Final = "tools"
LONGEST_ABOUT: Final = 100
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_SCRIPT_END = re.compile(r"\.(?:py|js|mjs|cjs|ts|rb|sh)$")


def read_server(text: str) -> ServerSettings:
    """Return the settings of a server, given its command as one text, or its URL."""
    from keju.config.arms import ServerSettings

    if text.startswith(("http://", "https://")):
        return ServerSettings(name="web", url=text)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError("init_mcp_command", server=text, problem=str(error)) from None
    if not words:
        raise UsageError("init_mcp_command", server=text, problem="''")
    return ServerSettings(name=_name_of(words), command=words[0], args=words[1:])


def _name_of(words: Sequence[str]) -> str:
    """Return a short name for a command: ``everything`` for ``npx -y @x/server-everything``."""
    plain_words = [word for word in words if not word.startswith("-")]
    scripts = [word for word in plain_words[1:] if "/" in word or _SCRIPT_END.search(word)]
    word = (scripts or plain_words[:1])[0].rstrip("/").rpartition("/")[2]
    word = _SCRIPT_END.sub("", word.partition("@")[0] or word)
    for affix in ("mcp-server-", "server-", "mcp-"):
        word = word.removeprefix(affix)
    return _NOT_IN_NAMES.sub("_", word)[:32].strip("_") or "mcp"


def write_mcp_test(text: str, path: Path) -> tuple[list[Path], list[str]]:
    """Start the server and list its tools; write the arms and the questions.

    Return both files and the names of the tools.
    """
    from keju.cli.mcp import inspect_servers
    from keju.engine.session import run_loop

    server = read_server(text)
    questions = path.with_name(f"{path.name.partition('.')[0]}-questions.yaml")
    for file in (path, questions):
        if file.exists():
            raise UsageError("cli_file_exists", path=file)
    (described,), _ = run_loop(lambda: inspect_servers([(ARM, server)], None))
    tools = described["tools"]
    texts = {path: _arms_text(server, questions, path), questions: _questions_text(tools, path)}
    for file, content in texts.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, "utf-8")
        except OSError as error:
            raise UsageError("cli_cannot_write", place=file, problem=error.strerror) from None
    return [path, questions], [tool["name"] for tool in tools]


def _quote(value: Any) -> str:
    """Return a value as YAML: JSON is YAML."""
    return json.dumps(value, ensure_ascii=False)


def _arms_text(server: ServerSettings, questions: Path, path: Path) -> str:
    fields: dict[str, Any] = {"name": server.name}
    if server.url is not None:
        fields["url"] = server.url
    else:
        fields |= {"command": server.command, "args": server.args}
    settings = ", ".join(f"{key}: {_quote(value)}" for key, value in fields.items())
    return (
        f"# Does this MCP server help? keju run -c {path.name} --model NAME --api-url URL\n"
        "# Every arm answers the same questions with the same prompts; only the tools differ.\n"
        f"datasets: [{_quote(f'./{questions.name}')}]\n"
        "arms:\n"
        "  - name: baseline            # without tools\n"
        f"  - name: {ARM}\n"
        f"    servers: [{{{settings}}}]\n"
        "  # - name: placebo           # the tools are listed, and no call works\n"
        f"  #   servers: [{{{settings}}}]\n"
        "  #   stub_tools: true\n"
        "# agent: {max_iterations: 15, timeout_seconds: 180}\n"
    )


def _questions_text(tools: Sequence[Mapping[str, Any]], path: Path) -> str:
    lines = [
        f"# The questions of {path.name}. Fill in questions and answers, and remove the others.",
        "# 'expect' says what an episode does: tools, not, order, arguments, schema, max_calls.",
        "# Without an answer, all that is expected counts. 'verify' checks the state afterwards.",
    ]
    for tool in tools:
        about = printable(" ".join(str(tool["description"]).split()), one_line=True)
        about = about if len(about) <= LONGEST_ABOUT else about[: LONGEST_ABOUT - 1] + "…"
        names = list(tool["parameters"].get("properties") or {})
        lines += [
            "",
            f"# {about}" if about else f"# {tool['name']}",
            f"- question: {_quote('FILL IN: a question that needs ' + tool['name'])}",
            '  answer: "FILL IN"',
            f"  expect: {{tools: [{_quote(tool['name'])}]}}",
        ]
        if names:
            lines.append(
                f"  # expect: {{arguments: {{{_quote(tool['name'])}: {{{_quote(names[0])}: …}}}}}}"
            )
    return "\n".join(lines) + "\n"
