"""``keju fresh``: writes new questions in BBH's style to a folder for other tools."""

from __future__ import annotations

from typing import Literal

from keju.cli.command import command
from keju.cli.common import CommandOutput, print_lines
from keju.errors import Notice


@command(
    "fresh",
    "keju fresh --subset boolean_expressions --subset navigate --seed 7 -n 250 -o fresh",
    "keju fresh --subset all --seed 7 -n 50 --difficulty 2 --lang zh -o hard",
)
def fresh(
    subsets: list[str] | None,
    seed: int,
    size: int,
    difficulty: float,
    lang: Literal["en", "zh"],
    folder: str,
) -> CommandOutput:
    """Write fresh questions with certain answers, in the layout of the published files.

    The same options give the same files everywhere. `keju list subsets --benchmark fresh_bbh` shows
    the subsets. To evaluate a model on such questions at once, use the benchmark fresh_bbh instead.
    """
    from pathlib import Path

    import msgspec

    from keju.benchmarks.fresh import FreshArgs
    from keju.benchmarks.fresh.writing import eval_command, write_exam

    names = [name for text in subsets or () for name in text.split(",")]
    subset_list = None if "all" in names or not names else names
    args = FreshArgs(seed=seed, n=size, difficulty=difficulty, lang=lang, subset_list=subset_list)
    facts = write_exam(args, Path(folder))
    n = facts.n * len(facts.subsets)
    lines = [
        Notice("fresh.wrote", {"n": n, "subsets": len(facts.subsets), "folder": folder}).message,
        f"sha256 {facts.sha256}",
        Notice("fresh.next", {"command": eval_command(facts, Path(folder))}).message,
    ]
    document = {"folder": folder, **msgspec.to_builtins(facts)}
    return CommandOutput(document, lambda: print_lines(*lines))
