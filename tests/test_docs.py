"""The documentation names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keju.benchmarks import registry
from keju.cli import COMMANDS
from keju.config import Budget, DatasetArgs, Filters, GenerationConfig, Price, TaskConfig

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize(
    "settings", [TaskConfig, GenerationConfig, DatasetArgs, Filters, Budget, Price]
)
def test_every_setting_is_documented(settings: type[TaskConfig]) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert [name for name in settings.model_fields if f"`{name}`" not in page] == []


def test_every_protocol_is_documented() -> None:
    page = (ROOT / "docs" / "exams.md").read_text()
    for name in registry.ROOMS:
        missing = [each for each in registry.get(name).protocols if f"`{each}`" not in page]
        assert missing == [], name


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_the_readmes_name_every_command(readme: str) -> None:
    text = (ROOT / readme).read_text()
    assert [c.name for c in COMMANDS if f"`keju {c.name}" not in text] == []


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_the_readmes_say_how_to_install_without_a_release(readme: str) -> None:
    text = (ROOT / readme).read_text()
    assert re.findall("^pip install .*", text, re.MULTILINE) == ["pip install ."]
    assert "`keju[data]`" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target
