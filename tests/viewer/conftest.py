"""A real browser, and the viewer to look at with it."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import uvicorn

from keju.config import TaskConfig
from keju.task import run_exams
from keju.viewer.app import make_app
from keju.viewer.run_index import RunIndex
from tests.viewer.runs import HOSTILE, acting, mixed, record, write

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
AXE = (
    Path(os.environ.get("KEJU_TEST_AXE", Path.home() / ".cache" / "keju-bridges" / "axe"))
    / "node_modules"
    / "axe-core"
    / "axe.min.js"
)
OURS = ("file:", "data:", "http://127.0.0.1:")
Open = Callable[..., "Page"]


class Site(NamedTuple):
    """The viewer over a folder of runs."""

    address: str
    runs: Path


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one exam, and one whose data is not at hand."""
    folder = tmp_path_factory.mktemp("runs")
    for name, seed in (("one", 1), ("two", 2)):
        settings: dict[str, Any] = {"generation_config": {"seed": seed}}
        run_exams(
            TaskConfig(
                model="scripted", datasets=["demo"], run_id=name, work_dir=str(folder), **settings
            )
        )
    write(folder / "stored", [*mixed(120), acting(200), record(201, text=HOSTILE)])
    return folder


@pytest.fixture(scope="session")
def site(runs: Path) -> Iterator[Site]:
    """The viewer, served on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as own:
        config = uvicorn.Config(make_app(RunIndex(runs)), log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield Site(f"http://127.0.0.1:{own.getsockname()[1]}", runs)
        server.force_exit = server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; tests that need it skip where it is missing.

    Playwright keeps an event loop running in this thread for as long as it is open, and then
    `asyncio.run` refuses: it is closed before a test of another file comes.
    """
    if CHROMIUM is None:
        pytest.skip("no chromium: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open an address; errors in the console, dialogs and requests outside fail the test."""
    contexts: list[Any] = []
    bad: list[str] = []

    def open_(url: str, width: int = 1280, scheme: Any = "light", **more: Any) -> Page:
        view: Any = {"width": width, "height": 844}
        context: Any = browser.new_context(viewport=view, color_scheme=scheme, **more)
        contexts.append(context)

        def gate(route: Any) -> None:
            inside = route.request.url.startswith(OURS)
            if not inside:
                bad.append(route.request.url)
            route.continue_() if inside else route.abort()

        context.route("**/*", gate)
        context.set_default_timeout(15_000)

        def console(message: Any) -> None:
            if message.type in ("error", "warning"):
                bad.append(message.text)

        def dialog(opened: Any) -> None:
            bad.append(opened.message)
            opened.dismiss()

        page: Any = context.new_page()
        page.on("console", console)
        page.on("pageerror", lambda error: bad.append(str(error)))
        page.on("dialog", dialog)
        page.goto(url)
        opened: Page = page
        return opened

    yield open_
    for context in contexts:
        context.close()
    assert not bad, bad


@pytest.fixture
def violations() -> Callable[[Page], list[str]]:
    """What axe-core finds on a page, at two widths and in both schemes."""
    if not AXE.is_file():
        pytest.skip(f"no axe-core at {AXE}: make test installs it where npm is")
    source = AXE.read_text("utf-8")

    def look(page: Page) -> list[str]:
        found = []
        page.evaluate(source)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 844})
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{wide} px too wide at {width} px"
            # The schemes have the same elements; of the dark one only the colours are looked at.
            for scheme, rules in (("light", ""), ("dark", "runOnly: ['color-contrast'], ")):
                page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                report = page.evaluate(f"axe.run({{{rules}resultTypes: ['violations']}})")
                found += [
                    f"{width} {scheme} {v['id']}: {v['nodes'][0]['html'][:200]}"
                    for v in report["violations"]
                ]
        return found

    return look
