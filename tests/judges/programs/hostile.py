"""Programs that try to pass without solving the task, to stop the grader or to harm the host.

Each defines, or should define, ``add``, and gets the tests of a function that adds. The names of
the outcomes are those that each attempt may have.
"""

from __future__ import annotations

from typing import NamedTuple


class Attempt(NamedTuple):
    """A hostile program and the outcomes that it may have."""

    name: str
    program: str
    outcomes: frozenset[str]


def _attempt(name: str, program: str, *outcomes: str) -> Attempt:
    return Attempt(name, program, frozenset(outcomes))


ALWAYS_EQUAL = """
class Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __sub__(self, other): return 0
def add(a, b): return Any()
"""
EQUAL_INTEGER = """
class Any(int):
    def __eq__(self, other): return True
    def __index__(self): return 7
    def __int__(self): return 7
def add(a, b): return Any(7)
"""
READ_FILES = """
import glob, os
text = ''
for path in glob.glob('/workspace/**', recursive=True) + glob.glob('/tmp/**', recursive=True):
    try:
        text += open(path).read()
    except OSError:
        pass
found = {}
if 'check' in text:
    found = {'secret': text}
def add(a, b): return found['secret']
"""
READ_PROCESSES = """
import os
texts = []
for pid in os.listdir('/proc'):
    if pid.isdigit():
        for name in ('cmdline', 'environ', 'fd/0', 'fd/1', 'maps'):
            try:
                texts.append(open(f'/proc/{pid}/{name}', errors='replace').read(100000))
            except OSError:
                pass
def add(a, b):
    assert any('candidate(2, 3) == 5' in text for text in texts)
    return a + b
"""
READ_MEMORY = """
import gc
def add(a, b):
    for thing in gc.get_objects():
        if isinstance(thing, str) and 'check(candidate)' in thing:
            return a + b
    return None
"""
FORGED_VERDICT = """
import json, os, struct
verdict = json.dumps([{'pass@1': True}, 'passed', '']).encode() + b'\\n'
for number in range(3, 20):
    try:
        os.write(number, verdict)
    except OSError:
        pass
for number in range(3):
    os.write(number, verdict)
def add(a, b): return None
"""
FORGED_REPLIES = """
import json, os, struct
def send(message):
    text = json.dumps(message).encode()
    for number in range(3, 12):
        try:
            os.write(number, struct.pack('>I', len(text)) + text)
        except OSError:
            pass
send({'ready': True})
for value in range(1000):
    send({'value': 0})
def add(a, b): return None
"""
CLOSED_FILES = """
import os
os.closerange(3, 100)
def add(a, b): return a + b
"""
KILL_ALL = """
import os, signal
for pid in (1, os.getppid(), -1):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
def add(a, b): return None
"""
IGNORED_SIGNALS = """
import signal, threading
signal.setitimer(signal.ITIMER_PROF, 0)
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
def add(a, b):
    signal.setitimer(signal.ITIMER_PROF, 0)
    while True:
        pass
"""
FORK_BOMB = """
import os
def add(a, b):
    while True:
        try:
            os.fork()
        except OSError:
            pass
"""
SLEEPING_CHILDREN = """
import os, time
for _ in range(10):
    if os.fork() == 0:
        os.setsid()
        time.sleep(10000)
def add(a, b): return None
"""
NETWORK = """
import socket
def add(a, b):
    for family, place in ((socket.AF_INET, ('127.0.0.1', 22)), (socket.AF_INET, ('1.1.1.1', 53))):
        connection = socket.socket(family)
        connection.settimeout(1)
        connection.connect(place)
    return a + b
"""
OUTSIDE_FILES = """
import os
for path in ('/etc/passwd', '/etc/shadow', '/root', '/home', '/work'):
    try:
        os.listdir(path) if os.path.isdir(path) else open(path).read()
    except OSError:
        continue
def add(a, b):
    with open('/usr/keju-was-here', 'w') as file:
        file.write('x')
    return a + b
"""

