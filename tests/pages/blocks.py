"""The code blocks of the pages: what each holds, and which of them need the outside.

A block that cannot run in the tests has a line before it that says why:

    <!-- outside: needs a Slurm cluster -->
    ```bash
    sbatch part.sbatch
    ```
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CHINESE = ".zh-CN.md"
PAGES = sorted(
    [
        *ROOT.glob("README*.md"),
        *(ROOT / "examples").glob("README*.md"),
        *(ROOT / "docs").rglob("*.md"),
    ]
)
KINDS = {"bash", "console", "python", "yaml", "toml", "csv", "json", "text"}
"""What a fence may announce; ``console`` is commands after ``$`` and what they print."""

_FENCE = re.compile(r"^```(?P<kind>\S*)$")
_MARK = re.compile(r"^<!-- outside:(?P<reason>.*)-->$")
_COMMENT = re.compile(r"(^|\s)#.*")
"""``keju view  # the runs``; a ``#`` inside a word is no comment."""


class Block(NamedTuple):
    """One code block of a page."""

    page: Path
    line: int
    kind: str
    code: str
    outside: str | None
    """Why it cannot run here; None where it can."""

    @property
    def place(self) -> str:
        """Where it stands, as editors write it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def bare(self) -> str:
        """The code without comments, which alone may differ between languages."""
        return "\n".join(_COMMENT.sub("", line).rstrip() for line in self.code.splitlines())

    @property
    def file(self) -> str | None:
        """The file that its first line names: ``# task.yaml``, ``# task.yaml: more``."""
        named = re.match(r"# ([\w./-]+\.\w+)(?=$|[:,：，\s])", self.code)
        return named[1] if named else None


def blocks_of(page: Path) -> list[Block]:
    """Every code block of a page, in order."""
    found: list[Block] = []
    lines = page.read_text("utf-8").splitlines()
    start, kind, before = 0, "", ""
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if fence and not start:
            start, kind = number, fence["kind"]
            mark = _MARK.match(before)
        elif fence:
            code = "\n".join(lines[start : number - 1]) + "\n"
            reason = mark["reason"].strip() if mark else None
            found.append(Block(page, start, kind, code, reason))
            start = 0
        before = line if line.strip() else before
    assert not start, f"{page}:{start}: a block without an end"
    return found


def original_of(page: Path) -> Path:
    """The English page of a Chinese one; an English page itself."""
    return page.with_name(page.name.replace(CHINESE, ".md"))


def shell_code(block: Block) -> str:
    """The commands of a block, without the output that a ``console`` shows."""
    if block.kind == "bash":
        return block.code
    lines = block.code.splitlines()
    return "\n".join(line.removeprefix("$ ") for line in lines if line.startswith("$ ")) + "\n"


def commands_in(code: str) -> Iterator[list[str]]:
    """The words of every command of Keju in a piece of shell.

    Of ``KEJU_LIMIT=1 keju eval -c t.yaml | jq .n`` and ``srun -- keju eval -c t.yaml`` that is
    ``eval -c t.yaml``; quoted commands, ``sbatch --wrap 'keju merge a b'``, are looked into.
    """
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        simple: list[str] = []
        for word in [*words, ";"]:
            if word and set(word) <= set("();<>|&"):
                if "--" in simple:
                    simple = simple[simple.index("--") + 1 :]
                while simple and re.match(r"\w+=", simple[0]):
                    del simple[0]
                if simple[:1] == ["keju"]:
                    yield simple[1:]
                simple = []
                continue
            simple.append(word)
            if word.startswith("keju "):
                yield from commands_in(word)
