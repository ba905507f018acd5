"""Endpoints that send odd things: the sample fails, never the run; nothing they send is obeyed."""

from __future__ import annotations

import base64
import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from perf.soak.faults import PREFLIGHT
from perf.soak.wire import ESCAPES, GOOD, TEXT, message, nested

from keju.engine.job import Job
from keju.types import Reading
from tests.cli.conftest import Keju, Ran
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan, Raw

pytestmark = pytest.mark.slow

KEY = "sk-echoed-5f0c9a"
EXAM = {"demo": {"size": 4, "subset_list": ["boolean_expressions"]}}


def evaluate(keju: Keju, endpoint: FaultyEndpoint, *words: str, run: str = "r") -> Ran:
    place = ("--model", "m", "--api-url", endpoint.url, "--work-dir", ".", "--run-id", run)
    exam = ("--datasets", "demo", "--dataset-args", json.dumps(EXAM))
    return keju("eval", *place, *exam, "--retry-interval", "0.01", "--quiet", *words)


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("r/records.jsonl").read_bytes().splitlines()]


ODD = {
    "an error whose place is a number": message(500, b'{"detail":[{"msg":"x","loc":5}]}'),
    "a wait until the year 10^20": message(
        429, b"{}", "Retry-After: Mon, 01 Jan 99999999999999999999 00:00:00 GMT"
    ),
    "a header beyond ASCII": message(500, b"{}", "Server: été", "Retry-After: été"),
    "a nested field": message(200, GOOD[:-1] + b', "x": ' + nested() + b"}"),
    "a nested content": message(200, b'{"choices":[{"message":{"content":' + nested() + b"}}]}"),
    "a nested error": message(500, b'{"error":' + nested() + b"}"),
    "a bomb": message(200, gzip.compress(b" " * (40 << 20)), "Content-Encoding: gzip"),
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
def test_an_odd_reply_costs_an_attempt_and_nothing_else(keju: Keju, data: bytes) -> None:
    """The preflight's first call meets it too."""
    odd_plan = Plan(answers=TEXT, raw=lambda _, attempt: None if attempt else Raw(data=data))
    with FaultyEndpoint(odd_plan) as endpoint:
        ran = evaluate(keju, endpoint, "--json")
    assert ran.code == 0, ran.err
    assert [record["reply"]["text"] for record in records()] == [TEXT] * 4
    assert all(len(record["faults"]) == 1 for record in records())


def test_a_redirect_to_nowhere_ends_the_run_in_one_line(keju: Keju) -> None:
    redirect = Raw(data=message(307, b"", "Location: http://[::1"))
    with FaultyEndpoint(Plan(raw=lambda *_: redirect)) as endpoint:
        ran = evaluate(keju, endpoint)
    assert ran.code == 5
    assert "the address redirects elsewhere" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("fault", ["malformed", "html", "empty"])
def test_the_preflight_is_as_patient_as_the_run(keju: Keju, fault: str) -> None:
    with FaultyEndpoint(Plan(answers=TEXT, first_faults=(fault,) * 4)) as endpoint:
        ran = evaluate(keju, endpoint)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("status", ["409", "423", "425"])
def test_a_status_that_passes_is_met_with_another_attempt(keju: Keju, status: str) -> None:
    with FaultyEndpoint(Plan(answers=TEXT, first_faults=(status,))) as endpoint:
        ran = evaluate(keju, endpoint, "--json")
    assert ran.code == 0, ran.err
    assert all(record["faults"][0]["status"] == int(status) for record in records())


def test_reading_an_endless_reply_stops(keju: Keju) -> None:
    def endless(request: EndpointRequest, attempt: int) -> Raw | None:
        head = message(200, b"", length=False)
        return None if request.text.startswith(PREFLIGHT) else Raw(data=head, rest=b"a" * (1 << 20))

    with FaultyEndpoint(Plan(raw=endless)) as endpoint:
        ran = evaluate(keju, endpoint, "--attempts", "1", "--eval-batch-size", "2")
    assert ran.code == 4
    assert "the reply is longer than 16 MiB" in ran.err
    assert {record["reply"]["error"]["kind"] for record in records()} == {"malformed"}


def test_terminal_escapes_of_an_endpoint_are_shown_inert(keju: Keju) -> None:
    body = json.dumps({"error": {"message": f"go {ESCAPES} away"}}).encode()
    error_reply = Raw(data=message(422, body))
    spared = Plan(
        raw=lambda request, _: None if request.text.startswith(PREFLIGHT) else error_reply,
        model_name=f"m{ESCAPES}",
    )
    with FaultyEndpoint(spared) as endpoint:
        during = evaluate(keju, endpoint)
    with FaultyEndpoint(Plan(raw=lambda *_: error_reply)) as endpoint:
        before = evaluate(keju, endpoint, run="other")
    assert "go" in during.err
    assert "go" in before.err
    for text in (during.err, during.out, before.err, before.out):
        assert not any(sign in text for sign in "\x1b\x07\x9b\u202e")


def test_a_key_that_a_reply_echoes_is_masked_everywhere(keju: Keju, tmp_path: Path) -> None:
    def echo(request: EndpointRequest) -> dict[str, Any]:
        return {
            "content": f"Your key is {KEY}. {TEXT}",
            "reasoning_content": f"Bearer {KEY} and {KEY}",
            "tool_calls": [{"function": {"arguments": KEY}}],
        }

    with FaultyEndpoint(Plan(answers=echo, key=KEY, model_name=f"m-{KEY}")) as endpoint:
        ran = evaluate(keju, endpoint, "--api-key", KEY, "--json")
    assert ran.code == 0, ran.err
    assert records()[0]["reply"]["text"] == f"Your key is [redacted]. {TEXT}"
    assert KEY not in ran.out + ran.err
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and KEY in file.read_text()]


