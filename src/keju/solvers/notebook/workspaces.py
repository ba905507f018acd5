"""Sandboxed work folders for episodes: each is new, and none is left after the session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from keju.errors import KejuError, UsageError
from keju.solvers.sandbox.folders import remove, tree_of
from keju.solvers.sandbox.kernel import Kernel, KernelDied, Language
from keju.solvers.sandbox.output import CellResult
from keju.solvers.sandbox.sandbox import Sandbox
from keju.solvers.toolbox import ToolsLost

GONE: Final = (
    "The kernel is gone and is not started again ({reason}). No code can be run any more: give your"
    " answer."
)


class Workspaces:
    """The sandbox of a session and its work folders."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._root: Path | None = None
        self._numbers = count()
        # There are at most as many copies of data at a time as kernels.
        self._places = asyncio.Semaphore(sandbox.concurrency)

    async def open(self, language: Language = "python") -> None:
        """Check that kernels of a language can be started, and make the root of the work
        folders."""
        await self.sandbox.open()
        if not await self.sandbox.can_run(language):
            raise UsageError("sandbox_without_r", backend=self.sandbox.settings.active_backend)
        self._root = self.sandbox.supervisor.folder("work")
        self._root.chmod(0o711)

    async def close(self) -> None:
        """End every kernel and remove every folder."""
        await self.sandbox.close()
        if self._root is not None:
            await asyncio.to_thread(remove, self._root)

    @asynccontextmanager
    async def episode(
        self,
        prepare: Callable[[Path], Mapping[str, Any]] = lambda _: {},
        language: Language = "python",
    ) -> AsyncIterator[Workspace]:
        """Yield a folder that `prepare` has filled, and a kernel that works in it."""
        assert self._root is not None
        work = self._root / str(next(self._numbers))
        async with self._places:
            work.mkdir(mode=0o700)
            try:
                try:
                    data = await asyncio.to_thread(prepare, work)
                # This question's data causes the error, not the run.
                except (KejuError, OSError) as error:
                    raise ToolsLost("server_lost", str(error)) from None
                async with self.sandbox.kernel(work, language) as kernel:
                    yield Workspace(kernel, work, data)
            except KernelDied as died:
                raise ToolsLost("kernel_died", str(died)) from None
            finally:
                await asyncio.to_thread(remove, work)


class Workspace:
    """One episode's kernel, folder and data."""

    def __init__(self, kernel: Kernel, work: Path, data: Mapping[str, Any]) -> None:
        self.work, self.data = work, data
        self._kernel = kernel
        self._death_reason = ""
        # Calls of one turn come at the same time, but a kernel runs one cell after the other.
        self.turn = asyncio.Lock()

    async def run(self, code: str) -> CellResult:
        """Run a cell. If code kills its kernel for good, the model may still answer.

        Raises ToolsLost if the kernel was lost before any code ran, because then the host caused
        it.
        """
        if self._death_reason:
            text = GONE.format(reason=self._death_reason)
            return CellResult(text, error="KernelDied", died=self._death_reason, ran=False)
        try:
            return await self._kernel.run(code)
        except KernelDied as died:
            if not died.by_code:
                raise ToolsLost("kernel_died", str(died)) from None
            return self._result_of_death(died.reason, died)
        except KejuError:
            raise
        except Exception as error:  # no reply to code may become an error of Keju
            if not self._kernel.code_ran:
                raise
            return self._result_of_death(
                "lost", KernelDied("exit", type(error).__name__, by_code=True)
            )

    def _result_of_death(self, reason: str, died: KernelDied) -> CellResult:
        """Return the last result of a kernel that code has ended for good."""
        self._death_reason = reason
        text = "\n".join(filter(None, (died.text, GONE.format(reason=died))))
        return CellResult(text, error="KernelDied", died=reason, ran=died.ran)

    async def tree(self) -> dict[str, Any]:
        """Return the names of the files in the work folder; raise OSError if it cannot be read."""
        return await asyncio.to_thread(tree_of, self.work)

    def facts(self) -> dict[str, Any]:
        """Return the facts of the data and the kernel."""
        return {"data": self.data, "kernel": self._kernel.facts()}
