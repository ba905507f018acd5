"""Every block of commands, every configuration and every piece of Python in the pages runs.

Pages are tried in English and in Chinese. The code of both is the same but for comments, and is run
once where that holds. Blocks that need the outside say so, and their commands are still read by the
command line.
"""

from __future__ import annotations

import importlib
import re
import shutil
from pathlib import Path

import pytest

from keju import cli
from keju.cli import command
from tests.pages.blocks import (
    KINDS,
    PAGES,
    ROOT,
    Block,
    blocks_of,
    commands_in,
    original_of,
    shell_code,
)
from tests.pages.stage import House, Stage

EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@EVERY_PAGE
def test_blocks_say_what_they_hold(page: Path) -> None:
    for block in blocks_of(page):
        assert block.kind in KINDS, block.place
        assert block.outside != "", f"{block.place}: a mark without a reason"
    lines = ["", *page.read_text("utf-8").splitlines()]
    fences = [line.startswith("```") for line in lines]
    inside = [sum(fences[:number]) % 2 == 1 for number in range(len(lines))]
    indented = [n for n, line in enumerate(lines) if line.startswith("    ") and not inside[n]]
    assert [n for n in indented if not lines[n - 1].strip()] == [], "code without a fence"


@EVERY_PAGE
def test_both_languages_have_the_same_code(page: Path) -> None:
    """Comments aside, and text that is shown as text."""

    def code(page: Path) -> list[tuple[str, str, bool]]:
        blocks = [block for block in blocks_of(page) if block.kind != "text"]
        return [(block.kind, block.bare, block.outside is None) for block in blocks]

    assert code(page) == code(original_of(page))


def read(words: list[str]) -> None:
    """Let the command line read a command without running it."""
    entry = cli._find_command(words[0], {each.name: each for each in cli.COMMANDS})
    importlib.import_module(entry.module)
    name, rest = entry.name, words[1:]
    if name not in command.COMMANDS:
        name, rest = f"{name} {rest[0]}", rest[1:]
    command.parse(command.COMMANDS[name], rest)


@pytest.mark.slow
@EVERY_PAGE
def test_the_command_line_takes_every_command(page: Path) -> None:
    """Those of blocks that need the outside, too."""
    for block in blocks_of(page):
        if block.kind in ("bash", "console"):
            for words in commands_in(shell_code(block)):
                read(words)


def test_few_blocks_need_the_outside() -> None:
    """A mark is for what cannot run here, not for what is hard to prepare."""
    blocks = [b for p in PAGES if p == original_of(p) for b in blocks_of(p)]
    commands = [block for block in blocks if block.kind in ("bash", "console")]
    marked = [block.place for block in commands if block.outside is not None]
    print(f"{len(commands)} blocks of commands, {len(marked)} need the outside: {marked}")
    assert len(marked) < len(commands) / 3


NOT_RUN = {
    "python": "tests/test_docs.py runs it, and looks at what comes of it",
    "reference-python": "signatures, made from the code",
}
"""Pages whose code is not run here, and why."""


def runnable(page: Path) -> list[Block]:
    """The blocks of a page that can run here."""
    if page.name.partition(".")[0] in NOT_RUN:
        return []
    kinds = ("bash", "console", "python", "yaml")
    return [b for b in blocks_of(page) if b.kind in kinds and b.outside is None]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [p for p in PAGES if runnable(p)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_blocks_run(page: Path, house: House, tmp_path: Path) -> None:
    """In order, in one folder; a page that says the same in Chinese is not run again."""
    blocks, original = runnable(page), original_of(page)
    if page != original and [b.bare for b in blocks] == [b.bare for b in runnable(original)]:
        return
    code = "".join(block.code for block in blocks)
    for program in ("jq",):
        if f" {program} " in code and shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    stage = Stage(house, tmp_path, blocks)
    for block in blocks:
        print(f"--- {block.place}")
        if block.kind == "python":
            print(stage.python(block.code))
        elif block.kind == "yaml":
            assert block.file, "name the file in a comment of the first line"
            if not re.search(rf"(-c|--config) {re.escape(block.file)}|exam\.yaml", code):
                print(stage.shell(f"keju eval -c {block.file} --dry-run"))
        else:
            print(stage.shell(shell_code(block)))
