"""The pictures of the documentation, from real runs: the terminal as SVG, the pages as PNG."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from html import escape
from pathlib import Path
from typing import Any

import uvicorn
from playwright.sync_api import Browser, sync_playwright

from keju.api import report
from keju.messages import Language
from keju.messages.wrapping import cells
from keju.viewer.app import make_app
from keju.viewer.run_index import RunIndex

SUFFIXES: dict[Language, str] = {"en": "", "zh": ".zh-CN"}
"""The end of a picture's name, by language."""
SIZE = {"width": 1100, "height": 760}
LEFT, CELL, LINE = 16, 8.4, 19
"""Pixels of an SVG: the margin, the width of a cell, the height of a line."""
FONTS = "'DejaVu Sans Mono', Menlo, Consolas, 'Noto Sans CJK SC', monospace"


def draw_terminal(capture: Path, picture: Path) -> None:
    """Draw the text of a capture as an SVG."""
    lines = capture.read_text("utf-8").splitlines()
    width = round(2 * LEFT + CELL * max(map(cells, lines)))
    height = LINE * len(lines) + 2 * LEFT
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        '<rect width="100%" height="100%" rx="8" fill="#161b22"/>',
        f'<g font-family="{FONTS}" font-size="14" fill="#e6edf3">',
    ]
    for number, line in enumerate(lines):
        text = line.strip()
        if text:
            left = LEFT + CELL * (cells(line) - cells(line.lstrip()))
            place = f'x="{left:.1f}" y="{LEFT + 14 + LINE * number}"'
            length = f'textLength="{CELL * cells(text):.1f}" xml:space="preserve"'
            faint = ' opacity="0.7"' if text.startswith("$ ") else ""
            parts.append(f"<text {place} {length}{faint}>{escape(text)}</text>")
    picture.write_text("\n".join([*parts, "</g>", "</svg>", ""]), "utf-8")


def take_pictures(runs: Path, demo: Path, run: str, folder: Path) -> None:
    """Take pictures of the demo's report, of the viewer's first page and of one run there."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("the pictures need chromium: apt-get install chromium")
    with chdir(runs.parent), sync_playwright() as playwright, _serve(runs.name) as address:
        browser = playwright.chromium.launch(executable_path=chromium)
        for language, suffix in SUFFIXES.items():
            page = demo / f"report{suffix}.html"
            report(demo, page, language=language)
            _photograph(browser, page.as_uri(), folder / f"report{suffix}.png")
            for name, path in {"viewer": "/", "viewer-run": f"/runs/{run}"}.items():
                url = f"{address}{path}?lang={language}"
                _photograph(browser, url, folder / f"{name}{suffix}.png")
        browser.close()


def _photograph(browser: Browser, url: str, picture: Path) -> None:
    view: Any = SIZE
    page = browser.new_page(viewport=view)
    page.goto(url)
    page.screenshot(path=picture, timeout=120_000)
    page.close()


@contextmanager
def _serve(runs: str) -> Iterator[str]:
    """Serve the viewer of a folder of runs on loopback; yield its address.

    The pages show the folder, so it is relative.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(make_app(RunIndex(Path(runs))), log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)
