"""Post one comment on a pull request, or update the one that is there.

A comment that cannot be posted is no reason to fail: the summary of the job has the same text. The
token never appears in the log. This file needs only Python.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

MOST_CHARACTERS = 65_000
"""GitHub refuses comments with more than 65,536 characters."""
PAGES = 30
ATTEMPTS = 3
TIMEOUT = 30


class ApiError(Exception):
    """A request that GitHub refused, or that it did not answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


def main() -> int:
    """Post or update the comment; return 0 in every case."""
    number = pull_request()
    token = os.environ.get("GITHUB_TOKEN", "").strip()
    if number is None or not token:
        why = "there is no token" if number is not None else "this is no pull request"
        print(f"No comment: {why}. The summary of the job has the text.")
        return 0
    try:
        print(post(number, read_text(), token))
    except ApiError as error:
        hint = " (forks have a token that cannot write)" if error.status in (401, 403, 404) else ""
        print(f"::notice title=Keju::no comment could be posted: {error}{hint}")
    return 0


def marker() -> str:
    """Return the invisible line by which the comment is found again."""
    title = os.environ.get("CHECK_TITLE", "Keju")
    return f"<!-- keju {hashlib.sha256(title.encode()).hexdigest()[:16]} -->"


def read_text() -> str:
    """Return the comment with its marker, and with a link to the job and its files."""
    text = Path(os.environ["CHECK_FOLDER"], "comment.md").read_text("utf-8")
    server, repository, run = (
        os.environ.get(name, "")
        for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    )
    link = (
        f"\n[Report and log]({server}/{repository}/actions/runs/{run})\n" if server and run else ""
    )
    room = MOST_CHARACTERS - len(link) - 100
    if len(text) > room:
        text = text[:room].rsplit("\n", 1)[0] + "\n\n… the report has the rest\n"
    return f"{marker()}\n{text}{link}"


def pull_request() -> int | None:
    """Return the number of the pull request that started the job."""
    try:
        event = json.loads(Path(os.environ.get("GITHUB_EVENT_PATH", "")).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    number = (event.get("pull_request") or {}).get("number")
    return number if isinstance(number, int) else None


def post(number: int, text: str, token: str) -> str:
    """Update the comment that is there, or post a new one; return what was done."""
    issue = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    if (earlier := find(f"{issue}/{number}/comments", token)) is not None:
        try:
            call("PATCH", f"{issue}/comments/{earlier}", token, {"body": text})
            return "comment updated"
        except ApiError as error:
            if error.status not in (403, 404):  # it belongs to somebody else, or is gone
                raise
    call("POST", f"{issue}/{number}/comments", token, {"body": text})
    return "comment posted"


def find(path: str, token: str) -> int | None:
    """Return the id of the earlier comment; None if there is none."""
    for page in range(1, PAGES + 1):
        comments = call("GET", f"{path}?per_page=100&page={page}", token)
        for comment in comments:
            is_program = (comment.get("user") or {}).get("type") == "Bot"
            if is_program and str(comment.get("body", "")).startswith(marker()):
                return int(comment["id"])
        if len(comments) < 100:
            return None
    return None


def call(method: str, path: str, token: str, body: dict[str, Any] | None = None) -> Any:
    """Send a request; repeat it if the server has a fault. Raise ApiError without the token."""
    address = os.environ.get("GITHUB_API_URL", "https://api.github.com") + path
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "User-Agent": "keju",
    }
    data = None if body is None else json.dumps(body).encode()
    for attempt in range(1, ATTEMPTS + 1):
        request = urllib.request.Request(address, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            if error.code < 500 or attempt == ATTEMPTS:
                raise ApiError(f"GitHub answered {error.code}", error.code) from None
        except (OSError, ValueError) as error:
            if attempt == ATTEMPTS:
                raise ApiError(f"GitHub did not answer ({type(error).__name__})") from None
        time.sleep(float(os.environ.get("CHECK_RETRY_SECONDS", "2")) * attempt)
    raise ApiError("GitHub did not answer")


if __name__ == "__main__":
    sys.exit(main())
