"""The sandbox of a session: a tested backend, and the kernels that run in it.

>>> sandbox = Sandbox(settings, concurrency=8)
>>> await sandbox.open()                        UsageError if no backend works
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

from keju.config.arms import SandboxSettings as Settings
from keju.errors import Notice, UsageError
from keju.solvers.sandbox import memory
from keju.solvers.sandbox.backends import (
    BACKENDS,
    RUNTIMES,
    Backend,
    Bubblewrap,
    Container,
    LaunchCommand,
    ProgramLocation,
    choose_owner,
)
from keju.solvers.sandbox.kernel import Kernel, Language
from keju.solvers.sandbox.supervisor import DEVNULL, PIPE, SupervisedProcess, Supervisor

TRIAL_SECONDS: Final = 60.0
NICE: Final = 2
"""Niceness of sandboxed processes, so that Keju itself has priority."""
NO_KERNEL: Final = 77
"""The exit code of a trial whose Python lacks the packages of kernels."""
VSOCK: Final = 40
"""Sockets to the host of a virtual machine; a working filter blocks them."""
# Prints the version of Python and its packages, if a kernel can be started.
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
# Prints the version of Python, for programs that need no kernel.
PLAIN_TRIAL = PYTHON_TRIAL.replace("ipykernel", "sys")
R_TRIAL = "library(IRkernel); cat(R.version.string)"


class BackendProbe(NamedTuple):
    """The result of trying a backend."""

    backend: str
    ok: bool
    version: str = ""
    runtime: str = ""
    """The option that it works with: Podman's runtime, an option of bubblewrap."""
    problem: Notice | None = None
    """The reason if it does not work."""
    image: str = ""
    """The digest of the image."""
    python: str = ""
    packages: Mapping[str, str] = MappingProxyType({})
    cgroup: bool = False
    """Whether cgroups limit memory and processes."""
    filtered: bool = False
    """Whether system calls are filtered."""


class ProgramOutput(NamedTuple):
    """The exit code and the output of a program."""

    code: int
    out: str
    problem: str | Notice


