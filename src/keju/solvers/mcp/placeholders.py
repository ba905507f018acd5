"""Fills values of data into a server's settings so that they stay data.

The id of a question comes from a file that someone else may have written. In an argument or a
variable it is passed unchanged. In a folder it is one name, and in an address it is
percent-encoded. In a shell command it is quoted for its place:

    echo {instance_id}          ->  echo 'x$(touch P)'
    echo "of {instance_id}"     ->  echo "of "'x$(touch P)'""

A value that every shell reads as plain text, such as ``bix-1-q1``, is filled in unchanged. Other
values are refused at places where quoting cannot help, such as the code of another interpreter
(``bash -c``, ``eval``). A value that begins a word and could be an option (``--output=x``) is
refused as well. The variables KEJU_INSTANCE_ID and KEJU_WORKDIR hold the same values.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final
from urllib.parse import quote

from keju.config.arms import INSTANCE, WORKDIR
from keju.errors import ConfigError
from keju.files import make_file_name

VARIABLES: Final = {INSTANCE: "KEJU_INSTANCE_ID", WORKDIR: "KEJU_WORKDIR"}
"""Environment variables that hold the values of the placeholders."""

# {instance_id} or {workdir}
_PLACEHOLDER = re.compile("|".join(map(re.escape, VARIABLES)))
# bix-1-q1, /tmp/keju-7/mcp-x, a@b: plain text in every shell and at every place of a command
_HARMLESS = re.compile(r"[A-Za-z0-9_@%+:,./-]*")
# eval X, xargs X, ssh host X, sh -c X, perl -e X, python3 -c X, node --eval X
_RUNS_TEXT = re.compile(
    r"(?<![\w./-])(?:\S*/)?(?:eval|xargs|ssh|parallel|watch|awk|sed)(?![\w.-])"
    r"|(?<!\S)(?:-[A-Za-z]*[ceE]|--(?:eval|command|exec|execute|expression|print))(?![\w-])"
)
# -c, -lc, -e, --eval: the argument after it is code
_CODE_FLAG = re.compile(r"-[A-Za-z]*[ceEp]|--(?:eval|command|exec|execute|expression|print)")
# -cprint(1), --eval=1: code in the argument itself
_CODE_INSIDE = re.compile(
    r"-[ceE].+|--(?:eval|command|exec|execute|expression|print)=.*", re.DOTALL
)
_WORD_STARTS: Final = ("", " ", "\t", "\n", "'", '"', ";", "&", "|", "(")
"""Characters before a word of a command; empty at its start."""
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"})


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    """Return `text` with the placeholders replaced by their unchanged values."""
    return _PLACEHOLDER.sub(lambda match: _value_at(match, values), text)


def _value_at(match: re.Match[str], values: Mapping[str, str]) -> str:
    """Return the value for one place; between slashes it cannot lead out of the folder."""
    value, template = values[match[0]], match.string
    before, after = template[: match.start()][-1:], template[match.end() :][:1]
    is_in_path = before == "/" or (after == "/" and match[0] == INSTANCE)
    if is_in_path and (value.startswith("/") or ".." in re.split(r"[/\\]", value)):
        return make_file_name(value)
    if value.startswith("-") and before in _WORD_STARTS:
        raise ConfigError("server_value_option", placeholder=match[0])
    return value


def fill_path(text: str, values: Mapping[str, str]) -> str:
    """Return the path of a folder in which the id of a question is one name."""
    instance = values[INSTANCE]
    return fill_placeholders(
        text, {**values, INSTANCE: make_file_name(instance) if instance else ""}
    )


def fill_url(text: str, values: Mapping[str, str]) -> str:
    """Return an address in which every value is percent-encoded."""
    return fill_placeholders(text, {name: quote(value, safe="") for name, value in values.items()})


def fill_arguments(program: str, arguments: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return the arguments of a program; an argument that is a shell command is quoted."""
    filled_texts: list[str] = []
    words = [program, *arguments]
    for number, text in enumerate(arguments, 1):
        is_code = _CODE_FLAG.fullmatch(words[number - 1]) or _CODE_INSIDE.fullmatch(text)
        if not is_code or not _has_unsafe_value(text, values):
            filled_texts.append(fill_placeholders(text, values))
            continue
        earlier_names = {PurePath(word).name for word in words[:number]}
        if not earlier_names & _SHELLS or _CODE_INSIDE.fullmatch(text):
            raise _unsafe_error(text, values, "args")
        filled_texts.append(fill_command(text, values, "args"))
    return filled_texts


