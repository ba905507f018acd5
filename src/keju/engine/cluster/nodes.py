"""All calls of Ray: joining or starting a cluster, creating actors, calling them.

Ray has some unexpected behaviour, which this module handles:

- ``ray.init`` without an address joins any cluster that a stale file names. So Keju always passes
  an address.
- The processes of a cluster that is started here die with the *thread* that started them, and
  ``ray.init`` may hang for minutes where no server answers. So one thread makes all calls of Ray,
  and no task waits for it longer than the user's patience.
- Ray prints to this process's stdout. While it is in use, stdout is redirected to stderr.
- It listens on all interfaces, and writes a token to the home folder. A cluster that is started
  here uses the loopback address, with a token in its own folder.
- It stores the command line of the driver, and that may hold a key.
- ``ray stop`` ends every cluster of the user on the machine. So Keju never calls it.
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

from keju.config import RaySettings
from keju.engine.cluster.actor import Actor
from keju.errors import KejuError, MissingExtra, UsageError
from keju.models.base import one_line
from keju.models.llama.server import available_cores

STORE = 100 * 2**20
"""Bytes of the object store. Only replies of more than 100 kB go through it."""
BACKPRESSURE = 4
"""Reports that an actor may be ahead of the driver."""
FOLDERS = Path("/tmp")
"""Ray's folder is created here, because its sockets must not have long names."""
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""On other systems than Windows and macOS too, this makes Ray listen at 127.0.0.1."""
MODE, TOKEN, TOKEN_FILE = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
ADDRESS = "RAY_ADDRESS"
SHUTDOWN_SECONDS = 20.0
SILENT: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}

T = TypeVar("T")


class ActorLost(Exception):
    """An actor, or its node, is gone or hangs."""


class ActorResources(NamedTuple):
    """The resources of a node that an actor needs."""

    cpus: float
    gpus: float
    resources: Mapping[str, float] = {}

    @property
    def amounts(self) -> dict[str, float]:
        """The amounts by Ray's names."""
        amounts = {"CPU": self.cpus, "GPU": self.gpus, **self.resources}
        return {name: amount for name, amount in amounts.items() if amount}

    def count_places(self, nodes: list[dict[str, float]]) -> int:
        """Return how many actors these nodes have room for: one per node where they need no
        resources."""
        required_amounts = self.amounts.items()
        return sum(
            min((int(node.get(name, 0.0) / amount) for name, amount in required_amounts), default=1)
            for node in nodes
        )


class RayCluster:
    """A cluster of Ray, while this process is its driver."""

    def __init__(self, settings: RaySettings) -> None:
        self.settings = settings
        self.address = settings.address or ("auto" if os.environ.get(ADDRESS) else "local")
        self._thread = _RayThread()
        self._streams = _OutputStreams()
        self._old_environment: dict[str, str | None] = {}
        self._folder: Path | None = None
        self._called_init = False
        """Whether this object has called ``ray.init`` and must undo it."""
        self._hangs = False

    async def open(self) -> None:
        """Join or start the cluster. Raise UsageError with one line where that fails."""
        require_ray()
        if "ray" in sys.modules and sys.modules["ray"].is_initialized():
            return None  # the caller of Keju initialised it and keeps it
        local, env_address = self.address == "local", os.environ.get(ADDRESS, "")
        place = env_address if self.address == "auto" and env_address else self.address
        problem = "no answer"
        try:
            async with asyncio.timeout(self.settings.patience):
                await _check_address(place)
                self._called_init = True
                self._redirect()  # before the import, which reads the environment
                return await self._thread.call(self._start if local else self._join)
        except TimeoutError:
            self._hangs = True
        except (Exception, SystemExit) as error:
            problem = _last_line(error)
        finally:
            printed_line = self._streams.listen()
        raise self._open_error(
            place, one_line(f"{problem}: {printed_line}" if printed_line else problem)
        )

    def _open_error(self, place: str, problem: str) -> UsageError:
        """Return the error for a cluster that cannot be joined or started."""
        shown_address = place if place == self.address else f"{ADDRESS}={place}"
        code = "ray_not_started" if self.address == "local" else "ray_no_cluster"
        return UsageError(code, address=shown_address, problem=problem)

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
        """Prepare the environment and the output streams of this process."""
        environment = dict(QUIET)
        if self.address == "local":
            self._folder = Path(tempfile.mkdtemp(prefix="keju-ray-", dir=FOLDERS))
            token = self._folder / "token"
            token.touch(mode=0o600)
            token.write_text(secrets.token_hex(32))
            environment |= LOOPBACK | {MODE: "token", TOKEN_FILE: str(token)}
        elif MODE not in os.environ:
            default = Path.home() / ".ray" / "auth_token"
            has_token = os.environ.get(TOKEN) or os.environ.get(TOKEN_FILE) or default.is_file()
            environment[MODE] = "token" if has_token else "disabled"
        self._old_environment = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        self._streams.hush()

    async def resources(self) -> list[dict[str, float]]:
        """Return the resources of each node, in use or not."""
        import ray

        nodes: list[dict[str, Any]] = await self._thread.call(ray.nodes)
        return [dict(node["Resources"]) for node in nodes if node["Alive"]]

    def hire(self, need: ActorResources) -> RayActorHandle:
        """Create an actor. It starts as soon as there is room for it."""
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
        return RayActorHandle(options.remote(), self.settings.patience)

    async def close(self) -> None:
        """Leave the cluster. One that was started here ends. Restore stdout in every case."""
        try:
            if self._called_init and not self._hangs:
                import ray

                with suppress(TimeoutError):
                    async with asyncio.timeout(SHUTDOWN_SECONDS):
                        await self._thread.call(ray.shutdown)
        finally:
            self._thread.end()
            self._streams.restore()
            for name, value in self._old_environment.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)


