"""The process that starts all other processes, and ends them whenever Keju ends.

`keju.solvers.sandbox.supervisor` runs this file as a script. It imports little, so it starts in a
few hundredths of a second, and it never waits for Keju::

    Keju ──socket──> supervisor ──> keeper ──> program ──> processes that the program starts
                               └──> keeper ──> program ──> …

A keeper is a child subreaper: an orphan below it becomes its own child, even one that called setsid
and ignores signals. So the tree of a program is always the set of processes below its keeper. A
keeper ends its tree when its program has ended, on the supervisor's order, and when the supervisor
dies. The supervisor ends all trees when the socket closes or Keju is gone. It then removes the
folders that Keju works in, whose names it got before they were created.

Orders are lines of JSON that may come with file descriptors, and answers are lines of JSON::

    {"id": 1, "do": "start", "argv": ["cat"], "env": {}, "fds": [0, 1], "memory": 1073741824}
    {"id": 1, "do": "signal", "number": 15}      to the program's process group
    {"id": 1, "do": "kill"}                      the whole tree

    {"id": 1, "event": "started", "pid": 4711}   or "failed", with the number of the error
    {"id": 1, "event": "ended", "code": -9, "reason": "memory", "peak": 1090519040}
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

PARENT_DEATH, SUBREAPER = 1, 36
"""Numbers of prctl."""
PAGE = os.sysconf("SC_PAGE_SIZE")
PATIENCE = 20.0
"""Seconds for a tree to be gone after SIGKILL."""
CLEARING = 60.0
"""Seconds for a command that cleans up after a tree: engines may remove containers slowly."""
FASTEST = 4 * 2**30
"""Assumed fastest growth of a tree in bytes per second; it decides when to measure again."""
LOW_WATER = 0.04
"""The share of the host's memory below which the largest limited tree is ended."""
FREE_SOCKETS, FULL_SOCKET = 256, 2 * 212_992
"""Number of sockets that count as empty, and the bytes of a socket that is full in both
directions."""
MEMORY_FOLDERS = ("/tmp", "/dev/shm")
"""The memory file systems of a sandbox."""
FREE_ENTRIES, ENTRY_BYTES = 10_000, 1_300
"""Number of files in memory file systems that count as nothing, and the bytes of any other one."""
SHUT = {signal.SIGTERM, signal.SIGCHLD}


def prctl(option: int, value: int) -> None:
    """Call prctl on Linux; do nothing on other systems."""
    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class ProcessStatus(NamedTuple):
    """The state of a process in /proc."""

    parent: int
    state: str
    resident: int


def read_processes() -> dict[int, ProcessStatus]:
    """Return all processes of the host."""
    processes = {}
    for entry in os.scandir("/proc"):
        if (name := entry.name).isdigit():
            with suppress(OSError, IndexError, ValueError):
                # ``4711 (a name) S 1 …``: the name may contain anything, even ``) R 1``.
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
                process = ProcessStatus(int(fields[1]), fields[0].decode(), int(fields[21]) * PAGE)
                processes[int(name)] = process
    return processes


def descendants(root: int, processes: dict[int, ProcessStatus]) -> list[int]:
    """Return the processes below one, parents first."""
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    pids = [root]
    for pid in pids:
        pids += children.get(pid, [])
    return pids[1:]


def memory_of(pids: list[int], processes: dict[int, ProcessStatus], limit: int) -> int:
    """Return the bytes that a tree holds: resident, in memory files, shared mappings and sockets.

    Shared pages count once. Counting them is slow, so it is only done if it decides.
    """
    files = held_file_bytes(pids) + held_socket_bytes(pids) + held_entry_bytes(pids)
    resident = sum(processes[pid].resident for pid in pids)
    mapped = mapped_bytes(pids)[0]
    if resident + files + mapped <= limit:
        return resident + files
    pages = [shared_out_bytes(pid, processes[pid].resident) for pid in pids]
    # A process may unmap the pages of a shared mapping without freeing them.
    hidden_bytes = max(0, mapped - sum(shared for _, shared in pages))
    return sum(resident for resident, _ in pages) + files + hidden_bytes


