"""Backends that isolate a program: bubblewrap, a container of Docker or Podman, or no isolation.

A backend turns a command into one that runs isolated. Nothing relies on a backend before a trial:
`keju.solvers.sandbox.sandbox` runs a program through it and checks the result.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from keju.config.arms import SandboxSettings as Settings
from keju.solvers.sandbox import confine

WORK: Final = "/workspace"
RUN: Final = "/run/kernel"
NOBODY: Final = 65534
UIDS: Final = range(1_900_000_000, 2_000_000_000)
"""User ids that systems do not assign: one of them for each kernel, if Keju is root."""
LABEL: Final = "keju.process"
"""A label of containers: the process id of the Keju that started them."""
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin")
CONFIGURATION = (
    "/etc/ld.so.cache", "/etc/alternatives", "/etc/R", "/etc/fonts", "/etc/localtime",
)  # fmt: skip
NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki")
KEYRINGS = ("/proc/keys", "/proc/key-users")
"""Lists of keys, including the keys of the host's users."""
OUTSIDE = (
    "PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG",
    "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "CONTAINER_HOST",
)  # fmt: skip
"""Variables that container engines and systemd's scopes need."""


class ProgramLocation(NamedTuple):
    """The folders, the user and the memory of one program."""

    work: Path
    run: Path
    """A short, new folder for its sockets."""
    owner: int | None
    """The user that owns both folders and runs the program; None for Keju's own user."""
    memory: int
    name: str
    """The name of its container."""


SHUT_IN: Final = Path(confine.__file__).read_text("utf-8")
"""The program that drops rights before any other program runs inside."""


class LaunchCommand(NamedTuple):
    """The arguments of a start by the supervisor."""

    argv: list[str]
    env: dict[str, str]
    after: tuple[tuple[str, ...], ...] = ()
    cwd: str = "/"


def choose_owner() -> int | None:
    """Return a user id for one program: a new one if Keju is root and may use it."""
    if os.getuid() != 0:
        return None
    id_ranges = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    last_id = max((int(first_id) + int(count) for first_id, _, count in id_ranges), default=0)
    return random.choice(UIDS) if last_id > UIDS[-1] else NOBODY


def outer_environment() -> dict[str, str]:
    """Return the part of Keju's environment that isolating programs see."""
    return {name: os.environ[name] for name in OUTSIDE if name in os.environ}


def python_folders(venv: str | None) -> list[str]:
    """Return the folder of a Python environment and of the installation that it is based on."""
    folders = [sys.prefix, sys.base_prefix]
    if venv is not None:
        folders = [venv]
        file = Path(venv) / "pyvenv.cfg"
        for line in file.read_text("utf-8").splitlines() if file.is_file() else ():
            name, _, value = line.partition("=")
            if name.strip() == "home":  # ``home = /opt/python/bin``
                folders.append(str(Path(value.strip()).parent))
    return [path for path in dict.fromkeys(folders) if path != "/"]


