from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
import pytest
from starlette.testclient import TestClient

from keju.config import TaskConfig
from keju.messages import Language
from keju.reporting.diffing import diff_words
from keju.results.score import score_run
from keju.runs.run import Run
from keju.task import run_exams
from keju.viewer.app import make_app
from keju.viewer.run_index import RunIndex
from tests.support.parsed_report import ParsedReport
from tests.viewer.conftest import Site
from tests.viewer.runs import mixed, write

pytestmark = pytest.mark.slow

LOOPBACK = "http://127.0.0.1"


def visit(
    folder: Path, token: str = "", base: str = LOOPBACK, language: Language | None = None
) -> TestClient:
    app = make_app(RunIndex(folder), token=token, language=language)
    return TestClient(app, base_url=base, raise_server_exceptions=True)


def text_of(response: object) -> str:
    source = getattr(response, "text", "")
    assert getattr(response, "status_code", 0) == 200, source
    return ParsedReport(source).text


def test_the_first_page_has_a_row_for_each_run_with_a_column_for_each_exam(runs: Path) -> None:
    with visit(runs) as client:
        response = client.get("/")
        page = text_of(response)
        for words in ("runs in", "Keju demo", "BBH", "one", "two", "Date", "Cost", "complete"):
            assert words in page
        assert re.search(r"\d+\.\d % ± \d+\.\d", page)
        assert "23.1k tokens" in page  # no prices are known
        assert {"one", "stored", "two"} <= set(rows_of(response.text))
        assert "data-sortable" in response.text
        found = client.get("/?q=scripted+one").text
        assert rows_of(found) == ["one"]
        assert "No run matches" in client.get("/?q=nowhere").text


def rows_of(source: str) -> list[str]:
    """The runs of a first page in their order."""
    return re.findall(r'<tr data-words.*?href="/runs/(\w+)"', source, re.DOTALL)


def test_a_row_says_in_which_settings_it_differs_and_few_questions_are_folded(
    tmp_path: Path,
) -> None:
    chosen: dict[str, dict[str, Any]] = {
        "small": {"dataset_args": {"demo": {"size": 20}}},
        "same": {"dataset_args": {"demo": {"size": 20}}},
        "large": {"dataset_args": {"demo": {"size": 21}}},
        "part": {"dataset_args": {"demo": {"size": 20}}, "limit": 1},
    }
    for name, settings in chosen.items():
        settings |= {"run_id": name, "work_dir": str(tmp_path)}
        run_exams(TaskConfig(model="scripted", datasets=["demo"], **settings))
    with visit(tmp_path) as client:
        source = client.get("/").text
        full, _, few = source.partition("<details")
        assert sorted(rows_of(full)) == ["large", "same", "small"]
        assert rows_of(few) == ["part"]
        assert "Runs with fewer questions (1)" in few
        assert "limit 1" in few
        rows = re.findall(r"<tr data-words.*?</tr>", full, re.DOTALL)
        differing = {rows_of(row)[0] for row in rows if "size 20" in ParsedReport(row).text}
        assert differing == {"same", "small"}
        chinese = client.get("/?lang=zh").text
        assert "规模 size 2" in chinese
        assert "题目较少的运行" in chinese


def test_exams_asked_by_two_protocols_have_two_columns(tmp_path: Path) -> None:
    for protocol in ("text", "letters"):
        settings: Any = {"run_id": protocol, "work_dir": str(tmp_path), "protocol": protocol}
        run_exams(TaskConfig(model="scripted", datasets=["demo"], limit=2, **settings))
    with visit(tmp_path) as client:
        source = client.get("/").text
        heads = re.findall(r'<th class="number exam".*?</th>', source, re.DOTALL)
        assert len(heads) == 2
        assert {"text@1", "letters@1"} <= set(" ".join(ParsedReport(h).text for h in heads).split())