def shared_out_bytes(pid: int, resident: int) -> tuple[int, int]:
    """Return the resident bytes of a process, and those of shared memory among them.

    Shared bytes are divided by the number of processes that share them.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
    except PermissionError:
        return resident, 0
    except OSError:  # it has ended
        return 0, 0
    sizes = {line.split()[0]: int(line.split()[1]) * 1024 for line in lines[1:]}
    return sizes.get(b"Pss:", 0), sizes.get(b"Pss_Shmem:", 0)


def held_file_bytes(pids: list[int]) -> int:
    """Return the bytes of open files without a name: ``/memfd:x (deleted)``."""
    sizes: dict[tuple[int, int], int] = {}
    for pid in pids:
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    if os.readlink(entry.path).startswith("/memfd:"):  # noqa: PTH115
                        status = os.stat(entry.path)  # noqa: PTH116
                        sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())


def mapped_bytes(pids: list[int]) -> tuple[int, int]:
    """Return the bytes of mappings of only these processes: of shared memory, and of deleted files.

    Mappings of deleted files on disks count. Those in the sandbox's memory file systems do not.
    """
    memory: dict[bytes, int] = {}
    files: dict[bytes, int] = {}
    for pid in pids:
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/maps").read_bytes().splitlines():
                if not line.endswith(b" (deleted)"):
                    continue
                # ``7f00-7f10 rw-s 00000000 00:01 2051 /dev/zero (deleted)``
                area, _, offset, disk, number, name = line.split(None, 5)
                start, end_address = (int(address, 16) for address in area.split(b"-"))
                if name.startswith((b"/dev/zero", b"/memfd:", b"/SYSV")):
                    memory[disk + number] = max(memory.get(disk + number, 0), end_address - start)
                elif not name.startswith((b"/tmp/", b"/dev/shm/")):
                    end = end_address - start + int(offset, 16)
                    files[disk + number] = max(files.get(disk + number, 0), end)
    return sum(memory.values()), sum(files.values())


def held_socket_bytes(pids: list[int]) -> int:
    """Return the bytes that the sockets of a tree may hold, if the tree has a separate network.

    The system reports the queued bytes of TCP and UDP sockets, but not of others. So each socket
    beyond the first FREE_SOCKETS counts as full.
    """
    bytes_waiting = sockets = 0
    networks: dict[str, int] = {}
    for pid in pids:
        with suppress(OSError):
            networks.setdefault(os.readlink(f"/proc/{pid}/ns/net"), pid)  # noqa: PTH115
    with suppress(OSError):
        networks.pop(os.readlink("/proc/self/ns/net"), None)  # noqa: PTH115
    for pid in networks.values():
        for kind in ("unix", "netlink", "tcp", "tcp6", "udp", "udp6"):
            with suppress(OSError, ValueError, IndexError):
                lines = Path(f"/proc/{pid}/net/{kind}").read_bytes().splitlines()[1:]
                sockets += len(lines)
                for line in lines if kind[:3] in ("tcp", "udp") else ():
                    # ``0: 0100007F:1F90 0100007F:B2C4 01 00000000:00280000 …``: sent, received
                    sizes = line.split()[4].split(b":")
                    bytes_waiting += sum(int(size, 16) for size in sizes)
    return bytes_waiting + max(0, sockets - FREE_SOCKETS) * FULL_SOCKET


def held_entry_bytes(pids: list[int]) -> int:
    """Return the bytes of the files, links and attributes in the memory file systems of a tree.

    An empty file takes memory of the system, which the size of a file system does not limit. The
    first FREE_ENTRIES are not counted.
    """
    views: dict[str, int] = {}
    for pid in pids:
        with suppress(OSError):
            views.setdefault(os.readlink(f"/proc/{pid}/ns/mnt"), pid)  # noqa: PTH115
    with suppress(OSError):
        views.pop(os.readlink("/proc/self/ns/mnt"), None)  # noqa: PTH115
    entries: dict[int, int] = {}
    for pid in views.values():
        for folder in MEMORY_FOLDERS:
            with suppress(OSError):
                path = f"/proc/{pid}/root{folder}"
                disk = os.stat(path).st_dev  # noqa: PTH116
                if disk != os.stat(folder).st_dev:  # noqa: PTH116
                    status = os.statvfs(path)
                    entries[disk] = status.f_files - status.f_ffree
    return max(0, sum(entries.values()) - FREE_ENTRIES) * ENTRY_BYTES


def host_memory() -> tuple[int, int]:
    """Return the total and the available bytes of the host's memory."""
    sizes = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return tuple(int(sizes[n].split()[0]) * 1024 for n in ("MemTotal", "MemAvailable"))  # type: ignore[return-value]


