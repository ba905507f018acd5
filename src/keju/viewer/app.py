"""The web app: addresses, headers, the token of strangers, and serving it."""

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
from keju.signals import calling
from keju.viewer.clients import Client
from keju.viewer.comparing import Comparing
from keju.viewer.condition import AT_ONCE
from keju.viewer.damage import Stopped, in_words
from keju.viewer.pages import Pages
from keju.viewer.shelf import Shelf, State, Stored

TOKEN: Final = "keju_token"
"""The cookie, and the part of an address, that lets in who is not on this machine."""
LOOPBACK: Final = ["127.0.0.1", "localhost", "[::1]"]
ARENAS: Final = -8
"""What glibc calls M_ARENA_MAX: how many heaps the threads of a process share."""
PULSE: Final = 1.0
"""Seconds between two looks at a run that goes on."""
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
    "report.css": ("keju.report", "templates/report.css", "text/css"),
    "viewer.css": ("keju.viewer", "static/viewer.css", "text/css"),
    "viewer.js": ("keju.viewer", "static/viewer.js", "text/javascript"),
    "icon.svg": ("keju.viewer", "static/icon.svg", "image/svg+xml"),
}


_conditions = ThreadPoolExecutor(AT_ONCE, "condition")
"""Pages with a condition wait for each other, and no other page waits for them."""


class Guarded:
    """Gives every answer its headers; `token`, if any, must come with every request.

    It comes once in the address, ``?token=…``, and from then on as a cookie.
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
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *own]
            await send(message)

        request = Request(scope)
        if scope["method"] not in ("GET", "HEAD"):
            await Response("read-only", 405)(scope, receive, sending)
        elif _is_foreign(request):
            await Response("refused: another site sent this request", 403)(scope, receive, sending)
        elif not self._token or self._known(request.cookies.get(TOKEN, "")):
            await self._app(scope, receive, sending)
        elif self._known(request.query_params.get("token", "")):
            items = request.query_params.multi_items()
            query = urlencode([(name, value) for name, value in items if name != "token"])
            # Two slashes at the beginning would be the name of another site.
            path = "/" + request.url.path.lstrip("/")
            answer = RedirectResponse(path + (f"?{query}" if query else ""), 303)
            answer.set_cookie(TOKEN, self._token, httponly=True, samesite="strict")
            await answer(scope, receive, sending)
        else:
            await Response("a token is needed: see the terminal", 401)(scope, receive, sending)

    def _known(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _is_foreign(request: Request) -> bool:
    """Whether a page of another site sent the request.

    A link on another site may lead here, as long as it makes the viewer evaluate nothing: browsers
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
    shelf: Shelf,
    *,
    token: str = "",
    stop: asyncio.Event | None = None,
    language: Language | None = None,
) -> ASGIApp:
    """The app over the runs of a folder; it ends its streams when `stop` is set.

    Pages are in `language` until somebody chooses another; without one the browser says it.
    """
    pages = Pages(shelf, language)
    comparing = Comparing(pages)

    async def events(request: Request) -> Response:
        find = in_words(pages.stored)
        stored = await asyncio.to_thread(find, request.path_params["run"], request)
        language = pages.language(request)

        async def stream() -> AsyncIterator[bytes]:
            seen: object = None
            with suppress(KejuError):  # its files are gone or damaged by now: the stream ends
                while stop is None or not stop.is_set():
                    state = await asyncio.to_thread(in_words(_state_of), stored)
                    if seen != (now := (stored.index.generation, stored.index.end, state)):
                        html = await asyncio.to_thread(in_words(pages.live), stored, language)
                        yield _event("change", html)
                        seen = now
                    if state != "running":
                        break
                    await asyncio.sleep(PULSE)
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
            # The router of the library says no more than the name of the status, in English.
            unsaid = error.detail == HTTPStatus(error.status_code).phrase
            text = labels("view.no_page") if unsaid else error.detail
            return pages.problem(request, error.status_code, text)
        text = broken = labels("view.broken")
        if isinstance(error, KejuError):
            text = error.text(labels.language)
        status = 400 if isinstance(error, UsageError) else 422 if text != broken else 500
        return pages.problem(request, status, text)

    app = Starlette(
        routes=[
            Route("/", in_words(pages.runs)),
            Route("/runs/{run}", in_words(pages.run)),
            Route("/runs/{run}/events", events),
            Route("/runs/{run}/samples", _while_connected(pages.samples)),
            Route("/runs/{run}/sample", _while_connected(pages.sample)),
            Route("/compare", in_words(comparing.compared)),
            Route("/compare/sample", in_words(comparing.sides)),
            Route("/static/{name}", static),
        ],
        middleware=[] if token else [Middleware(TrustedHostMiddleware, allowed_hosts=LOOPBACK)],
        exception_handlers={HTTPException: problem, KejuError: problem, Exception: problem},
    )
    return Guarded(app, token)


