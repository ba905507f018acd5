"""Kernels in containers of Podman, with an image that the test packs itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from keju.config.arms import SandboxSettings as Settings
from keju.solvers.sandbox.orphan_cleanup import find_leftovers
from tests.solvers.sandbox.attempts import documented, host, try_all
from tests.solvers.sandbox.rooms import SIZES, kill_with_kernels, opened, run
from tests.support.notebooks import PIXEL

pytestmark = pytest.mark.slow

IMAGE = f"localhost/keju-test:{os.getpid()}"
FOLDERS = "usr lib lib64 bin etc tmp proc dev sys workspace run/kernel"
"""An image without a program: the host's own are mounted."""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed")
    root = tmp_path_factory.mktemp("image")
    for name in FOLDERS.split():
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    packed = subprocess.run(["tar", "-C", str(root), "-c", "."], capture_output=True, check=True)
    imported = subprocess.run(
        ["podman", "import", "-", IMAGE], input=packed.stdout, capture_output=True, check=False
    )
    if imported.returncode:
        pytest.skip(f"podman cannot import an image: {imported.stderr.decode()[-200:]}")
    mounted = ["/usr", "/lib", "/lib64", "/bin"]
    values = {"backend": "podman", "image": IMAGE, "venv": sys.prefix, "read_only": mounted}
    yield Settings.model_validate(SIZES | values)
    subprocess.run(["podman", "rmi", IMAGE], capture_output=True, check=False)


def containers() -> str:
    listing = ["podman", "ps", "--all", "--format", "{{.Names}}", "--filter", "label=keju.process"]
    return subprocess.run(listing, capture_output=True, text=True, check=True).stdout


def test_what_code_tries_has_the_documented_result(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keju.solvers.sandbox.kernel.MOST_OUTPUT", 80 * 2**20)

    async def battery() -> None:
        sandbox = await opened(settings)
        with host(tmp_path) as target:
            async with sandbox:
                results = await try_all(settings, sandbox, tmp_path, target)
                facts = sandbox.facts()
        assert not any(root.exists() for root in sandbox.supervisor._roots)
        assert facts["runtime"] in ("crun", "runc")
        assert facts["memory_bound"] == "cgroup"
        assert facts["image_digest"]
        expected = documented("podman")
        mismatches = {t: (results[t], expected[t]) for t in expected if results[t] != expected[t]}
        assert mismatches == {}

    try:
        run(battery(), 1200)
    finally:
        subprocess.run(["rm", "-rf", *map(str, tmp_path.iterdir())], check=True)
    assert f"keju-{os.getpid()}-" not in containers()


def test_a_killed_keju_leaves_no_container(settings: Settings, tmp_path: Path) -> None:
    killed = kill_with_kernels(settings, tmp_path)
    assert f"keju-{killed}-" not in containers()


def test_containers_that_crashes_left_are_listed(settings: Settings) -> None:
    exited = subprocess.Popen(["true"])
    exited.wait()
    name = f"keju-{exited.pid}-test"
    label = f"keju.process={exited.pid}"
    make = ["podman", "--runtime", "runc", "create", "--name", name, "--label", label, IMAGE, "x"]
    subprocess.run(make, check=True, capture_output=True)
    try:
        leftovers = [(leftover.what.text(), leftover.remedy) for leftover in find_leftovers()]
        assert (f"container {name}", f"podman rm --force {name}") in leftovers
    finally:
        subprocess.run(["podman", "rm", "--force", name], check=True, capture_output=True)


def test_cells_share_their_state_and_kernels_share_nothing(
    settings: Settings, tmp_path: Path
) -> None:
    works = [tmp_path / "a", tmp_path / "b"]
    for work in works:
        work.mkdir()
        (work / "given").write_text(work.name)
    picture = f"from IPython.display import Image; import base64\nImage(base64.b64decode('{PIXEL}'), format='png')"

    async def run_two_kernels() -> None:
        sandbox = await opened(settings, concurrency=2)
        async with (
            sandbox,
            sandbox.kernel(works[0]) as kernel,
            sandbox.kernel(works[1]) as other_kernel,
        ):
            await kernel.run("x = 20; open('secret', 'w').write('s'); open('/tmp/secret', 'w')")
            result = await kernel.run("while True: pass", timeout=0.5)
            assert (result.timed_out, result.restarted) == (True, False)
            assert (await kernel.run("x * 2")).text == "40\n"
            assert (await kernel.run(picture)).images[0].startswith(b"\x89PNG")
            code = "import os; sorted(os.listdir()) + os.listdir('/tmp') + [open('given').read()]"
            assert (await other_kernel.run(code)).text.count("secret") == 0
            assert (await other_kernel.run("open('given').read()")).text == "'b'\n"

    run(run_two_kernels())
    assert (works[0] / "secret").read_text() == "s"