class ProcessKeeper:
    """A process that starts one program and ends all its processes."""

    def __init__(self, order: dict[str, Any], files: list[int], report: int) -> None:
        self.order, self.files, self.report = order, files, report

    def run(self, supervisor: int) -> NoReturn:
        """Run the keeper's whole life, in a forked process."""
        try:
            close_all_but({0, 1, 2, self.report, *self.files})
            prctl(SUBREAPER, 1)
            prctl(PARENT_DEATH, signal.SIGTERM)
            code = self.order.get("code")
            if self.order["argv"] and (program := self.start()):
                code = self.watch(program, alive=os.getppid() == supervisor)
            end_tree()
            self.clear_up()
            self.report_event("ended", code=code)
        finally:
            os._exit(0)

    def report_event(self, event: str, **values: Any) -> None:
        line = json.dumps({"id": self.order["id"], "event": event, **values}) + "\n"
        os.write(self.report, line.encode())

    def start(self) -> int:
        """Fork and run the program; a failed start is reported over a pipe."""
        read_end, write_end = os.pipe()
        program = os.fork()
        if program == 0:
            try:
                self.exec_program()
            except BaseException as error:
                number = error.errno if isinstance(error, OSError) else 0
                os.write(write_end, json.dumps([number or 0, str(error)]).encode())
            finally:
                os._exit(127)
        for descriptor in (write_end, *self.files):
            os.close(descriptor)
        failure = os.read(read_end, 4096)
        os.close(read_end)
        if failure:
            number, problem = json.loads(failure)
            self.report_event("failed", number=number, problem=problem)
            return 0
        self.report_event("started", pid=program)
        return program

    def exec_program(self) -> NoReturn:
        """Turn this process into the program."""
        order = self.order
        os.setsid()
        # The program's files may have the numbers 0 to 2 themselves, so they are duplicated first.
        free = [os.dup(file) for file in self.files]
        nothing = os.open(os.devnull, os.O_RDWR)
        files_by_number = dict(zip(order["fds"], free, strict=True))
        for number in range(3):
            os.dup2(files_by_number.get(number, nothing), number)
        for file in self.files:  # otherwise they would stay open twice in the program
            if file > 2:
                os.close(file)
        with suppress(OSError):
            # the host ends it before other processes
            Path("/proc/self/oom_score_adj").write_text("500")
        for name, limit in order.get("limits", {}).items():
            kind = getattr(resource, f"RLIMIT_{name.upper()}")
            hard = resource.getrlimit(kind)[1]
            value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (value, value))
        os.nice(order.get("nice", 0))
        if order.get("cwd"):
            os.chdir(order["cwd"])
        prctl(PARENT_DEATH, signal.SIGKILL)
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(order["argv"][0], order["argv"], order["env"])

    def watch(self, program: int, *, alive: bool) -> int:
        """Wait for the program's end, or for the order to end it."""
        while alive:
            if signal.sigwait(SHUT) == signal.SIGTERM:
                break
            for pid, status in reap_children():
                if pid == program:
                    return os.waitstatus_to_exitcode(status)
        with suppress(OSError):
            os.killpg(program, signal.SIGKILL)
        return -signal.SIGKILL

    def clear_up(self) -> None:
        """Run the cleanup commands and remove the folders of the program."""
        for argv in self.order.get("after", ()):
            self.run_to_end(argv)
        for argv in removal_commands(self.order.get("remove", ())):
            self.run_to_end(argv)

    def run_to_end(self, argv: Sequence[str]) -> None:
        """Run a command with a time limit, and end all its processes."""
        pid = os.fork()
        if pid == 0:
            try:
                self.order |= {"argv": list(argv), "fds": [], "limits": {}}
                self.files = []
                self.exec_program()
            finally:
                os._exit(127)
        limit = time.monotonic() + CLEARING
        while time.monotonic() < limit and pid not in dict(reap_children()):
            time.sleep(0.01)
        end_tree()