class Sandbox:
    """Runs kernels; see the example at the top of this file."""

    def __init__(
        self,
        settings: Settings,
        supervisor: Supervisor | None = None,
        *,
        concurrency: int = 1,
        run_id: str = "",
        kernels: bool = True,
    ) -> None:
        """Without `kernels` its Python needs no packages."""
        self.settings, self.run_id = settings, run_id
        self._trial = PYTHON_TRIAL if kernels else PLAIN_TRIAL
        self._own_supervisor = None if supervisor else Supervisor()
        self.supervisor = supervisor or self._own_supervisor or Supervisor()
        self.memory, self.concurrency = memory.memory_shares(
            settings.memory, concurrency, memory.available_memory()
        )
        self.notices: list[Notice] = []
        if self.concurrency < concurrency:
            values = {"asked": concurrency, "episodes": self.concurrency}
            self.notices.append(Notice("sandbox_fewer_at_once", values))
        self._slots = asyncio.Semaphore(self.concurrency)
        self.backend: Backend = BACKENDS[settings.active_backend](settings, run_id=run_id)
        self.probed: BackendProbe | None = None
        self.r = ""
        """The version of R, if R kernels were requested and work."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Try the backend; raise UsageError in one line if it does not work."""
        probe = await self.probe()
        if not probe.ok:
            values = {"backend": probe.backend, "problem": probe.problem}
            absent = probe.backend == "bwrap" and shutil.which("bwrap") is None
            raise UsageError("sandbox_absent" if absent else "sandbox_does_not_work", **values)

    async def close(self) -> None:
        """End everything."""
        if self._own_supervisor is not None:
            await self._own_supervisor.close()

    async def probe(self) -> BackendProbe:
        """Run a program in the backend, once; try each of its runtimes until one works."""
        if self.probed is None:
            self.probed = await self._run_probe()
        return self.probed

    async def _run_probe(self) -> BackendProbe:
        name = self.settings.active_backend
        if (binary := self.backend.binary) and shutil.which(binary) is None:
            return BackendProbe(
                name, False, problem=Notice("sandbox_not_installed", {"program": binary})
            )
        version, image = await self._read_version(), ""
        if isinstance(self.backend, Container):
            if not version:
                values = {
                    "engine": name,
                    "problem": (await self._run_outside([name, "version"])).problem,
                }
                code = "sandbox_no_engine" if values["problem"] else "sandbox_silent_engine"
                return BackendProbe(name, False, problem=Notice(code, values))
            if self.settings.image is None:
                return BackendProbe(name, False, version, problem=Notice("sandbox_names_no_image"))
            inspect_command = [name, "image", "inspect", "--format", "{{.Id}}", self.settings.image]
            image = (await self._run_outside(inspect_command)).out.strip()
            if not image:
                absent = Notice("sandbox_no_image", {"engine": name, "image": self.settings.image})
                return BackendProbe(name, False, version, problem=absent)
        problems: list[str | Notice] = []
        for runtime in RUNTIMES.get(name, ("",)):
            self.backend.runtime = runtime
            trial = await self._run_inside([self.backend.python, "-c", self._trial])
            with suppress(ValueError, KeyError):
                facts = json.loads(trial.out) if trial.code == 0 else {}
                trial_values = facts["python"], facts["packages"], await self._has_cgroups()
                filtered = name != "none" and facts.get("filtered", False)
                return BackendProbe(
                    name, True, version, runtime, None, image, *trial_values, filtered
                )
            if trial.code == NO_KERNEL:
                absent = Notice("sandbox_no_kernel", {"python": self.backend.python})
                return BackendProbe(name, False, version, problem=absent)
            problem = trial.problem or Notice("sandbox_exit_code", {"number": trial.code})
            if problem not in problems:
                problems.append(problem)
        program = self.backend.binary or name
        absent = Notice("sandbox_fails", {"program": program, "problem": problems})
        return BackendProbe(name, False, version, problem=absent)

    async def can_run(self, language: Language) -> bool:
        """Whether kernels of a language can be started."""
        if language == "python":
            return (await self.probe()).ok
        trial = await self._run_inside(["Rscript", "-e", R_TRIAL])
        self.r = trial.out if trial.code == 0 else ""
        return bool(self.r)

    @asynccontextmanager
    async def kernel(self, work: Path, language: Language = "python") -> AsyncIterator[Kernel]:
        """Yield a kernel whose current folder is `work`.

        The content of the folder belongs to the kernel's user from then on. Code may have put links
        into it, so later readers must not follow them.
        """
        await self.probe()
        async with self._slots:
            kernel = Kernel(self, work.absolute(), language)
            try:
                await kernel.start()
                yield kernel
            finally:
                await kernel.stop()

    def room(self, work: Path, user: int | None) -> ProgramLocation:
        """Return a new run folder for a work folder, with the user and the memory."""
        run = self.supervisor.folder("kernel", short=True)
        if user is not None:
            os.chown(run, user, user)
        return ProgramLocation(
            work, run, user, self.memory, f"keju-{os.getpid()}-{secrets.token_hex(6)}"
        )

    async def start(self, launch: LaunchCommand, room: ProgramLocation) -> SupervisedProcess:
        """Start an isolated command, with limited memory."""
        is_bounded = self.probed is not None and self.probed.cgroup
        needs_scope = is_bounded and isinstance(self.backend, Bubblewrap)
        prefix = scope_command(room.memory, self.settings.processes + 8) if needs_scope else []
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
        """Return the facts of the sandbox for the manifest."""
        probe = self.probed or BackendProbe(self.settings.active_backend, False)
        setting_names = (
            "network",
            "image",
            "venv",
            "read_only",
            "processes",
            "open_files",
            "cpu_seconds",
        )
        sizes = ("max_file_bytes", "max_work_bytes", "scratch_bytes", "cell_timeout")
        limits = {name: getattr(self.settings, name) for name in (*setting_names, *sizes)}
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

    async def _read_version(self) -> str:
        name = self.settings.active_backend
        commands = {
            "bwrap": ["bwrap", "--version"],
            "docker": ["docker", "version", "--format", "{{.Server.Version}}"],
            "podman": ["podman", "version", "--format", "{{.Client.Version}}"],
        }
        if name not in commands:
            return ""
        trial = await self._run_outside(commands[name])
        return trial.out.strip().removeprefix("bubblewrap ") if trial.code == 0 else ""

    async def _has_cgroups(self) -> bool:
        if isinstance(self.backend, Container):
            return True
        argv = scope_command(2**28, 64)
        can_scope = bool(argv) and isinstance(self.backend, Bubblewrap)
        return can_scope and (await self._run_outside([*argv, "true"])).code == 0

    async def _run_outside(self, argv: Sequence[str]) -> ProgramOutput:
        return await self._run_program(list(argv), dict(os.environ), "/", (), ())

    async def _run_inside(self, argv: Sequence[str]) -> ProgramOutput:
        work = self.supervisor.folder("trial")
        user = choose_owner()
        if user is not None:
            os.chown(work, user, user)
        room = self.room(work, user)
        launch = self.backend.launch(room, argv)
        folders = (work, room.run)
        return await self._run_program(launch.argv, launch.env, launch.cwd, launch.after, folders)

    async def _run_program(
        self,
        argv: list[str],
        env: dict[str, str],
        cwd: str,
        after: Sequence[Sequence[str]],
        remove: Sequence[Path],
    ) -> ProgramOutput:
        """Run a program to its end, within the time limit of a trial."""
        try:
            process = await self.supervisor.start(
                argv, env=env, cwd=cwd, stdin=DEVNULL, stderr=PIPE, after=after, remove=remove
            )
        except OSError as error:
            return ProgramOutput(127, "", f"{argv[0]}: {error.strerror}")
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(TRIAL_SECONDS):
                output, errors = await asyncio.gather(process.stdout.read(), process.stderr.read())
                code = await process.wait()
        except TimeoutError:
            return ProgramOutput(124, "", Notice("sandbox_no_answer", {"seconds": TRIAL_SECONDS}))
        finally:
            await process.end()
        lines = errors.decode("utf-8", "replace").strip().splitlines() or [""]
        return ProgramOutput(code, output.decode("utf-8", "replace"), lines[-1][:300])


def scope_command(size: int, processes: int) -> list[str]:
    """Return a prefix that runs a command in a new cgroup with limits; [] if that is not
    possible."""
    if shutil.which("systemd-run") is None:
        return []
    manager: Literal["--system", "--user"] = "--system" if os.getuid() == 0 else "--user"
    bounds = f"MemoryMax={size}", "MemorySwapMax=0", f"TasksMax={processes}"
    properties = [word for bound in bounds for word in ("--property", bound)]
    return ["systemd-run", manager, "--scope", "--quiet", "--collect", *properties, "--"]
