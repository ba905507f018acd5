"""Help pages in both languages: complete, no wider than the terminal, without a word of the other."""

from __future__ import annotations

import importlib
import re
import shlex

import pytest

from keju.cli import COMMANDS as ENTRIES
from keju.cli.command import COMMANDS
from keju.cli.help import about, paragraphs
from keju.cli.options import OPTIONS
from keju.messages import store
from keju.messages.wrapping import cells, wrap
from keju.models import weights
from keju.models.registry import KINDS
from tests.cli.conftest import Keju

for entry in ENTRIES:
    importlib.import_module(entry.module)

GROUPS = sorted({name.split()[0] for name in COMMANDS if " " in name})
PAGES = ["", *COMMANDS, *GROUPS]
CHINESE = re.compile(r"[\u4e00-\u9fff]")
# Words of English that a Chinese page may hold: names of things. `the exam` is none of them.
ENGLISH_PROSE = re.compile(
    r"(?<![-\w])(?:the|of|and|with|is|are|its|for|by|to|from|default|required)(?![-\w])"
)


def page_of(keju: Keju, page: str, *flags: str) -> str:
    ran = keju(*page.split(), "--help", *flags)
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def without_examples(page: str) -> str:
    """A page without its commands, which are the same in every language."""
    return re.split(r"\n ?(?:Examples:|示例：)|\n\n  keju ", page)[0]


