"""The pages in a real browser: what a visitor does, with the mouse, with keys, without scripts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from keju.files import read_json, write_json
from tests.viewer.conftest import Open, Site
from tests.viewer.runs import add, mixed, record, write

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

Violations = Callable[["Page"], list[str]]


def test_from_the_runs_to_a_failure_and_on(site: Site, open_page: Open) -> None:
    page = open_page(site.address)
    assert page.get_by_role("heading", level=1).inner_text() == "Runs"
    page.get_by_role("link", name="one", exact=True).click()
    page.get_by_role("link", name=re.compile("incorrect$")).click()
    assert "outcome=incorrect" in page.url
    page.get_by_role("table").get_by_role("link").first.click()
    for heading in ("Question", "Reply", "Prompt as sent"):
        assert page.get_by_role("heading", name=heading, exact=True).is_visible()
    first = page.get_by_role("heading", level=1).inner_text()
    page.get_by_role("link", name="Next →").click()
    assert page.get_by_role("heading", level=1).inner_text() != first
    assert "outcome=incorrect" in page.url  # the neighbour is inside the filter
    page.go_back()
    assert page.get_by_role("heading", level=1).inner_text() == first


def test_filters_search_and_a_permalink(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/runs/stored/samples")
    page.get_by_role("link", name=re.compile("^unparsed")).click()
    page.get_by_label("Search", exact=True).fill("WORD word")
    page.get_by_role("button", name="Filter").click()
    assert page.url.endswith("?outcome=unparsed&text=WORD+word")  # nothing empty stands there
    status = page.get_by_role("status").inner_text()
    again = open_page(page.url)
    assert again.get_by_role("status").inner_text() == status
    assert again.get_by_label("Search", exact=True).input_value() == "WORD word"


def test_a_condition_of_ones_own_and_what_is_wrong_with_it(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/runs/stored/samples")
    page.get_by_text("More filters").click()
    page.get_by_label("Condition").fill("outcome = 'truncated' and length > 100")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url(re.compile("where="))
    counted = page.locator(".counts").inner_text()
    assert "truncated" in counted
    assert "incorrect" not in counted
    page.get_by_label("Condition").fill("outcom = 1")
    page.get_by_role("button", name="Filter").click()
    assert "outcom" in page.get_by_role("alert").inner_text()
    assert page.get_by_label("Condition").input_value() == "outcom = 1"


def test_a_name_in_the_chart_leads_to_its_failures(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/runs/one")
    row = page.get_by_role("group", name="Subset").get_by_role("row").nth(1)
    name = row.get_by_role("link").inner_text()
    row.get_by_role("link").click()
    page.get_by_label("Subset").wait_for()
    assert page.get_by_label("Subset").input_value() == name
    assert "not correct" in page.locator(".counts [aria-current]").inner_text()


def test_the_language_is_switched_and_stays(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/runs/one")
    page.get_by_role("link", name="中文").click()
    assert page.get_by_role("heading", name="子集").is_visible()
    page.get_by_role("link", name="运行", exact=True).first.click()
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    page.get_by_role("link", name="English").click()
    assert page.get_by_role("heading", level=1).inner_text() == "Runs"


def test_two_runs_are_compared_down_to_the_words(site: Site, open_page: Open) -> None:
    page = open_page(site.address)
    for name in ("one", "two"):
        page.get_by_label(f"Compare {name}", exact=True).check()
    assert page.locator("[data-picked]").inner_text() == "2 selected"
    page.get_by_role("button", name="Compare the selected runs").click()
    assert "run=two&run=one" in page.url or "run=one&run=two" in page.url
    assert page.get_by_text("95 % interval").first.is_visible()
    details = page.locator("details", has=page.locator("td.id a")).first
    if details.get_attribute("open") is None:
        details.locator("summary").click()
    details.locator("td.id a").first.click()
    assert page.locator(".sides section").count() == 2
    assert page.locator(".sides mark").count() >= 1
    page.get_by_role("link", name="Compare").last.click()
    page.wait_for_url(re.compile("/compare\\?run="))


def test_keys_alone_lead_everywhere(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/runs/stored/samples?outcome=failed")
    page.keyboard.press("/")
    page.keyboard.type("answer")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("text=answer"))
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("k")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/sample\\?"))
    assert page.get_by_role("heading", level=1).inner_text() == second
    page.keyboard.press("ArrowRight")
    page.get_by_text("3 of").wait_for()
    page.wait_for_load_state()  # the keys are there then
    page.keyboard.press("k")
    page.get_by_text("2 of").wait_for()
    page.wait_for_load_state()
    page.keyboard.press("u")
    page.wait_for_url(re.compile("/samples\\?"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"


def test_a_run_is_watched_while_it_goes_on(site: Site, open_page: Open) -> None:
    folder = write(site.runs / "live", mixed(20), ended=False)
    page = open_page(f"{site.address}/runs/live")
    live = page.locator("#live")
    assert page.locator(".state-running").inner_text() == "running"
    assert page.get_by_role("link", name="Refresh").count() == 0
    assert "20 of 20 replies" in live.inner_text()
    assert "bbh_snarks_19" in live.get_by_role("list").last.inner_text()
    add(folder, [record(n, "correct") for n in range(30, 41)])
    live.get_by_text("31 of 31 replies").wait_for()
    manifest = read_json(folder / "manifest.json")
    manifest["sessions"][0]["ended"] = manifest["complete"] = True
    write_json(folder / "manifest.json", manifest)
    page.locator("main:has(#live:not([data-events])) .state-complete").wait_for()  # loaded again


def test_everything_works_without_scripts(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/runs/stored/samples", java_script_enabled=False)
    page.get_by_role("link", name=re.compile("^truncated")).click()
    page.get_by_role("button", name="Filter").click()
    assert "outcome=truncated" in page.url
    page.get_by_role("table").get_by_role("link").first.click()
    assert page.get_by_role("link", name="Next →").is_visible()
    page.get_by_role("link", name="stored").click()
    assert page.get_by_role("link", name=re.compile(r"^\d+ correct$")).is_visible()


def test_hostile_replies_do_nothing(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/runs/stored/sample?id=bbh_snarks_201")
    assert page.locator("img, iframe, object").count() == 0
    assert page.locator("script").count() == 1
    assert "<script>alert(1)</script>" in page.locator(".reply").first.inner_text()
    time.sleep(0.2)  # for whatever would call `alert`


PAGES = (
    "/",
    "/runs/one",
    "/runs/stored/samples?outcome=failed",
    "/runs/stored/samples?text=nowhere",
    "/runs/stored/samples?where=score+%3D+0",
    "/runs/one/sample?id=demo_boolean_expressions_0",
    "/runs/stored/sample?id=bbh_snarks_200",
    "/compare?run=one&run=two",
    "/compare/sample?run=one&run=two&id=demo_boolean_expressions_0",
    "/runs/nobody",
)


@pytest.mark.parametrize("path", PAGES)
def test_nobody_is_shut_out(site: Site, open_page: Open, violations: Violations, path: str) -> None:
    page = open_page(f"{site.address}/")
    page.context.clear_cookies()
    if path == "/runs/nobody":  # the browser itself reports the 404 in its console
        page = page.context.new_page()
    page.goto(site.address + path)
    assert violations(page) == []
