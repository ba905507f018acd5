"""Everything that code in a cell may try against bubblewrap, with the result that is documented."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.solvers.sandbox.attempts import ATTEMPTS, documented, host, try_all
from tests.solvers.sandbox.rooms import SMALL, opened, plain_user, run

pytestmark = pytest.mark.slow


def test_what_code_tries_has_the_documented_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keju.solvers.sandbox.kernel.GRACE", 3.0)
    monkeypatch.setattr("keju.solvers.sandbox.kernel.MOST_OUTPUT", 80 * 2**20)
    assert len(ATTEMPTS) > 60

    async def battery() -> None:
        sandbox = await opened(SMALL)
        with host(tmp_path) as target:
            async with sandbox:
                results = await try_all(SMALL, sandbox, tmp_path, target)
        assert not any(root.exists() for root in sandbox.supervisor._roots)
        expected = documented("bubblewrap")
        different = {
            t: (results[t], expected.get(t)) for t in results if results[t] != expected.get(t)
        }
        assert different == {}

    try:
        run(battery(), 900)
    finally:
        # Folders that are nested this deep are too much for pytest's own clearing up.
        subprocess.run(["rm", "-rf", *map(str, tmp_path.iterdir())], check=True)


AS_PLAIN_USER = """
import asyncio, json, sys
from pathlib import Path
from tests.solvers.sandbox import attempts
from tests.solvers.sandbox.rooms import SMALL
from keju.solvers.sandbox.sandbox import Sandbox

groups = "files", "devices", "network", "keys", "processes", "environment"
chosen = [each for each in attempts.ATTEMPTS if each.group in groups]
# Limits on numbers do not depend on the user: the other test looks at them.
attempts.ATTEMPTS = [attempt for attempt in chosen if "without end" not in attempt.action]
settings = SMALL.model_copy(update={"read_only": (sys.argv[1],)})

async def main():
    folder = Path.cwd() / "host"
    folder.mkdir()
    with attempts.host(folder) as target:
        async with Sandbox(settings) as sandbox:
            print(json.dumps(await attempts.try_all(settings, sandbox, folder, target)))

asyncio.run(main())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="the other test is of a plain user then")
def test_what_code_of_a_plain_user_tries_has_the_documented_result() -> None:
    """Inside, the code runs as the user who started Keju: its keys are that user's keys."""
    with plain_user() as user:
        ran = user.run(AS_PLAIN_USER, str(Path(pytest.__file__).parents[1]))
        assert ran.returncode == 0, ran.stderr
        results, expected = json.loads(ran.stdout), documented("bubblewrap")
        assert len(results) > 60
        different = {
            t: (results[t], expected.get(t)) for t in results if results[t] != expected.get(t)
        }
        assert different == {}