def removal_commands(folders: Sequence[str]) -> Iterator[list[str]]:
    """Yield the commands that remove folders, while any of the folders exists.

    The folders may be nested deeper than Python could walk. ``rm`` and ``chmod`` follow no link.
    Code may have removed all rights to its folders, so the second command restores them.
    """
    for command in (["/bin/rm", "-rf"], ["/bin/chmod", "-R", "u+rwx"], ["/bin/rm", "-rf"]):
        if remaining := [folder for folder in folders if os.path.lexists(folder)]:
            yield [*command, "--", *remaining]


def close_all_but(open_numbers: set[int]) -> None:
    """Close inherited files such as the socket to Keju."""
    for number in {int(path.name) for path in Path("/proc/self/fd").iterdir()} - open_numbers:
        with suppress(OSError):
            os.close(number)


def reap_children() -> list[tuple[int, int]]:
    """Return the children that have ended, with their status."""
    ended_children: list[tuple[int, int]] = []
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            ended_children.append(ended)
    return ended_children


def end_tree(keepers: Sequence[int] = ()) -> None:
    """Kill all processes below this one, except `keepers` and their trees.

    Programs of a keeper start other processes all the time, so the exceptions are computed in each
    round.
    """
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        reap_children()
        processes = read_processes()
        spared_pids = {
            pid for keeper in keepers for pid in (keeper, *descendants(keeper, processes))
        }
        remaining_pids = [
            pid for pid in descendants(os.getpid(), processes) if pid not in spared_pids
        ]
        if not remaining_pids:
            return
        for pid in remaining_pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


class ProcessTree:
    """A program's tree in the supervisor."""

    def __init__(self, order: dict[str, Any], keeper: int) -> None:
        self.id: int = order["id"]
        self.order = order
        self.keeper = keeper
        self.program = 0
        self.memory_limit: int | None = order.get("memory")
        self.peak = 0
        self.reason: str | None = None
        self.buffer = b""

    def end(self, reason: str) -> None:
        """Order the keeper to end it; only the first reason is kept."""
        self.reason = self.reason or reason
        with suppress(OSError):
            os.kill(self.keeper, signal.SIGTERM)


