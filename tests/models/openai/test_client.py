"""One attempt at a real endpoint on loopback: replies, faults, secrets, proxies, certificates."""

from __future__ import annotations

import asyncio
import base64
import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest

from keju.errors import ConfigError, EndpointError
from keju.models import plain_http
from keju.models.openai.client import OpenAIModel
from keju.models.transport import Transport, TransportError
from keju.types import Reply, Sampling
from tests.models.helpers import KEY, ask, request_of, use
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan, Raw

pytestmark = pytest.mark.slow


def model_at(url: str, **settings: Any) -> OpenAIModel:
    return OpenAIModel("m", api_url=url, **({"api_key": KEY} | settings))


@pytest.mark.parametrize("form", ["chat", "completion"])
def test_reply(form: Any) -> None:
    with FaultyEndpoint(Plan(answers="So the answer is (B).", key=KEY)) as endpoint:
        reply = ask(model_at(endpoint.url), request_of(sampling=Sampling(form=form)))
    assert reply.error is None
    assert reply.text == "So the answer is (B)."
    assert (reply.finish, reply.model) == ("stop", "m")
    assert reply.usage.input > 0
    assert reply.seconds > 0


@pytest.mark.parametrize(
    ("fault", "kind", "status"),
    [
        ("429", "rate_limit", 429),
        ("500", "server", 500),
        ("503", "rate_limit", 503),  # with Retry-After
        ("drop", "connection", 0),
        ("partial", "connection", 0),
        ("malformed", "malformed", 0),
        ("html", "malformed", 0),
        ("empty", "malformed", 0),
        ("stall", "timeout", 0),
    ],
)
def test_fault(fault: str, kind: str, status: int) -> None:
    with FaultyEndpoint(Plan(faults={fault: 1.0}, retry_after="7")) as endpoint:
        reply = ask(model_at(endpoint.url), timeout=0.3 if fault == "stall" else 10.0)
        assert endpoint.stats.requests == 1
    assert reply.error is not None
    assert (reply.error.kind, reply.error.status) == (kind, status)
    assert reply.error.sent
    assert reply.error.retry_after == (7.0 if status in (429, 503) else None)
    assert "\n" not in reply.error.message


def test_null_content_is_an_empty_answer() -> None:
    with FaultyEndpoint(Plan(faults={"null": 1.0})) as endpoint:
        reply = ask(model_at(endpoint.url))
    assert reply.error is None
    assert reply.text == ""


def test_an_endpoint_that_goes_down_and_comes_back() -> None:
    async def work(model: OpenAIModel) -> list[Reply]:
        replies = [await model.ask(request_of(), timeout=10)]
        endpoint.down()
        replies.append(await model.ask(request_of(), timeout=10))
        endpoint.up()
        return [*replies, await model.ask(request_of(), timeout=10)]

    with FaultyEndpoint() as endpoint:
        before, down, after = use(model_at(endpoint.url), work)
    assert before.error is None
    assert down.error is not None
    assert (down.error.kind, down.error.message) == ("connection", "connection refused")
    assert not down.error.sent
    assert after.error is None


def test_a_host_that_does_not_answer_the_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_http, "CONNECT_SECONDS", 0.2)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = []
        for _ in range(3):
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(full.getsockname())
        reply = ask(model_at(f"http://127.0.0.1:{full.getsockname()[1]}"))
        for one in waiting:
            one.close()
    assert reply.error is not None
    assert (reply.error.kind, reply.error.sent) == ("connection", False)
    assert reply.error.message == "no answer to the handshake"


@pytest.mark.parametrize("second", [None, 0.5])
def test_each_request_on_a_kept_connection_has_its_own_patience(second: float | None) -> None:
    """The first request is over at once. What is left of its time says nothing of the second."""
    delays = iter([0.001, second])
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while delay := next(delays, None):
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(delay)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await reader.read()  # until the client has enough
        writer.close()
        await writer.wait_closed()

    async def work() -> str:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        transport = Transport()
        await transport.get(url, 0.3)
        try:
            return (await transport.get(url, 0.4 if second is None else 60.0)).body.decode()
        except TransportError as error:
            return error.message
        finally:
            await transport.close()
            server.close()
            await asyncio.sleep(0.05)

    assert asyncio.run(work()) == ("no reply within 0.4 s" if second is None else "ok")
    assert connections == 1