INSIDE = """
import sys
inside = sys._getframe(1).f_globals
write = inside['Pipe'].send
def add(a, b): return 1
"""
SAME_FAULT = (
    INSIDE
    + """
def send(pipe, message):
    write(pipe, message if 'ready' in message else {'fault': 'FAULT', 'text': 'x'})
inside['Pipe'].send = send
"""
)
FRACTION_BOMB = (
    INSIDE
    + """
bomb = {'n': ['fractions.Fraction', '1e9999999999']}
inside['encode'] = lambda value, depth=0: bomb
"""
)
ODD_FAULT = """
def add(a, b): raise ValueError('\\ud800')
"""

HOSTILE = (
    _attempt("endless loop", "def add(a, b):\n    while True: pass", "timeout"),
    _attempt("endless loop in C", "import itertools\ndef add(a, b): return sum(itertools.repeat(0))", "timeout"),
    _attempt("endless pattern", "import re\ndef add(a, b): return re.match('(a*)*b', 'a' * 99)", "timeout"),
    _attempt("endless import", "while True: pass", "timeout"),
    _attempt("endless sleep", "import time\ndef add(a, b): time.sleep(9999)", "timeout"),
    _attempt("ignored signals", IGNORED_SIGNALS, "timeout"),
    _attempt("fork bomb", FORK_BOMB, "timeout", "protocol", "memory", "killed", "ended"),
    _attempt("sleeping children", SLEEPING_CHILDREN, "wrong"),
    _attempt("memory", "def add(a, b):\n    return len([bytearray(1 << 26) for _ in range(999)])", "memory"),
    _attempt("memory by steps", "def add(a, b):\n    x = []\n    while True: x.append('x' * 10**6)", "memory"),
    _attempt("flood of output", "def add(a, b):\n    while True: print('x' * 10**6)", "timeout"),
    _attempt("huge result", "def add(a, b): return 'x' * (1 << 26)", "output"),
    _attempt("deep result", "def add(a, b):\n    x = []\n    for _ in range(10**5): x = [x]\n    return x", "wrong"),
    _attempt("exit", "import sys\nsys.exit(0)", "exit"),
    _attempt("exit in a call", "import sys\ndef add(a, b): sys.exit(0)", "exit"),
    _attempt("hard exit", "import os\ndef add(a, b): os._exit(0)", "ended"),
    _attempt("equals everything", ALWAYS_EQUAL, "wrong"),
    _attempt("integer that equals everything", EQUAL_INTEGER, "wrong"),
    _attempt("patched builtins", "import builtins\nbuiltins.AssertionError = Warning\nbuiltins.print = None\ndef add(a, b): return None", "wrong"),
    _attempt("patched check", "def check(candidate): pass\ndef add(a, b): return None", "wrong"),
    _attempt("reading files", READ_FILES, "exception"),
    _attempt("reading processes", READ_PROCESSES, "exception"),
    _attempt("reading memory", READ_MEMORY, "wrong"),
    _attempt("forged verdict", FORGED_VERDICT, "protocol", "output"),
    _attempt("forged replies", FORGED_REPLIES, "wrong", "protocol"),
    _attempt("broken tests", SAME_FAULT.replace("FAULT", "tests_broken"), "protocol"),
    _attempt("fault without a fault", SAME_FAULT.replace("FAULT", "passed"), "protocol"),
    _attempt("number without end", FRACTION_BOMB, "protocol"),
    _attempt("text that is no text", ODD_FAULT, "exception"),
    _attempt("closed files", CLOSED_FILES, "ended", "protocol"),
    _attempt("killing everything", KILL_ALL, "killed", "ended", "wrong"),
    _attempt("network", NETWORK, "exception"),
    _attempt("files outside", OUTSIDE_FILES, "exception"),
    _attempt("deep nesting", "x = " + "(" * 100_000, "syntax", "exception", "memory"),
)  # fmt: skip
"""At least 25 attempts."""
