"""The house in which pages are tried: one endpoint and one warm process for all of them."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.pages.blocks import ROOT
from tests.pages.stage import House, Oracle
from tests.support import anthropic_server
from tests.support.anthropic_server import AnthropicServer
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


@pytest.fixture(scope="session")
def house(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Endpoints that answer like OpenAI and Anthropic, ``keju`` on PATH, real data."""
    folder = tmp_path_factory.mktemp("house")
    answer = Oracle(data_dir)
    with (
        TemporaryDirectory() as short,  # the name of a socket may be no longer than 108 bytes
        FaultyEndpoint(Plan(answers=answer)) as first,
        FaultyEndpoint(Plan(answers=answer)) as second,
        FaultyEndpoint(Plan(answers=answer)) as third,
        AnthropicServer(
            anthropic_server.AnthropicPlan("So the answer is (A).", key=None)
        ) as anthropic,
    ):
        place, port = Path(short) / "keju", free_port()
        programs = [
            subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, stdout=subprocess.PIPE)
            for words in (
                ("tests.pages.warm", str(place)),
                ("tests.pages.web_tools", str(port)),
            )
        ]
        try:
            started = programs[0].stdout
            assert started is not None
            assert started.readline() == b"ready\n"
            urls = (first.url, second.url, third.url)
            web = f"http://127.0.0.1:{port}/mcp"
            built = House(folder, place, data_dir, urls, anthropic.url, web)
            built.programs()
            yield built
        finally:
            for program in programs:
                program.kill()
                program.communicate()
