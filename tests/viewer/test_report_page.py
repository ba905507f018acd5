"""The report in a real browser: one file, without scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keju.reporting.comparison import report_comparison
from keju.reporting.html import write_report
from keju.results.schema import from_document
from tests.reporting.documents import MANIFEST, document, entry, lookup, record
from tests.viewer.conftest import Open
from tests.viewer.runs import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report with failures of two subsets and of several kinds."""
    records = [
        record(1),
        record(2, "unparsed"),
        record(3, subset="高等数学", text=HOSTILE),
        record(4, "error"),
        record(5, "correct", reasoning="a chain of thought"),
    ]
    output: Path = tmp_path_factory.mktemp("report") / "report.html"
    answers = [(lookup(each.bench, each.id), each) for each in records]
    results = from_document(document(entry(), entry(reader="robust")))
    write_report(results, answers, output, manifest=MANIFEST)
    return output.as_uri()


def shown(page: Page) -> list[str]:
    """The failures that can be seen."""
    return [each.inner_text() for each in page.locator("#failures .case h3:visible").all()]


def test_failures_are_filtered_without_a_script(report: str, open_page: Open) -> None:
    page = open_page(report, java_script_enabled=False)
    assert len(shown(page)) == 4
    page.get_by_label("Outcome").select_option(label="unparsed / 未读出答案")
    assert shown(page) == ["bbh_snarks_2"]
    page.get_by_label("Outcome").select_option("")
    page.locator("#by-subset").select_option(label="bbh · 高等数学")
    assert shown(page) == ["bbh_高等数学_3"]


def test_a_subset_leads_to_its_failure_and_opens_it(report: str, open_page: Open) -> None:
    page = open_page(report)
    page.get_by_role("link", name="高等数学").first.click()
    reply = page.locator(".case[open] .reply").first
    reply.wait_for()
    assert "<script>alert(1)</script>" in reply.inner_text()
    assert page.locator("img, script").count() == 0


def test_the_language_is_switched_in_the_file(report: str, open_page: Open) -> None:
    page = open_page(report, java_script_enabled=False)
    assert page.get_by_text("were asked").first.is_visible()
    page.get_by_label("中文").check()
    assert not page.get_by_text("were asked").first.is_visible()
    assert page.get_by_text("共问了").first.is_visible()


def test_nobody_is_shut_out_of_the_report(
    report: str, open_page: Open, violations: Callable[[Page], list[str]]
) -> None:
    page = open_page(report)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert violations(page) == []


# --- the report of a comparison


@pytest.fixture(scope="module")
def comparison(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report of two runs."""
    output: Path = tmp_path_factory.mktemp("comparison") / "compare.html"
    report_comparison([runs / "one", runs / "two"], output)
    return output.as_uri()


def test_flips_are_filtered_and_reached_from_their_subset(comparison: str, open_page: Open) -> None:
    page = open_page(comparison, java_script_enabled=False)
    cases = page.locator(".case:visible")
    whole = page.locator(".case").count()
    assert cases.count() == 5  # the others are folded
    assert whole > 1
    page.locator("#by-change-0").select_option("gained")
    assert 0 < cases.count() < whole
    assert page.locator('.case[data-change="lost"]:visible').count() == 0
    page.locator("#by-change-0").select_option("")
    page.locator("table.wide a").first.click()
    page.locator(".case[open] .sides").wait_for()
    assert page.locator(".case[open] .sides > div").count() == 2
    page.get_by_label("中文").check()
    assert page.get_by_text("得分不同的题目").first.is_visible()


def test_nobody_is_shut_out_of_a_comparison(
    comparison: str, open_page: Open, violations: Callable[[Page], list[str]]
) -> None:
    page = open_page(comparison)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert violations(page) == []
