"""The pages that are made from the code are in step with it, and the site holds together offline."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import pytest
from tools.docs.markdown import untranslated
from tools.docs.names import GROUPS
from tools.docs.navigation import configuration, lines_of_index, pages
from tools.docs.pages import written

import keju
from keju.messages import store

ROOT = Path(__file__).parent.parent
FILES = written()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_the_code_makes_is_in_step(path: Path) -> None:
    assert path.read_text("utf-8") == FILES[path], "to mend it: python -m tools.docs"


def test_every_public_name_has_its_place() -> None:
    listed = Counter(name for _, _, names in GROUPS for name in names.split())
    assert listed == Counter(set(keju.__all__) - {"__version__"})


def test_every_text_of_the_code_has_its_chinese() -> None:
    """To mend it, add the English and its Chinese to messages/zh/documentation.json."""
    assert sorted(untranslated) == []


def test_no_chinese_is_left_of_what_the_code_no_longer_says() -> None:
    """To mend it, take the lines out of messages/zh/documentation.json."""
    said = " ".join(text for path, text in FILES.items() if path.name.endswith("zh-CN.md"))
    dead = [
        english
        for english, chinese in store.texts("zh", "documentation").items()
        if "None" not in chinese and "`LISTED`" not in chinese and "`NO_GOLD`" not in chinese
        if chinese.replace("``", "`") not in said
    ]
    assert dead == []


def test_every_page_is_in_the_navigation_and_in_the_index() -> None:
    named = [page for _, page in pages(configuration(ROOT)["nav"])]
    there = {path.name for path in (ROOT / "docs").glob("*.md") if ".zh-CN" not in path.name}
    assert Counter(named) == Counter(there)
    order = [page for page in named if page != "index.md"]
    assert list(lines_of_index(ROOT)) == order
    chinese = [page.replace(".md", ".zh-CN.md") for page in order]
    assert list(lines_of_index(ROOT, "index.zh-CN.md")) == chinese


def test_every_title_of_the_navigation_has_its_chinese() -> None:
    loaded = configuration(ROOT)
    (plugin,) = [each["i18n"] for each in loaded["plugins"] if isinstance(each, dict)]
    titles = plugin["languages"][1]["nav_translations"]
    sections = [title for entry in loaded["nav"] for title in entry]
    assert set(titles) == {*sections, *(title for title, _ in pages(loaded["nav"]))}


def test_llms_txt_leads_to_every_page() -> None:
    text = (ROOT / "llms.txt").read_text("utf-8")
    assert re.match(r"# Keju\n\n> .+\n\n.+\n\n## .+\n\n- \[", text)
    links = re.findall(r"^- \[[^]]+\]\(([^)]+)\): .+$", text, re.MULTILINE)
    assert len(links) == len(set(links)) == len(list((ROOT / "docs").glob("*.md"))) // 2 - 1
    assert all((ROOT / link).exists() for link in links)


class Page(HTMLParser):
    """What a page has and where it leads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids, links and whatever a browser fetches by itself."""
        own = {name: value or "" for name, value in attrs}
        self.ids.add(own.get("id", ""))
        if tag == "a":
            self.links.append(own.get("href", ""))
        elif tag == "link":
            self.loads.append(own.get("href", ""))
        self.loads += [own[name] for name in ("src", "srcset", "data", "poster") if name in own]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("mkdocs", "mkdocs_static_i18n", "material"):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def built(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


@pytest.mark.slow
def test_every_page_of_the_site_is_there_in_both_languages(
    site: Path, built: dict[Path, Page]
) -> None:
    sources = {path.stem for path in (ROOT / "docs").glob("*.md") if ".zh-CN" not in path.name}
    for stem in sources:
        for page, other in ((f"{stem}.html", "zh-CN/"), (f"zh-CN/{stem}.html", "../")):
            assert f"{other}{stem}.html" in built[site / page].links
    assert 'lang="zh"' in (site / "zh-CN" / "index.html").read_text("utf-8")
    assert "下一页" in (site / "zh-CN" / "index.html").read_text("utf-8")


@pytest.mark.slow
def test_links_and_anchors_of_the_site_lead_somewhere(built: dict[Path, Page]) -> None:
    lost = []
    for path, page in built.items():
        for link in page.links:
            target, _, anchor = unquote(link).partition("#")
            if re.match(r"[a-z]+:", target) or path.name == "404.html":
                continue
            other = (path.parent / target).resolve() if target else path
            if not other.exists() or (anchor and anchor not in built[other].ids):
                lost.append(f"{path.name}: {link}")
    assert lost == []


@pytest.mark.slow
def test_the_site_needs_no_internet(site: Path, built: dict[Path, Page]) -> None:
    far = [(p.name, load) for p, page in built.items() for load in page.loads if "//" in load]
    assert far == []
    for sheet in site.rglob("*.css"):
        assert re.findall(r"url\(\s*['\"]?(?:https?:)?//|@import", sheet.read_text()) == []


@pytest.mark.slow
def test_llms_txt_of_the_site_leads_to_markdown_beside_it(site: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", (site / "llms.txt").read_text("utf-8"))
    assert links
    assert all((site / link).read_text("utf-8").startswith("# ") for link in links)


@pytest.mark.slow
def test_the_model_of_the_page_sits_an_exam(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "extending.md").read_text("utf-8")
    section = text[text.index("## A kind of model") :]
    code, toml = (
        re.findall(f"```{kind}\n(.*?)```", section, re.DOTALL)[0] for kind in ("python", "toml")
    )
    (tmp_path / "keju_parrot.py").write_text(code)
    facts = tmp_path / "keju_parrot-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: keju-parrot\nVersion: 1\n")
    row = re.search(r'^(\w+ = )"(.+)"$', toml, re.MULTILINE)
    assert row is not None
    (facts / "entry_points.txt").write_text(f"[keju.models]\n{row[1]}{row[2]}\n")
    command = [sys.executable, "-c", "from keju.cli import main; main()", "eval"]
    command += ["--model", "parrot:grey", "--datasets", "demo", "--limit", "1", "--json", "-q"]
    environ = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"model": "parrot:grey"' in done.stdout