def fill_command(template: str, values: Mapping[str, str], setting: str) -> str:
    """Return a shell command in which every value is one piece of text.

    Raises ConfigError if a value could be run as code even when quoted.
    """
    if not _has_unsafe_value(template, values):
        return fill_placeholders(template, values)
    if _RUNS_TEXT.search(template):
        raise _unsafe_error(template, values, setting)
    command, position = "", 0
    for match, quotes in _find_placeholders(template):
        if quotes is None:
            raise _unsafe_error(template, values, setting)
        command += template[position : match.start()] + quotes
        command += shlex.quote(_value_at(match, values)) + quotes
        position = match.end()
    return command + template[position:]


def refuse_nul(values: Mapping[str, str]) -> None:
    """Raise ConfigError for a value that no program can receive."""
    for name, value in values.items():
        if "\0" in value:
            raise ConfigError("server_value_nul", placeholder=name)


def _has_unsafe_value(text: str, values: Mapping[str, str]) -> bool:
    """Whether a text names a value that a shell could read as more than text."""
    names = _PLACEHOLDER.findall(text)
    return any(_HARMLESS.fullmatch(values[name]) is None for name in names)


def _unsafe_error(text: str, values: Mapping[str, str], setting: str) -> ConfigError:
    name = next(n for n in _PLACEHOLDER.findall(text) if not _HARMLESS.fullmatch(values[n]))
    code = "server_argument_unsafe" if setting == "args" else "server_command_unsafe"
    return ConfigError(code, placeholder=name, variable=VARIABLES[name])


# Tokens that decide how a shell reads the text after them: a backslash and its character, a
# comment, `$(`, a quote, a bracket, a placeholder; and tokens that are not interpreted here: `` `
# ``, `<<`, `${`, `$((`
_TOKEN = re.compile(
    rf"(?P<escaped>\\.)|(?P<unsure>`|<<|\$\{{|\$'|\$\(\()|(?P<open>\$\(|\()|(?P<close>\))"
    rf"|(?P<quote>['\"])|(?P<comment>(?:(?<=[\s;&|()])|\A)\#[^\n]*)|(?P<place>{_PLACEHOLDER.pattern})",
    re.DOTALL,
)


def _is_unbalanced(stack: list[str], kind: str, text: str) -> bool:
    """Open or close a quotation mark or bracket; return whether a bracket closes nothing."""
    if kind == "quote":
        # A quotation mark inside the other kind is a plain character.
        stack[-1] = "" if stack[-1] == text else stack[-1] or text
    elif kind == "open" and (text == "$(" or not stack[-1]):
        stack.append("")
    elif kind == "close" and not stack[-1]:
        stack.pop()
        if not stack:
            stack.append("")
            return True
    return False


def _find_placeholders(template: str) -> Iterator[tuple[re.Match[str], str | None]]:
    """Yield each placeholder with the quotation mark around it, or None if that is not certain."""
    stack = [""]  # the quotation mark that is open, for each enclosing `(`
    position, is_unsure = 0, False
    while match := _TOKEN.search(template, position):
        position, kind, text = match.end(), match.lastgroup, match[0]
        if stack[-1] == "'" and kind not in ("place", "quote"):
            position = match.start() + 1
        elif stack[-1] == "'" and text == '"':
            pass
        elif kind == "unsure" and not (text == "$'" and stack[-1]):
            is_unsure = True
        elif kind in ("quote", "open", "close"):
            is_unsure |= _is_unbalanced(stack, kind, text)
        elif kind == "comment" and stack[-1]:
            position = match.start() + 1
        elif kind == "place":
            yield match, None if is_unsure else stack[-1]
