"""Figures: whole SVG on their own, whatever the names in them; PNG and PDF where they can be made."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

import keju
from keju.reporting.charts import differences, forest, histogram, outcomes
from keju.reporting.figure import Figure, style
from keju.results.samples import SampleRow
from keju.results.schema import Comparison, Results, SubsetChange
from tests.reporting.documents import SUBSETS
from tests.reporting.documents import results as document

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "</text><script>alert(1)</script>&\"'\x00\x1b[2J\ufffe<!--]]>"


def texts(figure: Figure) -> list[str]:
    root = ElementTree.fromstring(figure.svg)
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def row(seconds: float, tokens: int = 10) -> SampleRow:
    names = dict.fromkeys(SampleRow.__struct_fields__)
    facts: dict[str, Any] = names | {"seconds": seconds, "output_tokens": tokens}
    return SampleRow(**facts)


def pair(**changes: Any) -> Comparison:
    part = SubsetChange(
        name=EVIL, n=20, difference=-0.1, arm_only=1, base_only=3, p=0.6, p_adjusted=0.6
    )
    facts: dict[str, Any] = {
        "exam": "bbh", "reader": "paper", "base": "plain", "arm": EVIL, "n": 60, "left_out": 0,
        "base_rate": 0.5, "arm_rate": 0.6, "difference": 0.1, "ci95": (0.01, 0.19), "p": 0.03,
        "both": 1, "arm_only": 9, "base_only": 3, "neither": 1, "subsets": (part,),
    }  # fmt: skip
    return msgspec.convert(facts | changes, Comparison)


def figures(results: Results) -> dict[str, Figure]:
    return {
        "forest": forest([results]),
        "two": forest([results, results]),
        "outcomes": outcomes([results]),
        "difference": differences([pair()]),
        "latency": histogram("latency", [(EVIL, [row(0.1), row(2.0)])]),  # type: ignore[list-item]
    }


@pytest.mark.parametrize("name", ["forest", "two", "outcomes", "difference", "latency"])
def test_a_figure_stands_alone_and_is_inert(name: str) -> None:
    figure = figures(document(model=EVIL, run=EVIL))[name]
    root = ElementTree.fromstring(figure.svg)
    kinds = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert kinds <= {"svg", "title", "desc", "style", "rect", "line", "circle", "text"}
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title") is not None
    assert re.findall(r"https?://[^\s\"<]+", figure.svg) == ["http://www.w3.org/2000/svg"]
    assert "href" not in figure.svg
    assert "var(" not in figure.svg
    assert "\x1b" not in figure.svg
    attributes = {key for element in root.iter() for key in element.attrib}
    assert not any(key.startswith("on") for key in attributes)
    assert "prefers-color-scheme: dark" in figure.svg


def test_a_forest_has_every_subset_its_interval_and_chance() -> None:
    figure = forest([document()])
    labels = texts(figure)
    for name in SUBSETS:
        assert name in labels
    assert any("50.00 % (29.9–70.1), n 20" in text for text in labels)
    root = ElementTree.fromstring(figure.svg)
    lines = [line.get("class") for line in root.iter(f"{SVG}line")]
    assert lines.count("chance") >= 1
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    assert any(title.startswith("高等数学: 50.00 %") for title in titles)


def test_runs_share_a_forest_and_each_has_its_colour() -> None:
    second_run = msgspec.structs.replace(document(), run="other", model="second")
    figure = forest([document(), second_run])
    root = ElementTree.fromstring(figure.svg)
    dots = [circle.get("class") for circle in root.iter(f"{SVG}circle")]
    assert dots.count("series-0") == dots.count("series-1") > 2
    assert "second · other" in texts(figure)


def test_a_figure_speaks_chinese() -> None:
    assert "准确率与 95 % 置信区间" in texts(forest([document()], "zh"))


def test_differences_show_which_are_more_than_noise() -> None:
    root = ElementTree.fromstring(differences([pair()]).svg)
    assert [circle.get("class") for circle in root.iter(f"{SVG}circle")] == ["above", "tie"]
    with pytest.raises(keju.UsageError, match="two runs"):
        differences([])


def test_a_histogram_holds_every_reply() -> None:
    rows = [row(0.01 * n) for n in range(200)] + [row(50.0)]
    figure = histogram("latency", [("r", rows)])  # type: ignore[list-item]
    assert any(
        "201 replies, median 1, 95th percentile 1.9, most 50" in text for text in texts(figure)
    )
    assert "≥ 2" in texts(figure)
    zero_latency = histogram("latency", [("r", [row(0.0)])])  # type: ignore[list-item]
    assert any("1 reply" in text for text in texts(zero_latency))


def test_the_style_has_the_colours_of_the_report() -> None:
    assert "var(" not in style(dark=True)
    assert "@media" not in style(dark=False)
    for mark in ("track", "whisker", "chance", "series-3", "fill-error", "above"):
        assert f".{mark}" in style(dark=False)


def test_a_notebook_shows_a_figure_as_a_picture() -> None:
    html = forest([document(model=EVIL)])._repr_html_()
    assert html.startswith("<img alt=")
    assert "<script" not in html


def test_no_other_form_of_a_figure(tmp_path: Path) -> None:
    with pytest.raises(keju.UsageError, match=r"\.svg, \.png, \.pdf"):
        forest([document()]).save(tmp_path / "figure.gif")
    assert list(tmp_path.iterdir()) == []


def test_png_and_pdf_need_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(keju.MissingExtra, match=r"keju\[plot\]"):
        forest([document()]).save(tmp_path / "figure.png")


@pytest.mark.slow
def test_png_and_pdf_are_drawn(tmp_path: Path) -> None:
    """In a process of its own: the library that draws them does not go well with forks."""
    pytest.importorskip("vl_convert", reason="PNG and PDF need keju[plot]")
    code = (
        "from tests.reporting.documents import results; from keju.reporting.charts import forest\n"
        "figure = forest([results()]); figure.save('f.png'); figure.save('f.pdf')"
    )
    root = Path(__file__).parents[2]
    path = f"import sys; sys.path[:0] = [{str(root)!r}, {str(root / 'src')!r}]\n"
    subprocess.run([sys.executable, "-c", path + code], cwd=tmp_path, check=True)
    png, pdf = (tmp_path / "f.png").read_bytes(), (tmp_path / "f.pdf").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") >= 1600
    assert pdf.startswith(b"%PDF-")
    assert b"/Font" in pdf or b"FontFile" in pdf or b"/ObjStm" in pdf
