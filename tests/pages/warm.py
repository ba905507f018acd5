"""Commands of Keju without the start of an interpreter each: a process that has used Keju forks.

``python -m tests.pages.warm SOCKET`` serves; the program `CLIENT` takes the place of ``keju`` on
PATH and hands over its words, folder, environment and streams. The child then is a process of its
own that calls what the console script calls.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import threading
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from keju.benchmarks import registry
from keju.cli import main

CLIENT = """#!{python} -ISE
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({socket!r})
told = {{"words": sys.argv[1:], "folder": os.getcwd(), "environ": dict(os.environ)}}
socket.send_fds(server, [b"x"], [0, 1, 2])
server.sendall(json.dumps(told).encode() + b"\\n")
answers = server.makefile()
child = int(answers.readline())
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: os.kill(child, number))
sys.exit(int(answers.readline()))
"""


def _warm_up() -> None:
    """Let two small runs build what every run needs: models of settings, templates, patterns."""
    words = ("--model", "scripted", "--datasets", "demo", "--limit", "1", "--quiet", "--json")
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        for run in ("a", "b"):
            main(["eval", *words, "--work-dir", folder, "--run-id", run])
        main(["compare", f"{folder}/a", f"{folder}/b", "--json"])
    assert threading.active_count() == 1, "a process with threads cannot be copied"


def _work(connection: socket.socket) -> None:
    """Be the process that was asked for; it never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    told = json.loads(connection.makefile().readline())
    os.chdir(told["folder"])
    os.environ.clear()
    os.environ.update(told["environ"])
    sys.path.insert(0, told["environ"]["PYTHONPATH"])  # where a page has installed plug-ins
    registry._plugins.cache_clear()
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    child = os.fork()
    if child:
        for place in range(3):  # a pipe must end when the command ends
            os.close(place)
        connection.sendall(b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        connection.sendall(b"%d\n" % (os.waitstatus_to_exitcode(status) % 256))
        os._exit(0)
    connection.close()
    sys.argv = ["keju", *told["words"]]
    try:
        main()
    except SystemExit as end:  # `main` has flushed the streams: no interpreter to take apart
        os._exit(end.code if isinstance(end.code, int) else 1)
    finally:
        os._exit(70)


def serve(path: Path) -> None:
    """Fork for each command, until the process is ended."""
    _warm_up()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        connection, _ = server.accept()
        if not os.fork():
            server.close()
            _work(connection)
        connection.close()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
