"""What every page promises to the eye: sizes, order, marks, and nothing cut off."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from keju.config import TaskConfig
from keju.reporting.comparison import report_comparison
from keju.task import run_exams
from keju.types import Answer, Reading, Reply, Score
from tests.viewer.conftest import Open, Site
from tests.viewer.runs import add, mixed, record, write

if TYPE_CHECKING:
    from playwright.sync_api import Page

MOST_SIZES = 6
TALLEST_REPORT = 4_000

FONT_SIZES = """() => {
  const sizes = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (node.textContent.trim() && !parent.closest('script, style, option, .hidden, .skip'))
      sizes.add(getComputedStyle(parent).fontSize);
  }
  return [...sizes].filter((size) => size !== '0px');
}"""

BROKEN_WORDS = """(selector) => {
  const broken = [];
  for (const cell of document.querySelectorAll(selector)) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const match of node.textContent.matchAll(/[^\\s_-]+[_-]?/g)) {
        const range = document.createRange();
        range.setStart(node, match.index);
        range.setEnd(node, match.index + match[0].length);
        const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
        if (lines.size > 1) broken.push(match[0]);
      }
    }
  }
  return broken;
}"""


LINES = """(element) => {
  const range = document.createRange();
  range.selectNodeContents(element);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
}"""


@pytest.fixture(scope="module")
def two_exams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of two exams with 27 and 14 subsets and long names."""
    folder = tmp_path_factory.mktemp("two")
    for name, subsets in (("first", 27), ("second", 14)):
        rows = [
            f"Is {n} even?,{'AB'[n % 2]},yes,no,tracking_shuffled_objects_number_{subset}"
            for subset in range(subsets)
            for n in range(10)
        ]
        (folder / name).mkdir()
        (folder / name / "q.csv").write_text("\n".join(["question,answer,A,B,subset", *rows]))
    for run, seed in (("two-exams", 1), ("other-seed", 2)):
        config: Any = {"run_id": run, "work_dir": str(folder / "runs"), "seed": seed}
        datasets = [str(folder / "first"), str(folder / "second")]
        run_exams(TaskConfig(model="scripted", datasets=datasets, **config))
    return folder / "runs"


@pytest.fixture
def report(two_exams: Path) -> str:
    """The address of the report of two exams."""
    return (two_exams / "two-exams" / "report.html").as_uri()


