"""The 25 checks decide as the published program, oddities included."""

from __future__ import annotations

from typing import Any

import pytest

from keju.benchmarks.ifeval.checkers import CHECKS, check_loosely, check_strictly
from keju.benchmarks.ifeval.languages import detect_language
from keju.benchmarks.ifeval.sentences import split_sentences, split_words

CASES: list[tuple[str, dict[str, Any], str, bool]] = [
    ("keywords:existence", {"keywords": ["cat"]}, "A CATegory", True),
    ("keywords:existence", {"keywords": ["a.c"]}, "abc", True),
    ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, "A category", True),
    ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, "the CAT.", False),
    ("keywords:frequency", {"keyword": "a", "frequency": 3, "relation": "at least"}, "A aA", True),
    ("keywords:frequency", {"keyword": "a", "frequency": 3, "relation": "less than"}, "aAa", False),
    (
        "keywords:letter_frequency",
        {"letter": "!", "let_frequency": 2, "let_relation": "at least"},
        "so! that!",
        True,
    ),
    ("length_constraints:number_words", {"num_words": 3, "relation": "at least"}, "it's so", True),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 2, "relation": "less than"},
        "Dr. Smith met J. Bach at 5 p.m. in the U.S. yesterday.",
        True,
    ),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb\n***", True),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a *** *** b", False),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Then"},
        'One.\n\n"Then, two.',
        True,
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "then"},
        "One.\n\n\n\nThen",
        False,
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] [b]", True),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "x\np.p. s", True),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "PS: x", False),
    ("detectable_format:number_bullet_lists", {"num_bullets": 3}, "* a\n- b\n---", True),
    ("detectable_format:number_bullet_lists", {"num_bullets": 1}, "** a", False),
    ("detectable_format:constrained_response", {}, "So: My answer is no.", True),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "**a**", False),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "**a** *b*", True),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Section", "num_sections": 2},
        "Section 1 a\nSection2",
        True,
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', True),
    ("detectable_format:json_format", {}, "{'a': 1}", False),
    ("detectable_format:title", {}, "<<a>>", True),
    ("detectable_format:title", {}, "<<  >>", False),
    ("combination:two_responses", {}, "a ****** b ******", True),
    ("combination:two_responses", {}, "a ****** a", False),
    ("combination:repeat_prompt", {"prompt_to_repeat": " Do IT "}, "do it, I did", True),
    ("startend:end_checker", {"end_phrase": "Any more?"}, 'x "ANY more?" ', True),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        "A U.S. man",
        True,
    ),
    ("change_case:english_capital", {}, "THIS IS ENGLISH TEXT", True),
    ("change_case:english_capital", {}, "This is English", False),
    ("change_case:english_lowercase", {}, "this is a small english text", True),
    ("change_case:english_lowercase", {}, "das ist ein kleiner deutscher text", False),
    ("language:response_language", {"language": "de"}, "Das ist ein kurzer Satz.", True),
    ("language:response_language", {"language": "de"}, "123 !!", True),
    ("punctuation:no_comma", {}, "a，b", True),
    ("startend:quotation", {}, ' "a" ', True),
    ("startend:quotation", {}, '"', False),
]


@pytest.mark.parametrize(("name", "arguments", "reply", "follows"), CASES)
def test_a_check_decides_as_published(
    name: str, arguments: dict[str, Any], reply: str, follows: bool
) -> None:
    assert check_strictly(name, arguments, reply) is follows


def test_every_check_has_a_case() -> None:
    assert {name for name, *_ in CASES} == set(CHECKS)
    assert len(CHECKS) == 25


def test_loose_verdicts_ignore_the_first_or_last_line_and_asterisks() -> None:
    assert not check_strictly("startend:quotation", {}, 'Here it is:\n"text"\nBye')
    assert check_loosely("startend:quotation", {}, 'Here it is:\n"text"\nBye')
    assert check_loosely("startend:end_checker", {"end_phrase": "done."}, "It is **done.**")
    assert not check_loosely("punctuation:no_comma", {}, "a, b\nc, d\ne, f")


def test_an_empty_reply_follows_nothing() -> None:
    assert not check_strictly("punctuation:no_comma", {}, " \n")
    assert not check_loosely("punctuation:no_comma", {}, "")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Very bad!!! I promise.", ["Very bad!!!", "I promise."]),
        ("(One.) Two.", ["(One.)", "Two."]),
        ('He said "No." Then he left.', ['He said "No."', "Then he left."]),
        ("1. First\n2. Second", ["1.", "First\n2.", "Second"]),
        ("See e.g. the book. It costs 3.50 now", ["See e.g.", "the book.", "It costs 3.50 now"]),
        ("Wait... what? Yes", ["Wait... what?", "Yes"]),
    ],
)
def test_sentences_end_where_punkt_ends_them(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_words_are_those_of_nltk() -> None:
    text = "I cannot say: it's $5 (or 3,4) \"NOW\" -- isn't it?"
    expected = "I can not say : it 's $ 5 ( or 3,4 ) `` NOW '' -- is n't it ?"
    assert split_words(text) == expected.split()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Привет, как у тебя сегодня дела? Надеюсь, всё хорошо, link", "ru"),
        ("これは日本語のテキストです。", "ja"),
        ("这是一段中文文本，用来测试。", "zh-cn"),
        ("Tôi là người Việt Nam", "vi"),
        ("안녕하세요 반갑습니다", "ko"),
        ("سلام، حال شما چطور است؟", "fa"),
        ("", None),
        ("123 !!", None),
        ("HELLO WORLD OF CAPITALS", "en"),
    ],
)
def test_a_language_is_detected_always_the_same(text: str, language: str | None) -> None:
    assert {detect_language(text) for _ in range(3)} == {language}