def test_a_run_with_some_of_the_questions_is_folded_below_the_whole_ones(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"work_dir": str(tmp_path), "dataset_args": {"demo": {"size": 4}}}
    for name in ("whole", "stopped"):
        config = TaskConfig(model="scripted", datasets=["demo"], run_id=name, **settings)
        run_exams(config)
    folder = tmp_path / "stopped"
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    right = [line for line in lines if b'"outcome":"correct"' in line]
    (folder / "records.jsonl").write_bytes(b"".join(right[:3]))
    results = score_run(Run(folder))  # as an interrupted run has them
    (folder / "results.json").write_bytes(msgspec.json.encode(results))
    assert results.benchmarks[0].metrics["accuracy"].value == 1
    with visit(tmp_path) as client:
        full, _, few = client.get("/").text.partition("<details")
        assert rows_of(full) == ["whole"]
        assert rows_of(few) == ["stopped"]
        assert "3 / 24" in few


def test_live_runs_come_first(tmp_path: Path) -> None:
    write(tmp_path / "ended", mixed(20))
    write(tmp_path / "going", mixed(5), ended=False, created="2026-11-01T10:00:00+00:00")
    with visit(tmp_path) as client:
        source = client.get("/").text
        assert rows_of(source) == ["going", "ended"]
        assert "<progress" in source.partition("</tbody>")[0]


def test_a_long_value_is_cut_in_its_row_and_whole_in_its_title(tmp_path: Path) -> None:
    subsets = ["boolean_expressions", "multistep_arithmetic", "object_counting", "word_sorting"]
    for name, args in {"long": {"subset_list": subsets}, "plain": {}}.items():
        settings: dict[str, Any] = {"run_id": name, "work_dir": str(tmp_path), "limit": 1}
        settings["dataset_args"] = {"demo": args}
        run_exams(TaskConfig(model="scripted", datasets=["demo"], **settings))
    with visit(tmp_path) as client:
        response = client.get("/")
        assert "boolean_expressions" in text_of(response)
        assert "word_sorting" not in text_of(response)
        assert re.search(r'<span class="soft" title="[^"]*word_sorting', response.text)


def test_a_run_says_what_guessing_gives(runs: Path) -> None:
    with visit(runs) as client:
        page = text_of(client.get("/runs/one"))
        assert re.search(r"guessing gives \d+\.\d %", page)
        assert "How well does scripted do on Keju demo?" in page


def test_warnings_are_sentences_that_lead_to_the_replies(runs: Path) -> None:
    with visit(runs) as client:
        source = client.get("/runs/one").text
        sentence, _, rest = source.partition("no answer that the reader could find")[2].partition(
            "</p>"
        )
        link = re.search(r'href="([^"]+)">Show them', sentence)
        assert link
        assert "outcome=unparsed" in link[1]
        assert "keju audit" not in sentence
        assert "keju audit" in rest  # folded
        listed = text_of(client.get(link[1].replace("&amp;", "&")))
        assert "unparsed" in listed


def test_a_run_its_replies_and_a_reply(runs: Path) -> None:
    with visit(runs) as client:
        run = client.get("/runs/one")
        assert "Subsets" in text_of(run)
        link = re.search(r'href="(/runs/one/samples\?[^"]*outcome=failed[^"]*)"', run.text)
        assert link
        listed = client.get(link[1].replace("&amp;", "&"))
        assert "not correct" in text_of(listed)
        first = re.search(r'class="id"><a href="([^"]+)"', listed.text)
        assert first
        reply = client.get(first[1].replace("&amp;", "&"))
        page = text_of(reply)
        for words in ("Question", "Model's answer", "Right answer", "Reply", "Prompt as sent"):
            assert words in page
        assert "another prompt" not in page
        following = re.search(r'rel="next" href="([^"]+)"', reply.text)
        assert following
        assert "2 of" in text_of(client.get(following[1].replace("&amp;", "&")))


def test_pages_and_filters_stand_in_the_address(runs: Path) -> None:
    with visit(runs) as client:
        first = client.get("/runs/stored/samples?outcome=failed")
        assert 'href="?outcome=failed&amp;page=2"' in first.text
        second = text_of(client.get("/runs/stored/samples?outcome=failed&page=2"))
        assert "page 2 of 2" in second
        assert "1 reply, page 1 of 1" in text_of(client.get("/runs/stored/samples?tools=yes"))
        assert "No reply fits" in text_of(client.get("/runs/stored/samples?text=nowhere"))


def test_the_time_of_a_run_is_shown_as_a_clock_does(runs: Path) -> None:
    stamp = "2026-11-16T10:00:00+00:00"
    clock = datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
    with visit(runs) as client:
        source = client.get("/runs/stored").text
        assert f'<time datetime="{stamp}">{clock}</time>' in source
        assert source.count(stamp) == 1


