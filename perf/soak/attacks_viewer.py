# ruff: noqa: E501
"""Attacks on ``keju view``: hostile addresses, conditions, headers, clients and run folders.

Each function whose name begins with ``try_`` is one attack on a viewer that runs as its own
process; its docstring says what it tries. It yields what went wrong. After each of them the viewer
must answer at once, have written nothing to the terminal, and have grown within limits.
"""

from __future__ import annotations

import inspect
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from tests.viewer.runs import HOSTILE, acting, mixed, record, write

from keju.solvers.sandbox.supervisor_process import descendants, read_processes

MIB = 1 << 20
MOST_MEMORY = 4600
"""MiB of the viewer and its children: two conditions of 2 GiB, and the viewer itself."""
ALONE = 700
"""MiB of the viewer itself."""
SECRET = "root:x:"
Problems = Iterator[str]


class Answer(NamedTuple):
    """What came back; status 0 where nothing did."""

    status: int
    body: str
    seconds: float


class Viewer:
    """A viewer in its own process."""

    def __init__(self, runs: Path, *, host: str = "127.0.0.1", files: int = 1024) -> None:
        self.runs, self.errors = runs, runs.parent / f"stderr-{time.monotonic_ns()}"
        argv = [sys.executable, "-m", "keju", "view", str(runs), "--port", "0", "--no-browser"]
        limited = ["prlimit", f"--nofile={files}:{files}", "--", *argv, "--host", host]
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                limited, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self.process.stdout is not None
        self.message, self.seen_lines = "", 0
        while not (address := re.search(r"http://[^/\s]+:(\d+)/(\S*)", self.message)):
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"the viewer did not start: {self.errors.read_text()}")
            self.message += line
        self.port, self.token = int(address[1]), address[2]

    def raw(self, data: bytes, limit: float = 60.0) -> Answer:
        """Send bytes and return what comes back."""
        started, body = time.monotonic(), bytearray()
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 10) as link:
            link.settimeout(limit)
            link.sendall(data)
            while (piece := link.recv(1 << 16)) and len(body) < 64 * MIB:
                body += piece
        status = re.match(rb"HTTP/1\.1 (\d{3})", bytes(body))  # ``HTTP/1.1 200 OK``
        text = body.decode("utf-8", "replace")
        return Answer(int(status[1]) if status else 0, text, time.monotonic() - started)

    def get(self, path: str, limit: float = 60.0, **headers: str) -> Answer:
        """Ask for an address."""
        lines = {"Host": f"127.0.0.1:{self.port}", "Connection": "close"}
        lines |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
        return self.raw(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode("utf-8", "replace"), limit)

    def memory(self) -> tuple[int, int]:
        """MiB of the viewer, and of it with its children."""
        processes = read_processes()
        alone = processes[self.process.pid].resident >> 20
        tree = (
            sum(processes[pid].resident for pid in descendants(self.process.pid, processes)) >> 20
        )
        return alone, alone + tree

    def children(self) -> int:
        """How many processes it has started that still run."""
        processes = read_processes()
        return sum(processes[pid].state != "Z" for pid in descendants(self.process.pid, processes))

    def stop(self) -> Problems:
        """End it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            yield "Ctrl-C does not end it"
            self.process.kill()
            self.process.wait()
        if text := self.complaints():
            yield f"it wrote to the terminal: {text[-300:]!r}"

    def complaints(self) -> str:
        """What it has written to the terminal since the last look, except for its address."""
        lines = self.errors.read_text().splitlines()
        new, self.seen_lines = lines[self.seen_lines :], len(lines)
        return "\n".join(line for line in new if "http://" not in line).strip()


def no_internal(answer: Answer, *also: int) -> Problems:
    """An answer may be a page or a refusal; never an internal error, and never a host's file."""
    if answer.status >= 500 or answer.status == 0 or answer.status in also:
        yield f"status {answer.status}: {_words(answer.body)[-200:]!r}"
    if SECRET in answer.body or "Traceback" in answer.body:
        yield f"a page shows what it must not: {_words(answer.body)[-200:]!r}"
    if "<script>alert" in answer.body or "<img src=x" in answer.body:
        yield "markup of a reply is live"


def _words(body: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())  # ``<p>text</p>``


