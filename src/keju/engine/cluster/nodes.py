"""All that touches Ray: joining or starting a cluster, making actors, calling them.

What Ray does otherwise than one would think, and what is done about it here:

- ``ray.init`` without an address joins whatever cluster a stale file names: one is always given.
- The processes of a cluster that is started here die with the *thread* that started them, and
  ``ray.init`` may hang for minutes where nobody answers. So one thread is Ray's from the first call
  to the last, and nobody waits for it longer than the user's patience.
- Ray prints to this process's stdout: as long as it is in use, stdout leads to stderr.
- It listens on all interfaces, and writes a token to the home folder: a cluster that is started
  here is on the loopback address, with a token in its own folder.
- It stores the command line of whoever joins, and that may hold a key.
- ``ray stop`` ends every cluster of the user on the machine: it is never called.
"""

from __future__ import annotations

import asyncio
import os
import queue
import secrets
import shutil
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from keju.config import Ray
from keju.engine.cluster.actor import Actor
from keju.errors import KejuError, MissingExtra, UsageError
from keju.models.base import one_line
from keju.models.llama.server import available_cores

STORE = 100 * 2**20
"""Bytes of the object store, which only a reply of more than 100 kB goes through."""
BACKPRESSURE = 4
"""Reports that an actor may be ahead of the driver."""
FOLDERS = Path("/tmp")
"""Below it Ray's folder is: its sockets must not have long names."""
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Off Windows and macOS too, this makes Ray listen at 127.0.0.1."""
MODE, TOKEN, TOKEN_FILE = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
ADDRESS = "RAY_ADDRESS"
SHUTDOWN_SECONDS = 20.0
SILENT: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}

T = TypeVar("T")


class Lost(Exception):
    """An actor, or its node, is gone or hangs."""


class Need(NamedTuple):
    """What an actor takes of a node."""

    cpus: float
    gpus: float
    resources: Mapping[str, float] = {}

    @property
    def named(self) -> dict[str, float]:
        """By Ray's names."""
        named = {"CPU": self.cpus, "GPU": self.gpus, **self.resources}
        return {name: amount for name, amount in named.items() if amount}

    def places(self, nodes: list[dict[str, float]]) -> int:
        """How many actors have room on these nodes; one a node where they take nothing."""
        named = self.named.items()
        return sum(
            min((int(node.get(name, 0.0) / amount) for name, amount in named), default=1)
            for node in nodes
        )


class Nodes:
    """A cluster of Ray, while this process is its driver."""

    def __init__(self, settings: Ray) -> None:
        self.settings = settings
        self.address = settings.address or ("auto" if os.environ.get(ADDRESS) else "local")
        self._thread = _Thread()
        self._streams = _Streams()
        self._before: dict[str, str | None] = {}
        self._folder: Path | None = None
        self._ours = False
        """Whether this object has called ``ray.init``, and has to undo it."""
        self._hangs = False

    async def open(self) -> None:
        """Join or start the cluster; UsageError in one line where that fails."""
        require_ray()
        if "ray" in sys.modules and sys.modules["ray"].is_initialized():
            return None  # by whoever calls Keju from Python; it stays theirs
        local, around = self.address == "local", os.environ.get(ADDRESS, "")
        place = around if self.address == "auto" and around else self.address
        problem = "no answer"
        try:
            async with asyncio.timeout(self.settings.patience):
                await _knock(place)
                self._ours = True
                self._redirect()  # before the import, which reads the environment
                return await self._thread.call(self._start if local else self._join)
        except TimeoutError:
            self._hangs = True
        except (Exception, SystemExit) as error:
            problem = _last_line(error)
        finally:
            told = self._streams.listen()
        problem = one_line(f"{problem}: {told}") if told else problem
        shown = place if place == self.address else f"{ADDRESS}={place}"
        code = "ray_not_started" if local else "ray_no_cluster"
        raise UsageError(code, address=shown, problem=problem)

    def _start(self) -> None:
        import ray

        _hide_command_line()
        ray.init(
            address="local",
            num_cpus=available_cores(),
            include_dashboard=False,
            object_store_memory=STORE,
            _temp_dir=str(self._folder),
            **SILENT,
        )

    def _join(self) -> None:
        import ray

        _hide_command_line()
        ray.init(address=self.address, **SILENT)

    def _redirect(self) -> None:
        """Prepare this process: its environment, and where its streams lead."""
        around = dict(QUIET)
        if self.address == "local":
            self._folder = Path(tempfile.mkdtemp(prefix="keju-ray-", dir=FOLDERS))
            token = self._folder / "token"
            token.touch(mode=0o600)
            token.write_text(secrets.token_hex(32))
            around |= LOOPBACK | {MODE: "token", TOKEN_FILE: str(token)}
        elif MODE not in os.environ:
            default = Path.home() / ".ray" / "auth_token"
            known = os.environ.get(TOKEN) or os.environ.get(TOKEN_FILE) or default.is_file()
            around[MODE] = "token" if known else "disabled"
        self._before = {name: os.environ.get(name) for name in around}
        os.environ.update(around)
        self._streams.hush()

    async def resources(self) -> list[dict[str, float]]:
        """What each node has, in use or not."""
        import ray

        nodes: list[dict[str, Any]] = await self._thread.call(ray.nodes)
        return [dict(node["Resources"]) for node in nodes if node["Alive"]]

    def hire(self, need: Need) -> Hand:
        """A new actor; it starts as soon as there is room for it."""
        import ray

        actor: Any = ray.remote(KejuActor)
        options = actor.options(
            num_cpus=need.cpus,
            num_gpus=need.gpus,
            resources=dict(need.resources),
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )
        return Hand(options.remote(), self.settings.patience)

    async def close(self) -> None:
        """Leave the cluster; one that was started here ends. Whatever happens, stdout is back."""
        try:
            if self._ours and not self._hangs:
                import ray

                with suppress(TimeoutError):
                    async with asyncio.timeout(SHUTDOWN_SECONDS):
                        await self._thread.call(ray.shutdown)
        finally:
            self._thread.end()
            self._streams.restore()
            for name, value in self._before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)


