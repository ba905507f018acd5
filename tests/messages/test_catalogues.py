"""What Keju says, in both languages."""

from __future__ import annotations

import ast
import json
import re
import shlex
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from keju import messages
from keju.benchmarks import custom as custom
from keju.benchmarks import registry
from keju.errors import KejuError, Notice
from keju.messages import store

SOURCE = Path(messages.__file__).parents[1]


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("part", [messages.catalogue, messages.labels])
def test_both_languages_have_the_same_codes_with_the_same_placeholders(
    part: Callable[[messages.Language], Mapping[str, str]],
) -> None:
    for name in registry.names():
        registry.get(name)  # an exam adds the sentences of its own room
    english, chinese = part("en"), part("zh")
    assert english.keys() == chinese.keys()
    for code, text in english.items():
        assert placeholders(text) == placeholders(chinese[code]), code


# What is counted; after "of", as in "1 of 1 replies", the plural stands for the kind.
COUNTED = re.compile(
    r"(?<!of )(?<!of the )\b1 (?:shared |published |more )?(?:questions|requests|replies|episodes|"
    r"attempts|clusters|ties|characters|steps|calls|worked examples)\b(?!/s)"
)
FIXED = {"arms_one_cluster", "few_questions", "mcp.cost", "metric.pass@k", "plan_beyond"} | {
    "too_many_units"
}
"""Numbers that are never 1, or that stand for all of them."""


class One:
    """A value that is shown as 1, and chooses the word for one."""

    def __format__(self, spec: str) -> str:
        return spec.partition("|")[0] if "|" in spec else "1"

    def __repr__(self) -> str:
        return "1"


class Ones(dict[str, One]):
    def __missing__(self, name: str) -> One:
        return One()


@pytest.mark.parametrize("part", [messages.catalogue, messages.labels])
def test_one_is_not_said_as_many(
    part: Callable[[messages.Language], Mapping[str, str]],
) -> None:
    limits = re.compile(r"\b(all|most|about|than|towards) 1 ")
    for code, text in part("en").items():
        if code in FIXED:
            continue
        sentence = limits.sub("", text.format_map(Ones()))
        assert COUNTED.search(sentence) is None, (code, sentence)


def test_a_list_is_never_said_but_for_one() -> None:
    assert [*messages.first_of("abcd", 3)] == [*"abcd"]
    assert [*messages.first_of("abcde", 3)] == [*"abc"]


def test_commands_are_broken_so_that_a_shell_takes_them() -> None:
    command = "keju compare 'my runs/one' 20260102-120000-demo-embedded --reader a,b"
    lines = messages.command_lines(command, 44, 2)
    assert max(map(len, lines)) <= 44
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert shlex.split(" ".join(line.removesuffix("\\") for line in lines)) == shlex.split(command)
    assert messages.command_lines(command, 200) == [command]


def test_a_notice_is_said_in_the_language_of_its_reader() -> None:
    notice = Notice("cut_replies", {"part": 2, "whole": 40, "share": 0.05})
    expected = "2 of 40 replies (5.00 %) were cut off: raise max_tokens with "
    expected += "--generation-config max_tokens=N in a new run"
    assert notice.text() == expected
    assert notice.text("zh").startswith("40 个回复中有 2 个（5.00 %）")
    assert Notice("A plug-in's {own} sentence.").text("zh") == "A plug-in's {own} sentence."


