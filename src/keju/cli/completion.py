"""``keju completion``: a script that lets the shell complete commands and options."""

from __future__ import annotations

import importlib
import sys

from keju.cli.command import command
from keju.cli.common import Output, print_lines, print_steps
from keju.messages import said

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
PASTED = {
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
"""What to type in each shell: for this terminal alone, and for every new one."""


@command(
    "completion",
    "keju completion",
    'eval "$(keju completion bash)"',
    "keju completion fish > ~/.config/fish/completions/keju.fish",
)
def completion(shell: str | None) -> Output:
    """Print a completion script for bash, zsh or fish, made from the commands as they are.

    Alone it prints the line to paste for each of them.
    """
    if shell is None:
        return Output({"shells": PASTED}, _print_lines)
    words = _words()
    if shell == "fish":
        script = _fish(words)
    else:
        cases = "\n".join(f'        {n}) words="{" ".join(w)}" ;;' for n, w in words.items())
        script = BASH.format(cases=cases, commands=" ".join(words))
        if shell == "zsh":
            script = "autoload -U +X bashcompinit && bashcompinit\n" + script
    return Output({"shell": shell, "script": script}, lambda: _print(script))


def _print_lines() -> None:
    print_lines(said("completion.paste"))
    for shell, pasted in PASTED.items():
        steps = {line: said(f"completion.{when}") for when, line in pasted.items()}
        print_steps(["", f"{shell}:"], steps)


def _print(script: str) -> None:
    sys.stdout.write(script)


def _words() -> dict[str, list[str]]:
    """What may follow each command: the commands of a group, and every flag."""
    from keju.cli import COMMANDS as ENTRIES
    from keju.cli.command import COMMANDS

    for entry in ENTRIES:
        importlib.import_module(entry.module)
    words: dict[str, list[str]] = {entry.name: [] for entry in ENTRIES}
    for name, each in COMMANDS.items():
        first, *rest = name.split()
        words[first] += rest
        for row in each.rows.values():
            choices = row.kind if isinstance(row.kind, tuple) and not row.flags else ()
            words[first] += [*row.flags, *choices]
    return {name: list(dict.fromkeys([*own, "--help"])) for name, own in words.items()}


def _fish(words: dict[str, list[str]]) -> str:
    lines = [f"complete -c keju -n __fish_use_subcommand -f -a '{' '.join(words)}'"]
    for name, own in words.items():
        seen = f"complete -c keju -n '__fish_seen_subcommand_from {name}'"
        plain = [word for word in own if not word.startswith("-")]
        if plain:
            lines.append(f"{seen} -a '{' '.join(plain)}'")
        for flag in own:
            if flag.startswith("--"):
                lines.append(f"{seen} -l {flag[2:]}")
            elif flag.startswith("-"):
                lines.append(f"{seen} -s {flag[1:]}")
    return "\n".join(lines) + "\n"
