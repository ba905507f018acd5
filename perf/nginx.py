"""An endpoint that costs almost nothing: nginx on loopback, one constant reply to every call."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from perf.measure import NotMeasured

TEXT = (
    "We go through the question step by step, weigh the options one after the other, and keep "
    "the one that is left. So the answer is (A)."
)
REPLY = {
    "id": "x",
    "object": "chat.completion",
    "model": "constant",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940},
}
CONFIG = """
worker_processes 1; daemon off; pid {folder}/pid; error_log /dev/null crit;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 600s;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; client_body_buffer_size 64k;
  server {{
    listen 127.0.0.1:{port} backlog=4096; default_type application/json;
    location / {{ return 200 '{reply}'; }}
  }}
}}
"""


@contextmanager
def constant_endpoint(reply: Mapping[str, Any] = REPLY) -> Iterator[str]:
    """Serve a constant reply; gives the base URL."""
    binary = shutil.which("nginx") or "/usr/sbin/nginx"
    if not Path(binary).is_file():
        raise NotMeasured("needs nginx: apt-get install nginx-light")
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        config = Path(folder, "nginx.conf")
        config.write_text(CONFIG.format(folder=folder, port=port, reply=json.dumps(reply)))
        server = subprocess.Popen([binary, "-c", str(config), "-p", folder])
        try:
            _wait_until_it_listens(port)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait()


def _wait_until_it_listens(port: int) -> None:
    for _ in range(100):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise NotMeasured("nginx did not start")