class Backend:
    """A way to run a program; this one does not isolate it."""

    name = "none"
    binary: str | None = None
    """The program that must be installed."""

    def __init__(self, settings: Settings, *, run_id: str = "", runtime: str = "") -> None:
        self.settings, self.run_id, self.runtime = settings, run_id, runtime

    @property
    def python(self) -> str:
        """The interpreter, by its path inside the sandbox."""
        return str(Path(self.settings.venv or sys.prefix) / "bin" / "python")

    def inside(self, room: ProgramLocation) -> tuple[str, str]:
        """Return the work folder and the run folder, by their paths inside the sandbox."""
        return str(room.work), str(room.run)

    def environment(self, room: ProgramLocation) -> dict[str, str]:
        """Return all variables that the program sees."""
        path = f"{Path(self.python).parent}:/usr/local/bin:/usr/bin:/bin"
        return {
            **{"PATH": path, "HOME": self.inside(room)[0], "USER": "nobody", "LANG": "C.UTF-8"},
            **{"MPLCONFIGDIR": "/tmp/mpl", "IPYTHONDIR": "/tmp/ipy", "JUPYTER_PLATFORM_DIRS": "1"},
            **{"MPLBACKEND": "module://matplotlib_inline.backend_inline"},
            **{"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        }

    def limits(self, memory: int) -> dict[str, str]:
        """Return the limits of each process, by the names of ``prlimit``."""
        settings = self.settings
        return {
            # Not the address space, because each thread reserves far more than it uses.
            **{"data": str(memory), "core": "0", "nofile": str(settings.open_files)},
            # The first number is a signal that ends most programs, the second always ends them.
            "cpu": f"{settings.cpu_seconds}:{settings.cpu_seconds + 5}",
            "fsize": str(settings.max_file_bytes),
        }

    def shut_in(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs a command with a new keyring and filtered system calls."""
        return [self.python, "-I", "-S", "-c", SHUT_IN, *command]

    def launch(self, room: ProgramLocation, command: Sequence[str]) -> LaunchCommand:
        """Return the command that runs a command in its sandbox."""
        limits = [f"--{name}={value}" for name, value in self.limits(room.memory).items()]
        argv = ["prlimit", *limits, "--", *command]
        return LaunchCommand(argv, self.environment(room), cwd=str(room.work))


class Bubblewrap(Backend):
    """Isolation with namespaces for files, processes, users, messages, names and the network.

    If Keju is root, three programs are used. A first bubblewrap makes all folders reachable for a
    user without rights (a home is private). `setpriv` then becomes that user, and a second
    bubblewrap isolates it.
    """

    name = binary = "bwrap"

    def inside(self, room: ProgramLocation) -> tuple[str, str]:
        return WORK, RUN

    def limits(self, memory: int) -> dict[str, str]:
        # Set inside, where the user namespace only counts the processes of this sandbox.
        return super().limits(memory) | {"nproc": str(self.settings.processes)}

    def launch(self, room: ProgramLocation, command: Sequence[str]) -> LaunchCommand:
        limits = [f"--{name}={value}" for name, value in self.limits(room.memory).items()]
        limited = ["prlimit", *limits, "--", *self.shut_in(command)]
        inner = ["bwrap", *self._inner_options(room), "--", *limited]
        environment = outer_environment()  # bubblewrap clears it
        if room.owner is None:
            return LaunchCommand(inner, environment)
        user = f"--reuid={room.owner}", f"--regid={room.owner}", "--clear-groups"
        folders = (
            *self._readable_folders(room),
            *self._bind_options((room.work, WORK), (room.run, RUN)),
        )
        outer = ["bwrap", "--tmpfs", "/tmp", *folders]
        outer += ["--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", "--die-with-parent"]
        inner = ["setpriv", *user, "--", *inner]
        return LaunchCommand([*outer, "--", *inner], environment)

    def _inner_options(self, room: ProgramLocation) -> Iterator[str]:
        size = "--size", str(self.settings.scratch_bytes)
        yield from (*size, "--tmpfs", "/tmp")  # first, because it would hide binds below it
        yield from self._readable_folders(room)
        yield from ("--proc", "/proc", "--dev", "/dev", *size, "--tmpfs", "/dev/shm")
        yield from ("--ro-bind", "/proc/sys", "/proc/sys")
        for path in KEYRINGS:
            if Path(path).exists():  # not in every system kernel
                yield from ("--ro-bind", "/dev/null", path)
        is_nested = room.owner is not None  # the outer bubblewrap has moved them to their places
        work, run = (WORK, RUN) if is_nested else (str(room.work), str(room.run))
        yield from self._bind_options((work, WORK), (run, RUN))
        # Folders that bubblewrap creates are unlimited memory, unless they are read-only.
        yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK)
        yield from ("--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY), "--unshare-pid")
        yield from (
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup-try",
            *self._runtime_options(),
        )
        if self.settings.network == "none":
            yield "--unshare-net"
        yield from ("--hostname", "sandbox", "--cap-drop", "ALL", "--new-session")
        yield from ("--die-with-parent", "--clearenv")
        for name, value in self.environment(room).items():
            yield from ("--setenv", name, value)

    def _runtime_options(self) -> Iterator[str]:
        """Yield ``--disable-userns``, which older versions lack; the probe tries it as a
        "runtime"."""
        if self.runtime:
            yield self.runtime

    def _readable_folders(self, room: ProgramLocation) -> Iterator[str]:
        """Yield the readable folders: the system, the Python environment, the folders of the
        settings."""
        online = NETWORK if self.settings.network == "host" else ()
        settings_folders = [*python_folders(self.settings.venv), *self.settings.read_only]
        paths = dict.fromkeys((*SYSTEM, *CONFIGURATION, *online, *settings_folders))
        extra_paths = [path for path in paths if not _is_within(path, SYSTEM)]
        # Bubblewrap would create parents that only root can enter.
        parents = {str(up) for path in (*extra_paths, RUN) for up in Path(path).parents} - {"/"}
        for parent in sorted(parents):
            yield from ("--dir", parent)
        for path in (*SYSTEM, *extra_paths):
            yield from ("--ro-bind-try", path, path)

    def _bind_options(self, *pairs: tuple[object, str]) -> Iterator[str]:
        for source, target in pairs:
            yield from ("--bind", str(source), target)


def _is_within(path: str, folders: Sequence[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


class Container(Backend):
    """A container that runs attached, so that it ends with the client that started it."""

    @property
    def python(self) -> str:
        return super().python if self.settings.venv else "python"

    def inside(self, room: ProgramLocation) -> tuple[str, str]:
        return WORK, RUN

    def environment(self, room: ProgramLocation) -> dict[str, str]:
        variables = super().environment(room)
        if not self.settings.venv:
            del variables["PATH"]  # the image sets it
        return variables

    def launch(self, room: ProgramLocation, command: Sequence[str]) -> LaunchCommand:
        settings = self.settings
        user = room.owner if room.owner is not None else os.getuid()
        limits = self.limits(room.memory)
        limits |= {"nproc": str(settings.processes)}
        argv = [
            *(
                self.name,
                *self._engine_options(),
                "run",
                "--rm",
                "--name",
                room.name,
                "--pull",
                "never",
            ),
            *("--label", f"{LABEL}={os.getpid()}", "--label", f"keju.run={self.run_id}"),
            *("--network", settings.network, "--memory", str(room.memory)),
            *("--memory-swap", str(room.memory), "--pids-limit", str(settings.processes)),
            *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"),
            *("--tmpfs", f"/tmp:rw,nosuid,nodev,mode=1777,size={settings.scratch_bytes}"),
            *("--shm-size", str(settings.scratch_bytes), "--ipc", "private"),
            *("--hostname", "sandbox", "--user", f"{user}:{user}", "--workdir", WORK),
            *("--volume", f"{room.work}:{WORK}", "--volume", f"{room.run}:{RUN}"),
        ]
        readable = python_folders(settings.venv) if settings.venv else []
        for path in dict.fromkeys((*settings.read_only, *readable)):
            argv += ["--volume", f"{path}:{path}:ro"]
        for name, value in limits.items():
            argv += ["--ulimit", f"{name}={value if ':' in value else f'{value}:{value}'}"]
        for name, value in (self.environment(room) | self._blanked_variables()).items():
            argv += ["--env", f"{name}={value}"]
        argv += [settings.image or "", *self.shut_in(command)]
        return LaunchCommand(
            argv,
            outer_environment(),
            ((self.name, "rm", "--force", *self._stop_options(), room.name),),
        )

    def _engine_options(self) -> tuple[str, ...]:
        return ()

    def _blanked_variables(self) -> dict[str, str]:
        """Return variables that the engine would pass on by itself."""
        return {}

    def _stop_options(self) -> tuple[str, ...]:
        return ()


class Docker(Container):
    """Docker's daemon owns the container, so it is removed by name."""

    name = binary = "docker"

    def _blanked_variables(self) -> dict[str, str]:
        names = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY")
        return {spelt: "" for name in names for spelt in (name, name.lower())}


class Podman(Container):
    """Podman has no daemon; it works with one of two runtimes."""

    name = binary = "podman"

    def _engine_options(self) -> tuple[str, ...]:
        return ("--runtime", self.runtime) if self.runtime else ()

    def _stop_options(self) -> tuple[str, ...]:
        return ("--time", "0")

    def launch(self, room: ProgramLocation, command: Sequence[str]) -> LaunchCommand:
        launch = super().launch(room, command)
        option_index = launch.argv.index("run") + 1
        podman_options = ["--http-proxy=false", "--read-only-tmpfs=false"]
        podman_options += ["--userns", "keep-id"] if room.owner is None else []
        return launch._replace(
            argv=[*launch.argv[:option_index], *podman_options, *launch.argv[option_index:]]
        )


BACKENDS: dict[str, type[Backend]] = {
    backend.name: backend for backend in (Bubblewrap, Docker, Podman, Backend)
}
RUNTIMES: dict[str, tuple[str, ...]] = {
    "bwrap": ("--disable-userns", ""),
    "podman": ("crun", "runc"),
}
"""Runtimes that are tried with a backend, in this order; the first that works is used."""