def _while_connected(
    page: Callable[[Request, Callable[[], bool]], Response],
) -> Callable[[Request], Awaitable[Response]]:
    """Make a page in a thread, and let the page know when the browser has left.

    The page then stops what takes long. The same happens when the server stops.
    """

    async def endpoint(request: Request) -> Response:
        left = threading.Event()
        watch = asyncio.create_task(_disconnected(request, left))
        pool = _conditions if "where" in request.query_params else None
        work = partial(in_words(page), request, left.is_set)
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work)
        except Stopped:
            return Response(status_code=499)  # no one reads it
        finally:
            left.set()
            watch.cancel()

    return endpoint


async def _disconnected(request: Request, left: threading.Event) -> None:
    """Set `left` when the browser closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    left.set()


def _state_of(stored: Stored) -> State:
    """The state of a run whose journal was read to its end."""
    stored.index.refresh()
    return stored.state


def _event(name: str, text: str) -> bytes:
    """One event of a stream; its text is a JSON string, since a line end would end it."""
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(text) + b"\n\n"


class _Server(uvicorn.Server):
    """A server whose signals are handled outside."""

    @contextmanager
    def capture_signals(self) -> Any:
        """Leave signals alone."""
        yield


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listening(host: str, port: int) -> socket.socket:
    """A socket at an address; UsageError where there is none to be had."""
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
    port: int,
    data_dir: str | None,
    on_start: Callable[[str], None],
) -> None:
    """Serve the runs of a folder until Ctrl-C; `on_start` gets the address to open."""
    _share_one_heap()
    token = "" if is_loopback(host) else secrets.token_urlsafe(24)
    shelf = Shelf(folder, data_dir)
    shelf.refresh()
    with listening(host, port) as own:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{own.getsockname()[1]}/" + (f"?token={token}" if token else "")
        asyncio.run(_serving(shelf, token, own, address, on_start))


def _share_one_heap() -> None:
    """Let the threads that answer requests use the memory that the one before them gave back.

    glibc gives each thread a heap of its own; of a run of a million replies, 40 MB stayed in them.
    Other libraries of C have no such switch.
    """
    with suppress(OSError, AttributeError, TypeError):  # TypeError: no library to name, on Windows
        ctypes.CDLL(None).mallopt(ARENAS, 1)


def _pass_over_full(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say nothing if too many files are open for another connection: asyncio tries again in 1 s."""
    error = context.get("exception")
    if not (isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)):
        loop.default_exception_handler(context)


async def _serving(
    shelf: Shelf, token: str, own: socket.socket, address: str, on_start: Callable[[str], None]
) -> None:
    stop = asyncio.Event()
    config = uvicorn.Config(
        make_app(shelf, token=token, stop=stop, language=requested_language()),
        http=Client,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    server = _Server(config)

    def end() -> None:
        server.should_exit = True
        stop.set()

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_pass_over_full)
    with calling(end, loop):
        task = asyncio.create_task(server.serve(sockets=[own]))
        while not server.started and not task.done():
            await asyncio.sleep(0.01)
        on_start(address)
        await task
    sys.stderr.flush()
