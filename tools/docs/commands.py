"""The reference of the command line: what ``--help`` says, of all commands."""

from __future__ import annotations

import importlib

from keju.cli import COMMANDS, CommandEntry
from keju.cli.command import COMMANDS as DECLARED
from keju.cli.command import Command
from keju.cli.help import about, meaning_of, paragraphs, spelling_of
from keju.cli.options import OUTPUT
from keju.messages import Language, helped, speak
from tools.docs.markdown import code, opening, plain, table

NAME = "reference-cli"
EVERYWHERE = ("language", "as_json")
"""Rows that every command takes; they stand at the top of the page."""
WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "title": "Command line",
        "intro": "All commands with all their options, as `keju COMMAND --help` prints them. "
        "Settings may also stand in a file or in the environment: see "
        "[configuration](configuration.md) and [its reference](reference-configuration.md). "
        "[Results](results.md#exit-codes) explains exit codes.",
        "everywhere": "Options of every command",
        "option": "option",
        "meaning": "meaning",
        "help": "Print the help of a command, with examples.",
        "version": "Print the version; without a command.",
    },
    "zh": {
        "title": "命令行",
        "intro": "全部命令及其全部选项，内容与 `keju COMMAND --help` 打印的相同。"
        "设置也可以写在文件或环境变量中：见[配置](configuration.zh-CN.md)"
        "和[配置参考](reference-configuration.zh-CN.md)。"
        "退出码见[结果](results.zh-CN.md#exit-codes)。",
        "everywhere": "所有命令都有的选项",
        "option": "选项",
        "meaning": "含义",
        "help": "打印命令的帮助和示例。",
        "version": "打印版本；不带命令使用。",
    },
}


def page(language: Language) -> str:
    """The page in a language."""
    speak(language)
    try:
        return "\n".join(_lines(language)).rstrip() + "\n"
    finally:
        speak(None)


def _lines(language: Language) -> list[str]:
    words = WORDS[language]
    columns = (words["option"], words["meaning"])
    lines = [*opening(NAME, words["title"], language), words["intro"], ""]
    lines += [f"## {words['everywhere']}", ""]
    for entry in COMMANDS:
        importlib.import_module(entry.module)
    shared_rows = [DECLARED["eval"].rows[name] for name in EVERYWHERE]
    rows = [(code(spelling_of(row)), plain(meaning_of(row))) for row in shared_rows]
    rows += [("`--help -h`", words["help"]), ("`--version -V`", words["version"])]
    lines += table(columns, rows)
    for panel in dict.fromkeys(entry.panel for entry in COMMANDS):
        lines += [f"## {helped(f'panel.{panel}', panel)}", ""]
        for entry in (entry for entry in COMMANDS if entry.panel == panel):
            for command in _commands_of(entry):
                lines += _command(command, columns)
    return lines


def _commands_of(entry: CommandEntry) -> list[Command]:
    """The command of a line of ``keju --help``, or the commands of a group."""
    return [command for name, command in DECLARED.items() if name.split()[0] == entry.name]


def _command(command: Command, columns: tuple[str, str]) -> list[str]:
    rows = [row for name, row in command.rows.items() if name not in EVERYWHERE]
    arguments = [row.spelling for row in rows if not row.flags]
    usage = " ".join(["keju", command.name, "[OPTIONS]", *arguments])
    lines = [f"### keju {command.name}", "", "```text", usage, "```", ""]
    for paragraph in paragraphs(about(command)):
        lines += [plain(paragraph), ""]
    panels: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        panels.setdefault(row.panel, []).append((code(spelling_of(row)), plain(meaning_of(row))))
    if OUTPUT in panels:
        panels[OUTPUT] = panels.pop(OUTPUT)  # the last one, as in the help
    for panel, entries in panels.items():
        lines += [f"**{helped(f'panel.{panel}', panel)}**", "", *table(columns, entries)]
    return [*lines, "```text", *command.examples, "```", ""]
