"""Everything that code in a cell may try against bubblewrap, with the result that is documented."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.solvers.sandbox.attempts import ATTEMPTS, documented, host, try_all
from tests.solvers.sandbox.rooms import SMALL, opened, run


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
        wanted = documented("bubblewrap")
        different = {t: (results[t], wanted.get(t)) for t in results if results[t] != wanted.get(t)}
        assert different == {}

    try:
        run(battery(), 900)
    finally:
        # Folders that are nested this deep are too much for pytest's own clearing up.
        subprocess.run(["rm", "-rf", *map(str, tmp_path.iterdir())], check=True)
