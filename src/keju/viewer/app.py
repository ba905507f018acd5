"""The web app: its addresses, its headers, the access token, and the server."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import hmac
import secrets
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from importlib import resources
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keju.errors import KejuError, UsageError
from keju.messages import Language, requested_language
from keju.signals import call_on_loop
from keju.viewer.clients import BoundedConnection
from keju.viewer.comparing import ComparisonPages
from keju.viewer.condition import AT_ONCE
from keju.viewer.damage import PageStopped, with_data_errors
from keju.viewer.pages import ViewerPages
from keju.viewer.run_index import IndexedRun, RunIndex, State

TOKEN: Final = "keju_token"
"""The cookie and the query parameter that grant access to other machines."""
LOOPBACK: Final = ["127.0.0.1", "localhost", "[::1]"]
MAX_ARENAS_OPTION: Final = -8
"""The value of glibc's M_ARENA_MAX: the number of heaps that the threads share."""
POLL_SECONDS: Final = 1.0
"""Seconds between two checks of a run that is going on."""
HEADERS: Final = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
STATIC: Final = {
    "report.css": ("keju.reporting", "templates/report.css", "text/css"),
    "viewer.css": ("keju.viewer", "static/viewer.css", "text/css"),
    "viewer.js": ("keju.viewer", "static/viewer.js", "text/javascript"),
    "icon.svg": ("keju.viewer", "static/icon.svg", "image/svg+xml"),
}


_conditions = ThreadPoolExecutor(AT_ONCE, "condition")
"""Conditions run in separate threads, so that other pages do not wait for them."""


class GuardedApp:
    """Adds security headers to every answer; if there is a `token`, every request must have it.

    The token is given once in the address, ``?token=…``, and then stored in a cookie.
    """

    def __init__(self, app: ASGIApp, token: str = "") -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra_headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *extra_headers]
            await send(message)

        request = Request(scope)
        if scope["method"] not in ("GET", "HEAD"):
            await Response("read-only", 405)(scope, receive, sending)
        elif _is_foreign(request):
            await Response("refused: another site sent this request", 403)(scope, receive, sending)
        elif not self._token or self._is_token(request.cookies.get(TOKEN, "")):
            await self._app(scope, receive, sending)
        elif self._is_token(request.query_params.get("token", "")):
            parameters = request.query_params.multi_items()
            query = urlencode([(name, value) for name, value in parameters if name != "token"])
            # A path that begins with two slashes would name another host.
            path = "/" + request.url.path.lstrip("/")
            answer = RedirectResponse(path + (f"?{query}" if query else ""), 303)
            answer.set_cookie(TOKEN, self._token, httponly=True, samesite="strict")
            await answer(scope, receive, sending)
        else:
            await Response("a token is needed: see the terminal", 401)(scope, receive, sending)

    def _is_token(self, candidate: str) -> bool:
        return hmac.compare_digest(candidate.encode(), self._token.encode())


def _is_foreign(request: Request) -> bool:
    """Return whether a page of another site sent the request.

    A link on another site may lead here unless it makes the viewer evaluate a condition: browsers
    mark it as a navigation. Programs such as curl send none of these headers.
    """
    headers = request.headers
    origin = headers.get("origin", "")
    if origin and origin != f"{request.url.scheme}://{headers.get('host', '')}":
        return True
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    is_navigation = headers.get("sec-fetch-mode") == "navigate"
    is_document = headers.get("sec-fetch-dest") == "document"
    return not (is_navigation and is_document) or "where" in request.query_params


def make_app(
    run_index: RunIndex,
    *,
    token: str = "",
    stop: asyncio.Event | None = None,
    language: Language | None = None,
) -> ASGIApp:
    """Return the app for the runs of a folder; it ends its streams when `stop` is set.

    Pages are in `language` until the user selects another one. Without `language`, the browser
    decides.
    """
    pages = ViewerPages(run_index, language)
    comparing = ComparisonPages(pages)

    async def events(request: Request) -> Response:
        find = with_data_errors(pages.stored)
        stored = await asyncio.to_thread(find, request.path_params["run"], request)
        language = pages.language(request)

        async def stream() -> AsyncIterator[bytes]:
            sent_state: object = None
            with suppress(KejuError):  # its files are gone or damaged by now: the stream ends
                while stop is None or not stop.is_set():
                    state = await asyncio.to_thread(with_data_errors(_state_of), stored)
                    if sent_state != (
                        current_state := (stored.index.generation, stored.index.end, state)
                    ):
                        html = await asyncio.to_thread(
                            with_data_errors(pages.live), stored, language
                        )
                        yield _event("change", html)
                        sent_state = current_state
                    if state != "running":
                        break
                    await asyncio.sleep(POLL_SECONDS)
            if stop is None or not stop.is_set():
                yield _event("done", "")

        return StreamingResponse(stream(), media_type="text/event-stream")

    def static(request: Request) -> Response:
        package, path, kind = STATIC.get(request.path_params["name"], ("", "", ""))
        if not package:
            raise HTTPException(404)
        content = resources.files(package).joinpath(path).read_bytes()
        return Response(content, media_type=kind)

    def problem(request: Request, error: Exception) -> Response:
        labels = pages.labels(request)
        if isinstance(error, HTTPException):
            # By default, Starlette only gives the name of the status, in English.
            is_default_text = error.detail == HTTPStatus(error.status_code).phrase
            text = labels("view.no_page") if is_default_text else error.detail
            return pages.problem(request, error.status_code, text)
        text = broken = labels("view.broken")
        if isinstance(error, KejuError):
            text = error.text(labels.language)
        status = 400 if isinstance(error, UsageError) else 422 if text != broken else 500
        return pages.problem(request, status, text)

    app = Starlette(
        routes=[
            Route("/", with_data_errors(pages.runs)),
            Route("/runs/{run}", with_data_errors(pages.run)),
            Route("/runs/{run}/events", events),
            Route("/runs/{run}/samples", _while_connected(pages.samples)),
            Route("/runs/{run}/sample", _while_connected(pages.sample)),
            Route("/compare", with_data_errors(comparing.show_comparison)),
            Route("/compare/sample", with_data_errors(comparing.show_replies)),
            Route("/static/{name}", static),
        ],
        middleware=[] if token else [Middleware(TrustedHostMiddleware, allowed_hosts=LOOPBACK)],
        exception_handlers={HTTPException: problem, KejuError: problem, Exception: problem},
    )
    return GuardedApp(app, token)


