"""Which option a reply names as the one to choose, and which one an elimination leaves."""

from __future__ import annotations

import pytest

from keju.answers.conclusions import find_conclusion
from keju.types import Sample

STATEMENTS = ("They have nuclei", "They divide", "They never die", "They eat")
SOURCES = ("from design", "from motion", "from morals", "from existence")
CELLS = ("甲细胞有核", "乙细胞无核", "丙细胞能分裂", "丁细胞会死")


def _sample(text: str, choices: tuple[str, ...]) -> Sample:
    return Sample(id="q", subset="q", index=0, text=text, target="", choices=choices)


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("所以 D 是对的,要选的错误表述是 B。", "B"),
        ("所以 D 正确,该选的是 B 项。", "B"),
        ("因此C项说法没有问题,本题要选的是A。", "A"),
    ],
)
def test_chinese_clause_that_names_the_one_to_choose_counts(reply: str, label: str) -> None:
    assert find_conclusion(reply, _sample("下列关于细胞的表述,错误的是", CELLS)).value == label


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("So D is correct, and the false statement to choose is B.", "B"),
        ("So (D) is true, which makes (B) the one to pick.", "B"),
        ("Therefore (D) is true; the statement that is not true is (C).", "C"),
    ],
)
def test_english_clause_that_names_the_one_to_choose_counts(reply: str, label: str) -> None:
    sample = _sample("Which of the following statements is NOT true of cells?", STATEMENTS)
    assert find_conclusion(reply, sample).value == label


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("Not A, that is design. Not C either. The D argument is about existence. "
         "That leaves only one.", None),
        ("It is not A. Not B. That leaves only one.", None),
        ("A错,B错,C也错,只剩一个。", "D"),
    ],
)  # fmt: skip
def test_elimination_counts_only_if_one_option_is_left(reply: str, label: str | None) -> None:
    sample = _sample("Which argument does Anselm make?", SOURCES)
    assert find_conclusion(reply, sample).value == label