@pytest.mark.parametrize(
    ("query", "english", "chinese"),
    [
        ("page=two", "'page' is a whole number", "“page”应为整数"),
        ("least=1.5", "'least' is a whole number", "“least”应为整数"),
        ("tools=maybe", "'tools' is one of 'yes', 'no'", "“tools”只能是“yes”、“no”之一"),
        ("outcome=wrong", "'outcome' is one of 'correct', 'incorrect', ", "只能是“correct”、"),
        ("page=2&sort=id", "'sort' is one of 'exam', 'slowest', ", "只能是“exam”、“slowest”、"),
        ("exam=bhb", "has no such exam (did you mean 'bbh'?)", "exam（是否指“bbh”？）"),
    ],
)
def test_an_address_with_a_wrong_value_is_told_which_and_what_it_may_be(
    runs: Path, query: str, english: str, chinese: str
) -> None:
    for language, words in (("en", english), ("zh", chinese)):
        with visit(runs) as client:
            answer = client.get(f"/runs/stored/samples?{query}&lang={language}")
        assert answer.status_code == 400
        page = ParsedReport(answer.text).text
        assert words in page
        assert query.rpartition("&")[2] in page
        assert "Expected" not in page
        assert "`" not in page


def test_a_transcript_shows_calls_and_what_came_back(runs: Path) -> None:
    with visit(runs) as client:
        page = text_of(client.get("/runs/stored/sample?id=bbh_snarks_200"))
        for words in ("call of edit_cell", "print(6 * 7)", "result of edit_cell", "42"):
            assert words in page
        assert "data" in page  # why there is no prompt


def test_the_arms_of_a_run_are_compared_down_to_the_words(tmp_path: Path) -> None:
    arms: Any = [{"name": "plain"}, {"name": "other"}]
    names: Any = {"run_id": "arms", "work_dir": str(tmp_path)}
    run_exams(TaskConfig(model="scripted", datasets=["demo"], arms=arms, **names))
    with visit(tmp_path) as client:
        assert "Compare its arms" in text_of(client.get("/runs/arms"))
        page = client.get("/compare?run=arms")
        assert "other against plain" in text_of(page)
    with visit(tmp_path) as client:
        query = "run=arms&of=demo/plain&run=arms&of=demo/other&id=demo_boolean_expressions_0"
        sides = text_of(client.get(f"/compare/sample?{query}"))
        assert "arms · plain" in sides
        assert "arms · other" in sides


def test_hostile_replies_are_text(runs: Path) -> None:
    with visit(runs) as client:
        for path in ("sample?id=bbh_snarks_201", "samples?text=alert"):
            source = client.get(f"/runs/stored/{path}").text
            assert "<script>alert" not in source
            assert "<img" not in source
            assert "49" not in ParsedReport(source).text.replace("149", "")


def test_chinese_is_a_click_away_and_stays(runs: Path) -> None:
    with visit(runs) as client:
        assert 'href="?lang=zh"' in client.get("/").text
        chinese = client.get("/runs/one?lang=zh")
        assert '<html lang="zh-CN">' in chinese.text
        assert "子集" in chinese.text
        assert '<html lang="zh-CN">' in client.get("/").text


@pytest.mark.parametrize(
    ("chosen", "browser", "address", "shown"),
    [
        (None, "zh-CN,zh;q=0.9", "/", "zh-CN"),
        (None, "de", "/", "en"),
        ("zh", "en-GB", "/", "zh-CN"),
        ("en", "zh-CN", "/", "en"),
        ("zh", "zh-CN", "/?lang=en", "en"),
    ],
)
def test_the_browser_says_the_language_where_nobody_chose_one(
    chosen: Language | None, browser: str, address: str, shown: str, tmp_path: Path
) -> None:
    with visit(tmp_path, language=chosen) as client:
        page = client.get(address, headers={"accept-language": browser}).text
        assert f'<html lang="{shown}">' in page


@pytest.mark.parametrize("path", ["/nowhere", "/static/nothing.js", "/runs/one/nowhere"])
def test_a_page_that_is_not_there_is_missed_in_its_language(path: str, runs: Path) -> None:
    with visit(runs) as client:
        missing = client.get(path)
        assert (missing.status_code, "There is no such page." in missing.text) == (404, True)
        chinese = client.get(path, params={"lang": "zh"}).text
        assert "没有这个页面。" in chinese
        assert "Not Found" not in chinese