class SupervisorServer:
    """Executes Keju's orders, which arrive over a socket."""

    def __init__(self, link: socket.socket, keju: int) -> None:
        self.link, self.keju = link, keju
        self.trees: dict[int, ProcessTree] = {}
        """By the pipe over which their keeper reports."""
        self.buffer = b""
        self.files: list[int] = []
        self.poll = select.poll()
        self.poll.register(link, select.POLLIN)
        self.keju_pidfd = -1
        with suppress(OSError, AttributeError):
            # A forked child of Keju may hold the socket open after Keju's death.
            self.keju_pidfd = os.pidfd_open(keju)
            self.poll.register(self.keju_pidfd, select.POLLIN)

    def run(self) -> None:
        """Work until Keju is gone, then end everything."""
        wait: float | None = None
        while os.getppid() == self.keju:
            ready = self.poll.poll(None if wait is None else wait * 1000)
            names = [name for name, _ in ready]
            if self.keju_pidfd in names or (
                self.link.fileno() in names and not self.receive_orders()
            ):
                break
            for pipe in names:
                if pipe in self.trees:
                    self.read_report(pipe)
            reap_children()
            wait = self.measure()
        for tree in self.trees.values():
            tree.end("keju_gone")
        for descriptor in {self.keju_pidfd, self.link.fileno()} - {-1}:
            self.poll.unregister(descriptor)
        limit = time.monotonic() + PATIENCE + 2 * CLEARING
        while self.trees and time.monotonic() < limit:
            for pipe, _ in self.poll.poll(1000):
                self.read_report(pipe)
        end_tree()

    def receive_orders(self) -> bool:
        """Read Keju's orders; return whether Keju still holds its end."""
        try:
            data, files, _, _ = socket.recv_fds(self.link, 65536, 64)
        except ConnectionError:
            return False
        self.files += files
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            self.carry_out(json.loads(line))
        return bool(data)

    def send_event(self, event: dict[str, Any]) -> None:
        """Send an event; other code notices if Keju is gone."""
        with suppress(OSError):
            self.link.sendall(json.dumps(event).encode() + b"\n")

    def carry_out(self, order: dict[str, Any]) -> None:
        if order["do"] == "start":
            self.start(order)
            return
        tree = next(
            (candidate for candidate in self.trees.values() if candidate.id == order["id"]), None
        )
        if tree is not None and order["do"] == "kill":
            tree.end("killed")
        elif tree is not None and tree.program:
            with suppress(OSError):
                os.killpg(tree.program, order["number"])

    def start(self, order: dict[str, Any]) -> ProcessTree | None:
        """Fork a keeper for the program; return None if the host cannot fork."""
        count = len(order["fds"])
        files, self.files = self.files[:count], self.files[count:]
        read_end, report = os.pipe()
        me, tree = os.getpid(), None
        # A keeper starts with these signals blocked, because an order to end its tree may come at
        # once.
        signal.pthread_sigmask(signal.SIG_BLOCK, SHUT)
        try:
            keeper = os.fork()
        except OSError as error:
            os.close(read_end)
            for event in ("failed", "ended"):
                self.send_event({"id": order["id"], "event": event, "number": error.errno})
        else:
            if keeper == 0:
                ProcessKeeper(order, files, report).run(me)
            tree = self.trees[read_end] = ProcessTree(order, keeper)
            self.poll.register(read_end, select.POLLIN)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SHUT)
        for descriptor in (report, *files):
            os.close(descriptor)
        return tree

    def read_report(self, pipe: int) -> None:
        """Pass on a keeper's report; a keeper that ended without a report was killed."""
        tree = self.trees[pipe]
        data = os.read(pipe, 65536)
        *lines, tree.buffer = (tree.buffer + data).split(b"\n")
        for event in map(json.loads, lines):
            tree.program = event.get("pid", tree.program)
            if event["event"] == "ended":
                self.forget(pipe)
                event |= {"reason": tree.reason, "peak": tree.peak}
            self.send_event(event)
        if not data and pipe in self.trees:
            self.forget(pipe)
            self.replace_keeper(tree)

    def replace_keeper(self, tree: ProcessTree) -> None:
        """End a tree without its keeper; another keeper cleans up after it."""
        end_tree([other_tree.keeper for other_tree in self.trees.values()])
        if tree.reason == "keeper_lost":  # the other keeper was killed too
            code = -signal.SIGKILL
            event = {"id": tree.id, "event": "ended", "code": code, "reason": tree.reason}
            self.send_event(event | {"peak": tree.peak})
            return
        new_tree = self.start(tree.order | {"argv": [], "fds": [], "code": -signal.SIGKILL})
        if new_tree is not None:
            new_tree.reason, new_tree.peak = "keeper_lost", tree.peak

    def forget(self, pipe: int) -> None:
        self.poll.unregister(pipe)
        os.close(pipe)
        del self.trees[pipe]

    def measure(self) -> float | None:
        """Measure the memory of limited trees; return the seconds until the next measurement."""
        bounded = [tree for tree in self.trees.values() if tree.memory_limit is not None]
        if not bounded:
            return None
        processes, sizes = read_processes(), []
        for tree in bounded:
            limit = tree.memory_limit or 0
            used_bytes = memory_of(descendants(tree.keeper, processes), processes, limit)
            tree.peak = max(tree.peak, used_bytes)
            sizes.append((used_bytes, tree))
            if used_bytes > limit:
                tree.end("memory")
        total, available = host_memory()
        if available < LOW_WATER * total:
            max(sizes, key=lambda pair: pair[0])[1].end("host_memory")
        room = min(
            available, *((tree.memory_limit or 0) - used_bytes for used_bytes, tree in sizes)
        )
        return min(1.0, max(0.05, room / FASTEST))


def main() -> None:
    """Run with the socket's number, Keju's process id, and the folders to remove at the end."""
    prctl(SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    _, link, keju, *folders = sys.argv
    SupervisorServer(socket.socket(fileno=int(link)), int(keju)).run()
    for argv in removal_commands(folders):
        os.waitpid(os.posix_spawn(argv[0], argv, {}), 0)


if __name__ == "__main__":
    main()