class RayActorHandle:
    """The driver's handle of an actor. If the actor is gone in any way, calls raise `ActorLost`."""

    def __init__(self, handle: Any, patience: float) -> None:
        self._handle = handle
        self._patience = patience

    async def hello(self) -> dict[str, str]:
        """Return the identity of the actor, as soon as it has a place."""
        import ray

        try:
            actor_facts: dict[str, str] = await self._handle.hello.remote()
        except ray.exceptions.RayError as error:
            raise ActorLost(_last_line(error)) from None
        return actor_facts

    async def stream(self, method: str, argument: bytes) -> AsyncIterator[bytes]:
        """Yield the results of a method, item by item. Raise `ActorLost` if it is silent for too
        long.

        The time limit covers the wait for the next item, not the time that the caller uses.
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
                raise ActorLost(f"no sign of life for {self._patience:g} s") from None
            except ray.exceptions.RayError as error:
                raise ActorLost(_last_line(error)) from None
            yield item

    def stop(self) -> None:
        """Stop the actor from sending requests."""
        self._handle.stop.remote()

    def release(self) -> None:
        """End its process at once."""
        import ray

        with suppress(Exception):  # it may be gone, and so may Ray
            ray.kill(self._handle)


class KejuActor(Actor):
    """An actor that knows its node."""

    async def hello(self) -> dict[str, str]:
        import ray

        actor_facts = await super().hello()
        return actor_facts | {"id": ray.get_runtime_context().get_node_id(), "ray": ray.__version__}


class _OutputStreams:
    """The targets of stdout and stderr of this process while Ray is in use.

    hush      while it joins: both go to a file, whose last line may explain an error
    listen    stderr is restored, and stdout goes there too
    restore   both are restored
    """

    def __init__(self) -> None:
        self._saved_descriptors: list[int] = []
        self._file: BinaryIO | None = None

    def hush(self) -> None:
        self._flush()
        self._saved_descriptors = [os.dup(1), os.dup(2)]
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `listen`)
        for number in (1, 2):
            os.dup2(self._file.fileno(), number)

    def listen(self) -> str:
        """Return the last line that Ray has printed, or ""."""
        file, self._file = self._file, None
        if file is None:
            return ""
        self._flush()
        for number in (1, 2):
            os.dup2(self._saved_descriptors[1], number)
        with file:
            file.seek(0)
            lines = file.read().decode("utf-8", "replace").split("\n")
        last_line = next((line for line in reversed(lines) if line.strip()), "")
        return last_line.rpartition("] ")[2]  # behind the time and the place in Ray's own code

    def restore(self) -> None:
        self.listen()
        self._flush()
        for number, descriptor in enumerate(self._saved_descriptors, 1):
            os.dup2(descriptor, number)
            os.close(descriptor)
        self._saved_descriptors = []

    @staticmethod
    def _flush() -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()


class _RayThread:
    """The one thread that starts Ray, makes calls that may take long, and ends it."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def call(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, called in the thread."""
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
            failure: BaseException | None = None
            try:
                result = work()
            except BaseException as error:
                failure = error
            with suppress(RuntimeError):  # the loop is closed, and no task waits any more
                loop.call_soon_threadsafe(settle, result, failure)

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


async def _check_address(place: str) -> None:
    """Raise OSError where no server listens at HOST:PORT. Ray itself would try for a long time."""
    host, colon, port = place.rpartition(":")
    if colon and port.isdigit():
        _, writer = await asyncio.open_connection(host, int(port))
        writer.close()


def require_ray() -> None:
    """Raise MissingExtra where Ray is not installed."""
    if find_spec("ray") is None:
        raise MissingExtra("executor 'ray'", "ray")


def _hide_command_line() -> None:
    """Hide the driver's command line, which Ray shows to all users of a cluster."""
    from ray._private import utils

    utils.get_entrypoint_name = lambda: "keju"


def _last_line(error: BaseException) -> str:
    """Return the last line of an error of Ray. The other lines are its traceback."""
    if isinstance(error, KejuError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return one_line(f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__)
