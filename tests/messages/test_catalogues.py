"""What Keju says, in both languages."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping

import pytest

from keju import messages
from keju.benchmarks import registry
from keju.errors import Notice


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


def test_a_notice_is_said_in_the_language_of_its_reader() -> None:
    notice = Notice("cut_replies", {"part": 2, "whole": 40, "share": 0.05})
    told = "2 of 40 replies (5.0%) were cut off before an answer: raise max_tokens"
    assert notice.text() == told
    assert notice.text("zh").startswith("40 个回复中有 2 个（5.0%）")
    assert Notice("A plug-in's {own} sentence.").text("zh") == "A plug-in's {own} sentence."


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
    assert messages.spoken() == language
