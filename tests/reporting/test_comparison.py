"""The report of a comparison: one page with the difference, the subsets and replies side by side."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from keju.api import report
from keju.models.scripted import ScriptedModel
from keju.reporting.pairs import p_value
from keju.types import Request
from tests.cli.conftest import Keju, keju
from tests.support.parsed_report import ParsedReport
from tests.viewer.runs import HOSTILE

pytestmark = pytest.mark.slow

__all__ = ["keju"]

Evaluate = Callable[..., None]


@pytest.fixture
def evaluate(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> Evaluate:
    """Sit the built-in exam; a run gets every question right whose hash `rights` accepts."""

    def run(name: str, rights: Callable[[int], bool], *flags: str, text: str = "") -> None:
        def answer(request: Request) -> str:
            is_right = rights(int(request.hash[:4], 16))
            gold = request.labels[0] if request.labels else "A"
            return f"{text} So the answer is ({gold if is_right else 'Z'})."

        monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=answer))
        ran = keju(
            "eval", "-m", "scripted", "--datasets", "demo", "-q", "--no-report", "--run-id", name,
            *flags,
        )  # fmt: skip
        assert ran.code == 0, ran.err

    return run


def page_of(path: str | Path) -> ParsedReport:
    return ParsedReport(Path(path).read_text("utf-8"))


def test_the_page_begins_with_the_answer_and_shows_replies(keju: Keju, evaluate: Evaluate) -> None:
    evaluate("one", lambda _: False)
    evaluate("two", lambda number: number % 4 > 0, text="Thus I say.")
    ran = keju("compare", "one", "two", "-o", "page.html")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == "wrote page.html"
    page = page_of("page.html")
    (comparison,) = keju("compare", "one", "two", "--json").json["comparisons"]
    assert "two against one" in page.text
    assert f"{100 * comparison['difference']:+.1f}" in page.text
    assert comparison["conclusion"][1:] in page.text
    for row in comparison["subsets"]:
        assert f"{row['name']} " in page.text
    assert "Thus I say." in page.text
    assert all(link.startswith("#") for link in page.links)
    assert not {"script", "img", "iframe", "link"} & set(page.tags)


def test_texts_are_on_the_page_and_not_in_the_document(keju: Keju, evaluate: Evaluate) -> None:
    evaluate("one", lambda _: False, text=HOSTILE)
    evaluate("two", lambda _: True, text=HOSTILE)
    ran = keju("compare", "one", "two", "-o", "page.html", "--json")
    assert "base_reply" not in ran.out
    source = Path("page.html").read_text("utf-8")
    assert "&lt;script&gt;alert(1)" in source
    assert not re.search(r"<script|<img", source)
    page_of("page.html")  # no event handler either


def test_words_that_differ_are_marked(keju: Keju, evaluate: Evaluate) -> None:
    evaluate("one", lambda _: False, text="Both say this, and cats.")
    evaluate("two", lambda _: True, text="Both say this, and dogs.")
    keju("compare", "one", "two", "-o", "page.html")
    source = Path("page.html").read_text("utf-8")
    assert "Both say this, and <mark>cats</mark>" in source
    assert "Both say this, and <mark>dogs</mark>" in source


def test_several_runs_have_an_overview_and_unlike_ones_no_difference(
    keju: Keju, evaluate: Evaluate
) -> None:
    evaluate("one", lambda number: number % 3 == 0)
    evaluate("two", lambda number: number % 2 == 0)
    evaluate("other", lambda _: True, "--protocol", "letters")
    ran = keju("report", "one", "two", "other", "-o", "page.html", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["report"] == "page.html"
    page = page_of("page.html")
    assert "Overview" in page.text
    assert page.text.casefold().count("not comparable, and not ranked") == 2
    assert "protocol text letters no" in re.sub(r"\s+", " ", page.text)


def test_the_overview_of_several_pairs_tells_p_from_that_of_holm(
    keju: Keju, evaluate: Evaluate
) -> None:
    for name, divisor in (("one", 1), ("two", 2), ("three", 3)):
        evaluate(name, lambda number, divisor=divisor: number % divisor == 0)
    ran = keju("compare", "one", "two", "three", "-o", "page.html", "--json")
    first_pair = ran.json["comparisons"][0]
    assert first_pair["p"] != first_pair["p_holm"]
    overview = page_of("page.html").text.split("Overview", 1)[1]
    assert "points verdict 95 % interval p p (Holm)" in re.sub(r"\s+", " ", overview)
    p_cells = f" {p_value(first_pair['p'])} {p_value(first_pair['p_holm'])} "
    assert p_cells == " < 0.001 < 0.001 "
    assert p_cells in re.sub(r"\s+", " ", overview)


def test_both_languages_are_in_the_file_and_python_writes_it(
    keju: Keju, evaluate: Evaluate
) -> None:
    evaluate("one", lambda _: False)
    evaluate("two", lambda _: True)
    page = report(["one", "two"], "page.html", language="zh")
    assert page == Path("page.html")
    source = page.read_text("utf-8")
    assert '<html lang="zh-CN">' in source
    assert "得分不同的题目" in source
    assert "Questions with different scores" in source