PASSWORD = 'p&/"7é Wort+?'
PAIR = f"user:{PASSWORD}"
FORMS = {
    "plain": PASSWORD,
    "in an address": quote(PASSWORD, safe=""),
    "in a form": quote_plus(PASSWORD),
    "in JSON": json.dumps(PASSWORD)[1:-1],
    "in Base64": base64.b64encode(PAIR.encode()).decode(),
    "in Base64, behind other text": base64.b64encode(b"xy" + PASSWORD.encode()).decode(),
    "in Base64 for addresses": base64.urlsafe_b64encode(PAIR.encode()).decode().rstrip("="),
}


def stored(folder: Path) -> str:
    """All that a run has written, the settings that the test gave left out."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != "c.json")
    return "".join(file.read_text("utf-8", "replace") for file in files)


@pytest.mark.parametrize("as_error", [True, False], ids=["error", "reply"])
def test_a_password_is_hidden_in_every_form_in_which_it_is_sent(
    keju: Keju, tmp_path: Path, as_error: bool
) -> None:
    echoed = " ; ".join(FORMS.values())
    error_reply = message(400, json.dumps({"error": {"message": echoed}}).encode())

    def raw(request: EndpointRequest, attempt: int) -> Raw | None:
        return Raw(data=error_reply) if as_error and request.body.get("max_tokens") == 100 else None

    with FaultyEndpoint(Plan(answers=f"{echoed}\n{TEXT}", raw=raw)) as endpoint:
        url = endpoint.url.replace("://", f"://user:{quote(PASSWORD, safe='')}@")
        ran = keju(*_words(url, "--generation-config", "max_tokens=100"))
    written = ran.out + ran.err + stored(tmp_path)
    assert "[redacted]" in written
    inner = base64.b64encode(b"xy" + PASSWORD.encode()).decode()[3:-4]
    secrets = {*FORMS.values(), inner} - {FORMS["in Base64, behind other text"]}
    assert not [form for form in secrets if form in written]


class ListedModels(BaseHTTPRequestHandler):
    """An endpoint that knows no model and writes the key that it got into its list of models."""

    def do_GET(self) -> None:
        self._send(200, {"data": [{"id": f"model-{KEY}"}, {"id": KEY}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._send(404, {"error": {"type": "not_found_error", "message": "no such model"}})

    def _send(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.mark.parametrize("model", ["m", "anthropic:claude-other"])
def test_a_key_in_the_list_of_models_is_hidden(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), ListedModels) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/v1"
            words = _words(url, "--api-key", KEY)
            words[words.index("m")] = model
            ran = keju(*words)
        finally:
            server.shutdown()
    assert ran.code == 5
    assert "model-[redacted]" in ran.err
    assert KEY not in ran.out + ran.err + stored(tmp_path)


def _words(url: str, *flags: str) -> list[str]:
    place = ("--model", "m", "--api-url", url, "--work-dir", ".", "--run-id", "r")
    exam = ("--datasets", "demo", "--dataset-args", json.dumps(EXAM))
    return ["eval", *place, *exam, "--retry-interval", "0.01", "--quiet", *flags]


def test_a_key_in_the_body_is_sent_and_not_stored(keju: Keju, tmp_path: Path) -> None:
    body = {"api_key": KEY, "provider": {"token": f"{KEY}-2", "order": ["a"]}, "cache_key": "c1"}
    bodies: list[dict[str, Any]] = []

    def answer(request: EndpointRequest) -> str:
        bodies.append(request.body)
        return f"{TEXT} {KEY}"

    generation = json.dumps({"extra_body": body})
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        ran = keju(*_words(endpoint.url, "--generation-config", generation, "--json"))
        assert ran.code == 0, ran.err
        assert bodies[-1]["api_key"] == KEY
        resumed = keju(*_words(endpoint.url, "--generation-config", generation, "--resume"))
        assert resumed.code == 0, resumed.err
        request_count = len(bodies)
        hidden = keju("eval", "--config", "r/manifest.json", "--resume", "--repeats", "2")
        assert hidden.code == 2
        assert "is not stored with the run" in hidden.err
        assert len(bodies) == request_count
    assert KEY not in ran.out + ran.err + stored(tmp_path)
    config = json.loads(Path("r/manifest.json").read_text())["config"]["generation_config"]
    expected = {"api_key": "[redacted]", "provider": {"token": "[redacted]", "order": ["a"]}}
    assert config["extra_body"] == expected | {"cache_key": "c1"}
    scored = keju("score", "r", "--work-dir", ".", "--json")
    assert scored.json["benchmarks"][0]["n"] == 4


def sit_own(keju: Keju, endpoint: FaultyEndpoint, regex: str, filters: dict[str, str]) -> Ran:
    """Sit an exam of the user's own with these patterns."""
    Path("exam").mkdir()
    Path("exam/questions.jsonl").write_text('{"question": "q", "answer": "a"}\n' * 3)
    Path("exam/exam.yaml").write_text(f"kind: free\nreader: {{regex: '{regex}'}}\n")
    settings = json.dumps({"./exam": {"filters": filters}})
    words = ("--model", "m", "--api-url", endpoint.url, "--work-dir", ".", "--run-id", "r")
    return keju("eval", *words, "--datasets", "./exam", "--dataset-args", settings, "--quiet")


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "(?:a?){45}a{45}$"])
def test_no_pattern_of_the_user_holds_a_run(keju: Keju, pattern: str) -> None:
    with FaultyEndpoint(Plan(answers="a" * 44 + "b")) as endpoint:
        ran = sit_own(keju, endpoint, pattern, {"regex": f"{pattern}|.*"})
    assert ran.code == 0, ran.err
    assert {record["readings"][0]["score"]["outcome"] for record in records()} == {"unparsed"}


def test_a_long_reply_is_read_beside_the_loop(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, grade = [], Job.grade

    def watched(*arguments: Any) -> tuple[Reading, ...]:
        threads.append(threading.current_thread())
        return grade(*arguments)

    monkeypatch.setattr(Job, "grade", watched)
    with FaultyEndpoint(Plan(answers="b" + "a" * 150_000)) as endpoint:
        ran = sit_own(keju, endpoint, "(a.*z|a)", {})
    assert ran.code == 0, ran.err
    assert [record["readings"][0]["answer"]["value"] for record in records()] == ["a"] * 3
    assert threading.main_thread() not in threads


def test_what_is_no_key_stays_in_the_reply(keju: Keju) -> None:
    """Placeholders for keys and values of plain headers may be answers."""
    reply_text = f"EMPTY on 2023-06-01. {TEXT}"
    config = {"headers": {"x-api-version": "2023-06-01"}}
    Path("c.json").write_text(json.dumps(config))
    with FaultyEndpoint(Plan(answers=reply_text, key="EMPTY")) as endpoint:
        ran = evaluate(keju, endpoint, "--api-key", "EMPTY", "--config", "c.json")
    assert ran.code == 0, ran.err
    assert records()[0]["reply"]["text"] == reply_text
