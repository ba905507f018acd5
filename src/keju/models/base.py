"""The interface of a model for the engine: one attempt per call, without retries. Also turns an
endpoint's refusal (status and body) into a fault of a known kind."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from keju.errors import EndpointError, KejuError
from keju.messages import printable
from keju.redaction import REDACTED as REDACTED
from keju.redaction import Redactor as Redactor
from keju.types import Fault, FaultKind, Notice, Reply, Request, Sampling

BRIEF = 16
"""Token limit of a reply that only shows that a request is accepted."""


class NotReady(EndpointError):
    """The endpoint at `place` does not work at present; `fault` may pass.

    `lasting` is the error to report if it does not pass.
    """

    def __init__(self, place: str, fault: Fault, lasting: EndpointError | None = None) -> None:
        super().__init__(f"{place} is not ready ({fault_text(fault)})")
        self.place = place
        self.fault = fault
        self.lasting = lasting


class ModelServer(Protocol):
    """A program that serves a model while the model is in use."""

    folder: Path
    """The folder of its log."""

    async def start(
        self, on_down: Callable[[Any], None], on_lost: Callable[[KejuError], None]
    ) -> None:
        """Start it and wait until it answers; raise EndpointError in one line.

        Later `on_down` is called with the reason when it stops answering for a while, and `on_lost`
        when it will not answer again.
        """

    async def close(self) -> None:
        """End it."""

    def facts(self) -> dict[str, Any]:
        """Return the command and the number of starts for the manifest, never a secret."""


class Model(ABC):
    """Answers requests. One `ask` is one attempt; only the channel decides on another attempt.

    `ask` never raises for a failure of the endpoint. A failed attempt is a `Reply` whose `error`
    names the kind of fault. It only raises on cancellation and on programming errors.
    """

    name: str
    """The model's name in results."""
    slots: int | None = None
    """The most requests that it can work on usefully at the same time; None if the user decides."""
    batches: bool = False
    """Whether it forms batches itself. Then `slots` requests are kept in flight, independent of
    the limit for endpoints, and one subset follows the other."""

    quits: bool = False
    """Whether a cancelled call ends at once and costs nothing, so that Ctrl-C does not wait for
    it."""

    api: str = "endpoint_of_openai"
    """The API that it expects at its address, as a code of the message catalogue."""
    acts: bool = False
    """Whether it accepts requests with turns and tools."""
    counts: bool = False
    """Whether its token counts are exact, so that they show what it received."""
    fixed_history: bool = False
    """Whether it refuses a conversation without its earlier turns."""

    bounded: bool = False
    """Whether a reply has a token limit if the request does not name one."""

    server: ModelServer | None = None
    """The server that is started before it and ended after it."""
    trial: Reply | None = None
    """The reply to the preflight's last call, if it came from an endpoint."""
    trial_bytes: int = 0
    """The length of the prompt of that call."""
    learnt: tuple[Notice, ...] = ()
    """Notices for the user from the preflight."""

    @property
    def loading(self) -> Notice | None:
        """The notice to show before a slow start; None if it is ready at once."""
        return None

    async def start(self) -> None:
        """Open connections or load weights; raise EndpointError or UsageError in one line."""

    async def preflight(self, sampling: Sampling) -> None:
        """Make one cheap call that shows that the address, key and model are right.

        With ``sampling.decode`` of ``labels`` it also shows that log-probabilities are returned.
        Raises EndpointError with one line that names the cause, or NotReady if the failure may
        pass.
        """

    def sent(self, sampling: Sampling) -> Notice | None:
        """Return the address and model of the preflight's request, never a secret; None for a model
        in this process."""
        return None

    def briefly(self, sampling: Sampling) -> Sampling:
        """Return `sampling` for a reply of a few words, if only the call itself matters."""
        return msgspec.structs.replace(sampling, max_tokens=BRIEF)

    def patience(self, sampling: Sampling, usual: float) -> float:
        """Return the seconds for one attempt, if the user allows `usual` seconds."""
        return usual

    @abstractmethod
    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one attempt, within `timeout` seconds."""

    async def close(self) -> None:
        """Release connections and memory."""

    def facts(self) -> dict[str, Any]:
        """Return everything that determines the replies, for the manifest, never a secret."""
        return {"name": self.name}


def seed_of(request: Request) -> int | None:
    """Return the seed of a request; None if it has no seed."""
    if request.seed is not None:
        return request.seed
    seed: int | None = request.sampling.extra.get("seed", request.sampling.seed)
    return seed


MESSAGE_LENGTH = 300
SEARCHED_LENGTH = 2000
"""Number of characters of a message that are searched for its subject."""
ODD_WAIT = 40
"""Number of characters that are kept of an unreadable Retry-After."""
HEAD_LENGTH = 4000
"""Number of characters of a page that are searched for its title. The search takes quadratic time
if a title is not closed."""

BY_STATUS: dict[int, FaultKind] = {
    401: "auth",
    402: "auth",
    403: "auth",
    404: "not_found",
    405: "not_found",
    408: "timeout",
    409: "server",
    413: "context_length",
    423: "server",
    425: "server",
    429: "rate_limit",
    498: "rate_limit",
    504: "timeout",
    524: "timeout",
    529: "rate_limit",
}
BY_CODE: dict[str, FaultKind] = {
    "context_length_exceeded": "context_length",
    "string_above_max_length": "context_length",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "data_inspection_failed": "content_filter",
    "insufficient_quota": "auth",
    "invalid_api_key": "auth",
    "model_not_found": "not_found",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "rate_limit_reached_error": "rate_limit",
    "too_many_requests": "rate_limit",
    "limit_requests": "rate_limit",
    "limit_burst_rate": "rate_limit",
    "slow_down": "rate_limit",
    "overloaded": "rate_limit",
    "overloaded_error": "rate_limit",
    "engine_overloaded": "rate_limit",
    "engine_overloaded_error": "rate_limit",
    "server_overloaded": "rate_limit",
    "Throttling": "rate_limit",
    "Throttling.RateQuota": "rate_limit",
    "Throttling.AllocationQuota": "rate_limit",
    "ThrottlingException": "rate_limit",
    "RESOURCE_EXHAUSTED": "rate_limit",
}
"""Error codes of providers that are more specific than the status. The last block means overload
for every status."""
OVERLOADED = re.compile(
    r"overload|(over|at|exceeds?|exceeded|insufficient) capacity|capacity (is )?exceeded"
    r"|too many (concurrent )?requests|rate.?limit",
    re.IGNORECASE,
)
"""Messages of overloaded services with a status of 500 to 599: "The model is overloaded. Please try
again later.", "capacity exceeded", "Too many concurrent requests"."""
BY_MESSAGE: dict[FaultKind, re.Pattern[str]] = {
    # "The response was filtered due to the content management policy", "Inappropriate content"
    "content_filter": re.compile(
        r"content.?(filter|policy|management)|responsible.?ai|inappropriate content"
        r"|data.?inspection|safety (system|filter)|sensitive (content|words?)",
        re.IGNORECASE,
    ),
    # "This model's maximum context length is 8192 tokens", "prompt (9000 tokens) exceeds the limit"
    "context_length": re.compile(
        r"context.?(length|window|size)|maximum (context|input|prompt)|too long|too many tokens"
        r"|longer than the (model|context|maximum)|reduce the length"
        r"|(prompt|input|request|tokens?)\b.{0,80}\bexceed"
        r"|exceed.{0,80}\b(context|tokens?|length)",
        re.IGNORECASE,
    ),
    # "The model `x` does not exist", "invalid model name"
    "not_found": re.compile(
        r"\bmodel\b.{0,120}(not (exist|found)|does ?n.t exist|not a valid model)|unknown model"
        r"|no such model|invalid model( name)?\b",
        re.IGNORECASE,
    ),
}
"""The subject of a message; the first pattern that matches decides."""
_HTML = re.compile(r"^\s*(<!doctype|<html|<head)", re.IGNORECASE)
"""The beginning of a page: ``<!DOCTYPE html>``."""
_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.IGNORECASE)
"""``502 Bad Gateway`` in ``<title>502 Bad Gateway</title>``."""