def height_of(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollHeight"))


@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_of_two_exams_is_short_before_anything_is_unfolded(
    report: str, open_page: Open, width: int
) -> None:
    page = open_page(report, width, java_script_enabled=True)
    assert height_of(page) <= TALLEST_REPORT
    assert page.get_by_role("heading", level=1).inner_text() == (
        "How well does scripted do on first and second?"
    )
    screen = page.viewport_size
    assert screen is not None
    figure = page.locator(".figure").first.bounding_box()
    assert figure is not None
    assert figure["y"] < screen["height"] / 2  # the answer is on the first screen


def test_the_bar_stays_in_sight_and_leads_to_an_exam(report: str, open_page: Open) -> None:
    page = open_page(report, java_script_enabled=True)
    assert page.locator("#result-0").is_visible()
    assert not page.locator("#result-1").is_visible()
    page.locator(".bar-top").get_by_role("link", name=re.compile("^second")).click()
    assert page.locator("#result-1 table.rows").first.is_visible()
    assert not page.locator("#result-0").is_visible()  # tabs: one exam at a time
    page.evaluate("window.scrollTo(0, 1200)")
    box = page.locator(".bar-top").bounding_box()
    assert box is not None
    assert box["y"] == 0


def test_a_tab_is_opened_with_the_keyboard(report: str, open_page: Open) -> None:
    page = open_page(report)
    page.locator(".tab > summary").nth(1).focus()
    page.keyboard.press("Enter")
    page.locator("#result-1 table.rows").first.wait_for()


def test_subsets_of_a_report_are_put_in_order_without_a_script(
    report: str, open_page: Open
) -> None:
    page = open_page(report, java_script_enabled=False)
    cells = page.locator("#result-0 table.rows").first.locator("tbody tr:visible td:nth-child(3)")
    shown = [float(text.split()[0]) for text in cells.all_inner_texts()]
    page.locator("#order-0").select_option("lowest")
    rising = [float(text.split()[0]) for text in cells.all_inner_texts()]
    page.locator("#order-0").select_option("highest")
    falling = [float(text.split()[0]) for text in cells.all_inner_texts()]
    assert len(shown) == 27
    assert rising == sorted(shown)
    assert falling == sorted(shown, reverse=True)


def test_a_warning_of_a_report_leads_to_its_replies(report: str, open_page: Open) -> None:
    page = open_page(report, java_script_enabled=False)
    total = page.locator("#failures .case").count()
    assert page.locator("#failures .case:visible").count() == 5
    page.get_by_role("link", name="Show them").first.click()
    outcomes = [
        each.get_attribute("data-outcome") for each in page.locator("#failures .case:visible").all()
    ]
    assert set(outcomes) == {"unparsed"}
    assert 5 < len(outcomes) < total
    page.get_by_role("link", name="Show all").locator("visible=true").click()
    assert page.locator("#failures .case:visible").count() == 5


def test_pages_use_at_most_six_sizes_of_type(
    report: str, two_exams: Path, site: Site, open_page: Open, tmp_path: Path
) -> None:
    comparison = report_comparison(
        [two_exams / "two-exams", two_exams / "other-seed"], tmp_path / "compare.html"
    )
    viewer = [
        "/", "/runs/one", "/runs/stored/samples?outcome=failed", "/compare?run=one&run=two",
        "/runs/one/sample?id=demo_boolean_expressions_0",
    ]  # fmt: skip
    page = open_page(report)
    every_size: set[str] = set()
    for address in (report, comparison.as_uri(), *(site.address + path for path in viewer)):
        page.goto(address)
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        every_size |= set(page.evaluate(FONT_SIZES))
    assert len(every_size) <= MOST_SIZES, every_size


def test_nothing_that_decides_is_cut_off_on_a_phone(
    two_exams: Path, site: Site, open_page: Open, tmp_path: Path
) -> None:
    runs = [two_exams / "two-exams", two_exams / "other-seed"]
    comparison = report_comparison(runs, tmp_path / "compare.html").as_uri()
    page = open_page(comparison, 390)
    decisive = "#overview .verdict-word, .verdict-line, table.rows tbody:not(.by-lowest, .by-highest) .number:not(.spare)"
    for address, selector in (
        (comparison, decisive),
        (f"{site.address}/compare?run=one&run=two", decisive),
        ((two_exams / "two-exams" / "report.html").as_uri(), "#result-0 .rows .number:not(.spare)"),
        (f"{site.address}/runs/one", ".figure, table.rows .number:not(.spare)"),
    ):
        page.goto(address)
        edges = [
            box["x"] + box["width"]
            for each in page.locator(selector).locator("visible=true").all()
            if (box := each.bounding_box())
        ]
        assert edges
        assert max(edges) <= 390, address
        assert page.evaluate(BROKEN_WORDS, "td.title, #overview td:first-child") == []


@pytest.mark.parametrize("width", [1280, 390])
def test_95_percent_does_not_wrap_from_interval(
    report: str, site: Site, open_page: Open, width: int
) -> None:
    page = open_page(report, width)
    for address in (report, f"{site.address}/runs/one", f"{site.address}/compare?run=one&run=two"):
        page.goto(address)
        heads = page.locator("th.keep").locator("visible=true").all()
        assert heads
        assert [each.evaluate(LINES) for each in heads] == [1] * len(heads)


def test_columns_of_numbers_have_gutters(report: str, open_page: Open) -> None:
    page = open_page(report)
    row = page.locator("#result-0 table.rows tbody tr").first
    gutters = row.locator("td.number").evaluate_all(
        "cells => cells.slice(0, -1).map(c => parseFloat(getComputedStyle(c).paddingRight))"
    )
    assert min(gutters) >= 10


# --- the viewer


def test_runs_are_sorted_by_a_column_and_searched(site: Site, open_page: Open) -> None:
    page = open_page(site.address)
    names = page.locator("tbody:not(.live) tr:visible td.title a")
    page.get_by_role("button", name="Run", exact=True).first.click()
    rising = names.all_inner_texts()
    page.get_by_role("button", name="Run", exact=True).first.click()
    assert names.all_inner_texts() == rising[::-1] != rising
    assert page.locator('th[aria-sort="descending"]').count() == 1
    page.get_by_role("searchbox").fill("scripted two")
    assert names.all_inner_texts() == ["two"]
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("q=scripted"))
    assert names.all_inner_texts() == ["two"]


