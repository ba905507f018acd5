"""The side of the program: it runs the program and calls its function when the tests ask.

The tests and the expected values are in another sandbox. A call that uses more CPU time than its
limit ends this process by a signal, so loops in C end too.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from keju.judges.programs.inside.values import Pipe, decode, describe, encode, move_files


def classify(error: BaseException) -> str:
    """Return the kind of a fault."""
    if isinstance(error, SystemExit):
        return "exit"
    return "memory" if isinstance(error, MemoryError) else "exception"


def serve() -> None:
    """Run the program that the first message holds, then answer calls until the pipe ends."""
    limit, no_limit, timer = signal.setitimer, 0.0, signal.ITIMER_PROF
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    pipe = Pipe(*move_files(0, 1))
    order = pipe.receive()
    sys.path[:] = [path for path in sys.path if path] + order["paths"]
    space: dict[str, Any] = {}
    limit(timer, order["load_seconds"])
    try:
        code = compile(order["program"], "program.py", "exec")
    except BaseException as error:
        pipe.send({"fault": "syntax", "text": describe(error)})
        return
    try:
        exec(code, space)
        function = space.get(order["entry_point"])
    except BaseException as error:
        pipe.send({"fault": classify(error), "text": describe(error)})
        return
    if function is None:
        pipe.send({"fault": "missing", "text": order["entry_point"]})
        return
    pipe.send({"ready": True})
    while (call := pipe.receive()) is not None:
        args, keywords = decode(call["args"]), decode(call["keywords"])
        limit(timer, call["seconds"])
        reply: dict[str, Any]
        try:
            reply = {"value": encode(function(*args, **keywords))}
        except BaseException as error:
            reply = {"fault": classify(error), "name": type(error).__name__}
            reply["text"] = describe(error)
        pipe.send(reply)
        limit(timer, no_limit)


if __name__ == "__main__":
    serve()