def test_every_answer_has_its_headers_and_strangers_are_shut_out(runs: Path) -> None:
    with visit(runs) as client:
        for path in ("/", "/nowhere", "/runs/one", "/static/viewer.js", "/runs/one/samples?page=x"):
            headers = client.get(path).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cross-origin-opener-policy"] == "same-origin"
        assert client.get("/", headers={"host": "evil.example"}).status_code == 400
        assert client.post("/").status_code == 405


NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
PICTURE = {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 200),
        ("/", {"sec-fetch-site": "none"} | NAVIGATION, 200),
        ("/", {"sec-fetch-site": "same-origin"} | NAVIGATION, 200),
        ("/", {"sec-fetch-site": "cross-site"} | NAVIGATION, 200),  # a link in a mail
        ("/runs/stored/samples?where=true", {"sec-fetch-site": "same-origin"} | NAVIGATION, 200),
        ("/runs/stored/samples?where=true", {"sec-fetch-site": "cross-site"} | NAVIGATION, 403),
        ("/runs/stored/samples?where=true", {"sec-fetch-site": "cross-site"} | PICTURE, 403),
        ("/", {"sec-fetch-site": "cross-site"} | PICTURE, 403),
        ("/", {"sec-fetch-site": "same-site"} | PICTURE, 403),  # another port of this machine
        ("/", {"sec-fetch-site": "cross-site"}, 403),
        ("/", {"sec-fetch-site": "cross-site"} | NAVIGATION | {"sec-fetch-dest": "iframe"}, 403),
        ("/", {"origin": "http://evil.example"}, 403),
        ("/", {"origin": "null"}, 403),
        ("/", {"origin": LOOPBACK}, 200),
        ("/static/viewer.js", {"sec-fetch-site": "cross-site"} | PICTURE, 403),
        ("/runs/stored/events", {"origin": "http://127.0.0.1:9"}, 403),
    ],
)
def test_pages_of_other_sites_can_send_nothing_that_counts(
    runs: Path, path: str, headers: dict[str, str], status: int
) -> None:
    with visit(runs) as client:
        assert client.get(path, headers=headers).status_code == status


def test_a_condition_of_a_browser_that_left_ends_with_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keju.viewer.condition.PATIENCE", 3600.0)
    endless = "(select sum(a.range * b.range) from range(10000000) a, range(10000000) b) > 0"
    path = f"/runs/stored/samples?{urlencode({'where': endless})}"
    address = urlsplit(site.address)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
        assert waited_for(children)
    assert waited_for(lambda: not children())


def waited_for(condition: Callable[[], object]) -> bool:
    """Whether a condition comes true within two minutes."""
    for _ in range(2400):
        if condition():
            return True
        time.sleep(0.05)
    return False


def children() -> list[bytes]:
    """The command lines of conditions that this process has started."""
    folder = Path(f"/proc/{os.getpid()}/task")
    ids = " ".join((task / "children").read_text() for task in folder.iterdir()).split()
    lines = []
    for each in ids:
        with suppress(OSError):
            lines.append(Path(f"/proc/{each}/cmdline").read_bytes())
    return [line for line in lines if b"keju.viewer.condition" in line]


@pytest.mark.parametrize(
    "path",
    [
        "/runs/%2e%2e",
        "/runs/%2e%2e%2fone",
        "/runs/nobody",
        "/runs/nobody/samples",
        "/runs/nobody/events",
        "/runs/one/sample?id=nothing",
        "/runs/one/sample?id=x&epoch=-1",
        "/static/app.py",
        "/static/..%2fapp.py",
    ],
)
def test_names_are_looked_up(runs: Path, path: str) -> None:
    with visit(runs) as client:
        assert client.get(path).status_code == 404


def test_a_token_is_asked_for_once(runs: Path) -> None:
    with visit(runs, token="secret", base="http://box.example") as client:
        assert client.get("/").status_code == 401
        assert client.get("/?token=guess").status_code == 401
        there = client.get("/?token=secret&lang=zh", follow_redirects=False)
        assert (there.status_code, there.headers["location"]) == (303, "/?lang=zh")
        cookie = there.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get("/runs/one").status_code == 200


