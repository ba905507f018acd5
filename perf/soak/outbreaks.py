"""The part ``outbreaks``: every attack on the sandbox and on the viewer, once for each user.

The attacks are those of `perf.soak.attacks` and `perf.soak.attacks_viewer`. Each attempt on the
sandbox is a case, all attacks on the viewer are one. They run as the user of the soak, and as a
normal user as well where the soak runs as root and the system has a Python for every user.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path

from perf.measure import ROOT
from perf.soak.attacks import attacks
from perf.soak.case import Case, environment

NUMBER = 12345
"""The normal user's number; no account needs to have it."""
SANDBOX, VIEWER = "perf.soak.attacks", "perf.soak.attacks_viewer"
SECONDS = 1800.0
"""After which a case hangs; all attacks on the viewer take minutes."""
ROOT_USER, NORMAL, SAME = "root", "a normal user", "this user"


def cases() -> list[Case]:
    """Return the attacks of each user."""
    return [
        Case(f"{name} as {user}", partial(_alone, user, module, names))
        for user in users()
        for name, module, names in (
            *((attack.name, SANDBOX, (attack.name,)) for attack in attacks()),
            ("all on the viewer", VIEWER, ()),
        )
    ]


def summary() -> str:
    """Return the users."""
    return f"as {' and as '.join(users())}"


@cache
def users() -> tuple[str, ...]:
    """Return who can attack on this machine."""
    if os.geteuid():
        return (SAME,)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    check = f"import sys, venv; assert sys.version.startswith('{version}.')"
    has = subprocess.run([_system(), "-c", check], capture_output=True, check=False)
    return (ROOT_USER,) if has.returncode or not shutil.which("setpriv") else (ROOT_USER, NORMAL)


def _system() -> str:
    return shutil.which("python3", path="/usr/bin") or "false"


@cache
def _packages() -> Path:
    """Return the folder of the packages that Keju needs."""
    spec = importlib.util.find_spec("ipykernel")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parents[1]


@cache
def _python() -> str:
    """Make a Python that every user may run and that imports Keju and the soak."""
    place = Path(tempfile.mkdtemp(prefix="keju-soak-", dir="/tmp"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    place.chmod(0o755)
    subprocess.run([_system(), "-m", "venv", "--without-pip", place], check=True)
    paths = (_packages(), ROOT / "src", ROOT)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "soak.pth").write_text("".join(f"{path}\n" for path in paths))
    return str(place / "bin" / "python")


def _alone(user: str, module: str, names: tuple[str, ...], _folder: Path) -> str:
    """Run attacks as their own process; return what went wrong, or an empty text.

    The folder of the case may be closed to the normal user, so that it gets another.
    """
    with tempfile.TemporaryDirectory(prefix="keju-soak-", dir="/tmp") as folder_name:
        folder = Path(folder_name)
        argv, env = [sys.executable], environment()
        if user == NORMAL:
            os.chown(folder, NUMBER, NUMBER)
            numbers = (f"--reuid={NUMBER}", f"--regid={NUMBER}", "--clear-groups")
            argv = ["setpriv", *numbers, "--", _python()]
            env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder)}
        readable = str(_packages()) if user == NORMAL else ""
        words = ["0", "0", str(folder), readable] if module == SANDBOX else [str(folder), "0"]
        try:
            ran = subprocess.run(
                [*argv, "-m", module, *words, *names],
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "it hangs"
    if not ran.returncode:
        return ""
    lines = [line for line in ran.stdout.splitlines() if " s: " in line and "s: held" not in line]
    return "; ".join(lines) or ran.stderr.strip()[-400:] or f"exit code {ran.returncode}"
