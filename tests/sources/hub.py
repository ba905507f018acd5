"""A small hub on loopback that speaks the paths of Hugging Face, ModelScope and raw GitHub files.

``with LoopbackHub() as hub: hub.repos["owner/name"] = {"test.jsonl": b"…"}``. Faults are set by file
or by repository, so that a test says exactly what goes wrong.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import parse_qs, urlsplit

COMMIT = "c0ffee" + "0" * 34
TOKEN = "marked-secret-token"

FileFault = Literal["truncated", "wrong"]
"""Half the bytes and a closed connection, or as many bytes of something else."""


class LoopbackHub:
    """Data sets by ``owner/name``; everything asked of it is in `asked`."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, bytes]] = {}
        self.raw: dict[str, bytes] = {}
        """What raw GitHub addresses give, by path."""
        self.gated: set[str] = set()
        """Repositories whose files need `TOKEN`."""
        self.faults: dict[str, FileFault] = {}
        self.redirects: dict[str, str] = {}
        """Files that lie at another address."""
        self.lfs = True
        """Whether listings announce SHA-256 (LFS) or git hashes, and ModelScope any at all."""
        self.tree_listing = True
        """Whether ModelScope's first listing path is known."""
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """Address without a trailing slash."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request; `hub` is set by `_handler`."""

    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._route()

    def do_GET(self) -> None:
        self._route()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the tests' output clean."""

    def _route(self) -> None:
        url = urlsplit(self.path)
        self.hub.asked.append(f"{self.command} {self.path}")
        self.hub.headers.append(dict(self.headers.items()))
        parts = url.path.strip("/").split("/")
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if parts[:2] == ["api", "datasets"]:
            self._huggingface_api("/".join(parts[2:4]), parts[4:])
        elif parts[0] == "datasets":
            self._huggingface_file("/".join(parts[1:3]), parts[4], "/".join(parts[5:]))
        elif parts[:3] == ["api", "v1", "datasets"]:
            self._modelscope("/".join(parts[3:5]), parts[5:], query)
        elif url.path in self.hub.raw:
            self._send_file(url.path, self.hub.raw[url.path], {})
        else:
            self._error(404, "")

    def _huggingface_api(self, repo: str, rest: list[str]) -> None:
        files = self.hub.repos.get(repo)
        if files is None:
            self._error(404, "RepoNotFound")
        elif rest and rest[1] not in ("main", COMMIT):
            self._error(404, "RevisionNotFound")
        elif rest[:1] == ["tree"]:
            self._send_json([self._huggingface_entry(path, body) for path, body in files.items()])
        else:
            siblings = [{"rfilename": path} for path in files]
            self._send_json({"id": repo, "sha": COMMIT, "siblings": siblings, "tags": []})

    def _huggingface_entry(self, path: str, body: bytes) -> dict[str, Any]:
        blob = hashlib.sha1(f"blob {len(body)}\0".encode() + body).hexdigest()
        entry = {"type": "file", "path": path, "size": len(body), "oid": blob}
        if self.hub.lfs:
            sha256 = hashlib.sha256(body).hexdigest()
            entry["lfs"] = {"oid": sha256, "size": len(body), "pointerSize": 130}
        return entry

    def _huggingface_file(self, repo: str, revision: str, path: str) -> None:
        body = self.hub.repos.get(repo, {}).get(path)
        if body is None or revision not in ("main", COMMIT):
            self._error(404, "EntryNotFound")
        elif repo in self.hub.gated and self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._error(401, "GatedRepo")
        else:
            etag = f'"{hashlib.sha256(body).hexdigest()}"'
            self._send_file(path, body, {"ETag": etag, "X-Repo-Commit": COMMIT})

    def _modelscope(self, repo: str, rest: list[str], query: Mapping[str, str]) -> None:
        files = self.hub.repos.get(repo)
        known = [["repo", "files"], ["repo"]] + [["repo", "tree"]] * self.hub.tree_listing
        if files is None or rest not in known or query.get("Revision") != "master":
            self._error(404, "")
        elif repo in self.hub.gated and self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._error(401, "")
        elif rest == ["repo"]:
            path = query["FilePath"]
            self._send_file(path, files[path], {})
        else:
            entries = [self._modelscope_entry(path, body) for path, body in files.items()]
            entries.insert(0, {"Path": "data", "Type": "tree", "Size": 0})
            size = int(query["PageSize"])
            start = (int(query["PageNumber"]) - 1) * size
            data = {"Files": entries[start : start + size]}
            self._send_json({"Code": 200, "Data": data, "Success": True})

    def _modelscope_entry(self, path: str, body: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(body).hexdigest() if self.hub.lfs else ""
        return {"Path": path, "Type": "blob", "Size": len(body), "Sha256": digest}

    def _send_json(self, document: Any) -> None:
        self._send(200, json.dumps(document).encode(), {"Content-Type": "application/json"})

    def _send_file(self, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        if path in self.hub.redirects:
            self._send(302, b"", {"Location": self.hub.redirects[path]})
            return
        fault = self.hub.faults.get(path)
        if fault == "wrong":
            body = body.swapcase() if body.swapcase() != body else bytes(reversed(body))
        half = fault == "truncated" and self.command == "GET"
        self._send(200, body, headers, sent=len(body) // 2 if half else len(body))

    def _error(self, status: int, code: str) -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": code} if code else {}
        self._send(status, b"{}", headers)

    def _send(
        self, status: int, body: bytes, headers: Mapping[str, str], sent: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:sent])
        if sent is not None and sent < len(body):
            self.close_connection = True


def _handler(owner: LoopbackHub) -> type[_Handler]:
    class Handler(_Handler):
        hub = owner

    return Handler
