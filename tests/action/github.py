"""A small GitHub on loopback: the comments of one pull request."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

REPOSITORY = "someone/server"
TOKEN = "ghs_token_of_the_job_1234567890"
COMMENTS = re.compile(rf"/repos/{REPOSITORY}/issues/(\d+)/comments")
COMMENT = re.compile(rf"/repos/{REPOSITORY}/issues/comments/(\d+)")


class GitHub:
    """Serves the comments; `faults` are statuses that the next requests get."""

    def __init__(self, *, writable: bool = True) -> None:
        self.comments: list[dict[str, Any]] = []
        self.methods: list[str] = []
        self.faults: list[int] = []
        self.writable = writable
        github = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                is_known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
                github.methods.append(self.command)
                fault = github.faults.pop(0) if github.faults else 0
                status, answer = (401, None) if not is_known else (fault, None)
                if not status:
                    status, answer = github.answer(self.command, self.path, body)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = handle_any  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, body: str, kind: str = "Bot") -> None:
        """Add a comment."""
        number = 100 + len(self.comments)
        self.comments.append({"id": number, "body": body, "user": {"type": kind}})

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """The status and the document that a request gets."""
        place = urlsplit(path)
        if method == "GET" and COMMENTS.fullmatch(place.path):
            query = parse_qs(place.query)
            size, page = int(query["per_page"][0]), int(query["page"][0])
            return 200, self.comments[size * (page - 1) : size * page]
        if not self.writable:
            return 403, {"message": "Resource not accessible by integration"}
        if method == "POST" and COMMENTS.fullmatch(place.path):
            self.add(body["body"])
            return 201, self.comments[-1]
        if method == "PATCH" and (found := COMMENT.fullmatch(place.path)):
            comment = self.comments[int(found[1]) - 100]
            comment["body"] = body["body"]
            return 200, comment
        return 404, None
