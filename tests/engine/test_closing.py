"""The end of a loop: what becomes of its threads when somebody does not want to wait for them."""

from __future__ import annotations

import subprocess
import sys

CLOSING = """
import asyncio, os, signal, sys, threading, time
from keju.engine.session import run_loop
from keju.signals import listen

go_on = threading.Event()
main_thread = threading.get_ident()

def interrupt_the_end():
    # The coroutine has ended once its frame is gone: then the loop waits for its thread.
    while True:
        frame, names = sys._current_frames()[main_thread], []
        while frame is not None:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        if "exam" not in names and "run_loop" in names:
            break
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

async def exam():
    asyncio.ensure_future(asyncio.to_thread(go_on.wait))
    await asyncio.sleep(0)
    threading.Thread(target=interrupt_the_end, daemon=True).start()

listen()
try:
    run_loop(exam)
except KeyboardInterrupt:
    print("interrupted")
go_on.set()
for thread in threading.enumerate():
    if thread is not threading.current_thread() and not thread.daemon:
        thread.join()
"""


def test_an_interrupt_while_the_loop_closes_is_no_traceback() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CLOSING], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "interrupted\n", "")