@pytest.mark.parametrize("language", ["en", "zh"])
def test_percentages_are_written_as_in_tables(language: messages.Language) -> None:
    for part in (messages.catalogue, messages.labels):
        for code, text in part(language).items():
            specs = [spec for _, _, spec, _ in string.Formatter().parse(text) if spec]
            usual = ".1 %" if code.startswith("brief.") else ".2 %"  # short lines of the terminal
            assert all(spec == usual for spec in specs if spec.endswith("%")), code
            assert not re.search(r"[0-9}]%", text), code
    full_share = Notice("ungraded_share", {"part": 2, "whole": 2, "share": 1})
    assert re.search(r"[（(]100\.00 %[)）]", full_share.text(language))


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8", "KEJU_LANGUAGE": "zh"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "KEJU_LANGUAGE": "en"}, "en"),
    ],
)
def test_the_terminal_speaks_the_language_of_the_user(
    environment: dict[str, str], language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KEJU_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert messages.current_language() == language


@cache
def raised() -> list[tuple[str, ast.Call]]:
    """Every error and notice that is made in the source, with the place where it stands."""
    kinds = {kind.__name__ for kind in _kinds(KejuError)} - {"MissingExtra"} | {"Notice"}
    return [
        (f"{path.relative_to(SOURCE)}:{node.lineno}", node)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in kinds and node.args
    ]


def _kinds(kind: type[KejuError]) -> Iterator[type[KejuError]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from _kinds(subclass)


def test_every_code_that_is_raised_has_a_sentence_and_its_values() -> None:
    for name in (*registry.names(), "lm_eval:any"):
        registry.get(name)
    english = messages.catalogue("en")
    for place, call in raised():
        code = call.args[0]
        if not isinstance(code, ast.Constant) or " " in str(code.value):
            continue
        assert code.value in english, place
        passed_names = {keyword.arg for keyword in call.keywords}
        if None not in passed_names and len(call.args) == 1:
            assert placeholders(english[code.value]) - {"run"} <= passed_names, place


def test_no_room_raises_a_sentence() -> None:
    raised_sentences = [
        place
        for place, call in raised()
        for part in getattr(call.args[0], "values", [call.args[0]])
        if isinstance(part, ast.Constant) and " " in str(part.value)
    ]
    assert raised_sentences == []


SAYING = {
    "TableColumn",
    "complain",
    "line",
    "note",
    "print_lines",
    "print_steps",
    "remark",
    "write_line",
}
"""Functions and methods that show a text to people as it is."""
FROM_A_CATALOGUE = {"Notice", "label_text", "labels", "word", "get", "text"}


def literals(node: ast.AST) -> Iterator[str]:
    """The texts in an expression that come from no catalogue."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)) if (
            name in FROM_A_CATALOGUE
        ):
            return
        case ast.keyword(arg="style") | ast.Subscript() | ast.Compare() | ast.Dict():
            return
        case ast.Constant(value=str(text)):
            yield text
        case _:
            for child in ast.iter_child_nodes(node):
                yield from literals(child)


def test_commands_and_reports_say_nothing_that_is_in_no_catalogue() -> None:
    """Words in code are said in one language alone; commands to paste are the same in all."""
    uncatalogued = []
    for room in ("cli", "reporting"):
        for path in sorted((SOURCE / room).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                    if name not in SAYING and not name.startswith("render_"):
                        continue
                    texts = [
                        text
                        for argument in (*node.args, *node.keywords)
                        for text in literals(argument)
                    ]
                    uncatalogued += [
                        f"{path.name}:{node.lineno}: {text}"
                        for text in texts
                        if re.search("[A-Za-z]{3}", text)
                        and text not in messages.labels("en")
                        and not re.match(r" ?--|left$|right$|bold|keju ", text)
                    ]
    assert not uncatalogued, "\n".join(uncatalogued)


def test_every_english_text_has_its_chinese_in_the_file_of_the_same_name() -> None:
    english, chinese = (
        {(file.name, section, name) for file, section, name, _ in store.entries(language)}
        for language in store.LANGUAGES
    )
    complete_folders = ("messages", "labels")
    missing = [f"zh/{file}: {section}.{name}" for file, section, name in english - chinese]
    superfluous = [place for place in chinese - english if place[1] in complete_folders]
    assert (sorted(missing), sorted(superfluous)) == ([], [])


@pytest.mark.parametrize("language", store.LANGUAGES)
def test_a_name_has_one_text_in_all_files(language: messages.Language) -> None:
    names = Counter((section, name) for _, section, name, _ in store.entries(language))
    assert [place for place, count in names.items() if count > 1] == []


def test_a_text_without_chinese_is_shown_in_english(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for language in store.LANGUAGES:
        (tmp_path / language).mkdir()
        (tmp_path / language / "a.json").write_text("{}")
    sections = {"messages": {"new_code": "a new text"}, "labels": {"new": "a new label"}}
    (tmp_path / "en" / "a.json").write_text(json.dumps(sections))
    monkeypatch.setattr(store, "FOLDER", tmp_path)
    cached = (store.texts, store._sections, messages.labels)
    for function in cached:
        function.cache_clear()
    try:
        assert messages.text_of("new_code", {}, "zh") == "a new text"
        assert messages.labels("zh")["new"] == "a new label"
    finally:
        for function in cached:
            function.cache_clear()
