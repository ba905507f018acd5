from __future__ import annotations

import string

import pytest

from keju.report.strings import CATALOGUES, Strings
from keju.types import OUTCOMES


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_labels_with_the_same_placeholders() -> None:
    english, chinese = CATALOGUES["en"], CATALOGUES["zh"]
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert placeholders(text) == placeholders(chinese[key]), key


def test_every_outcome_has_its_words() -> None:
    for outcome in OUTCOMES:
        assert f"outcome.{outcome}" in CATALOGUES["zh"]
        assert f"counts.{outcome}" in CATALOGUES["zh"]


def test_the_reasons_of_the_choice_readers_have_their_words() -> None:
    for reason in ("empty", "no_marker", "invalid_label", "ambiguous", "denied"):
        for language in ("en", "zh"):
            assert f"reason.{reason}" in CATALOGUES[language]


@pytest.mark.parametrize(
    ("name", "given", "english", "chinese"),
    [
        ("accuracy", "", "accuracy, mean over questions (micro)", "准确率，按题平均（微平均）"),
        ("macro_23", "mean of 23 tasks", "mean of 23 tasks", "23 个任务的平均"),
        (
            "pass@5",
            "",
            "right at least once in 5 attempts (pass@5)",
            "5 次中至少答对一次（pass@5）",
        ),
        ("my_metric", "", "my metric", "my metric"),
        ("my_metric", "given title", "given title", "given title"),
    ],
)
def test_metrics_are_named_by_what_they_mean(
    name: str, given: str, english: str, chinese: str
) -> None:
    assert Strings("en").metric(name, given) == english
    assert Strings("zh").metric(name, given) == chinese