def ask_with_condition(viewer: Viewer, condition: str, **headers: Any) -> Answer:
    return viewer.get(
        f"/runs/plain/samples?{urlencode({'where': condition}, errors='surrogatepass')}", **headers
    )


# --- addresses and headers


def try_paths(viewer: Viewer) -> Problems:
    """Leave the folder of runs by the address: `..`, its encodings, NUL, backslashes, whole paths"""
    for path in (
        "/runs/../../../etc/passwd", "/runs/..%2f..%2f..%2fetc%2fpasswd", "/runs/%2e%2e/samples",
        "/runs/%252e%252e", "/static/../app.py", "/static/..%2fapp.py", "/static/%2fetc%2fpasswd",
        "/runs/plain%00", "/runs/..\\..", "/runs//etc/passwd", "//etc/passwd", "/runs/.", "/runs/..",
        "/runs/plain/../../etc", "/static/report.css%00.js", "/%", "/%zz", "/runs/%ff%fe", "/runs/~",
        "http://127.0.0.1/etc/passwd", "*", "/runs/plain/samples/../../x", "/runs/" + "a" * 5000,
    ):  # fmt: skip
        yield from no_internal(viewer.get(path))


def try_methods(viewer: Viewer) -> Problems:
    """Use methods that change things, and methods that do not exist"""
    for method in (
        "POST",
        "PUT",
        "DELETE",
        "PATCH",
        "OPTIONS",
        "TRACE",
        "CONNECT",
        "PROPFIND",
        "X" * 300,
    ):
        head = f"{method} /runs/plain HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        answer = viewer.raw(head.encode())
        if answer.status not in (400, 405, 501):
            yield f"{method[:20]}: {answer.status}"


