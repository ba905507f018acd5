"""What no attack may reach: what is looked at after every command that was attacked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from perf.soak.case import CommandResult
from perf.soak.hostile.bodies import forms
from perf.soak.zygote import keju

KEY = 'sk-Mark/7+"<&=Z9xQ-41'
"""The key of the endpoint: with characters that every encoding writes in its own way."""
SERVER_KEY = "tok-Server/8+'>&=Y3vW-52"
"""The secret of an MCP server."""
CANARY = "canary"
"""A file that only a command that got out makes: ``touch canary``."""
MOST_KIB = 700 * 1024
"""The most memory of a command. The copy that it starts from has about 150 MiB."""
# The escape character, BEL, NUL and other controls that a terminal obeys; not tab, line end.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]")


class Attacked(NamedTuple):
    """How a command that was attacked ended, and what is wrong with that."""

    process: CommandResult
    problem: str


def attacked(
    folder: Path,
    *argv: str,
    codes: Iterable[int],
    environ: dict[str, str] | None = None,
    seconds: float = 60.0,
    most_kib: int = MOST_KIB,
) -> Attacked:
    """Run a command in the folder `work` of an attack, and check what it may not do."""
    work = folder / "work"
    for name in ("home", "tmp", "work"):
        (folder / name).mkdir(exist_ok=True)
    before = _names(folder)
    variables = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "LC_ALL": "C.UTF-8"}
    variables |= {"NO_PROXY": "127.0.0.1", "COLUMNS": "200"} | (environ or {})
    process = keju(work, *argv, environ=variables, seconds=seconds)
    problem = (
        process.broken
        or _wrong_end(process, set(codes), most_kib)
        or _escaped(folder, before, process)
    )
    if problem:
        problem = f"keju {argv[0]}: {problem}"
    return Attacked(process, problem)


def _wrong_end(process: CommandResult, codes: set[int], most_kib: int) -> str:
    last_line = process.err.strip().rpartition("\n")[2]
    if process.code not in codes:
        return f"exit code {process.code}: {last_line[:300]}"
    if process.code and not last_line:
        return f"exit code {process.code} without a word"
    if process.peak > most_kib:
        return f"{process.peak // 1024} MiB of memory"
    if match := _CONTROLS.search(process.out + process.err):
        return f"a control character on the terminal: {match[0]!r}"
    if len(process.err) > 200_000:
        return f"{len(process.err)} characters of messages"
    return ""


def _escaped(folder: Path, before: set[str], process: CommandResult) -> str:
    """Return what got out: a file, a command that ran, a key."""
    new = _names(folder) - before
    outside = [name for name in new if not name.startswith(("work/", "home/.cache", "work."))]
    if outside:
        return f"files outside of the folder: {sorted(outside)[:5]}"
    if canaries := [name for name in new if Path(name).name == CANARY]:
        return f"a command ran: {canaries}"
    secrets = {form for key in (KEY, SERVER_KEY) for form in forms(key) if form}
    texts = {"the terminal": (process.out + process.err).encode("utf-8", "replace")}
    for name in new | {"work/runs"}:
        texts |= _contents(folder / name)
    for location, text in texts.items():
        if leaked_forms := [form for form in secrets if form.encode() in text]:
            return f"a key is in {location}: {leaked_forms[0]}"
    return ""


def _contents(path: Path) -> dict[str, bytes]:
    """Return the bytes of a file, or of all files below a folder, that a run wrote."""
    paths = [path] if path.is_file() else [*path.rglob("*")]
    regular_files = (
        p for p in paths if p.is_file() and not p.is_symlink() and "input" not in p.parts
    )
    return {str(p): p.read_bytes() for p in regular_files if p.stat().st_size < 2**28}


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def damaged_lines(journal: Path) -> str:
    """Return which line of a journal is no record; empty where all are."""
    if not journal.exists():
        return ""
    for number, line in enumerate(journal.read_bytes().splitlines(), 1):
        try:
            json.loads(line)
        except ValueError:
            return f"line {number} of {journal.name} is damaged"
    return ""


class _Page(HTMLParser):
    """Finds what an attack put into a page as more than text."""

    def __init__(self) -> None:
        super().__init__()
        self.active_tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            text = (value or "").strip().lower()
            risky = name.startswith("on") and "pwned" in text
            if risky or text.startswith(("javascript:", "data:text/html")):
                self.active_tags.append(f"<{tag} {name}={text[:60]}>")
        if tag in ("iframe", "object", "embed", "base", "meta-pwned"):
            self.active_tags.append(f"<{tag}>")


def active_content(page: Path) -> str:
    """Return what of an attack is active in an HTML page; empty where all of it is text."""
    if not page.exists():
        return ""
    parser = _Page()
    parser.feed(page.read_text("utf-8", "replace"))
    return f"{page.name} has {parser.active_tags[0]}" if parser.active_tags else ""
