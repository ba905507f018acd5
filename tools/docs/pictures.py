"""``python -m tools.docs.pictures [RUN]``: the pictures of the README, made from a real run.

Without a run the demo of ``make demo`` is run first, which takes a minute. The terminal is a pseudo
terminal in which ``keju score RUN`` really writes; the report is what Chromium shows of the run's
own page. Both are made in English and in Chinese, which needs a font that has it, such as that of
Debian's package fonts-wqy-zenhei.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tools.docs.pages import ROOT

FOLDER = ROOT / "docs" / "pictures"
COLUMNS = 100
WIDTH, LINE, MARGIN = 8.4, 19, 16
"""Of a cell, in pixels; between two lines; around the text."""
PAGE, ABOVE = 1100, 760
"""Pixels of the report: its width, and how much of it the picture shows."""
PLAIN = Console()
# `0.25`, `95 % interval`: up to the next gap of a table. An SVG keeps single blanks only.
_WORDS = re.compile(r"\S+(?: \S+)*")
LANGUAGES = {"en": "", "zh-CN": ".zh-CN"}


def main() -> None:
    """Make all pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(sys.argv[1]) if len(sys.argv) > 1 else run_demo(Path(folder))
        run_copy = shutil.copytree(run, Path(folder, "runs", "demo"))
        for language, suffix in LANGUAGES.items():
            words = ["keju", "score", "demo", "--language", language[:2]]
            screen_text = in_terminal([sys.executable, "-m", *words], run_copy.parent)
            picture = drawn(" ".join(words[:3]), screen_text)
            (FOLDER / f"terminal{suffix}.svg").write_text(picture, "utf-8")
            photographed(run / "report.html", language, FOLDER / f"report{suffix}.png")


def run_demo(folder: Path) -> Path:
    """Run the demo and return its folder."""
    command = [sys.executable, "-m", "keju", "eval", "-c", str(ROOT / "examples" / "demo.yaml")]
    subprocess.run([*command, "--work-dir", str(folder), "--run-id", "demo"], check=True)
    return folder / "demo"


def in_terminal(command: Sequence[str], folder: Path) -> str:
    """Return what a command writes to a terminal with colours."""
    process, screen = pty.fork()
    if process == 0:  # the child, whose terminal is the other end
        os.chdir(folder)
        kept_variables = {
            name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ
        }
        settings = {
            "TERM": "xterm-256color",
            "PYTHONUTF8": "1",
            "KEJU_WORK_DIR": ".",
            "COLORTERM": "truecolor",
        }
        os.execve(command[0], list(command), kept_variables | settings)
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    written = b""
    while True:
        try:
            part = os.read(screen, 1 << 16)
        except OSError:  # the child has closed its end
            break
        if not part:
            break
        written += part
    _, status = os.waitpid(process, 0)
    if status:
        raise SystemExit(written.decode())
    return written.decode().replace("\r\n", "\n")


def drawn(command: str, screen_text: str) -> str:
    """A terminal as an SVG that stands alone: every word at its cell, in its colour."""
    lines = [Text(f"$ {command}", style="dim"), *Text.from_ansi(screen_text.rstrip()).split("\n")]
    rows = [_row(line, number) for number, line in enumerate(lines)]
    width, height = COLUMNS * WIDTH + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" role="img">\n'
        f'<rect width="100%" height="100%" rx="8" fill="#161b22"/>\n'
        "<g font-family=\"'DejaVu Sans Mono', Menlo, Consolas, 'Noto Sans CJK SC', monospace\" "
        'font-size="14" fill="#e6edf3">\n' + "\n".join(rows) + "\n</g>\n</svg>\n"
    )


def _row(line: Text, number: int) -> str:
    """One line; the parts between two changes of style stand at their own places."""
    words: list[str] = []
    y = MARGIN + LINE * number + 14
    for start, end in _pieces(line):
        style = line.get_style_at_offset(PLAIN, start)
        look = ' font-weight="bold"' if style.bold else ""
        look += ' fill="#7ee787"' if style.color is not None else ""
        look += ' opacity="0.7"' if style.dim else ""
        for match in _WORDS.finditer(line.plain, start, end):
            x = MARGIN + cell_len(line.plain[: match.start()]) * WIDTH
            size = cell_len(match[0]) * WIDTH
            words.append(
                f'<text x="{x:.1f}" y="{y}" textLength="{size:.1f}"{look}>{escape(match[0])}</text>'
            )
    return "".join(words)


def _pieces(line: Text) -> list[tuple[int, int]]:
    """Where the style of a line changes."""
    places = {0, len(line.plain), *(edge for span in line.spans for edge in (span.start, span.end))}
    edges = sorted(place for place in places if 0 <= place <= len(line.plain))
    return list(pairwise(edges))


def photographed(page: Path, language: str, picture: Path) -> None:
    """The upper part of a report, as a browser shows it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        tab = browser.new_page(viewport={"width": PAGE, "height": ABOVE})
        tab.goto(page.resolve().as_uri())
        tab.check(f"#in-{language}", force=True)
        tab.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main()