def try_host_header(viewer: Viewer) -> Problems:
    """Reach the viewer under another name, as DNS rebinding does"""
    for host in (
        "evil.example", "127.0.0.1.evil.example", "evil.example:8123", "127.0.0.1@evil.example",
        "localhost.evil.example", "[::1].evil.example", "127.0.0.1, evil.example", "0x7f.1", "0",
        "[::ffff:127.0.0.1]", "127.1", "evil.example\t127.0.0.1", "local\u00adhost", "[evil", "localhost:x:y",
    ):  # fmt: skip
        answer = viewer.get("/", Host=host)
        if answer.status in (200, 303) and host != "127.1":
            yield f"{host!r}: {answer.status}"
        yield from no_internal(answer)
    for head in (
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    ):
        answer = viewer.raw(head.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").encode(), 5)
        if answer.status == 200:
            yield f"{head[:60]!r}: 200"


def try_cross_site(viewer: Viewer) -> Problems:
    """Let pages of other sites send requests: pictures, frames, scripts, fetches, with conditions"""
    host = f"http://127.0.0.1:{viewer.port}"
    for headers in (
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": host + ".evil.example"},
        {"Origin": host.replace("http", "https")}, {"Origin": f"http://localhost:{viewer.port}"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "image"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors", "Sec_Fetch_Dest": "empty"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"},
        {"Sec_Fetch_Site": "CROSS-SITE"}, {"Sec_Fetch_Site": "x"},
    ):  # fmt: skip
        answer = ask_with_condition(viewer, "true", **headers)
        if answer.status != 403:
            yield f"{headers}: {answer.status}"
    for query in ("where=&where=true", "%77here=true", "where=true&where="):
        answer = viewer.get(
            f"/runs/plain/samples?{query}",
            Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document",
        )  # fmt: skip
        if answer.status != 403:
            yield f"{query}: {answer.status}"


def try_numbers(viewer: Viewer) -> Problems:
    """Give numbers that are huge, negative, of other scripts or no numbers"""
    for value in (
        "9" * 5000,
        "-1",
        "0",
        "1e9",
        "1e400",
        "NaN",
        "٣",
        "½",
        "²",
        "0x10",
        "1_0",
        " 1",
        "1" * 40,
        "+5",
        "3.0",
        "true",
    ):
        for name in ("page", "least", "most", "epoch"):
            query = urlencode({name: value, "id": "bbh_snarks_3", "of": "bbh"})
            yield from no_internal(viewer.get(f"/runs/plain/samples?{query}"))
            yield from no_internal(viewer.get(f"/runs/plain/sample?{query}"))
        query = urlencode(
            [("run", "plain"), ("run", "plain"), ("id", "bbh_snarks_3"), ("epoch", value)]
        )
        yield from no_internal(viewer.get(f"/compare/sample?{query}"))


def try_words(viewer: Viewer) -> Problems:
    """Give every filter texts that are long, empty, broken, markup, or in the form of patterns"""
    for value in (
        HOSTILE,
        "x" * 30000,
        "%00",
        "%ED%A0%80",
        "%ff",
        "(a+)+$",
        "\\",
        "ß",
        "İ",
        "[",
        "*",
        "'",
        "\u202e",
        "%0d%0aSet-Cookie:x=1",
        "{{7*7}}",
        "{where}",
    ):
        for name in (
            "text",
            "exam",
            "subset",
            "outcome",
            "tier",
            "sort",
            "readers",
            "tools",
            "lang",
            "x" * 50,
        ):
            raw = value if value.startswith("%") else quote(value)
            answer = viewer.get(f"/runs/plain/samples?{name}={raw}")
            yield from no_internal(answer)
            if "\r\nset-cookie:x" in answer.body.lower():
                yield f"{name}: a header was added"


def try_long_requests(viewer: Viewer) -> Problems:
    """Send endless addresses, headers, parameters and bodies"""
    yield from no_internal(viewer.get("/?" + "&".join(f"a{n}=b" for n in range(5000))))
    for data in (
        b"GET /" + b"a" * (20 * MIB),
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 3_000_000,
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * (20 * MIB),
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999999999\r\n\r\n"
        + b"z" * (20 * MIB),
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"1\r\nz\r\n" * 1_000_000,
    ):
        viewer.raw(data, 10)


def try_smuggling(viewer: Viewer) -> Problems:
    """Send two lengths, bodies of a GET, upgrades, HTTP/2, TLS and noise"""
    host = b"Host: 127.0.0.1\r\n"
    for data in (
        b"GET / HTTP/1.1\r\n"
        + host
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n"
        + host
        + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + host + b"Expect: 100-continue\r\nConnection: close\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        bytes(range(256)) * 50,
        b"\r\n" * 5000,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n"
        + host
        + b"Cookie: "
        + b"a=b; " * 5000
        + b"\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\n"
        + host
        + b"Accept-Language: \xff\xfe\r\nCookie: keju_language=\xff\r\nConnection: close\r\n\r\n",
    ):
        answer = viewer.raw(data, 6)
        if answer.status >= 500:
            yield f"{data[:40]!r}: {answer.status}"


# --- conditions


def try_where_files(viewer: Viewer) -> Problems:
    """Read and write files, the network and the environment with a condition"""
    target = Path("/tmp") / f"keju-attack-{os.getpid()}"
    for condition in (
        "(SELECT count(*) FROM read_csv('/etc/passwd')) > 0", "(SELECT content FROM read_text('/etc/passwd')) LIKE 'root%'",
        "(SELECT count(*) FROM glob('/etc/*')) > 0", "(SELECT count(*) FROM '/etc/passwd') > 0",
        "(SELECT count(*) FROM read_blob('/proc/self/environ')) > 0", "getenv('HOME') <> ''", "getenv('PATH') <> ''",
        "current_setting('temp_directory') <> ''", "(SELECT count(*) FROM duckdb_secrets()) >= 0 AND false",
        f"true); COPY (SELECT 1) TO '{target}'; SELECT (true", f"true) ; ATTACH '{target}' AS x; --",
        "true) UNION SELECT 1 FROM read_text('/etc/passwd') --", "true; INSTALL httpfs", "true; SET lock_configuration=false",
        "(SELECT count(*) FROM read_csv('http://127.0.0.1:1/')) > 0", "(SELECT count(*) FROM parquet_scan('/etc/passwd')) > 0",
        "query_table('x') IS NULL", "(SELECT 1 FROM query('COPY (SELECT 1) TO ''/tmp/x''')) = 1", "(FROM sniff_csv('/etc/passwd')) IS NULL",
        "(SELECT count(*) FROM pragma_database_list()) > 5", "reply IN (SELECT line FROM read_csv($1))", "$3", "{where}", "*COLUMNS(*)",
    ):  # fmt: skip
        answer = ask_with_condition(viewer, condition)
        yield from no_internal(answer)
        matched = re.search(r"bbh_snarks_\d+", answer.body)  # ``bbh_snarks_3``
        if matched and "getenv" not in condition:
            yield f"{condition} accepted replies"
    if target.exists():
        yield "a file was written"


def try_where_memory(viewer: Viewer) -> Problems:
    """Let conditions take memory: ranges, repeated texts, lists, joins, patterns"""
    for condition in (
        "len(range(1000000000)) > 0", "length(repeat('x', 2000000000)) > 0", "len(list_transform(range(100000000), x -> x * 2)) > 0",
        "length(array_to_string(range(200000000), ',')) > 0", "len(generate_series(1, 500000000)) > 0",
        "length(lpad('x', 2000000000, 'y')) > 0", "len(string_split(repeat('a,', 500000000), ',')) > 0",
        "(WITH RECURSIVE t(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM t) SELECT max(length(s)) FROM t) > 0",
        "length(reply || repeat(reply, 100000000)) > 0", "len(list_sort(range(300000000))) > 0",
    ):  # fmt: skip
        peak_memory, finished = 0, threading.Event()

        def look() -> None:
            nonlocal peak_memory
            while not finished.wait(0.1):  # noqa: B023
                with suppress(KeyError):
                    peak_memory = max(peak_memory, viewer.memory()[1])

        watching = threading.Thread(target=look)
        watching.start()
        answer = ask_with_condition(viewer, condition)
        finished.set()
        watching.join()
        yield from no_internal(answer)
        if peak_memory > MOST_MEMORY:
            yield f"{condition}: {peak_memory} MiB"


def try_where_time(viewer: Viewer) -> Problems:
    """Let conditions take time: endless recursion, large joins, slow patterns"""
    for condition in (
        "(WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t) > 0",
        "(SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b) > 0",
        "regexp_matches(repeat('a', 100000), '(a*)*b')",
    ):
        answer = ask_with_condition(viewer, condition)
        yield from no_internal(answer)
        if answer.seconds > 45:
            yield f"{condition}: {answer.seconds:.0f} s"


def try_where_leave(viewer: Viewer) -> Problems:
    """Start conditions and leave at once: nothing may go on"""
    endless = urlencode(
        {"where": "(SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b) > 0"}
    )
    for _ in range(12):
        with socket.create_connection(("127.0.0.1", viewer.port)) as link:
            link.sendall(
                f"GET /runs/plain/samples?{endless} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
            )
            time.sleep(0.2)
    end = time.monotonic() + 15
    while viewer.children() and time.monotonic() < end:
        time.sleep(0.2)
    if viewer.children():
        yield f"{viewer.children()} conditions go on without a reader"


def try_where_many(viewer: Viewer) -> Problems:
    """Start forty conditions at once and look whether other pages still come"""
    endless = urlencode(
        {"where": "(SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b) > 0"}
    )
    links = [socket.create_connection(("127.0.0.1", viewer.port)) for _ in range(40)]
    for link in links:
        link.sendall(
            f"GET /runs/plain/samples?{endless} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        )
    time.sleep(1)
    for path in ("/", "/runs/plain", "/runs/plain/samples", "/runs/plain/sample?id=bbh_snarks_3"):
        answer = viewer.get(path, 20)
        if answer.status != 200 or answer.seconds > 15:
            yield f"{path}: {answer.status} after {answer.seconds:.0f} s"
    if viewer.children() > 4:
        yield f"{viewer.children()} children at once"
    for link in links:
        link.close()


def try_where_odd(viewer: Viewer) -> Problems:
    """Give conditions that are empty, broken, deeply nested, long, or crash the parser"""
    for condition in (
        " ", ";", "--", "/*", "'", '"', "(", ")", "(" * 5000 + "1" + ")" * 5000, "NOT " * 20000 + "true", "1 + " * 5000 + "1 > 0",
        "\x00", "\ud800", "true -- \n", "true\n) OR (true", "1 IN (" + ",".join(["1"] * 8000) + ")", "CASE " + "WHEN true THEN 1 " * 3000 + "END = 1",
        "reply ~ '" + "(" * 3000 + "'", "#1 = 1", "\"#\" >= 0", "rowid = 0", "error('x')", "error('<script>alert(1)</script>')", "1/0 = 1", "CAST('x' AS INT) = 1",
        "random() > 0.5", "pg_sleep(100) IS NULL", "sleep_ms(100000) IS NULL", "SELECT 1", "DELETE FROM x", "$1 IS NULL", "?", "true LIMIT 5", "count(*) > 0", "row_number() OVER () > 0",
    ):  # fmt: skip
        yield from no_internal(ask_with_condition(viewer, condition))


# --- clients


def try_many_connections(viewer: Viewer) -> Problems:
    """Open more connections than the process may have files, and send nothing or one byte a second"""
    links: list[socket.socket] = []
    with suppress(OSError):
        for number in range(1400):
            link = socket.create_connection(("127.0.0.1", viewer.port), 2)
            link.sendall(b"GET / HTTP/1.1\r\nX: "[: number % 19])
            links.append(link)
    answer = viewer.get("/", 60)
    if answer.status != 200:
        yield f"a page behind {len(links)} silent clients: {answer.status} after {answer.seconds:.0f} s"
    for link in links:
        link.close()


def try_slow_readers(viewer: Viewer) -> Problems:
    """Ask for large pages on many connections and read none of them"""
    links = [socket.create_connection(("127.0.0.1", viewer.port)) for _ in range(60)]
    for link in links:
        link.sendall(
            b"GET /runs/long/sample?id=bbh_snarks_0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 3
        )
    time.sleep(5)
    answer = viewer.get("/", 30)
    if answer.status != 200:
        yield f"behind slow readers: {answer.status}"
    for link in links:
        link.close()


def try_event_streams(viewer: Viewer) -> Problems:
    """Follow a run that goes on from two hundred connections, and read nothing"""
    (viewer.runs / "going" / "records.jsonl").touch()
    links = [socket.create_connection(("127.0.0.1", viewer.port)) for _ in range(200)]
    for link in links:
        link.sendall(b"GET /runs/going/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    time.sleep(4)
    for path in ("/", "/runs/plain/samples"):
        answer = viewer.get(path, 30)
        if answer.status != 200 or answer.seconds > 20:
            yield f"{path} behind event streams: {answer.status} after {answer.seconds:.0f} s"
    for link in links:
        link.close()


def try_resets(viewer: Viewer) -> Problems:
    """Break connections off in the middle of requests and answers"""
    for number in range(300):
        with closing(socket.create_connection(("127.0.0.1", viewer.port))) as link:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            link.sendall(
                f"GET /runs/long/samples?page={number} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()[
                    : 20 + number
                ]
            )
    yield from no_internal(viewer.get("/"))


def try_compare(viewer: Viewer) -> Problems:
    """Compare runs that do not fit, thousands at once, one with itself, and two very long replies"""
    for query in (
        "run=plain",
        "run=plain&run=plain",
        "&".join(f"run=r{n}" for n in range(3000)),
        "run=plain&run=long&run=nowhere",
        "run=%00&run=..",
        "run=plain&run=long",
        "run=plain&run=empty",
        "run=odd-numbers&run=plain",
    ):
        yield from no_internal(viewer.get(f"/compare?{query}"))
    for query in (
        "run=plain&run=long&id=bbh_snarks_0",
        "run=long&run=long-other&id=bbh_snarks_0",
        "run=plain",
        "run=plain&run=plain&id=x&of=bbh&of=%ff",
        "run=plain&run=long&id=%ED%A0%80",
    ):
        answer = viewer.get(f"/compare/sample?{query}", 120)
        yield from no_internal(answer)
        if answer.seconds > 30:
            yield f"{query}: {answer.seconds:.0f} s"


# --- run folders


def try_every_run(viewer: Viewer) -> Problems:
    """Visit every page of hostile run folders: odd names, links, pipes, broken and hostile files"""
    front = viewer.get("/")
    yield from no_internal(front)
    names = sorted(os.fsencode(path.name) for path in viewer.runs.iterdir())
    for name in names:
        base = f"/runs/{quote(name)}"
        for path in (
            base,
            f"{base}?subsets",
            f"{base}/samples",
            f"{base}/samples?sort=tokens",
            f"{base}/samples?sort=slowest",
            f"{base}/samples?text=a",
            f"{base}/samples?least=1",
            f"{base}/sample?id=bbh_snarks_0",
            f"{base}/samples?where=length%3E0",
            f"/compare?run=plain&run={quote(name)}",
        ):
            answer = viewer.get(path, 90)
            for problem in no_internal(answer):
                yield f"{path}: {problem}"
            if answer.seconds > 60:
                yield f"{path}: {answer.seconds:.0f} s"


def try_races(viewer: Viewer) -> Problems:
    """Append to, cut, replace and remove a journal and its run while its pages are read"""
    stop = threading.Event()
    folder = viewer.runs / "racing"

    def change() -> None:
        order = random.Random(5)
        number = 0
        while not stop.is_set():
            number += 1
            with suppress(OSError):
                action = order.randrange(6)
                path = folder / "records.jsonl"
                if action == 0:
                    shutil.rmtree(folder)
                elif action == 1 and path.exists():
                    os.truncate(path, order.randrange(path.stat().st_size + 1))
                elif action == 2 and path.exists():
                    path.unlink()
                write_quietly(folder, list(mixed(order.randrange(1, 300))))
            time.sleep(0.01)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        paths = (
            "/runs/racing",
            "/runs/racing/samples?sort=longest",
            "/runs/racing/samples?text=answer",
            "/runs/racing/sample?id=bbh_snarks_3",
            "/",
            "/runs/racing/samples?where=length%3E3",
            "/compare?run=plain&run=racing",
        )
        for number in range(70):
            answer = viewer.get(paths[number % len(paths)], 60)
            for problem in no_internal(answer):
                yield f"{paths[number % len(paths)]}: {problem}"
    finally:
        stop.set()
        changing.join()


def try_token(viewer: Viewer) -> Problems:
    """Open a viewer for other machines without its token, and use the token to lead elsewhere"""
    open_viewer = Viewer(viewer.runs, host="0.0.0.0")
    try:
        visits: tuple[tuple[str, dict[str, Any]], ...] = (
            ("/", {}),
            ("/?token=", {}),
            ("/?token=x", {}),
            ("/", {"Cookie": "keju_token=x"}),
            ("/", {"Cookie": "keju_token="}),
            ("/?token=%ff", {}),
            ("/static/viewer.js", {}),
            ("/?token=a&token=b", {}),
        )
        for path, headers in visits:
            answer = open_viewer.get(path, **headers)
            if answer.status != 401:
                yield f"{path} {headers}: {answer.status}"
        answer = open_viewer.get(f"//evil.example/{open_viewer.token}")
        if re.search(r"location: //", answer.body, re.IGNORECASE):  # ``location: //evil.example``
            yield "a link with the token leads to another site"
        if (
            "token" in open_viewer.get("/").body
            and open_viewer.token.partition("=")[2] in open_viewer.get("/").body
        ):
            yield "the token is shown"
    finally:
        yield from open_viewer.stop()


def write_quietly(folder: Path, records: list[Any], **options: Any) -> None:
    with suppress(Exception):
        write(folder, records, **options)


def hostile_runs(runs: Path) -> None:
    """Make the run folders that the attacks visit."""
    write(runs / "plain", [*mixed(60), acting(200), record(201, text=HOSTILE)])
    words = random.Random(1)
    for name in ("long", "long-other"):
        texts = [" ".join(words.choices("abcdefghij" * 3, k=100_000)) for _ in range(4)]
        write(runs / name, [record(n, text=text) for n, text in enumerate(texts)])
    write(runs / "going", list(mixed(30)), ended=False)
    write(runs / "racing", list(mixed(30)))
    write(runs / "empty", [])
    for name in (
        HOSTILE.replace("/", "|")[:100],
        "a\nb",
        "a%2fb",
        "a?b#c",
        "-rf",
        " ",
        "a" * 200,
        "'\"",
        b"\xff\xfe".decode("utf-8", "surrogateescape"),
    ):
        write(runs / "renamed", [record(0, text=HOSTILE)], model=HOSTILE).rename(runs / name)
    odd_manifests(runs)
    odd_journals(runs)
    (runs / "link-to-etc").symlink_to("/etc")
    (runs / "link-to-itself").symlink_to(runs)
    (runs / "link-to-plain").symlink_to(runs / "plain")


def odd_manifests(runs: Path) -> None:
    """Manifests and results that are damaged or hostile."""
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    changes: dict[str, dict[str, Any]] = {
        "arms-number": {"config": {"arms": 5}}, "arms-words": {"config": {"arms": ["x", 7, None]}}, "arms-null": {"config": {"arms": None}},
        "config-wrong": {"config": {"model": 5, "datasets": {"a": HOSTILE}, "judge": 7, "price": [1], "data_dir": "/etc"}},
        "exams-odd": {"benchmarks": [{"name": HOSTILE, "protocol": {"name": HOSTILE, "version": "1"}, "readers": {}, "samples": -5, "epochs": 10**18}]},
        "exams-none": {"benchmarks": []}, "model-odd": {"model": "\x1b[2J" + HOSTILE * 100}, "created-odd": {"created": HOSTILE}, "deep": {"config": {"x": deep}},
        "stopped-odd": {"stopped": {"bbh": {}}}, "arms-facts": {"arms": {"x": {"tools": 5}, "": {"tools_hash": HOSTILE}}}, "imported": {"imported": HOSTILE},
        "sessions-odd": {"sessions": [{"started": "x", "ended": "y"}]}, "numbers": {"benchmarks": [{"name": "bbh", "protocol": {"name": "a", "version": "1"}, "readers": {"p": 1}, "samples": 2**62, "epochs": 2**62}]},
        "graded-odd": {"graded_by": {"x": 1}, "judge": 5}, "datasets-path": {"config": {"model": "m", "datasets": ["../../etc"], "data_dir": "/proc/self"}},
    }  # fmt: skip
    for name, changed_fields in changes.items():
        write(runs / f"manifest-{name}", [record(0, text=HOSTILE), record(1)], **changed_fields)
    for name, data in {
        "broken": b"{",
        "list": b"[]",
        "empty": b"",
        "nul": b"\0" * 100,
        "nan": b'{"schema": NaN}',
        "deep": b"[" * 100_000,
        "bytes": b"\xff" * 100,
        "number": b'{"schema":' + b"9" * 6000 + b"}",
    }.items():
        write(runs / f"raw-{name}", [record(0)])
        (runs / f"raw-{name}" / "manifest.json").write_bytes(data)
        write(runs / f"results-{name}", [record(0)])
        (runs / f"results-{name}" / "results.json").write_bytes(data)
    for name, document in {
        "shape": {"benchmarks": 5},
        "rows": {"schema": 1, "benchmarks": [{"name": HOSTILE}]},
        "none": {},
    }.items():
        write(runs / f"results-{name}", [record(0)])
        (runs / f"results-{name}" / "results.json").write_text(json.dumps(document))
    for name in ("manifest.json", "results.json", "records.jsonl", "graded.jsonl", "grades.jsonl"):
        for kind in ("pipe", "folder", "link", "loop"):
            folder = write(runs / f"{kind}-{name}", [record(0)])
            (folder / name).unlink(missing_ok=True)
            if kind == "pipe":
                os.mkfifo(folder / name)
            elif kind == "folder":
                (folder / name).mkdir()
            else:
                (folder / name).symlink_to("/etc/passwd" if kind == "link" else name)


def odd_journals(runs: Path) -> None:
    """Journals that are damaged, huge or hostile."""
    line = json.dumps(
        {
            "bench": "bbh",
            "id": "bbh_snarks_0",
            "hash": "0" * 32,
            "target": "A",
            "reply": {"text": "x", "usage": {"input": 1, "output": 2}, "seconds": 1.0},
            "readings": [],
        }
    )
    cases: dict[str, list[str]] = {
        "tokens": [line.replace('"output": 2', '"output": -7'), line.replace('"output": 2', f'"output": {2**40}'), line.replace('"output": 2', f'"output": {10**30}')],
        "seconds": [line.replace('"seconds": 1.0', f'"seconds": {value}') for value in ("-5", "1e308", "1e999", "-0.0", "NaN")],
        "epochs": [line.replace('"bench"', f'"epoch": {value}, "bench"', 1) for value in ("-1", "9223372036854775807", str(2**64), str(10**40))],
        "names": [line.replace('"bbh"', json.dumps(f"exam-{n}")) for n in range(70_000)],
        "kinds": [line.replace('"readings": []', f'"readings": [{{"reader":"p","answer":{{"tier":"strict"}},"score":{{"value":{n}.5,"outcome":"correct"}}}}]') for n in range(3000)],
        "ids": [line.replace("bbh_snarks_0", value) for value in ("\\ud800", "\\u0000", "<script>alert(1)</script>", "../../x", "\\u202e", "a" * 100_000, "")],
        "deep": ['{"bench":' + "[" * 5000, "[" * 100_000, line.replace('"A"', "[" * 500 + "]" * 500)],
        "noise": ["\0" * 1000, "\x1b[2J", "null", "[]", "5", '"x"', line[:50], line + line, "{}", "\ufeff" + line],
        "scores": [line.replace('"readings": []', f'"readings": [{{"reader":"p","answer":{{}},"score":{{"value":{value},"outcome":"correct"}}}}]') for value in ("1e308", "-1e308", "-5", "1e999", "0")],
        "turns": [line.replace('"seconds"', '"episode": {"turns": ' + value + ', "stop": "final", "iterations": 1}, "seconds"') for value in ("[]", "5", "[5]", '[{"role":"assistant","calls":[{}]}]', "[" * 300 + "]" * 300)],
        "faults": [line.replace('"readings"', f'"faults": {value}, "readings"') for value in ("5", "[5]", '[{"kind": "x"}]', '{"a":1}')],
        "errors": [line.replace('"text": "x"', '"text": "x", "error": {"kind": "' + value + '", "message": "<script>alert(1)</script>"}') for value in ("x", "timeout", "\\u001b[2J")],
    }  # fmt: skip
    for name, lines in cases.items():
        folder = write(runs / f"odd-{name}", [])
        (folder / "records.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    folder = write(runs / "odd-bytes", [])
    (folder / "records.jsonl").write_bytes(
        b"\xff\xfe\n" * 1000 + line.replace("x", "\u00e9").encode("latin-1") + b"\r\n" + b"{" * 1000
    )
    for name, file in (
        ("journal", "records.jsonl"),
        ("grades", "graded.jsonl"),
        ("grades-2", "grades.jsonl"),
    ):
        folder = write(runs / f"sparse-{name}", [record(0)])
        with (folder / file).open("ab") as sparse:
            sparse.truncate(6000 * MIB)
    folder = write(runs / "long-line", [record(0)])
    with (folder / "records.jsonl").open("a") as journal:
        journal.write(line.replace('"x"', '"' + "y" * (80 * MIB) + '"') + "\n")
    folder = write(runs / "many-lines", [record(0)])
    with (folder / "records.jsonl").open("a") as journal:
        journal.write("{}\n" * 2_000_000)


def attacks() -> dict[str, Callable[[Viewer], Problems]]:
    """The attacks by name."""
    functions = inspect.getmembers(sys.modules[__name__], inspect.isfunction)
    return {
        name.removeprefix("try_"): attack for name, attack in functions if name.startswith("try_")
    }


def after(viewer: Viewer) -> Problems:
    """What must hold after each attack."""
    answer = viewer.get("/runs/plain", 60)
    if answer.status != 200 or viewer.process.poll() is not None:
        yield f"afterwards: {answer.status}"
    if (alone := viewer.memory()[0]) > ALONE:
        yield f"the viewer has {alone} MiB"
    end = time.monotonic() + 30
    while viewer.children() and time.monotonic() < end:
        time.sleep(0.2)
    if viewer.children():
        yield "children are left"
    if text := viewer.complaints():
        yield f"it wrote to the terminal: {text[-400:]!r}"


def attack_viewer(folder: Path, seed: int, names: list[str]) -> dict[str, list[str]]:
    """Try all attacks, or those of these names, in random order; what went wrong, by name."""
    runs = folder / "runs"
    hostile_runs(runs)
    known_attacks = attacks()
    order = [name for name in known_attacks if not names or name in names]
    random.Random(seed).shuffle(order)
    wrong: dict[str, list[str]] = {}
    viewer = Viewer(runs)
    try:
        for name in order:
            started = time.monotonic()
            problems = list(dict.fromkeys([*known_attacks[name](viewer), *after(viewer)]))
            word = "; ".join(problems[:12]) or "held"
            print(f"{name} {time.monotonic() - started:.1f} s: {word}", flush=True)
            if problems:
                wrong[name] = problems
            if viewer.process.poll() is not None or viewer.memory()[0] > ALONE:
                list(viewer.stop())
                viewer = Viewer(runs)
    finally:
        if problems := list(viewer.stop()):
            wrong["end"] = problems
    return wrong


if __name__ == "__main__":
    problems_by_attack = attack_viewer(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    print(json.dumps(problems_by_attack, indent=1))
    sys.exit(bool(problems_by_attack))