def _while_connected(
    page: Callable[[Request, Callable[[], bool]], Response],
) -> Callable[[Request], Awaitable[Response]]:
    """Run a page in a thread, and tell the page when the browser has disconnected.

    The page then stops long work. The same happens when the server stops.
    """

    async def endpoint(request: Request) -> Response:
        disconnected = threading.Event()
        watch = asyncio.create_task(_wait_for_disconnect(request, disconnected))
        pool = _conditions if "where" in request.query_params else None
        work = partial(with_data_errors(page), request, disconnected.is_set)
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work)
        except PageStopped:
            return Response(status_code=499)  # no one reads it
        finally:
            disconnected.set()
            watch.cancel()

    return endpoint


async def _wait_for_disconnect(request: Request, disconnected: threading.Event) -> None:
    """Set `disconnected` when the browser closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    disconnected.set()


def _state_of(stored: IndexedRun) -> State:
    """Read the journal to its end and return the state of the run."""
    stored.index.refresh()
    return stored.state


def _event(name: str, text: str) -> bytes:
    """Return one event of a stream; its text is JSON because it must not contain a line end."""
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(text) + b"\n\n"


class _ViewerServer(uvicorn.Server):
    """A server that does not handle signals."""

    @contextmanager
    def capture_signals(self) -> Any:
        """Leave signals to the caller."""
        yield


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


DEFAULT_PORT = 8123


def open_listener(host: str, port: int | None) -> socket.socket:
    """Open a socket at an address; raise UsageError if that is not possible.

    Without a port it is the default port, or a free one if another program uses that.
    """
    if port is None:
        try:
            return open_listener(host, DEFAULT_PORT)
        except UsageError:
            return open_listener(host, 0)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        problem = error.strerror or str(error)
        raise UsageError("view_address_taken", host=host, port=port, problem=problem) from None


def serve(
    folder: Path,
    *,
    host: str,
    port: int | None,
    data_dir: str | None,
    on_start: Callable[[str], None],
) -> None:
    """Serve the runs of a folder until Ctrl-C; `on_start` receives the address to open."""
    _share_one_heap()
    token = "" if is_loopback(host) else secrets.token_urlsafe(24)
    run_index = RunIndex(folder, data_dir)
    run_index.refresh()
    with open_listener(host, port) as listener:
        url_host = f"[{host}]" if ":" in host else host
        address = f"http://{url_host}:{listener.getsockname()[1]}/" + (
            f"?token={token}" if token else ""
        )
        asyncio.run(_serve_until_stopped(run_index, token, listener, address, on_start))


def _share_one_heap() -> None:
    """Let the threads that answer requests reuse each other's memory.

    By default, glibc gives each thread a separate heap. After a run of a million replies, 40 MB
    stayed in these heaps. Other C libraries do not have this setting.
    """
    with suppress(OSError, AttributeError, TypeError):  # TypeError: no library to name, on Windows
        ctypes.CDLL(None).mallopt(MAX_ARENAS_OPTION, 1)


def _ignore_too_many_files(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignore the error of too many open files: asyncio accepts connections again after 1 s."""
    error = context.get("exception")
    if not (isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)):
        loop.default_exception_handler(context)


async def _serve_until_stopped(
    run_index: RunIndex,
    token: str,
    listener: socket.socket,
    address: str,
    on_start: Callable[[str], None],
) -> None:
    stop = asyncio.Event()
    config = uvicorn.Config(
        make_app(run_index, token=token, stop=stop, language=requested_language()),
        http=BoundedConnection,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    server = _ViewerServer(config)

    def end() -> None:
        server.should_exit = True
        stop.set()

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_ignore_too_many_files)
    with call_on_loop(end, loop):
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started and not task.done():
            await asyncio.sleep(0.01)
        on_start(address)
        await task
    sys.stderr.flush()