def test_a_server_that_hangs_up_at_once() -> None:
    """Every request fails in words; a loop that met an exception would leave the next unsent."""
    uvloop = pytest.importorskip("uvloop", reason="its transports refuse to write once closed")
    met: list[dict[str, Any]] = []

    def hang_up(listener: socket.socket) -> None:
        with suppress(OSError):  # until the listener is closed
            while True:
                listener.accept()[0].close()

    async def work(url: str) -> list[Any]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: met.append(context))
        transport = Transport()
        failed: list[Any] = []
        for _ in range(30):
            failed += await asyncio.gather(transport.get(url, 10), return_exceptions=True)
        await transport.close()
        return failed

    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        Thread(target=hang_up, args=(listener,), daemon=True).start()
        failed = runner.run(work(f"http://127.0.0.1:{listener.getsockname()[1]}/"))
        listener.shutdown(socket.SHUT_RDWR)
    assert {type(each) for each in failed} == {TransportError}
    assert not met


def test_hundreds_in_flight_reuse_their_connections() -> None:
    async def work(model: OpenAIModel) -> None:
        for _ in range(3):
            asked = (model.ask(request_of(str(i)), timeout=30) for i in range(200))
            assert all(reply.error is None for reply in await asyncio.gather(*asked))

    with FaultyEndpoint(Plan(latency=0.05)) as endpoint:
        use(model_at(endpoint.url), work)
        assert endpoint.stats.max_in_flight > 150
        assert endpoint.stats.connections <= 200


def test_cancelling_leaves_the_model_usable() -> None:
    async def work(model: OpenAIModel) -> Reply:
        slow = asyncio.create_task(model.ask(request_of("slow"), timeout=60))
        while not endpoint.stats.in_flight:
            await asyncio.sleep(0.01)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        return await model.ask(request_of("slow"), timeout=10)

    with FaultyEndpoint(Plan(first_faults=("stall",))) as endpoint:
        assert use(model_at(endpoint.url), work).error is None


def test_no_secret_is_shown_anywhere() -> None:
    headers = {"X-Team": "team-MARKED-77"}
    url = "http://user:pass-MARKED-5@127.0.0.1:{port}/v1?token=query-MARKED-6"
    with FaultyEndpoint(Plan(key="another")) as endpoint:
        model = model_at(url.format(port=endpoint.port), headers=headers)
        reply = ask(model)
        assert endpoint.last_headers["x-team"] == "team-MARKED-77"
    assert reply.error is not None
    assert reply.error.kind == "auth"
    seen = f"{reply!r} {model!r} {model.facts()} {model.redact!r} {model.address!r}"
    assert "MARKED" not in seen
    gone = ask(model)
    assert gone.error is not None
    assert "MARKED" not in repr(gone)