def test_every_flag_and_command_has_its_chinese_text_and_nothing_else_has_one() -> None:
    """To mend it, add the name to the section "help" of messages/zh/cli.json."""
    help_texts = store.texts("zh", "help")
    panels = {entry.panel for entry in ENTRIES} | {row.panel for row in OPTIONS.values()}
    wanted_keys = {f"flag.{name}" for name in OPTIONS}
    wanted_keys |= {f"command.{name}" for name in COMMANDS} | {
        f"line.{metadata_entry.name}" for metadata_entry in ENTRIES
    }
    wanted_keys |= {f"panel.{title}" for title in panels | {"Commands"}}
    wanted_keys |= {f"kind.{kind.spelling.partition(':')[0]}" for kind in KINDS}
    wanted_keys |= {f"weights.{name}" for name in weights.ALL_WEIGHTS}
    assert wanted_keys - set(help_texts) == set()
    assert set(help_texts) - wanted_keys == set()
    assert [name for name, text in help_texts.items() if not CHINESE.search(text)] == []


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_line_of_a_page_is_wider_than_the_terminal(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, language: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for page in PAGES:
        lines = page_of(keju, page, "--language", language).splitlines()
        if width < 80:  # a word of a command may be longer than a narrow line
            lines = without_examples("\n".join(lines)).splitlines()
        assert [line for line in lines if cells(line) > width] == [], page
        boxed = [line for line in lines if line.startswith(("│", "╭", "╰"))]
        assert {cells(line) for line in boxed} <= {width}, page


def test_pages_are_chinese_in_a_chinese_locale(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    for page in PAGES:
        text = without_examples(page_of(keju, page))
        assert "用法：keju" in text
        assert ENGLISH_PROSE.findall(text) == [], page
        english = page_of(keju, page, "--language", "en")
        assert "Usage: keju" in english
        assert CHINESE.findall(english.replace("科举", "")) == [], page


@pytest.mark.parametrize(
    "words", ["--language zh --help", "--language=zh", "eval --help --language zh"]
)
def test_the_language_is_asked_for_anywhere(keju: Keju, words: str) -> None:
    assert CHINESE.search(without_examples(keju(*words.split()).out).replace("科举", ""))
    assert not CHINESE.search(keju("--help").out.replace("科举", ""))


def test_every_command_speaks_the_language_that_it_is_given(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keju("show", "demoo", "--language", "zh").err.startswith("keju: 错误：未知的考试“demoo”")
    assert "unknown benchmark" in keju("show", "demoo").err
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert "unknown benchmark" in keju("show", "demoo", "--language=en").err
    assert "--language" in keju("doctor", "--language", "de").err


def test_examples_are_commands_of_a_shell(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for name, command in COMMANDS.items():
        page = page_of(keju, name, "--help-all")
        examples = page.partition("Examples:")[2].replace("\\\n", "")
        shown_commands = [shlex.split(line) for line in examples.splitlines() if line.strip()]
        assert shown_commands == [shlex.split(example) for example in command.examples]


def test_the_first_page_of_eval_has_four_examples_and_about_ten_flags(keju: Keju) -> None:
    lines = page_of(keju, "eval").splitlines()
    commands = [line for line in lines if line.startswith("   keju eval")]
    flags = [line for line in lines if line.startswith("│ --")]
    assert (len(commands), len(flags)) == (4, 14)
    assert lines.index(commands[-1]) < lines.index(flags[0])
    assert len(lines) <= 50


def test_the_first_page_lists_twenty_commands_in_four_groups(keju: Keju) -> None:
    visible_names = [entry.name for entry in ENTRIES if not entry.is_hidden]
    assert len(visible_names) == 20
    short, complete = keju("--help").out, keju("--help-all").out
    panels = [line for line in short.splitlines() if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert panels == ["Evaluate:", "Look:", "Decide:", "Set up:"]
    for entry in ENTRIES:
        assert (f"\n  {entry.name} " in short) == (not entry.is_hidden)
        assert f"\n  {entry.name} " in complete


def test_a_page_without_colours_holds_no_escapes(keju: Keju) -> None:
    assert "\033" not in page_of(keju, "eval")


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("plain words only", 11, ["plain words", "only"]),
        ("让模型参加考试。", 10, ["让模型参加", "考试。"]),
        ("让模型参加，考试", 10, ["让模型参", "加，考试"]),
        ("用（括号）时", 6, ["用（括", "号）时"]),
        ("用了（括号）", 6, ["用了", "（括", "号）"]),
        ("见 keju list。", 9, ["见 keju", "list。"]),
        ("abcdefghijk", 4, ["abcd", "efgh", "ijk"]),
        ("", 10, []),
    ],
)
def test_lines_break_where_each_language_may_be_broken(
    text: str, width: int, lines: list[str]
) -> None:
    assert wrap(text, width) == lines
    assert all(cells(line) <= width for line in lines)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("eval --limit x", "--limit needs a number, not 'x'"),
        ("eval --repeats 1.5", "--repeats needs a whole number, not '1.5'"),
        ("eval --json=1", "--json takes no value"),
        ("report", "RUN... is missing"),
        ("eval bbh", "'bbh' belongs to no option: write --datasets bbh;"),
        ("eval task.yaml", "write --config task.yaml;"),
        ("run arms.yaml", "write --config arms.yaml;"),
        ("list subsets bbh", "'bbh' belongs to no option: write --benchmark bbh;"),
        ("list protocols ./quiz", "write --benchmark ./quiz;"),
        ("show bbh snarks", "write --subset snarks;"),
        ("data pull bbh modelscope", "write --from modelscope;"),
        ("judge a b", "'b' is too many: 'keju judge' takes one RUN at a time;"),
        ("stats bbh ceval", "'ceval' is too many: 'keju stats' takes one NAME at a time;"),
        ("audit a b", "'b' is too many: 'keju audit' takes one RUN at a time;"),
        ("doctor now", "'now' belongs to no option; see"),
        ("data", "needs one of its commands: pull, verify, path, list"),
        ("eval --what", "unknown option --what"),
        ("list things", "'things' is not one of"),
    ],
)
def test_what_is_wrong_with_the_words_is_told_in_both_languages(
    keju: Keju, words: str, message: str
) -> None:
    ran = keju(*words.split())
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    chinese_run = keju("--language", "zh", *words.split())
    assert chinese_run.code == 2
    assert CHINESE.search(chinese_run.err)
    assert ENGLISH_PROSE.findall(chinese_run.err) == []
    if words != "data":  # a group alone shows its commands first
        assert len(chinese_run.err.splitlines()) == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_as_much_in_both_languages(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paragraph by paragraph, so that none is forgotten when the English grows."""
    lengths = []
    for language in ("en", "zh"):
        monkeypatch.setenv("KEJU_LANGUAGE", language)
        lengths.append(len(paragraphs(about(COMMANDS[name]))))
    assert lengths[0] == lengths[1]


@pytest.mark.parametrize(("language", "label"), [("en", "notwith"), ("zh", "不能与")])
def test_flags_that_exclude_each_other_say_so(keju: Keju, language: str, label: str) -> None:
    page = keju("--language", language, "eval", "--help-all").out
    compact_page = "".join(page.replace("│", "").split())  # lines end anywhere in Chinese
    assert f"{label}--total" in compact_page
    assert f"{label}--limit" in compact_page
    ran = keju("eval", "-m", "scripted", "--datasets", "demo", "--limit", "1", "--total", "2")
    assert (ran.code, "cannot be used together" in ran.err) == (2, True)
