"""``keju completion``: a script that lets the shell complete commands and options."""

from __future__ import annotations

import importlib
import sys

from keju.cli.command import command
from keju.cli.common import CommandOutput, print_lines, print_steps
from keju.messages import label_text

BASH = """\
_keju() {{
    local words
    case "${{COMP_WORDS[1]}}" in
{cases}
        *) words="{commands}" ;;
    esac
    [ "$COMP_CWORD" -eq 1 ] && words="{commands}"
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
    [ -z "${{COMPREPLY[*]}}" ] && COMPREPLY=($(compgen -f -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _keju keju
"""
SETUP_LINES = {
    "bash": {
        "now": 'eval "$(keju completion bash)"',
        "always": """echo 'eval "$(keju completion bash)"' >> ~/.bashrc""",
    },
    "zsh": {
        "now": 'eval "$(keju completion zsh)"',
        "always": """echo 'eval "$(keju completion zsh)"' >> ~/.zshrc""",
    },
    "fish": {
        "now": "keju completion fish | source",
        "always": "keju completion fish > ~/.config/fish/completions/keju.fish",
    },
}
"""The line to type in each shell: for this terminal only, and for every new one."""


@command(
    "completion",
    "keju completion",
    'eval "$(keju completion bash)"',
    "keju completion fish > ~/.config/fish/completions/keju.fish",
)
def completion(shell: str | None) -> CommandOutput:
    """Print a completion script for bash, zsh or fish, made from the installed commands.

    Without a shell, it prints the line to paste for each of them.
    """
    if shell is None:
        return CommandOutput({"shells": SETUP_LINES}, _print_setup_lines)
    words = _list_words()
    if shell == "fish":
        script = _render_fish(words)
    else:
        cases = "\n".join(f'        {n}) words="{" ".join(w)}" ;;' for n, w in words.items())
        script = BASH.format(cases=cases, commands=" ".join(words))
        if shell == "zsh":
            script = "autoload -U +X bashcompinit && bashcompinit\n" + script
    return CommandOutput({"shell": shell, "script": script}, lambda: _print_script(script))


def _print_setup_lines() -> None:
    print_lines(label_text("completion.paste"))
    for shell, setup_lines in SETUP_LINES.items():
        steps = {line: label_text(f"completion.{when}") for when, line in setup_lines.items()}
        print_steps(["", f"{shell}:"], steps)


def _print_script(script: str) -> None:
    sys.stdout.write(script)


def _list_words() -> dict[str, list[str]]:
    """Return the possible words after each command: subcommands and flags."""
    from keju.cli import COMMANDS as ENTRIES
    from keju.cli.command import COMMANDS

    for entry in ENTRIES:
        importlib.import_module(entry.module)
    words: dict[str, list[str]] = {entry.name: [] for entry in ENTRIES}
    for name, cli_command in COMMANDS.items():
        group, *subcommands = name.split()
        words[group] += subcommands
        for row in cli_command.rows.values():
            choices = row.kind if isinstance(row.kind, tuple) and not row.flags else ()
            words[group] += [*row.flags, *choices]
    return {
        name: list(dict.fromkeys([*command_words, "--help"]))
        for name, command_words in words.items()
    }


def _render_fish(words: dict[str, list[str]]) -> str:
    lines = [f"complete -c keju -n __fish_use_subcommand -f -a '{' '.join(words)}'"]
    for name, command_words in words.items():
        prefix = f"complete -c keju -n '__fish_seen_subcommand_from {name}'"
        subcommands = [word for word in command_words if not word.startswith("-")]
        if subcommands:
            lines.append(f"{prefix} -a '{' '.join(subcommands)}'")
        for flag in command_words:
            if flag.startswith("--"):
                lines.append(f"{prefix} -l {flag[2:]}")
            elif flag.startswith("-"):
                lines.append(f"{prefix} -s {flag[1:]}")
    return "\n".join(lines) + "\n"
