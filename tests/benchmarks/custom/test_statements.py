"""A sentence counts as the right answer if it states it, and nothing else."""

from __future__ import annotations

import pytest

from keju.benchmarks.custom.statements import states_answer

GOLD = "What is the chemical symbol of gold?"
GOLD_ZH = "金的化学符号是什么？"


@pytest.mark.parametrize(
    ("sentence", "target", "question"),
    [
        ("The symbol of gold is Au.", "Au", GOLD),
        ("The chemical symbol of gold is **Au**", "Au", GOLD),
        ("Au is the symbol of gold", "Au", GOLD),
        ("Gold’s symbol is Au", "Au", GOLD),
        ("The answer is: Au", "au", GOLD),
        ("金的化学符号是Au。", "Au", GOLD_ZH),
        ("法国的首都是巴黎", "巴黎", "法国的首都是哪里？"),
        ("A spider has 8 legs.", "8", "How many legs does a spider have?"),
        (
            "Neil Armstrong walked on the moon first",
            "Neil Armstrong",
            "Who walked first on the moon?",
        ),
        ("The Eiffel Tower is located in Paris", "Paris", "Where is the Eiffel Tower?"),
        ("植物通过光合作用释放出氧气。", "氧气", "植物的光合作用释放什么？"),
    ],
)
def test_a_sentence_that_states_the_answer_counts(
    sentence: str, target: str, question: str
) -> None:
    assert states_answer(sentence, target, question)


@pytest.mark.parametrize(
    ("sentence", "target", "question"),
    [
        ("The symbol of gold is not Au", "Au", GOLD),
        ("The symbol of gold isn't Au", "Au", GOLD),
        ("It is false: Au", "Au", GOLD),
        ("Au or Ag", "Au", GOLD),
        ("The symbol of gold is Au or Ag", "Ag", GOLD),
        ("The symbol of gold is Au, not Ag", "Ag", GOLD),
        ("It is Au and Ag", "Au", GOLD),
        ("The symbol of gold is Au and the symbol of gold is Ag", "Au", GOLD),
        ("Is it Au?", "Au", GOLD),
        ("Is it Au", "Au", GOLD),
        ("Maybe it is Au", "Au", GOLD),
        ("The symbol of silver is Au", "Au", GOLD),
        ("The symbol is Ag. Au", "Au", GOLD),
        ("The symbol of gold is Aurum", "Au", GOLD),
        ("金的化学符号不是Au。", "Au", GOLD_ZH),
        ("金的化学符号是Ag，不是Au", "Au", GOLD_ZH),
        ("不过会是Au吗", "Au", GOLD_ZH),
        ("There are -8 legs", "8", "How many legs are there?"),
        ("8 % of legs", "8", "How many legs are there?"),
        ("2 + 2 = 4", "4", "2 + 2?"),
        ("It is Ag", "Ag", "Which is the symbol of gold, Au or Ag?"),
        ("Au Ag", "Ag", "Which is the symbol of gold, Au or Ag?"),
        ("The symbol of gold is " + "of " * 100 + "Au", "Au", GOLD),
        ("anything", "", GOLD),
    ],
)
def test_a_sentence_that_denies_lists_or_hedges_does_not_count(
    sentence: str, target: str, question: str
) -> None:
    assert not states_answer(sentence, target, question)