def test_the_compare_button_is_always_in_sight(tmp_path: Path, open_page: Open, site: Site) -> None:
    for number in range(40):
        write(site.runs / f"many-{number}", mixed(3))
    page = open_page(site.address, 390)
    for place in (0, 600, 100_000):
        page.evaluate(f"window.scrollTo(0, {place})")
        box = page.get_by_role("button", name="Compare the selected runs").bounding_box()
        assert box is not None
        assert 0 <= box["y"] <= 844 - box["height"]


def test_subsets_of_a_run_are_sorted_by_their_score(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/runs/one")
    cells = page.locator("table.rows tbody td:nth-child(3)")
    page.get_by_role("button", name="Accuracy").click()
    values = [float(text.split()[0]) for text in cells.all_inner_texts()]
    assert values == sorted(values, reverse=True)


def test_question_and_reply_are_next_to_each_other_with_the_passage_marked(
    site: Site, open_page: Open
) -> None:
    page = open_page(f"{site.address}/runs/one/samples?tier=strict")
    page.locator("td.id a").first.click()
    question = page.get_by_role("heading", name="Question", exact=True).bounding_box()
    reply = page.get_by_role("heading", name="Reply", exact=True).bounding_box()
    assert question
    assert reply
    assert abs(question["y"] - reply["y"]) < 5
    assert reply["x"] > question["x"] + 300
    assert page.locator(".reply-side mark").inner_text().startswith("So the answer is")
    page.set_viewport_size({"width": 390, "height": 844})
    below = page.get_by_role("heading", name="Reply", exact=True).bounding_box()
    assert below
    assert below["y"] > question["y"] + 40


def test_the_marked_passage_of_a_hostile_reply_is_text(site: Site, open_page: Open) -> None:
    passage = "<b onmouseover=alert(1)>So the answer is (B)</b>."
    answer = Answer("(B)", "strict", passage=passage)
    reading = Reading("paper", answer, Score(0.0, "incorrect"))
    hostile = record(7, reply=Reply(text=f"<i>x</i> {passage}", finish="stop"))
    hostile = type(hostile)(
        bench=hostile.bench, id=hostile.id, hash=hostile.hash, target="(A)", reply=hostile.reply,
        readings=(reading,),
    )  # fmt: skip
    write(site.runs / "hostile-mark", [hostile])
    page = open_page(f"{site.address}/runs/hostile-mark/sample?id=bbh_snarks_7")
    assert page.locator("mark").inner_text() == passage
    assert page.locator("main b, main i").count() == 0


def test_filters_stand_on_one_line_with_outcomes_as_links(site: Site, open_page: Open) -> None:
    page = open_page(f"{site.address}/runs/one/samples")
    places = [
        each.bounding_box()
        for each in (
            page.get_by_role("searchbox"), page.get_by_label("Subset"),
            page.get_by_role("button", name="Filter"), page.get_by_text("More filters"),
        )
    ]  # fmt: skip
    bottoms = [box["y"] + box["height"] for box in places if box]
    assert len(bottoms) == 4
    assert max(bottoms) - min(bottoms) < 12
    assert not page.get_by_label("How the answer was found").is_visible()
    page.get_by_text("More filters").click()
    for name in ("How the answer was found", "Readers agree?", "Reply length, at least"):
        assert page.get_by_label(name).is_visible()


def test_a_comparison_says_who_is_worse_and_shows_the_two_by_two(
    two_exams: Path, site: Site, open_page: Open
) -> None:
    page = open_page(f"{site.address}/compare?run=one&run=two")
    names = " ".join(page.get_by_role("heading", level=1).all_inner_texts())
    assert re.fullmatch(r"Is \w+ better than \w+\?", names)
    verdict = page.locator(".verdict-line").inner_text()
    assert re.search(r"is better than|is worse than|No difference between", verdict)
    cells = page.locator(".two-by-two tbody td.number").all_inner_texts()
    assert sum(int(cell.replace(",", "")) for cell in cells) == 120
    assert not re.search(r"\bp 0(?![.\d])|\bp 0\.0+(?!\d)", page.locator("main").inner_text())


def test_a_live_run_shows_its_rate_and_latest_replies(site: Site, open_page: Open) -> None:
    import time

    now = time.time()
    records = []
    for number in range(30):
        fields = {name: getattr(record(number), name) for name in record(number).__struct_fields__}
        records.append(type(record(number))(**fields | {"at": now - 30 + number}))
    exam = {"name": "bbh", "protocol": {"name": "paper", "version": "1"}, "readers": {"paper": 1},
            "samples": 90}  # fmt: skip
    folder = write(site.runs / "pace", records, ended=False, benchmarks=[exam])
    page = open_page(f"{site.address}/runs/pace")
    gauges = page.locator(".gauges").inner_text()
    assert re.search(r"(0\.[89]|1\.[01]) replies/s", gauges)
    assert re.search(r"1 min \d\d s|[56]\d s", gauges)
    assert page.locator(".spark rect").count() > 10
    assert page.locator(".latest li").count() == 5
    add(folder, [record(40, "correct")])
    page.locator(".latest", has_text="bbh_snarks_40").wait_for()  # without a click


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nobody_is_shut_out_of_live_runs_and_of_runs_with_arms(
    site: Site, open_page: Open, violations: Callable[[Page], list[str]], language: str
) -> None:
    write(site.runs / "for-axe", mixed(40), ended=False)
    if not (site.runs / "arms-for-axe").exists():
        arms: Any = [{"name": "plain"}, {"name": "other"}]
        names: Any = {"run_id": "arms-for-axe", "work_dir": str(site.runs)}
        run_exams(TaskConfig(model="scripted", datasets=["demo"], arms=arms, **names))
    page = open_page(f"{site.address}/runs/for-axe?lang={language}")
    assert violations(page) == []
    page.goto(f"{site.address}/runs/arms-for-axe")
    assert violations(page) == []


def test_a_run_with_tools_asks_whether_they_help(tmp_path: Path, site: Site) -> None:
    from starlette.testclient import TestClient

    from keju.viewer.app import make_app
    from keju.viewer.run_index import RunIndex
    from tests.support.parsed_report import ParsedReport

    arms: Any = [{"name": "plain"}, {"name": "other"}]
    names: Any = {"run_id": "arms", "work_dir": str(tmp_path)}
    run_exams(TaskConfig(model="scripted", datasets=["demo"], arms=arms, **names))
    with TestClient(make_app(RunIndex(tmp_path)), base_url="http://127.0.0.1") as client:
        pages = [client.get("/runs/arms").text, (tmp_path / "arms/report.html").read_text("utf-8")]
    for source in pages:
        text = ParsedReport(source).text
        assert re.search(r"<h1>.*Does other help\?", source)
        verdict = source.index('class="verdict-line"')
        assert verdict < source.index("<table")  # the verdict comes before the numbers
        assert "plain" in text