def one_line(text: str) -> str:
    """Return `text` as one line of at most `MESSAGE_LENGTH` characters, without terminal control
    codes."""
    line = printable(text[: 20 * MESSAGE_LENGTH], one_line=True)
    return line if len(line) <= MESSAGE_LENGTH else line[: MESSAGE_LENGTH - 1] + "…"


def fault_text(fault: Fault) -> str:
    """Return a fault in words, with its status first."""
    return f"{fault.status}: {fault.message}" if fault.status else fault.message


def refusal(
    status: int, body: bytes, header: Callable[[str], str | None], redact: Redactor
) -> Fault:
    """Return the fault for a reply whose status is not a success."""
    if 300 <= status < 400:
        message = f"the address redirects {_redirect_target(header('location') or '')}"
        return Fault("not_found", one_line(redact(message)), status)
    message, code = error_of(body)
    wait_headers = header("retry-after-ms"), header("retry-after")
    wait = retry_after(*wait_headers)
    kind = kind_of(status, message, code)
    if kind == "server" and status == 503 and any(wait_headers):
        kind = "rate_limit"
    unreadable_wait = (
        ""
        if wait is not None
        else one_line(redact(wait_headers[0] or wait_headers[1] or ""))[:ODD_WAIT]
    )
    message_line = one_line(redact(message or f"status {status}"))
    return Fault(kind, message_line, status, wait, odd_wait=unreadable_wait)


