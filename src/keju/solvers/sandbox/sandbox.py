"""The sandbox of a session: a backend that was seen to work, and the kernels that run in it.

>>> sandbox = Sandbox(settings, concurrency=8)
>>> await sandbox.open()                        UsageError where no backend works
>>> async with sandbox.kernel(work) as kernel:
...     result = await kernel.run("1 + 1", timeout=60)
>>> await sandbox.close()
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Self

from keju.config.arms import Sandbox as Settings
from keju.errors import Notice, UsageError
from keju.solvers.sandbox import memory
from keju.solvers.sandbox.backends import (
    BACKENDS,
    RUNTIMES,
    Backend,
    Bubblewrap,
    Container,
    Launch,
    Room,
    owner,
)
from keju.solvers.sandbox.kernel import Kernel, Language
from keju.solvers.sandbox.supervisor import DEVNULL, PIPE, Process, Supervisor

TRIAL_SECONDS: Final = 60.0
NICE: Final = 2
"""Keju itself comes first."""
NO_KERNEL: Final = 77
"""The exit code of a trial whose Python lacks what kernels need."""
VSOCK: Final = 40
"""Sockets that reach the machine around a virtual one; no filter that works lets them through."""
# Says what Python and which packages there are, where a kernel can be started.
PYTHON_TRIAL = f"""
import importlib.metadata as known, json, socket, sys
try:
    import ipykernel
except ImportError:
    sys.exit({NO_KERNEL})
packages = {{each.name: each.version for each in known.distributions()}}
about = {{"python": sys.version.split()[0], "packages": dict(sorted(packages.items()))}}
try:
    socket.socket({VSOCK}, socket.SOCK_STREAM).close()
except OSError:
    about["filtered"] = True
print(json.dumps(about))
"""
R_TRIAL = "library(IRkernel); cat(R.version.string)"


class Probe(NamedTuple):
    """What came of trying a backend."""

    backend: str
    ok: bool
    version: str = ""
    runtime: str = ""
    """What it works with: Podman's runtime, an option of bubblewrap."""
    problem: Notice | None = None
    """What is missing where it does not work."""
    image: str = ""
    """The digest of the image."""
    python: str = ""
    packages: Mapping[str, str] = MappingProxyType({})
    cgroup: bool = False
    """Whether memory and processes are bounded by the system's own groups."""
    filtered: bool = False
    """Whether system calls are filtered."""


class Ran(NamedTuple):
    """What a program said before it ended."""

    code: int
    out: str
    problem: str | Notice