def test_credentials_in_the_url_are_sent() -> None:
    with FaultyEndpoint(Plan(answers="ok")) as endpoint:
        url = endpoint.url.replace("://", "://user:pa%3Ass@") + "?token=t-1"
        assert ask(model_at(url, api_key=None)).text == "ok"
        sent = endpoint.last_headers["authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"user:pa:ss"


@pytest.mark.parametrize("key", ["sk-MARKED\nX-Evil: 1", "sk-MARKED\x00"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        model_at("http://h", api_key=key)
    assert "MARKED" not in str(caught.value)


def test_a_key_is_stripped() -> None:
    with FaultyEndpoint(Plan(key=KEY)) as endpoint:
        assert ask(model_at(endpoint.url, api_key=f" {KEY}\n")).error is None


def test_headers_of_the_user_win_over_ours() -> None:
    with FaultyEndpoint() as endpoint:
        ask(model_at(endpoint.url, headers={"Authorization": "Basic abc", "X-A": "1"}))
        assert endpoint.last_headers["authorization"] == "Basic abc"
        assert endpoint.last_headers["x-a"] == "1"
        assert endpoint.last_headers["content-type"] == "application/json"


def test_a_redirect_is_a_fault_and_takes_no_key_elsewhere() -> None:
    with FaultyEndpoint() as elsewhere:
        plan = Plan(redirect=f"{elsewhere.url}/chat/completions")
        with FaultyEndpoint(plan) as endpoint:
            reply = ask(model_at(endpoint.url))
        assert elsewhere.stats.connections == 0
    assert reply.error is not None
    assert reply.error.kind == "not_found"


@pytest.mark.parametrize(
    ("status", "length", "kind"), [(304, 9, "not_found"), (200, 4, "malformed")]
)
def test_a_body_beyond_what_was_announced(status: int, length: int, kind: str) -> None:
    """A reply of status 304 ends with its head, whatever a server sends behind it."""
    head = f"HTTP/1.1 {status} Status\r\nContent-Length: {length}\r\n\r\n"
    raw = Raw(data=head.encode() + b'{"a": 17}')
    with FaultyEndpoint(Plan(raw=lambda *_: raw)) as endpoint:
        reply = ask(model_at(endpoint.url))
    assert reply.error is not None
    assert reply.error.kind == kind


@pytest.fixture
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.usefixtures("_no_proxies")
def test_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyEndpoint(Plan(answers="by proxy")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.origin)
        assert ask(model_at("http://model.invalid/v1")).text == "by proxy"
        assert proxy.stats.proxied == 1


@pytest.mark.usefixtures("_no_proxies")
def test_no_proxy_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyEndpoint() as proxy, FaultyEndpoint(Plan(answers="direct")) as endpoint:
        monkeypatch.setenv("HTTP_PROXY", proxy.origin)
        monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
        assert ask(model_at(endpoint.url)).text == "direct"
        assert proxy.stats.connections == 0


class Certified(NamedTuple):
    """A server's certificate and key, and the authority that nobody else knows."""

    server: tuple[Path, Path]
    authority: Path


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates of this test")
    folder = tmp_path_factory.mktemp("tls")
    new = "openssl req -newkey rsa:2048 -nodes -x509 -days 2"
    (folder / "leaf.cnf").write_text("basicConstraints=CA:FALSE\nsubjectAltName=IP:127.0.0.1\n")
    for command in (
        f"{new} -subj /CN=authority -keyout ca.key -out ca.pem",
        "openssl req -newkey rsa:2048 -nodes -subj /CN=server -keyout leaf.key -out leaf.csr",
        "openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
        "-extfile leaf.cnf -out leaf.pem",
    ):
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return Certified((folder / "leaf.pem", folder / "leaf.key"), folder / "ca.pem")


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a self-signed certificate that is a CA's, and one that is not."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates of this test")
    folder = tmp_path_factory.mktemp("self-signed")
    new = "openssl req -newkey rsa:2048 -nodes -x509 -days 2 -addext subjectAltName=IP:127.0.0.1"
    for name, is_ca in (("authority", "TRUE"), ("server", "FALSE")):
        command = (
            f"{new} -subj /CN=127.0.0.1 -addext basicConstraints=critical,CA:{is_ca} "
            f"-keyout {name}.key -out {name}.pem"
        )
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", ["authority", "server"])
def test_a_self_signed_certificate(self_signed: Path, name: str) -> None:
    certificate, other = self_signed / f"{name}.pem", self_signed / "authority.pem"
    tls = (certificate, self_signed / f"{name}.key")
    with FaultyEndpoint(Plan(answers="safe"), tls=tls) as endpoint:
        trusted = ask(model_at(endpoint.url, ca_file=str(certificate)))
        wrong = ask(model_at(endpoint.url, ca_file=str(other)))
        with pytest.raises(EndpointError) as caught:
            use(model_at(endpoint.url), lambda m: m.preflight(Sampling()))
    assert wrong.error is not None
    assert "is the server running" not in str(caught.value)
    if name == "server":
        assert trusted.text == "safe"
        assert "ca_file is not the one that signed the server's" in wrong.error.message
        assert "a private certificate authority is named with ca_file" in str(caught.value)
    else:
        assert "make it again with basicConstraints=CA:FALSE" in wrong.error.message


def test_certificate_authority(certified: Certified) -> None:
    with FaultyEndpoint(Plan(answers="safe"), tls=certified.server) as endpoint:
        assert endpoint.url.startswith("https://")
        unknown = ask(model_at(endpoint.url))
        known = ask(model_at(endpoint.url, ca_file=str(certified.authority)))
    assert unknown.error is not None
    assert unknown.error.kind == "connection"
    assert "ca_file" in unknown.error.message
    assert known.text == "safe"


def test_bad_certificate_files_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read ca_file .*No such file"):
        Transport(ca_file=str(tmp_path / "missing.pem"))
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("nonsense")
    with pytest.raises(ConfigError, match="holds no PEM certificate"):
        Transport(ca_file=str(wrong))
    wrong.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    with pytest.raises(ConfigError, match="ca_file") as caught:
        Transport(ca_file=str(wrong)).open()
    assert "\n" not in str(caught.value)


def test_errors_of_the_transport_hold_no_address() -> None:
    async def get() -> None:
        pool = Transport()
        try:
            await pool.get("http://127.0.0.1:9/models?key=hidden", 5)
        finally:
            await pool.close()

    with pytest.raises(TransportError) as caught:
        asyncio.run(get())
    assert str(caught.value) == "connection refused"