def test_a_run_that_stopped_shows_what_is_there_so_far(tmp_path: Path) -> None:
    write(tmp_path / "stopped", mixed(60), complete=False)
    with visit(tmp_path) as client:
        page = text_of(client.get("/runs/stopped"))
        assert "accuracy so far" in page
        assert "incomplete" in page
        (tmp_path / "bad").mkdir()
        (tmp_path / "bad" / "manifest.json").write_text("{")
        assert "stopped" in text_of(client.get("/"))
        assert client.get("/runs/bad").status_code == 400
        (tmp_path / "bad" / "manifest.json").write_text('{"run": 5}')
        answer = client.get("/runs/bad?lang=zh")
        assert answer.status_code == 400
        assert "应为文本，而不是整数（在 run 处）" in ParsedReport(answer.text).text


def test_a_stream_tells_what_changes_and_ends_with_the_run(tmp_path: Path) -> None:
    write(tmp_path / "done", mixed(10))
    with visit(tmp_path) as client:
        stream = client.get("/runs/done/events").text
        assert stream.startswith("event: change\ndata: ")
        assert stream.endswith('event: done\ndata: ""\n\n')


def test_runs_are_compared_and_what_cannot_be_is_said(runs: Path) -> None:
    with visit(runs) as client:
        page = text_of(client.get("/compare?run=one&run=two"))
        for words in ("two against one", "points", "that only one gets right", "Subsets"):
            assert words in page
        assert "Choose two runs" in text_of(client.get("/compare"))
        assert client.get("/compare?run=one&run=nobody").status_code == 404
        sides = "/compare/sample?run=one&run=two&id=demo_boolean_expressions_0"
        answer = client.get(sides)
        assert "words that the other reply does not have" in text_of(answer)
        assert answer.text.count('<ul class="options"') == 1  # both were shown the same ones
        assert re.search(r'<li class="gold">[AB]\. (True|False) ✓</li>', answer.text)
        assert client.get("/compare/sample?run=one").status_code == 400


def test_words_that_differ() -> None:
    one, other = diff_words("So the answer is (A).", "So the answer is (B)!")
    assert [piece.text for piece in one if not piece.is_shared] == ["A", "."]
    assert [piece.text for piece in other if not piece.is_shared] == ["B", "!"]
    chinese, _ = diff_words("答案是甲", "答案是乙")
    assert [piece.text for piece in chinese] == ["答案是", "甲"]
    assert diff_words("x " * 9000, "y")[0][0].is_shared is False


def test_a_journal_that_was_cut_since_is_not_called_complete(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(runs / "one", folder)
    (folder / "results.json").unlink()
    with visit(tmp_path) as client:
        assert "incomplete" not in text_of(client.get("/"))
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "records.jsonl").write_bytes(b"".join(lines[:-3]))
    with visit(tmp_path) as client:
        page = text_of(client.get("/"))
        assert "incomplete" in page
        assert f"{len(lines) - 3} / {len(lines)}" in page


@pytest.mark.parametrize(
    ("language", "told"), [("en", "Not applied: sql, colour."), ("zh", "未生效：sql、colour。")]
)
@pytest.mark.parametrize("installed", [True, False])
def test_a_filter_that_is_none_is_said_not_to_be_applied(
    runs: Path, monkeypatch: pytest.MonkeyPatch, language: str, told: str, installed: bool
) -> None:
    monkeypatch.setattr("keju.viewer.search.can_query", lambda: installed)
    with visit(runs) as client:
        page = client.get(f"/runs/stored/samples?sql=seconds>0&colour=red&lang={language}").text
        (alert,) = re.findall(r'role="alert">(.*?)</p>', page)
        assert told in alert
        assert "where" in alert
        assert ("keju[data]" in alert) is not installed
        plain = client.get(f"/runs/stored/samples?outcome=failed&lang={language}").text
        assert 'role="alert"' not in plain
        assert ("keju[data]" in plain) is not installed


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_condition_without_its_part_is_told_what_to_install(
    runs: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with visit(runs) as client:
        page = client.get(f"/runs/stored/samples?where=seconds>0&lang={language}").text
        (alert,) = re.findall(r'role="alert">(.*?)</p>', page)
        assert "keju[data]" in alert
        assert 'class="id"' not in page