class Sandbox:
    """Runs kernels; see the first lines of this file."""

    def __init__(
        self,
        settings: Settings,
        supervisor: Supervisor | None = None,
        *,
        concurrency: int = 1,
        run_id: str = "",
    ) -> None:
        self.settings, self.run_id = settings, run_id
        self._own = None if supervisor else Supervisor()
        self.supervisor = supervisor or self._own or Supervisor()
        self.memory, self.concurrency = memory.shares(
            settings.memory, concurrency, memory.available()
        )
        self.notices: list[Notice] = []
        if self.concurrency < concurrency:
            values = {"asked": concurrency, "episodes": self.concurrency}
            self.notices.append(Notice("sandbox_fewer_at_once", values))
        self._slots = asyncio.Semaphore(self.concurrency)
        self.backend: Backend = BACKENDS[settings.active_backend](settings, run_id=run_id)
        self.probed: Probe | None = None
        self.r = ""
        """The version of R, where kernels of it were asked for and work."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Try the backend; UsageError, in one line, where it does not work."""
        probe = await self.probe()
        if not probe.ok:
            values = {"backend": probe.backend, "problem": probe.problem}
            absent = probe.backend == "bwrap" and shutil.which("bwrap") is None
            raise UsageError("sandbox_absent" if absent else "sandbox_does_not_work", **values)

    async def close(self) -> None:
        """End everything."""
        if self._own is not None:
            await self._own.close()

    async def probe(self) -> Probe:
        """Run a program in the backend, once; with each of its runtimes until one works."""
        if self.probed is None:
            self.probed = await self._probe()
        return self.probed

    async def _probe(self) -> Probe:
        name = self.settings.active_backend
        if (binary := self.backend.binary) and shutil.which(binary) is None:
            return Probe(name, False, problem=Notice("sandbox_not_installed", {"program": binary}))
        version, image = await self._version(), ""
        if isinstance(self.backend, Container):
            if not version:
                values = {
                    "engine": name,
                    "problem": (await self._outside([name, "version"])).problem,
                }
                code = "sandbox_no_engine" if values["problem"] else "sandbox_silent_engine"
                return Probe(name, False, problem=Notice(code, values))
            if self.settings.image is None:
                return Probe(name, False, version, problem=Notice("sandbox_names_no_image"))
            look = [name, "image", "inspect", "--format", "{{.Id}}", self.settings.image]
            image = (await self._outside(look)).out.strip()
            if not image:
                lack = Notice("sandbox_no_image", {"engine": name, "image": self.settings.image})
                return Probe(name, False, version, problem=lack)
        problems: list[str | Notice] = []
        for runtime in RUNTIMES.get(name, ("",)):
            self.backend.runtime = runtime
            ran = await self._inside([self.backend.python, "-c", PYTHON_TRIAL])
            with suppress(ValueError, KeyError):
                facts = json.loads(ran.out) if ran.code == 0 else {}
                known = facts["python"], facts["packages"], await self._has_cgroups()
                filtered = name != "none" and facts.get("filtered", False)
                return Probe(name, True, version, runtime, None, image, *known, filtered)
            if ran.code == NO_KERNEL:
                lack = Notice("sandbox_no_kernel", {"python": self.backend.python})
                return Probe(name, False, version, problem=lack)
            problem = ran.problem or Notice("sandbox_exit_code", {"number": ran.code})
            if problem not in problems:
                problems.append(problem)
        program = self.backend.binary or name
        lack = Notice("sandbox_fails", {"program": program, "problem": problems})
        return Probe(name, False, version, problem=lack)

    async def speaks(self, language: Language) -> bool:
        """Whether kernels of a language can be started."""
        if language == "python":
            return (await self.probe()).ok
        ran = await self._inside(["Rscript", "-e", R_TRIAL])
        self.r = ran.out if ran.code == 0 else ""
        return bool(self.r)

    @asynccontextmanager
    async def kernel(self, work: Path, language: Language = "python") -> AsyncIterator[Kernel]:
        """A kernel whose current folder is `work`, for as long as the block lasts.

        What is in the folder belongs to the kernel's user from then on. Code may have put links
        into it: whoever reads it later must not follow them.
        """
        await self.probe()
        async with self._slots:
            kernel = Kernel(self, work.absolute(), language)
            try:
                await kernel.start()
                yield kernel
            finally:
                await kernel.stop()

    def room(self, work: Path, user: int | None) -> Room:
        """A fresh run folder beside a work folder."""
        run = self.supervisor.folder("kernel", short=True)
        if user is not None:
            os.chown(run, user, user)
        return Room(work, run, user, self.memory, f"keju-{os.getpid()}-{secrets.token_hex(6)}")

    async def start(self, launch: Launch, room: Room) -> Process:
        """Start what a backend has shut in, with its memory bounded."""
        bounded = self.probed is not None and self.probed.cgroup
        wrapped = bounded and isinstance(self.backend, Bubblewrap)
        prefix = scope(room.memory, self.settings.processes + 8) if wrapped else []
        return await self.supervisor.start(
            [*prefix, *launch.argv],
            env=launch.env,
            cwd=launch.cwd,
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=PIPE,
            memory=room.memory,
            nice=NICE,
            after=launch.after,
            remove=[room.run],
        )

    def facts(self) -> dict[str, Any]:
        """What the manifest says about the sandbox."""
        probe = self.probed or Probe(self.settings.active_backend, False)
        named = ("network", "image", "venv", "read_only", "processes", "open_files", "cpu_seconds")
        sizes = ("max_file_bytes", "max_work_bytes", "scratch_bytes", "cell_timeout")
        limits = {name: getattr(self.settings, name) for name in (*named, *sizes)}
        return {
            **{"backend": probe.backend, "version": probe.version, "runtime": probe.runtime},
            **{"unsafe": self.settings.unsafe, "image_digest": probe.image, "python": probe.python},
            **{
                "packages": dict(probe.packages),
                "memory": self.memory,
                "at_once": self.concurrency,
            },
            **{"memory_bound": "cgroup" if probe.cgroup else "polled"},
            "system_calls_filtered": probe.filtered,
            **limits,
            **({"r": self.r} if self.r else {}),
        }

    async def _version(self) -> str:
        name = self.settings.active_backend
        asked = {
            "bwrap": ["bwrap", "--version"],
            "docker": ["docker", "version", "--format", "{{.Server.Version}}"],
            "podman": ["podman", "version", "--format", "{{.Client.Version}}"],
        }
        if name not in asked:
            return ""
        ran = await self._outside(asked[name])
        return ran.out.strip().removeprefix("bubblewrap ") if ran.code == 0 else ""

    async def _has_cgroups(self) -> bool:
        if isinstance(self.backend, Container):
            return True
        argv = scope(2**28, 64)
        able = bool(argv) and isinstance(self.backend, Bubblewrap)
        return able and (await self._outside([*argv, "true"])).code == 0

    async def _outside(self, argv: Sequence[str]) -> Ran:
        return await self._run(list(argv), dict(os.environ), "/", (), ())

    async def _inside(self, argv: Sequence[str]) -> Ran:
        work = self.supervisor.folder("trial")
        user = owner()
        if user is not None:
            os.chown(work, user, user)
        room = self.room(work, user)
        launch = self.backend.launch(room, argv)
        folders = (work, room.run)
        return await self._run(launch.argv, launch.env, launch.cwd, launch.after, folders)

    async def _run(
        self,
        argv: list[str],
        env: dict[str, str],
        cwd: str,
        after: Sequence[Sequence[str]],
        remove: Sequence[Path],
    ) -> Ran:
        """Run a program to its end, or for as long as a trial may take."""
        try:
            process = await self.supervisor.start(
                argv, env=env, cwd=cwd, stdin=DEVNULL, stderr=PIPE, after=after, remove=remove
            )
        except OSError as error:
            return Ran(127, "", f"{argv[0]}: {error.strerror}")
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(TRIAL_SECONDS):
                out, said = await asyncio.gather(process.stdout.read(), process.stderr.read())
                code = await process.wait()
        except TimeoutError:
            return Ran(124, "", Notice("sandbox_no_answer", {"seconds": TRIAL_SECONDS}))
        finally:
            await process.end()
        lines = said.decode("utf-8", "replace").strip().splitlines() or [""]
        return Ran(code, out.decode("utf-8", "replace"), lines[-1][:300])


def scope(size: int, processes: int) -> list[str]:
    """A prefix that runs a command in a group of its own, bounded by the system; [] without one."""
    if shutil.which("systemd-run") is None:
        return []
    whose: Literal["--system", "--user"] = "--system" if os.getuid() == 0 else "--user"
    bounds = f"MemoryMax={size}", "MemorySwapMax=0", f"TasksMax={processes}"
    properties = [word for bound in bounds for word in ("--property", bound)]
    return ["systemd-run", whose, "--scope", "--quiet", "--collect", *properties, "--"]
