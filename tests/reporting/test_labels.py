from __future__ import annotations

from typing import get_args

import pytest

from keju.messages import labels
from keju.reporting.format import Labels
from keju.results.schema import from_document
from keju.types import OUTCOMES, CallKind, FaultKind, Stop
from tests.reporting.documents import document, entry


def test_every_outcome_has_its_words() -> None:
    for outcome in OUTCOMES:
        assert f"outcome.{outcome}" in labels("zh")
        assert f"counts.{outcome}" in labels("zh")


def test_the_reasons_of_the_choice_readers_have_their_words() -> None:
    for reason in ("empty", "no_marker", "invalid_label", "ambiguous", "denied"):
        for language in ("en", "zh"):
            assert f"reason.{reason}" in labels(language)


def test_how_calls_episodes_and_requests_end_has_its_words() -> None:
    kinds = {"call": CallKind, "stop": Stop, "fault": FaultKind}
    for family, codes in kinds.items():
        for code in set(get_args(codes)) - {"ok"}:
            assert labels("en")[f"{family}.{code}"] == code
            assert not labels("zh")[f"{family}.{code}"].isascii()


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [
        (None, "–", "–"),
        (0.04, "0.0 s", "0.0 秒"),
        (9.96, "10.0 s", "10.0 秒"),
        (12.3, "12 s", "12 秒"),
        (59.7, "1 min 00 s", "1 分钟 0 秒"),
        (125, "2 min 05 s", "2 分钟 5 秒"),
        (7500, "2 h 05 min", "2 小时 5 分钟"),
        (90_000, "25 h 00 min", "25 小时 0 分钟"),
    ],
)
def test_a_time_span_is_written_in_the_language(
    seconds: float | None, english: str, chinese: str
) -> None:
    assert Labels("en").duration(seconds) == english
    assert Labels("zh").duration(seconds) == chinese


@pytest.mark.parametrize(
    ("name", "title", "english", "chinese"),
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
    name: str, title: str, english: str, chinese: str
) -> None:
    assert Labels("en").metric(name, title) == english
    assert Labels("zh").metric(name, title) == chinese


def test_a_warning_without_a_code_of_ours_stays_as_it_was_written() -> None:
    notices = [{"code": "no_gold"}, {"code": "a sentence"}, {"code": "of_a_later_version"}]
    sentences = ["no gold answers: nothing is scored", "a sentence", "what a later one says"]
    (benchmark,) = from_document(document(entry(notices=notices, warnings=sentences))).benchmarks
    assert Labels("en").warnings(benchmark) == sentences
    assert Labels("zh").warnings(benchmark) == ["无得分：没有标准答案", *sentences[1:]]
    (old,) = from_document(document(entry(warnings=sentences))).benchmarks
    assert Labels("zh").warnings(old) == sentences
