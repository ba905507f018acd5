"""The robust reader on mathematical replies, the published readers, and the search for boxes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from keju.answers.mathematics.kind import find_boxes, join_box_lines, make_math_reader
from keju.answers.mathematics.qwen import QwenReader, is_equal, number_word, strip
from keju.answers.mathematics.simple_evals import SimpleEvalsReader
from keju.answers.reader import Reader
from keju.types import Sample


def sample(target: str = "1") -> Sample:
    return Sample(id="q", subset="all", index=0, text="What?", target=target)


WRITTEN = [
    ("So the answer is $\\frac{3}{4}$.", "3/4"),
    ("Thus $x = 3 + 4 = 7$.", "7"),
    ("ANSWER: 42", "42"),
    ("The final answer is 42 meters.", "42"),
    ("**Final Answer:** $(3, \\frac{\\pi}{2})$", "(3,\\pi/2)"),
    ("Answer: \\(x = 5\\) and \\(x=-2\\)", "5,-2"),
    ("Therefore the value is 15.", "15"),
    ("\\boxed{\\begin{pmatrix} 1 \\\\\n 2 \\end{pmatrix}}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"),
    ("答案是 $x²+1$。", "x^2+1"),
    ("所以最终答案为 \\boxed{12}。", "12"),
    ("Final Answer: The final answer is $[2,5)$. I hope it is correct.", "[2,5)"),
    ("I first thought \\boxed{3}. Wait, that is wrong. The correct answer is \\boxed{4}.", "4"),
    ("The sum is $5+5 = 10$.\n\nSo the answer is: 10.", "10"),
    ("Step 1: 3\nStep 2: 4\n\n$$\\boxed{\\text{Evelyn}}$$", "\\text{Evelyn}"),
    ("I cannot solve this problem.", None),
    ("The answer is 25%.", "25\\%"),
    ("Answer: $1,234.50", "1234.5"),
    ("The answer is $\\$18$.", "18"),
    ("Hence $a = 3$, $b = 4$ and so $a+b=\\boxed{7}$, which is odd.", "7"),
    ("the answer is x = 5 or x = -5.", "5,-5"),
    ("#### 72", "72"),
    ("### Final answer\n\n$$x = \\frac{1}{2}$$", "1/2"),
    ("The solution set is $\\{1, 2\\}$.", "\\{1,2\\}"),
    ("\\[ \\boxed{073} \\]", "73"),
    ("The answer is 1/3.", "\\frac13"),
]


@pytest.mark.parametrize(("text", "target"), WRITTEN)
def test_robust_reads_the_answer(text: str, target: str | None) -> None:
    reader = make_math_reader()
    value = reader.read(text, sample()).value
    if target is None:
        assert value is None
    else:
        assert value is not None
        assert reader.matches(value, sample(target))


def test_boxes_are_found_with_their_braces() -> None:
    assert find_boxes(r"\boxed{\frac{1}{2}} and \fbox{x} and \boxed{\{1\}}") == [
        r"\frac{1}{2}", "x", r"\{1\}",
    ]  # fmt: skip
    assert find_boxes(r"\boxed{1 and {2}") == []
    assert join_box_lines("a\n\\boxed{1\n{2}\n3}\nb") == "a\n\\boxed{1 {2} 3}\nb"


@pytest.mark.parametrize(
    ("reader", "text", "target", "value", "right"),
    [
        (QwenReader(), r"so \boxed{3} or \boxed{4}", "4", "4", True),
        (QwenReader(), r"The final answer is $5$. I hope it is correct.", "5", "5", True),
        (QwenReader(), "the answer is 12 cm.", "12", "12", True),
        (QwenReader(), "7 and then 8", "8", "8", True),
        (QwenReader(), r"\boxed{50\%}", "0.5", "50", True),
        (QwenReader(), r"\boxed{10000}", "10{,}000", "10000", False),
        (QwenReader(), r"\boxed{\frac12}", "0.5", r"\frac{1}{2}", True),
        (QwenReader(), r"\boxed{[1,2)}", "(1,2)", "[1,2)", True),
        (QwenReader(), r"\boxed{x=5}", "5", "5", True),
        (QwenReader(), "nothing", "5", None, False),
        (SimpleEvalsReader(), "Answer: $\\frac{1}{2}$", "0.5", "$\\frac{1}{2}$", True),
        (SimpleEvalsReader(), "Answer: 3\nAnswer: 4", "3", "3", True),
        (SimpleEvalsReader(), "**Answer:** 64 square feet", "64", "** 64 square feet", True),
        (SimpleEvalsReader(), r"\boxed{3}", "3", None, False),
    ],
)
def test_published_readers(
    reader: Reader, text: str, target: str, value: str | None, right: bool
) -> None:
    assert reader.read(text, sample()).value == value
    assert (value is not None and reader.matches(value, sample(target))) is right


def test_qwens_substitutions() -> None:
    for text, stripped in {
        r"\dfrac{3}{4}": r"\frac{3}{4}",
        r"\frac12": r"\frac{1}{2}",
        "3/4": r"\frac{3}{4}",
        r"5\text{ inches}": "5",
        "5 degrees": "5",
        "12.00": "12",
        ".5": "0.5",
        r"\sqrt2": r"\sqrt{2}",
        "two hundred": "200",
        r"\left( 1, 2 \right)": "(1,2)",
    }.items():
        assert strip(text) == stripped
    assert number_word("twenty-one thousand five hundred") == "21500"
    assert is_equal(r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1\\2.00001\end{pmatrix}")
    assert not is_equal("12", "13")


def test_qwens_verdicts_on_written_pairs() -> None:
    """The verdicts of the published grader, with sympy 1.12, were recorded once."""
    lines = Path(__file__).with_name("qwen_pairs.jsonl").read_text("utf-8").splitlines()
    pairs = [json.loads(line) for line in lines]
    assert len(pairs) > 180
    for pair in pairs:
        value, target = strip(strip(pair["answer"])), strip(pair["target"])  # as the reader
        assert is_equal(value, target) is pair["equal"], pair


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("-4", "-4"),
        ("007", "7"),
        ("point five", "0.5"),
        ("three point one four", "3.14"),
        ("one million two hundred thousand and five", "1200005"),
        ("thousand five", "thousand five"),
        ("two thousand three million", "two thousand three million"),
        ("a dozen", "a dozen"),
    ],
)
def test_qwens_number_words(text: str, digits: str) -> None:
    assert number_word(text) == digits


@pytest.mark.parametrize("text", ["(" * 1500, "1^" * 700, "f(" * 700, "|" * 1500, "\\log_2" * 200])
def test_hostile_formulas_take_linear_time(text: str) -> None:
    start = time.process_time()
    assert not is_equal(text, "x" + text[1:])
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    "text", ["\\boxed{" * 30_000, "$" * 100_000, "\\(" * 50_000, "{" * 200_000, "= 5 " * 50_000]
)
def test_hostile_replies_take_linear_time(text: str) -> None:
    start = time.process_time()
    for reader in (make_math_reader(), QwenReader(), SimpleEvalsReader()):
        value = reader.read(text, sample()).value
        if value is not None:
            reader.matches(value, sample())
    assert time.process_time() - start < 10