def _redirect_target(location: str) -> str:
    """Return the target of a redirect, without the credentials and the query of the address."""
    try:
        parts = urlsplit(location)
    except ValueError:  # "http://[::1" is not an address
        return "elsewhere"
    host = f"{parts.scheme}://{parts.hostname}" if parts.hostname else ""
    return f"to {host}{parts.path}" if location else "elsewhere"


def kind_of(status: int, message: str, code: str) -> FaultKind:
    """Return the kind of a refusal, which decides whether another attempt makes sense."""
    if code in BY_CODE:
        return BY_CODE[code]
    searched_text = message[:SEARCHED_LENGTH]
    by_message = next((kind for kind, p in BY_MESSAGE.items() if p.search(searched_text)), None)
    # A 403 is about the key, unless its message is about the content.
    if status in BY_STATUS and not (status == 403 and by_message == "content_filter"):
        return BY_STATUS[status]
    if status >= 500:
        return "rate_limit" if OVERLOADED.search(searched_text) else "server"
    return by_message or "bad_request"


def _describe_page(text: str) -> str:
    """Return the title of an HTML page, or any other text as it is."""
    if not _HTML.match(text):
        return text
    title = _TITLE.search(text[:HEAD_LENGTH])
    return f"an HTML page: {title[1].strip()}" if title else "an HTML page"


def error_of(body: bytes) -> tuple[str, str]:
    """Return the message and code of an error body: OpenAI's format, FastAPI's, plain text or
    HTML."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _describe_page(body.decode("utf-8", "replace")), ""
    error = document.get("error", document) if isinstance(document, dict) else document
    if not isinstance(error, dict):
        return _text(error), ""
    message = next((error[k] for k in ("message", "msg", "detail") if error.get(k)), "")
    code = error.get("code") or error.get("type") or ""
    if isinstance(message, list):
        message = "; ".join(_text(part) for part in message[:3])
    return _text(message), code if isinstance(code, str) else ""


def _text(value: Any) -> str:
    """Return a message in words: ``{"loc": ["body", "n"], "msg": "must be 1"}`` is "body.n: must be
    1"."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(value.get("msg"), str):
        location = value.get("loc")
        path = ".".join(map(str, location)) if isinstance(location, list) else ""
        return f"{path}: {value['msg']}" if path else str(value["msg"])
    return msgspec.json.encode(value).decode()


def retry_after(
    milliseconds: str | None, value: str | None, now: datetime | None = None
) -> float | None:
    """Return the seconds to wait from ``Retry-After-Ms`` or ``Retry-After`` (a number or an HTTP
    date)."""
    for text, scale in ((milliseconds, 1000.0), (value, 1.0)):
        try:
            seconds = float(text or -1)
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds / scale
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value or "")
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, OverflowError):  # not a date, or a date in the year 99999999999
        return None


# Texts that clients write in place of a reply: `Error code: 400 - {…}`, `{"error": …}`, `No
# response`, `openai.BadRequestError: …`, `502 Bad Gateway`, `<html>`. Not `Error bars are …`.
_ERROR_TEXT = re.compile(
    r"\s*+(?:(?:\[?ERROR\]?|Error|API error|Request failed)(?: code)?[:(]? ?\(?(?:HTTP )?[45]\d\d\b"
    r"|(?:[\w.]+\.)?\w*(?:Error|Exception): |\[?ERROR\]?: |API (?:error|call failed)"
    r"|HTTP(?:/\d\.\d)? ?[45]\d\d\b"
    r"|\{\s*\"(?:error|detail)\"\s*:|(?:No response|None|null|undefined)[.]?\s*\Z"
    r"|(?:[45]\d\d )?(?:Internal Server Error|Bad (?:Gateway|Request)"
    r"|Service (?:Temporarily )?Unavailable"
    r"|Gateway Time-?out|Too Many Requests|Request timed out|Connection error|Rate limit)"
    r"|<!DOCTYPE html|<html)",
    re.IGNORECASE,
)


def is_error_text(text: str) -> bool:
    """Whether the text of a reply is an error message of a client or a server."""
    return _ERROR_TEXT.match(text) is not None
