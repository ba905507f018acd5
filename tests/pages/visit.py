"""``keju view`` as a visitor meets it: start, look at the first page, Ctrl-C."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from urllib.request import urlopen


def main() -> int:
    """The exit code of the command, whose words are this program's."""
    words = ["keju-warm", *sys.argv[1:], "--no-browser"]
    if "--port" not in words:
        words += ["--port", "0"]
    with subprocess.Popen(list(dict.fromkeys(words)), stdout=subprocess.PIPE, text=True) as viewer:
        assert viewer.stdout is not None
        line = viewer.stdout.readline()
        address = re.search(r"http://\S+", line)
        if address is None:
            sys.stdout.write(line)
            return viewer.wait() or 1
        with urlopen(address[0]) as page:
            assert b"<html" in page.read()
        viewer.send_signal(signal.SIGINT)
        viewer.stdout.read()
        return viewer.wait()


if __name__ == "__main__":
    sys.exit(main())