class Hand:
    """The driver's end of an actor; every way in which it can be gone is a `Lost`."""

    def __init__(self, handle: Any, patience: float) -> None:
        self._handle = handle
        self._patience = patience

    async def hello(self) -> dict[str, str]:
        """Who it is, as soon as it has a place."""
        import ray

        try:
            told: dict[str, str] = await self._handle.hello.remote()
        except ray.exceptions.RayError as error:
            raise Lost(_last_line(error)) from None
        return told

    async def stream(self, method: str, argument: bytes) -> AsyncIterator[bytes]:
        """What a method gives, item by item; one that is silent for too long is lost.

        The time limit covers the wait for the next item, not what is done with it meanwhile.
        """
        import ray

        call = getattr(self._handle, method).options(
            num_returns="streaming", _generator_backpressure_num_objects=BACKPRESSURE
        )
        items = call.remote(argument)
        while True:
            try:
                async with asyncio.timeout(self._patience):
                    item: bytes = await (await anext(items))
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise Lost(f"no sign of life for {self._patience:g} s") from None
            except ray.exceptions.RayError as error:
                raise Lost(_last_line(error)) from None
            yield item

    def stop(self) -> None:
        """Let it send nothing more."""
        self._handle.stop.remote()

    def dismiss(self) -> None:
        """End its process, whatever that is doing."""
        import ray

        with suppress(Exception):  # it may be gone, and so may Ray
            ray.kill(self._handle)


class KejuActor(Actor):
    """An actor that knows its node."""

    async def hello(self) -> dict[str, str]:
        import ray

        told = await super().hello()
        return told | {"id": ray.get_runtime_context().get_node_id(), "ray": ray.__version__}


class _Streams:
    """Where stdout and stderr of this process lead while Ray is in use.

    hush      while it joins: both to a file, of which the last line may say what is wrong
    listen    stderr is itself again, and stdout leads there too
    restore   both are themselves again
    """

    def __init__(self) -> None:
        self._own: list[int] = []
        self._file: BinaryIO | None = None

    def hush(self) -> None:
        self._flush()
        self._own = [os.dup(1), os.dup(2)]
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `listen`)
        for number in (1, 2):
            os.dup2(self._file.fileno(), number)

    def listen(self) -> str:
        """The last line that Ray has printed; empty where it has not."""
        file, self._file = self._file, None
        if file is None:
            return ""
        self._flush()
        for number in (1, 2):
            os.dup2(self._own[1], number)
        with file:
            file.seek(0)
            lines = file.read().decode("utf-8", "replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        return last.rpartition("] ")[2]  # behind the time and the place in Ray's own code

    def restore(self) -> None:
        self.listen()
        self._flush()
        for number, own in enumerate(self._own, 1):
            os.dup2(own, number)
            os.close(own)
        self._own = []

    @staticmethod
    def _flush() -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()


class _Thread:
    """The one thread that starts Ray, asks it whatever may take long, and ends it."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def call(self, work: Callable[[], T]) -> T:
        """What `work` gives, done in the thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def job() -> None:
            result: Any = None
            failed: BaseException | None = None
            try:
                result = work()
            except BaseException as error:
                failed = error
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(settle, result, failed)

        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="keju-ray", daemon=True)
            self._thread.start()
        self._jobs.put(job)
        return await future

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def end(self) -> None:
        """Let the thread end when it has nothing more to do."""
        self._jobs.put(None)


async def _knock(place: str) -> None:
    """OSError where nobody listens at HOST:PORT: Ray itself would try for a long time."""
    host, colon, port = place.rpartition(":")
    if colon and port.isdigit():
        _, writer = await asyncio.open_connection(host, int(port))
        writer.close()


def require_ray() -> None:
    """MissingExtra where Ray is not installed."""
    if find_spec("ray") is None:
        raise MissingExtra("executor 'ray'", "ray")


def _hide_command_line() -> None:
    """Ray stores the driver's command line where all users of a cluster see it."""
    from ray._private import utils

    utils.get_entrypoint_name = lambda: "keju"


def _last_line(error: BaseException) -> str:
    """The end of what Ray says: the rest is where it happened."""
    if isinstance(error, KejuError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return one_line(f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__)
